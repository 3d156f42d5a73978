//! The `[epochs]` adapter: measures a foreign script without edits, through the lines that it prints.
//!
//! It runs in the supervisor, which speaks the protocol on the script's behalf: an epoch ends when its line arrives, and began
//! as long before as its line gives, or where the one before ended. Such a member has no barrier and cannot be kept waiting. Whether a
//! line can be true is judged here alone.

mod numbering;
mod printed;
mod shortfall;

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::protocol::{OUTPUT, shorten};
use collo_plan::goal::EpochGoal;
use collo_plan::workload::adapters::{self, Preset};
use numbering::{Follows, Numbering};
use printed::PrintedDuration;
use shortfall::Unmatched;

/// The workload's `[epochs]` table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adapter {
    /// A regular expression over output lines, with the groups that `docs/guide/workloads.md` lists, each optional. Of consecutive
    /// lines with the same `epoch` or `step` the first counts.
    pub pattern: String,
    /// The name of the preset that the pattern is, if it is one.
    pub preset: Option<String>,
    /// Items in an epoch, if known.
    pub items: Option<u64>,
    /// How long it is to measure.
    #[serde(flatten)]
    pub goal: EpochGoal,
    /// Whether what it trains beyond that is measured, too: which of it counts is decided by what its neighbours did.
    pub measures_on: bool,
}

/// A line is read when the supervisor gets to it, and a delay of one line (a busy machine, a log on a slow disk) moves it nearer
/// to the next. The seconds are the script's own and not affected; this much they may seem to overlap.
const LATE_S: f64 = 0.5;

/// A script may measure by a clock that is being adjusted: at most 500 parts in a million (adjtimex(2)).
const CLOCKS_DIFFER: f64 = 0.001;

/// Lines that are read within this time were printed together: several writes of one loop over what was kept back.
const AT_ONCE_NS: u64 = 1_000_000;

/// A script without a match for so long is reported, and again after twice that time, and so on.
const SILENT_NS: u64 = 30_000_000_000;

/// The end of a bar of tqdm: `[00:01<00:03,  9.87it/s, loss=0.5]`, or without a total `[00:01, 9.87it/s]`. A bar has no end of line, so
/// what is logged next stands behind it. `format_meter` and `format_interval` in tqdm/std.py, tqdm 4.67.1.
static BAR: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\[(?:\d+:)?\d\d:\d\d(?:<[^\]]*|, [^\]]*/[^\]]*)\] *").ok());

/// What stands behind a bar on its line, if anything does.
pub fn behind_bar(line: &str) -> Option<&str> {
    let bar = BAR.as_ref()?.find_iter(line).last()?;
    Some(&line[bar.end()..]).filter(|behind| !behind.is_empty())
}

/// Turns output lines into `epoch` and `done` messages.
pub struct Translator {
    pattern: Regex,
    preset: Option<&'static Preset>,
    items: Option<u64>,
    goal: EpochGoal,
    measures_on: bool,
    started_ns: u64,
    last_end_ns: u64,
    /// By how much the lines so far came later than their durations allow, seconds.
    late_s: f64,
    last: Option<String>,
    numbering: Numbering,
    /// An epoch if the next line is as far from it.
    unconfirmed: Option<EndedEpoch>,
    seen: u32,
    /// The epochs that it takes, by the newest line.
    wanted: u32,
    /// The start of the first measured epoch.
    measured_from_ns: Option<u64>,
    is_done: bool,
    /// It printed something impossible: nothing more is read from it.
    wrong: bool,
    /// Until a line matches.
    unmatched: Option<Unmatched>,
    report_at_ns: u64,
}

/// An epoch as its line has it.
#[derive(Debug, Clone, Copy)]
struct EndedEpoch {
    start_ns: u64,
    end_ns: u64,
    loss: Option<f64>,
}

/// What a line calls the epoch that it ends.
struct EpochName<'a> {
    noun: &'static str,
    text: Option<&'a str>,
}

