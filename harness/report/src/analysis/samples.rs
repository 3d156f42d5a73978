//! Samples of one run, summed up by polars. In: `samples.parquet` and the windows that count. Out: one summary per scope and
//! metric, and thinned series for the timelines. Metrics are text: it knows none of them by name.

use std::collections::BTreeMap;
use std::path::Path;

use polars::prelude::*;

use super::trust::Trust;

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
    /// How often it rose in that time, as far as was seen.
    pub steps: u32,
    /// What 95 % of the readings inside do not exceed.
    pub p95: Option<f64>,
    /// Means of the first and of the second half of the measured window.
    pub halves: Option<(f64, f64)>,
    /// Of a mask of throttle reasons: the share of the readings inside in which the card was slower than it could be.
    pub throttled_ratio: Option<f64>,
    /// Readings inside the measured window.
    pub readings: u32,
}

/// Of sources of one metric the first of these is told; others come behind them.
fn rank(source: &str) -> usize {
    const ORDER: [&str; 3] = ["gpm", "dcgm", "nvml"];
    ORDER.iter().position(|known| source.starts_with(known)).unwrap_or(ORDER.len())
}

/// Bits of NVML's mask that say that something holds the clocks down: power cap, hardware slowdown, sync boost, both thermal slowdowns,
/// power brake (bits 2 to 7, so that the lowest eight are 4 or more). Idle, application clocks and display clocks are settings.
const LOWEST_BITS: i64 = 256;
const THROTTLED_FROM: i64 = 4;

/// Summaries by `(scope, metric)`.
pub type Summaries = BTreeMap<(String, String), Summary>;

/// Damage of a table is an error, also where polars panics.
fn whole<T>(read: impl FnOnce() -> PolarsResult<T>) -> PolarsResult<T> {
    collo_store::caught(read).unwrap_or_else(|why| Err(PolarsError::ComputeError(why.into())))
}

fn scan(path: &Path) -> PolarsResult<LazyFrame> {
    let args = ScanArgsParquet { glob: false, ..Default::default() };
    LazyFrame::scan_parquet(PlRefPath::new(path.to_string_lossy()), args)
}

/// Sum up what is believed of every metric of a run. `measured` lies inside `training`.
pub fn summarise(path: &Path, measured: Window, training: Window, trust: &Trust) -> PolarsResult<Summaries> {
    whole(|| summarise_of(path, measured, training, trust))
}

fn summarise_of(path: &Path, measured: Window, training: Window, trust: &Trust) -> PolarsResult<Summaries> {
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
    let wholly = || value.clone().filter(col("whole"));
    let middle = lit(((measured.start_ns + measured.end_ns) / 2) as i64);
    let reasons = inner.clone().cast(DataType::Int64) % lit(LOWEST_BITS);
    let step = inner.clone() - inner.clone().shift(lit(1));
    let table = scan(path)?
        .filter(trust.believed())
        // What is not a number is no reading.
        .filter(value.clone().is_not_null().and(value.clone().is_not_nan()))
        .filter(at.clone().gt_eq(lit(training.start_ns as i64)))
        .filter((at.clone() - span).lt_eq(lit(training.end_ns as i64)))
        .with_columns([weight.alias("weight"), inside.alias("inside"), whole.alias("whole")])
        .group_by([col("scope"), col("metric"), col("source")])
        .agg([
            step.clone().min().alias("least_step"),
            step.gt(lit(0.0)).sum().cast(DataType::UInt32).alias("steps"),
            wholly().quantile(lit(0.95), QuantileMethod::Linear).alias("p95"),
            value.clone().filter(col("whole").and(at.clone().lt(middle.clone()))).mean().alias("early"),
            value.clone().filter(col("whole").and(at.clone().gt_eq(middle))).mean().alias("late"),
            reasons.gt_eq(lit(THROTTLED_FROM)).mean().alias("throttled"),
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
    let (readings, steps) = (table.column("readings")?.u32()?, table.column("steps")?.u32()?);
    let (p95, early, late, throttled) = (number("p95")?, number("early")?, number("late")?, number("throttled")?);
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
            steps: steps.get(i).unwrap_or(0),
            p95: p95.get(i),
            halves: early.get(i).zip(late.get(i)),
            throttled_ratio: throttled.get(i).filter(|_| metric == "throttle_reasons"),
            readings: readings.get(i).unwrap_or(0),
        };
        found.insert(key, summary);
    }
    Ok(found)
}

/// Memory of the card that may come and go without anybody having begun to use it.
const NOBODY_BYTES: f64 = 16.0 * 1024.0 * 1024.0;

