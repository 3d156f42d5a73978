//! Training data for predictors: one row per member of each stored repetition. In: an analysis. Out: the member (its graph, its
//! settings, what was predicted of it), its solo results, the other members, its results here, and whether these may be used. The data dictionary is in
//! `docs/guide/exports.md`; a test compares it with the columns.
//!
//! A run with unusable numbers has its row without results, so that it cannot be trained on by mistake.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_analysis::reading::repetition::{MemberNumbers, Repetition};
use collo_analysis::words;
use collo_guidelines::report_json::table::{ColumnKind, ExportTable, ExportValue};
use collo_quantity::Key;
use collo_store::{
    Features, GpuRecord, GraphNumbers, MemberRecord, Predicted, PredictedAlone, PredictedCompany, PredictedMember,
    PredictedMemory, PredictedValue, PredictorRecord,
};
use serde_json::json;

use super::caveats;

use ColumnKind::{Flag, Number, Text, Whole};

/// The context of one row: everything that a column may be read from.
struct At<'a> {
    analysis: &'a Analysis,
    card: Option<&'a GpuRecord>,
    r: &'a Repetition,
    index: usize,
    record: &'a MemberRecord,
    features: Option<&'a Features>,
    /// What was predicted of it before the campaign ran.
    predicted: Option<&'a PredictedMember>,
    graph: Option<&'a GraphNumbers>,
    solo: Option<&'a Cell>,
    company: Vec<Option<&'a Cell>>,
    /// Present only if the numbers may be shown.
    results: Option<&'a MemberNumbers>,
}

