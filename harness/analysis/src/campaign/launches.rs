//! Points of a sweep over launches: cells alone on the whole device that launch one kernel over and over and differ in its blocks and
//! threads. In: cells. Out: those that are one sweep, which a figure of its own draws instead of a panel for each.
//!
//! No workload is known by its name: a launch has the settings `blocks` and `threads`, and its kernel is told to be launched exactly so
//! (`kernel = "cuda"`, by the setting or by the member's hello).
//!
//! `report/src/resources/launches.rs` draws them, and figures with a panel for each workload leave them out
//! (`report/src/parts/panels.rs`).

use std::collections::BTreeMap;

use serde_json::Value;

use crate::cell::Cell;

/// Fewer points are single cells.
const POINTS: usize = 3;

/// A cell, and the configuration of its launches.
#[derive(Debug, Clone, Copy)]
pub struct LaunchPoint<'a> {
    pub blocks: u64,
    pub threads: u64,
    pub cell: &'a Cell,
}

impl LaunchPoint<'_> {
    /// Threads of a launch.
    pub fn in_flight(&self) -> u64 {
        self.blocks.saturating_mul(self.threads)
    }

    /// `131072 × 1024`
    pub fn name(&self) -> String {
        format!("{} × {}", self.blocks, self.threads)
    }
}

/// Blocks and threads of the launches of a cell alone.
fn launch(cell: &Cell) -> Option<(u64, u64)> {
    let spec = cell.record.members.first().filter(|_| cell.is_solo())?;
    let whole = |name: &str| spec.settings.get(name).and_then(Value::as_u64);
    let (blocks, threads) = (whole("blocks")?, whole("threads")?);
    let exact = |value: Option<&Value>| value.and_then(Value::as_str) == Some("cuda");
    let told =
        || cell.repetitions.iter().any(|r| exact(r.record().members.first().and_then(|m| m.hello.as_ref()?.get("kernel"))));
    (exact(spec.settings.get("kernel")) || told()).then_some((blocks, threads))
}

/// The indices of the cells of a sweep, by threads and blocks; of equal launches the first. None if there are too few, and none that is
/// the baseline of a group: it is drawn with that.
pub(super) fn swept(cells: &[Cell]) -> Vec<usize> {
    let grouped = |label: &str| cells.iter().any(|c| !c.is_solo() && c.record.members.iter().any(|m| m.solo == label));
    let mut points = BTreeMap::<(u64, u64), usize>::new();
    for (i, cell) in cells.iter().enumerate() {
        if let Some((blocks, threads)) = launch(cell).filter(|_| !grouped(cell.name())) {
            points.entry((threads, blocks)).or_insert(i);
        }
    }
    if points.len() < POINTS { Vec::new() } else { points.into_values().collect() }
}

impl super::Analysis {
    /// The points of its sweep, by threads and blocks; none if it has no sweep.
    pub fn launches(&self) -> Vec<LaunchPoint<'_>> {
        let point = |at: &usize| {
            let cell = self.cells.get(*at)?;
            launch(cell).map(|(blocks, threads)| LaunchPoint { blocks, threads, cell })
        };
        self.index.swept.iter().filter_map(point).collect()
    }

    /// Whether a workload, by the label of its solo cell, is a point of the sweep.
    pub fn is_swept(&self, workload: &str) -> bool {
        let solo = self.index.solos.get(workload);
        solo.is_some_and(|at| self.index.swept.contains(at))
    }

    /// Whether it has nothing but a sweep.
    pub fn only_sweeps(&self) -> bool {
        !self.index.swept.is_empty() && self.index.swept.len() == self.cells.len()
    }
}
