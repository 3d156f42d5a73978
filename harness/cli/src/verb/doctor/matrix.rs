//! Which source tells which metric of which entity, and how often, on this machine.

use collo_measure::sampler::gpu;
pub use collo_measure::sampler::gpu::Probed as Row;
use collo_measure::sampler::{Board, BoardInstance, SourceChoice};
use collo_measure::{Driver, Gpu, cut, nvml};
use serde_json::{Value, json};

use crate::table::{Align, Table};

/// Read everything that any source tells of these cards, for as long as the sampler's probe takes.
pub fn matrix(driver: &Driver) -> Vec<Row> {
    let board = |gpu: &Gpu| {
        let at = gpu.at.as_ref()?;
        let parts = cut::read(&at.uuid, &gpu.label()).map(|c| c.instances).unwrap_or_default();
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

pub fn value(row: &Row) -> Value {
    json!({"scope": row.scope, "metric": row.metric, "source": row.source, "rate_hz": row.rate_hz,
        "moved_every_ns": row.moved_every_ns, "reason": row.reason})
}

pub fn render(rows: &[Row], width: usize) -> String {
    let columns = [
        ("metric", Align::Left),
        ("of", Align::Left),
        ("source", Align::Left),
        ("rate", Align::Right),
        ("moves every", Align::Right),
        ("remark", Align::Left),
    ];
    let mut table = Table::new(&columns, 3).with_prose_last();
    for row in rows {
        let rate = row.rate_hz.map(|hz| format!("{hz:.1} Hz"));
        let moves = row.moved_every_ns.map(|ns| format!("{:.0} ms", ns as f64 / 1e6));
        let reason = Some(row.reason.clone().unwrap_or_default());
        table.row([Some(row.metric.clone()), Some(row.scope.clone()), Some(row.source.clone()), rate, moves, reason]);
    }
    table.render(width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_has_its_source_its_rate_and_why_it_is_absent() {
        let row = |scope: &str, rate_hz, moved_every_ns, reason: Option<&str>| Row {
            scope: scope.into(),
            metric: "sm_active_ratio".into(),
            source: "gpm".into(),
            rate_hz,
            moved_every_ns,
            reason: reason.map(str::to_string),
        };
        let rows =
            [row("gpu", Some(5.0), Some(100_000_000), None), row("member", None, None, Some("the driver does not tell it"))];
        insta::assert_snapshot!(render(&rows, 100), @"
        metric           of      source    rate  moves every  remark
        sm_active_ratio  gpu     gpm     5.0 Hz       100 ms
        sm_active_ratio  member  gpm          –            –  the driver does not tell it
        ");
    }
}
