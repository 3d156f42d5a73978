//! Collocate or not, and up to how many members: the knee of the throughput gain.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_analysis::words::capital;
use collo_quantity::stats::{Quantity, RatioVerdict};
use collo_quantity::{Key, number};
use collo_store::without_mode;

use crate::published::Published;
use crate::rule::evidence::Evidence;
use crate::rule::{Claim, Guideline, NO_GROUP, STUDY, decide, nothing};
use crate::verdict::{self, Groups, Ranking};

const PUBLISHED: Published = Published::new(
    "Collocate when the aggregate compute and memory needs fit the device; the gain diminishes when one run alone \
                already fills it. Two small or medium models take about the time of one.",
    "two small ones in about the time of one",
    STUDY,
);

/// Where more members stop adding throughput, for one workload and mode.
pub struct Knee<'a> {
    /// The solo cell's label.
    pub workload: &'a str,
    pub sharing: &'a str,
    /// Groups by degree, each with a gain.
    pub groups: Vec<&'a Cell>,
    /// Index of the group beyond which nothing relevant is added.
    pub at: usize,
    /// The factor from which a difference is worth acting on.
    relevant: f64,
}

impl Knee<'_> {
    /// The group at the knee.
    pub fn cell(&self) -> &Cell {
        self.groups[self.at]
    }

    /// `2 together have 1.96× the throughput of running in turn; a third adds less than 5 %`.
    pub fn sentence(&self) -> Option<String> {
        let cell = self.cell();
        let gain = number::estimate(cell.get(Key::ThroughputGain)?);
        let degree = cell.record.degree;
        let first = match cell.gain_verdict.as_ref()?.verdict {
            RatioVerdict::Better => format!("{degree} together have {gain}× the throughput of running in turn"),
            RatioVerdict::Worse => format!("{degree} together have only {gain}× the throughput of running in turn"),
            RatioVerdict::Same => {
                format!("{degree} together cannot be distinguished from running in turn ({gain}× the throughput)")
            }
            RatioVerdict::CannotTell { .. } => {
                format!("whether {degree} together do more work per second than in turn is open")
            }
        };
        Some(self.beyond().map_or_else(|| first.clone(), |beyond| format!("{first}; {beyond}")))
    }

    /// The verdict on the throughput that the next larger group adds: `a third adds less than 5 %`; `None` if there is no such group.
    pub fn beyond(&self) -> Option<String> {
        let cell = self.cell();
        let degree = cell.record.degree;
        let next = self.groups.get(self.at + 1)?;
        let step = step(cell, next)?;
        let more = next.record.degree - degree;
        let who = match more {
            1 if degree < 7 => format!("a {}", ["", "second", "third", "fourth", "fifth", "sixth", "seventh"][degree as usize]),
            1 => "one more".into(),
            more => format!("{more} more"),
        };
        let s = |one: &str, many: &str| if more > 1 { many.to_string() } else { one.to_string() };
        let threshold = number::percent_as_written(self.relevant - 1.0);
        Some(match self.added(&step) {
            Added::Less => format!("{who} {} that by {}", s("lowers", "lower"), number::percent(1.0 - step.estimate)),
            Added::Nothing => format!("{who} {} less than {threshold}", s("adds", "add")),
            Added::Open => format!("whether {who} {} more is open", s("adds", "add")),
        })
    }

    fn added(&self, step: &Quantity) -> Added {
        match step.low.zip(step.high) {
            Some((_, high)) if high < 1.0 / self.relevant => Added::Less,
            Some((_, high)) if high <= self.relevant => Added::Nothing,
            _ => Added::Open,
        }
    }

    /// True if larger groups were measured, and each of them was shown to add nothing relevant.
    fn is_end(&self) -> bool {
        let larger = &self.groups[self.at + 1..];
        let adds_nothing = |next: &&Cell| step(self.cell(), next).is_some_and(|step| self.added(&step) != Added::Open);
        !larger.is_empty() && larger.iter().all(adds_nothing)
    }

    /// True if every smaller degree was measured, so that the gain up to here is known.
    fn is_gapless(&self) -> bool {
        let degrees = self.groups[..=self.at].iter().map(|c| c.record.degree);
        degrees.eq(2..=self.cell().record.degree)
    }

    /// True if its group gains over running in turn, and may be recommended.
    pub fn gains(&self) -> bool {
        let cell = self.cell();
        cell.is_valid() && cell.gain_verdict.as_ref().is_some_and(|v| v.verdict == RatioVerdict::Better)
    }
}

