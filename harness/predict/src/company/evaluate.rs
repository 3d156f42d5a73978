//! How well estimates of groups agree with measurements, and rules of thumb beside them. In: groups with estimates. Out: scores.
//!
//! To add a rule of thumb: a variant of [`CompanyPeer`].

use std::fmt;

use collo_quantity::stats::quantile;
use serde::Serialize;

use super::fit::{GroupLaw, fit_company, fit_slices};
use super::left_out::family_set;
use super::modes::{CompanyPredictor, ModeFit};
use super::prediction::{GroupQuantities, Widths};
use super::{Alone, CompanyMode, Law, MeasuredGroup, SliceLaw, StandIn};
use crate::conformal::{Interval, Width};
use crate::fit::Unfit;

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
#[derive(Debug, Clone, PartialEq, Serialize)]
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
    #[serde(skip)]
    pub covered: Option<[(usize, usize); 4]>,
    /// What it is the score of.
    #[serde(skip)]
    pub estimates: Vec<GroupEstimate>,
}

/// What an estimator is called, with its score.
pub type NamedScore = (String, CompanyScore);

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

    /// Where its reading is not one.
    fn stand_in(self) -> StandIn {
        match self {
            CompanyPeer::TimeSlicing => StandIn::Busy,
            CompanyPeer::SharedCompute => StandIn::Compute,
        }
    }

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
        let estimate =
            |group: &MeasuredGroup| GroupEstimate::of(group, vec![self.slowdown(&group.alone()); group.members.len()], None);
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

    /// The bounds of its gain; None: an estimator without intervals.
    pub fn gain_interval(&self) -> Option<Interval> {
        let [_, width, ..] = self.widths?.each();
        Some(Interval::around(self.gain().1, width))
    }

    pub(super) fn parts(&self) -> (&str, &[f64], &[f64]) {
        (&self.families, &self.measured, &self.estimated)
    }

    /// Of its slowdowns, gain, ANTT and fairness: how many were between their bounds, of how many.
    fn covered(&self) -> Option<[(usize, usize); 4]> {
        let [slowdown, gain, antt, fairness] = self.widths?.each();
        let (found, said) = (GroupQuantities::of(&self.measured), GroupQuantities::of(&self.estimated));
        let one = |measured: f64, estimated: f64, width: Width| {
            // What is equal but for rounding is inside an interval without width.
            let width = Width { below_log: width.below_log + 1e-12, above_log: width.above_log + 1e-12, ..width };
            usize::from(Interval::around(estimated, width).contains(measured))
        };
        let members = self.measured.iter().zip(&self.estimated).map(|(m, e)| one(*m, *e, slowdown)).sum();
        Some([
            (members, self.measured.len()),
            (one(found.gain, said.gain, gain), 1),
            (one(found.antt, said.antt, antt), 1),
            (one(found.fairness, said.fairness, fairness), 1),
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
        estimates: all.to_vec(),
    })
}

/// Groups of a mode by fits that have not seen them, and by rules of thumb; and why there is no fit.
pub fn score_left_out(mode: CompanyMode, groups: &[MeasuredGroup]) -> (Vec<NamedScore>, Option<Unfit>) {
    let left_out = match mode {
        // Of slices the law alone.
        CompanyMode::Mig => fit_slices(groups).map(|fit| (SliceLaw::NAME, 1, fit.left_out)),
        _ => fit_company(groups).map(|fit| (Law::NAME, 2, fit.left_out)),
    };
    let (mut scores, mut unfit) = (Vec::new(), None);
    match left_out {
        Ok((law, count, left_out)) => scores.extend(left_out.iter().flat_map(|by| by.scores(law).take(count))),
        Err(why) => unfit = Some(why),
    }
    scores.extend(score_peers(mode, groups));
    (scores, unfit)
}

/// Rules of thumb, which are of members on the whole device. One whose reading no member has is the other one again, and left out.
fn score_peers(mode: CompanyMode, groups: &[MeasuredGroup]) -> impl Iterator<Item = NamedScore> {
    let was_read = |peer: &CompanyPeer| {
        let stand_in = Some(peer.stand_in());
        groups.iter().flat_map(|group| &group.members).any(|member| member.alone.stand_in != stand_in)
    };
    let peers = CompanyPeer::ALL.into_iter().filter(move |peer| mode != CompanyMode::Mig && was_read(peer));
    peers.filter_map(|peer| Some((peer.to_string(), score_company(&peer.estimates(groups))?)))
}

impl CompanyPredictor {
    /// Groups of a mode by this file as it is, and by rules of thumb; `None` if it has no coefficients for the mode.
    pub fn score(&self, mode: CompanyMode, groups: &[MeasuredGroup]) -> Option<Vec<NamedScore>> {
        let of_groups = |(by, fit): (CompanyMode, &ModeFit)| {
            let widened = if by == mode { 1.0 } else { self.widening };
            (fit.estimates(groups, widened), fit.constant(groups))
        };
        let (law, constant) = match mode {
            CompanyMode::Mig => self.law.mig.as_ref().map(|fit| (fit.estimates(groups, 1.0), Vec::new())),
            _ => self.law.serving(mode).map(of_groups),
        }?;
        let named = [(format!("collo, {}", self.name), law), ("constant".to_string(), constant)];
        let scored = named.into_iter().filter_map(|(name, estimates)| Some((name, score_company(&estimates)?)));
        Some(scored.chain(score_peers(mode, groups)).collect())
    }
}

impl fmt::Display for CompanyPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CompanyPeer::TimeSlicing => "1 ÷ Σ utilisation",
            CompanyPeer::SharedCompute => "1 ÷ Σ SMACT",
        })
    }
}
