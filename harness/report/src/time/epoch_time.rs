//! Time per epoch by degree and mode.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_analysis::words;
use collo_figures::document::Section;
use collo_quantity::{Key, number};

use crate::parts::absent::{Content, numbers, of_file};
use crate::parts::bars::{BarFigure, Scale};

pub fn section(analysis: &Analysis) -> Content {
    numbers(analysis)?;
    let (factor, unit) = words::time_unit(analysis.cells.iter().filter_map(|c| c.get(Key::EpochTime)));
    let caption = if unit == "s" { "seconds per epoch" } else { "milliseconds per epoch" };
    let bars = BarFigure {
        id: "epoch-time",
        title: "Time per epoch by mode and degree",
        factor,
        unit: &format!(" {unit}"),
        caption,
        head: caption,
        meaning: "Mean over members of their measured epochs.",
        places: true,
        scale: Scale::Own(" Each panel has its own scale; all start at zero."),
        ..BarFigure::of(Key::EpochTime)
    };
    let only_serving = || analysis.cells.iter().filter(|c| c.counts()).all(Cell::serves);
    match bars.draw(analysis) {
        Some(figure) => Ok(Section { finding: finding(analysis), blocks: vec![figure], ..Section::default() }),
        None if only_serving() => Err("Only groups with a serving member completed: see Latency.".into()),
        None => Err(of_file(analysis, Key::EpochTime).unwrap_or_else(|| {
            "Only mixed groups completed: see Mixed workloads and All cells for each member's epoch time.".into()
        })),
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
    // Members of a mixed group have slowdowns of their own, and beside a server the group has none.
    let is_of_mixed =
        || analysis.groups().any(|c| !c.record.is_uniform() && c.members.iter().any(|m| m.get(Key::Slowdown).is_some()));
    match groups[..] {
        [] if is_of_mixed() => "No group of equal members was measured; the slowdowns of mixed ones are by member.".into(),
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
