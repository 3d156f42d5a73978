//! From a campaign folder to an [`Analysis`]: read, check, estimate, conclude, in this order.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use collo_quantity::stats::devices::{DeviceValue, log_moments_by_device};
use collo_quantity::stats::{self, Quantity};
use collo_quantity::{Key, Trait, is_share, number};
use collo_store::{Campaign, CampaignFolder, CellRecord, JournalEntry, Outcome, Result, Serving, StoredRun, Validity, Verdict};

use super::devices::{self, Differing};
use super::lender::{self, Lenders};
use super::{Analysis, Index, Traces, reference};
use crate::cell::pools::Pools;
use crate::cell::quantities::{self, Baselines, Values};
use crate::cell::reported::MISSING;
use crate::cell::second_look::{self, FarRun, SecondLook};
use crate::cell::{Cell, Member, absent, suspect};
use crate::reading::repetition::Repetition;
use crate::reading::usage::{MemoryKind, Usage};
use crate::reading::{check, data, idle};
use crate::watching::Watching;
use crate::{timeline, trace};

/// Analyse a campaign, with the baselines of another if it has none of its own. A problem with one run lowers that run; only a campaign
/// that is unreadable, or was modified, is an error.
pub fn analyse(folder: &CampaignFolder, lender: Option<&CampaignFolder>) -> Result<Analysis> {
    folder.expect_unchanged()?;
    let campaign = folder.manifest().clone();
    let (mut stored, foreign) = folder.runs()?;
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut changed: Vec<String> = foreign.iter().filter(|f| f.changed).map(|f| name(&f.path)).collect();
    // One of them is the measurement, and nothing tells which.
    let copies = collo_store::copies(&stored);
    let mut problems: Vec<String> =
        foreign.iter().filter(|f| !f.changed).map(|f| format!("`{}` is ignored: {}", name(&f.path), f.reason)).collect();

    let mut by_word = BTreeMap::<&'static str, usize>::new();
    let (mut repetitions, mut of_traces) = (Vec::new(), Vec::new());
    let mut outcomes: Vec<BTreeMap<&'static str, usize>> = vec![BTreeMap::new(); campaign.plan.cells.len()];
    for planned in &campaign.plan.order {
        let Some(counts) = outcomes.get_mut(planned.cell) else {
            problems.push(format!("the plan refers to cell {}, which it does not have", planned.cell));
            continue;
        };
        let run = stored.remove(&campaign.plan.folder(planned));
        let word = run.as_ref().map_or(MISSING, |r| r.record.outcome.as_str());
        *by_word.entry(word).or_default() += 1;
        *counts.entry(word).or_default() += 1;
        if let Some(run) = run {
            // The plan's record is the one that cells are found by; a run's own copy has the same content.
            let is_trace = campaign.plan.cells[planned.cell].trace.is_some();
            // Here alone runs of traces leave the others: a group that comes and goes has no epoch time, no gain, no slowdown.
            if is_trace { &mut of_traces } else { &mut repetitions }.push((planned.cell, run));
        }
    }
    problems.extend(stored.keys().map(|name| format!("run `{name}` is not in the plan: ignored")));

    let devices = campaign.devices();
    // Without a readable journal all are of one.
    let sittings = folder.sittings().unwrap_or_default();
    let (cell_of, mut read): (Vec<usize>, Vec<Repetition>) =
        repetitions.into_iter().map(|(cell, run)| (cell, read_run(run, &campaign))).unzip();
    let (trace_cell_of, mut played): (Vec<usize>, Vec<Repetition>) =
        of_traces.into_iter().map(|(cell, run)| (cell, Repetition::unread(run))).unzip();
    for r in read.iter_mut().chain(&mut played) {
        r.device = devices.of(r.record().block);
        let folder = name(&r.run.path);
        r.sitting = sittings.get(&folder).copied().unwrap_or(0);
        if copies.contains(&folder) {
            r.validity.lower(Verdict::Discarded, "it duplicates another run");
            problems.push(format!("run `{folder}` is left out: it duplicates another run"));
        }
        if r.damaged {
            changed.push(folder);
        }
    }
    problems.extend(left_out(changed));
    let runs = trace::read(&mut played);
    let RunChecks { idle_w, mixed_data, others_ratio } = check_runs(&mut read, &campaign);
    problems.extend(mixed_data);
    let mut lenders = Lenders::of(&campaign, lender)?;
    let drifts = check::drift(&read, &campaign);
    let measured_for_s = span(folder, &campaign, || read.iter().chain(&played));
    let (synthetic, shortened) = (data::synthetic(&read), data::shortened(&read));

    let mut groups: Vec<Vec<Repetition>> = campaign.plan.cells.iter().map(|_| Vec::new()).collect();
    for (cell, r) in cell_of.into_iter().chain(trace_cell_of).zip(read.into_iter().chain(played)) {
        groups[cell].push(r);
    }
    let (played, mut cells): (Vec<Cell>, Vec<Cell>) = campaign
        .plan
        .cells
        .iter()
        .zip(groups)
        .zip(outcomes)
        .map(|((record, repetitions), outcomes)| begin(record.clone(), repetitions, outcomes))
        .partition(|cell| cell.record.trace.is_some());
    // A group that is watched is compared with itself alone.
    let (mut watched, rest): (Vec<Cell>, Vec<Cell>) = cells.into_iter().partition(|cell| cell.record.observe.is_some());
    cells = rest;
    let watched_count = watched.len();
    let alone = Lenders::default();
    estimate(&mut watched, (watched_count, watched_count), &campaign, &alone);
    for cell in &mut watched {
        judge(cell, &campaign);
    }
    suspect::all(&mut watched);
    let own = cells.len();
    cells.append(&mut lenders.cells);
    let measured = cells.len();
    if devices.are_several() {
        cells.extend(baselines_by_device(&cells, lenders.devices));
    }
    let (method, differing) = estimate(&mut cells, (own, measured), &campaign, &lenders);
    for cell in &mut cells {
        judge(cell, &campaign);
    }
    let baselines_by_device = cells.split_off(measured);
    let borrowed = cells.split_off(own);
    suspect::all(&mut cells);
    compare_gains(&mut cells, campaign.thresholds.relevant_ratio);

    let mut analysis = Analysis {
        comments: folder.comments(),
        index: Index::of(&cells, baselines_by_device, lenders.stand_ins),
        borrowed,
        planned: campaign.plan.order.len(),
        accounted: Outcome::WORDS.into_iter().chain([MISSING]).map(|w| (w, by_word.get(w).copied().unwrap_or(0))).collect(),
        timelines: timeline::of(&cells),
        watching: Watching::of(watched, campaign.thresholds.relevant_ratio),
        traces: Traces::of(played, runs, &cells, campaign.thresholds.relevant_ratio),
        cells,
        drifts,
        devices,
        devices_can_be_told: Some(differing.can_be_told),
        differences: differing.differences,
        others_ratio,
        method: method.map(String::from),
        measured_for_s,
        synthetic,
        shortened,
        idle_w,
        problems,
        references: Vec::new(),
        report: None,
        campaign,
    };
    analysis.references = reference::all(&analysis);
    Ok(analysis)
}

