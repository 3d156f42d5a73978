use proptest::prelude::*;

use super::super::law::tests::alone;
use super::*;
use crate::any::{AnyLaw, AnyPredictor};
use crate::description::tests::{edited, edits, fuzzed};
use crate::file::{Conditions, Mark};
use collo_text::Source;

const LEFT_OUT: CompanyLeftOut = CompanyLeftOut {
    unseen: Unseen::EveryFamily,
    groups: 63,
    member_median_error: 0.07,
    gain_median_error: 0.06,
    gain_p90_error: 0.16,
    gain_worst_error: 0.4,
    gain_covered: 60,
};

fn fit(per_longer_step: f64, most_members: usize) -> ModeFit {
    ModeFit {
        most_members,
        families: 9,
        median_slowdown: 1.1,
        law: Law { per_longer_step, per_full_compute: 0.3, per_full_time: 0.2 },
        widths: Widths::PUBLISHED,
        left_out: LEFT_OUT,
    }
}

fn predictor() -> CompanyPredictor {
    let mig = ModeFit {
        most_members: 7,
        families: 9,
        median_slowdown: 1.5,
        law: SliceLaw { per_smaller_slice: 0.45 },
        widths: Widths::PUBLISHED,
        left_out: CompanyLeftOut { unseen: Unseen::Group, ..LEFT_OUT },
    };
    let modes = CompanyModes { mps: Some(fit(0.1, 3)), unrecorded: Some(fit(0.2, 2)), naive: None, mig: Some(mig) };
    CompanyPredictor::new(modes, "mine".into(), Conditions::default(), "tests".into(), Mark::Own)
}

fn pair() -> [Alone; 2] {
    [alone(0.3, 0.8, 0.8), alone(0.015, 0.17, 0.36)]
}

fn read(text: &str) -> Result<CompanyPredictor, String> {
    let read = AnyPredictor::read_any(&Source::file("predictors/x.json", text)).map_err(|why| why.to_string())?;
    match read.law.clone() {
        AnyLaw::Company(modes) => Ok(read.with(*modes)),
        _ => Err(format!("it predicts {}", read.quantity)),
    }
}

#[test]
fn a_file_is_read_as_it_was_written() {
    let text = predictor().to_text();
    assert_eq!(read(&text), Ok(predictor()));
}

#[test]
fn a_mode_without_coefficients_is_served_by_figures_that_do_not_say_theirs_with_wider_intervals() {
    let (of_mps, of_naive) =
        (predictor().predict(CompanyMode::Mps, &pair(), 1.0), predictor().predict(CompanyMode::Naive, &pair(), 1.0));
    let (of_mps, of_naive) = (of_mps.expect("own"), of_naive.expect("unrecorded"));
    assert_eq!((of_mps.by_mode, of_naive.by_mode), (CompanyMode::Mps, CompanyMode::Unrecorded));
    assert_eq!((of_mps.assumed, of_naive.assumed), (vec![], vec![Assumed::ModeUnrecorded(CompanyMode::Naive)]));
    let log = |interval: Interval| (interval.high / interval.estimate).ln();
    assert!((log(of_naive.gain) - 1.5 * log(of_mps.gain)).abs() < 1e-12);
    assert!(of_naive.slowdown[1].estimate > of_mps.slowdown[1].estimate);
}

#[test]
fn a_degree_beyond_what_was_measured_is_said() {
    let three = [pair()[0], pair()[1], pair()[1]];
    let of = |mode| predictor().predict(mode, &three, 1.0).expect("said").extrapolated;
    assert_eq!(of(CompanyMode::Mps), None);
    assert_eq!(of(CompanyMode::Naive), Some(Extrapolated { measured: 2, asked: 3 }));
    let log = |members: &[Alone]| {
        let gain = predictor().predict(CompanyMode::Naive, members, 1.0).expect("said").gain;
        (gain.high / gain.estimate).ln()
    };
    assert!((log(&three) - 1.5 * log(&pair())).abs() < 1e-12, "and the interval is wider");
}

#[test]
fn quantities_follow_from_the_slowdowns() {
    let found = predictor().predict(CompanyMode::Mps, &pair(), 1.0).expect("said");
    let slowdown: Vec<f64> = found.slowdown.iter().map(|interval| interval.estimate).collect();
    assert!((found.gain.estimate - slowdown.iter().map(|s| 1.0 / s).sum::<f64>()).abs() < 1e-12);
    assert!((found.antt.estimate - (slowdown[0] + slowdown[1]) / 2.0).abs() < 1e-12);
    assert!(found.fairness.high <= 1.0 && found.fairness.low < found.fairness.estimate);
}

