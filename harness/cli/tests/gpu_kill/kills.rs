//! collo is killed at random instants of a campaign that cuts a card and starts MPS daemons.
//!
//! In: how a card is found, how often to kill, a seed. Out: nothing, or a failure: the card is not as it was found once it is repaired,
//! something still runs, something stored was lost or changed, or the campaign does not end whole.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use collo_store::{Level, Outcome, sha256_file};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::sim::Machine;
use crate::support::{Bench, Running};

/// Two side by side under MPS, on instances, and on instances with a daemon each: every run is staged in another way.
const CAMPAIGN: &str = "[axes]
workload = \"small\"
sharing = [\"mps\", \"mig:2×1g.5gb\", \"mig:2×3g.20gb+mps\"]
degree = 2";

/// The same beside naive groups, so that the mode is turned in the middle.
const MIXED: &str = "[axes]
workload = \"small\"
sharing = [\"naive\", \"mps\", \"mig:2×1g.5gb\", \"mig:2×3g.20gb+mps\"]
degree = 2";

/// How long what a killed collo had started may take to be gone: a daemon has three seconds to say goodbye.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The latest that a kill comes.
const LATEST: Duration = Duration::from_millis(3500);

/// SplitMix64: small, and the same everywhere.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: Duration) -> Duration {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        limit.mul_f64(((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64)
    }
}

/// How many runs are stored; every one of them must be intact.
pub fn intact_runs(bench: &Bench) -> usize {
    let Ok(campaign) = bench.runs_folder().find("last") else { return 0 };
    let findings = collo_store::verify(&campaign).expect("readable");
    let intact = findings.iter().find(|f| f.subject == "intact").expect("it is looked at");
    assert_eq!(intact.level, Level::Ok, "{}", intact.text);
    bench.runs().len()
}

pub fn is_complete(bench: &Bench) -> bool {
    let planned = bench.runs_folder().find("last").map(|c| c.manifest().plan.order.len());
    planned.is_ok_and(|planned| bench.runs().len() == planned)
}

/// Every file of every stored run of every campaign, with its digest.
fn digests(bench: &Bench) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for campaign in bench.runs_folder().campaigns().expect("readable").0 {
        // A run that was cut off just before it was renamed has all its files, and is no stored run.
        let cut_off = campaign.partials().expect("readable");
        let is_stored = |folder: &PathBuf| !cut_off.contains(folder) && folder.join("run.json").is_file();
        for folder in below(campaign.path()).into_iter().filter(is_stored) {
            collect(&folder, &mut found);
        }
    }
    found
}

fn below(folder: &Path) -> Vec<PathBuf> {
    fs_err::read_dir(folder).expect("readable").map(|e| e.expect("readable").path()).collect()
}

fn collect(folder: &Path, found: &mut BTreeMap<PathBuf, String>) {
    for path in below(folder) {
        if path.is_dir() {
            collect(&path, found);
        } else {
            found.insert(path.clone(), sha256_file(&path).expect("readable"));
        }
    }
}

/// Kill collo; `deeply`, its supervisors die at the same moment, so that nobody is left to sweep up. Returns what there was.
fn kill_all(bench: &Bench, running: &mut Running, deeply: bool) -> Vec<String> {
    // Nothing is started while it is looked what there is.
    running.signal(Signal::SIGSTOP);
    let left = bench.left();
    running.signal_group(Signal::SIGKILL);
    for (pid, _) in left.iter().filter(|(_, line)| deeply && line.contains("__supervise")) {
        // It may have ended by itself.
        let _ = kill(Pid::from_raw(*pid as i32), Signal::SIGKILL);
    }
    left.into_iter().map(|(_, line)| line).collect()
}

/// What was seen over all kills.
#[derive(Debug, Default)]
struct Seen {
    kills: u32,
    finished: u32,
    /// At so many kills a daemon ran, members trained.
    daemons: u32,
    members: u32,
    /// After so many the card was not as it was found, a daemon was written down, a run was cut off.
    changed: u32,
    noted: u32,
    cut_off: u32,
    restored: u32,
    longest: Duration,
}

struct Trial {
    machine: Machine,
    arguments: &'static [&'static str],
    found: Value,
    /// Folders that daemons were given.
    pipes: Vec<PathBuf>,
    stored: BTreeMap<PathBuf, String>,
    seen: Seen,
}

impl Trial {
    fn bench(&self) -> &Bench {
        &self.machine.bench
    }

