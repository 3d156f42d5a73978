//! Samples of one run, aggregated by polars. In: `samples.parquet` and the windows that count. Out: one summary per scope and
//! metric, and thinned series for the timelines. Metrics are text: it knows none of them by name.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use collo_store::{SampleSeries, read_series};
use polars::prelude::*;

use super::trust::Trust;

/// A span of `CLOCK_MONOTONIC`, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub start_ns: u64,
    pub end_ns: u64,
}

impl Window {
    /// `None` unless the end is after the start.
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
    /// Mean over the measured window; readings that are means over a span count by the share of it inside.
    pub mean: Option<f64>,
    /// Largest reading from the first start of training, including warm-up and tail, until the member of the scope no longer trained, or
    /// none where it is no member's.
    pub peak: Option<f64>,
    /// For a counter: its growth per second of the measured window, from its first to its last reading inside. Absent if it fell
    /// in between, because then it was reset.
    pub per_second: Option<f64>,
    /// Number of rises seen in that time.
    pub steps: u32,
    /// The value that 95 % of the readings inside do not exceed.
    pub p95: Option<f64>,
    /// Means of the first and of the second half of the measured window.
    pub halves: Option<(f64, f64)>,
    /// For a mask of throttle reasons: the share of the readings inside in which the GPU was throttled.
    pub throttled_ratio: Option<f64>,
    /// Readings inside the measured window.
    pub readings: u32,
}

/// Of several sources of one metric the lowest rank is used.
fn rank(source: &str) -> usize {
    const ORDER: [&str; 3] = ["gpm", "dcgm", "nvml"];
    ORDER.iter().position(|known| source.starts_with(known)).unwrap_or(ORDER.len())
}

/// Bits of NVML's mask that mean throttling: power cap, hardware slowdown, sync boost, both thermal slowdowns, power brake (bits
/// 2 to 7, so that the lowest eight are 4 or more). Idle, application clocks and display clocks are settings.
const LOWEST_BITS: i64 = 256;
const THROTTLED_FROM: i64 = 4;

/// Summaries by `(scope, metric)`.
pub type Summaries = BTreeMap<(String, String), Summary>;

/// Aggregate the trusted readings of every metric of a run. `measured` lies inside the `training_of` every scope; no CPU load is more
/// than `cores`, where that is known.
pub fn summarise(
    path: &Path,
    measured: Window,
    training_of: impl Fn(&str) -> Window,
    trust: &Trust,
    cores: Option<f64>,
) -> collo_store::Result<Summaries> {
    let mut found = BTreeMap::<(String, String), (bool, usize, String, Summary)>::new();
    for series in read_series(path, |_, _, _| true)? {
        let (rank, key) = (rank(&series.source), (series.scope.clone(), series.metric.clone()));
        let believed = Columns::of(&series, training_of(&series.scope), trust, cores);
        if let Some(mut summary) = believed.summary(measured).map_err(io::Error::other)? {
            // Of two sources read side by side one is reported, of equal ones the first by name: they are not averaged. One that has
            // read in the measured window comes before one that gave up in the warm-up.
            let place = (summary.readings == 0, rank, &series.source);
            if found.get(&key).is_some_and(|(missed, rank, source, _)| (*missed, *rank, source) <= place) {
                continue;
            }
            summary.throttled_ratio = summary.throttled_ratio.filter(|_| key.1 == "throttle_reasons");
            found.insert(key, (place.0, rank, series.source.clone(), summary));
        }
    }
    Ok(found.into_iter().map(|(key, (.., summary))| (key, summary)).collect())
}

/// Readings of one series that count: a column each, without absent values.
struct Columns {
    at: Int64Chunked,
    span: Int64Chunked,
    value: Float64Chunked,
}

