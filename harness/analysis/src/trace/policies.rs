//! What the runs of one trace say of policies. In: runs. Out: for each policy its values by order, and ratios to the reference and
//! to each other within orders. Repeats of one order are averaged first: they tell the noise of the machine, not that of orders.

use std::collections::BTreeMap;

use collo_quantity::stats::orders::{self, Difference, Values, blocks_needed};
use collo_quantity::stats::{self, Pool, Quantity, RatioTest, RatioVerdict, log_moments};
use collo_quantity::unit::COUNT;
use collo_quantity::{Better, Key};
use collo_store::Validity;

use super::TraceRun;
use super::arm::{Arm, Order};
use crate::cell::Cell;
use crate::cell::quantities::capped;

/// A trace on a site at a scale, under several policies.
#[derive(Debug)]
pub struct TraceMatrix {
    pub trace: String,
    pub cards: u32,
    /// Arrivals, epochs and the manager's times are divided by this.
    pub scale: u32,
    /// Tasks of the trace.
    pub tasks: u32,
    /// Orders that were measured under any policy, ascending.
    pub orders: Vec<u64>,
    /// In the order of the plan.
    pub arms: Vec<Arm>,
    /// The arm that the others are compared with.
    pub reference: usize,
    /// Every two arms by their total, the reference among them.
    pub pairs: Vec<PolicyPair>,
    /// Standard deviation of repeats of one order, of the total, relative; absent if no order was repeated.
    pub noise_ratio: Option<f64>,
    /// The same over orders of a policy's total ÷ that of the reference; absent for one order.
    pub spread_ratio: Option<f64>,
    /// How the intervals were made; absent for one order.
    pub method: Option<String>,
    /// Relative differences below this are not worth acting on.
    pub threshold: f64,
}

/// How many orders would tell two policies apart, with a power of 80 %.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrdersNeeded {
    /// One order says nothing of the spread.
    Unknown,
    Of(usize),
    /// More than a hundred beside those that there are.
    ManyMore,
    MoreThanAThousand,
}

impl OrdersNeeded {
    pub fn of(variance: Option<f64>, estimate: f64, threshold: f64) -> OrdersNeeded {
        // What is smaller than the threshold would not matter if it were known.
        let effect = estimate.ln().abs().max(threshold.ln_1p());
        match variance.map(|v| blocks_needed(v, effect)) {
            None => OrdersNeeded::Unknown,
            Some(None) => OrdersNeeded::MoreThanAThousand,
            Some(Some(n)) => OrdersNeeded::Of(n),
        }
    }

    /// Where a test could not tell, what it says itself of `n` orders: it knows of the others that it is corrected for.
    fn told_by(self, test: Option<&RatioTest>, n: usize) -> OrdersNeeded {
        match test.map(|test| test.verdict) {
            Some(RatioVerdict::CannotTell { more: Some(more) }) => OrdersNeeded::Of(n + more),
            Some(RatioVerdict::CannotTell { more: None }) => match self {
                OrdersNeeded::MoreThanAThousand => self,
                _ => OrdersNeeded::ManyMore,
            },
            _ => self,
        }
    }

    /// `31 orders would`.
    pub fn text(self) -> String {
        match self {
            OrdersNeeded::Unknown => "one order says nothing of the spread".into(),
            OrdersNeeded::Of(n) => format!("{n} orders would"),
            OrdersNeeded::ManyMore => "more than 100 further orders would".into(),
            OrdersNeeded::MoreThanAThousand => "more than 1000 orders would".into(),
        }
    }
}

/// A ratio to the reference.
#[derive(Debug, Clone)]
pub struct RatioToReference {
    /// This policy ÷ the reference, geometric mean over orders.
    pub ratio: Quantity,
    /// Compared with 1, corrected for the number of policies; absent without an interval, or if one of both is not valid. *Better* is
    /// what the quantity is better for.
    pub test: Option<RatioTest>,
    pub needed: OrdersNeeded,
}

