//! The predictor of utilisation, a file of a few lines. In: measured rows, or `predictors/NAME.json`. Out: predictions with bounds; or
//! the reason why the file cannot serve.

use std::collections::BTreeMap;
use std::sync::Arc;

use collo_gpus::Peaks;
use collo_text::{Diagnostic, Source};
use serde::{Deserialize, Serialize};

use crate::PREDICTOR_SCHEMA;
use crate::conformal::Interval;
use crate::fit::Unfit;
use crate::header::{Conditions, MOST_WIDENING, Mark};
use crate::header::{Fitted, Quantity};
use crate::json::{self, Kind};

use super::Row;
use super::activity::{Activity, ActivityFit, ActivityLaw, fit_activity};
use super::power::{PowerFit, PowerLaw, fit_power};
use super::time::{TimeFit, TimeLaw, fit_time};
use super::work::Work;

/// As in the file; what is absent was not measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UtilisationPredictor {
    pub schema: u32,
    pub name: String,
    pub quantity: String,
    /// The formula and its version: what the coefficients mean.
    pub formula: String,
    pub targets: BTreeMap<Activity, ActivityLaw>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeLaw>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<PowerLaw>,
    #[serde(deserialize_with = "json::amount")]
    pub widening: f64,
    pub conditions: Conditions,
    /// What it was fitted on: campaigns, tables, or a publication.
    pub source: String,
    pub mark: Mark,
}

/// A training alone on a card, as predicted. Percentages from 0 to 100; absent is what the predictor was not fitted for.
#[derive(Debug, Clone, PartialEq)]
pub struct UtilisationPrediction {
    pub predictor: String,
    pub activities: BTreeMap<Activity, Interval>,
    pub power_w: Option<Interval>,
    /// By the roofline alone; `step_time` knows better where there are stored cells.
    pub step_s: Option<Interval>,
    /// Of a step.
    pub energy_j: Option<Interval>,
}

/// All laws of some rows, those that these rows have enough of.
#[derive(Debug, Clone, PartialEq)]
pub struct UtilisationFit {
    pub activities: BTreeMap<Activity, ActivityFit>,
    pub time: Option<TimeFit>,
    pub power: Option<PowerFit>,
    /// What could not be fitted, in words, where something was measured.
    pub without: Vec<String>,
}

const KIND: Kind = Kind { name: "a predictor", way_out: "fit it again, or restore the file", newest_schema: PREDICTOR_SCHEMA };

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

impl UtilisationPredictor {
    /// `ln(1 + percent) = intercept + Σ coefficient · feature`, of the features of this package.
    pub const FORMULA: &str = "log-linear-1";
    /// As for memory: chosen, not measured.
    pub const WIDENING: f64 = 1.5;

    pub fn of(fit: &UtilisationFit, name: String, conditions: Conditions, source: String, mark: Mark) -> UtilisationPredictor {
        UtilisationPredictor {
            schema: PREDICTOR_SCHEMA,
            name,
            quantity: Quantity::Utilisation.as_str().into(),
            formula: UtilisationPredictor::FORMULA.into(),
            targets: fit.activities.iter().map(|(activity, fit)| (*activity, fit.law.clone())).collect(),
            time: fit.time.as_ref().map(|fit| fit.law.clone()),
            power: fit.power.as_ref().map(|fit| fit.law.clone()),
            widening: UtilisationPredictor::WIDENING,
            conditions,
            source,
            mark,
        }
    }

    /// Reads and checks it.
    pub fn read(source: &Arc<Source>) -> Result<UtilisationPredictor, Diagnostic> {
        json::check_schema(source, &KIND)?;
        #[derive(Deserialize)]
        struct Purpose {
            quantity: String,
            formula: String,
        }
        let name = source.name();
        let Purpose { quantity, formula } = json::read(source, &KIND)?;
        if quantity != Quantity::Utilisation.as_str() {
            let what = format!("{name} predicts `{quantity}`, but `{}` is wanted", Quantity::Utilisation);
            return Err(Diagnostic::new(what).hint("`collo predictor list` shows what each predicts"));
        }
        if formula != UtilisationPredictor::FORMULA {
            let what = format!("{name} is for the formula `{formula}`, which this collo does not have");
            return Err(Diagnostic::new(what).hint(format!("fit it again; this one has `{}`", UtilisationPredictor::FORMULA)));
        }
        let read: UtilisationPredictor = json::read(source, &KIND)?;
        let wrong = |reason: String| Diagnostic::new(format!("{name} is not a usable predictor: {reason}")).hint(KIND.way_out);
        read.check().map_err(wrong)?;
        Ok(read)
    }

    fn check(&self) -> Result<(), String> {
        if self.name.is_empty() {
            return Err("`name` is empty".into());
        }
        if self.targets.is_empty() {
            return Err("`targets` is empty, so it predicts nothing".into());
        }
        if !(1.0..=MOST_WIDENING).contains(&self.widening) {
            return Err(format!("`widening` is {}, not from 1 to {MOST_WIDENING}", self.widening));
        }
        self.targets.iter().try_for_each(|(activity, law)| law.check(*activity))?;
        self.time.as_ref().map_or(Ok(()), TimeLaw::check)?;
        self.power.as_ref().map_or(Ok(()), PowerLaw::check)
    }

    /// What power follows from activity; `None` if it was fitted on another card, or not at all.
    pub fn power_on(&self, peaks: &Peaks) -> Option<&PowerLaw> {
        self.power.as_ref().filter(|law| peaks.are_of(&law.card))
    }

    /// Of a step alone on a card; intervals so many times as wide, as logarithms.
    pub fn predict(&self, work: &Work, peaks: &Peaks, widened: f64) -> UtilisationPrediction {
        let activities: BTreeMap<Activity, Interval> =
            self.targets.iter().map(|(activity, law)| (*activity, law.predict(work, peaks, widened))).collect();
        let percent = |activity: Activity| activities.get(&activity).map(|interval| interval.estimate);
        let power_w = self
            .power_on(peaks)
            .and_then(|law| Some(law.predict(percent(Activity::SmActive)?, percent(Activity::DramActive)?, widened)));
        let step_s = self.time.as_ref().map(|law| law.predict(work, peaks, widened));
        let energy_j = power_w.zip(step_s).map(|(power, step)| Interval {
            estimate: power.estimate * step.estimate,
            low: power.low * step.low,
            high: power.high * step.high,
        });
        UtilisationPrediction { predictor: self.name.clone(), activities, power_w, step_s, energy_j }
    }
}

impl Fitted for UtilisationPredictor {
    fn quantity(&self) -> Quantity {
        Quantity::Utilisation
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
        self.targets.values().map(|law| law.width.families).max().unwrap_or(0)
    }

    fn rows(&self) -> usize {
        self.targets.values().map(|law| law.left_out.rows).max().unwrap_or(0)
    }

    fn widening(&self) -> f64 {
        self.widening
    }

    fn to_text(&self) -> String {
        json::to_text(self)
    }
}
