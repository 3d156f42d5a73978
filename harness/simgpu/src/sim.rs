//! The simulated machine as one process sees it: the folder that all share, its state, and what happened on its cards.
//!
//! In: `COLLO_SIM_DIR` and `COLLO_SIM`. Out: [`Sim`], which reads again only what changed since it last looked.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use nix::fcntl::{Flock, FlockArg};

use crate::card::Card;
use crate::clock;
use crate::history::{Guest, History, Timed};
use crate::log::{self, Actor, Event, News, Reader, Record};
use crate::scenario::Scenario;
use crate::state::State;

/// The variable that names the folder.
pub const FOLDER: &str = "COLLO_SIM_DIR";
/// A log is as long as this at most, unless cards are never idle.
const LONGEST_LOG: u64 = 64 << 10;
/// How often the processes on the cards are looked at.
const LOOKED_AT_NS: u64 = 20_000_000;
/// How often the files are looked at: a reading is as old as this at most.
const FRESH_NS: u64 = 1_000_000;

/// The machine.
#[derive(Debug)]
pub struct Sim {
    pub folder: PathBuf,
    pub scenario: Scenario,
    pub cards: Vec<Arc<Card>>,
    state: State,
    state_stamp: Option<(SystemTime, u64)>,
    reader: Reader,
    history: History,
    looked_ns: u64,
    read_ns: u64,
}

/// The folder of this process' machine.
pub fn folder() -> PathBuf {
    let named = std::env::var_os(FOLDER).filter(|f| !f.is_empty());
    named.map_or_else(|| std::env::temp_dir().join(format!("collo-sim-{}", nix::unistd::getuid())), PathBuf::from)
}

impl Sim {
    /// Join the machine, or switch it on.
    pub fn open() -> Result<Sim, String> {
        Sim::open_in(folder(), Scenario::from_environment()?)
    }

