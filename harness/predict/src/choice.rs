//! Which predictor serves a device. In: all that there are, the device. Out: the one fitted nearest to it, its intervals the wider the
//! farther it was.

use std::cmp::Reverse;
use std::fmt;

use crate::conformal::Width;
use crate::file::{Mark, PredictorFile, PredictorLaw, TargetDevice};
use crate::memory_law::MemoryPredictor;

/// What is predicted for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Target {
    pub device: TargetDevice,
    /// As its driver names it: `NVIDIA A100-SXM4-40GB`. Absent for a CPU, or if unknown.
    pub gpu: Option<String>,
    /// `ampere`.
    pub architecture: Option<String>,
    /// The version that the members train with.
    pub torch: Option<String>,
    pub simulated: bool,
}

/// How near to the target a predictor was fitted, the nearest first: each is a step farther.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Because {
    /// Of CPUs any is the same: a process takes as much on each.
    SameDeviceAndTorch,
    SameDevice,
    SameArchitecture,
    Published,
    /// It was fitted on another device, but nothing else was.
    Any,
}

/// The predictor for a target.
#[derive(Debug, PartialEq)]
pub struct Chosen<'a, P = MemoryPredictor> {
    pub predictor: &'a P,
    /// How many times as wide it is, as logarithms.
    pub widened: f64,
    pub because: Because,
}

/// The nearest; at one distance the user's own before a published one, then the one of the most families, of the most rows. One that was
/// fitted on a table of others is a step farther than its device, and comes last at its distance.
pub fn choose<'a, L: PredictorLaw>(
    all: impl Iterator<Item = &'a PredictorFile<L>>,
    target: &Target,
) -> Option<Chosen<'a, PredictorFile<L>>> {
    let served = all.filter_map(|predictor| Some((Because::of(predictor, target)?, predictor)));
    let order = |(because, p): &(Because, &'a PredictorFile<L>)| {
        let by_mark = match p.mark {
            Mark::Own | Mark::Simulated => 0,
            Mark::Published => 1,
            Mark::Table => 2,
        };
        (because.steps(p.mark), by_mark, Reverse(p.law.families()), Reverse(p.law.rows()), p.name.as_str())
    };
    let (because, predictor) = served.min_by(|a, b| order(a).cmp(&order(b)))?;
    let widened = predictor.widening.powi(because.steps(predictor.mark));
    Some(Chosen { predictor, widened, because })
}

impl<P> Clone for Chosen<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Chosen<'_, P> {}

impl Chosen<'_> {
    /// The predictor's, widened.
    pub fn width(&self) -> Width {
        self.predictor.law.width.times(self.widened)
    }
}

impl Because {
    /// How far a predictor with this mark is.
    fn steps(self, mark: Mark) -> i32 {
        self as i32 + i32::from(mark == Mark::Table)
    }

    /// None: it may not serve the target at all.
    fn of<L>(predictor: &PredictorFile<L>, target: &Target) -> Option<Because> {
        predictor.serves(target.device, target.simulated).then_some(())?;
        let conditions = &predictor.conditions;
        let same = |a: &Option<String>, b: &Option<String>| {
            a.as_ref().zip(b.as_ref()).is_some_and(|(a, b)| a.trim().eq_ignore_ascii_case(b.trim()))
        };
        let is_cpu = target.device == TargetDevice::Cpu;
        Some(match is_cpu || same(&conditions.gpu, &target.gpu) {
            true if same(&conditions.torch, &target.torch) => Because::SameDeviceAndTorch,
            true => Because::SameDevice,
            false if same(&conditions.architecture, &target.architecture) => Because::SameArchitecture,
            false if predictor.mark == Mark::Published => Because::Published,
            false => Because::Any,
        })
    }
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Because::SameDeviceAndTorch => "fitted on this device and torch",
            Because::SameDevice => "fitted on this device, with another torch or one unknown",
            Because::SameArchitecture => "fitted on another device of its architecture",
            Because::Published => "published for another device",
            Because::Any => "fitted on another device",
        })
    }
}

#[cfg(test)]
mod tests;
