//! A comparison for a terminal: the most important rows, cells of only one side, differences, and what would decide.

use collo_figures::document::{Align, Block, Column, Table};
use collo_figures::draw::cut;
use collo_quantity::number::{self, ABSENT};

use super::{ComparedCell, Comparison, trace_page, words};
use crate::side::lines::{ROWS, more};

/// Limits for a terminal: names of a list, notes, and characters of a value.
const NAMES: usize = 8;
const VALUE: usize = 34;

/// The whole comparison.
pub fn blocks(c: &Comparison) -> Vec<Block> {
    let mut lines = vec![words::title(&c.left, &c.right)];
    lines.extend(c.warnings.iter().map(|w| format!("warning: {w}")));
    lines.extend(words::across(c));
    lines.extend(words::together(c));
    let mut blocks = vec![Block::Notes(lines)];
    if !c.rows.is_empty() {
        blocks.push(Block::Table(table(&c.rows[..c.rows.len().min(ROWS)])));
    }
    blocks.extend(trace_page::blocks(c));
    blocks.extend(more(c.rows.len(), ROWS, "").map(Block::Text));
    let noted: Vec<&ComparedCell> = c.rows.iter().filter(|r| !r.notes.is_empty()).collect();
    let mut lines: Vec<String> = noted.iter().take(NAMES).map(|r| format!("`{}`: {}", r.label, r.notes.join("; "))).collect();
    if noted.len() > NAMES {
        lines.push(format!("… and {} more notes", noted.len() - NAMES));
    }
    for (name, list) in [("left", &c.only_left), ("right", &c.only_right)].into_iter().filter(|(_, list)| !list.is_empty()) {
        let names: Vec<String> = list.iter().take(NAMES).map(words::only).collect();
        let more = list.len().saturating_sub(NAMES);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        lines.push(format!("only {name}: {}{more}", names.join(", ")));
    }
    blocks.push(Block::Notes(lines));
    if !c.environment.different.is_empty() {
        blocks.push(Block::Table(words::environment(c, |text| cut(text, VALUE))));
    }
    let mut lines: Vec<String> = words::alike(c).map(|names| format!("identical: {names}")).into_iter().collect();
    for group in &c.groups {
        let mean = group.mean_ratio.map_or(String::new(), |m| {
            let of = number::count(group.judged, "cell");
            format!("; geometric mean ratio of {of} {m:.3}, without an interval as they are not independent")
        });
        lines.push(format!("{}: {}{mean}", group.name, words::counted(&group.counts)));
    }
    if !c.rows.is_empty() {
        lines.push(format!("{}; {}", words::counted(&c.counts), words::rests_on(c)));
        lines.extend(words::includes(c));
    }
    lines.extend(trace_page::counted(c));
    blocks.push(Block::Notes(lines));
    blocks.extend(c.decide.iter().map(|command| Block::Command("Decide", command.clone())));
    blocks
}

fn table(rows: &[ComparedCell]) -> Table {
    let (words, unit, factor) = words::unit(rows);
    let what = format!("{words} {unit}").trim().to_string();
    let column = |name: String, align: Align, rank: usize| Column { name, align, rank, ..Column::default() };
    // Where a common move is taken out, what is judged stands beside what was measured.
    let own = rows.iter().any(|r| r.own_ratio.is_some());
    // Labels and verdicts stay; p goes first, then both sides, then the ratio.
    let mut columns = vec![
        column("cell".into(), Align::Left, 0),
        column(format!("{what} left"), Align::Interval, 2),
        column(format!("{what} right"), Align::Interval, 2),
        column("ratio".into(), Align::Interval, 1),
        column("p".into(), Align::Right, 3),
        column("verdict".into(), Align::Left, 0),
    ];
    if own {
        columns.insert(4, column("own".into(), Align::Interval, 1));
    }
    let mut table = Table { columns, ..Table::default() };
    let absent = || ABSENT.to_string();
    for r in rows {
        let side = |q: &Option<collo_quantity::stats::Quantity>| q.as_ref().map_or_else(absent, |q| number::scaled(q, factor));
        let mut texts = vec![
            r.other_label().map_or_else(|| r.label.clone(), |left| format!("{left} ↔ {}", r.label)),
            side(&r.left),
            side(&r.right),
            r.ratio.as_ref().map_or_else(absent, number::with_interval),
            r.p_adjusted.map_or_else(absent, words::p),
            r.finding.text(),
        ];
        if own {
            texts.insert(4, r.own_ratio.as_ref().map_or_else(absent, number::with_interval));
        }
        table.texts(texts);
    }
    table
}
