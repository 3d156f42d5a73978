//! Coefficients from measured groups. In: groups of one sharing mode. Out: its law, with what fits miss that have not seen the families of
//! a group.

use std::collections::{BTreeMap, BTreeSet};

use super::evaluate::{CompanyScore, GroupEstimate, score_company};
use super::left_out::{FEWEST_TO_FIT, Fold, Unseen};
use super::modes::{CompanyLeftOut, ModeFit};
use super::prediction::Widths;
use super::{Law, MeasuredGroup, SliceLaw};
use crate::fit::Unfit;
use crate::quantile::quantile;

/// What predicts the slowdown of a member of a group by a few coefficients.
pub trait GroupLaw: Copy {
    /// For people, among other estimators.
    const NAME: &'static str;

    fn fit<'a>(groups: impl IntoIterator<Item = &'a MeasuredGroup>) -> Result<Self, Unfit>;
    /// Of a member; absent where it lacks what the law takes.
    fn log_slowdown_in(&self, group: &MeasuredGroup, member: usize) -> Option<f64>;
}

/// A mode as a file has it, and each group by fits that have not seen it.
#[derive(Debug, Clone, PartialEq)]
pub struct CompanyFit<L = Law> {
    pub mode: ModeFit<L>,
    /// By what was left out, the strictest first; the first is what widths are made of.
    pub left_out: Vec<LeftOutBy>,
}

/// Groups predicted by fits that have not seen them; in the order of the groups, without those that no fit could be made for.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftOutBy {
    pub unseen: Unseen,
    pub law: Vec<GroupEstimate>,
    /// All alike: the median slowdown of the others.
    pub constant: Vec<GroupEstimate>,
}

/// Of groups on the whole device.
pub fn fit_company(groups: &[MeasuredGroup]) -> Result<CompanyFit, Unfit> {
    check(groups)?;
    // Where families are few, too little is left to judge by.
    fit_mode(groups, &Unseen::ALL, groups.len().div_ceil(2))
}

/// Of groups on instances of MIG, each left out with its repeats.
pub fn fit_slices(groups: &[MeasuredGroup]) -> Result<CompanyFit<SliceLaw>, Unfit> {
    fit_mode(groups, &[Unseen::Group], 1)
}

/// `fewest`: so many groups have to be estimated by fits that have not seen them.
fn fit_mode<L: GroupLaw>(groups: &[MeasuredGroup], unseen: &[Unseen], fewest: usize) -> Result<CompanyFit<L>, Unfit> {
    let mut left_out: Vec<LeftOutBy> = Vec::new();
    for unseen in unseen {
        let found = LeftOutBy::of::<L>(groups, *unseen)?;
        if found.law.len() >= fewest {
            left_out.push(found);
        }
        if *unseen == Unseen::OwnFamily && !left_out.is_empty() {
            break;
        }
    }
    let law = L::fit(groups)?;
    let strictest = left_out.first().and_then(|by| Some((by, score_company(&by.law)?)));
    let Some((strictest, score)) = strictest else {
        return Err(Unfit::TooFewRows { rows: groups.len(), columns: FEWEST_TO_FIT + 1 });
    };
    let families: BTreeSet<&str> = groups.iter().flat_map(|group| &group.members).map(|m| m.family.as_str()).collect();
    let mode = ModeFit {
        most_members: groups.iter().map(|group| group.members.len()).max().unwrap_or_default(),
        families: families.len(),
        median_slowdown: median_slowdown(groups),
        law,
        widths: Widths::of(strictest.law.iter().map(GroupEstimate::parts)),
        left_out: CompanyLeftOut::of(strictest.unseen, &score),
    };
    Ok(CompanyFit { mode, left_out })
}

fn median_slowdown<'a>(groups: impl IntoIterator<Item = &'a MeasuredGroup>) -> f64 {
    let slowdowns = groups.into_iter().flat_map(|group| &group.members).map(|member| member.slowdown).collect();
    quantile(slowdowns, 0.5).unwrap_or(1.0)
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
    fn of<L: GroupLaw>(groups: &[MeasuredGroup], unseen: Unseen) -> Result<LeftOutBy, Unfit> {
        let mut law: Vec<Vec<Option<f64>>> = groups.iter().map(|group| vec![None; group.members.len()]).collect();
        let mut constant = law.clone();
        for Fold { learnt, judged } in unseen.folds(groups) {
            let learnt = || learnt.iter().map(|group| &groups[*group]);
            let (fitted, median) = (L::fit(learnt())?, median_slowdown(learnt()).ln());
            for (group, member) in judged {
                law[group][member] = fitted.log_slowdown_in(&groups[group], member);
                constant[group][member] = Some(median);
            }
        }
        Ok(LeftOutBy { unseen, law: estimates(groups, law), constant: estimates(groups, constant) })
    }

    /// By what each estimator is called.
    pub fn scores(&self, law: &str) -> impl Iterator<Item = (String, CompanyScore)> {
        let named = [(law, &self.law), ("constant", &self.constant)];
        let scored = |(name, estimates): (&str, &Vec<_>)| Some((format!("{name}, {}", self.unseen), score_company(estimates)?));
        named.map(scored).into_iter().flatten()
    }
}

/// The groups of which every member is estimated, each between bounds that were made without its set of families.
fn estimates(groups: &[MeasuredGroup], logs: Vec<Vec<Option<f64>>>) -> Vec<GroupEstimate> {
    let estimate = |(group, logs): (&MeasuredGroup, Vec<Option<f64>>)| {
        let slowdowns = logs.into_iter().map(|log| log.map(f64::exp)).collect::<Option<Vec<f64>>>()?;
        Some(GroupEstimate::of(group, slowdowns, None))
    };
    let mut found: Vec<GroupEstimate> = groups.iter().zip(logs).filter_map(estimate).collect();
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

#[cfg(test)]
mod tests;
