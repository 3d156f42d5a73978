//! What the project's reports say of cells that were measured, for plans. In: the reports of a project, a device. Out: their cells on
//! that device, the newest report first. A report that cannot be read is passed over: a forecast never stops a plan.

use collo_analysis::cell::verdict::CellVerdict;
use collo_guidelines::report_json::{CellJson, MemberJson, Quantities, ReportJson};
use collo_plan::facts::cpu_model;
use collo_plan::measured::{Measured, MeasuredCell, MeasuredMember};
use collo_plan::project::Project;
use collo_quantity::Key;
use collo_store::DeviceRecord;

/// Of all experiments of the project, their newest reports.
pub fn on(project: &Project, device: &DeviceRecord) -> Measured {
    let folders = fs_err::read_dir(project.reports()).map(|all| all.flatten().collect()).unwrap_or_else(|_| Vec::new());
    let paths = folders.iter().map(|folder| folder.path().join("report.json")).filter(|path| path.is_file());
    let mut reports: Vec<ReportJson> = paths.filter_map(|path| ReportJson::read(&path).ok()).collect();
    reports.retain(|report| report.measured_by.is_none() && is_of(report, device, cpu_model().as_deref()));
    reports.sort_by(|a, b| (&b.created_utc, &b.campaign).cmp(&(&a.created_utc, &a.campaign)));
    Measured::of(reports.iter().flat_map(|report| report.cells.iter().filter_map(|cell| measured(report, cell))).collect())
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

/// None: it was discarded, or did not fit.
fn measured(report: &ReportJson, cell: &CellJson) -> Option<MeasuredCell> {
    let usable = [CellVerdict::Valid, CellVerdict::Indicative].map(CellVerdict::as_str);
    let metric = |name: &str| estimate(&cell.metrics, name);
    usable.contains(&cell.validity.as_str()).then(|| MeasuredCell {
        campaign: report.campaign.clone(),
        cell: cell.label.clone(),
        sharing: cell.sharing.clone(),
        after_measured: cell.after_measured,
        slots: cell.slots.clone(),
        members: cell.members.iter().map(member).collect(),
        throughput_gain: estimate(&cell.quantities, Key::ThroughputGain.name),
        sm_active_ratio: metric(Key::SmActive.name),
        gpu_utilization_ratio: metric(Key::GpuUtilization.name),
        dram_active_ratio: metric(Key::DramActive.name),
        power_w: metric(Key::Power.name),
    })
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
