//! From stored campaigns to nights. In: campaign folders, and a folder of summaries. Out: one night per campaign, the oldest
//! first. A campaign's samples are read once: its summary is kept, also after the campaign is pruned.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use collo_analysis::campaign::{Analysis, analyse, environment};
use collo_analysis::cell::Cell;
use collo_quantity::Key;
use collo_store::{AfterMeasured, Campaign, CampaignFolder, JournalEntry, Runs, sha256_file, sha256_text};
use collo_text::read_small_text;
use fs_err as fs;
use serde_json::json;

use super::codec::Kept;
use super::night::{CellNight, Mean, NightlyRun};
use crate::{Error, Result};

/// Incremented when the same runs would give another summary.
const VERSION: u32 = 1;
/// Much larger than the summary of a hundred thousand cells.
const LIMIT_BYTES: u64 = 256 << 20;

/// The nights of an experiment, and anything unreadable.
#[derive(Debug, Default)]
pub struct NightlySummary {
    pub nights: Vec<NightlyRun>,
    pub problems: Vec<String>,
}

/// The folder of the summaries.
pub fn folder(reports: &Path, experiment: &str) -> PathBuf {
    reports.join("history").join(experiment)
}

/// Every night of an experiment: stored campaigns, and summaries of those that were pruned. `last` is the campaign that comes
/// last whatever its clock; by default the newest does.
pub fn read(runs: &Runs, reports: &Path, experiment: &str, last: Option<&str>) -> Result<NightlySummary> {
    let place = folder(reports, experiment).join("nights");
    let (campaigns, foreign) = runs.campaigns()?;
    let mut found = NightlySummary {
        problems: foreign.into_iter().filter(|f| !f.stray).map(|f| f.reason).collect(),
        ..NightlySummary::default()
    };
    let mut stored = BTreeSet::new();
    for campaign in campaigns.iter().filter(|c| c.manifest().experiment == experiment) {
        stored.insert(campaign.manifest().id.clone());
        // A shard lacks the cells of the others; a merge of nights has runs that are in them already.
        if !campaign.manifest().is_one_execution() {
            continue;
        }
        match summary(campaign, &place) {
            Ok(night) => found.nights.push(night),
            Err(e) => found.problems.push(format!("night {} is left out: {e}", campaign.manifest().id)),
        }
    }
    for path in kept(&place)? {
        let id = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if stored.contains(&id) {
            continue;
        }
        match read_small_text(&path, LIMIT_BYTES).ok().and_then(|text| Kept::read(&text)) {
            Some(kept) => found.nights.push(kept.night),
            None => found.problems.push(format!("the summary of night {id} cannot be read, and its campaign is gone")),
        }
    }
    found.nights.sort_by_key(|n| (last == Some(n.id.as_str()), n.created_utc.clone(), n.id.clone()));
    if let [.., before, tonight] = &found.nights[..]
        && tonight.created_utc < before.created_utc
    {
        found.problems.push(format!("the clock went back: {} started before {}", tonight.id, before.id));
    }
    same_place(&mut found.nights);
    Ok(found)
}

/// Write a campaign's summary unless it exists; the caller must have the campaign's lock.
pub fn keep_summary(campaign: &CampaignFolder, reports: &Path) -> Result<()> {
    let place = folder(reports, &campaign.manifest().experiment).join("nights");
    if cached(campaign, &place).is_some() {
        return Ok(());
    }
    let night = of(&analyse(campaign, None)?, &campaign.history()?);
    put(&place, &Kept::new(stamp(campaign).unwrap_or_default(), night))
}

fn put(place: &Path, kept: &Kept) -> Result<()> {
    fs::create_dir_all(place)?;
    let text = serde_json::to_string(kept).map_err(|e| Error::Io(e.into()))? + "\n";
    Ok(collo_figures::document::replace(&place.join(format!("{}.json", kept.night.id)), text.as_bytes())?)
}

fn kept(place: &Path) -> Result<Vec<PathBuf>> {
    if !place.is_dir() {
        return Ok(Vec::new());
    }
    let mut paths: Vec<PathBuf> = fs::read_dir(place)?.filter_map(|e| Some(e.ok()?.path())).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "json"));
    paths.sort();
    Ok(paths)
}

/// The nights whose summaries are kept, the oldest first; what cannot be read is left out.
pub fn kept_nights(reports: &Path, experiment: &str) -> Vec<NightlyRun> {
    let paths = kept(&folder(reports, experiment).join("nights")).unwrap_or_default();
    let read = |path: &PathBuf| Some(Kept::read(&read_small_text(path, LIMIT_BYTES).ok()?)?.night);
    let mut nights: Vec<NightlyRun> = paths.iter().filter_map(read).collect();
    nights.sort_by(|a, b| (&a.created_utc, &a.id).cmp(&(&b.created_utc, &b.id)));
    nights
}

