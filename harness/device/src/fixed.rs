//! What this collo cannot change on a GPU, checked before anything is measured: cells that need that change are refused, and no
//! others.
//!
//! A permission is checked by setting the current value. Whether processes that have the GPU open block the change is found out
//! by trying, and only if there are any: there is no other way, because some drivers refuse the change and others leave it
//! pending.

use collo_plan::facts::{Fixed, Gpu};
use collo_text::Diagnostic;

use super::lease::{GpuLease, Who};
use super::repartition;
use super::services::{self, Services};
use super::settings::ChangedSettings;
use crate::lease::journal::{mode_can_be_set, none_is_pending};
use collo_gpus::PartitionError;
use collo_gpus::partition::Partition;

/// Check what a plan needs of a GPU. Impossible requests are an error: services are to be stopped, but this user may not.
pub fn ask(gpu: &Gpu, wanted: &[&Partition], services: Services) -> Result<Fixed, Diagnostic> {
    let (Some(at), Some(found)) = (&gpu.at, &gpu.partition) else { return Ok(Fixed::default()) };
    let turned = wanted.iter().any(|p| p.mig != found.mig);
    let layout = wanted.iter().find(|p| p.mig == found.mig && !p.is_as(found));
    // Processes that compute on the card are a refusal of their own, and nothing is changed beside them.
    if (!turned && layout.is_none()) || !gpu.company.is_nobody() {
        return Ok(Fixed::default());
    }
    let mut fixed = Fixed::default();
    let active = if turned && repartition::takes_reset(&at.uuid) { services::active() } else { Vec::new() };
    let stopped = services == Services::Stop && !active.is_empty();
    if stopped {
        services::may_stop(&active)?;
    }
    let right = repartition::may_turn(&at.uuid, &gpu.label());
    if turned {
        let pending = none_is_pending(&at.uuid, &gpu.label());
        fixed.mode = match right.as_ref().and(pending.as_ref()) {
            Err(e) => Some(e.clone()),
            Ok(_) if !stopped && repartition::takes_reset(&at.uuid) && !repartition::blame(&at.uuid).is_nobody() => {
                let other = if found.mig { Partition::off() } else { Partition::on(Vec::new()) };
                tried(gpu, &other)
            }
            Ok(_) => None,
        };
        if fixed.mode.is_none() {
            let kept = ChangedSettings::read(&at.uuid).can_be_set(&at.uuid, &gpu.label());
            fixed.mode = kept.and_then(|()| mode_can_be_set(&at.uuid, &gpu.label())).err();
        }
    }
    if let (Some(layout), Err(_)) = (layout, &right) {
        // Another right than that to the mode, which an administrator may have given (the capability `mig/config`).
        fixed.layout = tried(gpu, layout).filter(|e| e.denied);
    }
    Ok(fixed)
}

/// Try the partition, and restore it immediately; returns why it failed, if it did.
fn tried(gpu: &Gpu, wanted: &Partition) -> Option<PartitionError> {
    let who = Who { experiment: "collo, asking".into(), campaign: String::new() };
    // Whoever else uses the GPU is told of when it is taken for the campaign.
    let (mut hold, _) = GpuLease::take(gpu, &who, false).ok()?;
    hold.apply(wanted).err()
}

#[cfg(test)]
mod tests {
    use super::*;
    use collo_gpus::partition::Slice;

    #[test]
    fn only_what_needs_the_change_stands_against_it() {
        let no = |what: &str| Some(PartitionError::new(what));
        let fixed = Fixed { mode: no("mode"), layout: no("layout") };
        let slice = Slice { profile: "1g.5gb".into(), start: Some(0), compute: vec![1] };
        let (off, empty, one) = (Partition::off(), Partition::on(Vec::new()), Partition::on(vec![slice]));
        assert_eq!(fixed.against(&off, &off), None);
        assert_eq!(fixed.against(&off, &one), no("mode").as_ref());
        assert_eq!(fixed.against(&one, &empty), no("layout").as_ref());
        assert_eq!(Fixed { layout: None, ..fixed }.against(&one, &empty), None);
    }
}
