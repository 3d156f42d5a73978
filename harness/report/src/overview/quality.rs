//! How far the numbers can be trusted: sampling, drift, skew, attestation, what was left alone.

use std::collections::{BTreeMap, BTreeSet};

use collo_analysis::campaign::Analysis;
use collo_analysis::campaign::reference::ReferenceVerdict;
use collo_analysis::cell::Cell;
use collo_analysis::reading::check::Drift;
use collo_analysis::words::capital;
use collo_figures::document::{Block, Row, Section, Table, TableCell, TableColumn};
use collo_quantity::{Key, number};
use collo_store::Cooling;

use super::doubts;
use crate::parts::absent::{Content, NO_RUNS};
use crate::parts::anchor::{REASONS, with_reasons};
use crate::parts::figure::tags;
use crate::parts::notes;
use crate::parts::values::label;

/// One source over all runs: the requested rate, and the worst achieved values.
struct SourceQuality {
    name: String,
    asked_hz: f64,
    slowest_hz: Option<f64>,
    longest_gap_s: Option<f64>,
    lateness_p99_s: Option<f64>,
    missed: u64,
    cpu_ratio: Option<f64>,
    /// Smallest share of ticks at which a metric moved, by metric.
    moved: Vec<(String, f64)>,
}

pub fn section(analysis: &Analysis) -> Content {
    let records: Vec<_> = analysis.all_cells().flat_map(|c| &c.repetitions).map(|r| r.record()).collect();
    if analysis.cells.is_empty() && analysis.is_reported() {
        return Err(NO_RUNS.into());
    }
    if records.is_empty() && !analysis.cells.iter().any(Cell::ran) {
        return Err("Nothing has run yet.".into());
    }
    let mut sources: Vec<SourceQuality> = Vec::new();
    for q in records.iter().flat_map(|r| &r.sampling) {
        let found = sources.iter().position(|s| s.name == q.source && s.asked_hz == q.asked_hz);
        let at = found.unwrap_or_else(|| {
            sources.push(SourceQuality {
                name: q.source.clone(),
                asked_hz: q.asked_hz,
                slowest_hz: None,
                longest_gap_s: None,
                lateness_p99_s: None,
                missed: 0,
                cpu_ratio: None,
                moved: Vec::new(),
            });
            sources.len() - 1
        });
        let s = &mut sources[at];
        let larger = |a: Option<f64>, b: Option<f64>| a.into_iter().chain(b).reduce(f64::max);
        s.slowest_hz = s.slowest_hz.into_iter().chain(q.achieved_hz).reduce(f64::min);
        s.longest_gap_s = larger(s.longest_gap_s, q.longest_gap_s);
        s.lateness_p99_s = larger(s.lateness_p99_s, q.lateness_p99_s);
        s.cpu_ratio = larger(s.cpu_ratio, q.cpu_ratio);
        s.missed = s.missed.max(q.missed);
        for (metric, ratio) in &q.moved_ratio {
            match s.moved.iter_mut().find(|(m, _)| m == metric) {
                Some((_, least)) => *least = least.min(*ratio),
                None => s.moved.push((metric.clone(), *ratio)),
            }
        }
    }
    let mut blocks = Vec::new();
    if !sources.is_empty() {
        blocks.push(Block::Table(table(analysis, &sources)));
    }
    blocks.push(Block::Notes(remarks(analysis)));
    if analysis.cells.iter().any(|c| !c.validity.reasons.is_empty()) {
        blocks.push(Block::Table(reasons(analysis)));
    }
    Ok(Section { finding: finding(analysis), blocks, ..Section::default() })
}

