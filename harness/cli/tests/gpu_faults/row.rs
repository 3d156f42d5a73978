//! One scenario: a machine, an experiment, and what must come of it.
//!
//! In: a [`Row`]. Out: what is wrong, in words. Whatever the scenario, the card is as it was found, nothing is left running, nothing
//! lies about, every planned run is accounted for, and no number stands without evidence.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use collo_store::{AttestationVerdict, Level, Outcome, StoredRun, Verdict};

use crate::sim::{Machine, program};
use crate::support::Answer;

/// How long what was started may take to be gone.
const TIMEOUT: Duration = Duration::from_secs(20);

pub type Look = fn(&Machine, &Answer) -> Result<(), String>;

/// A scenario and what is expected of it.
pub struct Row {
    pub name: &'static str,
    pub words: String,
    toml: String,
    arguments: Vec<String>,
    env: Vec<(&'static str, String)>,
    without: Option<&'static str>,
    opened: usize,
    exit: i32,
    ends: Vec<(&'static str, &'static str)>,
    says: Vec<&'static str>,
    looks: Vec<Look>,
    changed: bool,
    repaired_under: Option<&'static str>,
    by_hand: bool,
    awaits_dcgm: bool,
}

/// The Python of members that begin when the `dcgmi dmon` of their campaign has printed its header and some rows: on a busy machine it may
/// take longer to start than all their epochs (proc(5), `wchar`).
const ONCE_DCGM_PRINTS: &str = r#"#!/bin/sh
prints() {
    for arguments in $(grep -lzx dmon /proc/[0-9]*/cmdline 2>/dev/null); do
        process=${arguments%/cmdline}
        grep -qzx "COLLO_TEST_MARK=$COLLO_TEST_MARK" "$process/environ" 2>/dev/null || continue
        written=$(sed -n 's/^wchar: //p' "$process/io" 2>/dev/null)
        [ "${written:-0}" -ge 1000 ] && return 0
    done
    return 1
}
if [ -n "$COLLO_FD" ]; then
    left=400
    until prints || [ "$left" -eq 0 ]; do left=$((left - 1)); sleep 0.05; done
fi
exec "$REAL" "$@"
"#;

/// The machine on which a row runs: a DGX A100 as it is shipped.
const AS_SHIPPED: &str = "dgx-a100";
/// What an administrator says on it, who measures on instances too.
const OF_ADMINISTRATOR: [&str; 2] = ["--services", "stop"];

/// A row that ends with 0 and every run completed, until more is said. On a DGX as it is shipped a normal user measures; on instances,
/// for which cards must be cut, an administrator who lets services be stopped.
pub fn row(name: &'static str, words: impl Into<String>, toml: impl Into<String>) -> Row {
    let (mut words, toml) = (words.into(), toml.into());
    let cuts = words.starts_with(AS_SHIPPED) && toml.contains("mig");
    if cuts {
        words.insert_str(AS_SHIPPED.len(), ",root");
    }
    Row {
        name,
        words,
        toml,
        arguments: if cuts { OF_ADMINISTRATOR.map(String::from).into() } else { Vec::new() },
        env: Vec::new(),
        without: None,
        opened: 0,
        exit: 0,
        ends: Vec::new(),
        says: Vec::new(),
        looks: Vec::new(),
        changed: false,
        repaired_under: None,
        by_hand: false,
        awaits_dcgm: false,
    }
}

impl Row {
    pub fn with(mut self, arguments: &[&str]) -> Row {
        self.arguments.extend(arguments.iter().map(|a| a.to_string()));
        self
    }

    pub fn env(mut self, name: &'static str, value: &str) -> Row {
        self.env.push((name, value.to_string()));
        self
    }

    /// Members begin when DCGM prints rows of their card.
    pub fn once_dcgm_prints(mut self) -> Row {
        self.awaits_dcgm = true;
        self
    }

    /// A program is not on the PATH.
    pub fn without(mut self, program: &'static str) -> Row {
        self.without = Some(program);
        self
    }

    /// The baseline that opens the block was measured before, on a healthy card: times count from the run that follows.
    pub fn once_opened(mut self) -> Row {
        self.opened = 1;
        self
    }

