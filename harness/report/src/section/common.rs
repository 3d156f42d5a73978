//! What several sections need: panels by workload, captions of members, tables of values.

use collo_store::Verdict;

use super::{Figure, Section, Table, TableCell};
use crate::analysis::{Analysis, Cell};
use crate::number;
use crate::plot::{Bar, BarGroup, Bars, Panel, cut, family, mode_label, mode_order};
use crate::quantity::Key;
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

/// The anchor of a cell's row. Its label may hold anything, its index cannot. Empty where the page has no such row.
pub fn cell_id(analysis: &Analysis, label: &str) -> String {
    if analysis.cells.len() > super::cells::TOO_MANY {
        // The table has only the most telling rows, and a link must lead somewhere.
        return String::new();
    }
    analysis.cells.iter().position(|c| c.name() == label).map_or_else(String::new, |i| format!("c-{i}"))
}

/// Reasons that the page lists, at most; more are in `report.json`.
pub const REASONS: usize = 200;

/// The cells whose validity needs a reason, in the order of the plan, as many as the page lists.
pub fn with_reasons(analysis: &Analysis) -> impl Iterator<Item = &Cell> {
    analysis.cells.iter().filter(|c| !c.validity.reasons.is_empty()).take(REASONS)
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

/// Characters of a name that somebody gave to a model or a data set: some are whole networks, written out.
const NAME: usize = 40;

/// A workload's name, and in grey what it is: model, data set, batch size.
pub fn describe(analysis: &Analysis, workload: &str) -> (String, String) {
    let cell = analysis.of_workload(workload).next();
    let Some(spec) = cell.and_then(|c| c.record.members.first()) else { return (workload.to_string(), String::new()) };
    let hello = analysis
        .of_workload(workload)
        .flat_map(|c| &c.repetitions)
        .flat_map(|r| &r.record().members)
        .find_map(|m| m.hello.as_ref());
    let text = |path: &str| hello.and_then(|h| h.pointer(path)).and_then(|v| v.as_str()).map(|name| cut(name, NAME));
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
    legend_of(cells.map(|c| c.record.sharing.as_str()))
}

/// The same from the modes themselves.
pub fn legend_of<'a>(of: impl Iterator<Item = &'a str>) -> Vec<(String, String)> {
    let mut modes: Vec<&str> = Vec::new();
    for mode in of {
        if !modes.contains(&mode) {
            modes.push(mode);
        }
    }
    modes.sort_by_key(|m| mode_order(m));
    modes.into_iter().map(|m| (m.to_string(), mode_label(m))).collect()
}

/// Both ends of an interval.
pub fn interval(q: &Quantity, factor: f64) -> Option<(f64, f64)> {
    Some((q.low? * factor, q.high? * factor))
}

/// Why a cell has no number, in the space of a bar.
pub fn failure(cell: &Cell) -> Option<String> {
    if !cell.counted.is_empty() {
        // It ran and has numbers; this one was not measured.
        return None;
    }
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

/// Panels of one figure, at most: a page of hundreds is read by nobody.
pub const PANELS: usize = 12;

/// Uniform cells by workload, in the order of the plan.
pub fn by_workload(analysis: &Analysis) -> Vec<(&str, Vec<&Cell>)> {
    let mut places = std::collections::HashMap::<&str, usize>::new();
    let mut found: Vec<(&str, Vec<&Cell>)> = Vec::new();
    for (workload, cell) in analysis.cells.iter().filter_map(|c| Some((c.workload()?, c))) {
        let at = *places.entry(workload).or_insert_with(|| {
            found.push((workload, Vec::new()));
            found.len() - 1
        });
        found[at].1.push(cell);
    }
    found
}

/// The workloads that a figure draws, and the sentence about those that it leaves out.
pub fn drawn<'a>(analysis: &'a Analysis, has: &dyn Fn(&Cell) -> bool) -> (Vec<&'a str>, String) {
    let mut of = by_workload(analysis);
    of.retain(|(_, cells)| cells.iter().any(|c| has(c)));
    let left_out = of.len().saturating_sub(PANELS);
    let said = if left_out == 0 {
        String::new()
    } else {
        format!(" Drawn: the first {PANELS} workloads; {left_out} more are in the cell table or `report.json`.")
    };
    (of.into_iter().take(PANELS).map(|(w, _)| w).collect(), said)
}

