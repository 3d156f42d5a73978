//! What the manager knows of its cards: means of samples over a window, and how old the newest is.

use std::collections::VecDeque;
use std::sync::Arc;

use collo_schedule::Reading;
use collo_schedule::policy::Needs;
use collo_store::Sample;

/// Samples of one card, as far back as its window.
pub struct CardReadings {
    scope: Arc<str>,
    capacity_bytes: u64,
    window_ns: u64,
    sm: Series,
    occupancy: Series,
    dram: Series,
    /// Of a set of cores: how many of them can be busy at a time.
    cores: Option<f64>,
    needs: Needs,
    used: Option<(u64, u64)>,
}

/// Values over intervals, the newest last.
#[derive(Default)]
struct Series {
    /// From when, until when, the mean between.
    values: VecDeque<(u64, u64, f64)>,
}

impl Series {
    fn push(&mut self, at_ns: u64, window_ns: u64, value: f64, keep_ns: u64) {
        // A value without a window holds since the one before.
        let before_ns = self.values.back().map(|(_, until, _)| *until);
        let from_ns = if window_ns > 0 { at_ns.saturating_sub(window_ns) } else { before_ns.unwrap_or(at_ns) };
        self.values.push_back((from_ns, at_ns, value));
        while self.values.front().is_some_and(|(_, until, _)| until.saturating_add(keep_ns) < at_ns) {
            self.values.pop_front();
        }
    }

    /// The mean over the window that ends with the newest value, by time; `None` without a value.
    fn mean(&self, window_ns: u64) -> Option<f64> {
        let (_, newest_ns, last) = *self.values.back()?;
        let begin_ns = newest_ns.saturating_sub(window_ns);
        let (mut sum, mut time) = (0.0, 0.0);
        for (from_ns, until_ns, value) in &self.values {
            let lasted = until_ns.saturating_sub(*from_ns.max(&begin_ns)) as f64;
            sum += value * lasted;
            time += lasted;
        }
        Some(if time > 0.0 { sum / time } else { last })
    }

    fn newest_ns(&self) -> Option<u64> {
        self.values.back().map(|(_, until, _)| *until)
    }
}

fn permille(ratio: f64) -> u32 {
    (ratio.clamp(0.0, 1.0) * 1000.0).round() as u32
}

impl CardReadings {
    /// Of a GPU or an instance of one.
    pub fn of_gpu(scope: Arc<str>, capacity_bytes: u64, window_ns: u64) -> CardReadings {
        let series = Series::default;
        CardReadings {
            scope,
            capacity_bytes,
            window_ns,
            sm: series(),
            occupancy: series(),
            dram: series(),
            cores: None,
            needs: Needs::default(),
            used: None,
        }
    }

    /// Of a set of CPU cores with a share of the memory: its SM activity is the share of the cores that are busy, of those that can be at a
    /// time.
    pub fn of_cores(scope: Arc<str>, cores: f64, capacity_bytes: u64, window_ns: u64) -> CardReadings {
        CardReadings { cores: Some(cores), ..CardReadings::of_gpu(scope, capacity_bytes, window_ns) }
    }

    /// For a policy with these needs: what it does not ask for makes no reading old.
    pub fn needing(self, needs: Needs) -> CardReadings {
        CardReadings { needs, ..self }
    }

    pub fn scope(&self) -> &Arc<str> {
        &self.scope
    }

    /// Take a sample, if it is one of this card.
    pub fn take(&mut self, sample: &Sample) {
        let Some(value) = sample.value.filter(|_| sample.scope == self.scope) else { return };
        let Sample { at_ns, window_ns, .. } = *sample;
        match (sample.metric, self.cores) {
            ("sm_active_ratio", None) => self.sm.push(at_ns, window_ns, value, self.window_ns),
            ("sm_occupancy_ratio", None) => self.occupancy.push(at_ns, window_ns, value, self.window_ns),
            ("dram_active_ratio", None) => self.dram.push(at_ns, window_ns, value, self.window_ns),
            ("memory_used_bytes", None) => self.used = Some((at_ns, value as u64)),
            ("cpu_ratio", Some(cores)) => self.sm.push(at_ns, window_ns, value / cores, self.window_ns),
            _ => {}
        }
    }

    /// Of a set of cores: the resident memory of those on it.
    pub fn held(&mut self, at_ns: u64, bytes: u64) {
        if self.cores.is_some() {
            self.used = Some((at_ns, bytes));
        }
    }

