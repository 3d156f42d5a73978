//! The comparison of GPU models in a terminal: what changed in a sentence, the best ways, guidelines, the gain of each group.

use collo_figures::document::{Badge, Block, Column, Table, shorten};
use collo_quantity::number;
use collo_quantity::stats::Quantity;

use super::best::{Best, MemberItems};
use super::{Generations, GuidelineAnswer, GuidelineRow, summary};
use crate::side::lines::more;

/// Rows of groups.
const ROWS: usize = 40;

pub fn blocks(found: &Generations) -> Vec<Block> {
    let mut blocks: Vec<Block> = vec![Block::Notes(summary::sentences(found).iter().map(|s| s.replace('`', "")).collect())];
    let mut heads: Vec<String> = Vec::new();
    for card in &found.cards {
        let sms = card.sms.as_ref().map_or(String::new(), |n| format!(", {n} SMs"));
        heads.push(format!("{}{sms}: {} {}", card.name(), card.head.experiment, card.head.campaign));
    }
    heads.extend(found.warnings.iter().map(|w| format!("warning: {w}")));
    blocks.push(Block::Notes(heads));
    blocks.extend(best(found).if_any());
    let advice = found.guidelines.iter().filter(|row| !row.is_open()).flat_map(|row| guideline(found, row));
    let open: Vec<&str> = found.guidelines.iter().filter(|row| row.is_open()).map(|row| row.id.as_str()).collect();
    let open = (!open.is_empty()).then(|| format!("open on every GPU: {}", open.join(", ")));
    blocks.push(Block::Notes(advice.chain(open).collect()));
    blocks.extend(shares(found).if_any());
    let mut last: Vec<String> = more(found.cells.len(), ROWS, " cells").into_iter().collect();
    last.push(found.note());
    last.extend(found.has_few_energy_steps().then(|| "?: of too few steps of the energy counter to be sound".to_string()));
    blocks.push(Block::Notes(last));
    shorten(&mut blocks, &found.common);
    blocks
}

/// A row for each workload and GPU.
fn best(found: &Generations) -> Table {
    let gpu = if found.all_simulated() { "simulated GPU" } else { "GPU" };
    let mut table = Table::with(&["workload", gpu, "best way", "#items/s", "#÷ first", "#J/item"]);
    table.columns[5].rank = 2;
    if found.has_prices {
        table.columns.push(Column { rank: 1, ..Column::from("#cost/1e6") });
    }
    for row in &found.best {
        for (at, (card, on)) in found.cards.iter().zip(&row.on).enumerate() {
            let subject = if at == 0 { row.subject.clone() } else { String::new() };
            let name = if found.all_simulated() { card.name().replacen("simulated ", "", 1) } else { card.name() };
            let mut texts = vec![subject, name];
            match on {
                None => texts.push("not in this report".into()),
                Some(best) => {
                    let items = if best.members.is_empty() { estimate(best.items_per_s.as_ref()) } else { members(best) };
                    texts.extend([best.way.clone(), items, ratio(best, at), energy(best)]);
                    if found.has_prices {
                        texts.push(estimate(best.cost_per_million_items.as_ref()));
                    }
                }
            }
            table.texts(texts);
        }
    }
    table
}

fn estimate(q: Option<&Quantity>) -> String {
    q.map_or_else(|| number::ABSENT.into(), number::estimate)
}

/// The items per second of each member of a mix: `small 1200 + large 31.5`.
pub fn members(best: &Best) -> String {
    let of = |member: &MemberItems| format!("{} {}", member.workload, estimate(member.items_per_s.as_ref()));
    best.members.iter().map(of).collect::<Vec<_>>().join(" + ")
}

/// A ratio to the first GPU, which has none itself.
fn ratio(best: &Best, at: usize) -> String {
    let ratio = best.ratio.as_ref().map_or_else(|| number::ABSENT.into(), number::with_interval);
    if at == 0 { String::new() } else { ratio }
}

/// Joules per item; with a question mark where they rest on too few steps of the counter.
pub fn energy(best: &Best) -> String {
    let sign = if best.few_energy_steps { " ?" } else { "" };
    best.energy_j_per_item.as_ref().map_or_else(|| number::ABSENT.into(), |q| format!("{}{sign}", number::estimate(q)))
}

/// A guideline whose answer differs with the finding of every GPU; else its statement, once if it is the same.
fn guideline(found: &Generations, row: &GuidelineRow) -> Vec<String> {
    let plain = |text: &str| text.replace('`', "");
    if let (Some(statement), Some(Some(answer))) = (row.common_statement(), row.on.first()) {
        let badge = Badge::from(answer.holds).to_text();
        return vec![format!("{}: {badge} on every GPU: {}", row.id, plain(statement))];
    }
    let mut lines = vec![format!("{}: {}", row.id, if row.changed { "changed" } else { "the same answer" })];
    lines.extend(found.cards.iter().zip(&row.on).map(|(card, on)| {
        let said = on.as_ref().map_or_else(
            || "not in this report".to_string(),
            |GuidelineAnswer { holds, statement, finding }| {
                let finding = if row.changed { format!(" {finding}") } else { String::new() };
                plain(&format!("{}: {statement}{finding}", Badge::from(*holds).to_text()))
            },
        );
        format!("  {}: {said}", card.name())
    }));
    lines
}

fn shares(found: &Generations) -> Table {
    let names: Vec<String> = found.cards.iter().map(super::ModelColumn::name).collect();
    let first = format!("{} of", found.to_text());
    let heads: Vec<&str> = [first.as_str()].into_iter().chain(names.iter().map(String::as_str)).collect();
    let mut table = Table::with(&heads);
    for row in found.cells.iter().take(ROWS) {
        let shares = row.on.iter().map(|on| on.as_ref().map_or_else(|| "not in this report".into(), super::Share::to_text));
        table.texts([row.label.clone()].into_iter().chain(shares));
    }
    table
}