/// A column of the data set.
type DatasetColumn = (&'static str, ColumnKind, fn(&At) -> ExportValue);

/// The run, its device, and caveats about its numbers.
static CAMPAIGN: &[DatasetColumn] = &[
    ("experiment", Text, |at| ExportValue::text(&at.r.record().experiment)),
    ("campaign", Text, |at| ExportValue::text(&at.analysis.campaign.id)),
    ("device", Text, |at| ExportValue::text(&at.r.record().device.name)),
    ("device_kind", Text, |at| ExportValue::text(&at.r.record().device.kind)),
    ("device_memory_bytes", Whole, |at| at.r.record().device.memory_bytes.into()),
    ("device_cores", Whole, |at| at.r.record().device.cores.into()),
    ("device_quota_cores", Number, |at| at.r.record().device.quota_cores.into()),
    ("device_sms", Whole, |at| at.card.and_then(|c| c.sms).into()),
    ("device_architecture", Text, |at| at.card.and_then(|c| c.architecture.clone()).into()),
    ("device_power_limit_w", Number, |at| at.card.and_then(|c| c.power_limit_w).into()),
    ("device_max_sm_clock_mhz", Whole, |at| at.card.and_then(|c| c.max_sm_clock_mhz).into()),
    ("driver", Text, |at| at.analysis.campaign.machine.driver.clone().into()),
    ("torch", Text, |at| at.analysis.campaign.machine.python.get("torch").cloned().into()),
    ("simulated", Flag, |at| at.r.record().device.simulated.into()),
    ("synthetic", Flag, |at| at.record.synthetic.into()),
    ("limit_batches", Whole, |at| at.record.limit_batches.into()),
    ("cell", Text, |at| ExportValue::text(&at.r.record().cell.cell)),
    ("sharing", Text, |at| ExportValue::text(&at.r.record().cell.sharing)),
    ("degree", Whole, |at| at.r.record().cell.degree.into()),
    ("slots", Text, |at| at.r.record().cell.slots.clone().into()),
    ("after_measured", Text, |at| ExportValue::text(at.r.record().cell.after_measured.as_str())),
    ("baseline", Flag, |at| at.r.record().cell.baseline.into()),
    ("repetition", Whole, |at| at.r.record().repetition.into()),
    ("block", Whole, |at| at.r.record().block.into()),
    ("started_utc", Text, |at| ExportValue::text(&at.r.record().started_utc)),
    ("outcome", Text, |at| ExportValue::text(at.r.record().outcome.as_str())),
    ("validity", Text, |at| ExportValue::text(words::verdict(at.r.validity.verdict))),
    ("reasons", Text, |at| ExportValue::list(&at.r.validity.reasons)),
    ("marks", Text, |at| ExportValue::list(caveats::tags(at.analysis))),
];

/// The member: settings and computation graph.
static MEMBER: &[DatasetColumn] = &[
    ("member", Whole, |at| at.index.into()),
    ("slice", Text, |at| at.record.slice.clone().into()),
    ("slice_sm_ratio", Number, |at| slice_sm_ratio(at).into()),
    ("workload", Text, |at| ExportValue::text(&at.record.spec.workload)),
    ("batch_size", Whole, |at| at.record.spec.batch_size.into()),
    ("settings", Text, |at| ExportValue::text(json!(at.record.spec.settings).to_string())),
    ("serving_rate_per_s", Number, |at| at.record.serving.as_ref().map(|s| s.rate_per_s).into()),
    ("serving_slo_s", Number, |at| at.record.serving.as_ref().and_then(|s| s.slo_s).into()),
    ("serving_capacity_per_s", Number, |at| at.record.serving.as_ref().and_then(|s| s.capacity_per_s).into()),
    ("graph_batch_size", Whole, |at| at.features.and_then(|f| f.batch_size).into()),
    ("graph_parameters", Whole, |at| at.features.and_then(|f| f.parameters).or_else(|| Some(graph(at)?.parameters)).into()),
    ("graph_model_mb", Number, |at| at.features.and_then(|f| f.model_mb).into()),
    ("graph_flops_per_item", Number, |at| {
        at.features.and_then(|f| f.flops_per_item).or_else(|| Some(graph(at)?.flops_per_item)).into()
    }),
    ("graph_activations_per_item", Number, |at| at.features.and_then(|f| f.activations_per_item).into()),
    ("graph_layers", Whole, |at| layers(at).map(|l| l.values().sum::<u64>()).into()),
    ("graph_conv_layers", Whole, |at| kinds(at, |kind| kind.starts_with("Conv"))),
    ("graph_linear_layers", Whole, |at| kinds(at, |kind| kind == "Linear")),
    ("graph_layers_by_kind", Text, |at| layers(at).map(|l| json!(l).to_string()).into()),
    ("graph_sequence", Text, |at| at.features.and_then(|f| f.sequence.as_ref()).map(|s| json!(s).to_string()).into()),
    ("graph_kernels_per_step", Whole, |at| graph(at).map(|g| g.kernels_per_step).into()),
    ("graph_bytes_per_item", Number, |at| graph(at).map(|g| g.bytes_per_item).into()),
    ("graph_allocated_bytes", Whole, |at| graph(at).map(|g| g.allocated_bytes).into()),
    ("graph_reserved_bytes", Whole, |at| graph(at).map(|g| g.reserved_bytes).into()),
    ("graph_workspace_bytes", Whole, |at| graph(at).map(|g| g.workspace_bytes).into()),
];

/// What was predicted of it before the campaign ran, and never again.
static PREDICTED: &[DatasetColumn] = &[
    ("predicted_memory_bytes", Whole, |at| claim(at).map(|m| m.estimate_bytes).into()),
    ("predicted_memory_training_bytes", Whole, |at| claim(at).map(|m| m.training_bytes).into()),
    ("predicted_memory_low_bytes", Whole, |at| claim(at).map(|m| m.low_bytes).into()),
    ("predicted_memory_high_bytes", Whole, |at| claim(at).map(|m| m.high_bytes).into()),
    ("predicted_memory_upper_bytes", Whole, |at| claim(at).map(|m| m.upper_bytes).into()),
    ("predicted_by", Text, |at| claim(at).and_then(|_| by(at, |all| all.predictor.as_ref())).into()),
    ("predicted_solo_sm_active_ratio", Number, |at| claimed_alone(at, |alone| alone.sm_active_ratio)),
    ("predicted_solo_gpu_utilization_ratio", Number, |at| claimed_alone(at, |alone| alone.gpu_utilization_ratio)),
    ("predicted_solo_dram_active_ratio", Number, |at| claimed_alone(at, |alone| alone.dram_active_ratio)),
    ("predicted_solo_power_w", Number, |at| claimed_alone(at, |alone| alone.power_w)),
    ("predicted_solo_items_per_s", Number, |at| claimed_alone(at, |alone| alone.items_per_s)),
    ("predicted_solo_by", Text, |at| {
        at.predicted.and_then(|p| p.alone.as_ref()).and_then(|_| by(at, |all| all.utilisation_predictor.as_ref())).into()
    }),
    ("predicted_slowdown", Number, |at| claimed_slowdown(at).map(|slowdown| slowdown.estimate).into()),
    ("predicted_slowdown_low", Number, |at| claimed_slowdown(at).map(|slowdown| slowdown.low).into()),
    ("predicted_slowdown_high", Number, |at| claimed_slowdown(at).map(|slowdown| slowdown.high).into()),
    ("predicted_stp", Number, |at| claimed_company(at).map(|company| company.stp.estimate).into()),
    ("predicted_stp_low", Number, |at| claimed_company(at).map(|company| company.stp.low).into()),
    ("predicted_stp_high", Number, |at| claimed_company(at).map(|company| company.stp.high).into()),
    ("predicted_company_by", Text, |at| claimed_company(at).and_then(|_| by(at, |all| all.company_predictor.as_ref())).into()),
    ("predicted_utc", Text, |at| {
        let is_claimed = at.predicted.is_some_and(|p| p.memory.is_some() || p.alone.is_some()) || claimed_company(at).is_some();
        at.analysis.campaign.predicted.as_ref().filter(|_| is_claimed).map(|p| p.made_utc.clone()).into()
    }),
];

fn by(at: &At, of: fn(&Predicted) -> Option<&PredictorRecord>) -> Option<String> {
    Some(of(at.analysis.campaign.predicted.as_ref()?)?.name.clone())
}

fn claimed_alone(at: &At, value: fn(&PredictedAlone) -> Option<PredictedValue>) -> ExportValue {
    at.predicted.and_then(|p| value(p.alone.as_ref()?)).map(|value| value.estimate).into()
}

fn claimed_company<'a>(at: &At<'a>) -> Option<&'a PredictedCompany> {
    at.analysis.campaign.predicted.as_ref()?.of_cell(&at.r.record().cell.cell)?.company.as_ref()
}

