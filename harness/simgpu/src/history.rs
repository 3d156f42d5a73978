//! What the cards did up to now, from the log of activity: piecewise constant, so every integral is exact.
//!
//! In: records in the order of their time. Out: [`History`], who is on which card, and per card the integrals of power and activity,
//! at any moment of the last two seconds or now.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::card::Card;
use crate::log::{Actor, Arrival, Event, Record};
use crate::model::{self, Activity, Load, Moment, Process, Slice};

/// How much of the past is kept for readings that look back.
const KEPT_NS: u64 = 3_000_000_000;
/// Pace while the card throttles.
const THROTTLED: f64 = 0.8;

/// A process on a card, or one of its threads; one that computes on several cards is a guest of each.
#[derive(Debug, Clone)]
pub struct Guest {
    pub actor: Actor,
    pub here: Arrival,
    pub bytes: u64,
    pub trains: bool,
    /// Of the slowest of its cards, for which the others wait.
    pub pace: f64,
    /// Seconds of solo work done while training.
    progress_s: f64,
}

/// Integrals over time, since the history began.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    pub at_ns: u64,
    pub energy_j: f64,
    /// In seconds, and bytes.
    pub card: Activity,
    pub instances: BTreeMap<u32, Activity>,
}

#[derive(Debug)]
struct Track {
    totals: Totals,
    now: Moment,
    /// Totals at past events, with what happened since each.
    past: VecDeque<(Totals, Moment)>,
}

/// All cards.
#[derive(Debug)]
pub struct History {
    cards: Vec<Arc<Card>>,
    tracks: Vec<Track>,
    pub guests: Vec<Guest>,
    at_ns: u64,
    /// How many have left.
    pub ended: u64,
    /// When anything first trained.
    pub first_train_ns: Option<u64>,
    timed: Timed,
    throttled: bool,
    /// Energy of each card when its counter began anew.
    reset_j: Option<Vec<f64>>,
}

/// What happens by itself, so many seconds after the first training.
#[derive(Debug, Clone, Copy, Default)]
pub struct Timed {
    pub throttle_s: Option<f64>,
    pub energy_reset_s: Option<f64>,
}

impl Totals {
    fn after(&self, now: &Moment, at_ns: u64) -> Totals {
        let seconds = at_ns.saturating_sub(self.at_ns) as f64 / 1e9;
        let mut next = self.clone();
        next.at_ns = next.at_ns.max(at_ns);
        next.energy_j += now.power_w * seconds;
        next.card = next.card.plus(now.card, seconds);
        for (gi, activity) in &now.instances {
            let sum = next.instances.entry(*gi).or_default();
            *sum = sum.plus(*activity, seconds);
        }
        next
    }
}

/// A moment at which every card was idle, and all that matters of what was before.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Base {
    pub at_ns: u64,
    /// Per card; none at the beginning.
    pub totals: Vec<Totals>,
    pub first_train_ns: Option<u64>,
    pub ended: u64,
    pub reset_j: Option<Vec<f64>>,
}

impl History {
    pub fn new(cards: &[Arc<Card>], base: &Base, timed: Timed) -> History {
        let begun = |card: usize| {
            let first = || Totals { at_ns: base.at_ns, ..Totals::default() };
            base.totals.get(card).cloned().unwrap_or_else(first)
        };
        let track = |(i, card): (usize, &Arc<Card>)| Track {
            totals: begun(i),
            now: model::moment(card, &[], 1.0),
            past: VecDeque::new(),
        };
        History {
            cards: cards.to_vec(),
            tracks: cards.iter().enumerate().map(track).collect(),
            guests: Vec::new(),
            at_ns: base.at_ns,
            ended: base.ended,
            first_train_ns: base.first_train_ns,
            timed,
            throttled: false,
            reset_j: base.reset_j.clone(),
        }
    }

    /// What matters of all this once every card is idle.
    pub fn base(&self, now_ns: u64) -> Base {
        Base {
            at_ns: now_ns,
            totals: (0..self.cards.len()).map(|card| self.totals(card, now_ns)).collect(),
            first_train_ns: self.first_train_ns,
            ended: self.ended,
            reset_j: self.reset_j.clone(),
        }
    }

    pub fn take(&mut self, records: Vec<Record>) {
        for record in records {
            self.pass(record.at_ns);
            self.apply(record);
        }
    }