impl Columns {
    /// The trusted ones while members trained.
    fn of(series: &SampleSeries, training: Window, trust: &Trust, cores: Option<f64>) -> Columns {
        let believes = trust.believes(series);
        let is_cpu = &*series.metric == CPU;
        let is_short = |window: i64| is_cpu && &*series.scope == HOST && (1..LEAST_CPU_WINDOW_NS).contains(&window);
        let most = cores.filter(|_| is_cpu).unwrap_or(f64::INFINITY);
        let (mut at, mut span, mut value) = (Vec::new(), Vec::new(), Vec::new());
        let (start, end) = (training.start_ns as i64, training.end_ns as i64);
        for (at_ns, window_ns, read) in &series.readings {
            let (until, window) = (*at_ns as i64, *window_ns as i64);
            let in_training = until >= start && until.wrapping_sub(window) <= end;
            // What is not a number is no reading.
            if let Some(read) = read.filter(|v| !v.is_nan() && in_training && !is_short(window) && believes(*at_ns, *v)) {
                at.push(until);
                span.push(window);
                value.push(read.min(most));
            }
        }
        Columns {
            at: Int64Chunked::from_vec("at_ns".into(), at),
            span: Int64Chunked::from_vec("window_ns".into(), span),
            value: Float64Chunked::from_vec("value".into(), value),
        }
    }

    /// Overlap of each reading with the window, nanoseconds; for an instantaneous reading, 1 or 0.
    fn weights(&self, measured: Window) -> Float64Chunked {
        let (start, end) = (measured.start_ns as i64, measured.end_ns as i64);
        let weight = |(at, span): (i64, i64)| match span {
            1.. => at.min(end).wrapping_sub(at.wrapping_sub(span).max(start)).max(0) as f64,
            _ => f64::from(u8::from((start..=end).contains(&at))),
        };
        let rows = self.at.into_no_null_iter().zip(self.span.into_no_null_iter());
        Float64Chunked::from_vec("weight".into(), rows.map(weight).collect())
    }

    /// `None` if nothing counts.
    fn summary(&self, measured: Window) -> PolarsResult<Option<Summary>> {
        let Columns { at, span, value } = self;
        let Some(peak) = value.max() else { return Ok(None) };
        let middle = measured.start_ns.midpoint(measured.end_ns) as i64;
        let inside = at.gt_eq(measured.start_ns as i64) & at.lt_eq(measured.end_ns as i64);
        let whole = &inside & &(at - span).gt_eq(measured.start_ns as i64);
        let weight = self.weights(measured);
        let (inner, inner_at, wholly) = (value.filter(&inside)?, at.filter(&inside)?, value.filter(&whole)?);
        let mean_of = |value: &Float64Chunked, weight: &Float64Chunked| {
            let weights = sum(weight.into_no_null_iter());
            (weights > 0.0).then(|| sum((value * weight).into_no_null_iter()) / weights)
        };
        let steps: Vec<f64> = inner.into_no_null_iter().zip(inner.into_no_null_iter().skip(1)).map(|(a, b)| b - a).collect();
        let (first_at, last_at) = (inner_at.into_no_null_iter().next(), inner_at.into_no_null_iter().last());
        let (first, last) = (inner.into_no_null_iter().next(), inner.into_no_null_iter().last());
        let elapsed_s = first_at.zip(last_at).map(|(a, b)| b.wrapping_sub(a) as f64 * 1e-9).filter(|s| *s > 0.0);
        let grown = first.zip(last).map(|(a, b)| b - a);
        let reasons = inner.cast(&DataType::Int64)?;
        let is_slowed: Vec<bool> = reasons.i64()?.iter().flatten().map(|mask| mask % LOWEST_BITS >= THROTTLED_FROM).collect();
        let early = value.filter(&(&whole & &at.lt(middle)))?;
        Ok(Some(Summary {
            // A reading that straddles an edge is diluted with what was outside: it counts only where there is nothing better.
            mean: mean_of(&wholly, &weight.filter(&whole)?).or_else(|| mean_of(value, &weight)),
            peak: Some(peak),
            per_second: grown.zip(elapsed_s).filter(|_| steps.iter().all(|s| *s >= 0.0)).map(|(g, s)| g / s),
            steps: steps.iter().filter(|s| **s > 0.0).count() as u32,
            p95: wholly.quantile(0.95, QuantileMethod::Linear)?,
            halves: mean(&early).zip(mean(&value.filter(&(&whole & &at.gt_eq(middle)))?)),
            throttled_ratio: ratio(is_slowed.iter().filter(|s| **s).count(), is_slowed.len()),
            readings: inner.len() as u32,
        }))
    }
}