impl<'a> EpochName<'a> {
    fn find(found: &Captures<'a>) -> Self {
        match (found.name("epoch"), found.name("step")) {
            (None, Some(step)) => EpochName { noun: "step", text: Some(step.as_str()) },
            (epoch, _) => EpochName { noun: "epoch", text: epoch.map(|epoch| epoch.as_str()) },
        }
    }

    fn number(&self) -> Option<u64> {
        self.text?.parse().ok()
    }
}

impl Translator {
    /// The pattern was checked when the workload was read; an error is only passed on.
    pub fn new(adapter: &Adapter, started_ns: u64) -> Result<Self, regex::Error> {
        let preset = adapter.preset.as_deref().and_then(adapters::preset);
        Ok(Translator {
            pattern: Regex::new(&adapter.pattern)?,
            preset,
            items: adapter.items,
            goal: adapter.goal,
            measures_on: adapter.measures_on,
            started_ns,
            last_end_ns: started_ns,
            late_s: 0.0,
            last: None,
            // A preset's epochs are epochs, and never several in one.
            numbering: Numbering::new(preset.is_some()),
            unconfirmed: None,
            seen: 0,
            wanted: adapter.goal.epochs,
            measured_from_ns: None,
            is_done: false,
            wrong: false,
            unmatched: Some(Unmatched::new(&adapter.pattern)),
            report_at_ns: started_ns.saturating_add(SILENT_NS),
        })
    }

    /// The messages that a line translates to, whose text was complete at `at_ns`.
    pub fn line(&mut self, line: &str, at_ns: u64) -> Vec<Value> {
        if self.wrong {
            return Vec::new();
        }
        let Some((found, line)) = self.find(line) else {
            if let Some(unmatched) = &mut self.unmatched {
                unmatched.add(line);
            }
            return Vec::new();
        };
        self.unmatched = None;
        let name = EpochName::find(&found);
        if name.text.is_some() && name.text == self.last.as_deref() {
            return Vec::new(); // progress bars repeat it
        }
        let loss = found.name("loss").and_then(|l| l.as_str().parse::<f64>().ok()).filter(|l| l.is_finite());
        let printed = PrintedDuration::find(&found, line);
        // Where no line has the duration of the first epoch it has the script's start in it, and may not be the only one.
        self.wanted = if printed.is_none() { self.goal.epochs.max(2) } else { self.goal.epochs };
        let ended = match printed {
            Some(printed) => self.timed(printed, &name, at_ns, loss),
            None => self.untimed(&name, at_ns, loss),
        };
        match ended {
            Ok(ended) => {
                self.last = name.text.map(str::to_string);
                self.last_end_ns = at_ns;
                ended.into_iter().flat_map(|epoch| self.messages(epoch)).collect()
            }
            // What it prints when it has shown enough does not matter; no epoch spans the line that is left out.
            Err(_) if self.is_done => {
                self.wrong = true;
                Vec::new()
            }
            Err(message) => {
                self.wrong = true;
                vec![json!({"event": "error", "kind": OUTPUT, "message": message})]
            }
        }
    }

    /// A report if no line has matched for long.
    pub fn wait(&mut self, now_ns: u64) -> Option<Value> {
        if self.unmatched.is_none() || now_ns < self.report_at_ns {
            return None;
        }
        self.report_at_ns = now_ns.saturating_add(now_ns.saturating_sub(self.started_ns));
        Some(self.shortfall())
    }

    /// The messages at the end of a script; `ended_well` if it ended with 0 by itself.
    pub fn end(&mut self, ended_well: bool) -> Vec<Value> {
        if self.wrong {
            return Vec::new();
        }
        let last = self.unconfirmed.take();
        let mut messages: Vec<Value> = last.into_iter().flat_map(|epoch| self.messages(epoch)).collect();
        if ended_well && !self.is_done {
            messages.push(self.shortfall());
        }
        messages
    }

