//! Groups of the same members under two modes. In: an analysis. Out: pairs with the ratio of their work per second, or of another
//! quantity, and the pairs that could not be compared.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_analysis::cell::quantities::GainBy;
use collo_analysis::cell::verdict::CellVerdict;
use collo_quantity::stats::{self, Quantity, RatioTest, RatioVerdict};
use collo_quantity::{Key, number};

use super::how_many;
use crate::rule::evidence::Evidence;
use crate::verdict::{Cause, Groups};

/// Two groups that differ in one thing only.
pub struct Match<'a> {
    pub left: &'a Cell,
    pub right: &'a Cell,
}

/// A pair with its ratio, compared with 1 and corrected for all pairs of its comparison.
#[derive(Clone)]
pub struct Pair<'a> {
    pub left: &'a Cell,
    pub right: &'a Cell,
    pub ratio: Quantity,
    pub test: RatioTest,
}

/// Pairs of groups.
#[derive(Clone, Default)]
pub struct Pairs<'a> {
    pub judged: Vec<Pair<'a>>,
    /// Pairs of which one cannot be judged, by that one.
    pub unjudged: Vec<(&'a Cell, Cause)>,
    /// Pairs of which only the left, or only the right, does not fit into memory, while the other one ran.
    pub left_out_of_memory: Vec<&'a Cell>,
    pub right_out_of_memory: Vec<&'a Cell>,
    /// The groups of pairs of which neither fits: they show nothing of the difference.
    pub both_out_of_memory: Vec<&'a Cell>,
}

/// Planned groups in which all train and that differ only in the sharing mode.
pub fn matched<'a>(analysis: &'a Analysis, left: &str, right: &str) -> Vec<Match<'a>> {
    let of = |mode: &str| {
        let mode = mode.to_string();
        super::training(analysis).filter(move |c| c.family() == mode)
    };
    let mut others = HashMap::<Vec<&str>, Vec<&Cell>>::new();
    for b in of(right) {
        others.entry(members(b)).or_default().push(b);
    }
    let mut found = Vec::new();
    for a in of(left) {
        let alike = others.get(&members(a)).into_iter().flatten();
        let alike = alike.filter(|b| b.record.after_measured == a.record.after_measured);
        found.extend(alike.map(|b| Match { left: a, right: b }));
    }
    found
}

