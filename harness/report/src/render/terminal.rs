//! The summary table at the end of a run, and one cell in full. In: an analysis. Out: plain text of limited width.

use collo_analysis::campaign::{Analysis, environment, limitation};
use collo_analysis::cell::Cell;
use collo_analysis::cell::absent::NOBODY_SERVES;
use collo_analysis::cell::server::Server;
use collo_analysis::cell::verdict::CellVerdict;
use collo_analysis::words;
use collo_figures::document::{Align, Block, Column, Table, common_settings, terminal};
use collo_guidelines::published::study;
use collo_quantity::number::{self, ABSENT};
use collo_quantity::{Key, Trait};
use collo_store::Features;
use collo_text::quoting;

use super::trace_cell;
use crate::overview::provenance;
use crate::parts::{finding, notes};
use crate::time::latency;
use crate::trace::policies;
use crate::{prediction, watching};

/// The end-of-run table with its notes and findings, at most `width` columns wide.
pub fn summary(analysis: &Analysis, width: usize) -> String {
    let title = notes::title(analysis);
    let mut blocks = vec![Block::Text(String::new())];
    if !analysis.cells.is_empty() {
        blocks.extend([Block::Table(table(analysis)), Block::Text(String::new())]);
    }
    let of_traces = analysis
        .traces
        .matrices
        .iter()
        .map(|matrix| (matrix.name(), [policies::times(analysis, matrix), policies::costs(analysis, matrix)]));
    let watched = watching::tables(analysis).map(|(group, tables)| (group.name.clone(), tables));
    for (name, tables) in of_traces.chain(watched) {
        blocks.push(Block::Text(name));
        for table in tables {
            blocks.extend([Block::Table(Table { caption: String::new(), ..table }), Block::Text(String::new())]);
        }
    }
    if let Some(open) = limitation::sentence(analysis).filter(|_| analysis.traces.is_empty()) {
        blocks.extend([Block::Text(open), Block::Text(String::new())]);
    }
    let of_traces = policies::remarks(analysis);
    let remarks = of_traces.into_iter().chain(finding::remarks(analysis)).chain(prediction::remark(analysis)).collect();
    blocks.extend([Block::Notes(notes::notes(analysis)), Block::Notes(remarks)]);
    format!("{}\n{}", quoting::line(&title), terminal::text(&blocks, width))
}

/// Where the numbers come from.
pub fn provenance(analysis: &Analysis, width: usize) -> String {
    let section = provenance::section(analysis, None);
    format!("{}\n\n{}", quoting::line(&section.finding), terminal::text(&section.blocks, width))
}

const VALIDITY: &str = "validity";

/// How a cell ended without an epoch time: `crashed`, or, where some of its runs count, how many of them did not complete so.
fn ended(c: &Cell) -> String {
    let (word, all) = (c.outcome(), c.outcomes.values().sum::<usize>());
    match c.outcomes.get(word).copied().unwrap_or(0) {
        n if n < all && c.counts() => format!("{n} of {all} {}", words::outcome(word)),
        _ => words::outcome(word),
    }
}

/// How a column reads a cell.
type ReadCell<'a> = &'a dyn Fn(&Cell) -> Option<String>;

