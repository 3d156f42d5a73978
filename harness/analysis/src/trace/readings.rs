//! What was read of the cards of a site while a trace was played. In: samples of one run and its cards. Out: energy over the
//! total, activity and memory of each card over time and as means weighted by time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use collo_store::{DeviceRecord, RunRecord, TraceCard};

use crate::reading::samples::{self, Reading, Window};
use crate::reading::trust::Trust;

/// Points of a line over a whole run.
const POINTS: u32 = 240;
/// Of the total time that the readings of a counter must span.
const COUNTED_RATIO: f64 = 0.95;

const ACTIVITY: &str = "sm_active_ratio";
const CPU: &str = "cpu_ratio";
const MEMORY: &str = "memory_used_bytes";
const ENERGY: &str = "energy_j";
const CPU_ENERGY: &str = "cpu_energy_j";

/// A line: `(seconds from the first arrival, value)`.
pub type Curve = Vec<(f64, f64)>;

/// What was read of a site. What has an entry for each card is by card number.
#[derive(Debug, Clone, Default)]
pub struct SiteReadings {
    /// Of all cards over the total, joules.
    pub energy_j: Option<f64>,
    /// SM activity of each card; of a set of cores the busy ones ÷ those that can be busy at a time.
    pub active: Vec<CardSeries>,
    /// Share of each card's memory that was in use.
    pub memory: Vec<CardSeries>,
}

/// One quantity of one card.
#[derive(Debug, Clone, Default)]
pub struct CardSeries {
    /// Over the total, weighted by time; absent if it was not read.
    pub mean: Option<f64>,
    pub curve: Curve,
}

/// A span in which a value held.
type Held = (u64, u64, f64);

impl SiteReadings {
    /// From the samples of a run, between its first arrival and its last end.
    pub fn read(record: &RunRecord, cards: &[TraceCard], path: &Path, total: Window) -> collo_store::Result<SiteReadings> {
        let trust = Trust::of(record, path, total).unwrap_or_default();
        let read = samples::readings(path, &[ACTIVITY, CPU, MEMORY, ENERGY, CPU_ENERGY], &trust)?;
        let of = |scope: &str, metric: &str| read.get(&(scope.to_string(), metric.to_string())).map_or(&[][..], Vec::as_slice);
        let active = |card: &TraceCard| {
            let (metric, whole) = activity(&record.device, card, cards.len());
            CardSeries::of(of(&card.scope, metric), total, 1.0 / whole)
        };
        let memory = |card: &TraceCard| CardSeries::of(of(&card.scope, MEMORY), total, 1.0 / card.capacity_bytes.max(1) as f64);
        Ok(SiteReadings {
            energy_j: energy_j(record, cards, &read, total),
            active: cards.iter().map(active).collect(),
            memory: cards.iter().map(memory).collect(),
        })
    }

    /// Mean over cards of a share of each; `None` if it was not read of one of them. One set of cores may use what another leaves of a CPU
    /// quota, and others may use cores beyond it, but all is the most.
    pub fn mean(of: &[CardSeries]) -> Option<f64> {
        let sum: f64 = of.iter().map(|card| card.mean).sum::<Option<f64>>()?;
        (!of.is_empty()).then(|| (sum / of.len() as f64).min(1.0))
    }

    /// The same over time; empty unless all cards were read.
    pub fn mean_curve(of: &[CardSeries]) -> Curve {
        if of.is_empty() || of.iter().any(|card| card.curve.is_empty()) {
            return Curve::new();
        }
        let mut at = BTreeMap::<u64, (f64, usize)>::new();
        for (s, value) in of.iter().flat_map(|card| &card.curve) {
            let sum = at.entry(s.to_bits()).or_default();
            *sum = (sum.0 + value, sum.1 + 1);
        }
        let all = at.into_iter().filter(|(_, (_, n))| *n == of.len());
        all.map(|(s, (sum, n))| (f64::from_bits(s), (sum / n as f64).min(1.0))).collect()
    }
}

