//! Detects SM shares in a run's samples that are not real readings. In: its record and its samples. Out: [`Trust`], what is left
//! out of every number, and why. Samples stay as they were read; this is the only place that decides how to interpret them.
//!
//! All of it is about DCGM. Before Hopper it relates the instances of an unequal partition to the smallest of them (DCGM #138,
//! #151, #248); a share can be above 1 (DCGM #152); and without data it may report 0: before its first mean (GetLatestSample
//! until 4.4.1), or for ever after an Xid of one process (DCGM #303, dcgm-exporter #662).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use collo_quantity::number;
use collo_store::{ReadCard, RunRecord, SAMPLING_OFF, SampleSeries};

use super::samples::Window;

const SOURCE: &str = "dcgm";
const ACTIVITY: &str = "sm_active_ratio";

/// Shares of SMs, which are correct for their instances only if those are equal.
const OF_SMS: [&str; 7] = [
    ACTIVITY,
    "graphics_active_ratio",
    "sm_occupancy_ratio",
    "tensor_active_ratio",
    "fp64_active_ratio",
    "fp32_active_ratio",
    "fp16_active_ratio",
];
const OF_MEMORY: &str = "dram_active_ratio";
const UTILIZATION: &str = "gpu_utilization_ratio";

/// NVML's utilisation is a mean over up to a second: nothing shorter is compared with it, except at the beginning.
const JUDGED_NS: u64 = 1_000_000_000;
/// If NVML reports nothing (with MIG on), zeros up to the end of training are not trusted after this long.
const LONG_NS: u64 = 3_000_000_000;
/// Utilisation from which on a GPU counts as busy.
const WORKS: f64 = 0.05;

/// What is left out of a run's numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trust {
    /// Scopes whose SM shares are not real readings.
    unequal: BTreeSet<String>,
    /// Spans of zeros that are not real readings, by scope.
    silences: Vec<(String, Window)>,
    /// Shares above 1, which are left out individually.
    above_one: usize,
    /// Why the GPU has no SM activity at all, or none that can be trusted.
    pub why_absent: Option<String>,
    /// Anything unusual, as sentences without their end.
    pub odd: Vec<String>,
}

/// DCGM's values of a scope at each time: whether any was above 0.
type Said = BTreeMap<u64, bool>;

impl Trust {
    /// Check the samples of a run while its members trained.
    pub fn of(record: &RunRecord, path: &Path, training: Window) -> collo_store::Result<Trust> {
        let mut trust = Trust { why_absent: not_told(record), ..Trust::default() };
        if !record.sampling.iter().any(|q| q.source.starts_with(SOURCE)) {
            return Ok(trust);
        }
        let is_share = |metric: &str| OF_SMS.contains(&metric) || metric == OF_MEMORY;
        let read = collo_store::read_samples(path, |source, _, metric| {
            (source == SOURCE && is_share(metric)) || (source == "nvml" && metric == UTILIZATION)
        })?;
        let mut said = BTreeMap::<&str, Said>::new();
        let mut utilisation = BTreeMap::<&str, Vec<(u64, f64)>>::new();
        for ((scope, metric), readings) in &read {
            let inside = readings.iter().filter(|r| r.0 >= training.start_ns + r.1 && r.0 <= training.end_ns);
            for (at_ns, value) in inside.filter_map(|r| Some((r.0, r.2?))) {
                if metric == UTILIZATION {
                    utilisation.entry(scope).or_default().push((at_ns, value));
                } else {
                    trust.above_one += usize::from(value > 1.0);
                    *said.entry(scope).or_default().entry(at_ns).or_default() |= value > 0.0;
                }
            }
        }
        if said.keys().any(|scope| scope.starts_with("gpu:")) {
            // It was told, whatever another source said of itself.
            trust.why_absent = None;
        }
        // A run has several streams of one instrument: the same card is doubted once.
        let read = record.sampling.iter().filter_map(|q| q.instrument.as_ref()).flat_map(|i| &i.cards);
        let cards: BTreeMap<&String, &ReadCard> = read.collect();
        cards.into_iter().for_each(|(scope, card)| trust.doubt_unequal(scope, card));
        for (scope, said) in &said {
            let utilisation = utilisation.get(scope).map(Vec::as_slice);
            // A card of a trace may be empty at any time, and nothing else tells whether an instance was.
            if utilisation.is_some() || record.trace.is_none() {
                trust.doubt_zeros(scope, said, utilisation);
            }
        }
        if trust.above_one > 0 {
            trust.odd.push(format!("{} of DCGM's shares above 1 left out", number::count(trust.above_one, "sample")));
        }
        Ok(trust)
    }