fn claimed_slowdown(at: &At) -> Option<PredictedValue> {
    claimed_company(at)?.slowdowns.get(at.index).copied()
}

/// The same workload alone on the whole device: the mean of its solo cell.
static ALONE: &[DatasetColumn] = &[
    ("solo_cell", Text, |at| ExportValue::text(&at.record.spec.solo)),
    ("solo_repetitions", Whole, |at| at.solo.map(|s| s.count()).into()),
    ("solo_validity", Text, |at| at.solo.map(|s| s.verdict().as_str()).into()),
    ("solo_epoch_time_s", Number, |at| alone(at, Key::EpochTime)),
    ("solo_latency_p99_s", Number, |at| alone(at, Key::LatencyP99)),
    ("solo_items_per_s", Number, |at| alone(at, Key::Items)),
    ("solo_memory_bytes", Number, |at| alone(at, Key::Memory)),
    ("solo_memory_kind", Text, |at| at.solo.and_then(|s| s.memory_kind).map(|k| k.as_str()).into()),
    ("solo_cpu_ratio", Number, |at| alone(at, Key::Cpu)),
    ("solo_sm_active_ratio", Number, |at| alone_metric(at, Key::SmActive)),
    ("solo_sm_occupancy_ratio", Number, |at| alone_metric(at, Key::SmOccupancy)),
    ("solo_gpu_utilization_ratio", Number, |at| alone_metric(at, Key::GpuUtilization)),
    ("solo_dram_active_ratio", Number, |at| alone_metric(at, Key::DramActive)),
    ("solo_power_w", Number, |at| alone_metric(at, Key::Power)),
    ("solo_energy_j_per_epoch", Number, |at| alone(at, Key::EnergyPerEpoch)),
    ("solo_pcie_rx_bytes_per_s", Number, |at| alone_metric(at, Key::PcieRx)),
    ("solo_pcie_tx_bytes_per_s", Number, |at| alone_metric(at, Key::PcieTx)),
    ("solo_pcie_rx_bytes_per_item", Number, |at| alone(at, Key::PcieRxPerItem)),
];

