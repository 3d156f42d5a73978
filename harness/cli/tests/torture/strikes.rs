//! SIGKILL at random instants, as often as asked: collo alone, or it and all its supervisors at one moment; members fork daemons that
//! ignore whatever can be ignored; in processes, in threads of one, in traces; on the CPU, and on simulated cards that are cut and have MPS
//! daemons, quick, slow and hanging ones, one or several.
//!
//! In: how many kills, a seed. Out: a table, or everything that did not hold: something is left, a stored run is lost or changed, a card is
//! not as it was found, a campaign does not end whole. Who killed the supervisors too must wait for the next collo with the former two.
//!
//! To add a point to be killed at: its line in `FIELDS`.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use collo_store::Level;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::gpu_kill::kills::Random;
use crate::hostile::scene::{Live, Scene};

type Check = Result<(), String>;

/// Where, and who is killed.
struct Field {
    name: &'static str,
    /// Of a hundred kills.
    share: u32,
    words: Option<&'static str>,
    /// The experiment.
    toml: &'static str,
    /// With its supervisors.
    deeply: bool,
    arguments: &'static [&'static str],
    /// The latest that a kill comes.
    latest: Duration,
}

/// How long what was started may take to be gone: a daemon has three seconds to say goodbye, one that hangs takes longer.
const TIMEOUT: Duration = Duration::from_secs(5);
const TIMEOUT_ON_A_CARD: Duration = Duration::from_secs(20);
/// So many kills of one campaign; then it may end.
const OF_ONE: u32 = 20;

const FIELDS: [Field; 13] = [
    on_cpu("CPU", 30, false, ON_CPU),
    on_cpu("CPU, with its supervisors", 16, true, ON_CPU),
    on_cpu("trace on a CPU", 6, false, TRACE),
    on_cpu("trace on a CPU, with its supervisors", 4, true, TRACE),
    on_cpu("threads of one process", 6, false, THREADS),
    on_cpu("threads of one process, with its supervisors", 4, true, THREADS),
    on_card("card", 8, false, "a100-40gb", &[]),
    on_card("card, with its supervisors", 6, true, "a100-40gb", &[]),
    on_card("card that is found cut", 4, false, "a100-40gb,mig=2×3g.20gb", &[]),
    on_card("card, slow daemon", 4, false, "a100-40gb,mps-slow=400ms", &[]),
    on_card("card, slow daemon, with its supervisors", 4, true, "a100-40gb,mig=2×3g.20gb,mps-slow=400ms", &[]),
    on_card(
        "card beside services",
        4,
        true,
        "a100-40gb,services,power-limit=300,application-clocks=1095",
        &["--services", "stop"],
    ),
    on_card("two cards", 4, false, "a100-40gb,gpus=2", &["--gpu", "0,1"]),
];

const fn on_cpu(name: &'static str, share: u32, deeply: bool, toml: &'static str) -> Field {
    Field { name, share, words: None, toml, deeply, arguments: &[], latest: Duration::from_millis(1200) }
}

const fn on_card(name: &'static str, share: u32, deeply: bool, words: &'static str, arguments: &'static [&'static str]) -> Field {
    Field { name, share, words: Some(words), toml: ON_CARD, deeply, arguments, latest: Duration::from_millis(2000) }
}

/// Tasks on two sets of cores, each alone and in pairs.
const TRACE: &str =
    "[trace]\nname = \"six\"\ncards = 2\n[axes]\npolicy = [\"exclusive\", \"slots:2\"]\n[manager]\nwindow = \"1s\"\n";
const SIX: &str = "arrivals_s = [0, 0, 0.1, 0.2, 0.3, 0.4]\n[[tasks]]\ncount = 6\none_of = [\"sleep 1e\"]\n";
/// Threads of one process, and as many processes.
const THREADS: &str =
    "repetitions = 2\n[axes]\nworkload = \"sleep\"\nseconds = 0.1\nitems = 5\nsharing = [\"threads\", \"naive\"]\ndegree = 3\n";
