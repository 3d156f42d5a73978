//! What samplers read of a card whose truth is known. In: the truth, and when a run trained. Out: samples as `collo run` stores them.

use std::sync::Arc;

use collo_store::Sample;

use super::random::Random;

/// The energy counter moves this often.
const COUNTER_STEP_S: f64 = 0.1;
/// How much slower the warm-up epoch is.
const WARM_UP: f64 = 1.1;
/// Standard deviation of one reading of an activity.
const READING: f64 = 0.02;

/// The truth of a card while a group trains.
#[derive(Clone)]
pub struct CardTruth {
    /// Of the whole card.
    pub sm_active_ratio: f64,
    pub idle_w: f64,
    pub power_w: f64,
    /// SM activity of each GPU instance, of its own SMs; empty without MIG.
    pub instances: Vec<f64>,
    /// Who tells the SM activity, and what each multiplies the truth by: not a number where it reads nothing. Empty: nobody.
    pub sources: Vec<(&'static str, f64)>,
    /// Bytes per second into the card; absent where nobody reads them.
    pub pcie_rx_bytes_per_s: Option<f64>,
    /// The energy counter begins anew in the middle of the measured window.
    pub counter_resets: bool,
    /// Instances have a counter of their own, which no real one has.
    pub counters_of_instances: bool,
}

/// When a run trained, and how fast beside the truth.
pub struct Life<'a> {
    pub launched_ns: u64,
    pub starts: &'a [u64],
    /// All train past their warm-up.
    pub measured_ns: u64,
    pub ends: &'a [u64],
    pub ended_ns: u64,
    pub pace: f64,
    /// Footprint of each member, GiB: not a number where nobody reads it.
    pub memory_gib: &'a [f64],
}

impl Life<'_> {
    /// Seconds of training at the true pace until `at_ns`: slower in the warm-up, none before and after.
    fn busy_s(&self, at_ns: i64) -> f64 {
        let of = |all: &[u64]| all.iter().map(|t| *t as f64).sum::<f64>() / all.len() as f64 * 1e-9;
        let (at, start, end) = (at_ns as f64 * 1e-9, of(self.starts), of(self.ends));
        let measured = self.measured_ns as f64 * 1e-9;
        let between = |from: f64, until: f64| (at.min(until) - from).max(0.0);
        self.pace * (between(start, measured) / WARM_UP + between(measured, end))
    }

    /// The mean share of the truth over a span that ends at `at_ns`.
    fn share(&self, at_ns: i64, span_ns: i64) -> f64 {
        (self.busy_s(at_ns) - self.busy_s(at_ns - span_ns)) / (span_ns as f64 * 1e-9)
    }
}

impl CardTruth {
    /// What each sampler read, the card's own and the instances', from the launch until the end. GPM is read half as often, over
    /// twice the span.
    pub fn samples(&self, life: &Life, hz: f64, random: &mut Random) -> Vec<Sample> {
        let mut out = Vec::new();
        let card: Arc<str> = "gpu:GPU-0".into();
        let instances: Vec<Arc<str>> = (0..self.instances.len()).map(|i| format!("mig:MIG-{i}").into()).collect();
        let scopes: Vec<(&Arc<str>, f64)> =
            [(&card, self.sm_active_ratio)].into_iter().chain(instances.iter().zip(self.instances.iter().copied())).collect();
        for (source, factor) in &self.sources {
            let span_ns = (1e9 / hz) as i64 * if *source == "gpm" { 2 } else { 1 };
            for at in ticks(life, span_ns, random) {
                let share = life.share(at, span_ns);
                if let Some(rate) = self.pcie_rx_bytes_per_s {
                    let (at_ns, window_ns, scope) = (at as u64, span_ns as u64, card.clone());
                    let value = Some(rate * share);
                    out.push(Sample { at_ns, window_ns, source, scope, metric: "pcie_rx_bytes_per_s", value });
                }
                for (scope, truth) in &scopes {
                    let read = random.log_normal(READING) / (READING * READING / 2.0).exp();
                    let (at_ns, window_ns, scope) = (at as u64, span_ns as u64, (*scope).clone());
                    let value = Some(truth * factor * share * read).filter(|v| v.is_finite());
                    out.push(Sample { at_ns, window_ns, source, scope, metric: "sm_active_ratio", value });
                }
            }
        }
        self.counter(life, hz, random, &card, 1.0, &mut out);
        if self.counters_of_instances {
            instances.iter().for_each(|scope| self.counter(life, hz, random, scope, 3.0, &mut out));
        }
        for (i, (start, end)) in life.starts.iter().zip(life.ends).enumerate() {
            let (at_ns, scope) = ((start + end) / 2, format!("member:{i}").into());
            let value = Some(life.memory_gib[i] * 1073741824.0).filter(|bytes| bytes.is_finite());
            out.push(Sample { at_ns, window_ns: 0, source: "nvml", scope, metric: "gpu_memory_bytes", value });
        }
        self.gauges(life, hz, &card, &mut out);
        out
    }

