//! Judges each cell against its own history, night after night. In: nights, the oldest first. Out: each night's verdicts on its
//! cells. It measures nothing: to confirm, call [`Judge::look`], measure the suspicious cells again, and pass in the night with
//! both. The method with its error rates is in `docs/guide/nightly.md`.

use std::collections::{HashMap, HashSet};

use collo_quantity::stats::moves::{self, CELLS_FOR_A_CENTRE, CellMove, Centre};
use collo_quantity::stats::{robust, t_p, t_quantile};
use serde::Serialize;

use super::change;
use super::night::{CellNight, Mean, NightlyRun};
use super::noise::{self, Noise};
use super::rules::{DISTURBED, NIGHTS_BACK, NIGHTS_OF_A_STEP, NIGHTS_TO_LEARN, Rules, WINDOWS};
use super::track::{NightPoint, SegmentLevel, Step, Track};

/// A cell that appears to have moved.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspect {
    /// Index of the track.
    pub track: usize,
    pub cell: String,
    pub against: Vec<String>,
    pub window: usize,
    /// Logarithm of the move.
    pub change: f64,
    pub se: f64,
    pub df: f64,
    pub p: f64,
}

/// A move that cells have in common: all of them, or in a mixture all but those of the mixture.
#[derive(Debug, Clone, PartialEq)]
pub struct Common {
    /// Relative to the nights before, a ratio of times.
    pub ratio: f64,
    pub p: Option<f64>,
    /// True if it is relevant and exceeds the usual variation between nights.
    pub moved: bool,
    /// Cells whose own move agrees with it within their noise.
    pub agree: usize,
    /// Cells that have a move.
    pub cells: usize,
}

impl Common {
    /// True if the machine or the software became slower.
    pub fn is_worse(&self) -> bool {
        self.moved && self.ratio > 1.0
    }
}

/// A part of the cells moved otherwise than the others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Mixture {
    pub cells: usize,
    pub of: usize,
    /// Their times ÷ those of the others, both relative to the nights before.
    pub ratio: f64,
}

/// The verdicts of one night.
#[derive(Debug, Clone, Default)]
pub struct JudgedNight {
    pub night: usize,
    /// Complete, and on the same device.
    pub whole: bool,
    pub common: Option<Common>,
    pub mixture: Option<Mixture>,
    /// Factor by which the cells scattered more than usual, if that is much.
    pub disturbed: Option<f64>,
    /// Cells that were judged.
    pub judged: usize,
    pub learning: usize,
    /// Cells that appear to have moved and were not confirmed.
    pub suspects: Vec<Suspect>,
    /// Tracks with a step confirmed this night.
    pub steps: Vec<usize>,
    /// Tracks that ran before and do not run now.
    pub gone: Vec<usize>,
}

/// The state learnt so far.
#[derive(Debug, Clone)]
pub struct Judge {
    pub rules: Rules,
    pub tracks: Vec<Track>,
    /// By label: the content and index of each track of that name, the latest last.
    by_name: HashMap<String, Vec<(String, usize)>>,
    /// Number of standard errors below which nothing is suspicious.
    least: f64,
    /// Logarithm of each night's common move; `None` for nights that were not judged.
    commons: Vec<Option<f64>>,
    /// Start of the present level of the common moves, an index into `commons`.
    common_start: usize,
    /// The variance of common moves before it, with its degrees of freedom.
    common_spread: Option<(f64, f64)>,
    /// Factor of each night's scatter.
    pub(super) scatter: Vec<f64>,
    /// Each track's noise, as known after the last night.
    noises: Vec<Option<Noise>>,
    /// Each track's level before a window that ends with the next night, by window.
    levels: Vec<[Option<SegmentLevel>; 3]>,
}

