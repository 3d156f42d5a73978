//! Several campaigns of one experiment, from several GPUs or machines, become one; so do campaigns of several experiments, for a
//! report of all of them. In: complete campaigns. Out: a new one with all
//! their runs, written aside and renamed, so that a kill leaves none or the whole.
//!
//! A run keeps its tables and its numbers; its record gets the new campaign, block and repetition. Blocks are numbered on, so that
//! the origin of each run stays known: a group is compared only with baselines of the same origin.
//!
//! To add a condition that forbids merging: [`differences`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use fs_err as fs;

use crate::folder::{CampaignFolder, StoredRun, write_manifest};
use crate::place::{fresh_file, sweep, sync_folder};
use crate::record::campaign::Filing;
use crate::record::run;
use crate::{
    Campaign, Comment, Error, Ingredient, Journal, Origin, PlannedRun, Predicted, RefusalRecord, Result, Runs, SCHEMA, comments,
    digest, names, order,
};

/// Prefix of a campaign's name while it is merged; listings ignore such names.
const ASIDE: &str = ".merging-";

/// What campaigns that become one have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeScope {
    /// The experiment, and so every ingredient.
    OneExperiment,
    /// Whatever their numbers depend on: the workloads that several of them have, data, versions, device, rules.
    SameIngredients,
}

/// Whether an ingredient says which cells there are, and not what their numbers depend on.
fn is_of_experiment(name: &str) -> bool {
    ["experiment", "--where"].contains(&name) || ["include ", "--set "].iter().any(|begins| name.starts_with(begins))
}

/// The ingredients of a campaign by the names under which they are compared.
type Compared<'a> = BTreeMap<&'a str, &'a Ingredient>;

/// `python` is that of the environment with torch where there is one, else the system's: two things.
fn compared(c: &Campaign) -> Compared<'_> {
    let name = |own| if own == "python" && !has_torch(c) { PYTHON_OF_SYSTEM } else { own };
    c.ingredients.iter().map(|(own, ingredient)| (name(own.as_str()), ingredient)).collect()
}

const PYTHON_OF_SYSTEM: &str = "python of the system";

fn has_torch(c: &Campaign) -> bool {
    c.ingredients.contains_key("torch")
}

/// Whether a campaign lacks an ingredient because none of its cells needs it: a file of a workload that it does not run, data, the
/// packages of an environment that it does not use.
fn needs_none(own: &Compared<'_>, name: &str, is_python: bool) -> bool {
    if let Some((folder, _)) = name.strip_prefix("workloads/").and_then(|name| name.split_once('/')) {
        let begins = format!("workloads/{folder}/");
        return !own.keys().any(|key| key.starts_with(&begins));
    }
    let whose = |name: &str| name.rsplit_once(" of ").map(|(_, whose)| whose.to_string());
    match whose(name).filter(|_| is_python) {
        // The environment of one workload, or the system's.
        Some(environment) => !own.keys().any(|key| whose(key).as_ref() == Some(&environment)),
        None => name.starts_with("data ") || is_python && !own.contains_key("torch"),
    }
}

/// Something that differs between campaigns that are to be merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeDifference {
    /// `driver`, `GPU model`, `workloads/tiny/train.py`.
    pub what: String,
    /// By the last part of the campaign's id.
    pub values: Vec<(String, String)>,
    /// False if runs that differ in it are not of one experiment at all.
    pub may_be_forced: bool,
}

impl std::fmt::Display for MergeDifference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let values: Vec<String> = self.values.iter().map(|(campaign, value)| format!("{value} in {campaign}")).collect();
        write!(f, "{}: {}", self.what, values.join(", "))
    }
}

