//! A cut that is typed: `7×1g.5gb`, `3g.20gb+2×2g.10gb`, `2×1c.3g.20gb`, perhaps with places: `3g.20gb@4+2g.10gb@0`.

use std::collections::BTreeMap;

use super::{Item, Wanted, checked, compute_size, packed, placed, slice_of};
use crate::device::mig::Card;
use crate::device::partition::{Partition, Slice};
use crate::mistake::{Mistake, quoted};

/// More is on no card; it keeps a typed number from becoming a long list.
const MOST: u32 = 64;

pub fn read(text: &str, card: &Card) -> Result<Wanted, Mistake> {
    let mut items: Vec<Item> = Vec::new();
    let mut divided: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    let mut slices: Vec<Slice> = Vec::new();
    for part in parts(text) {
        if part.contains('@') {
            // Compute instances of one instance are joined by a plus, and so was torn apart what belongs together.
            slices.push(slice_of(&part.replace('&', "+"), card)?);
            continue;
        }
        let (count, name) = counted(&part)?;
        let (size, profile) = compute_size(name);
        let profile = card.profile(profile)?;
        match size {
            Some(size) => divided.entry(profile.name.clone()).or_default().extend((0..count).map(|_| size)),
            None => items.extend((0..count).map(|_| Item { profile: profile.clone(), compute: vec![profile.slices] })),
        }
    }
    for (profile, sizes) in divided {
        items.extend(packed(card.profile(&profile)?, &sizes)?);
    }
    match (items.is_empty(), slices.is_empty()) {
        (false, false) => {
            Err(Mistake::new(format!("{} gives places to some instances", quoted(text))).hint("to all of them, or to none"))
        }
        (_, true) => placed(items, card),
        (true, false) => checked(slices, card),
    }
}

/// The parts between the pluses; `+me` and its like belong to the profile before them, `1c+` to the one behind.
fn parts(text: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut compute = String::new();
    for part in text.split('+').map(str::trim) {
        let alone = part.strip_suffix('c').is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()));
        if alone {
            compute.push_str(&format!("{part}&"));
        } else if let (false, Some(before)) = (part.starts_with(|c: char| c.is_ascii_digit()), parts.last_mut()) {
            before.push('+');
            before.push_str(part);
        } else {
            parts.push(format!("{compute}{part}"));
            compute.clear();
        }
    }
    if !compute.is_empty() {
        parts.push(compute);
    }
    parts
}

/// `7×1g.5gb` → 7 and its name. Typed input may say `x` for `×`.
fn counted(part: &str) -> Result<(u32, &str), Mistake> {
    let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
    let (number, rest) = part.split_at(digits);
    let Some(name) = rest.strip_prefix('×').or_else(|| rest.strip_prefix('x')) else { return Ok((1, part)) };
    match number.parse().ok().filter(|n| (1..=MOST).contains(n)) {
        Some(count) => Ok((count, name)),
        None => Err(Mistake::new(format!("{} is not a number of instances", quoted(number))).note(format!("from 1 to {MOST}"))),
    }
}

/// A state as a cut that can be typed: with its places, as far as they are known, so that it is the same again.
pub fn written(partition: &Partition) -> String {
    match (partition.mig, partition.instances.is_empty()) {
        (false, _) => "off".into(),
        (true, true) => "on".into(),
        (true, false) => partition.instances.iter().map(super::slice_text).collect::<Vec<_>>().join("+"),
    }
}