    /// Let what happens by itself happen, if its time has come.
    pub fn pass(&mut self, now_ns: u64) {
        let Some(first) = self.first_train_ns else { return };
        let due = |after_s: Option<f64>| after_s.map(|s| first + (s * 1e9) as u64).filter(|at| *at <= now_ns);
        if let (Some(at_ns), false) = (due(self.timed.throttle_s), self.throttled) {
            self.go_to(at_ns);
            self.throttled = true;
            self.settle(&(0..self.cards.len()).collect::<Vec<_>>());
        }
        if let (Some(at_ns), None) = (due(self.timed.energy_reset_s), &self.reset_j) {
            self.reset_j = Some((0..self.cards.len()).map(|card| self.totals(card, at_ns).energy_j).collect());
        }
    }

    /// Energy of a card when its counter began anew, if it did.
    pub fn reset_j(&self, card: usize) -> Option<f64> {
        self.reset_j.as_ref().map(|all| all[card])
    }

    pub fn is_throttled(&self) -> bool {
        self.throttled
    }

    fn apply(&mut self, record: Record) {
        self.go_to(record.at_ns);
        let Record { actor, event, .. } = record;
        let cards = match event {
            Event::Start(here) => {
                // Of a pid that is another process by now nothing is left.
                let is_other = |g: &Guest| g.here.card != here.card || g.actor != actor;
                self.guests.retain(|g| g.actor.pid != actor.pid || (g.here.born == here.born && is_other(g)));
                let card = here.card;
                self.guests.push(Guest { actor, bytes: here.bytes, here, trains: false, pace: 0.0, progress_s: 0.0 });
                vec![card]
            }
            Event::End => {
                let leaves = |g: &Guest| g.actor == actor || g.actor.process() == actor;
                let cards: Vec<usize> = self.guests.iter().filter(|g| leaves(g)).map(|g| g.here.card).collect();
                self.ended += u64::from(!cards.is_empty());
                self.guests.retain(|g| !leaves(g));
                cards
            }
            Event::Memory { card, bytes } => {
                self.guests.iter_mut().filter(|g| g.actor == actor && g.here.card == card).for_each(|g| g.bytes = bytes);
                Vec::new()
            }
            Event::Warm | Event::Train | Event::Idle => {
                if event == Event::Train {
                    self.first_train_ns.get_or_insert(record.at_ns);
                }
                self.guests.iter_mut().filter(|g| g.actor == actor).for_each(|g| g.trains = event != Event::Idle);
                self.cards_of(actor)
            }
        };
        self.settle(&cards);
    }

    fn cards_of(&self, actor: Actor) -> Vec<usize> {
        self.guests.iter().filter(|g| g.actor == actor).map(|g| g.here.card).collect()
    }

    /// Bring every integral to this moment.
    fn go_to(&mut self, at_ns: u64) {
        if at_ns <= self.at_ns {
            return;
        }
        let seconds = (at_ns - self.at_ns) as f64 / 1e9;
        for track in &mut self.tracks {
            track.past.push_back((track.totals.clone(), track.now.clone()));
            while track.past.front().is_some_and(|(t, _)| t.at_ns + KEPT_NS < at_ns) && track.past.len() > 1 {
                track.past.pop_front();
            }
            track.totals = track.totals.after(&track.now, at_ns);
        }
        self.guests.iter_mut().for_each(|g| g.progress_s += g.pace * seconds);
        self.at_ns = at_ns;
    }

