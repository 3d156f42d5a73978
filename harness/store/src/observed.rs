//! Who watched the members of a run, and what that took.

use serde::{Deserialize, Serialize};

/// The word for nobody: not even collo sampled.
pub const NOBODY_WATCHES: &str = "none";
/// The word for collo's own sampling.
pub const COLLO_SAMPLES: &str = "collo";

/// The kind of an observer that reads from outside, and is not expected to slow anybody.
pub const MONITOR: &str = "monitor";
/// That of one that instruments, stops or runs the members, and is expected to slow them.
pub const PROFILER: &str = "profiler";

/// The observer of a label such as `top:10Hz`, without its rate.
pub fn observer_name(label: &str) -> &str {
    label.split_once(':').map_or(label, |(name, _)| name)
}

/// The observer of a run, and what was measured of itself. Absent numbers could not be read, or could not be told from the members'.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ObserverRecord {
    /// As in the cell: `none`, `collo`, `top:10Hz`.
    pub name: String,
    /// `beside`, `around` or `inside` the members; absent for `none` and `collo`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// [`MONITOR`] or [`PROFILER`]; absent for `none`, and in runs before it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Whom else it disturbs, in the words of its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbs: Option<String>,
    /// The command lines of those beside the members.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<Vec<String>>,
    pub outcome: ObserverOutcome,
    /// When the last of its processes had started, nanoseconds of `CLOCK_MONOTONIC`; for those around and inside the members, `go`.
    #[serde(default)]
    pub from_ns: Option<u64>,
    /// When it was asked to end, or ended.
    #[serde(default)]
    pub to_ns: Option<u64>,
    /// When the last of its processes beside the members had ended.
    #[serde(default)]
    pub ended_ns: Option<u64>,
    /// CPU time of its processes beside the members, from their start until they had ended.
    #[serde(default)]
    pub cpu_time_s: Option<f64>,
    /// The largest sum of the peak resident memory of its processes that were there together, read four times a second.
    #[serde(default)]
    pub peak_rss_bytes: Option<u64>,
    /// Size of everything that it wrote in the folder it was given; the samples of collo. If it was killed, of what was there then.
    #[serde(default)]
    pub bytes_written: Option<u64>,
    /// Services that work for it, by process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub daemons: Vec<DaemonCost>,
    /// CPU time of collo's own process from the launch to the end; absent where it measured on several cards at once.
    #[serde(default)]
    pub collo_cpu_time_s: Option<f64>,
    /// The last lines that it printed, if it did not watch to the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log_tail: Vec<String>,
}

/// How far it watched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ObserverOutcome {
    /// To the end of the last measured epoch, and it ended when asked to.
    Watched,
    /// To the end, but it did not end by itself in time and was killed.
    Killed,
    NotStarted {
        reason: String,
    },
    /// It ended before the last measured epoch did.
    EndedEarly {
        reason: String,
    },
    /// It wrote more than it may, or the disk was nearly full.
    WroteTooMuch {
        reason: String,
    },
    /// It left no trace of having watched.
    WroteNothing,
    /// The run ended before it could be told.
    NotTold,
}

/// A service that works for an observer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DaemonCost {
    pub name: String,
    pub pid: u32,
    /// From [`ObserverRecord::from_ns`] to [`ObserverRecord::to_ns`].
    pub cpu_time_s: Option<f64>,
    pub rss_bytes: Option<u64>,
}

impl ObserverOutcome {
    /// True if every measured epoch was watched.
    pub fn is_whole(&self) -> bool {
        matches!(self, ObserverOutcome::Watched | ObserverOutcome::Killed)
    }

    /// In a few words.
    pub fn text(&self) -> String {
        match self {
            ObserverOutcome::Watched => "watched to the end".into(),
            ObserverOutcome::Killed => "watched to the end, and was killed because it did not end by itself".into(),
            ObserverOutcome::NotStarted { reason } => format!("did not start: {reason}"),
            ObserverOutcome::EndedEarly { reason } => format!("ended early: {reason}"),
            ObserverOutcome::WroteTooMuch { reason } => format!("wrote too much: {reason}"),
            ObserverOutcome::WroteNothing => "wrote nothing, so nothing shows that it watched".into(),
            ObserverOutcome::NotTold => "the run ended first".into(),
        }
    }
}

