//! What to do now: who is asked for, in which order, and what is written of it.

use std::cmp::Reverse;

use super::Ledger;
use super::choice::{Asking, Choice, Waits};
use crate::account::{Ended, State};
use crate::cards::Resident;
use crate::decided::{Decided, Decision, WhyNot};
use crate::event::{Act, Why};
use crate::queue::Discipline;
use crate::rules::Keeps;
use crate::task::{AttemptId, CardId, Task, TaskId};

/// What came of asking for a task.
enum Asked {
    /// It waits no longer.
    Gone,
    Waits(Waits),
}

impl Ledger {
    /// Decide, once everything of the moment is booked.
    pub fn decide(&mut self, now_ns: u64, acts: &mut Vec<Act>) {
        self.pass_time(now_ns);
        let now_ns = self.now_ns;
        let look_ns = match self.site.decide_every_ns {
            Some(_) if now_ns < self.due_ns => Some(self.due_ns),
            every => {
                self.due_ns = every.map_or(0, |every| (now_ns / every).saturating_add(1).saturating_mul(every));
                let look_ns = if self.closed { None } else { self.ask_all(acts) };
                every.map_or(look_ns, |_| Some(self.due_ns))
            }
        };
        if let Some(at_ns) = look_ns
            && !self.queue.is_empty()
            && self.look_ns.is_none_or(|before| at_ns < before)
        {
            self.look_ns = Some(at_ns);
            acts.push(Act::LookAt(at_ns));
        }
        if !self.over && self.live.is_empty() && (self.closed || self.is_through()) {
            self.over = true;
            acts.push(Act::Over);
        }
    }

    /// Everybody who was promised has arrived, and nobody waits.
    fn is_through(&self) -> bool {
        self.expected.is_some_and(|expected| self.tasks.len() >= expected) && self.queue.is_empty()
    }

    /// Ask for everybody whose turn it is; with the earliest moment at which it is worth asking again.
    fn ask_all(&mut self, acts: &mut Vec<Act>) -> Option<u64> {
        self.blocks = None;
        self.place_profiled(acts);
        let mut look_ns = None;
        for id in self.queue.recovering() {
            self.keep();
            match self.ask(id, acts) {
                Asked::Waits(waits) => look_ns = earlier(look_ns, waits.look_ns),
                Asked::Gone if self.was_the_one(id) => {
                    self.keep();
                    return look_ns;
                }
                Asked::Gone => {}
            }
        }
        self.keep();
        match self.queue.discipline {
            Discipline::Fifo { pass } => earlier(look_ns, self.ask_in_order(pass, acts)),
            Discipline::One => earlier(look_ns, self.ask_in_order(0, acts)),
            Discipline::Decreasing => {
                let mut behind: Option<Task> = None;
                while let Some(id) = self.queue.after(behind.as_ref()) {
                    behind = self.tasks.get(&id).map(|entry| entry.account.task.clone());
                    if let Asked::Waits(waits) = self.ask(id, acts) {
                        look_ns = earlier(look_ns, waits.look_ns);
                    }
                }
                look_ns
            }
        }
    }

    /// It was placed, and the queue places no more than one at a time.
    fn was_the_one(&self, id: TaskId) -> bool {
        self.queue.discipline == Discipline::One && self.state(id) == Some(State::Starting)
    }

    /// The first of the queue; while it waits, those behind it, as far as they may pass.
    fn ask_in_order(&mut self, pass: u32, acts: &mut Vec<Act>) -> Option<u64> {
        let mut look_ns = None;
        let mut ahead: Vec<TaskId> = Vec::new();
        let mut behind: Option<Task> = None;
        while let Some(id) = self.queue.after(behind.as_ref()) {
            let was_passed_enough = |id: &TaskId| self.tasks.get(id).is_none_or(|entry| entry.passed >= pass);
            if ahead.len() > pass as usize || ahead.iter().any(was_passed_enough) {
                break;
            }
            behind = self.tasks.get(&id).map(|entry| entry.account.task.clone());
            match self.ask(id, acts) {
                Asked::Waits(waits) => {
                    look_ns = earlier(look_ns, waits.look_ns);
                    ahead.push(id);
                }
                Asked::Gone if self.was_the_one(id) => break,
                Asked::Gone if self.state(id) == Some(State::Starting) => {
                    for id in &ahead {
                        self.tasks.get_mut(id).into_iter().for_each(|entry| entry.passed += 1);
                    }
                }
                Asked::Gone => {}
            }
        }
        if let Some(first) = ahead.first()
            && self.queue.modest().into_iter().any(|id| self.fits(id))
        {
            self.blocks = Some((*first, self.now_ns));
        }
        look_ns
    }

    fn fits(&self, id: TaskId) -> bool {
        self.asking(id).is_some_and(|asking| matches!(self.choose(&asking), Choice::Cards(_)))
    }

    /// Keep cards free for the first task that waits for another attempt.
    fn keep(&mut self) {
        let keeper = self.queue.first_recovering().filter(|_| self.site.recovery_keeps != Keeps::Nothing);
        if self.kept.as_ref().map(|(keeper, _)| *keeper) == keeper {
            return;
        }
        let wanted = keeper.and_then(|id| self.tasks.get(&id)).map_or(0, |entry| entry.account.task.cards as usize);
        self.kept = keeper.map(|id| (id, self.to_keep(wanted)));
    }

