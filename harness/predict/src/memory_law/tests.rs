use super::*;
use crate::conformal::WidthFrom;
use crate::description::tests::{edited, edits, fuzzed, small};
use crate::file::{Conditions, Mark, TargetDevice};
use collo_text::Source;
use proptest::prelude::*;

pub fn published() -> MemoryPredictor {
    let law = MemoryLaw {
        coefficients: Coefficients { context_bytes: 567_279_616.0, per_reserved_byte: 1.02, per_workspace_byte: 1.6 },
        factors: Factors::Fitted,
        covariance: Some(Covariance([[4e14, -1e5, 0.0], [-1e5, 1e-4, 0.0], [0.0, 0.0, 0.04]])),
        width: Width { upper_log: 0.1, below_log: 0.12, above_log: 0.12, from: WidthFrom::Published, families: 7, rows: 30 },
        left_out: LeftOut {
            rows: 30,
            families: 7,
            median_error_bytes: 44_040_192.0,
            median_relative_error: 0.014,
            worst_relative_error: 0.1,
            under: 14,
            exceeded: 1,
        },
    };
    let conditions = Conditions { gpu: Some("NVIDIA A100-SXM4-40GB".into()), ..Conditions::default() };
    MemoryPredictor::new(law, "published-a100".into(), conditions, "published".into(), Mark::Published)
}

fn read(text: &str) -> Result<MemoryPredictor, Diagnostic> {
    MemoryPredictor::read(&Source::file("predictors/mine.json", text))
}

/// The sample with one passage replaced.
fn with(old: &str, new: &str) -> String {
    let text = published().to_text();
    assert!(text.contains(old), "{old} is in the sample");
    read(&text.replacen(old, new, 1)).unwrap_err().to_string()
}

#[test]
fn a_predictor_is_read_as_it_was_written() {
    let text = published().to_text();
    assert_eq!(read(&text).unwrap(), published());
    assert!(text.len() < 2_000, "small enough to be read");
}