fn table(analysis: &Analysis, sources: &[SourceQuality]) -> Table {
    let maybe = |x: Option<f64>, f: &dyn Fn(f64) -> String| TableCell::text(x.map_or_else(String::new, f));
    let two = |x: f64| format!("{x:.2}");
    let columns: &[TableColumn<&SourceQuality>] = &[
        ("source", &|s| TableCell::text(s.name.clone())),
        ("#set Hz", &|s| TableCell::text(number::three(s.asked_hz))),
        ("#slowest run Hz", &|s| maybe(s.slowest_hz, &two)),
        ("#longest gap s", &|s| maybe(s.longest_gap_s, &two)),
        ("#lateness p99 ms", &|s| maybe(s.lateness_p99_s, &|x| two(x * 1e3))),
        ("#missed", &|s| TableCell::text(s.missed.to_string())),
        ("#sampler % of a core", &|s| maybe(s.cpu_ratio, &|x| two(x * 100.0))),
        ("changed least", &|s| {
            let least = s.moved.iter().min_by(|a, b| a.1.total_cmp(&b.1));
            TableCell::text(least.map_or_else(String::new, |(m, r)| format!("{m} at {} of ticks", number::percent(*r))))
        }),
    ];
    Table { caption: "The worst of all runs".into(), tags: tags(analysis), ..Table::of(columns, sources) }
}

/// Why cells are not valid, or what was left out of them.
fn reasons(analysis: &Analysis) -> Table {
    let mut table = Table::with(&["cell", "validity", "reasons"]);
    table.columns[2].prose = true;
    let groups = with_reasons(analysis);
    table.caption = match groups.len() > REASONS {
        true => format!("Why cells are not valid: the first {REASONS} of {} reasons; all are in report.json", groups.len()),
        false => "Why cells are not valid, and what was left out of them".into(),
    };
    table.tags = tags(analysis);
    for (i, group) in groups.iter().take(REASONS).enumerate() {
        let who = match group.cells[..] {
            [only] => label(analysis, only),
            _ => TableCell::with_note(number::count(group.cells.len(), "cell"), some_names(&group.cells)),
        };
        let cells = vec![who, TableCell::text(group.verdict.text()), TableCell::text(group.reasons.join("; "))];
        table.rows.push(Row { id: format!("why-{i}"), cells, ..Row::default() });
    }
    table
}

/// Names of cells, and how many more there are.
fn some_names(cells: &[&Cell]) -> String {
    const NAMES: usize = 12;
    let names: Vec<&str> = cells.iter().take(NAMES).map(|c| c.name()).collect();
    let more = if cells.len() > NAMES { format!(", and {} more", cells.len() - NAMES) } else { String::new() };
    names.join(", ") + &more
}

fn remarks(analysis: &Analysis) -> Vec<String> {
    let mut lines = Vec::new();
    if analysis.cells.iter().any(Cell::serves) {
        lines.push(
            "Latencies and shares of requests: each cell by its own spread, since their scatter depends on the load.".into(),
        );
    }
    let skews = analysis.cells.iter().flat_map(|c| &c.repetitions).filter_map(|r| r.start_skew_s);
    if let Some(worst) = skews.reduce(f64::max) {
        let allowed = number::milliseconds(analysis.campaign.thresholds.start_skew_s);
        lines.push(format!("Start skew: {} at worst (limit {allowed}).", number::milliseconds(worst)));
    }
    let runs = analysis.cells.iter().flat_map(|c| &c.repetitions);
    lines.extend(cooling(&runs.filter_map(|r| r.record().cooling.as_ref()).collect::<Vec<_>>()));
    lines.extend(of_programs(analysis));
    let drifts = &analysis.drifts;
    if let Some(worst) = analysis.worst_drift() {
        // A block has a drift of each baseline.
        let blocks = |wanted: &dyn Fn(&Drift) -> bool| {
            drifts.iter().filter(|d| wanted(d)).map(|d| d.block).collect::<BTreeSet<u32>>().len()
        };
        let (large, all) = (blocks(&|d| d.is_large), blocks(&|_| true));
        let allowed = number::percent_as_written(analysis.campaign.thresholds.baseline_drift_ratio);
        lines.push(format!(
            "Baseline drift: {:+.1} % at worst (`{}`, block {}); {large} of {} beyond {allowed}. Intervals include it.",
            (worst.ratio - 1.0) * 100.0,
            worst.cell,
            worst.block,
            number::count(all, "block")
        ));
    }
    let waited = analysis.cells.iter().flat_map(|c| &c.members).filter_map(|m| m.get(Key::InvoluntarySwitches));
    if let Some(most) = waited.map(|q| q.estimate).reduce(f64::max) {
        lines.push(format!("Involuntary context switches: up to {} per second of one member.", number::three(most)));
    }
    lines.extend(analysis.width_sentence());
    let references = &analysis.references;
    if !references.is_empty() {
        let within = references.iter().filter(|r| r.verdict == ReferenceVerdict::Within).count();
        lines.push(format!("Reference values: {within} of {} within their tolerance.", references.len()));
        let others = references.iter().filter(|r| r.verdict != ReferenceVerdict::Within);
        lines.extend(others.take(REASONS).map(|r| format!("Reference: {}.", r.text())));
    }
    lines.extend(notes::few_energy_steps(analysis).map(|text| format!("Energy: {text}.")));
    let odd: Vec<(&Cell, Vec<&str>)> =
        analysis.cells.iter().map(|c| (c, doubts::besides_energy(c))).filter(|(_, odd)| !odd.is_empty()).collect();
    lines.extend(odd.iter().take(REASONS).map(|(c, odd)| format!("`{}` is suspicious: {}.", c.name(), odd.join("; "))));
    if odd.len() > REASONS {
        lines.push(format!("{} more are suspicious; all are in `report.json`.", number::count(odd.len() - REASONS, "cell")));
    }
    let oddities =
        notes::without_p99(analysis).into_iter().chain(notes::without_energy(analysis)).chain(notes::oddities(analysis));
    lines.extend(analysis.problems.iter().skip(doubts::LISTED).take(REASONS).map(|problem| format!("{}.", capital(problem))));
    lines.extend(oddities.map(|text| format!("{}.", capital(&text))));
    lines
}

