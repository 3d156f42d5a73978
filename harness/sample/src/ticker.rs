//! A thread's absolute deadlines, and how well they were kept.

use std::collections::BTreeMap;
use std::time::Duration;

use collo_quantity::stats::nearest_rank;
use collo_store::{SamplingQuality, monotonic_ns};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};

use super::quality::Movement;

/// Ticks at a fixed rate from a fixed start, so that a late tick does not shift the ones after it.
pub struct Ticker {
    period_ns: u64,
    next_ns: u64,
    began_ns: u64,
    last_ns: Option<u64>,
    ticks: u64,
    missed: u64,
    longest_gap_ns: u64,
    lateness_ns: Vec<u32>,
    started_ns: u64,
    cpu_before_ns: u64,
}

impl Ticker {
    /// Start ticking on the calling thread, first after `first_after`.
    pub fn begin(rate_hz: f64, first_after: Duration) -> Self {
        // Without this the kernel may wake the thread 50 µs late to save power.
        let _ = nix::sys::prctl::set_timerslack(1);
        let first_ns = monotonic_ns() + first_after.as_nanos() as u64;
        Ticker {
            period_ns: (1e9 / rate_hz) as u64,
            next_ns: first_ns,
            began_ns: first_ns,
            last_ns: None,
            ticks: 0,
            missed: 0,
            longest_gap_ns: 0,
            lateness_ns: Vec::new(),
            started_ns: monotonic_ns(),
            cpu_before_ns: thread_cpu_ns(),
        }
    }

    /// The time of the next tick.
    pub fn due_ns(&self) -> u64 {
        self.next_ns
    }

    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.period_ns)
    }

    /// Sleep until the next tick; returns the time at which it really began.
    pub fn wait(&mut self) -> u64 {
        let due = TimeSpec::new((self.next_ns / 1_000_000_000) as i64, (self.next_ns % 1_000_000_000) as i64);
        // A signal may cut the sleep short; the deadline is absolute, so it is simply entered again.
        while clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &due).is_err() {}
        let now = monotonic_ns();
        self.ticks += 1;
        self.lateness_ns.push(u32::try_from(now.saturating_sub(self.next_ns)).unwrap_or(u32::MAX));
        if let Some(last) = self.last_ns {
            self.longest_gap_ns = self.longest_gap_ns.max(now - last);
        }
        self.last_ns = Some(now);
        self.next_ns += self.period_ns;
        if self.next_ns < now {
            let behind = (now - self.next_ns) / self.period_ns + 1;
            self.missed += behind;
            self.next_ns += behind * self.period_ns;
        }
        now
    }

    /// The stored record about these ticks.
    pub fn quality(self, source: &str, movement: &Movement) -> SamplingQuality {
        let span_ns = self.last_ns.unwrap_or(self.began_ns) - self.began_ns;
        let span_s = span_ns as f64 / 1e9;
        // Not from the first tick to the last: a run of one tick would divide its work by nothing.
        let lived_s = (monotonic_ns() - self.started_ns) as f64 / 1e9;
        let mut lateness_s: Vec<f64> = self.lateness_ns.iter().map(|ns| f64::from(*ns) / 1e9).collect();
        let mut late = |q: f64| nearest_rank(&mut lateness_s, q);
        SamplingQuality {
            source: source.into(),
            asked_hz: 1e9 / self.period_ns as f64,
            achieved_hz: (self.ticks > 1 && span_s > 0.0).then(|| (self.ticks - 1) as f64 / span_s),
            ticks: self.ticks,
            missed: self.missed,
            longest_gap_s: (self.ticks > 1).then_some(self.longest_gap_ns as f64 / 1e9),
            lateness_p50_s: late(0.5),
            lateness_p99_s: late(0.99),
            lateness_max_s: late(1.0),
            cpu_ratio: (lived_s > 0.0).then(|| (thread_cpu_ns() - self.cpu_before_ns) as f64 / 1e9 / lived_s),
            moved_ratio: movement.ratios(),
            absent: BTreeMap::new(),
            unread_lines: 0,
            xids: Vec::new(),
            remarks: Vec::new(),
            instrument: None,
        }
    }
}

/// The processor time of the thread that calls.
pub fn thread_cpu_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
        .map(|t| t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_source_that_ticked_once_uses_no_more_than_a_core() {
        let mut ticker = Ticker::begin(1.0, Duration::ZERO);
        ticker.wait();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(20) {}
        let ratio = ticker.quality("proc", &Movement::default()).cpu_ratio.expect("it lived");
        assert!(ratio > 0.0 && ratio <= 1.0, "{ratio}");
    }
}
