//! The folder `runs/`: finds campaigns, and their contents.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use fs_err as fs;
use nix::unistd::{Uid, User};

use crate::folder::{self, CampaignFolder, Foreign};
use crate::names::last_part;
use crate::record::campaign::Filing;
use crate::recorded::Recorded;
use crate::{Campaign, Error, Result, order, utc_id};
use collo_text::entries;

/// The folder that holds every campaign.
#[derive(Debug, Clone)]
pub struct Runs {
    root: PathBuf,
    /// What leads to a first campaign, for users who ask for one where none is stored.
    first: &'static str,
}

/// What leads to a first campaign in a project.
const FIRST: &str = "`collo run quickstart` measures one";

/// A folder of `runs/` that may be a campaign and was not read.
#[derive(Debug, Clone)]
pub struct UnreadCampaign {
    experiment: PathBuf,
    path: PathBuf,
}

impl UnreadCampaign {
    pub fn open(&self) -> Result<CampaignFolder> {
        CampaignFolder::open_in(&self.path, &self.experiment)
    }

    /// Whether it has a run of a cell with one of these slugs, by the names of its folders.
    pub fn has_run_of(&self, slugs: &BTreeSet<&str>) -> bool {
        let is_one = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.rsplit_once('-'));
            name.is_some_and(|(slug, _)| slugs.contains(slug))
        };
        entries(&self.path).unwrap_or_default().iter().any(is_one)
    }
}

