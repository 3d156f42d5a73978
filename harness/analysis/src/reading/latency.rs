//! Request statistics of a serving member in one run. In: when each request was due and when it was answered, and the measured
//! spans. Out: latency quantiles, rates and the share within the limit, each absent with its reason. It compares with nothing and
//! knows no interval.
//!
//! A request counts if it was due in a measured span, whether or not it was served: counting only answers would make a server
//! look faster the more it drops. Without an answer it is later than any other, so quantiles need no guess about it.

use collo_quantity::{Key, number};
use collo_store::{RequestRecord, Serving};

use super::samples::Window;

/// The reported quantiles, with the share of the requests that are not later.
const QUANTILES: [(Key, f64); 3] = [(Key::LatencyP50, 0.50), (Key::LatencyP95, 0.95), (Key::LatencyP99, 0.99)];

/// Points of the curve of lateness per factor of ten, down to one request in a thousand.
const POINTS: usize = 12;

/// Number of requests required for a quantile: so that the latest of them lies beyond it with 95 % certainty, 1 − pⁿ ≥ 0.95. That
/// is 299 for the p99. Source: Wilks, Determination of sample sizes for setting tolerance limits, Ann. Math. Statist. 12(1),
/// 1941, pp. 91–96.
pub fn least(p: f64) -> usize {
    (0.05f64.ln() / p.ln()).ceil() as usize
}

/// The requests of one or more equal members that were due in the measured spans of one run.
#[derive(Debug, Clone, Default)]
pub struct Requests {
    /// From due to answered, for answered requests.
    latencies_s: Vec<f64>,
    arrived: usize,
    /// Requests per second, summed over members: due, and answered whenever they were due.
    offered_per_s: f64,
    answered_per_s: f64,
    /// Seconds of one member's spans; 0 if nothing was measured.
    window_s: f64,
    slo_s: Option<f64>,
    overload: Option<Overload>,
    /// Answered before they were due, which is impossible.
    pub impossible: usize,
}

/// More requests than a server answers when it has its part of the device to itself: its queue grows as long as it runs, and what was
/// measured of its latency is the length of the run.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Overload {
    rate_per_s: f64,
    capacity_per_s: f64,
}

impl Overload {
    fn of(serving: &Serving) -> Option<Overload> {
        let capacity_per_s = serving.capacity_per_s.filter(|capacity| *capacity < serving.rate_per_s)?;
        Some(Overload { rate_per_s: serving.rate_per_s, capacity_per_s })
    }

    fn text(&self) -> String {
        let capacity = self.capacity_per_s;
        // Rounded down, so that the rate that is named can be served.
        let decimals = 1 - (capacity.log10().floor() as i32).min(1);
        let step = 10f64.powi(-decimals);
        format!(
            "its `rate` is {} a second, and alone it answers {}: no latency is its own then; lower `rate` to {}",
            (self.rate_per_s * 1e3).round() / 1e3,
            number::three(capacity),
            number::fixed((COMFORTABLE * capacity / step).floor() * step, decimals)
        )
    }
}

/// The share of its capacity that a server is asked for at most, if its latency is to be its own: `FULL` in
/// `workloads/serve/open_loop.py`.
const COMFORTABLE: f64 = 0.95;

