//! The comparison of GPU models as a page: what changed in a sentence, a table and a figure; guidelines; the gain of each group.

use collo_figures::document::{Badge, Block, Document, Fact, FactLine, Row, Section, Table, TableCell, TableLayout};
use collo_quantity::number;
use collo_quantity::stats::Quantity;

use super::best::Best;
use super::{Generations, GuidelineAnswer, GuidelineRow, ModelColumn, brief, summary};

/// Maximum rows of groups.
const ROWS: usize = 500;

pub fn document(found: &Generations) -> Document {
    let devices: Vec<&str> = found.cards.iter().map(|c| c.head.device.as_str()).collect();
    let fact = |c: &ModelColumn| {
        let sms = c.sms.as_ref().map_or(String::new(), |n| format!("{n} SMs, "));
        let lines = vec![FactLine::Text(format!("{sms}{}", c.head.experiment)), FactLine::Code(c.head.campaign.clone())];
        Fact { name: c.head.device.clone(), lines }
    };
    let common = found.common.trim_start();
    let mut document = Document {
        name: "collo compare: generations".into(),
        title: format!("What changed: {}", devices.join(" → ")),
        subtitle: if common.is_empty() { String::new() } else { format!("Every cell with {common}") },
        facts: found.cards.iter().map(fact).collect(),
        files: vec![("Markdown", "generations.md"), ("JSON", "generations.json")],
        warnings: found.warnings.clone(),
        sections: vec![answer(found), guidelines(found), shares(found)],
        ..Document::default()
    };
    document.shorten(&found.common);
    document.simulated(found.simulated())
}

/// The summary, the table of best ways, and the figure.
fn answer(found: &Generations) -> Section {
    let mut sentences = summary::sentences(found).into_iter();
    let finding = sentences.next().unwrap_or_default();
    let mut blocks: Vec<Block> = sentences.map(Block::Text).collect();
    blocks.extend(best(found).if_any());
    if !found.best.is_empty() {
        let cost = if found.has_prices { " Cost: from the price of an hour, in its currency." } else { "" };
        let mixed = if found.best.iter().any(|row| row.members.len() > 1) {
            " Items per second of a mix are those of each member, as items of different workloads have no sum; its gain compares the \
             whole mix with running its members in turn."
        } else {
            ""
        };
        let coarse = if found.has_few_energy_steps() {
            " ?: of too few steps of the energy counter to be sound; longer epochs have more."
        } else {
            ""
        };
        blocks.push(Block::Remark(format!(
            "The best way is the decision of each report, among what was measured there. Intervals are of the repetitions of one campaign \
             on each GPU: what changes on another day or another machine is not in them.{mixed}{cost}{coarse}"
        )));
    }
    blocks.extend(found.throughput.figure(found.all_simulated(), found.tags()).map(Block::Figure));
    Section { id: "summary", title: "Best way to share", finding, blocks, ..Section::default() }
}

fn best(found: &Generations) -> Table {
    let mut heads = vec!["workload", "GPU", "best way", "#items per second", "#÷ first GPU", "#joules per item", "#gain"];
    if found.has_prices {
        heads.push("#cost per million items");
    }
    let mut table = Table::with(&heads).looking(TableLayout::Prose);
    table.caption = "What to run on each GPU".into();
    table.tags = found.tags();
    for row in &found.best {
        for (at, (card, on)) in found.cards.iter().zip(&row.on).enumerate() {
            let subject = TableCell::text(&row.subject);
            let device = TableCell::text(card.name());
            let mut cells = vec![subject, device];
            match on {
                None => cells.push(TableCell::text("not in this report")),
                Some(best) => cells.extend(fields(best, at)),
            }
            if found.has_prices {
                cells.resize_with(heads.len() - 1, TableCell::default);
                cells.push(value(on.as_ref().and_then(|best| best.cost_per_million_items.as_ref())));
            }
            table.rows.push(Row { begins: at == 0, cells, ..Row::default() });
        }
    }
    table
}

fn fields(best: &Best, at: usize) -> [TableCell; 5] {
    let reason = best.reason.clone().unwrap_or_default();
    let ratio = match &best.no_ratio {
        Some(why) if at > 0 => TableCell::with_note(number::ABSENT, why),
        _ if at == 0 && best.items_per_s.is_some() => TableCell::text("1"),
        _ => value(best.ratio.as_ref()),
    };
    [
        TableCell { mode: best.sharing.clone(), ..TableCell::with_note(&best.way, reason) },
        if best.members.is_empty() { value(best.items_per_s.as_ref()) } else { TableCell::text(brief::members(best)) },
        ratio,
        TableCell::text(brief::energy(best)),
        value(best.gain.as_ref()),
    ]
}

fn value(q: Option<&Quantity>) -> TableCell {
    q.map_or_else(|| TableCell::text(number::ABSENT), |q| TableCell::number(number::with_interval(q), q.estimate))
}

/// A table with a column for each GPU model.
fn by_model(found: &Generations, first: &str) -> Table {
    let heads: Vec<&str> = [first].into_iter().chain(found.cards.iter().map(|c| c.head.device.as_str())).collect();
    Table::with(&heads).looking(TableLayout::Prose)
}

fn guidelines(found: &Generations) -> Section {
    let mut table = by_model(found, "guideline");
    for row in &found.guidelines {
        let changed = if row.changed { "changed" } else { "" };
        // Without a statement in common the name of the rule.
        let rule = row.common_statement().map_or_else(|| row.id.replace('-', " "), |statement| statement.replace('`', ""));
        let mut cells = vec![TableCell::with_note(rule, changed)];
        cells.extend(row.on.iter().map(|on| on.as_ref().map_or_else(TableCell::default, |answer| field(row, answer))));
        table.rows.push(Row { marked: row.changed, cells, ..Row::default() });
    }
    let none = if found.guidelines.is_empty() { "None of these reports has a guideline." } else { "" };
    Section {
        id: "guidelines",
        title: "Guidelines",
        finding: none.into(),
        blocks: table.if_any().into_iter().collect(),
        ..Section::default()
    }
}

/// The answer of one GPU model: its statement unless all have the same one, which stands once, and its finding.
fn field(row: &GuidelineRow, GuidelineAnswer { holds, statement, finding }: &GuidelineAnswer) -> TableCell {
    let statement = if row.common_statement().is_some() { "" } else { statement };
    let cell = TableCell::with_note(statement.replace('`', ""), finding.replace('`', ""));
    TableCell { chip: Some(Badge::from(*holds)), ..cell }
}

fn shares(found: &Generations) -> Section {
    let mut table = by_model(found, "cell");
    let shown = &found.cells[..found.cells.len().min(ROWS)];
    for row in shown {
        let mut cells = vec![TableCell::text(&row.label)];
        cells.extend(row.on.iter().map(|on| match on {
            None => TableCell::default(),
            Some(share) => {
                let own = (share.label != row.label).then(|| share.label.clone());
                let note: Vec<String> = own.into_iter().chain(share.sms.clone()).collect();
                TableCell::with_note(share.to_text(), note.join(", "))
            }
        }));
        table.row(cells);
    }
    let left_out = found.cells.len() - shown.len();
    let none = if shown.is_empty() { " No group is in two of these reports." } else { "" };
    let mut blocks: Vec<Block> = table.if_any().into_iter().collect();
    if left_out > 0 {
        blocks.push(Block::Remark(format!("{left_out} more, which differ least, are in generations.json.")));
    }
    let finding = format!("{}.{none}", collo_analysis::words::capital(&found.note()));
    Section { id: "cells-by-share", title: "Cells by share of the GPU", finding, blocks, ..Section::default() }
}
