//! Samples of one run, summed up by polars. In: `samples.parquet` and the windows that count. Out: one summary per scope and
//! metric, and thinned series for the timelines. Metrics are text: it knows none of them by name.

use std::collections::BTreeMap;
use std::path::Path;

use polars::prelude::*;

/// A span of `CLOCK_MONOTONIC`, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub start_ns: u64,
    pub end_ns: u64,
}

impl Window {
    /// None where the end is not after the start.
    pub fn new(start_ns: u64, end_ns: u64) -> Option<Window> {
        (end_ns > start_ns).then_some(Window { start_ns, end_ns })
    }

    /// Its length.
    pub fn seconds(self) -> f64 {
        (self.end_ns - self.start_ns) as f64 * 1e-9
    }
}

/// One metric of one scope over the windows of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Mean over the measured window; readings that are means over a span count by the share of it that lies inside.
    pub mean: Option<f64>,
    /// Largest reading while members trained, warm-up and tail included.
    pub peak: Option<f64>,
    /// For a counter: by how much it grew per second of the measured window, from its first to its last reading inside. Absent where
    /// it fell in between, because then it began anew.
    pub per_second: Option<f64>,
    /// Readings inside the measured window.
    pub readings: u32,
}

/// Of sources of one metric the first of these is told; others come behind them.
fn rank(source: &str) -> usize {
    const ORDER: [&str; 3] = ["gpm", "dcgm", "nvml"];
    ORDER.iter().position(|known| source.starts_with(known)).unwrap_or(ORDER.len())
}

/// Summaries by `(scope, metric)`.
pub type Summaries = BTreeMap<(String, String), Summary>;

fn scan(path: &Path) -> PolarsResult<LazyFrame> {
    let args = ScanArgsParquet { glob: false, ..Default::default() };
    LazyFrame::scan_parquet(PlRefPath::new(path.to_string_lossy()), args)
}