/// A member that leaves a daemon, alone and beside one that behaves.
const ON_CPU: &str =
    "repetitions = 2\n[axes]\nworkload = \"hostile\"\nhow = [\"daemon\", \"daemons_of_many_kinds\"]\ndegree = [1, 2]\n";
/// Every run is staged in another way.
const ON_CARD: &str =
    "[axes]\nworkload = \"small\"\nsharing = [\"naive\", \"mps\", \"mig:2×1g.5gb\", \"mig:2×3g.20gb+mps\"]\ndegree = 2\n";

/// The Python of members on a card, each with a daemon of its own.
const WITH_DAEMON: &str = "#!/bin/sh
if [ -n \"$COLLO_FD\" ]; then setsid sh -c 'trap \"\" TERM INT HUP QUIT; sleep 600; :' & fi
exec \"$REAL\" \"$@\"
";

/// What was seen.
#[derive(Default)]
struct Seen {
    kills: u32,
    finished: u32,
    campaigns: u32,
    /// At so many kills members trained, daemons of MPS ran.
    members: u32,
    daemons: u32,
    /// After so many a run was cut off, the card was not as it was found, somebody was left for the next collo to end.
    cut_off: u32,
    changed: u32,
    waited: u32,
    slowest: Duration,
}

struct Trial<'a> {
    field: &'a Field,
    scene: Scene,
    seen: Seen,
    stored: BTreeMap<PathBuf, String>,
}

