//! How a run ended (a closed list), and, separately, whether its numbers may be used.
//!
//! To add an outcome: a variant of [`Outcome`]; the compiler shows the rest.

use serde::{Deserialize, Serialize};

/// How a run ended. Out of memory of the device is a result, not a failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    /// Every member sent `done`.
    Completed,
    /// A member asked for more memory than the device has; `message` is the member's own.
    OutOfMemory { member: u32, message: String },
    /// On a GPU: the host ran out of memory, which says nothing about the capacity of the GPU.
    HostOutOfMemory { member: u32, message: String },
    /// A member ended before `done`, or not with 0 after it; `status` is `exited with 1` or `killed by SIGKILL`, `message` says
    /// where.
    Crashed {
        member: u32,
        status: String,
        message: String,
        /// `message` has only the place, as in `in epoch 1`; false in earlier runs, which did not record it.
        #[serde(default, skip_serializing_if = "is_false")]
        place_alone: bool,
    },
    /// The process of which all members were threads ended before it should; `message` says where each of them was, if not who is to
    /// blame, which the end of a process does not tell.
    ProcessEnded { status: String, message: String },
    /// A foreign script ended with 0 before it had shown all epochs that were wanted; `message` has what its output lacks.
    EndedEarly { member: u32, message: String },
    /// A time limit ran out in `phase` (`start`, `set-up`, `warm-up`, `measure`, `total`).
    TimedOut { member: u32, phase: String, message: String },
    /// The sharing mode was not in force inside the measured window.
    ModeLost { reason: String },
    /// The observer of the cell did not watch to the end: it could not be started, ended early, or wrote too much.
    ObserverLost { reason: String },
    /// The device could not be staged.
    NotStaged { reason: String },
    /// The device disappeared.
    DeviceLost { reason: String },
    /// A member sent something that violates the protocol, or cannot be true.
    ProtocolError { member: u32, message: String },
    /// A signal that asks collo to end, or the end of the allowed time.
    Interrupted,
}

fn is_false(value: &bool) -> bool {
    !value
}

impl Outcome {
    /// Every keyword, in the order in which outcomes are counted: first the usual end, last those that are the device's or its user's
    /// and not the run's own.
    pub const WORDS: [&'static str; 13] = [
        "completed",
        "out_of_memory",
        "host_out_of_memory",
        "crashed",
        "process_ended",
        "ended_early",
        "timed_out",
        "mode_lost",
        "observer_lost",
        "not_staged",
        "protocol_error",
        "device_lost",
        "interrupted",
    ];
    /// What an experiment may expect of a cell: the ends that are a run's own, but for the usual one.
    pub const EXPECTABLE: &'static [&'static str] = Self::WORDS.split_at(1).1.split_at(10).0;

    /// Its keyword, as in JSON.
    pub fn as_str(&self) -> &'static str {
        match self {
            Outcome::Completed => "completed",
            Outcome::OutOfMemory { .. } => "out_of_memory",
            Outcome::HostOutOfMemory { .. } => "host_out_of_memory",
            Outcome::Crashed { .. } => "crashed",
            Outcome::ProcessEnded { .. } => "process_ended",
            Outcome::EndedEarly { .. } => "ended_early",
            Outcome::TimedOut { .. } => "timed_out",
            Outcome::ModeLost { .. } => "mode_lost",
            Outcome::ObserverLost { .. } => "observer_lost",
            Outcome::NotStaged { .. } => "not_staged",
            Outcome::DeviceLost { .. } => "device_lost",
            Outcome::ProtocolError { .. } => "protocol_error",
            Outcome::Interrupted => "interrupted",
        }
    }

    /// The keyword as people read it: `out of memory`.
    pub fn text(&self) -> String {
        self.as_str().replace('_', " ")
    }

    /// True for what `--only failed` measures again: neither a number nor a result.
    pub fn is_failure(&self) -> bool {
        !matches!(self, Outcome::Completed | Outcome::OutOfMemory { .. } | Outcome::Interrupted)
    }

    /// True for a failure that may not occur again, so that an experiment may have it measured anew: whether a member crashes, hangs
    /// or loses its mode can depend on the moment, what it sends and the host's memory hardly do.
    pub fn may_pass(&self) -> bool {
        matches!(
            self,
            Outcome::Crashed { .. }
                | Outcome::ProcessEnded { .. }
                | Outcome::TimedOut { .. }
                | Outcome::ModeLost { .. }
                | Outcome::ObserverLost { .. }
                | Outcome::NotStaged { .. }
        )
    }

    /// The member whose end was the run's, if it was that of one.
    pub fn member(&self) -> Option<u32> {
        match self {
            Outcome::OutOfMemory { member, .. }
            | Outcome::HostOutOfMemory { member, .. }
            | Outcome::Crashed { member, .. }
            | Outcome::EndedEarly { member, .. }
            | Outcome::TimedOut { member, .. }
            | Outcome::ProtocolError { member, .. } => Some(*member),
            Outcome::Completed
            | Outcome::ProcessEnded { .. }
            | Outcome::ModeLost { .. }
            | Outcome::ObserverLost { .. }
            | Outcome::NotStaged { .. }
            | Outcome::DeviceLost { .. }
            | Outcome::Interrupted => None,
        }
    }

    /// True unless a resumed campaign measures the run again, as it does only with interrupted ones.
    pub fn is_final(&self) -> bool {
        *self != Outcome::Interrupted
    }
}

