//! The heap of events.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use collo_schedule::{Act, Attempt, AttemptId, Happened, HowEnded, Ledger, Task, Why};

use super::Work;
use super::card::{Card, OnCard, whole};
use super::paces::Paces;
use super::projection::{Attempted, Ending, Projection, counted};

/// What comes; at one moment the first of these first, so that who ends makes room for who settles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// Somebody on this version of a card is done.
    Done {
        card: usize,
        version: u64,
    },
    Settles(AttemptId),
    Profiled(AttemptId),
    Arrives(usize),
}

struct Engine<'a> {
    works: &'a [Work],
    paces: &'a dyn Paces,
    settle_ns: u64,
    now_ns: u64,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    cards: Vec<Card>,
    /// The cards of those who run.
    places: BTreeMap<AttemptId, usize>,
    /// What is left of each task, between its attempts.
    left: Vec<u128>,
    ledger: Ledger,
    acts: Vec<Act>,
    attempts: Vec<Attempted>,
    completed_ns: Vec<Option<u64>>,
}

/// Play tasks of one card each on the idle cards of a ledger, where an attempt holds its memory `settle_ns` after its start. Task and work
/// number n belong together, and the id of the task is n.
pub fn project(tasks: &[Task], works: &[Work], ledger: Ledger, settle_ns: u64, paces: &dyn Paces) -> Projection {
    let arrives = |(at, task): (usize, &Task)| Reverse((task.arrives_ns, Event::Arrives(at)));
    let mut engine = Engine {
        works,
        paces,
        settle_ns,
        now_ns: 0,
        events: tasks.iter().enumerate().map(arrives).collect(),
        cards: ledger.cards().iter().map(|card| Card::new(card.usable_bytes)).collect(),
        places: BTreeMap::new(),
        left: works.iter().map(|work| whole(*work)).collect(),
        acts: Vec::new(),
        ledger,
        attempts: Vec::new(),
        completed_ns: vec![None; tasks.len()],
    };
    while let Some(Reverse((at_ns, event))) = engine.events.pop() {
        engine.now_ns = at_ns;
        match event {
            Event::Arrives(task) => engine.tell(Happened::Arrived(tasks[task].clone())),
            Event::Done { card, version } => engine.done(card, version),
            Event::Settles(attempt) => engine.settles(attempt),
            Event::Profiled(attempt) => engine.profiled(attempt),
        }
        // Everything of a moment is booked before anything is decided.
        if engine.events.peek().is_none_or(|Reverse((next_ns, _))| *next_ns > at_ns) {
            engine.decide();
        }
    }
    Projection {
        attempts: engine.attempts,
        cards: engine.cards.iter().map(|card| card.totals).collect(),
        arrived_ns: tasks.iter().map(|task| task.arrives_ns).collect(),
        completed_ns: engine.completed_ns,
    }
}

impl Engine<'_> {
    /// Booked alone: what comes of it is asked for once for all of a moment.
    fn tell(&mut self, what: Happened) {
        self.ledger.book(what, self.now_ns, &mut self.acts);
    }

    fn decide(&mut self) {
        self.ledger.decide(self.now_ns, &mut self.acts);
        for act in std::mem::take(&mut self.acts) {
            match act {
                Act::Start(attempt) => self.start(attempt),
                Act::Profile(attempt, ns) => self.after(ns, Event::Profiled(attempt)),
                Act::Stop(attempt, Why::Moved) => self.leave(attempt, Ending::Moved),
                // No card is lost here, and nobody interrupts; nothing is read, so nothing is to be looked at.
                Act::Stop(..) | Act::LookAt(_) | Act::Over => {}
            }
        }
    }

    fn start(&mut self, attempt: Attempt) {
        let (id, task) = (attempt.id, attempt.task.0 as usize);
        let Some(card) = attempt.cards.first().map(|card| card.0 as usize) else { return };
        self.places.insert(id, card);
        self.cards[card].until(self.now_ns);
        self.cards[card].residents.push(OnCard::new(attempt, self.works[task], self.left[task], self.now_ns));
        self.next_done(card);
        self.tell(Happened::Started(id));
        self.after(self.settle_ns, Event::Settles(id));
    }

    fn after(&mut self, ns: u64, event: Event) {
        self.events.push(Reverse((self.now_ns + ns, event)));
    }

    fn next_done(&mut self, card: usize) {
        if let Some(at_ns) = self.cards[card].pace(self.paces) {
            self.events.push(Reverse((at_ns, Event::Done { card, version: self.cards[card].version })));
        }
    }

    /// Everybody on a card who has nothing left to do.
    fn done(&mut self, card: usize, version: u64) {
        if self.cards[card].version != version {
            return;
        }
        self.cards[card].until(self.now_ns);
        let done: Vec<Attempt> = self.cards[card].residents.iter().filter(|r| r.left == 0).map(|r| r.attempt.clone()).collect();
        for attempt in done {
            self.completed_ns[attempt.task.0 as usize] = Some(self.now_ns);
            self.leave(attempt.id, Ending::Completed);
            self.tell(Happened::Ended(attempt.id, HowEnded::Completed));
        }
    }

    /// A newcomer takes its memory, or does not find it.
    fn settles(&mut self, attempt: AttemptId) {
        let Some(card) = self.places.get(&attempt).map(|card| &mut self.cards[*card]) else { return };
        let free_bytes = card.free_bytes();
        let Some(resident) = card.residents.iter_mut().find(|r| r.attempt.id == attempt) else { return };
        if resident.work.memory_bytes <= free_bytes {
            let bytes = resident.work.memory_bytes;
            resident.held_bytes = Some(bytes);
            self.tell(Happened::Settled(attempt, Some(bytes)));
        } else {
            self.leave(attempt, Ending::OutOfMemory);
            self.tell(Happened::Ended(attempt, HowEnded::OutOfMemory));
        }
    }

    fn profiled(&mut self, attempt: AttemptId) {
        let Some(card) = self.places.get(&attempt) else { return };
        let resident = self.cards[*card].residents.iter().find(|r| r.attempt.id == attempt);
        let seen = resident.map(|r| r.work.utilisation_permille);
        seen.into_iter().for_each(|permille| self.tell(Happened::Profiled(attempt, permille)));
    }

    /// An attempt ends: its times are kept, and what is left of its task.
    fn leave(&mut self, attempt: AttemptId, ending: Ending) {
        let Some(card) = self.places.remove(&attempt) else { return };
        self.cards[card].until(self.now_ns);
        let residents = &mut self.cards[card].residents;
        let Some(at) = residents.iter().position(|r| r.attempt.id == attempt) else { return };
        let left = residents.remove(at);
        let lost = match ending {
            Ending::OutOfMemory => left.left_at_start - left.left,
            Ending::Completed | Ending::Moved => 0,
        };
        self.left[left.attempt.task.0 as usize] = left.left + lost;
        self.attempts.push(Attempted {
            attempt: left.attempt,
            started_ns: left.started_ns,
            ended_ns: self.now_ns,
            ending,
            lost: counted(left.work, lost),
        });
        self.next_done(card);
    }
}
