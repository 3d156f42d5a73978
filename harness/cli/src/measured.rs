//! What the project's reports say of cells that were measured, for plans. In: the reports of a project, a device. Out: their cells on
//! that device, the newest report first. A report that cannot be read is passed over: a forecast never stops a plan.

use collo_measure::machine::cpu_model;
use collo_measure::{Measured, MeasuredCell, MeasuredMember, Project};
use collo_report::CellVerdict;
use collo_report::quantity::Key;
use collo_report::report_json::{CellJson, MemberJson, Quantities, ReportJson};
use collo_store::DeviceRecord;

/// Of all experiments of the project, their newest reports: valid cells before those that are only indicative, however new.
pub fn on(project: &Project, device: &DeviceRecord) -> Measured {
    let folders = fs_err::read_dir(project.reports()).map(|all| all.flatten().collect()).unwrap_or_else(|_| Vec::new());
    let paths = folders.iter().map(|folder| folder.path().join("report.json")).filter(|path| path.is_file());
    let reports = paths.filter_map(|path| ReportJson::read(&path).ok());
    ordered(reports.filter(|report| report.measured_by.is_none() && is_of(report, device, cpu_model().as_deref())).collect())
}

/// What was read on a loaded machine is a profile only where there is no other.
fn ordered(mut reports: Vec<ReportJson>) -> Measured {
    reports.sort_by(|a, b| (&b.created_utc, &b.campaign).cmp(&(&a.created_utc, &a.campaign)));
    let of = |verdict: CellVerdict| {
        let cells = reports.iter().flat_map(|report| &report.cells);
        cells.filter(move |cell| cell.validity == verdict.as_str()).map(measured)
    };
    Measured::of(of(CellVerdict::Valid).chain(of(CellVerdict::Indicative)).collect())
}

/// All CPUs have one name, and differ by their model and the number of cores.
fn is_of(report: &ReportJson, device: &DeviceRecord, cpu_model: Option<&str>) -> bool {
    let there = &report.device;
    let same = there.name == device.name && there.kind == device.kind && there.simulated == device.simulated;
    let same_cpu = || {
        let said = report.environment.get("CPU").map_or("", |model| model.as_str());
        there.cores == device.cores.map(u64::from) && cpu_model.is_some_and(|model| said.starts_with(model))
    };
    same && (device.kind == "gpu" || same_cpu())
}

fn measured(cell: &CellJson) -> MeasuredCell {
    let metric = |name: &str| estimate(&cell.metrics, name);
    MeasuredCell {
        cell: cell.label.clone(),
        sharing: cell.sharing.clone(),
        after_measured: cell.after_measured,
        slots: cell.slots.clone(),
        members: cell.members.iter().map(member).collect(),
        throughput_gain: estimate(&cell.quantities, Key::ThroughputGain.name),
        sm_active_ratio: metric(Key::SmActive.name),
        sm_occupancy_ratio: metric(Key::SmOccupancy.name),
        gpu_utilization_ratio: metric(Key::GpuUtilization.name),
        dram_active_ratio: metric(Key::DramActive.name),
    }
}

fn member(member: &MemberJson) -> MeasuredMember {
    MeasuredMember {
        workload: member.workload.clone(),
        batch_size: member.batch_size,
        settings: member.settings.clone(),
        items_per_s: estimate(&member.quantities, Key::Items.name),
        epoch_time_s: estimate(&member.quantities, Key::EpochTime.name),
        memory_bytes: estimate(&member.quantities, Key::Memory.name),
        cpu_ratio: estimate(&member.quantities, Key::Cpu.name),
    }
}

fn estimate(of: &Quantities, name: &str) -> Option<f64> {
    of.get(name)?.as_ref().map(|quantity| quantity.estimate)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use collo_report::report_json::Device;
    use collo_store::MemberSpec;

    use super::*;

    fn report(created_utc: &str, validity: CellVerdict, epoch_time_s: f64) -> ReportJson {
        let value = collo_report::stats::Quantity { estimate: epoch_time_s, low: None, high: None, n: 3, df: None };
        let member = MemberJson {
            workload: "tiny".into(),
            quantities: [(Key::EpochTime.name, Some(value))].into_iter().collect(),
            ..MemberJson::default()
        };
        let validity = validity.as_str().to_string();
        let cell = CellJson { sharing: "solo".into(), validity, members: vec![member], ..CellJson::default() };
        ReportJson { created_utc: created_utc.into(), cells: vec![cell], ..ReportJson::default() }
    }

    #[test]
    fn a_valid_cell_goes_before_an_indicative_one_and_the_newest_of_them_before_others() {
        let spec = MemberSpec { workload: "tiny".into(), batch_size: None, settings: BTreeMap::new(), solo: "tiny solo".into() };
        let alone = |reports: Vec<ReportJson>| ordered(reports).alone(&spec).and_then(|alone| alone.member.epoch_time_s);
        let (valid, indicative, discarded) = (CellVerdict::Valid, CellVerdict::Indicative, CellVerdict::Discarded);
        assert_eq!(alone(vec![report("1", valid, 1.0), report("2", valid, 2.0), report("3", indicative, 3.0)]), Some(2.0));
        assert_eq!(alone(vec![report("1", indicative, 1.0), report("2", indicative, 2.0)]), Some(2.0));
        assert_eq!(alone(vec![report("1", discarded, 1.0)]), None);
    }

    #[test]
    fn a_report_of_another_device_or_cpu_says_nothing_here() {
        let device = |name: &str, kind: &str, simulated: bool, cores: u32| DeviceRecord {
            name: name.into(),
            kind: kind.into(),
            simulated,
            memory_bytes: None,
            cores: Some(cores),
            persistence: None,
        };
        let of = |name: &str, kind: &str, simulated: bool| Device {
            name: name.into(),
            kind: kind.into(),
            simulated,
            ..Device::default()
        };
        let gpu = ReportJson { device: of("A100", "gpu", false), ..ReportJson::default() };
        assert!(is_of(&gpu, &device("A100", "gpu", false, 4), None));
        assert!(!is_of(&gpu, &device("A100", "gpu", true, 4), None) && !is_of(&gpu, &device("A30", "gpu", false, 4), None));
        let environment = [("CPU", "Old 9, 2 logical cores".to_string())].into_iter().collect();
        let cpu =
            ReportJson { device: Device { cores: Some(2), ..of("cpu", "cpu", false) }, environment, ..ReportJson::default() };
        assert!(is_of(&cpu, &device("cpu", "cpu", false, 2), Some("Old 9")));
        assert!(
            !is_of(&cpu, &device("cpu", "cpu", false, 4), Some("Old 9"))
                && !is_of(&cpu, &device("cpu", "cpu", false, 2), Some("New"))
        );
        assert!(!is_of(&cpu, &device("cpu", "cpu", false, 2), None), "an unknown model is not the same one");
    }
}