impl Trial<'_> {
    fn patience(&self) -> Duration {
        if self.field.words.is_some() { TIMEOUT_ON_A_CARD } else { TIMEOUT }
    }

    fn run(&self, more: &[&str]) -> Live {
        self.scene.start(&[&["run", "x", "--no-report"], self.field.arguments, more].concat())
    }

    /// Start the campaign, or go on with it, and kill it after so long, from its start or from its first run; true if it was killed.
    fn strike(&mut self, after: Duration, into_runs: bool) -> Result<bool, String> {
        let mut live = self.run(&[]);
        let before = self.drafts();
        let patient_until = Instant::now() + Duration::from_secs(10);
        while into_runs && self.drafts() == before && !live.has_ended() && Instant::now() < patient_until {
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(after);
        // Nothing is started while it is looked what there is.
        live.signal(Signal::SIGSTOP);
        let there = self.scene.left();
        let _ = kill(Pid::from_raw(-(live.pid() as i32)), Signal::SIGKILL);
        for (pid, _) in there.iter().filter(|(_, line)| self.field.deeply && line.contains("__supervise")) {
            // It may have ended by itself.
            let _ = kill(Pid::from_raw(*pid as i32), Signal::SIGKILL);
        }
        let at = Instant::now();
        let said = live.ends(Duration::from_secs(5))?;
        if said.code == 0 {
            self.seen.finished += 1;
            return Ok(false);
        }
        if said.code != -9 {
            return Err(format!("it ended by itself, with {}:\n{}", said.code, said.stderr));
        }
        let ran = |name: &str| u32::from(there.iter().any(|(_, line)| line.contains(name)));
        self.seen.kills += 1;
        self.seen.members += ran("attack.py").max(ran("train.py"));
        self.seen.daemons += ran("nvidia-cuda-mps");
        match self.scene.nothing_is_left(if self.field.deeply { Duration::from_secs(1) } else { self.patience() }) {
            Ok(()) => self.seen.slowest = self.seen.slowest.max(at.elapsed()),
            // Nobody of ours was left who could.
            Err(_) if self.field.deeply => self.seen.waited += 1,
            Err(left) => return Err(left),
        }
        if let Some(machine) = self.scene.machine() {
            let is_changed = Some(machine.cards()) != self.scene.found;
            self.seen.changed += u32::from(is_changed);
            if is_changed && machine.journals().is_empty() {
                return Err("the card is changed and nobody knows".into());
            }
        }
        self.seen.cut_off += u32::from(!self.drafts().is_empty());
        self.nothing_stored_is_lost()?;
        Ok(true)
    }

    /// Runs that were begun and not stored, each with the time of its folder.
    fn drafts(&self) -> Vec<(PathBuf, Option<std::time::SystemTime>)> {
        let drafts = self.scene.campaigns().first().and_then(|c| c.partials().ok()).unwrap_or_default();
        drafts.into_iter().map(|d| (d.clone(), d.metadata().and_then(|m| m.modified()).ok())).collect()
    }

    fn nothing_stored_is_lost(&mut self) -> Check {
        let now = self.scene.digests(&["x"]);
        let lost = self.stored.iter().find(|(path, digest)| now.get(*path) != Some(digest));
        if let Some((path, _)) = lost {
            return Err(format!("`{}` was stored before and is lost or changed", path.display()));
        }
        for campaign in self.scene.campaigns() {
            let findings = collo_store::verify(&campaign).map_err(|e| e.to_string())?;
            if let Some(finding) = findings.iter().find(|f| f.subject == "intact" && f.level != Level::Ok) {
                return Err(format!("what is stored is not intact: {}", finding.text));
            }
        }
        self.stored = now;
        Ok(())
    }

    /// The next collo, by hand or by a run, puts the card right and ends who is left.
    fn repair(&mut self, by_hand: bool) -> Check {
        let said = if by_hand {
            self.scene.collo(&["restore"], Duration::from_secs(60))?
        } else {
            // It does one of the runs that are missing.
            self.run(&["--for", "1ms"]).ends(Duration::from_secs(60))?
        };
        // A campaign of which runs are missing still ends with 4.
        let expected: &[i32] = if by_hand { &[0] } else { &[0, 4] };
        if !expected.contains(&said.code) {
            return Err(format!("the next collo ends with {}:\n{}", said.code, said.stderr));
        }
        self.is_right()
    }

    fn is_right(&mut self) -> Check {
        self.scene.nothing_is_left(self.patience()).map_err(|e| format!("after the next collo: {e}"))?;
        if let (Some(machine), Some(found)) = (self.scene.machine(), &self.scene.found) {
            let now = machine.cards();
            if now != *found {
                return Err(format!("the card was found as {found}, it is {now}"));
            }
            if !machine.journals().is_empty() {
                return Err(format!("journals are left: {:?}", machine.journals()));
            }
        }
        self.nothing_stored_is_lost()
    }

    /// One campaign, killed until it is complete, or so often; then it may end.
    fn campaign(&mut self, most: u32, random: &mut Random) -> Check {
        for turn in 0..most {
            if !self.strike(random.below(self.field.latest), random.below(Duration::from_secs(3)) < Duration::from_secs(2))? {
                break;
            }
            match turn % 4 {
                0 => self.repair(self.field.words.is_some())?,
                2 => self.repair(false)?,
                // By one that is killed in turn.
                _ => {}
            }
        }
        let said = self.run(&[]).ends(Duration::from_secs(180))?;
        if said.code != 0 {
            return Err(format!("what is left of the campaign ends with {}:\n{}", said.code, said.stderr));
        }
        self.is_right()?;
        let campaigns = self.scene.campaigns();
        let newest = campaigns.first().ok_or("no campaign is stored")?;
        let (runs, foreign) = newest.runs().map_err(|e| e.to_string())?;
        let completed = runs.values().filter(|r| r.record.outcome == collo_store::Outcome::Completed).count();
        let planned = newest.manifest().plan.order.len();
        if completed != planned || !foreign.is_empty() {
            return Err(format!("{completed} of {planned} planned runs completed; {foreign:?}"));
        }
        if !newest.partials().map_err(|e| e.to_string())?.is_empty() {
            return Err("what was cut off lies about".into());
        }
        self.seen.campaigns += campaigns.len() as u32;
        Ok(())
    }
}

