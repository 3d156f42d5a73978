use super::*;
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