fn cached(campaign: &CampaignFolder, place: &Path) -> Option<NightlyRun> {
    let text = read_small_text(&place.join(format!("{}.json", campaign.manifest().id)), LIMIT_BYTES).ok()?;
    let kept = Kept::read(&text)?;
    (kept.stamp == stamp(campaign)?).then_some(kept.night)
}

/// A campaign's summary, regenerated if it is missing or the campaign has changed since.
fn summary(campaign: &CampaignFolder, place: &Path) -> Result<NightlyRun> {
    if let Some(night) = cached(campaign, place) {
        return Ok(night);
    }
    let stamp = stamp(campaign);
    let night = of(&analyse(campaign, None)?, &campaign.history()?);
    // While it is measured its summary is out of date at once.
    match stamp.filter(|_| campaign.running().is_none()) {
        Some(stamp) => {
            let kept = Kept::new(stamp, night);
            put(place, &kept)?;
            Ok(kept.night)
        }
        None => Ok(night),
    }
}

/// The source of a summary: the manifest, the journal, and the existing runs.
fn stamp(campaign: &CampaignFolder) -> Option<String> {
    let manifest = sha256_file(&campaign.path().join("campaign.json")).ok()?;
    let journal = fs::metadata(campaign.path().join("journal.jsonl")).map_or(0, |m| m.len());
    let runs = fs::read_dir(campaign.path()).ok()?.filter(|e| e.as_ref().is_ok_and(|e| e.path().is_dir())).count();
    Some(format!("{VERSION} {} {journal} {runs}", &manifest[..16]))
}

/// A campaign as a night.
pub fn of(analysis: &Analysis, journal: &[JournalEntry]) -> NightlyRun {
    let c = &analysis.campaign;
    let last_block = planned_blocks(c, journal);
    let first_stage = |block: u32| last_block.is_none_or(|last| block <= last);
    let planned: Vec<_> = c.plan.order.iter().filter(|p| first_stage(p.block)).collect();
    let stored = |cell: usize, repetition: u32| {
        let runs = &analysis.cells.get(cell)?.repetitions;
        runs.iter().find(|r| r.record().repetition == repetition).map(|r| r.record().outcome.as_str())
    };
    let missing = planned.iter().filter(|p| stored(p.cell, p.repetition).is_none_or(|word| word == "interrupted")).count();
    let incomplete = if planned.is_empty() {
        Some("no run was planned".into())
    } else if missing > 0 {
        Some(format!("{missing} of {} planned runs are missing", planned.len()))
    } else {
        c.indicative.first().cloned()
    };
    let cells = analysis.cells.iter().enumerate().map(|(index, cell)| {
        let words: Vec<&str> = planned.iter().filter(|p| p.cell == index).filter_map(|p| stored(p.cell, p.repetition)).collect();
        night_cell(analysis, cell, &words, &first_stage)
    });
    NightlyRun {
        id: c.id.clone(),
        created_utc: c.created_utc.clone(),
        place: place(c),
        device: c.device.text(),
        simulated: c.device.simulated,
        incomplete,
        environment: environment::of(analysis).into_iter().filter(|(name, _)| name != "run order").collect(),
        cells: cells.collect(),
    }
}

/// The last planned block, if more was added after all of it was done: repetitions are added to a complete campaign, and the
/// journal shows when it was complete for the first time.
fn planned_blocks(campaign: &Campaign, journal: &[JournalEntry]) -> Option<u32> {
    let done = journal.iter().position(|e| matches!(e, JournalEntry::Closed { reason, .. } if reason == "complete"))?;
    let began: BTreeSet<&str> = journal[..done]
        .iter()
        .filter_map(|e| match e {
            JournalEntry::Began { folder, .. } => Some(folder.as_str()),
            _ => None,
        })
        .collect();
    let plan = &campaign.plan;
    plan.order.iter().filter(|p| p.cell < plan.cells.len() && began.contains(plan.folder(p).as_str())).map(|p| p.block).max()
}

/// The outcome, in the history alone, of a server whose requests were not answered.
const UNANSWERED: &str = "unanswered";

