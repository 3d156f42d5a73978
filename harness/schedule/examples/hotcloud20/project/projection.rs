//! What a projection says.

use super::Work;
#[cfg(test)]
use collo_schedule::TaskId;
use collo_schedule::{Attempt, WHOLE_PERMILLE};

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Completed,
    OutOfMemory,
    /// It went on elsewhere, with what it had done.
    Moved,
}

/// An attempt and its times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempted {
    pub attempt: Attempt,
    pub started_ns: u64,
    pub ended_ns: u64,
    pub ending: Ending,
    /// Work that was lost with it, as `CardTotals::done`.
    pub lost: u128,
}

/// What a card did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CardTotals {
    /// The integral of the utilisation that a driver would read, in per mille × ns: the utilisations that residents have alone, added up,
    /// at most a whole card.
    pub read_permille_ns: u128,
    /// The time with somebody on it.
    pub in_use_ns: u128,
    /// Work that was done, in per mille × ns × parts per million of the pace alone.
    pub done: u128,
}

/// A trace played on paper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Projection {
    /// In the order in which they ended.
    pub attempts: Vec<Attempted>,
    pub cards: Vec<CardTotals>,
    /// When each task arrived, in their order.
    pub arrived_ns: Vec<u64>,
    /// When each completed; `None` if it failed.
    pub completed_ns: Vec<Option<u64>>,
}

impl Projection {
    /// From the first arrival until the last attempt ended, in seconds.
    pub fn makespan_s(&self) -> f64 {
        let first = self.arrived_ns.iter().min().copied().unwrap_or_default();
        seconds(self.attempts.iter().map(|a| a.ended_ns).max().unwrap_or(first) - first)
    }

    /// The utilisation that a driver would read, as a mean over all cards until the makespan, idle ones included.
    pub fn utilisation(&self) -> Option<f64> {
        share(self.read_permille_ns(), self.makespan_s() * 1e9 * self.cards.len() as f64)
    }

    /// The same over the time in which a card has somebody on it.
    pub fn utilisation_in_use(&self) -> Option<f64> {
        share(self.read_permille_ns(), self.in_use_ns())
    }

    /// The same without what company costs and without what was lost: what the work that was kept would have read alone.
    pub fn useful_in_use(&self) -> Option<f64> {
        let lost: u128 = self.attempts.iter().map(|a| a.lost).sum();
        let done: u128 = self.cards.iter().map(|card| card.done).sum();
        share((done - lost) as f64 / f64::from(super::ALONE_PPM), self.in_use_ns())
    }

    fn read_permille_ns(&self) -> f64 {
        self.cards.iter().map(|card| card.read_permille_ns).sum::<u128>() as f64
    }

    fn in_use_ns(&self) -> f64 {
        self.cards.iter().map(|card| card.in_use_ns).sum::<u128>() as f64
    }

    /// The time in all attempts at a task.
    #[cfg(test)]
    pub fn execution_ns(&self, task: TaskId) -> u64 {
        self.attempts.iter().filter(|a| a.attempt.task == task).map(|a| a.ended_ns - a.started_ns).sum()
    }

    /// The time before and between attempts at a task.
    #[cfg(test)]
    pub fn wait_ns(&self, task: TaskId) -> u64 {
        let mut known_ns = self.arrived_ns[task.0 as usize];
        let mut wait_ns = 0;
        for attempted in self.attempts.iter().filter(|a| a.attempt.task == task) {
            wait_ns += attempted.started_ns - known_ns;
            known_ns = attempted.ended_ns;
        }
        wait_ns
    }

    /// Mean execution over the tasks that completed, in seconds.
    pub fn mean_execution_s(&self) -> Option<f64> {
        let completed = self.attempts.iter().filter(|a| self.completed_ns[a.attempt.task.0 as usize].is_some());
        self.mean_s(completed.map(|a| a.ended_ns - a.started_ns).sum())
    }

    /// Mean time from arrival until done over the tasks that completed, in seconds.
    pub fn mean_completion_s(&self) -> Option<f64> {
        let each = self.completed_ns.iter().zip(&self.arrived_ns);
        self.mean_s(each.filter_map(|(done, arrived)| done.map(|done| done - arrived)).sum())
    }

    fn mean_s(&self, sum_ns: u64) -> Option<f64> {
        let completed = self.completed_ns.len() - self.failed();
        (completed > 0).then(|| seconds(sum_ns) / completed as f64)
    }

    /// Attempts that ran out of memory.
    pub fn out_of_memory(&self) -> usize {
        self.attempts.iter().filter(|a| a.ending == Ending::OutOfMemory).count()
    }

    /// Tasks that never completed.
    pub fn failed(&self) -> usize {
        self.completed_ns.iter().filter(|ended| ended.is_none()).count()
    }
}

/// The work of a task as `CardTotals::done` counts it.
pub(super) fn counted(work: Work, part: u128) -> u128 {
    part * u128::from(work.utilisation_permille)
}

/// A share of a whole card over so much time; `None` of no time.
fn share(permille_ns: f64, of_ns: f64) -> Option<f64> {
    (of_ns > 0.0).then(|| permille_ns / (of_ns * f64::from(WHOLE_PERMILLE)))
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
