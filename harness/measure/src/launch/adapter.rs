//! The `[epochs]` adapter: a foreign script, measured without edits, through the lines that it prints.
//!
//! It runs in the supervisor, which speaks the protocol on the script's behalf: an epoch ends when its line arrives, and began
//! `seconds` before, or where the one before ended. Such a member has no barrier and no hold.

use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What the workload's `[epochs]` table says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adapter {
    /// A regular expression over output lines, with the named groups `epoch` and `seconds`, each optional. Of lines with the
    /// same `epoch` in a row the first counts.
    pub pattern: String,
    /// Items in an epoch, if known.
    pub items: Option<u64>,
    /// Epochs to see; the first is warm-up where there are two or more.
    pub epochs: u32,
}

/// Turns output lines into `epoch` and `done` messages.
pub struct Translator {
    pattern: Regex,
    items: Option<u64>,
    epochs: u32,
    last_end_ns: u64,
    last_epoch: Option<String>,
    seen: u32,
}

impl Translator {
    /// The pattern was checked when the workload was read; here an error is only passed on.
    pub fn new(adapter: &Adapter, started_ns: u64) -> Result<Self, regex::Error> {
        Ok(Translator {
            pattern: Regex::new(&adapter.pattern)?,
            items: adapter.items,
            epochs: adapter.epochs,
            last_end_ns: started_ns,
            last_epoch: None,
            seen: 0,
        })
    }

    /// The messages that a line is worth.
    pub fn line(&mut self, line: &str, at_ns: u64) -> Vec<Value> {
        let Some(found) = self.pattern.captures(line) else { return Vec::new() };
        let epoch = found.name("epoch").map(|e| e.as_str().to_string());
        if epoch.is_some() && epoch == self.last_epoch {
            return Vec::new(); // progress bars say it again and again
        }
        let seconds = found.name("seconds").and_then(|s| s.as_str().parse::<f64>().ok());
        if seconds.is_none()
            && let Some(message) = self.gap(epoch.as_deref())
        {
            return vec![message];
        }
        self.last_epoch = epoch;
        let start_ns = match seconds.filter(|s| s.is_finite() && *s >= 0.0) {
            Some(s) => at_ns.saturating_sub((s * 1e9) as u64),
            None => self.last_end_ns,
        };
        let index = self.seen;
        self.seen += 1;
        self.last_end_ns = at_ns;
        // Where nothing tells how long the first epoch took it has the script's start in it, and may not be the only one.
        let wanted = if seconds.is_none() { self.epochs.max(2) } else { self.epochs };
        let measured = index < wanted && (index > 0 || wanted == 1);
        let loss = found.name("loss").and_then(|l| l.as_str().parse::<f64>().ok()).filter(|l| l.is_finite());
        let epoch = json!({"event": "epoch", "index": index, "measured": measured, "items": self.items,
            "start_ns": start_ns, "end_ns": at_ns, "loss": loss});
        let mut messages = vec![epoch];
        if self.seen == wanted {
            messages.push(json!({"event": "done"}));
        }
        messages
    }

    /// Without `seconds` the lines must be those of successive epochs: else one would be told that is several.
    fn gap(&self, epoch: Option<&str>) -> Option<Value> {
        let number = |text: &str| text.parse::<u64>().ok();
        let (last, epoch) = (number(self.last_epoch.as_deref()?)?, number(epoch?)?);
        let message = format!("the output goes from epoch {last} to epoch {epoch}: have it say the end of each");
        (epoch != last + 1).then(|| json!({"event": "error", "kind": "other", "message": message}))
    }

    /// How many epochs were recognised.
    pub fn seen(&self) -> u32 {
        self.seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adapter(pattern: &str) -> Adapter {
        Adapter { pattern: pattern.into(), items: Some(10), epochs: 2 }
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
        assert_eq!(t.line("epoch 3 took 2.0 s", 9_000_000_000)[0]["measured"], false);
    }

    #[test]
    fn without_seconds_an_epoch_begins_where_the_one_before_ended() {
        let mut t = Translator::new(&adapter(r"^Epoch \d+ finished"), 100).unwrap();
        assert_eq!(t.line("Epoch 0 finished", 900)[0]["start_ns"], 100);
        assert_eq!(t.line("Epoch 1 finished", 1500)[0]["start_ns"], 900);
    }

    #[test]
    fn an_epoch_that_is_said_again_ends_once() {
        let mut t = Translator::new(&adapter(r"^Epoch (?P<epoch>\d+) finished"), 100).unwrap();
        assert_eq!(t.line("Epoch 0 finished", 900).len(), 1);
        assert!(t.line("Epoch 0 finished, validated", 1000).is_empty());
        assert_eq!(t.line("Epoch 1 finished", 1500)[0]["start_ns"], 900);
    }

    #[test]
    fn without_seconds_the_first_epoch_is_never_measured() {
        let only_one = Adapter { epochs: 1, ..adapter(r"^Epoch (?P<epoch>\d+) finished") };
        let mut t = Translator::new(&only_one, 100).unwrap();
        let first = t.line("Epoch 0 finished", 900);
        assert_eq!((first.len(), &first[0]["measured"]), (1, &json!(false)), "it began with the script");
        let second = t.line("Epoch 1 finished", 1500);
        assert_eq!((&second[0]["measured"], &second[1]["event"]), (&json!(true), &json!("done")));
        let timed = Adapter { epochs: 1, ..adapter(r"^epoch (?P<epoch>\d+) took (?P<seconds>[\d.]+) s") };
        let only = Translator::new(&timed, 0).unwrap().line("epoch 1 took 2 s", 5_000_000_000);
        assert_eq!((&only[0]["measured"], &only[1]["event"]), (&json!(true), &json!("done")));
    }

    #[test]
    fn without_seconds_no_epoch_may_be_missing() {
        let mut t = Translator::new(&adapter(r"^Epoch (?P<epoch>\d+) finished"), 100).unwrap();
        assert_eq!(t.line("Epoch 3 finished", 900)[0]["event"], "epoch");
        let gap = t.line("Epoch 6 finished", 1500);
        assert_eq!((gap.len(), &gap[0]["event"]), (1, &json!("error")));
        assert_eq!(gap[0]["message"], "the output goes from epoch 3 to epoch 6: have it say the end of each");
        let mut t = Translator::new(&adapter(r"^epoch (?P<epoch>\d+) took (?P<seconds>[\d.]+) s"), 0).unwrap();
        assert_eq!(t.line("epoch 10 took 2 s", 5_000_000_000)[0]["event"], "epoch");
        assert_eq!(t.line("epoch 20 took 2 s", 50_000_000_000)[0]["start_ns"], 48_000_000_000u64);
    }
}