/// The throughput that a larger group adds.
#[derive(PartialEq)]
enum Added {
    Less,
    Nothing,
    Open,
}

/// The ratio of two groups' gains. Their common baseline cancels, but not in the interval, which is wide rather than narrow.
pub fn step(from: &Cell, to: &Cell) -> Option<Quantity> {
    to.get(Key::ThroughputGain)?.over(from.get(Key::ThroughputGain)?)
}

/// Knees of every workload and mode, from cells whose gain has an interval. The guideline reads the valid ones.
pub fn knees(analysis: &Analysis) -> Vec<Knee<'_>> {
    let mut found = Vec::new();
    for workload in analysis.workloads() {
        let mut modes: Vec<&str> = Vec::new();
        for cell in analysis.of_workload(workload).filter(|c| !c.is_solo()) {
            if !modes.contains(&cell.record.sharing.as_str()) {
                modes.push(&cell.record.sharing);
            }
        }
        for sharing in modes {
            let has_gain = |c: &&Cell| c.gain_verdict.is_some() && c.record.degree > 1 && c.record.sharing == sharing;
            let mut groups: Vec<&Cell> = analysis.of_workload(workload).filter(has_gain).collect();
            groups.sort_by_key(|c| c.record.degree);
            if groups.is_empty() {
                continue;
            }
            let relevant = 1.0 + analysis.campaign.thresholds.relevant_ratio;
            let mut at = 0;
            for i in 1..groups.len() {
                let grows = |s: Quantity| s.low.is_some_and(|low| low > relevant);
                if step(groups[at], groups[i]).is_some_and(grows) {
                    at = i;
                }
            }
            found.push(Knee { workload, sharing, groups, at, relevant });
        }
    }
    found
}

/// Groups of the same members ranked by their throughput. Of one degree the times are compared, else the gains.
pub fn rank_by_gain<'a>(cells: &[&'a Cell], threshold: f64) -> Option<Ranking<'a>> {
    verdict::rank(cells, threshold, |a, b| {
        if a.record.degree == b.record.degree { crate::rule::pairs::advantage(a, b) } else { step(b, a) }
    })
}

/// The groups at the knees of a workload that gain, ranked.
pub fn rank<'a>(knees: &[Knee<'a>], workload: &str, threshold: f64) -> Option<Ranking<'a>> {
    let of_workload = knees.iter().filter(|knee| knee.workload == workload && knee.gains());
    rank_by_gain(&of_workload.map(|knee| knee.groups[knee.at]).collect::<Vec<_>>(), threshold)
}

/// The instruction for the workload of a knee: how many members, and under which modes.
fn advise(all: &[Knee], best: &Knee, threshold: f64) -> String {
    let ranking = rank(all, best.workload, threshold);
    let tied: Vec<&Cell> = ranking.as_ref().map(Ranking::leaders).unwrap_or_default();
    let names: Vec<String> = tied.iter().map(|c| mode_name(&c.record.sharing)).collect();
    let same_degree = tied.iter().all(|c| c.record.degree == best.cell().record.degree);
    let tie = ranking.as_ref().and_then(|r| r.tie(threshold));
    let modes = match (&tie, same_degree) {
        (Some(tie), true) => format!("{} ({tie})", names.join(" or ")),
        (Some(tie), false) => format!("{} ({} {tie})", mode_name(best.sharing), number::count(tied.len(), "mode")),
        (None, _) => mode_name(best.sharing),
    };
    let (workload, degree) = (without_mode(best.workload), number::word(best.cell().record.degree));
    match (best.is_end(), best.is_gapless()) {
        (true, _) => format!("Stop at {degree} members of `{workload}` under {modes}."),
        (false, true) => format!("Collocate `{workload}` under {modes}, up to {degree} members."),
        (false, false) => format!("Collocate `{workload}` under {modes}, {degree} members."),
    }
}

