//! The summary table at the end of a run, and one cell in full. In: an analysis. Out: plain text of so many columns.

use collo_store::{Features, text};

use crate::analysis::{Analysis, Cell, NOBODY_SERVES, Server};
use crate::compare::conditions::told;
use crate::compare::published;
use crate::guideline::{Knee, capital, knees};
use crate::number::{self, ABSENT};
use crate::quantity::{Key, Trait};
use crate::render::words;

/// One column of the table.
struct Column {
    head: String,
    values: Vec<String>,
    align: Align,
}

#[derive(Clone, Copy, PartialEq)]
enum Align {
    Left,
    Right,
    /// On the decimal point of the estimate.
    Point,
}

impl Column {
    /// Pad every value to one width, head first.
    fn lines(&self) -> Vec<String> {
        let width = |s: &str| s.chars().count();
        let before = |v: &str| width(v.split(['.', ' ']).next().unwrap_or(v));
        let numeric = |v: &str| v.starts_with(|c: char| c.is_ascii_digit());
        let lead = self.values.iter().filter(|v| numeric(v)).map(|v| before(v)).max().unwrap_or(0);
        let placed: Vec<String> = self
            .values
            .iter()
            .map(|v| match self.align {
                Align::Point if numeric(v) => format!("{}{v}", " ".repeat(lead - before(v))),
                _ => v.clone(),
            })
            .collect();
        let all = placed.iter().map(|v| width(v)).chain([width(&self.head)]).max().unwrap_or(0);
        std::iter::once(&self.head)
            .chain(&placed)
            .map(|v| {
                let gap = " ".repeat(all - width(v));
                if self.align == Align::Right { format!("{gap}{v}") } else { format!("{v}{gap}") }
            })
            .collect()
    }
}

/// The end-of-run table with its notes and findings, at most `width` columns wide.
pub fn summary(analysis: &Analysis, width: usize) -> String {
    let mut out = vec![words::title(analysis), String::new()];
    if !analysis.cells.is_empty() {
        out.extend(table(analysis, width));
        out.push(String::new());
    }
    out.extend(words::notes(analysis).into_iter().flat_map(|line| wrap(&line, width)));
    out.extend(findings(analysis).into_iter().flat_map(|line| wrap(&line, width)));
    joined(&out)
}

fn table(analysis: &Analysis, width: usize) -> Vec<String> {
    let cells = &analysis.cells;
    let text =
        |f: &dyn Fn(&Cell) -> Option<String>| cells.iter().map(|c| f(c).unwrap_or_else(|| ABSENT.into())).collect::<Vec<_>>();
    let (factor, unit) = words::time_unit(cells.iter().filter_map(|c| c.get(Key::EpochTime)));
    let epoch = |c: &Cell| match c.get(Key::EpochTime) {
        Some(q) => Some(number::scaled(q, factor)),
        None if c.outcome() != "completed" => Some(words::outcome(c.outcome())),
        None => None,
    };
    let column = |head: &str, values, align| Column { head: head.into(), values, align };
    let plain = |key: Key| column(key.head(), text(&|c| c.get(key).map(number::with_interval)), Align::Point);
    let by = |key: Key, align, f: fn(f64) -> String| column(key.head(), text(&|c| c.get(key).map(|q| f(q.estimate))), align);
    let p99 = text(&|c| c.get(Key::LatencyP99).map(|q| number::scaled(q, 1e3)));
    let columns = [
        column("cell", cells.iter().map(|c| c.name().to_string()).collect(), Align::Left),
        column(&format!("{} {unit}", Key::EpochTime.head()), text(&epoch), Align::Point),
        plain(Key::Slowdown),
        column(&format!("{} ms", Key::LatencyP99.head()), p99, Align::Point),
        plain(Key::LatencyP99OfSolo),
        by(Key::WithinSlo, Align::Right, number::percent),
        plain(Key::ThroughputGain),
        by(Key::Fairness, Align::Point, |ratio| format!("{ratio:.2}")),
        by(Key::Memory, Align::Right, number::gib),
        by(Key::Cpu, Align::Right, number::percent),
        by(Key::Overlap, Align::Left, number::percent),
        column(
            "validity",
            text(&|c| (!c.is_valid() && !c.counted.is_empty()).then(|| words::verdict(c.validity.verdict).to_string())),
            Align::Left,
        ),
    ];
    let mut lines = vec![String::new(); cells.len() + 1];
    for (index, column) in columns.iter().enumerate() {
        if column.values.iter().all(|v| v == ABSENT) {
            continue;
        }
        let cells = column.lines();
        let wide = cells.first().map_or(0, |c| c.chars().count()) + lines[0].chars().count() + 2;
        // Columns go from the right, labels never.
        if index > 0 && wide > width {
            break;
        }
        for (line, cell) in lines.iter_mut().zip(cells) {
            if index > 0 {
                line.push_str("  ");
            }
            line.push_str(&cell);
        }
    }
    lines.into_iter().map(|l| l.trim_end().to_string()).collect()
}

