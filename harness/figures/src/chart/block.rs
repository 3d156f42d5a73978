//! One block of a campaign: its runs one after the other along time, each with the window that is measured.

use crate::draw::axis::Axis;
use crate::draw::chart::drawing;
use crate::draw::look::hue;
use crate::draw::themed::Anchor;
use crate::draw::{Drawing, LONG};

/// One run, in seconds from the beginning of the block.
#[derive(Debug, Clone)]
pub struct BlockRun {
    pub sharing: String,
    /// When its members were launched, and when it ended.
    pub launched_s: f64,
    pub ended_s: f64,
    /// The measured window; absent for a run that has none.
    pub measured_s: Option<(f64, f64)>,
    pub title: String,
}

/// The runs of a block, in their order.
pub struct BlockRuns<'a> {
    pub runs: &'a [BlockRun],
}

const TOP: f64 = 20.0;
const BAR: f64 = 22.0;
const FOOT: f64 = 34.0;
const EDGE: f64 = 4.0;
/// A narrower run has no number below it.
const NUMBER: f64 = 14.0;

impl BlockRuns<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let end_s = self.runs.iter().map(|r| r.ended_s).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
        let x = |s: f64| EDGE + s.clamp(0.0, end_s) / end_s * (LONG - 2.0 * EDGE);
        let axis = Axis::of_time(0.0, end_s, 12);
        drawing((LONG, TOP + BAR + FOOT), |svg| {
            svg.text("cap", (EDGE, 12.0), Anchor::Start, "runs in their order");
            for (i, run) in self.runs.iter().enumerate() {
                let (from, until) = (x(run.launched_s), x(run.ended_s));
                svg.open_mark(hue(&run.sharing), &run.title);
                svg.rect("asked", (from, TOP), ((until - from).max(1.0), BAR));
                if let Some((begins, ends)) = run.measured_s {
                    svg.rect("bar", (x(begins), TOP), ((x(ends) - x(begins)).max(1.0), BAR));
                }
                svg.close();
                if until - from >= NUMBER {
                    svg.text("t", ((from + until) / 2.0, TOP + BAR + 13.0), Anchor::Middle, &(i + 1).to_string());
                }
            }
            for (at, text) in axis.ticks() {
                svg.text("t", (x(*at), TOP + BAR + 29.0), Anchor::Middle, text);
            }
        })
    }
}
