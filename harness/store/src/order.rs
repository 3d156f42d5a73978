//! Which campaign is the newest. Ids and dates come from a clock, and clocks are sometimes wrong; so each campaign also names the one that
//! was the newest when it began, and is newer than that one whatever the dates say.

use std::collections::HashMap;

use crate::Campaign;

/// The name that is written down: `quickstart/20261120-1842-7f3a`.
pub(crate) fn key(c: &Campaign) -> String {
    format!("{}/{}", c.experiment, c.id)
}

/// For each campaign the date that it counts as, and its place among those that count as the same.
pub(crate) fn ranks(campaigns: &[&Campaign]) -> Vec<(String, u32)> {
    let places: HashMap<String, usize> = campaigns.iter().enumerate().map(|(i, c)| (key(c), i)).collect();
    let before = |i: usize| campaigns[i].filing.after.as_ref().and_then(|key| places.get(key)).copied();
    let mut ranks: Vec<Option<(String, u32)>> = vec![None; campaigns.len()];
    let mut seen = vec![false; campaigns.len()];
    for i in 0..campaigns.len() {
        // Back to one that is known, or has none before it; in files that name each other in a ring, to one that was seen.
        let mut chain = Vec::new();
        let mut at = Some(i);
        while let Some(j) = at.filter(|j| !std::mem::replace(&mut seen[*j], true)) {
            chain.push(j);
            at = before(j);
        }
        for j in chain.into_iter().rev() {
            let own = campaigns[j].created_utc.clone();
            ranks[j] = Some(match before(j).and_then(|b| ranks[b].clone()) {
                Some((date, place)) if date >= own => (date, place + 1),
                _ => (own, 0),
            });
        }
    }
    ranks.into_iter().map(Option::unwrap_or_default).collect()
}