/// One or two sentences of what was found: of each workload the mode that gains most.
fn findings(analysis: &Analysis) -> Vec<String> {
    let knees = knees(analysis);
    let gain = |k: &&Knee| k.cell().get(Key::ThroughputGain).map_or(f64::NEG_INFINITY, |q| q.estimate);
    let best = analysis.workloads().into_iter().filter_map(|w| {
        let here = knees.iter().filter(|k| k.workload == w);
        here.max_by(|a, b| gain(a).total_cmp(&gain(b)))
    });
    let best: Vec<&Knee> = best.collect();
    let several = knees.len() > 1;
    let mut found: Vec<String> = best
        .iter()
        .filter_map(|k| {
            let valid = k.groups.iter().all(|c| c.is_valid());
            let sentence = format!("{}{}", k.sentence()?, if valid { "" } else { " (informative)" });
            Some(if several { format!("`{}` under {}: {sentence}", words::workload(k.workload), k.sharing) } else { sentence })
        })
        .collect();
    let more = found.len().saturating_sub(2);
    found.truncate(2);
    if more > 0 {
        found.push(format!("… {} in the report", number::count(more, "more finding")));
    }
    found
}

/// Everything about one cell: only rows for which there is something to say; what is absent has its reason.
pub fn cell(analysis: &Analysis, cell: &Cell) -> String {
    let campaign = &analysis.campaign;
    let last = campaign.id.rsplit('-').next().unwrap_or(&campaign.id);
    let of = number::count(cell.record.repetitions.max(cell.repetitions.len() as u32) as usize, "repetition");
    let device = campaign.device.name_said();
    let verdict = words::verdict(cell.validity.verdict);
    let mut out =
        vec![format!("{} of {last}, {}, {device}: {verdict}, {} of {of}", cell.name(), campaign.experiment, cell.counted.len())];
    let q = |key: Key| cell.get(key).map(number::with_interval);
    let solo = cell.workload().and_then(|w| analysis.solo(w)).filter(|_| !cell.is_solo());
    let mut rows: Vec<(&str, Vec<String>)> = Vec::new();
    let (factor, unit) = words::time_unit(cell.get(Key::EpochTime).into_iter());
    let time = |q: &crate::stats::Quantity| format!("{} {unit}", number::scaled(q, factor));
    let mut epoch: Vec<String> = cell.get(Key::EpochTime).map(&time).into_iter().collect();
    epoch.extend(solo.and_then(|s| s.get(Key::EpochTime)).map(|q| format!("solo {}", time(q))));
    epoch.extend(q(Key::Slowdown).filter(|_| !cell.is_solo()).map(|s| format!("slowdown {s}")));
    rows.push(("epoch", epoch));
    if !cell.is_solo() {
        let mut gain: Vec<String> = q(Key::ThroughputGain).into_iter().collect();
        let who: Vec<_> = cell.record.members.iter().map(|m| (m.workload.as_str(), m.batch_size.map(u64::from))).collect();
        let figure = published::figure(&campaign.device.name, &cell.record.sharing, &who, Key::ThroughputGain);
        gain.extend(figure.map(|figure| {
            let told = cell.record.members.iter().enumerate().map(|(i, m)| (m.workload.as_str(), told(cell, i)));
            let differs = figure.conditions(told).text(cell.workload().is_none());
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
    let mut cpu: Vec<String> = cell.get(Key::Cpu).map(|q| number::percent(q.estimate)).into_iter().collect();
    cpu.extend(solo.and_then(|s| s.get(Key::Cpu)).map(|q| format!("solo {}", number::percent(q.estimate))));
    cpu.extend(cell.metrics.get("cpu_pressure_some_ratio").map(|q| format!("pressure {}", number::percent(q.estimate))));
    cpu.extend(cell.metrics.get("cpu_frequency_mhz").map(|q| format!("{:.0} MHz", q.estimate)));
    rows.push(("cpu", cpu));
    rows.push(("items", cell.get(Key::Items).map(|q| format!("{} per second", number::with_interval(q))).into_iter().collect()));
    rows.push((
        "energy",
        cell.get(Key::EnergyPerEpoch)
            .map(|q| format!("{} J per member and epoch", number::with_interval(q)))
            .into_iter()
            .collect(),
    ));
    for (index, member) in cell.members.iter().enumerate().filter(|_| cell.members.len() > 1) {
        let mut parts = vec![format!("{index}"), member.spec.workload.clone()];
        parts.extend(member.get(Key::EpochTime).map(&time));
        parts.extend(member.get(Key::Slowdown).map(|q| format!("slowdown {}", number::with_interval(q))));
        let of_a_server = |key: Key| member.get(key).filter(|_| member.serving.is_some());
        parts.extend(of_a_server(Key::LatencyP99).map(|q| format!("p99 {} ms", number::scaled(q, 1e3))));
        parts.extend(of_a_server(Key::WithinSlo).map(|q| format!("{} in time", number::percent(q.estimate))));
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
    for (label, parts) in rows.iter().filter(|(_, parts)| !parts.is_empty()) {
        let padded: Vec<String> =
            parts.iter().map(|p| format!("{p}{}", " ".repeat(19usize.saturating_sub(p.chars().count()).max(2)))).collect();
        out.push(format!("  {label:<10} {}", padded.concat()).trim_end().to_string());
    }
    out.push(format!("  {:<10} {}", "attested", words::attested(cell)));
    for (word, n) in cell.outcomes.iter().filter(|(word, n)| **word != "completed" && **n > 0) {
        out.push(format!("  {:<10} {n} {}", "not used", words::outcome(word)));
    }
    for reason in &cell.validity.reasons {
        out.push(format!("  {verdict:<10} {reason}"));
    }
    for odd in &cell.suspicious {
        out.push(format!("  {:<10} {odd}", "suspicious"));
    }
    let mut reasons: Vec<(String, &str)> = Vec::new();
    let obvious = |why: &str| why.starts_with("one member") || why == NOBODY_SERVES;
    for (key, why) in cell.absent.iter().filter(|(key, why)| !key.has(Trait::Unmissed) && !obvious(why)) {
        match reasons.iter_mut().find(|(_, w)| w == why) {
            Some((names, _)) => *names = format!("{names}, {}", key.label),
            None => reasons.push((key.label.to_string(), why)),
        }
    }
    out.extend(reasons.iter().map(|(names, why)| format!("  {:<10} {names}: {why}", "absent")));
    joined(&out)
}

/// What members and other people's campaigns say ends no line of ours.
fn joined(lines: &[String]) -> String {
    lines.iter().map(|l| format!("{}\n", text::line(l))).collect()
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

/// Break a line between words.
fn wrap(line: &str, width: usize) -> Vec<String> {
    let mut out = vec![String::new()];
    for word in line.split(' ') {
        let current = out.last().map_or(0, |l| l.chars().count());
        if current > 0 && current + 1 + word.chars().count() > width {
            out.push(String::new());
        }
        if let Some(last) = out.last_mut() {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    out
}

/// The findings as sentences, for pages.
pub fn sentences(analysis: &Analysis) -> Vec<String> {
    findings(analysis).iter().filter(|s| !s.starts_with('…')).map(|s| format!("{}.", capital(s))).collect()
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
