//! A body without processes: it does what the ledger asks, and lets attempts start, settle, run out of memory and end at random.

use std::collections::BTreeMap;

use collo_schedule::{Act, Attempt, AttemptId, CardId, Decided, Happened, HowEnded, Ledger, Reading, Why};

use crate::case::Case;

pub struct Live {
    pub attempt: Attempt,
    pub settled: bool,
    pub profiled: bool,
    /// Its process has ended and its memory is free; the ledger has not been told yet.
    pub gone: bool,
    truly_bytes: u64,
}

pub struct Body<'a> {
    case: &'a Case,
    pub ledger: Ledger,
    pub live: BTreeMap<AttemptId, Live>,
    pub now_ns: u64,
    to_come: usize,
    /// Taken, not yet delivered: a reading may be older than what has happened since.
    sampled: Vec<Vec<Reading>>,
    pub events: Vec<(u64, Happened)>,
    pub acts: Vec<(u64, Act)>,
    pub decided: Vec<Decided>,
    pub out_of_memory: usize,
}

impl<'a> Body<'a> {
    pub fn of(case: &'a Case) -> Body<'a> {
        Body {
            case,
            ledger: Ledger::open(&case.rules).expect("rules of a site"),
            live: BTreeMap::new(),
            now_ns: 0,
            to_come: 0,
            sampled: vec![Vec::new(); case.rules.cards.len()],
            events: Vec::new(),
            acts: Vec::new(),
            decided: Vec::new(),
            out_of_memory: 0,
        }
    }

    /// Tell the ledger, and do what it asks.
    pub fn tell(&mut self, what: Happened) {
        if let Happened::Ended(attempt, how) = &what {
            let lived = self.live.remove(attempt).is_some();
            self.out_of_memory += usize::from(lived && *how == HowEnded::OutOfMemory);
        }
        let mut acts = Vec::new();
        self.events.push((self.now_ns, what.clone()));
        self.ledger.on(what, self.now_ns, &mut acts);
        for act in acts {
            match &act {
                Act::Start(attempt) => {
                    let live = Live {
                        attempt: attempt.clone(),
                        settled: false,
                        profiled: false,
                        gone: false,
                        truly_bytes: self.case.tasks[attempt.task.0 as usize].truly_bytes,
                    };
                    assert!(self.live.values().all(|other| other.attempt.task != attempt.task), "a task runs twice");
                    let is_lost = |card: &CardId| self.ledger.cards()[card.0 as usize].lost;
                    assert!(!attempt.cards.iter().any(is_lost), "a lost card gets a task");
                    assert!(self.live.insert(attempt.id, live).is_none(), "an attempt starts twice");
                }
                Act::Profile(attempt, _) => self.live.get_mut(attempt).expect("it has started").profiled = true,
                Act::Stop(attempt, Why::Moved) => drop(self.live.remove(attempt).expect("it lives")),
                Act::Stop(attempt, _) => assert!(self.live.contains_key(attempt), "it lives"),
                Act::LookAt(at_ns) => assert!(*at_ns > self.now_ns, "a look at what has passed"),
                Act::Over => {
                    let closed = self.events.iter().any(|(_, what)| matches!(what, Happened::Full | Happened::Stopped));
                    let all = self.to_come == self.case.tasks.len();
                    assert!(self.live.is_empty() && (all || closed), "it is over too early");
                }
            }
            self.acts.push((self.now_ns, act));
        }
        self.decided.extend(self.ledger.take_decided());
    }

    fn held_bytes(&self, card: usize) -> u64 {
        let on = |live: &&Live| live.settled && !live.gone && live.attempt.cards.contains(&CardId(card as u32));
        self.live.values().filter(on).map(|live| live.truly_bytes).sum()
    }

    fn capacity_bytes(&self, card: usize) -> u64 {
        self.case.rules.cards[card].capacity_bytes
    }

    /// It takes its memory, or does not find it.
    pub fn settle(&mut self, attempt: AttemptId, tells: bool) {
        let live = &self.live[&attempt];
        if live.settled || live.gone {
            return;
        }
        let fits = live.attempt.cards.iter().all(|card| {
            let card = card.0 as usize;
            self.held_bytes(card) + live.truly_bytes <= self.capacity_bytes(card)
        });
        if fits {
            let bytes = live.truly_bytes;
            self.live.get_mut(&attempt).expect("it lives").settled = true;
            self.tell(Happened::Settled(attempt, tells.then_some(bytes)));
        } else {
            self.tell(Happened::Ended(attempt, HowEnded::OutOfMemory));
        }
    }

    fn sample(&mut self, card: usize, permille: [u32; 3]) {
        let some = |permille: u32| (!permille.is_multiple_of(8)).then_some(permille % 1001);
        let reading = Reading {
            free_bytes: (!permille[0].is_multiple_of(16)).then(|| self.capacity_bytes(card) - self.held_bytes(card)),
            sm_permille: some(permille[0]),
            occupancy_permille: some(permille[1]),
            dram_permille: some(permille[2]),
            read_ns: self.now_ns,
        };
        self.sampled[card].push(reading);
    }

    pub fn arrive(&mut self) -> bool {
        let Some(given) = self.case.tasks.get(self.to_come) else { return false };
        self.to_come += 1;
        self.now_ns = self.now_ns.max(given.task.arrives_ns);
        self.tell(Happened::Arrived(given.task.clone()));
        true
    }

    /// Whatever a number says.
    pub fn choose(&mut self, choice: u32) {
        self.now_ns += u64::from(choice >> 28);
        let card = (choice >> 4) as usize % self.case.rules.cards.len();
        let number = choice >> 8;
        let chosen = self.live.iter().nth(number as usize % self.live.len().max(1)).map(|(id, live)| (*id, live.profiled));
        match (choice % 16, chosen) {
            (0..=2, _) => drop(self.arrive()),
            (3, Some((attempt, _))) => self.tell(Happened::Started(attempt)),
            (4..=6, Some((attempt, _))) => self.settle(attempt, !number.is_multiple_of(3)),
            (7, Some((attempt, _))) => self.live.get_mut(&attempt).expect("it lives").gone = true,
            (8, Some((attempt, _))) => self.tell(Happened::Ended(attempt, HowEnded::Completed)),
            (9, Some((attempt, _))) => {
                let how = [HowEnded::Failed, HowEnded::ModeLost, HowEnded::ModeLost, HowEnded::Interrupted][number as usize % 4];
                self.tell(Happened::Ended(attempt, how));
            }
            (10, Some((attempt, true))) => {
                self.live.get_mut(&attempt).expect("it lives").profiled = false;
                self.tell(Happened::Profiled(attempt, number % 1001));
            }
            (10, Some((attempt, false))) if self.case.misfortune => self.tell(Happened::Ended(attempt, HowEnded::OutOfMemory)),
            (11 | 12, _) => self.sample(card, [number, number >> 4, number >> 8]),
            (13, _) => {
                // Now and then an older one comes late.
                let back = usize::from(number.is_multiple_of(8)) * 2 + 1;
                let sampled = &self.sampled[card];
                if let Some(reading) = sampled.get(sampled.len().saturating_sub(back)).copied() {
                    self.tell(Happened::Read(CardId(card as u32), reading));
                }
            }
            (15, _) if self.case.misfortune && number.is_multiple_of(16) => {
                self.tell(Happened::CardLost(CardId(card as u32)));
                let on: Vec<AttemptId> =
                    self.live.values().filter(|l| l.attempt.cards.contains(&CardId(card as u32))).map(|l| l.attempt.id).collect();
                on.into_iter().for_each(|attempt| self.tell(Happened::Ended(attempt, HowEnded::CardLost)));
            }
            (15, _) if self.case.misfortune && number % 64 == 1 => {
                self.tell(if number % 128 == 1 { Happened::Full } else { Happened::Stopped });
            }
            // What is told twice is told once.
            (14 | 15, _) if number.is_multiple_of(4) => {
                let before =
                    self.events.iter().rev().find(|(_, what)| matches!(what, Happened::Arrived(_) | Happened::Ended(..)));
                if let Some((_, what)) = before.cloned() {
                    self.tell(what);
                }
            }
            _ => self.tell(Happened::Look),
        }
    }

    /// Everybody arrives, and every attempt ends; false if that would go on for ever.
    pub fn end(&mut self) -> bool {
        while self.arrive() {}
        for _ in 0..100 * (self.case.tasks.len() + 1) {
            if self.live.is_empty() && self.acts.iter().any(|(_, act)| *act == Act::Over) {
                return true;
            }
            self.now_ns += self.case.rules.decide_every_ns.unwrap_or(1);
            let next = self.live.iter().next().map(|(id, live)| (*id, live.profiled && !live.gone, live.settled || live.gone));
            match next {
                Some((attempt, true, _)) => {
                    self.live.get_mut(&attempt).expect("it lives").profiled = false;
                    self.tell(Happened::Profiled(attempt, 400));
                }
                Some((attempt, _, false)) => self.settle(attempt, true),
                Some((attempt, _, true)) => self.tell(Happened::Ended(attempt, HowEnded::Completed)),
                None => {}
            }
            for card in 0..self.case.rules.cards.len() {
                self.sample(card, [8 * 16 * 1001 + 1001; 3]);
                let reading = *self.sampled[card].last().expect("sampled");
                self.tell(Happened::Read(CardId(card as u32), reading));
            }
        }
        false
    }
}
