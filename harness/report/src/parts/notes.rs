//! Sentences about a campaign as a whole: its title, how its intervals were made, what is absent, caveats about its numbers. The
//! terminal, the page, Markdown and exports share them.

use std::collections::BTreeSet;

use collo_analysis::campaign::Analysis;
use collo_analysis::campaign::devices::DeviceDifference;
use collo_analysis::cell::Cell;
use collo_analysis::cell::lent::Lender;
use collo_analysis::cell::suspect::is_short_of_energy;
use collo_analysis::cell::verdict::CellVerdict;
use collo_analysis::reading::data::batches;
use collo_analysis::words;
use collo_guidelines::verdict;
use collo_quantity::stats::Quantity;
use collo_quantity::{Key, number};
use collo_store::{AttestationVerdict, SAMPLING_OFF};

use super::absent::NO_ENDS;
use super::figure::measured_by;

/// `quickstart on cpu: 12 of 12 runs completed in 2 min 4 s`.
pub fn title(analysis: &Analysis) -> String {
    let (campaign, completed) = (&analysis.campaign, analysis.count("completed"));
    let device = campaign.device.name_said();
    if !analysis.has_ends() {
        return format!("{} on {device}: {}, {NO_ENDS}", campaign.experiment, number::count(analysis.cells.len(), "cell"));
    }
    let others: Vec<String> = analysis
        .accounted
        .iter()
        .filter(|(word, n)| *word != "completed" && *n > 0)
        .map(|(word, n)| format!(", {n} {}", words::outcome(word)))
        .collect();
    let time = match analysis.measured_for_s {
        Some(s) if completed > 0 => format!(" in {}", number::duration(s)),
        _ => String::new(),
    };
    let planned = number::runs(analysis.planned);
    format!("{} on {device}: {completed} of {planned} completed{time}{}", campaign.experiment, others.concat())
}

/// How the intervals were made and what they are based on.
pub fn method(analysis: &Analysis) -> Option<String> {
    let method = analysis.method.as_deref()?;
    let range = |cells: Vec<usize>| match (cells.iter().min(), cells.iter().max()) {
        (Some(a), Some(b)) if a == b => Some(a.to_string()),
        (Some(a), Some(b)) => Some(format!("{a} to {b}")),
        _ => None,
    };
    let counted = |solo: bool| {
        let cells = analysis.cells.iter().filter(|c| c.is_solo() == solo && c.counts());
        range(cells.map(|c| c.count()).collect())
    };
    let (groups, solo) = (counted(false), counted(true));
    let repetitions = |n: &str| if n == "1" { "1 repetition".to_string() } else { format!("{n} repetitions") };
    let repetitions = match (groups, solo) {
        (Some(g), Some(s)) if g != s => format!("{}, {s} solo", repetitions(&g)),
        (Some(g), _) => repetitions(&g),
        (None, Some(s)) => repetitions(&s),
        (None, None) => return None,
    };
    Some(format!("95 % interval, {method}, {repetitions}"))
}

/// What is known of the intervals where their method is not.
fn without_method(analysis: &Analysis) -> &'static str {
    let gains = || analysis.groups().filter_map(|c| c.get(Key::ThroughputGain));
    match () {
        () if gains().any(|q| q.low.is_some()) => "± 95 % interval, made in an unknown way",
        () if analysis.cells.iter().all(|c| c.count() < 2) => "no interval: every cell has one repetition",
        () => "no interval",
    }
}

/// Where a report was read from, what is absent therefore, and what has it.
pub fn of_report(analysis: &Analysis) -> Option<String> {
    let report = analysis.report.as_ref()?;
    let name =
        std::path::Path::new(&report.path).file_name().map_or_else(|| report.path.clone(), |n| n.to_string_lossy().into_owned());
    let runs = match measured_by(analysis) {
        Some(program) => format!("measured by {program}; collo has no runs of it"),
        None => format!("where its runs are stored, `collo report {}` has them", analysis.campaign.short_id()),
    };
    Some(format!(
        "rendered from `{name}`, which has the numbers and not the runs: single runs, samples, timelines and attestations are absent; {runs}"
    ))
}