/// Two arms.
#[derive(Debug, Clone)]
pub struct PolicyPair {
    pub left: usize,
    pub right: usize,
    /// Total of the left ÷ that of the right.
    pub ratio: Quantity,
    /// Corrected for all pairs; *better*: the left one is shorter.
    pub test: Option<RatioTest>,
    pub needed: OrdersNeeded,
}

/// What a verdict is called in running text.
pub fn verdict_text(test: Option<&RatioTest>, needed: OrdersNeeded) -> String {
    match test.map(|t| t.verdict) {
        None => "no verdict".into(),
        Some(RatioVerdict::CannotTell { .. }) => format!("can't tell ({})", needed.text()),
        Some(other) => other.text(),
    }
}

impl TraceMatrix {
    /// One for each trace, site and scale that cells have.
    pub(super) fn all(cells: &[Cell], runs: &[TraceRun], threshold: f64) -> Vec<TraceMatrix> {
        let mut kinds: Vec<(&str, u32, u32)> = Vec::new();
        for of in cells.iter().filter_map(|c| c.record.trace.as_ref()) {
            let kind = (of.trace.as_str(), of.cards, of.scale);
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        kinds.into_iter().filter_map(|kind| TraceMatrix::of(kind, cells, runs, threshold)).collect()
    }

    fn of(kind: (&str, u32, u32), cells: &[Cell], runs: &[TraceRun], threshold: f64) -> Option<TraceMatrix> {
        let (trace, cards, scale) = kind;
        let planned = cells.iter().filter_map(|c| Some((c, c.record.trace.as_ref()?)));
        let planned: Vec<_> = planned.filter(|(_, of)| (of.trace.as_str(), of.cards, of.scale) == kind).collect();
        let mut arms: Vec<Arm> = Vec::new();
        for (cell, of) in &planned {
            let arm = Arm {
                policy: of.policy.clone(),
                estimate: of.estimate.clone(),
                sharing: cell.record.sharing.clone(),
                in_modes: planned.iter().any(|(other, also)| {
                    (&also.policy, &also.estimate) == (&of.policy, &of.estimate) && other.record.sharing != cell.record.sharing
                }),
                validity: Validity::valid(),
                by_order: Vec::new(),
                quantities: BTreeMap::new(),
                ratios: BTreeMap::new(),
            };
            let known = |a: &Arm| (&a.policy, &a.estimate, &a.sharing) == (&arm.policy, &arm.estimate, &arm.sharing);
            if !arms.iter().any(known) {
                arms.push(arm);
            }
        }
        let own = |r: &&TraceRun| (r.of.trace.as_str(), r.of.cards, r.of.scale) == kind;
        let runs: Vec<&TraceRun> = runs.iter().filter(own).collect();
        let mut noise = Vec::new();
        for arm in &mut arms {
            noise.extend(arm.take(&runs));
        }
        let reference = arms.iter().position(Arm::is_exclusive).unwrap_or(0);
        let mut orders: Vec<u64> = runs.iter().map(|r| r.of.order).collect();
        orders.sort_unstable();
        orders.dedup();
        let mut matrix = TraceMatrix {
            trace: trace.into(),
            cards,
            scale,
            tasks: planned.iter().map(|(_, of)| of.tasks).max()?,
            orders,
            arms,
            reference,
            pairs: Vec::new(),
            noise_ratio: Pool::fit(&noise).as_ref().map(deviation),
            spread_ratio: None,
            method: None,
            threshold,
        };
        Key::of_traces().for_each(|key| matrix.compare(key));
        matrix.pair();
        Some(matrix)
    }

    /// The variance that ratios of a quantity share.
    fn pool(&self, key: Key) -> Option<Pool> {
        let values: Vec<Values<Order>> = self.arms.iter().map(|arm| arm.values(key)).collect();
        orders::pool(&values.iter().collect::<Vec<_>>(), self.reference)
    }

    /// One arm ÷ another, within the orders that both have.
    pub fn ratio(&self, left: usize, right: usize, key: Key) -> Option<Quantity> {
        orders::ratio(&self.arms[left].values(key), &self.arms[right].values(key), self.pool(key).as_ref())
    }

    /// One arm − another, of counts, within the orders that both have.
    pub fn difference(&self, left: usize, right: usize, key: Key) -> Option<Difference> {
        orders::difference(&self.arms[left].values(key), &self.arms[right].values(key))
    }

    /// The reference arm.
    pub fn reference(&self) -> &Arm {
        &self.arms[self.reference]
    }

    /// True if a policy was compared with others in two orders or more.
    pub fn has_spread(&self) -> bool {
        self.method.is_some()
    }

    /// Fill a quantity and its ratios.
    fn compare(&mut self, key: Key) {
        let values: Vec<Values<Order>> = self.arms.iter().map(|arm| arm.values(key)).collect();
        let own = values.iter().filter_map(|v| log_moments(&v.values().copied().collect::<Vec<_>>())?.1);
        let spread = Pool::fit(&own.collect::<Vec<_>>()).filter(|_| key.unit != COUNT);
        for (arm, values) in self.arms.iter_mut().zip(&values) {
            let each: Vec<f64> = values.values().copied().collect();
            let Some(found) = mean_over_orders(&each, key, spread.as_ref()) else { continue };
            arm.quantities.insert(key, capped(key, found));
        }
        if key.unit == COUNT {
            return;
        }
        let pool = orders::pool(&values.iter().collect::<Vec<_>>(), self.reference);
        if key == Key::Total {
            self.method = pool.as_ref().map(|pool| pool.name().into());
            self.spread_ratio = pool.as_ref().map(deviation);
        }
        let reference_valid = self.reference().is_valid();
        let ratio = |i: usize| orders::ratio(&values[i], &values[self.reference], pool.as_ref()).filter(|_| i != self.reference);
        let ratios: Vec<Option<Quantity>> = (0..self.arms.len()).map(ratio).collect();
        let judged = |(i, q): (usize, &Option<Quantity>)| {
            let is_judged = reference_valid && self.arms[i].is_valid() && key.better != Better::Neither;
            q.as_ref().filter(|_| is_judged).map(|q| gains(q, key))
        };
        let judged: Vec<Option<Quantity>> = ratios.iter().enumerate().map(judged).collect();
        let tests = stats::compare(&judged, self.threshold);
        for (i, (ratio, test)) in ratios.into_iter().zip(tests).enumerate() {
            let Some(ratio) = ratio else { continue };
            let variance = shared_variance(&values[i], &values[self.reference], pool.as_ref());
            let needed = OrdersNeeded::of(variance, ratio.estimate, self.threshold).told_by(test.as_ref(), ratio.n);
            self.arms[i].ratios.insert(key, RatioToReference { ratio, test, needed });
        }
    }

    /// With what follows from its values by order alone, of a report that has these: its pairs, and how ratios vary.
    pub fn paired(mut self) -> TraceMatrix {
        self.spread_ratio = self.pool(Key::Total).as_ref().map(deviation);
        self.pair();
        self
    }

    /// Every two arms by their total.
    fn pair(&mut self) {
        let values: Vec<Values<Order>> = self.arms.iter().map(|arm| arm.values(Key::Total)).collect();
        let pool = self.pool(Key::Total);
        let mut found = Vec::new();
        for left in 0..self.arms.len() {
            for right in left + 1..self.arms.len() {
                let Some(ratio) = orders::ratio(&values[left], &values[right], pool.as_ref()) else { continue };
                let variance = shared_variance(&values[left], &values[right], pool.as_ref());
                let needed = OrdersNeeded::of(variance, ratio.estimate, self.threshold);
                found.push(PolicyPair { left, right, ratio, test: None, needed });
            }
        }
        let valid = |p: &PolicyPair| self.arms[p.left].is_valid() && self.arms[p.right].is_valid();
        let judged: Vec<Option<Quantity>> = found.iter().map(|p| valid(p).then(|| gains(&p.ratio, Key::Total))).collect();
        for (pair, test) in found.iter_mut().zip(stats::compare(&judged, self.threshold)) {
            pair.needed = pair.needed.told_by(test.as_ref(), pair.ratio.n);
            pair.test = test;
        }
        self.pairs = found;
    }

    /// Two arms by their total, the first ÷ the second, with its verdict from the side of the first.
    pub fn pair_of(&self, first: usize, second: usize) -> Option<(Quantity, Option<RatioVerdict>, OrdersNeeded)> {
        let pair = self.pairs.iter().find(|p| (p.left, p.right) == (first, second) || (p.left, p.right) == (second, first))?;
        let verdict = pair.test.as_ref().map(|t| t.verdict);
        if pair.left == first {
            return Some((pair.ratio.clone(), verdict, pair.needed));
        }
        let turned = verdict.map(|v| match v {
            RatioVerdict::Better => RatioVerdict::Worse,
            RatioVerdict::Worse => RatioVerdict::Better,
            other => other,
        });
        Some((pair.ratio.inverse(), turned, pair.needed))
    }

    /// The arm with the shortest total of those that may support a guideline, else of all.
    pub fn shortest(&self) -> Option<usize> {
        let total = |i: &usize| self.arms[*i].get(Key::Total).map_or(f64::INFINITY, |q| q.estimate);
        let over_reference = |i: &usize| self.arms[*i].ratios.get(&Key::Total).map(|r| r.ratio.estimate);
        let by = |i: &usize| if *i == self.reference { Some(1.0) } else { over_reference(i) };
        let measured: Vec<usize> = (0..self.arms.len()).filter(|i| total(i).is_finite() && by(i).is_some()).collect();
        let valid: Vec<usize> = measured.iter().copied().filter(|i| self.arms[*i].is_valid()).collect();
        let among = if valid.is_empty() { measured } else { valid };
        among.into_iter().min_by(|a, b| by(a).unwrap_or(f64::INFINITY).total_cmp(&by(b).unwrap_or(f64::INFINITY)))
    }

    /// `1:20`, if arrivals and epochs are not as long as they were.
    pub fn scaled(&self) -> Option<String> {
        scaled(self.scale)
    }

    /// `philly-90, 4 cards, scale 1:20`.
    pub fn name(&self) -> String {
        TraceMatrix::called(&self.trace, self.cards, self.scale)
    }

    /// The same of one that is only known by name.
    pub fn called(trace: &str, cards: u32, scale: u32) -> String {
        let scaled = scaled(scale).map_or_else(String::new, |scale| format!(", scale {scale}"));
        format!("{trace}, {}{scaled}", collo_quantity::number::count(cards as usize, "card"))
    }
}

fn scaled(scale: u32) -> Option<String> {
    (scale != 1).then(|| format!("1:{scale}"))
}

/// So that above 1 is better.
pub fn gains(ratio: &Quantity, key: Key) -> Quantity {
    if key.better == Better::Larger { ratio.clone() } else { ratio.inverse() }
}

/// The standard deviation that a pool stands for.
fn deviation(pool: &Pool) -> f64 {
    match pool {
        Pool::Pooled(v) => v.s2.sqrt(),
        Pool::Moderated { prior, .. } => prior.s2.sqrt(),
    }
}

/// The variance over orders of the logarithm of a ratio, as its interval takes it; `None` for one order.
pub fn shared_variance<B: Ord>(a: &Values<B>, b: &Values<B>, pool: Option<&Pool>) -> Option<f64> {
    let own = log_moments(&orders::ratios(a, b))?.1?;
    Some(pool.map_or(own, |pool| pool.shrink(own)).s2)
}

/// Over orders: the geometric mean, whose interval is that of orders; of counts, and of what was 0 once, the arithmetic one.
fn mean_over_orders(each: &[f64], key: Key, spread: Option<&Pool>) -> Option<Quantity> {
    let n = each.len();
    if n == 0 {
        return None;
    }
    match log_moments(each).filter(|_| key.unit != COUNT) {
        Some((mean, own)) => {
            let variance = own.map(|own| spread.map_or(own, |pool| pool.shrink(own)));
            let terms: Vec<stats::Term> = variance.map(|variance| stats::Term { weight: 1.0, variance, n }).into_iter().collect();
            Some(stats::quantity(mean, n, &terms))
        }
        None => Some(Quantity { estimate: each.iter().sum::<f64>() / n as f64, low: None, high: None, n, df: None }),
    }
}
