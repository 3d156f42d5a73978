//! What is said of a group. In: the logarithms of its members' slowdowns, how far off such are. Out: slowdowns, gain, ANTT and fairness
//! between bounds, and what was assumed.

use std::fmt;

use collo_quantity::number::three;
use serde::{Deserialize, Serialize};

use super::CompanyMode;
use crate::conformal::{Interval, Residual, Width};

/// Of a group, as the report defines them (`docs/guide/metrics.md`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroupQuantities {
    /// Σ of the members' progress, 1 ÷ slowdown: STP.
    pub gain: f64,
    /// The mean slowdown.
    pub antt: f64,
    /// The least progress ÷ the largest.
    pub fairness: f64,
}

/// How far off each is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Widths {
    pub slowdown: Width,
    pub gain: Width,
    pub antt: Width,
    pub fairness: Width,
}

/// A claim about a group: by which predictor, how much, between which bounds.
#[derive(Debug, Clone, PartialEq)]
pub struct CompanyPrediction {
    pub predictor: String,
    /// Whose coefficients were used: those of the mode itself, or of figures that do not say theirs.
    pub by_mode: CompanyMode,
    /// Of each member, in their order.
    pub slowdown: Vec<Interval>,
    pub gain: Interval,
    pub antt: Interval,
    pub fairness: Interval,
    /// More members than were measured together.
    pub extrapolated: Option<Extrapolated>,
    pub assumed: Vec<Assumed>,
}

/// More members share the device than in any group of the fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extrapolated {
    pub measured: usize,
    pub asked: usize,
}

/// What stands in for something that is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assumed {
    StepsFromMemory,
    StepsAlike,
    ModeUnrecorded(CompanyMode),
}

/// Why nothing is said.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum NotPredicted {
    #[error("a member alone has no company")]
    Alone,
    #[error("the predictor has no coefficients for {0}: no groups were measured so")]
    NoCoefficients(CompanyMode),
    #[error("of members on instances of MIG the slices are needed, not what each does alone")]
    OnSlices,
    #[error("a member's numbers alone are not shares of a device and seconds")]
    NotNumbers,
}

impl GroupQuantities {
    pub fn of(slowdowns: &[f64]) -> GroupQuantities {
        let least = slowdowns.iter().copied().fold(f64::INFINITY, f64::min);
        let most = slowdowns.iter().copied().fold(0.0, f64::max);
        GroupQuantities {
            gain: slowdowns.iter().map(|slowdown| 1.0 / slowdown).sum(),
            antt: slowdowns.iter().sum::<f64>() / slowdowns.len() as f64,
            fairness: least / most,
        }
    }
}

/// A gain whose upper bound is this many times its lower one is no basis for a plan.
const WIDEST_SPAN: f64 = 2.0;

impl CompanyPrediction {
    /// Why the groups of the predictor show nothing about members that share in this mode.
    pub fn why_of_another_mode(&self, mode: Option<CompanyMode>) -> Option<String> {
        if mode != Some(CompanyMode::Naive) {
            return None;
        }
        if self.by_mode != CompanyMode::Naive {
            // Seven small networks on an A100 gain 5.35 under MPS and 1.98 under time slicing (published:study).
            return Some(
                "the sharing mode of the predictor's groups is not recorded, and naive sharing may gain far less".into(),
            );
        }
        let Extrapolated { measured, asked } = self.extrapolated?;
        Some(format!("only groups of up to {measured} members were measured under naive sharing, and this one has {asked}"))
    }
}

/// Why a gain between these bounds is too uncertain to plan with.
pub fn why_uncertain(low: f64, high: f64) -> Option<String> {
    let span = high / low;
    (span >= WIDEST_SPAN).then(|| format!("its interval, {} to {}, spans a factor of {}", three(low), three(high), three(span)))
}

impl Widths {
    /// The law's on 110 published pairs (`predictors/published-a100-company.json`).
    pub const PUBLISHED: Widths = Widths {
        slowdown: published(0.56, 0.56),
        gain: published(0.16, 0.18),
        antt: published(0.35, 0.35),
        fairness: published(0.23, 0.89),
    };

    /// Of groups, each the set of families of its members, what was measured and what was estimated. Of one set alone nothing can be told,
    /// and the published widths are taken.
    pub fn of<'a>(groups: impl IntoIterator<Item = (&'a str, &'a [f64], &'a [f64])>) -> Widths {
        let mut residuals: [Vec<Residual>; 4] = Default::default();
        for (family, measured, estimated) in groups {
            let mut add = |place: usize, log_ratio: f64| {
                residuals[place].push(Residual { family: family.to_string(), log_ratio });
            };
            measured.iter().zip(estimated).for_each(|(measured, estimated)| add(0, (measured / estimated).ln()));
            let (found, said) = (GroupQuantities::of(measured), GroupQuantities::of(estimated));
            add(1, (found.gain / said.gain).ln());
            add(2, (found.antt / said.antt).ln());
            add(3, (found.fairness / said.fairness).ln());
        }
        let width = |place: usize, published: Width| Width::of_spread(&residuals[place]).unwrap_or(published);
        let published = Widths::PUBLISHED;
        Widths {
            slowdown: width(0, published.slowdown),
            gain: width(1, published.gain),
            antt: width(2, published.antt),
            fairness: width(3, published.fairness),
        }
    }

    pub fn each(&self) -> [Width; 4] {
        [self.slowdown, self.gain, self.antt, self.fairness]
    }

    pub fn times(self, factor: f64) -> Widths {
        Widths {
            slowdown: self.slowdown.times(factor),
            gain: self.gain.times(factor),
            antt: self.antt.times(factor),
            fairness: self.fairness.times(factor),
        }
    }
}

const fn published(upper_log: f64, either_side: f64) -> Width {
    Width {
        upper_log,
        below_log: either_side,
        above_log: either_side,
        from: crate::conformal::WidthFrom::Published,
        families: 24,
        rows: 110,
    }
}

impl fmt::Display for Extrapolated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Extrapolated { measured, asked } = self;
        write!(f, "extrapolated: measured with up to {measured} members, here are {asked}")
    }
}

impl fmt::Display for Assumed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Assumed::StepsFromMemory => f.write_str("how long steps are is taken from the memory of the processes"),
            Assumed::StepsAlike => f.write_str("steps are taken to be equally long"),
            Assumed::ModeUnrecorded(mode) => {
                write!(f, "fitted on figures that do not say their sharing mode, here used for {mode}: intervals are wider")
            }
        }
    }
}

#[cfg(test)]
mod tests;
