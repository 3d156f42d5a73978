//! The law of company: of each sharing mode its coefficients. In: members alone. Out: what they cost one another, with the name of the
//! predictor.

use serde::{Deserialize, Serialize};

use super::evaluate::{CompanyScore, GroupEstimate};
use super::fit::{GroupLaw, fit_company, fit_slices};
use super::law::StepLength;
use super::prediction::{Assumed, CompanyPrediction, Extrapolated, GroupQuantities, NotPredicted, Widths};
use super::{Alone, CompanyMode, Law, MeasuredGroup, Slice, SliceLaw, Unseen};
use crate::conformal::Interval;
use crate::file::{PredictorFile, PredictorLaw, Quantity};
use crate::fit::Unfit;
use crate::json;

pub type CompanyPredictor = PredictorFile<CompanyModes>;

/// What each sharing mode has shown.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompanyModes {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub naive: Option<ModeFit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mps: Option<ModeFit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unrecorded: Option<ModeFit>,
    /// Of members on instances.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mig: Option<ModeFit<SliceLaw>>,
}

/// The law of a sharing mode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModeFit<L = Law> {
    /// The most members of a measured group.
    pub most_members: usize,
    pub families: usize,
    /// Of all members: what a rule predicts that is the same for each.
    #[serde(deserialize_with = "json::amount")]
    pub median_slowdown: f64,
    pub law: L,
    pub widths: Widths,
    pub left_out: CompanyLeftOut,
}

/// How well it did on groups that its fit had not seen. Errors are shares of what was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompanyLeftOut {
    pub unseen: Unseen,
    pub groups: usize,
    #[serde(deserialize_with = "json::amount")]
    pub member_median_error: f64,
    #[serde(deserialize_with = "json::amount")]
    pub gain_median_error: f64,
    #[serde(deserialize_with = "json::amount")]
    pub gain_p90_error: f64,
    #[serde(deserialize_with = "json::amount")]
    pub gain_worst_error: f64,
    /// Groups whose gain was between its bounds.
    pub gain_covered: usize,
}

/// e to the 50 is no slowdown.
const LARGEST_COEFFICIENT: f64 = 50.0;
/// A million times as slow.
const LARGEST_LOG: f64 = 14.0;

impl PredictorLaw for CompanyModes {
    const QUANTITY: Quantity = Quantity::Company;
    /// `Σ β₁ s ln(1 + t_j ÷ t_i) + β₂ max(0, Σs − 0.95) + β₃ max(0, Σu − 1)`.
    const FORMULA: &'static str = "interference-1";

    fn check(&self) -> Result<(), String> {
        for (mode, fit) in self.shared() {
            let names = ["per_longer_step", "per_full_compute", "per_full_time"];
            fit.check(names, fit.law.coefficients()).map_err(|reason| format!("{mode}: {reason}"))?;
        }
        if let Some(mig) = &self.mig {
            mig.check(["per_smaller_slice"], [mig.law.per_smaller_slice]).map_err(|reason| format!("mig: {reason}"))?;
        }
        match *self == CompanyModes::default() {
            true => Err("`law` has no sharing mode".into()),
            false => Ok(()),
        }
    }

    fn families(&self) -> usize {
        self.shared().map(|(_, fit)| fit.families).sum()
    }

    fn rows(&self) -> usize {
        self.left_out().iter().map(|(_, left_out)| left_out.groups).sum()
    }
}