/// The lines below the table: the method, what is absent and why, caveats about the numbers.
pub fn notes(analysis: &Analysis) -> Vec<String> {
    let mut lines: Vec<String> = of_report(analysis).into_iter().chain(verdict::unfinished(analysis)).collect();
    let gain = analysis.groups().any(|c| c.get(Key::ThroughputGain).is_some());
    let in_turn = in_turn(analysis).map_or_else(String::new, |how| format!(", {how}"));
    let meaning = format!("gain is work per second against running in turn{in_turn}");
    match (method(analysis), gain) {
        (Some(m), true) => lines.push(format!("± {m}; {meaning}")),
        (Some(m), false) => lines.push(format!("± {m}")),
        (None, true) => lines.push(format!("{}; {meaning}", without_method(analysis))),
        (None, false) => {}
    }
    let mut facts: Vec<String> = without_samples(analysis).into_iter().chain(without_energy(analysis)).collect();
    facts.extend(synthetic(analysis).map(|s| format!("data: {s}")));
    facts.extend(shortened(analysis));
    if analysis.campaign.device.simulated {
        facts.push("simulated: a model invented every number".into());
    }
    if !facts.is_empty() {
        lines.push(facts.join("; "));
    }
    lines.extend(without_p99(analysis));
    lines.extend(merged(analysis));
    lines.extend(cards(analysis));
    lines.extend(lenders(analysis));
    lines.extend(without_baseline(analysis));
    lines.extend(differences(analysis));
    for why in &analysis.campaign.indicative {
        lines.push(format!("indicative: {why}"));
    }
    if analysis.campaign.indicative.is_empty() {
        lines.extend(indicative_cells(analysis));
    }
    lines.extend(oddities(analysis));
    lines.extend(analysis.problems.iter().map(|p| format!("warning: {p}")));
    lines
}

/// What was odd about single cells, and makes none of them indicative.
pub fn oddities(analysis: &Analysis) -> Vec<String> {
    let looks = second_looks(analysis).into_iter().chain(expectations(analysis));
    unsteady(analysis).into_iter().chain(looks).chain(retried(analysis)).collect()
}

/// What is absent because the samplers were off.
pub fn without_samples(analysis: &Analysis) -> Option<String> {
    let is_off = analysis.cells.iter().flat_map(|c| c.counted()).any(|r| !r.record().is_sampled());
    is_off.then(|| format!("{SAMPLING_OFF}: no power, activity or CPU load was recorded"))
}

/// Why no cell has an energy, where some trained.
pub fn without_energy(analysis: &Analysis) -> Option<String> {
    let trains = analysis.cells.iter().any(|c| c.counts() && !c.serves());
    if !trains || analysis.cells.iter().any(|c| c.get(Key::EnergyPerEpoch).is_some()) {
        return None;
    }
    let why = analysis.cells.iter().find_map(|c| c.absent.get(&Key::EnergyPerEpoch));
    // Windows of a few shortened epochs are too short for a counter that spans a whole trace.
    let of_traces = analysis.traces.matrices.iter().flat_map(|m| &m.arms).any(|arm| arm.get(Key::SiteEnergy).is_some());
    let whose = if of_traces { "energy of members alone" } else { "energy" };
    Some(format!("{whose} absent: {}", why.map_or(Key::EnergyPerEpoch.absent, String::as_str)))
}

/// The cells that are indicative, a line for each reason.
pub fn indicative_cells(analysis: &Analysis) -> Vec<String> {
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for cell in analysis.all_cells().filter(|c| !c.is_valid() && c.counts()) {
        for why in &cell.validity.reasons {
            match reasons.iter_mut().find(|(w, _)| w == why) {
                Some((_, cells)) => cells.push(cell.name()),
                None => reasons.push((why.clone(), vec![cell.name()])),
            }
        }
    }
    let line = |(why, cells): &(String, Vec<&str>)| match cells[..] {
        [] => None,
        [one] => Some(format!("`{one}` is indicative: {why}")),
        [first, ..] => Some(format!("`{first}` and {} more are indicative: {why}", cells.len() - 1)),
    };
    reasons.iter().filter_map(line).collect()
}

/// Cells whose mean epoch depends on how long they were measured.
fn unsteady(analysis: &Analysis) -> Option<String> {
    let mut found = analysis.cells.iter().filter_map(|cell| Some((cell.name(), cell.unsteady()?)));
    let (first, why) = found.next()?;
    let more = match found.count() {
        0 => String::new(),
        more => format!("; so it was in {} more", number::count(more, "cell")),
    };
    Some(format!("`{first}`: {why}{more}"))
}

/// Cells with a run far from the others, each with its numbers without that run: groups first.
fn second_looks(analysis: &Analysis) -> Vec<String> {
    const SHOWN: usize = 3;
    let looks = analysis.cells.iter().filter_map(|c| Some((c, c.second_look.as_ref()?)));
    let (groups, solos): (Vec<_>, Vec<_>) = looks.partition(|(c, _)| !c.is_solo());
    let all = [groups, solos].concat();
    let mut lines: Vec<String> =
        all.iter().take(SHOWN).map(|(c, look)| format!("`{}`: {}", c.name(), look.to_text(c.name()))).collect();
    if all.len() > SHOWN {
        let more = number::count(all.len() - SHOWN, "more cell");
        lines.push(format!("{more} with a run far from the others: `report.json` has their numbers without it"));
    }
    lines
}

