//! The history for display: every cell in one of five classes. In: nights. Out: rows in print order. It neither words nor draws.

use super::detect::{Common, Judge, JudgedNight, Suspect};
use super::night::NightlyRun;
use super::rules::Rules;
use super::source::{self, NightlySummary};
use super::track::{Step, Track};
use super::{change, rules};

/// Number of nights shown.
pub const NIGHTS_SHOWN: usize = 60;
/// A cell that cannot detect a step of this size is unstable.
pub const WANTED_STEP: f64 = 0.05;

/// An experiment over its nights.
#[derive(Debug, Clone)]
pub struct History {
    pub experiment: String,
    pub nights: Vec<NightlyRun>,
    pub judged: Vec<JudgedNight>,
    pub judge: Judge,
    /// By track: the smallest step that the next night finds, as a share.
    pub detectable: Vec<Option<f64>>,
    pub problems: Vec<String>,
}

/// The class of a cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Class {
    /// It stepped within the nights shown; the latest one first.
    Stepped(Vec<Step>),
    /// Why steps of it cannot be detected.
    Unstable(String),
    /// It ran before: the night it stopped, and its outcome since.
    Gone {
        since: usize,
        outcome: String,
    },
    /// The number of known nights, too few to judge.
    Learning(usize),
    Quiet,
}

/// One cell's row.
#[derive(Debug, Clone)]
pub struct CellHistory {
    pub track: usize,
    pub class: Class,
    pub detectable: Option<f64>,
}

impl History {
    /// Judge every night in turn.
    pub fn of(experiment: &str, found: NightlySummary, rules: Rules) -> Self {
        let mut judge = Judge::new(rules);
        let judged: Vec<JudgedNight> = found.nights.iter().map(|night| judge.take(night)).collect();
        let detectable = judge.detectable();
        History { experiment: experiment.into(), nights: found.nights, judged, judge, detectable, problems: found.problems }
    }

    /// The cells of the last night that appear to have moved, before anything was re-measured.
    pub fn suspects(nights: &[NightlyRun], rules: Rules) -> Vec<Suspect> {
        let Some((last, before)) = nights.split_last() else { return Vec::new() };
        let mut judge = Judge::new(rules);
        before.iter().for_each(|night| drop(judge.take(night)));
        judge.suspects(last)
    }

    /// The last night and its verdicts.
    pub fn tonight(&self) -> Option<(&NightlyRun, &JudgedNight)> {
        Some((self.nights.last()?, self.judged.last()?))
    }

    /// A confirmed regression tonight, of a cell or of all of them, or a cell that no longer runs.
    pub fn has_regression(&self) -> bool {
        let slower = |j: &JudgedNight| j.common.as_ref().is_some_and(Common::is_worse);
        self.tonight().is_some_and(|(_, j)| slower(j) || !j.gone.is_empty() || self.steps_of(j).any(|(_, s)| s.is_worse()))
    }

    /// If every cell that was judged tonight stepped the same way: the smallest and the largest ratio.
    pub fn all_stepped(&self) -> Option<(f64, f64)> {
        let (_, judged) = self.tonight()?;
        let ratios: Vec<f64> = self.steps_of(judged).map(|(_, s)| s.ratio.estimate).collect();
        let (low, high) = (ratios.iter().copied().reduce(f64::min)?, ratios.iter().copied().reduce(f64::max)?);
        (ratios.len() > 1 && ratios.len() == judged.judged && (low > 1.0) == (high > 1.0)).then_some((low, high))
    }

    /// The steps that a night confirmed, with their cells.
    pub fn steps_of<'a>(&'a self, judged: &'a JudgedNight) -> impl Iterator<Item = (&'a Track, &'a Step)> {
        let tracks = judged.steps.iter().map(|&t| &self.judge.tracks[t]);
        tracks.filter_map(|t| Some((t, t.steps.iter().find(|s| s.night == judged.night)?)))
    }

    /// Complete nights on the last one's device.
    pub fn whole(&self) -> usize {
        self.judged.iter().filter(|j| j.whole).count()
    }

    /// Of the running cells: how many could detect a step of 5 %, and how many there are.
    pub fn could_show(&self) -> (usize, usize) {
        let rows = self.rows();
        let running: Vec<&CellHistory> = rows.iter().filter(|r| !matches!(r.class, Class::Gone { .. })).collect();
        let has_time = |r: &CellHistory| !matches!(r.class, Class::Learning(_)) && !self.judge.tracks[r.track].is_untimed;
        let able = |r: &&&CellHistory| has_time(r) && r.detectable.is_some_and(|d| d <= WANTED_STEP);
        (running.iter().filter(able).count(), running.len())
    }

    /// The first night shown.
    pub fn first_shown(&self) -> usize {
        self.nights.len().saturating_sub(NIGHTS_SHOWN)
    }

    /// Every cell of the last complete night: stepped, unstable, gone, learning, quiet.
    pub fn rows(&self) -> Vec<CellHistory> {
        let Some(last) = self.judged.iter().rev().find(|j| j.whole).map(|j| j.night) else { return Vec::new() };
        let seen = self.judge.tracks.iter().enumerate().filter(|(_, t)| t.seen == last);
        let mut rows: Vec<CellHistory> =
            seen.map(|(i, t)| CellHistory { track: i, class: self.class(i, t), detectable: self.detectable[i] }).collect();
        rows.sort_by_key(|r| match &r.class {
            Class::Stepped(steps) => (0, usize::MAX - steps[0].night),
            Class::Unstable(_) => (1, 0),
            Class::Gone { since, .. } => (2, usize::MAX - since),
            Class::Learning(_) => (3, 0),
            Class::Quiet => (4, 0),
        });
        rows
    }

    fn class(&self, index: usize, t: &Track) -> Class {
        if let Some((since, outcome)) = &t.gone {
            return Class::Gone { since: *since, outcome: outcome.clone() };
        }
        let mut steps: Vec<Step> = t.steps.iter().filter(|s| s.night >= self.first_shown()).cloned().collect();
        if !steps.is_empty() {
            steps.reverse();
            return Class::Stepped(steps);
        }
        if t.is_learning() {
            return Class::Learning(t.nights());
        }
        if t.is_untimed {
            return Class::Unstable("it ran, and has no time that counts: `collo show` has the reason".into());
        }
        let values: Vec<f64> = t.points[t.start..].iter().map(|p| p.x).collect();
        let recent = &values[values.len().saturating_sub(rules::NIGHTS_BACK)..];
        match (self.detectable[index], &t.sometimes) {
            (_, Some(outcome)) => Class::Unstable(format!("some of its runs end as `{outcome}`")),
            _ if change::is_bimodal(recent) => Class::Unstable("its nights jump between two levels".into()),
            (Some(d), _) if d > WANTED_STEP => Class::Unstable("its noise hides a step of 5 %".into()),
            _ => Class::Quiet,
        }
    }

    /// The changes of the environment at a step: compared with the last complete night before it.
    pub fn explains(&self, since: usize) -> Vec<String> {
        let before = self.judged[..since.min(self.judged.len())].iter().rev().find(|j| j.whole);
        let (Some(before), Some(after)) = (before, self.nights.get(since)) else { return Vec::new() };
        source::differences(&self.nights[before.night].environment, &after.environment)
    }
}