impl Requests {
    /// For one member: of all its requests, those due in one of the spans.
    pub fn of<'a>(all: impl Iterator<Item = &'a RequestRecord>, spans: &[Window], serving: &Serving) -> Self {
        let mut found = Requests { slo_s: serving.slo_s, overload: Overload::of(serving), ..Requests::default() };
        let disjoint = disjoint(spans);
        let inside = |ns: u64| {
            let begun = disjoint.partition_point(|s| s.start_ns <= ns);
            begun > 0 && ns < disjoint[begun - 1].end_ns
        };
        let mut answered = 0;
        for request in all {
            let latency = request.end_ns.map(|end| end.checked_sub(request.arrival_ns));
            if latency == Some(None) {
                found.impossible += 1;
                continue;
            }
            answered += usize::from(request.end_ns.is_some_and(inside));
            if inside(request.arrival_ns) {
                found.arrived += 1;
                found.latencies_s.extend(latency.flatten().map(|ns| ns as f64 * 1e-9));
            }
        }
        found.window_s = spans.iter().map(|s| s.seconds()).sum();
        if found.window_s > 0.0 {
            found.offered_per_s = found.arrived as f64 / found.window_s;
            found.answered_per_s = answered as f64 / found.window_s;
        }
        found.latencies_s.sort_by(f64::total_cmp);
        found
    }

    /// Pooled over equal members.
    pub fn pooled(members: &[Requests]) -> Option<Self> {
        let mut all = members.first()?.clone();
        for other in &members[1..] {
            all.latencies_s.extend(&other.latencies_s);
            all.arrived += other.arrived;
            all.offered_per_s += other.offered_per_s;
            all.answered_per_s += other.answered_per_s;
            all.window_s = all.window_s.min(other.window_s);
            all.overload = all.overload.or(other.overload);
        }
        all.latencies_s.sort_by(f64::total_cmp);
        Some(all)
    }

    /// Their statistics.
    pub fn summary(&self) -> Latency {
        let in_time = |slo: f64| self.latencies_s.partition_point(|l| *l <= slo);
        let within = self.slo_s.map(|slo| if self.overload.is_some() { 0 } else { in_time(slo) });
        let share = |within: usize| within as f64 / self.arrived as f64;
        let lateness = (0..=3 * POINTS).map(|i| 10f64.powf(-(i as f64) / POINTS as f64));
        Latency {
            arrived: self.arrived,
            answered: self.latencies_s.len(),
            measured: self.window_s > 0.0,
            offered_per_s: self.offered_per_s,
            answered_per_s: self.answered_per_s,
            slo_s: self.slo_s,
            overload: self.overload,
            within_slo_ratio: within.map(share).filter(|_| self.arrived > 0),
            goodput_per_s: within.map(|w| if self.arrived == 0 { 0.0 } else { self.offered_per_s * share(w) }),
            quantiles_s: QUANTILES.map(|(_, p)| self.quantile_s(p)),
            lateness: lateness
                .map(|share| (share, self.quantile_s(1.0 - share).filter(|_| share * self.arrived as f64 >= 1.0)))
                .collect(),
        }
    }

    /// The quantile by nearest rank, the inverse of the empirical distribution (Hyndman and Fan 1996, definition 1): the smallest
    /// latency not exceeded by a share of at least `p` of the requests. Infinite if it falls among those that were never
    /// answered, and for a server below its rate.
    fn quantile_s(&self, p: f64) -> Option<f64> {
        // What 0.99 × 300 is more than 297 by is not a request.
        if self.overload.is_some() {
            return (self.arrived > 0).then_some(f64::INFINITY);
        }
        let rank = ((p * self.arrived as f64 - 1e-9).ceil() as usize).max(1);
        (self.arrived > 0).then(|| self.latencies_s.get(rank - 1).copied().unwrap_or(f64::INFINITY))
    }
}

/// The same spans in order, adjacent ones merged: there may be as many as requests.
fn disjoint(spans: &[Window]) -> Vec<Window> {
    let mut spans = spans.to_vec();
    spans.sort_by_key(|s| s.start_ns);
    let mut found: Vec<Window> = Vec::new();
    for span in spans {
        match found.last_mut().filter(|last| span.start_ns <= last.end_ns) {
            Some(last) => last.end_ns = last.end_ns.max(span.end_ns),
            None => found.push(span),
        }
    }
    found
}

/// The request statistics of one run.
#[derive(Debug, Clone)]
pub struct Latency {
    /// Requests due in the measured spans, and how many of them were answered at any time.
    pub arrived: usize,
    pub answered: usize,
    /// True if there is a measured span.
    measured: bool,
    offered_per_s: f64,
    answered_per_s: f64,
    slo_s: Option<f64>,
    overload: Option<Overload>,
    within_slo_ratio: Option<f64>,
    goodput_per_s: Option<f64>,
    /// In the order of [`QUANTILES`].
    quantiles_s: [Option<f64>; 3],
    /// The latency that this share of the requests exceeds, seconds, by falling share; infinite for unanswered requests.
    pub lateness: Vec<(f64, Option<f64>)>,
}

