//! The queue in front of a member that serves: who came, who waits, who is being answered. Pure; time is what it is told.
//!
//! In: times of arrival, and how long so many take alone. Out: [`Request`]s, each with its moments, exact although the member looks
//! only now and then: between two looks the pace is taken to be one.

use std::collections::VecDeque;

use crate::dice::Dice;

/// One request, in seconds since the queue was opened.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Request {
    pub arrival_s: f64,
    pub start_s: Option<f64>,
    pub end_s: Option<f64>,
}

/// How long work takes alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Work {
    /// Of a further request in a batch.
    pub item_s: f64,
    /// Of a batch, whatever is in it, in items.
    pub batch_items: f64,
}

impl Work {
    /// Of so many requests, answered together.
    pub fn batch_s(&self, requests: usize) -> f64 {
        (self.batch_items + requests as f64) * self.item_s
    }
}

struct Batch {
    arrivals_s: Vec<f64>,
    start_s: f64,
    /// Solo seconds that are left of it.
    left_s: f64,
}

pub struct Queue {
    work: Work,
    batch_size: usize,
    gaps: Box<dyn FnMut() -> f64>,
    next_s: f64,
    at_s: f64,
    waiting: VecDeque<f64>,
    current: Option<Batch>,
    over: Vec<Request>,
}

/// Gaps of a Poisson process of this rate: exponential, each by itself.
pub fn poisson(rate_per_s: f64, mut dice: Dice) -> Box<dyn FnMut() -> f64> {
    Box::new(move || -dice.share().ln() / rate_per_s)
}

impl Queue {
    pub fn new(work: Work, batch_size: usize, mut gaps: Box<dyn FnMut() -> f64>) -> Queue {
        let next_s = gaps();
        Queue { work, batch_size, gaps, next_s, at_s: 0.0, waiting: VecDeque::new(), current: None, over: Vec::new() }
    }

    /// Let it be so late; since the last time, work was done at this pace.
    pub fn go_on(&mut self, until_s: f64, pace: f64) {
        while self.at_s < until_s {
            self.arrive(self.at_s);
            let end_s = match &self.current {
                Some(batch) if pace > 0.0 => self.at_s + batch.left_s / pace,
                Some(_) => f64::INFINITY,
                None if !self.waiting.is_empty() => {
                    self.begin();
                    continue;
                }
                None => {
                    self.at_s = self.next_s.min(until_s);
                    continue;
                }
            };
            if end_s > until_s {
                if let Some(batch) = &mut self.current {
                    batch.left_s -= (until_s - self.at_s) * pace;
                }
                self.at_s = until_s;
            } else {
                self.at_s = end_s;
                self.finish(Some(end_s));
            }
        }
        self.arrive(until_s);
    }

    /// What is over since the last time.
    pub fn over(&mut self) -> Vec<Request> {
        std::mem::take(&mut self.over)
    }

    /// The member leaves: what is being answered has no end, what waits no start either.
    pub fn close(&mut self) -> Vec<Request> {
        self.finish(None);
        let waits = |arrival_s| Request { arrival_s, start_s: None, end_s: None };
        self.over.extend(self.waiting.drain(..).map(waits));
        self.over()
    }

    fn arrive(&mut self, now_s: f64) {
        while self.next_s <= now_s {
            self.waiting.push_back(self.next_s);
            self.next_s += (self.gaps)();
        }
    }

    fn begin(&mut self) {
        let count = self.waiting.len().min(self.batch_size);
        let arrivals_s: Vec<f64> = self.waiting.drain(..count).collect();
        self.current = Some(Batch { arrivals_s, start_s: self.at_s, left_s: self.work.batch_s(count) });
    }

    fn finish(&mut self, end_s: Option<f64>) {
        if let Some(batch) = self.current.take() {
            let done = |arrival_s| Request { arrival_s, start_s: Some(batch.start_s), end_s };
            self.over.extend(batch.arrivals_s.into_iter().map(done));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each request takes a second, and a batch nothing by itself.
    const WORK: Work = Work { item_s: 1.0, batch_items: 0.0 };

    fn at(arrivals_s: &[f64], batch_size: usize, work: Work) -> Queue {
        let arrivals_s = arrivals_s.to_vec();
        let mut times = arrivals_s.into_iter().chain(std::iter::repeat(1e9));
        let mut before = 0.0;
        let gaps = move || {
            let next = times.next().unwrap_or(1e9);
            next - std::mem::replace(&mut before, next)
        };
        Queue::new(work, batch_size, Box::new(gaps))
    }

    fn told(requests: &[Request]) -> Vec<(f64, Option<f64>, Option<f64>)> {
        requests.iter().map(|r| (r.arrival_s, r.start_s, r.end_s)).collect()
    }

    #[test]
    fn who_waits_for_another_waits_from_its_own_arrival() {
        let mut queue = at(&[1.0, 1.5, 4.0], 1, WORK);
        queue.go_on(10.0, 1.0);
        let wanted = [(1.0, Some(1.0), Some(2.0)), (1.5, Some(2.0), Some(3.0)), (4.0, Some(4.0), Some(5.0))];
        assert_eq!(told(&queue.over()), wanted);
    }

    #[test]
    fn it_does_not_matter_how_often_it_is_looked_at() {
        let mut seldom = at(&[1.0, 1.5, 1.75, 4.0], 2, Work { item_s: 0.5, batch_items: 1.0 });
        let mut often = at(&[1.0, 1.5, 1.75, 4.0], 2, Work { item_s: 0.5, batch_items: 1.0 });
        seldom.go_on(8.0, 0.5);
        (1..=64).for_each(|n| often.go_on(f64::from(n) / 8.0, 0.5));
        let (seldom, often) = (seldom.over(), often.over());
        assert_eq!(seldom, often);
        // Alone, at half the pace: (1 + 1) × 0.5 s take 2 s, and the two that wait meanwhile (1 + 2) × 0.5 s.
        assert_eq!(told(&often)[..2], [(1.0, Some(1.0), Some(3.0)), (1.5, Some(3.0), Some(6.0))]);
    }

    #[test]
    fn who_leaves_tells_what_is_left() {
        let mut queue = at(&[1.0, 1.5], 1, WORK);
        queue.go_on(1.75, 1.0);
        assert_eq!(told(&queue.close()), [(1.0, Some(1.0), None), (1.5, None, None)]);
    }

    #[test]
    fn waiting_is_as_queueing_theory_says() {
        // M/D/1 at a load of 0.8: by Pollaczek and Khinchine the mean wait is 0.8 / (2 × 0.2) answers.
        let mut queue = Queue::new(WORK, 1, poisson(0.8, Dice::new(3)));
        queue.go_on(400_000.0, 1.0);
        let waits: Vec<f64> = queue.over().iter().filter_map(|r| Some(r.start_s? - r.arrival_s)).collect();
        let mean = waits.iter().sum::<f64>() / waits.len() as f64;
        assert!((mean - 2.0).abs() < 0.1, "{mean}");
    }
}