/// A project, struck at most so often.
fn trial(field: &Field, most: u32, seed: u64) -> (Seen, Check) {
    let under = match field.words {
        Some(_) => "REAL=\"$COLLO_PYTHON\"; COLLO_PYTHON=\"$ASIDE/python\"; export REAL COLLO_PYTHON",
        None => "",
    };
    let scene = Scene::new(field.words, field.toml, None, under);
    scene.write("traces/six.toml", SIX);
    let python = scene.aside("python");
    fs_err::write(&python, WITH_DAEMON).expect("written");
    fs_err::set_permissions(&python, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("ours");
    let mut trial = Trial { field, scene, seen: Seen::default(), stored: BTreeMap::new() };
    let held = catch_unwind(AssertUnwindSafe(|| trial.campaign(most, &mut Random(seed))));
    let held = held.unwrap_or_else(|cause| Err(cause.downcast_ref::<String>().cloned().unwrap_or_else(|| "it panicked".into())));
    (trial.seen, held.map_err(|e| format!("{}, seed {seed}: {e}", field.name)))
}

/// So many kills over all fields, some campaigns at a time.
pub fn all(kills: u32, seed: u64) {
    // What is still to be done of each.
    let share = |f: &Field| (kills * f.share).div_ceil(100);
    let todo: Vec<AtomicU32> = FIELDS.iter().map(|f| AtomicU32::new(share(f))).collect();
    let seeds = AtomicU32::new(0);
    let done: Mutex<Vec<(usize, Seen)>> = Mutex::default();
    let wrong: Mutex<Vec<String>> = Mutex::default();
    let work = || {
        loop {
            let take = |n: u32| (n > 0).then(|| n.saturating_sub(OF_ONE));
            // The field with most to do first.
            let at = (0..FIELDS.len()).max_by_key(|&at| todo[at].load(Ordering::Relaxed)).expect("there are some");
            let Ok(open) = todo[at].fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) else {
                if todo.iter().all(|n| n.load(Ordering::Relaxed) == 0) {
                    return;
                }
                continue;
            };
            let most = open.min(OF_ONE);
            let (seen, held) = trial(&FIELDS[at], most, seed + u64::from(seeds.fetch_add(1, Ordering::Relaxed)));
            match held {
                // A campaign that ended before leaves some of them.
                Ok(()) => drop(todo[at].fetch_add(most - seen.kills, Ordering::Relaxed)),
                Err(what) => {
                    eprintln!("✗ {what}");
                    wrong.lock().expect("nobody panicked").push(what);
                }
            }
            done.lock().expect("nobody panicked").push((at, seen));
        }
    };
    let workers = std::thread::available_parallelism().map_or(2, usize::from) + 1;
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(work);
        }
    });
    let done = done.into_inner().expect("nobody panicked");
    let killed = table(&done);
    let wrong = wrong.into_inner().expect("nobody panicked");
    assert!(wrong.is_empty(), "{} of {killed} kills did harm:\n\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(killed >= kills, "{killed} of {kills} kills");
}

/// Print what was seen; returns how many kills there were.
fn table(done: &[(usize, Seen)]) -> u32 {
    let wide = FIELDS.iter().map(|f| f.name.chars().count()).max().unwrap_or(0);
    println!("\n{:wide$}  kills  finished  campaigns  members  daemons  cut off  card changed  waited  slowest", "killed");
    let line = |name: &str, of: &dyn Fn(usize) -> bool| {
        let some = || done.iter().filter(|(at, _)| of(*at)).map(|(_, seen)| seen);
        let sum = |value: fn(&Seen) -> u32| some().map(value).sum::<u32>();
        println!(
            "{name:wide$}  {:5}  {:8}  {:9}  {:7}  {:7}  {:7}  {:12}  {:6}  {:5.1} s",
            sum(|s| s.kills),
            sum(|s| s.finished),
            sum(|s| s.campaigns),
            sum(|s| s.members),
            sum(|s| s.daemons),
            sum(|s| s.cut_off),
            sum(|s| s.changed),
            sum(|s| s.waited),
            some().map(|s| s.slowest.as_secs_f64()).fold(0.0, f64::max),
        );
        sum(|s| s.kills)
    };
    for (at, field) in FIELDS.iter().enumerate() {
        line(field.name, &|a| a == at);
    }
    line("all", &|_| true)
}
