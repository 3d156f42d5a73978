//! Policies of two reports as tables: one for each trace, on the page and in a terminal.

use collo_analysis::words::energy_unit;
use collo_figures::document::{Align, Block, Column, Section, Table, TableCell, TableLayout, Tone};
use collo_quantity::Key;
use collo_quantity::number::{self, ABSENT};
use collo_quantity::stats::Quantity;
use collo_quantity::unit::JOULE;

use super::{ComparedPolicy, Comparison, words};
use crate::ratio::Finding;

/// The section of a page; none if both sides have no policy in common.
pub fn section(c: &Comparison) -> Option<Section> {
    let mut blocks: Vec<Block> = tables(c).into_iter().map(|(_, table)| Block::Table(table)).collect();
    if blocks.is_empty() {
        return None;
    }
    blocks.push(Block::Remark(
        "A line's ratio is right ÷ left within the orders of the trace that both sides have, and its interval that of these orders; \
         p is corrected for all lines."
            .into(),
    ));
    let finding = format!("{}.", words::counted(&c.counts_of_policies()));
    Some(Section { id: "policies", title: "Policies of traces", finding, blocks, ..Section::default() })
}

/// The same for a terminal, which prints no caption.
pub fn blocks(c: &Comparison) -> impl Iterator<Item = Block> {
    tables(c).into_iter().flat_map(|(name, table)| [Block::Text(name), Block::Table(table)])
}

/// A table for each trace, by its name.
fn tables(c: &Comparison) -> Vec<(String, Table)> {
    let mut names: Vec<&str> = c.policies.iter().map(|line| line.trace.as_str()).collect();
    names.dedup();
    let simulated = || if c.simulated() { vec!["simulated".to_string()] } else { Vec::new() };
    let table = |name: &str| {
        let lines: Vec<&ComparedPolicy> = c.policies.iter().filter(|line| line.trace == name).collect();
        (name.to_string(), Table { caption: format!("{name}, right ÷ left within orders"), tags: simulated(), ..table(&lines) })
    };
    names.into_iter().map(table).collect()
}

/// `3 better, 1 can't tell; 95 % intervals over orders, p by Holm over 4 lines`.
pub fn counted(c: &Comparison) -> Option<String> {
    let judged = c.policies.iter().filter(|line| line.p.is_some()).count();
    let counts = words::counted(&c.counts_of_policies());
    let judged = number::count(judged, "line");
    (!c.policies.is_empty()).then(|| format!("policies: {counts}; 95 % intervals over orders, p by Holm over {judged}"))
}

fn table(lines: &[&ComparedPolicy]) -> Table {
    let column = |name: &str, align: Align, rank: usize| Column { name: name.into(), align, rank, ..Column::default() };
    let columns = vec![
        column("policy", Align::Left, 0),
        column("quantity", Align::Left, 0),
        column("left", Align::Right, 2),
        column("right", Align::Right, 2),
        column("ratio", Align::Interval, 0),
        column("orders", Align::Right, 4),
        column("p", Align::Right, 3),
        column("verdict", Align::Left, 0),
    ];
    let mut table = Table { columns, look: TableLayout::Narrow, ..Table::default() };
    let mut before = "";
    for line in lines {
        let (factor, symbol) = unit(line.quantity, lines);
        let side = |q: &Option<Quantity>| q.as_ref().map_or_else(|| ABSENT.into(), |q| number::three(q.estimate * factor));
        let tone = match line.finding {
            Finding::Better => Tone::Good,
            Finding::Worse => Tone::Bad,
            _ => Tone::Plain,
        };
        let policy = if line.policy == before { "" } else { line.policy.as_str() };
        table.row(vec![
            TableCell::text(policy),
            TableCell::text(format!("{} {symbol}", line.quantity.head()).trim()),
            TableCell::text(side(&line.left)),
            TableCell::text(side(&line.right)),
            TableCell::text(line.ratio.as_ref().map_or_else(|| ABSENT.into(), ratio)),
            TableCell::text(line.orders.to_string()),
            TableCell::text(line.p_adjusted.map_or_else(|| ABSENT.into(), words::p)),
            TableCell { tone, ..TableCell::text(line.finding.text()) },
        ]);
        before = &line.policy;
    }
    table
}

/// Of one order, which is no run, the estimate alone.
fn ratio(q: &Quantity) -> String {
    if q.low.is_some() { number::with_interval(q) } else { number::estimate(q) }
}

/// In which unit a quantity is printed: energies as large as they are.
fn unit(key: Key, lines: &[&ComparedPolicy]) -> (f64, &'static str) {
    if key.unit != JOULE {
        return (key.unit.factor, key.unit.symbol);
    }
    let of_key = lines.iter().filter(|line| line.quantity == key);
    energy_unit(of_key.flat_map(|line| [&line.left, &line.right]).flatten())
}
