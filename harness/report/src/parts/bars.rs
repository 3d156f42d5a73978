//! Figures with bars of one quantity, a panel for each workload.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_figures::chart::{Bar, BarGroup, Bars};
use collo_figures::document::{Block, Table};
use collo_figures::draw::Panel;
use collo_figures::draw::slots::reach;
use collo_quantity::stats::Quantity;
use collo_quantity::unit::GIB;
use collo_quantity::{Key, number};

use super::figure::{failure, figure, hover, indicative_note, interval, whiskers};
use super::panels::{describe, drawn};
use super::places::{Places, compute_slices, drawn_as, places_note};
use super::published::{self, PublishedBeside};
use super::values::{reading, times, values};

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

    /// The figure, if some cell of equal members has the quantity; a table where its panels would have a single bar each.
    pub fn draw(&self, analysis: &Analysis) -> Option<Block> {
        let (panels, left_out) = self.panels(analysis);
        let (shared, own) = match self.scale {
            Scale::Own(sentence) => ("", sentence),
            Scale::Shared => (" All panels share one scale.", ""),
            Scale::Share | Scale::Members => ("", ""),
        };
        let places = if self.places { places_note(analysis) } else { "" };
        let whiskers = if self.is_stacked() { String::new() } else { format!(" {}", whiskers(analysis)) };
        let indicative = indicative_note(analysis.cells.iter());
        let beside = PublishedBeside::of(analysis, self.key);
        let published = beside.sentence();
        let text = format!("{}{places}{whiskers}{shared}{indicative}{own}{published}{left_out}", self.meaning);
        let columns = [(self.head, self.key)].into_iter().chain(self.beside.iter().copied());
        let columns: Vec<(&str, Key, f64)> = columns.map(|(head, key)| (head, key, self.factor)).collect();
        let values = values(analysis, &columns);
        match panels.len() {
            0 => None,
            // A single bar in each of them compares nothing.
            n if values.rows.len() <= n => Some(Block::Table(Table { caption: self.title.into(), ..values })),
            _ => {
                let mut fig = figure(analysis, self.id, self.title, panels, text, values);
                beside.add_to(&mut fig);
                Some(Block::Figure(fig))
            }
        }
    }

    fn is_stacked(&self) -> bool {
        self.scale == Scale::Members
    }

    fn bar(&self, analysis: &Analysis, cell: &Cell) -> Bar {
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
            below: compute_slices(cell).unwrap_or_default(),
            value: q.as_ref().map(|q| q.estimate * self.factor),
            interval: q.as_ref().and_then(|q| interval(q, self.factor)),
            runs: cell.readings(self.key).into_iter().map(|value| value * self.factor).collect(),
            published: q.as_ref().and_then(|q| published::mark(analysis, cell, self.key, q, self.factor)),
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
    fn stack(&self, analysis: &Analysis, cell: &Cell, alone: Option<f64>) -> Bar {
        let q = reading(cell, self.key);
        let of_members =
            || cell.members.iter().map(|m| Some(m.get(self.key)?.estimate * self.factor)).collect::<Option<Vec<f64>>>();
        // Of the one process that members share only the whole is known.
        let whole = || q.as_ref().map(|q| vec![q.estimate * self.factor]);
        let segments = if cell.record.mode.one_process { whole() } else { of_members() };
        let mut bar = self.bar(analysis, cell);
        // Only memory is asked for and refused.
        let ran_out = q.is_none() && self.key == Key::Memory && bar.failure.as_deref() == Some("OOM");
        let asked = alone.filter(|_| ran_out);
        if let Some(each) = asked {
            let sum = number::three(each * f64::from(cell.record.degree));
            bar.title += &format!("\nalone its members use {sum}, added up");
        }
        let text = |q: &Quantity| if self.factor == GIB { number::gib_number(q.estimate) } else { short(q, self.factor) };
        Bar {
            segments: segments.filter(|_| q.is_some()).unwrap_or_default(),
            asked: asked.map_or_else(Vec::new, |each| vec![each; cell.record.degree as usize]),
            interval: bar.interval.filter(|(low, high)| high - low > 1e-6 * high),
            text: q.as_ref().map_or_else(String::new, text),
            ..bar
        }
    }

    /// A panel for each workload: by degree a bar for each mode, at ×1 what one member does alone, and solo as a line; and the sentence
    /// about what is left out.
    fn panels(&self, analysis: &Analysis) -> (Vec<Panel>, String) {
        let (workloads, left_out) = drawn(analysis, &|c| reading(c, self.key).is_some());
        let of: Vec<BarPanel> = workloads.iter().map(|workload| self.panel(analysis, workload)).collect();
        let bars = of.iter().flat_map(|p| p.groups.iter().flat_map(|g| g.bars.iter().flatten()).chain(&p.level));
        let of_all = |c: &Cell| reading(c, self.key).map(|q| (q.estimate * self.factor, q.high.map(|high| high * self.factor)));
        let largest = match self.scale {
            Scale::Own(_) => None,
            Scale::Members => Some(reach(analysis.cells.iter().filter(|c| c.record.is_uniform()).filter_map(of_all))),
            Scale::Shared | Scale::Share => Some(reach(bars.filter_map(Bar::reach))),
        };
        let subject = if self.is_stacked() { self.caption } else { self.what };
        let panel = |BarPanel { workload, groups, level }: &BarPanel| {
            let (title, subtitle) = describe(analysis, workload);
            let label = format!("{subject} of {title} by degree and sharing mode");
            let ceiling = Some(1.0).filter(|_| self.scale == Scale::Share);
            let (caption, limit, stacked) = (self.caption, self.limit, self.is_stacked());
            let bars = Bars { caption, groups, level: level.as_ref(), largest, limit, ceiling, stacked };
            Panel { title, subtitle, label, drawing: bars.draw() }
        };
        (of.iter().map(panel).collect(), left_out)
    }

    fn panel<'w>(&self, analysis: &Analysis, workload: &'w str) -> BarPanel<'w> {
        let mut places = Places::of(analysis, workload, self.is_stacked());
        if places.groups.is_empty() {
            places = Places::of(analysis, workload, true);
        }
        let cells: Vec<&Cell> = places.groups.iter().flat_map(|(_, cells)| cells).copied().flatten().collect();
        let alone = analysis.solo(workload).and_then(|s| s.get(self.key)).map(|q| q.estimate * self.factor);
        let bar = |c: &Cell| if self.is_stacked() { self.stack(analysis, c, alone) } else { self.bar(analysis, c) };
        // Of a merged campaign the one that was measured where these cells were. Among stacks it is one of them.
        let solo = analysis.solo_beside(cells.iter().flat_map(|c| c.counted()), workload).filter(|_| {
            let is_only = cells.iter().all(|c| c.is_solo());
            !self.is_stacked() && !is_only
        });
        let level = solo.map(|cell| {
            let bar = self.bar(analysis, cell);
            let text = reading(cell, self.key)
                .map_or_else(|| bar.failure.clone().unwrap_or_else(|| "not measured".into()), |q| long(&q, self.factor));
            // Where it is a bar, too, its value and the published one are there.
            let is_drawn = cells.iter().any(|c| c.is_solo());
            let (title, published) = if is_drawn { (String::new(), None) } else { (bar.title.clone(), bar.published.clone()) };
            Bar { text: format!("solo {text}"), title, published, ..bar }
        });
        let group = |(degree, cells): (u32, Vec<Option<&Cell>>)| BarGroup {
            label: format!("×{degree}"),
            bars: cells.into_iter().map(|c| c.map(bar)).collect(),
        };
        BarPanel { workload, groups: places.groups.into_iter().map(group).collect(), level }
    }
}

/// One panel before it is drawn.
struct BarPanel<'a> {
    workload: &'a str,
    groups: Vec<BarGroup>,
    /// Solo, unless it is the only bar.
    level: Option<Bar>,
}

/// An estimate above a bar, as the table beside it has it, with three digits at most, which are what a bar shows.
fn short(q: &Quantity, factor: f64) -> String {
    let (said, three) = (number::estimate(&times(q, factor)), number::three(q.estimate * factor));
    if said.chars().count() <= three.chars().count() { said } else { three }
}

/// A baseline with its interval, unless that is too small to be read.
fn long(q: &Quantity, factor: f64) -> String {
    const ROOM: usize = 16;
    let said = number::scaled(q, factor);
    if said.chars().count() > ROOM { short(q, factor) } else { said }
}
