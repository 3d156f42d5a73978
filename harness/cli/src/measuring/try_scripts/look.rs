//! The first look at a command: it is run alone, without being measured, until its lines of progress are found.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use collo_launch::environment::scrubbed;
use collo_launch::interrupted::{Noted, Stopped};
use collo_launch::{
    FoundProgress, LATE_S, OutputLine, OutputLines, Service, ServiceOrders, advice_for_failure, bar_without_terminal,
    find_progress,
};
use collo_quantity::number;
use collo_store::monotonic_ns;
use collo_text::{Diagnostic, Diagnostics, quoting, shown};

use super::files::{COMMAND, RUN_PATTERN, Script, command_script};

/// What is known of a command after its first look.
#[derive(Debug)]
pub struct FirstLook {
    pub progress: FoundProgress,
    /// From its start to the end of its first epoch, less an epoch, seconds.
    pub set_up_s: f64,
    /// Whether it ended by itself, with 0, and shows its progress until then.
    pub has_ended: bool,
    /// Whether it showed no progress and ended by itself, with 0: it is run again and again, and each run is a unit of work.
    pub is_repeated: bool,
}

impl FirstLook {
    /// The look at a command that showed no progress and ended by itself after this time.
    fn whole_run(took: Duration) -> FirstLook {
        let progress = FoundProgress {
            pattern: RUN_PATTERN.into(),
            preset: None,
            names_epochs: false,
            lines: Vec::new(),
            first_s: took.as_secs_f64(),
            last_s: took.as_secs_f64(),
            epochs_s: vec![took.as_secs_f64()],
        };
        FirstLook { progress, set_up_s: 0.0, has_ended: false, is_repeated: true }
    }

    /// A typical epoch, seconds.
    pub fn epoch_s(&self) -> f64 {
        let mut all = self.progress.epochs_s.clone();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(0.0)
    }

    /// What is measured, for messages: the unit of work and its typical duration.
    pub fn found(&self) -> String {
        if self.is_repeated {
            let about = number::duration(self.epoch_s());
            return format!(
                "it shows no progress and ends by itself: it is run again and again, and each whole run (about {about}), its start \
                 included, is a unit of work"
            );
        }
        let line = self.progress.lines.last().map_or("", |line| line.trim());
        format!("each line such as `{line}` ends {}", self.unit())
    }

    /// What ends with a line of progress.
    fn unit(&self) -> String {
        let what = if self.progress.names_epochs { "an epoch" } else { "a unit of work" };
        let part = match self.progress.is_within_epochs() {
            true => {
                ", a part of an epoch: what is done between epochs is in some units only; a longer `--for` waits for whole epochs"
            }
            false => "",
        };
        format!("{what} (about {}){part}", number::duration(self.epoch_s()))
    }
}

