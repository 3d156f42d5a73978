//! The benchmarks, one file each.

mod decide;
mod dispatch;
pub mod gpu_sampler;
mod manage;
mod orchestration;
mod overhead;
mod peer;
mod perturbation;
mod plan;
mod report;
mod report_benches;
mod sampler;
mod skew;
pub mod staging;
mod verdicts;

use std::time::Duration;

use anyhow::Result;

use crate::figure::Figure;
use crate::scratch_project::ScratchProject;

pub struct Bench {
    pub name: &'static str,
    pub about: &'static str,
    pub run: fn(&ScratchProject, Effort) -> Result<Vec<Figure>>,
}

/// In the order of execution: the longest ones last.
pub static BENCHES: [Bench; 14] = [
    Bench { name: "plan", about: "a plan of 10⁴ cells, advice for a scheduler, and the help", run: plan::run },
    Bench { name: "decide", about: "a decision about a task, on 4 to 1000 cards", run: decide::run },
    Bench { name: "overhead", about: "the fixed cost of a run", run: overhead::run },
    Bench { name: "skew", about: "how far apart members start", run: skew::run },
    Bench { name: "sampler", about: "the cost of sampling, and how punctual it is", run: sampler::run },
    Bench { name: "staging", about: "partitioning a simulated GPU in seven, an MPS daemon, and back", run: staging::run },
    Bench { name: "gpu-sampler", about: "the cost of sampling eight simulated GPUs", run: gpu_sampler::run },
    Bench { name: "orchestration", about: "a simulated campaign and its members", run: orchestration::run },
    Bench { name: "dispatch", about: "from a free card to the next member's process", run: dispatch::run },
    Bench { name: "manage", about: "a thousand short tasks of a trace, and what the manager uses", run: manage::run },
    Bench { name: "report", about: "reports of 10⁶ to 10⁸ samples, if that benchmark was built", run: report::run },
    Bench {
        name: "verdicts",
        about: "wrong conclusions on campaigns with known truth, if that benchmark was built",
        run: verdicts::run,
    },
    Bench { name: "peer", about: "radT and collo on the same two scripts", run: peer::run },
    Bench { name: "perturbation", about: "the cost of being measured to a training", run: perturbation::run },
];

/// How much to repeat.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effort {
    /// Once each, as a smoke test.
    pub smoke: bool,
    /// The time limit of a benchmark that adds pairs until its interval is narrow enough.
    pub most: Duration,
}

impl Effort {
    pub const FULL: Effort = Effort { smoke: false, most: Duration::from_secs(900) };
    pub const SMOKE: Effort = Effort { smoke: true, most: Duration::from_secs(20) };

    /// `full` times, or once for a smoke run.
    pub fn times(self, full: usize) -> usize {
        if self.smoke { 1 } else { full }
    }
}