fn night_cell(analysis: &Analysis, cell: &Cell, words: &[&str], first_stage: &dyn Fn(u32) -> bool) -> CellNight {
    let by = match cell {
        c if c.serves() => Key::LatencyP99,
        c if c.record.after_measured == AfterMeasured::Exit || !c.record.is_uniform() => Key::Makespan,
        _ => Key::EpochTime,
    };
    // Only valid runs: what is indicative never becomes a reference.
    let times = |planned: bool| -> Vec<f64> {
        let counted = cell.counted().filter(|r| cell.is_valid() && first_stage(r.record().block) == planned);
        let time = |r: &collo_analysis::reading::repetition::Repetition| {
            let epochs: Option<Vec<f64>> = r.members.iter().map(|m| m.epoch_s).collect();
            match by {
                Key::LatencyP99 => r.latency.as_ref()?.get(by),
                Key::Makespan => r.makespan_s,
                _ => epochs.map(|e| e.iter().sum::<f64>() / e.len() as f64),
            }
        };
        let all: Vec<Option<f64>> = counted.map(time).collect();
        // A p99 among requests that were never answered, or of too few, is no time: those of the other repetitions would be the luckier ones.
        let is_told = |t: &Option<f64>| t.map_or(by != Key::LatencyP99, f64::is_finite);
        if all.iter().all(is_told) { all.into_iter().flatten().collect() } else { Vec::new() }
    };
    // Of a server that leaves more than a hundredth of its requests unanswered in every repetition the p99 is endless, which is worse than any.
    let p99s = || cell.counted().map(|r| r.latency.as_ref().and_then(|latency| latency.get(by)));
    let is_unanswered = by == Key::LatencyP99 && p99s().count() > 0 && p99s().all(|p99| p99.is_some_and(f64::is_infinite));
    let completed = if is_unanswered { UNANSWERED } else { "completed" };
    let failed: Vec<&str> = words.iter().copied().filter(|w| *w != "completed").collect();
    let most = failed.iter().max_by_key(|w| failed.iter().filter(|o| o == w).count());
    CellNight {
        cell: cell.name().into(),
        sharing: cell.record.sharing.clone(),
        content: content(&analysis.campaign, cell),
        quantity: by.name.into(),
        outcome: most.map_or(completed, |w| w).to_string(),
        against: cell.record.against.clone(),
        first: Mean::of(&times(true)),
        again: Mean::of(&times(false)),
    }
}

/// What a cell measures, by content: members with every setting, epochs, tail, kind of data and amount of it.
fn content(campaign: &Campaign, cell: &Cell) -> String {
    let members: Vec<_> = cell.record.members.iter().map(|m| json!([m.workload, m.batch_size, m.settings])).collect();
    let told: BTreeSet<_> = cell
        .repetitions
        .iter()
        .flat_map(|r| &r.record().members)
        .map(|m| (&m.spec.workload, m.synthetic, m.limit_batches))
        .collect();
    // A member that fell before it said anything tells nothing of its data.
    let told: Vec<_> = told.iter().filter(|t| t.1.is_some() || t.2.is_some()).collect();
    let text = json!([members, cell.record.after_measured.digest_word(), cell.record.slots, campaign.plan.epochs, told]);
    sha256_text(&text.to_string())[..12].to_string()
}

/// The device by content: this very GPU, or this very machine.
pub fn place(campaign: &Campaign) -> String {
    let device = &campaign.device;
    let machine = &campaign.machine;
    let own = machine.gpus.iter().filter(|_| device.kind == "gpu").map(|g| g.uuid.clone()).collect::<Vec<_>>().join(" ");
    let host = if own.is_empty() { machine.hostname.clone().unwrap_or_default() } else { own };
    let model = machine.cpu_model.clone().filter(|_| device.kind == "cpu").unwrap_or_default();
    format!(
        "{} {} {host} {model} {:?} {}",
        device.kind,
        device.name,
        device.cores_text().filter(|_| device.kind == "cpu"),
        device.simulated
    )
}

/// Mark nights on another device than the last one's, so that they are not judged.
fn same_place(nights: &mut [NightlyRun]) {
    let Some(place) = nights.last().map(|n| n.place.clone()) else { return };
    for night in nights.iter_mut().filter(|n| n.place != place && n.incomplete.is_none()) {
        night.incomplete = Some(format!("measured on another device, {}", night.device));
    }
}

/// The differences between two nights' environments, as `driver 570 → 580`.
pub fn differences(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<String> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differs = |name: &&String| before.get(*name) != after.get(*name);
    let word = |text: Option<&String>| text.map_or("absent", String::as_str).to_string();
    names
        .into_iter()
        .filter(differs)
        .map(|name| format!("{name} {} → {}", word(before.get(name)), word(after.get(name))))
        .collect()
}
