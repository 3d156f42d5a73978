//! What is looked at in stored runs besides what holds for all: readings, and the truth that the simulation knows.

use std::collections::BTreeMap;

use collo_store::{AttestationVerdict, Outcome, StoredRun, Verdict};
use simgpu::card::Card;
use simgpu::truth::{Sharing, truth};
use simgpu::workload::Workload;

use crate::gpu_faults::row::hold;
use crate::sim::Machine;
use crate::support::Answer;

const ACTIVITY: &str = "sm_active_ratio";

/// Values of a metric while all trained, by scope; a window that reaches out of it does not count.
fn readings(run: &StoredRun, metric: &str) -> BTreeMap<String, Vec<f64>> {
    let all = collo_store::read_samples(&run.path.join("samples.parquet"), |_, _, m| m == metric).expect("readable");
    let began = run.record.members.iter().filter_map(|m| m.training_start_ns).max().unwrap_or(0);
    let ended = run.record.timeline.done_ns.unwrap_or(u64::MAX);
    let inside = |(at, window, value): &(u64, u64, Option<f64>)| {
        // A source may renew its numbers somewhat later than it is asked.
        let slack = 120_000_000;
        value.filter(|_| at.saturating_sub(window + slack) >= began && *at <= ended)
    };
    let of = |((scope, _), values): ((String, String), Vec<_>)| (scope, values.iter().filter_map(inside).collect());
    all.into_iter().map(of).collect()
}

fn told(run: &StoredRun, metric: &str) -> usize {
    let all = collo_store::read_samples(&run.path.join("samples.parquet"), |_, _, m| m == metric).expect("readable");
    all.values().flatten().filter(|(_, _, value)| value.is_some()).count()
}

fn each(machine: &Machine, look: impl Fn(&StoredRun) -> Result<(), String>) -> Result<(), String> {
    let runs = machine.bench.runs();
    runs.iter().try_for_each(|(folder, run)| look(run).map_err(|e| format!("{folder}: {e}")))
}

/// Activity has values, of the card or of every instance that is used.
pub fn is_told(machine: &Machine, _: &Answer) -> Result<(), String> {
    each(machine, |run| {
        let seen = readings(run, ACTIVITY);
        let values = |prefix: &str| seen.iter().filter(|(s, v)| s.starts_with(prefix) && !v.is_empty()).count();
        let cut = run.record.cell.sharing.starts_with("mig");
        let (prefix, wanted) = if cut { ("mig:", run.record.cell.degree as usize) } else { ("gpu:", 1) };
        hold(values(prefix) == wanted, || format!("activity of {} {prefix} of {wanted}: {seen:?}", values(prefix)))
    })
}

/// The report has the activity of each member's own instance.
pub fn of_each_slice(machine: &Machine, _: &Answer) -> Result<(), String> {
    let report = collo_report::Report::of(&machine.bench.campaign()).map_err(|e| e.to_string())?;
    let cells: Vec<_> = report.analysis.cells.iter().filter(|cell| cell.record.mode.isolated).collect();
    hold(!cells.is_empty(), || "nobody was on an instance".into())?;
    cells.into_iter().try_for_each(|cell| {
        let is_told = (0..cell.members.len()).all(|member| cell.on_instance(member).is_some());
        hold(is_told, || format!("no activity of the instances of {}", cell.name()))
    })
}

/// Activity has no value anywhere.
pub fn absent(machine: &Machine, _: &Answer) -> Result<(), String> {
    each(machine, |run| hold(told(run, ACTIVITY) == 0, || "activity has values".into()))
}

/// Wherever activity has values, they are those of the model.
pub fn as_true(machine: &Machine, _: &Answer) -> Result<(), String> {
    let device = machine.bench.campaign().manifest().device.name.clone();
    let card = Card::find(if device.contains("H100") { "h100-80gb" } else { "a100-40gb" })?;
    let options = [("model", "resnet26"), ("dataset", "cifar-10"), ("batch_size", "32")];
    let small = Workload::find("vision", &options.map(|(a, b)| (a.to_string(), b.to_string())).into())?;
    each(machine, |run| {
        let cell = &run.record.cell;
        let profile = cell.sharing.strip_prefix("mig:").map(|p| p.split('×').next_back().unwrap_or(p).to_string());
        let group = vec![small.clone(); cell.degree as usize];
        let sharing = match (&profile, cell.sharing.as_str()) {
            (Some(profile), _) => Sharing::Mig(vec![profile.clone(); group.len()]),
            (None, "mps") => Sharing::Mps(None),
            (None, _) => Sharing::Naive,
        };
        let whole = truth(&card, &group, &sharing)?.sm_active_ratio;
        // Each of the equal instances has its part of it, over its own SMs.
        let own = profile.and_then(|p| Some(f64::from(card.sms) / f64::from(card.profile_named(&p)?.sms)));
        let own = own.map(|share| whole / group.len() as f64 * share);
        for (scope, values) in readings(run, ACTIVITY).iter().filter(|(_, v)| v.len() >= 3) {
            // A reading that came late has a window that begins before all trained: such are few.
            let Some(usual) = collo_quantity::stats::median(&mut values.clone()) else { continue };
            let wanted = if scope.starts_with("mig:") { own } else { Some(whole) };
            let wanted = wanted.ok_or_else(|| format!("{scope} on a card that is not cut"))?;
            hold((usual / wanted - 1.0).abs() < 0.1, || {
                format!("{scope} is {usual:.3} active, in truth {wanted:.3}: {values:?}")
            })?;
        }
        Ok(())
    })
}

/// Completed by counts alone, and so indicative.
pub fn indicative(machine: &Machine, _: &Answer) -> Result<(), String> {
    each(machine, |run| {
        let r = &run.record;
        let counts = r.attestation.verdict == AttestationVerdict::CountsOnly && r.validity.verdict == Verdict::Indicative;
        hold(r.outcome == Outcome::Completed && counts, || format!("{:?} {:?}", r.outcome, r.validity))
    })
}

pub fn no_energy(machine: &Machine, _: &Answer) -> Result<(), String> {
    each(machine, |run| hold(told(run, "energy_j") == 0, || "energy has values".into()))
}

pub fn no_power(machine: &Machine, _: &Answer) -> Result<(), String> {
    each(machine, |run| hold(told(run, "power_w") == 0, || "power has values".into()))
}

/// The reason is on record.
pub fn throttled(machine: &Machine, _: &Answer) -> Result<(), String> {
    each(machine, |run| {
        let seen = readings(run, "throttle_reasons");
        let told = seen.values().flatten().any(|v| *v as u64 & 4 != 0);
        hold(told, || format!("no reason for throttling: {seen:?}"))
    })
}
