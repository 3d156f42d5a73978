//! The law of utilisation: of each activity, of power and of step time. In: measured rows, or a predictor file. Out: predictions with bounds.

use std::collections::BTreeMap;

use collo_gpus::Peaks;
use serde::{Deserialize, Serialize};

use crate::conformal::Interval;
use crate::file::{PredictorFile, PredictorLaw, Quantity};
use crate::fit::Unfit;

use super::activity::{Activity, ActivityLaw, fit_activity};
use super::power::{PowerLaw, fit_power};
use super::range::RangeExcess;
use super::time::{TimeLaw, fit_time};
use super::work::Work;
use super::{LawFit, Row};

/// As in its file; what is absent was not measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UtilisationLaw {
    pub targets: BTreeMap<Activity, ActivityLaw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeLaw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power: Option<PowerLaw>,
}

pub type UtilisationPredictor = PredictorFile<UtilisationLaw>;

/// A training alone on a card, as predicted. Percentages from 0 to 100; absent is what the predictor was not fitted for.
#[derive(Debug, Clone, PartialEq)]
pub struct UtilisationPrediction {
    pub predictor: String,
    pub activities: BTreeMap<Activity, Interval>,
    /// Of which activities the training is beyond what their laws were fitted on.
    pub beyond: BTreeMap<Activity, RangeExcess>,
    pub power_w: Option<Interval>,
    /// By the roofline alone; `step_time` knows better where there are stored cells.
    pub step_s: Option<Interval>,
    /// Of a step.
    pub energy_j: Option<Interval>,
}

/// All laws of some rows, those that these rows have enough of.
#[derive(Debug, Clone, PartialEq)]
pub struct UtilisationFit {
    pub activities: BTreeMap<Activity, LawFit<ActivityLaw>>,
    pub time: Option<LawFit<TimeLaw>>,
    pub power: Option<LawFit<PowerLaw>>,
    /// What could not be fitted, in words, where something was measured.
    pub without: Vec<String>,
}

/// The laws of rows of one card, or of several.
pub fn fit_utilisation(rows: &[Row]) -> Result<UtilisationFit, Unfit> {
    let (mut without, mut why) = (Vec::new(), None);
    let mut noted = |what: &str, unfit: Unfit| {
        without.push(format!("{what}: {unfit}"));
        why.get_or_insert(unfit);
    };
    let mut activities = BTreeMap::new();
    for activity in Activity::ALL.into_iter().filter(|activity| rows.iter().any(|row| row.measured.percent(*activity).is_some()))
    {
        match fit_activity(rows, activity) {
            Ok(fit) => drop(activities.insert(activity, fit)),
            Err(unfit) => noted(activity.as_str(), unfit),
        }
    }
    let timed = rows.iter().any(|row| row.measured.step_s.is_some());
    let time = timed.then(|| fit_time(rows).map_err(|unfit| noted("step time", unfit)).ok()).flatten();
    let metered = rows.iter().any(|row| row.measured.power_w.is_some());
    let one_card = rows.iter().all(|row| row.peaks.agrees_with(rows[0].peaks));
    let power = (metered && one_card).then(|| fit_power(rows).map_err(|unfit| noted("power", unfit)).ok()).flatten();
    match activities.is_empty() {
        true => Err(why.unwrap_or(Unfit::TooFewRows { rows: 0, columns: 1 })),
        false => Ok(UtilisationFit { activities, time, power, without }),
    }
}

impl UtilisationFit {
    /// As a file has it.
    pub fn law(&self) -> UtilisationLaw {
        UtilisationLaw {
            targets: self.activities.iter().map(|(activity, fit)| (*activity, fit.law.clone())).collect(),
            time: self.time.as_ref().map(|fit| fit.law.clone()),
            power: self.power.as_ref().map(|fit| fit.law.clone()),
        }
    }
}

impl PredictorLaw for UtilisationLaw {
    const QUANTITY: Quantity = Quantity::Utilisation;
    /// `ln(1 + percent) = intercept + Σ coefficient · feature`, of the features of this package.
    const FORMULA: &'static str = "log-linear-2";

    fn check(&self) -> Result<(), String> {
        if self.targets.is_empty() {
            return Err("`targets` is empty, so it predicts nothing".into());
        }
        self.targets.iter().try_for_each(|(activity, law)| law.check(*activity))?;
        self.time.as_ref().map_or(Ok(()), TimeLaw::check)?;
        self.power.as_ref().map_or(Ok(()), PowerLaw::check)
    }

    fn families(&self) -> usize {
        self.targets.values().map(|law| law.width.families).max().unwrap_or(0)
    }

    fn rows(&self) -> usize {
        self.targets.values().map(|law| law.left_out.rows).max().unwrap_or(0)
    }
}

impl UtilisationPredictor {
    /// What power follows from activity; `None` if it was fitted on another card, or not at all.
    pub fn power_on(&self, peaks: &Peaks) -> Option<&PowerLaw> {
        self.law.power.as_ref().filter(|law| peaks.are_of(&law.card))
    }

    /// Of a step alone on a card; intervals so many times as wide, as logarithms.
    pub fn predict(&self, work: &Work, peaks: &Peaks, widened: f64) -> UtilisationPrediction {
        let activities: BTreeMap<Activity, Interval> =
            self.law.targets.iter().filter_map(|(activity, law)| Some((*activity, law.predict(work, peaks, widened)?))).collect();
        let beyond = self.law.targets.iter().filter_map(|(activity, law)| Some((*activity, law.beyond(work, peaks)?))).collect();
        let percent = |activity: Activity| activities.get(&activity).copied();
        let power_w = self
            .power_on(peaks)
            .and_then(|law| Some(law.predict(percent(Activity::SmActive)?, percent(Activity::DramActive)?, widened)));
        let step_s = self.law.time.as_ref().map(|law| law.predict(work, peaks, widened));
        let energy_j = power_w.zip(step_s).map(|(power, step)| Interval {
            estimate: power.estimate * step.estimate,
            low: power.low * step.low,
            high: power.high * step.high,
        });
        UtilisationPrediction { predictor: self.name.clone(), activities, beyond, power_w, step_s, energy_j }
    }
}
