//! A card of the projection: who is on it, at which pace, and exactly what it has done.

use super::paces::{ALONE_PPM, Paces};
use super::{CardTotals, Work};
use collo_schedule::{Attempt, WHOLE_PERMILLE};

/// Work in millionths of a nanosecond alone.
pub(super) type Left = u128;

/// All the work of a task.
pub(super) fn whole(work: Work) -> Left {
    Left::from(work.solo_ns) * Left::from(ALONE_PPM)
}

#[derive(Debug)]
pub(super) struct OnCard {
    pub attempt: Attempt,
    pub work: Work,
    pub left: Left,
    /// What was left when it started: where it falls back to if it runs out of memory.
    pub left_at_start: Left,
    pub started_ns: u64,
    pub held_bytes: Option<u64>,
    pace_ppm: u32,
}

impl OnCard {
    pub fn new(attempt: Attempt, work: Work, left: Left, started_ns: u64) -> OnCard {
        OnCard { attempt, work, left, left_at_start: left, started_ns, held_bytes: None, pace_ppm: 0 }
    }
}

#[derive(Debug)]
pub(super) struct Card {
    pub capacity_bytes: u64,
    pub residents: Vec<OnCard>,
    /// Counts changes of who is here: when somebody ends was computed for one of them, and after the next finds nobody.
    pub version: u64,
    pub totals: CardTotals,
    known_ns: u64,
}

impl Card {
    pub fn new(capacity_bytes: u64) -> Card {
        Card { capacity_bytes, residents: Vec::new(), version: 0, totals: CardTotals::default(), known_ns: 0 }
    }

    /// Let time pass.
    pub fn until(&mut self, now_ns: u64) {
        let passed = u128::from(now_ns - self.known_ns);
        self.known_ns = now_ns;
        let utilisation: u32 = self.residents.iter().map(|r| r.work.utilisation_permille).sum();
        self.totals.read_permille_ns += passed * u128::from(utilisation.min(WHOLE_PERMILLE));
        self.totals.in_use_ns += if self.residents.is_empty() { 0 } else { passed };
        for resident in &mut self.residents {
            let done = resident.left.min(passed * u128::from(resident.pace_ppm));
            resident.left -= done;
            self.totals.done += done * u128::from(resident.work.utilisation_permille);
        }
    }

    /// Who is here has changed: the new paces, and when the next one ends.
    pub fn pace(&mut self, paces: &dyn Paces) -> Option<u64> {
        self.version += 1;
        let works: Vec<Work> = self.residents.iter().map(|r| r.work).collect();
        let paces = paces.paces(&works);
        self.residents.iter_mut().zip(paces).for_each(|(resident, pace)| resident.pace_ppm = pace);
        let ends = self.residents.iter().map(|r| r.left.div_ceil(u128::from(r.pace_ppm.max(1))));
        ends.min().map(|after| self.known_ns + u64::try_from(after).unwrap_or(u64::MAX - self.known_ns))
    }

    pub fn free_bytes(&self) -> u64 {
        self.capacity_bytes - self.residents.iter().filter_map(|r| r.held_bytes).sum::<u64>()
    }
}
