//! What kept a campaign from more certain numbers, the most important first. In: an analysis. Out: each cause with its way out.
//!
//! To add a cause: a variant of [`Limitation`], its sentence and its way out.

use collo_quantity::number;
use collo_quantity::stats::{self, RatioVerdict};

use super::Analysis;
use super::build::ONE_REPETITION;
use crate::cell::Cell;
use crate::cell::verdict::CellVerdict;
use crate::reading::check::OTHERS_RATIO;

/// A cause of wide intervals, or of too few valid runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Limitation {
    /// What makes the numbers of all open groups indicative, however certain they are.
    Lowered { why: String },
    /// Other processes used this share of the cores on average.
    Busy { ratio: f64 },
    /// The pace of this baseline changed most inside a block, by this ratio.
    Drift { cell: String, ratio: f64 },
    /// A run measured its members for this long, in the median.
    ShortRuns { measured_s: f64 },
    /// No group has more repetitions.
    FewRepetitions { most: usize },
}

/// Share of the cores that others may use without being mentioned.
pub const BUSY_RATIO: f64 = 0.10;
/// Shorter measurements on real machines are mostly the noise of single moments.
const SHORT_S: f64 = 5.0;
/// With fewer repetitions an interval is mostly the factor for small samples.
const FEW: usize = 3;

impl Limitation {
    /// Those that keep these groups of a campaign open.
    fn all(analysis: &Analysis, open: &[&Cell]) -> Vec<Limitation> {
        if let Some(why) = lowered(analysis, open) {
            // Nothing else would decide them.
            return vec![Limitation::Lowered { why }];
        }
        let mut found = Vec::new();
        found.extend(analysis.others_ratio.filter(|r| *r > BUSY_RATIO).map(|ratio| Limitation::Busy { ratio }));
        let worst = analysis.worst_drift().filter(|d| d.is_large);
        found.extend(worst.map(|d| Limitation::Drift { cell: d.cell.clone(), ratio: d.ratio }));
        if !analysis.campaign.device.simulated {
            let short = measured_s(analysis).filter(|s| *s < SHORT_S);
            found.extend(short.map(|measured_s| Limitation::ShortRuns { measured_s }));
        }
        let most = analysis.groups().map(|c| c.counted.len()).max().filter(|most| *most < FEW);
        found.extend(most.map(|most| Limitation::FewRepetitions { most }));
        found
    }

    /// `other processes used 15 % of the cores`.
    pub fn finding(&self) -> String {
        match self {
            Limitation::Lowered { why } => format!("their numbers are indicative only ({why})"),
            Limitation::Busy { ratio } => format!("other processes used {} of the cores", number::percent(*ratio)),
            Limitation::Drift { cell, ratio } => {
                format!(
                    "the machine's pace changed while it was measured (`{cell}` by {:+.0} % within a block)",
                    (ratio - 1.0) * 100.0
                )
            }
            Limitation::ShortRuns { measured_s } => {
                format!("each run measured only {} of training", number::duration(*measured_s))
            }
            Limitation::FewRepetitions { most: 0 } => "no group has a run that counts".into(),
            Limitation::FewRepetitions { most } => format!("groups have {}", number::count(*most, "repetition")),
        }
    }

    /// What to do about it; `more` repetitions would decide the groups that are undecided.
    pub fn remedy(&self, experiment: &str, more: Option<usize>) -> String {
        let repeat = |more: usize| format!("`collo run {experiment} --more {more}`");
        match self {
            Limitation::Lowered { .. } => format!("remove that cause, then `collo run {experiment} --new`"),
            Limitation::Busy { .. } => format!("stop what else runs, then `collo run {experiment} --new`"),
            Limitation::Drift { .. } => match more {
                Some(more) => format!("{}, which narrows the intervals all the same", repeat(more)),
                None => "a steadier machine; fewer than a hundred repetitions would not do".into(),
            },
            Limitation::ShortRuns { .. } => "set `measure_for = \"10s\"` in the experiment, or more `epochs`".into(),
            Limitation::FewRepetitions { most: 0 } => format!("`collo show {experiment}` has the reasons"),
            Limitation::FewRepetitions { .. } => format!("more repetitions, {}", repeat(more.unwrap_or(FEW - 1))),
        }
    }
}

/// Why all of these groups are indicative: the reason of the whole campaign, or the one that they have in common. `None` if a load or
/// a lack of repetitions does it, which are limitations of their own.
fn lowered(analysis: &Analysis, open: &[&Cell]) -> Option<String> {
    if !analysis.campaign.indicative.is_empty() {
        return Some(analysis.campaign.indicative.join("; "));
    }
    let why = open.first()?.validity.reasons.first()?;
    let common = open.iter().all(|c| c.verdict() == CellVerdict::Indicative && c.validity.reasons.first() == Some(why));
    let busy = analysis.others_ratio.is_some_and(|ratio| ratio > OTHERS_RATIO);
    (common && !busy && why != ONE_REPETITION).then(|| why.clone())
}

/// The median over all counted runs of the time in which members were measured; `None` where none trains.
fn measured_s(analysis: &Analysis) -> Option<f64> {
    let runs = analysis.cells.iter().filter(|c| !c.serves()).flat_map(Cell::counted);
    let mut seconds: Vec<f64> = runs.filter_map(|r| r.measured).map(|w| (w.end_ns - w.start_ns) as f64 * 1e-9).collect();
    stats::median(&mut seconds)
}

/// One sentence on what is open and why, and what to do; `None` where every group was compared with running in turn.
pub fn sentence(analysis: &Analysis) -> Option<String> {
    // What keeps groups undecided is read in their runs.
    if analysis.is_reported() {
        return None;
    }
    let groups: Vec<&Cell> =
        analysis.groups().filter(|c| c.record.degree > 1 && !c.serves() && c.outcome() == "completed").collect();
    let decided = |c: &&Cell| {
        c.is_valid() && c.gain_verdict.as_ref().is_some_and(|v| !matches!(v.verdict, RatioVerdict::CannotTell { .. }))
    };
    let open: Vec<&Cell> = groups.iter().copied().filter(|c| !decided(c)).collect();
    let limitations = Limitation::all(analysis, &open);
    if open.is_empty() || limitations.is_empty() {
        return None;
    }
    let found: Vec<String> = limitations.iter().map(Limitation::finding).collect();
    let more = stats::repetitions_to_decide(open.iter().filter_map(|c| c.gain_verdict.as_ref()));
    let remedies: Vec<String> = limitations.iter().map(|l| l.remedy(&analysis.campaign.experiment, more)).collect();
    let open = open.len();
    let groups =
        if open == groups.len() { "No group is".to_string() } else { format!("{open} of {} groups are not", groups.len()) };
    let why = format!("{groups} decided, because {}.", joined(&found));
    // No campaign goes on from a merged one.
    Some(if analysis.campaign.is_merged() { why } else { format!("{why} To decide: {}.", remedies.join("; or ")) })
}

fn joined(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}