/// Correct the pairs of several comparisons together, where one answer rests on all of them.
pub fn corrected_together<const N: usize>(mut all: [Pairs<'_>; N], threshold: f64) -> [Pairs<'_>; N] {
    let judged = all.iter().flat_map(|pairs| &pairs.judged);
    let ratios: Vec<Option<Quantity>> = judged.map(|pair| Some(pair.ratio.clone())).collect();
    let judged = all.iter_mut().flat_map(|pairs| &mut pairs.judged);
    for (pair, test) in judged.zip(stats::compare(&ratios, threshold)) {
        if let Some(test) = test {
            pair.test = test;
        }
    }
    all
}

impl<'a> Pairs<'a> {
    /// Compare pairs by a ratio; `key` says by which quantity a group of them can be judged.
    pub fn of(
        analysis: &'a Analysis,
        matches: Vec<Match<'a>>,
        key: impl Fn(&Cell) -> Key,
        ratio: impl Fn(&Cell, &Cell) -> Option<Quantity>,
    ) -> Pairs<'a> {
        let mut found = Pairs::default();
        let mut usable = Vec::new();
        for m in matches {
            let is_too_large = |c: &Cell| c.verdict() == CellVerdict::OutOfMemory;
            let cause = |c: &'a Cell| Cause::of(analysis, c, key(c)).map(|cause| (c, cause));
            if is_too_large(m.left) && is_too_large(m.right) {
                found.both_out_of_memory.extend([m.left, m.right]);
            } else if is_too_large(m.left) && m.right.counts() {
                found.left_out_of_memory.push(m.left);
            } else if is_too_large(m.right) && m.left.counts() {
                found.right_out_of_memory.push(m.right);
            } else {
                // Of one that was not run, or failed, it is not known whether it fits where the other does not.
                let causes = [m.left, m.right].into_iter().filter(|c| !is_too_large(c)).filter_map(cause);
                match causes.min_by(|a, b| a.1.cmp(&b.1)) {
                    Some(unjudged) => found.unjudged.push(unjudged),
                    None => usable.push(m),
                }
            }
        }
        let ratios: Vec<Option<Quantity>> = usable.iter().map(|m| ratio(m.left, m.right)).collect();
        let tests = stats::compare(&ratios, analysis.campaign.thresholds.relevant_ratio);
        for ((m, ratio), test) in usable.into_iter().zip(ratios).zip(tests) {
            match ratio.zip(test) {
                Some((ratio, test)) => found.judged.push(Pair { left: m.left, right: m.right, ratio, test }),
                None => found
                    .unjudged
                    .push((m.left, Cause::NoReading("the two were not measured on the same devices in one campaign".into()))),
            }
        }
        found
    }

    /// Work per second of the same members under two modes.
    pub fn of_work(analysis: &'a Analysis, left: &str, right: &str) -> Pairs<'a> {
        Pairs::of(analysis, matched(analysis, left, right), work, advantage)
    }

    /// Put others beside these; each keeps its own correction, unless they are [`corrected_together`].
    pub fn with(mut self, other: Pairs<'a>) -> Pairs<'a> {
        self.judged.extend(other.judged);
        self.unjudged.extend(other.unjudged);
        self.left_out_of_memory.extend(other.left_out_of_memory);
        self.right_out_of_memory.extend(other.right_out_of_memory);
        self.both_out_of_memory.extend(other.both_out_of_memory);
        self
    }

    pub fn is_empty(&self) -> bool {
        self.all() == 0
    }

    /// True if the campaign has no pair that is judged, or could have been.
    pub fn is_unasked(&self) -> bool {
        self.judged.is_empty() && self.unjudged.is_empty()
    }

    pub fn tests(&self) -> impl Iterator<Item = &RatioTest> {
        self.judged.iter().map(|pair| &pair.test)
    }

    /// Pairs in which the left is ahead: it does more, or alone fits into memory.
    pub fn ahead(&self) -> usize {
        self.how_many(RatioVerdict::Better) + self.right_out_of_memory.len()
    }

    /// Pairs in which the left is behind.
    pub fn behind(&self) -> usize {
        self.how_many(RatioVerdict::Worse) + self.left_out_of_memory.len()
    }

    /// All pairs that say something of the difference, or would if they could be judged.
    pub fn all(&self) -> usize {
        self.judged.len() + self.unjudged.len() + self.left_out_of_memory.len() + self.right_out_of_memory.len()
    }

    /// The number of pairs with a verdict.
    pub fn how_many(&self, wanted: RatioVerdict) -> usize {
        how_many(self.tests(), wanted)
    }

    /// Pairs that are undecided and may be below 1 by more than the threshold.
    pub fn may_be_below(&self, threshold: f64) -> usize {
        let below = |pair: &&Pair| pair.ratio.low.is_none_or(|low| low < 1.0 / (1.0 + threshold));
        self.judged.iter().filter(|pair| super::is_undecided(&pair.test)).filter(below).count()
    }

    /// The pair with the largest ratio, or with the smallest.
    pub fn extreme(&self, largest: bool) -> Option<&Pair<'a>> {
        let value = |pair: &Pair| if largest { pair.ratio.estimate } else { -pair.ratio.estimate };
        self.judged.iter().max_by(|a, b| value(a).total_cmp(&value(b)))
    }

    /// The groups of all pairs.
    pub fn groups(&self) -> Groups<'a> {
        let mut judged: Vec<&Cell> = Vec::new();
        for cell in self.judged.iter().flat_map(|pair| [pair.left, pair.right]) {
            if !judged.iter().any(|known| std::ptr::eq(*known, cell)) {
                judged.push(cell);
            }
        }
        let one = self.left_out_of_memory.iter().chain(&self.right_out_of_memory);
        let out_of_memory = one.chain(&self.both_out_of_memory).copied().collect();
        Groups { judged, unjudged: self.unjudged.clone(), out_of_memory }
    }

    /// The ratios as evidence.
    pub fn evidence(&self, key: Key) -> Vec<Evidence> {
        self.judged.iter().map(|pair| pair.evidence(key)).collect()
    }

    /// `ahead of naive in 5, the same in 1 of 6 groups`; `None` without pairs.
    pub fn text(&self, other: &str) -> Option<String> {
        let undecided = self.tests().filter(|test| super::is_undecided(test)).count();
        let parts = [
            (self.ahead(), "ahead of {}"),
            (self.how_many(RatioVerdict::Same), "the same as {}"),
            (self.behind(), "behind {}"),
            (undecided, "undecided against {}"),
            (self.unjudged.len(), "not compared with {}"),
        ];
        let all: usize = parts.iter().map(|(n, _)| n).sum();
        let texts: Vec<String> =
            parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} in {n}", what.replace("{}", other))).collect();
        (all > 0).then(|| format!("{} of {}", texts.join(", "), number::count(all, "group")))
    }
}