    /// Ask for a task, and do what comes of it.
    fn ask(&mut self, id: TaskId, acts: &mut Vec<Act>) -> Asked {
        let Some(asking) = self.asking(id) else { return Asked::Gone };
        let (task, recovers) = (asking.task.clone(), asking.recovers);
        if task.cards == 0 || task.cards as usize > self.widest {
            let why = match (task.cards, self.widest) {
                (0, _) => "it asks for no card".into(),
                (_, 0) => "no card is left".into(),
                (1, _) => "it asks for 1 card".into(),
                (cards, 1) => format!("it asks for {cards} cards of one node, and no node has more than 1"),
                (cards, most) => format!("it asks for {cards} cards of one node, and no node has more than {most}"),
            };
            let record = self.record(&asking, Vec::new(), Decision::Never, why);
            self.write(record);
            self.queue.remove(&task, recovers);
            self.become_state(id, State::Never);
            return Asked::Gone;
        }
        match self.choose(&asking) {
            Choice::Cards(cards) => {
                let profile_ns = if asking.profile { self.site.policy.profile_ns(&task) } else { None };
                let why = self.why_here(&asking, &cards);
                let record = self.record(&asking, cards.clone(), Decision::Placed, why);
                self.queue.remove(&task, recovers);
                let attempt = self.start(id, cards, profile_ns, acts);
                self.write(record.map(|record| Decided { attempt, ..record }));
                Asked::Gone
            }
            Choice::Waits(waits) => {
                let reasons = waits.reasons | u32::from(waits.too_few) << 31;
                let news = self.tasks.get(&id).is_some_and(|entry| entry.reasons != Some(reasons));
                let record = if news { self.record(&asking, Vec::new(), Decision::Waits, why_not(&waits)) } else { None };
                self.write(record);
                self.tasks.get_mut(&id).into_iter().for_each(|entry| entry.reasons = Some(reasons));
                Asked::Waits(waits)
            }
        }
    }

    /// What is written of a decision; nothing if nobody wants to know.
    fn record(&self, asking: &Asking<'_>, cards: Vec<CardId>, outcome: Decision, why: String) -> Option<Decided> {
        self.decided.as_ref()?;
        let seen = self.seen(asking);
        Some(Decided { at_ns: self.now_ns, task: asking.task.id, attempt: None, cards, outcome, why, seen })
    }

    fn write(&mut self, record: Option<Decided>) {
        if let Some(all) = &mut self.decided {
            all.extend(record);
        }
    }

    fn why_here(&self, asking: &Asking<'_>, cards: &[CardId]) -> String {
        let idle = cards.iter().all(|card| self.cards.views.get(card.0 as usize).is_some_and(|view| view.is_idle()));
        match (asking.asks.is_some(), asking.profile, idle) {
            (_, true, _) => "an idle card, to be watched alone".into(),
            (true, _, true) => "an idle card, after it ran out of memory".into(),
            (true, _, false) => format!("more free than where it ran out of memory; {}", self.site.policy.picks()),
            (false, _, true) if self.site.idle_first => "an idle card".into(),
            (false, _, _) => self.site.policy.picks().into(),
        }
    }

    /// Who has been profiled is placed as if it had just come, the greatest first; who fits nowhere else stays.
    fn place_profiled(&mut self, acts: &mut Vec<Act>) {
        let mut profiled = std::mem::take(&mut self.profiled);
        profiled.retain(|id| self.state(*id).is_some_and(State::is_live));
        profiled.sort_by_key(|id| Reverse(self.tasks.get(id).and_then(|entry| entry.account.task.believed_permille)));
        let lifted: Vec<(TaskId, CardId, Resident)> = profiled.into_iter().filter_map(|id| self.lift(id)).collect();
        for (id, own, resident) in lifted {
            let elsewhere = self.asking(id).and_then(|asking| match self.choose(&asking) {
                Choice::Cards(cards) if cards != [own] => Some(cards),
                _ => None,
            });
            match elsewhere {
                Some(cards) => {
                    let record = self.asking(id).and_then(|asking| {
                        let why = format!("by what was seen of it: {}", self.site.policy.picks());
                        self.record(&asking, cards.clone(), Decision::Placed, why)
                    });
                    let attempt = self.moved(id, cards, acts);
                    self.write(record.map(|record| Decided { attempt, ..record }));
                }
                None => self.cards.put_back(resident, own),
            }
        }
    }

    fn lift(&mut self, id: TaskId) -> Option<(TaskId, CardId, Resident)> {
        let attempt = &self.tasks.get(&id)?.account.live()?.attempt;
        let (attempt, card) = (attempt.id, *attempt.cards.first()?);
        self.cards.lift(attempt, card).map(|resident| (id, card, resident))
    }

    fn moved(&mut self, id: TaskId, cards: Vec<CardId>, acts: &mut Vec<Act>) -> Option<AttemptId> {
        let now_ns = self.now_ns;
        let live = self.tasks.get_mut(&id)?.account.live_mut()?;
        live.ended_ns = Some(now_ns);
        live.ended = Some(Ended { how: None, newcomer: true, alone: true });
        let attempt = live.attempt.id;
        self.live.remove(&attempt);
        acts.push(Act::Stop(attempt, Why::Moved));
        self.start(id, cards, None, acts)
    }
}

fn earlier(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

/// The reasons of all cards, in a sentence without numbers.
fn why_not(waits: &Waits) -> String {
    let reasons: Vec<&str> = WhyNot::ALL.iter().filter(|why| waits.reasons & why.bit() != 0).map(|why| why.words()).collect();
    match (waits.too_few, reasons.is_empty()) {
        (true, true) => "too few cards of one node".into(),
        (true, false) => format!("too few cards of one node; of others: {}", reasons.join(", ")),
        (false, _) => format!("no card: {}", reasons.join(", ")),
    }
}
