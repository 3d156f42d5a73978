//! The `[epochs]` adapter: measures a foreign script without edits, through the lines that it prints.
//!
//! It runs in the supervisor, which speaks the protocol on the script's behalf: an epoch ends when its line arrives, and began
//! `seconds` before, or where the one before ended. Such a member has no barrier and no hold.

use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::protocol::{OUTPUT, shorten};
use collo_plan::goal::EpochGoal;

/// The workload's `[epochs]` table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adapter {
    /// A regular expression over output lines, with the named groups `epoch` and `seconds`, each optional. Of consecutive lines
    /// with the same `epoch` the first counts.
    pub pattern: String,
    /// Items in an epoch, if known.
    pub items: Option<u64>,
    /// How long it is to measure; what it trains beyond that is not measured.
    #[serde(flatten)]
    pub goal: EpochGoal,
}

/// A line is read when the supervisor gets to it, and a delay of one line (a busy machine, a log on a slow disk) moves it nearer
/// to the next. The seconds are the script's own and not affected; this much they may seem to overlap.
const LATE_S: f64 = 0.5;

/// Lines that are read within this time were printed together: several writes of one loop over what was kept back.
const AT_ONCE_NS: u64 = 1_000_000;

/// Turns output lines into `epoch` and `done` messages.
pub struct Translator {
    pattern: Regex,
    items: Option<u64>,
    goal: EpochGoal,
    started_ns: u64,
    last_end_ns: u64,
    last_epoch: Option<String>,
    seen: u32,
    /// The start of the first measured epoch.
    measured_from_ns: Option<u64>,
    is_done: bool,
    /// It printed something impossible: nothing more is read from it.
    wrong: bool,
}

impl Translator {
    /// The pattern was checked when the workload was read; an error is only passed on.
    pub fn new(adapter: &Adapter, started_ns: u64) -> Result<Self, regex::Error> {
        Ok(Translator {
            pattern: Regex::new(&adapter.pattern)?,
            items: adapter.items,
            goal: adapter.goal,
            started_ns,
            last_end_ns: started_ns,
            last_epoch: None,
            seen: 0,
            measured_from_ns: None,
            is_done: false,
            wrong: false,
        })
    }

    /// The messages that a line translates to.
    pub fn line(&mut self, line: &str, at_ns: u64) -> Vec<Value> {
        let Some(found) = self.pattern.captures(line).filter(|_| !self.wrong) else { return Vec::new() };
        let epoch = found.name("epoch").map(|e| e.as_str().to_string());
        if epoch.is_some() && epoch == self.last_epoch {
            return Vec::new(); // progress bars say it again and again
        }
        let said = found.name("seconds").map(|s| s.as_str());
        // Where nothing tells how long the first epoch took it has the script's start in it, and may not be the only one.
        let wanted = if said.is_none() { self.goal.epochs.max(2) } else { self.goal.epochs };
        let begun = match said {
            Some(said) => self.backwards(epoch.as_deref()).and_then(|()| self.begun(said, epoch.as_deref(), at_ns)),
            None => self.gap(epoch.as_deref()).and_then(|()| self.apart(epoch.as_deref(), at_ns)).map(|()| self.last_end_ns),
        };
        let start_ns = match begun {
            Ok(start_ns) => start_ns,
            // What it says when it has shown enough does not matter.
            Err(_) if self.is_done => return Vec::new(),
            Err(message) => {
                self.wrong = true;
                return vec![json!({"event": "error", "kind": OUTPUT, "message": message})];
            }
        };
        self.last_epoch = epoch;
        let index = self.seen;
        self.seen += 1;
        self.last_end_ns = at_ns;
        let measured = !self.is_done && (index > 0 || wanted == 1);
        if measured {
            self.measured_from_ns.get_or_insert(start_ns);
        }
        let loss = found.name("loss").and_then(|l| l.as_str().parse::<f64>().ok()).filter(|l| l.is_finite());
        let epoch = json!({"event": "epoch", "index": index, "measured": measured, "items": self.items,
            "start_ns": start_ns, "end_ns": at_ns, "loss": loss});
        let mut messages = vec![epoch];
        let is_long = self.measured_from_ns.is_some_and(|from| at_ns.saturating_sub(from) >= self.goal.measure_for_ns);
        if !self.is_done && self.seen >= wanted && is_long {
            self.is_done = true;
            messages.push(json!({"event": "done"}));
        }
        messages
    }

