//! Claims about policies, of the study and of this project: each judged by the runs of traces. In: matrices of policies. Out:
//! guidelines. The unit is an order; with one order every claim is open, and no policy is named without its interval.

mod best;
mod energy;
mod memory;
mod packing;
mod total;

pub use best::best;
pub use energy::energy;
pub use memory::{cap, conditions, estimates};
pub use packing::packing;
pub use total::{mps_total, naive_waits};

use collo_analysis::campaign::Analysis;
use collo_analysis::trace::{Arm, TraceMatrix};
use collo_quantity::stats::orders::Difference;
use collo_quantity::stats::{self, Quantity, RatioVerdict};
use collo_quantity::{Key, number};

use crate::published::manager::manager;
use crate::rule::Guideline;
use crate::rule::evidence::Evidence;
use crate::verdict::{self, Holds, Next};

/// The words of a claim.
struct Wording {
    id: &'static str,
    question: &'static str,
    advice: &'static str,
    otherwise: &'static str,
    tested: String,
}

/// A claim with its answer.
fn claim(analysis: &Analysis, words: Wording, holds: Holds, finding: String, evidence: Vec<Evidence>) -> Option<Guideline> {
    let claim = crate::rule::Claim {
        id: words.id,
        question: words.question,
        advice: words.advice.into(),
        otherwise: words.otherwise.into(),
        finding,
        key: evidence.first().cloned(),
        tested: words.tested,
        holds,
        agrees: verdict::of_statement(analysis, holds),
        evidence,
        published: manager().claim(words.id),
        scope: None,
        next: Next::default(),
    };
    Some(claim.conclude())
}

/// The matrices of a campaign with traces; `None` if it has none, so that nothing is asked.
fn matrices(analysis: &Analysis) -> Option<&[TraceMatrix]> {
    (!analysis.traces.is_empty()).then_some(analysis.traces.matrices.as_slice())
}

/// Why a claim is open for want of runs: the sentence that says what would decide it.
fn wanting(matrices: &[TraceMatrix], what: &str) -> String {
    if matrices.iter().any(TraceMatrix::has_spread) {
        format!("No valid pair of policies has {what} with an interval.")
    } else {
        "One order carries no interval: add to `orders` first.".into()
    }
}

/// A ratio of two arms with its verdict, from the side of the left one.
struct Judged<'a> {
    matrix: &'a TraceMatrix,
    left: &'a Arm,
    right: &'a Arm,
    ratio: Quantity,
    /// *Better*: smaller.
    said: RatioVerdict,
}

/// Pairs of arms with their ratios, and those that have none.
struct JudgedPairs<'a> {
    judged: Vec<Judged<'a>>,
    /// Arms that could not be compared: without a valid run, without two orders in common, or without the reading.
    open: Vec<String>,
}

/// Ratios of pairs of arms, smaller is better, corrected for all of them.
fn judge<'a>(pairs: Vec<(&'a TraceMatrix, usize, usize)>, key: Key) -> JudgedPairs<'a> {
    let ratio = |(matrix, a, b): &(&TraceMatrix, usize, usize)| {
        let valid = matrix.arms[*a].is_valid() && matrix.arms[*b].is_valid();
        matrix.ratio(*a, *b, key).filter(|_| valid)
    };
    let ratios: Vec<Option<Quantity>> = pairs.iter().map(ratio).collect();
    let inverse: Vec<Option<Quantity>> = ratios.iter().map(|q| q.as_ref().map(Quantity::inverse)).collect();
    let threshold = pairs.first().map_or(0.05, |(matrix, ..)| matrix.threshold);
    let tests = stats::compare(&inverse, threshold);
    let mut found = JudgedPairs { judged: Vec::new(), open: Vec::new() };
    for (((matrix, a, b), ratio), test) in pairs.into_iter().zip(ratios).zip(tests) {
        let (left, right) = (&matrix.arms[a], &matrix.arms[b]);
        match ratio.zip(test) {
            Some((ratio, test)) => found.judged.push(Judged { matrix, left, right, ratio, said: test.verdict }),
            None => found.open.push(unknown(left, right)),
        }
    }
    found
}

/// Of two arms that cannot be compared the one that is why: the left one, unless only the right one is not valid.
fn unknown(left: &Arm, right: &Arm) -> String {
    if left.is_valid() && !right.is_valid() { right.name() } else { left.name() }
}

impl Judged<'_> {
    fn evidence(&self, key: Key) -> Evidence {
        Evidence::new(self.left.name(), Some(self.right.name()), key, self.ratio.clone())
    }

    /// `` `magm MPS` 0.75 ±0.02× ``.
    fn text(&self) -> String {
        format!("`{}` {}×", self.left.name(), number::with_interval(&self.ratio))
    }
}