/// The other members, by their solo results.
static COMPANY: &[DatasetColumn] = &[
    ("company", Text, |at| ExportValue::list(others(at).map(|m| m.spec.solo.as_str()))),
    ("company_solo_memory_bytes", Number, |at| sum(at, |s| s.get(Key::Memory).map(|q| q.estimate))),
    ("company_solo_sm_active_ratio", Number, |at| sum(at, |s| metric_of(s, Key::SmActive))),
    ("company_solo_dram_active_ratio", Number, |at| sum(at, |s| metric_of(s, Key::DramActive))),
    ("company_solo_pcie_rx_bytes_per_s", Number, |at| sum(at, |s| metric_of(s, Key::PcieRx))),
];

/// Results in this repetition: of the member, then of the whole group and the device.
static RESULTS: &[DatasetColumn] = &[
    ("epoch_time_s", Number, |at| result(at, |m| m.epoch_s)),
    ("slowdown", Number, slowdown),
    ("items_per_s", Number, |at| result(at, |m| m.items_per_s)),
    ("requests", Whole, |at| at.results.and_then(|m| m.latency.as_ref()).map(|l| l.arrived).into()),
    ("latency_p50_s", Number, |at| requests(at, Key::LatencyP50)),
    ("latency_p95_s", Number, |at| requests(at, Key::LatencyP95)),
    ("latency_p99_s", Number, |at| requests(at, Key::LatencyP99)),
    ("latency_p99_of_solo", Number, p99_of_solo),
    ("within_slo_ratio", Number, |at| requests(at, Key::WithinSlo)),
    ("goodput_per_s", Number, |at| requests(at, Key::Goodput)),
    ("offered_per_s", Number, |at| requests(at, Key::Offered)),
    ("answered_per_s", Number, |at| requests(at, Key::Answered)),
    ("memory_bytes", Number, |at| result(at, |m| m.usage.memory.map(|x| x.bytes))),
    ("memory_kind", Text, |at| at.results.and_then(|m| m.usage.memory).map(|m| m.kind.as_str()).into()),
    ("allocated_bytes", Whole, |at| at.results.and(at.record.allocated_bytes).into()),
    ("reserved_bytes", Whole, |at| at.results.and(at.record.reserved_bytes).into()),
    ("warm_up_allocated_bytes", Whole, |at| at.results.and(at.record.warm_up_allocated_bytes).into()),
    ("warm_up_reserved_bytes", Whole, |at| at.results.and(at.record.warm_up_reserved_bytes).into()),
    ("peak_rss_bytes", Whole, |at| at.results.and(at.record.peak_rss_bytes).into()),
    ("cpu_ratio", Number, |at| result(at, |m| m.usage.cpu_ratio)),
    ("read_bytes_per_s", Number, |at| result(at, |m| m.usage.read_bytes_per_s)),
    ("involuntary_switches_per_s", Number, |at| result(at, |m| m.usage.involuntary_switches_per_s)),
    ("loss", Number, |at| result(at, |m| m.loss)),
    ("group_overlap_ratio", Number, |at| group(at, |r| r.overlap_ratio.filter(|_| r.members.len() > 1))),
    ("group_start_skew_s", Number, |at| group(at, |r| r.start_skew_s)),
    ("group_makespan_s", Number, |at| group(at, |r| r.makespan_s)),
    ("group_memory_bytes", Number, |at| group(at, |r| r.used(|u| u.memory.map(|x| x.bytes)))),
    ("group_memory_kind", Text, |at| {
        at.results.and_then(|_| at.r.usages().filter_map(|u| u.memory.map(|m| m.kind)).max()).map(|kind| kind.as_str()).into()
    }),
    ("group_cpu_ratio", Number, |at| group(at, |r| r.used(|u| u.cpu_ratio))),
    ("group_items_per_s", Number, |at| group(at, |r| total(r, |m| m.items_per_s))),
    ("group_energy_j_per_epoch", Number, |at| group(at, |r| Some(r.energy?.power_w / r.epochs_per_s()?))),
    ("device_sm_active_ratio", Number, |at| metric(at, Key::SmActive)),
    ("device_sm_active_p95_ratio", Number, |at| metric(at, Key::SmActiveP95)),
    ("device_gpu_utilization_ratio", Number, |at| metric(at, Key::GpuUtilization)),
    ("device_sm_occupancy_ratio", Number, |at| metric(at, Key::SmOccupancy)),
    ("device_sm_occupancy_p95_ratio", Number, |at| metric(at, Key::SmOccupancyP95)),
    ("device_dram_active_ratio", Number, |at| metric(at, Key::DramActive)),
    ("device_dram_active_p95_ratio", Number, |at| metric(at, Key::DramActiveP95)),
    ("device_pcie_rx_bytes_per_s", Number, |at| metric(at, Key::PcieRx)),
    ("device_pcie_tx_bytes_per_s", Number, |at| metric(at, Key::PcieTx)),
    ("device_power_w", Number, |at| metric(at, Key::Power)),
    ("device_power_by_counter_w", Number, |at| group(at, |r| r.energy.map(|e| e.power_w))),
    ("device_idle_power_w", Number, |at| group(at, |r| r.idle_w)),
    ("device_sm_clock_mhz", Number, |at| metric(at, Key::SmClock)),
    ("device_temperature_c", Number, |at| metric(at, Key::Temperature)),
    ("device_throttled_ratio", Number, |at| group(at, |r| r.throttled_ratio)),
    ("device_cpu_ratio", Number, |at| metric(at, Key::Cpu)),
];

