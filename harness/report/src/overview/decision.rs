//! What the measured groups of a workload or mix decide for each aim. In: an analysis. Out: for each subject the groups to run, *in
//! turn*, or *open*. The answer sentences and the table of what to run both read it from here.

use std::collections::HashMap;

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_analysis::cell::quantities::capped;
use collo_analysis::cell::suspect::short_of_energy;
use collo_figures::modes::mode_order;
use collo_guidelines::groups::collocate::{knees, rank_by_gain};
use collo_guidelines::groups::energy::rank_by_energy;
use collo_guidelines::report_json::{Decided, DecisionJson};
use collo_guidelines::verdict::{self, Cause, Groups, Holds, Ranking};
use collo_quantity::Key;
use collo_quantity::stats::{Quantity, RatioVerdict};
use collo_store::without_mode;

use crate::parts::panels::{called, describe};

/// A subject of a decision: a workload, or a mix of several.
pub struct Subject<'a> {
    pub name: String,
    /// Its model, data set and batch size; `mixed` for a mix.
    pub what: String,
    pub groups: Vec<&'a Cell>,
    /// The candidates for throughput: the groups at a workload's knees, all groups of a mix.
    for_throughput: Vec<&'a Cell>,
    /// By the name of a candidate, what the next larger group adds to it: `a third adds less than 5 %`.
    beyond: HashMap<&'a str, String>,
}

