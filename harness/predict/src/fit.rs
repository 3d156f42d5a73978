//! Linear regression by least absolute deviations, with coefficients that are not negative. In: rows of inputs, a target each.
//! Out: the coefficients whose errors have the least sum of absolute values.
//!
//! Squares would let a few rows, such as those in which cuDNN's search took many times the footprint, decide alone. The optimum is
//! at a corner where as many rows or bounds hold exactly as there are coefficients; from corner to corner along edges, each step as
//! far as the sum falls (Barrodale and Roberts 1973, doi 10.1137/0710069).

use crate::seeded::share;

/// The most coefficients.
const COLUMNS: usize = 6;
/// Corners; each is better than the one before, and a hundred are many.
const MOST_STEPS: usize = 10_000;
/// Relative to the largest target: keeps rows from meeting in one corner, where edges can have no length.
const APART: f64 = 1e-9;

/// Why there are no coefficients.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error("too few rows for {columns} coefficients: {rows}")]
    TooFewRows { rows: usize, columns: usize },
    #[error("row {row} has {found} inputs, not {columns}")]
    Uneven { row: usize, found: usize, columns: usize },
    #[error("row {row} has a number that is not finite")]
    NotFinite { row: usize },
    #[error("the memory of row {row} was not measured: it is not above 0")]
    NotMeasured { row: usize },
    #[error("{columns} coefficients are more than {COLUMNS}")]
    TooManyColumns { columns: usize },
    #[error("all rows are of one family, so none can be left out")]
    OneFamily,
    #[error("{families} architectures are too few for all coefficients, which take {needed}")]
    TooFewFamilies { families: usize, needed: usize },
    #[error("the fit did not settle")]
    Unsettled,
}

/// The coefficients, in the order of the inputs.
pub fn fit_absolute(inputs: &[Vec<f64>], targets: &[f64]) -> Result<Vec<f64>, Unfit> {
    let (rows, columns) = (inputs.len(), checked(inputs, targets)?);
    if columns > COLUMNS {
        return Err(Unfit::TooManyColumns { columns });
    }
    if rows < columns {
        return Err(Unfit::TooFewRows { rows, columns });
    }
    let largest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, |most: f64, x| most.max(x.abs()));
    let target_scale = largest(&mut targets.iter().copied());
    if target_scale == 0.0 {
        return Ok(vec![0.0; columns]);
    }
    let scales: Vec<f64> = (0..columns).map(|j| largest(&mut inputs.iter().map(|input| input[j]))).collect();
    let scaled = |x: f64, scale: f64| if scale > 0.0 { x / scale } else { 0.0 };
    let corner = Corner {
        inputs: inputs.iter().map(|input| input.iter().zip(&scales).map(|(&x, &scale)| scaled(x, scale)).collect()).collect(),
        targets: targets.iter().enumerate().map(|(row, y)| y / target_scale + APART * spread(row)).collect(),
        active: (0..columns).map(Plane::Bound).collect(),
    };
    let (plain, basis) = corner.descend()?;
    // The same corner of the rows as given.
    let right: Vec<f64> = basis
        .iter()
        .map(|plane| match plane {
            Plane::Row(row) => targets[*row] / target_scale,
            Plane::Bound(_) => 0.0,
        })
        .collect();
    let solution = plain.iter().map(|line| line.iter().zip(&right).map(|(a, b)| a * b).sum::<f64>().max(0.0));
    Ok(solution.zip(&scales).map(|(x, &scale)| if scale > 0.0 { x * target_scale / scale } else { 0.0 }).collect())
}

/// How many columns there are; each row has as many, and a target, and all are finite.
pub fn checked(inputs: &[Vec<f64>], targets: &[f64]) -> Result<usize, Unfit> {
    let columns = inputs.first().map_or(0, Vec::len);
    if inputs.is_empty() || columns == 0 || inputs.len() != targets.len() {
        return Err(Unfit::TooFewRows { rows: inputs.len().min(targets.len()), columns: columns.max(1) });
    }
    for (row, (input, target)) in inputs.iter().zip(targets).enumerate() {
        if input.len() != columns {
            return Err(Unfit::Uneven { row: row + 1, found: input.len(), columns });
        }
        if !target.is_finite() || input.iter().any(|x| !x.is_finite()) {
            return Err(Unfit::NotFinite { row: row + 1 });
        }
    }
    Ok(columns)
}

/// From −1 to 1, the same for a row every time, and in no line with other rows.
fn spread(row: usize) -> f64 {
    2.0 * share(row as u64 + 1) - 1.0
}

/// What holds exactly at a corner: a row's error is 0, or a coefficient is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plane {
    Row(usize),
    Bound(usize),
}

struct Corner {
    inputs: Vec<Vec<f64>>,
    targets: Vec<f64>,
    active: Vec<Plane>,
}

/// A way out of a corner: it leaves one plane and stays on the others.
struct Edge {
    leaves: usize,
    direction: Vec<f64>,
    /// Of the sum, per step; negative is downhill.
    slope: f64,
}

pub type Matrix = Vec<Vec<f64>>;

