use std::collections::BTreeMap;

use collo_text::Source;
use proptest::prelude::*;

use super::*;
use crate::conformal::{Interval, Width, WidthFrom};
use crate::file::{Conditions, Mark, PredictorLaw};
use crate::fit::Unfit;

fn a100() -> &'static Peaks {
    peaks_of("NVIDIA A100-SXM4-40GB").expect("known")
}

fn work(batch: u64, kernels: f64, growing_bytes: f64, flops: f64) -> Work {
    let kind = |kind, share: f64, flops| WorkOfKind { kind, flops, growing_bytes: share * growing_bytes, fixed_bytes: 1e8 };
    Work {
        batch,
        arithmetic: Arithmetic::TorchDefault,
        kernels,
        kinds: vec![kind(OperationKind::Convolution, 0.4, flops), kind(OperationKind::Other, 0.6, 0.0)],
    }
}

/// Families of a few batch sizes, whose activities are those of a law.
fn rows(families: usize) -> Vec<Row> {
    let of = |family: usize, batch: u64| {
        let size = 1.7f64.powi(family as i32);
        let work = work(batch, 150.0 + 30.0 * family as f64, 2e7 * size * batch as f64, 2e9 * size * batch as f64);
        let peaks = a100();
        let ln_active = Feature::LnActive.of(&work, peaks);
        let dram = 4.4 + 0.6 * Feature::LnTraffic.of(&work, peaks);
        let measured = Measured {
            sm_active_percent: Some((4.5 + 0.3 * ln_active).exp_m1()),
            gpu_utilisation_percent: Some((4.6 + 0.2 * ln_active).exp_m1()),
            dram_active_percent: Some(dram.exp_m1()),
            power_w: None,
            step_s: Some(1.5 * work.roofline_s(peaks, 1.0, 1.0) + 50e-6 * work.kernels),
        };
        let power_w = 60.0 + 2.0 * measured.sm_active_percent.unwrap() + 1.0 * measured.dram_active_percent.unwrap();
        let seven = SevenFeatures {
            convolutions: 10.0 + family as f64,
            linear: 1.0,
            activations: 9.0,
            other: 12.0,
            model_mb: 40.0 * size,
            gflops: size * batch as f64,
            batch_size: batch as f64,
        };
        let measured = Measured { power_w: Some(power_w), ..measured };
        Row {
            label: format!("{family} b{batch}"),
            family: format!("family {family}"),
            kind: format!("kind {}", family % 3),
            peaks,
            work,
            seven,
            measured,
        }
    };
    (0..families).flat_map(|family| [16, 32, 64, 128].map(|batch| of(family, batch))).collect()
}

fn predictor(rows: &[Row], mark: Mark) -> UtilisationPredictor {
    let conditions = Conditions { gpu: Some("NVIDIA A100-SXM4-40GB".into()), ..Conditions::default() };
    let law = fit_utilisation(rows).expect("a fit").law();
    UtilisationPredictor::new(law, "mine".into(), conditions, "a test".into(), mark)
}

#[test]
fn what_was_made_by_a_law_is_predicted_by_it_with_its_family_left_out() {
    let rows = rows(6);
    let fitted = fit_utilisation(&rows).expect("a fit");
    for (activity, fit) in &fitted.activities {
        assert!(fit.law.left_out.rmsle < 0.05, "{activity:?}: {:?}", fit.law.left_out);
        assert!(fit.law.left_out.constant_rmsle > 4.0 * fit.law.left_out.rmsle, "{activity:?}: {:?}", fit.law.left_out);
    }
    let law = &fitted.activities[&Activity::SmActive].law;
    assert!((law.coefficients[&Feature::LnActive] - 0.3).abs() < 0.01 && (law.intercept - 4.5).abs() < 0.05, "{law:?}");
    let time = fitted.time.expect("timed").law;
    assert!((time.times - 1.5).abs() < 1e-6 && (time.launch_s - 50e-6).abs() < 1e-9, "{time:?}");
    let power = fitted.power.expect("metered").law;
    assert!((power.idle_w - 60.0).abs() < 1e-6 && (power.sm_active_w - 200.0).abs() < 1e-6, "{power:?}");
    assert!((power.dram_active_w - 100.0).abs() < 1e-6 && fitted.without.is_empty(), "{power:?}");
}