/// What is decided for one aim.
pub enum Choice<'a> {
    /// Run one of these groups, the simplest mode first; if there are several, why none is preferred.
    Run { leaders: Vec<&'a Cell>, tie: Option<String> },
    /// No group is better than running in turn; the one that comes nearest.
    InTurn { nearest: Option<&'a Cell> },
    /// What is known is not enough: the group that comes nearest, and why it decides nothing.
    Open { nearest: Option<&'a Cell>, cause: Option<Cause> },
    /// The aim does not apply here, for this reason.
    Absent(String),
}

/// The subjects of a campaign with groups that train: workloads in the order of the plan, then mixes.
pub fn subjects(analysis: &Analysis) -> Vec<Subject<'_>> {
    let mut at_knees = HashMap::<&str, (Vec<&Cell>, HashMap<&str, String>)>::new();
    for knee in knees(analysis) {
        let cell = knee.groups[knee.at];
        let (cells, beyond) = at_knees.entry(knee.workload).or_default();
        cells.push(cell);
        beyond.extend(knee.beyond().map(|text| (cell.name(), text)));
    }
    let workloads = analysis.workloads();
    let described: Vec<(String, String)> = workloads.iter().map(|w| describe(analysis, w)).collect();
    let names: Vec<&str> = described.iter().map(|(name, _)| name.as_str()).collect();
    let uniform = workloads.into_iter().zip(&described).map(|(workload, (name, what))| {
        let (name, what) = (called(workload, name, names.iter().copied()), what.clone());
        let groups: Vec<&Cell> = analysis.of_workload(workload).filter(|c| c.record.degree > 1 && !c.serves()).collect();
        let (for_throughput, beyond) = at_knees.remove(workload).unwrap_or_default();
        Subject { name, what, groups, for_throughput, beyond }
    });
    let mut found: Vec<Subject> = uniform.filter(|s| !s.groups.is_empty()).collect();
    let mut places = HashMap::<Vec<&str>, usize>::new();
    for cell in analysis.groups().filter(|c| !c.record.is_uniform() && !c.serves()) {
        let who: Vec<&str> = cell.record.members.iter().map(|m| m.solo.as_str()).collect();
        match places.get(&who) {
            Some(at) => {
                found[*at].groups.push(cell);
                found[*at].for_throughput.push(cell);
            }
            None => {
                places.insert(who, found.len());
                let name = without_mode(cell.name());
                let (groups, for_throughput) = (vec![cell], vec![cell]);
                found.push(Subject { name, what: "mixed".into(), groups, for_throughput, beyond: HashMap::new() });
            }
        }
    }
    found
}

impl<'a> Subject<'a> {
    /// What is decided for the most throughput, as `report.json` has it.
    pub fn json(&self, analysis: &Analysis) -> DecisionJson {
        // The members of a workload's groups are alike, and a mix has one set of them.
        let first = self.groups.first().map(|c| &c.record);
        let many = first.map_or(0, |record| if record.is_uniform() { 1 } else { record.members.len() });
        let members: Vec<String> = first.into_iter().flat_map(|r| &r.members).take(many).map(|m| m.solo.clone()).collect();
        let (throughput, leaders, reason) = match self.throughput(analysis) {
            Choice::Run { leaders, tie } => (Decided::Run, leaders, tie),
            Choice::InTurn { .. } => (Decided::InTurn, Vec::new(), None),
            Choice::Open { cause, .. } => (Decided::Open, Vec::new(), cause.map(|cause| cause.text())),
            Choice::Absent(why) => (Decided::Open, Vec::new(), Some(why)),
        };
        let measured = match (&leaders[..], &members[..]) {
            ([first, ..], _) => Some(*first),
            ([], [workload]) if throughput == Decided::InTurn => analysis.solo(workload),
            _ => None,
        };
        DecisionJson {
            subject: self.name.clone(),
            members,
            throughput,
            cells: leaders.iter().map(|c| c.name().to_string()).collect(),
            reason,
            few_energy_steps: measured.and_then(short_of_energy).is_some(),
        }
    }

    /// What the next larger group adds to this candidate for throughput; `None` where no larger one was compared with it.
    pub fn beyond(&self, candidate: &Cell) -> Option<&str> {
        self.beyond.get(candidate.name()).map(String::as_str)
    }

    /// A quantity of a group that was picked for its value, with the interval that covers whichever group of this subject is picked.
    pub fn picked(&self, cell: &Cell, key: Key) -> Option<Quantity> {
        let candidates = self.groups.iter().filter(|c| c.get(key).is_some()).count();
        Some(capped(key, cell.get(key)?.picked_from(candidates)))
    }

    /// The groups with the most throughput, among those that are certainly better than running in turn.
    pub fn throughput(&self, analysis: &Analysis) -> Choice<'a> {
        let threshold = analysis.campaign.thresholds.relevant_ratio;
        let here: Vec<&Cell> = self.for_throughput.iter().copied().filter(|c| c.gain_verdict.is_some()).collect();
        let is_better = |c: &&Cell| c.is_valid() && c.gain_verdict.as_ref().is_some_and(|v| v.verdict == RatioVerdict::Better);
        let better: Vec<&Cell> = here.iter().copied().filter(is_better).collect();
        if let Some(ranking) = rank_by_gain(&better, threshold) {
            return run(analysis, &ranking);
        }
        let groups = Groups::of(analysis, self.groups.iter().copied(), Key::ThroughputGain);
        let nearest = extreme(here.into_iter(), Key::ThroughputGain, true);
        let is_not =
            |c: &&&Cell| c.gain_verdict.as_ref().is_some_and(|v| matches!(v.verdict, RatioVerdict::Same | RatioVerdict::Worse));
        let refused = groups.judged.iter().filter(is_not).count();
        without_group(&groups, refused, nearest)
    }

    /// The largest group whose slowest member is certainly within the experiment's threshold.
    pub fn gentle(&self, analysis: &Analysis) -> Choice<'a> {
        let limit = analysis.campaign.thresholds.slowdown;
        let groups = Groups::of(analysis, self.groups.iter().copied(), Key::Slowdown);
        let fits = |c: &&Cell| is_within(c, limit);
        let simple = |c: &Cell| std::cmp::Reverse(mode_order(&c.record.sharing).0);
        if let Some(cell) = groups.judged.iter().copied().filter(fits).max_by_key(|c| (c.record.degree, simple(c))) {
            return Choice::Run { leaders: vec![cell], tie: None };
        }
        let nearest = extreme(self.groups.iter().copied(), Key::Slowdown, false);
        let refused = groups.judged.iter().filter(|c| largest(c, Key::Slowdown, |q| q.low).is_some_and(|s| s > limit)).count();
        without_group(&groups, refused, nearest)
    }

    /// The groups with the least energy, among those that certainly use less than running in turn.
    pub fn energy(&self, analysis: &Analysis) -> Choice<'a> {
        let threshold = analysis.campaign.thresholds.relevant_ratio;
        let groups = Groups::of(analysis, self.groups.iter().copied(), Key::EnergyOfSolo);
        let least = 1.0 / (1.0 + threshold);
        let bounds = |c: &Cell| c.get(Key::EnergyOfSolo).and_then(|q| q.low.zip(q.high));
        let saving: Vec<&Cell> =
            groups.judged.iter().copied().filter(|c| bounds(c).is_some_and(|(_, high)| high < least)).collect();
        if let Some(ranking) = rank_by_energy(&saving, threshold) {
            return run(analysis, &ranking);
        }
        let Some(nearest) = extreme(self.groups.iter().copied(), Key::EnergyOfSolo, false) else {
            let why = self.groups.iter().find_map(|c| c.absent.get(&Key::EnergyPerEpoch));
            return Choice::Absent(why.map_or(Key::EnergyOfSolo.absent, String::as_str).into());
        };
        let refused = groups.judged.iter().filter(|c| bounds(c).is_some_and(|(low, _)| low >= least)).count();
        without_group(&groups, refused, Some(nearest))
    }

    /// The group on instances with most throughput whose members certainly do not disturb each other.
    pub fn isolation(&self, analysis: &Analysis) -> Choice<'a> {
        let on_slices: Vec<&Cell> = self.groups.iter().copied().filter(|c| c.is_separated()).collect();
        if on_slices.is_empty() {
            return Choice::Absent("no group on slices".into());
        }
        let groups = Groups::of(analysis, on_slices.iter().copied(), Key::SlowdownOnSlice);
        let limit = 1.0 + analysis.campaign.thresholds.relevant_ratio;
        let apart = |c: &&Cell| largest(c, Key::SlowdownOnSlice, |q| q.high).is_some_and(|high| high <= limit);
        let is_disturbed = |c: &&&Cell| largest(c, Key::SlowdownOnSlice, |q| q.low).is_some_and(|low| low > limit);
        let gain = |c: &Cell| c.get(Key::ThroughputGain).map_or(f64::NEG_INFINITY, |q| q.estimate);
        match groups.judged.iter().copied().filter(apart).max_by(|a, b| gain(a).total_cmp(&gain(b))) {
            Some(cell) => Choice::Run { leaders: vec![cell], tie: None },
            None => {
                let disturbed = groups.judged.iter().filter(is_disturbed).count();
                let nearest = extreme(on_slices.iter().copied(), Key::SlowdownOnSlice, false);
                without_group(&groups, disturbed, nearest)
            }
        }
    }
}