/// A night before its verdicts.
struct UnjudgedNight {
    common: Option<f64>,
    /// Cells that moved as all, and all that have a move.
    agree: (usize, usize),
    mixture: Option<Mixture>,
    /// Of the centre, if only a part of the cells is one.
    centre_variance: f64,
    scatter: f64,
    judged: usize,
    learning: usize,
    suspects: Vec<Suspect>,
    /// The track of each cell of the night.
    track_of: Vec<Option<usize>>,
}

impl Judge {
    pub fn new(rules: Rules) -> Self {
        Judge {
            rules,
            tracks: Vec::new(),
            by_name: HashMap::new(),
            least: t_quantile(1.0 - rules.lenient / 2.0, f64::INFINITY),
            commons: Vec::new(),
            common_start: 0,
            common_spread: None,
            scatter: Vec::new(),
            noises: Vec::new(),
            levels: Vec::new(),
        }
    }

    /// Each track's current noise; `None` with too little history.
    pub fn noises(&self) -> &[Option<Noise>] {
        &self.noises
    }

    /// Nights so far.
    pub fn nights(&self) -> usize {
        self.commons.len()
    }

    /// Logarithm of the time that was measured, with the night's common move.
    pub fn measured(&self, point: &NightPoint) -> f64 {
        point.x + self.commons.get(point.night).copied().flatten().unwrap_or(0.0)
    }

    /// The cells of this night that appear to have moved, at the lenient level; nothing is stored.
    pub fn suspects(&self, night: &NightlyRun) -> Vec<Suspect> {
        if night.incomplete.is_some() { Vec::new() } else { self.look(night).suspects }
    }

    /// Judge a night and store it.
    pub fn take(&mut self, night: &NightlyRun) -> JudgedNight {
        let index = self.commons.len();
        if night.incomplete.is_some() {
            self.commons.push(None);
            self.scatter.push(1.0);
            return JudgedNight { night: index, ..JudgedNight::default() };
        }
        let look = self.look(night);
        let mut judged = JudgedNight {
            night: index,
            whole: true,
            common: self.common(&look),
            mixture: look.mixture,
            disturbed: (look.scatter > 1.0).then_some(look.scatter),
            judged: look.judged,
            learning: look.learning,
            ..JudgedNight::default()
        };
        let centre = look.common.unwrap_or(0.0);
        let (shift, shift_variance) = within_night(night, &look, &self.noises);
        let shift_variance = shift_variance + look.centre_variance;
        let mut confirmed: HashMap<usize, Step> = HashMap::new();
        for suspect in &look.suspects {
            let cell = night.cells.iter().zip(&look.track_of).find(|(_, t)| **t == Some(suspect.track)).map(|(c, _)| c);
            let again = cell.and_then(|c| c.again).filter(|a| a.n >= 2);
            let step = match (again, self.noises[suspect.track]) {
                (Some(again), Some(noise)) => {
                    let again = Mean { log_mean: again.log_mean - centre - shift, ..again };
                    self.confirm(suspect, again, noise, (look.scatter, shift_variance), look.suspects.len())
                }
                _ => self.strictly(suspect, look.judged),
            };
            match step {
                Some(step) => drop(confirmed.insert(suspect.track, Step { night: index, since: index, ..step })),
                None => judged.suspects.push(suspect.clone()),
            }
        }
        let spread_before = self.common_variance();
        self.commons.push(look.common);
        self.scatter.push(look.scatter);
        if judged.common.as_ref().is_some_and(|c| c.moved) {
            self.common_spread = spread_before;
            self.common_start = index;
        }
        for (i, cell) in night.cells.iter().enumerate() {
            let track = look.track_of[i].unwrap_or_else(|| self.begin(cell));
            let noise = self.noises.get(track).copied().flatten();
            if self.keep(track, index, cell, (centre, shift, look.scatter > 1.0), confirmed.remove(&track), noise) {
                judged.steps.push(track);
            }
            if self.tracks[track].gone.is_some() {
                judged.gone.push(track);
            }
        }
        self.noises = noise::learn(&self.tracks.iter().map(Track::past).collect::<Vec<_>>());
        let before = |t: &Track| WINDOWS.map(|window| t.level((t.points.len() + 1).checked_sub(window)?));
        self.levels = self.tracks.iter().map(before).collect();
        judged
    }