    /// Work out anew how everybody on these cards gets on, and on the others of whoever is on several.
    fn settle(&mut self, changed: &[usize]) {
        let is_on_several = |g: &Guest| self.guests.iter().any(|other| other.actor == g.actor && other.here.card != g.here.card);
        let everywhere = self.guests.iter().any(is_on_several);
        let all = 0..self.cards.len();
        let cards: Vec<usize> = all.filter(|card| everywhere || changed.contains(card)).collect();
        let throttle = if self.throttled { THROTTLED } else { 1.0 };
        let training = |guests: &[Guest], card: usize| -> Vec<usize> {
            (0..guests.len()).filter(|&i| guests[i].here.card == card && guests[i].trains).collect()
        };
        // What each would do if it had no other card to wait for.
        let mut own = vec![0.0; self.guests.len()];
        for &card in &cards {
            let here = training(&self.guests, card);
            let loads: Vec<Load> = here.iter().map(|&i| load(&self.guests[i])).collect();
            let now = model::moment(&self.cards[card], &loads, throttle);
            here.iter().zip(&now.paces).for_each(|(&i, pace)| own[i] = *pace);
            self.tracks[card].now = now;
        }
        let slowest = |i: usize| {
            let of_it = (0..own.len()).filter(|&j| self.guests[j].actor == self.guests[i].actor);
            of_it.map(|j| own[j]).fold(f64::INFINITY, f64::min)
        };
        let paces: Vec<f64> = (0..own.len()).map(slowest).collect();
        for &card in &cards {
            let here = training(&self.guests, card);
            if here.iter().any(|&i| paces[i] < own[i]) {
                // A card that waits for another is idle meanwhile.
                let waiting = |&i: &usize| {
                    let alone = load(&self.guests[i]);
                    Load { pace: alone.pace * paces[i] / own[i], ..alone }
                };
                let loads: Vec<Load> = here.iter().map(waiting).collect();
                self.tracks[card].now = model::moment(&self.cards[card], &loads, throttle);
            }
        }
        for (guest, pace) in self.guests.iter_mut().zip(paces).filter(|(guest, _)| cards.contains(&guest.here.card)) {
            guest.pace = if guest.trains { pace } else { 0.0 };
        }
    }

    pub fn guest(&self, actor: impl Into<Actor>) -> Option<&Guest> {
        let actor = actor.into();
        self.guests.iter().find(|g| g.actor == actor)
    }

    /// Seconds of solo work that a process has done by now.
    pub fn progress_s(&self, guest: &Guest, now_ns: u64) -> f64 {
        guest.progress_s + guest.pace * now_ns.saturating_sub(self.at_ns) as f64 / 1e9
    }

    /// The integrals of a card at a moment, which is now or up to two seconds past.
    pub fn totals(&self, card: usize, at_ns: u64) -> Totals {
        let track = &self.tracks[card];
        if at_ns >= track.totals.at_ns {
            return track.totals.after(&track.now, at_ns);
        }
        let before = track.past.iter().rev().find(|(t, _)| t.at_ns <= at_ns).or(track.past.front());
        before.map_or_else(|| track.totals.clone(), |(totals, then)| totals.after(then, at_ns))
    }

    /// What a card does now.
    pub fn now(&self, card: usize) -> &Moment {
        &self.tracks[card].now
    }

    /// Mean activity and power of a card over the last so many nanoseconds.
    pub fn mean(&self, card: usize, now_ns: u64, window_ns: u64) -> (Activity, f64) {
        let (a, b) = (self.totals(card, now_ns.saturating_sub(window_ns)), self.totals(card, now_ns));
        let seconds = b.at_ns.saturating_sub(a.at_ns) as f64 / 1e9;
        if seconds <= 0.0 {
            return (self.now(card).card, self.now(card).power_w);
        }
        let zero = Activity::default();
        let sum = b.card.plus(a.card, -1.0);
        (zero.plus(sum, 1.0 / seconds), (b.energy_j - a.energy_j) / seconds)
    }
}

