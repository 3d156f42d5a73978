//! Members that serve: a queue whose latencies are known. In: arrivals and services per second. Out: requests as a member tells them.
//!
//! One server, Poisson arrivals and exponential services, first come first served (M/M/1): in the long run the time from arrival to
//! answer is exponential with the rate μ − λ, so its p-quantile is −ln(1 − p) ÷ (μ − λ) (Kleinrock, Queueing Systems I, 1975, 3.2).

use collo_store::{RequestRecord, Serving};

use super::random::Random;
use super::{Fixture, spec, truth};

/// How a member serves.
#[derive(Clone)]
pub struct Serves {
    /// Arrivals per second, λ.
    pub rate_per_s: f64,
    /// Services per second when nobody waits, μ: the capacity.
    pub capacity_per_s: f64,
    pub slo_s: Option<f64>,
    /// One epoch: a span of service, seconds.
    pub window_s: f64,
    /// The share of the requests that is never answered.
    pub dropped_ratio: f64,
}

impl Serves {
    /// Fifty requests a second of a hundred and twenty that it could answer, twenty seconds long, within 100 ms.
    pub fn usual() -> Self {
        Serves { rate_per_s: 50.0, capacity_per_s: 120.0, slo_s: Some(0.1), window_s: 20.0, dropped_ratio: 0.0 }
    }

    /// The same with another capacity: what is left of it beside others.
    pub fn left(self, capacity_per_s: f64) -> Self {
        Serves { capacity_per_s, ..self }
    }

    /// The true quantile of its latency.
    pub fn quantile_s(&self, p: f64) -> f64 {
        -(1.0 - p).ln() / (self.capacity_per_s - self.rate_per_s)
    }

    /// The true share within its limit.
    pub fn within(&self) -> f64 {
        1.0 - (-self.slo_s.expect("a limit") * (self.capacity_per_s - self.rate_per_s)).exp()
    }

    /// As a run keeps it, `slow` times as slow as the truth.
    pub fn record(&self, slow: f64) -> Serving {
        let capacity_per_s = Some(self.capacity_per_s / slow);
        Serving { rate_per_s: self.rate_per_s, batch_size: 1, slo_s: self.slo_s, capacity_per_s }
    }

    /// All that arrives from the start to the end, as far as it was answered until then.
    pub fn requests(&self, member: u32, (start_ns, end_ns): (u64, u64), slow: f64, random: &mut Random) -> Vec<RequestRecord> {
        let ns = |s: f64| (s * 1e9) as u64;
        // Served before the span begins, so that it begins in the long run.
        let (mut at_s, mut free_s) = (-20.0, -20.0);
        let span_s = (end_ns - start_ns) as f64 * 1e-9;
        let mut found = Vec::new();
        while at_s < span_s {
            at_s += random.exponential(self.rate_per_s);
            let begun_s = f64::max(at_s, free_s);
            free_s = begun_s + slow * random.exponential(self.capacity_per_s);
            if at_s < 0.0 || at_s >= span_s {
                continue;
            }
            let answered = free_s < span_s && random.uniform() >= self.dropped_ratio;
            found.push(RequestRecord {
                member,
                arrival_ns: start_ns + ns(at_s),
                start_ns: (begun_s < span_s).then(|| start_ns + ns(begun_s)),
                end_ns: answered.then(|| start_ns + ns(free_s)),
            });
        }
        found
    }
}

impl Fixture {
    /// A member that serves, alone.
    pub fn serves(mut self, workload: &str, serves: &Serves) -> Self {
        let spec = spec(workload, 1);
        let mut cell = truth(spec.solo.clone(), "solo", vec![spec], vec![serves.window_s], vec![0.5]);
        cell.serves = vec![Some(serves.clone())];
        self.cells.push(cell);
        self
    }

    /// Members that serve beside others that train: each workload with its true epoch time.
    pub fn beside(mut self, servers: &[(&str, Serves)], trainers: &[(&str, f64)], sharing: &str) -> Self {
        let mut names: Vec<&str> = servers.iter().map(|s| s.0).collect();
        names.extend(trainers.iter().map(|t| t.0));
        let mut counted: Vec<(&str, usize)> = Vec::new();
        for name in names {
            match counted.last_mut() {
                Some((last, n)) if *last == name => *n += 1,
                _ => counted.push((name, 1)),
            }
        }
        let who: Vec<String> =
            counted.iter().map(|(name, n)| if *n == 1 { name.to_string() } else { format!("{name}×{n}") }).collect();
        let specs = servers.iter().map(|s| spec(s.0, 1)).chain(trainers.iter().map(|t| spec(t.0, 32))).collect();
        let times: Vec<f64> = servers.iter().map(|s| s.1.window_s).chain(trainers.iter().map(|t| t.1)).collect();
        let memory = vec![0.6; times.len()];
        let mut cell = truth(format!("{} {sharing}", who.join("+")), sharing, specs, times, memory);
        for (place, (_, serves)) in cell.serves.iter_mut().zip(servers) {
            *place = Some(serves.clone());
        }
        self.cells.push(cell);
        self
    }
}
