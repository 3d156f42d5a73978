//! Which source reports which metric of which entity, and how often, on this machine.

use collo_device::{nvml, repartition};
use collo_figures::document::Table;
use collo_plan::experiment::SourceChoice;
use collo_plan::facts::{Driver, Gpu};
pub use collo_sample::gpu::Probed as Row;
use collo_sample::{Board, BoardInstance, gpu};

/// Read everything that any source reports about these GPUs, for as long as the sampler's probe takes.
pub fn matrix(driver: &Driver) -> Vec<Row> {
    let board = |gpu: &Gpu| {
        let at = gpu.at.as_ref()?;
        let parts = repartition::read(&at.uuid, &gpu.label()).map(|c| c.instances).unwrap_or_default();
        let instance = |d: &nvml::instances::MigDevice| BoardInstance {
            uuid: d.uuid.clone(),
            gpu_instance: d.gpu_instance,
            compute_instance: Some(d.compute_instance),
        };
        let instances = parts.iter().flat_map(|p| p.devices.iter().map(instance)).collect();
        Some(Board { uuid: at.uuid.clone(), instances, sources: SourceChoice::default() })
    };
    let boards: Vec<Board> = driver.gpus.iter().filter(|g| g.computes()).filter_map(board).collect();
    if boards.is_empty() { Vec::new() } else { gpu::probe(&boards) }
}

/// A row for each metric: its sources for a GPU, its GPU instances and members, and how often. Scopes of one kind are merged,
/// because they are alike; if they differ the slowest is shown.
pub fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(&["metric", "GPU", "GPU instance", "#new every", "remark"], 1).with_prose_last();
    let mut metrics: Vec<&str> = rows.iter().map(|r| r.metric.as_str()).collect();
    metrics.sort_unstable();
    metrics.dedup();
    for metric in metrics {
        let of = |row: &&Row| row.metric == metric;
        let moves = rows.iter().filter(of).filter_map(|r| r.moved_every_ns).max();
        let of_card = told(rows.iter().filter(of).filter(|r| r.scope.starts_with("gpu:")));
        let of_instance = told(rows.iter().filter(of).filter(|r| !r.scope.starts_with("gpu:")));
        let reason = rows.iter().filter(of).find_map(|r| r.reason.clone()).filter(|_| of_card.is_none());
        let moves = moves.map(|ns| format!("{:.0} ms", ns as f64 / 1e6));
        table.values([Some(metric.to_string()), of_card, of_instance, moves, Some(reason.unwrap_or_default())]);
    }
    table
}

/// The slowest rate of each source that gave numbers.
pub fn slowest<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<(&'a str, f64)> {
    let mut sources: Vec<(&str, f64)> = Vec::new();
    for row in rows {
        let Some(hz) = row.rate_hz else { continue };
        // Streams of one source differ in what they are about, which the column says.
        let source = row.source.split(' ').next().unwrap_or(&row.source);
        match sources.iter_mut().find(|(s, _)| *s == source) {
            Some((_, slowest)) => *slowest = slowest.min(hz),
            None => sources.push((source, hz)),
        }
    }
    sources
}

/// `gpm 5.0 Hz, dcgm 10.0 Hz`; `None` without a source.
fn told<'a>(rows: impl Iterator<Item = &'a Row>) -> Option<String> {
    let texts: Vec<String> = slowest(rows).iter().map(|(source, hz)| format!("{source} {hz:.1} Hz")).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_has_its_sources_their_rates_and_why_it_is_absent() {
        let row = |metric: &str, scope: &str, source: &str, rate_hz, moved_every_ns, reason: Option<&str>| Row {
            scope: scope.into(),
            metric: metric.into(),
            source: source.into(),
            rate_hz,
            moved_every_ns,
            reason: reason.map(str::to_string),
        };
        let rows = [
            row("sm_active_ratio", "gpu:A", "gpm", Some(5.0), Some(200_000_000), None),
            row("sm_active_ratio", "gpu:A", "dcgm", Some(10.0), None, None),
            row("sm_active_ratio", "mig:B", "gpm", Some(4.9), None, None),
            row("sm_active_ratio", "mig:C", "gpm", Some(5.0), None, None),
            row("gpu_utilization_ratio", "gpu:A", "nvml", None, None, Some("not told while MIG is on")),
        ];
        insta::assert_snapshot!(table(&rows).render(100), @r"
        metric                 GPU                       GPU instance  new every  remark
        gpu_utilization_ratio  –                         –                     –  not told while MIG is on
        sm_active_ratio        gpm 5.0 Hz, dcgm 10.0 Hz  gpm 4.9 Hz       200 ms
        ");
    }
}
