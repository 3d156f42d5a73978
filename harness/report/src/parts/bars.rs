//! Figures with bars of one quantity, a panel for each workload.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_figures::chart::{Bar, BarGroup, Bars};
use collo_figures::document::{Block, Table};
use collo_figures::draw::Panel;
use collo_figures::draw::slots::reach;
use collo_quantity::Key;
use collo_quantity::number;
use collo_quantity::stats::Quantity;
use collo_quantity::unit::GIB;

use super::figure::{failure, figure, hover, indicative_note, interval, legend, whiskers};
use super::panels::{describe, describe_alone, drawn};
use super::places::{Places, alone_on_slice, compute_slices, drawn_as, places_note};
use super::values::{reading, values};

/// What most quantities are.
pub const MEAN: &str = "Mean over the time when all members train past their warm-up.";

/// A figure: a quantity, and how it is shown.
pub struct BarFigure<'a> {
    pub id: &'static str,
    pub title: &'a str,
    pub key: Key,
    pub factor: f64,
    /// On hover, before and after the value: `epoch time`, ` s`.
    pub what: &'a str,
    pub unit: &'a str,
    /// Over the axis: `average power, watts`.
    pub caption: &'a str,
    /// Over the values in the table: `watts`.
    pub head: &'a str,
    /// What a value is, in a sentence.
    pub meaning: &'a str,
    /// True if the caption explains where each mode is drawn.
    pub places: bool,
    pub scale: Scale,
    /// A second quantity as a tick, and its name.
    pub tick: Option<(&'a str, Key)>,
    /// A quantity that the bar is compared with, and its name.
    pub reference: Option<(&'a str, Key)>,
    /// More quantities in the table, as far as some cell has them.
    pub beside: &'a [(&'a str, Key)],
    pub limit: Option<(f64, &'a str)>,
}

/// The scale of panels, and its explanation for the caption.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Each panel its own, with this sentence.
    Own(&'static str),
    Shared,
    /// From 0 to 1 in every panel.
    Share,
    /// One for all, of stacks with a segment per member; the definition of a value covers their whiskers.
    Members,
}

impl<'a> BarFigure<'a> {
    /// A quantity in its own unit, all panels on one scale.
    pub fn of(key: Key) -> Self {
        BarFigure {
            id: "",
            title: "",
            key,
            factor: 1.0,
            what: key.label,
            unit: "",
            caption: "",
            head: "",
            meaning: MEAN,
            places: false,
            scale: Scale::Shared,
            tick: None,
            reference: None,
            beside: &[],
            limit: None,
        }
    }

    /// The figure, if some cell of equal members has the quantity; a table where it would have a single bar.
    pub fn draw(&self, analysis: &Analysis) -> Option<Block> {
        let (panels, slices_drawn, left_out) = self.panels(analysis);
        let (shared, own) = match self.scale {
            Scale::Own(sentence) => ("", sentence),
            Scale::Shared => (" All panels share one scale.", ""),
            Scale::Share | Scale::Members => ("", ""),
        };
        let places = if self.places { places_note(analysis, slices_drawn) } else { "" };
        let whiskers = if self.is_stacked() { String::new() } else { format!(" {}", whiskers(analysis)) };
        let indicative = indicative_note(analysis.cells.iter());
        let text = format!("{}{places}{whiskers}{shared}{indicative}{own}{left_out}", self.meaning);
        let columns = [(self.head, self.key)].into_iter().chain(self.beside.iter().copied());
        let columns: Vec<(&str, Key, f64)> = columns.map(|(head, key)| (head, key, self.factor)).collect();
        let values = values(analysis, &columns);
        match panels.len() {
            0 => None,
            1 if values.rows.len() == 1 => Some(Block::Table(Table { caption: self.title.into(), ..values })),
            _ => {
                let mut fig = figure(analysis, self.id, self.title, panels, text, values);
                if !slices_drawn {
                    fig.legend = legend(analysis.cells.iter().filter(|c| c.record.is_uniform() && c.ran() && !alone_on_slice(c)));
                }
                Some(Block::Figure(fig))
            }
        }
    }

    fn is_stacked(&self) -> bool {
        self.scale == Scale::Members
    }

    fn bar(&self, cell: &Cell) -> Bar {
        let q = reading(cell, self.key);
        let other = |extra: Option<(&str, Key)>| Some(reading(cell, extra?.1)?.estimate * self.factor).filter(|_| q.is_some());
        let mut title = hover(cell, self.what, q.as_ref(), self.factor, self.unit);
        for (name, key) in self.tick.into_iter().chain(self.reference) {
            if let Some(q) = reading(cell, key).filter(|_| q.is_some()) {
                title += &format!("\n{name} {}", number::scaled(&q, self.factor));
            }
        }
        Bar {
            sharing: drawn_as(cell),
            below: compute_slices(cell).filter(|_| !alone_on_slice(cell)).unwrap_or_default(),
            value: q.as_ref().map(|q| q.estimate * self.factor),
            interval: q.as_ref().and_then(|q| interval(q, self.factor)),
            tick: other(self.tick),
            reference: other(self.reference),
            failure: failure(cell),
            indicative: !cell.is_valid(),
            title,
            text: q.as_ref().map_or_else(String::new, |q| short(q, self.factor)),
            ..Bar::default()
        }
    }