#[test]
fn a_file_that_cannot_serve_is_refused_with_a_way_out() {
    insta::assert_snapshot!(with("\"schema\": 1", "\"schema\": 2"), @"
    error: predictors/mine.json is a predictor of schema 2, but this collo reads up to 1
    hint: it was written by another version of collo: use that one, or fit it again, or restore the file
    ");
    insta::assert_snapshot!(with("\"memory\"", "\"utilisation\""), @"
    error: predictors/mine.json predicts `utilisation`, but `memory` is wanted
    hint: `collo predict list` shows what each predicts
    ");
    insta::assert_snapshot!(with("\"replay-1\"", "\"replay-2\""), @"
    error: predictors/mine.json is for the formula `replay-2`, which this collo does not have
    hint: fit it again; this one has `replay-1`
    ");
    insta::assert_snapshot!(with("1.02", "NaN"), @r#"
    error: not a predictor: expected value at predictors/mine.json:16:28
    16 |       "per_reserved_byte": NaN,
       |                            ^
    hint: fit it again, or restore the file
    "#);
    insta::assert_snapshot!(with("1.02", "null"), @r#"
    error: not a predictor: invalid type: null, expected f64, at predictors/mine.json:16:31
    16 |       "per_reserved_byte": null,
       |                               ^
    hint: fit it again, or restore the file
    "#);
    insta::assert_snapshot!(with("1.02", "0"), @"
    error: predictors/mine.json is not a usable predictor: `per_reserved_byte` is 0, so it would be the same for every workload
    hint: fit it again, or restore the file
    ");
    insta::assert_snapshot!(with("567279616.0", "1e20"), @"
    error: predictors/mine.json is not a usable predictor: `context_bytes` is 100000000000000000000, not from 0 to 68719476736
    hint: fit it again, or restore the file
    ");
    insta::assert_snapshot!(with("\"upper_log\": 0.1", "\"upper_log\": 30"), @"
    error: predictors/mine.json is not a usable predictor: `upper_log` is 30, not from 0 to 3
    hint: fit it again, or restore the file
    ");
    insta::assert_snapshot!(with("\"mark\": \"published\"", "\"mark\": \"publishd\""), @r#"
    error: not a predictor: unknown variant `publishd`, expected one of `simulated`, `published`, `own`, `table`, at predictors/mine.json:12:20
    12 |   "mark": "publishd",
       |                    ^
    hint: fit it again, or restore the file
    "#);
    insta::assert_snapshot!(with("\"mark\"", "\"marks\""), @r#"
    error: not a predictor: unknown field `marks`, expected one of `schema`, `name`, `quantity`, `formula`, `widening`, `conditions`, `source`, `mark`, `law`, at predictors/mine.json:12:9
    12 |   "marks": "published",
       |         ^
    hint: fit it again, or restore the file
    "#);
    insta::assert_snapshot!(with("published-a100", ""), @"
    error: predictors/mine.json is not a usable predictor: `name` is empty
    hint: fit it again, or restore the file
    ");
    insta::assert_snapshot!(read("").unwrap_err().to_string(), @"
    error: not a predictor: EOF while parsing a value at predictors/mine.json:1:1
     1 | 
       | ^
    hint: fit it again, or restore the file
    ");
}

#[test]
fn a_mark_is_said_as_it_stands_in_the_file() {
    for mark in [Mark::Simulated, Mark::Published, Mark::Own] {
        assert_eq!(serde_json::to_value(mark).unwrap(), mark.as_str());
    }
}

#[test]
fn simulated_and_real_are_never_mixed() {
    let simulated = MemoryPredictor { mark: Mark::Simulated, name: "mine".into(), ..published() };
    assert!(simulated.may_serve_gpu(true).is_ok());
    insta::assert_snapshot!(simulated.may_serve_gpu(false).unwrap_err().to_string(), @"
    error: predictor `mine` was fitted on simulated runs, but this GPU is real
    hint: choose one fitted on real runs; `collo predict list` marks them
    ");
    for mark in [Mark::Published, Mark::Own] {
        let real = MemoryPredictor { mark, ..published() };
        assert!(real.may_serve_gpu(false).is_ok());
        assert!(real.may_serve_gpu(true).is_err());
    }
    insta::assert_snapshot!(published().may_serve_gpu(true).unwrap_err().to_string(), @"
    error: predictor `published-a100` was fitted on real runs, but this GPU is simulated
    hint: choose one fitted on simulated runs; `collo predict list` marks them
    ");
}

#[test]
fn a_prediction_is_between_its_bounds_and_names_its_predictor() {
    let found = published().predict(&small(), 32, Basis::Reserved).unwrap();
    assert_eq!(found.predictor, "published-a100");
    assert!(found.low_bytes < found.footprint.bytes && found.footprint.bytes < found.upper_bytes);
    assert!((found.upper_bytes / found.footprint.bytes).ln() - 0.1 < 1e-9);
    assert!((found.high_bytes / found.footprint.bytes).ln() - 0.12 < 1e-9);
}

#[test]
fn the_largest_batch_is_the_last_whose_upper_bound_fits() {
    let (predictor, description) = (published(), small());
    for bytes in [1e9, 5e9, 42e9] {
        let batch = predictor.largest_batch(&description, Basis::Reserved, bytes).unwrap();
        let upper = |batch| predictor.predict(&description, batch, Basis::Reserved).unwrap().upper_bytes;
        assert!(upper(batch) <= bytes && bytes < upper(batch + 1), "{batch} in {bytes}");
    }
    assert_eq!(predictor.largest_batch(&description, Basis::Reserved, 1e8), None);
}

proptest! {
    #![proptest_config(fuzzed())]

    #[test]
    fn any_predictor_file_is_refused_or_predicts_in_finite_numbers(edits in edits()) {
        thread_local!(static SMALL: Description = small());
        let Ok(predictor) = read(&edited(&published().to_text(), &edits)) else { return Ok(()) };
        let found = SMALL.with(|small| predictor.predict(small, 32, Basis::Reserved)).unwrap();
        let bounds = [found.low_bytes, found.high_bytes, found.upper_bytes, found.footprint.bytes];
        prop_assert!(bounds.into_iter().all(|bytes| bytes.is_finite() && bytes > 0.0));
    }
}

#[test]
fn a_width_that_narrows_and_a_covariance_that_is_none_are_refused() {
    insta::assert_snapshot!(with("\"widening\": 1.5", "\"widening\": 0.5"), @"
    error: predictors/mine.json is not a usable predictor: `widening` is 0.5, not from 1 to 10
    hint: fit it again, or restore the file
    ");
    insta::assert_snapshot!(with("0.04", "-0.04"), @"
    error: predictors/mine.json is not a usable predictor: `covariance` has a negative variance
    hint: fit it again, or restore the file
    ");
}

#[test]
fn with_another_width_and_context_the_rest_stays() {
    let (predictor, small) = (published(), small());
    let plain = predictor.predict(&small, 32, Basis::Reserved).unwrap();
    let context = predictor.law.coefficients.context_bytes + 1e9;
    let adapted = predictor.adapted(predictor.law.width.times(2.0), Some(context));
    let wide = adapted.predict(&small, 32, Basis::Reserved).unwrap();
    assert!((wide.footprint.bytes - plain.footprint.bytes - 1e9).abs() < 1.0);
    assert!(((wide.upper_bytes / wide.footprint.bytes).ln() - 2.0 * predictor.law.width.upper_log).abs() < 1e-9);
    assert_eq!(predictor.adapted(predictor.law.width, None), predictor);
}

#[test]
fn the_least_is_without_caches_and_workspaces() {
    let predictor = published();
    let small = small();
    let found = predictor.predict(&small, 32, Basis::Reserved).unwrap();
    let replayed = crate::replay(&small, 32).unwrap();
    let asked: f64 = replayed.at_peak.iter().map(|part| part.bytes).sum();
    let wanted = (predictor.law.coefficients.context_bytes + asked) * (-predictor.law.width.below_log).exp();
    assert!((found.least_bytes - wanted).abs() < 1.0);
    assert!(asked <= replayed.warm_up.allocated_bytes as f64 && found.least_bytes < found.low_bytes);
    // A compiled step may keep less than was traced, so that only what it is made of is certain.
    let approximate = Description { approximate: vec!["it is compiled".into()], ..small };
    let loose = predictor.predict(&approximate, 32, Basis::Allocated).unwrap();
    assert!(loose.least_bytes < found.least_bytes);
}

#[test]
fn on_a_cpu_what_is_allocated_is_what_is_needed() {
    let small = small();
    let found = published().predict(&small, 32, Basis::Uncached).unwrap();
    assert!(found.footprint.approximate.is_empty());
    assert_eq!(
        Basis::Uncached.held_bytes(&crate::replay(&small, 32).unwrap()),
        crate::replay(&small, 32).unwrap().warm_up.allocated_bytes
    );
}

#[test]
fn what_was_fitted_on_a_cpu_is_refused_for_a_gpu() {
    let conditions = Conditions { device: TargetDevice::Cpu, ..Conditions::default() };
    let on_cpu = MemoryPredictor { name: "mine".into(), mark: Mark::Own, conditions, ..published() };
    assert!(on_cpu.to_text().contains("\"device\": \"cpu\""));
    assert_eq!(read(&on_cpu.to_text()).unwrap(), on_cpu);
    insta::assert_snapshot!(on_cpu.may_serve_gpu(false).unwrap_err().to_string(), @"
    error: predictor `mine` is of the memory of processes on a CPU, but this is a GPU
    hint: choose one fitted on GPUs; `collo predict show NAME` says which is
    ");
}