    /// A track's level before a window that ends with the next night.
    pub(super) fn level(&self, track: usize, window: usize) -> Option<SegmentLevel> {
        self.levels.get(track)?[window - 1]
    }

    /// The track that a cell continues. One that failed before it could report its data is the last of its name.
    fn track_of(&self, cell: &CellNight) -> Option<usize> {
        let named = self.by_name.get(&cell.cell)?;
        let exact = named.iter().find(|(content, _)| *content == cell.content);
        exact.or_else(|| named.last().filter(|_| cell.first.is_none())).map(|(_, track)| *track)
    }

    fn begin(&mut self, cell: &CellNight) -> usize {
        let index = self.tracks.len();
        self.by_name.entry(cell.cell.clone()).or_default().push((cell.content.clone(), index));
        self.tracks.push(Track {
            cell: cell.cell.clone(),
            sharing: cell.sharing.clone(),
            content: cell.content.clone(),
            quantity: cell.quantity.clone(),
            points: Vec::new(),
            start: 0,
            steps: Vec::new(),
            gone: None,
            sometimes: None,
            is_untimed: false,
            seen: 0,
        });
        index
    }

    /// Store a cell's night; true if a step was confirmed.
    fn keep(
        &mut self,
        track: usize,
        night: usize,
        cell: &CellNight,
        (centre, shift, wild): (f64, f64, bool),
        step: Option<Step>,
        noise: Option<Noise>,
    ) -> bool {
        let t = &mut self.tracks[track];
        t.seen = night;
        let failed = cell.outcome != "completed";
        t.sometimes = (failed && cell.first.is_some()).then(|| cell.outcome.clone());
        if failed && cell.first.is_none() {
            // It must have run before: a cell that never fitted is not broken.
            if t.gone.is_none() && !t.points.is_empty() {
                t.gone = Some((night, cell.outcome.clone()));
            }
            return false;
        }
        t.is_untimed = cell.first.is_none();
        let Some(first) = cell.first else { return false };
        t.gone = None;
        // As they are judged: without what moved between the planned repetitions and the added ones.
        let again = cell.again.map(|again| Mean { log_mean: again.log_mean - shift, ..again });
        // After a step its own repetitions are not trusted: they were chosen for being extreme.
        let mean = match (&step, again) {
            (Some(step), Some(again)) if step.again > 0 => again,
            (_, again) => first.with(again),
        };
        let apart = again.unwrap_or(first);
        let again = (apart.log_mean - centre, apart.n);
        t.points.push(NightPoint { night, x: mean.log_mean - centre, n: mean.n, within: mean.variance, again, wild });
        let Some(mut step) = step else { return false };
        // Among the newest nights: an earlier change, too small to be reported, is not what was confirmed tonight.
        let from = t.start.max(t.points.len().saturating_sub(NIGHTS_OF_A_STEP));
        let segment: Vec<(f64, usize)> = t.points[from..].iter().map(|p| (p.x, p.n)).collect();
        let variance = noise.map_or(0.0, |n| n.nightly_sd().powi(2));
        let at = change::point(&segment, variance).unwrap_or(segment.len() - 1);
        t.start = from + at;
        step.since = t.points[t.start].night;
        t.steps.push(step);
        true
    }