/// A reading of a cell.
pub type Get<'a> = &'a dyn Fn(&Cell) -> Option<Quantity>;

/// What bars show.
pub struct BarSpec<'a> {
    /// On hover: `epoch time`.
    pub what: &'a str,
    /// Over the axis: `seconds per epoch`.
    pub caption: &'a str,
    pub get: Get<'a>,
    pub factor: f64,
    /// A second reading as a tick, and what it is called.
    pub tick: Option<(&'a str, Get<'a>)>,
    /// What the bar is held against, and what it is called.
    pub reference: Option<(&'a str, Get<'a>)>,
    /// Panels share one scale.
    pub shared: bool,
    pub limit: Option<(f64, &'a str)>,
    pub ceiling: Option<f64>,
}

impl<'a> BarSpec<'a> {
    /// Bars of one reading, each panel with its own scale.
    pub fn of(what: &'a str, caption: &'a str, get: Get<'a>, factor: f64) -> Self {
        BarSpec { what, caption, get, factor, tick: None, reference: None, shared: false, limit: None, ceiling: None }
    }

    fn bar(&self, cell: &Cell) -> Bar {
        let q = (self.get)(cell);
        let other = |extra: &Option<(&str, Get)>| extra.as_ref().and_then(|(_, get)| get(cell)).map(|q| q.estimate * self.factor);
        let mut title = hover(cell, self.what, q.as_ref(), self.factor, "");
        for (name, get) in self.tick.iter().chain(&self.reference) {
            if let Some(q) = get(cell).filter(|_| q.is_some()) {
                title += &format!("\n{name} {}", number::scaled(&q, self.factor));
            }
        }
        Bar {
            sharing: cell.record.sharing.clone(),
            value: q.as_ref().map(|q| q.estimate * self.factor),
            interval: q.as_ref().and_then(|q| interval(q, self.factor)),
            tick: other(&self.tick).filter(|_| q.is_some()),
            reference: other(&self.reference).filter(|_| q.is_some()),
            failure: failure(cell),
            informative: !cell.is_valid(),
            title,
            text: q.as_ref().map_or_else(String::new, |q| short(q, self.factor)),
        }
    }
}

/// Cells of a workload by degree, modes in their order.
pub fn by_degree<'a>(analysis: &'a Analysis, workload: &'a str) -> Vec<&'a Cell> {
    let mut cells: Vec<&Cell> = analysis.of_workload(workload).collect();
    cells.sort_by(|a, b| (a.record.degree, mode_order(&a.record.sharing)).cmp(&(b.record.degree, mode_order(&b.record.sharing))));
    cells
}

/// Panels of bars, one per workload: groups by degree, bars by mode; and the sentence about what is left out.
pub fn bar_panels(analysis: &Analysis, spec: &BarSpec) -> (Vec<Panel>, String) {
    let (workloads, left_out) = drawn(analysis, &|c| (spec.get)(c).is_some());
    let mut of: Vec<(&str, Vec<BarGroup>)> = Vec::new();
    for workload in workloads {
        let mut groups: Vec<BarGroup> = Vec::new();
        for cell in by_degree(analysis, workload) {
            let (label, bar) = (format!("×{}", cell.record.degree), spec.bar(cell));
            match groups.iter_mut().find(|g| g.label == label) {
                Some(group) => group.bars.push(bar),
                None => groups.push(BarGroup { label, bars: vec![bar] }),
            }
        }
        of.push((workload, groups));
    }
    let high = |b: &Bar| b.interval.map(|i| i.1).into_iter().chain(b.value).chain(b.tick).reduce(f64::max);
    let all = of.iter().flat_map(|(_, groups)| groups).flat_map(|g| &g.bars).filter_map(high);
    let largest = Some(all.fold(0.0, f64::max)).filter(|_| spec.shared);
    let panel = |(workload, groups): &(&str, Vec<BarGroup>)| {
        let (title, subtitle) = describe(analysis, workload);
        let label = format!("{} of {title} by degree and sharing mode", spec.what);
        let bars = Bars { caption: spec.caption, groups, largest, limit: spec.limit, ceiling: spec.ceiling };
        Panel { title, subtitle, label, drawing: bars.draw() }
    };
    (of.iter().map(panel).collect(), left_out)
}

/// An estimate above a bar.
pub fn short(q: &Quantity, factor: f64) -> String {
    number::estimate(&times(q, factor))
}

