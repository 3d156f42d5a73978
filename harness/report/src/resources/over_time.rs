//! A series of the whole GPU over time: the same members under each mode on one axis, one panel per workload.

use collo_analysis::campaign::Analysis;
use collo_analysis::timeline::Timeline;
use collo_figures::chart::{OverTime, Trace};
use collo_figures::document::{Block, Table, TableCell};
use collo_figures::draw::{PANELS, Panel};
use collo_quantity::number;

use crate::parts::figure::{figure, legend_of, tags};
use crate::parts::panels::describe;

/// A figure: a series, and how it is shown.
pub struct TraceFigure<'a> {
    pub id: &'static str,
    pub title: &'static str,
    /// Over the axis: `watts`.
    pub caption: &'static str,
    pub of: fn(&Timeline) -> &Vec<(f64, f64)>,
    pub factor: f64,
    pub unit: &'static str,
    pub limit: Option<(f64, &'a str)>,
}

/// The mean of a series of points and the largest of them, each of which is the mean of its span.
fn told(line: &[(f64, f64)], factor: f64) -> Option<(f64, f64)> {
    let mean = line.iter().map(|p| p.1).sum::<f64>() / line.len() as f64 * factor;
    let most = line.iter().map(|p| p.1 * factor).reduce(f64::max)?;
    Some((mean, most))
}

impl TraceFigure<'_> {
    /// The figure, if some run has the series.
    pub fn draw(&self, analysis: &Analysis) -> Option<Block> {
        let drawn: Vec<&Timeline> = analysis.timelines.iter().filter(|t| !(self.of)(t).is_empty() && !t.in_turn).collect();
        let largest = drawn.iter().filter_map(|t| told((self.of)(t), self.factor)).map(|t| t.1).fold(0.0, f64::max);
        let mut sets: Vec<&str> = drawn.iter().map(|t| t.set.as_str()).collect();
        sets.sort_unstable();
        sets.dedup();
        let place = |set: &str| drawn.iter().position(|t| t.set == set);
        sets.sort_by_key(|s| place(s));
        let mut table = Table::with(&[
            "run",
            "#repetition",
            "#seconds",
            &format!("#mean {}", self.unit),
            &format!("#largest point {}", self.unit),
        ]);
        let mut panels = Vec::new();
        for set in sets.into_iter().take(PANELS) {
            let here: Vec<&&Timeline> = drawn.iter().filter(|t| t.set == set).collect();
            let mut traces = Vec::new();
            for t in &here {
                let line = (self.of)(t);
                let Some((mean, most)) = told(line, self.factor) else { continue };
                let (mean, most) = (number::three(mean), number::three(most));
                let title = format!(
                    "{}\nrepetition {}\nmean {mean} {unit}, largest point {most} {unit}",
                    t.cell,
                    t.repetition,
                    unit = self.unit
                );
                let points = line.iter().map(|(x, y)| (*x, y * self.factor)).collect();
                traces.push(Trace { sharing: t.sharing.clone(), points, title });
                let number = |x: f64| TableCell { sort: Some(x), ..TableCell::text(number::three(x)) };
                table.row(vec![
                    TableCell::text(t.cell.clone()),
                    TableCell::text(t.repetition.to_string()),
                    number(t.end_s - t.start_s.min(0.0)),
                    TableCell::text(mean),
                    TableCell::text(most),
                ]);
            }
            let subtitle = here.iter().find_map(|t| t.workload.as_deref()).map_or_else(String::new, |w| describe(analysis, w).1);
            let drawing = OverTime { caption: self.caption, traces: &traces, largest, limit: self.limit }.draw();
            panels.push(Panel { title: set.to_string(), subtitle, label: format!("{} of {set}", self.title), drawing });
        }
        if panels.is_empty() {
            return None;
        }
        table.tags = tags(analysis);
        let text = "One repetition of each mode, from go to the end of training, warm-up included; at most 60 points a line, each the mean of \
            its span. All panels share the vertical scale; the mark is the end of the run."
            .to_string();
        let mut fig = figure(analysis, self.id, self.title, panels, text, table);
        fig.legend = legend_of(drawn.iter().map(|t| t.sharing.as_str()));
        Some(Block::Figure(fig))
    }
}
