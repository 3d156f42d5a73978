//! One campaign on disk, and its runs: files are checked on reading, both for consistency and against what collo recorded.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::lock::{self, CampaignLock};
use crate::names::last_part;
use crate::record::run;
use crate::recorded::{Digests, Recorded};
use crate::{
    Campaign, Error, Journal, JournalEntry, PlanRecord, Predicted, Result, RunDraft, RunRecord, SCHEMA, digest, journal, place,
    shape,
};
use collo_text::{entries, read_small};

/// Something in `runs/` that is not a campaign, or in a campaign that is not one of its runs; it is left alone.
#[derive(Debug)]
pub struct Foreign {
    pub path: PathBuf,
    pub reason: String,
    /// True for a run that differs from what collo recorded.
    pub changed: bool,
    /// True if it never was a campaign: a file of the user's.
    pub stray: bool,
}

/// One campaign on disk.
#[derive(Debug, Clone)]
pub struct CampaignFolder {
    pub(crate) path: PathBuf,
    pub(crate) manifest: Campaign,
    pub(crate) recorded: Recorded,
}

/// One complete run on disk.
#[derive(Debug, Clone)]
pub struct StoredRun {
    pub path: PathBuf,
    pub record: RunRecord,
}

/// Write `campaign.json`, its digest in the journal first.
pub(crate) fn write_manifest(campaign: &Path, manifest: &Campaign) -> Result<()> {
    let json = run::to_json(manifest)?;
    Journal::open(campaign)?.manifest(&digest::sha256_text(&json))?;
    place::replace_file(&campaign.join(MANIFEST), json.as_bytes())
}

const MANIFEST: &str = "campaign.json";
/// Well above the manifest of a hundred thousand cells, and above a run whose members sent as much as allowed.
const MANIFEST_LIMIT_BYTES: u64 = 512 << 20;
const RUN_LIMIT_BYTES: u64 = 64 << 20;

impl CampaignFolder {
    /// Open a campaign's folder and read its manifest.
    pub fn open(path: &Path) -> Result<Self> {
        let mut opened = Self::read(path)?;
        // A collo that measures it may have written it anew between the look at the file and the look at the journal.
        for _ in 0..2 {
            if opened.expect_unchanged().is_ok() {
                break;
            }
            opened = Self::read(path)?;
        }
        Ok(opened)
    }

    fn read(path: &Path) -> Result<Self> {
        let file = path.join(MANIFEST);
        let bytes = read_small(&file, MANIFEST_LIMIT_BYTES)?;
        let manifest = parse::<Campaign>(&file, &bytes)?;
        shape::campaign(&manifest).map_err(|why| Error::corrupt(&file, why))?;
        if let Some(name) = path.canonicalize()?.file_name().filter(|name| **name != *manifest.id) {
            return Err(Error::corrupt(&file, format!("its id is {:?}, but its folder is {name:?}", manifest.id)));
        }
        let recorded = Digests::read(path).manifest(&digest::sha256_bytes(&bytes));
        Ok(CampaignFolder { path: path.to_path_buf(), manifest, recorded })
    }

    /// The same for a folder of `runs/`, named after its experiment.
    pub(crate) fn open_in(path: &Path, experiment: &Path) -> Result<Self> {
        let opened = Self::open(path)?;
        let of = &opened.manifest.experiment;
        match experiment.file_name().filter(|name| **name != **of) {
            Some(name) => Err(Error::corrupt(path.join(MANIFEST), format!("it is of {of:?}, but lies under {name:?}"))),
            None => Ok(opened),
        }
    }

    /// Whether `campaign.json` is still what collo wrote, according to the journal.
    pub fn recorded(&self) -> Recorded {
        self.recorded
    }

