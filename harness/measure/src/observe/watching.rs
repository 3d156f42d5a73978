//! Runs the observer of a group: starts it before `go`, looks after it, and ends it after the last measured epoch.
//!
//! In: who watches, and the members' processes. Out: an [`ObserverRecord`], or early the reason why the run has no number. An observer
//! runs under a supervisor as members do, so nothing of it outlives the run, nor collo. What it writes is measured in bytes and removed.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use collo_store::{COLLO_SAMPLES, DaemonCost, ObserverOutcome, ObserverRecord, Outcome, monotonic_ns, observer_name};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::Signal;
use nix::sys::statvfs::statvfs;
use nix::sys::time::TimeValLike;

use super::daemons::{after, daemons};
use super::written::{MOST_FILES, has_file, size_of, unlinked_bytes};
use super::{MemberState, Scene, failure_log};
use collo_device::services::{DCGMI, HOST_ENGINE};
use collo_launch::{Live, Service, ServiceEnd, ServiceOrders, tree};
use collo_plan::observer::{Observer, Place};
use collo_prepare::observer_spec::{OBSERVER_FOLDER, ObserverSpec};
use collo_sample::peak_rss_bytes;

/// Time to end after SIGTERM, once it did not end by its own signal.
const AFTER_TERM: Duration = Duration::from_secs(3);
/// Time for its supervisor to kill what is left.
const KILL: Duration = Duration::from_secs(15);
/// Less than this is left free for what the run itself still has to write.
const LEAST_FREE_BYTES: u64 = 1 << 30;
const LOOK: Duration = Duration::from_millis(10);
/// What it prints, unless it is told to write elsewhere.
const OUTPUT: &str = "output";

/// How the members ended, as an observer needs it.
pub struct EndOfMembers<'a> {
    /// By member, when its last measured epoch ended.
    pub done_ns: &'a [Option<u64>],
    /// By member: it was killed, with everything around and inside it.
    pub killed: &'a [bool],
    pub completed: bool,
}

/// The observer of a run, from its first to its last process.
pub struct Watching {
    spec: ObserverSpec,
    /// Its folder by the descriptor of the run's: its name may lead elsewhere before it ends.
    inside: PathBuf,
    tools: Vec<Tool>,
    commands: Vec<Vec<String>>,
    from_ns: Option<u64>,
    to_ns: Option<u64>,
    peak_rss_bytes: Option<u64>,
    daemons: Vec<DaemonCost>,
    collo_cpu_s: Option<f64>,
    failed: Option<ObserverOutcome>,
    killed: bool,
}

/// One of its processes, with everything below.
struct Tool {
    /// `None` once it was ended.
    service: Option<Service>,
    /// The file with what it prints.
    log: String,
    /// The member that it is for; `None` if it is for all.
    member: Option<usize>,
    ended: Option<ServiceEnd>,
    /// Its end was seen before, while those it watches went on.
    missed: bool,
}

impl Watching {
    /// Nothing runs yet. `run`: the run's folder by its descriptor. `alone`: nobody else uses collo's processor time in this process.
    pub fn of(spec: ObserverSpec, run: &Path, alone: bool) -> Watching {
        Watching {
            spec,
            inside: run.join(OBSERVER_FOLDER),
            tools: Vec::new(),
            commands: Vec::new(),
            from_ns: None,
            to_ns: None,
            peak_rss_bytes: None,
            daemons: Vec::new(),
            collo_cpu_s: alone.then(own_cpu_s).flatten(),
            failed: None,
            killed: false,
        }
    }

    /// Make the folder that it writes in; before members are started, because those around and inside them write there, too.
    pub fn make_room(&mut self) {
        if self.spec.observe.tool().is_some()
            && let Err(e) = fs_err::create_dir_all(&self.inside)
        {
            self.failed = Some(ObserverOutcome::NotStarted { reason: e.to_string() });
        }
    }

    /// All members are ready: start what runs beside them. `pids`: of their processes, each once; one for all `members` that are
    /// threads of one. The error is why the run cannot be watched.
    pub fn begin(&mut self, pids: &[u32], members: usize) -> Result<(), String> {
        self.daemons = daemons(&self.services());
        if let Some(tool) = self.spec.tool_at(Place::Beside).cloned() {
            let started = match tool.is_for_each() {
                // Of members that share a process it watches all.
                true if pids.len() < members => self.start(&tool, pids, Some(0), None),
                true => (0..pids.len()).try_for_each(|m| self.start(&tool, &pids[m..=m], Some(m), Some(m))),
                false => self.start(&tool, pids, None, None),
            };
            if let Err(e) = started {
                self.failed = Some(ObserverOutcome::NotStarted { reason: e.to_string() });
            }
        }
        self.from_ns = Some(monotonic_ns());
        self.reason()
    }

