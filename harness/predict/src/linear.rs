//! Linear regression by least squares with a penalty, and with coefficients that are not negative. In: rows of inputs, a target each.
//! Out: coefficients. For few of them; absolute deviations are in `fit.rs`.

use crate::fit::{Matrix, Unfit, checked, dot, invert};

/// `intercept + Σ coefficient · input`.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub intercept: f64,
    pub coefficients: Vec<f64>,
}

impl Line {
    pub fn at(&self, input: &[f64]) -> f64 {
        self.intercept + dot(&self.coefficients, input)
    }
}

/// Ridge regression (Hoerl and Kennard 1970, doi 10.1080/00401706.1970.10488634) on inputs in deviations from their mean, in standard
/// deviations, so that one penalty suits all. An input that never changes has no coefficient.
pub fn ridge(inputs: &[Vec<f64>], targets: &[f64], penalty: f64) -> Result<Line, Unfit> {
    let columns = checked(inputs, targets)?;
    let rows = inputs.len() as f64;
    let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / rows;
    let centres: Vec<f64> = (0..columns).map(|j| mean(&mut inputs.iter().map(|input| input[j]))).collect();
    let spread = |j: usize| mean(&mut inputs.iter().map(|input| (input[j] - centres[j]).powi(2))).sqrt();
    let spreads: Vec<f64> = (0..columns).map(spread).collect();
    let centre = mean(&mut targets.iter().copied());
    let scaled = |input: &Vec<f64>| -> Vec<f64> {
        let of = |j: usize| if spreads[j] > 1e-9 { (input[j] - centres[j]) / spreads[j] } else { 0.0 };
        (0..columns).map(of).collect()
    };
    let scaled: Vec<Vec<f64>> = inputs.iter().map(scaled).collect();
    // Without any penalty an input that never changes would leave the matrix without an inverse.
    let diagonal = penalty.max(1e-9);
    let square = |i: usize, j: usize| scaled.iter().map(|row| row[i] * row[j]).sum::<f64>() + if i == j { diagonal } else { 0.0 };
    let squares: Matrix = (0..columns).map(|i| (0..columns).map(|j| square(i, j)).collect()).collect();
    let right: Vec<f64> = (0..columns).map(|i| scaled.iter().zip(targets).map(|(row, y)| row[i] * (y - centre)).sum()).collect();
    let inverse = invert(squares).ok_or(Unfit::Unsettled)?;
    let of = |j: usize| if spreads[j] > 1e-9 { dot(&inverse[j], &right) / spreads[j] } else { 0.0 };
    let coefficients: Vec<f64> = (0..columns).map(of).collect();
    Ok(Line { intercept: centre - dot(&coefficients, &centres), coefficients })
}

/// Non-negative least squares, without an intercept. Of each choice of coefficients that are above 0 there is one fit; the best of
/// those in which all of them are is the answer (Lawson and Hanson 1974, chapter 23, seeks it without trying all).
pub fn non_negative(inputs: &[Vec<f64>], targets: &[f64]) -> Result<Vec<f64>, Unfit> {
    let columns = checked(inputs, targets)?;
    let mut best: Option<(f64, Vec<f64>)> = None;
    for choice in 0..1usize << columns {
        let chosen: Vec<usize> = (0..columns).filter(|j| choice >> j & 1 == 1).collect();
        let Some(found) = least_squares(inputs, targets, &chosen, columns) else { continue };
        let error = |(input, y): (&Vec<f64>, &f64)| (y - dot(input, &found)).powi(2);
        let sum: f64 = inputs.iter().zip(targets).map(error).sum();
        if found.iter().all(|x| *x >= 0.0) && best.as_ref().is_none_or(|(least, _)| sum < *least) {
            best = Some((sum, found));
        }
    }
    best.map(|(_, found)| found).ok_or(Unfit::Unsettled)
}