pub fn guideline(analysis: &Analysis) -> Option<Guideline> {
    if crate::rule::only_mixed(analysis) {
        return None;
    }
    let relevant_ratio = analysis.campaign.thresholds.relevant_ratio;
    let threshold = number::percent_as_written(relevant_ratio);
    let groups = Groups::of(analysis, crate::rule::training(analysis).filter(|c| c.record.is_uniform()), Key::ThroughputGain);
    let tests = || groups.judged.iter().filter_map(|c| c.gain_verdict.as_ref());
    let of = |wanted| crate::rule::how_many(tests(), wanted);
    let (gain, no_gain) = (of(RatioVerdict::Better), of(RatioVerdict::Same) + of(RatioVerdict::Worse));
    let undecided = groups.judged.len() - gain - no_gain;
    let knees: Vec<Knee> = knees(analysis).into_iter().filter(|k| k.groups.iter().all(|c| c.is_valid())).collect();
    // Those that certainly gain come before larger estimates that are undecided.
    let order = |k: &&Knee| (k.gains(), self::gain(k.cell()));
    let best = knees.iter().max_by(|a, b| order(a).0.cmp(&order(b).0).then(order(a).1.total_cmp(&order(b).1)));
    let holds = verdict::of_some(gain, no_gain, undecided + groups.missing());
    // A group that gains is recommended without a knee where another one of its mode cannot be used.
    let is_gaining = |c: &&Cell| c.gain_verdict.as_ref().is_some_and(|v| v.verdict == RatioVerdict::Better);
    let gaining: Vec<&Cell> = groups.judged.iter().copied().filter(is_gaining).collect();
    let alone = crate::rule::extreme(&gaining, Key::ThroughputGain, true).filter(|_| best.is_none_or(|k| !k.gains()));
    let advice = match (alone, best) {
        (Some(c), _) => format!("Collocate `{}`.", c.name()),
        (None, Some(k)) => advise(&knees, k, relevant_ratio),
        (None, None) => String::new(),
    };
    let counts = match gain + no_gain + undecided {
        0 | 1 => String::new(),
        all => {
            let all = number::count(all, "group");
            format!(" {}.", crate::rule::tally(&all, &[(gain, "gain"), (no_gain, "do not gain"), (undecided, "undecided")]))
        }
    };
    let picked = |c: &Cell| Evidence::of(c, Key::ThroughputGain).map(|e| e.picked_from(groups.judged.len()));
    let said = |c: &Cell| {
        let gain = number::with_interval(&picked(c)?.value);
        Some(format!("`{}` has {gain}× the throughput of running in turn", c.name()))
    };
    let sentence = alone.map_or_else(|| best.and_then(Knee::sentence), said);
    let sentence = sentence.map(|text| format!("{}.{counts}", capital(&text)));
    let finding = sentence.unwrap_or_else(|| nothing(&groups, "the throughput gain", NO_GROUP));
    let key = alone.or(best.map(Knee::cell)).and_then(picked);
    let two_at_once = |f: &crate::published::study::PublishedFigure| {
        ["throughput_gain", "slowdown"].contains(&f.quantity.as_str()) && f.is_uniform()
    };
    Some(
        Claim {
            id: "collocate",
            question: "Does sharing pay off?",
            advice,
            otherwise: "run these workloads in turn.".into(),
            finding,
            holds,
            agrees: verdict::of_figures(analysis, two_at_once),
            key,
            tested: format!(
                "throughput gain over running in turn above 1 by more than {threshold}, by the test and Holm-corrected over all groups; a further \
                 member counts if its whole interval is more than {threshold} above; modes by comparison with the best (Hsu)"
            ),
            evidence: groups.judged.iter().filter_map(|c| Evidence::of(c, Key::ThroughputGain)).collect(),
            published: Some(PUBLISHED),
            next: decide(analysis, &groups, tests(), "sharing == \"mps\""),
            scope: Some(groups.scope(analysis)),
        }
        .conclude(),
    )
}

fn gain(cell: &Cell) -> f64 {
    cell.get(Key::ThroughputGain).map_or(f64::NEG_INFINITY, |q| q.estimate)
}

/// A mode's name in sentences: `MPS`, `naive sharing`.
pub fn mode_name(sharing: &str) -> String {
    match sharing {
        "naive" => "naive sharing".into(),
        "mps" => "MPS".into(),
        "mig" => "MIG".into(),
        "threads" => "threads of one process".into(),
        other => format!("`{other}`"),
    }
}
