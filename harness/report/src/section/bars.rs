//! Bars of one reading, a panel for each workload.

use super::figure::{failure, figure, hover, informative_note, interval, whiskers};
use super::panels::{describe, drawn};
use super::values::{Reading, times, values};
use crate::analysis::{Analysis, Cell};
use crate::document::Figure;
use crate::number;
use crate::plot::{Bar, BarGroup, Bars, Panel, mode_order};
use crate::stats::Quantity;

/// The content of bars.
pub struct BarSpec<'a> {
    /// On hover: `epoch time`.
    pub what: &'a str,
    /// Over the axis: `seconds per epoch`.
    pub caption: &'a str,
    pub get: Reading<'a>,
    pub factor: f64,
    /// A second reading as a tick, and its name.
    pub tick: Option<(&'a str, Reading<'a>)>,
    /// The reference value of the bar, and its name.
    pub reference: Option<(&'a str, Reading<'a>)>,
    /// Panels share one scale.
    pub shared: bool,
    pub limit: Option<(f64, &'a str)>,
    pub ceiling: Option<f64>,
}

impl<'a> BarSpec<'a> {
    /// Bars of one reading, each panel with its own scale.
    pub fn of(what: &'a str, caption: &'a str, get: Reading<'a>, factor: f64) -> Self {
        BarSpec { what, caption, get, factor, tick: None, reference: None, shared: false, limit: None, ceiling: None }
    }

    fn bar(&self, cell: &Cell) -> Bar {
        let q = (self.get)(cell);
        let other =
            |extra: &Option<(&str, Reading)>| extra.as_ref().and_then(|(_, get)| get(cell)).map(|q| q.estimate * self.factor);
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

/// A metric of the device or the host, as bars on one scale, if some cell has it.
pub fn metric_figure(analysis: &Analysis, id: &'static str, title: &str, name: &str, spec: &BarSpec) -> Option<Figure> {
    let (panels, left_out) = bar_panels(analysis, spec);
    let text = format!(
        "Mean over the time when all members train past their warm-up. {} All panels share one scale.{}{left_out}",
        whiskers(analysis),
        informative_note(analysis.cells.iter())
    );
    (!panels.is_empty()).then(|| figure(analysis, id, title, panels, text, values(analysis, name, spec.get, spec.factor)))
}
