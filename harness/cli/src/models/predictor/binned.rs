//! Estimators as classifiers into bins of memory, as the thesis judges its own. In: each estimator's scored rows. Out: a table.

use collo_figures::document::{Align, Table};
use collo_predict::{BinScore, CommonestBin, Scored};
use serde_json::{Value as Json, json};

/// The estimators in bins of one width.
pub struct Binned {
    width_mib: u32,
    commonest: CommonestBin,
    scores: Vec<(String, BinScore)>,
}

impl Binned {
    /// None: there are no rows.
    pub fn of(measured_bytes: &[f64], estimates: &[(String, Vec<Scored>)], width_mib: u32) -> Option<Binned> {
        let commonest = CommonestBin::of(measured_bytes, width_mib)?;
        let scores = estimates.iter().filter_map(|(name, rows)| Some((name.clone(), BinScore::of(rows, width_mib)?)));
        Some(Binned { width_mib, commonest, scores: scores.collect() })
    }

    pub fn table(&self) -> Table {
        let head = format!("in bins of {} MiB", self.width_mib);
        let columns = [(head.as_str(), Align::Left), ("rows", Align::Right), ("right", Align::Right), ("too low", Align::Right)];
        let mut table = Table::new(&columns, 3);
        for (name, score) in &self.scores {
            let right = Some(share(score.share_right()));
            table.values([Some(name.clone()), Some(score.rows.to_string()), right, Some(share(score.share_below()))]);
        }
        let commonest = format!("always the commonest bin, from {} MiB", self.commonest.from_mib);
        table.values([Some(commonest), Some(self.commonest.of.to_string()), Some(share(self.commonest.share())), None]);
        table
    }

    pub fn value(&self) -> Json {
        let estimators: Vec<Json> = self
            .scores
            .iter()
            .map(|(name, score)| {
                json!({"estimator": name, "rows": score.rows, "right": score.share_right(), "below": score.share_below()})
            })
            .collect();
        json!({"bin_mib": self.width_mib, "commonest_from_mib": self.commonest.from_mib, "commonest": self.commonest.share(),
            "estimators": estimators})
    }
}

/// With one more digit than errors have: near 1 it counts.
fn share(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