/// The fault: the file's score was of percentages beyond 100, which are never predicted.
#[test]
fn the_score_in_a_file_is_that_of_what_is_predicted() {
    let busy = |row: Row| {
        let percent = row.measured.sm_active_percent.map(|percent| (1.8 * percent).min(100.0));
        Row { measured: Measured { sm_active_percent: percent, ..row.measured }, ..row }
    };
    let rows: Vec<Row> = rows(6).into_iter().map(busy).collect();
    assert!(rows.iter().filter(|row| row.measured.sm_active_percent == Some(100.0)).count() > 3);
    let fit = fit_utilisation(&rows).expect("a fit");
    let printed = judged(&rows, Some(&fit), None)[0].rmsle[&Activity::SmActive];
    assert!((fit.activities[&Activity::SmActive].law.left_out.rmsle - printed).abs() < 1e-12, "{printed}");
}

#[test]
fn a_familys_own_measurements_have_no_part_in_what_is_said_of_it() {
    let (honest, mut lying) = (rows(6), rows(6));
    for row in lying.iter_mut().filter(|row| row.family == "family 2") {
        row.measured.sm_active_percent = Some(0.1);
    }
    // Its interval has: others are predicted by fits with it in them, and that is where a width is from.
    let said = |rows: &[Row]| -> Vec<Option<f64>> {
        let fit = fit_activity(rows, Activity::SmActive).expect("a fit");
        let of_two = rows.iter().zip(fit.left_out).filter(|(row, _)| row.family == "family 2");
        of_two.map(|(_, said)| said.map(|said| said.estimate)).collect()
    };
    assert_eq!(said(&honest), said(&lying));
    assert_eq!(said(&honest).len(), 4);
}

#[test]
fn rmsle_is_that_of_one_plus_percent() {
    let found = rmsle([(std::f64::consts::E - 1.0, 0.0), (3.0, 3.0)]).expect("pairs");
    assert!((found - 0.5f64.sqrt()).abs() < 1e-12, "{found}");
    assert_eq!(rmsle([]), None);
    assert_eq!(rmsle([(-5.0, 0.0)]), Some(0.0), "below nothing is nothing");
}

#[test]
fn a_row_without_a_reading_is_in_no_fit_and_has_no_prediction_of_it() {
    let mut rows = rows(5);
    rows[0].measured.dram_active_percent = None;
    let fit = fit_activity(&rows, Activity::DramActive).expect("a fit");
    assert_eq!((fit.law.left_out.rows, fit.left_out[0], fit.left_out[1].is_some()), (19, None, true));
    let none: Vec<Row> = rows.iter().map(|row| Row { measured: Measured::default(), ..row.clone() }).collect();
    assert!(fit_utilisation(&none).is_err());
    let two: Vec<Row> = rows.into_iter().filter(|row| row.family.as_str() < "family 2").collect();
    assert_eq!(fit_activity(&two, Activity::SmActive).unwrap_err(), Unfit::TooFewFamilies { families: 2, needed: 3 });
}

#[test]
fn a_larger_batch_keeps_more_of_a_card_active_and_less_of_a_faster_card() {
    let (small, large) = (work(8, 200.0, 1e9, 1e11), work(128, 200.0, 16e9, 16e11));
    let h100 = peaks_of("NVIDIA H100 80GB HBM3").expect("known");
    assert!(small.active(a100()) < large.active(a100()) && large.active(h100) < large.active(a100()));
    assert!((0.0..=1.0).contains(&large.active(a100())));
    let nothing = Work { kernels: 0.0, kinds: Vec::new(), ..small };
    for feature in [Feature::LnActive, Feature::LnTraffic] {
        assert!(feature.of(&nothing, a100()).is_finite(), "{feature:?}");
    }
}

/// The fault of the feature before: it counted activations alone, so that a training whose work is in its weights looked empty.
#[test]
fn a_wide_layer_at_a_small_batch_has_its_work_in_its_weights() {
    let of = |fixed_bytes: f64| Work {
        kinds: vec![WorkOfKind { kind: OperationKind::Matmul, flops: 0.0, growing_bytes: 1e6, fixed_bytes }],
        ..work(8, 100.0, 0.0, 0.0)
    };
    assert!(of(1e11).active(a100()) > 20.0 * of(1e8).active(a100()));
}