fn table(analysis: &Analysis) -> Table {
    let cells = &analysis.cells;
    let (factor, unit) = words::time_unit(cells.iter().filter_map(|c| c.get(Key::EpochTime)));
    let epoch = |c: &Cell| match c.get(Key::EpochTime) {
        Some(q) => Some(number::scaled(q, factor)),
        None if c.outcome() != "completed" => Some(ended(c)),
        None => None,
    };
    let slowdown = |c: &Cell| c.get(Key::Slowdown).map(number::with_interval).or_else(|| latency::trainers_slowdown(c));
    let of = |key: Key| move |c: &Cell| c.get(key).map(number::with_interval);
    let percent = |key: Key| move |c: &Cell| c.get(key).map(|q| number::percent(q.estimate));
    let p99 = |c: &Cell| c.get(Key::LatencyP99).map(|q| number::scaled(q, 1e3));
    let fairness = |c: &Cell| c.get(Key::Fairness).map(|q| format!("{:.2}", q.estimate));
    let memory = |c: &Cell| c.get(Key::Memory).map(|q| number::gib(q.estimate));
    let validity = |c: &Cell| {
        let doubted = !c.is_valid() && c.counts();
        doubted.then(|| c.verdict().text().to_string())
    };
    let lender = |c: &Cell| c.lender.as_ref().map(|l| l.short_id().to_string());
    // Settings that all cells have stand once, in the heading; what is left of a name is still its beginning, by which `show` finds the cell.
    let common = common_settings(cells.iter().map(Cell::name));
    let name = |c: &Cell| Some(c.name().strip_suffix(&common).unwrap_or(c.name()).to_string());
    let is_gpu = analysis.campaign.device.kind == "gpu";
    let sm_active = |c: &Cell| c.metric(Key::SmActive).filter(|_| is_gpu).map(|q| number::percent(q.estimate));
    let has_items = cells.iter().any(|c| c.get(Key::EnergyPerItem).is_some());
    let (energy_key, energy_name) =
        if has_items { (Key::EnergyPerItem, "J per item") } else { (Key::EnergyPerEpoch, "J per epoch") };
    let energy = |c: &Cell| c.get(energy_key).filter(|_| is_gpu).map(|q| number::three(q.estimate));
    let columns: [(&str, Align, ReadCell); 15] = [
        (&if common.is_empty() { "cell".into() } else { format!("cell ({})", common.trim_start()) }, Align::Left, &name),
        (&format!("{} {unit}", Key::EpochTime.head()), Align::Point, &epoch),
        (Key::Slowdown.head(), Align::Point, &slowdown),
        (&format!("{} ms", Key::LatencyP99.head()), Align::Point, &p99),
        (Key::LatencyP99OfSolo.head(), Align::Point, &of(Key::LatencyP99OfSolo)),
        (Key::WithinSlo.head(), Align::Right, &percent(Key::WithinSlo)),
        (Key::ThroughputGain.head(), Align::Point, &of(Key::ThroughputGain)),
        (Key::SmActive.head(), Align::Right, &sm_active),
        (energy_name, Align::Point, &energy),
        ("baseline of", Align::Left, &lender),
        (Key::Fairness.head(), Align::Point, &fairness),
        (Key::Memory.head(), Align::Right, &memory),
        (Key::Cpu.head(), Align::Right, &percent(Key::Cpu)),
        (Key::Overlap.head(), Align::Left, &percent(Key::Overlap)),
        (VALIDITY, Align::Left, &validity),
    ];
    // A column that nobody fills says nothing; where there is no room, the last go first.
    let filled: Vec<_> = columns.into_iter().filter(|(.., get)| cells.iter().any(|c| get(c).is_some())).collect();
    let place = |key: Key| filled.iter().position(|(name, ..)| *name == key.head());
    let has_gain = cells.iter().any(|c| !c.is_solo() && c.get(Key::ThroughputGain).is_some());
    let gain_and_within = place(Key::ThroughputGain).zip(place(Key::WithinSlo)).filter(|_| has_gain);
    let mut table = Table::default();
    for (rank, (name, align, _)) in filled.iter().enumerate() {
        let rank = match gain_and_within {
            // The word that decides whether a number counts stays, however narrow the screen.
            _ if *name == VALIDITY => 0,
            // What a server has besides its p99 goes before the gain of the trainings beside it.
            Some((gain, within)) if rank == gain => within,
            Some((gain, within)) if rank == within => gain,
            _ => rank,
        };
        table.columns.push(Column { name: (*name).into(), align: *align, rank, ..Column::default() });
    }
    for cell in cells {
        table.texts(filled.iter().map(|(.., get)| get(cell).unwrap_or_else(|| ABSENT.into())));
    }
    table
}

