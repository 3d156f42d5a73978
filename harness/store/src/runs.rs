//! The folder `runs/`: which campaigns are there, and what is in one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::lock::{self, CampaignLock};
use crate::{Campaign, Error, Journal, JournalEntry, PlanRecord, Result, RunDraft, RunRecord, SCHEMA, journal, run};

/// The folder that holds every campaign.
#[derive(Debug, Clone)]
pub struct Runs {
    root: PathBuf,
}

/// Something in `runs/` that is not a campaign; it is left alone.
#[derive(Debug)]
pub struct Foreign {
    pub path: PathBuf,
    pub reason: String,
}

/// One campaign on disk.
#[derive(Debug, Clone)]
pub struct CampaignFolder {
    path: PathBuf,
    manifest: Campaign,
}

/// One complete run on disk.
#[derive(Debug, Clone)]
pub struct StoredRun {
    pub path: PathBuf,
    pub record: RunRecord,
}

impl Runs {
    /// The folder need not exist yet.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Runs { root: root.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Start a campaign: its folder and `campaign.json`.
    pub fn create(&self, manifest: Campaign) -> Result<CampaignFolder> {
        let path = self.root.join(&manifest.experiment).join(&manifest.id);
        fs::create_dir_all(&path)?;
        if let Err(e) = run::replace_file(&path.join("campaign.json"), run::to_json(&manifest)?.as_bytes()) {
            // Half a campaign would be in everybody's way; the first error is the one to tell.
            let _ = std::fs::remove_dir_all(&path);
            return Err(e);
        }
        Ok(CampaignFolder { path, manifest })
    }

    /// All campaigns, newest first, and whatever else lies there.
    pub fn campaigns(&self) -> Result<(Vec<CampaignFolder>, Vec<Foreign>)> {
        let (mut found, mut foreign) = (Vec::new(), Vec::new());
        if !self.root.exists() {
            return Ok((found, foreign));
        }
        for experiment in entries(&self.root)? {
            if !experiment.is_dir() {
                foreign.push(Foreign { path: experiment, reason: "is not a campaign".into() });
                continue;
            }
            for path in entries(&experiment)? {
                match CampaignFolder::open(&path) {
                    Ok(campaign) => found.push(campaign),
                    Err(e) => foreign.push(Foreign { reason: reason(&path, &e), path }),
                }
            }
        }
        // Ids begin with the time to the minute; the file's own time decides within one.
        found.sort_by_key(|c| std::cmp::Reverse((c.manifest.created_utc.clone(), c.modified(), c.manifest.id.clone())));
        Ok((found, foreign))
    }

    /// The campaign that a text names: `last`, `last-1`, `NAME/last`, a folder, a unique prefix of an id or of its last part.
    pub fn find(&self, asked: &str) -> Result<CampaignFolder> {
        let as_path = Path::new(asked);
        if asked.contains('/') && as_path.join("campaign.json").exists() {
            return CampaignFolder::open(as_path);
        }
        let (campaigns, foreign) = self.campaigns()?;
        if let Some(found) = relative(&campaigns, asked) {
            return found.cloned().ok_or_else(|| not_found(asked, &campaigns));
        }
        if let Some(exact) = campaigns.iter().find(|c| c.manifest.id == asked || last_part(&c.manifest.id) == asked) {
            return Ok(exact.clone());
        }
        let begins = |c: &&CampaignFolder| {
            !asked.is_empty() && (c.manifest.id.starts_with(asked) || last_part(&c.manifest.id).starts_with(asked))
        };
        let mut matches = campaigns.iter().filter(begins);
        match (matches.next(), matches.next()) {
            (Some(one), None) => Ok(one.clone()),
            (None, _) => Err(unreadable(asked, &foreign).unwrap_or_else(|| not_found(asked, &campaigns))),
            (Some(_), Some(_)) => Err(Error::Ambiguous {
                asked: asked.into(),
                candidates: campaigns.iter().filter(begins).map(|c| c.manifest.id.clone()).collect(),
            }),
        }
    }
}

/// `last-N` and `NAME/last-N`; the outer none means that the text is no such thing.
fn relative<'a>(campaigns: &'a [CampaignFolder], asked: &str) -> Option<Option<&'a CampaignFolder>> {
    let (experiment, word) = match asked.rsplit_once('/') {
        Some((e, w)) => (Some(e), w),
        None => (None, asked),
    };
    let back: usize = match word.strip_prefix("last")? {
        "" => 0,
        rest => rest.strip_prefix('-')?.parse().ok()?,
    };
    let newest = match experiment {
        Some(e) => e.to_string(),
        None => match campaigns.first() {
            Some(c) => c.manifest.experiment.clone(),
            None => return Some(None),
        },
    };
    Some(campaigns.iter().filter(|c| c.manifest.experiment == newest).nth(back))
}

fn last_part(id: &str) -> &str {
    id.rsplit('-').next().unwrap_or(id)
}