/// Arms with a property, each with the reference, where that is `exclusive`.
fn beside_exclusive(matrices: &[TraceMatrix], is: impl Fn(&Arm) -> bool) -> Vec<(&TraceMatrix, usize, usize)> {
    let with = matrices.iter().filter(|m| m.reference().is_exclusive());
    let mut found = Vec::new();
    for matrix in with {
        let others = (0..matrix.arms.len()).filter(|i| *i != matrix.reference && is(&matrix.arms[*i]));
        found.extend(others.map(|i| (matrix, i, matrix.reference)));
    }
    found
}

/// Whether all are so: no as soon as one certainly is not, open while one could still turn out not to be.
fn all_are(wanted: RatioVerdict, pairs: &JudgedPairs) -> Holds {
    let confirmed = pairs.judged.iter().filter(|j| j.said == wanted).count();
    let undecided = pairs.judged.iter().filter(|j| matches!(j.said, RatioVerdict::CannotTell { .. })).count();
    verdict::of_all(confirmed, pairs.judged.len() - confirmed - undecided, undecided + pairs.open.len())
}

/// Whether all are smaller.
fn all_smaller(pairs: &JudgedPairs) -> Holds {
    all_are(RatioVerdict::Better, pairs)
}

/// `5 of 6 policies: from … to …; 1 can't be told apart`.
fn ratios_text(judged: &[Judged], of: &str) -> String {
    let smaller = judged.iter().filter(|j| j.said == RatioVerdict::Better).count();
    let open = judged.iter().filter(|j| matches!(j.said, RatioVerdict::CannotTell { .. })).count();
    let by = |a: &&Judged, b: &&Judged| a.ratio.estimate.total_cmp(&b.ratio.estimate);
    let Some((least, most)) = judged.iter().min_by(by).zip(judged.iter().max_by(by)) else { return String::new() };
    let range = if judged.len() == 1 { least.text() } else { format!("from {} to {}", least.text(), most.text()) };
    let open = if open > 0 { format!("; {open} undecided") } else { String::new() };
    format!(
        "{of} is shorter under {smaller} of {}: {range}{open}.",
        number::count(judged.len(), "policy").replace("policys", "policies")
    )
}

/// A difference of counts between two arms.
struct Counted<'a> {
    left: &'a Arm,
    right: &'a Arm,
    key: Key,
    difference: Difference,
}

impl<'a> Counted<'a> {
    fn of(matrix: &'a TraceMatrix, a: usize, b: usize, key: Key) -> Option<Counted<'a>> {
        let (left, right) = (&matrix.arms[a], &matrix.arms[b]);
        let difference = matrix.difference(a, b, key).filter(|d| d.interval.is_some())?;
        (left.is_valid() && right.is_valid()).then_some(Counted { left, right, key, difference })
    }

    fn evidence(&self) -> Vec<Evidence> {
        let of = |arm: &Arm| Some(Evidence::new(arm.name(), None, self.key, arm.get(self.key)?.clone()));
        of(self.left).into_iter().chain(of(self.right)).collect()
    }

    /// `` `magm:sm=80% MPS` 0.4 per run, `magm MPS` 5.2 (difference −4.8 [−6.1, −3.5]) ``.
    fn text(&self) -> String {
        let count = |arm: &Arm| arm.get(self.key).map_or_else(|| number::ABSENT.into(), |q| number::factor(q.estimate));
        let interval =
            self.difference.interval.map_or_else(String::new, |(low, high)| format!(" [{}, {}]", signed(low), signed(high)));
        let difference = signed(self.difference.estimate);
        format!(
            "`{}` {} per run, `{}` {} (difference {difference}{interval})",
            self.left.name(),
            count(self.left),
            self.right.name(),
            count(self.right)
        )
    }
}

fn signed(x: f64) -> String {
    number::fixed(x, 1).replace('-', "−")
}

/// Whether the left ones have fewer: no as soon as one certainly has not. `open` are pairs that were not counted.
fn all_fewer(counted: &[Counted], open: usize) -> Holds {
    // Where neither ever ran out there was nothing to avoid.
    let arose = |c: &&Counted| [c.left, c.right].iter().any(|arm| arm.get(c.key).is_some_and(|q| q.estimate > 0.0));
    let arisen: Vec<&Counted> = counted.iter().filter(arose).collect();
    let fewer = arisen.iter().filter(|c| c.difference.is_less()).count();
    let not = arisen.iter().filter(|c| !c.difference.is_less() && c.difference.is_not_less()).count();
    verdict::of_all(fewer, not, arisen.len() - fewer - not + open)
}

/// The texts of at most three.
fn listed(texts: impl IntoIterator<Item = String>) -> String {
    let all: Vec<String> = texts.into_iter().collect();
    let more = if all.len() > 3 { format!("; {} more", all.len() - 3) } else { String::new() };
    format!("{}{more}.", all.iter().take(3).cloned().collect::<Vec<_>>().join("; "))
}