/// Everything about one cell: only rows with content; absent values have their reason.
pub fn cell(analysis: &Analysis, cell: &Cell, width: usize) -> String {
    if cell.record.trace.is_some() {
        return trace_cell::text(analysis, cell, width);
    }
    let campaign = &analysis.campaign;
    let last = campaign.short_id();
    let of = number::count(cell.record.repetitions.max(cell.repetitions.len() as u32) as usize, "repetition");
    let device = campaign.device.name_said();
    let verdict = cell.verdict().text();
    let title = format!("{} of {last}, {}, {device}: {verdict}, {} of {of}", cell.name(), campaign.experiment, cell.count());
    let q = |key: Key| cell.get(key).map(number::with_interval);
    let solo = cell.workload().and_then(|w| analysis.solo_beside(cell.counted(), w)).filter(|_| !cell.is_solo());
    let mut rows: Vec<(&str, Vec<String>)> = Vec::new();
    let (factor, unit) = words::time_unit(cell.get(Key::EpochTime).into_iter());
    let time = |q: &collo_quantity::stats::Quantity| format!("{} {unit}", number::scaled(q, factor));
    let mut epoch: Vec<String> = cell.get(Key::EpochTime).map(&time).into_iter().collect();
    epoch.extend(solo.and_then(|s| s.get(Key::EpochTime)).map(|q| format!("solo {}", time(q))));
    epoch.extend(q(Key::Slowdown).filter(|_| !cell.is_solo()).map(|s| format!("slowdown {s}")));
    rows.push(("epoch", epoch));
    if !cell.is_solo() {
        let mut gain: Vec<String> = q(Key::ThroughputGain).into_iter().collect();
        gain.extend(study::of_cell(analysis, cell, Key::ThroughputGain).map(|(figure, conditions)| {
            let differs = conditions.text(cell.workload().is_none());
            let value = figure.value_text();
            if differs.is_empty() {
                format!("published {value}")
            } else {
                format!("published {value} under other conditions ({differs})")
            }
        }));
        if let (Some(stp), Some(antt)) = (q(Key::Stp), q(Key::Antt)) {
            gain.push(format!("STP {stp}, ANTT {antt}"));
        }
        gain.extend(cell.gain_verdict.as_ref().map(|g| format!("{} (p {})", g.verdict.text(), words::p(g.p_adjusted))));
        gain.extend(cell.lender.as_ref().map(|l| format!("baseline of campaign {}", l.short_id())));
        rows.push(("gain", gain));
        let mut fairness: Vec<String> = q(Key::Fairness).into_iter().collect();
        fairness.extend(cell.get(Key::Overlap).map(|o| format!("overlap {}", number::percent(o.estimate))));
        fairness.extend(cell.get(Key::StartSkew).map(|s| format!("skew {}", number::milliseconds(s.estimate))));
        rows.push(("fairness", fairness));
    }
    for server in cell.servers() {
        rows.push(("latency", latency(&server)));
        rows.push(("requests", requests(&server)));
    }
    rows.push(("makespan", cell.get(Key::Makespan).map(|q| format!("{} s", number::with_interval(q))).into_iter().collect()));
    let mut memory: Vec<String> = Vec::new();
    if let Some(m) = cell.get(Key::Memory) {
        let capacity = campaign.device.memory_bytes.map(|b| b as f64);
        memory.push(
            capacity
                .map_or_else(|| number::gib(m.estimate), |c| format!("{} of {}", number::gib_number(m.estimate), number::gib(c))),
        );
        memory.extend(solo.and_then(|s| s.get(Key::Memory)).map(|q| format!("solo {}", number::gib(q.estimate))));
        memory.extend(q(Key::MemoryOfSolo).filter(|_| !cell.is_solo()).map(|r| format!("{r} of the sum of solo")));
        memory.extend(cell.memory_kind.map(|k| k.text().to_string()));
    }
    rows.push(("memory", memory));
    rows.extend(predicted(analysis, cell).into_iter().map(|parts| ("predicted", parts)));
    let mut cpu: Vec<String> = cell.get(Key::Cpu).map(|q| number::percent(q.estimate)).into_iter().collect();
    cpu.extend(solo.and_then(|s| s.get(Key::Cpu)).map(|q| format!("solo {}", number::percent(q.estimate))));
    cpu.extend(cell.metrics.get("cpu_pressure_some_ratio").map(|q| format!("pressure {}", number::percent(q.estimate))));
    cpu.extend(cell.metrics.get("cpu_frequency_mhz").map(|q| format!("{:.0} MHz", q.estimate)));
    rows.push(("cpu", cpu));
    let alone = cell.on_instance(0).filter(|_| cell.members.len() == 1);
    rows.push((
        "slice",
        alone.map(|(share, n)| format!("SMACT of its slice {share:.2} ({})", number::runs(n))).into_iter().collect(),
    ));
    rows.push(("items", cell.get(Key::Items).map(|q| format!("{} per second", number::with_interval(q))).into_iter().collect()));
    rows.push((
        "energy",
        cell.get(Key::EnergyPerEpoch)
            .map(|q| format!("{} J per member and epoch", number::with_interval(q)))
            .into_iter()
            .collect(),
    ));
    let of_the_gpu = |key: Key, text: &dyn Fn(f64) -> String| cell.metric(key).map(|q| text(q.estimate));
    let gib_per_s = |x: f64| format!("{} GiB/s", number::gib_number(x));
    let share = |key: Key| of_the_gpu(key, &|x| format!("{} {}", key.label, number::percent(x)));
    rows.push(("GPU", [Key::SmActive, Key::SmOccupancy, Key::DramActive].into_iter().filter_map(share).collect()));
    rows.push((
        "PCIe",
        [("in", Key::PcieRx), ("out", Key::PcieTx)]
            .into_iter()
            .filter_map(|(way, key)| of_the_gpu(key, &|x| format!("{way} {}", gib_per_s(x))))
            .collect(),
    ));
    let plain = [(Key::Power, "W"), (Key::SmClock, "MHz"), (Key::Temperature, "°C")];
    let board = plain.into_iter().filter_map(|(key, unit)| of_the_gpu(key, &|x| format!("{} {x:.0} {unit}", key.label)));
    rows.push(("board", board.collect()));
    for (index, member) in cell.members.iter().enumerate().filter(|_| cell.members.len() > 1) {
        let mut parts = vec![format!("{index}"), member.spec.workload.clone()];
        parts.extend(member.get(Key::EpochTime).map(&time));
        parts.extend(member.get(Key::Slowdown).map(|q| format!("slowdown {}", number::with_interval(q))));
        let of_a_server = |key: Key| member.get(key).filter(|_| member.serving.is_some());
        parts.extend(of_a_server(Key::LatencyP99).map(|q| format!("p99 {} ms", number::scaled(q, 1e3))));
        parts.extend(of_a_server(Key::WithinSlo).map(|q| format!("{} in time", number::percent(q.estimate))));
        parts.extend(cell.on_instance(index).map(|(share, _)| format!("SMACT of its slice {share:.2}")));
        parts.extend(member.loss.map(|l| format!("loss {}", number::three(l))));
        rows.push(("member", parts));
    }
    for (index, member) in cell.members.iter().enumerate() {
        // Copies of one member have one graph.
        let again = cell.members[..index].iter().any(|before| before.spec == member.spec);
        if let Some(features) = member.features.as_ref().filter(|_| !again) {
            rows.push(("graph", graph(&member.spec.workload, features)));
        }
    }
    // What is said of one thing stands in columns as far as it fits into them.
    let aligned = |parts: Vec<String>| parts.iter().map(|p| format!("{p:<17}  ")).collect::<String>();
    let rows = rows.into_iter().filter(|(_, parts)| !parts.is_empty());
    let mut facts: Vec<(String, String)> = rows.map(|(label, parts)| (label.to_string(), aligned(parts))).collect();
    let mut put = |label: &str, what: String| facts.push((label.to_string(), what));
    let ran_on = environment::ran_on(analysis, cell);
    if !ran_on.is_empty() {
        put("ran on", ran_on.join(", "));
    }
    // Where no run completed, there is nothing to attest, and every quantity is absent for that reason.
    let has_runs = cell.outcomes.is_empty() || cell.outcomes.get("completed").is_some_and(|n| *n > 0);
    if cell.reported.is_none() && has_runs {
        put("attested", notes::attested(cell));
    }
    for (word, n) in cell.outcomes.iter().filter(|(word, n)| **word != "completed" && **n > 0) {
        put("not used", format!("{n} {}", words::outcome(word)));
    }
    let why = if cell.verdict() == CellVerdict::OutOfMemory { "why" } else { verdict };
    cell.validity.reasons.iter().for_each(|reason| put(why, reason.clone()));
    cell.suspicious.iter().for_each(|odd| put("suspicious", odd.to_string()));
    let mut reasons: Vec<(String, &str)> = Vec::new();
    let obvious = |why: &str| why.starts_with("one member") || why == NOBODY_SERVES;
    let absent = cell.absent.iter().filter(|_| has_runs);
    for (key, why) in absent.filter(|(key, why)| !key.has(Trait::Unmissed) && !obvious(why)) {
        match reasons.iter_mut().find(|(_, w)| w == why) {
            Some((names, _)) => *names = format!("{names}, {}", key.label),
            None => reasons.push((key.label.to_string(), why)),
        }
    }
    reasons.iter().for_each(|(names, why)| put("absent", format!("{names}: {why}")));
    format!("{}\n{}", quoting::line(&title), terminal::text(&[Block::Facts(facts)], usize::MAX))
}