impl CardSeries {
    fn of(readings: &[Reading], total: Window, factor: f64) -> CardSeries {
        let held = held(readings, total);
        let width = (total.end_ns - total.start_ns) as f64 / f64::from(POINTS);
        let edge = |bin: u32| total.start_ns + (f64::from(bin) * width) as u64;
        let point = |bin: u32| {
            let window = Window::new(edge(bin), edge(bin + 1))?;
            Some(((f64::from(bin) + 0.5) * width * 1e-9, mean(&held, window)? * factor))
        };
        CardSeries { mean: mean(&held, total).map(|m| m * factor), curve: (0..POINTS).filter_map(point).collect() }
    }
}

/// The metric of the activity of a card, and its value when all of the card is active.
fn activity(device: &DeviceRecord, card: &TraceCard, cards: usize) -> (&'static str, f64) {
    match card.cores.len() {
        0 => (ACTIVITY, 1.0),
        cores => (CPU, device.set_at_a_time(cores, cards)),
    }
}

/// A mean over a span holds in it; what was read at a moment holds until the next reading.
fn held(readings: &[Reading], total: Window) -> Vec<Held> {
    let nexts = readings.iter().skip(1).map(|r| r.0).chain([total.end_ns]);
    let spans = readings.iter().zip(nexts).map(|((at, span, value), next)| match span {
        0 => (*at, next.max(*at), *value),
        span => (at.saturating_sub(*span), *at, *value),
    });
    spans.filter(|(start, end, _)| end > start).collect()
}

/// The mean of what held in a window, weighted by time; `None` if nothing did.
fn mean(held: &[Held], window: Window) -> Option<f64> {
    let first = held.partition_point(|h| h.1 <= window.start_ns);
    let inside = held[first..].iter().take_while(|h| h.0 < window.end_ns);
    let weigh = |(sum, weights): (f64, f64), h: &Held| {
        let weight = h.1.min(window.end_ns).saturating_sub(h.0.max(window.start_ns)) as f64;
        (sum + weight * h.2, weights + weight)
    };
    let (sum, weights) = inside.fold((0.0, 0.0), weigh);
    (weights > 0.0).then(|| sum / weights)
}

/// The growth of all counters over the total. `None` if one card has none: a sum without it would flatter.
fn energy_j(
    record: &RunRecord,
    cards: &[TraceCard],
    read: &BTreeMap<(String, String), Vec<Reading>>,
    total: Window,
) -> Option<f64> {
    if record.device.persistence == Some(false) {
        // The driver may have left and come back between two readings, and the counter with it.
        return None;
    }
    let counters: Vec<&Vec<Reading>> = if record.device.kind == "gpu" {
        let scopes = boards(record, cards, read);
        scopes.into_iter().map(|scope| read.get(&(scope, ENERGY.to_string()))).collect::<Option<_>>()?
    } else {
        read.iter().filter(|((_, metric), _)| metric == CPU_ENERGY).map(|(_, readings)| readings).collect()
    };
    let grown: Vec<f64> = counters.into_iter().map(|readings| growth(readings, total)).collect::<Option<_>>()?;
    (!grown.is_empty()).then(|| grown.iter().sum())
}

/// Scopes of the GPUs of a site. An instance has no counter of its own: it is that of its GPU.
fn boards(record: &RunRecord, cards: &[TraceCard], read: &BTreeMap<(String, String), Vec<Reading>>) -> BTreeSet<String> {
    let instruments = || record.sampling.iter().filter_map(|q| q.instrument.as_ref()).flat_map(|i| &i.cards);
    let mut found = BTreeSet::new();
    for card in cards {
        if !card.scope.starts_with("mig:") {
            found.insert(card.scope.clone());
        } else if let Some((board, _)) = instruments().find(|(_, of)| of.slices.contains_key(&card.scope)) {
            found.insert(board.clone());
        } else {
            // Nobody said whose it is: every GPU that was read is one of the site.
            found.extend(read.keys().filter(|(s, m)| s.starts_with("gpu:") && m == ENERGY).map(|(s, _)| s.clone()));
        }
    }
    found
}