/// What differs between these campaigns, apart from what may: host, GPU of the same model, time, shard.
pub fn differences(campaigns: &[CampaignFolder], scope: MergeScope) -> Vec<MergeDifference> {
    let all: Vec<&Campaign> = campaigns.iter().map(CampaignFolder::manifest).collect();
    let mut found = Vec::new();
    let mut compare = |what: &str, may_be_forced: bool, value: &dyn Fn(&Campaign) -> Option<String>| {
        found.extend(difference(what, may_be_forced, all.iter().map(|c| (*c, value(c)))));
    };
    let short = |digest: &str| digest.chars().take(12).collect::<String>();
    let one = scope == MergeScope::OneExperiment;
    if one {
        compare("experiment", false, &|c| Some(c.experiment.clone()));
        compare("seed", false, &|c| Some(c.plan.seed.to_string()));
        compare("number of shards", false, &|c| {
            // What was merged from shards takes further ones.
            let shard = c.shard.or_else(|| c.origins.iter().find_map(|o| o.shard));
            shard.map(|s| s.count.to_string())
        });
    }
    compare("device", false, &|c| Some(device(c, &all)));
    compare("schema", false, &|c| Some(c.schema.to_string()));
    compare("epochs", false, &|c| Some(c.plan.epochs.to_string()));
    compare("measure_for", false, &|c| Some(format!("{} s", c.plan.measure_for_s?)));
    compare("thresholds", false, &|c| serde_json::to_string(&c.thresholds).ok());
    let ingredients: Vec<(&Campaign, Compared<'_>)> = all.iter().map(|c| (*c, compared(c))).collect();
    let names: BTreeSet<&str> = ingredients.iter().flat_map(|(_, own)| own.keys().copied()).collect();
    // Devices are compared by what they are, below: which card it was is a part of the origin.
    let of_device = |name: &str| ["device", "cards", "processor"].contains(&name);
    for name in names.into_iter().filter(|name| !of_device(name) && (one || !is_of_experiment(name))) {
        let fact = if name == PYTHON_OF_SYSTEM { "python" } else { name };
        let is_python = all.iter().any(|c| c.machine.python.contains_key(fact));
        let has = ingredients.iter().map(|(c, own)| (*c, own, own.get(name).copied()));
        let among: Vec<(&Campaign, Option<&Ingredient>)> =
            has.filter(|(_, own, has)| has.is_some() || !needs_none(own, name, is_python)).map(|(c, _, has)| (c, has)).collect();
        // The file itself, and which of its cells: other cells may have the same names.
        let may_be_forced = !["experiment", "--where"].contains(&name);
        let by = |text: &dyn Fn(&Ingredient) -> String| {
            difference(name, may_be_forced, among.iter().map(|(c, has)| (*c, has.map(text))))
        };
        // Versions may be written alike for different contents.
        let by_version = by(&|i| i.version.clone().unwrap_or_else(|| short(&i.sha256)));
        found.extend(by_version.or_else(|| by(&|i| short(&i.sha256))));
    }
    let mut compare = |what: &str, may_be_forced: bool, value: &dyn Fn(&Campaign) -> Option<String>| {
        found.extend(difference(what, may_be_forced, all.iter().map(|c| (*c, value(c)))));
    };
    compare("build", true, &|c| Some(c.machine.build.clone()));
    compare("CPU", true, &|c| c.machine.cpu_model.clone());
    // A CPU has them in its description; beside a GPU the loaders of data share them.
    compare("cores", true, &|c| (c.device.kind == "gpu").then(|| c.machine.cpu_cores.to_string()));
    compare("CPU governor", true, &|c| c.machine.governor.clone());
    let gpu = |c: &Campaign| c.machine.gpus.iter().find(|gpu| gpu.name == c.device.name).cloned();
    // What the driver did not report once is what it reported of the same GPU at another time.
    let mut of_gpu = |what: &str, may_be_forced: bool, value: &dyn Fn(&Campaign) -> Option<String>| {
        compare(what, may_be_forced, &|c| value(c).or_else(|| same_gpu(c, &all).find_map(value)));
    };
    of_gpu("SMs", false, &|c| Some(gpu(c)?.sms?.to_string()));
    of_gpu("power limit", true, &|c| Some(format!("{:.0} W", gpu(c)?.power_limit_w?)));
    of_gpu("ECC", true, &|c| Some(gpu(c)?.ecc?.to_string()));
    of_gpu("largest SM clock", true, &|c| Some(format!("{} MHz", gpu(c)?.max_sm_clock_mhz?)));
    found.extend(cells(&all));
    found
}

/// Those of the same GPU.
fn same_gpu<'a>(c: &'a Campaign, all: &'a [&'a Campaign]) -> impl Iterator<Item = &'a Campaign> {
    let uuid = |c: &Campaign| c.machine.gpu_of(&c.device).map(|gpu| gpu.uuid.clone());
    all.iter().copied().filter(move |other| uuid(other).is_some_and(|own| uuid(c) == Some(own)))
}

