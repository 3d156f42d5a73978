//! Predicted utilisation compared with measurements. In: measured rows. Out: RMSLE of percentages of each estimator, each architecture
//! predicted without having been seen.

use std::collections::BTreeMap;

use collo_predict::Interval;
use collo_predict::utilisation::{
    Activity, Regressor, Row, Scores, UtilisationFit, UtilisationPredictor, law_scores, regressor_left_out, regressors, rmsle,
};

use super::Profiled;

/// An estimator's errors, of each activity; none where it says nothing.
pub struct Judged {
    pub name: String,
    pub rmsle: BTreeMap<Activity, f64>,
    /// Of how many rows the interval has the measured value.
    pub covered: BTreeMap<Activity, (usize, usize)>,
}

/// Every estimator on the same rows, each architecture predicted without having been seen.
pub fn judged(of_one: &Profiled, fitted: Option<&UtilisationFit>, shipped: Option<&UtilisationPredictor>) -> Vec<Judged> {
    let rows = &of_one.rows;
    let mut all = Vec::new();
    if let Some(fit) = fitted {
        let of = |activity: &Activity| fit.activities.get(activity).map(|fit| fit.left_out.clone());
        all.push(Judged::of("collo, architecture left out", rows, of));
    }
    // What was fitted on real GPUs is not for simulated ones.
    if let Some(shipped) = shipped.filter(|_| !of_one.who.simulated) {
        let of = |activity: &Activity| {
            let law = shipped.targets.get(activity)?;
            Some(rows.iter().map(|row| Some(law.predict(&row.work, row.peaks, 1.0))).collect())
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
                let inside = pairs().filter(|(said, is)| said.contains(*is)).count();
                judged.covered.insert(activity, (inside, pairs().count()));
            }
        }
        judged
    }
}

/// By the name of an estimator.
pub type ProtocolScores = Vec<(String, Scores, Option<f64>)>;

/// The paper's regressors by its protocol and with architectures left out, beside the log-linear law.
pub fn protocols(rows: &[Row], seeds: u64) -> Vec<(Activity, ProtocolScores)> {
    let of = |activity: Activity| {
        let law = law_scores(rows, activity, seeds).ok()?;
        let mut all: ProtocolScores = vec![("collo, log-linear".into(), law, None)];
        let published = |regressor: Regressor| Some(regressor.published_rmsle()).filter(|_| activity == Activity::GpuUtilisation);
        all.extend(regressors(rows, activity, seeds).into_iter().map(|(r, scores)| (r.to_string(), scores, published(r))));
        Some((activity, all))
    };
    Activity::ALL.into_iter().filter_map(of).collect()
}