/// Board power while nobody used the card yet: the mean of the readings between the launch and the last reading of the card's memory that is
/// still as it was at the launch, watts. Process lists come too rarely to tell that moment. Absent where no reading lies wholly in that
/// time, or the memory was not read.
pub fn idle_w(path: &Path, launched_ns: u64, training_start_ns: u64) -> PolarsResult<Option<f64>> {
    whole(|| idle_w_of(path, launched_ns, training_start_ns))
}

fn idle_w_of(path: &Path, launched_ns: u64, training_start_ns: u64) -> PolarsResult<Option<f64>> {
    let metric = |name: &str| col("metric").eq(lit(name));
    let table = scan(path)?
        .filter(metric("power_w").or(metric("memory_used_bytes")))
        .filter(col("value").is_not_null())
        .select([col("at_ns"), col("window_ns"), col("scope"), col("metric"), col("value")])
        .collect()?;
    let (at, span) = (table.column("at_ns")?.i64()?, table.column("window_ns")?.cast(&DataType::Int64)?);
    let (span, value) = (span.i64()?, table.column("value")?.f64()?);
    let (scope, metric) = (table.column("scope")?.str()?, table.column("metric")?.str()?);
    let of = |name: &'static str| {
        let rows = (0..table.height()).filter(move |i| metric.get(*i) == Some(name));
        let rows = rows.filter(|i| scope.get(*i).is_some_and(|s| s.starts_with("gpu:")));
        rows.filter_map(|i| Some((at.get(i)?, span.get(i)?, value.get(i)?)))
    };
    let mut memory: Vec<(i64, f64)> = of("memory_used_bytes").map(|r| (r.0, r.2)).filter(|r| r.0 >= launched_ns as i64).collect();
    memory.sort_by_key(|r| r.0);
    let Some(first) = memory.first().map(|r| r.1) else { return Ok(None) };
    let unused = memory.iter().take_while(|r| r.1 <= first + NOBODY_BYTES);
    let Some(until) = unused.map(|r| r.0).max().filter(|_| memory.iter().any(|r| r.1 > first + NOBODY_BYTES)) else {
        return Ok(None);
    };
    let until = until.min(training_start_ns as i64);
    let idle: Vec<f64> = of("power_w").filter(|r| r.0 <= until && r.0 - r.1 >= launched_ns as i64).map(|r| r.2).collect();
    Ok((!idle.is_empty()).then(|| idle.iter().sum::<f64>() / idle.len() as f64))
}

/// Means over `bins` equal parts of a window, by `(scope, metric)`: `(bin, mean)` in order, empty bins left out.
pub type Series = BTreeMap<(String, String), Vec<(u32, f64)>>;

/// Thin what is believed of some metrics for drawing.
pub fn thin(path: &Path, window: Window, bins: u32, metrics: &[&str], trust: &Trust) -> PolarsResult<Series> {
    whole(|| thin_of(path, window, bins, metrics, trust))
}

fn thin_of(path: &Path, window: Window, bins: u32, metrics: &[&str], trust: &Trust) -> PolarsResult<Series> {
    let width = (window.end_ns - window.start_ns) as f64 / f64::from(bins.max(1));
    let wanted = metrics.iter().map(|m| col("metric").eq(lit(*m))).reduce(Expr::or).unwrap_or(lit(false));
    let table = scan(path)?
        .filter(wanted)
        .filter(trust.believed())
        .filter(col("value").is_not_null())
        .filter(col("at_ns").gt_eq(lit(window.start_ns as i64)).and(col("at_ns").lt(lit(window.end_ns as i64))))
        .with_column(
            ((col("at_ns") - lit(window.start_ns as i64)).cast(DataType::Float64) / lit(width))
                .cast(DataType::UInt32)
                .alias("bin"),
        )
        .group_by([col("scope"), col("metric"), col("source"), col("bin")])
        .agg([col("value").mean()])
        .collect()?;
    let (scope, metric) = (table.column("scope")?.str()?, table.column("metric")?.str()?);
    let source = table.column("source")?.str()?;
    let (bin, value) = (table.column("bin")?.u32()?, table.column("value")?.f64()?);
    // Of two sources of one metric one is drawn, as one is told.
    let mut by_source = BTreeMap::<(String, String), BTreeMap<(usize, String), Vec<(u32, f64)>>>::new();
    for i in 0..table.height() {
        if let (Some(s), Some(m), Some(b), Some(v)) = (scope.get(i), metric.get(i), bin.get(i), value.get(i)) {
            let source = source.get(i).unwrap_or_default();
            let lines = by_source.entry((s.to_string(), m.to_string())).or_default();
            lines.entry((rank(source), source.to_string())).or_default().push((b.min(bins.saturating_sub(1)), v));
        }
    }
    let mut found: Series = by_source.into_iter().filter_map(|(key, mut lines)| Some((key, lines.pop_first()?.1))).collect();
    for points in found.values_mut() {
        points.sort_by_key(|p| p.0);
    }
    Ok(found)
}
