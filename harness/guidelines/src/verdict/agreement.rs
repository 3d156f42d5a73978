//! Whether what was found here agrees with what was published. A published figure has no interval, so agreement is equivalence: our
//! whole interval lies within a stated margin of it. In: cells, and the published figures about them. Out: an [`Agreement`].

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_analysis::cell::verdict::CellVerdict;
use collo_figures::document::{Badge, Tone};
use collo_quantity::Key;
use collo_quantity::stats::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Holds;
use crate::published::study::{PublishedFigure, is_card, study};

/// How far our interval may reach from a published figure, as a ratio: repeats of one published pair differ by 2 to 8 %, and drivers,
/// data loaders and clocks differ besides.
const MARGIN_RATIO: f64 = 0.20;
/// The outcome of a group that does not fit into memory.
const OUT_OF_MEMORY: &str = "out_of_memory";

/// Whether what was found here agrees with what was published.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Agreement {
    Yes,
    No,
    /// In some groups, and not in others.
    Partly,
    /// There is not enough evidence here.
    Open,
    /// Nothing that a figure was published of was measured here.
    NotMeasured,
    /// Measured on a simulation that was calibrated on what was published.
    Circular,
    /// Published of another kind of device, or of another mode.
    NotComparable,
    #[default]
    NotStudied,
}

impl Agreement {
    /// As people read it.
    pub fn text(self) -> &'static str {
        match self {
            Agreement::Yes => "yes",
            Agreement::No => "no",
            Agreement::Partly => "partly",
            Agreement::Open => "open",
            Agreement::NotMeasured => "not measured",
            Agreement::Circular => "circular",
            Agreement::NotComparable => "not comparable",
            Agreement::NotStudied => "not studied",
        }
    }

    /// True if the published statement does not hold here, or not always.
    pub fn is_doubted(self) -> bool {
        matches!(self, Agreement::No | Agreement::Partly)
    }
}

impl From<Agreement> for Badge {
    fn from(agrees: Agreement) -> Badge {
        let (tone, sign) = match agrees {
            Agreement::Yes => (Tone::Good, "✓"),
            Agreement::No => (Tone::Bad, "✕"),
            Agreement::Partly => (Tone::Bad, "≈"),
            Agreement::Open => (Tone::Open, "?"),
            Agreement::NotMeasured | Agreement::Circular | Agreement::NotComparable | Agreement::NotStudied => (Tone::Open, "–"),
        };
        Badge::new(tone, sign, agrees.text())
    }
}

/// Agreement with a published statement of which `holds` is the test itself.
pub fn of_statement(analysis: &Analysis, holds: Holds) -> Agreement {
    let found = match holds {
        Holds::Yes => Agreement::Yes,
        Holds::No => Agreement::No,
        Holds::Open => Agreement::Open,
    };
    where_possible(analysis, found)
}

/// An agreement that was found by a test of its own, where anything can agree.
pub fn where_possible(analysis: &Analysis, found: Agreement) -> Agreement {
    possible(analysis).unwrap_or(found)
}

/// Agreement with the study's figures that `is_meant` selects, each compared with the valid cell that it is about.
pub fn of_figures(analysis: &Analysis, is_meant: impl Fn(&PublishedFigure) -> bool) -> Agreement {
    if let Some(found) = possible(analysis) {
        return found;
    }
    if !is_card(&analysis.campaign.device.name) {
        return Agreement::NotComparable;
    }
    let figures = || study().figures.iter().filter(|f| is_meant(f));
    let found: Vec<Agreement> =
        analysis.cells.iter().flat_map(|cell| figures().filter_map(move |figure| compare(cell, figure))).collect();
    joint(&found)
}

/// Why nothing can agree: the study is of GPUs, and a simulation that was calibrated on it proves nothing.
fn possible(analysis: &Analysis) -> Option<Agreement> {
    let device = &analysis.campaign.device;
    match device.kind.as_str() {
        "gpu" if device.simulated => Some(Agreement::Circular),
        "gpu" => None,
        _ => Some(Agreement::NotComparable),
    }
}