/// None: the chosen columns say the same.
fn least_squares(inputs: &[Vec<f64>], targets: &[f64], chosen: &[usize], columns: usize) -> Option<Vec<f64>> {
    let scale = |j: usize| inputs.iter().map(|input| input[j].abs()).fold(0.0, f64::max);
    let scales: Vec<f64> = chosen.iter().map(|&j| scale(j)).collect();
    if scales.contains(&0.0) {
        return None;
    }
    let square = |a: usize, b: usize| -> f64 {
        inputs.iter().map(|input| input[chosen[a]] / scales[a] * input[chosen[b]] / scales[b]).sum()
    };
    let squares: Matrix = (0..chosen.len()).map(|a| (0..chosen.len()).map(|b| square(a, b)).collect()).collect();
    let right: Vec<f64> =
        (0..chosen.len()).map(|a| inputs.iter().zip(targets).map(|(input, y)| input[chosen[a]] / scales[a] * y).sum()).collect();
    let inverse = invert(squares)?;
    let mut found = vec![0.0; columns];
    for (a, &j) in chosen.iter().enumerate() {
        found[j] = dot(&inverse[a], &right) / scales[a];
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plane() -> (Vec<Vec<f64>>, Vec<f64>) {
        let inputs: Vec<Vec<f64>> = (0..12).map(|i| vec![f64::from(i), f64::from(i * i % 7)]).collect();
        let targets = inputs.iter().map(|x| 3.0 + 2.0 * x[0] - 0.5 * x[1]).collect();
        (inputs, targets)
    }

    #[test]
    fn without_a_penalty_a_plane_is_found_again() {
        let (inputs, targets) = plane();
        let line = ridge(&inputs, &targets, 0.0).expect("a fit");
        assert!((line.intercept - 3.0).abs() < 1e-6 && (line.coefficients[0] - 2.0).abs() < 1e-6, "{line:?}");
        assert!((line.at(&[1.0, 1.0]) - 4.5).abs() < 1e-6);
    }

    #[test]
    fn a_penalty_pulls_towards_the_mean_and_a_huge_one_leaves_nothing_else() {
        let (inputs, targets) = plane();
        let line = |penalty| ridge(&inputs, &targets, penalty).expect("a fit");
        assert!(line(5.0).coefficients[0] < line(0.1).coefficients[0]);
        let mean = targets.iter().sum::<f64>() / 12.0;
        assert!((line(1e12).at(&[100.0, 0.0]) - mean).abs() < 1e-6);
    }

    #[test]
    fn an_input_that_never_changes_has_no_coefficient() {
        let inputs: Vec<Vec<f64>> = (0..5).map(|i| vec![7.0, f64::from(i)]).collect();
        let targets: Vec<f64> = (0..5).map(f64::from).collect();
        let line = ridge(&inputs, &targets, 0.0).expect("a fit");
        assert_eq!(line.coefficients[0], 0.0);
        assert!((line.coefficients[1] - 1.0).abs() < 1e-6);
    }

    #[test]
    fn a_coefficient_that_would_be_negative_is_none_and_the_others_are_fitted_anew() {
        let inputs: Vec<Vec<f64>> = (1..9).map(|i| vec![1.0, f64::from(i), f64::from(i % 3)]).collect();
        let known = |weights: [f64; 3]| -> Vec<f64> { inputs.iter().map(|x| dot(x, &weights)).collect() };
        let found = non_negative(&inputs, &known([40.0, 2.0, 5.0])).expect("a fit");
        assert!((found[0] - 40.0).abs() < 1e-6 && (found[1] - 2.0).abs() < 1e-6 && (found[2] - 5.0).abs() < 1e-6, "{found:?}");
        let found = non_negative(&inputs, &known([40.0, -2.0, 5.0])).expect("a fit");
        assert!(found[1] == 0.0 && found[0] > 20.0 && found[2] >= 0.0, "{found:?}");
        assert_eq!(non_negative(&inputs, &[-1.0; 8]).expect("a fit"), vec![0.0; 3]);
    }

    #[test]
    fn rows_that_are_no_numbers_are_refused() {
        assert_eq!(ridge(&[vec![f64::NAN]], &[1.0], 1.0), Err(Unfit::NotFinite { row: 1 }));
        assert_eq!(ridge(&[], &[], 1.0), Err(Unfit::TooFewRows { rows: 0, columns: 1 }));
        assert_eq!(non_negative(&[vec![1.0], vec![]], &[1.0, 1.0]), Err(Unfit::Uneven { row: 2, found: 0, columns: 1 }));
    }
}