/// How often output is read: lines that are read together have one time.
const READ_EVERY: Duration = Duration::from_millis(1);
/// How often it is seen whether the command has ended.
const END_EVERY: Duration = Duration::from_millis(10);
/// How often progress is looked for in its output.
const SEARCH_EVERY: Duration = Duration::from_millis(300);
/// Lines of progress that are enough, after the first.
const ENOUGH: usize = 3;
/// Lines that are kept at most, the newest ones.
const MOST_LINES: usize = 20_000;
/// Bytes of output at most: what prints more of them prints no epochs.
const MOST_BYTES: u64 = 256 << 20;
/// Lines at the end in which a failure is looked for.
const LAST: usize = 30;
/// Shorter runs are no unit of work.
const SHORTEST_RUN: Duration = Duration::from_millis(100);
/// How long it may take to end.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Run a command for at most so long, on the GPU with this UUID if there is one; it goes on for a time after its first line of progress.
pub fn at(
    script: &Script,
    folder: &Path,
    gpu: Option<&str>,
    at_most: Duration,
    going_on: Duration,
) -> Result<FirstLook, Diagnostics> {
    let scratch = tempfile::tempdir()?;
    fs_err::write(scratch.path().join(COMMAND), command_script(folder, script, false)?)?;
    let places = ["out", "err"].map(|name| scratch.path().join(name));
    let [out, err] = &places;
    let streams = [Stream::new(out)?, Stream::new(err)?];
    let text = |path: &Path| Some(path.display().to_string());
    let mut env = scrubbed();
    env.insert("PYTHONUNBUFFERED".into(), Some("1".into()));
    env.insert("COLLO_LOOK_OUT".into(), text(out));
    env.insert("COLLO_LOOK_ERR".into(), text(err));
    env.insert("CUDA_VISIBLE_DEVICES".into(), Some(gpu.unwrap_or_default().into()));
    let redirected = format!("exec sh {COMMAND} >\"$COLLO_LOOK_OUT\" 2>\"$COLLO_LOOK_ERR\"");
    let orders = ServiceOrders {
        command: vec!["sh".into(), "-c".into(), redirected],
        folder: scratch.path().into(),
        env,
        log: scratch.path().join("log"),
        asked_to_end: None,
    };
    let noted = Noted::begin();
    noted.go_on().map_err(|stopped| ended_by(script, stopped))?;
    let (launched, launched_ns) = (Instant::now(), monotonic_ns());
    let mut service = Service::start(orders)
        .map_err(|e| Diagnostic::new(format!("{} does not start", script.named())).caused_by(e.to_string()).of_machine())?;
    let (lines, over) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let so_far = || lines.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let ended = std::thread::scope(|scope| {
        let _reading = Reading(&over);
        scope.spawn(|| read(streams, &lines, &over));
        let mut searched = launched;
        let ended: Result<_, Stopped> = loop {
            std::thread::sleep(END_EVERY);
            if let Some(end) = service.end() {
                break Ok(Some((end, launched.elapsed())));
            }
            if let Err(stopped) = noted.go_on() {
                break Err(stopped);
            }
            if searched.elapsed() < SEARCH_EVERY {
                continue;
            }
            searched = Instant::now();
            let is_flood = places.iter().any(|place| place.metadata().is_ok_and(|file| file.len() > MOST_BYTES));
            let searched_s = launched.elapsed().as_secs_f64();
            // What set-up printed is no progress once it has been silent for long, even if nothing else has been printed since.
            let best = find_progress(&so_far(), launched_ns).into_iter().find(|found| found.may_go_on_at(searched_s, LATE_S));
            // Steps may be shorter than the epochs that come after them, and where they name their epoch such epochs do come.
            let is_enough = best.is_some_and(|found| {
                let may_be_epochs = found.names_epochs || !found.is_within_epochs() && launched.elapsed() >= at_most / 4;
                // It would have to go on for another epoch if the time of a run ends within one.
                let longest_s = found.epochs_s.iter().copied().fold(0.0, f64::max);
                let may_end_s = found.first_s + going_on.as_secs_f64() + longest_s;
                found.epochs_s.len() >= ENOUGH && may_be_epochs && launched.elapsed().as_secs_f64() >= may_end_s
            });
            if is_enough || is_flood || launched.elapsed() >= at_most {
                break Ok(None);
            }
        };
        let looked_s = launched.elapsed().as_secs_f64();
        if !matches!(ended, Ok(Some(_))) {
            service.stop(TIMEOUT);
        }
        ended.map(|ended| (ended, looked_s))
    });
    let (ended, looked_s) = ended.map_err(|stopped| ended_by(script, stopped))?;
    let mut lines = lines.into_inner().unwrap_or_else(PoisonError::into_inner);
    lines.sort_by_key(|line: &OutputLine| line.at_ns);
    let failed = ended.as_ref().filter(|(end, _)| end.code != Some(0)).map(|(end, _)| end.text.as_str());
    // One that was stopped while it was silent may have been in an evaluation, but not for as long as the search would have gone on.
    let is_progress = |found: &FoundProgress| ended.is_some() || found.may_go_on_at(looked_s, going_on.as_secs_f64());
    let found = find_progress(&lines, launched_ns).into_iter().find(is_progress).filter(|_| failed.is_none());
    let progress = match (found, &ended) {
        (Some(progress), _) => progress,
        (None, Some((_, took))) if failed.is_none() && *took < SHORTEST_RUN => return Err(too_short(script, *took).into()),
        (None, Some((_, took))) if failed.is_none() => return Ok(FirstLook::whole_run(*took)),
        (None, _) => return Err(not_found(script, &lines, failed, launched.elapsed()).into()),
    };
    let look = FirstLook { progress, set_up_s: 0.0, has_ended: ended.is_some(), is_repeated: false };
    Ok(FirstLook { set_up_s: (look.progress.first_s - look.epoch_s()).max(0.0), ..look })
}

fn ended_by(script: &Script, stopped: Stopped) -> Diagnostic {
    stopped.error(format!("the first look at {} was stopped; no process is left", script.named()))
}

/// Why a command that shows no progress is not measured by its whole runs.
fn too_short(script: &Script, took: Duration) -> Diagnostic {
    let run = number::duration(took.as_secs_f64());
    let least = number::duration(SHORTEST_RUN.as_secs_f64());
    Diagnostic::new(format!("{}: it shows no progress, and a whole run takes only {run}", script.named())).hint(format!(
        "give it more work: below {least} it is mostly the start of its process that would be measured; if it trains in the \
             background, start it without `&`: processes that a command leaves running are ended with it"
    ))
}

