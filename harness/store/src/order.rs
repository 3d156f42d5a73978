//! Which campaign is the newest. Ids and dates come from clocks, and clocks are sometimes wrong; so each campaign also names the
//! newest one at its start, and counts as newer than that whatever the dates are.

use std::collections::HashMap;

use crate::Campaign;

/// The name as recorded: `quickstart/20261120-1842-7f3a`.
pub(crate) fn key(c: &Campaign) -> String {
    format!("{}/{}", c.experiment, c.id)
}

/// For each campaign its effective date, and its rank among those with the same one.
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
