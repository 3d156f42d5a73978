//! Coefficients and a forest from measured groups. In: groups of one sharing mode. Out: both, each with what it misses on groups whose
//! families its fit had not seen, and which of them serves.

use std::collections::BTreeMap;

use collo_quantity::stats::quantile;

use super::evaluate::{CompanyScore, GroupEstimate, score_company};
use super::forest::{FEWEST_GROUPS, Forest, StoredForest};
use super::left_out::{FEWEST_TO_FIT, Fold, Unseen};
use super::prediction::Widths;
use super::{Alone, Law, MeasuredGroup, SliceLaw};
use crate::fit::Unfit;

/// A fit, and each group by fits that have not seen it.
#[derive(Debug, Clone, PartialEq)]
pub struct CompanyFit {
    pub law: Law,
    /// The rule that says the same of all.
    pub median_slowdown: f64,
    pub law_widths: Widths,
    /// Present only with enough groups.
    pub forest: Option<StoredForest>,
    pub forest_widths: Option<Widths>,
    /// It was nearer to groups left out than the law.
    pub forest_wins: bool,
    /// By what was left out, the strictest first; the first is what widths and the choice are made of.
    pub left_out: Vec<LeftOutBy>,
}

/// Groups predicted by fits that have not seen them; in the order of the groups, without those that no fit could be made for.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftOutBy {
    pub unseen: Unseen,
    pub law: Vec<GroupEstimate>,
    pub forest: Option<Vec<GroupEstimate>>,
    /// All alike: the median slowdown of the others.
    pub constant: Vec<GroupEstimate>,
}

/// Logarithms of slowdowns, of each group; None: not estimated.
type Logs = Vec<Option<Vec<f64>>>;

/// What estimators say of the members that a fold is judged by.
struct Said {
    law: Vec<f64>,
    forest: Option<Vec<f64>>,
    constant: f64,
}

/// The law and, of enough groups, the forest.
pub fn fit_company(groups: &[MeasuredGroup]) -> Result<CompanyFit, Unfit> {
    check(groups)?;
    let wants_forest = groups.len() >= FEWEST_GROUPS;
    let mut left_out = Vec::new();
    for unseen in Unseen::ALL {
        let folds = unseen.folds(groups);
        let found = LeftOutBy::of(groups, unseen, &folds, wants_forest)?;
        // Where families are few, too little is left to judge by.
        if found.law.len() * 2 >= groups.len() {
            left_out.push(found);
        }
        if unseen == Unseen::OwnFamily && !left_out.is_empty() {
            break;
        }
    }
    let law = Law::fit(groups)?;
    let Some(strictest) = left_out.first() else {
        return Err(Unfit::TooFewRows { rows: groups.len(), columns: FEWEST_TO_FIT + 1 });
    };
    let law_widths = widths(&strictest.law);
    let forest_widths = strictest.forest.as_ref().map(|estimates| widths(estimates));
    let forest_wins = strictest.forest.as_ref().is_some_and(|forest| off(forest) < off(&strictest.law));
    let forest = wants_forest.then(|| StoredForest::of(groups));
    let median_slowdown = median_slowdown(groups);
    Ok(CompanyFit { law, median_slowdown, law_widths, forest, forest_widths, forest_wins, left_out })
}

fn median_slowdown<'a>(groups: impl IntoIterator<Item = &'a MeasuredGroup>) -> f64 {
    let slowdowns = groups.into_iter().flat_map(|group| &group.members).map(|member| member.slowdown).collect();
    quantile(slowdowns, 0.5).unwrap_or(1.0)
}

/// Of groups on instances of MIG, each left out with its repeats.
pub fn fit_slices(groups: &[MeasuredGroup]) -> Result<(SliceLaw, Vec<GroupEstimate>, Widths), Unfit> {
    let folds = Unseen::Group.folds(groups);
    let mut logs: Logs = groups.iter().map(|_| None).collect();
    for fold in &folds {
        let law = SliceLaw::fit(fold.learnt.iter().map(|group| &groups[*group]))?;
        for (group, _) in &fold.judged {
            logs[*group] = groups[*group].members.iter().map(|m| Some(law.log_slowdown(m.sm_share?))).collect();
        }
    }
    let estimates = estimates(groups, &logs);
    let widths = widths(&estimates);
    Ok((SliceLaw::fit(groups)?, estimates, widths))
}

fn check(groups: &[MeasuredGroup]) -> Result<(), Unfit> {
    if groups.len() < FEWEST_TO_FIT {
        return Err(Unfit::TooFewRows { rows: groups.len(), columns: FEWEST_TO_FIT });
    }
    let is_right = |group: &MeasuredGroup| {
        let members = || group.members.iter();
        members().all(|m| m.slowdown > 0.0 && m.slowdown.is_finite() && m.alone.is_right()) && group.members.len() > 1
    };
    match groups.iter().position(|group| !is_right(group)) {
        Some(row) => Err(Unfit::NotFinite { row: row + 1 }),
        None => Ok(()),
    }
}