    pub fn open_in(folder: PathBuf, scenario: Scenario) -> Result<Sim, String> {
        let card = Arc::new(Card::find(&scenario.card)?);
        let card = match scenario.has("mig-not-supported") {
            true => Arc::new(Card { mig: None, ..(*card).clone() }),
            false => card,
        };
        let count = scenario.number("gpus").unwrap_or(1.0) as usize;
        let mut cards = vec![card; count];
        if scenario.has("display") {
            cards.insert(0, Arc::new(Card::display()));
        }
        if !folder.is_dir() {
            std::fs::create_dir_all(&folder).map_err(|e| format!("`{}`: {e}", folder.display()))?;
            let _ = std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777));
        }
        let state = {
            let _lock = lock(&folder)?;
            let path = folder.join("state.json");
            match State::read(&path).filter(|s| s.is_of(&cards)) {
                Some(state) => state,
                None => {
                    let _ = std::fs::remove_file(folder.join("activity.log"));
                    let state = State::new(&scenario, &cards)?;
                    state.write(&path).map_err(|e| format!("`{}`: {e}", path.display()))?;
                    state
                }
            }
        };
        let reader = Reader::new(folder.join("activity.log"));
        let history = History::new(&cards, &state.base, timed(&scenario));
        let mut sim = Sim { folder, scenario, cards, state, state_stamp: None, reader, history, looked_ns: 0, read_ns: 0 };
        sim.refresh();
        sim.shorten()?;
        Ok(sim)
    }

    /// Once the log has grown and every card is idle, what matters of it goes to the state, and it begins anew.
    fn shorten(&mut self) -> Result<(), String> {
        let log = self.folder.join("activity.log");
        let long = |log: &Path| std::fs::metadata(log).is_ok_and(|m| m.len() > LONGEST_LOG);
        if !long(&log) || !self.history.guests.is_empty() {
            return Ok(());
        }
        self.change(|state, sim| {
            if sim.history.guests.is_empty() && long(&log) {
                state.base = sim.history.base(clock::now_ns());
                // Nobody appends meanwhile, for that wants the lock.
                std::fs::rename(&log, log.with_extension("old")).map_err(|e| format!("`{}`: {e}", log.display()))?;
            }
            Ok::<(), String>(())
        })
    }

    /// Read what is new, and return the moment that everything now is as of.
    pub fn refresh(&mut self) -> u64 {
        let now = clock::now_ns();
        if now < self.read_ns + FRESH_NS {
            self.history.pass(now);
            return now;
        }
        self.read_ns = now;
        let path = self.folder.join("state.json");
        let stamp = std::fs::metadata(&path).ok().and_then(|m| Some((m.modified().ok()?, m.ino())));
        if stamp != self.state_stamp {
            if let Some(state) = State::read(&path) {
                self.state = state;
            }
            self.state_stamp = stamp;
        }
        self.read_log();
        let now = clock::now_ns();
        if now >= self.looked_ns + LOOKED_AT_NS {
            self.looked_ns = now;
            self.bury();
        }
        self.history.pass(now);
        now
    }

    fn read_log(&mut self) {
        match self.reader.read() {
            News::Nothing => {}
            News::More(records) => self.history.take(records),
            News::Anew(records) => {
                if let Some(state) = State::read(&self.folder.join("state.json")) {
                    self.state = state;
                }
                self.history = History::new(&self.cards, &self.state.base, timed(&self.scenario));
                self.history.take(records);
            }
        }
    }

    /// Close the entries of processes that are gone.
    pub fn bury(&mut self) {
        let gone = |g: &&Guest| !clock::lives(g.actor.pid, g.here.born);
        let mut dead: Vec<u32> = self.history.guests.iter().filter(gone).map(|g| g.actor.pid).collect();
        dead.sort_unstable();
        dead.dedup();
        if !dead.is_empty() {
            let is_here = |sim: &Sim, pid: u32| sim.history.guests.iter().any(|g| g.actor.pid == pid);
            let _ = self.append(|sim| dead.into_iter().filter(|&p| is_here(sim, p)).map(|p| (p, Event::End)).collect());
        }
    }

    /// Append what `what` says, stamped while the folder is locked, so that the log stays in order.
    pub fn append<A: Into<Actor>>(&mut self, what: impl FnOnce(&Sim) -> Vec<(A, Event)>) -> Result<(), String> {
        self.append_if(|sim| Ok::<_, String>(what(sim)))
    }

    /// The same, unless a look under the lock shows that it must not be.
    pub fn append_if<A: Into<Actor>, E: From<String>>(
        &mut self,
        what: impl FnOnce(&Sim) -> Result<Vec<(A, Event)>, E>,
    ) -> Result<(), E> {
        let _lock = lock(&self.folder)?;
        self.read_log();
        let events = what(self)?;
        let at_ns = clock::now_ns();
        let records: Vec<Record> =
            events.into_iter().map(|(actor, event)| Record { at_ns, actor: actor.into(), event }).collect();
        log::append(&self.folder.join("activity.log"), &records).map_err(|e| format!("the log of activity: {e}"))?;
        self.read_log();
        Ok(())
    }

    /// Change the state under the lock. What a refusal changed stays changed: it may count how often it was asked.
    pub fn change<T, E: From<String>>(&mut self, what: impl FnOnce(&mut State, &Sim) -> Result<T, E>) -> Result<T, E> {
        let _lock = lock(&self.folder)?;
        let path = self.folder.join("state.json");
        let found = State::read(&path).ok_or_else(|| format!("`{}` is gone", path.display()))?;
        self.read_log();
        let mut state = found.clone();
        let outcome = what(&mut state, self);
        if state != found {
            state.write(&path).map_err(|e| format!("`{}`: {e}", path.display()))?;
        }
        self.state = state;
        self.state_stamp = None;
        outcome
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    pub fn history(&self) -> &History {
        &self.history
    }

    /// The first card that is no display GPU.
    pub fn first_card(&self) -> usize {
        self.cards.iter().position(|c| c.key != "display").unwrap_or(0)
    }

    /// Seconds since anything first trained.
    pub fn elapsed_s(&self) -> Option<f64> {
        let first = self.history.first_train_ns?;
        Some(clock::now_ns().saturating_sub(first) as f64 / 1e9)
    }

    /// When a timed word of the scenario takes effect, in nanoseconds of the clock; none if it is not there or nothing trained yet.
    pub fn begins_ns(&self, word: &str) -> Option<u64> {
        let at_s = self.scenario.at_s(word)?;
        Some(self.history.first_train_ns? + (at_s * 1e9) as u64)
    }

    pub fn is_on(&self, word: &str) -> bool {
        self.scenario.is_on(word, self.elapsed_s())
    }

    /// Whether this card is lost by now: the scenario may name it, or mean all.
    pub fn is_lost(&self, card: usize) -> bool {
        self.is_on("lost") && self.scenario.value("lost").is_none_or(|named| named.parse() == Ok(card))
    }

    /// The driver, and the CUDA that it brings, as NVML numbers it.
    pub fn driver(&self) -> (String, i32) {
        let version = self.scenario.value("driver").unwrap_or("580.95.05").to_string();
        let major: u32 = version.split('.').next().and_then(|m| m.parse().ok()).unwrap_or(580);
        let cuda = match major {
            580.. => 13000,
            575.. => 12090,
            570.. => 12080,
            560.. => 12060,
            550.. => 12040,
            535.. => 12020,
            525.. => 12000,
            _ => 11080,
        };
        (version, cuda)
    }
}

/// Every user of the machine meets the same cards; whose file it is already has seen to it.
pub fn open_to_all(path: &Path) {
    let _ = std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666));
}

/// Once for each program of the scenario `lingers`: leave a child behind that keeps the streams open.
pub fn linger(program: &str) {
    let lingers = Scenario::from_environment().is_ok_and(|s| s.has("lingers"));
    let first = || std::fs::File::create_new(folder().join(format!("{program}.lingers"))).is_ok();
    if lingers && first() {
        // No part of the test that is going on, which looks for what it has left.
        let _ = std::process::Command::new("setsid").args(["sleep", "90"]).env_remove("COLLO_TEST_MARK").spawn();
    }
}

fn timed(scenario: &Scenario) -> Timed {
    Timed { throttle_s: scenario.at_s("throttle"), energy_reset_s: scenario.at_s("energy-reset") }
}

fn lock(folder: &Path) -> Result<Flock<std::fs::File>, String> {
    let path = folder.join("lock");
    let file = std::fs::File::options().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(|e| format!("`{}`: {e}", path.display()))?;
    open_to_all(&path);
    Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, e)| format!("`{}`: {e}", path.display()))
}
