//! Several campaigns of one experiment, from several GPUs or machines, become one; so do campaigns of several experiments, for a
//! report of all of them. In: complete campaigns. Out: a new one with all
//! their runs, written aside and renamed, so that a kill leaves none or the whole.
//!
//! A run keeps its tables and its numbers; its record gets the new campaign, block and repetition. Blocks are numbered on, so that
//! the origin of each run stays known: a group is compared only with baselines of the same origin.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use fs_err as fs;

use crate::campaign::Filing;
use crate::folder::{CampaignFolder, StoredRun, write_manifest};
use crate::place::{fresh_file, sync_folder};
use crate::{
    Campaign, Comment, Error, Journal, Origin, PlannedRun, RefusalRecord, Result, Runs, SCHEMA, comments, digest, names, order,
    run,
};

/// Prefix of a campaign's name while it is merged; listings ignore such names.
const ASIDE: &str = ".merging-";
/// The remains of a merge that was killed are removed by a later one after this time.
const LEFT: Duration = Duration::from_secs(3600);

/// What campaigns that become one have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeScope {
    /// The experiment, and so every ingredient.
    OneExperiment,
    /// Whatever their numbers depend on: the workloads that several of them have, data, versions, device, rules.
    SameIngredients,
}

/// Ingredients that say which cells there are, and not what their numbers depend on.
const WHICH_CELLS: [&str; 2] = ["experiment", "--where"];
const PARTS_OF_EXPERIMENTS: [&str; 2] = ["include ", "--set "];

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
        let mut values: Vec<(String, String)> = Vec::new();
        for c in &all {
            let value = value(c).unwrap_or_else(|| "none".into());
            if !values.iter().any(|(_, known)| *known == value) {
                values.push((c.short_id().into(), value));
            }
        }
        if values.len() > 1 {
            found.push(MergeDifference { what: what.into(), values, may_be_forced });
        }
    };
    let short = |digest: &str| digest.chars().take(12).collect::<String>();
    let one = scope == MergeScope::OneExperiment;
    if one {
        compare("experiment", false, &|c| Some(c.experiment.clone()));
        compare("seed", false, &|c| Some(c.plan.seed.to_string()));
        compare("number of shards", false, &|c| c.shard.map(|s| s.count.to_string()));
    }
    compare("device", false, &|c| Some(c.device.name_said()));
    compare("schema", false, &|c| Some(c.schema.to_string()));
    compare("epochs", false, &|c| Some(c.plan.epochs.to_string()));
    compare("measure_for", false, &|c| Some(format!("{} s", c.plan.measure_for_s?)));
    compare("thresholds", false, &|c| serde_json::to_string(&c.thresholds).ok());
    let names: BTreeSet<&String> = all.iter().flat_map(|c| c.ingredients.keys()).collect();
    // A workload that only some have is in no comparison between them.
    let counts = |name: &&String| {
        let of_experiments = WHICH_CELLS.contains(&name.as_str()) || PARTS_OF_EXPERIMENTS.iter().any(|p| name.starts_with(p));
        one || !of_experiments && all.iter().all(|c| c.ingredients.contains_key(*name))
    };
    for name in names.into_iter().filter(counts) {
        // The file itself, and which of its cells: other cells may have the same names.
        let may_be_forced = !["experiment", "--where", "device"].contains(&name.as_str());
        compare(name, may_be_forced, &|c| {
            let ingredient = c.ingredients.get(name)?;
            Some(ingredient.version.clone().unwrap_or_else(|| short(&ingredient.sha256)))
        });
        // Versions may be written alike for different contents.
        let same_text = all.iter().filter_map(|c| c.ingredients.get(name)?.version.clone()).collect::<BTreeSet<_>>().len() == 1;
        if same_text {
            compare(name, may_be_forced, &|c| Some(short(&c.ingredients.get(name)?.sha256)));
        }
    }
    compare("build", true, &|c| Some(c.machine.build.clone()));
    compare("CPU", true, &|c| c.machine.cpu_model.clone());
    compare("CPU governor", true, &|c| c.machine.governor.clone());
    let gpu = |c: &Campaign| c.machine.gpus.iter().find(|gpu| gpu.name == c.device.name).cloned();
    compare("SMs", false, &|c| Some(gpu(c)?.sms?.to_string()));
    compare("power limit", true, &|c| Some(format!("{:.0} W", gpu(c)?.power_limit_w?)));
    compare("ECC", true, &|c| Some(gpu(c)?.ecc?.to_string()));
    compare("largest SM clock", true, &|c| Some(format!("{} MHz", gpu(c)?.max_sm_clock_mhz?)));
    found.extend(cells(&all));
    found
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
    sweep(&folder);
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
        for (planned, to) in append(merged, campaign.manifest()) {
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

/// Append a campaign's plan. Returns each of its planned runs with its place in the merged plan.
fn append(merged: &mut Campaign, campaign: &Campaign) -> Vec<(PlannedRun, PlannedRun)> {
    let plan = &mut merged.plan;
    let before = plan.order.iter().map(|run| run.block).max().unwrap_or(0);
    let from = plan.order.len();
    plan.extend(&campaign.plan);
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
        let (mut source, mut target) = (crate::open_regular(&source)?, fresh_file(&target)?);
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

/// Remove what a killed merge left long ago.
fn sweep(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_aside = entry.file_name().to_string_lossy().starts_with(ASIDE);
        let age = entry.metadata().ok().and_then(|m| m.modified().ok()?.elapsed().ok());
        if is_aside && age.is_some_and(|age| age > LEFT) {
            // Another merge may have been faster.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
