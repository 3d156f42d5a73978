//! Time left in a campaign: from runs of the same cell that have finished, else from the forecast.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use collo_store::PlannedRun;

/// The card of a run, absent on one device.
type Card = Option<u32>;

/// Records the durations of runs.
#[derive(Default)]
pub struct Eta {
    /// One run of each cell.
    forecast_s: Vec<Option<f64>>,
    cooldown_s: f64,
    /// By card, which are measured at the same time.
    left: BTreeMap<Card, Vec<usize>>,
    took: BTreeMap<usize, Vec<f64>>,
    current: BTreeMap<Card, (usize, Instant)>,
}

impl Eta {
    /// At the start, with these runs to do.
    pub fn new(forecast_s: &[Option<f64>], cooldown: Duration, todo: &[PlannedRun]) -> Self {
        let mut left: BTreeMap<Card, Vec<usize>> = BTreeMap::new();
        todo.iter().for_each(|p| left.entry(p.card).or_default().push(p.cell));
        Eta { forecast_s: forecast_s.to_vec(), cooldown_s: cooldown.as_secs_f64(), left, ..Eta::default() }
    }

    /// A run begins.
    pub fn begins(&mut self, planned: &PlannedRun) {
        self.current.insert(planned.card, (planned.cell, Instant::now()));
    }

    /// It has ended; returns the seconds that it took.
    pub fn ends(&mut self, planned: &PlannedRun) -> f64 {
        let Some((cell, begun)) = self.current.remove(&planned.card) else { return 0.0 };
        let seconds = begun.elapsed().as_secs_f64();
        self.took.entry(cell).or_default().push(seconds);
        let left = self.left.entry(planned.card).or_default();
        if let Some(at) = left.iter().position(|&c| c == cell) {
            left.remove(at);
        }
        seconds
    }

    /// A run is to be measured once more.
    pub fn again(&mut self, planned: &PlannedRun) {
        self.left.entry(planned.card).or_default().push(planned.cell);
    }

    /// Seconds since the current run of a card began.
    pub fn current_s(&self, card: Card) -> f64 {
        self.current.get(&card).map_or(0.0, |(_, begun)| begun.elapsed().as_secs_f64())
    }

    /// Estimated seconds left, of the card that takes longest; `None` if unknown.
    pub fn left_s(&self) -> Option<f64> {
        let on = |(card, left): (&Card, &Vec<usize>)| {
            let sum: Option<f64> = left.iter().map(|&cell| Some(self.one(cell)? + self.cooldown_s)).sum();
            let last = if left.is_empty() { 0.0 } else { self.cooldown_s };
            Some((sum? - self.current_s(*card) - last).max(0.0))
        };
        self.left.iter().map(on).collect::<Option<Vec<f64>>>().map(|each| each.into_iter().fold(0.0, f64::max))
    }

    fn one(&self, cell: usize) -> Option<f64> {
        if let Some(siblings) = self.took.get(&cell) {
            return Some(siblings.iter().sum::<f64>() / siblings.len() as f64);
        }
        let forecast = |cell: usize| self.forecast_s.get(cell).copied().flatten();
        // The forecast knows the shape of the matrix better than this machine's speed: finished runs of other cells scale it.
        let (mut real, mut expected) = (0.0, 0.0);
        for (&other, took) in &self.took {
            if let Some(each) = forecast(other) {
                real += took.iter().sum::<f64>();
                expected += each * took.len() as f64;
            }
        }
        let scale = if expected > 0.0 { real / expected } else { 1.0 };
        forecast(cell).map(|each| each * scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn eta() -> Eta {
        Eta::new(&[Some(10.0), Some(20.0), None], Duration::from_secs(1), &[])
    }

    #[test]
    fn a_finished_sibling_is_believed_more_than_the_forecast() {
        let mut e = eta();
        e.left = [(None, vec![0, 0, 1])].into();
        assert_eq!(e.left_s(), Some(42.0));
        e.took.insert(0, vec![30.0]);
        // Three times slower than forecast, so the cell that has not run yet will be, too.
        assert_eq!(e.left_s(), Some(30.0 + 30.0 + 60.0 + 2.0));
    }

    #[test]
    fn cards_are_measured_at_the_same_time_and_the_longest_decides() {
        let mut e = eta();
        e.left = [(Some(0), vec![0, 1]), (Some(1), vec![0])].into();
        assert_eq!(e.left_s(), Some(31.0));
        let ended = PlannedRun { block: 1, cell: 1, repetition: 1, edge: None, card: Some(0) };
        e.begins(&ended);
        e.ends(&ended);
        assert_eq!(e.left[&Some(0)], [0]);
    }

    #[test]
    fn without_forecast_or_sibling_nobody_can_tell() {
        let mut e = eta();
        e.left = [(None, vec![2])].into();
        assert_eq!(e.left_s(), None);
        e.took.insert(2, vec![5.0]);
        assert_eq!(e.left_s(), Some(5.0));
    }
}