    fn look(&self, night: &NightlyRun) -> UnjudgedNight {
        let track_of: Vec<Option<usize>> = night.cells.iter().map(|c| self.track_of(c)).collect();
        let centre = self.centre(night, &track_of);
        let common = centre.as_ref().map(|c| c.0.log);
        let moved = centre.as_ref().and_then(|(c, cells)| Some((c.moved.as_ref()?, cells)));
        let mixture = moved.map(|(group, cells)| Mixture {
            cells: group.cells(),
            of: cells.len(),
            ratio: (group.log - common.unwrap_or(0.0)).exp(),
        });
        let of_group: HashSet<usize> = moved
            .iter()
            .flat_map(|(group, cells)| cells.iter().zip(&group.members).filter(|(_, m)| **m).map(|(i, _)| *i))
            .collect();
        let noises = self.noises();
        let mut look = UnjudgedNight {
            common,
            agree: (0, centre.as_ref().map_or(0, |(_, cells)| cells.len())),
            mixture,
            centre_variance: centre.as_ref().filter(|_| mixture.is_some()).map_or(0.0, |(c, _)| c.variance),
            scatter: 1.0,
            judged: 0,
            learning: 0,
            suspects: Vec::new(),
            track_of,
        };
        let ready: Vec<(usize, usize, &CellNight, f64, Noise)> = (0..night.cells.len())
            .filter_map(|i| {
                let cell = &night.cells[i];
                let x = cell.first?.log_mean - common.unwrap_or(0.0);
                let track = look.track_of[i]?;
                let ready = self.tracks[track].is_ready(1);
                Some((i, track, cell, x, noises[track].filter(|_| ready)?))
            })
            .collect();
        look.judged = ready.len();
        look.learning = night.cells.iter().filter(|c| c.first.is_some()).count() - ready.len();
        let z: Vec<f64> = ready
            .iter()
            .filter(|(i, ..)| !of_group.contains(i))
            .filter_map(|(_, t, _, x, noise)| self.held(*t, *x, noise, 1).map(|h| h.0 / h.1))
            .filter(|z| z.is_finite())
            .collect();
        if z.len() >= CELLS_FOR_A_CENTRE {
            look.scatter = robust::spread(&z, 0.0).filter(|s| *s > DISTURBED).unwrap_or(1.0);
        }
        // A cell without a noise of its own yet has nothing to disagree by.
        const AGREES: f64 = 3.0;
        let differs = z.iter().filter(|z| z.abs() > AGREES * look.scatter).count();
        look.agree.0 = look.agree.1.saturating_sub(differs + mixture.map_or(0, |m| m.cells));
        for (_, track, cell, x, noise) in ready {
            if let Some(suspect) = self.suspect(track, cell, x, &noise, (look.scatter, look.centre_variance)) {
                look.suspects.push(suspect);
            }
        }
        look
    }

    /// The centre of tonight's moves, and the cells that have one; `None` if they are too few.
    fn centre(&self, night: &NightlyRun, track_of: &[Option<usize>]) -> Option<(Centre, Vec<usize>)> {
        let baselines: HashSet<&String> = night.cells.iter().flat_map(|c| &c.against).collect();
        let moved = |i: usize| {
            let cell = &night.cells[i];
            let log = cell.first?.log_mean - self.level(track_of[i]?, 1)?.mean;
            Some((CellMove { log, is_baseline: baselines.contains(&cell.cell) }, i))
        };
        let (moves, cells): (Vec<CellMove>, Vec<usize>) = (0..night.cells.len()).filter_map(moved).unzip();
        Some((moves::centre(&moves, self.rules.relevance.ln_1p())?, cells))
    }

    /// The window in which a cell appears most moved, if it does so at the lenient level.
    fn suspect(
        &self,
        track: usize,
        cell: &CellNight,
        x: f64,
        noise: &Noise,
        (scatter, centre_variance): (f64, f64),
    ) -> Option<Suspect> {
        let mut worst: Option<Suspect> = None;
        for window in WINDOWS {
            let Some((change, se)) = self.held(track, x, noise, window) else { continue };
            let recent = self.scatter.iter().rev().take(window - 1).copied().fold(scatter, f64::max);
            let (se, df) = ((se * recent).hypot(centre_variance.sqrt()), noise.repeat.df);
            // Student's t is never below the normal distribution: most cells are done here.
            if change.abs() < se * self.least {
                continue;
            }
            let p = if se > 0.0 { t_p(change / se, df) } else { 0.0 };
            if p < self.rules.lenient && change.abs() > self.rules.relevance / 2.0 && worst.as_ref().is_none_or(|w| p < w.p) {
                let (cell, against) = (cell.cell.clone(), cell.against.clone());
                worst = Some(Suspect { track, cell, against, window, change, se, df, p });
            }
        }
        worst
    }