impl Runs {
    /// The folder need not exist yet.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Runs { root: root.into(), first: FIRST }
    }

    /// The same where something else leads to a first campaign.
    pub fn begun_by(self, first: &'static str) -> Self {
        Runs { first, ..self }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Start a campaign: its folder and `campaign.json`.
    pub fn create(&self, mut manifest: Campaign) -> Result<CampaignFolder> {
        let newest = self.campaigns()?.0.into_iter().next();
        manifest.filing = Filing { digests: true, after: newest.map(|c| order::key(&c.manifest)) };
        let folder = self.root.join(&manifest.experiment);
        fs::create_dir_all(&folder)?;
        // The tasks of an array begin at once, and an id has only four digits of its own.
        while let Err(e) = fs::create_dir(folder.join(&manifest.id)) {
            if e.kind() != ErrorKind::AlreadyExists {
                return Err(e.into());
            }
            manifest.id = self.new_id(&manifest.experiment);
        }
        let path = folder.join(&manifest.id);
        if let Err(e) = folder::write_manifest(&path, &manifest) {
            // Half a campaign would be in everybody's way; the first error is the one to tell.
            let _ = std::fs::remove_dir_all(&path);
            return Err(e);
        }
        Ok(CampaignFolder { path, manifest, recorded: Recorded::Same })
    }

    /// An id that no campaign of the experiment has.
    pub fn new_id(&self, experiment: &str) -> String {
        let now = SystemTime::now();
        let nanos = now.duration_since(SystemTime::UNIX_EPOCH).map(|d| d.as_nanos()).unwrap_or_default();
        // Other machines may share the folder.
        let host = nix::sys::utsname::uname().map(|u| u.nodename().to_string_lossy().into_owned()).unwrap_or_default();
        let id = |salt: u32| {
            let text = format!("{nanos} {host} {} {salt} {experiment}", std::process::id());
            format!("{}-{}", utc_id(now), &crate::sha256_text(&text)[..4])
        };
        let taken = |id: &String| self.root.join(experiment).join(id).exists();
        // As long as there are others, its last part is that of no other campaign either.
        let part = |c: &UnreadCampaign| Some(last_part(c.path.file_name()?.to_str()?).to_string());
        let parts: BTreeSet<String> = self.unread().iter().filter_map(part).collect();
        let is_own = |id: &String| !taken(id) && !parts.contains(last_part(id));
        (0..1000).map(id).find(is_own).or_else(|| (0..).map(id).find(|id| !taken(id))).unwrap_or_default()
    }

    /// All campaigns, newest first, and everything else found there.
    pub fn campaigns(&self) -> Result<(Vec<CampaignFolder>, Vec<Foreign>)> {
        let (mut found, mut foreign) = (Vec::new(), Vec::new());
        if !self.root.exists() {
            return Ok((found, foreign));
        }
        for experiment in entries(&self.root)? {
            if !experiment.is_dir() {
                foreign.push(stray(experiment));
                continue;
            }
            let paths = match entries(&experiment) {
                Ok(paths) => paths,
                Err(e) => {
                    foreign.push(unread(experiment, &e.into()));
                    continue;
                }
            };
            for path in paths {
                match CampaignFolder::open_in(&path, &experiment) {
                    Ok(campaign) => found.push(campaign),
                    Err(e) => foreign.push(unread(path, &e)),
                }
            }
        }
        newest_first(&mut found);
        Ok((found, foreign))
    }

    /// At most so many campaigns, the newest by their ids first, without reading the others. What cannot be read is left out.
    pub fn newest(&self, most: usize) -> Vec<CampaignFolder> {
        self.unread().iter().take(most).filter_map(|campaign| campaign.open().ok()).collect()
    }

    /// Every folder that may be a campaign, the newest by their ids first. None of them is read.
    pub fn unread(&self) -> Vec<UnreadCampaign> {
        let folders = |folder: &Path| entries(folder).unwrap_or_default().into_iter().filter(|path| path.is_dir());
        let of_experiment = |experiment: PathBuf| {
            folders(&experiment).map(move |path| UnreadCampaign { experiment: experiment.clone(), path }).collect::<Vec<_>>()
        };
        let mut campaigns: Vec<UnreadCampaign> = folders(&self.root).flat_map(of_experiment).collect();
        campaigns.sort_by(|a, b| b.path.file_name().cmp(&a.path.file_name()));
        campaigns
    }

    /// The campaign that a text names: `last`, `last-1`, `NAME/last`, `NAME` (its newest), `NAME/ID`, a folder, a unique prefix of an
    /// id or of its last part.
    pub fn find(&self, asked: &str) -> Result<CampaignFolder> {
        let as_path = Path::new(asked);
        if asked.contains('/') && as_path.join("campaign.json").exists() {
            return CampaignFolder::open(as_path);
        }
        let (mut campaigns, foreign) = self.campaigns()?;
        if let Some(found) = relative(&campaigns, asked) {
            // Where the only ones that are stored cannot be read, it is one of them that is meant.
            let damaged = || foreign.iter().filter(|_| campaigns.is_empty()).find_map(why_unreadable);
            return found.cloned().ok_or_else(|| damaged().unwrap_or_else(|| self.not_so_many(asked, &campaigns)));
        }
        let known = self.not_found(asked, &campaigns);
        // `NAME/ID` asks among those of one experiment.
        let of_one = |name: &str| campaigns.iter().any(|c| c.manifest.experiment == name);
        let id = match asked.split_once('/').filter(|(name, _)| of_one(name)) {
            Some((name, id)) => {
                campaigns.retain(|c| c.manifest.experiment == name);
                id
            }
            None => asked,
        };
        if let Some(exact) = campaigns.iter().find(|c| c.manifest.id == id) {
            return Ok(exact.clone());
        }
        // Four digits are soon those of two campaigns, and then name neither.
        let has_last = |c: &&CampaignFolder| last_part(&c.manifest.id) == id;
        let mut named = campaigns.iter().filter(has_last);
        match (named.next(), named.next()) {
            (Some(one), None) => return Ok(one.clone()),
            (Some(_), Some(_)) => return Err(ambiguous(asked, campaigns.iter().filter(has_last))),
            (None, _) => {}
        }
        // An experiment's name is its newest campaign.
        if let Some(newest) = campaigns.iter().find(|c| c.manifest.experiment == asked) {
            return Ok(newest.clone());
        }
        let begins =
            |c: &&CampaignFolder| !id.is_empty() && (c.manifest.id.starts_with(id) || last_part(&c.manifest.id).starts_with(id));
        let mut matches = campaigns.iter().filter(begins);
        match (matches.next(), matches.next()) {
            (Some(one), None) => Ok(one.clone()),
            (None, _) => Err(unreadable(id, &foreign).unwrap_or(known)),
            (Some(_), Some(_)) => Err(ambiguous(asked, campaigns.iter().filter(begins))),
        }
    }

    /// Why there is no campaign so far back: `last-1` is the one before the newest of the same experiment.
    fn not_so_many(&self, asked: &str, campaigns: &[CampaignFolder]) -> Error {
        let (experiment, word) =
            asked.rsplit_once('/').unwrap_or((campaigns.first().map_or("", |c| &c.manifest.experiment), asked));
        let stored = campaigns.iter().filter(|c| c.manifest.experiment == experiment).count();
        if stored == 0 || !word.contains('-') {
            return self.not_found(asked, campaigns);
        }
        let stored = if stored == 1 { "1 campaign".to_string() } else { format!("{stored} campaigns") };
        let known = format!(": it counts back from the newest campaign of the same experiment, and `{experiment}` has {stored}");
        Error::NotFound { asked: asked.into(), known }
    }

    fn not_found(&self, asked: &str, campaigns: &[CampaignFolder]) -> Error {
        let asked = asked.to_string();
        match campaigns.first().map(|campaign| &campaign.manifest) {
            None => Error::NoneStored { asked, place: self.root.clone(), first: self.first },
            Some(newest) => {
                Error::NotFound { asked, known: format!("; the newest is `{}` of `{}`", newest.id, newest.experiment) }
            }
        }
    }
}

