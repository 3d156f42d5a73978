//! How well estimates of groups agree with measurements, and rules of thumb beside them. In: groups with estimates. Out: scores.
//!
//! To add a rule of thumb: a variant of [`CompanyPeer`].

use std::fmt;

use super::left_out::family_set;
use super::prediction::{GroupQuantities, Widths};
use super::{Alone, MeasuredGroup};
use crate::conformal::Interval;
use crate::quantile::quantile;

/// A measured group beside an estimate of it.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupEstimate {
    pub label: String,
    /// The families of its members, each once.
    pub families: String,
    /// Slowdowns of its members.
    pub measured: Vec<f64>,
    pub estimated: Vec<f64>,
    /// None: an estimator without intervals.
    pub widths: Option<Widths>,
}

/// Errors are shares of what was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct CompanyScore {
    pub groups: usize,
    pub members: usize,
    pub member_median_error: f64,
    pub gain_median_error: f64,
    pub gain_p90_error: f64,
    pub gain_worst_error: f64,
    pub worst_group: String,
    /// The median of estimated ÷ measured gain, less 1.
    pub gain_bias: f64,
    /// How many measured slowdowns, gains, ANTTs and fairnesses were between their bounds, and of how many. Absent without intervals.
    pub covered: Option<[(usize, usize); 4]>,
}

/// Rules of the literature, which need no fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompanyPeer {
    /// Time slicing: a member has its part of the time, 1 ÷ Σ utilisation, once there is not enough for all.
    TimeSlicing,
    /// The same of SMs: 1 ÷ Σ SMACT.
    SharedCompute,
}

impl CompanyPeer {
    pub const ALL: [CompanyPeer; 2] = [CompanyPeer::TimeSlicing, CompanyPeer::SharedCompute];

    /// The same for each member.
    pub fn slowdown(self, members: &[Alone]) -> f64 {
        let total: f64 = members
            .iter()
            .map(|member| match self {
                CompanyPeer::TimeSlicing => member.busy,
                CompanyPeer::SharedCompute => member.compute,
            })
            .sum();
        total.max(1.0)
    }

    pub fn estimates(self, groups: &[MeasuredGroup]) -> Vec<GroupEstimate> {
        let estimate = |group: &MeasuredGroup| {
            GroupEstimate::of(group, vec![self.slowdown(&group.alone()); group.members.len()], None)
        };
        groups.iter().map(estimate).collect()
    }
}

impl GroupEstimate {
    /// With the slowdown of each member, in their order.
    pub fn of(group: &MeasuredGroup, estimated: Vec<f64>, widths: Option<Widths>) -> GroupEstimate {
        GroupEstimate {
            label: group.label.clone(),
            families: family_set(group),
            measured: group.members.iter().map(|member| member.slowdown).collect(),
            estimated,
            widths,
        }
    }

    /// Measured and estimated.
    pub fn gain(&self) -> (f64, f64) {
        (GroupQuantities::of(&self.measured).gain, GroupQuantities::of(&self.estimated).gain)
    }

    pub(super) fn parts(&self) -> (&str, &[f64], &[f64]) {
        (&self.families, &self.measured, &self.estimated)
    }

    /// Of its slowdowns, gain, ANTT and fairness: how many were between their bounds, of how many.
    fn covered(&self) -> Option<[(usize, usize); 4]> {
        let [slowdown, gain, antt, fairness] = self.widths?.each();
        let (found, said) = (GroupQuantities::of(&self.measured), GroupQuantities::of(&self.estimated));
        let one = |measured: f64, estimated: f64, log: f64| {
            // What is equal but for rounding is inside an interval without width.
            usize::from(Interval::around(estimated, log + 1e-12).contains(measured))
        };
        let members = self.measured.iter().zip(&self.estimated).map(|(m, e)| one(*m, *e, slowdown.two_sided_log)).sum();
        Some([
            (members, self.measured.len()),
            (one(found.gain, said.gain, gain.two_sided_log), 1),
            (one(found.antt, said.antt, antt.two_sided_log), 1),
            (one(found.fairness, said.fairness, fairness.two_sided_log), 1),
        ])
    }
}

/// None: there are no groups.
pub fn score_company(all: &[GroupEstimate]) -> Option<CompanyScore> {
    let relative = |(measured, estimated): (f64, f64)| (estimated / measured - 1.0).abs();
    let members = || all.iter().flat_map(|e| e.measured.iter().copied().zip(e.estimated.iter().copied()));
    let gains = || all.iter().map(|e| relative(e.gain())).collect::<Vec<f64>>();
    let worst = all.iter().max_by(|a, b| relative(a.gain()).total_cmp(&relative(b.gain())))?;
    let mut covered = Some([(0, 0); 4]);
    for each in all.iter().map(GroupEstimate::covered) {
        covered = covered.zip(each).map(|(sum, each)| std::array::from_fn(|i| (sum[i].0 + each[i].0, sum[i].1 + each[i].1)));
    }
    Some(CompanyScore {
        groups: all.len(),
        members: members().count(),
        member_median_error: quantile(members().map(relative).collect(), 0.5)?,
        gain_median_error: quantile(gains(), 0.5)?,
        gain_p90_error: quantile(gains(), 0.9)?,
        gain_worst_error: relative(worst.gain()),
        worst_group: worst.label.clone(),
        gain_bias: quantile(all.iter().map(|e| e.gain().1 / e.gain().0 - 1.0).collect(), 0.5)?,
        covered,
    })
}

impl fmt::Display for CompanyPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CompanyPeer::TimeSlicing => "1 ÷ Σ utilisation",
            CompanyPeer::SharedCompute => "1 ÷ Σ SMACT",
        })
    }
}
