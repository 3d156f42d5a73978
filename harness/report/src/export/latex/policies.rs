//! The policies of each trace as a table, a row each, those with an interval with it.

use collo_analysis::campaign::Analysis;
use collo_analysis::trace::{Arm, TraceMatrix};
use collo_analysis::words;
use collo_figures::draw::latex::escape;
use collo_quantity::stats::Quantity;
use collo_quantity::unit::JOULE;
use collo_quantity::{Key, number};

use super::text::{name, value};
use crate::export::caveats;

type Get = dyn Fn(&Arm) -> Option<&Quantity>;

/// A column: its head, its values and the factor to its unit.
struct PolicyColumn {
    head: String,
    of: Box<Get>,
    factor: f64,
}

/// A table for each trace; nothing without one.
pub fn tables(analysis: &Analysis) -> String {
    let matrices = analysis.traces.matrices.iter().enumerate();
    matrices.map(|(i, matrix)| table(analysis, matrix, if i == 0 { String::new() } else { format!("-{}", i + 1) })).collect()
}

fn columns(matrix: &TraceMatrix) -> Vec<PolicyColumn> {
    let reference = matrix.reference().picks();
    let keys = [Key::Total, Key::WaitMean, Key::ExecutionMean, Key::CompletionMean, Key::StretchMean, Key::SiteEnergy];
    let mut columns = Vec::new();
    for key in keys {
        let (factor, symbol) = match key.unit == JOULE {
            true => words::energy_unit(matrix.arms.iter().filter_map(|arm| arm.get(key))),
            false => (key.unit.factor, key.unit.symbol),
        };
        let head = if symbol.is_empty() { key.head().to_string() } else { format!("{} ({symbol})", key.head()) };
        columns.push(PolicyColumn { head, of: Box::new(move |arm| arm.get(key)), factor });
        if [Key::Total, Key::SiteEnergy].contains(&key) {
            // In a part of a divided table it may be apart from what it is the ratio of.
            let head = format!("{} ÷ {reference}", key.head());
            columns.push(PolicyColumn { head, of: Box::new(move |arm| arm.ratios.get(&key).map(|r| &r.ratio)), factor: 1.0 });
        }
    }
    columns.push(PolicyColumn {
        head: Key::OutOfMemory.head().into(),
        of: Box::new(|arm| arm.get(Key::OutOfMemory)),
        factor: 1.0,
    });
    columns.retain(|column| matrix.arms.iter().any(|arm| (column.of)(arm).is_some()));
    columns
}

fn table(analysis: &Analysis, matrix: &TraceMatrix, suffix: String) -> String {
    let c = &analysis.campaign;
    let columns = columns(matrix);
    let mut said = vec![format!("{} of {} on {}, campaign {}", matrix.name(), c.experiment, c.device.text(), c.id)];
    said.extend(caveats::sentences(analysis));
    let orders = number::count(matrix.orders.len(), "order");
    said.push(match &matrix.method {
        Some(method) => format!("means over {orders}, ratios within them; ±: 95 % interval, {method}"),
        None => format!("{orders}: no interval"),
    });
    let is_marked = |arm: &Arm| !arm.by_order.is_empty() && !arm.is_valid();
    let mark = "\\textsuperscript{i}";
    let meaning = match matrix.arms.iter().any(is_marked) {
        true => format!("; {mark} indicative: shown, supports no conclusion"),
        false => String::new(),
    };
    let mut rows = vec![("policy".to_string(), columns.iter().map(|column| escape(&column.head)).collect())];
    for arm in &matrix.arms {
        let mark = if is_marked(arm) { mark } else { "" };
        let field = |column: &PolicyColumn| match (column.of)(arm) {
            None => "--".into(),
            Some(q) if q.low.is_some() => value(q, column.factor),
            // Here one is an order, not a run.
            Some(q) => number::three(q.estimate * column.factor),
        };
        rows.push((escape(&arm.name()) + mark, columns.iter().map(field).collect()));
    }
    super::floats(&format!("{}{meaning}", escape(&said.join("; "))), &format!("{}-policies{suffix}", name(&c.experiment)), rows)
}
