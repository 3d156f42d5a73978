//! The first look at a command: it is run alone, without being measured, until its lines of progress are found.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use collo_launch::interrupted::{Noted, Stopped};
use collo_launch::{FoundProgress, OutputLine, OutputLines, Service, ServiceOrders, find_progress};
use collo_store::monotonic_ns;
use collo_text::{Diagnostic, Diagnostics, quoting, shown};

use super::files::{COMMAND, Script};

/// What is known of a command after its first look.
#[derive(Debug)]
pub struct FirstLook {
    pub progress: FoundProgress,
    /// From its start to the end of its first epoch, less an epoch, seconds.
    pub set_up_s: f64,
    /// How it ended, if it did so by itself.
    pub ended: Option<String>,
}

impl FirstLook {
    /// A typical epoch, seconds.
    pub fn epoch_s(&self) -> f64 {
        let mut all = self.progress.epochs_s.clone();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(0.0)
    }

    /// What ends with a line of progress.
    pub fn unit(&self) -> String {
        let what = if self.progress.names_epochs { "an epoch" } else { "a unit of work" };
        format!("{what}, of about {}", collo_quantity::number::duration(self.epoch_s()))
    }
}

/// How often new output is looked for.
const EVERY: Duration = Duration::from_millis(20);
/// How often progress is looked for in it.
const SEARCH_EVERY: Duration = Duration::from_millis(500);
/// Lines of progress that are enough, after the first.
const ENOUGH: usize = 3;
/// Lines that are kept at most, the newest ones; and pieces of output that are read in a row.
const MOST_LINES: usize = 20_000;
const MOST_PIECES: u32 = 64;
/// How long it may take to end.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Run a command for at most so long.
pub fn at(script: &Script, folder: &Path, on_gpu: bool, at_most: Duration) -> Result<FirstLook, Diagnostics> {
    let scratch = tempfile::tempdir()?;
    let (out, err) = (scratch.path().join("out"), scratch.path().join("err"));
    let mut streams = [Stream::new(&out)?, Stream::new(&err)?];
    let text = |path: &Path| Some(path.display().to_string());
    let mut env = std::collections::BTreeMap::from([
        ("PYTHONUNBUFFERED".to_string(), Some("1".to_string())),
        ("COLLO_LOOK_OUT".to_string(), text(&out)),
        ("COLLO_LOOK_ERR".to_string(), text(&err)),
    ]);
    if !on_gpu {
        env.insert("CUDA_VISIBLE_DEVICES".into(), Some(String::new()));
    }
    let redirected = format!("exec sh {COMMAND} >\"$COLLO_LOOK_OUT\" 2>\"$COLLO_LOOK_ERR\"");
    let orders = ServiceOrders {
        command: vec!["sh".into(), "-c".into(), redirected],
        folder: folder.into(),
        env,
        log: scratch.path().join("log"),
        asked_to_end: None,
    };
    let noted = Noted::begin();
    noted.go_on().map_err(|stopped| ended_by(script, stopped))?;
    let (launched, launched_ns) = (Instant::now(), monotonic_ns());
    let mut service = Service::start(orders)
        .map_err(|e| Diagnostic::new(format!("{} does not start", script.named())).caused_by(e.to_string()).of_machine())?;
    let mut lines = Vec::new();
    let mut searched = launched;
    let (ended, code) = loop {
        std::thread::sleep(EVERY);
        let end = service.end();
        streams.iter_mut().for_each(|stream| stream.read(&mut lines));
        lines.drain(..lines.len().saturating_sub(MOST_LINES));
        if let Some(end) = end {
            streams.iter_mut().for_each(|stream| stream.finish(&mut lines));
            break (Some(end.text), end.code);
        }
        if let Err(stopped) = noted.go_on() {
            service.stop(TIMEOUT);
            return Err(ended_by(script, stopped).into());
        }
        let is_over = launched.elapsed() >= at_most;
        if searched.elapsed() >= SEARCH_EVERY || is_over {
            searched = Instant::now();
            let best = find_progress(&lines, launched_ns).into_iter().next();
            // Steps may be shorter than the epochs that come after them.
            let is_enough = best
                .is_some_and(|found| found.epochs_s.len() >= ENOUGH && (found.names_epochs || launched.elapsed() >= at_most / 4));
            if is_enough || is_over {
                service.stop(TIMEOUT);
                break (None, None);
            }
        }
    };
    lines.sort_by_key(|line: &OutputLine| line.at_ns);
    let took = launched.elapsed();
    let Some(progress) = find_progress(&lines, launched_ns).into_iter().next() else {
        return Err(not_found(script, &lines, ended.as_deref(), code, took).into());
    };
    let first = progress.lines.first().and_then(|first| lines.iter().find(|line| line.text == *first));
    let first_s = first.map_or(0.0, |line| line.at_ns.saturating_sub(launched_ns) as f64 / 1e9);
    let look = FirstLook { progress, set_up_s: 0.0, ended };
    Ok(FirstLook { set_up_s: (first_s - look.epoch_s()).max(0.0), ..look })
}

fn ended_by(script: &Script, stopped: Stopped) -> Diagnostic {
    Diagnostic::new(format!("the first look at {} was stopped; no process is left", script.named()))
        .caused_by(stopped)
        .of(stopped.class())
}

/// Why a command cannot be measured.
fn not_found(script: &Script, lines: &[OutputLine], ended: Option<&str>, code: Option<i32>, took: Duration) -> Diagnostic {
    let last = |n: usize| {
        let shown = lines.iter().filter(|line| !line.text.trim().is_empty()).rev().take(n);
        let mut shown: Vec<String> = shown.map(|line| format!("  │ {}", quoting::line(&line.text))).collect();
        shown.reverse();
        if shown.is_empty() { "it printed nothing".to_string() } else { format!("its last lines:\n{}", shown.join("\n")) }
    };
    let seconds = took.as_secs_f64();
    match ended {
        Some(how) if code != Some(0) => Diagnostic::new(format!("{}: {how} after {seconds:.1} s", script.named()))
            .caused_by(last(5))
            .hint("run it by hand in this folder first"),
        _ => {
            let count = collo_quantity::number::count(lines.len(), "line");
            let printed = format!("{}: no progress is found in the {count} that it printed in {seconds:.1} s", script.named());
            Diagnostic::new(printed).caused_by(last(5)).hint(
                "print a line with the number of the epoch or of the step at the end of each, and flush it; if an epoch takes longer \
                 than that, `--for 30m` looks longer; `[epochs]` of a workload has a pattern for other lines (`collo init`)",
            )
        }
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

    /// Read what is new.
    fn read(&mut self, lines: &mut Vec<OutputLine>) {
        let mut piece = [0; 1 << 16];
        let mut pass = |text: &str, at_ns: u64| lines.push(OutputLine { at_ns, text: text.to_string() });
        let mut pieces = 0;
        while let Ok(n) = self.file.read(&mut piece)
            && n > 0
            && pieces < MOST_PIECES
        {
            self.lines.take(&piece[..n], monotonic_ns(), &mut pass);
            pieces += 1;
        }
        self.lines.settle(monotonic_ns(), &mut pass);
    }

    /// Read the rest: the output has ended.
    fn finish(&mut self, lines: &mut Vec<OutputLine>) {
        self.read(lines);
        self.lines.end(&mut |text, at_ns| lines.push(OutputLine { at_ns, text: text.to_string() }));
    }
}
