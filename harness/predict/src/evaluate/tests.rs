use super::*;
use crate::conformal::WidthFrom;

const GIB: f64 = 1_073_741_824.0;

/// Rows that follow the formula exactly, three batch sizes of each family.
fn rows(families: usize) -> Vec<MeasuredRow> {
    let known = Coefficients { context_bytes: 0.5 * GIB, per_reserved_byte: 1.02, per_workspace_byte: 1.6 };
    let mut all = Vec::new();
    for family in 0..families {
        for batch in [32, 64, 128] {
            let held_bytes = (batch * (20 + family as u64 * 7 % 30)) << 20;
            let workspace_bytes = (batch * (family as u64 * 5 % 9)) << 20;
            all.push(MeasuredRow {
                label: format!("net{family} b{batch}"),
                family: format!("net{family}"),
                measured_bytes: known.bytes(held_bytes, workspace_bytes),
                held_bytes,
                workspace_bytes,
            });
        }
    }
    all
}

fn scored(measured: f64, estimate: Option<f64>) -> Scored {
    let width = Width { upper_log: 1.5f64.ln(), below_log: 1.5f64.ln(), above_log: 1.5f64.ln(), ..Width::PUBLISHED };
    let bounds = estimate.map(|estimate| Bounds::around(estimate, width));
    Scored { label: format!("{measured}"), measured_bytes: measured, estimate_bytes: estimate, bounds }
}

#[test]
fn rows_that_follow_the_formula_give_its_coefficients() {
    let fitted = fit_memory(&rows(8)).unwrap();
    let Coefficients { context_bytes, per_reserved_byte, per_workspace_byte } = fitted.law.coefficients;
    assert!((context_bytes / GIB - 0.5).abs() < 1e-6);
    assert!((per_reserved_byte - 1.02).abs() < 1e-9);
    assert!((per_workspace_byte - 1.6).abs() < 1e-6);
    let found = fitted.law.left_out;
    assert_eq!((found.rows, found.families, found.exceeded), (24, 8, 0));
    assert!(found.worst_relative_error < 1e-6);
    assert_eq!(fitted.law.width.from, WidthFrom::Published);
}

#[test]
fn a_row_is_predicted_by_a_fit_that_has_not_seen_its_family() {
    let mut all = rows(8);
    for row in all.iter_mut().filter(|row| row.family == "net3") {
        row.measured_bytes *= 3.0;
    }
    let fitted = fit_memory(&all).unwrap();
    let labels: Vec<&str> = fitted.left_out.iter().map(|row| row.label.as_str()).collect();
    assert_eq!(labels, all.iter().map(|row| row.label.as_str()).collect::<Vec<_>>());
    for row in &fitted.left_out {
        let ratio = row.measured_bytes / row.estimate_bytes.unwrap();
        let wanted = if row.label.starts_with("net3 ") { 3.0 } else { 1.0 };
        assert!((ratio - wanted).abs() < 1e-6, "{} is {ratio}", row.label);
    }
    assert_eq!(score(&fitted.left_out).unwrap().spikes, 3);
}

#[test]
fn with_twenty_families_and_more_the_width_is_their_own() {
    let mut all = rows(30);
    for (i, row) in all.iter_mut().enumerate() {
        row.measured_bytes *= 1.0 + 0.001 * (i % 7) as f64;
    }
    let fitted = fit_memory(&all).unwrap();
    assert_eq!((fitted.law.width.from, fitted.law.width.families, fitted.law.width.rows), (WidthFrom::Families, 30, 90));
    assert!(fitted.law.width.upper_log < 0.01);
    let bounded = score(&fitted.left_out).unwrap().bounded.unwrap();
    assert!(bounded.covered * 100 >= 90 * bounded.rows, "{bounded:?}");
}

