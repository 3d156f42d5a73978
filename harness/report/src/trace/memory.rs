//! Memory and recovery: who ran out of memory, what it cost, and how much memory was in use.

use collo_analysis::campaign::Analysis;
use collo_analysis::trace::{Arm, TraceMatrix};
use collo_figures::document::{Block, Table, TableColumn, TableLayout};
use collo_quantity::stats::Quantity;
use collo_quantity::{Key, number};

use super::{TimeUnit, arm_cell, arm_number, of_matrices, trace_tags};
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
    let factor = |q: &Quantity| number::factor(q.estimate);
    let time = |q: &Quantity| unit.number(q.estimate);
    let columns: &[TableColumn<&Arm>] = &[
        ("policy", &|arm| arm_cell(arm)),
        ("#out of memory", &|arm| arm_number(arm, Key::OutOfMemory, &factor)),
        ("#newcomers", &|arm| arm_number(arm, Key::OutOfMemoryNewcomers, &factor)),
        ("#residents", &|arm| arm_number(arm, Key::OutOfMemoryResidents, &factor)),
        ("#recoveries", &|arm| arm_number(arm, Key::Recoveries, &factor)),
        (&format!("#{}", unit.head("recovery wait")), &|arm| arm_number(arm, Key::RecoveryWait, &time)),
        (&format!("#{}", unit.head("lost")), &|arm| arm_number(arm, Key::Lost, &time)),
        (&format!("#{}", unit.head("blocked")), &|arm| arm_number(arm, Key::Blocked, &time)),
        ("#memory in use", &|arm| arm_number(arm, Key::SiteMemory, &|q| number::percent(q.estimate))),
        ("#age of readings s, p95", &|arm| arm_number(arm, Key::ReadingAge, &|q| number::three(q.estimate))),
    ];
    let arms = matrix.arms.iter().filter(|a| !a.by_order.is_empty());
    let mut table = Table::of(columns, arms).looking(TableLayout::Narrow);
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