impl ObserverRecord {
    /// Seconds that it watched.
    pub fn watched_s(&self) -> Option<f64> {
        Some(self.to_ns?.checked_sub(self.from_ns?)? as f64 / 1e9)
    }

    /// Seconds from the start of its processes beside the members until they had ended: what [`ObserverRecord::cpu_time_s`] is of.
    pub fn lived_s(&self) -> Option<f64> {
        Some(self.ended_ns.or(self.to_ns)?.checked_sub(self.from_ns?)? as f64 / 1e9)
    }
}

/// Why a record cannot be that of an observer of a cell.
pub(crate) fn wrong(record: Option<&ObserverRecord>, observe: Option<&str>, completed: bool) -> Option<String> {
    let Some(record) = record else {
        return (observe.is_some() && completed).then(|| "it has no observer, but its cell has".into());
    };
    if Some(record.name.as_str()) != observe {
        return Some(format!("its observer is {:?}, but its cell has {:?}", record.name, observe.unwrap_or("none at all")));
    }
    if completed && !record.outcome.is_whole() {
        return Some(format!("it is complete, but its observer {:?} {}", record.name, record.outcome.text()));
    }
    let times = [record.cpu_time_s, record.collo_cpu_time_s].into_iter().chain(record.daemons.iter().map(|d| d.cpu_time_s));
    if times.flatten().any(|s| !s.is_finite() || s < 0.0) || record.from_ns.zip(record.to_ns).is_some_and(|(from, to)| to < from)
    {
        return Some(format!("times of its observer {:?} are impossible", record.name));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(outcome: ObserverOutcome) -> ObserverRecord {
        ObserverRecord {
            name: "top".into(),
            place: Some("beside".into()),
            kind: Some("monitor".into()),
            disturbs: None,
            commands: Vec::new(),
            outcome,
            from_ns: Some(1_000_000_000),
            to_ns: Some(3_500_000_000),
            ended_ns: Some(4_000_000_000),
            cpu_time_s: Some(0.1),
            peak_rss_bytes: None,
            bytes_written: Some(0),
            daemons: Vec::new(),
            collo_cpu_time_s: None,
            log_tail: Vec::new(),
        }
    }

    #[test]
    fn an_observer_is_stored_with_how_far_it_watched() {
        let early = record(ObserverOutcome::EndedEarly { reason: "it exited with 1".into() });
        let json = serde_json::to_string(&early).expect("it is plain");
        assert!(json.contains(r#""outcome":{"kind":"ended_early","reason":"it exited with 1"}"#), "{json}");
        assert!(json.contains(r#""peak_rss_bytes":null"#), "what is not known is null");
        assert_eq!(serde_json::from_str::<ObserverRecord>(&json).expect("it reads"), early);
        assert_eq!((early.watched_s(), early.lived_s()), (Some(2.5), Some(3.0)));
        let of_before = ObserverRecord { ended_ns: None, ..early };
        assert_eq!(of_before.lived_s(), Some(2.5), "in runs before its end was recorded");
    }

    #[test]
    fn a_complete_run_was_watched_by_its_cells_observer_to_the_end() {
        let whole = record(ObserverOutcome::Killed);
        assert_eq!(wrong(Some(&whole), Some("top"), true), None);
        assert!(wrong(Some(&whole), Some("pidstat"), true).is_some());
        assert!(wrong(Some(&whole), None, true).is_some());
        assert!(wrong(None, Some("top"), true).is_some());
        assert_eq!(wrong(None, Some("top"), false), None, "it may not have been staged");
        let early = record(ObserverOutcome::WroteNothing);
        assert!(wrong(Some(&early), Some("top"), true).is_some());
        assert_eq!(wrong(Some(&early), Some("top"), false), None);
        let impossible = ObserverRecord { to_ns: Some(1), ..record(ObserverOutcome::Watched) };
        assert!(wrong(Some(&impossible), Some("top"), true).is_some());
    }
}