/// Whether a quantity is a quantile of the latency, or follows from one. Which runs have too few requests for it depends on the load.
pub fn is_quantile(name: Key) -> bool {
    name == Key::LatencyP99OfSolo || QUANTILES.iter().any(|quantile| quantile.0 == name)
}

impl Latency {
    /// A quantity. A quantile that falls among requests without an answer is infinite, so that a mean over repetitions has no
    /// value rather than one of the luckier ones.
    pub fn get(&self, name: Key) -> Option<f64> {
        let quantile = QUANTILES.iter().position(|q| q.0 == name);
        match (quantile, name) {
            // That of a server below its rate is known without a request.
            (Some(i), _) => self.quantiles_s[i].filter(|_| self.overload.is_some() || self.arrived >= least(QUANTILES[i].1)),
            (_, Key::WithinSlo) => self.within_slo_ratio,
            (_, Key::Goodput) => self.goodput_per_s.filter(|_| self.measured),
            (_, Key::Offered) => Some(self.offered_per_s).filter(|_| self.measured),
            (_, Key::Answered) => Some(self.answered_per_s).filter(|_| self.measured),
            _ => None,
        }
    }

    /// The same for a table: a quantity without a finite value is absent.
    pub fn reported(&self, name: Key) -> Option<f64> {
        self.get(name).filter(|v| v.is_finite())
    }

    /// True if it was asked for more than it can answer alone.
    pub fn is_overloaded(&self) -> bool {
        self.overload.is_some()
    }

    /// How many times as many requests a p99 takes; `None` where there are enough.
    pub fn lacks_times(&self) -> Option<usize> {
        let least = least(0.99);
        (self.measured && !self.is_overloaded() && self.arrived > 0 && self.arrived < least).then(|| least.div_ceil(self.arrived))
    }

    /// Relative standard deviation that counting leaves in the share within the limit: that of a binomial share, kept half a
    /// request away from none and all (Jeffreys), because n of n does not prove that there are no late ones.
    pub fn resolution(&self, name: Key) -> f64 {
        match self.within_slo_ratio.filter(|_| name == Key::WithinSlo) {
            Some(ratio) => {
                let n = self.arrived as f64;
                let p = (ratio * n + 0.5) / (n + 1.0);
                ((1.0 - p) / (p * n)).sqrt()
            }
            None => 0.0,
        }
    }

