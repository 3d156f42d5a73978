//! What two campaigns differ by although nothing changed, and what all their cells have in common. In: ratios of one quantity or of
//! times. Out: each ratio beside the common move, with the variation between campaigns in its interval.
//!
//! The repetitions of a campaign do not show what another day brings. A history of nights shows that variation; without one it is learnt
//! from the ratios themselves: what they scatter around their centre by, beyond what the repetitions explain. Most cells of a pair are
//! unchanged, and the few others are pulled in. A real change of many cells by different amounts is taken for such variation, and
//! then needs a history.

use collo_quantity::Better;
use collo_quantity::stats::moves::{CellMove, MovedGroup, centre};
use collo_quantity::stats::{Quantity, robust, t_p, t_quantile};
use serde::{Serialize, Serializer};
use serde_json::json;

use crate::history::CampaignVariation;
use crate::ratio::{Quantiles, Ratio};

/// What machines are assumed to move by between campaigns without a history: the standard deviation of one campaign, as a ratio.
const ASSUMED_COMMON_SD: f64 = 0.02;
/// Level of a common move.
const LEVEL: f64 = 0.05;

/// One ratio with what it is of.
pub struct Compared<'a> {
    pub cell: &'a str,
    pub quantity: &'a str,
    pub ratio: &'a Ratio,
    pub is_baseline: bool,
}

/// Where the variation between campaigns comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Source {
    /// From so many nights.
    Nights(usize),
    /// From the scatter of the ratios.
    Scatter,
    /// Too few cells and no history: it is in no interval.
    Unknown,
}

/// What campaigns differ by.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Between {
    #[serde(flatten)]
    pub source: Source,
    /// Standard deviation of one cell's ratio beside the others, without that of the repetitions; the median over the cells.
    #[serde(rename = "sd_ratio", serialize_with = "as_ratio")]
    pub sd: f64,
    pub common: Option<CommonMove>,
    pub mixture: Option<MixedMove>,
    /// The same in words.
    pub text: Vec<String>,
}

/// A standard deviation of logarithms as that of ratios.
fn as_ratio<S: Serializer>(sd: &f64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(sd.exp_m1())
}

/// `nights`, `scatter`, or `unknown`: then it is in no interval.
impl Serialize for Source {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (source, nights) = match self {
            Source::Nights(n) => ("nights", Some(n)),
            Source::Scatter => ("scatter", None),
            Source::Unknown => ("unknown", None),
        };
        to.collect_map([("source", json!(source)), ("nights", json!(nights))])
    }
}

/// What all cells have in common: it is taken out of each.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CommonMove {
    /// Right ÷ left, with the interval that the variation between campaigns makes it.
    pub ratio: Quantity,
    pub p: f64,
    /// Cells whose own move agrees with it, and all that have one.
    pub agree: usize,
    pub cells: usize,
    /// Beyond the threshold, and more than the cells' own scatter makes of nothing.
    #[serde(skip)]
    pub is_reported: bool,
    pub verdict: CommonVerdict,
    /// No history: what machines move by is assumed.
    #[serde(rename = "assumed")]
    pub is_assumed: bool,
}

/// The verdict on the common move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CommonVerdict {
    Better,
    Worse,
    /// Within what campaigns may differ by.
    CannotTell,
}

/// A part of the cells moved otherwise than the others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MixedMove {
    pub cells: usize,
    pub of: usize,
    /// Their ratio ÷ that of the others.
    pub ratio: f64,
}