    /// The stack of a cell; for one that ran out of memory, what its members use alone.
    fn stack(&self, cell: &Cell, alone: Option<f64>) -> Bar {
        let q = reading(cell, self.key);
        let of_members =
            || cell.members.iter().map(|m| Some(m.get(self.key)?.estimate * self.factor)).collect::<Option<Vec<f64>>>();
        // Of the one process that members share only the whole is known.
        let whole = || q.as_ref().map(|q| vec![q.estimate * self.factor]);
        let segments = if cell.record.mode.one_process { whole() } else { of_members() };
        let mut bar = self.bar(cell);
        // Only memory is asked for and refused.
        let ran_out = q.is_none() && self.key == Key::Memory && bar.failure.as_deref() == Some("OOM");
        let asked = alone.filter(|_| ran_out);
        if let Some(each) = asked {
            let sum = number::three(each * f64::from(cell.record.degree));
            bar.title += &format!("\nalone its members use {sum}, added up");
        }
        let text = |q: &Quantity| match q.estimate * self.factor {
            _ if self.factor == GIB => number::gib_number(q.estimate),
            value if value < 9.95 => number::three(value),
            value => format!("{value:.0}"),
        };
        Bar {
            segments: segments.filter(|_| q.is_some()).unwrap_or_default(),
            asked: asked.map_or_else(Vec::new, |each| vec![each; cell.record.degree as usize]),
            interval: bar.interval.filter(|(low, high)| high - low > 1e-6 * high),
            text: q.as_ref().map_or_else(String::new, text),
            ..bar
        }
    }

    /// Panels of bars: per workload one of groups by degree with a bar for each mode and solo as a line, and one of its
    /// members alone on slices; and the sentence about what is left out.
    fn panels(&self, analysis: &Analysis) -> (Vec<Panel>, bool, String) {
        let (workloads, left_out) = drawn(analysis, &|c| reading(c, self.key).is_some());
        let mut of: Vec<BarPanel> = Vec::new();
        for workload in &workloads {
            let Places { mut groups, slices } = Places::of(analysis, workload, self.is_stacked());
            if groups.is_empty() && slices.is_empty() {
                groups = Places::of(analysis, workload, true).groups;
            }
            let groups_are_none = groups.is_empty();
            let alone = analysis.solo(workload).and_then(|s| s.get(self.key)).map(|q| q.estimate * self.factor);
            let bar = |c: &Cell| if self.is_stacked() { self.stack(c, alone) } else { self.bar(c) };
            // Of a merged campaign the one that was measured where these cells were. Among stacks it is one of them.
            let solo = |cells: &[&Cell]| {
                let cell = analysis.solo_beside(cells.iter().flat_map(|c| c.counted()), workload);
                let cell = cell.filter(|_| !self.is_stacked())?;
                let bar = self.bar(cell);
                let said = reading(cell, self.key)
                    .map_or_else(|| bar.failure.clone().unwrap_or_else(|| "not measured".into()), |q| long(&q, self.factor));
                Some(Bar { text: format!("solo {said}"), ..bar })
            };
            let cells: Vec<&Cell> = groups.iter().flat_map(|(_, cells)| cells).copied().flatten().collect();
            let group = |(degree, cells): (u32, Vec<Option<&Cell>>)| BarGroup {
                label: format!("×{degree}"),
                bars: cells.into_iter().map(|c| c.map(bar)).collect(),
            };
            if !groups.is_empty() {
                let level = if cells.iter().any(|c| c.record.sharing == "solo") { None } else { solo(&cells) };
                of.push(BarPanel { workload, alone: false, groups: groups.into_iter().map(group).collect(), level });
            }
            let slice =
                |c: &&Cell| BarGroup { label: compute_slices(c).unwrap_or_else(|| "MIG".into()), bars: vec![Some(bar(c))] };
            // One slice beside groups is one number, which the table has.
            if slices.len() > 1 || (groups_are_none && !slices.is_empty()) {
                of.push(BarPanel { workload, alone: true, groups: slices.iter().map(slice).collect(), level: solo(&slices) });
            }
        }
        // Sharing first; what a slice is worth is another question.
        of.sort_by_key(|p| p.alone);
        let bars = of.iter().flat_map(|p| p.groups.iter().flat_map(|g| g.bars.iter().flatten()).chain(&p.level));
        let of_all = |c: &Cell| reading(c, self.key).map(|q| (q.estimate * self.factor, q.high.map(|high| high * self.factor)));
        let largest = match self.scale {
            Scale::Own(_) => None,
            Scale::Members => Some(reach(analysis.cells.iter().filter(|c| c.record.is_uniform()).filter_map(of_all))),
            Scale::Shared | Scale::Share => Some(reach(bars.filter_map(Bar::reach))),
        };
        let subject = if self.is_stacked() { self.caption } else { self.what };
        let panel = |BarPanel { workload, alone, groups, level }: &BarPanel| {
            let (title, mut subtitle) = describe(analysis, workload);
            let mut label = format!("{subject} of {title} by degree and sharing mode");
            if *alone {
                subtitle = describe_alone(analysis, workload);
                label = format!("{subject} of {title} alone on each slice");
            }
            let ceiling = Some(1.0).filter(|_| self.scale == Scale::Share);
            let (caption, limit, stacked) = (self.caption, self.limit, self.is_stacked());
            let bars = Bars { caption, groups, level: level.as_ref(), largest, limit, ceiling, stacked };
            Panel { title, subtitle, label, drawing: bars.draw() }
        };
        (of.iter().map(panel).collect(), of.iter().any(|p| p.alone), left_out)
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

/// An estimate above a bar: three digits are what a bar shows.
fn short(q: &Quantity, factor: f64) -> String {
    number::three(q.estimate * factor)
}

/// A baseline with its interval, unless that is too small to be read.
fn long(q: &Quantity, factor: f64) -> String {
    const ROOM: usize = 16;
    let said = number::scaled(q, factor);
    if said.chars().count() > ROOM { short(q, factor) } else { said }
}