#[test]
fn the_context_of_another_machine_is_fitted_alone() {
    let known = Coefficients { context_bytes: 9.0 * GIB, per_reserved_byte: 1.02, per_workspace_byte: 1.6 };
    let scored = refit_context(&rows(3), known, Width::PUBLISHED).unwrap();
    assert!(score(&scored).unwrap().worst_relative_error < 1e-9);
    assert_eq!(refit_context(&rows(1), known, Width::PUBLISHED).unwrap_err(), Unfit::OneFamily);
    let fitted = context(&rows(2), known).unwrap();
    assert!((fitted.context_bytes / GIB - 0.5).abs() < 1e-6);
    assert_eq!(Coefficients { context_bytes: known.context_bytes, ..fitted }, known);
}

#[test]
fn of_many_families_no_row_is_in_the_fit_that_predicts_it() {
    let all = rows(200);
    let folds = folds(&all).unwrap();
    assert_eq!(folds.count, 40, "no more fits than that");
    for fold in 0..folds.count {
        let others = folds.others(&all, fold);
        let mine = all.iter().zip(&folds.of_row).filter(|(_, of)| **of == fold);
        for (row, _) in mine {
            assert!(others.iter().all(|other| other.family != row.family), "{}", row.family);
        }
        assert!(others.len() > all.len() / 2);
    }
}

#[test]
fn a_score_counts_what_its_words_say() {
    let rows = [
        scored(100.0, Some(90.0)),
        scored(100.0, Some(120.0)),
        scored(100.0, Some(101.0)),
        scored(1000.0, Some(400.0)),
        scored(100.0, None),
        scored(100.0, Some(f64::NAN)),
    ];
    let found = score(&rows).unwrap();
    assert_eq!((found.rows, found.without, found.under, found.spikes), (4, 2, 2, 1));
    assert_eq!(found.worst_row, "1000");
    assert!((found.worst_relative_error - 0.6).abs() < 1e-12);
    assert!((found.median_error_bytes - 15.0).abs() < 1e-12);
    assert!((found.median_relative_error - 0.15).abs() < 1e-12);
    let bounded = found.bounded.unwrap();
    assert_eq!((bounded.rows, bounded.covered, bounded.exceeded), (4, 3, 1));
    assert!((bounded.worst_excess_bytes - 400.0).abs() < 1e-9);
    assert_eq!(score(&[scored(100.0, None)]), None);
    assert_eq!(score(&[]), None);
}

#[test]
fn rows_that_cannot_be_judged_are_refused() {
    assert_eq!(fit_memory(&[]).unwrap_err(), Unfit::TooFewRows { rows: 0, columns: 1 });
    assert_eq!(fit_memory(&rows(3)).unwrap_err(), Unfit::TooFewFamilies { families: 3, needed: 4 });
    let mut all = rows(3);
    all[1].measured_bytes = 0.0;
    assert!(matches!(fit_memory(&all).unwrap_err(), Unfit::NotMeasured { .. }));
    all[1].measured_bytes = f64::NAN;
    assert!(matches!(fit_memory(&all).unwrap_err(), Unfit::NotMeasured { .. }));
}

#[test]
fn with_few_architectures_only_the_context_is_fitted() {
    let known = Coefficients { context_bytes: 9.0 * GIB, per_reserved_byte: 1.02, per_workspace_byte: 1.6 };
    for families in [1, 3] {
        let fitted = fit_context(&rows(families), known, Factors::Published).unwrap();
        assert!((fitted.law.coefficients.context_bytes / GIB - 0.5).abs() < 1e-6);
        assert_eq!(Coefficients { context_bytes: known.context_bytes, ..fitted.law.coefficients }, known);
        assert_eq!((fitted.law.covariance, fitted.law.width.from), (None, WidthFrom::Published));
        let found = fitted.law.left_out;
        assert_eq!((found.rows, found.families), (3 * families, families));
        assert!(found.worst_relative_error < 1e-9);
    }
    // One measurement has taught itself nothing: it is judged by what was known before.
    let alone = fit_context(&rows(1)[..1], known, Factors::Published).unwrap();
    assert!((alone.law.coefficients.context_bytes / GIB - 0.5).abs() < 1e-6);
    assert!(alone.left_out[0].estimate_bytes.unwrap() > 8.0 * GIB);
    assert_eq!(fit_context(&[], known, Factors::Published).unwrap_err(), Unfit::TooFewRows { rows: 0, columns: 1 });
}