#[test]
fn beyond_what_was_fitted_an_interval_is_wider_and_far_beyond_there_is_no_prediction() {
    let law = fit_activity(&rows(6), Activity::SmActive).expect("a fit").law;
    let of = |kernels: f64| Work { kernels, ..work(64, 200.0, 2e9, 2e11) };
    let width = |kernels: f64| law.predict(&of(kernels), a100(), 1.0).map(|said| (1.0 + said.high).ln() - (1.0 + said.low).ln());
    assert_eq!(law.beyond(&of(200.0), a100()), None, "150 to 300 operations were fitted");
    assert!(width(3000.0).expect("ten times") > 1.9 * width(300.0).expect("within"), "twice as wide at ten times the end");
    let far = law.beyond(&of(1e5), a100()).expect("beyond");
    assert_eq!((far.extent, far.is_out_of_range(), law.predict(&of(1e5), a100(), 1.0)), (Extent::Operations, true, None));
    insta::assert_snapshot!(far, @"100000 operations in a step, fitted on 150 to 300");
    let said = predictor(&rows(6), Mark::Own).predict(&of(1e5), a100(), 1.0);
    assert!(said.activities.is_empty() && said.power_w.is_none() && said.beyond.len() == 3, "{said:?}");
}

#[test]
fn a_kind_of_network_is_predicted_by_fits_of_the_others() {
    let honest = rows(6);
    let mut lying = honest.clone();
    for row in lying.iter_mut().filter(|row| row.kind == "kind 1") {
        row.measured.sm_active_percent = Some(0.1);
    }
    let said = |rows: &[Row]| -> Vec<Option<f64>> {
        let all = predict_kinds_left_out(rows, Activity::SmActive).expect("three kinds");
        let of_one = rows.iter().zip(all).filter(|(row, _)| row.kind == "kind 1");
        of_one.map(|(_, said)| said.map(|said| said.estimate)).collect()
    };
    assert_eq!((said(&honest), said(&honest).len()), (said(&lying), 8));
    let alike: Vec<Row> = honest.into_iter().map(|row| Row { kind: "one".into(), ..row }).collect();
    assert_eq!(predict_kinds_left_out(&alike, Activity::SmActive), None);
}

#[test]
fn the_roofline_of_convolutions_is_by_tensor_cores_where_the_precision_has_them() {
    let seconds = |arithmetic| Work { arithmetic, ..work(64, 100.0, 0.0, 156e12) }.roofline_s(a100(), 1.0, 1.0);
    assert!((seconds(Arithmetic::TorchDefault) - 1.0).abs() < 0.01);
    assert!((seconds(Arithmetic::Fp32) - 8.0).abs() < 0.01);
    assert!((seconds(Arithmetic::Half) - 0.5).abs() < 0.01);
}

#[test]
fn a_step_is_known_by_the_first_rung_that_there_is() {
    let law = fit_time(&rows(5)).expect("a fit").law;
    let of = |batch: u64| work(batch, 200.0, 1e8 * batch as f64, 1e10 * batch as f64);
    let unmeasured = Unmeasured { work: &of, peaks: a100(), law: &law, widened: 1.0 };
    let stored = |all: &[(u64, f64)]| -> Vec<StoredStep> {
        all.iter().map(|(batch_size, step_s)| StoredStep { batch_size: *batch_size, step_s: *step_s }).collect()
    };
    let time = |steps: &[(u64, f64)]| step_time(64, &stored(steps), Some(unmeasured)).expect("known");
    let own = time(&[(64, 0.2), (32, 9.0), (64, 0.3)]);
    assert_eq!((own.rung, own.seconds), (Rung::Stored, Interval { estimate: 0.25, low: 0.2, high: 0.3 }));
    let line = time(&[(32, 0.11), (128, 0.29)]);
    assert_eq!(line.rung, Rung::OtherBatches);
    assert!((line.seconds.estimate - 0.17).abs() < 1e-6, "{line:?}");
    let one = time(&[(32, 0.1)]);
    assert_eq!(one.rung, Rung::OtherBatch);
    assert!(0.1 < one.seconds.estimate && one.seconds.estimate < 0.2, "what is launched does not grow: {one:?}");
    let none = time(&[]);
    assert_eq!(none.rung, Rung::Roofline);
    assert!(none.seconds.low <= none.seconds.estimate && none.seconds.estimate <= none.seconds.high);
    let elsewhere = Unmeasured { peaks: peaks_of("NVIDIA A30").expect("known"), ..unmeasured };
    let scaled = step_time(64, &[], Some(elsewhere)).expect("known");
    assert_eq!(scaled.rung, Rung::ScaledRoofline);
    assert!(scaled.seconds.estimate > none.seconds.estimate, "a slower card");
    assert!(step_time(64, &[], None).expect_err("nothing is known").contains("no roofline"));
    let bare = step_time(64, &stored(&[(32, 0.1)]), None).expect("known");
    assert!((bare.seconds.estimate - 0.2).abs() < 1e-9, "without a roofline as the items");
}