/// All rows, in the order of the plan's cells. A planned run that was not made has none.
pub fn table(analysis: &Analysis) -> ExportTable {
    let campaign = &analysis.campaign;
    let cards = &campaign.machine.gpus;
    let card = cards.iter().find(|c| c.name == campaign.device.name).filter(|_| campaign.device.kind == "gpu");
    let claims = campaign.predicted.as_ref();
    let mut rows = Vec::new();
    for cell in &analysis.cells {
        // A failed run may have ended before a member told its graph; the cell knows it from another.
        for r in &cell.repetitions {
            let beside = |solo: &str| analysis.solo_beside(std::iter::once(r), solo);
            let solos: Vec<Option<&Cell>> = cell.record.members.iter().map(|m| beside(&m.solo)).collect();
            for (index, record) in r.record().members.iter().enumerate() {
                let told = || cell.members.get(index).and_then(|m| m.features.as_ref());
                let others = solos.iter().enumerate().filter(|(i, _)| *i != index).map(|(_, solo)| *solo);
                rows.push(At {
                    analysis,
                    card,
                    r,
                    index,
                    record,
                    features: record.features.as_ref().or_else(told),
                    predicted: claims.and_then(|claims| claims.of(&record.spec.solo, &cell.record.mode)),
                    graph: claims.and_then(|claims| claims.graph_of(&record.spec.solo)),
                    solo: solos.get(index).copied().flatten(),
                    company: others.collect(),
                    results: r.members.get(index).filter(|_| r.counts()),
                });
            }
        }
    }
    let columns = [CAMPAIGN, MEMBER, PREDICTED, ALONE, COMPANY, RESULTS].concat();
    ExportTable::of(&columns, rows)
}

