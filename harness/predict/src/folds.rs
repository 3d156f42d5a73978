//! Which rows are left out together, so that each is predicted by a fit that has not seen its family. In: the family of each row. Out:
//! folds.

use crate::fit::Unfit;

/// More families than this are left out some at a time.
const MOST_FITS: usize = 40;

/// Those of a family, with many families those of several.
pub struct Folds {
    pub of_row: Vec<usize>,
    pub count: usize,
}

impl Folds {
    pub fn of(rows: &[&str]) -> Result<Folds, Unfit> {
        let mut families = rows.to_vec();
        families.sort_unstable();
        families.dedup();
        let count = families.len().min(MOST_FITS);
        match families.len() {
            0 => Err(Unfit::TooFewRows { rows: 0, columns: 1 }),
            1 => Err(Unfit::OneFamily),
            _ => {
                let fold = |row: &&str| families.partition_point(|family| family < row) % count;
                Ok(Folds { of_row: rows.iter().map(fold).collect(), count })
            }
        }
    }

    /// Without families: the rows as they come.
    pub fn one_by_one(rows: usize) -> Folds {
        let count = rows.min(MOST_FITS);
        Folds { of_row: (0..rows).map(|row| row % count).collect(), count }
    }

    /// Each by a fit of the other folds.
    pub fn left_out<T: Clone, F>(
        &self,
        all: &[T],
        fit: impl Fn(&[T]) -> Result<F, Unfit>,
        estimate: impl Fn(&F, &T) -> f64,
    ) -> Result<Vec<f64>, Unfit> {
        let fits = (0..self.count).map(|fold| fit(&self.others(all, fold))).collect::<Result<Vec<F>, Unfit>>()?;
        Ok(all.iter().zip(&self.of_row).map(|(one, &fold)| estimate(&fits[fold], one)).collect())
    }

    /// What is not in a fold.
    pub fn others<T: Clone>(&self, all: &[T], fold: usize) -> Vec<T> {
        all.iter().zip(&self.of_row).filter(|(_, of)| **of != fold).map(|(one, _)| one.clone()).collect()
    }
}
