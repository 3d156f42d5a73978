//! One cell over the nights: its points, its steps, and the level of its present segment.

use collo_quantity::stats::{self, Quantity, robust};

use super::rules::{NIGHTS_AFTER_STEP, NIGHTS_BACK, NIGHTS_TO_LEARN, WINDOWS};

/// One cell over the nights.
#[derive(Debug, Clone)]
pub struct Track {
    pub cell: String,
    pub sharing: String,
    pub content: String,
    pub quantity: String,
    /// Every judged night on which it was measured.
    pub points: Vec<NightPoint>,
    /// Where the present segment begins, an index into `points`.
    pub start: usize,
    pub steps: Vec<Step>,
    /// The night since which it does not run, and its outcome.
    pub gone: Option<(usize, String)>,
    /// The outcome of the incomplete runs, if others completed.
    pub sometimes: Option<String>,
    /// On its last night it ran, and no run has a time that counts: all are indicative, or a quantile has too few requests.
    pub is_untimed: bool,
    /// The last night that had it in its plan.
    pub seen: usize,
}

/// One cell in one night.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NightPoint {
    /// Index of the night.
    pub night: usize,
    /// Logarithm of the time in seconds, without the night's common move.
    pub x: f64,
    pub n: usize,
    pub within: Option<f64>,
    /// The same from the added repetitions, and their number; if there are none, from the planned ones.
    pub again: (f64, usize),
    /// The whole night scattered more than usual.
    pub wild: bool,
}

/// A confirmed step.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The night that confirmed it.
    pub night: usize,
    /// The first night after the change, by least squares over the history.
    pub since: usize,
    /// Time after ÷ time before.
    pub ratio: Quantity,
    pub p: f64,
    /// Added repetitions that confirmed it; 0 if nothing was re-measured.
    pub again: usize,
}

impl Step {
    /// True if the cell became slower.
    pub fn is_worse(&self) -> bool {
        self.ratio.estimate > 1.0
    }
}

/// The level of a segment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SegmentLevel {
    pub mean: f64,
    pub nights: usize,
    /// Sum over the nights of 1 ÷ repetitions.
    pub repeats: f64,
}

/// One cell's history so far.
#[derive(Debug, Clone, Default)]
pub struct Past {
    /// Nightly values of each segment between accepted steps, the present one last.
    pub segments: Vec<Vec<f64>>,
    /// Variances between repetitions of a night.
    pub within: Vec<f64>,
    /// Repetitions of a usual night.
    pub n: f64,
}

impl Track {
    /// The level of the present segment over the points before `end`.
    pub fn level(&self, end: usize) -> Option<SegmentLevel> {
        let begin = self.start.max(end.saturating_sub(NIGHTS_BACK));
        let all = self.points.get(begin..end)?;
        let calm: Vec<&NightPoint> = all.iter().filter(|p| !p.wild).collect();
        // Wild nights say little of the level, unless there are no others.
        let points = if calm.len() < NIGHTS_TO_LEARN.min(all.len()) { all.iter().collect() } else { calm };
        let values: Vec<f64> = points.iter().map(|p| p.x).collect();
        let (mean, _) = robust::level(&values)?;
        Some(SegmentLevel { mean, nights: points.len(), repeats: points.iter().map(|p| 1.0 / p.n as f64).sum() })
    }

    /// Enough nights before a window that ends with the next night.
    pub fn is_ready(&self, window: usize) -> bool {
        let needed = if self.start == 0 { NIGHTS_TO_LEARN } else { NIGHTS_AFTER_STEP };
        self.points.len() - self.start >= needed + window - 1
    }

    /// Still learning: the next night will not be judged.
    pub fn is_learning(&self) -> bool {
        !self.is_ready(1)
    }

    /// Nights in the present segment.
    pub fn nights(&self) -> usize {
        self.points.len() - self.start
    }

    pub(super) fn past(&self) -> Past {
        // The last nights may be the first ones of a step that is not confirmed yet; they must not pass for noise.
        let held_back = (WINDOWS.len() - 1).min(self.nights().saturating_sub(NIGHTS_TO_LEARN));
        let known = &self.points[..self.points.len() - held_back];
        let recent = &known[known.len().saturating_sub(NIGHTS_BACK)..];
        let mut borders: Vec<usize> = self.steps.iter().filter_map(|s| recent.iter().position(|p| p.night == s.since)).collect();
        borders.push(recent.len());
        borders.sort_unstable();
        borders.dedup();
        let mut begin = 0;
        let mut segments = Vec::new();
        for border in borders {
            segments.push(recent[begin..border].iter().filter(|p| !p.wild).map(|p| p.x).collect());
            begin = border;
        }
        let mut usual: Vec<f64> = recent.iter().map(|p| p.n as f64).collect();
        let n = stats::median(&mut usual).unwrap_or(1.0);
        Past { segments, within: recent.iter().filter(|p| !p.wild).filter_map(|p| p.within).collect(), n }
    }
}
