//! What several sections need: panels by workload, captions of members, tables of values.

use collo_store::Verdict;

use super::{Figure, Section, Table, TableCell};
use crate::analysis::{Analysis, Cell};
use crate::number;
use crate::plot::{Bar, BarGroup, Bars, Panel, family, mode_order};
use crate::render::words;
use crate::stats::Quantity;

/// What every face of these numbers must say.
pub fn tags(analysis: &Analysis) -> Vec<String> {
    let mut tags = Vec::new();
    if analysis.campaign.device.simulated {
        tags.push("simulated".to_string());
    }
    if !analysis.synthetic.is_empty() {
        tags.push("synthetic data".into());
    }
    if !analysis.shortened.is_empty() {
        tags.push("shortened epochs".into());
    }
    if !analysis.campaign.informative.is_empty() {
        tags.push("informative".into());
    }
    tags
}

/// The anchor of a cell's row. Its label may hold anything, its index cannot.
pub fn cell_id(analysis: &Analysis, label: &str) -> String {
    analysis.cells.iter().position(|c| c.name() == label).map_or_else(String::new, |i| format!("c-{i}"))
}

/// A section that has nothing to show.
pub fn without(id: &'static str, title: &'static str, why: impl Into<String>) -> Section {
    Section { id, title, chip: None, finding: why.into(), blocks: Vec::new() }
}

/// Why no cell of an analysis has numbers at all, if so.
pub fn nothing(analysis: &Analysis) -> Option<&'static str> {
    if analysis.cells.is_empty() {
        Some("The plan has no cell.")
    } else if analysis.cells.iter().all(|c| c.repetitions.is_empty()) {
        Some("Nothing was run yet.")
    } else if analysis.cells.iter().all(|c| c.counted.is_empty()) {
        Some("No run completed with a usable number; see Feasibility for how each cell ended.")
    } else {
        None
    }
}

/// A workload's name, and in grey what it is: model, data set, batch size.
pub fn describe(analysis: &Analysis, workload: &str) -> (String, String) {
    let cell = analysis.of_workload(workload).next();
    let Some(spec) = cell.and_then(|c| c.record.members.first()) else { return (workload.to_string(), String::new()) };
    let hello = analysis
        .of_workload(workload)
        .flat_map(|c| &c.repetitions)
        .flat_map(|r| &r.record().members)
        .find_map(|m| m.hello.as_ref());
    let text = |path: &str| hello.and_then(|h| h.pointer(path)).and_then(|v| v.as_str()).map(str::to_string);
    let mut parts = Vec::new();
    match (text("/model/name"), text("/dataset/name")) {
        (Some(m), Some(d)) => parts.push(format!("{m} / {d}")),
        (Some(one), None) | (None, Some(one)) => parts.push(one),
        (None, None) => {}
    }
    if let Some(b) = spec.batch_size {
        parts.push(format!("batch {b}"));
    }
    (spec.workload.clone(), parts.join(", "))
}

/// Modes of a set of cells in their order, with the label that legends print.
pub fn legend<'a>(cells: impl Iterator<Item = &'a Cell>) -> Vec<(String, String)> {
    let mut modes: Vec<&str> = Vec::new();
    for cell in cells {
        if !modes.contains(&cell.record.sharing.as_str()) {
            modes.push(&cell.record.sharing);
        }
    }
    modes.sort_by_key(|m| mode_order(m));
    modes.into_iter().map(|m| (m.to_string(), m.to_string())).collect()
}

/// Both ends of an interval.
pub fn interval(q: &Quantity, factor: f64) -> Option<(f64, f64)> {
    Some((q.low? * factor, q.high? * factor))
}

/// Why a cell has no number, in the space of a bar.
pub fn failure(cell: &Cell) -> Option<String> {
    match cell.outcome() {
        "completed" if cell.validity.verdict == Verdict::Void => Some("void".into()),
        "completed" => None,
        "out_of_memory" => Some("OOM".into()),
        other => Some(words::outcome(other)),
    }
}

/// What hovers over a mark.
pub fn hover(cell: &Cell, what: &str, q: Option<&Quantity>, factor: f64, unit: &str) -> String {
    let mut text = cell.name().to_string();
    match q {
        Some(q) => text += &format!("\n{what} {}{unit}", number::scaled(q, factor)),
        None => text += &format!("\n{}", failure(cell).unwrap_or_else(|| "absent".into())),
    }
    if cell.validity.verdict != Verdict::Valid {
        text += &format!("\n{}: {}", words::verdict(cell.validity.verdict), cell.validity.reasons.join("; "));
    }
    text
}