/// Judge ratios beside each other: the variation, and each ratio as it is to be judged. `is_speed` if a machine's move is in the
/// quantity; `better` is the good direction.
pub fn apply(
    all: &[Compared<'_>],
    known: Option<&CampaignVariation>,
    (threshold, is_speed, better): (f64, bool, Better),
    ends: &Quantiles,
) -> (Between, Vec<Ratio>) {
    let none = || Between { source: Source::Unknown, sd: 0.0, common: None, mixture: None, text: Vec::new() };
    let relevant = threshold.ln_1p();
    let with: Vec<usize> = (0..all.len()).filter(|&i| all[i].ratio.log_se().is_some()).collect();
    let logs: Vec<f64> = with.iter().map(|&i| all[i].ratio.value.estimate.ln()).collect();
    let ses: Vec<f64> = with.iter().filter_map(|&i| all[i].ratio.log_se()).collect();
    let moves: Vec<CellMove> =
        with.iter().zip(&logs).map(|(&i, &log)| CellMove { log, is_baseline: all[i].is_baseline }).collect();
    let found = centre(&moves, relevant);
    let of_nights: Vec<Option<f64>> = with.iter().map(|&i| known?.of_cell(all[i].cell, all[i].quantity)).collect();
    let from_nights = of_nights.iter().any(Option::is_some);
    let (source, variances, df) = match (&found, known) {
        (_, Some(known)) if from_nights => {
            let mut all: Vec<f64> = of_nights.iter().flatten().copied().collect();
            // A cell that no night knows is as the others are.
            let usual = collo_quantity::stats::median(&mut all).unwrap_or(0.0);
            let variances = of_nights.iter().map(|v| 2.0 * v.unwrap_or(usual)).collect();
            (Source::Nights(known.nights), variances, f64::INFINITY)
        }
        (Some(found), _) => {
            let (variance, df) = scatter(&logs, &ses, found.moved.as_ref());
            (Source::Scatter, vec![variance; logs.len()], df)
        }
        (None, _) => return (none(), all.iter().map(|c| c.ratio.clone()).collect()),
    };
    let mut sds: Vec<f64> = variances.iter().map(|v: &f64| v.sqrt()).collect();
    let sd = collo_quantity::stats::median(&mut sds).unwrap_or(0.0);
    let taken = found.as_ref().filter(|_| is_speed).map_or(0.0, |c| c.log);
    let mut judged: Vec<Ratio> = all.iter().map(|c| c.ratio.clone()).collect();
    for (&i, variance) in with.iter().zip(&variances) {
        judged[i] = all[i].ratio.beside(taken, (*variance, df), ends);
    }
    let mut between = Between { source, sd, ..none() };
    if let Some(found) = found.filter(|_| is_speed) {
        let group = found.moved.as_ref();
        between.mixture = group.map(|g| MixedMove { cells: g.cells(), of: logs.len(), ratio: (g.log - found.log).exp() });
        let is_centre = |i: &usize| group.is_none_or(|g| !g.members[*i]);
        let within = |i: usize| (logs[i] - found.log).abs() <= 3.0 * ses[i].hypot(variances[i].sqrt());
        let agree = (0..logs.len()).filter(is_centre).filter(|&i| within(i)).count();
        let common_variance = known.and_then(|k| k.common);
        between.common = Some(common((found.log, found.variance), common_variance, (agree, logs.len()), relevant, better));
    }
    (between, judged)
}

/// What the ratios scatter by beyond their own standard errors, and the degrees of freedom of that.
fn scatter(logs: &[f64], ses: &[f64], moved: Option<&MovedGroup>) -> (f64, f64) {
    let (mut squares, mut df) = (0.0, 0.0);
    for group in [false, true] {
        let of = logs.iter().enumerate().filter(|(i, _)| moved.map_or(!group, |m| m.members[*i] == group));
        let values: Vec<f64> = of.map(|(_, log)| *log).collect();
        if let Some((_, s)) = robust::level(&values).filter(|_| values.len() > 1) {
            squares += s;
            df += values.len() as f64 - 1.0;
        }
    }
    let explained = ses.iter().map(|se| se * se).sum::<f64>() / ses.len() as f64;
    ((squares / df - explained).max(0.0), df)
}

fn common(
    (log, within): (f64, f64),
    known: Option<(f64, f64)>,
    (agree, cells): (usize, usize),
    relevant: f64,
    better: Better,
) -> CommonMove {
    let (of_one, df) = known.unwrap_or((ASSUMED_COMMON_SD.powi(2), f64::INFINITY));
    let se = (within + 2.0 * of_one).sqrt();
    let p = if se > 0.0 { t_p(log / se, df) } else { f64::from(u8::from(log == 0.0)) };
    let half = t_quantile(0.975, df) * se;
    let verdict = match (p < LEVEL && log.abs() > relevant, better, log > 0.0) {
        (false, ..) | (_, Better::Neither, _) => CommonVerdict::CannotTell,
        (true, Better::Smaller, true) | (true, Better::Larger, false) => CommonVerdict::Worse,
        (true, ..) => CommonVerdict::Better,
    };
    let ratio =
        Quantity { estimate: log.exp(), low: Some((log - half).exp()), high: Some((log + half).exp()), n: cells, df: Some(df) };
    let is_reported = log.abs() > relevant && log.abs() > 3.0 * within.sqrt();
    CommonMove { ratio, p, agree, cells, is_reported, verdict, is_assumed: known.is_none() }
}

#[cfg(test)]
#[path = "between_tests.rs"]
mod tests;