/// `48 cells valid, 0 indicative, 4 out of memory`; `None` where some cells are not known.
pub fn verdicts(analysis: &Analysis) -> Option<String> {
    if !analysis.has_all_cells() {
        return None;
    }
    // None of its runs was made: nothing of it was discarded.
    let is_not_run = |c: &Cell| c.verdict() == CellVerdict::Discarded && c.outcome() == "missing" && !c.ran();
    let of = |v: CellVerdict| analysis.all_cells().filter(|c| c.verdict() == v && !is_not_run(c)).count();
    let not_run = Some(analysis.all_cells().filter(|c| is_not_run(c)).count()).filter(|n| *n > 0);
    let valid = format!("{} valid", number::count(of(CellVerdict::Valid), "cell"));
    let others = CellVerdict::ALL.into_iter().filter(|v| *v != CellVerdict::Valid).map(|v| (v, of(v)));
    let told = others.filter(|(v, n)| *n > 0 || *v == CellVerdict::Indicative).map(|(v, n)| format!("{n} {}", v.text()));
    let not_run = not_run.map(|n| format!("{n} not run"));
    Some([valid].into_iter().chain(told).chain(not_run).collect::<Vec<_>>().join(", "))
}

/// What a merged campaign comes from, and how its numbers are compared.
pub fn merged(analysis: &Analysis) -> Option<String> {
    if let Some(report) = analysis.report.as_ref().filter(|report| !report.merged_from.is_empty()) {
        return Some(format!(
            "merged from {}; each group is compared with the baselines of its own part",
            report.merged_from.join(", ")
        ));
    }
    let origins = &analysis.campaign.origins;
    let mut places: Vec<(String, Vec<String>)> = Vec::new();
    for origin in origins {
        let shard = origin.shard.map(|shard| format!(" (shard {shard})")).unwrap_or_default();
        let (place, id) = (origin.place(), format!("{}{shard}", collo_store::last_part(&origin.campaign)));
        match places.iter_mut().find(|(known, _)| *known == place) {
            Some((_, ids)) => ids.push(id),
            None => places.push((place, vec![id])),
        }
    }
    let each: Vec<String> = places.iter().map(|(place, ids)| format!("{} on {place}", ids.join(", "))).collect();
    let spread =
        analysis.spread_of_baselines().map(|ratio| format!("; baselines differ by up to {}", number::percent(ratio - 1.0)));
    (!origins.is_empty()).then(|| {
        format!(
            "merged from {}; each group is compared with the baselines of its own part, where that has none of another on the same GPU; solo rows are means over all parts{}",
            each.join("; "),
            spread.unwrap_or_default()
        )
    })
}

/// On a CPU, with how many threads a member runs whose turn it is: what the gain is relative to. Another number of threads is another
/// opponent.
pub fn in_turn(analysis: &Analysis) -> Option<String> {
    let device = &analysis.campaign.device;
    let hellos = analysis.cells.iter().filter(|c| c.is_solo() && !c.serves()).flat_map(|c| c.counted());
    let threads: BTreeSet<u64> =
        hellos.filter_map(|r| r.record().members.first()?.hello.as_ref()?.get("threads")?.as_u64()).collect();
    let (least, most) = (threads.first()?, threads.last()?);
    let number = if least == most { number::count(*least as usize, "thread") } else { format!("{least} to {most} threads") };
    let of = device.cores.filter(|cores| u64::from(*cores) > *most).and_then(|_| Some(format!(" on {}", device.cores_text()?)));
    (device.kind == "cpu").then(|| format!("each member with {number}{}", of.unwrap_or_default()))
}

/// Maximum number of reasons for absent numbers that are listed.
const REASONS: usize = 3;

/// The servers without a p99, each reason once.
pub fn without_p99(analysis: &Analysis) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for server in analysis.cells.iter().filter(|c| c.counts()).flat_map(Cell::servers) {
        let Some(why) = server.absent(Key::LatencyP99).filter(|_| server.get(Key::LatencyP99).is_none()) else { continue };
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, cells)) => cells.push(server.cell.name()),
            None => reasons.push((why, vec![server.cell.name()])),
        }
    }
    let one = |(why, cells): &(&str, Vec<&str>)| match cells[..] {
        [only] => format!("`{only}` has no p99: {why}"),
        [first, ..] => format!("`{first}` and {} more have no p99: {why}", cells.len() - 1),
        [] => String::new(),
    };
    // Reasons that differ by their numbers are one each.
    let beyond: usize = reasons.iter().skip(REASONS).map(|(_, cells)| cells.len()).sum();
    let more = (beyond > 0)
        .then(|| format!("{} without a p99: `report.json` has the reason of each", number::count(beyond, "more cell")));
    reasons.iter().take(REASONS).map(one).chain(more).collect()
}

