//! What the project's reports have of cells that were measured, for plans. In: the reports of a project, a device. Out: their cells on
//! that device, the newest report first. A report that cannot be read is passed over: a forecast never stops a plan. Cells under an
//! observer, and traces, are not among the cells of a report.

use collo_analysis::cell::verdict::CellVerdict;
use collo_guidelines::report_json::{CellJson, MemberJson, Quantities, ReportJson};
use collo_plan::earlier::{Measured, MeasuredCell, MeasuredMember};
use collo_plan::facts::cpu_model;
use collo_plan::project::Project;
use collo_quantity::Key;
use collo_store::{CellRecord, DeviceRecord, MemberSpec};

/// Of all experiments of the project, their newest reports.
pub fn on(project: &Project, device: &DeviceRecord) -> Measured {
    let folders = fs_err::read_dir(project.reports()).map(|all| all.flatten().collect()).unwrap_or_else(|_| Vec::new());
    let paths = folders.iter().map(|folder| folder.path().join("report.json")).filter(|path| path.is_file());
    let mut reports: Vec<ReportJson> = paths.filter_map(|path| ReportJson::read(&path).ok()).collect();
    reports.retain(|report| report.measured_by.is_none() && is_of(report, device, cpu_model().as_deref()));
    reports.sort_by(|a, b| (&b.created_utc, &b.campaign).cmp(&(&a.created_utc, &a.campaign)));
    reports.iter().flat_map(|report| report.cells.iter().filter_map(|cell| measured(report, cell))).collect()
}

/// All CPUs have one name, and differ by their model and the number of cores.
fn is_of(report: &ReportJson, device: &DeviceRecord, cpu_model: Option<&str>) -> bool {
    let there = &report.device;
    let same = there.name == device.name && there.kind == device.kind && there.simulated == device.simulated;
    let same_cpu = || {
        let said = report.environment.get("CPU").map_or("", |model| model.as_str());
        there.cores == device.cores.map(u64::from)
            && there.quota_cores == device.quota_cores
            && cpu_model.is_some_and(|model| said.starts_with(model))
    };
    same && (device.kind == "gpu" || same_cpu())
}

/// None: it was discarded, or did not fit.
fn measured(report: &ReportJson, cell: &CellJson) -> Option<(CellRecord, MeasuredCell)> {
    let usable = [CellVerdict::Valid, CellVerdict::Indicative].map(CellVerdict::as_str);
    let metric = |name: &str| estimate(&cell.metrics, name);
    let record = CellRecord {
        cell: cell.label.clone(),
        sharing: cell.sharing.clone(),
        after_measured: cell.after_measured,
        slots: cell.slots.clone(),
        members: cell.members.iter().map(spec).collect::<Option<_>>()?,
        ..CellRecord::default()
    };
    let slowdown = |member: &MemberJson| member.quantities.get(Key::Slowdown.name)?.clone();
    let known = MeasuredCell {
        campaign: report.campaign.clone(),
        slowdowns: cell.members.iter().map(slowdown).collect(),
        throughput_gain: estimate(&cell.quantities, Key::ThroughputGain.name),
        sm_active_ratio: metric(Key::SmActive.name),
        gpu_utilization_ratio: metric(Key::GpuUtilization.name),
        dram_active_ratio: metric(Key::DramActive.name),
        alone: match &cell.members[..] {
            [only] => member(only),
            _ => MeasuredMember::default(),
        },
    };
    usable.contains(&cell.validity.as_str()).then_some((record, known))
}

/// None: no member of ours has such a batch size.
fn spec(member: &MemberJson) -> Option<MemberSpec> {
    Some(MemberSpec {
        workload: member.workload.clone(),
        batch_size: member.batch_size.map(u32::try_from).transpose().ok()?,
        settings: member.settings.clone(),
        solo: member.solo.clone(),
    })
}

fn member(member: &MemberJson) -> MeasuredMember {
    let value = |key: Key| estimate(&member.quantities, key.name);
    let items_per_s = value(Key::Items).filter(|rate| *rate > 0.0);
    MeasuredMember {
        step_s: member.batch_size.zip(items_per_s).map(|(batch, rate)| batch as f64 / rate),
        epoch_time_s: value(Key::EpochTime),
        memory_bytes: value(Key::Memory),
        cpu_ratio: value(Key::Cpu),
    }
}

fn estimate(of: &Quantities, name: &str) -> Option<f64> {
    of.get(name)?.as_ref().map(|quantity| quantity.estimate)
}
