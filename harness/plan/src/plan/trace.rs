//! What a trace needs of a device: cards for its tasks, readings and estimates for its policy.

use std::collections::HashSet;

use collo_predict::EstimateSource;
use collo_schedule::{Discipline, policy};
use collo_store::{CellRecord, MemberSpec, Sharing};

use super::{Basis, Seated, memory, refuse_first, without_mps};
use crate::cell::{Cell, CellTrace, NO_ESTIMATE};
use crate::facts::{DeviceFacts, DeviceKind};
use crate::plan::published::published_estimate;
use crate::prior::Prior;
use crate::sharing::{Refusal, Seating};

/// The state that every card of a trace is in; or why it cannot be played here.
pub(super) fn seat(cell: &Cell, trace: &CellTrace, record: &CellRecord, basis: &Basis<'_>) -> Result<Seating, Refusal> {
    let Basis { experiment, whole: facts, prior, .. } = *basis;
    let partitioned = record.mode.partitioned;
    refuse_first([
        in_one_process(&record.mode),
        other_cards(trace, facts).filter(|_| !partitioned),
        too_wide(trace),
        too_large(trace, basis),
        across_instances(trace).filter(|_| partitioned),
        of_policy(trace, facts),
        of_estimate(trace, &record.mode, prior),
    ])?;
    // Members come and go: how many there are at once is not known, and the mode's state is that of one.
    let alone: Vec<MemberSpec> = record.members.iter().take(1).cloned().collect();
    let seating = cell.mode().seat(facts, &alone, &experiment.each)?;
    refuse_first([without_mps(&seating, facts), as_laid_out(trace, &seating, facts)])?;
    Ok(seating)
}

/// Tasks come and go, and a thread cannot be placed nor ended by itself.
fn in_one_process(mode: &Sharing) -> Option<Refusal> {
    mode.one_process.then(|| Refusal {
        reason: format!("tasks of a trace are placed and ended one by one, and members under `{}` are one process", mode.family),
        hint: Some("`sharing = \"naive\"`, or `mps` on a GPU".into()),
    })
}

/// The cards of a site, in words.
pub(super) fn slots(trace: &CellTrace, seating: &Seating, facts: &DeviceFacts) -> String {
    let cards = trace.record.cards;
    let counted = |one: &str| if cards == 1 { format!("1 {one}") } else { format!("{cards} {one}s") };
    match facts.kind {
        DeviceKind::Cpu => format!("{} of {}", counted("set"), counted_cores(facts.cores.len() / cards as usize)),
        DeviceKind::Gpu if seating.partition.as_ref().is_some_and(|p| p.mig) => "instances as laid out".into(),
        DeviceKind::Gpu => counted("GPU"),
    }
}

fn counted_cores(cores: usize) -> String {
    if cores == 1 { "1 core".into() } else { format!("{cores} cores") }
}

/// How many cards this device has for a trace: GPUs, or cores to make sets of.
pub(super) fn cards(facts: &DeviceFacts) -> usize {
    match facts.kind {
        // Each set needs a core that is free for it.
        DeviceKind::Cpu => facts.cores.len().min(facts.cores_at_a_time().max(1.0) as usize),
        DeviceKind::Gpu => facts.gpus.len(),
    }
}

/// Cards of which there are too few; or of GPUs too many, because all that are chosen are the site.
fn other_cards(trace: &CellTrace, facts: &DeviceFacts) -> Option<Refusal> {
    let (asked, there) = (trace.record.cards as usize, cards(facts));
    if asked == there || (asked < there && facts.kind == DeviceKind::Cpu) {
        return None;
    }
    if asked < there {
        let named = (0..asked).map(|card| card.to_string()).collect::<Vec<_>>().join(",");
        return Some(Refusal {
            reason: format!("{asked} {} asked for, and {there} are chosen", if asked == 1 { "card is" } else { "cards are" }),
            hint: Some(format!("choose {asked}, as in `--gpu {named}`; or `--set trace.cards={there}`")),
        });
    }
    let (reason, hint) = match facts.kind {
        DeviceKind::Cpu => (
            format!("{asked} sets of cores need {asked} cores, and collo may use {there}"),
            format!("`--set trace.cards={there}`"),
        ),
        DeviceKind::Gpu => (
            format!("{asked} cards are asked for, and {there} {} chosen", if there == 1 { "is" } else { "are" }),
            format!("name {asked}, as in `--gpu 0,1`; or `--set trace.cards={there}`"),
        ),
    };
    Some(Refusal { reason, hint: Some(hint) })
}