/// A device as it is compared. A GPU is what its UUID says, whatever the driver reports of it; without one it is its model, with its
/// memory where that could be read: of a partitioned GPU a normal user cannot read it.
fn device(c: &Campaign, all: &[&Campaign]) -> String {
    let alike = all.iter().copied().filter(|o| c.device.memory_bytes.is_none() && o.device.is_of_model(&c.device));
    let mut described = same_gpu(c, all).chain([c]).chain(alike).filter(|_| c.device.kind == "gpu");
    described.find(|o| o.device.memory_bytes.is_some()).unwrap_or(c).device.text()
}

/// A value that is not the same in all campaigns, each text once; absent counts as one.
fn difference<'a>(
    what: &str,
    may_be_forced: bool,
    all: impl Iterator<Item = (&'a Campaign, Option<String>)>,
) -> Option<MergeDifference> {
    let mut values: Vec<(String, String)> = Vec::new();
    for (c, value) in all {
        let value = value.unwrap_or_else(|| "none".into());
        if !values.iter().any(|(_, known)| *known == value) {
            values.push((c.short_id().into(), value));
        }
    }
    (values.len() > 1).then(|| MergeDifference { what: what.into(), values, may_be_forced })
}

/// Cells of one name that are not the same.
fn cells(all: &[&Campaign]) -> Vec<MergeDifference> {
    let mut known = BTreeMap::<&str, (&Campaign, &crate::CellRecord)>::new();
    let mut found = Vec::new();
    for c in all {
        for cell in &c.plan.cells {
            let (first, other) = *known.entry(&cell.slug).or_insert((c, cell));
            let same = cell.cell == other.cell
                && cell.sharing == other.sharing
                && cell.mode == other.mode
                && cell.members == other.members
                && cell.after_measured == other.after_measured
                && cell.slots == other.slots;
            if !same {
                let slots = |cell: &crate::CellRecord| format!("{} on {}", cell.cell, cell.slots.as_deref().unwrap_or("?"));
                let values = vec![(first.short_id().into(), slots(other)), (c.short_id().into(), slots(cell))];
                found.push(MergeDifference { what: format!("cell `{}`", cell.cell), values, may_be_forced: false });
            }
        }
    }
    found
}

/// Write the merged campaign. The caller has checked the [`differences`]; `indicative` are reasons that it adds.
pub fn merge(runs: &Runs, campaigns: &[CampaignFolder], indicative: &[String]) -> Result<CampaignFolder> {
    let first = campaigns.first().ok_or_else(|| Error::Io(std::io::Error::other("no campaign to merge")))?.manifest();
    let newest = runs.campaigns()?.0.into_iter().next();
    let mut names: Vec<&str> = campaigns.iter().map(|c| c.manifest().experiment.as_str()).collect();
    names.dedup();
    let experiment = names.join("+");
    let id = runs.new_id(&experiment);
    let mut merged = Campaign {
        experiment: experiment.clone(),
        source_toml: sources(campaigns),
        schema: SCHEMA,
        created_utc: crate::utc_now(),
        shard: None,
        origins: Vec::new(),
        filing: Filing { digests: true, after: newest.map(|c| order::key(c.manifest())) },
        id: id.clone(),
        ..first.clone()
    };
    unite(&mut merged, &campaigns.iter().map(CampaignFolder::manifest).collect::<Vec<_>>());
    for why in campaigns.iter().flat_map(|c| &c.manifest().indicative).chain(indicative) {
        if !merged.indicative.contains(why) {
            merged.indicative.push(why.clone());
        }
    }
    merged.plan.cells.clear();
    merged.plan.order.clear();
    merged.plan.refusals.clear();
    let folder = runs.path().join(&experiment);
    fs::create_dir_all(&folder)?;
    sweep(&folder, |name| name.starts_with(ASIDE));
    let aside = folder.join(format!("{ASIDE}{id}"));
    fs::create_dir(&aside)?;
    let written = fill(&aside, &mut merged, campaigns).and_then(|()| {
        sync_folder(&aside)?;
        fs::rename(&aside, folder.join(&id))?;
        sync_folder(&folder)
    });
    if let Err(e) = written {
        // The first error is the one to tell.
        let _ = std::fs::remove_dir_all(&aside);
        return Err(e);
    }
    CampaignFolder::open(&folder.join(&id))
}