/// What was predicted of each distinct member, and whether it was so.
fn predicted(analysis: &Analysis, cell: &Cell) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for quantity in analysis.predicted_of(std::slice::from_ref(cell)) {
        let by = quantity.by.name.as_str();
        let compared = quantity.points.iter().map(|point| {
            let inside = if point.is_covered() { "inside" } else { "outside" };
            (point.spec, Some(point.claim), format!("measured {} times, {inside}", number::three(point.ratio())))
        });
        let others = quantity.uncompared.iter().map(|one| (one.spec, one.claim, format!("not compared: {}", one.why)));
        for (spec, claim, how) in compared.chain(others) {
            let mut parts: Vec<String> = spec.map(|spec| spec.workload.clone()).into_iter().collect();
            let (label, is_memory) = (quantity.key.label, quantity.key == Key::Memory);
            if let Some(claim) = claim {
                let each = if is_memory { " each" } else { "" };
                let (number, low) = if is_memory {
                    (number::gib as fn(f64) -> String, number::gib_number(claim.low))
                } else {
                    (number::three as fn(f64) -> String, number::three(claim.low))
                };
                parts.push(format!("{label} {}{each}", number(claim.estimate)));
                parts.push(format!("95 % interval {low} to {}", number(claim.high)));
            }
            parts.push(how);
            parts.extend(claim.map(|_| format!("by {by}")));
            rows.push(parts);
        }
    }
    if analysis.may_run_out(cell) == Some(true) {
        rows.push(vec!["may run out of memory, as the plan said".into()]);
    }
    rows
}