impl LeftOutBy {
    fn of(groups: &[MeasuredGroup], unseen: Unseen, folds: &[Fold], wants_forest: bool) -> Result<LeftOutBy, Unfit> {
        let mut law: Vec<Vec<Option<f64>>> = groups.iter().map(|group| vec![None; group.members.len()]).collect();
        let (mut forest, mut constant) = (law.clone(), law.clone());
        for (fold, said) in folds.iter().zip(on_all_cores(folds, &|fold| fold.said(groups, wants_forest))) {
            let said = said?;
            for (place, (group, member)) in fold.judged.iter().enumerate() {
                law[*group][*member] = Some(said.law[place]);
                constant[*group][*member] = Some(said.constant);
                forest[*group][*member] = said.forest.as_ref().map(|forest| forest[place]);
            }
        }
        let whole = |logs: Vec<Vec<Option<f64>>>| -> Vec<GroupEstimate> {
            let logs: Logs = logs.into_iter().map(|group| group.into_iter().collect()).collect();
            estimates(groups, &logs)
        };
        Ok(LeftOutBy { unseen, law: whole(law), forest: wants_forest.then(|| whole(forest)), constant: whole(constant) })
    }

    pub fn scores(&self) -> Vec<(&'static str, Option<CompanyScore>)> {
        let mut all = vec![("law", score_company(&self.law))];
        if let Some(forest) = &self.forest {
            all.push(("forest", score_company(forest)));
        }
        all.push(("constant", score_company(&self.constant)));
        all
    }
}

impl Fold {
    fn said(&self, groups: &[MeasuredGroup], wants_forest: bool) -> Result<Said, Unfit> {
        let learnt: Vec<&MeasuredGroup> = self.learnt.iter().map(|group| &groups[*group]).collect();
        let law = Law::fit(learnt.iter().copied())?;
        let forest = wants_forest.then(|| Forest::grow(law, &learnt, StoredForest::TREES, StoredForest::SEED));
        let (mut by_law, mut by_forest) = (Vec::new(), Vec::new());
        for (group, member) in &self.judged {
            let members: Vec<Alone> = groups[*group].members.iter().map(|m| m.alone).collect();
            let said = law.log_slowdown(&members, *member);
            by_law.push(said);
            by_forest.push(forest.as_ref().and_then(|forest| forest.log_slowdown(&members, *member)).unwrap_or(said));
        }
        let constant = median_slowdown(learnt.iter().copied()).ln();
        Ok(Said { law: by_law, forest: forest.map(|_| by_forest), constant })
    }
}

/// Each of them, on as many threads as there are cores; in their order, whichever ends first.
fn on_all_cores<T: Sync, R: Send>(all: &[T], of: &(impl Fn(&T) -> R + Sync)) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(all.len().max(1));
    let mut found: Vec<(usize, R)> = std::thread::scope(|scope| {
        let part = |first: usize| move || (first..all.len()).step_by(threads).map(|place| (place, of(&all[place]))).collect();
        let running: Vec<std::thread::ScopedJoinHandle<'_, Vec<(usize, R)>>> =
            (0..threads).map(|first| scope.spawn(part(first))).collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    found.sort_by_key(|(place, _)| *place);
    found.into_iter().map(|(_, found)| found).collect()
}

/// The groups of which every member is estimated, each between bounds that were made without its set of families.
fn estimates(groups: &[MeasuredGroup], logs: &Logs) -> Vec<GroupEstimate> {
    let mut found = Vec::new();
    for (group, logs) in groups.iter().zip(logs) {
        if let Some(logs) = logs {
            found.push(GroupEstimate::of(group, logs.iter().map(|log| log.exp()).collect(), None));
        }
    }
    let mut of_set: BTreeMap<String, Widths> = BTreeMap::new();
    for estimate in &found {
        if !of_set.contains_key(&estimate.families) {
            let others = found.iter().filter(|other| other.families != estimate.families);
            of_set.insert(estimate.families.clone(), Widths::of(others.map(GroupEstimate::parts)));
        }
    }
    for estimate in &mut found {
        estimate.widths = of_set.get(&estimate.families).copied();
    }
    found
}

fn widths(estimates: &[GroupEstimate]) -> Widths {
    Widths::of(estimates.iter().map(GroupEstimate::parts))
}

/// How far off, as logarithms: the mean over members, and over gains.
fn off(estimates: &[GroupEstimate]) -> f64 {
    let mean = |logs: Vec<f64>| logs.iter().map(|log| log.abs()).sum::<f64>() / logs.len().max(1) as f64;
    let members = estimates.iter().flat_map(|e| e.measured.iter().zip(&e.estimated)).map(|(m, e)| (m / e).ln()).collect();
    mean(members) + mean(estimates.iter().map(|e| (e.gain().0 / e.gain().1).ln()).collect())
}

#[cfg(test)]
mod tests;