/// The facts of all: what each adds, and nothing that holds for some of them only.
fn unite(merged: &mut Campaign, all: &[&Campaign]) {
    merged.ingredients.clear();
    merged.machine.python.clear();
    merged.references.clear();
    merged.predicted = None;
    // Where two environments have a package, the one with torch is meant, as in a campaign that uses both.
    let (with_torch, without): (Vec<&Campaign>, Vec<&Campaign>) = all.iter().copied().partition(|c| has_torch(c));
    for c in with_torch.into_iter().chain(without) {
        for (name, ingredient) in &c.ingredients {
            merged.ingredients.entry(name.clone()).or_insert_with(|| ingredient.clone());
        }
        for (name, version) in &c.machine.python {
            merged.machine.python.entry(name.clone()).or_insert_with(|| version.clone());
        }
    }
    for c in all {
        Predicted::join(&mut merged.predicted, c.predicted.as_ref());
    }
    for reference in all.iter().flat_map(|c| &c.references) {
        if !merged.references.contains(reference) {
            merged.references.push(reference.clone());
        }
    }
    let experiment = |c: &Campaign| c.ingredients.get("experiment").cloned();
    if !all.iter().all(|c| experiment(c) == experiment(merged) && c.experiment == merged.experiment) {
        merged.ingredients.retain(|name, _| !is_of_experiment(name));
    }
    merged.tags.retain(|tag| all.iter().all(|c| c.tags.contains(tag)));
    merged.description = merged.description.take().filter(|own| all.iter().all(|c| c.description.as_ref() == Some(own)));
    merged.until = merged.until.take().filter(|own| all.iter().all(|c| c.until.as_ref() == Some(own)));
    merged.surroundings = merged.surroundings.take().filter(|own| all.iter().all(|c| c.surroundings.as_ref() == Some(own)));
}

/// The experiments, each once.
fn sources(campaigns: &[CampaignFolder]) -> String {
    let mut all: Vec<&str> = campaigns.iter().map(|c| c.manifest().source_toml.as_str()).collect();
    all.dedup();
    all.join("\n")
}

fn fill(aside: &Path, merged: &mut Campaign, campaigns: &[CampaignFolder]) -> Result<()> {
    let mut journal = Journal::open(aside)?;
    for campaign in campaigns {
        campaign.expect_unchanged()?;
        let (stored, foreign) = campaign.runs()?;
        if let Some(f) = foreign.first() {
            return Err(Error::corrupt(&f.path, &f.reason));
        }
        let sittings = campaign.sittings()?;
        for (planned, to) in append(merged, campaign.manifest(), &sittings) {
            if let Some(run) = stored.get(&campaign.manifest().plan.folder(&planned)) {
                carry(run, aside, merged, &to, &mut journal)?;
            }
        }
    }
    let mut comments: Vec<Comment> = campaigns.iter().flat_map(CampaignFolder::comments).collect();
    comments.sort_by(|a, b| a.at_utc.cmp(&b.at_utc));
    comments::write(aside, &comments)?;
    write_manifest(aside, merged)
}