/// Its training step in numbers, as it was described before the campaign ran.
fn graph<'a>(at: &At<'a>) -> Option<&'a GraphNumbers> {
    at.graph
}

fn claim<'a>(at: &At<'a>) -> Option<&'a PredictedMemory> {
    at.predicted?.memory.as_ref()
}

fn layers<'a>(at: &At<'a>) -> Option<&'a std::collections::BTreeMap<String, u64>> {
    at.features.map(|f| &f.layers).filter(|l| !l.is_empty())
}

fn kinds(at: &At, is: fn(&str) -> bool) -> ExportValue {
    layers(at).map(|l| l.iter().filter(|(kind, _)| is(kind)).map(|(_, n)| n).sum::<u64>()).into()
}

fn alone(at: &At, key: Key) -> ExportValue {
    at.solo.and_then(|s| s.get(key)).map(|q| q.estimate).into()
}

fn metric_of(cell: &Cell, key: Key) -> Option<f64> {
    cell.metric(key).map(|q| q.estimate)
}

fn alone_metric(at: &At, key: Key) -> ExportValue {
    at.solo.and_then(|s| metric_of(s, key)).into()
}

/// The SMs of its slice's profile ÷ those of the whole GPU.
fn slice_sm_ratio(at: &At) -> Option<f64> {
    let model = collo_gpus::of_product(&at.r.record().device.name)?;
    let sms = model.profile(at.record.slice.as_deref()?).ok()?.sms?;
    Some(f64::from(sms) / f64::from(model.sms?))
}

fn others<'a>(at: &At<'a>) -> impl Iterator<Item = &'a MemberRecord> {
    let index = at.index;
    at.r.record().members.iter().enumerate().filter(move |(i, _)| *i != index).map(|(_, m)| m)
}

/// Sum over the other members; absent if there are none, or one of them has no value.
fn sum(at: &At, of: fn(&Cell) -> Option<f64>) -> ExportValue {
    if at.company.is_empty() {
        return ExportValue::Absent;
    }
    at.company.iter().map(|solo| solo.and_then(of)).sum::<Option<f64>>().into()
}

fn result(at: &At, of: fn(&MemberNumbers) -> Option<f64>) -> ExportValue {
    at.results.and_then(of).into()
}

fn requests(at: &At, key: Key) -> ExportValue {
    at.results.and_then(|m| m.latency.as_ref()?.reported(key)).into()
}

fn p99_of_solo(at: &At) -> ExportValue {
    let alone_s = at.solo.and_then(|s| s.get(Key::LatencyP99)).map(|q| q.estimate);
    let own_s = at.results.and_then(|m| m.latency.as_ref()?.reported(Key::LatencyP99));
    own_s.zip(alone_s).map(|(own, alone)| own / alone).into()
}

fn slowdown(at: &At) -> ExportValue {
    let alone_s = at.solo.and_then(|s| s.get(Key::EpochTime)).map(|q| q.estimate);
    at.results.and_then(|m| m.epoch_s).zip(alone_s).map(|(own, alone)| own / alone).into()
}

fn group(at: &At, of: fn(&Repetition) -> Option<f64>) -> ExportValue {
    at.results.and_then(|_| of(at.r)).into()
}

fn total(r: &Repetition, of: fn(&MemberNumbers) -> Option<f64>) -> Option<f64> {
    r.members.iter().map(of).sum()
}

fn metric(at: &At, key: Key) -> ExportValue {
    at.results.and_then(|_| at.r.metrics.get(key.name)).copied().into()
}
