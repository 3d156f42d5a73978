//! A partition as typed: `7×1g.5gb`, `3g.20gb+2×2g.10gb`, `2×1c.3g.20gb`, optionally with places: `3g.20gb@4+2g.10gb@0`.

use collo_gpus::notation;
use collo_text::{Diagnostic, quoted};

use super::{Items, WantedPartition, checked, slice_of};
use collo_gpus::mig::GpuModel;
use collo_gpus::partition::{Partition, Slice};

pub fn read(text: &str, card: &GpuModel) -> Result<WantedPartition, Diagnostic> {
    let mut items = Items::default();
    let mut slices: Vec<Slice> = Vec::new();
    let all = notation::items(text);
    for part in &all {
        let written = notation::Item::of(part);
        if written.is_placed() {
            slices.push(slice_of(part, card)?);
            continue;
        }
        let count = written.count().map_err(|number| {
            Diagnostic::new(format!("invalid number of instances {}", quoted(number)))
                .note(format!("from 1 to {}", notation::MOST))
        })?;
        items.add(count.unwrap_or(1), &written, card)?;
    }
    match slices.len() {
        0 => items.placed(card),
        placed if placed == all.len() => checked(slices, card),
        _ => Err(Diagnostic::new(format!("{} gives places to some instances", quoted(text))).hint("to all of them, or to none")),
    }
}

/// A state as a partition that can be typed: with its places, as far as they are known, so that it can be reproduced.
pub fn written(partition: &Partition) -> String {
    match (partition.mig, partition.instances.is_empty()) {
        (false, _) => "off".into(),
        (true, true) => "on".into(),
        (true, false) => partition.instances.iter().map(super::slice_text).collect::<Vec<_>>().join("+"),
    }
}
