//! A predictor of company, a file of a few lines. In: `predictors/NAME.json`. Out: what members cost one another, with the name of who
//! says so; or the reason why the file cannot serve.

use std::sync::Arc;

use collo_text::{Diagnostic, Source};
use serde::{Deserialize, Serialize};

use super::evaluate::{CompanyScore, GroupEstimate};
use super::law::StepLength;
use super::prediction::{Assumed, CompanyPrediction, Extrapolated, NotPredicted, Widths};
use super::fit::GroupLaw;
use super::{Alone, CompanyMode, Law, MeasuredGroup, Slice, SliceLaw, Unseen};
use crate::PREDICTOR_SCHEMA;
use crate::conformal::Interval;
use crate::header::{Conditions, Mark, WAY_OUT};
use crate::header::{Fitted, Quantity};
use crate::json::{self, Kind};

/// As in the file; what is absent was not measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompanyPredictor {
    pub schema: u32,
    pub name: String,
    pub quantity: String,
    /// The law and its version: what the coefficients mean.
    pub formula: String,
    pub modes: CompanyModes,
    /// How many times as wide the intervals become, as logarithms, with each step from what it was fitted on: a device, a torch, a sharing mode
    /// that the figures do not say, more members than were measured together. Chosen, not measured.
    #[serde(deserialize_with = "json::amount")]
    pub widening: f64,
    pub conditions: Conditions,
    /// What it was fitted on: campaigns, tables, or a publication.
    pub source: String,
    pub mark: Mark,
}

/// What each sharing mode has shown.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompanyModes {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub naive: Option<ModeFit>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mps: Option<ModeFit>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unrecorded: Option<ModeFit>,
    /// Of members on instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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

const KIND: Kind = Kind { name: "a predictor", way_out: WAY_OUT, newest_schema: PREDICTOR_SCHEMA };
/// e to the 50 is no slowdown.
const LARGEST_COEFFICIENT: f64 = 50.0;
/// A million times as slow.
const LARGEST_LOG: f64 = 14.0;

impl CompanyPredictor {
    /// `Σ β₁ s ln(1 + t_j ÷ t_i) + β₂ max(0, Σs − 0.95) + β₃ max(0, Σu − 1)`.
    pub const FORMULA: &str = "interference-1";
    pub const WIDENING: f64 = 1.5;

    /// Reads and checks it.
    pub fn read(source: &Arc<Source>) -> Result<CompanyPredictor, Diagnostic> {
        let name = source.name();
        #[derive(Deserialize)]
        struct Purpose {
            formula: String,
        }
        let Purpose { formula } = json::read(source, &KIND)?;
        if formula != CompanyPredictor::FORMULA {
            let what = format!("{name} is for the formula `{formula}`, which this collo does not have");
            return Err(Diagnostic::new(what).hint(format!("fit it again; this one has `{}`", CompanyPredictor::FORMULA)));
        }
        let read: CompanyPredictor = json::read(source, &KIND)?;
        let wrong = |reason: String| Diagnostic::new(format!("{name} is not a usable predictor: {reason}")).hint(KIND.way_out);
        read.check().map_err(wrong)?;
        Ok(read)
    }

