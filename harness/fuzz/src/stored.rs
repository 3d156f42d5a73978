//! The store, and bundles of it.

use std::path::Path;
use std::sync::LazyLock;

use collo_store::{CampaignFolder, Runs, archive};
use serde_json::Value;

use crate::given::{self, folder, put, shown};
use crate::project::ROOT;

/// An archive and what is unpacked of it.
pub fn bundle(bytes: &[u8]) {
    given::file("given.tar.gz", bytes, |file| {
        let into = file.with_file_name("into");
        std::fs::create_dir(&into).expect("a folder can be made");
        if let Some((place, about)) = shown(archive::unpack(file, &into)) {
            assert_eq!(place.parent(), Some(into.as_path()), "unpacked elsewhere");
            shown(Runs::at(place.join("runs")).find(&about.campaign)).iter().for_each(looked_at);
        }
        let kept = std::fs::read_dir(file.parent().unwrap_or(file)).expect("its own folder").count();
        assert_eq!(kept, 2, "written elsewhere");
    });
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
fn with(name: &str, bytes: &[u8]) {
    let folder = folder();
    let [experiment, id, run] = &SEED.names;
    let place = format!("{experiment}/{id}");
    put(folder.path(), &format!("{place}/campaign.json"), &SEED.campaign);
    put(folder.path(), &format!("{place}/{run}/run.json"), &SEED.run);
    put(folder.path(), &format!("{place}/{}", name.replace("RUN", run)), bytes);
    let (campaigns, foreign) = Runs::at(folder.path()).campaigns().expect("a folder");
    std::hint::black_box(format!("{foreign:?}"));
    campaigns.iter().for_each(looked_at);
}

fn looked_at(campaign: &CampaignFolder) {
    let findings = shown(collo_store::verify(campaign));
    std::hint::black_box(findings.map(|all| all.len()));
    shown(campaign.expect_unchanged());
    shown(campaign.progress().map(|progress| progress.text()));
    shown(campaign.history().map(|all| all.len()));
    let _ = (campaign.comments(), campaign.superseded(), campaign.running());
    for run in campaign.runs().map(|(runs, _)| runs).unwrap_or_default().values() {
        run.damage();
    }
}

pub fn campaign(bytes: &[u8]) {
    with("campaign.json", bytes);
}

pub fn run(bytes: &[u8]) {
    with("RUN/run.json", bytes);
}

pub fn journal(bytes: &[u8]) {
    with("journal.jsonl", bytes);
    with("comments.jsonl", bytes);
}

pub fn epochs(bytes: &[u8]) {
    given::file("epochs.parquet", bytes, |file| drop(shown(collo_store::read_epochs(file))));
}

pub fn requests(bytes: &[u8]) {
    given::file("requests.parquet", bytes, |file| drop(shown(collo_store::read_requests(file))));
}

pub fn samples(bytes: &[u8]) {
    given::file("samples.parquet", bytes, |file| {
        shown(collo_store::read_samples(file, |_, _, _| true));
        shown(collo_store::read_series(file, |_, _, _| true));
    });
}

fn in_run(name: &str, bytes: &[u8], read: impl FnOnce(&Path)) {
    given::file(name, bytes, |file| read(file.parent().unwrap_or(file)));
}

pub fn tasks(bytes: &[u8]) {
    in_run("tasks.parquet", bytes, |run| drop(shown(collo_store::read_tasks(run))));
}

pub fn attempts(bytes: &[u8]) {
    in_run("attempts.parquet", bytes, |run| drop(shown(collo_store::read_attempts(run))));
}

pub fn decisions(bytes: &[u8]) {
    in_run("decisions.parquet", bytes, |run| drop(shown(collo_store::read_decisions(run))));
}
