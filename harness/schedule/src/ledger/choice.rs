//! Which cards a task could have now: one scan of the site.

use std::collections::BTreeMap;

use super::Ledger;
use crate::decided::{Seen, WhyNot};
use crate::policy::Caps;
use crate::recovery::Asks;
use crate::rules::Keeps;
use crate::task::{CardId, Task, TaskId};
use crate::view::CardView;

/// The result of a scan.
pub(super) enum Choice {
    /// In the order in which they were chosen.
    Cards(Vec<CardId>),
    Waits(Waits),
}

/// Why there is no place.
#[derive(Default)]
pub(super) struct Waits {
    /// The reasons of all cards, a bit each.
    pub reasons: u32,
    /// There were candidates, too few of one node.
    pub too_few: bool,
    /// The earliest moment at which a mean over the window could fall to its cap.
    pub look_ns: Option<u64>,
}

/// The least comes first.
type CardRank = (bool, u64, u32, u32);

/// A task that asks for cards, and what it asks beyond its policy.
pub(super) struct Asking<'a> {
    pub task: &'a Task,
    pub asks: Option<Asks>,
    /// It goes on where it was watched, or waits for a further attempt.
    pub recovers: bool,
    pub profile: bool,
}

impl Ledger {
    pub(super) fn asking(&self, id: TaskId) -> Option<Asking<'_>> {
        let entry = self.tasks.get(&id)?;
        let task = &entry.account.task;
        let profile = task.cards == 1 && self.site.policy.profile_ns(task).is_some();
        let recovers = !entry.account.attempts.is_empty();
        Some(Asking { task, asks: entry.asks, recovers, profile })
    }

    /// Why a card will not do for a task; `None`: it is a candidate.
    fn refuses(&self, asking: &Asking<'_>, card: &CardView) -> Option<WhyNot> {
        if card.lost {
            return Some(WhyNot::Lost);
        }
        if card.read_ns.is_some_and(|ns| ns.saturating_add(self.site.window_ns) < self.now_ns) {
            return Some(WhyNot::StaleReading);
        }
        if let Some((keeper, kept)) = &self.kept
            && *keeper != asking.task.id
        {
            let all = self.site.recovery_keeps == Keeps::All && !asking.recovers && !card.is_idle();
            if all || kept.contains(&card.card) {
                return Some(WhyNot::Kept);
            }
        }
        if card.profiled {
            return Some(WhyNot::Profiled);
        }
        if card.is_idle() {
            return None;
        }
        if asking.profile {
            return Some(WhyNot::NotIdle);
        }
        asking.asks.and_then(|asks| asks.refuses(card)).or_else(|| self.site.policy.refuses(asking.task, card))
    }

    fn rank(&self, card: &CardView) -> CardRank {
        let behind = self.site.idle_first && !card.is_idle();
        (behind, self.site.policy.preference(card), card.residents, card.card.0)
    }

    /// The first cards of the policy's order, all of one node.
    pub(super) fn choose(&self, asking: &Asking<'_>) -> Choice {
        let mut waits = Waits::default();
        let wanted = asking.task.cards as usize;
        let mut best: Option<(CardRank, CardId)> = None;
        let mut found: Vec<(CardRank, CardId, u32)> = Vec::new();
        for card in &self.cards.views {
            match self.refuses(asking, card) {
                Some(why) => self.note(&mut waits, card, why),
                None if wanted == 1 => {
                    let rank = self.rank(card);
                    if best.is_none_or(|(least, _)| rank < least) {
                        best = Some((rank, card.card));
                    }
                }
                None => found.push((self.rank(card), card.card, card.node)),
            }
        }
        if let Some((_, card)) = best {
            return Choice::Cards(vec![card]);
        }
        found.sort_unstable();
        waits.too_few = !found.is_empty();
        let mut of_nodes: BTreeMap<u32, Vec<CardId>> = BTreeMap::new();
        for (_, card, node) in found {
            let of_node = of_nodes.entry(node).or_default();
            of_node.push(card);
            if of_node.len() == wanted {
                return Choice::Cards(std::mem::take(of_node));
            }
        }
        Choice::Waits(waits)
    }

    fn note(&self, waits: &mut Waits, card: &CardView, why: WhyNot) {
        waits.reasons |= why.bit();
        let Caps { sm, occupancy, dram } = self.site.policy.caps();
        let above = match why {
            WhyNot::SmTooHigh => card.sm_permille.zip(sm),
            WhyNot::OccupancyTooHigh => card.occupancy_permille.zip(occupancy),
            WhyNot::DramTooHigh => card.dram_permille.zip(dram),
            _ => None,
        };
        let Some((read, cap)) = above else { return };
        // The samples that leave the window can be at most a whole card each: a mean falls by 1 ‰ in no less than a thousandth of it.
        let step_ns = self.site.window_ns.div_ceil(u64::from(crate::WHOLE_PERMILLE));
        let falls_ns = step_ns.saturating_mul(u64::from(read.saturating_sub(cap)));
        let at_ns = card.read_ns.unwrap_or(self.now_ns).saturating_add(falls_ns);
        // If that has passed, only another reading can tell.
        if at_ns > self.now_ns {
            waits.look_ns = Some(waits.look_ns.map_or(at_ns, |before| before.min(at_ns)));
        }
    }

    /// Every card as it is seen for a task.
    pub(super) fn seen(&self, asking: &Asking<'_>) -> Vec<Seen> {
        let seen = |card: &CardView| {
            let why_not = self.refuses(asking, card);
            Seen {
                card: card.card,
                free_bytes: card.free_bytes,
                promised_bytes: card.promised_bytes,
                residents: card.residents,
                sm_permille: card.sm_permille,
                occupancy_permille: card.occupancy_permille,
                dram_permille: card.dram_permille,
                read_ns: card.read_ns,
                candidate: why_not.is_none(),
                why_not,
            }
        };
        self.cards.views.iter().map(seen).collect()
    }

    /// The cards of a node that will be idle soonest, as far as one can tell: those with the fewest residents.
    pub(super) fn to_keep(&self, wanted: usize) -> Vec<CardId> {
        let mut of_nodes: BTreeMap<u32, Vec<(u32, CardId)>> = BTreeMap::new();
        for card in self.cards.views.iter().filter(|card| !card.lost) {
            of_nodes.entry(card.node).or_default().push((card.residents, card.card));
        }
        let mut best: Option<(u32, Vec<CardId>)> = None;
        for mut cards in of_nodes.into_values().filter(|cards| cards.len() >= wanted) {
            cards.sort_unstable();
            cards.truncate(wanted);
            let residents = cards.iter().map(|(residents, _)| residents).sum();
            if best.as_ref().is_none_or(|(least, _)| residents < *least) {
                best = Some((residents, cards.into_iter().map(|(_, card)| card).collect()));
            }
        }
        best.map(|(_, cards)| cards).unwrap_or_default()
    }
}