    /// All baselines on the whole card were measured before, on a healthy card: what follows is on instances.
    pub fn once_whole(mut self) -> Row {
        self.opened = 2;
        self
    }

    pub fn exits(mut self, code: i32) -> Row {
        self.exit = code;
        self
    }

    /// Every run of that sharing mode ended so; what is not named is completed, or is not there after exits 3 and 4.
    pub fn ends(mut self, sharing: &'static str, word: &'static str) -> Row {
        self.ends.push((sharing, word));
        self
    }

    /// On stderr, on stdout, or in what is stored of a run's end.
    pub fn says(mut self, text: &'static str) -> Row {
        self.says.push(text);
        self
    }

    pub fn looks(mut self, look: Look) -> Row {
        self.looks.push(look);
        self
    }

    /// The card cannot be put back now: its journal stays, and the next run, under these words, puts it right and finishes.
    pub fn and_repaired_under(mut self, words: &'static str) -> Row {
        self.changed = true;
        self.repaired_under = Some(words);
        self
    }

    /// The same, and it is `collo restore` that puts it right under these words.
    pub fn leaves_what_restore_puts_right(mut self, words: &'static str) -> Row {
        self.by_hand = true;
        self.and_repaired_under(words)
    }

    /// What an administrator says each time.
    fn arguments_here(&self) -> Vec<&str> {
        let own: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        if own.starts_with(&OF_ADMINISTRATOR) { OF_ADMINISTRATOR.to_vec() } else { Vec::new() }
    }

    fn run(&self) -> Result<(), String> {
        let mut machine = Machine::new(&if self.opened > 0 { card_of(&self.words) } else { self.words.clone() }, &self.toml);
        for (name, value) in &self.env {
            machine = machine.env(name, value);
        }
        if self.awaits_dcgm {
            let python = machine.bench.at("once-dcgm-prints");
            fs_err::write(&python, ONCE_DCGM_PRINTS).map_err(|e| e.to_string())?;
            fs_err::set_permissions(&python, std::os::unix::fs::PermissionsExt::from_mode(0o755)).map_err(|e| e.to_string())?;
            let text = |path: PathBuf| path.display().to_string();
            machine = machine.env("REAL", &text(program("sim-train"))).env("COLLO_PYTHON", &text(python));
        }
        if let Some(program) = self.without {
            machine = machine.without(program);
        }
        for number in 1..=self.opened {
            // So little time is over after one run, and none is begun after it.
            let opened = machine.run(&[&["--for", "100ms"], self.arguments_here().as_slice()].concat());
            let stored = machine.bench.runs();
            let healthy = stored.len() == number && stored.values().all(|r| r.record.outcome == Outcome::Completed);
            hold(opened.code == Some(4) && healthy, || format!("baseline {number}: {opened:?}"))?;
        }
        if self.opened > 0 {
            machine = machine.anew(&self.words);
        }
        let found = machine.cards();
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        let (answer, pipes) = watched(&machine, || machine.run(&arguments));
        let context =
            |what: String| format!("{what}\nstderr:\n{}\nstdout:\n{}\n{}", answer.stderr, answer.stdout, told(&machine));
        let judged = self.judge(&machine, &answer, &found, &pipes).map_err(context);
        match (judged, self.repaired_under) {
            (Ok(()), Some(words)) => {
                let machine = machine.under(words);
                if self.by_hand {
                    let restored = machine.collo(&["restore"]);
                    nothing_lies_about(&machine, &found, &pipes)
                        .map_err(|e| format!("after `collo restore`: {e}\n{restored:?}"))?;
                    return hold(restored.code == Some(0), || format!("{restored:?}"));
                }
                let mut which: Vec<&str> = if machine.bench.campaigns() > 0 { vec!["--only", "failed"] } else { Vec::new() };
                which.extend(self.arguments_here());
                let mut again = machine.run(&which);
                if again.code == Some(4) {
                    // What failed is done; what was never tried is not a failure.
                    again = machine.run(&self.arguments_here());
                }
                nothing_lies_about(&machine, &found, &pipes).map_err(|e| format!("after the repair: {e}\n{again:?}"))?;
                hold(again.code == Some(0), || format!("the run that repairs: {again:?}"))
            }
            (judged, _) => judged,
        }
    }