/// The growth of a counter over a window, from what lies inside, extended to the edges; `None` if it spans too little, or fell.
fn growth(readings: &[Reading], total: Window) -> Option<f64> {
    let inside: Vec<&Reading> = readings.iter().filter(|r| r.0 >= total.start_ns && r.0 <= total.end_ns).collect();
    let (first, last) = (inside.first()?, inside.last()?);
    let spanned = (last.0 - first.0) as f64 / (total.end_ns - total.start_ns) as f64;
    let rises = inside.windows(2).all(|pair| pair[1].2 >= pair[0].2);
    (spanned >= COUNTED_RATIO && rises).then(|| (last.2 - first.2) / spanned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOTAL: Window = Window { start_ns: 1_000, end_ns: 2_000 };

    #[test]
    fn a_mean_is_weighted_by_the_time_for_which_a_value_held() {
        // 0.2 for a tenth of the time, 0.8 for the rest, and a reading that reaches across the beginning.
        let spans = [(1_100, 300, 0.2), (2_000, 900, 0.8)];
        let series = CardSeries::of(&spans, TOTAL, 1.0);
        assert!((series.mean.unwrap() - 0.74).abs() < 1e-12, "{series:?}");
        // What was read at a moment holds until the next reading.
        let moments = [(1_000, 0, 1.0), (1_250, 0, 3.0)];
        assert_eq!(CardSeries::of(&moments, TOTAL, 0.5).mean, Some(1.25));
        assert_eq!(CardSeries::of(&[], TOTAL, 1.0).mean, None, "absent, not zero");
    }

    #[test]
    fn all_of_a_set_of_cores_is_its_part_of_a_cpu_quota() {
        let card =
            |cores: &[u32]| TraceCard { scope: String::new(), name: String::new(), cores: cores.into(), capacity_bytes: 1 };
        let device = |quota_cores| DeviceRecord {
            name: "cpu".into(),
            kind: "cpu".into(),
            simulated: false,
            memory_bytes: None,
            cores: Some(8),
            quota_cores,
            persistence: None,
        };
        let set = card(&[0, 1, 2, 3]);
        assert_eq!(activity(&device(None), &set, 2), (CPU, 4.0));
        assert_eq!(activity(&device(Some(3.0)), &set, 2), (CPU, 1.5));
        assert_eq!(activity(&device(Some(3.0)), &card(&[]), 2), (ACTIVITY, 1.0));
        // One set uses 2 of the 3 cores of the quota, and the other 1: all of it.
        let used = |busy: f64| CardSeries::of(&[(2_000, 1_000, busy)], TOTAL, 1.0 / 1.5);
        assert_eq!(SiteReadings::mean(&[used(2.0), used(1.0)]), Some(1.0));
        assert_eq!(SiteReadings::mean(&[used(0.75), used(0.0)]), Some(0.25));
        assert_eq!(SiteReadings::mean(&[used(9.0), used(9.0)]), Some(1.0), "others use more than the quota");
        assert_eq!(SiteReadings::mean(&[used(9.0), CardSeries::default()]), None);
    }

    #[test]
    fn a_counter_that_fell_or_was_read_too_briefly_has_no_growth() {
        let counter = |to: u64, end: f64| vec![(1_010, 0, 5.0), (1_500, 0, 6.0), (to, 0, end)];
        let whole = growth(&counter(1_990, 7.96), TOTAL).unwrap();
        assert!((whole - 2.96 / 0.98).abs() < 1e-9, "{whole}");
        assert_eq!(growth(&counter(1_700, 7.0), TOTAL), None);
        assert_eq!(growth(&counter(1_990, 5.5), TOTAL), None);
    }
}