    /// Refuse to report or continue a campaign whose manifest was modified.
    pub fn expect_unchanged(&self) -> Result<()> {
        let campaign = || self.manifest.id.clone();
        match self.recorded {
            Recorded::Changed => Err(Error::Changed { campaign: campaign() }),
            Recorded::Never if self.manifest.filing.digests => Err(Error::NoDigest { campaign: campaign() }),
            Recorded::Same | Recorded::Never => Ok(()),
        }
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `campaign.json`.
    pub fn manifest(&self) -> &Campaign {
        &self.manifest
    }

    /// Lock the campaign for measuring; refused while another collo has the lock.
    pub fn lock(&self) -> Result<CampaignLock> {
        CampaignLock::take(&self.path, &self.manifest.id)
    }

    /// The pid and start time of the collo that is measuring it, if any.
    pub fn running(&self) -> Option<(u32, String)> {
        lock::running(&self.path)
    }

    /// By which the campaign is known elsewhere: `SHA-256 1f0c…` of `campaign.json`.
    pub fn digest(&self) -> Result<String> {
        Ok(format!("SHA-256 {}", digest::sha256_file(&self.path.join(MANIFEST))?))
    }

    /// Open the journal for appending; the caller must have the lock.
    pub fn journal(&self) -> Result<Journal> {
        let mut journal = Journal::open(&self.path)?;
        let own = digest::sha256_file(&self.path.join(MANIFEST))?;
        if Digests::read(&self.path).is_ahead_of(&own) {
            // A collo was killed before the manifest that it had noted was in place: what is there holds.
            journal.manifest(&own)?;
        }
        Ok(journal)
    }

    /// The journal's entries.
    pub fn history(&self) -> Result<Vec<JournalEntry>> {
        journal::read(&self.path)
    }

    /// The sitting in which each run was recorded, by its folder: how often a collo had started or resumed the campaign by then. A merged
    /// campaign has one: what was measured in several is in several blocks there.
    pub fn sittings(&self) -> Result<BTreeMap<String, u32>> {
        let (mut opened, mut found) = (0, BTreeMap::new());
        for entry in self.history()? {
            match entry {
                JournalEntry::Opened { .. } => opened += 1,
                JournalEntry::Recorded { folder, .. } => drop(found.insert(folder, opened)),
                _ => {}
            }
        }
        Ok(found)
    }

    /// Begin a run in a temporary folder.
    pub fn begin(&self, folder: &str) -> Result<RunDraft> {
        RunDraft::begin(&self.path, folder)
    }

    /// Rewrite the manifest with another reason why the campaign is indicative at best.
    pub fn mark_indicative(&mut self, why: &str) -> Result<()> {
        if !self.manifest.indicative.iter().any(|w| w == why) {
            self.manifest.indicative.push(why.into());
            write_manifest(&self.path, &self.manifest)?;
        }
        Ok(())
    }

    /// Add the repetitions of another plan to this campaign's, in further blocks, and what was predicted of members and cells that it
    /// did not have: of what was measured already nothing can be predicted.
    pub fn extend(&mut self, more: &PlanRecord, predicted: Option<&Predicted>) -> Result<()> {
        let new = predicted.and_then(|predicted| predicted.beyond(&self.manifest.plan));
        Predicted::join(&mut self.manifest.predicted, new.as_ref());
        self.manifest.plan.extend(more);
        write_manifest(&self.path, &self.manifest)
    }

    /// Every complete run by its folder's name, and everything else found there: unreadable, of another campaign or folder, or
    /// not as recorded. The tables of a run are not checked: [`StoredRun::damage`].
    pub fn runs(&self) -> Result<(BTreeMap<String, StoredRun>, Vec<Foreign>)> {
        self.runs_and_digests().map(|(runs, foreign, _)| (runs, foreign))
    }

    /// The same, with the digests used for the comparison.
    pub(crate) fn runs_and_digests(&self) -> Result<(BTreeMap<String, StoredRun>, Vec<Foreign>, Digests)> {
        let mut read = Vec::new();
        for path in entries(&self.path)?.into_iter().filter(|path| path.is_dir()) {
            let run = StoredRun::read(&path);
            read.push((path, run));
        }
        // Read last: the journal knows of a run before it is there.
        let digests = Digests::read(&self.path);
        let (mut runs, mut foreign) = (BTreeMap::new(), Vec::new());
        for (path, run) in read {
            let folder = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            match run {
                Err(e) => foreign.push(Foreign { path, reason: e.to_string(), changed: false, stray: false }),
                Ok((run, sha256)) => match self.belongs(&run.record, &folder, &sha256, &digests) {
                    Ok(()) => drop(runs.insert(folder, run)),
                    Err((reason, changed)) => foreign.push(Foreign { path, reason, changed, stray: false }),
                },
            }
        }
        Ok((runs, foreign, digests))
    }

    /// The records that stood in each run's folder before the present one, the oldest first. What cannot be read is passed over.
    pub fn superseded(&self) -> BTreeMap<String, Vec<RunRecord>> {
        let mut found: BTreeMap<String, Vec<(u32, RunRecord)>> = BTreeMap::new();
        for path in entries(&self.path.join(run::SUPERSEDED)).unwrap_or_default() {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Some((folder, number)) = name.rsplit_once('.').and_then(|(f, n)| Some((f.to_string(), n.parse().ok()?))) else {
                continue;
            };
            if let Ok(run) = StoredRun::open(&path) {
                found.entry(folder).or_default().push((number, run.record));
            }
        }
        let in_order = |mut runs: Vec<(u32, RunRecord)>| {
            runs.sort_by_key(|(number, _)| *number);
            runs.into_iter().map(|(_, record)| record).collect()
        };
        found.into_iter().map(|(folder, runs)| (folder, in_order(runs))).collect()
    }

    /// Why a record is not that of this folder's run, and whether it once was.
    fn belongs(
        &self,
        record: &RunRecord,
        folder: &str,
        sha256: &str,
        digests: &Digests,
    ) -> std::result::Result<(), (String, bool)> {
        let recorded = digests.run(folder, sha256);
        if recorded == Recorded::Changed {
            return Err(("its run.json was changed after it was recorded".into(), true));
        }
        shape::run(record, folder, &self.manifest).map_err(|why| (format!("its run.json does not belong here: {why}"), false))?;
        if recorded == Recorded::Never && self.manifest.filing.digests {
            let why = digests.unreadable.as_ref().map(|e| format!(", which cannot be read: {e}")).unwrap_or_default();
            return Err((format!("its run.json has no digest in the journal{why}"), true));
        }
        Ok(())
    }

    /// Folders of interrupted runs, for `show --partial`.
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

    /// Runs that were complete and journalled when collo was killed before renaming them: the folder of each, and its draft.
    pub(crate) fn noted_drafts(&self, digests: &Digests) -> Result<Vec<(String, PathBuf)>> {
        let noted = |draft: PathBuf| {
            let folder = draft.file_name()?.to_str()?.strip_prefix(".partial-")?.to_string();
            let last = digests.runs.get(&folder)?.last()?;
            let record = draft.join("run.json");
            let is_own =
                draft.symlink_metadata().is_ok_and(|m| m.is_dir()) && record.symlink_metadata().is_ok_and(|m| m.is_file());
            let found = is_own.then(|| digest::sha256_file(&record).ok())??;
            (found == *last).then_some((folder, draft))
        };
        Ok(self.partials()?.into_iter().filter_map(noted).collect())
    }

    /// Rename them into place, as the killed collo was about to.
    pub fn finish_drafts(&self, _lock: &CampaignLock) -> Result<()> {
        let drafts = self.noted_drafts(&Digests::read(&self.path))?;
        drafts.into_iter().try_for_each(|(folder, draft)| run::put_in_place(&self.path, &folder, &draft))
    }

    pub(crate) fn modified(&self) -> Option<std::time::SystemTime> {
        fs::metadata(self.path.join("campaign.json")).and_then(|m| m.modified()).ok()
    }
}

impl StoredRun {
    /// Open a run's folder and read its record.
    pub fn open(path: &Path) -> Result<Self> {
        Self::read(path).map(|(run, _)| run)
    }

