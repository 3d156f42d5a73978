//! Published values beside our own, in figures and their tables. In: cells, and the study's figures about them. Out: hollow marks,
//! columns and the sentence of a caption. They are drawn where members, mode, GPU model and training conditions are those published.

use std::collections::BTreeSet;

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_figures::document::{Align, Column, Figure, Table, TableCell};
use collo_figures::draw::look::PUBLISHED;
use collo_figures::draw::marks::PublishedMark;
use collo_guidelines::published::study::{self, PublishedFigure};
use collo_quantity::stats::Quantity;
use collo_quantity::{Key, number};

use super::values::reading;

/// The published figure of a cell's quantity, if it is of the same conditions.
fn comparable(analysis: &Analysis, cell: &Cell, key: Key) -> Option<&'static PublishedFigure> {
    let (figure, conditions) = study::of_cell(analysis, cell, key)?;
    (conditions.differ.is_empty() && figure.range().is_some()).then_some(figure)
}

/// A cell's value divided by the published one, or by the nearer end of a published range; `None` inside a range.
fn distance_ratio(ours: f64, (low, high): (f64, f64)) -> Option<f64> {
    match () {
        () if ours < low => Some(ours / low),
        () if ours > high => Some(ours / high),
        () => (low == high).then_some(1.0),
    }
}

fn distance_text(ours: f64, range: (f64, f64)) -> String {
    distance_ratio(ours, range).map_or_else(|| "inside".into(), |ratio| format!("{ratio:.2}"))
}

/// The mark of a cell in a figure whose values are multiplied by `factor`.
pub fn mark(analysis: &Analysis, cell: &Cell, key: Key, ours: &Quantity, factor: f64) -> Option<PublishedMark> {
    let figure = comparable(analysis, cell, key)?;
    let (low, high) = figure.range()?;
    let distance = match distance_ratio(ours.estimate, (low, high)) {
        Some(ratio) => format!("ours ÷ published: {ratio:.2}"),
        None => "ours is inside".into(),
    };
    let title =
        format!("{}\npublished {}; {distance}\n{}\n{}", cell.name(), figure.value_text(), figure.conditions, figure.source);
    Some(PublishedMark { low: low * factor, high: high * factor, title })
}

/// The published values of a quantity of equal members.
pub struct PublishedBeside {
    /// The cell, ours, and the figure.
    rows: Vec<(String, f64, &'static PublishedFigure)>,
    /// Published of cells that were trained otherwise here.
    other_conditions: usize,
    simulated: bool,
}

impl PublishedBeside {
    pub fn of(analysis: &Analysis, key: Key) -> PublishedBeside {
        let cells = || analysis.cells.iter().filter(|c| c.record.is_uniform());
        let known = || cells().filter_map(|c| Some((c, reading(c, key)?)));
        let row = |(c, q): (&Cell, Quantity)| Some((c.name().to_string(), q.estimate, comparable(analysis, c, key)?));
        let differs = |c: &Cell| study::of_cell(analysis, c, key).is_some_and(|(_, conditions)| !conditions.differ.is_empty());
        PublishedBeside {
            rows: known().filter_map(row).collect(),
            other_conditions: known().filter(|(c, _)| differs(c)).count(),
            simulated: analysis.campaign.device.simulated,
        }
    }

    /// Name the mark in the legend of a figure, and add its values to the table.
    pub fn add_to(&self, figure: &mut Figure) {
        if !self.rows.is_empty() {
            figure.legend.push((PUBLISHED.into(), PUBLISHED.into()));
            self.add_columns(&mut figure.values);
        }
    }

    /// Add the published values to a table that has the names of cells in its first column.
    pub fn add_columns(&self, table: &mut Table) {
        if self.rows.is_empty() {
            return;
        }
        let head = |name: &str| Column { name: name.into(), align: Align::Right, ..Column::default() };
        table.columns.extend([head("published"), head("ours ÷ published")]);
        for row in &mut table.rows {
            let found = self.rows.iter().find(|(cell, ..)| row.cells.first().is_some_and(|first| first.text == *cell));
            let cells = found.and_then(|(_, ours, figure)| {
                let range = figure.range()?;
                Some([
                    TableCell::text(figure.value_text()),
                    TableCell { sort: distance_ratio(*ours, range), ..TableCell::text(distance_text(*ours, range)) },
                ])
            });
            row.cells.extend(cells.unwrap_or_default());
        }
    }

    /// What is drawn, how far ours are from it, and what is not drawn; begins with a space.
    pub fn sentence(&self) -> String {
        let mut text = String::new();
        let ratios: Vec<f64> = self.rows.iter().filter_map(|(_, ours, figure)| distance_ratio(*ours, figure.range()?)).collect();
        let inside = self.rows.len() - ratios.len();
        if !self.rows.is_empty() {
            let sources: BTreeSet<&str> = self.rows.iter().map(|(_, _, figure)| figure.source.as_str()).collect();
            let sources = sources.into_iter().collect::<Vec<_>>().join("; ");
            text += &format!(" Stars: published for the same members, mode and conditions, without an interval ({sources})");
            let low = ratios.iter().copied().fold(f64::INFINITY, f64::min);
            let high = ratios.iter().copied().fold(0.0, f64::max);
            let mut parts = Vec::new();
            match ratios.len() {
                0 => {}
                1 => parts.push(format!("ours ÷ published {low:.2}")),
                n => parts.push(format!("ours ÷ published {low:.2} to {high:.2} in {n} cells")),
            }
            if inside > 0 {
                parts.push(format!("{} inside the published range", number::count(inside, "cell")));
            }
            text += &format!("; {}", parts.join(", "));
            text += if self.simulated { "; the simulation was calibrated on them, so that agreement is circular." } else { "." };
        }
        if self.other_conditions > 0 {
            text += &format!(
                " {} of other training conditions {} not drawn.",
                number::count(self.other_conditions, "published value"),
                if self.other_conditions == 1 { "is" } else { "are" }
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distance_is_to_the_value_or_to_the_nearer_end_of_a_range() {
        assert_eq!(distance_text(1.1, (1.0, 1.0)), "1.10");
        assert_eq!(distance_text(0.75, (1.5, 2.1)), "0.50");
        assert_eq!(distance_text(4.2, (1.5, 2.1)), "2.00");
        assert_eq!(distance_text(1.8, (1.5, 2.1)), "inside");
    }
}
