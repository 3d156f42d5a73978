//! Many inputs, each read by everything that reads it. What panics is counted with the seed of its input; what takes longer than anybody
//! would wait ends the process with that seed.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use collo_compare::campaigns::{self, Options};
use collo_compare::side::ComparedReport;
use collo_figures::document::Present;
use collo_report::{Report, json, terminal, terminal_cell, write};
use collo_store::{CampaignFolder, Runs, read_epochs, read_requests, read_samples, sha256_file, verify};
use serde_json::Value;

use super::{edit, values};
use crate::support::Fixture;
use crate::support::random::Random;
use crate::support::serving::Serves;

/// No input may take longer than this, on however busy a machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A campaign in memory, and the folder where it is laid out and shot at.
struct Target {
    root: tempfile::TempDir,
    campaign: PathBuf,
    files: BTreeMap<PathBuf, Vec<u8>>,
    values: BTreeMap<PathBuf, Value>,
    report: Value,
}

impl Target {
    fn new() -> Self {
        // In memory where there is such a place: nothing of it is to be kept.
        let memory = Path::new("/dev/shm");
        let root = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        let mut fixture = Fixture::named("shot").repetitions(1).solo("tiny", 32, 1.5).solo("web", 32, 1.0);
        fixture = fixture.mixed(("tiny", 1.5), ("web", 1.0), "naive", "keep-running");
        fixture.samples_hz = 2.0;
        let server = fixture.cells.iter_mut().filter(|c| c.record.cell.contains("web"));
        server.for_each(|c| *c.serves.last_mut().unwrap() = Some(Serves { rate_per_s: 3.0, window_s: 1.0, ..Serves::usual() }));
        let campaign = fixture.write(&root.path().join("runs"));
        let report = json(&Report::of(&campaign).unwrap());
        let campaign = campaign.path().to_path_buf();
        let files: BTreeMap<PathBuf, Vec<u8>> =
            below_folder(&campaign).into_iter().map(|p| (p.clone(), std::fs::read(p).unwrap())).collect();
        let values = files.iter().filter_map(|(p, bytes)| Some((p.clone(), serde_json::from_slice(bytes).ok()?))).collect();
        Target { root, campaign, files, values, report }
    }

    /// One of the files whose name ends so.
    fn one(&self, end: &str, random: &mut Random) -> PathBuf {
        let all: Vec<&PathBuf> = self.files.keys().filter(|p| p.to_string_lossy().ends_with(end)).collect();
        all[random.below(all.len())].clone()
    }

    fn restore(&self, changed: &[PathBuf]) {
        for path in changed {
            std::fs::write(path, &self.files[path]).unwrap();
        }
    }

    fn value(&self, file: &Path) -> Value {
        self.values[file].clone()
    }

    /// As campaigns were before the journal knew of digests, so that what was changed is looked into.
    fn trusting(&self) -> Vec<PathBuf> {
        let (manifest, journal) = (self.campaign.join("campaign.json"), self.campaign.join("journal.jsonl"));
        let mut value = self.value(&manifest);
        value.as_object_mut().unwrap().remove("filing");
        std::fs::write(&manifest, value.to_string()).unwrap();
        std::fs::write(&journal, "").unwrap();
        vec![manifest, journal]
    }

    /// Shoot once.
    fn shoot(&self, random: &mut Random) {
        match random.below(1000) {
            0..=249 => self.manifest(random),
            250..=449 => self.record(random),
            450..=499 => self.journal(random),
            500..=799 => self.table(random),
            800..=989 => self.compared(random),
            _ => self.all(random),
        }
    }

    fn manifest(&self, random: &mut Random) {
        let changed = self.trusting();
        let mut value = self.value(&changed[0]);
        value.as_object_mut().unwrap().remove("filing");
        values::mutate(&mut value, random);
        std::fs::write(&changed[0], values::text(&value, random)).unwrap();
        self.read();
        self.restore(&changed);
    }

    fn record(&self, random: &mut Random) {
        let mut changed = self.trusting();
        let file = self.one("run.json", random);
        let mut value = self.value(&file);
        values::mutate(&mut value, random);
        std::fs::write(&file, values::text(&value, random)).unwrap();
        changed.push(file);
        self.read();
        self.restore(&changed);
    }

    fn journal(&self, random: &mut Random) {
        let file = self.campaign.join("journal.jsonl");
        let text = String::from_utf8(self.files[&file].clone()).unwrap();
        let mut out = Vec::new();
        for line in text.lines() {
            let mut value: Value = serde_json::from_str(line).unwrap();
            if random.uniform() < 0.2 {
                values::mutate(&mut value, random);
            }
            out.extend(values::text(&value, random));
            out.push(b'\n');
        }
        if random.uniform() < 0.3 {
            random.damage(&mut out);
        }
        std::fs::write(&file, out).unwrap();
        self.read();
        self.restore(&[file]);
    }

