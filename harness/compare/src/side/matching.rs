//! Matches cells. In: two sides. Out: pairs, and cells of only one of them. On one GPU model cells are matched by their label; on
//! different ones by their label with every slice named by its share of the GPU.

use std::collections::HashMap;

use collo_guidelines::report_json::CellJson;
use collo_store::Sharing;

use super::cards::{self, GpuModel};
use crate::side::ComparedReport;

/// A cell of either side.
#[derive(Debug, Clone, Copy)]
pub struct Pair<'a> {
    pub left: &'a CellJson,
    pub right: &'a CellJson,
}

/// All cells of both sides.
#[derive(Debug)]
pub struct Matched<'a> {
    pub pairs: Vec<Pair<'a>>,
    pub only_left: Vec<&'a CellJson>,
    pub only_right: Vec<&'a CellJson>,
    pub warnings: Vec<String>,
}

/// A cell's name for matching.
pub fn key(cell: &CellJson, card: Option<&GpuModel>) -> String {
    let Some(card) = card else { return cell.label.clone() };
    // A mode that cuts the card itself says in its slots what it was cut into.
    let slots = cell
        .slots
        .as_deref()
        .filter(|_| Sharing::of_label(&cell.sharing).partitioned)
        .map_or(String::new(), |s| format!(" ({})", card.by_share(s)));
    card.by_share(&cell.label) + &slots
}

/// Match the cells of two sides, in the order of the right one.
pub fn of<'a>(left: &'a ComparedReport, right: &'a ComparedReport, by_share: bool) -> Matched<'a> {
    let card = |side: &ComparedReport| cards::card(&side.device.name, side.device.memory_bytes).filter(|_| by_share);
    let (left_card, right_card) = (card(left), card(right));
    let (left_card, right_card) = (left_card.as_ref(), right_card.as_ref());
    let mut warnings = Vec::new();
    let mut there: HashMap<String, &CellJson> = HashMap::with_capacity(left.cells.len());
    for cell in &left.cells {
        if there.insert(key(cell, left_card), cell).is_some() {
            warnings.push(format!("the left side has `{}` twice; the last counts", cell.label));
        }
    }
    let mut seen: HashMap<String, ()> = HashMap::with_capacity(right.cells.len());
    let (mut pairs, mut only_right) = (Vec::new(), Vec::new());
    for cell in &right.cells {
        let name = key(cell, right_card);
        match there.get(&name) {
            _ if seen.insert(name.clone(), ()).is_some() => {
                warnings.push(format!("the right side has `{}` twice; the first counts", cell.label));
            }
            Some(left) => pairs.push(Pair { left, right: cell }),
            None => only_right.push(cell),
        }
    }
    let only_left = left.cells.iter().filter(|c| !seen.contains_key(&key(c, left_card))).collect();
    Matched { pairs, only_left, only_right, warnings }
}

/// The actual sizes of a pair's slices: `14 of 108 SMs left, 16 of 132 right`.
pub fn sms(pair: &Pair<'_>, (left, right): (&ComparedReport, &ComparedReport)) -> Vec<String> {
    let of = |cell: &CellJson, side: &ComparedReport| {
        let card = cards::card(&side.device.name, side.device.memory_bytes)?;
        cell.slots.as_deref().and_then(|s| card.sms_of(s)).or_else(|| card.sms_of(&cell.sharing))
    };
    match (of(pair.left, left), of(pair.right, right)) {
        (Some(l), Some(r)) => vec![format!("{l} left, {r} right")],
        _ => Vec::new(),
    }
}
