//! Which cells have an interval as narrow as the experiment wants it. In: an analysis. Out: the cells that are to be repeated, and what is
//! said of the others.

use collo_quantity::{Key, number};

use super::Analysis;
use crate::cell::Cell;

/// How the interval of a cell compares with the wanted width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WidthVerdict {
    Narrow,
    /// Too wide, and more repetitions are allowed.
    Wide,
    /// Too wide after all repetitions that are allowed.
    Capped,
}

impl Analysis {
    /// The cells that have the quantity, or may get it from a second repetition; `None` if no width is wanted.
    pub fn widths(&self) -> Option<Vec<(&Cell, WidthVerdict)>> {
        let wanted = self.campaign.until.as_ref()?;
        let key = Key::find(&wanted.quantity)?;
        let judged = self.cells.iter().enumerate().filter_map(|(place, cell)| {
            let q = cell.reading(key).filter(|q| q.estimate.is_finite() && !cell.counted.is_empty())?;
            let width = q.low.zip(q.high).map(|(low, high)| (high - low) / q.estimate.abs());
            let planned = self.campaign.plan.order.iter().filter(|run| run.cell == place).count();
            // A baseline runs twice in each block.
            let repetitions = if cell.record.baseline { planned.div_ceil(2) } else { planned };
            let verdict = match width {
                Some(width) if width <= wanted.width_ratio => WidthVerdict::Narrow,
                _ if repetitions >= wanted.at_most as usize => WidthVerdict::Capped,
                _ => WidthVerdict::Wide,
            };
            Some((cell, verdict))
        });
        Some(judged.collect())
    }

    /// What is said of them, if a width is wanted.
    pub fn width_sentence(&self) -> Option<String> {
        const NAMES: usize = 12;
        let (wanted, all) = (self.campaign.until.as_ref()?, self.widths()?);
        let what = Key::find(&wanted.quantity).map_or(wanted.quantity.as_str(), |key| key.label);
        let of = |verdict: WidthVerdict| all.iter().filter(move |(_, v)| *v == verdict).map(|(cell, _)| *cell);
        let width = number::percent_as_written(wanted.width_ratio);
        let mut said = format!(
            "Repeated until the interval of {what} is at most {width} wide, at most {} repetitions: reached by {} of {}",
            wanted.at_most,
            of(WidthVerdict::Narrow).count(),
            number::count(all.len(), "cell")
        );
        for (verdict, words) in [(WidthVerdict::Capped, "stopped at the limit"), (WidthVerdict::Wide, "not repeated to the end")]
        {
            let names: Vec<String> = of(verdict).take(NAMES).map(|c| format!("`{}`", c.name())).collect();
            if !names.is_empty() {
                let more = of(verdict).count() - names.len();
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                said += &format!("; {words}: {}{more}", names.join(", "));
            }
        }
        // How much: `stats/until_coverage.rs`.
        Some(said + ". Repeating stops early where the spread happens to be small, so intervals are slightly too narrow.")
    }
}
