//! The power of a card with one training on it. In: measured rows. Out: `idle + per_sm · SMACT + per_dram · DRAMA`, in watts.

use serde::{Deserialize, Serialize};

use crate::conformal::{Interval, Residual, Width};
use crate::fit::{Unfit, dot};
use crate::folds::Folds;
use crate::json::amount;
use crate::linear::non_negative;

use super::activity::Activity;
use super::{Estimated, LawFit, RelativeScore, Row};

/// Watts, by activities in shares of one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerLaw {
    #[serde(deserialize_with = "amount")]
    pub idle_w: f64,
    #[serde(deserialize_with = "amount")]
    pub sm_active_w: f64,
    #[serde(deserialize_with = "amount")]
    pub dram_active_w: f64,
    /// The card whose power it is: no other draws as much.
    pub card: String,
    pub width: Width,
    pub left_out: RelativeScore,
}

const FEWEST_TO_FIT: usize = 3;
const LARGEST_W: f64 = 1e5;

/// From measured activities. The rows are of one card.
pub fn fit_power(rows: &[Row]) -> Result<LawFit<PowerLaw>, Unfit> {
    let sample =
        |row: &Row| Some((inputs(row.share(Activity::SmActive)?, row.share(Activity::DramActive)?), row.measured.power_w?));
    let all: Vec<Option<(Vec<f64>, f64)>> = rows.iter().map(sample).collect();
    let measured: Vec<usize> = (0..rows.len()).filter(|row| all[*row].is_some()).collect();
    let samples: Vec<(Vec<f64>, f64)> = all.into_iter().flatten().collect();
    let families: Vec<&str> = measured.iter().map(|row| rows[*row].family.as_str()).collect();
    let distinct = families.iter().collect::<std::collections::BTreeSet<_>>().len();
    if distinct < FEWEST_TO_FIT {
        return Err(Unfit::TooFewFamilies { families: distinct, needed: FEWEST_TO_FIT });
    }
    let folds = Folds::of(&families)?;
    let said = folds.left_out(&samples, coefficients, |fit, (inputs, _)| dot(fit, inputs))?;
    let residual = |place: usize| Residual { family: families[place].into(), log_ratio: (samples[place].1 / said[place]).ln() };
    let residuals: Vec<Residual> = (0..samples.len()).map(residual).collect();
    let estimated = Estimated { rows: rows.len(), measured: &measured, estimates: &said, residuals: &residuals, folds: &folds };
    let (width, left_out) = estimated.intervals(Interval::around)?;
    let fitted = coefficients(&samples)?;
    let law = PowerLaw {
        idle_w: fitted[0],
        sm_active_w: fitted[1],
        dram_active_w: fitted[2],
        card: measured.first().map_or_else(String::new, |row| rows[*row].gpu()),
        width,
        left_out: RelativeScore::of(&families, samples.iter().zip(&said).map(|((_, is), said)| said / is)),
    };
    Ok(LawFit { law, left_out })
}

fn inputs(sm_active: f64, dram_active: f64) -> Vec<f64> {
    vec![1.0, sm_active, dram_active]
}

fn coefficients(samples: &[(Vec<f64>, f64)]) -> Result<Vec<f64>, Unfit> {
    let (inputs, targets): (Vec<Vec<f64>>, Vec<f64>) = samples.iter().cloned().unzip();
    non_negative(&inputs, &targets)
}

impl PowerLaw {
    /// In watts, of activities in percent. The width is that of power by measured activities, so the intervals of predicted ones come on
    /// top of it: no coefficient is below 0.
    pub fn predict(&self, sm_active_percent: Interval, dram_active_percent: Interval, widened: f64) -> Interval {
        let of = |end: fn(Interval) -> f64| {
            let inputs = inputs(end(sm_active_percent) / 100.0, end(dram_active_percent) / 100.0);
            let watts = dot(&[self.idle_w, self.sm_active_w, self.dram_active_w], &inputs);
            Interval::around(watts, self.width.times(widened))
        };
        Interval {
            estimate: of(|activity| activity.estimate).estimate,
            low: of(|activity| activity.low).low,
            high: of(|activity| activity.high).high,
        }
    }

    pub fn check(&self) -> Result<(), String> {
        let sum = self.idle_w + self.sm_active_w + self.dram_active_w;
        match sum > 0.0 && sum <= LARGEST_W {
            true => self.width.check(),
            false => Err(format!("a card that draws {sum} W at most is none")),
        }
    }
}
