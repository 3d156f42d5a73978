//! Guidelines as the page prints them: those of the first screen, and the others folded under a title.

use collo_analysis::campaign::Analysis;
use collo_figures::document::{Advice, Block, Table, TableCell};
use collo_guidelines::rule::Guideline;
use collo_guidelines::rule::evidence::Evidence;
use collo_guidelines::verdict::Holds;
use collo_quantity::number;

use crate::parts::anchor::cell_id;

/// Rows of evidence on the page; all of them are in the JSON.
const SHOWN: usize = 40;

/// Guidelines that are not folded.
const FIRST: usize = 3;

/// The first guidelines that are decided, as sentences.
pub fn statements(guidelines: &[Guideline]) -> Vec<String> {
    guidelines.iter().filter(|g| g.summary && g.holds != Holds::Open).take(FIRST).map(|g| g.statement.clone()).collect()
}

/// The blocks of all guidelines, of which the first are not folded; one that contradicts what was published always is shown.
pub fn blocks(analysis: &Analysis, guidelines: &[Guideline]) -> Vec<Block> {
    let is_first = |(place, g): &(usize, &Guideline)| g.summary && (*place < FIRST || g.is_contrary());
    let (first, more): (Vec<_>, Vec<_>) = guidelines.iter().enumerate().partition(is_first);
    let [first, more] = [first, more].map(|of: Vec<(usize, &Guideline)>| of.into_iter().map(|(_, g)| g).collect::<Vec<_>>());
    let of = |guidelines: &[&Guideline]| Block::Advice(guidelines.iter().map(|g| advice(analysis, g)).collect());
    let mut blocks: Vec<Block> = (!first.is_empty()).then(|| of(&first)).into_iter().collect();
    if !more.is_empty() {
        blocks.push(Block::Folded(number::count(more.len(), "more guideline"), vec![of(&more)]));
    }
    blocks
}

fn advice(analysis: &Analysis, g: &Guideline) -> Advice {
    let mut evidence = Vec::new();
    if g.evidence.is_empty() {
        evidence.push(Block::Remark("No valid cell supports this yet.".into()));
    } else {
        evidence.push(Block::Table(table(analysis, &g.evidence)));
    }
    let is_widened = |key: &Evidence| {
        let same = |e: &&Evidence| e.name() == key.name() && e.quantity == key.quantity;
        g.evidence.iter().find(same).is_some_and(|e| e.value.low != key.value.low)
    };
    if g.key.as_ref().is_some_and(is_widened) {
        evidence.push(Block::Remark(
            "The interval above is wider than in this table: it allows for the number being picked from these for its value."
                .into(),
        ));
    }
    if g.evidence.len() > SHOWN {
        evidence.push(Block::Remark(format!("{} more in report.json.", g.evidence.len() - SHOWN)));
    }
    evidence.push(Block::Remark(format!("Tested: {}.", g.tested)));
    evidence.extend(
        g.published
            .as_ref()
            .map(|p| Block::Remark(format!("Published: “{}” ({}). Not measured by collo.", p.statement, p.source))),
    );
    evidence.extend(g.command.clone().map(|c| Block::Command("To decide", c)));
    Advice {
        id: g.id.clone(),
        holds: g.holds.answer(),
        agrees: g.agrees.into(),
        statement: g.statement.clone(),
        finding: g.finding.clone(),
        key: g.key.as_ref().map(|k| [k.to_text(), k.bounds(), k.name()]),
        published: g.published.as_ref().map_or("", |p| p.short).into(),
        scope: g.scope.as_ref().and_then(|scope| scope.text.clone()).unwrap_or_default(),
        command: g.command.clone(),
        evidence,
        terms: Vec::new(),
    }
}

fn table(analysis: &Analysis, evidence: &[Evidence]) -> Table {
    let mut table = Table::with(&["cell", "quantity", "#value", "95 % interval", "#runs"]);
    for e in evidence.iter().take(SHOWN) {
        table.row(vec![
            TableCell { link: cell_id(analysis, &e.cell), ..TableCell::text(e.name()) },
            TableCell::text(e.quantity.label),
            TableCell::text(number::estimate(&e.value)),
            TableCell::text(number::bounds(&e.value)),
            TableCell::text(e.value.n.to_string()),
        ]);
    }
    table
}
