//! Estimators as classifiers into bins of memory, as the thesis judges its own. In: each estimator's scored rows. Out: a table.

use collo_figures::document::Table;
use collo_predict::{BinScore, CommonestBin, NamedEstimates};
use serde_json::{Value as Json, json};

use super::table;

/// The estimators in bins of one width.
pub struct Binned {
    width_mib: u32,
    commonest: CommonestBin,
    scores: Vec<(String, BinScore)>,
}

impl Binned {
    /// None: there are no rows.
    pub fn of(measured_bytes: &[f64], estimates: &[NamedEstimates], width_mib: u32) -> Option<Binned> {
        let commonest = CommonestBin::of(measured_bytes, width_mib)?;
        let scores = estimates.iter().filter_map(|(name, rows)| Some((name.clone(), BinScore::of(rows, width_mib)?)));
        Some(Binned { width_mib, commonest, scores: scores.collect() })
    }

    pub fn table(&self) -> Table {
        let line = |name: String, rows: usize, right: f64, below: Option<f64>| {
            vec![Some(name), Some(rows.to_string()), Some(share(right)), below.map(share)]
        };
        let scores = self.scores.iter();
        let scores = scores.map(|(name, s)| line(name.clone(), s.rows, s.share_right(), Some(s.share_below())));
        let commonest = format!("always the commonest bin, from {} MiB", self.commonest.from_mib);
        let last = line(commonest, self.commonest.of, self.commonest.share(), None);
        let head = format!("in bins of {} MiB", self.width_mib);
        table(&head, &["rows", "right", "too low"], None, 3, scores.chain([last]))
    }

    pub fn value(&self) -> Json {
        let score = |(name, score): &(String, BinScore)| {
            let (rows, right, below) = (score.rows, score.share_right(), score.share_below());
            json!({"estimator": name, "rows": rows, "right": right, "below": below})
        };
        let estimators: Vec<Json> = self.scores.iter().map(score).collect();
        json!({"bin_mib": self.width_mib, "commonest_from_mib": self.commonest.from_mib, "commonest": self.commonest.share(),
            "estimators": estimators})
    }
}

/// With one more digit than errors have: near 1 it counts.
fn share(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
