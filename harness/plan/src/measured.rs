//! What reports say of cells that were measured on a device: what the members of a plan did alone, and what groups gained.
//!
//! In: cells of reports, handed over by who may read them. Out: the newest one of a member alone, or of a group. Their numbers are those
//! of the report, with everything that is not trusted left out.

use std::collections::{BTreeMap, HashSet};

use collo_store::{AfterMeasured, CellRecord, MemberSpec};
use serde_json::Value;

/// Cells that were measured on one device, the newest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measured {
    cells: Vec<MeasuredCell>,
}

/// One cell of a report, valid or indicative; what was not measured is absent.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredCell {
    /// The campaign that it is from.
    pub campaign: String,
    /// Its label.
    pub cell: String,
    pub sharing: String,
    pub after_measured: AfterMeasured,
    pub slots: Option<String>,
    pub members: Vec<MeasuredMember>,
    /// Work per second relative to running in turn.
    pub throughput_gain: Option<f64>,
    pub sm_active_ratio: Option<f64>,
    pub gpu_utilization_ratio: Option<f64>,
    pub dram_active_ratio: Option<f64>,
    pub power_w: Option<f64>,
}

/// A member of such a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredMember {
    pub workload: String,
    pub batch_size: Option<u64>,
    pub settings: BTreeMap<String, Value>,
    pub items_per_s: Option<f64>,
    pub epoch_time_s: Option<f64>,
    pub memory_bytes: Option<f64>,
    /// The CPU that it takes, in cores.
    pub cpu_ratio: Option<f64>,
}

/// What a member does alone on the whole device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredAlone<'a> {
    pub cell: &'a MeasuredCell,
    pub member: &'a MeasuredMember,
}

impl MeasuredMember {
    fn is_like(&self, spec: &MemberSpec) -> bool {
        self.is_same_training(spec) && self.batch_size == spec.batch_size.map(u64::from)
    }

    /// Of whatever batch size.
    fn is_same_training(&self, spec: &MemberSpec) -> bool {
        self.workload == spec.workload && self.settings == spec.settings
    }
}

impl MeasuredAlone<'_> {
    /// The seconds of one training step; absent if items were not reported.
    pub fn step_s(&self) -> Option<f64> {
        Some(self.member.batch_size? as f64 / self.member.items_per_s.filter(|rate| *rate > 0.0)?)
    }
}

impl Measured {
    /// The newest first.
    pub fn of(cells: Vec<MeasuredCell>) -> Measured {
        Measured { cells }
    }

    fn solos(&self) -> impl Iterator<Item = MeasuredAlone<'_>> {
        let solos = self.cells.iter().filter(|cell| cell.sharing == "solo");
        solos.filter_map(|cell| match &cell.members[..] {
            [member] => Some(MeasuredAlone { cell, member }),
            _ => None,
        })
    }

    /// A member alone on the whole device.
    pub fn alone(&self, spec: &MemberSpec) -> Option<MeasuredAlone<'_>> {
        self.solos().find(|alone| alone.member.is_like(spec))
    }

    /// A member alone on a slice, by the label of that cell.
    pub fn alone_on(&self, label: &str, spec: &MemberSpec) -> Option<MeasuredAlone<'_>> {
        let labelled = self.cells.iter().filter(|cell| cell.cell == label && cell.members.len() == 1);
        labelled.map(|cell| MeasuredAlone { cell, member: &cell.members[0] }).find(|alone| alone.member.is_like(spec))
    }

    /// Seconds of a step of the same training alone, by batch size, the newest of each.
    pub fn steps_s(&self, spec: &MemberSpec) -> Vec<(u64, f64)> {
        let mut seen = HashSet::new();
        let same = self.solos().filter(|alone| alone.member.is_same_training(spec));
        let steps = same.filter_map(|alone| Some((alone.member.batch_size?, alone.step_s()?)));
        steps.filter(|(batch, _)| seen.insert(*batch)).collect()
    }

    /// The same cell, on the same part of the device.
    pub fn cell(&self, record: &CellRecord) -> Option<&MeasuredCell> {
        let is_it = |cell: &&MeasuredCell| {
            let members = || cell.members.iter().zip(&record.members).all(|(member, spec)| member.is_like(spec));
            cell.sharing == record.sharing
                && cell.after_measured == record.after_measured
                && cell.slots == record.slots
                && cell.members.len() == record.members.len()
                && members()
        };
        self.cells.iter().find(is_it)
    }
}

