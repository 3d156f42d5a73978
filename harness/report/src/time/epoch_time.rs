//! Time per epoch by degree and mode.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_analysis::words;
use collo_figures::document::{Block, Section};
use collo_quantity::Key;
use collo_quantity::number;

use crate::parts::absent::{nothing, without};
use crate::parts::bars::{BarSpec, bar_panels};
use crate::parts::figure::{figure, indicative_note, whiskers};
use crate::parts::places::places_note;
use crate::parts::values::values;

const ID: &str = "epoch-time";
const TITLE: &str = "Time per epoch";

pub fn section(analysis: &Analysis) -> Section {
    if let Some(why) = nothing(analysis) {
        return without(ID, TITLE, why);
    }
    let (factor, unit) = words::time_unit(analysis.cells.iter().filter_map(|c| c.get(Key::EpochTime)));
    let name = if unit == "s" { "seconds" } else { "milliseconds" };
    let caption = format!("{name} per epoch");
    let get = |c: &Cell| c.get(Key::EpochTime).cloned();
    let spec = BarSpec { unit: &format!(" {unit}"), ..BarSpec::of("epoch time", &caption, &get, factor) };
    let (panels, left_out) = bar_panels(analysis, &spec);
    if panels.is_empty() && analysis.cells.iter().filter(|c| !c.counted.is_empty()).all(Cell::serves) {
        return without(ID, TITLE, "Only groups with a serving member completed: see Latency.");
    }
    if panels.is_empty() {
        return without(
            ID,
            TITLE,
            "Only mixed groups completed: see Mixed workloads and All cells for each member's epoch time.",
        );
    }
    let text = format!(
        "Mean over members of their measured epochs.{} {}{} Each panel has its own scale; all start at zero.{left_out}",
        places_note(analysis),
        whiskers(analysis),
        indicative_note(analysis.cells.iter())
    );
    Section {
        id: ID,
        title: TITLE,
        finding: finding(analysis),
        blocks: vec![Block::Figure(figure(
            analysis,
            "epoch-time",
            "Time per epoch by mode and degree",
            panels,
            text,
            values(analysis, &caption, &get, factor),
        ))],
        ..Section::default()
    }
}

/// The mildest and the strongest slowdown of the groups.
fn finding(analysis: &Analysis) -> String {
    let slowdown = |c: &&Cell| c.get(Key::Slowdown).map_or(f64::NAN, |q| q.estimate);
    let mut groups: Vec<&Cell> = analysis.groups().filter(|c| c.record.is_uniform() && c.get(Key::Slowdown).is_some()).collect();
    // One alone on a slice is told where nobody shares.
    if groups.iter().any(|c| c.record.degree > 1) {
        groups.retain(|c| c.record.degree > 1);
    }
    groups.sort_by(|a, b| slowdown(a).total_cmp(&slowdown(b)));
    let text = |c: &Cell| c.get(Key::Slowdown).map_or_else(String::new, number::with_interval);
    match groups[..] {
        [] => "No group can be compared with a baseline.".into(),
        [only] => format!("An epoch of `{}` takes {} times as long as alone.", only.name(), text(only)),
        [first, .., last] => format!(
            "An epoch takes {} times as long as alone in `{}`, and {} times in `{}`.",
            text(first),
            first.name(),
            text(last),
            last.name()
        ),
    }
}