/// Sum up every metric of a run. `measured` lies inside `training`.
pub fn summarise(path: &Path, measured: Window, training: Window) -> PolarsResult<Summaries> {
    let (start, end) = (lit(measured.start_ns as i64), lit(measured.end_ns as i64));
    let (at, span, value) = (col("at_ns"), col("window_ns"), col("value"));
    let later = |a: Expr, b: Expr| when(a.clone().gt(b.clone())).then(a).otherwise(b);
    let earlier = |a: Expr, b: Expr| when(a.clone().lt(b.clone())).then(a).otherwise(b);
    let inside = at.clone().gt_eq(start.clone()).and(at.clone().lt_eq(end.clone()));
    let shared = earlier(at.clone(), end) - later(at.clone() - span.clone(), start.clone());
    let whole = inside.clone().and((at.clone() - span.clone()).gt_eq(start.clone()));
    let weight = when(span.clone().gt(lit(0)))
        .then(later(shared, lit(0i64)).cast(DataType::Float64))
        .otherwise(inside.clone().cast(DataType::Float64));
    let inner = value.clone().filter(col("inside"));
    let table = scan(path)?
        .filter(value.clone().is_not_null())
        .filter(at.clone().gt_eq(lit(training.start_ns as i64)))
        .filter((at.clone() - span).lt_eq(lit(training.end_ns as i64)))
        .with_columns([weight.alias("weight"), inside.alias("inside"), whole.alias("whole")])
        .group_by([col("scope"), col("metric"), col("source")])
        .agg([
            (inner.clone() - inner.shift(lit(1))).min().alias("least_step"),
            (value.clone() * col("weight")).sum().alias("sum"),
            col("weight").sum().alias("weights"),
            (value.clone() * col("weight")).filter(col("whole")).sum().alias("whole_sum"),
            col("weight").filter(col("whole")).sum().alias("whole_weights"),
            value.clone().max().alias("peak"),
            col("inside").cast(DataType::UInt32).sum().alias("readings"),
            value.clone().filter(col("inside")).first().alias("first"),
            value.filter(col("inside")).last().alias("last"),
            at.clone().filter(col("inside")).first().alias("first_at"),
            at.filter(col("inside")).last().alias("last_at"),
        ])
        .collect()?;
    let number = |name: &str| table.column(name)?.f64().cloned();
    let (scope, metric) = (table.column("scope")?.str()?, table.column("metric")?.str()?);
    let (source, least_step) = (table.column("source")?.str()?, number("least_step")?);
    let (sum, weights, peak) = (number("sum")?, number("weights")?, number("peak")?);
    let (whole_sum, whole_weights) = (number("whole_sum")?, number("whole_weights")?);
    let (first, last) = (number("first")?, number("last")?);
    let (first_at, last_at) = (table.column("first_at")?.i64()?, table.column("last_at")?.i64()?);
    let readings = table.column("readings")?.u32()?;
    let mut found = Summaries::new();
    let mut from = BTreeMap::<(String, String), usize>::new();
    for i in 0..table.height() {
        let (Some(scope), Some(metric)) = (scope.get(i), metric.get(i)) else { continue };
        // Where two sources were read side by side, one of them is told: they are not averaged.
        let (key, rank) = ((scope.to_string(), metric.to_string()), rank(source.get(i).unwrap_or_default()));
        if from.get(&key).is_some_and(|before| *before <= rank) {
            continue;
        }
        from.insert(key.clone(), rank);
        // A reading that straddles an edge is diluted with what was outside: it counts only where there is nothing better.
        let ratio = |sum: Option<f64>, weights: Option<f64>| sum.zip(weights.filter(|w| *w > 0.0)).map(|(s, w)| s / w);
        let mean = ratio(whole_sum.get(i), whole_weights.get(i)).or_else(|| ratio(sum.get(i), weights.get(i)));
        let elapsed_s = first_at.get(i).zip(last_at.get(i)).map(|(a, b)| (b - a) as f64 * 1e-9).filter(|s| *s > 0.0);
        let grown = first.get(i).zip(last.get(i)).map(|(a, b)| b - a);
        let summary = Summary {
            mean,
            peak: peak.get(i),
            per_second: grown.zip(elapsed_s).filter(|_| least_step.get(i).is_none_or(|step| step >= 0.0)).map(|(g, s)| g / s),
            readings: readings.get(i).unwrap_or(0),
        };
        found.insert(key, summary);
    }
    Ok(found)
}

/// Means over `bins` equal parts of a window, by `(scope, metric)`: `(bin, mean)` in order, empty bins left out.
pub type Series = BTreeMap<(String, String), Vec<(u32, f64)>>;

/// Thin the series of some metrics for drawing.
pub fn thin(path: &Path, window: Window, bins: u32, metrics: &[&str]) -> PolarsResult<Series> {
    let width = (window.end_ns - window.start_ns) as f64 / f64::from(bins.max(1));
    let wanted = metrics.iter().map(|m| col("metric").eq(lit(*m))).reduce(Expr::or).unwrap_or(lit(false));
    let table = scan(path)?
        .filter(wanted)
        .filter(col("value").is_not_null())
        .filter(col("at_ns").gt_eq(lit(window.start_ns as i64)).and(col("at_ns").lt(lit(window.end_ns as i64))))
        .with_column(
            ((col("at_ns") - lit(window.start_ns as i64)).cast(DataType::Float64) / lit(width))
                .cast(DataType::UInt32)
                .alias("bin"),
        )
        .group_by([col("scope"), col("metric"), col("bin")])
        .agg([col("value").mean()])
        .collect()?;
    let (scope, metric) = (table.column("scope")?.str()?, table.column("metric")?.str()?);
    let (bin, value) = (table.column("bin")?.u32()?, table.column("value")?.f64()?);
    let mut found = Series::new();
    for i in 0..table.height() {
        if let (Some(s), Some(m), Some(b), Some(v)) = (scope.get(i), metric.get(i), bin.get(i), value.get(i)) {
            found.entry((s.to_string(), m.to_string())).or_default().push((b.min(bins.saturating_sub(1)), v));
        }
    }
    for points in found.values_mut() {
        points.sort_by_key(|p| p.0);
    }
    Ok(found)
}
