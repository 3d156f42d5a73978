//! What company costs in the case study.

use crate::project::{OverAllocation, Paces, Straight};

use crate::published::{HotCloud20, published};

/// The paper says: 10 to 200 % in 276 combinations, growing with the summed utilisation, and gives no formula. 276 is the number of pairs
/// of 24 models, so both laws go through the ends of what pairs of models of 20 to 90 % can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Law {
    /// The least as long as a card is not over-allocated, which the paper names as the cause.
    Knee,
    /// Growing from the first point on.
    Line,
}

impl Law {
    pub const ALL: [Law; 2] = [Law::Knee, Law::Line];

    pub fn name(self) -> &'static str {
        match self {
            Law::Knee => "knee",
            Law::Line => "line",
        }
    }

    pub fn paces(self) -> Box<dyn Paces> {
        match self {
            Law::Knee => Box::new(knee()),
            Law::Line => Box::new(line()),
        }
    }

    /// In words, with its formula and its source.
    pub fn assumption(self, says: &HotCloud20) -> String {
        let [least, greatest] = says.slowdown_percent;
        let source = format!("the ends are the paper's {least} and {greatest} %, the form is assumed");
        match self {
            Law::Knee => {
                let OverAllocation { least, exponent } = knee();
                format!(
                    "company: each job takes {least:.1} · max(1, S)^{exponent:.2} times as long, S the summed utilisation alone; {source}"
                )
            }
            Law::Line => {
                let Straight { from, to } = line();
                format!(
                    "company: each job takes {} to {} times as long, on a straight line from S = {} to {}, S the summed utilisation alone; {source}",
                    from.1, to.1, from.0, to.0
                )
            }
        }
    }
}

fn knee() -> OverAllocation {
    let Straight { from, to } = line();
    OverAllocation::through(from.1, to.1, to.0)
}

/// Through the least and the greatest of pairs.
fn line() -> Straight {
    let says = published();
    let [least_sum, greatest_sum] = says.utilisation_percent.map(|percent| 2.0 * percent / 100.0);
    let [least, greatest] = says.slowdown_percent.map(|percent| 1.0 + percent / 100.0);
    Straight { from: (least_sum, least), to: (greatest_sum, greatest) }
}