    /// Why a quantity has no finite value here; `None` if it has one.
    pub fn why_absent(&self, name: Key) -> Option<String> {
        if self.reported(name).is_some() {
            return None;
        }
        if matches!(name, Key::WithinSlo | Key::Goodput) && self.slo_s.is_none() {
            return Some("no `slo` was set".into());
        }
        if !self.measured {
            return Some("no measured epoch had all members running".into());
        }
        if let Some(overload) = &self.overload {
            return Some(overload.text());
        }
        let p = QUANTILES.iter().find(|q| q.0 == name)?.1;
        let (least, n) = (least(p), self.arrived);
        Some(if n == 0 {
            "no request was due in its measured window".into()
        } else if n < least {
            let times = least.div_ceil(n);
            format!(
                "it needs at least {least} requests in a run's measured window; there were {n}: a `window` {times} times as long has them"
            )
        } else {
            format!("more than {:.0} % of the requests were never answered", (1.0 - p) * 100.0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn serving(slo_s: Option<f64>) -> Serving {
        Serving { rate_per_s: 10.0, batch_size: 1, slo_s, capacity_per_s: None }
    }

    /// Requests a millisecond apart from `from_ns`; the i-th takes i + 1 ms, or is never answered.
    fn requests(from_ns: u64, n: u64, answered: u64) -> Vec<RequestRecord> {
        let of = |i: u64| {
            let arrival_ns = from_ns + i * 1_000_000;
            let end_ns = (i < answered).then_some(arrival_ns + (i + 1) * 1_000_000);
            RequestRecord { member: 0, arrival_ns, start_ns: end_ns.map(|_| arrival_ns), end_ns }
        };
        (0..n).map(of).collect()
    }

    fn summary(requests: &[RequestRecord], slo_s: Option<f64>) -> Latency {
        Requests::of(requests.iter(), &[Window { start_ns: 0, end_ns: S }], &serving(slo_s)).summary()
    }

    /// Milliseconds without floating-point noise.
    fn ms(seconds: Option<f64>) -> Option<f64> {
        seconds.map(|s| (s * 1e6).round() / 1e3)
    }

    #[test]
    fn quantiles_are_those_of_the_nearest_rank() {
        // Latencies of 1, 2, … 400 ms: the k-th is the smallest that k of 400 do not exceed.
        let found = summary(&requests(0, 400, 400), Some(0.1));
        assert_eq!(found.get(Key::LatencyP50), Some(0.200));
        assert_eq!(found.get(Key::LatencyP95), Some(0.380));
        assert_eq!(found.get(Key::LatencyP99), Some(0.396));
        assert_eq!(found.get(Key::WithinSlo), Some(0.25));
        assert_eq!((found.get(Key::Offered), found.get(Key::Goodput)), (Some(400.0), Some(100.0)));
    }

    #[test]
    fn a_quantile_takes_as_many_requests_as_wilks_asks_for() {
        assert_eq!([0.5, 0.95, 0.99].map(least), [5, 59, 299]);
        let few = summary(&requests(0, 298, 298), None);
        assert!(few.get(Key::LatencyP95).is_some() && few.get(Key::LatencyP99).is_none());
        let why = few.why_absent(Key::LatencyP99).unwrap();
        assert_eq!(
            why,
            "it needs at least 299 requests in a run's measured window; there were 298: a `window` 2 times as long has them"
        );
        assert!(summary(&requests(0, 299, 299), None).get(Key::LatencyP99).is_some());
    }

    #[test]
    fn who_is_never_answered_is_later_than_anybody() {
        let found = summary(&requests(0, 400, 390), Some(1.0));
        assert_eq!(found.get(Key::LatencyP95), Some(0.380));
        assert_eq!((found.get(Key::LatencyP99), found.reported(Key::LatencyP99)), (Some(f64::INFINITY), None));
        assert_eq!(found.why_absent(Key::LatencyP99).unwrap(), "more than 1 % of the requests were never answered");
        assert_eq!(found.get(Key::WithinSlo), Some(390.0 / 400.0), "nor is it within the limit");
        let none = summary(&requests(0, 400, 0), Some(1.0));
        assert_eq!(none.why_absent(Key::LatencyP50).unwrap(), "more than 50 % of the requests were never answered");
        assert_eq!((none.get(Key::WithinSlo), none.get(Key::Goodput)), (Some(0.0), Some(0.0)));
    }

    #[test]
    fn a_server_below_its_rate_is_later_than_any_limit() {
        let asked = |rate_per_s, capacity_per_s| {
            let serving = Serving { rate_per_s, batch_size: 1, slo_s: Some(1.0), capacity_per_s };
            Requests::of(requests(0, 400, 400).iter(), &[Window { start_ns: 0, end_ns: S }], &serving).summary()
        };
        for usual in [asked(40.0, None), asked(40.0, Some(40.0)), asked(40.0, Some(80.0))] {
            assert_eq!((usual.get(Key::WithinSlo), usual.is_overloaded()), (Some(1.0), false));
        }
        let below = asked(40.0, Some(36.2));
        assert_eq!((below.get(Key::LatencyP50), below.reported(Key::LatencyP99)), (Some(f64::INFINITY), None));
        assert_eq!(
            (below.get(Key::WithinSlo), below.get(Key::Goodput), below.get(Key::Offered)),
            (Some(0.0), Some(0.0), Some(400.0))
        );
        assert_eq!(
            below.why_absent(Key::LatencyP99).unwrap(),
            "its `rate` is 40 a second, and alone it answers 36.2: no latency is its own then; lower `rate` to 34"
        );
        // Never to the rate itself, however near the capacity is to it.
        for (rate, capacity, lower) in [(40.0, 39.9, "37"), (2.0, 0.3, "0.28"), (9.0, 8.99, "8.5")] {
            let why = asked(rate, Some(capacity)).why_absent(Key::LatencyP99).unwrap();
            assert!(why.ends_with(&format!("lower `rate` to {lower}")), "{why}");
        }
    }

    #[test]
    fn only_what_was_due_in_a_measured_span_counts() {
        let all = requests(0, 900, 900);
        let spans = [Window { start_ns: 0, end_ns: S / 10 }, Window { start_ns: S / 2, end_ns: S * 6 / 10 }];
        let found = Requests::of(all.iter(), &spans, &serving(None)).summary();
        assert_eq!((found.arrived, found.get(Key::Offered)), (200, Some(1000.0)));
        // Of the second span's requests none ends inside: they take half a second and more.
        assert_eq!(found.get(Key::Answered), Some(50.0 / 0.2 + 50.0 / 0.2));
    }

    #[test]
    fn nobody_one_and_the_impossible() {
        let nobody = summary(&[], Some(0.1));
        assert_eq!(nobody.why_absent(Key::LatencyP50).unwrap(), "no request was due in its measured window");
        assert_eq!((nobody.get(Key::WithinSlo), nobody.get(Key::Offered)), (None, Some(0.0)));
        assert_eq!((nobody.get(Key::Goodput), nobody.resolution(Key::WithinSlo)), (Some(0.0), 0.0));
        let one = summary(&requests(0, 1, 1), None);
        assert!(one.get(Key::LatencyP50).is_none() && one.arrived == 1);
        assert_eq!(one.why_absent(Key::WithinSlo).unwrap(), "no `slo` was set");
        let early = [RequestRecord { member: 0, arrival_ns: 9, start_ns: Some(1), end_ns: Some(2) }];
        let found = Requests::of(early.iter(), &[Window { start_ns: 0, end_ns: S }], &serving(None));
        assert_eq!((found.impossible, found.arrived), (1, 0));
        let unmeasured = Requests::of(requests(0, 400, 400).iter(), &[], &serving(Some(1.0))).summary();
        assert!(Key::of_requests().all(|name| unmeasured.get(name).is_none()));
        assert!(unmeasured.why_absent(Key::Offered).unwrap().contains("all members running"));
    }

    #[test]
    fn all_in_time_leaves_room_for_the_few_that_were_not_seen() {
        // Three of n is the upper end of a 95 % interval for none in n: about two standard deviations here.
        let found = summary(&requests(0, 300, 300), Some(1.0));
        assert_eq!(found.get(Key::WithinSlo), Some(1.0));
        let sd = found.resolution(Key::WithinSlo);
        assert!((0.5 / 300.0..1.5 * 3.0 / 300.0).contains(&sd), "{sd}");
    }

    #[test]
    fn members_are_pooled_by_their_requests() {
        let span = [Window { start_ns: 0, end_ns: S }];
        let of = |n, answered| Requests::of(requests(0, n, answered).iter(), &span, &serving(Some(0.1)));
        let both = Requests::pooled(&[of(400, 400), of(200, 200)]).unwrap().summary();
        assert_eq!((both.arrived, both.get(Key::Offered), both.get(Key::Goodput)), (600, Some(600.0), Some(200.0)));
        assert_eq!(ms(both.get(Key::LatencyP50)), Some(150.0));
        assert!(Requests::pooled(&[]).is_none());
    }

    #[test]
    fn the_curve_of_lateness_ends_with_the_last_request() {
        let found = summary(&requests(0, 400, 400), None);
        let at = |share: f64| found.lateness.iter().find(|(s, _)| (s / share - 1.0).abs() < 1e-9).and_then(|(_, l)| *l);
        assert_eq!([1.0, 0.1, 0.01].map(|share| ms(at(share))), [1.0, 360.0, 396.0].map(Some));
        assert_eq!(at(0.001), None, "400 requests tell nothing of one in a thousand");
    }
}
