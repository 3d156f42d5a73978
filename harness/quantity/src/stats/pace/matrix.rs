//! The few operations on matrices that a pace needs. In and out: plain vectors.

/// Σ of the products.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// A symmetric matrix of a diagonal and its neighbours.
pub struct Tridiagonal {
    diagonal: Vec<f64>,
    beside: Vec<f64>,
}

impl Tridiagonal {
    /// The inverse of `ratio` × `correlation`^distance between `n` places.
    pub fn autoregressive(n: usize, correlation: f64, ratio: f64) -> Self {
        let unit = 1.0 / (ratio * (1.0 - correlation.powi(2)));
        let at = |place: usize| if place == 0 || place + 1 == n { unit } else { unit * (1.0 + correlation.powi(2)) };
        Tridiagonal { diagonal: (0..n).map(at).collect(), beside: vec![-correlation * unit; n.saturating_sub(1)] }
    }

    pub fn plus_identity(mut self) -> Self {
        self.diagonal.iter_mut().for_each(|d| *d += 1.0);
        self
    }

    /// The pivots of elimination.
    fn pivots(&self) -> Vec<f64> {
        let mut pivots = self.diagonal.clone();
        for row in 1..pivots.len() {
            pivots[row] -= self.beside[row - 1].powi(2) / pivots[row - 1];
        }
        pivots
    }

    pub fn log_determinant(&self) -> f64 {
        self.pivots().iter().map(|pivot| pivot.ln()).sum()
    }

    /// The solution x of M x = `right`.
    pub fn solve(&self, right: &[f64]) -> Vec<f64> {
        let pivots = self.pivots();
        let mut x = right.to_vec();
        for row in 1..x.len() {
            x[row] -= self.beside[row - 1] / pivots[row - 1] * x[row - 1];
        }
        for row in (0..x.len()).rev() {
            let after = x.get(row + 1).map_or(0.0, |next| self.beside[row] * next);
            x[row] = (x[row] - after) / pivots[row];
        }
        x
    }
}

/// A positive definite matrix, factorised.
#[derive(Debug, Clone)]
pub enum Factor {
    Diagonal(Vec<f64>),
    /// The lower triangle of its Cholesky factor, row by row.
    Cholesky(Vec<Vec<f64>>),
}

impl Factor {
    /// `None` unless all are positive.
    pub fn diagonal(values: Vec<f64>) -> Option<Factor> {
        values.iter().all(|value| *value > 0.0).then_some(Factor::Diagonal(values))
    }

    /// `None` unless it is positive definite.
    pub fn cholesky(mut rows: Vec<Vec<f64>>) -> Option<Factor> {
        for row in 0..rows.len() {
            let (above, below) = rows.split_at_mut(row);
            let own = &mut below[0];
            own.truncate(row + 1);
            for (column, other) in above.iter().enumerate() {
                own[column] = (own[column] - dot(&own[..column], &other[..column])) / other[column];
            }
            let pivot = own[row] - dot(&own[..row], &own[..row]);
            if pivot.is_nan() || pivot <= 0.0 {
                return None;
            }
            own[row] = pivot.sqrt();
        }
        Some(Factor::Cholesky(rows))
    }

    pub fn log_determinant(&self) -> f64 {
        match self {
            Factor::Diagonal(values) => values.iter().map(|value| value.ln()).sum(),
            Factor::Cholesky(rows) => rows.iter().enumerate().map(|(row, of)| 2.0 * of[row].ln()).sum(),
        }
    }

    /// L⁻¹ × a vector, of M = L Lᵀ.
    fn forward(&self, vector: &[f64]) -> Vec<f64> {
        match self {
            Factor::Diagonal(values) => vector.iter().zip(values).map(|(v, value)| v / value.sqrt()).collect(),
            Factor::Cholesky(rows) => {
                let mut x: Vec<f64> = Vec::with_capacity(rows.len());
                for (row, of) in rows.iter().enumerate() {
                    x.push((vector[row] - dot(&of[..row], &x)) / of[row]);
                }
                x
            }
        }
    }

    /// The solution x of M x = `right`.
    pub fn solve(&self, right: &[f64]) -> Vec<f64> {
        let mut x = self.forward(right);
        match self {
            Factor::Diagonal(values) => x.iter_mut().zip(values).for_each(|(x, value)| *x /= value.sqrt()),
            Factor::Cholesky(rows) => {
                for row in (0..rows.len()).rev() {
                    x[row] /= rows[row][row];
                    let (before, at) = x.split_at_mut(row);
                    before.iter_mut().zip(&rows[row]).for_each(|(x, l)| *x -= l * at[0]);
                }
            }
        }
        x
    }

    /// vᵀ M⁻¹ v of a vector that is 0 except at these places.
    pub fn inverse_form(&self, at: &[(usize, f64)]) -> f64 {
        let size = match self {
            Factor::Diagonal(values) => values.len(),
            Factor::Cholesky(rows) => rows.len(),
        };
        let mut vector = vec![0.0; size];
        at.iter().for_each(|(place, value)| vector[*place] += value);
        let half = self.forward(&vector);
        dot(&half, &half)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solutions_solve_and_determinants_are_those_worked_by_hand() {
        let rows = vec![vec![4.0, 2.0, 1.0], vec![2.0, 5.0, 3.0], vec![1.0, 3.0, 6.0]];
        let factor = Factor::cholesky(rows.clone()).expect("positive definite");
        let x = factor.solve(&[1.0, 2.0, 3.0]);
        for (row, right) in rows.iter().zip([1.0, 2.0, 3.0]) {
            assert!((dot(row, &x) - right).abs() < 1e-12);
        }
        assert!((factor.log_determinant() - 67f64.ln()).abs() < 1e-12);
        assert!((factor.inverse_form(&[(0, 1.0), (1, 2.0), (2, 3.0)]) - dot(&x, &[1.0, 2.0, 3.0])).abs() < 1e-12);
        assert!(Factor::cholesky(vec![vec![1.0, 2.0], vec![2.0, 1.0]]).is_none() && Factor::diagonal(vec![0.0]).is_none());
    }

    #[test]
    fn an_autoregressive_precision_is_the_inverse_of_its_covariance() {
        let (n, correlation, ratio) = (5, 0.8, 3.0);
        let precision = Tridiagonal::autoregressive(n, correlation, ratio);
        let covariance = |a: usize, b: usize| ratio * f64::powi(correlation, a.abs_diff(b) as i32);
        for column in 0..n {
            let unit: Vec<f64> = (0..n).map(|row| f64::from(u8::from(row == column))).collect();
            for (row, found) in precision.solve(&unit).iter().enumerate() {
                assert!((found - covariance(row, column)).abs() < 1e-10, "{row} {column}: {found}");
            }
        }
        assert!((precision.log_determinant() + 5.0 * ratio.ln() + 4.0 * (1.0 - correlation.powi(2)).ln()).abs() < 1e-10);
    }
}
