//! Whose turn it is to speak: what a member may not say yet, or not again. Pure.

use super::seat::Seat;
use crate::launch::protocol::Event;

/// Why a member cannot say this now, if it cannot; `told_to_go` says whether its group was.
pub fn out_of_turn(member: usize, seat: &Seat, event: &Event, told_to_go: bool) -> Option<String> {
    // A foreign script knows nothing of turns, and its supervisor keeps them.
    if !seat.barrier {
        return None;
    }
    let word = match event {
        Event::Hello(_) => "hello",
        Event::Ready => "ready",
        Event::Done => "done",
        Event::Epoch(_) => "epoch",
        Event::Features(_) => "features",
        Event::Memory(_) => "memory",
        Event::Capacity { .. } => "capacity",
        Event::Requests(_) => "requests",
        // Who fails may do so at any time, and who knows what else a later protocol says, and when.
        Event::Error(_) | Event::Unknown => return None,
    };
    let trains = matches!(event, Event::Epoch(_) | Event::Done);
    let again = match event {
        Event::Hello(_) => seat.hello.is_some(),
        Event::Ready => seat.ready_ns.is_some(),
        Event::Done => seat.done,
        _ => false,
    };
    match () {
        () if again => Some(format!("member {member} says `{word}` twice")),
        () if seat.hello.is_none() && word != "hello" => {
            Some(format!("member {member} says `{word}` before its `hello`: call `member.hello(…)` first"))
        }
        () if trains && !told_to_go => {
            let first = "call `member.ready()` first, which returns when everybody is";
            Some(format!("member {member} says `{word}` before it was told to go: {first}"))
        }
        () => None,
    }
}