    /// Whether the value of a series at a time is a real reading.
    pub fn believes<'a>(&'a self, series: &'a SampleSeries) -> impl Fn(u64, f64) -> bool + 'a {
        let is_of_sms = OF_SMS.contains(&&*series.metric);
        let is_share = series.source == SOURCE && (is_of_sms || series.metric == OF_MEMORY);
        let is_unequal = is_share && is_of_sms && self.unequal.contains(&series.scope);
        let silent = |at_ns: u64| {
            self.silences.iter().any(|(scope, span)| *scope == series.scope && (span.start_ns..=span.end_ns).contains(&at_ns))
        };
        move |at_ns, value| !(is_share && (is_unequal || value > 1.0 || silent(at_ns)))
    }

    /// Before Hopper the shares of instances of different sizes are wrong, and so is that of the GPU derived from them.
    fn doubt_unequal(&mut self, card: &str, read: &ReadCard) {
        let major = read.compute_capability.as_ref().and_then(|c| c.split('.').next()?.parse::<u32>().ok());
        let sizes: BTreeSet<u32> = read.slices.values().copied().collect();
        if sizes.len() < 2 || major.is_none_or(|major| major >= u32::from(collo_gpus::HOPPER)) {
            return;
        }
        self.unequal.insert(card.to_string());
        self.unequal.extend(read.slices.keys().cloned());
        let sizes: Vec<String> = sizes.iter().map(|n| format!("{n}g")).collect();
        let sizes = sizes.join(" and ");
        let why = format!("before Hopper, DCGM relates SM shares to the smallest of unequal instances, here {sizes}");
        self.odd.push(format!("{why}: they are left out"));
        self.why_absent = Some(why);
    }

    /// Zeros while the GPU is busy are not real readings.
    fn doubt_zeros(&mut self, scope: &str, said: &Said, utilisation: Option<&[(u64, f64)]>) {
        let (Some((first, _)), Some((last, _))) = (said.first_key_value(), said.last_key_value()) else { return };
        let (first, last) = (*first, *last);
        for (start_ns, end_ns) in zeros(said) {
            let (leads, ends, long_ns) = (start_ns == first, end_ns == last, end_ns - start_ns);
            let worked = utilisation.and_then(|u| mean(u, start_ns, end_ns));
            let is_untrue = match worked {
                Some(worked) => worked > WORKS && (leads || long_ns >= JUDGED_NS),
                // Members train at the beginning and at the end; in between they may pause.
                None => leads || (ends && long_ns >= LONG_NS),
            };
            if !is_untrue {
                continue;
            }
            // With what lies across the edges of training.
            let span = Window { start_ns: if leads { 0 } else { start_ns }, end_ns: if ends { i64::MAX as u64 } else { end_ns } };
            self.silences.push((scope.to_string(), span));
            let beside = match worked {
                Some(worked) => format!("while NVML's utilisation was {}", number::percent(worked)),
                None => "while its members trained".into(),
            };
            let of = if scope.starts_with("gpu:") { "the GPU" } else { "an instance" };
            if leads && ends {
                let why = format!("DCGM reported 0 for {of} throughout, {beside}");
                if scope.starts_with("gpu:") {
                    self.why_absent = Some(why.clone());
                }
                self.odd.push(format!("{why}: it is left out"));
            } else if long_ns >= JUDGED_NS {
                let seconds = long_ns as f64 * 1e-9;
                self.odd.push(format!("DCGM reported 0 for {of} during {seconds:.1} s, {beside}: left out"));
            }
        }
    }
}

/// Spans without a value above 0, from their first reading to their last.
fn zeros(said: &Said) -> Vec<(u64, u64)> {
    let mut spans: Vec<(u64, u64)> = Vec::new();
    let mut open = false;
    for (at_ns, is_above) in said {
        match (is_above, open, spans.last_mut()) {
            (false, true, Some(span)) => span.1 = *at_ns,
            (false, ..) => spans.push((*at_ns, *at_ns)),
            (true, ..) => {}
        }
        open = !is_above;
    }
    spans
}

