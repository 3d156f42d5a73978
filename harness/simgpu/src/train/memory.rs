//! The memory that a simulated member holds, and the end that it comes to where there is none left.

use serde_json::json;

use super::cards::UNAVAILABLE;
use super::member::{End, MIB, Member, cuda_error, failed};
use crate::clock;
use crate::history::Guest;
use crate::log::{Arrival, Event};
use crate::state::EXCLUSIVE_PROCESS;
use crate::visible::Place;
use crate::workload::CONTEXT_MIB;

enum NoRoom {
    /// The card takes one process at a time, and another has it.
    Taken,
    /// On the how-manieth of its cards, how much was asked of it and how much is free.
    Bytes {
        nth: usize,
        asked: u64,
        free: u64,
    },
    Folder(String),
}

impl From<String> for NoRoom {
    fn from(why: String) -> NoRoom {
        NoRoom::Folder(why)
    }
}

impl Member {
    /// What its own context takes on a card; a thread has that of its process.
    pub(super) fn context_mib(&self) -> u64 {
        if self.hosted.is_some() { 0 } else { CONTEXT_MIB }
    }

    /// Have a context on each card, its own or that of its process.
    pub(super) fn come(&mut self, arrivals: Vec<Arrival>) -> Result<(), End> {
        self.hold(arrivals.into_iter().map(|here| (here.bytes, Event::Start(here))).collect(), true)
    }

    /// Hold what training takes, and so many MiB more on each card.
    pub(super) fn hold_training(&mut self, more_mib: u64) -> Result<(), End> {
        let held = |(nth, place): (usize, &Place)| {
            let bytes = (self.context_mib() + self.workload.memory_mib_on(nth) + more_mib) * MIB;
            (bytes, Event::Memory { card: place.card, bytes })
        };
        let held = self.places.iter().enumerate().map(held).collect();
        self.hold(held, false)?;
        self.grown_mib = more_mib;
        Ok(())
    }

    /// Hold so many bytes on each card, all told, if there is room for them on all.
    fn hold(&mut self, held: Vec<(u64, Event)>, begins: bool) -> Result<(), End> {
        let (me, hosted) = (self.actor, self.hosted.is_some());
        let (places, limits, client) = (self.places.clone(), self.limits_bytes.clone(), self.client.is_some());
        let foreign_bytes = crate::nvml::foreign(&self.sim).map_or(0, |_| crate::nvml::foreign_bytes(&self.sim));
        let refused = self.sim.append_if(|sim| {
            // Looked at under the lock: of two that come at the same moment one is the second.
            let mut contexts = Vec::new();
            for (nth, (place, (bytes, event))) in places.iter().zip(&held).enumerate() {
                let mut asked = *bytes;
                let exclusive = begins && !client && sim.state().cards[place.card].compute_mode == EXCLUSIVE_PROCESS;
                let is_other = |g: &Guest| g.actor.pid != me.pid && clock::lives(g.actor.pid, g.here.born);
                let is_there = |g: &Guest| g.here.card == place.card && is_other(g);
                if exclusive && sim.history().guests.iter().any(is_there) {
                    return Err(NoRoom::Taken);
                }
                let process = me.process();
                let has_context = || sim.history().guests.iter().any(|g| g.actor == process && g.here.card == place.card);
                if let (true, Event::Start(here)) = (begins && hosted && !has_context(), event) {
                    let bytes = CONTEXT_MIB * MIB;
                    asked += bytes;
                    contexts.push((
                        process,
                        Event::Start(Arrival { bytes, lock: None, u: 0.0, a: 0.0, m: 0.0, pcie: 0.0, ..here.clone() }),
                    ));
                }
                let gi = place.mig.map(|(gi, _)| gi);
                let is_beside = |g: &&Guest| g.here.card == place.card && g.here.gi == gi && g.actor != me;
                let others: u64 = sim.history().guests.iter().filter(is_beside).map(|g| g.bytes).sum();
                let foreign = if place.card == sim.first_card() && place.mig.is_none() { foreign_bytes } else { 0 };
                let free = place.memory_bytes.saturating_sub(others + foreign).min(limits[nth].unwrap_or(u64::MAX));
                if asked > free {
                    return Err(NoRoom::Bytes { nth, asked, free });
                }
            }
            contexts.extend(held.into_iter().map(|(_, event)| (me, event)));
            Ok(contexts)
        });
        match refused {
            Ok(()) => Ok(()),
            Err(NoRoom::Bytes { nth, asked, free }) => Err(self.out_of_memory(nth, asked, free)),
            Err(NoRoom::Taken) => Err(cuda_error(UNAVAILABLE)),
            Err(NoRoom::Folder(why)) => Err(failed("other", why)),
        }
    }

    pub(super) fn out_of_memory(&self, nth: usize, asked: u64, free: u64) -> End {
        let gib = |bytes: u64| bytes as f64 / (1u64 << 30) as f64;
        let missing = asked.saturating_sub(free).max(20 * MIB) as f64 / MIB as f64;
        let (capacity, free) = (gib(self.places[nth].memory_bytes), free as f64 / MIB as f64);
        let free = free.min(missing);
        let words = format!(
            "CUDA out of memory. Tried to allocate {missing:.2} MiB. GPU {nth} has a total capacity of {capacity:.2} GiB of which \
             {free:.2} MiB is free."
        );
        failed("out_of_memory", words)
    }

    /// Peaks of its allocator, which threads share: none of them has its own.
    pub(super) fn tell_memory(&self) {
        if self.hosted.is_some() {
            return;
        }
        let reserved = (self.workload.memory_mib_on(0) + self.grown_mib) * MIB;
        self.channel.say("memory", json!({ "allocated_bytes": reserved * 9 / 10, "reserved_bytes": reserved }));
    }
}