    /// The start of an epoch whose line gives its seconds; the error says why that duration is impossible.
    fn begun(&self, said: &str, epoch: Option<&str>, at_ns: u64) -> Result<u64, String> {
        let name = epoch.map_or_else(|| format!("epoch {} of its output", self.seen), |epoch| format!("epoch {epoch}"));
        let seconds = said.parse::<f64>().ok().filter(|s| s.is_finite() && *s > 0.0);
        let Some(seconds) = seconds else {
            let more = if said.parse() == Ok(0.0) { ": print more digits" } else { "" };
            return Err(format!("the output reports `{}` s for {name}: an epoch takes a time above 0{more}", shorten(said)));
        };
        // The last digit is rounded, upwards at worst by one.
        let rounded = 10f64.powi(-(said.split_once('.').map_or(0, |(_, digits)| digits.len() as i32)));
        let since = |then_ns: u64| at_ns.saturating_sub(then_ns) as f64 / 1e9;
        let (launched, last) = (since(self.started_ns), since(self.last_end_ns));
        if seconds > launched + rounded {
            return Err(format!(
                "the output reports {} s for {name}, {launched:.1} s after the script was launched",
                shorten(said)
            ));
        }
        if self.seen > 0 && seconds > last + rounded + LATE_S {
            let flush = "print, and flush, each epoch's line at its end, with the seconds of that epoch alone";
            return Err(format!(
                "the output reports {} s for {name}, {last:.1} s after the end of the one before: {flush}",
                shorten(said)
            ));
        }
        Ok(at_ns.saturating_sub((seconds * 1e9) as u64).max(self.started_ns))
    }

    /// Without `seconds` the lines must be those of successive epochs: otherwise several would be reported as one.
    fn gap(&self, epoch: Option<&str>) -> Result<(), String> {
        match self.step(epoch) {
            Some((last, epoch)) if epoch != last + 1 => {
                Err(format!("the output jumps from epoch {last} to epoch {epoch}: print the end of each"))
            }
            _ => Ok(()),
        }
    }

    /// Without them an epoch lasts from its predecessor's line to its own: of lines that are read at once, because the script
    /// kept them back or its epochs are too short to be read one by one, no duration is known.
    fn apart(&self, epoch: Option<&str>, at_ns: u64) -> Result<(), String> {
        if self.seen == 0 || at_ns >= self.last_end_ns + AT_ONCE_NS {
            return Ok(());
        }
        let of = match (&self.last_epoch, epoch) {
            (Some(last), Some(epoch)) => format!("epochs {last} and {epoch}"),
            _ => format!("epochs {} and {} of its output", self.seen - 1, self.seen),
        };
        Err(format!(
            "the output tells of the ends of {of} at once, so nobody knows how long the latter took: print, and flush, each \
             epoch's line at its end; epochs of a few milliseconds need more steps"
        ))
    }

    /// With them some may be left out, but time does not go back.
    fn backwards(&self, epoch: Option<&str>) -> Result<(), String> {
        match self.step(epoch) {
            Some((last, epoch)) if epoch < last => {
                Err(format!("the output goes back from epoch {last} to epoch {epoch}: the pattern must match one training only"))
            }
            _ => Ok(()),
        }
    }

    /// The number of the epoch before, and of this one, if they are numbers.
    fn step(&self, epoch: Option<&str>) -> Option<(u64, u64)> {
        Some((self.last_epoch.as_deref()?.parse().ok()?, epoch?.parse().ok()?)).filter(|(last, _): &(u64, u64)| *last < u64::MAX)
    }

