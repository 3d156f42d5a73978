//! `collo prune`: deletes old campaigns, never those that a comparison or the nightly needs. A campaign is renamed and then
//! deleted, so that a kill at any instant leaves whole campaigns, and a remainder that the next prune removes.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use collo_compare::history;
use collo_figures::document::Table;
use collo_store::{CampaignFolder, JournalEntry, Shard, utc_seconds};
use collo_text::{Diagnostics, Remark, nearest};
use fs_err as fs;
use serde_json::json;

use crate::answer::{Answer, Answered};
use crate::args;
use crate::context::Context;

/// Minimum age if neither an age nor a count was given.
const OLD: Duration = Duration::from_secs(30 * 86_400);
/// Tags of an experiment whose campaigns are kept.
const KEPT_TAGS: [&str; 2] = ["baseline", "keep"];
/// A file of this name in a campaign's folder protects it.
const KEPT_FILE: &str = "keep";
/// Prefix of a campaign's name during deletion; listings ignore such names.
const ASIDE: &str = ".pruned-";

/// The decision about a campaign.
enum Fate {
    Goes,
    Stays(String),
}

pub fn run(context: &Context<'_>, a: &args::Prune) -> Answered {
    let runs = context.runs()?;
    let reports = runs.path().parent().map(|p| p.join("reports")).unwrap_or_else(|| "reports".into());
    let (campaigns, foreign) = runs.campaigns()?;
    let fates = fates(&campaigns, a)?;
    let mut table = fates_table();
    let (mut list, mut freed, mut gone, mut kept) = (Vec::new(), 0, 0, 0);
    if a.yes {
        freed += rests(runs.path())?;
    }
    for (campaign, fate) in campaigns.iter().zip(fates) {
        let m = campaign.manifest();
        let bytes = size(campaign.path());
        let fate = match fate {
            Fate::Goes if a.yes => delete(campaign, &reports)?,
            fate => fate,
        };
        let word = match &fate {
            Fate::Goes => {
                gone += 1;
                freed += bytes;
                if a.yes { "deleted".to_string() } else { "would be deleted".to_string() }
            }
            Fate::Stays(why) => {
                kept += 1;
                format!("kept: {why}")
            }
        };
        let age = age_s(&measured_utc(campaign));
        let days = age.map_or_else(|| "–".into(), |s| format!("{:.0} d", (s / 86_400.0).floor()));
        let megabytes = format!("{:.1}", bytes as f64 / 1e6);
        table.values([m.id.clone(), m.experiment.clone(), days, megabytes, word].map(Some));
        let why = if let Fate::Stays(why) = &fate { Some(why) } else { None };
        list.push(
            json!({ "campaign": m.id, "experiment": m.experiment, "age_s": age, "bytes": bytes, "deleted": why.is_none() && a.yes,
            "would_be_deleted": why.is_none() && !a.yes, "stays": why }),
        );
    }
    let mut answer = Answer::of(json!({ "dry_run": !a.yes, "campaigns": list, "bytes": freed }));
    if campaigns.is_empty() {
        answer.note("no campaign is stored");
    } else {
        answer.table(&table);
        let megabytes = freed as f64 / 1e6;
        answer.lines(match a.yes {
            true => format!("{gone} deleted, {kept} kept, {megabytes:.1} MB freed"),
            false => format!("{gone} would be deleted, {kept} kept, {megabytes:.1} MB would be freed"),
        });
        if !a.yes && gone > 0 {
            answer.note(format!("nothing was deleted; to delete: collo prune{} --yes", again(a)));
        }
    }
    answer.after(unknown(&campaigns, a).map(Remark::Warning));
    answer.after(super::list::left_alone(&foreign));
    Ok(answer)
}

/// That there is no campaign of the experiment that was named.
fn unknown(campaigns: &[CampaignFolder], a: &args::Prune) -> Option<String> {
    let stored = || campaigns.iter().map(|campaign| campaign.manifest().experiment.as_str());
    let unknown = a.experiment.as_deref().filter(|experiment| !stored().any(|stored| stored == *experiment))?;
    let near = nearest(unknown, stored()).map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    Some(format!("no campaign of `{unknown}` is stored: {near}all are in `collo list`"))
}

/// A campaign in a row. What happens to it is never left out, however narrow the screen: it has no head that could be named instead.
fn fates_table() -> Table {
    let mut table = Table::new(&["campaign", "experiment", "#age", "#MB", ""], 1).with_prose_last();
    table.columns.iter_mut().filter(|column| column.name.is_empty()).for_each(|column| column.rank = 0);
    table
}

/// The same selection, as arguments to type again.
fn again(a: &args::Prune) -> String {
    let keep = a.keep.map(|n| format!(" --keep {n}")).unwrap_or_default();
    let hours = |d: Duration| {
        if d.as_secs().is_multiple_of(86_400) { format!("{}d", d.as_secs() / 86_400) } else { format!("{}s", d.as_secs()) }
    };
    let older = a.older_than.map(|d| format!(" --older-than {}", hours(d))).unwrap_or_default();
    let experiment = a.experiment.as_ref().map(|e| format!(" --experiment {e}")).unwrap_or_default();
    format!("{keep}{older}{experiment}{}", if a.unfinished { " --unfinished" } else { "" })
}