/// The campaigns that lent baselines, when they were measured, and what the intervals leave out.
pub fn lenders(analysis: &Analysis) -> Vec<String> {
    let all = analysis.lenders();
    let one = |lender: &&Lender| {
        let of = lender.experiment.as_ref().map(|name| format!(" of `{name}`")).unwrap_or_default();
        let cells = analysis.cells.iter().filter(|c| c.lender.as_ref() == Some(lender)).count();
        format!(
            "baselines of campaign {}{of}, begun {} on the same GPU: slowdown and gain of {} are relative to them, and their intervals leave out what changed on \
             the machine between the two campaigns",
            lender.short_id(),
            lender.created_utc,
            number::count(cells, "cell"),
        )
    };
    all.iter().map(one).collect()
}

/// What has no slowdown and no gain because there is nothing to compare it with, why, and what gives it: a line for each reason.
pub fn without_baseline(analysis: &Analysis) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&Cell>)> = Vec::new();
    for (cell, why) in analysis.cells_without_baseline() {
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, cells)) => cells.push(cell),
            None => reasons.push((why, vec![cell])),
        }
    }
    let left_out = reasons.len().saturating_sub(REASONS);
    let refused = |cell: &Cell| {
        let solo = |m: &collo_store::MemberSpec| analysis.campaign.plan.refusals.iter().any(|r| r.cell == m.solo);
        cell.record.mode.partitioned && cell.record.members.iter().any(solo)
    };
    let measured_elsewhere = reasons.iter().flat_map(|(_, cells)| cells).any(|c| refused(c));
    let mut lines: Vec<String> = reasons
        .iter()
        .take(REASONS)
        .map(|(why, cells)| match cells[..] {
            [one] => format!("`{}` has no slowdown and no gain: {why}", one.name()),
            _ => format!("{} have no slowdown and no gain: {why}", number::count(cells.len(), "cell")),
        })
        .collect();
    if left_out > 0 {
        lines.push(format!("{} more baselines are missing: `report.json` has the reason of each cell", left_out));
    }
    if measured_elsewhere {
        let (name, id) = (&analysis.campaign.experiment, analysis.campaign.short_id());
        lines.push(format!(
            "with MIG off on this GPU `collo run {name}` measures the baselines; `collo report {id}` then finds them, or takes those of `--baseline CAMPAIGN`"
        ));
    }
    lines
}

/// The cards of a campaign on several, and how its numbers are compared.
pub fn cards(analysis: &Analysis) -> Option<String> {
    let is_merged =
        analysis.campaign.is_merged() || analysis.report.as_ref().is_some_and(|report| !report.merged_from.is_empty());
    let several = analysis.devices.are_several() && !is_merged;
    let labels = analysis.devices.all().iter().map(|device| device.label.clone()).collect::<Vec<_>>();
    several.then(|| {
        let told = match analysis.devices_can_be_told {
            Some(true) => "",
            None if !analysis.differences.is_empty() => "",
            None => "; whether a difference between them is more than the noise is not in the file",
            Some(false) => "; each has one block, so that a difference between them cannot be told from the noise",
        };
        let labels = labels.join(", ");
        format!("measured on {labels}; each group is compared with the baselines of its own card, solo rows are means over the cards{told}")
    })
}

/// Which devices differ from the others by more than the noise: in what, by how much.
pub fn differences(analysis: &Analysis) -> Vec<String> {
    let devices = analysis.devices.all();
    let one = |(device, all): (usize, Vec<&DeviceDifference>)| {
        let others = match devices {
            [a, b] => if device == 0 { &b.label } else { &a.label }.clone(),
            _ => "the others".into(),
        };
        let slow = all.iter().find(|d| d.quantity == Key::EpochTime).map(|d| d.ratio.estimate > 1.0);
        let how = match slow {
            Some(true) => "is slower than",
            Some(false) => "is faster than",
            None => "differs from",
        };
        let parts: Vec<String> = all.into_iter().map(|d| format!("{} {}", d.quantity.label, change(&d.ratio))).collect();
        format!("{} {how} {others}: {}; intervals of these contain what each takes", devices[device].label, parts.join(", "))
    };
    analysis.device_differences().into_iter().map(one).collect()
}

