//! Why a member ended although nobody asked it to: what it said, what its log says, what the kernel did. Pure.

use collo_store::Outcome;

use super::seat::{Phase, Seat, Traces};
use crate::launch::{Ended, Live};

/// Why a member ended before it should: its own word first, then its log, then the kernel's.
pub fn why(seat: &Seat, member: usize, phase: Phase, ended: &Ended, traces: Traces) -> Outcome {
    let index = member as u32;
    let place = match phase {
        Phase::Measure | Phase::Ready => format!("in epoch {}", seat.epochs.len()),
        Phase::Tail => "in the tail".into(),
        other => format!("in {}", other.word()),
    };
    match &seat.told_error {
        Some((kind, message)) if kind == "out_of_memory" => {
            return Outcome::OutOfMemory { member: index, message: format!("{message}, {place}") };
        }
        _ => {}
    }
    if let Some(line) = traces.out_of_memory_line {
        return Outcome::OutOfMemory { member: index, message: format!("{line}, {place}") };
    }
    // The killer may also have taken a data-loader worker: torch says so in the words of its signal.
    let loader_killed = seat.told_error.as_ref().is_some_and(|(_, said)| said.contains("killed by signal: Killed"));
    if (ended.live == Live::Killed(9) || loader_killed) && traces.kernel_oom_kill {
        return Outcome::OutOfMemory {
            member: index,
            message: format!(
                "the kernel's OOM killer ended {}, {place}",
                if loader_killed { "a data-loader worker of it" } else { "it" }
            ),
        };
    }
    let mut message = match (&ended.live, &seat.told_error) {
        (_, Some((_, said))) => format!("{said}, {place}"),
        (Live::Exited(0), None) => format!("before `done`, {place}"),
        (_, None) => place,
    };
    if ended.cut_off {
        message.push_str("; its last line on the channel was cut off");
    }
    match &ended.orphans[..] {
        [] => {}
        [(pid, _)] => message.push_str(&format!("; its child {pid} was ended")),
        many => {
            let pids: Vec<String> = many.iter().map(|(pid, _)| pid.to_string()).collect();
            message.push_str(&format!("; its children {} were ended", pids.join(", ")));
        }
    }
    Outcome::Crashed { member: index, status: ended.live.to_string(), message }
}
