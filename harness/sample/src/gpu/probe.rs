//! What each source reports of each entity of a machine, how often, and how often it changes: read for a moment, stored nowhere.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use collo_store::Sample;

use super::Board;
use super::session::{GpuSamplingSpec, GpuSession};
use crate::account::SourceResult;
use crate::latest::{Latest, Outlet};
use crate::member::Trees;
use collo_plan::experiment::SourceChoice;

/// One metric of one scope by one source.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Probed {
    pub scope: String,
    pub metric: String,
    pub source: String,
    /// Rate of its values; `None` for fewer than two.
    pub rate_hz: Option<f64>,
    /// Interval between changes of the value; `None` if it never changed.
    pub moved_every_ns: Option<u64>,
    /// Why there is no value, or no longer any.
    pub reason: Option<String>,
}

/// Fast enough to see how often the driver updates its numbers.
const NVML_HZ: f64 = 50.0;
const SLOW_HZ: f64 = 2.0;

const TIME: Duration = Duration::from_millis(1500);

/// DCGM is slow to start, above all if the driver has to be initialised first: the maximum wait after the start.
const DCGM_TIME: Duration = Duration::from_secs(15);

/// Read everything that any source reports about these GPUs, for a second and a half (longer if DCGM starts late).
pub fn probe(boards: &[Board]) -> Vec<Probed> {
    let all = SourceChoice { both: true, ..SourceChoice::default() };
    let boards: Vec<Board> = boards.iter().map(|b| Board { sources: all, ..b.clone() }).collect();
    let (batches, received) = mpsc::channel();
    let stop = Arc::new(AtomicBool::new(false));
    let setting = GpuSamplingSpec {
        nvml_hz: NVML_HZ,
        slow_hz: SLOW_HZ,
        trees: Trees::default(),
        outlet: Outlet { batches, latest: Latest::default(), tap: None },
        stop: stop.clone(),
        everything: true,
    };
    let began = Instant::now();
    let session = GpuSession::start(&boards, &setting);
    drop(setting);
    let mut samples: Vec<Sample> = Vec::new();
    let mut dcgm_since = None;
    // The last reader is DCGM's: once it has ended, there is nothing to wait for.
    let gave_up = || session.readers.last().is_none_or(std::thread::JoinHandle::is_finished);
    while !session.readers.is_empty() {
        if let Ok(batch) = received.recv_timeout(Duration::from_millis(50)) {
            if batch.iter().any(|s| s.source == "dcgm") {
                dcgm_since.get_or_insert_with(Instant::now);
            }
            samples.extend(batch);
        }
        let dcgm_is_seen = gave_up() || dcgm_since.is_some_and(|t| t.elapsed() >= TIME);
        if began.elapsed() >= DCGM_TIME || (began.elapsed() >= TIME && dcgm_is_seen) {
            break;
        }
    }
    stop.store(true, Ordering::Relaxed);
    session.readers.iter().for_each(|r| r.thread().unpark());
    let mut finished = session.unread;
    finished.extend(session.readers.into_iter().filter_map(|r| r.join().ok()).flatten());
    samples.extend(received.try_iter().flatten());
    matrix(&samples, &finished)
}

/// One row for each metric of each scope by each source.
fn matrix(samples: &[Sample], finished: &[SourceResult]) -> Vec<Probed> {
    let mut readings = BTreeMap::<(String, String, String), Vec<(u64, f64)>>::new();
    for s in samples {
        let read = readings.entry((s.scope.to_string(), s.metric.into(), s.source.into())).or_default();
        read.extend(s.value.map(|v| (s.at_ns, v)));
    }
    let mut reasons = BTreeMap::<(String, String, String), String>::new();
    for f in finished {
        // `dcgm (GPU instances)` and `nvml-slow` are how a source is read; samples bear its name.
        let source = f.quality.source.split([' ', '-']).next().unwrap_or_default();
        for (metric, scope, why) in f.account.absent() {
            reasons.insert((scope.to_string(), metric.into(), source.into()), why.into());
        }
    }
    for key in reasons.keys() {
        readings.entry(key.clone()).or_default();
    }
    let row = |(key, read): ((String, String, String), Vec<(u64, f64)>)| {
        let span_ns = read.last().zip(read.first()).map(|(last, first)| last.0.saturating_sub(first.0)).filter(|ns| *ns > 0);
        let moves = read.windows(2).filter(|w| w[0].1 != w[1].1).count() as u64;
        let reason = reasons.remove(&key);
        let (scope, metric, source) = key;
        Probed {
            scope,
            metric,
            source,
            rate_hz: span_ns.map(|ns| (read.len() - 1) as f64 / (ns as f64 / 1e9)),
            moved_every_ns: span_ns.filter(|_| moves > 0).map(|ns| ns / moves.max(1)),
            reason: reason.or_else(|| read.is_empty().then(|| "it gave no value".to_string())),
        }
    };
    readings.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Account;

    #[test]
    fn the_matrix_tells_rate_and_movement_and_why_something_is_absent() {
        let sample = |at_ns, metric, value| Sample { at_ns, window_ns: 0, source: "nvml", scope: "gpu:A".into(), metric, value };
        let mut samples: Vec<Sample> = (0..11).map(|i| sample(i * 100_000_000, "energy_j", Some((i / 2) as f64))).collect();
        samples.push(sample(0, "power_w", None));
        let mut account = Account::default();
        account.lacks("sm_active_ratio", &"gpu:A".into(), "GPM requires Hopper");
        let found = matrix(&samples, &[SourceResult::without_reading("gpm", 5.0, account)]);
        let row = |metric: &str| found.iter().find(|p| p.metric == metric).unwrap();
        assert_eq!((row("energy_j").rate_hz, row("energy_j").moved_every_ns), (Some(10.0), Some(200_000_000)));
        assert_eq!((row("power_w").rate_hz, row("power_w").reason.as_deref()), (None, Some("it gave no value")));
        let smact = row("sm_active_ratio");
        assert_eq!((smact.source.as_str(), smact.reason.as_deref()), ("gpm", Some("GPM requires Hopper")));
    }

    #[test]
    fn without_a_card_nothing_is_opened_and_nothing_is_told() {
        assert_eq!(probe(&[]), []);
    }
}
