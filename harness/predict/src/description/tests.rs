use super::*;
use crate::memory::Basis;
use crate::memory_law;
use crate::peers::Peer;
use proptest::prelude::*;

/// A network of one layer with 4 MiB of weights, whose second step frees the gradients of the first.
pub const SMALL: &str = r#"{
  "schema": 1, "torch": "2.14.1", "traced_batch": 13, "precision": "fp32", "optimizer": "Adam", "approximate": [],
  "parameters": 1048576, "parameter_bytes": 4194304, "trainable_parameter_bytes": 4194304, "buffer_bytes": 512,
  "largest_layer_parameters": 1048576,
  "kinds": ["weights", "buffers", "gradients", "optimizer", "input", "saved", "temporary"],
  "allocations": [[4194304, 0, 0], [512, 0, 1], [602112, 1, 4], [3145728, 1, 5], [4194304, 0, 2], [102400, 1, 6],
                  [8388608, 0, 3], [602112, 1, 4], [3145728, 1, 5], [4194304, 0, 2], [102400, 1, 6]],
  "events": [1, 2, 3, 4, 6, 5, -6, -4, 7, -3, -5, 8, 9, 11, 10, -11, -9, -8],
  "steps": [2, 10, 18],
  "workspace": {"item_bytes": 3747840, "fixed_bytes": 0},
  "operations": {"convolution": {"count": 3, "flops_per_item": 1e9, "bytes_per_item": 7495680, "fixed_bytes": 12582912}},
  "kernels_per_step": 12, "forward_flops_per_item": 3.5e8,
  "features": {"convolutions": 1, "linear": 0, "activations": 1, "other": 1, "model_mb": 4.2},
  "layers": [["conv", 786432, 1048576]],
  "horus_activations": 1572864,
  "fake_tensor": [[8388608, 3747840], [12582912, 602112]]
}"#;

pub fn small() -> Description {
    read(SMALL).unwrap()
}

fn read(text: &str) -> Result<Description, Diagnostic> {
    Description::read(&Source::file("small.json", text))
}

/// The sample with one passage replaced.
fn with(old: &str, new: &str) -> String {
    assert!(SMALL.contains(old), "{old} is in the sample");
    read(&SMALL.replacen(old, new, 1)).unwrap_err().to_string()
}

#[test]
fn a_description_is_read_as_it_was_written() {
    let small = small();
    assert_eq!(small.allocations[2], Allocation { bytes: 602_112, grows: true, kind: 4 });
    assert_eq!(small.allocations[2].bytes_at(32), 602_112 * 32);
    assert_eq!(small.allocations[0].bytes_at(32), 4_194_304);
    assert_eq!(small.steps, [2, 10, 18]);
    assert_eq!(small.layers[0].kind, "conv");
    assert_eq!(small.operations["convolution"].flops_per_item, 1e9);
}

#[test]
fn fields_of_later_versions_are_ignored() {
    let later = SMALL.replacen("\"schema\": 1,", "\"schema\": 1, \"colour\": [\"blue\", {\"deep\": null}],", 1);
    assert_eq!(read(&later).unwrap(), small());
}

