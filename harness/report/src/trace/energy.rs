//! Energy of all cards over the total, idle ones included.

use collo_analysis::campaign::Analysis;
use collo_analysis::trace::TraceMatrix;
use collo_analysis::words;
use collo_figures::chart::{MarkRow, MarkRows, RowMark, RowScale};
use collo_figures::document::{Block, Table, TableCell};
use collo_figures::draw::Panel;
use collo_quantity::{Key, number};

use super::{drawn_as, figure, nothing, of_matrices, ratio_text};
use crate::parts::absent::Content;
use crate::report::Report;

pub fn section(report: &Report) -> Content {
    let analysis = &report.analysis;
    let has = analysis.traces.matrices.iter().flat_map(|m| &m.arms).any(|a| a.get(Key::SiteEnergy).is_some());
    if nothing(analysis).is_none() && !has {
        return Err(format!("{}, so that energy is absent, not zero.", words::capital(Key::SiteEnergy.absent)));
    }
    let finding = report.guideline("trace-energy").map_or_else(String::new, |g| g.finding.clone());
    of_matrices(analysis, finding, |matrix, suffix| drawn(analysis, matrix, suffix).into_iter().collect())
}

fn drawn(analysis: &Analysis, matrix: &TraceMatrix, suffix: &str) -> Option<Block> {
    let (factor, unit) = words::energy_unit(matrix.arms.iter().filter_map(|a| a.get(Key::SiteEnergy)));
    let scale = matrix.scaled().map_or_else(String::new, |scale| format!(", scale {scale}"));
    let mut rows: Vec<MarkRow> = Vec::new();
    let mut values = Table::with(&["policy", &format!("#energy {unit}{scale}"), "#÷ reference", "#orders"]);
    for arm in &matrix.arms {
        let Some(q) = arm.get(Key::SiteEnergy) else { continue };
        let ratio = ratio_text(arm, Key::SiteEnergy);
        let bar = RowMark {
            sharing: drawn_as(arm).into(),
            value: Some(q.estimate * factor),
            interval: q.low.zip(q.high).map(|(l, h)| (l * factor, h * factor)),
            failure: None,
            indicative: !arm.is_valid(),
            title: format!("{}\n{} {unit}{scale}\n{ratio}", arm.name(), number::three(q.estimate * factor)),
        };
        values.row(vec![
            TableCell::text(arm.name()),
            TableCell::number(number::three(q.estimate * factor), q.estimate * factor),
            TableCell::text(ratio),
            TableCell::text(q.n.to_string()),
        ]);
        MarkRow::add(&mut rows, arm.short(), bar);
    }
    if rows.is_empty() {
        return None;
    }
    let caption = format!("energy of all cards, {unit}{scale}");
    let panel = Panel {
        title: "Energy".into(),
        subtitle: format!("{}, idle ones included", number::count(matrix.cards as usize, "card")),
        label: "energy of all cards over the total of each policy".into(),
        drawing: MarkRows { caption: &caption, rows: &rows, scale: RowScale::Bars, threshold: None }.draw(),
    };
    let text = "Growth of the counters of all cards from the first arrival to the last end, geometric mean over orders; whiskers: 95 % interval over orders, whose work \
                differs: policies are compared by the ratios within orders.";
    figure(analysis, matrix, format!("trace-energy{suffix}"), ("Energy", text.into()), vec![panel], values, true)
}