/// Campaigns come newest first, so the first complete one of its kind is the newest.
fn fates(campaigns: &[CampaignFolder], a: &args::Prune) -> Result<Vec<Fate>, Diagnostics> {
    let old = a.older_than.or(a.keep.is_none().then_some(OLD));
    // Each shard is a part that the others lack.
    let mut newer = BTreeMap::<(String, String, Option<Shard>), usize>::new();
    let mut fate = |campaign: &CampaignFolder| -> Result<Fate, Diagnostics> {
        let m = campaign.manifest();
        let state = match campaign.progress() {
            Ok(state) => state,
            Err(e) => return Ok(Fate::Stays(format!("it cannot be read: {e}"))),
        };
        let complete = state.is_complete();
        let rank = newer.entry((m.experiment.clone(), m.device_identity(), m.shard)).or_default();
        let newest = complete && *rank == 0;
        *rank += usize::from(complete);
        let stays = |why: &str| Ok(Fate::Stays(why.into()));
        if a.experiment.as_ref().is_some_and(|e| *e != m.experiment) {
            return stays("another experiment");
        }
        if state.running {
            return stays("being measured");
        }
        if !complete && !a.unfinished {
            return stays("unfinished; `--unfinished` includes it");
        }
        if let Some(tag) = m.tags.iter().find(|t| KEPT_TAGS.contains(&t.as_str())) {
            return Ok(Fate::Stays(format!("tagged `{tag}`")));
        }
        if campaign.path().join(KEPT_FILE).exists() {
            return Ok(Fate::Stays(format!("it has a file `{KEPT_FILE}`")));
        }
        if newest {
            return stays("the newest of its experiment on this device");
        }
        if complete && a.keep.is_some_and(|keep| *rank <= keep) {
            return stays("among the newest");
        }
        match (old, age_s(&measured_utc(campaign))) {
            (Some(_), None) => stays("its date cannot be read"),
            (Some(old), Some(age)) if age < old.as_secs_f64() => stays("not old enough"),
            _ => Ok(Fate::Goes),
        }
    };
    campaigns.iter().map(&mut fate).collect()
}

/// Delete a campaign; what the nightly needs of it is saved first.
fn delete(campaign: &CampaignFolder, reports: &Path) -> Result<Fate, Diagnostics> {
    // Whoever holds the lock measures; while we hold it nobody begins to.
    let _lock = match campaign.lock() {
        Ok(lock) => lock,
        Err(collo_store::Error::Busy { .. }) => return Ok(Fate::Stays("being measured".into())),
        Err(e) => return Ok(Fate::Stays(e.to_string())),
    };
    let m = campaign.manifest();
    let nightly = history::folder(reports, &m.experiment).is_dir() || m.tags.iter().any(|t| t == "nightly");
    if nightly
        && m.is_one_execution()
        && let Err(e) = history::keep_summary(campaign, reports)
    {
        return Ok(Fate::Stays(format!("its night cannot be summarised: {e}")));
    }
    let aside = campaign.path().with_file_name(format!("{ASIDE}{}", m.id));
    fs::rename(campaign.path(), &aside)?;
    fs::remove_dir_all(&aside)?;
    Ok(Fate::Goes)
}

/// Remove the remainders of an earlier prune that was killed. Returns their size.
fn rests(runs: &Path) -> Result<u64, Diagnostics> {
    let mut bytes = 0;
    for experiment in folders(runs) {
        for path in folders(&experiment) {
            if path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(ASIDE)) {
                bytes += size(&path);
                fs::remove_dir_all(&path)?;
            }
        }
    }
    Ok(bytes)
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten().map(|e| e.path());
    entries.filter(|p| p.is_dir() && !p.is_symlink()).collect()
}

/// Disk usage in bytes; unreadable entries count as 0.
fn size(path: &Path) -> u64 {
    let Ok(m) = path.symlink_metadata() else { return 0 };
    let own = m.blocks() * 512;
    if !m.is_dir() {
        return own;
    }
    own + fs::read_dir(path).into_iter().flatten().flatten().map(|e| size(&e.path())).sum::<u64>()
}

/// When a campaign was last measured: it may be finished, or have repetitions added, long after it began.
fn measured_utc(campaign: &CampaignFolder) -> String {
    let at = |entry| match entry {
        JournalEntry::Opened { at_utc, .. } | JournalEntry::Recorded { at_utc, .. } | JournalEntry::Closed { at_utc, .. } => {
            Some(at_utc)
        }
        _ => None,
    };
    let entries = campaign.history().unwrap_or_default();
    entries.into_iter().filter_map(at).chain([campaign.manifest().created_utc.clone()]).max().unwrap_or_default()
}

/// Seconds since a moment such as `2026-11-20T18:42:09Z`; negative for one in the future, `None` for any other text.
pub fn age_s(utc: &str) -> Option<f64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs_f64();
    Some(now - utc_seconds(utc)? as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_screen_shows_what_happens_to_each_campaign() {
        let mut table = fates_table();
        let unfinished = "kept: unfinished; `--unfinished` includes it";
        table.values(["20261129-0357-fd31", "nightly", "0 d", "2.1", unfinished].map(|text| Some(text.into())));
        insta::assert_snapshot!(table.render(60), @"
        campaign            experiment  age   MB
        20261129-0357-fd31  nightly     0 d  2.1  kept: unfinished;
                                                  `--unfinished`
                                                  includes it
        ");
        assert!(table.render(40).contains("kept: unfinished;"), "{}", table.render(40));
    }
}
