//! The books: which task is in which state, who is on which card. In: what happened. Out: what to do. It knows no process, no clock, and
//! nothing of a task that nobody has seen yet, so that processes and events are served by the same decisions.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::policy::{Decision, Policy};
use crate::queue::Queue;
use crate::recovery::{Asks, Recovery};
use crate::task::{Attempt, AttemptId, CardId, HowEnded, Task, TaskId};
use crate::view::{CardView, Resident, View};

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happened {
    Arrived(Task),
    /// From now on the attempt is in the readings, with what it holds.
    Settled(AttemptId, u64),
    /// Its time in isolation is over, and this utilisation was seen.
    Profiled(AttemptId, u32),
    Ended(AttemptId, HowEnded),
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// With the time to watch it in isolation, if so.
    Start(Attempt, Option<u64>),
    /// It goes on elsewhere; what it has done is kept.
    Stop(AttemptId),
}

/// The one state that a task is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Waiting,
    Running(Attempt),
    /// It ran out of memory and waits for another attempt.
    Recovering,
    Done,
    /// It ran out of memory alone on a card, or in its last attempt.
    Failed,
}

struct Entry {
    task: Task,
    state: State,
    /// Attempts that ran out of memory.
    failed: u32,
    asks: Option<Asks>,
}

/// The tasks and cards of a site under a policy.
pub struct Ledger {
    policy: Box<dyn Policy>,
    recovery: Recovery,
    cards: Vec<CardView>,
    tasks: BTreeMap<TaskId, Entry>,
    /// The tasks of the attempts that live.
    live: BTreeMap<AttemptId, TaskId>,
    queue: Queue,
    /// Profiled since the last decision, and not yet placed by what was seen.
    profiled: Vec<TaskId>,
    next: u32,
}

impl Ledger {
    /// A site of idle cards with so much memory each.
    pub fn new(policy: Box<dyn Policy>, recovery: Recovery, capacities_bytes: &[u64]) -> Ledger {
        let card = |(card, capacity_bytes): (u32, &u64)| CardView {
            card: CardId(card),
            capacity_bytes: *capacity_bytes,
            residents: Vec::new(),
        };
        let queue = Queue::new(policy.order());
        Ledger {
            policy,
            recovery,
            cards: (0..).zip(capacities_bytes).map(card).collect(),
            tasks: BTreeMap::new(),
            live: BTreeMap::new(),
            queue,
            profiled: Vec::new(),
            next: 0,
        }
    }

    /// Book what happened. What comes of it says `decide`, once everything of the moment is booked.
    pub fn on(&mut self, what: Happened) {
        match what {
            Happened::Arrived(task) => {
                self.queue.add(&task, false);
                self.tasks.insert(task.id, Entry { task, state: State::Waiting, failed: 0, asks: None });
            }
            Happened::Settled(attempt, bytes) => {
                self.resident(attempt).into_iter().for_each(|resident| resident.held_bytes = Some(bytes));
            }
            Happened::Profiled(attempt, permille) => {
                let Some(resident) = self.resident(attempt) else { return };
                resident.profiled = false;
                resident.believed_permille = Some(permille);
                let task = resident.task;
                if let Some(entry) = self.tasks.get_mut(&task) {
                    entry.task.believed_permille = Some(permille);
                    self.profiled.push(task);
                }
            }
            Happened::Ended(attempt, how) => self.ended(attempt, how),
        }
    }

    /// What to do now.
    pub fn decide(&mut self, acts: &mut Vec<Act>) {
        self.place_profiled(acts);
        for id in self.queue.in_order() {
            let Some(entry) = self.tasks.get(&id) else { continue };
            let (task, recovers) = (entry.task.clone(), entry.state == State::Recovering);
            let (card, profile_ns) = match self.ask(id) {
                Decision::Place(card) => (card, None),
                Decision::Profile(card, ns) => (card, Some(ns)),
                Decision::Wait => continue,
            };
            self.queue.remove(&task, recovers);
            self.start(id, card, profile_ns, acts);
        }
    }