/// Panels of bars, one per workload: groups by degree, bars by mode.
pub fn bar_panels(
    analysis: &Analysis,
    what: &str,
    caption: &str,
    get: &dyn Fn(&Cell) -> Option<Quantity>,
    factor: f64,
) -> Vec<Panel> {
    let mut panels = Vec::new();
    for workload in analysis.workloads() {
        let mut cells: Vec<&Cell> = analysis.of_workload(workload).collect();
        if cells.iter().all(|c| get(c).is_none()) {
            continue;
        }
        cells.sort_by(|a, b| {
            (a.record.degree, mode_order(&a.record.sharing)).cmp(&(b.record.degree, mode_order(&b.record.sharing)))
        });
        let mut groups: Vec<BarGroup> = Vec::new();
        for cell in &cells {
            let q = get(cell);
            let bar = Bar {
                sharing: cell.record.sharing.clone(),
                value: q.as_ref().map(|q| q.estimate * factor),
                interval: q.as_ref().and_then(|q| interval(q, factor)),
                failure: failure(cell),
                informative: !cell.is_valid(),
                title: hover(cell, what, q.as_ref(), factor, ""),
                text: q.as_ref().map_or_else(String::new, |q| short(q, factor)),
            };
            let label = format!("×{}", cell.record.degree);
            match groups.iter_mut().find(|g| g.label == label) {
                Some(group) => group.bars.push(bar),
                None => groups.push(BarGroup { label, bars: vec![bar] }),
            }
        }
        let (title, subtitle) = describe(analysis, workload);
        let label = format!("{what} of {title} by degree and sharing mode");
        panels.push(Panel { title, subtitle, label, drawing: Bars { caption, groups: &groups }.draw() });
    }
    panels
}

/// An estimate above a bar.
pub fn short(q: &Quantity, factor: f64) -> String {
    let scaled =
        Quantity { estimate: q.estimate * factor, low: q.low.map(|x| x * factor), high: q.high.map(|x| x * factor), ..q.clone() };
    number::estimate(&scaled)
}

/// Value, interval and repetitions of one quantity for every cell that has it.
pub fn values(analysis: &Analysis, what: &str, get: &dyn Fn(&Cell) -> Option<Quantity>, factor: f64) -> Table {
    let mut table = Table::with(&["cell", &format!("#{what}"), "95 % interval", "#runs", "validity"]);
    for cell in &analysis.cells {
        let mut label = TableCell::text(cell.name());
        label.link = cell_id(analysis, cell.name());
        let (value, bounds, n) = match get(cell) {
            Some(q) => {
                let scaled = Quantity {
                    estimate: q.estimate * factor,
                    low: q.low.map(|x| x * factor),
                    high: q.high.map(|x| x * factor),
                    ..q
                };
                (
                    number::estimate(&scaled),
                    if scaled.low.is_some() { number::bounds(&scaled) } else { "one run has none".into() },
                    scaled.n.to_string(),
                )
            }
            None => (String::new(), failure(cell).unwrap_or_default(), String::new()),
        };
        let validity = words::verdict(cell.validity.verdict);
        table.row(vec![label, TableCell::text(value), TableCell::text(bounds), TableCell::text(n), TableCell::text(validity)]);
    }
    table.tags = tags(analysis);
    table
}

/// The sentence of a caption that says how intervals were made.
pub fn whiskers(analysis: &Analysis) -> String {
    words::method(analysis)
        .map_or_else(|| "One repetition carries no interval.".into(), |m| format!("Whiskers: {m}, on logarithms."))
}

/// What open bars mean, where there are any.
pub fn informative_note<'a>(cells: impl Iterator<Item = &'a Cell>) -> &'static str {
    if cells.into_iter().any(|c| c.validity.verdict == Verdict::Informative) {
        " Pale, dashed: informative, no guideline rests on it."
    } else {
        ""
    }
}

/// A figure whose tags and look follow from the analysis.
pub fn figure(analysis: &Analysis, id: &'static str, title: &str, panels: Vec<Panel>, caption: String, values: Table) -> Figure {
    let shown = analysis.cells.iter().filter(|c| !c.counted.is_empty());
    Figure {
        id,
        title: title.into(),
        legend: legend(shown).into_iter().filter(|(mode, _)| !family(mode).is_empty()).collect(),
        panels,
        caption,
        values,
        simulated: analysis.campaign.device.simulated,
        tags: tags(analysis),
    }
}

/// A metric of the device or the host, as bars, where some cell has it.
pub fn metric_figure(
    analysis: &Analysis,
    id: &'static str,
    title: &str,
    metric: &str,
    caption: &str,
    factor: f64,
) -> Option<Figure> {
    let get = |c: &Cell| c.metrics.get(metric).cloned();
    let panels = bar_panels(analysis, title, caption, &get, factor);
    let text = format!("Mean over the time in which all members train past their warm-up. {}", whiskers(analysis));
    (!panels.is_empty()).then(|| figure(analysis, id, title, panels, text, values(analysis, caption, &get, factor)))
}
