//! One execution of a task while it lives: its state machine is that of a group of one, so that every ending is typed as theirs.

use collo_schedule::{Attempt, HowEnded};
use collo_store::{AttestationVerdict, Check, Outcome};

use crate::observe::{Phase, Watch};
use crate::stage::InForce;
use collo_launch::MemberLaunch;
use collo_launch::protocol::Command;

/// An attempt from its launch to its end.
pub struct LiveAttempt {
    pub attempt: Attempt,
    pub watch: Watch,
    /// How it was launched; `None` as long as it waits for its card to be as it should.
    pub launch: Option<MemberLaunch>,
    pub launched_ns: u64,
    /// From when on it holds its memory, as far as it says; readings after it contain it.
    pub ready_ns: Option<u64>,
    pub settled_ns: Option<u64>,
    /// The order to train, held back until the evidence is in.
    pub go: Option<Command>,
    pub attested: Option<AttestationVerdict>,
    pub checks: Vec<Check>,
    pub ended: Option<EndedAttempt>,
    pub peak_rss_bytes: Option<u64>,
    /// What is known better than what its own end says.
    pub blamed: Option<Outcome>,
}

/// Its end.
#[derive(Debug, Clone)]
pub struct EndedAttempt {
    pub at_ns: u64,
    pub outcome: Outcome,
}

impl LiveAttempt {
    pub fn lives(&self) -> bool {
        self.ended.is_none()
    }

    /// The numbers of its cards, the main one first.
    pub fn cards(&self) -> Vec<usize> {
        self.attempt.cards.iter().map(|card| card.0 as usize).collect()
    }

    pub fn main_card(&self) -> usize {
        self.attempt.cards[0].0 as usize
    }

    /// True if it is to be attested: it is ready, or it is a foreign script that runs. Who is done may be gone at any moment.
    pub fn is_there(&self) -> bool {
        let seat = &self.watch.seats[0];
        self.lives() && seat.phase < Phase::Tail && (seat.ready_ns.is_some() || (!seat.barrier && seat.pid.is_some()))
    }

    /// The request for it, and what is found of it now. Its window is its whole life, at the beginning of which it had used no time.
    pub fn in_force(&self, number: usize, supervisor: u32, asked_threads: u32, all_cores: &[u32]) -> InForce {
        use collo_launch::{memory_policy, tree};
        let pids = tree::descendants(supervisor);
        let launch = self.launch.as_ref();
        InForce {
            member: number,
            process: None,
            hello: self.watch.seats[0].hello.clone(),
            cpu_ns_before: Some(0),
            cpu_ns_now: tree::cpu_time_ns(&pids),
            cores: tree::affinity(&pids),
            asked_cores: launch.and_then(|launch| launch.cores.clone()).unwrap_or_else(|| all_cores.to_vec()),
            memory_policy: launch.and_then(|launch| launch.memory_nodes.as_ref()).and_then(|_| memory_policy::of(&pids)),
            asked_memory_nodes: launch.and_then(|launch| launch.memory_nodes.clone()),
            pids,
            asked_threads,
        }
    }
}

/// The same outcome, said of the member that it is in the run.
pub fn of_member(outcome: Outcome, index: u32) -> Outcome {
    match outcome {
        Outcome::OutOfMemory { message, .. } => Outcome::OutOfMemory { member: index, message },
        Outcome::HostOutOfMemory { message, .. } => Outcome::HostOutOfMemory { member: index, message },
        Outcome::Crashed { status, message, place_alone, .. } => Outcome::Crashed { member: index, status, message, place_alone },
        Outcome::EndedEarly { message, .. } => Outcome::EndedEarly { member: index, message },
        Outcome::TimedOut { phase, message, .. } => Outcome::TimedOut { member: index, phase, message },
        Outcome::ProtocolError { message, .. } => Outcome::ProtocolError { member: index, message },
        other @ (Outcome::Completed
        | Outcome::ProcessEnded { .. }
        | Outcome::ModeLost { .. }
        | Outcome::ObserverLost { .. }
        | Outcome::NotStaged { .. }
        | Outcome::DeviceLost { .. }
        | Outcome::Interrupted) => other,
    }
}

/// What an outcome is to the books: only exhausted memory of the card is worth another attempt.
pub fn how_ended(outcome: &Outcome) -> HowEnded {
    match outcome {
        Outcome::Completed => HowEnded::Completed,
        Outcome::OutOfMemory { .. } => HowEnded::OutOfMemory,
        Outcome::ModeLost { .. } => HowEnded::ModeLost,
        Outcome::DeviceLost { .. } => HowEnded::CardLost,
        Outcome::Interrupted => HowEnded::Interrupted,
        Outcome::HostOutOfMemory { .. }
        | Outcome::Crashed { .. }
        | Outcome::ProcessEnded { .. }
        | Outcome::EndedEarly { .. }
        | Outcome::TimedOut { .. }
        | Outcome::ObserverLost { .. }
        | Outcome::NotStaged { .. }
        | Outcome::ProtocolError { .. } => HowEnded::Failed,
    }
}
