//! What was published of policies, with its source, beside ours. Published numbers are never ours, and judge nothing.

use collo_analysis::campaign::Analysis;
use collo_analysis::trace::{Arm, TraceMatrix};
use collo_figures::document::{Block, Row, Table, TableCell, TableLayout};
use collo_guidelines::published::manager::{Manager, PolicyFigure, manager};
use collo_quantity::{Key, number};

use super::{TimeUnit, of_matrices, ratio_of_orders};
use crate::parts::absent::Content;

pub fn section(analysis: &Analysis) -> Content {
    let of = manager();
    let finding = format!(
        "Published, not measured by collo: {}; {}. Each number is of one run of one order of tasks, so that none has a spread.",
        of.device, of.conditions
    );
    of_matrices(analysis, finding, |matrix, _| {
        let table = table(analysis, matrix, of);
        let mut notes = vec![format!("Ours: {}, {}.", matrix.name(), number::count(matrix.orders.len(), "order"))];
        notes.extend(
            of.others.iter().map(|o| format!("Published, held against no policy: {} ({}; {}).", o.published, o.why, o.source)),
        );
        vec![Block::Table(table), Block::Folded("Remarks".into(), vec![Block::Notes(notes)])]
    })
}

fn table(analysis: &Analysis, matrix: &TraceMatrix, of: &Manager) -> Table {
    let ours = format!("ours: {}", matrix.name());
    let mut table = Table::with(&["published policy", "in our words", "quantity", "published", &ours, "source"]);
    table.look = TableLayout::Prose;
    for figure in &of.figures {
        let Some(key) = figure.key() else { continue };
        let is_ours = |arm: &&Arm| figure.is_of(arm) && of.is_beside(figure, matrix.tasks) && !arm.by_order.is_empty();
        let arm = matrix.arms.iter().find(is_ours);
        let cells = vec![
            TableCell::with_note(figure.name.clone(), format!("{}-trace, {} cards", figure.trace, of.cards)),
            TableCell::text(words(figure)),
            TableCell::text(key.label),
            TableCell { sort: figure.value.or(figure.ratio_to_exclusive), ..TableCell::text(figure.published.clone()) },
            TableCell::text(arm.and_then(|arm| value(matrix, arm, key)).unwrap_or_default()),
            TableCell::text(figure.source.clone()),
        ];
        table.rows.push(Row { id: format!("published-{}", figure.id), cells, ..Row::default() });
    }
    // What can be read beside ours comes first.
    table.rows.sort_by_key(|row| row.cells[4].text.is_empty());
    table.caption = "Published numbers beside ours, where the same policy was measured; other tasks, other cards, another scale: they are not compared".into();
    table.tags = super::trace_tags(analysis, matrix);
    table.tags.push("published".into());
    table
}

fn words(figure: &PolicyFigure) -> String {
    let estimate = if figure.estimate == "none" { String::new() } else { format!(" {}", figure.estimate) };
    format!("{}{estimate} {}", figure.policy, collo_figures::modes::mode_label(&figure.sharing))
}

/// Ours, with its interval: the value, and the ratio to `exclusive` if that was measured.
fn value(matrix: &TraceMatrix, arm: &Arm, key: Key) -> Option<String> {
    let q = arm.get(key)?;
    let text = match key {
        Key::Total => TimeUnit::of(matrix).text(q.estimate),
        Key::SiteEnergy => {
            let scale = matrix.scaled().map_or_else(String::new, |scale| format!(" (scale {scale})"));
            format!("{} MJ{scale}", number::three(q.estimate * 1e-6))
        }
        _ => format!("{} per run", number::factor(q.estimate)),
    };
    let ratio = arm.ratios.get(&key).filter(|_| matrix.reference().is_exclusive());
    let ratio = ratio.map(|r| format!("; {}× exclusive", ratio_of_orders(&r.ratio)));
    Some(format!("{text}{}", ratio.unwrap_or_default()))
}