#[cfg(test)]
mod tests {
    use collo_store::Sharing;

    use super::*;

    fn member(batch: u64, items_per_s: f64) -> MeasuredMember {
        let settings = BTreeMap::from([("optimizer".to_string(), Value::from("adam"))]);
        MeasuredMember {
            workload: "tiny".into(),
            batch_size: Some(batch),
            settings,
            items_per_s: Some(items_per_s),
            epoch_time_s: None,
            memory_bytes: None,
            cpu_ratio: Some(1.0),
        }
    }

    fn cell(sharing: &str, members: Vec<MeasuredMember>, campaign: &str) -> MeasuredCell {
        MeasuredCell {
            campaign: campaign.into(),
            cell: sharing.into(),
            sharing: sharing.into(),
            after_measured: AfterMeasured::KeepRunning,
            slots: None,
            members,
            throughput_gain: Some(1.2),
            sm_active_ratio: None,
            gpu_utilization_ratio: None,
            dram_active_ratio: None,
            power_w: None,
        }
    }

    fn spec(batch: u32, optimizer: &str) -> MemberSpec {
        let settings = BTreeMap::from([("optimizer".to_string(), Value::from(optimizer))]);
        MemberSpec { workload: "tiny".into(), batch_size: Some(batch), settings, solo: format!("tiny solo b{batch}") }
    }

    #[test]
    fn a_member_alone_is_that_of_the_newest_report_with_its_batch_and_settings() {
        let measured = Measured::of(vec![
            cell("naive", vec![member(32, 1.0), member(32, 1.0)], "c"),
            cell("solo", vec![member(32, 640.0)], "b"),
            cell("solo", vec![member(32, 320.0)], "a"),
            cell("solo", vec![member(64, 800.0)], "a"),
        ]);
        let alone = measured.alone(&spec(32, "adam")).expect("it was measured");
        assert_eq!((alone.cell.campaign.as_str(), alone.step_s()), ("b", Some(0.05)));
        assert_eq!(measured.alone(&spec(32, "sgd")), None);
        assert_eq!(measured.alone(&spec(16, "adam")), None);
        assert_eq!(measured.steps_s(&spec(16, "adam")), [(32, 0.05), (64, 0.08)]);
    }

    #[test]
    fn a_group_is_the_same_only_with_the_same_members_mode_and_slots() {
        let measured = Measured::of(vec![cell("naive", vec![member(32, 1.0), member(64, 1.0)], "a")]);
        let record = |members: Vec<MemberSpec>, slots: Option<&str>| CellRecord {
            members,
            slots: slots.map(Into::into),
            cell: "group".into(),
            slug: String::new(),
            sharing: "naive".into(),
            mode: Sharing::of_label("naive"),
            degree: 2,
            baseline: false,
            against: Vec::new(),
            repetitions: 1,
            after_measured: AfterMeasured::KeepRunning,
            alone_on_slice: Vec::new(),
            expect: None,
            trace: None,
            observe: None,
        };
        assert!(measured.cell(&record(vec![spec(32, "adam"), spec(64, "adam")], None)).is_some());
        assert!(measured.cell(&record(vec![spec(64, "adam"), spec(32, "adam")], None)).is_none());
        assert!(measured.cell(&record(vec![spec(32, "adam"), spec(64, "adam")], Some("cores 0-1"))).is_none());
    }
}