/// Read a run with the cores of the machine that it was measured on.
pub fn read_run(run: StoredRun, campaign: &Campaign) -> Repetition {
    let cores = campaign.machine_of(run.record.block).cpu_cores;
    Repetition::read(run, &campaign.thresholds, cores)
}

/// What the runs of a campaign show together.
pub struct RunChecks {
    idle_w: BTreeMap<&'static str, f64>,
    /// That some trained on stand-ins and some on the real data.
    mixed_data: Vec<String>,
    others_ratio: Option<f64>,
}

/// Lower runs by themselves and by what all of them show.
pub fn check_runs(read: &mut [Repetition], campaign: &Campaign) -> RunChecks {
    for r in read.iter_mut() {
        check::run(r, campaign);
        if campaign.plan.measure_for_s.is_some() {
            // How long an unknown amount of work took says nothing.
            r.makespan_s = None;
        }
    }
    let idle_w = idle::level(read);
    let mixed = data::mixed(read);
    let mixed_data = data::lower(read, &mixed).into_iter().collect();
    RunChecks { idle_w, mixed_data, others_ratio: check::load(read, campaign) }
}

/// The sentence about runs that differ from what was recorded.
fn left_out(mut changed: Vec<String>) -> Option<String> {
    changed.sort();
    let names = changed.iter().take(3).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let names = if changed.len() > 3 { format!("{names} …") } else { names };
    match changed.len() {
        0 => None,
        1 => Some(format!("1 run is left out: its files changed since it was recorded ({names})")),
        n => Some(format!("{n} runs are left out: their files changed since they were recorded ({names})")),
    }
}

