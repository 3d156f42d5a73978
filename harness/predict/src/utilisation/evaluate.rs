//! Predicted utilisation compared with measurements. In: measured rows. Out: RMSLE of percentages of each estimator, each architecture
//! predicted without having been seen.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Row;
use super::activity::{Activity, predict_kinds_left_out, rmsle};
use super::hotcloud::{Regressor, law, regressor_left_out, regressors};
use super::law::{UtilisationFit, UtilisationPredictor};
use crate::conformal::Interval;

/// An estimator's errors, of each activity that it estimates.
#[derive(Debug, Clone, Serialize)]
pub struct Judged {
    #[serde(rename = "estimator")]
    pub name: String,
    pub rmsle: BTreeMap<Activity, f64>,
    pub covered: BTreeMap<Activity, Covered>,
}

/// Of how many rows an interval has the measured value.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Covered {
    pub covered: usize,
    pub rows: usize,
}

/// An estimator by the protocol of a paper; RMSLE of percentages.
#[derive(Debug, Clone, Serialize)]
pub struct ProtocolScore {
    pub estimator: String,
    /// The median of the seeds: 80 % to learn from, 20 % to be judged by, rows of one architecture in both.
    pub shuffled: Option<f64>,
    /// Each architecture by what was learned from the others.
    pub left_out: Option<f64>,
    /// In the paper, of other rows.
    pub published_shuffled: Option<f64>,
}

/// Every estimator on the same rows. `shipped`: a predictor as it is, for rows of a kind of GPU that it may serve.
pub fn judged(rows: &[Row], fitted: Option<&UtilisationFit>, shipped: Option<&UtilisationPredictor>) -> Vec<Judged> {
    let mut all = Vec::new();
    if let Some(fit) = fitted {
        let of = |activity: &Activity| fit.activities.get(activity).map(|fit| fit.left_out.clone());
        all.push(Judged::of("collo, architecture left out", rows, of));
        let of_kinds = |activity: &Activity| predict_kinds_left_out(rows, *activity);
        all.push(Judged::of("collo, kind of network left out", rows, of_kinds));
    }
    if let Some(shipped) = shipped {
        let of = |activity: &Activity| {
            let law = shipped.law.targets.get(activity)?;
            Some(rows.iter().map(|row| law.predict(&row.work, row.peaks, 1.0)).collect())
        };
        all.push(Judged::of(&format!("collo, {} as it is", shipped.name), rows, of));
    }
    let learned = |name: String, of: &dyn Fn(Activity) -> Option<f64>| Judged {
        name,
        rmsle: Activity::ALL.into_iter().filter_map(|activity| Some((activity, of(activity)?))).collect(),
        covered: BTreeMap::new(),
    };
    for regressor in [Regressor::Forest, Regressor::Linear] {
        let name = format!("{regressor} on seven features, left out");
        all.push(learned(name, &|activity| regressor_left_out(rows, activity, regressor)));
    }
    if let Some(fit) = fitted {
        let constant = |activity| fit.activities.get(&activity).map(|fit| fit.law.left_out.constant_rmsle);
        all.push(learned("constant, left out".into(), &constant));
    }
    all
}

impl Judged {
    fn of(name: &str, rows: &[Row], said: impl Fn(&Activity) -> Option<Vec<Option<Interval>>>) -> Judged {
        let mut judged = Judged { name: name.into(), rmsle: BTreeMap::new(), covered: BTreeMap::new() };
        for activity in Activity::ALL {
            let said = said(&activity).unwrap_or_default();
            let pairs = || rows.iter().zip(&said).filter_map(|(row, said)| Some(((*said)?, row.measured.percent(activity)?)));
            if let Some(error) = rmsle(pairs().map(|(said, is)| (said.estimate, is))) {
                judged.rmsle.insert(activity, error);
                judged.covered.insert(activity, Covered::of(pairs()));
            }
        }
        judged
    }
}

impl Covered {
    /// Of intervals and what was measured.
    pub fn of(pairs: impl Iterator<Item = (Interval, f64)>) -> Covered {
        let inside: Vec<bool> = pairs.map(|(said, is)| said.contains(is)).collect();
        Covered { covered: inside.iter().filter(|inside| **inside).count(), rows: inside.len() }
    }
}

/// The paper's regressors by its protocol and with architectures left out, beside the log-linear law.
pub fn protocols(rows: &[Row], seeds: u64) -> BTreeMap<Activity, Vec<ProtocolScore>> {
    let of = |activity: Activity| {
        let own = law(rows, activity, seeds).ok()?;
        let published = |regressor: Regressor| Some(regressor.published_rmsle()).filter(|_| activity == Activity::GpuUtilisation);
        let mut all = vec![("collo, log-linear".to_string(), own, None)];
        all.extend(regressors(rows, activity, seeds).into_iter().map(|(r, scores)| (r.to_string(), scores, published(r))));
        let score = |(estimator, scores, published_shuffled)| {
            let super::Scores { shuffled, left_out } = scores;
            ProtocolScore { estimator, shuffled, left_out, published_shuffled }
        };
        Some((activity, all.into_iter().map(score).collect()))
    };
    Activity::ALL.into_iter().filter_map(of).collect()
}
