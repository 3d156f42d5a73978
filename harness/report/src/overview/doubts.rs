//! Why a reader may doubt the numbers of a campaign. In: an analysis. Out: a list of threats to validity, the gravest first, each
//! only where it applies.
//!
//! To add a threat: a function that returns its [`Doubt`], and its line in [`all`].

use std::collections::BTreeSet;

use collo_analysis::campaign::reference::ReferenceVerdict;
use collo_analysis::campaign::{Analysis, limitation};
use collo_analysis::cell::Cell;
use collo_analysis::cell::suspect::is_short_of_energy;
use collo_analysis::reading::data::batches;
use collo_analysis::words;
use collo_figures::document::{Doubt, Tone};
use collo_guidelines::verdict;
use collo_quantity::number;

use crate::parts::absent::nothing;
use crate::parts::notes;

/// Deviations from references that are listed; all are under Measurement quality.
const OUTSIDE: usize = 5;
/// Reasons of indicative cells, and problems, that are listed; the others are under Measurement quality.
pub const LISTED: usize = 3;
/// Up to this many repetitions a rare slow run can be absent from all of them.
const FEW: usize = 3;
/// Workloads whose shortened epochs are listed.
const SHORTENED: usize = 4;

const CIRCULAR: &str =
    "a model calibrated on the published study made every number: agreement with the study is circular, and not judged";
const SCOPE: &str = "nothing follows for other models, batch sizes, numbers of members, modes, devices or drivers; of many 95 % intervals some miss the truth";

/// All doubts of a campaign.
pub fn all(analysis: &Analysis) -> Vec<Doubt> {
    let grave = |name: &str, text: String| Doubt { name: name.into(), text, tone: Tone::Bad };
    let doubt = |name: &str, text: String| Doubt { name: name.into(), text, tone: Tone::Plain };
    let mut found: Vec<Doubt> = Vec::new();
    found.extend(notes::of_report(analysis).map(|text| grave("without runs", text)));
    found.extend(verdict::unfinished(analysis).into_iter().map(|text| match text.split_once(": ") {
        Some((name, rest)) => grave(name, rest.into()),
        None => grave("unfinished", text),
    }));
    found.extend(failed(analysis).map(|text| grave("failed runs", text)));
    found.extend(analysis.campaign.indicative.iter().map(|why| grave("indicative", why.clone())));
    let outside = analysis.references.iter().filter(|r| r.verdict == ReferenceVerdict::Outside);
    found.extend(outside.take(OUTSIDE).map(|r| grave("not as the reference", r.text())));
    found.extend(analysis.problems.iter().take(LISTED).map(|problem| grave("warning", problem.clone())));
    if analysis.campaign.device.simulated && analysis.campaign.device.kind == "gpu" {
        found.push(doubt("simulated", CIRCULAR.into()));
    }
    found.extend(busy(analysis).map(|text| doubt("shared machine", text)));
    found.extend(busy_at_start(analysis).map(|text| doubt("busy at the start", text)));
    if analysis.campaign.indicative.is_empty() {
        found.extend(notes::indicative_cells(analysis).into_iter().take(LISTED).map(|text| doubt("indicative", text)));
    }
    found.extend(notes::without_samples(analysis).map(|text| doubt("not sampled", text)));
    found.extend(synthetic(analysis).map(|text| doubt("synthetic data", text)));
    found.extend(shortened(analysis).map(|text| doubt("shortened epochs", text)));
    found.extend(repetitions(analysis).map(|text| doubt("few repetitions", text)));
    found.extend(one_seed(analysis).map(|text| doubt("one seed", text)));
    found.extend(drift(analysis).map(|text| doubt("drift", text)));
    let baselines = notes::lenders(analysis).into_iter().chain(notes::without_baseline(analysis));
    found.extend(baselines.map(|text| doubt("baselines", text)));
    found.extend(notes::merged(analysis).map(|text| doubt("merged", text)));
    found.extend(
        notes::cards(analysis).into_iter().chain(notes::differences(analysis)).map(|text| doubt("several devices", text)),
    );
    found.extend(notes::few_energy_steps(analysis).map(|text| doubt("energy", text)));
    found.extend(suspicious(analysis).map(|text| doubt("suspicious", text)));
    if nothing(analysis).is_none() {
        found.push(doubt("scope", SCOPE.into()));
    }
    found
}

