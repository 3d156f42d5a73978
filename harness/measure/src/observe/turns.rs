//! The order of messages: warm-ups one at a time, and messages that a member may not send yet, or not again. Pure.

use std::collections::VecDeque;

use super::seat::MemberState;
use collo_launch::protocol::MemberEvent;

/// Why a member cannot send this now, if so; `told_to_go` says whether its group got `go`.
pub fn out_of_turn(member: usize, seat: &MemberState, event: &MemberEvent, told_to_go: bool) -> Option<String> {
    // A foreign script knows nothing of turns, and its supervisor keeps them.
    if !seat.barrier {
        return None;
    }
    let word = match event {
        MemberEvent::Hello(_) => "hello",
        MemberEvent::Ready => "ready",
        MemberEvent::Done => "done",
        MemberEvent::Epoch(_) => "epoch",
        MemberEvent::Features(_) => "features",
        MemberEvent::Memory(_) => "memory",
        MemberEvent::Capacity { .. } => "capacity",
        MemberEvent::Requests(_) => "requests",
        // Told by the end of its thread, of which its reader makes the end of the member.
        MemberEvent::Left { .. } => return None,
        // Who fails may do so at any time, and who knows what else a later protocol says, and when.
        MemberEvent::Error(_) | MemberEvent::Shortfall(_) | MemberEvent::Unknown => return None,
    };
    let trains = matches!(event, MemberEvent::Epoch(_) | MemberEvent::Done);
    let again = match event {
        MemberEvent::Hello(_) => seat.hello.is_some(),
        MemberEvent::Ready => seat.ready_ns.is_some(),
        MemberEvent::Done => seat.done,
        _ => false,
    };
    match () {
        () if again => Some(format!("member {member} sends `{word}` twice")),
        () if seat.hello.is_none() && word != "hello" => {
            Some(format!("member {member} sends `{word}` before its `hello`: call `member.hello(…)` first"))
        }
        () if trains && !told_to_go => {
            let first = "call `member.ready()` first, which returns when all are ready";
            Some(format!("member {member} sends `{word}` before `go`: {first}"))
        }
        () => None,
    }
}

/// Members warm up one at a time, in the order of their hello.
#[derive(Debug, Default)]
pub struct WarmUps {
    queue: VecDeque<usize>,
    warming: Option<usize>,
}

impl WarmUps {
    /// The member whose turn it is.
    pub fn whose(&self) -> Option<usize> {
        self.warming
    }

    /// A member waits for its turn.
    pub fn wait(&mut self, member: usize) {
        self.queue.push_back(member);
    }

    /// It no longer needs a turn.
    pub fn leave(&mut self, member: usize) {
        self.queue.retain(|&m| m != member);
        self.warming.take_if(|warming| *warming == member);
    }

    /// The next member, if none has its turn now.
    pub fn next(&mut self, seats: &[MemberState]) -> Option<usize> {
        // What is tuned beside somebody's set-up is tuned in company: nobody begins before the last has said hello.
        let set_up = |s: &MemberState| !s.barrier || s.hello.is_some() || s.ended.is_some();
        if self.warming.is_some() || !seats.iter().all(set_up) {
            return None;
        }
        self.warming = self.queue.pop_front();
        self.warming
    }
}
