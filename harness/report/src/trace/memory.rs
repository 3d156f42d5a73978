//! Memory and recovery: who ran out of memory, what it cost, and how much memory was in use.

use collo_analysis::campaign::Analysis;
use collo_analysis::trace::{Arm, TraceMatrix};
use collo_figures::document::{Block, Table, TableCell, TableLayout};
use collo_quantity::Key;
use collo_quantity::number;

use super::{TimeUnit, arm_cell, of_matrices, trace_tags};
use crate::parts::absent::Content;
use crate::report::Report;

pub fn section(report: &Report) -> Content {
    let analysis = &report.analysis;
    of_matrices(analysis, finding(analysis), |matrix, _| {
        let mut blocks = vec![Block::Table(table(analysis, matrix))];
        let told = ["trace-conditions", "trace-estimates", "trace-cap"].into_iter().filter_map(|id| report.guideline(id));
        let told: Vec<String> = told.map(|g| format!("{} {}", g.statement, g.finding)).collect();
        if !told.is_empty() {
            blocks.push(Block::Notes(told));
        }
        blocks
    })
}

fn table(analysis: &Analysis, matrix: &TraceMatrix) -> Table {
    let unit = TimeUnit::of(matrix);
    let heads = [
        "policy".to_string(),
        "#out of memory".into(),
        "#newcomers".into(),
        "#residents".into(),
        "#recoveries".into(),
        format!("#{}", unit.head("recovery wait")),
        format!("#{}", unit.head("lost")),
        format!("#{}", unit.head("blocked")),
        "#memory in use".into(),
        "#age of readings s, p95".into(),
    ];
    let mut table = Table::with(&heads.each_ref().map(String::as_str)).looking(TableLayout::Narrow);
    let count = |arm: &Arm, key: Key| {
        arm.get(key).map_or_else(TableCell::default, |q| TableCell::number(number::factor(q.estimate), q.estimate))
    };
    let time = |arm: &Arm, key: Key| {
        arm.get(key).map_or_else(TableCell::default, |q| TableCell::number(unit.number(q.estimate), q.estimate))
    };
    for arm in matrix.arms.iter().filter(|a| !a.by_order.is_empty()) {
        let memory = arm
            .get(Key::SiteMemory)
            .map_or_else(TableCell::default, |q| TableCell::number(number::percent(q.estimate), q.estimate));
        let age = arm
            .get(Key::ReadingAge)
            .map_or_else(TableCell::default, |q| TableCell::number(number::three(q.estimate), q.estimate));
        table.row(vec![
            arm_cell(arm),
            count(arm, Key::OutOfMemory),
            count(arm, Key::OutOfMemoryNewcomers),
            count(arm, Key::OutOfMemoryResidents),
            count(arm, Key::Recoveries),
            time(arm, Key::RecoveryWait),
            time(arm, Key::Lost),
            time(arm, Key::Blocked),
            memory,
            age,
        ]);
    }
    table.caption = format!(
        "Means over orders, per run of the trace, {}. Lost: time of attempts that did not complete. Blocked: the first of the queue waited \
         and a later task would have fit. Memory in use: of all cards, weighted by time",
        unit.caption()
    );
    table.tags = trace_tags(analysis, matrix);
    table
}

fn finding(analysis: &Analysis) -> String {
    let of = |matrix: &TraceMatrix| {
        let each = || matrix.arms.iter().filter_map(|a| Some((a, a.get(Key::OutOfMemory)?.estimate)));
        let most = each().max_by(|a, b| a.1.total_cmp(&b.1))?;
        if most.1 == 0.0 {
            return Some("No attempt ran out of memory.".to_string());
        }
        let none = each().filter(|(_, n)| *n == 0.0).count();
        let all = each().count();
        Some(format!(
            "Out of memory most often: `{}`, {} per run on average; under {none} of {all} policies never.",
            most.0.name(),
            number::factor(most.1)
        ))
    };
    analysis.traces.matrices.iter().filter_map(of).collect::<Vec<_>>().join(" ")
}
