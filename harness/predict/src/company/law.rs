//! The interference law. In: members as they are alone. Out: the logarithm of each one's slowdown.
//!
//! ```text
//! ln slowdown_i = Σ_{j≠i} [ β₁ s_j ln(1 + t_j ÷ t_i) ] + β₂ max(0, Σ s − 0.95) + β₃ max(0, Σ u − 1)        β ≥ 0
//! ```
//! s: share of the SMs, u: share of the time, t: seconds of a step, each alone. The first term is what long kernels do to short ones: a large network starves a small
//! one far more than the reverse. The others are SMs that are full, and time that is shared out.

use serde::{Deserialize, Serialize};

use super::fit::GroupLaw;
use super::{Alone, MeasuredGroup};
use crate::fit::{Unfit, fit_absolute};
use crate::json;

/// The coefficients of one sharing mode.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Law {
    /// β₁
    #[serde(deserialize_with = "json::amount")]
    pub per_longer_step: f64,
    /// β₂
    #[serde(deserialize_with = "json::amount")]
    pub per_full_compute: f64,
    /// β₃
    #[serde(deserialize_with = "json::amount")]
    pub per_full_time: f64,
}

/// Of members that have an instance of MIG each: `ln slowdown = β₄ ln(1 ÷ share of the SMs)`, where the slice's own solo cell is not
/// known.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SliceLaw {
    /// β₄
    #[serde(deserialize_with = "json::amount")]
    pub per_smaller_slice: f64,
}

/// Below it there are SMs for everybody: in steps SMACT never reaches 1.
const FULL_COMPUTE: f64 = 0.95;
/// ln t grows by 0.7 ln m in 27 published profiles (r = 0.95).
const STEP_OF_MEMORY: f64 = 0.75;

/// How the lengths of steps are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StepLength {
    /// By their seconds.
    Known,
    /// By the memory of their processes: what a step works on.
    FromMemory,
    /// Not at all: all alike.
    Alike,
}

impl StepLength {
    /// Like is compared with like: what one member lacks is not used of the others.
    pub fn of<'a>(members: impl Iterator<Item = &'a Alone> + Clone) -> StepLength {
        if members.clone().all(|member| member.step_s.is_some()) {
            StepLength::Known
        } else if members.clone().all(|member| member.memory_bytes.is_some()) {
            StepLength::FromMemory
        } else {
            StepLength::Alike
        }
    }

    /// In an unknown unit; only ratios mean something.
    pub fn length(self, member: &Alone) -> f64 {
        match self {
            StepLength::Known => member.step_s.unwrap_or(1.0),
            StepLength::FromMemory => member.memory_bytes.unwrap_or(1.0).powf(STEP_OF_MEMORY),
            StepLength::Alike => 1.0,
        }
    }
}

/// What each coefficient of the law is multiplied by, for one member.
pub fn terms(members: &[Alone], index: usize) -> [f64; 3] {
    let step = StepLength::of(members.iter());
    let own = step.length(&members[index]);
    let others = members.iter().enumerate().filter(|(j, _)| *j != index);
    let longer = others.map(|(_, other)| other.compute * (step.length(other) / own).ln_1p()).sum();
    let total = |of: fn(&Alone) -> f64| members.iter().map(of).sum::<f64>();
    [longer, (total(|m| m.compute) - FULL_COMPUTE).max(0.0), (total(|m| m.busy) - 1.0).max(0.0)]
}

impl Law {
    pub fn log_slowdown(&self, members: &[Alone], index: usize) -> f64 {
        let terms = terms(members, index);
        terms.iter().zip(self.coefficients()).map(|(term, coefficient)| term * coefficient).sum()
    }

    pub fn coefficients(&self) -> [f64; 3] {
        [self.per_longer_step, self.per_full_compute, self.per_full_time]
    }
}

impl GroupLaw for Law {
    const NAME: &'static str = "law";

    /// By least absolute deviations of the logarithms of the slowdowns, and of the group's gain as often as it has members: to first order
    /// the change of its logarithm is the mean of the members', each by its part of the gain.
    fn fit<'a>(groups: impl IntoIterator<Item = &'a MeasuredGroup>) -> Result<Law, Unfit> {
        let (mut inputs, mut targets) = (Vec::new(), Vec::new());
        for group in groups {
            let members = group.alone();
            let gain: f64 = group.members.iter().map(|member| 1.0 / member.slowdown).sum();
            let (mut of_gain, mut gain_target) = (vec![0.0; 3], 0.0);
            for (index, member) in group.members.iter().enumerate() {
                let terms = terms(&members, index);
                let part = members.len() as f64 / member.slowdown / gain;
                of_gain.iter_mut().zip(terms).for_each(|(sum, term)| *sum += part * term);
                gain_target += part * member.slowdown.ln();
                inputs.push(terms.to_vec());
                targets.push(member.slowdown.ln());
            }
            inputs.push(of_gain);
            targets.push(gain_target);
        }
        let fitted = fit_absolute(&inputs, &targets)?;
        Ok(Law { per_longer_step: fitted[0], per_full_compute: fitted[1], per_full_time: fitted[2] })
    }

    fn log_slowdown_in(&self, group: &MeasuredGroup, member: usize) -> Option<f64> {
        Some(self.log_slowdown(&group.alone(), member))
    }
}

impl SliceLaw {
    pub fn log_slowdown(&self, sm_share: f64) -> f64 {
        self.per_smaller_slice * -sm_share.ln()
    }
}

impl GroupLaw for SliceLaw {
    const NAME: &'static str = "by share of the SMs";

    /// Of the members of these groups whose slice is known.
    fn fit<'a>(groups: impl IntoIterator<Item = &'a MeasuredGroup>) -> Result<SliceLaw, Unfit> {
        let members = groups.into_iter().flat_map(|group| &group.members);
        let known: Vec<(f64, f64)> = members.filter_map(|m| Some((-m.sm_share?.ln(), m.slowdown.ln()))).collect();
        let inputs: Vec<Vec<f64>> = known.iter().map(|(smaller, _)| vec![*smaller]).collect();
        let targets: Vec<f64> = known.iter().map(|(_, target)| *target).collect();
        Ok(SliceLaw { per_smaller_slice: fit_absolute(&inputs, &targets)?[0] })
    }

    fn log_slowdown_in(&self, group: &MeasuredGroup, member: usize) -> Option<f64> {
        Some(self.log_slowdown(group.members[member].sm_share?))
    }
}

#[cfg(test)]
pub mod tests;