    /// A window that ends tonight minus the level before it, with its standard error; `None` with too little before it.
    fn held(&self, track: usize, x: f64, noise: &Noise, window: usize) -> Option<(f64, f64)> {
        let t = &self.tracks[track];
        let before = t.points.len() - (window - 1).min(t.points.len());
        if !t.is_ready(window) {
            return None;
        }
        let level = self.level(track, window)?;
        let recent = (t.points[before..].iter().map(|p| p.x).sum::<f64>() + x) / window as f64;
        Some((recent - level.mean, noise.of_difference(window, level.nights, level.repeats).sqrt()))
    }

    /// The common moves since the last one that was significant.
    fn commons_before(&self) -> Vec<f64> {
        let all: Vec<f64> = self.commons[self.common_start..].iter().flatten().copied().collect();
        all[all.len().saturating_sub(NIGHTS_BACK)..].to_vec()
    }

    /// Variance of what all cells have in common, from night to night, with its degrees of freedom; `None` with too few nights or cells.
    pub fn common_variance(&self) -> Option<(f64, f64)> {
        let before = self.commons_before();
        let h = before.len();
        let (_, squares) = robust::level(&before)?;
        let df = (h - 1) as f64;
        let own = (h >= NIGHTS_TO_LEARN).then(|| (squares / df / (1.0 - noise::persistent(h)), df));
        // After a step of all cells their spread is that of before it, until there are enough nights.
        own.or(self.common_spread)
    }

    /// Tonight's common move compared with those of the nights before.
    fn common(&self, look: &UnjudgedNight) -> Option<Common> {
        let (tonight, (agree, cells)) = (look.common?, look.agree);
        let before = self.commons_before();
        let Some((level, _)) = robust::level(&before) else {
            return Some(Common { ratio: tonight.exp(), p: None, moved: false, agree, cells });
        };
        let (change, h) = (tonight - level, before.len());
        let p = self
            .common_variance()
            .filter(|(variance, _)| *variance > 0.0)
            .map(|(variance, df)| t_p(change / (variance * (1.0 + noise::persistent(h))).sqrt(), df));
        let moved = p.is_some_and(|p| p < self.rules.strict) && change.abs() > self.rules.relevance.ln_1p();
        Some(Common { ratio: change.exp(), p, moved, agree, cells })
    }
}

/// The machine's move between the planned repetitions and the added ones, estimated from the re-measured cells that were not
/// suspicious, and its variance; 0 unless it is significant.
fn within_night(night: &NightlyRun, look: &UnjudgedNight, noises: &[Option<Noise>]) -> (f64, f64) {
    let calm = |track: &Option<usize>| track.filter(|t| look.suspects.iter().all(|s| s.track != *t));
    let moves: Vec<(f64, f64)> = night
        .cells
        .iter()
        .zip(&look.track_of)
        .filter_map(|(c, t)| {
            let (first, again, noise) = (c.first?, c.again?, noises[calm(t)?]?);
            Some((again.log_mean - first.log_mean, noise.repeat.s2 * (1.0 / first.n as f64 + 1.0 / again.n as f64)))
        })
        .collect();
    let n = moves.len() as f64;
    let mean = moves.iter().map(|m| m.0).sum::<f64>() / n;
    let variance = moves.iter().map(|m| m.1).sum::<f64>() / (n * n);
    if n > 0.0 && variance > 0.0 && mean.abs() > 3.0 * variance.sqrt() { (mean, variance) } else { (0.0, 0.0) }
}

#[cfg(test)]
#[path = "detect_tests.rs"]
mod tests;