    fn check(&self) -> Result<(), String> {
        if self.name.is_empty() {
            return Err("`name` is empty".into());
        }
        if self.quantity != Quantity::Company.as_str() {
            return Err(format!("it predicts `{}`", self.quantity));
        }
        crate::header::check_widening(self.widening)?;
        for (mode, fit) in self.modes.shared() {
            let names = ["per_longer_step", "per_full_compute", "per_full_time"];
            fit.check(names, fit.law.coefficients()).map_err(|reason| format!("{mode}: {reason}"))?;
        }
        if let Some(mig) = &self.modes.mig {
            mig.check(["per_smaller_slice"], [mig.law.per_smaller_slice]).map_err(|reason| format!("mig: {reason}"))?;
        }
        if self.modes == CompanyModes::default() {
            return Err("`modes` has none".into());
        }
        Ok(())
    }

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
        let (by_mode, fit) = self.modes.serving(mode).ok_or(NotPredicted::NoCoefficients(mode))?;
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
        let said = Said { by_mode, most_members: fit.most_members, assumed };
        Ok(self.prediction(said, &slowdowns, fit.widths, widened))
    }

    /// Of members on instances of MIG, one on each: how long each takes on its slice alone, where that was measured; else by its share of the
    /// SMs.
    pub fn predict_on_slices(&self, slices: &[Slice], widened: f64) -> Result<CompanyPrediction, NotPredicted> {
        if slices.len() < 2 {
            return Err(NotPredicted::Alone);
        }
        let fit = self.modes.mig.as_ref().ok_or(NotPredicted::NoCoefficients(CompanyMode::Mig))?;
        let is_right = |slice: &Slice| {
            slice.sm_share > 0.0 && slice.sm_share <= 1.0 && slice.slowdown.is_none_or(|times| times > 0.0 && times.is_finite())
        };
        if !slices.iter().all(is_right) {
            return Err(NotPredicted::NotNumbers);
        }
        let of_slice = |slice: &Slice| slice.slowdown.unwrap_or_else(|| slowdown(fit.law.log_slowdown(slice.sm_share)));
        let slowdowns: Vec<f64> = slices.iter().map(of_slice).collect();
        let said = Said { by_mode: CompanyMode::Mig, most_members: fit.most_members, assumed: Vec::new() };
        Ok(self.prediction(said, &slowdowns, fit.widths, widened))
    }

    fn prediction(&self, said: Said, slowdowns: &[f64], widths: Widths, widened: f64) -> CompanyPrediction {
        let Said { by_mode, most_members, assumed } = said;
        let asked = slowdowns.len();
        let extrapolated = (asked > most_members).then_some(Extrapolated { measured: most_members, asked });
        let widened = if extrapolated.is_some() { widened * self.widening } else { widened };
        let Intervals { slowdown, gain, antt, fairness } = Intervals::of(slowdowns, &widths.times(widened));
        CompanyPrediction {
            predictor: self.name.clone(),
            by_mode,
            slowdown,
            gain,
            antt,
            fairness,
            extrapolated,
            assumed,
        }
    }
}

/// How a prediction was made.
struct Said {
    by_mode: CompanyMode,
    most_members: usize,
    assumed: Vec<Assumed>,
}

struct Intervals {
    slowdown: Vec<Interval>,
    gain: Interval,
    antt: Interval,
    fairness: Interval,
}

impl Intervals {
    fn of(slowdowns: &[f64], widths: &Widths) -> Intervals {
        let found = super::GroupQuantities::of(slowdowns);
        let fairness = Interval::around(found.fairness, widths.fairness.two_sided_log);
        Intervals {
            slowdown: slowdowns.iter().map(|times| Interval::around(*times, widths.slowdown.two_sided_log)).collect(),
            gain: Interval::around(found.gain, widths.gain.two_sided_log),
            antt: Interval::around(found.antt, widths.antt.two_sided_log),
            // The fairest is 1.
            fairness: Interval { high: fairness.high.min(1.0), ..fairness },
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

    pub fn put(&mut self, mode: CompanyMode, fit: ModeFit) {
        match mode {
            CompanyMode::Naive => self.naive = Some(fit),
            CompanyMode::Mps => self.mps = Some(fit),
            CompanyMode::Unrecorded => self.unrecorded = Some(fit),
            CompanyMode::Mig => {}
        }
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

impl Fitted for CompanyPredictor {
    fn quantity(&self) -> Quantity {
        Quantity::Company
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn conditions(&self) -> &Conditions {
        &self.conditions
    }

    fn mark(&self) -> Mark {
        self.mark
    }

    fn families(&self) -> usize {
        self.modes.shared().map(|(_, fit)| fit.families).sum()
    }

    fn rows(&self) -> usize {
        self.modes.left_out().iter().map(|(_, left_out)| left_out.groups).sum()
    }

    fn widening(&self) -> f64 {
        self.widening
    }

    fn to_text(&self) -> String {
        json::to_text(self)
    }
}

#[cfg(test)]
mod tests;
