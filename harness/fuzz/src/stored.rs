//! The store, and bundles of it.

use std::path::Path;
use std::sync::LazyLock;

use collo_store::{CampaignFolder, Runs, archive};
use serde_json::Value;

use crate::Accepted;
use crate::given::{self, folder, put, shown};
use crate::project::ROOT;

/// An archive and what is unpacked of it.
pub fn bundle(bytes: &[u8]) -> Accepted {
    given::file("given.tar.gz", bytes, |file| {
        let into = file.with_file_name("into");
        std::fs::create_dir(&into).expect("a folder can be made");
        let unpacked = shown(archive::unpack(file, &into));
        let campaign = unpacked.and_then(|(place, about)| {
            assert_eq!(place.parent(), Some(into.as_path()), "unpacked elsewhere");
            let campaign = shown(Runs::at(place.join("runs")).find(&about.campaign))?;
            looked_at(&campaign)
        });
        let kept = std::fs::read_dir(file.parent().unwrap_or(file)).expect("its own folder").count();
        assert_eq!(kept, 2, "written elsewhere");
        campaign
    })
}

/// The seeds of `campaign` and `run`: one campaign.
struct Seed {
    /// The names of its experiment, of itself and of its first run.
    names: [String; 3],
    campaign: Vec<u8>,
    run: Vec<u8>,
}

static SEED: LazyLock<Seed> = LazyLock::new(|| {
    let file = |name: &str| std::fs::read(ROOT.join("harness/fuzz/corpus").join(name)).expect("a seed");
    let (campaign, run) = (file("campaign/sleep.json"), file("run/sleep.json"));
    let value: Value = serde_json::from_slice(&campaign).expect("a seed");
    let name = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let folder = format!("{}-1", name(&value["plan"]["cells"][0]["slug"]));
    Seed { names: [name(&value["experiment"]), name(&value["id"]), folder], campaign, run }
});

/// The seed's campaign with one of its files given, as `list`, `status` and `verify` read it.
fn with(name: &str, bytes: &[u8]) -> Accepted {
    let folder = folder();
    let [experiment, id, run] = &SEED.names;
    let place = format!("{experiment}/{id}");
    put(folder.path(), &format!("{place}/campaign.json"), &SEED.campaign);
    put(folder.path(), &format!("{place}/{run}/run.json"), &SEED.run);
    put(folder.path(), &format!("{place}/{}", name.replace("RUN", run)), bytes);
    let (campaigns, foreign) = Runs::at(folder.path()).campaigns().expect("a folder");
    std::hint::black_box(format!("{foreign:?}"));
    campaigns.first().and_then(looked_at)
}

/// A campaign all of whose runs can be read.
fn looked_at(campaign: &CampaignFolder) -> Accepted {
    let findings = shown(collo_store::verify(campaign));
    std::hint::black_box(findings.map(|all| all.len()));
    shown(campaign.expect_unchanged());
    let progress = shown(campaign.progress()).map(|progress| progress.text());
    let history = shown(campaign.history());
    let _ = (campaign.comments(), campaign.superseded(), campaign.running());
    let (runs, foreign) = shown(campaign.runs())?;
    for run in runs.values() {
        run.damage();
    }
    (progress.is_some() && history.is_some() && !runs.is_empty() && foreign.is_empty()).then_some(())
}

pub fn campaign(bytes: &[u8]) -> Accepted {
    with("campaign.json", bytes)
}

pub fn run(bytes: &[u8]) -> Accepted {
    with("RUN/run.json", bytes)
}

pub fn journal(bytes: &[u8]) -> Accepted {
    with("comments.jsonl", bytes);
    with("journal.jsonl", bytes)
}

/// A table that has rows.
fn rows<T, E: std::fmt::Display>(read: Result<Vec<T>, E>) -> Accepted {
    shown(read).filter(|rows| !rows.is_empty()).map(drop)
}

pub fn epochs(bytes: &[u8]) -> Accepted {
    given::file("epochs.parquet", bytes, |file| rows(collo_store::read_epochs(file)))
}

pub fn requests(bytes: &[u8]) -> Accepted {
    given::file("requests.parquet", bytes, |file| rows(collo_store::read_requests(file)))
}

pub fn samples(bytes: &[u8]) -> Accepted {
    given::file("samples.parquet", bytes, |file| {
        let readings = shown(collo_store::read_samples(file, |_, _, _| true)).filter(|all| !all.is_empty());
        readings.and(rows(collo_store::read_series(file, |_, _, _| true)))
    })
}

fn in_run(name: &str, bytes: &[u8], read: impl FnOnce(&Path) -> Accepted) -> Accepted {
    given::file(name, bytes, |file| read(file.parent().unwrap_or(file)))
}

pub fn tasks(bytes: &[u8]) -> Accepted {
    in_run("tasks.parquet", bytes, |run| rows(collo_store::read_tasks(run)))
}

pub fn attempts(bytes: &[u8]) -> Accepted {
    in_run("attempts.parquet", bytes, |run| rows(collo_store::read_attempts(run)))
}

pub fn decisions(bytes: &[u8]) -> Accepted {
    in_run("decisions.parquet", bytes, |run| rows(collo_store::read_decisions(run)))
}