/// What was measured of a block in a later sitting becomes a block of its own: the journal of the merged campaign does not distinguish sittings.
fn divide_blocks(runs: &mut [PlannedRun], sitting: impl Fn(usize) -> Option<u32>) {
    let mut last = runs.iter().map(|run| run.block).max().unwrap_or(0);
    let mut first = BTreeMap::<u32, u32>::new();
    for (at, run) in runs.iter().enumerate() {
        if let Some(own) = sitting(at) {
            first.entry(run.block).and_modify(|known| *known = own.min(*known)).or_insert(own);
        }
    }
    let mut later = BTreeMap::<(u32, u32), u32>::new();
    for (at, run) in runs.iter_mut().enumerate() {
        let Some(own) = sitting(at).filter(|own| first.get(&run.block) != Some(own)) else { continue };
        run.block = *later.entry((run.block, own)).or_insert_with(|| {
            last += 1;
            last
        });
    }
}

/// Append a campaign's plan, with the sitting of each of its runs by folder. Returns each of its planned runs with its place in the
/// merged plan.
fn append(merged: &mut Campaign, campaign: &Campaign, sittings: &BTreeMap<String, u32>) -> Vec<(PlannedRun, PlannedRun)> {
    let plan = &mut merged.plan;
    let before = plan.order.iter().map(|run| run.block).max().unwrap_or(0);
    let from = plan.order.len();
    plan.extend(&campaign.plan);
    let own = &campaign.plan;
    divide_blocks(&mut plan.order[from..], |at| sittings.get(&own.folder(&own.order[at])).copied());
    let known: BTreeSet<(String, String)> = plan.refusals.iter().map(|r| (r.cell.clone(), r.reason.clone())).collect();
    let new = |r: &&RefusalRecord| !known.contains(&(r.cell.clone(), r.reason.clone()));
    plan.refusals.extend(campaign.plan.refusals.iter().filter(new).cloned());
    let last_block = plan.order.iter().map(|run| run.block).max().unwrap_or(before).max(before + 1);
    let pairs = campaign.plan.order.iter().cloned().zip(plan.order[from..].iter().cloned()).collect();
    let origin = |campaign: &Campaign| Origin {
        campaign: campaign.id.clone(),
        shard: campaign.shard,
        created_utc: campaign.created_utc.clone(),
        first_block: before + 1,
        last_block,
        device: campaign.device.clone(),
        machine: campaign.machine.clone(),
    };
    // What was merged before keeps its own origins.
    let again = campaign.origins.iter().map(|o| Origin {
        first_block: before + o.first_block,
        last_block: before + o.last_block,
        ..o.clone()
    });
    match campaign.is_merged() {
        true => merged.origins.extend(again.collect::<Vec<_>>()),
        false => merged.origins.push(origin(campaign)),
    }
    pairs
}

/// Copy a run under its new name: its tables as they are, its record with the new place.
fn carry(from: &StoredRun, aside: &Path, merged: &Campaign, to: &PlannedRun, journal: &mut Journal) -> Result<()> {
    let name = merged.plan.folder(to);
    let place = aside.join(&name);
    fs::create_dir(&place)?;
    for file in from.record.files.keys() {
        let below = names::read(file).ok_or_else(|| Error::corrupt(&from.path, format!("{file:?} leads out of it")))?;
        let (source, target) = (from.path.join(&below), place.join(&below));
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder)?;
        }
        let (mut source, mut target) = (collo_text::open_regular(&source)?, fresh_file(&target)?);
        std::io::copy(&mut source, &mut target)?;
        target.sync_all()?;
    }
    let mut record = from.record.clone();
    record.campaign = merged.id.clone();
    record.experiment = merged.experiment.clone();
    record.repetition = to.repetition;
    record.block = to.block;
    let carried = StoredRun { path: place.clone(), record };
    if let Some(what) = carried.damaged(|_| true).first() {
        return Err(Error::corrupt(&from.path, what));
    }
    let json = run::to_json(&carried.record)?;
    let mut file = fresh_file(&place.join("run.json"))?;
    std::io::Write::write_all(&mut file, json.as_bytes())?;
    file.sync_all()?;
    sync_folder(&place)?;
    journal.recorded(&name, carried.record.outcome.as_str(), &digest::sha256_text(&json))
}