/// The mean of the readings in a span, or within a second after it: these are means over the second before.
fn mean(readings: &[(u64, f64)], start_ns: u64, end_ns: u64) -> Option<f64> {
    let inside = readings.iter().filter(|r| r.0 >= start_ns && r.0 <= end_ns + JUDGED_NS).map(|r| r.1);
    let (sum, n) = inside.fold((0.0, 0), |(sum, n), v| (sum + v, n + 1));
    (n > 0).then(|| sum / f64::from(n))
}

/// Why the GPU's SM activity was not read, according to its sources: the last fallback, unless it was read after all.
fn not_told(record: &RunRecord) -> Option<String> {
    let is_of_card = |key: &str| key == ACTIVITY || key.starts_with(&format!("{ACTIVITY} of gpu:"));
    let reasons = |source: &str| {
        let own = record.sampling.iter().filter(|q| q.source.starts_with(source));
        own.flat_map(|q| &q.absent).find(|(key, _)| is_of_card(key)).map(|(_, why)| why.clone())
    };
    let off = || (!record.is_sampled()).then(|| SAMPLING_OFF.to_string());
    reasons(SOURCE).or_else(|| reasons("gpm")).or_else(off)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;
    /// Later than all times.
    const END: u64 = 999;

    fn said(text: &str) -> Said {
        text.chars().enumerate().map(|(i, c)| (i as u64 * S / 10, c != '0')).collect()
    }

    fn doubted(text: &str, scope: &str, utilisation: Option<f64>) -> (Vec<(u64, u64)>, Option<String>) {
        let mut trust = Trust::default();
        let readings: Vec<(u64, f64)> = (0..40).filter_map(|i| Some((i * S / 5, utilisation?))).collect();
        trust.doubt_zeros(scope, &said(text), utilisation.map(|_| &readings[..]));
        let tenths = |w: &Window| (w.start_ns * 10 / S, if w.end_ns == i64::MAX as u64 { END } else { w.end_ns * 10 / S });
        (trust.silences.iter().map(|(_, w)| tenths(w)).collect(), trust.why_absent)
    }

    #[test]
    fn zeros_are_none_where_nvml_saw_the_card_work_and_are_believed_where_it_did_not() {
        let (spans, why) = doubted(&"0".repeat(30), "gpu:A", Some(0.97));
        assert_eq!(
            (spans, why.as_deref()),
            (vec![(0, END)], Some("DCGM reported 0 for the GPU throughout, while NVML's utilisation was 97 %"))
        );
        assert_eq!(doubted(&"0".repeat(30), "gpu:A", Some(0.0)), (vec![], None));
        let middle = format!("{0}{1}{0}", "9".repeat(10), "0".repeat(15));
        assert_eq!(doubted(&middle, "gpu:A", Some(0.9)).0, [(10, 24)]);
        assert_eq!(doubted(&middle, "gpu:A", Some(0.01)).0, []);
        assert_eq!(doubted("9990009999", "gpu:A", Some(0.9)).0, [], "too short to be held against a mean over a second");
        assert_eq!(doubted("0099999999", "gpu:A", Some(0.9)).0, [(0, 1)]);
    }

    #[test]
    fn where_nvml_tells_nothing_zeros_are_none_at_the_beginning_and_up_to_the_end() {
        assert_eq!(doubted("0099999999", "mig:A", None).0, [(0, 1)]);
        let falls = format!("{}{}", "9".repeat(10), "0".repeat(35));
        assert_eq!(doubted(&falls, "mig:A", None).0, [(10, END)]);
        let pauses = format!("{falls}9");
        assert_eq!(doubted(&pauses, "mig:A", None).0, [], "members may pause");
        assert_eq!(doubted("9999999000", "mig:A", None).0, [], "or have just ended an epoch");
    }

    #[test]
    fn only_unequal_instances_before_hopper_are_doubted() {
        let doubts = |capability: &str, slices: &[u32]| {
            let slices = slices.iter().enumerate().map(|(i, n)| (format!("mig:{i}"), *n)).collect();
            let mut trust = Trust::default();
            trust.doubt_unequal("gpu:A", &ReadCard { compute_capability: Some(capability.into()), slices });
            (trust.unequal.len(), trust.why_absent.is_some())
        };
        assert_eq!(doubts("8.0", &[3, 1]), (3, true));
        assert_eq!(doubts("8.0", &[3, 3]), (0, false));
        assert_eq!(doubts("8.0", &[]), (0, false));
        assert_eq!(doubts("9.0", &[3, 1]), (0, false));
    }
}