    /// Number of epochs recognised.
    pub fn seen(&self) -> u32 {
        self.seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn adapter(pattern: &str) -> Adapter {
        Adapter { pattern: pattern.into(), items: Some(10), goal: EpochGoal { epochs: 2, measure_for_ns: 0 } }
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
        insta::assert_snapshot!(error(&[(20.0, "epoch 1 took 5.0 s"), (20.0, "epoch 2 took 5.0 s")]), @"output: the output reports 5.0 s for epoch 2, 0.0 s after the end of the one before: print, and flush, each epoch's line at its end, with the seconds of that epoch alone");
        insta::assert_snapshot!(error(&[(20.0, "epoch 1 took 5.0 s"), (25.0, "epoch 2 took 10.0 s")]), @"output: the output reports 10.0 s for epoch 2, 5.0 s after the end of the one before: print, and flush, each epoch's line at its end, with the seconds of that epoch alone");
    }

    #[test]
    fn what_is_no_time_is_not_taken_for_one() {
        for no_time in ["nan", "NaN", "-1.0", "inf", "1e999", "1.2.3", "0", "0.000"] {
            let error = told(TIMED, &[(1.0, "epoch 1 took 0.4 s"), (2.0, &format!("epoch 2 took {no_time} s"))]).unwrap_err();
            assert!(
                error
                    .starts_with(&format!("output: the output reports `{no_time}` s for epoch 2: an epoch takes a time above 0")),
                "{error}"
            );
            assert_eq!(error.ends_with("print more digits"), no_time.starts_with('0'), "{error}");
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
        insta::assert_snapshot!(numbered.unwrap_err(), @"output: the output tells of the ends of epochs 0 and 1 at once, so nobody knows how long the latter took: print, and flush, each epoch's line at its end; epochs of a few milliseconds need more steps");
        let bare = told(r"^Epoch finished", &[(3.0, "Epoch finished"), (6.0, "Epoch finished"), (6.0, "Epoch finished")]);
        insta::assert_snapshot!(bare.unwrap_err(), @"output: the output tells of the ends of epochs 1 and 2 of its output at once, so nobody knows how long the latter took: print, and flush, each epoch's line at its end; epochs of a few milliseconds need more steps");
        let one_by_one = told(r"^Epoch (?P<epoch>\d+) finished", &[(9.0, "Epoch 0 finished"), (9.0004, "Epoch 1 finished")]);
        assert!(one_by_one.unwrap_err().contains("at once"), "a loop over what was kept back");
        let later = [(1.0, "Epoch 0 finished"), (2.0, "Epoch 1 finished"), (3.0, "Epoch 2 finished"), (3.0, "Epoch 3 finished")];
        assert_eq!(told(r"^Epoch (?P<epoch>\d+) finished", &later).unwrap().len(), 3, "when it has shown enough, no matter");
    }

    #[test]
    fn without_seconds_no_epoch_may_be_missing() {
        let mut t = Translator::new(&adapter(r"^Epoch (?P<epoch>\d+) finished"), 100).unwrap();
        assert_eq!(t.line("Epoch 3 finished", 900 * MS)[0]["event"], "epoch");
        let gap = t.line("Epoch 6 finished", 1500 * MS);
        assert_eq!((gap.len(), &gap[0]["event"]), (1, &json!("error")));
        assert_eq!(gap[0]["message"], "the output jumps from epoch 3 to epoch 6: print the end of each");
        let mut t = Translator::new(&adapter(r"^epoch (?P<epoch>\d+) took (?P<seconds>[\d.]+) s"), 0).unwrap();
        assert_eq!(t.line("epoch 10 took 2 s", 5_000_000_000)[0]["event"], "epoch");
        assert_eq!(t.line("epoch 20 took 2 s", 50_000_000_000)[0]["start_ns"], 48_000_000_000u64);
    }
}