    /// The state of a task that has arrived.
    pub fn state(&self, task: TaskId) -> Option<State> {
        self.tasks.get(&task).map(|entry| entry.state)
    }

    /// How many tasks have arrived.
    pub fn arrived(&self) -> usize {
        self.tasks.len()
    }

    pub fn cards(&self) -> &[CardView] {
        &self.cards
    }

    /// Ask the policy about a task, over the cards that it may go to.
    fn ask(&mut self, id: TaskId) -> Decision {
        let Some(entry) = self.tasks.get(&id) else { return Decision::Wait };
        let may = |card: &&CardView| !card.residents.iter().any(|r| r.profiled) && entry.asks.is_none_or(|asks| asks.allow(card));
        let candidates: Vec<&CardView> = self.cards.iter().filter(may).collect();
        self.policy.place(&entry.task, &View { cards: &candidates })
    }

    /// Who has been profiled is placed as if it had just come, the greatest first; who fits nowhere else stays.
    fn place_profiled(&mut self, acts: &mut Vec<Act>) {
        let mut profiled = std::mem::take(&mut self.profiled);
        profiled.sort_by_key(|id| Reverse(self.tasks.get(id).and_then(|entry| entry.task.believed_permille)));
        let lifted: Vec<(TaskId, CardId, Resident)> = profiled.into_iter().filter_map(|id| self.lift(id)).collect();
        for (id, own, resident) in lifted {
            match self.ask(id) {
                Decision::Place(card) if card != own => {
                    self.live.remove(&resident.attempt);
                    acts.push(Act::Stop(resident.attempt));
                    self.start(id, card, None, acts);
                }
                _ => self.cards[own.0 as usize].residents.push(resident),
            }
        }
    }

    /// Take a task off its card.
    fn lift(&mut self, id: TaskId) -> Option<(TaskId, CardId, Resident)> {
        let State::Running(Attempt { card, .. }) = self.tasks.get(&id)?.state else { return None };
        let residents = &mut self.cards[card.0 as usize].residents;
        let at = residents.iter().position(|r| r.task == id)?;
        Some((id, card, residents.remove(at)))
    }

    fn start(&mut self, id: TaskId, card: CardId, profile_ns: Option<u64>, acts: &mut Vec<Act>) {
        let Some(entry) = self.tasks.get_mut(&id) else { return };
        let attempt = Attempt { id: AttemptId(self.next), task: id, card };
        self.next += 1;
        entry.state = State::Running(attempt);
        let believed_permille = entry.task.believed_permille;
        let profiled = profile_ns.is_some();
        let resident = Resident { attempt: attempt.id, task: id, believed_permille, held_bytes: None, profiled };
        self.cards[card.0 as usize].residents.push(resident);
        self.live.insert(attempt.id, id);
        acts.push(Act::Start(attempt, profile_ns));
    }

    fn ended(&mut self, attempt: AttemptId, how: HowEnded) {
        let Some((id, card, _)) = self.live.remove(&attempt).and_then(|task| self.lift(task)) else { return };
        let card = &self.cards[card.0 as usize];
        let Some(entry) = self.tasks.get_mut(&id) else { return };
        entry.failed += u32::from(how == HowEnded::OutOfMemory);
        entry.state = match how {
            HowEnded::Completed => State::Done,
            HowEnded::OutOfMemory if card.is_idle() || entry.failed >= self.recovery.attempts => State::Failed,
            HowEnded::OutOfMemory => {
                entry.asks = Some(self.recovery.after(entry.failed, card.free_bytes()));
                self.queue.add(&entry.task, true);
                State::Recovering
            }
        };
    }

    fn resident(&mut self, attempt: AttemptId) -> Option<&mut Resident> {
        let task = self.live.get(&attempt)?;
        let State::Running(Attempt { card, .. }) = self.tasks.get(task)?.state else { return None };
        self.cards[card.0 as usize].residents.iter_mut().find(|r| r.attempt == attempt)
    }
}