const CPU: &str = "cpu_ratio";
const HOST: &str = "host";
/// The machine's CPU time is counted in ticks, of 10 ms on nearly every machine, and those of idle cores are made up for later: over
/// less than ten of them a load is mostly rounding.
const LEAST_CPU_WINDOW_NS: i64 = 100_000_000;

/// After Kahan: for nearly equal repetitions, the variance depends on the last bits.
fn sum(values: impl Iterator<Item = f64>) -> f64 {
    let add = |(sum, error): (f64, f64), value: f64| {
        let (before, more) = (sum, value - error);
        (before + more, ((before + more) - before) - more)
    };
    values.fold((0.0, 0.0), add).0
}

fn mean(values: &Float64Chunked) -> Option<f64> {
    (!values.is_empty()).then(|| sum(values.into_no_null_iter()) / values.len() as f64)
}

fn ratio(some: usize, all: usize) -> Option<f64> {
    (all > 0).then(|| some as f64 / all as f64)
}

const PSS: &str = "pss_bytes";
/// RSS from the same walk of the page tables as a reading of PSS, at the same time.
const RSS_AT_PSS: &str = "rss_at_pss_bytes";
const RSS: &str = "rss_bytes";

/// The peak of each scope's proportional memory in `training_of` it. PSS is read rarely, RSS often: it is the largest RSS, less what
/// RSS counted too often at the reading of PSS with the largest RSS. At least the largest PSS, and at most the largest RSS. Absent where
/// no PSS has the RSS of the same walk: one that was read beside it can be that of another moment.
pub fn proportional_peaks(path: &Path, training_of: impl Fn(&str) -> Window) -> collo_store::Result<BTreeMap<String, f64>> {
    let mut read = readings(path, &[PSS, RSS_AT_PSS, RSS], &Trust::default())?;
    for ((scope, _), readings) in &mut read {
        let Window { start_ns, end_ns } = training_of(scope);
        readings.retain(|r| (start_ns..=end_ns).contains(&r.0));
    }
    let of = |(scope, metric): &(String, String)| {
        let of = |metric: &str| read.get(&(scope.clone(), metric.to_string())).map_or(&[][..], Vec::as_slice);
        (metric == PSS).then(|| Some((scope.clone(), proportional_peak(of(PSS), of(RSS_AT_PSS), of(RSS))?)))?
    };
    Ok(read.keys().filter_map(of).collect())
}

/// The peak from readings of PSS, of the RSS at the same times, and of RSS; `None` without a pair of the first two.
fn proportional_peak(pss: &[Reading], rss_at_pss: &[Reading], rss: &[Reading]) -> Option<f64> {
    let with_rss = |r: &Reading| Some((rss_at_pss.iter().find(|with| with.0 == r.0)?.2, r.2));
    let pairs: Vec<(f64, f64)> = pss.iter().filter_map(with_rss).collect();
    let (resident, proportional) = pairs.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)))?;
    let most = pairs.iter().map(|pair| pair.1).reduce(f64::max)?;
    let peak = rss.iter().map(|r| r.2).fold(resident, f64::max);
    Some((peak - (resident - proportional).max(0.0)).max(most))
}

const POWER: &str = "power_w";
const MEMORY: &str = "memory_used_bytes";
/// GPU memory that may come and go without the GPU being used.
const NOBODY_BYTES: f64 = 16.0 * 1024.0 * 1024.0;

/// Board power while the GPU was still unused: the mean of the readings between the launch and the last reading of the GPU's
/// memory that is unchanged since the launch, watts. Process lists come too rarely to show that moment. Absent if no reading lies
/// wholly in that time, or the memory was not read.
pub fn idle_w(path: &Path, launched_ns: u64, training_start_ns: u64) -> collo_store::Result<Option<f64>> {
    let is_asked = |_: &str, scope: &str, metric: &str| scope.starts_with("gpu:") && [POWER, MEMORY].contains(&metric);
    let read = read_series(path, is_asked)?;
    let of = |name: &'static str| {
        let readings = read.iter().filter(move |s| s.metric == name).flat_map(|s| &s.readings);
        readings.filter_map(|(at, span, value)| Some((*at as i64, *span as i64, (*value)?)))
    };
    let mut memory: Vec<(i64, f64)> = of(MEMORY).map(|r| (r.0, r.2)).filter(|r| r.0 >= launched_ns as i64).collect();
    memory.sort_by_key(|r| r.0);
    let Some(first) = memory.first().map(|r| r.1) else { return Ok(None) };
    let unused = memory.iter().take_while(|r| r.1 <= first + NOBODY_BYTES);
    let Some(until) = unused.map(|r| r.0).max().filter(|_| memory.iter().any(|r| r.1 > first + NOBODY_BYTES)) else {
        return Ok(None);
    };
    let until = until.min(training_start_ns as i64);
    let idle: Vec<f64> = of(POWER).filter(|r| r.0 <= until && r.0.wrapping_sub(r.1) >= launched_ns as i64).map(|r| r.2).collect();
    Ok((!idle.is_empty()).then(|| idle.iter().sum::<f64>() / idle.len() as f64))
}