    /// Start the campaign, or go on with it, and kill it after so long.
    fn strike(&mut self, after: Duration, deeply: bool) {
        let campaigns = self.bench().campaigns();
        let runs = intact_runs(self.bench());
        let mut running = self.machine.start(self.arguments);
        std::thread::sleep(after);
        let there = kill_all(self.bench(), &mut running, deeply);
        let at = Instant::now();
        self.bench().nothing_is_left(TIMEOUT);
        self.seen.longest = self.seen.longest.max(at.elapsed());
        let answer = running.ends();
        let is_changed = self.machine.cards() != self.found;
        match answer.code {
            None => {
                let ran = |name: &str| u32::from(there.iter().any(|line| line.contains(name)));
                self.seen.kills += 1;
                self.seen.daemons += ran("nvidia-cuda-mps");
                self.seen.members += ran("sim-train");
                self.seen.changed += u32::from(is_changed);
                assert!(!is_changed || self.machine.journals().len() == 1, "it is changed and nobody knows: {answer:?}");
            }
            Some(code) => {
                assert_eq!(code, 0, "{answer:?}");
                self.seen.finished += 1;
                self.is_right();
            }
        }
        let pipes = self.machine.pipes();
        self.seen.noted += u32::from(!pipes.is_empty());
        self.pipes.extend(pipes);
        let partials = self.bench().runs_folder().find("last").map(|c| c.partials().expect("readable").len());
        self.seen.cut_off += u32::from(partials.is_ok_and(|n| n > 0));
        let now = intact_runs(self.bench());
        assert!(self.bench().campaigns() > campaigns || now >= runs, "{runs} runs were stored, {now} are left");
        self.nothing_stored_is_lost();
    }

    fn nothing_stored_is_lost(&mut self) {
        let now = digests(self.bench());
        for (path, digest) in &self.stored {
            assert_eq!(now.get(path), Some(digest), "{} was stored before", path.display());
        }
        self.stored = now;
    }

    /// The card is as it was found, and nothing of ours lies about.
    fn is_right(&self) {
        self.bench().nothing_is_left(TIMEOUT);
        assert_eq!(self.machine.cards(), self.found);
        assert!(self.machine.journals().is_empty(), "{:?}", self.machine.journals());
        let left: Vec<&PathBuf> = self.pipes.iter().filter(|p| p.exists()).collect();
        assert!(left.is_empty(), "folders of daemons are left: {left:?}");
    }
}

/// Kill a campaign so many times on a card that is found as these words say, and let it end.
pub fn kills(words: &str, count: u32, seed: u64) {
    beside(Machine::new(words, CAMPAIGN), &[], words, count, seed);
}

/// The same with services that are stopped for each change of MIG mode, and with all modes in one campaign.
pub fn kills_beside_services(words: &str, count: u32, seed: u64) {
    beside(Machine::new(words, MIXED), &["--services", "stop"], words, count, seed);
}

fn beside(machine: Machine, arguments: &'static [&'static str], words: &str, count: u32, seed: u64) {
    let found = machine.cards();
    let mut trial = Trial { machine, arguments, found, pipes: Vec::new(), stored: BTreeMap::new(), seen: Seen::default() };
    let mut random = Random(seed);
    let mut turn = 0;
    while trial.seen.kills < count {
        trial.strike(random.below(LATEST), turn % 2 == 1);
        match turn % 4 {
            0 => {
                // By hand.
                trial.seen.restored += u32::from(!trial.machine.journals().is_empty());
                trial.machine.collo(&["restore"]).exits(0);
                trial.is_right();
            }
            1 => {
                // By the next run, which does one of what is missing; none may be missing.
                let answer = trial.machine.run(&[arguments, &["--for", "1ms"]].concat());
                assert!(matches!(answer.code, Some(0 | 4)), "{answer:?}");
                trial.is_right();
            }
            // By one that is killed in turn.
            _ => {}
        }
        turn += 1;
    }
    if !is_complete(trial.bench()) {
        trial.machine.run(arguments).exits(0);
    } else {
        trial.machine.collo(&["restore"]).exits(0);
    }
    trial.is_right();
    trial.nothing_stored_is_lost();
    ends_whole(trial.bench());
    let seen = &trial.seen;
    // So many kills meet everything that there is to meet.
    let met = [seen.daemons, seen.members, seen.changed, seen.noted, seen.cut_off, seen.restored];
    assert!(count < 25 || met.iter().all(|n| *n > 0), "{seen:?}");
    println!("{words}, seed {seed}: {:?}; {} campaigns", trial.seen, trial.bench().campaigns());
}

/// Every planned run is accounted for, completed, whole and attested.
fn ends_whole(bench: &Bench) {
    let (campaign, runs) = (bench.campaign(), bench.runs());
    assert_eq!(runs.len(), campaign.manifest().plan.order.len());
    assert!(runs.values().all(|r| r.record.outcome == Outcome::Completed), "{:?}", runs.keys());
    assert!(campaign.partials().expect("readable").is_empty(), "what was cut off was measured again");
    bench.collo(&["verify"]).exits(0);
    let report = bench.collo(&["report", "--json"]).exits(0).json();
    let accounted: u64 = report["accounted"].as_object().expect("outcomes").values().filter_map(Value::as_u64).sum();
    assert_eq!(report["planned"].as_u64(), Some(accounted));
    assert_eq!(report["accounted"]["completed"], report["planned"]);
}