impl Corner {
    /// The inverse at the best corner, and its planes.
    fn descend(mut self) -> Result<(Matrix, Vec<Plane>), Unfit> {
        for _ in 0..MOST_STEPS {
            let normals: Matrix = self.active.iter().map(|&plane| self.normal(plane)).collect();
            let inverse = invert(normals).ok_or(Unfit::Unsettled)?;
            let right: Vec<f64> = self.active.iter().map(|&plane| self.right(plane)).collect();
            let at: Vec<f64> = inverse.iter().map(|line| dot(line, &right)).collect();
            let errors: Vec<f64> = self.inputs.iter().zip(&self.targets).map(|(input, y)| y - dot(input, &at)).collect();
            let Some(edge) = self.steepest(&inverse, &errors) else { return Ok((inverse, self.active)) };
            match self.meets(&edge, &at, &errors) {
                Some(plane) => self.active[edge.leaves] = plane,
                None => return Ok((inverse, self.active)),
            }
        }
        Err(Unfit::Unsettled)
    }

    fn normal(&self, plane: Plane) -> Vec<f64> {
        match plane {
            Plane::Row(row) => self.inputs[row].clone(),
            Plane::Bound(column) => (0..self.active.len()).map(|j| f64::from(u8::from(j == column))).collect(),
        }
    }

    fn right(&self, plane: Plane) -> f64 {
        match plane {
            Plane::Row(row) => self.targets[row],
            Plane::Bound(_) => 0.0,
        }
    }

    fn is_active(&self, plane: Plane) -> bool {
        self.active.contains(&plane)
    }

    fn steepest(&self, inverse: &Matrix, errors: &[f64]) -> Option<Edge> {
        let mut best: Option<(f64, Edge)> = None;
        for (leaves, plane) in self.active.iter().enumerate() {
            let along: Vec<f64> = inverse.iter().map(|line| line[leaves]).collect();
            let length = dot(&along, &along).sqrt();
            // A coefficient leaves its bound upwards only.
            let senses: &[f64] = if matches!(plane, Plane::Bound(_)) { &[1.0] } else { &[1.0, -1.0] };
            for sense in senses {
                let direction: Vec<f64> = along.iter().map(|x| x * sense).collect();
                let mut slope = 0.0;
                let mut steps = 0.0;
                for (row, (input, error)) in self.inputs.iter().zip(errors).enumerate() {
                    let change = dot(input, &direction);
                    steps += change.abs();
                    slope += match self.is_active(Plane::Row(row)) {
                        true => change.abs(),
                        false => -error.signum() * change,
                    };
                }
                let steepness = slope / length;
                // What is left of sums that cancel is no descent.
                if slope < -1e-12 * steps && best.as_ref().is_none_or(|(least, _)| steepness < *least) {
                    best = Some((steepness, Edge { leaves, direction, slope }));
                }
            }
        }
        best.map(|(_, edge)| edge)
    }

    /// The plane at which the sum stops falling along the edge.
    fn meets(&self, edge: &Edge, at: &[f64], errors: &[f64]) -> Option<Plane> {
        let bounds = edge.direction.iter().enumerate().filter(|(j, step)| **step < 0.0 && !self.is_active(Plane::Bound(*j)));
        let wall = bounds.map(|(j, step)| (at[j].max(0.0) / -step, Plane::Bound(j))).min_by(|a, b| a.0.total_cmp(&b.0));
        let mut crossings: Vec<(f64, f64, usize)> = Vec::new();
        for (row, (input, error)) in self.inputs.iter().zip(errors).enumerate() {
            let change = dot(input, &edge.direction);
            // A row that the edge runs beside is not met, whatever is left of sums that cancel.
            let beside = 1e-12 * (dot(input, input) * dot(&edge.direction, &edge.direction)).sqrt();
            let far = error / change;
            if change.abs() > beside && far > 0.0 && !self.is_active(Plane::Row(row)) {
                crossings.push((far, change.abs(), row));
            }
        }
        crossings.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let mut slope = edge.slope;
        for (far, change, row) in crossings {
            if let Some((_, plane)) = wall.filter(|(wall, _)| *wall <= far) {
                return Some(plane);
            }
            slope += 2.0 * change;
            if slope >= 0.0 {
                return Some(Plane::Row(row));
            }
        }
        wall.map(|(_, plane)| plane)
    }
}

pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// By Gauss and Jordan with pivots. None: the planes do not meet in one point.
pub fn invert(mut matrix: Matrix) -> Option<Matrix> {
    let size = matrix.len();
    let unit = |i: usize| (0..size).map(|j| f64::from(u8::from(i == j))).collect::<Vec<f64>>();
    let mut inverse: Matrix = (0..size).map(unit).collect();
    for column in 0..size {
        let pivot = (column..size).max_by(|&a, &b| matrix[a][column].abs().total_cmp(&matrix[b][column].abs()))?;
        if matrix[pivot][column].abs() < 1e-14 {
            return None;
        }
        matrix.swap(column, pivot);
        inverse.swap(column, pivot);
        let factor = matrix[column][column];
        matrix[column].iter_mut().chain(&mut inverse[column]).for_each(|x| *x /= factor);
        let (line, inverse_line) = (matrix[column].clone(), inverse[column].clone());
        for row in (0..size).filter(|&row| row != column) {
            let factor = matrix[row][column];
            matrix[row].iter_mut().zip(&line).for_each(|(x, y)| *x -= factor * y);
            inverse[row].iter_mut().zip(&inverse_line).for_each(|(x, y)| *x -= factor * y);
        }
    }
    Some(inverse)
}

#[cfg(test)]
mod tests;