    /// The match in a line, or in what stands behind a bar on it.
    fn find<'a>(&self, line: &'a str) -> Option<(Captures<'a>, &'a str)> {
        let whole = self.pattern.captures(line).map(|found| (found, line));
        whole.or_else(|| {
            let behind = behind_bar(line)?;
            self.pattern.captures(behind).map(|found| (found, behind))
        })
    }

    /// `epoch`, and `done` if it was the last one that is wanted.
    fn messages(&mut self, EndedEpoch { start_ns, end_ns, loss }: EndedEpoch) -> Vec<Value> {
        let index = self.seen;
        self.seen += 1;
        let measured = (!self.is_done || self.measures_on) && (index > 0 || self.wanted == 1);
        if measured {
            self.measured_from_ns.get_or_insert(start_ns);
        }
        let epoch = json!({"event": "epoch", "index": index, "measured": measured, "items": self.items,
            "start_ns": start_ns, "end_ns": end_ns, "loss": loss});
        let mut messages = vec![epoch];
        let is_long = self.measured_from_ns.is_some_and(|from| end_ns.saturating_sub(from) >= self.goal.measure_for_ns);
        if !self.is_done && self.seen >= self.wanted && is_long {
            self.is_done = true;
            messages.push(json!({"event": "done"}));
        }
        messages
    }

    /// What its output lacks, in a sentence.
    fn shortfall(&self) -> Value {
        let measured_ns = self.measured_from_ns.map_or(0, |from| self.last_end_ns.saturating_sub(from));
        let mut text = match &self.unmatched {
            Some(unmatched) => unmatched.text(self.preset.map(|preset| preset.name)),
            None if self.seen < self.wanted => format!("{} of {} epochs: let it train longer", self.seen, self.wanted),
            None => {
                let (is, wanted) = (measured_ns as f64 / 1e9, self.goal.measure_for_ns as f64 / 1e9);
                format!("{is:.1} s of {wanted:.1} s of measured epochs: let it train longer")
            }
        };
        if let Some(preset) = self.preset {
            text.push_str(&format!("; `{}` requires: {}", preset.name, preset.condition));
        }
        let newest: Vec<&String> = self.unmatched.iter().flat_map(Unmatched::newest).collect();
        json!({"event": "shortfall", "message": text, "newest": newest})
    }

    /// The epoch of a line that has its duration, or why that is impossible.
    fn timed(
        &mut self,
        printed: Result<PrintedDuration, String>,
        name: &EpochName<'_>,
        at_ns: u64,
        loss: Option<f64>,
    ) -> Result<Vec<EndedEpoch>, String> {
        self.numbering.pass(name.noun, name.number())?;
        let called =
            name.text.map_or_else(|| format!("epoch {} of its output", self.seen), |it| format!("{} {}", name.noun, shorten(it)));
        let PrintedDuration { seconds, resolution_s, shown } =
            printed.map_err(|wrong| format!("the output reports for {called} {wrong}"))?;
        let since = |then_ns: u64| at_ns.saturating_sub(then_ns) as f64 / 1e9;
        let (launched, last) = (since(self.started_ns), since(self.last_end_ns));
        // The last digit is rounded, upwards at worst by one.
        if seconds > launched + resolution_s {
            return Err(format!("the output reports {shown} for {called}, {launched:.1} s after the script was launched"));
        }
        // A line that is read late is followed by one that seems early: what is late in all stays that of one delay. Of lines that are kept
        // back it grows with each, and where their epochs lie is not known.
        let least_s = seconds * (1.0 - CLOCKS_DIFFER) - resolution_s;
        let late_s = if self.seen > 0 { (self.late_s + least_s - last).max(0.0) } else { 0.0 };
        self.late_s = late_s;
        if late_s > LATE_S {
            let flush = "print, and flush, each epoch's line at its end, with the duration of that epoch alone";
            return Err(format!("the output reports {shown} for {called}, {last:.1} s after the end of the one before: {flush}"));
        }
        let start_ns = at_ns.saturating_sub((seconds * 1e9) as u64).max(self.started_ns);
        Ok(vec![EndedEpoch { start_ns, end_ns: at_ns, loss }])
    }

    /// The epochs that a line without a duration ends: from their predecessor's line to their own. The lines must be those of successive
    /// ones: otherwise several would be reported as one.
    fn untimed(&mut self, name: &EpochName<'_>, at_ns: u64, loss: Option<f64>) -> Result<Vec<EndedEpoch>, String> {
        self.apart(name, at_ns)?;
        let ended = EndedEpoch { start_ns: self.last_end_ns, end_ns: at_ns, loss };
        Ok(match self.numbering.follow(name.noun, name.number())? {
            Follows::Ends => vec![ended],
            Follows::Unconfirmed => {
                self.unconfirmed = Some(ended);
                Vec::new()
            }
            Follows::Confirms => self.unconfirmed.take().into_iter().chain([ended]).collect(),
        })
    }

    /// Of lines that are read at once, because the script kept them back or its epochs are too short to be read one by one, no
    /// duration is known.
    fn apart(&self, name: &EpochName<'_>, at_ns: u64) -> Result<(), String> {
        if self.seen == 0 || at_ns >= self.last_end_ns + AT_ONCE_NS {
            return Ok(());
        }
        let of = match (&self.last, name.text) {
            (Some(last), Some(now)) => format!("{}s {} and {}", name.noun, shorten(last), shorten(now)),
            _ => format!("epochs {} and {} of its output", self.seen - 1, self.seen),
        };
        Err(format!(
            "the output reports the ends of {of} at once, so the duration of the latter is unknown: print, and flush, each epoch's \
             line at its end; epochs of a few milliseconds need more steps"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn adapter(pattern: &str) -> Adapter {
        Adapter {
            pattern: pattern.into(),
            preset: None,
            items: Some(10),
            goal: EpochGoal { epochs: 2, measure_for_ns: 0 },
            measures_on: false,
        }
    }

    #[test]
    fn an_epoch_begins_its_own_seconds_before_its_line() {
        let mut t = Translator::new(&adapter(r"^epoch (?P<epoch>\d+) took (?P<seconds>[\d.]+) s"), 0).unwrap();
        assert!(t.line("loading data", 1_000_000_000).is_empty());
        let first = t.line("epoch 1 took 2.5 s", 5_000_000_000);
        assert_eq!(first[0]["start_ns"], 2_500_000_000u64);
        assert_eq!(first[0]["measured"], false);
        assert_eq!(first.len(), 1);
        let second = t.line("epoch 2 took 2.0 s", 8_000_000_000);
        assert_eq!(second[0]["measured"], true);
        assert_eq!(second[1]["event"], "done");
        assert_eq!(t.line("epoch 3 took 2.0 s", 10_000_000_000)[0]["measured"], false);
    }

    #[test]
    fn where_members_keep_running_epochs_are_measured_on_up_to_the_first_line_that_cannot_be() {
        let on = Adapter { measures_on: true, ..adapter(r"^Epoch (?P<epoch>\d+) finished") };
        let mut t = Translator::new(&on, 100).unwrap();
        let mut measured = |epoch: u32, at_ms: u64| {
            let messages = t.line(&format!("Epoch {epoch} finished"), at_ms * MS);
            messages.first().map(|message| message["measured"] == true)
        };
        assert_eq!([measured(0, 900), measured(1, 1500), measured(2, 2100)], [Some(false), Some(true), Some(true)]);
        assert_eq!([measured(7, 2700), measured(8, 3300)], [None, None], "one that is left out would be in the next");
    }

    #[test]
    fn without_seconds_an_epoch_begins_where_the_one_before_ended() {
        let mut t = Translator::new(&adapter(r"^Epoch \d+ finished"), 100).unwrap();
        assert_eq!(t.line("Epoch 0 finished", 900 * MS)[0]["start_ns"], 100);
        assert_eq!(t.line("Epoch 1 finished", 1500 * MS)[0]["start_ns"], 900 * MS);
    }

    #[test]
    fn an_epoch_that_is_said_again_ends_once() {
        let mut t = Translator::new(&adapter(r"^Epoch (?P<epoch>\d+) finished"), 100).unwrap();
        assert_eq!(t.line("Epoch 0 finished", 900 * MS).len(), 1);
        assert!(t.line("Epoch 0 finished, validated", 1000 * MS).is_empty());
        assert_eq!(t.line("Epoch 1 finished", 1500 * MS)[0]["start_ns"], 900 * MS);
    }

    #[test]
    fn without_seconds_the_first_epoch_is_never_measured() {
        let only_one = Adapter { goal: EpochGoal { epochs: 1, measure_for_ns: 0 }, ..adapter(r"^Epoch (?P<epoch>\d+) finished") };
        let mut t = Translator::new(&only_one, 100).unwrap();
        let first = t.line("Epoch 0 finished", 900 * MS);
        assert_eq!((first.len(), &first[0]["measured"]), (1, &json!(false)), "it began with the script");
        let second = t.line("Epoch 1 finished", 1500 * MS);
        assert_eq!((&second[0]["measured"], &second[1]["event"]), (&json!(true), &json!("done")));
        let timed = Adapter {
            goal: EpochGoal { epochs: 1, measure_for_ns: 0 },
            ..adapter(r"^epoch (?P<epoch>\d+) took (?P<seconds>[\d.]+) s")
        };
        let only = Translator::new(&timed, 0).unwrap().line("epoch 1 took 2 s", 5_000_000_000);
        assert_eq!((&only[0]["measured"], &only[1]["event"]), (&json!(true), &json!("done")));
    }

    /// The result for lines at these seconds after the launch, at 100 s: (start, end) in seconds after it, or the first error.
    fn told(pattern: &str, lines: &[(f64, &str)]) -> Result<Vec<(f64, f64)>, String> {
        const LAUNCHED_NS: u64 = 100_000_000_000;
        let mut translator =
            Translator::new(&Adapter { goal: EpochGoal { epochs: 3, measure_for_ns: 0 }, ..adapter(pattern) }, LAUNCHED_NS)
                .unwrap();
        let messages = lines.iter().flat_map(|(at, line)| translator.line(line, LAUNCHED_NS + (at * 1e9) as u64));
        let s = |ns: &Value| (ns.as_u64().unwrap() as i64 - LAUNCHED_NS as i64) as f64 / 1e9;
        let told = |message: Value| match message["event"].as_str() {
            Some("epoch") => Some(Ok((s(&message["start_ns"]), s(&message["end_ns"])))),
            Some("error") => {
                Some(Err(format!("{}: {}", message["kind"].as_str().unwrap(), message["message"].as_str().unwrap())))
            }
            _ => None,
        };
        messages.collect::<Vec<_>>().into_iter().filter_map(told).collect()
    }

    const TIMED: &str = r"^epoch (?P<epoch>\d+) took (?P<seconds>\S+) s";

    #[test]
    fn an_epoch_is_no_longer_than_there_was_time() {
        let error = |lines: &[(f64, &str)]| told(TIMED, lines).unwrap_err();
        insta::assert_snapshot!(error(&[(1.0, "epoch 1 took 0.4 s"), (2.0, "epoch 2 took 99999 s")]), @"output: the output reports 99999 s for epoch 2, 2.0 s after the script was launched");
        insta::assert_snapshot!(error(&[(0.3, "epoch 1 took 5.0 s"), (0.3, "epoch 2 took 5.0 s"), (0.3, "epoch 3 took 5.0 s")]), @"output: the output reports 5.0 s for epoch 1, 0.3 s after the script was launched");
        insta::assert_snapshot!(error(&[(20.0, "epoch 1 took 5.0 s"), (20.0, "epoch 2 took 5.0 s")]), @"output: the output reports 5.0 s for epoch 2, 0.0 s after the end of the one before: print, and flush, each epoch's line at its end, with the duration of that epoch alone");
        insta::assert_snapshot!(error(&[(20.0, "epoch 1 took 5.0 s"), (25.0, "epoch 2 took 10.0 s")]), @"output: the output reports 10.0 s for epoch 2, 5.0 s after the end of the one before: print, and flush, each epoch's line at its end, with the duration of that epoch alone");
    }

    #[test]
    fn what_is_no_time_is_not_taken_for_one() {
        for no_time in ["nan", "NaN", "-1.0", "inf", "1e999", "1.2.3", "0", "0.000"] {
            let error = told(TIMED, &[(1.0, "epoch 1 took 0.4 s"), (2.0, &format!("epoch 2 took {no_time} s"))]).unwrap_err();
            assert!(error.starts_with(&format!("output: the output reports for epoch 2 `{no_time}`")), "{error}");
            assert_eq!(error.contains("print more digits"), no_time.starts_with('0'), "{error}");
        }
    }

    #[test]
    fn epochs_do_not_count_backwards() {
        let back = told(TIMED, &[(1.0, "epoch 3 took 0.4 s"), (2.0, "epoch 2 took 0.4 s")]).unwrap_err();
        insta::assert_snapshot!(back, @"output: the output goes back from epoch 3 to epoch 2: the pattern must match one training only");
        let done = told(
            TIMED,
            &[(1.0, "epoch 1 took 0.4 s"), (2.0, "epoch 2 took 0.4 s"), (3.0, "epoch 3 took 0.4 s"), (4.0, "epoch 1 took nan s")],
        );
        assert_eq!(done.unwrap().len(), 3, "what it says when it has shown enough does not matter");
    }

    #[test]
    fn seconds_may_be_rounded_and_lines_may_be_read_late() {
        let rounded = told(TIMED, &[(0.96, "epoch 1 took 1 s"), (1.93, "epoch 2 took 1 s"), (2.91, "epoch 3 took 1.0 s")]);
        assert_eq!(rounded.unwrap(), [(0.0, 0.96), (0.93, 1.93), (1.91, 2.91)], "none began before the launch");
        let late = told(TIMED, &[(2.4, "epoch 1 took 1.00 s"), (3.0, "epoch 2 took 1.00 s")]);
        assert_eq!(late.unwrap()[1], (2.0, 3.0), "the first line was read 0.4 s late");
    }

    #[test]
    fn without_seconds_lines_that_come_at_once_have_no_duration() {
        let numbered = told(r"^Epoch (?P<epoch>\d+) finished", &[(9.0, "Epoch 0 finished"), (9.0, "Epoch 1 finished")]);
        insta::assert_snapshot!(numbered.unwrap_err(), @"output: the output reports the ends of epochs 0 and 1 at once, so the duration of the latter is unknown: print, and flush, each epoch's line at its end; epochs of a few milliseconds need more steps");
        let bare = told(r"^Epoch finished", &[(3.0, "Epoch finished"), (6.0, "Epoch finished"), (6.0, "Epoch finished")]);
        insta::assert_snapshot!(bare.unwrap_err(), @"output: the output reports the ends of epochs 1 and 2 of its output at once, so the duration of the latter is unknown: print, and flush, each epoch's line at its end; epochs of a few milliseconds need more steps");
        let one_by_one = told(r"^Epoch (?P<epoch>\d+) finished", &[(9.0, "Epoch 0 finished"), (9.0004, "Epoch 1 finished")]);
        assert!(one_by_one.unwrap_err().contains("at once"), "a loop over what was kept back");
        let later = [(1.0, "Epoch 0 finished"), (2.0, "Epoch 1 finished"), (3.0, "Epoch 2 finished"), (3.0, "Epoch 3 finished")];
        assert_eq!(told(r"^Epoch (?P<epoch>\d+) finished", &later).unwrap().len(), 3, "when it has shown enough, no matter");
    }

    #[test]
    fn lines_of_every_tenth_step_end_units_of_ten_steps() {
        let each = |line: &str, numbers: [u64; 4]| {
            let lines: Vec<(f64, String)> =
                numbers.iter().zip(1..).map(|(n, at)| (f64::from(at), line.replace('#', &n.to_string()))).collect();
            told(r"^\w+ (?P<step>\d+)", &lines.iter().map(|(at, line)| (*at, line.as_str())).collect::<Vec<_>>()).unwrap()
        };
        assert_eq!(each("iter #", [0, 10, 20, 30]), [(0.0, 1.0), (1.0, 2.0), (2.0, 3.0), (3.0, 4.0)]);
        assert_eq!(each("iter #", [1, 10, 20, 30]), [(0.0, 1.0), (2.0, 3.0), (3.0, 4.0)], "from step 1 to 10 are nine");
        let by_epoch = told(r"^iter (?P<epoch>\d+)", &[(1.0, "iter 0"), (2.0, "iter 10"), (3.0, "iter 20")]);
        assert_eq!(by_epoch.unwrap(), [(0.0, 1.0), (1.0, 2.0), (2.0, 3.0)]);
        let mut t = Translator::new(&adapter(r"^iter (?P<step>\d+)"), 0).unwrap();
        assert_eq!(t.line("iter 0", 1000 * MS).len(), 1);
        assert!(t.line("iter 10", 2000 * MS).is_empty());
        assert_eq!(t.end(true).last().unwrap()["event"], "done", "nothing speaks against it");
        let gap = told(
            r"^Epoch (?P<epoch>\d+) finished",
            &[(1.0, "Epoch 3 finished"), (2.0, "Epoch 4 finished"), (4.0, "Epoch 6 finished")],
        );
        insta::assert_snapshot!(gap.unwrap_err(), @"output: the output jumps from epoch 4 to epoch 6: print lines at equal distances, or each with its duration");
        let timed = told(TIMED, &[(5.0, "epoch 10 took 2 s"), (50.0, "epoch 20 took 2 s"), (53.0, "epoch 25 took 2 s")]);
        assert_eq!(timed.unwrap()[1..], [(48.0, 50.0), (51.0, 53.0)], "with a duration some may be left out");
    }

    #[test]
    fn a_line_without_a_number_ends_an_epoch_each_time() {
        let ended = told(r"^Test set:", &[(1.0, "Test set: 97 %"), (2.5, "Test set: 98 %"), (3.0, "Test set: 98 %")]);
        assert_eq!(ended.unwrap(), [(0.0, 1.0), (1.0, 2.5), (2.5, 3.0)]);
    }

    #[test]
    fn durations_of_all_forms_place_the_start() {
        let hms = told(r"Total time: (?P<seconds>\S+)", &[(1.4, "Total time: 0:00:01"), (2.8, "Total time: 0:00:01")]);
        assert_eq!(hms.unwrap(), [(0.4, 1.4), (1.8, 2.8)]);
        let ms = told(r"time (?P<milliseconds>[0-9.]+)ms", &[(12.0, "time 500.00ms"), (12.5, "time 500.00ms")]);
        assert_eq!(ms.unwrap(), [(11.5, 12.0), (12.0, 12.5)]);
    }

    #[test]
    fn lines_that_are_read_together_keep_their_durations() {
        let lines = [(1.0, "epoch 1 took 0.4 s"), (1.065, "epoch 2 took 0.030 s"), (1.065, "epoch 3 took 0.035 s")];
        let epochs = told(TIMED, &lines).unwrap();
        let durations: Vec<f64> = epochs.iter().map(|(start, end)| ((end - start) * 1e3).round()).collect();
        assert_eq!(durations, [400.0, 30.0, 35.0]);
    }

    #[test]
    fn lines_that_are_kept_back_are_refused_although_each_has_a_short_duration() {
        let kept = ["epoch 1 took 0.300 s", "epoch 2 took 0.300 s", "epoch 3 took 0.300 s"];
        let refused = told(TIMED, &kept.map(|line| (6.0, line))).unwrap_err();
        assert!(refused.contains("epoch 3, 0.0 s after the end of the one before: print, and flush"), "{refused}");
        // A line that is read late is followed by one that seems early.
        let delayed = [(0.3, kept[0]), (0.8, kept[1]), (0.9, kept[2])];
        assert_eq!(told(TIMED, &delayed).unwrap().len(), 3);
    }

    #[test]
    fn a_line_may_begin_behind_a_bar() {
        let logged = "2026-11-25 10:00:00 - INFO - epoch 0: ended";
        let pattern = r"^\S+ \S+ - INFO - epoch (?P<epoch>\d+):";
        for bar in [
            " 25%|██▌       | 10/40 [00:00<00:01, 24.91it/s]",
            "training:  25%|##5       | 1/4 [1:00:02<00:01,  2.38it/s, loss=0.5]  ",
            "10it [00:00, 24.91it/s]",
            " 50%|█████     | 2/4 [00:00<?, ?it/s] 75%|███████▌  | 3/4 [00:01<00:00,  2.38s/it]",
        ] {
            assert_eq!(told(pattern, &[(1.0, &format!("{bar}{logged}"))]).unwrap(), [(0.0, 1.0)], "{bar}");
        }
        assert!(told(r"^epoch (?P<epoch>\d+):", &[(1.0, "[12:30]epoch 0: ended")]).unwrap().is_empty(), "no bar");
    }

    /// What is reported of a script that printed these lines, a second each, and ended with 0.
    fn shortfall(preset: Option<&str>, pattern: &str, wanted: EpochGoal, lines: &[&str]) -> Option<String> {
        let adapter = Adapter {
            pattern: pattern.into(),
            preset: preset.map(str::to_string),
            items: None,
            goal: wanted,
            measures_on: false,
        };
        let mut translator = Translator::new(&adapter, 0).unwrap();
        for (at, line) in (1..).zip(lines) {
            translator.line(line, at * 1000 * MS);
        }
        translator.end(true).pop().filter(|m| m["event"] == "shortfall").map(|m| m["message"].as_str().unwrap().to_string())
    }

    #[test]
    fn what_a_script_lacked_is_a_sentence() {
        let four = EpochGoal { epochs: 4, measure_for_ns: 0 };
        let of = |pattern: &str, lines: &[&str]| shortfall(None, pattern, four, lines);
        insta::assert_snapshot!(of(TIMED, &["Epoch 1/4 loss 0.1", "bye"]).unwrap(), @"0 of its 2 lines match the pattern; the nearest: `Epoch 1/4 loss 0.1`");
        insta::assert_snapshot!(of(TIMED, &["epoch 1 took 0.5 s", "epoch 2 took 0.5 s", "early stopping"]).unwrap(), @"2 of 4 epochs: let it train longer");
        insta::assert_snapshot!(shortfall(Some("lightning"), adapters::preset("lightning").unwrap().pattern, four, &["Epoch 0/5 ━━━━━━ 128/128"]).unwrap(), @"its only line does not match the preset `lightning`; the nearest: `Epoch 0/5 ━━━━━━ 128/128`; `lightning` requires: the progress bar of tqdm, which the script must select if `rich` is installed (`callbacks=[TQDMProgressBar()]`)");
        let long = EpochGoal { epochs: 2, measure_for_ns: 60_000 * MS };
        insta::assert_snapshot!(shortfall(None, "^e", long, &["e", "e", "e"]).unwrap(), @"2.0 s of 60.0 s of measured epochs: let it train longer");
        assert_eq!(of("^e", &["e", "e", "e", "e"]), None);
    }

    #[test]
    fn a_script_without_a_match_is_reported_while_it_runs() {
        let mut t = Translator::new(&adapter("^epoch"), 0).unwrap();
        t.line("Epoch 1", 500 * MS);
        assert_eq!(t.wait(29_000 * MS), None);
        let report = t.wait(30_000 * MS).unwrap();
        assert_eq!((&report["event"], &report["newest"]), (&json!("shortfall"), &json!(["Epoch 1"])));
        assert_eq!(t.wait(31_000 * MS), None);
        assert!(t.wait(60_000 * MS).is_some(), "now and then");
        t.line("epoch 1", 61_000 * MS);
        assert_eq!(t.wait(300_000 * MS), None);
    }
}
