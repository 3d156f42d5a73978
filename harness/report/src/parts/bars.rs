//! Bars of one reading, a panel for each workload.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_figures::chart::{Bar, BarGroup, Bars};
use collo_figures::document::Figure;
use collo_figures::draw::Panel;
use collo_figures::draw::slots::reach;
use collo_quantity::number;
use collo_quantity::stats::Quantity;

use super::figure::{failure, figure, hover, indicative_note, interval, whiskers};
use super::panels::{describe, describe_alone, drawn};
use super::places::{Places, alone_on_slice, compute_slices, drawn_as, places_note};
use super::values::{Reading, values};

/// The content of bars.
pub struct BarSpec<'a> {
    /// On hover: `epoch time`.
    pub what: &'a str,
    /// Over the axis: `seconds per epoch`.
    pub caption: &'a str,
    pub get: Reading<'a>,
    pub factor: f64,
    /// On hover, after the value: ` s`.
    pub unit: &'a str,
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
        BarSpec { what, caption, get, factor, unit: "", tick: None, reference: None, shared: false, limit: None, ceiling: None }
    }

    fn bar(&self, cell: &Cell) -> Bar {
        let q = (self.get)(cell);
        let other =
            |extra: &Option<(&str, Reading)>| extra.as_ref().and_then(|(_, get)| get(cell)).map(|q| q.estimate * self.factor);
        let mut title = hover(cell, self.what, q.as_ref(), self.factor, self.unit);
        for (name, get) in self.tick.iter().chain(&self.reference) {
            if let Some(q) = get(cell).filter(|_| q.is_some()) {
                title += &format!("\n{name} {}", number::scaled(&q, self.factor));
            }
        }
        Bar {
            sharing: drawn_as(cell),
            below: compute_slices(cell).filter(|_| !alone_on_slice(cell)).unwrap_or_default(),
            value: q.as_ref().map(|q| q.estimate * self.factor),
            interval: q.as_ref().and_then(|q| interval(q, self.factor)),
            tick: other(&self.tick).filter(|_| q.is_some()),
            reference: other(&self.reference).filter(|_| q.is_some()),
            failure: failure(cell),
            indicative: !cell.is_valid(),
            title,
            text: q.as_ref().map_or_else(String::new, |q| short(q, self.factor)),
        }
    }
}

/// One panel before it is drawn.
struct BarPanel<'a> {
    workload: &'a str,
    /// Its members run alone on slices.
    alone: bool,
    groups: Vec<BarGroup>,
    /// Solo, if no bar is.
    level: Option<Bar>,
}

/// Panels of bars: per workload one of groups by degree with a bar for each mode and solo as a line, and one of its members alone
/// on slices; and the sentence about what is left out.
pub fn bar_panels(analysis: &Analysis, spec: &BarSpec) -> (Vec<Panel>, String) {
    let (workloads, left_out) = drawn(analysis, &|c| (spec.get)(c).is_some());
    let mut of: Vec<BarPanel> = Vec::new();
    for workload in &workloads {
        let Places { mut groups, slices } = Places::of(analysis, workload, false);
        if groups.is_empty() && slices.is_empty() {
            groups = Places::of(analysis, workload, true).groups;
        }
        // Of a merged campaign the one that was measured where these cells were.
        let solo = |cells: &[&Cell]| {
            let cell = analysis.solo_beside(cells.iter().flat_map(|c| c.counted()), workload)?;
            let bar = spec.bar(cell);
            let said = (spec.get)(cell)
                .map_or_else(|| bar.failure.clone().unwrap_or_else(|| "not measured".into()), |q| long(&q, spec.factor));
            Some(Bar { text: format!("solo {said}"), ..bar })
        };
        let cells: Vec<&Cell> = groups.iter().flat_map(|(_, cells)| cells).copied().flatten().collect();
        let group = |(degree, cells): (u32, Vec<Option<&Cell>>)| BarGroup {
            label: format!("×{degree}"),
            bars: cells.into_iter().map(|c| c.map(|c| spec.bar(c))).collect(),
        };
        if !groups.is_empty() {
            let level = if cells.iter().any(|c| c.record.sharing == "solo") { None } else { solo(&cells) };
            of.push(BarPanel { workload, alone: false, groups: groups.into_iter().map(group).collect(), level });
        }
        let slice =
            |c: &&Cell| BarGroup { label: compute_slices(c).unwrap_or_else(|| "MIG".into()), bars: vec![Some(spec.bar(c))] };
        if !slices.is_empty() {
            of.push(BarPanel { workload, alone: true, groups: slices.iter().map(slice).collect(), level: solo(&slices) });
        }
    }
    // Sharing first; what a slice is worth is another question.
    of.sort_by_key(|p| p.alone);
    let bars = of.iter().flat_map(|p| p.groups.iter().flat_map(|g| g.bars.iter().flatten()).chain(&p.level));
    let largest = Some(reach(bars.filter_map(Bar::reach))).filter(|_| spec.shared);
    let panel = |BarPanel { workload, alone, groups, level }: &BarPanel| {
        let (title, mut subtitle) = describe(analysis, workload);
        let mut label = format!("{} of {title} by degree and sharing mode", spec.what);
        if *alone {
            subtitle = describe_alone(analysis, workload);
            label = format!("{} of {title} alone on each slice", spec.what);
        }
        let bars =
            Bars { caption: spec.caption, groups, level: level.as_ref(), largest, limit: spec.limit, ceiling: spec.ceiling };
        Panel { title, subtitle, label, drawing: bars.draw() }
    };
    (of.iter().map(panel).collect(), left_out)
}

/// An estimate above a bar: three digits are what a bar shows.
pub fn short(q: &Quantity, factor: f64) -> String {
    number::three(q.estimate * factor)
}

/// A baseline with its interval, unless that is too small to be read.
fn long(q: &Quantity, factor: f64) -> String {
    const ROOM: usize = 16;
    let said = number::scaled(q, factor);
    if said.chars().count() > ROOM { short(q, factor) } else { said }
}

/// A metric of the device or the host, as bars on one scale, if some cell has it.
pub fn metric_figure(analysis: &Analysis, id: &'static str, title: &str, name: &str, spec: &BarSpec) -> Option<Figure> {
    let (panels, left_out) = bar_panels(analysis, spec);
    let text = format!(
        "Mean over the time when all members train past their warm-up.{} {} All panels share one scale.{}{left_out}",
        places_note(analysis),
        whiskers(analysis),
        indicative_note(analysis.cells.iter())
    );
    (!panels.is_empty()).then(|| figure(analysis, id, title, panels, text, values(analysis, name, spec.get, spec.factor)))
}