    /// Names of the processes that work for it.
    fn services(&self) -> Vec<String> {
        match self.spec.observe.tool() {
            Some(tool) => tool.daemons.clone(),
            // Its own sampling has one where it reads through DCGM.
            None if self.spec.is_sampled_by_collo() => {
                let reads =
                    tree::descendants(std::process::id()).into_iter().any(|pid| tree::name_of(pid).as_deref() == Some(DCGMI));
                if reads { vec![HOST_ENGINE.to_string()] } else { Vec::new() }
            }
            None => Vec::new(),
        }
    }

    /// Start one that is the `number`th for these processes, for as long as `member` trains; or all of them.
    fn start(&mut self, tool: &Observer, pids: &[u32], number: Option<usize>, member: Option<usize>) -> std::io::Result<()> {
        let room = self.spec.room(pids, number);
        let command = self.spec.command(tool, &room);
        let log = number.map_or_else(|| OUTPUT.to_string(), |number| format!("{OUTPUT}-{number}"));
        let service = Service::start(ServiceOrders {
            command: command.clone(),
            folder: self.spec.folder.clone(),
            env: tool.variables_in(&room),
            log: self.inside.join(&log),
            asked_to_end: None,
        })?;
        self.commands.push(command);
        self.tools.push(Tool { service: Some(service), log, member, ended: None, missed: false });
        Ok(())
    }

    /// Whether it still watches: called a few times a second. `over`: by member, its measured epochs are over, or it is gone. The error
    /// is why the run has no number.
    pub fn look(&mut self, over: &[bool]) -> Result<(), String> {
        let Some(tool) = self.spec.observe.tool() else { return Ok(()) };
        // What runs around the members writes most when they have ended.
        let writes = self.to_ns.is_none() || tool.place == Place::Around;
        if !writes || self.failed.is_some() {
            return Ok(());
        }
        self.read_memory();
        if let Some(reason) = self.too_much() {
            // It goes on writing until it is killed.
            self.tools.iter_mut().for_each(|tool| tool.kill());
            self.failed = Some(ObserverOutcome::WroteTooMuch { reason });
            return self.reason();
        }
        for tool in &mut self.tools {
            let is_over = match tool.member {
                Some(member) => over.get(member).copied().unwrap_or(true),
                None => over.iter().all(|over| *over),
            };
            let Some(end) = tool.poll().filter(|_| !is_over) else { continue };
            // Whoever watches a process ends with it, and its end may be known a moment before that of the process.
            if std::mem::replace(&mut tool.missed, true) {
                self.failed = Some(ObserverOutcome::EndedEarly { reason: end.text });
            }
        }
        self.reason()
    }

    /// The last measured epoch is over, and everybody is still there: ask it to end, without waiting.
    pub fn ask_to_end(&mut self) {
        if self.from_ns.is_none() || self.to_ns.is_some() {
            return;
        }
        self.read_memory();
        self.to_ns = Some(monotonic_ns());
        self.daemons = after(&self.daemons);
        let Some(tool) = self.spec.observe.tool() else { return };
        let signal = tool.stop.signal();
        self.tools.iter_mut().filter_map(|tool| tool.service.as_mut()).for_each(|service| service.signal(signal));
    }

