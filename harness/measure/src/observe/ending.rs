//! Why a member ended without being asked to: from its messages, its log, and the kernel. Pure.

use collo_store::Outcome;

use super::memory;
use super::seat::{MemberState, Phase, Traces};
use collo_launch::protocol::{Told, Whose};
use collo_launch::{Ended, Live};
use collo_text::units::gib;

/// Why a member ended early: from its own message first, then its log, then the kernel. On a GPU, exhausted host memory says
/// nothing about the GPU.
pub fn why(seat: &MemberState, member: usize, phase: Phase, ended: &Ended, traces: Traces, on_card: bool) -> Outcome {
    let index = member as u32;
    let place = place(seat, phase);
    // Of a process that ends with all its members only one that said so itself is known to have been short of memory.
    let nobody_said = matches!(ended.live, Live::WithProcess(_)) && seat.told_error.is_none();
    let shared_by_all = if nobody_said { ", in the process of all members: which of them wanted it is not known" } else { "" };
    let ran_out = |whose: Whose, said: &str| out_of_memory(index, whose, format!("{said}, {place}{shared_by_all}"), on_card);
    if let Some(outcome) = as_it_reported(seat, member, phase, on_card) {
        return outcome;
    }
    // Whoever was killed said its last words before, and of something else: all but abort(3), by which a program gives up.
    let (live, shared) = match &ended.live {
        Live::WithProcess(how) => (&**how, true),
        live => (live, false),
    };
    let gave_up = matches!(live, Live::Exited(code) if *code != 0) || *live == Live::Killed(6);
    if let Some((whose, line)) = traces.out_of_memory.filter(|_| gave_up) {
        return ran_out(whose, &line);
    }
    // The killer may also have taken a data-loader worker: torch says so in the words of its signal.
    let loader_killed = seat.told_error.as_ref().is_some_and(|told| told.message.contains("killed by signal: Killed"));
    if (*live == Live::Killed(9) || loader_killed) && traces.kernel_oom_kill {
        let whom = if loader_killed { "one of its data-loader workers" } else { "it" };
        return ran_out(Whose::Host, &format!("the kernel's OOM killer ended {whom}"));
    }
    if !seat.barrier && ended.live == Live::Exited(0) && seat.told_error.is_none() {
        let lacks = match &seat.shortfall {
            Some(shortfall) => shortfall.message.clone(),
            None if seat.done => "not all members were ready: let it train longer".into(),
            None => place.clone(),
        };
        return Outcome::EndedEarly { member: index, message: format!("it ended with 0; {lacks}{}", left(&ended.orphans)) };
    }
    // Of somebody who says nothing, the place is all there is to say.
    let place_alone = seat.told_error.is_none() && phase != Phase::Tail;
    let mut message = match (live, &seat.told_error) {
        (_, Some(told)) => format!("{}, {place}", told.message),
        (Live::Exited(0), None) if phase == Phase::Tail => format!("{place}, before it was asked to stop"),
        (Live::Exited(0), None) => format!("before `done`, {place}"),
        (_, None) => place,
    };
    if let Some(remark) = remark(seat.told_error.as_ref(), traces.symptom.filter(|_| gave_up)) {
        message.push_str(&format!("; {remark}"));
    }
    if ended.cut_off {
        message.push_str("; its last line on the channel was truncated");
    }
    message.push_str(&left(&ended.orphans));
    // Which of its members brought a process down it does not say, unless one of them did.
    if shared && seat.told_error.is_none() {
        return Outcome::ProcessEnded { status: live.to_string(), message: format!("member {index} was {message}") };
    }
    Outcome::Crashed { member: index, status: ended.live.to_string(), message, place_alone }
}

/// The outcome of a member that reported that it ran out of memory, whether it has ended since or hangs in its tear-down.
pub fn as_it_reported(seat: &MemberState, member: usize, phase: Phase, on_card: bool) -> Option<Outcome> {
    let told = seat.told_error.as_ref().filter(|told| told.kind == "out_of_memory")?;
    let whose = told.whose.or_else(|| memory::said(&told.message).map(|words| words.whose));
    let message = format!("{}, {}", told.message, place(seat, phase));
    Some(out_of_memory(member as u32, whose.unwrap_or(Whose::Either), message, on_card))
}

fn out_of_memory(member: u32, whose: Whose, message: String, on_card: bool) -> Outcome {
    match whose {
        Whose::Host if on_card => Outcome::HostOutOfMemory { member, message },
        _ => Outcome::OutOfMemory { member, message },
    }
}

fn place(seat: &MemberState, phase: Phase) -> String {
    match phase {
        Phase::Measure | Phase::Ready => format!("in epoch {}", seat.epochs.len()),
        Phase::Tail => "after `done`".into(),
        other => format!("in {}", other.as_str()),
    }
}

/// The processes that it left behind.
fn left(orphans: &[(u32, String)]) -> String {
    match orphans {
        [] => String::new(),
        [(pid, _)] => format!("; its child {pid} was ended"),
        many => {
            let pids: Vec<String> = many.iter().map(|(pid, _)| pid.to_string()).collect();
            format!("; its children {} were ended", pids.join(", "))
        }
    }
}

/// Another possible cause: an error that often is one of memory, where that is unknown or was not the case.
fn remark(told: Option<&Told>, in_the_log: Option<String>) -> Option<String> {
    match told {
        Some(told) => {
            memory::said(&told.message).filter(|words| !words.sure)?;
            Some(match (told.free_bytes, told.total_bytes) {
                (Some(free), Some(total)) => {
                    format!("it often means out of memory, but {} of {} were free", gib(free), gib(total))
                }
                _ => "it often means out of memory; how much was free is unknown".into(),
            })
        }
        None => {
            let line = in_the_log?;
            Some(format!("its log reports `{line}`, which often means out of memory; how much was free is unknown"))
        }
    }
}