/// The largest of one end of the intervals of a quantity of the members; `None` if some member has none.
fn largest(cell: &Cell, key: Key, end: fn(&Quantity) -> Option<f64>) -> Option<f64> {
    let ends: Option<Vec<f64>> = cell.members.iter().map(|m| m.get(key).and_then(end)).collect();
    ends?.into_iter().reduce(f64::max)
}

/// True if every member of a valid group is certainly slowed by no more than this factor.
pub fn is_within(cell: &Cell, limit: f64) -> bool {
    cell.is_valid() && largest(cell, Key::Slowdown, |q| q.high).is_some_and(|slowdown| slowdown <= limit)
}

fn run<'a>(analysis: &Analysis, ranking: &Ranking<'a>) -> Choice<'a> {
    match ranking.tie(analysis.campaign.thresholds.relevant_ratio) {
        None => Choice::Run { leaders: vec![ranking.first], tie: None },
        tie => Choice::Run { leaders: ranking.leaders(), tie },
    }
}

/// The cell with the largest or smallest estimate of a quantity.
fn extreme<'a>(cells: impl Iterator<Item = &'a Cell>, key: Key, largest: bool) -> Option<&'a Cell> {
    let estimate = |c: &Cell| c.get(key).map_or(f64::NAN, |q| q.estimate);
    let known = cells.filter(|c| c.get(key).is_some());
    if largest {
        known.max_by(|a, b| estimate(a).total_cmp(&estimate(b)))
    } else {
        known.min_by(|a, b| estimate(a).total_cmp(&estimate(b)))
    }
}

/// *In turn*, if every group was shown not to be better; else open.
fn without_group<'a>(groups: &Groups, refused: usize, nearest: Option<&'a Cell>) -> Choice<'a> {
    match verdict::of_some(0, refused, groups.judged.len() - refused + groups.missing()) {
        Holds::No => Choice::InTurn { nearest },
        _ => Choice::Open { nearest, cause: groups.cause().cloned() },
    }
}
