//! Why a run has no numbers, in half a line.

use crate::{Outcome, RunRecord};

impl RunRecord {
    /// How it ended other than by completing; `None` if it completed.
    pub fn failure(&self) -> Option<String> {
        Some(match &self.outcome {
            Outcome::Completed => return None,
            Outcome::OutOfMemory { member, message } => format!("out of memory: member {member}: {message}"),
            Outcome::HostOutOfMemory { member, message } => {
                format!("host out of memory, which says nothing about the GPU: member {member}: {message}")
            }
            Outcome::Crashed { member, status, message, place_alone } => {
                let joint = if *place_alone { " " } else { ": " };
                format!("crashed: member {member} {status}{joint}{message}{}", self.others(*member))
            }
            Outcome::ProcessEnded { status, message } => format!("the process of all members {status}: {message}"),
            Outcome::EndedEarly { member, message } => format!("ended early: member {member}: {message}{}", self.others(*member)),
            Outcome::TimedOut { member, phase, message } => {
                let pid = self.members.get(*member as usize).and_then(|m| m.pid);
                let pid = pid.map(|p| format!(" (pid {p})")).unwrap_or_default();
                format!("timed out: member {member}{pid} {message}, in {phase}")
            }
            Outcome::ModeLost { reason } => format!("discarded: mode lost, no numbers are kept: {reason}"),
            Outcome::ObserverLost { reason } => format!("discarded: not watched to the end, no numbers are kept: {reason}"),
            Outcome::NotStaged { reason } => format!("not staged: {reason}"),
            Outcome::DeviceLost { reason } => format!("device lost: {reason}"),
            Outcome::ProtocolError { message, .. } => format!("protocol error: {message}"),
            Outcome::Interrupted => "interrupted".into(),
        })
    }

    /// What became of the others when a member ended.
    fn others(&self, dead: u32) -> String {
        let rest: Vec<String> = (0..self.members.len() as u32).filter(|&m| m != dead).map(|m| m.to_string()).collect();
        match &rest[..] {
            [] => String::new(),
            [one] => format!("; {one} was stopped"),
            [some @ .., last] => format!("; {} and {last} were stopped", some.join(", ")),
        }
    }
}