/// Choose the runs for a cell's numbers: the valid ones if there are any, else the indicative ones.
pub fn begin(record: CellRecord, mut repetitions: Vec<Repetition>, outcomes: BTreeMap<&'static str, usize>) -> Cell {
    let of = |verdict: Verdict| -> Vec<usize> {
        (0..repetitions.len()).filter(|&i| repetitions[i].counts() && repetitions[i].validity.verdict == verdict).collect()
    };
    let (valid, indicative) = (of(Verdict::Valid), of(Verdict::Indicative));
    let mut validity = Validity::valid();
    let counted = if valid.is_empty() { indicative } else { valid };
    // Memory read in two ways is never in one mean.
    let runs = repetitions.iter_mut().enumerate().filter(|(i, _)| counted.contains(i));
    Usage::level(runs.flat_map(|(_, r)| r.usages_mut()));
    let mut reasons: Vec<&String> = Vec::new();
    for r in repetitions.iter().filter(|r| r.record().outcome == Outcome::Completed) {
        reasons.extend(r.validity.reasons.iter().filter(|why| !reasons.contains(why)).collect::<Vec<_>>());
    }
    let left_out = repetitions.iter().filter(|r| r.record().outcome == Outcome::Completed).count() - counted.len();
    if counted.is_empty() {
        let no_memory = repetitions.iter().find_map(|r| match &r.record().outcome {
            Outcome::OutOfMemory { member, message } => Some(format!("out of memory: member {member}: {message}")),
            _ => None,
        });
        let why = match no_memory {
            _ if !reasons.is_empty() => joined(&reasons),
            Some(why) => why,
            None => "no run of it completed".to_string(),
        };
        validity.lower(Verdict::Discarded, why);
    } else if repetitions[counted[0]].validity.verdict == Verdict::Indicative {
        validity.lower(Verdict::Indicative, joined(&reasons));
    } else if left_out > 0 {
        // Said, but the cell stays valid: its numbers come from valid runs alone.
        validity.reasons.push(format!("{} left out: {}", number::runs(left_out), joined(&reasons)));
    }
    let memory_kind = counted.iter().flat_map(|&i| repetitions[i].usages()).filter_map(|u| u.memory.map(|x| x.kind)).max();
    Cell {
        record,
        outcomes,
        validity,
        suspicious: Vec::new(),
        second_look: None,
        repetitions,
        counted,
        reported: None,
        quantities: BTreeMap::new(),
        by_run: BTreeMap::new(),
        metrics: BTreeMap::new(),
        members: Vec::new(),
        absent: BTreeMap::new(),
        memory_kind,
        gain_verdict: None,
        lender: None,
        no_baseline: None,
    }
}

fn joined(reasons: &[&String]) -> String {
    let shown: Vec<&str> = reasons.iter().take(3).map(|r| r.as_str()).collect();
    let more = if reasons.len() > 3 { format!("; {} more", reasons.len() - 3) } else { String::new() };
    format!("{}{more}", shown.join("; "))
}

/// The serving workloads, by the label of their solo cell: a member that failed before it reported this is known from another
/// run.
fn servers(cells: &[Cell]) -> BTreeMap<String, Serving> {
    let told = cells.iter().flat_map(|c| &c.repetitions).flat_map(|r| &r.record().members);
    told.filter_map(|m| Some((m.spec.solo.clone(), m.serving.clone()?))).collect()
}

/// The cells that others are compared with: solo ones, and members alone on their slices.
fn baselines(cells: &[Cell]) -> impl Iterator<Item = &Cell> {
    let on_slices: BTreeSet<&String> = cells.iter().flat_map(|c| &c.record.alone_on_slice).collect();
    cells.iter().filter(move |c| c.is_solo() || on_slices.contains(&c.record.cell))
}