/// A reading: when, nanoseconds; the span that it is a mean over, or 0; its value.
pub type Reading = (u64, u64, f64);

/// The trusted readings of some metrics in order, by `(scope, metric)`, each from the source that is reported.
pub fn readings(path: &Path, metrics: &[&str], trust: &Trust) -> collo_store::Result<BTreeMap<(String, String), Vec<Reading>>> {
    let mut found = BTreeMap::<(String, String), (usize, String, Vec<Reading>)>::new();
    for series in read_series(path, |_, _, metric| metrics.contains(&metric))? {
        let believes = trust.believes(&series);
        let real = |(at, span, value): &(u64, u64, Option<f64>)| {
            value.filter(|v| v.is_finite() && believes(*at, *v)).map(|value| (*at, *span, value))
        };
        let mut read: Vec<Reading> = series.readings.iter().filter_map(real).collect();
        let (rank, key) = (rank(&series.source), (series.scope.clone(), series.metric.clone()));
        if read.is_empty() || found.get(&key).is_some_and(|(r, s, _)| (*r, s) <= (rank, &series.source)) {
            continue;
        }
        read.sort_by_key(|r| r.0);
        found.insert(key, (rank, series.source.clone(), read));
    }
    Ok(found.into_iter().map(|(key, (_, _, read))| (key, read)).collect())
}

/// Means over `bins` equal parts of a window, by `(scope, metric)`: `(bin, mean)` in order, empty bins left out.
pub type BinnedSeries = BTreeMap<(String, String), Vec<(u32, f64)>>;