/// Of several figures.
fn joint(found: &[Agreement]) -> Agreement {
    let any = |wanted: Agreement| found.contains(&wanted);
    match () {
        () if found.is_empty() => Agreement::NotMeasured,
        () if any(Agreement::Yes) && any(Agreement::No) => Agreement::Partly,
        () if any(Agreement::No) => Agreement::No,
        () if any(Agreement::Open) => Agreement::Open,
        () if any(Agreement::Yes) => Agreement::Yes,
        () => Agreement::NotComparable,
    }
}

/// One figure; `None` if it is not about this cell.
fn compare(cell: &Cell, figure: &PublishedFigure) -> Option<Agreement> {
    if !figure.is_about_cell(cell) || !cell.ran() {
        return None;
    }
    if !figure.conditions_of(cell).differ.is_empty() {
        return Some(Agreement::NotComparable);
    }
    if let Some(outcome) = &figure.outcome {
        let is_too_large = cell.verdict() == CellVerdict::OutOfMemory;
        return Some(of_outcome(if is_too_large { OUT_OF_MEMORY } else { cell.outcome() }, outcome));
    }
    let key = Key::find(&figure.quantity)?;
    let ours = cell.reading(key).filter(|_| cell.is_valid());
    let range = figure.range()?;
    Some(ours.map_or(Agreement::Open, |q| equivalence(q, range, MARGIN_RATIO)))
}

/// Whether a group fitted as published: one that failed otherwise, or was not run to the end, does not show it.
fn of_outcome(ours: &str, published: &str) -> Agreement {
    match ours {
        same if same == published => Agreement::Yes,
        "completed" | OUT_OF_MEMORY => Agreement::No,
        _ => Agreement::Open,
    }
}

/// Whether an interval lies within a margin of a published range, outside of it, or across its edge.
pub fn equivalence(ours: &Quantity, (least, most): (f64, f64), margin_ratio: f64) -> Agreement {
    let (least, most) = (least / (1.0 + margin_ratio), most * (1.0 + margin_ratio));
    match (ours.low, ours.high) {
        (Some(low), Some(high)) if least <= low && high <= most => Agreement::Yes,
        (Some(low), Some(high)) if high < least || most < low => Agreement::No,
        _ => Agreement::Open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_interval_does_not_agree_by_ignorance() {
        let q = |low: f64, high: f64| Quantity {
            estimate: (low * high).sqrt(),
            low: Some(low),
            high: Some(high),
            n: 3,
            df: Some(4.0),
        };
        let with = |low, high| equivalence(&q(low, high), (0.8, 0.8), 0.25);
        assert_eq!(with(0.70, 0.95), Agreement::Yes);
        assert_eq!(with(0.17, 1.10), Agreement::Open, "it contains 0.8, and much else");
        assert_eq!(with(0.30, 0.60), Agreement::No);
        let once = Quantity { estimate: 0.8, low: None, high: None, n: 1, df: None };
        assert_eq!(equivalence(&once, (0.8, 0.8), 0.25), Agreement::Open, "one run has no interval");
    }

    #[test]
    fn a_group_that_crashed_does_not_show_whether_it_fits() {
        let with = |ours| of_outcome(ours, OUT_OF_MEMORY);
        assert_eq!([with("out_of_memory"), with("completed")], [Agreement::Yes, Agreement::No]);
        assert_eq!(["crashed", "missing", "timed_out"].map(with), [Agreement::Open; 3]);
    }

    #[test]
    fn several_figures_agree_together_or_partly() {
        use Agreement::{No, NotComparable, NotMeasured, Open, Partly, Yes};
        assert_eq!([joint(&[]), joint(&[Yes, Yes]), joint(&[Yes, No]), joint(&[No, Open])], [NotMeasured, Yes, Partly, No]);
        assert_eq!([joint(&[Yes, Open]), joint(&[NotComparable])], [Open, NotComparable]);
    }
}