/// `+5.1 % (+4.8 to +5.4)`.
fn change(ratio: &Quantity) -> String {
    let percent = |x: f64| format!("{:+.1}", (x - 1.0) * 100.0).replace('-', "−");
    let interval = ratio.low.zip(ratio.high).map(|(low, high)| format!(" ({} to {})", percent(low), percent(high)));
    format!("{} %{}", percent(ratio.estimate), interval.unwrap_or_default())
}

/// The cells that failed as expected, and those that did not.
fn expectations(analysis: &Analysis) -> Vec<String> {
    let of = |cell: &Cell| {
        let expected = cell.record.expect.as_ref()?;
        let bad = cell.repetitions.iter().map(|r| r.record()).find(|r| r.standing().is_bad());
        Some(match bad {
            Some(run) => format!("warning: `{}` {}", cell.name(), run.expectation()?),
            None if cell.repetitions.is_empty() => return None,
            None => format!("`{}` ended {}, as expected: {}", cell.name(), expected.outcome.replace('_', " "), expected.reason),
        })
    };
    analysis.cells.iter().filter_map(of).collect()
}

/// How many runs were measured again after a failure, and how they had failed.
fn retried(analysis: &Analysis) -> Option<String> {
    let runs: Vec<_> = analysis.cells.iter().flat_map(|cell| &cell.repetitions).map(|r| r.record()).collect();
    let mut counts: Vec<(String, usize)> = Vec::new();
    for outcome in runs.iter().flat_map(|run| &run.failed_attempts) {
        let word = outcome.text();
        match counts.iter_mut().find(|(known, _)| *known == word) {
            Some((_, n)) => *n += 1,
            None => counts.push((word, 1)),
        }
    }
    let cells: Vec<&str> = analysis
        .cells
        .iter()
        .filter(|cell| cell.repetitions.iter().any(|r| !r.record().failed_attempts.is_empty()))
        .map(Cell::name)
        .collect();
    let (first, others) = cells.split_first()?;
    let counts: Vec<String> = counts.iter().map(|(word, n)| format!("{n} {word}")).collect();
    let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
    Some(format!(
        "retried after a failure: {}, in `{first}`{more}; the failed attempts are kept, no number is theirs",
        counts.join(", ")
    ))
}

/// `synthetic stand-in for CIFAR-10`.
pub fn synthetic(analysis: &Analysis) -> Option<String> {
    (!analysis.synthetic.is_empty()).then(|| format!("synthetic stand-in for {}", analysis.synthetic.join(", ")))
}

/// As many counts of batches are told one by one.
const SHORTENED: usize = 8;

/// `shortened epochs: 4 batches of small`; by `limit_batches`, or by the simulator.
pub fn shortened(analysis: &Analysis) -> Option<String> {
    let counts = || analysis.shortened.iter().map(|s| s.limit_batches);
    if let (true, Some(least), Some(most)) = (counts().count() > SHORTENED, counts().min(), counts().max()) {
        let workloads: BTreeSet<&str> = analysis.shortened.iter().map(|s| s.workload.as_str()).collect();
        let workloads = number::count(workloads.len(), "workload");
        return Some(format!("shortened epochs: {least} to {most} batches, of {workloads}"));
    }
    let all = batches(&analysis.shortened);
    (!all.is_empty()).then(|| format!("shortened epochs: {}", all.join(", ")))
}

/// `3 of 3 runs`, and by what.
pub fn attested(cell: &Cell) -> String {
    let completed: Vec<_> = cell.repetitions.iter().filter(|r| r.record().outcome.as_str() == "completed").collect();
    let attested = completed.iter().filter(|r| r.record().attestation.verdict == AttestationVerdict::Attested).count();
    let mut by: Vec<&str> = Vec::new();
    for check in completed.iter().flat_map(|r| &r.record().attestation.checks).filter(|c| c.holds) {
        if !by.contains(&check.what.as_str()) {
            by.push(&check.what);
        }
    }
    let by = if by.is_empty() { String::new() } else { format!(" by {}", by.join(", ")) };
    format!("{attested} of {}{by}", number::runs(completed.len()))
}

/// In how many cells the energy rests on too few steps of the counter, once; `None` where it does in none.
pub fn few_energy_steps(analysis: &Analysis) -> Option<String> {
    let few = analysis.cells.iter().filter(|c| c.suspicious.iter().any(|text| is_short_of_energy(text))).count();
    let cells = number::count(analysis.cells.len(), "cell");
    (few > 0).then(|| {
        format!("in {few} of {cells} it rests on too few steps of the counter: more `epochs`, or longer ones, make it sound")
    })
}