impl CompanyPredictor {
    /// Of members on the whole device. `widened`: how many times as wide the intervals are to be, as a choice says.
    pub fn predict(&self, mode: CompanyMode, members: &[Alone], widened: f64) -> Result<CompanyPrediction, NotPredicted> {
        if mode == CompanyMode::Mig {
            return Err(NotPredicted::OnSlices);
        }
        if members.len() < 2 {
            return Err(NotPredicted::Alone);
        }
        if !members.iter().all(Alone::is_right) {
            return Err(NotPredicted::NotNumbers);
        }
        let (by_mode, fit) = self.law.serving(mode).ok_or(NotPredicted::NoCoefficients(mode))?;
        let mut assumed = Vec::new();
        match StepLength::of(members.iter()) {
            StepLength::Known => {}
            StepLength::FromMemory => assumed.push(Assumed::StepsFromMemory),
            StepLength::Alike => assumed.push(Assumed::StepsAlike),
        }
        let mut widened = widened;
        if by_mode != mode {
            assumed.push(Assumed::ModeUnrecorded(mode));
            widened *= self.widening;
        }
        let slowdowns: Vec<f64> = (0..members.len()).map(|index| slowdown(fit.law.log_slowdown(members, index))).collect();
        Ok(self.prediction((by_mode, fit.most_members), &slowdowns, fit.widths, widened, assumed))
    }

    /// Of members on instances of MIG, one on each: how long each takes on its slice alone, where that was measured; else by its share of the
    /// SMs.
    pub fn predict_on_slices(&self, slices: &[Slice], widened: f64) -> Result<CompanyPrediction, NotPredicted> {
        if slices.len() < 2 {
            return Err(NotPredicted::Alone);
        }
        let fit = self.law.mig.as_ref().ok_or(NotPredicted::NoCoefficients(CompanyMode::Mig))?;
        let is_right = |slice: &Slice| {
            slice.sm_share > 0.0 && slice.sm_share <= 1.0 && slice.slowdown.is_none_or(|times| times > 0.0 && times.is_finite())
        };
        if !slices.iter().all(is_right) {
            return Err(NotPredicted::NotNumbers);
        }
        let of_slice = |slice: &Slice| slice.slowdown.unwrap_or_else(|| slowdown(fit.law.log_slowdown(slice.sm_share)));
        let slowdowns: Vec<f64> = slices.iter().map(of_slice).collect();
        Ok(self.prediction((CompanyMode::Mig, fit.most_members), &slowdowns, fit.widths, widened, Vec::new()))
    }

    /// Of slowdowns, by the coefficients of a mode that groups of so many members were measured in.
    fn prediction(
        &self,
        (by_mode, most_members): (CompanyMode, usize),
        slowdowns: &[f64],
        widths: Widths,
        widened: f64,
        assumed: Vec<Assumed>,
    ) -> CompanyPrediction {
        let asked = slowdowns.len();
        let extrapolated = (asked > most_members).then_some(Extrapolated { measured: most_members, asked });
        let widened = if extrapolated.is_some() { widened * self.widening } else { widened };
        let widths = widths.times(widened);
        let found = GroupQuantities::of(slowdowns);
        let fairness = Interval::around(found.fairness, widths.fairness);
        CompanyPrediction {
            predictor: self.name.clone(),
            by_mode,
            slowdown: slowdowns.iter().map(|times| Interval::around(*times, widths.slowdown)).collect(),
            gain: Interval::around(found.gain, widths.gain),
            antt: Interval::around(found.antt, widths.antt),
            // The fairest is 1.
            fairness: Interval { high: fairness.high.min(1.0), ..fairness },
            extrapolated,
            assumed,
        }
    }
}

impl CompanyModes {
    /// None: it has shown nothing, or has slices.
    pub fn of(&self, mode: CompanyMode) -> Option<&ModeFit> {
        match mode {
            CompanyMode::Naive => self.naive.as_ref(),
            CompanyMode::Mps => self.mps.as_ref(),
            CompanyMode::Unrecorded => self.unrecorded.as_ref(),
            CompanyMode::Mig => None,
        }
    }

    /// A mode's own coefficients, else those of figures that do not record their mode.
    pub fn serving(&self, mode: CompanyMode) -> Option<(CompanyMode, &ModeFit)> {
        [mode, CompanyMode::Unrecorded].into_iter().find_map(|mode| Some((mode, self.of(mode)?)))
    }

