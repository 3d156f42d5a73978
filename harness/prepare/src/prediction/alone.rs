//! What is predicted of a member alone on a GPU: activity, power, pace. In: its description, a predictor, the card. Out: the claim.

use collo_gpus::Peaks;
use collo_predict::utilisation::{Activity, UtilisationPrediction, UtilisationPredictor, Work};
use collo_predict::{Chosen, Description, Interval};
use collo_store::{PredictedAlone, PredictedValue};

/// Who says it, and of which card.
pub struct AlonePredictor<'a> {
    pub chosen: &'a Chosen<'a, UtilisationPredictor>,
    pub peaks: &'a Peaks,
}

impl AlonePredictor<'_> {
    pub fn claim(&self, description: &Description, batch: u64) -> PredictedAlone {
        let work = Work::of(description, batch);
        let said = self.chosen.predictor.predict(&work, self.peaks, self.chosen.widened);
        let share = |activity: Activity| share(&said, activity);
        PredictedAlone {
            sm_active_ratio: share(Activity::SmActive),
            gpu_utilization_ratio: share(Activity::GpuUtilisation),
            dram_active_ratio: share(Activity::DramActive),
            power_w: said.power_w.map(value),
            // The longest step is the slowest pace.
            items_per_s: said.step_s.map(|Interval { estimate, low, high }| PredictedValue {
                estimate: batch as f64 / estimate,
                low: batch as f64 / high,
                high: batch as f64 / low,
            }),
        }
    }

    /// Board power at a sum of activities, as shares; absent if the predictor knows none for this card.
    pub fn power_w(&self, sm_active: Interval, dram_active: Interval) -> Option<PredictedValue> {
        let law = self.chosen.predictor.power_on(self.peaks)?;
        let percent = |share: Interval| {
            let of = |share: f64| 100.0 * share.min(1.0);
            Interval { estimate: of(share.estimate), low: of(share.low), high: of(share.high) }
        };
        Some(value(law.predict(percent(sm_active), percent(dram_active), self.chosen.widened)))
    }
}

fn share(said: &UtilisationPrediction, activity: Activity) -> Option<PredictedValue> {
    let Interval { estimate, low, high } = *said.activities.get(&activity)?;
    Some(PredictedValue { estimate: estimate / 100.0, low: low / 100.0, high: high / 100.0 })
}

/// As a campaign keeps it.
pub fn value(Interval { estimate, low, high }: Interval) -> PredictedValue {
    PredictedValue { estimate, low, high }
}