    /// End it, by force if necessary, measure and remove what it wrote.
    pub fn end(mut self, EndOfMembers { done_ns, killed, completed }: EndOfMembers<'_>, at_once: bool) -> ObserverRecord {
        self.ask_to_end();
        let place = self.spec.observe.tool().map(|tool| tool.place);
        let patience = self.spec.observe.tool().map(|tool| tool.stop_timeout).filter(|_| !at_once).unwrap_or_default();
        self.wait(patience);
        if !at_once && !self.is_over() {
            self.tools.iter_mut().filter_map(|tool| tool.service.as_mut()).for_each(|service| service.signal(Signal::SIGTERM));
            self.wait(AFTER_TERM);
        }
        // Whoever runs around or inside the members ends with them, and is killed with them: it may have had more to write.
        let beside = place.is_none_or(|place| place == Place::Beside);
        self.killed = !self.is_over() || (!beside && killed.contains(&true));
        self.tools.iter_mut().for_each(Tool::kill);
        for tool in &self.tools {
            let done_ns = match tool.member {
                Some(member) => done_ns.get(member).copied().flatten(),
                None => done_ns.iter().copied().flatten().max(),
            };
            let end_ns = tool.ended.as_ref().and_then(|end| end.at_ns);
            if let (Some(end), Some(done_ns), None) = (end_ns, done_ns, &self.failed)
                && end < done_ns
            {
                let text = tool.ended.as_ref().map(|end| end.text.clone()).unwrap_or_default();
                self.failed = Some(ObserverOutcome::EndedEarly { reason: text });
            }
        }
        let (tool, folder) = (self.spec.observe.tool().cloned(), self.inside.clone());
        if let (Some(reason), None) = (self.too_much(), &self.failed) {
            self.failed = Some(ObserverOutcome::WroteTooMuch { reason });
        }
        let written = tool.as_ref().and_then(|_| size_of(&folder));
        if completed && self.failed.is_none() && !beside && (written == Some(0) || self.has_no_word_of_one(killed)) {
            self.failed = Some(ObserverOutcome::WroteNothing);
        }
        let whole = if self.killed { ObserverOutcome::Killed } else { ObserverOutcome::Watched };
        let outcome = match self.failed.take() {
            Some(failed) => failed,
            None if completed => whole,
            None => ObserverOutcome::NotTold,
        };
        let cpu_time_s = self.tools.iter().map(|tool| tool.ended.as_ref()?.cpu_time_s).sum::<Option<f64>>();
        let record = ObserverRecord {
            name: self.spec.observe.label(),
            place: tool.as_ref().map(|tool| tool.place.as_str().to_string()),
            kind: self.spec.observe.kind().map(str::to_string),
            disturbs: tool.as_ref().and_then(|tool| tool.disturbs.clone()),
            log_tail: if outcome.is_whole() { Vec::new() } else { self.last_words() },
            outcome,
            from_ns: self.from_ns,
            to_ns: self.to_ns,
            ended_ns: self.tools.iter().map(|tool| tool.ended.as_ref()?.at_ns).max().flatten(),
            cpu_time_s: cpu_time_s.filter(|_| !self.tools.is_empty()),
            peak_rss_bytes: self.peak_rss_bytes,
            bytes_written: written,
            daemons: std::mem::take(&mut self.daemons),
            collo_cpu_time_s: self.collo_cpu_s.and_then(|before| Some((own_cpu_s()? - before).max(0.0))),
            commands: std::mem::take(&mut self.commands),
        };
        if tool.is_some() {
            // What cannot be removed is not stored with the run, which would be refused: that is told by whoever commits it.
            let _ = fs_err::remove_dir_all(&folder);
        }
        record
    }

    fn reason(&self) -> Result<(), String> {
        let name = self.spec.observe.label();
        self.failed.as_ref().map_or(Ok(()), |failed| Err(format!("observer `{name}` {}", failed.text())))
    }

    fn is_over(&mut self) -> bool {
        self.tools.iter_mut().all(|tool| tool.poll().is_some())
    }

    fn wait(&mut self, patience: Duration) {
        let deadline = Instant::now() + patience;
        while !self.is_over() && Instant::now() < deadline {
            std::thread::sleep(LOOK);
        }
    }

    /// Memory of all its processes, as far as they are still there.
    fn read_memory(&mut self) {
        let sum = self.pids().filter_map(peak_rss_bytes).fold(None, |sum: Option<u64>, bytes| Some(sum.unwrap_or(0) + bytes));
        self.peak_rss_bytes = self.peak_rss_bytes.max(sum);
    }

    /// Its processes, as far as they are still there.
    fn pids(&self) -> impl Iterator<Item = u32> {
        let supervisors = self.tools.iter().filter_map(|tool| tool.service.as_ref()).map(Service::supervisor);
        supervisors.flat_map(tree::descendants)
    }