    /// Of each mode in which groups were measured; and why one has no coefficients.
    pub fn fit(groups: &[(CompanyMode, MeasuredGroup)]) -> (CompanyModes, Vec<(CompanyMode, Unfit)>) {
        let (mut modes, mut unfit) = (CompanyModes::default(), Vec::new());
        for mode in CompanyMode::ALL {
            let of_mode: Vec<MeasuredGroup> =
                groups.iter().filter(|(of, _)| *of == mode).map(|(_, group)| group.clone()).collect();
            if of_mode.is_empty() {
                continue;
            }
            let shared = |place: &mut Option<ModeFit>| fit_company(&of_mode).map(|fit| *place = Some(fit.mode));
            let fitted = match mode {
                CompanyMode::Naive => shared(&mut modes.naive),
                CompanyMode::Mps => shared(&mut modes.mps),
                CompanyMode::Unrecorded => shared(&mut modes.unrecorded),
                CompanyMode::Mig => fit_slices(&of_mode).map(|fit| modes.mig = Some(fit.mode)),
            };
            unfit.extend(fitted.err().map(|why| (mode, why)));
        }
        (modes, unfit)
    }

    /// Those on the whole device.
    pub fn shared(&self) -> impl Iterator<Item = (CompanyMode, &ModeFit)> {
        CompanyMode::ALL.into_iter().filter_map(|mode| Some((mode, self.of(mode)?)))
    }

    /// How each did on groups left out.
    pub fn left_out(&self) -> Vec<(CompanyMode, CompanyLeftOut)> {
        let mut all: Vec<_> = self.shared().map(|(mode, fit)| (mode, fit.left_out)).collect();
        all.extend(self.mig.iter().map(|fit| (CompanyMode::Mig, fit.left_out)));
        all
    }
}

impl<L: GroupLaw> ModeFit<L> {
    /// The groups whose members all have what the law takes; intervals so many times as wide, as logarithms.
    pub fn estimates(&self, groups: &[MeasuredGroup], widened: f64) -> Vec<GroupEstimate> {
        let estimate = |group: &MeasuredGroup| {
            let slowdown = |member| Some(slowdown(self.law.log_slowdown_in(group, member)?));
            let slowdowns = (0..group.members.len()).map(slowdown).collect::<Option<_>>()?;
            Some(GroupEstimate::of(group, slowdowns, Some(self.widths.times(widened))))
        };
        groups.iter().filter_map(estimate).collect()
    }

    /// All alike: the median slowdown of the groups that it was fitted on.
    pub fn constant(&self, groups: &[MeasuredGroup]) -> Vec<GroupEstimate> {
        groups.iter().map(|group| GroupEstimate::of(group, vec![self.median_slowdown; group.members.len()], None)).collect()
    }

    fn check<const N: usize>(&self, names: [&str; N], coefficients: [f64; N]) -> Result<(), String> {
        for (name, value) in names.into_iter().zip(coefficients) {
            if !(0.0..=LARGEST_COEFFICIENT).contains(&value) {
                return Err(format!("`{name}` is {value}, not from 0 to {LARGEST_COEFFICIENT}"));
            }
        }
        if self.most_members < 2 {
            return Err(format!("`most_members` is {}, which is no company", self.most_members));
        }
        self.widths.each().iter().try_for_each(|width| width.check())
    }
}

/// From its logarithm, as far as such can be.
fn slowdown(log: f64) -> f64 {
    log.clamp(-LARGEST_LOG, LARGEST_LOG).exp()
}

impl CompanyLeftOut {
    pub fn of(unseen: Unseen, score: &CompanyScore) -> CompanyLeftOut {
        CompanyLeftOut {
            unseen,
            groups: score.groups,
            member_median_error: score.member_median_error,
            gain_median_error: score.gain_median_error,
            gain_p90_error: score.gain_p90_error,
            gain_worst_error: score.gain_worst_error,
            gain_covered: score.covered.map_or(0, |covered| covered[1].0),
        }
    }
}

#[cfg(test)]
mod tests;