#[test]
fn a_line_through_batch_sizes_never_falls_below_nothing() {
    let stored = [(32, 0.3), (64, 0.2)].map(|(batch_size, step_s)| StoredStep { batch_size, step_s });
    let said = step_time(512, &stored, None).expect("known");
    assert!(said.seconds.estimate > 0.0 && said.rung == Rung::OtherBatches, "{said:?}");
}

#[test]
fn power_is_said_of_the_card_alone_that_it_was_read_on() {
    let rows = rows(6);
    let mine = predictor(&rows, Mark::Own);
    let here = mine.predict(&rows[0].work, a100(), 1.0);
    assert!((here.power_w.expect("known").estimate / rows[0].measured.power_w.expect("known") - 1.0).abs() < 0.05);
    let (power, step, energy) = (here.power_w.unwrap(), here.step_s.unwrap(), here.energy_j.unwrap());
    assert!((energy.estimate - power.estimate * step.estimate).abs() < 1e-9);
    // As uncertain as the activities that it follows from, and more.
    let law = mine.power_on(a100()).expect("its own card");
    let exactly = |percent: f64| Interval { estimate: percent, low: percent, high: percent };
    let certain = law.predict(exactly(40.0), exactly(10.0), 1.0);
    let vague = law.predict(Interval { estimate: 40.0, low: 25.0, high: 60.0 }, exactly(10.0), 1.0);
    assert_eq!(vague.estimate, certain.estimate);
    assert!(
        (vague.low - (certain.low / certain.estimate) * (certain.estimate - 0.15 * law.sm_active_w)).abs() < 1e-9,
        "{vague:?}"
    );
    assert!(
        (vague.high - (certain.high / certain.estimate) * (certain.estimate + 0.20 * law.sm_active_w)).abs() < 1e-9,
        "{vague:?}"
    );
    let there = mine.predict(&rows[0].work, peaks_of("NVIDIA A30").expect("known"), 1.0);
    assert!(there.power_w.is_none() && there.energy_j.is_none() && there.step_s.is_some());
}

#[test]
fn percentages_stay_between_none_and_all_however_wide_the_interval() {
    let rows = rows(6);
    let said = predictor(&rows, Mark::Own).predict(&work(4096, 10.0, 1e13, 1e15), a100(), 10.0);
    for interval in said.activities.values() {
        assert!(0.0 <= interval.low && interval.low <= interval.estimate, "{interval:?}");
        assert!(interval.estimate <= interval.high && interval.high <= 100.0, "{interval:?}");
    }
}

fn read(text: &str) -> Result<UtilisationPredictor, String> {
    UtilisationPredictor::read(&Source::file("mine.json", text)).map_err(|e| e.what().to_string())
}

#[test]
fn a_predictor_is_read_as_it_was_written() {
    let mine = predictor(&rows(6), Mark::Simulated);
    assert_eq!(read(&mine.to_text()).as_ref(), Ok(&mine));
    assert_eq!((mine.law.families(), mine.law.rows(), mine.mark), (6, 24, Mark::Simulated));
}

#[test]
fn a_file_that_cannot_serve_says_why() {
    let text = predictor(&rows(6), Mark::Own).to_text();
    let without = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        read(&text.replacen(from, to, 1)).expect_err("it cannot serve")
    };
    assert!(without("\"log-linear-2\"", "\"log-linear-9\"").contains("does not have"));
    assert!(without("\"ln_active\"", "\"ln_traffic\"").contains("not those of"));
    assert!(without("\"widening\": 1.5", "\"widening\": 99").contains("`widening` is 99"));
    assert!(without("\"schema\": 1", "\"schema\": 1, \"more\": 1").contains("unknown field"));
    assert!(without("\"utilisation\"", "\"memory\"").contains("predicts `memory`"));
    assert!(without("\"below_log\": ", "\"below_log\": 9").contains("below_log"));
    let mut empty = predictor(&rows(6), Mark::Own);
    empty.law.targets = BTreeMap::new();
    assert!(read(&empty.to_text()).expect_err("it predicts nothing").contains("`targets` is empty"));
}

proptest! {
    #[test]
    fn no_text_makes_reading_panic_or_a_prediction_no_number(at in 0usize..3000, put in "[-0-9eE.,:{}\"a-z]{0,6}") {
        let mut text = predictor(&rows(3), Mark::Own).to_text();
        let at = at.min(text.len());
        let end = (at + put.len()).min(text.len());
        text.replace_range(at..end, &put);
        if let Ok(found) = read(&text) {
            let said = found.predict(&work(32, 100.0, 1e9, 1e11), a100(), 3.0);
            for interval in said.activities.values().chain(&said.step_s).chain(&said.power_w) {
                prop_assert!(interval.estimate.is_finite() && interval.low.is_finite() && interval.high.is_finite());
            }
        }
    }
}