fn ambiguous<'a>(asked: &str, all: impl Iterator<Item = &'a CampaignFolder>) -> Error {
    Error::Ambiguous { asked: asked.into(), candidates: all.map(|c| c.manifest.id.clone()).collect() }
}

/// `last-N` and `NAME/last-N`; the outer `None` means that the text is neither.
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

/// Sort campaigns, the newest first.
fn newest_first(campaigns: &mut Vec<CampaignFolder>) {
    let ranks = order::ranks(&campaigns.iter().map(CampaignFolder::manifest).collect::<Vec<_>>());
    let mut ranked: Vec<_> = ranks.into_iter().zip(std::mem::take(campaigns)).collect();
    // Of older campaigns, which name none before them, the file's own time decides within a second.
    ranked.sort_by_cached_key(|(rank, c)| Reverse((rank.clone(), c.modified(), c.manifest().id.clone())));
    campaigns.extend(ranked.into_iter().map(|(_, c)| c));
}

/// Why the requested campaign cannot be read, if it exists.
fn unreadable(asked: &str, foreign: &[Foreign]) -> Option<Error> {
    let is_meant = |f: &&Foreign| {
        let name = f.path.file_name().unwrap_or_default().to_string_lossy();
        let of_experiment = f.path.parent().and_then(Path::file_name).is_some_and(|of| of == asked);
        !asked.is_empty() && (of_experiment || name.starts_with(asked) || last_part(&name).starts_with(asked))
    };
    foreign.iter().filter(is_meant).find_map(why_unreadable)
}

/// Why a campaign cannot be read; `None` if it is not a campaign.
fn why_unreadable(f: &Foreign) -> Option<Error> {
    let is_campaign =
        f.path.join("campaign.json").symlink_metadata().map_or_else(|e| e.kind() == ErrorKind::PermissionDenied, |_| true);
    CampaignFolder::open_in(&f.path, f.path.parent()?).err().filter(|_| is_campaign)
}

fn stray(path: PathBuf) -> Foreign {
    Foreign { path, reason: "is not a campaign".into(), changed: false, stray: true }
}

fn unread(path: PathBuf, e: &Error) -> Foreign {
    let reason = match e {
        Error::Io(e) if e.kind() == ErrorKind::PermissionDenied => {
            let owner = fs::metadata(&path).ok().and_then(|m| User::from_uid(Uid::from_raw(m.uid())).ok()?);
            let whose = owner.map(|user| format!(", it belongs to {}", user.name)).unwrap_or_default();
            format!("may not be read by you{whose}")
        }
        Error::Corrupt { path: file, reason } => {
            format!("cannot be read: its {}", Error::corrupt(file.file_name().unwrap_or_default(), reason))
        }
        Error::NewerSchema { .. } => e.to_string(),
        _ if path.join("campaign.json").exists() => e.to_string(),
        _ => return stray(path),
    };
    Foreign { path, reason, changed: false, stray: false }
}