fn too_wide(trace: &CellTrace) -> Option<Refusal> {
    let widest = trace.tasks.iter().max_by_key(|task| task.cards).filter(|task| task.cards > trace.record.cards)?;
    let (name, cards) = (&widest.member.workload().name, trace.record.cards);
    Some(Refusal {
        reason: format!("a task of it, `{name}`, runs on {} cards at once, and the site has {cards}", widest.cards),
        hint: Some(format!("`--set trace.cards={}`, or another trace: `collo list traces`", widest.cards)),
    })
}

/// A task that alone on a card would not fit.
fn too_large(trace: &CellTrace, basis: &Basis<'_>) -> Option<Refusal> {
    let mut seen = HashSet::new();
    let mut members = trace.tasks.iter().map(|task| &task.member).filter(|member| seen.insert(member.key()));
    let (member, Refusal { reason, .. }) = members.find_map(|member| {
        let cell = &Cell::solo(member, None);
        let record = &cell.record(1);
        let by_file = memory::too_large(cell, basis.facts).or_else(|| memory::too_large_for_the_host(cell, basis.facts));
        let predicted = || {
            let seating = &cell.mode().seat(basis.facts, &record.members, &basis.experiment.each).ok()?;
            memory::never_fits(Seated { cell, record, seating }, basis)
        };
        Some((member, by_file.or_else(predicted)?))
    })?;
    let anyway = if basis.facts.kind == DeviceKind::Gpu { "; `--no-predict` plays it, and lets it fail" } else { "" };
    Some(Refusal {
        reason: format!("a task of it, `{}`, fits no card: {reason}", member.solo()),
        hint: Some(format!("leave it out of traces/{}.toml, or use larger cards{anyway}", trace.record.trace)),
    })
}

/// CUDA gives a process one MIG device, whatever it is shown.
fn across_instances(trace: &CellTrace) -> Option<Refusal> {
    let wide = trace.tasks.iter().find(|task| task.cards > 1)?;
    let (name, cards) = (&wide.member.workload().name, wide.cards);
    Some(Refusal {
        reason: format!("a task of it, `{name}`, runs on {cards} cards at once, and a process computes on one instance only"),
        hint: Some("`sharing = \"mps\"` or `\"naive\"` uses whole cards".into()),
    })
}

/// A policy that decides by readings which the device never gives, or by beliefs that tasks of a trace do not have.
fn of_policy(trace: &CellTrace, facts: &DeviceFacts) -> Option<Refusal> {
    let needs = policy::parse(&trace.record.policy).ok()?.needs();
    let rules = &trace.manager.queue;
    let by_belief = match Discipline::parse(rules) {
        _ if needs.belief => Some(&trace.record.policy),
        Ok(Discipline::Decreasing) => Some(rules),
        _ => None,
    };
    if let Some(label) = by_belief {
        return Some(Refusal {
            reason: format!(
                "`{label}` decides by how busy each task is believed to keep a card, and nothing is believed of the tasks of a trace \
                 that is played"
            ),
            hint: Some("`magm:sm=80%` with `queue = \"fifo\"` decides by the SM activity that is read from the cards".into()),
        });
    }
    let missing = [(needs.occupancy, "occupancy"), (needs.dram, "DRAM activity")].into_iter().find(|(is, _)| *is);
    let (_, missing) = missing.filter(|_| facts.kind == DeviceKind::Cpu)?;
    Some(Refusal {
        reason: format!("`{}` decides by {missing}, which a CPU does not have", trace.record.policy),
        hint: Some("caps on `sm` and `free` work on a CPU: `magm:sm=80%,free=1GB`".into()),
    })
}