fn load(guest: &Guest) -> Load {
    let here = &guest.here;
    let slice = here.gi.map(|gpu_instance| Slice {
        gpu_instance,
        compute_instance: here.ci.unwrap_or(0),
        sms: here.sms,
        memory: here.memory,
    });
    let process = here.lock.map(|lock| Process { pid: guest.actor.pid, lock });
    let Arrival { u, a, m, pcie, occupancy, cap, server, pace, .. } = *here;
    Load { u, a, m, pcie, occupancy, cap, server, process, slice, pace }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn arrival() -> Arrival {
        let text =
            r#"{"born":1,"card":0,"gi":null,"ci":null,"server":null,"bytes":5,"cap":null,"u":0.5,"a":0.34,"m":0.1,"pace":1.0}"#;
        serde_json::from_str(text).unwrap()
    }

    fn at(seconds: f64, pid: u32, event: Event) -> Record {
        Record { at_ns: (seconds * 1e9) as u64, actor: pid.into(), event }
    }

    fn history(throttle_s: Option<f64>) -> History {
        History::new(&[Arc::new(Card::find("a100-40gb").unwrap())], &Base::default(), Timed { throttle_s, energy_reset_s: None })
    }

    #[test]
    fn energy_is_the_exact_integral_of_power() {
        let mut h = history(None);
        let idle = h.now(0).power_w;
        h.take(vec![at(2.0, 7, Event::Start(arrival())), at(2.0, 7, Event::Train)]);
        let busy = h.now(0).power_w;
        h.take(vec![at(5.0, 7, Event::End)]);
        assert!(busy > idle);
        let wanted = 2.0 * idle + 3.0 * busy + 4.0 * idle;
        assert!((h.totals(0, 9 * S).energy_j - wanted).abs() < 1e-6);
        let looking_back = 2.0 * idle + 1.5 * busy;
        assert!((h.totals(0, 7 * S / 2).energy_j - looking_back).abs() < 1e-6);
    }

    #[test]
    fn two_that_train_together_get_on_at_the_models_pace() {
        let mut h = history(None);
        let both = [7, 8].map(|pid| at(1.0, pid, Event::Start(arrival())));
        h.take(both.into_iter().chain([7, 8].map(|pid| at(1.0, pid, Event::Train))).collect());
        let guest = h.guest(7).unwrap();
        assert!((h.progress_s(guest, 3 * S) - 2.0 * 0.7565).abs() < 0.01);
        h.take(vec![at(3.0, 8, Event::End)]);
        let guest = h.guest(7).unwrap();
        assert!((h.progress_s(guest, 4 * S) - (2.0 * 0.7565 + 1.0)).abs() < 0.01);
    }

    #[test]
    fn who_is_on_two_cards_goes_at_the_pace_of_the_slower_one_and_the_other_waits() {
        let a100 = Arc::new(Card::find("a100-40gb").unwrap());
        let mut h = History::new(&[a100.clone(), a100], &Base::default(), Timed::default());
        let on = |card: usize| Event::Start(Arrival { card, ..arrival() });
        h.take(vec![at(1.0, 7, on(0)), at(1.0, 7, on(1)), at(1.0, 7, Event::Train)]);
        assert_eq!((h.guests.len(), h.guest(7).unwrap().pace), (2, 1.0));
        let alone_sm = h.now(0).card.sm;
        h.take(vec![at(3.0, 8, on(1)), at(3.0, 8, Event::Train)]);
        let [pace, beside] = [7, 8].map(|pid| h.guest(pid).unwrap().pace);
        assert!((pace - 0.7565).abs() < 0.01 && beside == pace, "{pace} {beside}");
        assert!((h.now(0).card.sm / alone_sm - pace).abs() < 1e-9, "the card without company waits");
        assert!((h.progress_s(h.guest(7).unwrap(), 5 * S) - (2.0 + 2.0 * pace)).abs() < 0.01);
        h.take(vec![at(5.0, 7, Event::Memory { card: 1, bytes: 9 }), at(5.0, 8, Event::End)]);
        assert_eq!(h.guests.iter().map(|g| (g.here.card, g.bytes)).collect::<Vec<_>>(), [(0, 5), (1, 9)]);
        assert_eq!(h.guest(7).unwrap().pace, 1.0);
        h.take(vec![at(6.0, 7, Event::End)]);
        assert_eq!((h.guests.len(), h.ended), (0, 2));
        assert_eq!(h.now(0).card, Activity::default());
    }

    #[test]
    fn a_history_goes_on_from_its_base() {
        let mut whole = history(None);
        whole.take(vec![at(1.0, 7, Event::Start(arrival())), at(1.0, 7, Event::Train), at(3.0, 7, Event::End)]);
        let base = whole.base(4 * S);
        let mut rest = History::new(&whole.cards, &base, Timed::default());
        let later = vec![at(5.0, 8, Event::Start(arrival())), at(5.0, 8, Event::Train)];
        whole.take(later.clone());
        rest.take(later);
        assert_eq!((rest.first_train_ns, rest.ended), (Some(S), 1));
        let (a, b) = (whole.totals(0, 7 * S), rest.totals(0, 7 * S));
        assert!((a.energy_j - b.energy_j).abs() < 1e-6 && (a.card.sm - b.card.sm).abs() < 1e-9);
    }

    #[test]
    fn throttling_begins_on_time_though_nothing_else_happens() {
        let mut h = history(Some(1.0));
        h.take(vec![at(1.0, 7, Event::Start(arrival())), at(1.0, 7, Event::Train)]);
        h.pass(4 * S);
        assert!(h.is_throttled());
        let guest = h.guest(7).unwrap();
        assert!((h.progress_s(guest, 4 * S) - (1.0 + 2.0 * 0.8)).abs() < 1e-6);
    }
}
