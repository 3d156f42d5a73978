//! What campaigns of one experiment differ by although nothing changed, as its nights show. In: kept summaries. Out: a variance for
//! each cell, and one for what all cells have in common.

use std::collections::BTreeMap;
use std::path::Path;

use super::detect::Judge;
use super::night::NightlyRun;
use super::rules::{NIGHTS_TO_LEARN, Rules};
use super::source;

/// The variation between campaigns.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CampaignVariation {
    /// Nights that it is learnt from.
    pub nights: usize,
    /// By the cell's label.
    pub cells: BTreeMap<String, CellVariation>,
    /// Variance of the logarithm of what all cells have in common, and its degrees of freedom; `None` for few cells, whose own
    /// variances include it.
    pub common: Option<(f64, f64)>,
}

/// The variation of one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct CellVariation {
    /// `epoch_time_s`, `makespan_s` or `latency_p99_s`.
    pub quantity: String,
    /// Variance of the logarithm of one campaign's time, without that of its repetitions.
    pub variance: f64,
}

impl CampaignVariation {
    /// Variance of one campaign's value of a cell; `None` if no night knows this quantity of it.
    pub fn of_cell(&self, cell: &str, quantity: &str) -> Option<f64> {
        self.cells.get(cell).filter(|known| known.quantity == quantity).map(|known| known.variance)
    }

    /// Learn from nights, the oldest first; `None` if they are too few.
    pub fn of(nights: &[NightlyRun]) -> Option<CampaignVariation> {
        let whole: Vec<&NightlyRun> = nights.iter().filter(|n| n.incomplete.is_none()).collect();
        if whole.len() < NIGHTS_TO_LEARN {
            return None;
        }
        let mut judge = Judge::new(Rules::default());
        whole.iter().for_each(|night| drop(judge.take(night)));
        // Of several tracks of one name the last is what the cell measures now.
        let known = judge.tracks.iter().zip(judge.noises()).filter_map(|(t, noise)| {
            let variation = CellVariation { quantity: t.quantity.clone(), variance: (*noise)?.night };
            Some((t.cell.clone(), variation))
        });
        let cells: BTreeMap<_, _> = known.collect();
        (!cells.is_empty()).then(|| CampaignVariation { nights: whole.len(), cells, common: judge.common_variance() })
    }
}

/// What the kept nights of an experiment show, measured where two campaigns were and without these two. `places` are the devices of
/// those of them that are stored. `None` if they are of different devices, or the nights are too few.
pub fn between(reports: &Path, experiment: &str, campaigns: [&str; 2], places: [Option<String>; 2]) -> Option<CampaignVariation> {
    let nights = source::kept_nights(reports, experiment);
    let kept = |id: &str| nights.iter().find(|n| n.id == id).map(|n| n.place.clone());
    let known: Vec<String> = campaigns.into_iter().zip(places).filter_map(|(id, place)| place.or_else(|| kept(id))).collect();
    let place = known.first().filter(|first| known.iter().all(|place| place == *first))?;
    let others: Vec<NightlyRun> =
        nights.iter().filter(|n| n.place == *place && !campaigns.contains(&n.id.as_str())).cloned().collect();
    CampaignVariation::of(&others)
}

#[cfg(test)]
mod tests {
    use crate::random::Random;

    use super::super::night::{CellNight, Mean};
    use super::*;

    fn nights(n: usize, own: f64, common: f64) -> Vec<NightlyRun> {
        let mut random = Random::seeded(5);
        (0..n)
            .map(|i| {
                let shared = common * random.normal();
                let mut cell = |c: usize| {
                    let centre = shared + own * random.normal();
                    let times: Vec<f64> = (0..3).map(|_| (centre + 0.01 * random.normal()).exp()).collect();
                    let (cell, quantity, outcome) = (format!("cell {c}"), "epoch_time_s".into(), "completed".into());
                    CellNight { cell, quantity, outcome, first: Mean::of(&times), ..CellNight::default() }
                };
                NightlyRun {
                    id: format!("n{i:02}"),
                    place: "here".into(),
                    cells: (0..30).map(&mut cell).collect(),
                    ..NightlyRun::default()
                }
            })
            .collect()
    }

    #[test]
    fn both_variations_are_learnt_and_few_nights_say_nothing() {
        let found = CampaignVariation::of(&nights(30, 0.015, 0.02)).unwrap();
        let mut own: Vec<f64> = found.cells.values().map(|c| c.variance.sqrt()).collect();
        let own = collo_quantity::stats::median(&mut own).unwrap();
        // Nights are assumed to be correlated, which makes both larger: never much smaller.
        assert!((0.012..0.03).contains(&own), "{own}");
        let common = found.common.unwrap().0.sqrt();
        assert!((0.015..0.05).contains(&common), "{common}");
        assert_eq!(found.of_cell("cell 3", "makespan_s"), None);
        assert_eq!(CampaignVariation::of(&nights(4, 0.01, 0.01)), None);
    }

    #[test]
    fn nights_of_another_device_and_the_compared_campaigns_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let place = source::folder(folder.path(), "x").join("nights");
        std::fs::create_dir_all(&place).unwrap();
        for mut night in nights(8, 0.01, 0.0) {
            if night.id == "n00" {
                night.place = "elsewhere".into();
            }
            let text = serde_json::to_string(&super::super::codec::Kept::new("s".into(), night.clone())).unwrap();
            std::fs::write(place.join(format!("{}.json", night.id)), text).unwrap();
        }
        let of = |ids: [&str; 2], places| between(folder.path(), "x", ids, places).map(|v| v.nights);
        assert_eq!(of(["n06", "n07"], [None, None]), Some(5));
        assert_eq!(of(["a", "b"], [Some("here".into()), None]), Some(7), "of campaigns that are no nights");
        assert_eq!(of(["a", "b"], [None, None]), None, "where they were measured is unknown");
        assert_eq!(of(["n00", "n07"], [None, None]), None, "of different devices");
    }
}