impl Pair<'_> {
    pub fn evidence(&self, key: Key) -> Evidence {
        Evidence::between(self.left, self.right, key, self.ratio.clone())
    }
}

/// Members by the labels of their solo cells, which name workload and settings.
pub fn members(cell: &Cell) -> Vec<&str> {
    cell.record.members.iter().map(|m| m.solo.as_str()).collect()
}

/// True if the numbers of both come from the same devices, so that their own values may be compared. Means over several devices are
/// alike only if each has as many runs in both.
pub fn together(a: &Cell, b: &Cell) -> bool {
    if let Some((a, b)) = a.reported.as_ref().zip(b.reported.as_ref()) {
        return a.on_one_device && b.on_one_device && (a.counted > 0) == (b.counted > 0);
    }
    let devices = |c: &Cell| {
        let mut runs = BTreeMap::<usize, usize>::new();
        c.counted().for_each(|r| *runs.entry(r.device).or_default() += 1);
        runs
    };
    let (a, b) = (devices(a), devices(b));
    a == b || a.len() == 1 && a.keys().eq(b.keys())
}

/// The quantity that gives the work per second of a cell.
pub fn work(cell: &Cell) -> Key {
    let several = match &cell.reported {
        Some(reported) => !reported.on_one_device,
        None => cell.counted().map(|r| r.device).collect::<BTreeSet<_>>().len() > 1,
    };
    match GainBy::of(&cell.record) {
        GainBy::EpochTime if !several => Key::EpochTime,
        GainBy::Makespan if !several => Key::Makespan,
        _ => Key::ThroughputGain,
    }
}

/// How much more work per second `cell` does than `other` of the same members: from their times, which share no baseline. Of cells
/// that were not measured together, on several devices, or of which one partitions the GPU and was measured at another time, from
/// their gains, each over its own baseline.
pub fn advantage(cell: &Cell, other: &Cell) -> Option<Quantity> {
    let at_once = together(cell, other) && cell.record.mode.partitioned == other.record.mode.partitioned;
    let key = if at_once { work(cell) } else { Key::ThroughputGain };
    let (left, right) = (cell.get(key)?, other.get(key)?);
    if key == Key::ThroughputGain { left.over(right) } else { right.over(left) }
}

#[cfg(test)]
mod tests {
    use collo_analysis::cell::reported::ReportedRuns;
    use collo_store::CellRecord;

    use super::*;

    #[test]
    fn what_one_answer_rests_on_is_corrected_together() {
        let (verdict, regimes) = (CellVerdict::Valid, Vec::new());
        let runs = ReportedRuns { counted: 3, outcome: "completed", verdict, regimes, on_one_device: true };
        let cell = Cell::of_report(CellRecord::default(), runs);
        let ratio = Quantity { estimate: 1.2, low: Some(1.2 / 1.13), high: Some(1.2 * 1.13), n: 3, df: Some(9.0) };
        let test = stats::compare(&[Some(ratio.clone())], 0.05).remove(0).unwrap();
        let one = Pairs { judged: vec![Pair { left: &cell, right: &cell, ratio, test }], ..Pairs::default() };
        assert_eq!(one.ahead(), 1, "p is 0.035");
        let both = corrected_together([one.clone(), one], 0.05);
        assert_eq!(both.map(|pairs| pairs.ahead()), [0, 0], "twice that is no 5 %");
    }
}