/// A quantity after multiplying by `factor`.
pub fn times(q: &Quantity, factor: f64) -> Quantity {
    Quantity { estimate: q.estimate * factor, low: q.low.map(|x| x * factor), high: q.high.map(|x| x * factor), ..q.clone() }
}

/// Rows of a figure's table, at most: more are in `report.json`.
pub const VALUES: usize = 240;

/// The head of every figure's table: the cell, with a link to its row.
pub fn label(analysis: &Analysis, cell: &Cell) -> TableCell {
    TableCell { link: cell_id(analysis, cell.name()), ..TableCell::text(cell.name()) }
}

/// Say in a table's caption what was left out of it.
pub fn cut_rows(table: &mut Table) {
    let all = table.rows.len();
    if all > VALUES {
        table.rows.truncate(VALUES);
        table.caption = format!("The first {VALUES} of {all} cells; all of them are in report.json");
    }
}

/// Value, interval and repetitions of one quantity for the uniform cells of every workload that has it.
pub fn values(analysis: &Analysis, what: &str, get: Get, factor: f64) -> Table {
    values_of(analysis, &[(what, get, factor)], &|c| c.record.is_uniform())
}

/// The same for several quantities beside each other, of the cells that are asked for.
pub fn values_of(analysis: &Analysis, wanted: &[(&str, Get, f64)], of: &dyn Fn(&Cell) -> bool) -> Table {
    let mut heads = vec!["cell".to_string()];
    heads.extend(wanted.iter().flat_map(|(what, ..)| [format!("#{what}"), "95 % interval".into()]));
    heads.extend(["#runs".to_string(), "validity".into()]);
    let mut table = Table::with(&heads.iter().map(String::as_str).collect::<Vec<_>>());
    // A workload of which nothing was read has no panel, and no rows.
    let read: Vec<&str> = by_workload(analysis)
        .into_iter()
        .filter(|(_, cells)| wanted.first().is_some_and(|(_, get, _)| cells.iter().any(|c| get(c).is_some())))
        .map(|(w, _)| w)
        .collect();
    let of = |c: &Cell| of(c) && c.workload().is_none_or(|w| read.contains(&w));
    let all = analysis.cells.iter().filter(|c| of(c)).count();
    if all > VALUES {
        table.caption = format!("The first {VALUES} of {all} cells; all of them are in report.json");
    }
    for cell in analysis.cells.iter().filter(|c| of(c)).take(VALUES) {
        let mut row = vec![label(analysis, cell)];
        let mut runs = String::new();
        for (i, (_, get, factor)) in wanted.iter().enumerate() {
            let Some(q) = get(cell) else {
                let why = if i == 0 { failure(cell).unwrap_or_default() } else { String::new() };
                row.extend([TableCell::default(), TableCell::text(why)]);
                continue;
            };
            let scaled = times(&q, *factor);
            let bounds = if scaled.low.is_some() { number::bounds(&scaled) } else { "one run has none".into() };
            row.extend([TableCell::text(number::estimate(&scaled)), TableCell::text(bounds)]);
            if runs.is_empty() {
                runs = q.n.to_string();
            }
        }
        row.extend([TableCell::text(runs), TableCell::text(words::verdict(cell.validity.verdict))]);
        table.row(row);
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
    // Most figures have a panel per workload; those of mixed groups say their own modes.
    let shown = analysis.cells.iter().filter(|c| c.record.is_uniform() && !c.repetitions.is_empty());
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

/// A cell's reading, among its quantities or the means of the card.
pub fn reading(cell: &Cell, key: Key) -> Option<Quantity> {
    cell.get(key).or_else(|| cell.metric(key)).cloned()
}

/// A metric of the device or the host, as bars on one scale, where some cell has it.
pub fn metric_figure(analysis: &Analysis, id: &'static str, title: &str, name: &str, spec: &BarSpec) -> Option<Figure> {
    let (panels, left_out) = bar_panels(analysis, spec);
    let text = format!(
        "Mean over the time in which all members train past their warm-up. {} All panels share one scale.{}{left_out}",
        whiskers(analysis),
        informative_note(analysis.cells.iter())
    );
    (!panels.is_empty()).then(|| figure(analysis, id, title, panels, text, values(analysis, name, spec.get, spec.factor)))
}