/// Whether the numbers of a run may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As requested, attested, complete.
    Valid,
    /// Kept and shown, never carried into a guideline.
    Indicative,
    /// None of its numbers may be used.
    Discarded,
}

/// A verdict with its reasons; `valid` has none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validity {
    pub verdict: Verdict,
    pub reasons: Vec<String>,
}

impl Validity {
    /// Valid, until something lowers it.
    pub fn valid() -> Self {
        Validity { verdict: Verdict::Valid, reasons: Vec::new() }
    }

    /// Lower the verdict (never raise it) and say why, once: a report may find again what was found when the run ended.
    pub fn lower(&mut self, to: Verdict, reason: impl Into<String>) {
        self.verdict = self.verdict.max(to);
        let reason = reason.into();
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    /// The reason where the first and the last member began to train further apart than a campaign allows.
    pub fn started_apart(skew_s: f64, limit_s: f64) -> String {
        let ms = |s: f64| if s < 0.00995 { format!("{:.1} ms", s * 1e3) } else { format!("{:.0} ms", s * 1e3) };
        format!("members started {} apart (limit {})", ms(skew_s), ms(limit_s))
    }
}

/// The evidence, gathered inside the measured window, that the mode was in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attestation {
    pub verdict: AttestationVerdict,
    pub checks: Vec<Check>,
}

/// The result of all checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttestationVerdict {
    /// The evidence names every member.
    Attested,
    /// Only counts as evidence (pids hidden by a container): makes a run indicative.
    CountsOnly,
    /// No evidence: discards a run.
    Absent,
}

impl AttestationVerdict {
    /// As stored, in the order of the variants.
    const WORDS: [&'static str; 3] = ["attested", "counts_only", "absent"];

    pub fn as_str(self) -> &'static str {
        Self::WORDS[self as usize]
    }

    pub fn parse(word: &str) -> Option<AttestationVerdict> {
        let all = [AttestationVerdict::Attested, AttestationVerdict::CountsOnly, AttestationVerdict::Absent];
        all.into_iter().find(|verdict| verdict.as_str() == word)
    }
}

/// The check of the device that a member trains on: it asks for the UUID that collo gave the member, also for that of an instance.
pub const DEVICE_SEEN: &str = "device as it sees it";

/// One requested property, read back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What was read: `cpu time in the window`, `affinity`, `threads`.
    pub what: String,
    /// The member it is about; `None` if about the device.
    pub member: Option<u32>,
    /// The requested value.
    pub asked: String,
    /// The value found; `None` if it could not be read.
    pub found: Option<String>,
    pub holds: bool,
}

impl Attestation {
    /// No evidence at all, with one line that says why.
    pub fn absent(why: impl Into<String>) -> Self {
        let check = Check { what: why.into(), member: None, asked: "evidence".into(), found: None, holds: false };
        Attestation { verdict: AttestationVerdict::Absent, checks: vec![check] }
    }