#[test]
fn a_slice_that_was_measured_alone_is_believed() {
    let slices = [Slice { sm_share: 1.0 / 7.0, slowdown: Some(2.0) }, Slice { sm_share: 3.0 / 7.0, slowdown: None }];
    let found = predictor().predict_on_slices(&slices, 1.0).expect("said");
    assert_eq!(found.slowdown[0].estimate, 2.0);
    assert!((found.slowdown[1].estimate - (7.0f64 / 3.0).powf(0.45)).abs() < 1e-12);
    let without = predictor().with(CompanyModes { mig: None, ..predictor().law });
    assert_eq!(without.predict_on_slices(&slices, 1.0), Err(NotPredicted::NoCoefficients(CompanyMode::Mig)));
}

#[test]
fn what_cannot_be_said_has_its_reason() {
    let none = predictor().with(CompanyModes { unrecorded: None, ..predictor().law });
    assert_eq!(none.predict(CompanyMode::Naive, &pair(), 1.0), Err(NotPredicted::NoCoefficients(CompanyMode::Naive)));
    assert_eq!(predictor().predict(CompanyMode::Mps, &pair()[..1], 1.0), Err(NotPredicted::Alone));
    assert_eq!(predictor().predict(CompanyMode::Mig, &pair(), 1.0), Err(NotPredicted::OnSlices));
    let wrong = [alone(0.1, f64::NAN, 0.5), pair()[0]];
    assert_eq!(predictor().predict(CompanyMode::Mps, &wrong, 1.0), Err(NotPredicted::NotNumbers));
}

#[test]
fn a_file_that_cannot_serve_is_refused_with_its_reason() {
    let text = predictor().to_text();
    for (right, wrong, why) in [
        ("\"per_longer_step\": 0.1", "\"per_longer_step\": 1e9", "not from 0 to 50"),
        ("\"per_longer_step\": 0.1", "\"per_longer_step\": -1", "not a number from 0"),
        ("\"widening\": 1.5", "\"widening\": 0.5", "`widening` is 0.5"),
        ("\"most_members\": 3", "\"most_members\": 1", "no company"),
        ("interference-1", "interference-9", "does not have"),
        ("\"families\"", "\"more\": 1, \"families\"", "unknown field"),
        ("\"above_log\": ", "\"above_log\": 9", "not from 0 to 3"),
    ] {
        let found = read(&text.replacen(right, wrong, 1)).expect_err(why);
        assert!(found.contains(why), "{found}");
    }
}

proptest! {
    #![proptest_config(fuzzed())]

    #[test]
    fn any_file_is_refused_or_predicts_in_finite_numbers(edits in edits()) {
        thread_local!(static TEXT: String = predictor().to_text());
        let Ok(predictor) = read(&edited(&TEXT.with(Clone::clone), &edits)) else { return Ok(()) };
        let slices = [Slice { sm_share: 1.0 / 7.0, slowdown: None }; 3];
        let said = CompanyMode::ALL.map(|mode| predictor.predict(mode, &pair(), 1.5));
        for found in said.into_iter().chain([predictor.predict_on_slices(&slices, 1.5)]).flatten() {
            for interval in found.slowdown.into_iter().chain([found.gain, found.antt, found.fairness]) {
                let numbers = [interval.low, interval.estimate, interval.high];
                prop_assert!(numbers.into_iter().all(|n| n.is_finite() && n > 0.0), "{:?}", interval);
            }
        }
    }
}

#[test]
fn the_shipped_file_is_read_and_predicts() {
    let text = include_str!("../../../../../predictors/published-a100-company.json");
    let shipped = read(text).expect("right");
    assert_eq!((shipped.mark, shipped.name.as_str()), (Mark::Published, "published-a100-company"));
    assert!(text.len() < 20_000);
    let fit = shipped.law.unrecorded.as_ref().expect("its only mode");
    assert_eq!(fit.most_members, 2);
    // vgg16 of batch size 128 beside efficientnet-b0 on CIFAR-100, as in `reports/published/study.json`: 0.982 and 0.52 of their speeds alone.
    let pair = [alone(0.311, 0.798, 0.828), alone(0.036, 0.226, 0.373)];
    let found = shipped.predict(CompanyMode::Naive, &pair, 1.0).expect("said");
    assert!(found.slowdown[0].contains(1.0 / 0.982) && found.slowdown[1].contains(1.0 / 0.52), "{found:?}");
    assert!(found.gain.contains(0.982 + 0.52) && (found.gain.estimate - 1.502).abs() < 0.15, "{found:?}");
}

/// Seven of ResNet26 on CIFAR-10, as `reports/published/study.json` has them, by the profile of ResNet18 on CIFAR-100: far beyond pairs.
#[test]
fn seven_small_ones_are_between_what_mps_and_time_slicing_gave() {
    let shipped = read(include_str!("../../../../../predictors/published-a100-company.json")).expect("right");
    let seven = [alone(0.015, 0.173, 0.359); 7];
    let found = shipped.predict(CompanyMode::Mps, &seven, 1.0).expect("said");
    assert_eq!(found.extrapolated, Some(Extrapolated { measured: 2, asked: 7 }));
    assert!((1.98..5.35).contains(&found.gain.estimate) && found.gain.contains(5.35), "{:?}", found.gain);
}
