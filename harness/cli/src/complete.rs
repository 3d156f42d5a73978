//! What TAB completes beyond verbs and options: experiments, campaigns, cells, tags, GPU models, traces. In: the folder, and the words typed
//! so far. Out: candidates; whatever cannot be read gives none, since a shell has no place for errors.
//!
//! To add something to complete: a function here, and `add = complete::…` at the argument.

use std::ffi::OsString;
use std::path::PathBuf;

use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use collo_plan::experiment::tags_of;
use collo_plan::project::Project;
use collo_plan::workload::Workloads;
use collo_store::Runs;

/// Campaigns offered at most: the newest are meant.
const CAMPAIGNS: usize = 20;

pub fn experiments() -> ArgValueCandidates {
    ArgValueCandidates::new(|| of_files().into_iter().map(|(name, _)| CompletionCandidate::new(name)).collect())
}

pub fn campaigns() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let campaigns = runs().newest(CAMPAIGNS);
        let newest = campaigns.iter().map(|c| {
            let m = c.manifest();
            let about = format!("{} on {}, {}", m.experiment, m.device.name_said(), m.created_utc);
            CompletionCandidate::new(m.short_id()).help(Some(about.into()))
        });
        let last = (!campaigns.is_empty()).then(|| CompletionCandidate::new("last").help(Some("the newest".into())));
        last.into_iter().chain(newest).collect()
    })
}

/// What can be run: an experiment, or a campaign to finish.
pub fn runnable() -> ArgValueCandidates {
    ArgValueCandidates::new(|| [experiments().candidates(), campaigns().candidates()].into_iter().flatten().collect())
}

/// The cells of the campaign named in the word before.
pub fn cells() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let asked = campaign_typed(&words()).unwrap_or_else(|| "last".into());
        let Ok(campaign) = runs().find(&asked) else { return Vec::new() };
        let slug = |c: &collo_store::CellRecord| CompletionCandidate::new(&c.slug).help(Some(c.cell.clone().into()));
        campaign.manifest().plan.cells.iter().map(slug).collect()
    })
}

pub fn tags() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let mut tags: Vec<String> = of_files().into_iter().filter_map(|(_, path)| tags_of(&path)).flatten().collect();
        tags.sort();
        tags.dedup();
        tags.into_iter().map(CompletionCandidate::new).collect()
    })
}

/// For plans and lists: the models that are known.
pub fn gpu_models() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        stems(project().map(|p| p.mig_profiles())).into_iter().map(|(name, _)| CompletionCandidate::new(name)).collect()
    })
}

/// Pages of the guide.
pub fn topics() -> ArgValueCandidates {
    ArgValueCandidates::new(|| crate::guide::PAGES.iter().map(|(name, _)| CompletionCandidate::new(name)).collect())
}

/// For measuring: the GPUs of this machine.
pub fn gpus() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let cards = project().map(|p| p.cards()).unwrap_or_default();
        let found = collo_device::gpu::ask(&cards).map(|driver| driver.gpus).unwrap_or_default();
        let mut all = vec![CompletionCandidate::new("auto")];
        all.extend(
            found.iter().filter_map(|gpu| gpu.record()).map(|gpu| {
                CompletionCandidate::new(gpu.index.to_string()).help(Some(format!("{}, {}", gpu.name, gpu.uuid).into()))
            }),
        );
        all
    })
}

pub fn workloads() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let Some(all) = project().and_then(|p| Workloads::load(&p.workloads()).ok()) else { return Vec::new() };
        all.iter().map(|w| CompletionCandidate::new(&w.name)).collect()
    })
}

pub fn traces() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        stems(project().map(|p| p.traces())).into_iter().map(|(name, _)| CompletionCandidate::new(name)).collect()
    })
}

/// The words typed so far: the shell passes them after `--`.
fn words() -> Vec<String> {
    let all: Vec<OsString> = std::env::args_os().collect();
    let from = all.iter().position(|word| word == "--").map_or(0, |at| at + 1);
    all.into_iter().skip(from).map(|word| word.to_string_lossy().into_owned()).collect()
}

fn campaign_typed(words: &[String]) -> Option<String> {
    let after = words.iter().skip_while(|word| *word != "show").skip(1);
    after.map(String::as_str).find(|word| !word.starts_with('-') && !word.is_empty()).map(String::from)
}

/// `-C DIR` counts here too.
fn folder() -> PathBuf {
    let words = words();
    let given = words.iter().position(|word| word == "-C").and_then(|at| words.get(at + 1));
    given.map_or_else(|| std::env::current_dir().unwrap_or_default(), PathBuf::from)
}

fn project() -> Option<Project> {
    Project::find(&folder()).ok()
}

fn runs() -> Runs {
    Runs::at(project().map_or_else(|| folder().join("runs"), |p| p.runs()))
}

fn of_files() -> Vec<(String, PathBuf)> {
    stems(project().map(|p| p.experiments()))
}

/// The TOML files of a folder, by name.
fn stems(folder: Option<PathBuf>) -> Vec<(String, PathBuf)> {
    let files = folder.and_then(|f| std::fs::read_dir(f).ok()).into_iter().flatten().flatten().map(|entry| entry.path());
    let toml = files.filter(|path| path.extension().is_some_and(|e| e == "toml"));
    let mut found: Vec<(String, PathBuf)> =
        toml.filter_map(|path| Some((path.file_stem()?.to_str()?.to_string(), path.clone()))).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_those_of_the_campaign_that_was_typed() {
        let typed = |text: &str| campaign_typed(&text.split(' ').map(String::from).collect::<Vec<_>>());
        assert_eq!(typed("collo show 7f3a "), Some("7f3a".into()));
        assert_eq!(typed("collo show --json last tin"), Some("last".into()));
        assert_eq!(typed("collo show "), None);
    }
}