    /// The same, with the digest of the record.
    fn read(path: &Path) -> Result<(Self, String)> {
        let file = path.join("run.json");
        let bytes = read_small(&file, RUN_LIMIT_BYTES)?;
        Ok((StoredRun { path: path.to_path_buf(), record: parse(&file, &bytes)? }, digest::sha256_bytes(&bytes)))
    }
}

/// Parse a manifest; the schema is checked first, so that a newer file is reported as newer, not as broken.
fn parse<T: serde::de::DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T> {
    /// The first fields of both manifests; the rest is ignored.
    #[derive(serde::Deserialize)]
    struct Head {
        schema: Option<u64>,
        campaign: Option<String>,
        id: Option<String>,
    }
    let head: Head = serde_json::from_slice(bytes).map_err(|e| Error::corrupt(path, e))?;
    match head.schema {
        None => return Err(Error::corrupt(path, "it has no `schema`")),
        Some(found) if found > u64::from(SCHEMA) => {
            let id = head.campaign.or(head.id).unwrap_or_else(|| "?".into());
            let found = u32::try_from(found).unwrap_or(u32::MAX);
            return Err(Error::NewerSchema { campaign: last_part(&id).into(), found, known: SCHEMA });
        }
        Some(found) if found < u64::from(SCHEMA) => {
            let what = format!("it has schema {found}, of a collo before 0.1.0, and this one reads schema {SCHEMA}");
            return Err(Error::corrupt(path, what));
        }
        Some(_) => {}
    }
    serde_json::from_slice(bytes).map_err(|e| Error::corrupt(path, e))
}