    fn judge(&self, machine: &Machine, answer: &Answer, found: &serde_json::Value, pipes: &[PathBuf]) -> Result<(), String> {
        machine.bench.nothing_is_left(TIMEOUT);
        hold(answer.code == Some(self.exit), || format!("it exits with {:?}, not {}", answer.code, self.exit))?;
        let text = format!("{}{}{}", answer.stderr, answer.stdout, told(machine));
        for wanted in &self.says {
            hold(text.contains(wanted), || format!("nobody says `{wanted}`"))?;
        }
        hold(!text.contains("panicked"), || "something panicked".into())?;
        if self.changed {
            hold(machine.journals().len() == 1, || "no journal is left to repair by".into())?;
        } else {
            nothing_lies_about(machine, found, pipes)?;
        }
        if machine.bench.campaigns() > 0 {
            self.accounted(machine)?;
        } else {
            hold(matches!(self.exit, 2 | 3), || "no campaign is stored".into())?;
        }
        self.looks.iter().try_for_each(|look| look(machine, answer))
    }

    fn accounted(&self, machine: &Machine) -> Result<(), String> {
        let campaign = machine.bench.campaign();
        let (planned, runs) = (campaign.manifest().plan.order.len(), machine.bench.runs());
        if matches!(self.exit, 0 | 1) {
            hold(runs.len() == planned, || format!("{} of {planned} planned runs are stored", runs.len()))?;
        }
        let findings = collo_store::verify(&campaign).map_err(|e| e.to_string())?;
        let intact = findings.iter().find(|f| f.subject == "intact");
        hold(intact.is_some_and(|f| f.level == Level::Ok), || format!("not intact: {intact:?}"))?;
        for (sharing, _) in &self.ends {
            hold(runs.values().any(|r| r.record.cell.sharing == *sharing), || format!("no run of {sharing} is stored"))?;
        }
        runs.iter().try_for_each(|(folder, run)| {
            let wanted = self.ends.iter().find(|(sharing, _)| run.record.cell.sharing == *sharing);
            let (word, wanted) = (run.record.outcome.as_str(), wanted.map_or("completed", |(_, word)| word));
            hold(wanted.split('|').any(|w| w == word), || format!("{folder} ended as {word}, not {wanted}"))?;
            honest(run).map_err(|e| format!("{folder}: {e}"))
        })
    }
}

/// The words without any fault: the card or the machine, and who measures.
fn card_of(words: &str) -> String {
    let (card, rest) = words.split_once(',').unwrap_or((words, ""));
    let who = if rest.split(',').any(|w| w == "root") { ",root" } else { "" };
    format!("{card}{who}")
}

pub fn hold(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

/// Do it, and see meanwhile which folders daemons were given.
pub fn watched<T>(machine: &Machine, act: impl FnOnce() -> T) -> (T, Vec<PathBuf>) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut pipes: Vec<PathBuf> = Vec::new();
            while !over.load(Ordering::Relaxed) {
                pipes.extend(machine.pipes());
                pipes.sort();
                pipes.dedup();
                std::thread::sleep(Duration::from_millis(5));
            }
            pipes
        });
        let done = act();
        over.store(true, Ordering::Relaxed);
        (done, watch.join().expect("it watches"))
    })
}

/// The card is as it was found, and nothing of ours lies about.
pub fn nothing_lies_about(machine: &Machine, found: &serde_json::Value, pipes: &[PathBuf]) -> Result<(), String> {
    machine.bench.nothing_is_left(TIMEOUT);
    let now = machine.cards();
    hold(now == *found, || format!("the card was found as {found}, it is {now}"))?;
    hold(machine.journals().is_empty(), || format!("journals are left: {:?}", machine.journals()))?;
    let left: Vec<&PathBuf> = pipes.iter().filter(|p| p.exists()).collect();
    hold(left.is_empty(), || format!("folders of daemons are left: {left:?}"))
}

/// How every stored run ended, with its reasons.
pub fn told(machine: &Machine) -> String {
    if machine.bench.campaigns() == 0 {
        return String::new();
    }
    let line = |(folder, run): (&String, &StoredRun)| {
        let r = &run.record;
        format!("{folder}: {} {:?} {:?} {:?}\n", r.outcome.as_str(), r.outcome, r.validity, r.attestation.verdict)
    };
    machine.bench.runs().iter().map(line).collect()
}