/// On several devices each baseline once more for each of them, with the runs from there: what a group of one device is compared with.
fn baselines_by_device(cells: &[Cell], devices: usize) -> Vec<Cell> {
    let of = |baseline: &Cell, device: usize| {
        let runs: Vec<Repetition> = baseline.repetitions.iter().filter(|r| r.device == device).cloned().collect();
        (!runs.is_empty()).then(|| begin(baseline.record.clone(), runs, BTreeMap::new()))
    };
    baselines(cells).flat_map(|baseline| (0..devices).filter_map(move |device| of(baseline, device))).collect()
}

/// The quantities of every run, with the baselines that they are compared with.
struct Valued {
    baselines: Baselines,
    cells: Vec<Vec<Values>>,
    members: Vec<Vec<Vec<Values>>>,
}

/// The cells that others are compared with. The runs that count are chosen for each device: those of one say nothing about the usable
/// ones of another.
fn alone(cells: &[Cell], measured: usize) -> Vec<&Cell> {
    if cells.len() > measured { cells[measured..].iter().collect() } else { baselines(cells).collect() }
}

impl Valued {
    /// Of the runs that count, less those that are left out.
    fn of(cells: &[Cell], measured: usize, left_out: &[FarRun], lenders: &Lenders) -> Valued {
        fn near<'a>(cell: &'a Cell, left_out: &[FarRun]) -> Vec<&'a Repetition> {
            cell.counted().filter(|r| !left_out.iter().any(|far| far.is(cell, r))).collect()
        }
        let alone = alone(cells, measured).into_iter().map(|c| (&c.record, near(c, left_out)));
        let baselines = Baselines::of(alone, &lenders.stand_ins).paced(&cells[..measured]);
        let of_cell = |c: &Cell| near(c, left_out).iter().map(|r| quantities::of_cell(r, &baselines)).collect();
        let of_members = |c: &Cell| {
            let members = 0..c.record.members.len();
            members.map(|i| near(c, left_out).iter().map(|r| quantities::of_member(r, i, &baselines)).collect()).collect()
        };
        let (of_cells, members) = (cells.iter().map(of_cell).collect(), cells.iter().map(of_members).collect());
        Valued { cells: of_cells, members, baselines }
    }
}