    /// Attested if there is a check and all of them pass, absent otherwise.
    pub fn from_checks(checks: Vec<Check>) -> Self {
        let all = !checks.is_empty() && checks.iter().all(|c| c.holds);
        Attestation { verdict: if all { AttestationVerdict::Attested } else { AttestationVerdict::Absent }, checks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_carries_its_word_in_json() {
        let o = Outcome::OutOfMemory { member: 2, message: "tried to allocate 1 GiB".into() };
        let json = serde_json::to_string(&o).unwrap();
        assert_eq!(json, r#"{"kind":"out_of_memory","member":2,"message":"tried to allocate 1 GiB"}"#);
        assert_eq!(serde_json::from_str::<Outcome>(&json).unwrap(), o);
        assert!(!o.is_failure() && o.is_final());
    }

    #[test]
    fn every_word_is_that_of_an_outcome_and_every_outcome_has_one() {
        let stored = |word: &str| {
            serde_json::json!({"kind": word, "member": 0, "message": "", "status": "", "phase": "total", "reason": ""})
                .to_string()
        };
        for word in Outcome::WORDS {
            let read: Outcome = serde_json::from_str(&stored(word)).expect(word);
            assert_eq!(read.as_str(), word);
        }
        let unknown = serde_json::from_str::<Outcome>(&stored("unheard_of")).expect_err("it is none").to_string();
        let (_, known) = unknown.split_once("expected one of ").expect("serde lists them");
        assert_eq!(Outcome::EXPECTABLE.first(), Some(&"out_of_memory"));
        assert_eq!(Outcome::EXPECTABLE.last(), Some(&"protocol_error"));
        assert_eq!(known.split(", ").filter(|w| w.starts_with('`')).count(), Outcome::WORDS.len(), "{unknown}");
    }

    #[test]
    fn a_reason_that_is_found_twice_is_said_once() {
        let mut validity = Validity::valid();
        for verdict in [Verdict::Discarded, Verdict::Indicative] {
            validity.lower(verdict, Validity::started_apart(0.1694, 0.1));
        }
        validity.lower(Verdict::Indicative, Validity::started_apart(0.0004, 0.0003));
        assert_eq!(validity.verdict, Verdict::Discarded);
        let reasons = ["members started 169 ms apart (limit 100 ms)", "members started 0.4 ms apart (limit 0.3 ms)"];
        assert_eq!(validity.reasons, reasons);
    }

    #[test]
    fn memory_of_the_host_that_ran_out_is_no_result_of_the_card() {
        let o = Outcome::HostOutOfMemory { member: 6, message: "MemoryError".into() };
        assert_eq!(serde_json::to_string(&o).unwrap(), r#"{"kind":"host_out_of_memory","member":6,"message":"MemoryError"}"#);
        assert_eq!(o.text(), "host out of memory");
        assert!(o.is_failure() && o.is_final());
    }

    #[test]
    fn only_failures_that_may_not_occur_again_are_worth_a_retry() {
        let lost = Outcome::ModeLost { reason: "the daemon died".into() };
        assert!(lost.may_pass() && Outcome::NotStaged { reason: String::new() }.may_pass());
        let never = [
            Outcome::Completed,
            Outcome::Interrupted,
            Outcome::OutOfMemory { member: 0, message: String::new() },
            Outcome::HostOutOfMemory { member: 0, message: String::new() },
            Outcome::ProtocolError { member: 0, message: String::new() },
            Outcome::EndedEarly { member: 0, message: String::new() },
            Outcome::DeviceLost { reason: String::new() },
        ];
        assert!(never.iter().all(|outcome| !outcome.may_pass()));
    }

    #[test]
    fn a_verdict_only_falls() {
        let mut v = Validity::valid();
        v.lower(Verdict::Discarded, "a");
        v.lower(Verdict::Indicative, "b");
        assert_eq!(v.verdict, Verdict::Discarded);
        assert_eq!(v.reasons, ["a", "b"]);
    }

    #[test]
    fn verdicts_are_stored_by_their_words() {
        let words = r#"["valid","indicative","discarded"]"#;
        let verdicts = [Verdict::Valid, Verdict::Indicative, Verdict::Discarded];
        assert_eq!(serde_json::to_string(&verdicts).unwrap(), words);
        assert_eq!(serde_json::from_str::<[Verdict; 3]>(words).unwrap(), verdicts);
    }

    #[test]
    fn no_check_is_no_evidence() {
        assert_eq!(Attestation::from_checks(vec![]).verdict, AttestationVerdict::Absent);
    }
}