    /// When its memory was last read.
    pub fn memory_read_ns(&self) -> Option<u64> {
        self.used.map(|(at_ns, _)| at_ns)
    }

    /// What the policy needs of it, and when that was last read.
    fn needed(&self) -> impl Iterator<Item = (&'static str, Option<u64>)> {
        let series = [
            (self.needs.sm, "SM activity", &self.sm),
            (self.needs.occupancy, "SM occupancy", &self.occupancy),
            (self.needs.dram, "DRAM activity", &self.dram),
        ];
        let series = series.into_iter().filter(|(is, ..)| *is).map(|(_, what, series)| (what, series.newest_ns()));
        std::iter::once(("memory", self.memory_read_ns())).chain(series)
    }

    /// What the policy needs and was never read.
    pub fn missing(&self) -> Option<&'static str> {
        self.needed().find(|(_, read_ns)| read_ns.is_none()).map(|(what, _)| what)
    }

    /// When the oldest of what the policy needs was read; `None` before all of it was.
    pub fn read_ns(&self) -> Option<u64> {
        self.needed().map(|(_, read_ns)| read_ns).try_fold(u64::MAX, |oldest, read_ns| Some(oldest.min(read_ns?)))
    }

    /// What is known of it now; `None` before what the policy needs was read. Times count from `began_ns`.
    pub fn reading(&self, began_ns: u64) -> Option<Reading> {
        let (_, used_bytes) = self.used?;
        let read_ns = self.read_ns()?;
        let means = [&self.sm, &self.occupancy, &self.dram];
        let [sm, occupancy, dram] = means.map(|series| series.mean(self.window_ns).map(permille));
        Some(Reading {
            free_bytes: Some(self.capacity_bytes.saturating_sub(used_bytes)),
            sm_permille: sm,
            occupancy_permille: occupancy,
            dram_permille: dram,
            read_ns: read_ns.saturating_sub(began_ns),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(metric: &'static str, at_ns: u64, window_ns: u64, value: Option<f64>) -> Sample {
        Sample { at_ns, window_ns, source: "gpm", scope: "gpu:A".into(), metric, value }
    }

    #[test]
    fn a_mean_is_over_the_window_by_time_and_nothing_older_counts() {
        let sm = Needs { sm: true, ..Needs::default() };
        let mut card = CardReadings::of_gpu("gpu:A".into(), 100, 10).needing(sm);
        for (at_ns, value) in [(10, 1.0), (20, 0.0), (24, 0.5)] {
            card.take(&sample("sm_active_ratio", at_ns, 0, Some(value)));
        }
        card.take(&sample("memory_used_bytes", 25, 0, Some(30.0)));
        let reading = card.reading(5).expect("memory was read");
        assert_eq!(reading.sm_permille, Some(200), "six of ten at 0, four at 0.5");
        assert_eq!((reading.free_bytes, reading.read_ns), (Some(70), 19), "as old as the oldest of both");
        let reading = card.needing(Needs::default()).reading(5).expect("memory was read");
        assert_eq!(reading.read_ns, 20, "what the policy does not need makes it no older");
    }

    #[test]
    fn what_was_never_read_is_absent_and_another_cards_sample_changes_nothing() {
        let mut card = CardReadings::of_gpu("gpu:A".into(), 100, 10);
        assert_eq!(card.reading(0), None);
        card.take(&Sample { scope: "gpu:B".into(), ..sample("memory_used_bytes", 1, 0, Some(9.0)) });
        card.take(&sample("memory_used_bytes", 2, 0, None));
        assert_eq!(card.reading(0), None);
        card.take(&sample("memory_used_bytes", 3, 0, Some(0.0)));
        let reading = card.reading(0).expect("read");
        assert_eq!((reading.free_bytes, reading.sm_permille, reading.dram_permille), (Some(100), None, None));
    }

    #[test]
    fn the_share_of_busy_cores_stands_for_sm_activity() {
        // Two cores, and two of which a CPU quota allows half a core at a time: others may use more of them.
        for (at_a_time, busy, permille) in [(2.0, 1.5, 750), (0.5, 0.25, 500), (0.5, 1.5, 1000)] {
            let mut set = CardReadings::of_cores("cores:0-1".into(), at_a_time, 100, 1000);
            set.take(&Sample { scope: "cores:0-1".into(), ..sample("cpu_ratio", 100, 100, Some(busy)) });
            set.held(100, 40);
            let reading = set.reading(0).expect("read");
            assert_eq!((reading.sm_permille, reading.free_bytes), (Some(permille), Some(60)), "{busy} of {at_a_time}");
        }
    }
}
