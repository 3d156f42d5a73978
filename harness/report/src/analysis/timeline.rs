//! The lives of the members of one run, with what they used meanwhile. In: a repetition. Out: spans and thinned series, in seconds
//! from `go`, at most sixty points a line.

use super::Cell;
use super::repetition::{MemoryKind, Repetition};
use super::samples;

/// Points per line.
const POINTS: u32 = 60;

/// One run, drawn along time.
#[derive(Debug)]
pub struct Timeline {
    pub cell: String,
    pub sharing: String,
    pub repetition: u32,
    /// From the first start of training to the last end, seconds from `go`.
    pub start_s: f64,
    pub end_s: f64,
    pub lives: Vec<Life>,
    /// CPU of each member, cores: `(seconds from go, value)`.
    pub cpu: Vec<Vec<(f64, f64)>>,
    /// Memory of each member, bytes.
    pub memory: Vec<Vec<(f64, f64)>>,
    pub memory_kind: Option<MemoryKind>,
}

/// One member's epochs: `(start, end, measured)`, seconds from `go`.
#[derive(Debug)]
pub struct Life {
    pub workload: String,
    pub epochs: Vec<(f64, f64, bool)>,
}

/// The timelines worth drawing: for each of the first few groups with the most members, its first counting run, solo first.
pub fn of(cells: &[Cell]) -> Vec<Timeline> {
    let mut chosen: Vec<&Cell> = cells.iter().filter(|c| !c.is_solo() && !c.counted.is_empty()).collect();
    chosen.sort_by_key(|c| std::cmp::Reverse(c.record.degree));
    chosen.truncate(2);
    let solo = chosen.first().and_then(|c| cells.iter().find(|s| s.is_solo() && s.name() == c.record.members[0].solo));
    chosen.extend(solo.filter(|s| !s.counted.is_empty()).or(cells.iter().find(|c| c.is_solo() && !c.counted.is_empty())));
    chosen.sort_by_key(|c| c.record.degree);
    chosen.into_iter().filter_map(|c| timeline(c, c.counted().next()?)).collect()
}

fn timeline(cell: &Cell, r: &Repetition) -> Option<Timeline> {
    let window = r.any_training()?;
    let zero = r.record().timeline.go_ns.unwrap_or(window.start_ns);
    let since = |ns: u64| (ns as f64 - zero as f64) * 1e-9;
    let kind = r.members.iter().filter_map(|m| m.memory.map(|x| x.kind)).max();
    // PSS is read too rarely for a line; RSS has the same shape.
    let memory_metric = if kind == Some(MemoryKind::Gpu) { "gpu_memory_bytes" } else { "rss_bytes" };
    // A series that cannot be read is left out: the run's validity already says that its samples cannot be read.
    let series =
        samples::thin(&r.run.path.join("samples.parquet"), window, POINTS, &["cpu_ratio", memory_metric]).unwrap_or_default();
    let bin_s = window.seconds() / f64::from(POINTS);
    let line = |member: usize, metric: &str| -> Vec<(f64, f64)> {
        let points = series.get(&(format!("member:{member}"), metric.to_string()));
        points.map_or_else(Vec::new, |p| {
            p.iter().map(|(bin, v)| (since(window.start_ns) + (f64::from(*bin) + 0.5) * bin_s, *v)).collect()
        })
    };
    let members = 0..r.record().members.len();
    let lives = members.clone().map(|i| Life {
        workload: r.record().members[i].spec.workload.clone(),
        epochs: r
            .epochs
            .iter()
            .filter(|e| e.member as usize == i && e.end_ns > e.start_ns)
            .map(|e| (since(e.start_ns), since(e.end_ns), e.measured))
            .collect(),
    });
    let memory: Vec<_> = members.clone().map(|i| line(i, memory_metric)).collect();
    Some(Timeline {
        cell: cell.record.cell.clone(),
        sharing: cell.record.sharing.clone(),
        repetition: r.record().repetition,
        start_s: since(window.start_ns),
        end_s: since(window.end_ns),
        lives: lives.collect(),
        cpu: members.map(|i| line(i, "cpu_ratio")).collect(),
        memory_kind: if memory_metric == "rss_bytes" { Some(MemoryKind::Rss) } else { kind },
        memory,
    })
}
