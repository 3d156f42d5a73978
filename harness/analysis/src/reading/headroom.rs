//! How much memory is left beside a group. In: a run, and what its members used. Out: bytes that further members could use: on a whole
//! GPU what nothing uses, on instances what is left of those that members have.

use std::collections::BTreeSet;

use collo_store::MemberRecord;

use super::repetition::Repetition;

const GIB: f64 = (1u64 << 30) as f64;

/// Memory left, bytes; `None` where nothing is left, or the memory of the device or of an instance is not known.
pub fn left_bytes(r: &Repetition, used: f64) -> Option<f64> {
    let record = r.record();
    let whole = record.device.memory_bytes.map(|bytes| bytes as f64);
    let left = if record.cell.mode.partitioned {
        instances_bytes(r)? - used
    } else {
        // Contexts, an MPS server, the driver, and other processes use memory that belongs to no member.
        whole? - r.card_memory_bytes.map_or(used, |card| card.max(used))
    };
    Some(left).filter(|left| *left > 0.0)
}

/// Memory of the instances that the members have.
fn instances_bytes(r: &Repetition) -> Option<f64> {
    let record = r.record();
    let model = collo_gpus::of_product(&record.device.name)?;
    let bytes = |m: &MemberRecord| {
        let slice = m.slice.as_deref()?;
        // A compute instance has the memory of its GPU instance.
        let profile = slice.split_once("c.").map_or(slice, |(_, profile)| profile);
        Some(model.profile(profile).ok()?.memory_gib? * GIB)
    };
    let of_members: Vec<f64> = record.members.iter().map(bytes).collect::<Option<_>>()?;
    if record.cell.mode.isolated {
        return Some(of_members.iter().sum());
    }
    if !record.cell.mode.mps {
        // Compute instances are those of one GPU instance.
        return of_members.first().copied();
    }
    // Clients of MPS inside an instance were given the same one.
    let given: Vec<&str> = (0..record.members.len()).map(|member| record.device_of(member)).collect::<Option<_>>()?;
    let mut known = BTreeSet::new();
    let distinct = given.into_iter().zip(of_members).filter(|(device, _)| known.insert(*device));
    Some(distinct.map(|(_, bytes)| bytes).sum())
}