/// Thin the trusted readings of some metrics for drawing.
pub fn thin(path: &Path, window: Window, bins: u32, metrics: &[&str], trust: &Trust) -> collo_store::Result<BinnedSeries> {
    let width_ns = (window.end_ns - window.start_ns) as f64 / f64::from(bins.max(1));
    let last = bins.saturating_sub(1);
    let mut found = BTreeMap::<(String, String), (usize, String, Vec<(u32, f64)>)>::new();
    for series in read_series(path, |_, _, metric| metrics.contains(&metric))? {
        let believes = trust.believes(&series);
        let mut parts = BTreeMap::<u32, Vec<f64>>::new();
        for (at_ns, _, value) in &series.readings {
            let is_inside = *at_ns >= window.start_ns && *at_ns < window.end_ns;
            if let Some(value) = value.filter(|v| is_inside && !v.is_nan() && believes(*at_ns, *v)) {
                let bin = ((at_ns - window.start_ns) as f64 / width_ns) as u32;
                parts.entry(bin.min(last)).or_default().push(value);
            }
        }
        // Of two sources of one metric the same one is drawn.
        let (rank, key) = (rank(&series.source), (series.scope.clone(), series.metric.clone()));
        if parts.is_empty() || found.get(&key).is_some_and(|(r, s, _)| (*r, s) <= (rank, &series.source)) {
            continue;
        }
        let mean = |of: Vec<f64>| sum(of.iter().copied()) / of.len() as f64;
        let points = parts.into_iter().map(|(bin, values)| (bin, mean(values))).collect();
        found.insert(key, (rank, series.source.clone(), points));
    }
    Ok(found.into_iter().map(|(key, (_, _, points))| (key, points)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readings a tenth of a second apart, in MB.
    fn tenths(values: &[f64]) -> Vec<Reading> {
        values.iter().enumerate().map(|(i, mb)| (i as u64 * 100_000_000, 0, mb * 1e6)).collect()
    }

    /// From readings of PSS: when, in ms, its value, and the RSS of the same walk.
    fn peak_mb(pss: &[(u64, f64, f64)], rss: &[f64]) -> Option<f64> {
        let of = |mb: fn(&(u64, f64, f64)) -> f64| -> Vec<Reading> {
            pss.iter().map(|read| (read.0 * 1_000_000, 0, mb(read) * 1e6)).collect()
        };
        proportional_peak(&of(|r| r.1), &of(|r| r.2), &tenths(rss)).map(|bytes| (bytes / 1e6).round())
    }

    #[test]
    fn memory_that_was_freed_before_pss_was_read_is_in_its_peak() {
        // 400 MB for most of the time; 12 MB at the end, of which 5 are shared.
        assert_eq!(peak_mb(&[(510, 7.0, 12.0)], &[12.0, 412.0, 412.0, 412.0, 12.0, 12.0]), Some(407.0));
        // A steady member: what it shares is not its own.
        assert_eq!(peak_mb(&[(510, 300.0, 500.0)], &[500.0, 500.0, 500.0, 500.0, 500.0, 500.0]), Some(300.0));
    }

    #[test]
    fn of_several_readings_the_one_nearest_to_the_largest_rss_tells_what_is_shared() {
        // Forked loaders share 1500 MB with their parent while they live: 2000 MB of RSS are 600 MB.
        let rss = [500.0, 500.0, 2000.0, 2040.0, 500.0, 500.0];
        assert_eq!(peak_mb(&[(210, 600.0, 2000.0), (500, 490.0, 500.0)], &rss), Some(640.0));
        // Without the first all is counted that came on top: an upper bound.
        assert_eq!(peak_mb(&[(500, 490.0, 500.0)], &rss), Some(2030.0));
    }

    #[test]
    fn a_peak_is_no_less_than_the_largest_pss_and_no_more_than_the_largest_rss() {
        assert_eq!(peak_mb(&[(100, 90.0, 95.0), (400, 20.0, 30.0)], &[95.0, 95.0, 30.0, 30.0, 30.0]), Some(90.0));
        // More was resident when PSS was read than at any reading of RSS.
        assert_eq!(peak_mb(&[(150, 400.0, 410.0)], &[10.0, 410.0, 10.0]), Some(400.0));
        assert_eq!(peak_mb(&[(150, 400.0, 410.0)], &[]), Some(400.0));
        assert_eq!(peak_mb(&[], &[410.0]), None);
    }

    #[test]
    fn memory_that_is_freed_while_pss_is_read_takes_nothing_from_the_peak() {
        // Asked for at 150 ms, read at 250 ms: readings of RSS on both sides of 150 ms are of before, when 390 MB more were resident.
        assert_eq!(peak_mb(&[(150, 20.0, 22.0)], &[410.0, 410.0, 410.0, 22.0]), Some(408.0));
        let alone = [(150_000_000, 0, 20e6)];
        assert_eq!(
            proportional_peak(&alone, &[], &tenths(&[410.0, 410.0, 22.0])),
            None,
            "PSS without the RSS of its walk is none"
        );
    }

    #[test]
    fn loads_over_less_than_ten_ticks_count_for_nothing_and_none_is_more_than_the_cores() {
        let of = |scope: &str, readings: &[(u64, u64, f64)]| {
            let readings = readings.iter().map(|(at, ms, load)| (at * 1_000_000, ms * 1_000_000, Some(*load))).collect();
            let series = SampleSeries { source: "host".into(), scope: scope.into(), metric: CPU.into(), readings };
            let window = Window { start_ns: 0, end_ns: 10_000_000_000 };
            let columns = Columns::of(&series, window, &Trust::default(), Some(2.0));
            columns.summary(window).unwrap().and_then(|s| s.mean)
        };
        // A stored campaign had 34.28 cores on 2 over 7 ms.
        assert_eq!(of(HOST, &[(1000, 1000, 1.0), (2000, 1000, 1.0), (2007, 7, 34.28)]), Some(1.0));
        assert_eq!(of(HOST, &[(2007, 7, 34.28)]), None);
        assert_eq!(of("member:0", &[(1000, 100, 3.0), (1100, 10, 1.0)]), Some((3.0f64.min(2.0) * 100.0 + 10.0) / 110.0));
    }
}
