//! What the paper says: `reports/published/hotcloud20.json`, embedded. None of it was measured by collo.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::arm::Arm;

/// The paper's case study.
#[derive(Debug, Default, Deserialize)]
pub struct HotCloud20 {
    pub source: String,
    pub device: String,
    pub conditions: String,
    pub cards: usize,
    pub card_gib: u64,
    pub jobs: usize,
    pub most_on_a_card: u32,
    pub profile_s: u64,
    /// The least and the greatest, of one job.
    pub duration_min: [f64; 2],
    pub utilisation_percent: [f64; 2],
    /// Of a job in company.
    pub slowdown_percent: [f64; 2],
    pub predictor_rmsle: f64,
    schedulers: BTreeMap<String, PublishedArm>,
    utilisation_gain_percent: BTreeMap<String, f64>,
    makespan_reduction_percent: BTreeMap<String, f64>,
    /// Where the paper and its own figures differ, or its words need reading.
    pub slips: Vec<String>,
}

/// The results of one scheduler.
#[derive(Debug, Deserialize, Serialize)]
pub struct PublishedArm {
    pub what: String,
    pub utilisation_percent: Spread,
    pub makespan_min: Spread,
    /// Mean over jobs, without their wait.
    pub job_completion_s: f64,
}

#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
pub struct Spread {
    pub mean: f64,
    pub deviation: f64,
}

impl HotCloud20 {
    /// What it says of a scheduler; of the control and the bound it says nothing.
    pub fn of(&self, arm: Arm) -> Option<&PublishedArm> {
        self.schedulers.get(arm.name())
    }

    /// By how much more a scheduler uses the cards than the slot-based one, in percent.
    pub fn utilisation_gain_percent(&self, arm: Arm) -> Option<f64> {
        self.utilisation_gain_percent.get(arm.name()).copied()
    }

    /// By how much sooner it is done than the slot-based one, in percent.
    pub fn makespan_reduction_percent(&self, arm: Arm) -> Option<f64> {
        self.makespan_reduction_percent.get(arm.name()).copied()
    }
}

/// The paper; a test compares the file with its reader.
pub fn published() -> &'static HotCloud20 {
    static READ: OnceLock<HotCloud20> = OnceLock::new();
    READ.get_or_init(|| serde_json::from_str(include_str!("../../../../reports/published/hotcloud20.json")).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gains_of_the_paper_are_those_of_its_own_table() {
        let says = published();
        assert!(!says.source.is_empty() && !says.conditions.is_empty());
        let of = |arm| says.of(arm).expect("published");
        let slots = of(Arm::SlotBased);
        for arm in [Arm::Reactive, Arm::Proactive] {
            let gain = (of(arm).utilisation_percent.mean / slots.utilisation_percent.mean - 1.0) * 100.0;
            let less = (1.0 - of(arm).makespan_min.mean / slots.makespan_min.mean) * 100.0;
            assert!((gain - says.utilisation_gain_percent(arm).expect("published")).abs() < 0.15, "{gain}");
            assert!((less - says.makespan_reduction_percent(arm).expect("published")).abs() < 0.15, "{less}");
        }
        assert!(says.of(Arm::Shuffled).is_none() && says.of(Arm::Exact).is_none());
        let against_reactive = (1.0 - of(Arm::Proactive).makespan_min.mean / of(Arm::Reactive).makespan_min.mean) * 100.0;
        assert!(says.slips[0].contains(&format!("{against_reactive:.1} %")), "{against_reactive}");
        let busy_min = slots.job_completion_s * says.jobs as f64 / says.cards as f64 / 60.0;
        assert!(says.slips[1].contains(&format!("{busy_min:.0} of")), "{busy_min}");
    }
}