/// How late a server's answers are, in a few figures.
fn latency(server: &Server) -> Vec<String> {
    let ms = |key: Key| server.get(key).map(|q| format!("{} {} ms", key.head(), number::scaled(q, 1e3)));
    let mut parts: Vec<String> = vec![server.workload.to_string()];
    parts.extend([Key::LatencyP50, Key::LatencyP95, Key::LatencyP99].map(ms).into_iter().flatten());
    if !server.cell.is_solo() {
        parts.extend(server.get(Key::LatencyP99OfSolo).map(|q| format!("p99 {} times that alone", number::with_interval(q))));
    }
    parts
}

/// How many of a server's requests were answered, and in time.
fn requests(server: &Server) -> Vec<String> {
    let mut parts = Vec::new();
    if let (Some(share), Some(slo)) = (server.get(Key::WithinSlo), server.serving.slo_s) {
        parts.push(format!("{} within {}", number::percent(share.estimate), number::duration(slo)));
    }
    parts.extend(server.get(Key::Goodput).map(|q| format!("goodput {} per second", number::with_interval(q))));
    let due = server.get(Key::Offered).map(|q| format!("{} due per second", number::with_interval(q)));
    parts.extend(due);
    parts
}

/// The computation graph of a member in a few figures.
fn graph(workload: &str, features: &Features) -> Vec<String> {
    let million = |n: f64| number::three(n / 1e6);
    let mut parts = vec![workload.to_string()];
    parts.extend(features.parameters.map(|n| format!("{} M parameters", million(n as f64))));
    parts.extend(features.model_mb.map(|mb| format!("{} MB", number::three(mb))));
    parts.extend(features.flops_per_item.map(|n| format!("{} GFLOP forward per item", number::three(n / 1e9))));
    parts.extend(features.activations_per_item.map(|n| format!("{} M activations per item", million(n))));
    let layers: u64 = features.layers.values().sum();
    parts.extend((layers > 0).then(|| number::count(layers as usize, "layer")));
    parts
}
