//! Which metric tells how full a GPU is? Points of a sweep over launches, from one thread to all: from where on each metric is near its
//! end, and how many SMs are active where GPU utilisation is.

use collo_analysis::campaign::Analysis;
use collo_analysis::campaign::launches::LaunchPoint;
use collo_quantity::stats::Quantity;
use collo_quantity::{Key, number};

use crate::rule::evidence::Evidence;
use crate::rule::{Claim, Guideline, not_judged, on_a_card};
use crate::verdict::{self, Holds, Next};

/// The metrics, from the coarsest to the finest.
pub const METRICS: [Key; 4] = [Key::GpuUtilization, Key::GraphicsActive, Key::SmActive, Key::SmOccupancy];
/// A metric from here on says that the GPU is full.
pub const FULL: f64 = 0.90;
/// Up to here at least half of the SMs are free.
const FREE: f64 = 0.50;

/// The lower and the upper end of an interval; nothing is certain without one.
fn ends(q: &Quantity) -> Option<(f64, f64)> {
    q.low.zip(q.high)
}

/// Certainly at least this.
fn reaches(point: &LaunchPoint, key: Key, least: f64) -> bool {
    point.cell.metric(key).and_then(ends).is_some_and(|(low, _)| low >= least)
}

/// Certainly below this.
fn is_below(point: &LaunchPoint, key: Key, most: f64) -> bool {
    point.cell.metric(key).and_then(ends).is_some_and(|(_, high)| high < most)
}

/// True if a point is certainly none at which GPU utilisation is full while SMs are free.
fn is_no_exception(point: &LaunchPoint) -> bool {
    point.cell.is_valid() && (is_below(point, Key::GpuUtilization, FULL) || reaches(point, Key::SmActive, FREE))
}

/// The valid point of the fewest threads that certainly has a metric near its end.
fn saturated<'p, 'a>(points: &'p [LaunchPoint<'a>], key: Key) -> Option<&'p LaunchPoint<'a>> {
    points.iter().filter(|p| reaches(p, key, FULL)).min_by_key(|p| (p.in_flight(), p.blocks))
}

pub fn guideline(analysis: &Analysis) -> Option<Guideline> {
    let all = analysis.launches();
    if !on_a_card(analysis) || all.is_empty() {
        return None;
    }
    let points: Vec<LaunchPoint> = all.iter().filter(|p| p.cell.is_valid()).copied().collect();
    // Where the driver says that the GPU is full.
    let full: Vec<&LaunchPoint> = points.iter().filter(|p| reaches(p, Key::GpuUtilization, FULL)).collect();
    let active = |p: &&&LaunchPoint| p.cell.metric(Key::SmActive).filter(|q| ends(q).is_some()).map(|q| q.estimate);
    let read = full.iter().filter(|p| active(p).is_some());
    let least = read.min_by(|a, b| active(a).unwrap_or(f64::NAN).total_cmp(&active(b).unwrap_or(f64::NAN))).copied();
    let holds = match least.and_then(|p| p.cell.metric(Key::SmActive)).and_then(ends) {
        Some((_, high)) if high <= FREE => Holds::Yes,
        // The sweep has points at which little runs, and none of them is told to be full; one that is not known could be.
        Some((low, _))
            if low > FREE && all.iter().all(is_no_exception) && points.iter().any(|p| is_below(p, Key::SmActive, FREE)) =>
        {
            Holds::No
        }
        _ => Holds::Open,
    };
    let ways: Vec<String> = METRICS.iter().map(|key| begins(&points, *key)).collect();
    let finding = match least {
        None if points.is_empty() => "No point of the sweep is valid.".into(),
        None => format!("No point has a GPU utilisation of {} or more, and an SMACT, with an interval.", number::percent(FULL)),
        Some(p) => {
            let text = |key: Key| p.cell.metric(key).map_or_else(|| number::ABSENT.into(), |q| number::share(q.estimate));
            format!(
                "At {} (blocks × threads of a launch) GPU utilisation reads {} and {} of the SMs are active. {} is certainly passed, by the whole interval, first {}.{}",
                p.name(),
                text(Key::GpuUtilization),
                text(Key::SmActive),
                number::percent(FULL),
                ways.join(", "),
                not_judged(all.iter().filter(|p| !p.cell.is_valid()).map(|p| p.cell.name().to_string()))
            )
        }
    };
    let of = |p: Option<&LaunchPoint>, key: Key| p.and_then(|p| Evidence::of(p.cell, key));
    let beside = METRICS.iter().filter_map(|key| of(least, *key));
    let first = METRICS.iter().filter_map(|key| of(saturated(&points, *key), *key));
    let name = &analysis.campaign.experiment;
    let more = if analysis.count("missing") + analysis.count("interrupted") > 0 { "" } else { " --more 2" };
    let command = (!analysis.campaign.is_merged()).then(|| format!("collo run {name}{more}"));
    Some(
        Claim {
            id: "saturation",
            question: "Does GPU utilisation tell how full a GPU is?",
            advice: "Read SMACT and SMOCC to see what is free: GPU utilisation and GRACT are full long before.".into(),
            otherwise: "wherever GPU utilisation is full here, most SMs are active, too.".into(),
            finding,
            holds,
            agrees: verdict::of_statement(analysis, holds),
            key: of(least, Key::SmActive),
            tested: format!(
                "of {} of the sweep, those with a GPU utilisation of certainly {} or more: the least SMACT is certainly at most {}; no, if it \
                 is certainly more, other points have less, and no point is unknown",
                number::count(all.len(), "point"),
                number::percent(FULL),
                number::percent(FREE)
            ),
            evidence: beside.chain(first).collect(),
            published: crate::published::square::square().claim("saturation"),
            next: Next { command, before: None },
            scope: None,
        }
        .conclude(),
    )
}

/// `by GPU utilisation at 1 × 1`: blocks and threads of the smallest launch.
fn begins(points: &[LaunchPoint], key: Key) -> String {
    match saturated(points, key) {
        Some(p) => format!("by {} at {}", key.label, p.name()),
        None => format!("by {} nowhere", key.label),
    }
}