/// A policy and an estimate that make no sense together, or an oracle that knows nothing of a task.
fn of_estimate(trace: &CellTrace, mode: &Sharing, prior: &Prior) -> Option<Refusal> {
    let (policy, estimate) = (&trace.record.policy, trace.record.estimate.as_str());
    let needs = policy::parse(policy).ok()?.needs();
    let has = estimate != NO_ESTIMATE;
    if has && !needs.uses_estimate() {
        let reason =
            format!("`{policy}` decides the same whatever is believed, so with `{estimate}` it is what it is with `none`");
        return Some(Refusal {
            reason,
            hint: Some("leave one of them out: `[[zip]]` steps policies and estimates together".into()),
        });
    }
    if !has && needs.estimate == policy::Estimate::Required {
        let reason = format!("`{policy}` adds a margin to an estimate, and there is none");
        return Some(Refusal { reason, hint: Some("`estimate = \"measured\"`, or `free=5GB` instead of the margin".into()) });
    }
    // What is still to be predicted is refused, if at all, once it is.
    if !has || estimate == "predicted" && prior.is_to_predict {
        return None;
    }
    let estimates = estimates(trace, mode, prior);
    let unknown = trace.tasks.iter().zip(&estimates).find(|(_, known)| known.is_none()).map(|(task, _)| task.member.solo());
    let knows_none = estimates.iter().all(Option::is_none);
    let unknown = unknown.filter(|_| knows_none || estimate == "measured")?;
    let hint = match estimate {
        "predicted" => "`collo predict` says why; `estimate = \"none\"` needs none",
        _ => "published are those of the study's tasks; `estimate = \"predicted\"` asks collo's own predictor",
    };
    Some(Refusal { reason: format!("`{estimate}` has no estimate for `{unknown}`"), hint: Some(hint.into()) })
}

/// Under MIG instances are found, never cut: each is a card, and somebody has to have laid them out.
fn as_laid_out(trace: &CellTrace, seating: &Seating, facts: &DeviceFacts) -> Option<Refusal> {
    seating.partition.as_ref().filter(|partition| partition.mig)?;
    let instances =
        |gpu: &crate::facts::Gpu| gpu.partition.as_ref().filter(|found| found.mig).map_or(0, |found| found.instances.len());
    if let Some(bare) = facts.gpus.iter().find(|gpu| instances(gpu) == 0) {
        let reason = format!("a trace uses the instances that are there, and {} has none", bare.label());
        return Some(Refusal { reason, hint: Some("`collo mig apply LAYOUT` makes them".into()) });
    }
    let there: usize = facts.gpus.iter().map(instances).sum();
    (there != trace.record.cards as usize).then(|| Refusal {
        reason: format!("each instance is a card: there are {there}, and {} are asked for", trace.record.cards),
        hint: Some(format!("`--set trace.cards={there}`")),
    })
}

/// What is believed of the memory of each task, bytes on each of its cards; `None` where nobody knows.
pub(super) fn estimates(trace: &CellTrace, mode: &Sharing, prior: &Prior) -> Vec<Option<u64>> {
    let of = |member: &crate::cell::Member| match trace.record.estimate.as_str() {
        NO_ESTIMATE => None,
        // 95 % of measurements are meant to be below.
        "predicted" => {
            let claim = prior.predicted.as_ref()?.of(member.solo(), mode)?;
            claim.memory.as_ref().map(|memory| memory.upper_bytes)
        }
        source => published_estimate(member, EstimateSource::parse(source)?),
    };
    trace.tasks.iter().map(|task| of(&task.member)).collect()
}