    /// What `list`, `status` and `verify` read.
    fn read(&self) {
        let (campaigns, _) = Runs::at(self.root.path().join("runs")).campaigns().unwrap();
        for campaign in campaigns {
            let (runs, _) = campaign.runs().unwrap();
            let plan = &campaign.manifest().plan;
            let _ = plan.order.iter().filter(|p| runs.contains_key(&plan.folder(p))).count();
            let _ = verify(&campaign);
            let _ = campaign.history();
        }
    }

    fn table(&self, random: &mut Random) {
        let file = self.one(".parquet", random);
        let mut content = self.files[&file].clone();
        random.damage(&mut content);
        let place = self.root.path().join("table");
        std::fs::write(&place, content).unwrap();
        match file.file_name().unwrap().to_str() {
            Some("epochs.parquet") => drop(read_epochs(&place)),
            Some("requests.parquet") => drop(read_requests(&place)),
            _ => drop(read_samples(&place, |_, _, _| true)),
        }
    }

    fn compared(&self, random: &mut Random) {
        let mut value = self.report.clone();
        values::mutate(&mut value, random);
        let place = self.root.path().join("report.json");
        std::fs::write(&place, values::text(&value, random)).unwrap();
        let Ok(side) = ComparedReport::read(&place) else { return };
        if random.uniform() < 0.1 {
            let other = ComparedReport::of(self.report.clone(), "other").unwrap();
            if let Ok(found) = campaigns::compare(&side, &other, &Options { quantity: None, by: None, variation: None }) {
                let _ = (found.text(100), found.json());
            }
            let _ = collo_compare::published::beside(&side).text(100);
            let _ = collo_compare::generations::generations(&[side, other], None, &[]).map(|g| (g.text(100), g.json()));
        }
    }

    /// A campaign with changes that its digests agree to, through all of the report.
    fn all(&self, random: &mut Random) {
        let mut changed = self.trusting();
        match random.below(3) {
            0 => {
                let mut value = self.value(&changed[0]);
                values::mutate(&mut value, random);
                std::fs::write(&changed[0], value.to_string()).unwrap();
            }
            1 => {
                let file = self.one("run.json", random);
                let mut value = self.value(&file);
                values::mutate(&mut value, random);
                std::fs::write(&file, value.to_string()).unwrap();
                changed.push(file);
            }
            _ => {
                let file = self.one(".parquet", random);
                let mut content = self.files[&file].clone();
                random.damage(&mut content);
                std::fs::write(&file, &content).unwrap();
                let (record, name) = (file.with_file_name("run.json"), file.file_name().unwrap().to_str().unwrap().to_string());
                edit(&record, |r| {
                    r["files"][&name] = serde_json::json!({"bytes": content.len(), "sha256": sha256_file(&file).unwrap()});
                });
                changed.extend([file, record]);
            }
        }
        if let Ok(whole) = CampaignFolder::open(&self.campaign).map_err(Into::into).and_then(|c| Report::of(&c)) {
            let label = whole.analysis.cells.first().map(|c| c.name().to_string()).unwrap_or_default();
            let _ = (terminal(&whole, 100), terminal_cell(&whole, &label, usize::MAX));
            let _ = ComparedReport::of(json(&whole), "itself");
            if random.uniform() < 0.05 {
                let reports = self.root.path().join("reports");
                write(&whole, &reports).unwrap();
                std::fs::remove_dir_all(&reports).unwrap();
                let left: Vec<_> = std::fs::read_dir(self.root.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
                let known = ["runs", "table", "report.json"];
                assert!(left.iter().all(|n| known.contains(&n.to_str().unwrap_or_default())), "written elsewhere: {left:?}");
            }
        }
        self.restore(&changed);
    }
}

fn below_folder(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    entries.flat_map(|p| if p.is_dir() { below_folder(&p) } else { vec![p] }).collect()
}

/// So many inputs from this seed; none may panic or hang.
pub fn shoot(count: u64, seed: u64) {
    let (at, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let panics = std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut last, mut since) = (u64::MAX, std::time::Instant::now());
            while !done.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(20));
                let now = at.load(Ordering::Relaxed);
                if now != last {
                    (last, since) = (now, std::time::Instant::now());
                } else if since.elapsed() > TIMEOUT {
                    eprintln!("input {now} of seed {seed} hangs");
                    std::process::abort();
                }
            }
        });
        let mut target = Target::new();
        let mut panics = Vec::new();
        for input in 0..count {
            at.store(input, Ordering::Relaxed);
            let mut random = Random::seeded(seed.wrapping_mul(0x1000_0000_01b3) ^ input);
            if catch_unwind(AssertUnwindSafe(|| target.shoot(&mut random))).is_err() {
                panics.push(input);
                target = Target::new();
                println!("input {input} panics");
            }
        }
        done.store(true, Ordering::Relaxed);
        panics
    });
    println!("{count} inputs of seed {seed}, {} panics", panics.len());
    assert!(panics.is_empty(), "of seed {seed} the inputs {panics:?} panic");
}