/// Fill every cell's quantities. The first `own` cells are those of the plan, those up to `measured` are borrowed, and together they
/// give the pools; the others repeat runs of these, by device. Returns how the intervals of epoch times were made, and how devices
/// differ.
fn estimate(
    cells: &mut [Cell],
    (own, measured): (usize, usize),
    campaign: &Campaign,
    lenders: &Lenders,
) -> (Option<&'static str>, Differing) {
    let far = second_look::far_runs(&cells[..measured]);
    let all = Valued::of(cells, measured, &[], lenders);
    // Without the far runs: what the cells lend each other of their scatter, and the second look.
    let near = (!far.is_empty()).then(|| Valued::of(cells, measured, &far, lenders));
    let near = near.as_ref().unwrap_or(&all);
    let doubts = lender::doubts(&alone(cells, measured));
    let lacking = absent::lacking(&cells[..own], campaign);
    let solo_kinds: BTreeMap<String, MemoryKind> =
        cells[..measured].iter().filter(|c| c.is_solo()).filter_map(|c| Some((c.record.cell.clone(), c.memory_kind?))).collect();
    let is_solo: Vec<bool> = cells.iter().map(Cell::is_solo).collect();
    let differing = devices::compare(&cells[..own], &all.cells[..own], campaign);
    let mut pools = Pools::fit(near.cells[..measured].iter().map(Vec::as_slice).zip(is_solo.iter().copied()), &differing.keys);
    pools.far_baselines = far.iter().map(|run| (run.device, run.cell.clone())).collect();
    let each_member = near.members[..measured].iter().zip(&is_solo).flat_map(|(of, is)| of.iter().map(|m| (m.as_slice(), *is)));
    let member_pools = Pools::fit(each_member, &differing.keys);
    let servers = servers(cells);
    for (index, cell) in cells.iter_mut().enumerate() {
        let (values, without) = (&all.cells[index], &near.cells[index]);
        let members = all.members[index].iter().zip(&near.members[index]);
        let baselines = &all.baselines;
        let is_far = |key, with: &[Values], without: &[Values]| !far.is_empty() && second_look::differs(key, with, without);
        let solo = cell.is_solo();
        let bounded = |key: Key, q: Quantity| match key {
            // A baseline against itself is 1; what it did not have to share has no company and no fairness.
            _ if solo && key.has(Trait::OneAlone) => Quantity::one(q.n),
            _ => quantities::capped(key, q),
        };
        let of = |key| Some((key, bounded(key, pools.quantity(key, values, is_far(key, values, without), (baselines, &pools))?)));
        cell.quantities = Key::with(Trait::Cell).filter_map(of).collect();
        // A baseline compared with itself is 1 in every run.
        let is_measured = |key: &Key| !(solo && key.has(Trait::OneAlone));
        let by_run = |key: Key| (key, values.iter().filter_map(|v| Some(v.get(&key)?.value)).collect());
        cell.by_run = Key::with(Trait::Cell).filter(is_measured).map(by_run).collect();
        let again = |key: Key| {
            let moved = is_far(key, values, without) && !(solo && key.has(Trait::OneAlone));
            let with = cell.quantities.get(&key).filter(|_| moved)?.clone();
            Some((key, with, bounded(key, pools.quantity(key, without, false, (&near.baselines, &pools))?)))
        };
        let quantities: Vec<_> = second_look::TWICE.into_iter().filter_map(again).collect();
        cell.second_look = SecondLook::of(cell, &far, quantities);
        cell.members = members
            .enumerate()
            .map(|(i, (group, without))| {
                let of = |key| {
                    let far = is_far(key, group, without);
                    Some((key, bounded(key, member_pools.quantity(key, group, far, (baselines, &pools))?)))
                };
                let quantities = Key::with(Trait::Member).filter_map(of).collect();
                let losses: Vec<f64> = cell.counted().filter_map(|r| r.members.get(i)?.loss).collect();
                let loss = (!losses.is_empty()).then(|| losses.iter().sum::<f64>() / losses.len() as f64);
                let told = |r: &Repetition| r.record().members.get(i).and_then(|m| m.features.clone());
                let features = cell.repetitions.iter().find_map(told);
                let spec = cell.record.members[i].clone();
                let serving = servers.get(&spec.solo).cloned();
                let mut absent = match &serving {
                    Some(_) => absent::of_requests(cell, Some(i), &spec.solo, &quantities, baselines, &lacking),
                    None => BTreeMap::new(),
                };
                absent.extend(absent::of_thread(cell));
                absent.extend(absent::of_epochs(cell, i, &spec.solo, &quantities, baselines));
                Member { spec, serving, quantities, absent, loss, features }
            })
            .collect();
        if !solo && cell.record.members.iter().any(|m| solo_kinds.get(&m.solo) != cell.memory_kind.as_ref()) {
            // Read differently, footprints cannot be added up.
            cell.quantities.remove(&Key::MemoryOfSolo);
        }
        let below_idle = |r: &Repetition| r.energy.zip(r.idle_w).is_some_and(|(energy, idle_w)| energy.power_w <= idle_w);
        if cell.counted().any(below_idle) {
            // The mean of the others alone would be of those that were above it by chance.
            cell.quantities.remove(&Key::EnergyPerEpochAboveIdle);
        }
        cell.metrics = metrics(cell, &differing.metrics);
        cell.absent = absent::of_cell(cell, baselines, &lacking, campaign.plan.measure_for_s.is_some());
        if !solo {
            cell.no_baseline = absent::no_baseline(cell, baselines, &lacking);
            lender::name(cell, baselines, lenders, &doubts);
        }
    }
    let own = || cells.iter().any(|c| c.members.iter().any(|m| m.get(Key::LatencyP50).is_some_and(|q| q.low.is_some())));
    let method = pools.method(Key::EpochTime).or_else(|| pools.method(Key::Makespan));
    (method.or_else(|| own().then_some("t of each cell")), differing)
}