/// Fitted on published profiles of named networks, random MLPs and random CNNs; `collo predict evaluate` of their tables printed the scores.
#[test]
fn the_shipped_predictor_is_published_and_met_its_aim_on_architectures_left_out() {
    let text = include_str!("../../../../predictors/published-a100-utilisation.json");
    let shipped = read(text).expect("right");
    assert_eq!((shipped.mark, shipped.name.as_str()), (Mark::Published, "published-a100-utilisation"));
    assert!(shipped.source.contains("AEGIS") && shipped.source.contains("GPUMemNet"));
    let left_out = |activity: Activity| shipped.law.targets[&activity].left_out;
    assert_eq!((left_out(Activity::SmActive).rows, left_out(Activity::SmActive).families), (223, 18));
    let rmsle = |activity: Activity| left_out(activity).rmsle;
    assert!(rmsle(Activity::SmActive) <= 0.18 && rmsle(Activity::GpuUtilisation) <= 0.22 && rmsle(Activity::DramActive) <= 0.21);
    assert_eq!(shipped.law.targets[&Activity::SmActive].width.from, WidthFrom::Spread);
    assert!(shipped.law.power.is_none(), "nobody published it");
    let time = shipped.law.time.expect("from published epochs");
    assert!(!time.is_scaled(a100()) && time.is_scaled(peaks_of("NVIDIA L4").expect("known")));
}

/// Estimates of a training step on three GPUs by the shipped predictor: SM active, GPU utilisation, DRAM active, seconds.
#[test]
fn the_shipped_predictor_predicts_one_step_on_three_gpus() {
    let shipped = read(include_str!("../../../../predictors/published-a100-utilisation.json")).expect("right");
    let said = |gpu: &str, arithmetic: Arithmetic| -> String {
        let said = shipped.predict(&Work { arithmetic, ..work(64, 300.0, 6e9, 8e12) }, peaks_of(gpu).expect("known"), 1.0);
        let all = said.activities.values().chain(&said.step_s).map(|interval| format!("{:.4}", interval.estimate));
        all.collect::<Vec<_>>().join(" ")
    };
    insta::assert_snapshot!(said("NVIDIA A100-SXM4-40GB", Arithmetic::TorchDefault), @"90.0636 85.8439 5.2580 0.1308");
    insta::assert_snapshot!(said("NVIDIA L40S", Arithmetic::Half), @"81.6715 81.6524 11.0142 0.0723");
    insta::assert_snapshot!(said("Tesla V100-SXM2-32GB", Arithmetic::Tf32), @"97.9562 89.6169 1.4804 1.1086");
}

#[test]
fn a_width_that_no_family_has_shown_is_the_spreads() {
    let law = fit_activity(&rows(6), Activity::SmActive).expect("a fit").law;
    assert_eq!((law.width.from, law.width.families, law.width.rows), (WidthFrom::Spread, 6, 24));
    let wider = law.predict(&rows(6)[0].work, a100(), 3.0).expect("a row of its own");
    let own = law.predict(&rows(6)[0].work, a100(), 1.0).expect("a row of its own");
    assert!(wider.low <= own.low && own.high <= wider.high && wider.estimate == own.estimate);
    assert!(Width { above_log: 4.0, ..law.width }.check().is_err());
}

#[test]
fn the_papers_regressors_are_the_same_every_time_and_worse_on_what_they_have_not_seen() {
    let rows = rows(8);
    let found = regressors(&rows, Activity::SmActive, 3);
    assert_eq!(found, regressors(&rows, Activity::SmActive, 3));
    assert_eq!(found.iter().map(|(regressor, _)| *regressor).collect::<Vec<_>>(), Regressor::ALL);
    let of = |wanted: Regressor| found.iter().find(|(regressor, _)| *regressor == wanted).expect("one").1;
    let forest = of(Regressor::Forest);
    assert!(forest.shuffled.expect("enough rows") < forest.left_out.expect("families"), "{forest:?}");
    assert_eq!(regressor_left_out(&rows, Activity::SmActive, Regressor::Forest), forest.left_out);
    let law = law_scores(&rows, Activity::SmActive, 3).expect("a fit");
    assert!(law.left_out.expect("families") < forest.left_out.expect("families"), "{law:?}");
}

#[test]
fn too_few_rows_are_not_split() {
    let scores = regressors(&rows(3)[..9], Activity::SmActive, 2);
    assert!(scores.iter().all(|(_, scores)| scores.shuffled.is_none() && scores.left_out.is_some()), "{scores:?}");
}