    /// Why it may not go on writing.
    fn too_much(&self) -> Option<String> {
        let most = self.spec.observe.tool()?.most_bytes;
        let Some(written) = size_of(&self.inside) else { return Some(format!("more than {MOST_FILES} files")) };
        let written = written + unlinked_bytes(&self.inside, self.pids());
        if written > most {
            return Some(format!("{written} bytes, `most` allows {most}"));
        }
        let disk = statvfs(&self.inside).ok()?;
        let free = disk.blocks_available() as u64 * disk.fragment_size() as u64;
        // A disk that was as full before is not its doing.
        (free < LEAST_FREE_BYTES && written > 0 && free < written)
            .then(|| format!("{written} bytes, and {free} are left on the disk"))
    }

    /// True if it writes for each member by name, and nothing of one is there: its epochs are those of a member that nobody watched. Of
    /// one that was killed there may have been no time for a word.
    fn has_no_word_of_one(&self, killed: &[bool]) -> bool {
        let Some(tool) = self.spec.observe.tool() else { return false };
        killed.iter().enumerate().filter(|(_, killed)| !**killed).any(|(member, _)| {
            let room = self.spec.room(&[], Some(member));
            tool.files_of_member(&room).is_some_and(|start| !has_file(&start))
        })
    }

    fn last_words(&self) -> Vec<String> {
        let logs = self.tools.iter().map(|tool| self.inside.join(&tool.log));
        logs.map(|log| failure_log::tail(&log)).find(|lines| !lines.is_empty()).unwrap_or_default()
    }
}

impl Scene<'_> {
    /// Start whoever watches; the reason if that fails.
    pub(super) fn begin_watching(&mut self) -> Option<String> {
        let pid = |seat: &MemberState| seat.hello.as_ref().map(|hello| hello.pid).or(seat.pid).unwrap_or_default();
        let mut pids: Vec<u32> = self.watch.seats.iter().map(pid).collect();
        let members = pids.len();
        // Members that are threads of one process are one to whoever looks at processes.
        pids.dedup();
        self.watching.as_mut()?.begin(&pids, members).err()
    }

    /// Why nobody watches any more who should.
    pub(super) fn unwatched(&mut self) -> Option<String> {
        let over: Vec<bool> = self.watch.seats.iter().map(|seat| seat.done || seat.ended.is_some()).collect();
        self.watching.as_mut()?.look(&over).err()
    }

    /// End whoever watches. A run that was not watched to its end is no measurement of it.
    pub(super) fn end_watching(&mut self, at_once: bool) -> Option<ObserverRecord> {
        let last = |seat: &MemberState| seat.epochs.iter().filter(|epoch| epoch.measured).map(|epoch| epoch.end_ns).max();
        let done_ns: Vec<Option<u64>> = self.watch.seats.iter().map(last).collect();
        let completed = self.watch.outcome() == Outcome::Completed;
        let was_killed = |seat: &MemberState| match seat.ended.as_ref().map(|ended| &ended.live) {
            Some(Live::WithProcess(how)) => **how == Live::Killed(9),
            live => live == Some(&Live::Killed(9)),
        };
        let killed: Vec<bool> = self.watch.seats.iter().map(was_killed).collect();
        let members = EndOfMembers { done_ns: &done_ns, killed: &killed, completed };
        let record = self.watching.take()?.end(members, at_once);
        if completed && !record.outcome.is_whole() {
            let reason = format!("observer `{}` {}", record.name, record.outcome.text());
            self.watch.was_unwatched(reason);
        }
        Some(record)
    }
}

impl Tool {
    /// `None` while it runs; afterwards, how it ended.
    fn poll(&mut self) -> Option<ServiceEnd> {
        if self.ended.is_none() {
            self.ended = self.service.as_mut().and_then(Service::end);
        }
        self.ended.clone()
    }

    fn kill(&mut self) {
        if let Some(service) = self.service.take() {
            let end = service.kill(KILL);
            self.ended = self.ended.take().or(end);
        }
    }
}

/// CPU time of collo's own process so far, all its threads.
fn own_cpu_s() -> Option<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    Some((usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 / 1e6)
}

/// Complete what only a finished run tells of collo's own sampling: the size of its samples.
pub fn with_samples(record: &mut ObserverRecord, run: &Path) {
    if observer_name(&record.name) == COLLO_SAMPLES {
        let files = std::fs::read_dir(run).into_iter().flatten().flatten();
        let samples = files.filter(|file| file.file_name().to_string_lossy().starts_with("samples"));
        record.bytes_written = Some(samples.filter_map(|file| Some(file.metadata().ok()?.len())).sum());
    }
}