/// Means over repetitions of metrics that are not a member's. Each is estimated separately: no pool, since their noise is
/// unrelated.
fn metrics(cell: &Cell, differing: &BTreeSet<&str>) -> BTreeMap<String, Quantity> {
    let mut found = BTreeMap::<String, Vec<DeviceValue>>::new();
    for r in cell.counted() {
        for (metric, value) in &r.metrics {
            let value = DeviceValue { device: r.device, block: r.record().block, value: *value };
            found.entry(metric.clone()).or_default().push(value);
        }
    }
    let summed = found.into_iter().map(|(metric, values)| {
        // A difference has no ratio: a geometric mean would make little of a large one beside a small one.
        let is_difference = Key::find(&metric) == Some(Key::TemperatureDrift);
        if let Some(m) = log_moments_by_device(&values).filter(|_| !is_difference && differing.contains(metric.as_str())) {
            return (metric, stats::quantity(m.log_mean, values.len(), &m.terms(m.within, values.len())));
        }
        let values: Vec<f64> = values.iter().map(|v| v.value).collect();
        let n = values.len();
        let estimate = values.iter().sum::<f64>() / n as f64;
        let quantity = match stats::log_moments(&values) {
            Some((mean, Some(variance))) if !is_difference => {
                stats::quantity(mean, n, &[stats::Term { weight: 1.0, variance, n }])
            }
            _ => Quantity { estimate, low: None, high: None, n, df: None },
        };
        (metric, quantity)
    });
    let capped = |(metric, q): (String, Quantity)| {
        let is_share = is_share(&metric);
        (metric, if is_share { q.capped_at_one() } else { q })
    };
    summed.map(capped).collect()
}

/// Why a cell that ran once is indicative.
pub const ONE_REPETITION: &str = "one repetition carries no interval";

/// Checks that need the whole cell.
fn judge(cell: &mut Cell, campaign: &Campaign) {
    if cell.counted.len() == 1 {
        cell.validity.lower(Verdict::Indicative, ONE_REPETITION);
    }
    // Beside a member that serves, and beside different ones, each that trains is judged by itself.
    let of_members =
        cell.members.iter().filter_map(|m| m.get(Key::Slowdown)).filter(|_| cell.serves() || !cell.record.is_uniform());
    let too_fast = cell
        .get(Key::Slowdown)
        .into_iter()
        .chain(of_members)
        .find(|q| !cell.is_solo() && q.high.is_some_and(|h| h < 1.0 / (1.0 + campaign.thresholds.relevant_ratio)));
    let too_fast = too_fast.map(|q| format!("its members were faster than alone (slowdown {})", number::with_interval(q)));
    // N members without slowdown have a gain of N.
    let most = cell.record.members.len() as f64 * (1.0 + campaign.thresholds.relevant_ratio);
    let gain = cell.get(Key::ThroughputGain).filter(|q| !cell.is_solo() && q.low.is_some_and(|low| low > most));
    let too_much = gain.map(|q| {
        let (q, n) = (number::with_interval(q), number::count(cell.record.members.len(), "member"));
        format!("its gain of {q} is more than {n} can have")
    });
    let why: Vec<String> = too_fast.into_iter().chain(too_much).collect();
    if !why.is_empty() {
        let why = why.join(", and ");
        cell.validity.lower(Verdict::Indicative, format!("implausible: {why}; the baseline cannot be right"));
    }
}

fn compare_gains(cells: &mut [Cell], threshold: f64) {
    let gains: Vec<Option<Quantity>> =
        cells.iter().map(|c| c.get(Key::ThroughputGain).filter(|_| !c.is_solo()).cloned()).collect();
    for (cell, comparison) in cells.iter_mut().zip(stats::compare(&gains, threshold)) {
        cell.gain_verdict = comparison;
    }
}

/// From the first launch to the last end; for a campaign that was resumed or merged, whose pauses do not count, the sum over its
/// runs.
fn span<'r, R: Iterator<Item = &'r Repetition>>(
    folder: &CampaignFolder,
    campaign: &Campaign,
    repetitions: impl Fn() -> R,
) -> Option<f64> {
    // What was never launched, because its mode could not be staged, has no time.
    let times = || repetitions().map(|r| &r.record().timeline).filter(|t| t.launched_ns > 0);
    let resumed = folder.history().is_ok_and(|h| h.iter().filter(|e| matches!(e, JournalEntry::Opened { .. })).count() > 1);
    // Machines have clocks of their own.
    if resumed || campaign.is_merged() {
        return Some(times().map(|t| t.ended_ns.saturating_sub(t.launched_ns) as f64 * 1e-9).sum());
    }
    let (first, last) = (times().map(|t| t.launched_ns).min()?, times().map(|t| t.ended_ns).max()?);
    Some(last.saturating_sub(first) as f64 * 1e-9)
}