    /// Power and used memory of the card at the same moments, from before anybody is on it.
    fn gauges(&self, life: &Life, hz: f64, card: &Arc<str>, out: &mut Vec<Sample>) {
        let period = (1e9 / hz) as i64;
        let first = life.starts.iter().min().copied().unwrap_or(life.launched_ns) as i64;
        for at in (-4..).map(|i| first + i * period + period / 3).take_while(|at| *at <= life.ended_ns as i64) {
            let on_it = life.starts.iter().zip(life.ends).filter(|(s, e)| (**s as i64..=**e as i64).contains(&at)).count();
            let power = if on_it > 0 { self.power_w } else { self.idle_w };
            let mut put = |metric, value| {
                out.push(Sample {
                    at_ns: at as u64,
                    window_ns: 0,
                    source: "nvml",
                    scope: card.clone(),
                    metric,
                    value: Some(value),
                });
            };
            put("power_w", power);
            put("memory_used_bytes", (0.5 + on_it as f64) * 1073741824.0);
        }
    }

    /// The energy counter: millijoules since some moment, as of its last step.
    fn counter(&self, life: &Life, hz: f64, random: &mut Random, scope: &Arc<str>, factor: f64, out: &mut Vec<Sample>) {
        let step_ns = (COUNTER_STEP_S * 1e9) as i64;
        let phase = (random.uniform() * step_ns as f64) as i64;
        let of = |at_ns: i64| {
            let seconds = (at_ns - life.launched_ns as i64) as f64 * 1e-9;
            factor * (4e6 + self.idle_w * seconds + (self.power_w - self.idle_w) * life.busy_s(at_ns))
        };
        let last = *life.ends.iter().min().expect("a member");
        let reset = ((life.measured_ns + last) / 2) as i64;
        for at in ticks(life, (1e9 / hz) as i64, random) {
            let told = at - (at - phase).rem_euclid(step_ns);
            let since = if self.counter_resets && told > reset { of(reset) } else { 0.0 };
            let value = Some(((of(told) - since) * 1e3).round() / 1e3);
            out.push(Sample { at_ns: at as u64, window_ns: 0, source: "nvml", scope: scope.clone(), metric: "energy_j", value });
        }
    }
}

/// A sampler knows nothing of epochs: its ticks lie anywhere.
fn ticks(life: &Life, period_ns: i64, random: &mut Random) -> impl Iterator<Item = i64> + use<> {
    // Of the three seconds before the start and of the end, no more than shows that they do not count.
    let start = life.starts.iter().min().copied().unwrap_or(life.launched_ns) as i64;
    let first = start - 2 * period_ns + (random.uniform() * period_ns as f64) as i64;
    let ended = life.ended_ns as i64;
    (0..).map(move |i| first + i * period_ns).take_while(move |at| *at <= ended)
}