/// Runs that ended neither with numbers nor with a result.
fn failed(analysis: &Analysis) -> Option<String> {
    const RESULTS: [&str; 5] = ["completed", "missing", "interrupted", "out_of_memory", "host_out_of_memory"];
    let failed: Vec<_> = analysis.accounted.iter().filter(|(word, n)| *n > 0 && !RESULTS.contains(word)).collect();
    let all: usize = failed.iter().map(|(_, n)| *n).sum();
    let named: Vec<String> = failed.iter().map(|(word, n)| format!("{n} {}", words::outcome(word))).collect();
    (all > 0).then(|| format!("{all} of {} have no numbers: {}", number::runs(analysis.planned), named.join(", ")))
}

fn busy(analysis: &Analysis) -> Option<String> {
    let ratio = analysis.others_ratio.filter(|ratio| *ratio > limitation::BUSY_RATIO)?;
    Some(format!("other processes used {} of the cores on average", number::percent(ratio)))
}

/// The load of a machine on which half of the cores were in use before anything was started.
fn busy_at_start(analysis: &Analysis) -> Option<String> {
    let machine = &analysis.campaign.machine;
    let load =
        machine.load_1min.filter(|load| !analysis.campaign.device.simulated && *load > f64::from(machine.cpu_cores) / 2.0)?;
    Some(format!("the load was {load:.1} on {} when the campaign began", number::count(machine.cpu_cores as usize, "core")))
}

fn synthetic(analysis: &Analysis) -> Option<String> {
    let times = if analysis.campaign.device.simulated { "" } else { "times are real, " };
    let names = analysis.synthetic.join(", ");
    (!names.is_empty()).then(|| format!("a stand-in for {names}: {times}losses are not those of the real data"))
}

fn shortened(analysis: &Analysis) -> Option<String> {
    let all = batches(&analysis.shortened);
    let more = all.len().saturating_sub(SHORTENED);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    let named = all.iter().take(SHORTENED).cloned().collect::<Vec<_>>().join(", ");
    (!all.is_empty()).then(|| format!("an epoch has {named}{more}: compare times per item"))
}

fn repetitions(analysis: &Analysis) -> Option<String> {
    let counted = analysis.groups().filter(|c| c.counts()).map(Cell::count);
    let least = counted.min().filter(|least| *least <= FEW)?;
    Some(match least {
        1 => "a group has only one, which carries no interval".into(),
        least => format!("groups have {}: a rare slow run may be in none of them", number::word(least as u32)),
    })
}

/// The seed of all members, if it is one and the runs were repeated.
fn one_seed(analysis: &Analysis) -> Option<String> {
    let runs = || analysis.cells.iter().flat_map(Cell::counted);
    let seed = |hello: &serde_json::Value| hello.pointer("/regime/seed").or_else(|| hello.get("seed"))?.as_u64();
    let seeds: BTreeSet<u64> = runs().flat_map(|r| &r.record().members).filter_map(|m| seed(m.hello.as_ref()?)).collect();
    let only = seeds.first().filter(|_| seeds.len() == 1 && analysis.cells.iter().any(|c| c.count() > 1))?;
    Some(format!("every member of every repetition begins with seed {only}"))
}

fn drift(analysis: &Analysis) -> Option<String> {
    let worst = analysis.worst_drift().filter(|d| d.is_large)?;
    let allowed = number::percent_as_written(analysis.campaign.thresholds.baseline_drift_ratio);
    Some(format!(
        "the pace of `{}` changed by {:+.1} % inside block {} ({allowed} allowed); intervals include it",
        worst.cell,
        (worst.ratio - 1.0) * 100.0,
        worst.block
    ))
}

/// What is suspicious about a cell, its energy aside.
pub fn besides_energy(cell: &Cell) -> Vec<&str> {
    cell.suspicious.iter().map(String::as_str).filter(|text| !is_short_of_energy(text)).collect()
}

fn suspicious(analysis: &Analysis) -> Option<String> {
    let mut cells = analysis.cells.iter().filter_map(|c| Some((c, besides_energy(c).first().copied()?)));
    let (first, why) = cells.next()?;
    let more = match cells.count() {
        0 => String::new(),
        more => format!(" ({more} more: see Measurement quality)"),
    };
    Some(format!("`{}`: {why}{more}", first.name()))
}