/// A number stands only with evidence, and it can be one.
pub fn honest(run: &StoredRun) -> Result<(), String> {
    let r = &run.record;
    let completed = r.outcome == Outcome::Completed;
    hold(completed || r.validity.verdict == Verdict::Discarded, || format!("{} and {:?}", r.outcome.as_str(), r.validity))?;
    if !completed {
        return Ok(());
    }
    let evidence = r.attestation.verdict;
    hold(evidence != AttestationVerdict::Absent, || "completed without evidence".into())?;
    let whole = r.attestation.checks.iter().all(|c| c.holds) && evidence == AttestationVerdict::Attested;
    hold(whole || r.validity.verdict != Verdict::Valid, || format!("valid with {evidence:?}"))?;
    hold(r.device.simulated, || "it does not say that it is simulated".into())?;
    // DCGM's shares are kept as it says them, even above 1: what becomes of them is looked at in the report.
    let is_raw = |source: &str, metric: &str| source == "dcgm" && metric.ends_with("_ratio");
    let path = run.path.join("samples.parquet");
    let samples = collo_store::read_samples(&path, |source, _, metric| !is_raw(source, metric)).map_err(|e| e.to_string())?;
    for ((scope, metric), readings) in &samples {
        // An instance's ratio is of its own SMs; no card of this world has more watts or bytes.
        let most = match metric.as_str() {
            m if scope.starts_with("gpu:") && m.ends_with("_ratio") => 1.0001,
            m if scope.starts_with("mig:") && m.ends_with("_ratio") => 1.0001,
            "power_w" => 2_000.0,
            _ => 1e15,
        };
        let wrong = |value: &f64| !value.is_finite() || *value < 0.0 || *value > most;
        let strange = readings.iter().filter_map(|r| r.2).find(wrong);
        hold(strange.is_none(), || format!("{metric} of {scope} is {strange:?}"))?;
    }
    Ok(())
}

/// Run rows, eight at a time over all tests (members that are simulated mostly sleep), and fail with everything that is wrong.
pub fn all(rows: Vec<Row>) {
    let scenarios =
        rows.into_iter().map(|row| Scenario { name: row.name, words: row.words.clone(), act: Box::new(move || row.run()) });
    all_of(scenarios.collect());
}

/// Something with an end that can be told.
pub struct Scenario {
    pub name: &'static str,
    pub words: String,
    pub act: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
}

/// The same for what no row can say.
pub fn all_of(rows: Vec<Scenario>) {
    let queue = Mutex::new(rows.iter());
    let wrong = Mutex::new(Vec::new());
    let work = || {
        loop {
            let Some(row) = queue.lock().expect("nobody panicked").next() else { return };
            let _seat = Seat::take();
            let began = std::time::Instant::now();
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (row.act)()))
                .unwrap_or_else(|cause| Err(words_of(&*cause)));
            eprintln!("{:5.1} s  {}", began.elapsed().as_secs_f64(), row.name);
            if let Err(what) = result {
                wrong.lock().expect("nobody panicked").push(format!("## {} [{}]\n{what}", row.name, row.words));
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    let wrong = wrong.into_inner().expect("nobody panicked");
    eprintln!("{} scenarios", rows.len());
    assert!(wrong.is_empty(), "{} of {} scenarios:\n\n{}", wrong.len(), rows.len(), wrong.join("\n\n"));
}

fn words_of(cause: &(dyn std::any::Any + Send)) -> String {
    let text = cause.downcast_ref::<String>().cloned();
    text.or_else(|| cause.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_else(|| "it panicked".into())
}

/// Room for one scenario.
pub struct Seat;

static SEATS: (Mutex<usize>, Condvar) = (Mutex::new(8), Condvar::new());

impl Seat {
    pub fn take() -> Seat {
        let free = SEATS.0.lock().expect("nobody panicked");
        let mut free = SEATS.1.wait_while(free, |free| *free == 0).expect("nobody panicked");
        *free -= 1;
        Seat
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Ok(mut free) = SEATS.0.lock() {
            *free += 1;
        }
        SEATS.1.notify_one();
    }
}
