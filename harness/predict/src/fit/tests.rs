use super::*;
use proptest::prelude::*;

fn sum_of_errors(inputs: &[Vec<f64>], targets: &[f64], coefficients: &[f64]) -> f64 {
    inputs.iter().zip(targets).map(|(input, y)| (y - dot(input, coefficients)).abs()).sum()
}

fn near(found: &[f64], wanted: &[f64]) {
    assert_eq!(found.len(), wanted.len());
    let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-6 * b.abs().max(1.0);
    assert!(found.iter().zip(wanted).all(close), "{found:?}, not {wanted:?}");
}

#[test]
fn a_constant_is_fitted_by_the_median() {
    let ones = vec![vec![1.0]; 5];
    near(&fit_absolute(&ones, &[1.0, 2.0, 3.0, 40.0, 500.0]).unwrap(), &[3.0]);
}

#[test]
fn a_slope_is_fitted_by_the_weighted_median_of_the_ratios() {
    let inputs: Vec<Vec<f64>> = [1.0, 2.0, 3.0, 10.0].map(|x| vec![x]).to_vec();
    // Ratios 5, 1, 2, 4, with the weights 1, 2, 3, 10.
    near(&fit_absolute(&inputs, &[5.0, 2.0, 6.0, 40.0]).unwrap(), &[4.0]);
}

#[test]
fn rows_on_a_plane_give_it_back_whatever_a_few_others_are() {
    let mut inputs = Vec::new();
    let mut targets = Vec::new();
    for i in 0..40 {
        let (r, x) = (1e9 * (1.0 + f64::from(i * 7 % 13)), 1e7 * f64::from(i * 5 % 11));
        inputs.push(vec![1.0, r, x]);
        // A search spike in every tenth row.
        targets.push((5.4e8 + 1.02 * r + 1.6 * x) * if i % 10 == 3 { 7.0 } else { 1.0 });
    }
    near(&fit_absolute(&inputs, &targets).unwrap(), &[5.4e8, 1.02, 1.6]);
}

#[test]
fn a_coefficient_that_would_be_negative_is_zero() {
    let inputs: Vec<Vec<f64>> = (0..10).map(|i| vec![1.0, f64::from(i)]).collect();
    let targets: Vec<f64> = (0..10).map(|i| 100.0 - f64::from(i)).collect();
    let found = fit_absolute(&inputs, &targets).unwrap();
    assert_eq!(found[1], 0.0);
    assert!((95.0..=96.0).contains(&found[0]), "any median of the targets: {found:?}");
}

#[test]
fn a_column_of_zeros_has_no_coefficient() {
    let inputs = vec![vec![2.0, 0.0]; 4];
    near(&fit_absolute(&inputs, &[4.0, 4.0, 4.0, 4.0]).unwrap(), &[2.0, 0.0]);
    near(&fit_absolute(&inputs, &[0.0; 4]).unwrap(), &[0.0, 0.0]);
}

#[test]
fn rows_that_cannot_be_fitted_are_refused() {
    let row = |x: f64| vec![1.0, x];
    let refused = |inputs: &[Vec<f64>], targets: &[f64]| fit_absolute(inputs, targets).unwrap_err();
    assert_eq!(refused(&[], &[]), Unfit::TooFewRows { rows: 0, columns: 1 });
    assert_eq!(refused(&[row(1.0)], &[1.0]), Unfit::TooFewRows { rows: 1, columns: 2 });
    assert_eq!(refused(&[row(1.0), row(f64::NAN)], &[1.0, 2.0]), Unfit::NotFinite { row: 2 });
    assert_eq!(refused(&[row(1.0), row(2.0)], &[f64::INFINITY, 2.0]), Unfit::NotFinite { row: 1 });
    assert_eq!(refused(&[row(1.0), vec![1.0]], &[1.0, 2.0]), Unfit::Uneven { row: 2, found: 1, columns: 2 });
    assert_eq!(refused(&vec![vec![1.0; 7]; 9], &[1.0; 9]), Unfit::TooManyColumns { columns: 7 });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every corner of planes is tried: none is better.
    #[test]
    fn no_corner_has_a_smaller_sum(
        rows in proptest::collection::vec((1.0f64..10.0, -5.0f64..5.0, -20.0f64..20.0), 2..9),
        whole in any::<bool>(),
    ) {
        let round = |x: f64| if whole { x.round() } else { x };
        let inputs: Vec<Vec<f64>> = rows.iter().map(|(a, b, _)| vec![round(*a), round(*b)]).collect();
        let targets: Vec<f64> = rows.iter().map(|(_, _, y)| round(*y)).collect();
        let found = fit_absolute(&inputs, &targets).unwrap();
        prop_assert!(found.iter().all(|x| *x >= 0.0));
        let sum = sum_of_errors(&inputs, &targets, &found);
        let mut planes: Vec<(f64, f64, f64)> =
            inputs.iter().zip(&targets).map(|(input, y)| (input[0], input[1], *y)).collect();
        planes.extend([(1.0, 0.0, 0.0), (0.0, 1.0, 0.0)]);
        for (i, a) in planes.iter().enumerate() {
            for b in &planes[..i] {
                let size = a.0 * b.1 - a.1 * b.0;
                let corner = [(a.2 * b.1 - a.1 * b.2) / size, (a.0 * b.2 - a.2 * b.0) / size];
                if size.abs() > 1e-9 && corner.iter().all(|x| *x >= 0.0) {
                    let other = sum_of_errors(&inputs, &targets, &corner);
                    prop_assert!(sum <= other + 1e-6 * (1.0 + other), "{found:?} has {sum}, {corner:?} has {other}");
                }
            }
        }
    }

    #[test]
    fn any_finite_rows_are_fitted_or_refused(
        rows in proptest::collection::vec((proptest::collection::vec(-1e15f64..1e15, 3), -1e15f64..1e15), 0..40),
    ) {
        let (inputs, targets): (Vec<Vec<f64>>, Vec<f64>) = rows.into_iter().unzip();
        if let Ok(found) = fit_absolute(&inputs, &targets) {
            prop_assert!(found.iter().all(|x| x.is_finite() && *x >= 0.0));
        }
    }
}