/// Errors of programs on the GPU, which make no run indicative.
fn of_programs(analysis: &Analysis) -> Option<String> {
    let mut runs: BTreeMap<String, usize> = BTreeMap::new();
    for record in analysis.all_cells().flat_map(|c| &c.repetitions).map(|r| r.record()) {
        for xid in record.xids().into_iter().filter(|xid| xid.is_of_a_program()) {
            *runs.entry(xid.text()).or_default() += 1;
        }
    }
    let texts: Vec<String> = runs.iter().map(|(text, n)| format!("{text} in {}", number::runs(*n))).collect();
    (!texts.is_empty()).then(|| format!("Errors of programs that the driver reported: {}.", texts.join("; ")))
}

/// How long a thermal gate made runs wait.
fn cooling(all: &[&Cooling]) -> Option<String> {
    let limit = all.iter().filter_map(|c| c.limit_c).reduce(f64::max)?;
    let idle = all.iter().filter_map(|c| c.idle_c).reduce(f64::min)?;
    let longest = all.iter().map(|c| c.waited_s).reduce(f64::max)?;
    let warmer = all.iter().filter(|c| c.to_c.zip(c.limit_c).is_some_and(|(to_c, limit_c)| to_c > limit_c)).count();
    let unread = all.iter().filter(|c| !c.is_reached()).count() - warmer;
    let runs = number::count(all.len(), "run");
    let unread =
        if unread > 0 { format!("; the temperature before {} was not read", number::runs(unread)) } else { String::new() };
    Some(format!(
        "Cooldown: {runs} waited for {limit} °C (idle {idle} °C), {longest:.0} s at most; {warmer} began warmer than that{unread}."
    ))
}

fn finding(analysis: &Analysis) -> String {
    notes::verdicts(analysis).map_or_else(String::new, |verdicts| format!("{verdicts}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_whose_temperature_was_not_read_did_not_begin_warmer() {
        let run = |to_c| Cooling { idle_c: Some(30.0), limit_c: Some(35.0), from_c: Some(60.0), to_c, waited_s: 12.0 };
        let (cool, warm, unread) = (run(Some(35.0)), run(Some(41.0)), run(None));
        assert_eq!(
            cooling(&[&cool, &warm, &unread]).as_deref(),
            Some(
                "Cooldown: 3 runs waited for 35 °C (idle 30 °C), 12 s at most; 1 began warmer than that; the temperature before 1 run was not read."
            )
        );
        assert!(cooling(&[&cool]).is_some_and(|said| said.ends_with("0 began warmer than that.")));
        assert_eq!(cooling(&[]), None);
    }
}
