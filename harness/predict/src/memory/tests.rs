use super::*;
use crate::description::Allocation;
use crate::description::tests::small;

const MIB: u64 = 1 << 20;

fn known() -> Coefficients {
    Coefficients { context_bytes: 5e8, per_reserved_byte: 1.02, per_workspace_byte: 1.6 }
}

/// At a batch of 8: weights 4, input 4.6, saved 24, temporary 0.8, gradients 4, and from the second step on moments of 8 MiB.
#[test]
fn the_peaks_are_those_of_the_steps() {
    let replay = replay(&small(), 8).unwrap();
    let at = |kind: &str| replay.at_peak.iter().find(|part| part.kind == kind).unwrap().bytes;
    assert_eq!(at("weights"), 4.0 * MIB as f64);
    assert_eq!(at("optimizer"), 8.0 * MIB as f64, "the peak is in the second step");
    assert_eq!(at("saved"), 24.0 * MIB as f64);
    let asked: f64 = replay.at_peak.iter().map(|part| part.bytes).sum();
    assert!(replay.warm_up.allocated_bytes as f64 >= asked && asked > 45.0 * MIB as f64);
    assert_eq!(replay.training.allocated_bytes, replay.warm_up.allocated_bytes);
    for peaks in [replay.warm_up, replay.training] {
        assert!(peaks.reserved_bytes >= peaks.allocated_bytes);
    }
}

#[test]
fn what_grows_with_the_batch_grows_and_the_rest_does_not() {
    let parts = |batch| known().footprint(&small(), batch, Basis::Reserved).unwrap().parts;
    let bytes = |parts: &[Part], kind: &str| parts.iter().find(|part| part.kind == kind).unwrap().bytes;
    let (one, many) = (parts(10), parts(40));
    for kind in ["saved", "input", "workspace"] {
        assert_eq!(bytes(&many, kind), 4.0 * bytes(&one, kind), "{kind}");
    }
    for kind in ["weights", "gradients", "optimizer", "context"] {
        assert_eq!(bytes(&many, kind), bytes(&one, kind), "{kind}");
    }
}

#[test]
fn the_parts_add_up() {
    for (batch, basis) in [(1, Basis::Reserved), (32, Basis::Allocated), (100, Basis::CacheEmptied)] {
        let footprint = known().footprint(&small(), batch, basis).unwrap();
        let sum: f64 = footprint.parts.iter().map(|part| part.bytes).sum();
        assert!((sum - footprint.bytes).abs() < 1.0, "{sum}, not {}", footprint.bytes);
    }
}

#[test]
fn an_estimate_from_what_tensors_need_says_that_it_is_approximate() {
    let footprint = |basis| known().footprint(&small(), 32, basis).unwrap();
    assert!(footprint(Basis::Reserved).approximate.is_empty());
    assert_eq!(footprint(Basis::Allocated).approximate.len(), 1);
    assert!(footprint(Basis::Allocated).bytes < footprint(Basis::Reserved).bytes);
    let emptied = footprint(Basis::CacheEmptied);
    assert_eq!(emptied.bytes, emptied.warm_up_bytes.max(emptied.training_bytes));
}

/// The first step frees 512 MiB at once, which the second does not need.
#[test]
fn a_cache_that_is_kept_is_still_there_while_it_trains() {
    let mut description = small();
    description.allocations.push(Allocation { bytes: 512 * MIB, grows: false, kind: 0 });
    let last = description.allocations.len() as i64;
    let [first, second, end] = description.steps;
    description.events.splice(first..first, [last, -last]);
    description.steps = [first, second + 2, end + 2];
    let footprint = |basis| known().footprint(&description, 32, basis).unwrap();
    let (kept, emptied) = (footprint(Basis::Reserved), footprint(Basis::CacheEmptied));
    assert_eq!((kept.training_bytes, kept.bytes), (kept.warm_up_bytes, emptied.bytes));
    assert!(emptied.training_bytes < emptied.bytes - 256.0 * MIB as f64, "{emptied:?}");
    // What the allocator itself has is the same for both, and is not replayed again by those who tell it.
    assert_eq!(kept.replayed, replay(&description, 32).unwrap().warm_up);
    assert_eq!(emptied.replayed, kept.replayed);
}

#[test]
fn no_batch_and_one_beyond_any_gpu_are_refused() {
    insta::assert_snapshot!(replay(&small(), 0).unwrap_err().to_string(), @"
    error: a batch of 0 items needs no prediction
    hint: the batch size is 1 or more
    ");
    insta::assert_snapshot!(replay(&small(), 1 << 50).unwrap_err().to_string(), @"
    error: at batch size 1125899906842624 the step needs more memory than any GPU has
    hint: choose a smaller batch size
    ");
}

/// The cache is given back before a step fails, so it fits on less than it would reserve; not on less than its tensors.
#[test]
fn on_a_smaller_device_a_step_reserves_less_until_it_does_not_fit() {
    let free = replay(&small(), 32).unwrap().warm_up;
    let (mut least, mut fitted) = (None, 0);
    for limit in (0..free.reserved_bytes / MIB + 8).rev().map(|mib| mib * MIB) {
        match replay_within(&small(), 32, Some(limit)) {
            Ok(within) => {
                assert!(least.is_none(), "what fits on less fits on more");
                for peaks in [within.warm_up, within.training] {
                    assert!(peaks.allocated_bytes <= peaks.reserved_bytes && peaks.reserved_bytes <= limit);
                }
                fitted += 1;
            }
            Err(NotReplayed::DoesNotFit(why)) => {
                assert_eq!((why.batch, why.limit_bytes), (32, Some(limit)));
                let segment = (why.asked_bytes + 2 * MIB).max(20 * MIB);
                assert!(why.reserved_bytes <= limit && why.reserved_bytes + segment > limit);
                least = least.max(Some(limit));
            }
            Err(NotReplayed::NoItems) => unreachable!(),
        }
    }
    assert!(least.unwrap() < free.reserved_bytes && fitted >= 8);
    assert_eq!(replay_within(&small(), 32, None), Ok(replay(&small(), 32).unwrap()));
    assert_eq!(replay_within(&small(), 0, None), Err(NotReplayed::NoItems));
}

#[test]
fn a_device_never_shows_more_than_it_has() {
    let free = known().footprint(&small(), 32, Basis::Reserved).unwrap();
    let on = |device_bytes| known().footprint_within(&small(), 32, Basis::Reserved, device_bytes);
    assert_eq!(on(free.bytes as u64 * 2), Ok(free.clone()));
    // All but half of cuDNN's workspace.
    let workspace = free.parts.iter().find(|part| part.kind == "workspace").unwrap().bytes;
    let tight = on((free.bytes - workspace / 2.0) as u64).unwrap();
    assert!(tight.bytes <= free.bytes - workspace / 2.0 && tight.training_bytes <= tight.bytes);
    let sum: f64 = tight.parts.iter().map(|part| part.bytes).sum();
    assert!((sum - tight.bytes).abs() < 1.0, "{sum}, not {}", tight.bytes);
    insta::assert_snapshot!(Diagnostic::from(on(530_000_000).unwrap_err()).to_string(), @"
    error: at batch size 32 the step does not fit: beside 0.02 GB that are in use it asks for 0.02 GB, and there are 0.03 GB for tensors
    hint: choose a smaller batch size
    ");
}