#[test]
fn what_is_wrong_is_shown_at_its_place() {
    insta::assert_snapshot!(with("\"torch\": \"2.14.1\", ", ""), @"
    error: not a description: missing field `torch` at small.json:17:1
    17 | }
       | ^
    hint: describe the workload again, with `--fresh`
    ");
    insta::assert_snapshot!(with("[602112, 1, 4]", "[602112.5, 1, 4]"), @"
    error: not a description: 602112.5 is not a whole number from 0 to 2^50 at small.json:6:66
     6 | …4194304, 0, 0], [512, 0, 1], [602112.5, 1, 4], [3145728, 1, 5], [4194304, 0, 2], [102400, 1, 6
       |                                                ^
    hint: describe the workload again, with `--fresh`
    ");
    insta::assert_snapshot!(with("[602112, 1, 4]", "[602112, 2, 4]"), @"
    error: not a description: an allocation grows with the batch, 1, or does not, 0; not 2, at small.json:6:64
     6 | …[[4194304, 0, 0], [512, 0, 1], [602112, 2, 4], [3145728, 1, 5], [4194304, 0, 2], [102400, 1, 6
       |                                                ^
    hint: describe the workload again, with `--fresh`
    ");
    insta::assert_snapshot!(with("\"parameters\": 1048576", "\"parameters\": -1"), @r#"
    error: not a description: -1 is not a whole number from 0 to 2^50 at small.json:3:18
     3 |   "parameters": -1, "parameter_bytes": 4194304, "trainable_parameter_bytes": 4194304, "buffer_b
       |                  ^
    hint: describe the workload again, with `--fresh`
    "#);
    insta::assert_snapshot!(with("3.5e8", "1e999"), @r#"
    error: not a description: number out of range at small.json:12:57
    12 |   "kernels_per_step": 12, "forward_flops_per_item": 1e999,
       |                                                         ^
    hint: describe the workload again, with `--fresh`
    "#);
    insta::assert_snapshot!(with("\"traced_batch\": 13", "\"traced_batch\": NaN"), @r#"
    error: not a description: expected value at small.json:2:51
     2 | …chema": 1, "torch": "2.14.1", "traced_batch": NaN, "precision": "fp32", "optimizer": "Adam", "
       |                                                ^
    hint: describe the workload again, with `--fresh`
    "#);
}

#[test]
fn what_contradicts_itself_is_refused() {
    insta::assert_snapshot!(with("\"schema\": 1", "\"schema\": 2"), @"
    error: small.json is a description of schema 2, but this collo reads up to 1
    hint: it was written by another version of collo: use that one, or describe the workload again, with `--fresh`
    ");
    insta::assert_snapshot!(with("\"schema\": 1", "\"schema\": 0"), @"
    error: small.json has schema 0, but the first schema is 1
    hint: describe the workload again, with `--fresh`
    ");
    insta::assert_snapshot!(with("\"traced_batch\": 13", "\"traced_batch\": 0"), @"
    error: small.json is not a description: `traced_batch` is 0
    hint: describe the workload again, with `--fresh`
    ");
    insta::assert_snapshot!(with("[602112, 1, 4]", "[602112, 1, 7]"), @"
    error: small.json is not a description: allocation 3 is of kind 7, but there are 7 kinds
    hint: describe the workload again, with `--fresh`
    ");
    insta::assert_snapshot!(with("[2, 10, 18]", "[2, 10, 19]"), @"
    error: small.json is not a description: `steps` [2, 10, 19] are not the ends of a set-up and two steps in 18 events
    hint: describe the workload again, with `--fresh`
    ");
    insta::assert_snapshot!(with("[2, 10, 18]", "[2, 10, 10]"), @"
    error: small.json is not a description: `steps` [2, 10, 10] are not the ends of a set-up and two steps in 18 events
    hint: describe the workload again, with `--fresh`
    ");
    insta::assert_snapshot!(with("[1, 2, 3,", "[1, 2, 0,"), @"
    error: small.json is not a description: event 2 is 0, but there are 11 allocations
    hint: describe the workload again, with `--fresh`
    ");
    insta::assert_snapshot!(with("[1, 2, 3,", "[1, 2, -3,"), @"
    error: small.json is not a description: event 2 is -3, but that allocation is not made at that moment
    hint: describe the workload again, with `--fresh`
    ");
    insta::assert_snapshot!(with("[1, 2, 3,", "[1, 2, 2,"), @"
    error: small.json is not a description: event 2 is 2, but that allocation is already made at that moment
    hint: describe the workload again, with `--fresh`
    ");
    insta::assert_snapshot!(with("[1, 2, 3,", "[1, 2, 12,"), @"
    error: small.json is not a description: event 2 is 12, but there are 11 allocations
    hint: describe the workload again, with `--fresh`
    ");
    insta::assert_snapshot!(with("[1, 2, 3,", "[1, 2, -9223372036854775808,"), @"
    error: small.json is not a description: event 2 is -9223372036854775808, but there are 11 allocations
    hint: describe the workload again, with `--fresh`
    ");
}

/// 10^5 in the suite, more with `COLLO_FUZZ=1000000`.
pub fn fuzzed() -> ProptestConfig {
    let cases = std::env::var("COLLO_FUZZ").ok().and_then(|number| number.parse().ok()).unwrap_or(100_000);
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 200, ..ProptestConfig::default() }
}

/// Edits of a text: at a place (a share of its length), so many bytes are replaced.
pub fn edits() -> impl Strategy<Value = Vec<(f64, usize, &'static str)>> {
    let pieces = proptest::sample::select(
        &[
            "",
            "0",
            "1",
            "-1",
            "9",
            "1e308",
            "1e18",
            "1125899906842624",
            "-9223372036854775808",
            "18446744073709551615",
            "0.5",
            "NaN",
            "null",
            "[",
            "]",
            "{",
            "}",
            ",",
            "\"",
            ":",
            "é",
            "[1,1,1]",
            "true",
            "\\u0000",
        ][..],
    );
    proptest::collection::vec((0.0..1.0, 0usize..12, pieces), 0..3)
}

pub fn edited(text: &str, edits: &[(f64, usize, &str)]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for (place, length, piece) in edits {
        let start = (place * bytes.len() as f64) as usize;
        let end = (start + length).min(bytes.len());
        bytes.splice(start..end, piece.bytes());
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

proptest! {
    #![proptest_config(fuzzed())]

    #[test]
    fn any_description_is_refused_or_predicted_in_finite_numbers(
        edits in edits(),
        batch in prop_oneof![0u64..5000, Just(1 << 24), any::<u64>()],
    ) {
        let Ok(description) = read(&edited(SMALL, &edits)) else { return Ok(()) };
        let predictor = memory_law::tests::published();
        for basis in [Basis::Reserved, Basis::CacheEmptied, Basis::Allocated] {
            let Ok(found) = predictor.predict(&description, batch, basis) else { continue };
            let parts = found.footprint.parts.iter().map(|part| part.bytes);
            let bounds = [found.low_bytes, found.high_bytes, found.upper_bytes, found.footprint.bytes];
            prop_assert!(parts.chain(bounds).all(f64::is_finite));
        }
        for peer in Peer::ALL {
            prop_assert!(peer.estimate_bytes(&description, batch).is_none_or(f64::is_finite));
        }
    }
}