/// Why the campaign that is meant cannot be read, if it is there.
fn unreadable(asked: &str, foreign: &[Foreign]) -> Option<Error> {
    let is_meant = |f: &&Foreign| {
        let name = f.path.file_name().unwrap_or_default().to_string_lossy();
        f.path.join("campaign.json").exists()
            && !asked.is_empty()
            && (name.starts_with(asked) || last_part(&name).starts_with(asked))
    };
    CampaignFolder::open(&foreign.iter().find(is_meant)?.path).err()
}

fn not_found(asked: &str, campaigns: &[CampaignFolder]) -> Error {
    let known = match campaigns {
        [] => "; none is stored yet".to_string(),
        some => format!("; the newest is `{}` of `{}`", some[0].manifest.id, some[0].manifest.experiment),
    };
    Error::NotFound { asked: asked.into(), known }
}

fn reason(path: &Path, e: &Error) -> String {
    match e {
        Error::NewerSchema { .. } | Error::Corrupt { .. } => e.to_string(),
        _ if path.join("campaign.json").exists() => e.to_string(),
        _ => "is not a campaign".into(),
    }
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if !path.file_name().is_some_and(|n| n.to_string_lossy().starts_with('.')) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

impl CampaignFolder {
    /// Open a campaign's folder and read its manifest.
    pub fn open(path: &Path) -> Result<Self> {
        let file = path.join("campaign.json");
        let text = fs::read_to_string(&file)?;
        let manifest = parse::<Campaign>(&file, &text)?;
        Ok(CampaignFolder { path: path.to_path_buf(), manifest })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `campaign.json`.
    pub fn manifest(&self) -> &Campaign {
        &self.manifest
    }

    /// Take the campaign for measuring; refused while another collo has it.
    pub fn lock(&self) -> Result<CampaignLock> {
        CampaignLock::take(&self.path, &self.manifest.id)
    }

    /// The pid and the start of the collo that measures it now, if one does.
    pub fn running(&self) -> Option<(u32, String)> {
        lock::running(&self.path)
    }

    /// Open the journal for appending.
    pub fn journal(&self) -> Result<Journal> {
        Journal::open(&self.path)
    }

    /// What the journal says.
    pub fn history(&self) -> Result<Vec<JournalEntry>> {
        journal::read(&self.path)
    }

    /// Begin a run in a folder aside.
    pub fn begin(&self, folder: &str) -> Result<RunDraft> {
        RunDraft::begin(&self.path, folder)
    }

    /// Write the manifest again, with another reason why the campaign is informative at best.
    pub fn mark_informative(&mut self, why: &str) -> Result<()> {
        if !self.manifest.informative.iter().any(|w| w == why) {
            self.manifest.informative.push(why.into());
            run::replace_file(&self.path.join("campaign.json"), run::to_json(&self.manifest)?.as_bytes())?;
        }
        Ok(())
    }

    /// Add the repetitions of another plan to this campaign's, in further blocks.
    pub fn extend(&mut self, more: &PlanRecord) -> Result<()> {
        self.manifest.plan.extend(more);
        run::replace_file(&self.path.join("campaign.json"), run::to_json(&self.manifest)?.as_bytes())
    }

    /// Every complete run by its folder's name, and what is there but cannot be read.
    pub fn runs(&self) -> Result<(BTreeMap<String, StoredRun>, Vec<Foreign>)> {
        let (mut runs, mut foreign) = (BTreeMap::new(), Vec::new());
        for path in entries(&self.path)? {
            if !path.is_dir() {
                continue;
            }
            let folder = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            match StoredRun::open(&path) {
                Ok(run) => drop(runs.insert(folder, run)),
                Err(e) => foreign.push(Foreign { path, reason: e.to_string() }),
            }
        }
        Ok((runs, foreign))
    }

    /// Folders of runs that were cut off, for `show --partial`.
    pub fn partials(&self) -> Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let path = entry?.path();
            if path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(".partial-")) {
                paths.push(path);
            }
        }
        paths.sort();
        Ok(paths)
    }

    fn modified(&self) -> Option<std::time::SystemTime> {
        fs::metadata(self.path.join("campaign.json")).and_then(|m| m.modified()).ok()
    }
}

impl StoredRun {
    /// Open a run's folder and read its record.
    pub fn open(path: &Path) -> Result<Self> {
        let file = path.join("run.json");
        let text = fs::read_to_string(&file)?;
        Ok(StoredRun { path: path.to_path_buf(), record: parse(&file, &text)? })
    }
}

/// Parse a manifest; the schema is looked at first, so that a newer file is said to be newer, not broken.
fn parse<T: serde::de::DeserializeOwned>(path: &Path, text: &str) -> Result<T> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(|e| Error::corrupt(path, e))?;
    let schema = value.get("schema").and_then(serde_json::Value::as_u64);
    match schema {
        None => return Err(Error::corrupt(path, "it has no `schema`")),
        Some(found) if found > u64::from(SCHEMA) => {
            let id = value.get("campaign").or(value.get("id")).and_then(|v| v.as_str()).unwrap_or("?");
            return Err(Error::NewerSchema { campaign: last_part(id).into(), found: found as u32, known: SCHEMA });
        }
        Some(_) => {}
    }
    serde_json::from_value(value).map_err(|e| Error::corrupt(path, e))
}