/// Why a command cannot be measured.
fn not_found(script: &Script, lines: &[OutputLine], failed: Option<&str>, took: Duration) -> Diagnostic {
    let last = |n: usize| {
        let shown = lines.iter().filter(|line| !line.text.trim().is_empty()).rev().take(n);
        let mut shown: Vec<String> = shown.map(|line| format!("  │ {}", quoting::line(&line.text))).collect();
        shown.reverse();
        if shown.is_empty() { "it printed nothing".to_string() } else { format!("its last lines:\n{}", shown.join("\n")) }
    };
    let seconds = took.as_secs_f64();
    match failed {
        Some(how) => Diagnostic::new(format!("{}: {how} after {seconds:.1} s", script.named())).caused_by(last(5)).hint(
            advice_for_failure(lines.iter().rev().take(LAST).map(|line| line.text.as_str()))
                .unwrap_or("run it by hand in this folder first"),
        ),
        None => {
            let count = number::count(lines.len(), "line");
            let printed = format!("{}: no progress was found in the {count} that it printed in {seconds:.1} s", script.named());
            let bar = bar_without_terminal(lines.iter().map(|line| line.text.as_str()));
            Diagnostic::new(printed).caused_by(last(5)).hint(bar.unwrap_or(
                "print a line with the number of the epoch or of the step at the end of each, and flush it; if an epoch, or the whole \
                 script, takes longer than that, `--for 30m` looks longer; `[epochs]` of a workload has a pattern for other lines \
                 (`collo init`)",
            ))
        }
    }
}

/// Output is read until this is gone, also where the search panics: a scope waits for its threads.
struct Reading<'a>(&'a AtomicBool);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Read the streams until they are over, and then their rest.
fn read(mut streams: [Stream; 2], lines: &Mutex<Vec<OutputLine>>, over: &AtomicBool) {
    loop {
        let is_last = over.load(Ordering::Relaxed);
        let mut new = Vec::new();
        for stream in &mut streams {
            stream.read(&mut new, is_last);
        }
        let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.append(&mut new);
        let too_many = lines.len().saturating_sub(MOST_LINES);
        lines.drain(..too_many);
        drop(lines);
        if is_last {
            return;
        }
        std::thread::sleep(READ_EVERY);
    }
}

/// The output of one stream, in a file that grows.
struct Stream {
    file: File,
    lines: OutputLines,
}

impl Stream {
    fn new(path: &Path) -> Result<Stream, Diagnostic> {
        let cannot = |e: std::io::Error| {
            Diagnostic::new(format!("{} cannot be written", shown(path))).caused_by(e.to_string()).of_machine()
        };
        fs_err::File::create(path).map_err(cannot)?;
        Ok(Stream { file: collo_text::open_regular(path).map_err(cannot)?.into_file(), lines: OutputLines::default() })
    }

    /// Read what is new; the last time, the end of the output ends its last line.
    fn read(&mut self, lines: &mut Vec<OutputLine>, is_last: bool) {
        let mut piece = [0; 1 << 16];
        while let Ok(n) = self.file.read(&mut piece)
            && n > 0
        {
            let mut pass = |text: &str, at_ns: u64| lines.push(OutputLine { at_ns, text: text.to_string() });
            self.lines.take(&piece[..n], monotonic_ns(), &mut pass);
            lines.drain(..lines.len().saturating_sub(MOST_LINES));
        }
        let mut pass = |text: &str, at_ns: u64| lines.push(OutputLine { at_ns, text: text.to_string() });
        match is_last {
            true => self.lines.end(&mut pass),
            false => self.lines.settle(monotonic_ns(), &mut pass),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_ends_where_the_search_panics() {
        let over = AtomicBool::new(false);
        let searched = std::panic::catch_unwind(|| {
            let _reading = Reading(&over);
            std::panic::resume_unwind(Box::new("a search"));
        });
        assert!(searched.is_err() && over.into_inner());
    }

    #[test]
    fn a_command_without_progress_that_does_not_end_is_refused_with_its_last_lines_and_what_to_print() {
        let script = Script { name: "a".into(), text: "python3 a.py".into(), count: 2 };
        let lines = ["loading", "ready"].map(|text| OutputLine { at_ns: 0, text: text.into() });
        let refusal = Diagnostics::from(not_found(&script, &lines, None, Duration::from_secs(45)));
        insta::assert_snapshot!(refusal, @r"
        error: `python3 a.py`: no progress was found in the 2 lines that it printed in 45.0 s
          caused by: its last lines:
              │ loading
              │ ready
        hint: print a line with the number of the epoch or of the step at the end of each, and flush it; if an epoch, or the whole script, takes longer than that, `--for 30m` looks longer; `[epochs]` of a workload has a pattern for other lines (`collo init`)
        ");
    }
}
