//! The books of the cards: who is on which, what was promised, what was read.

use crate::WHOLE_PERMILLE;
use crate::event::Reading;
use crate::rules::SiteCard;
use crate::task::{AttemptId, CardId, Task, TaskId};
use crate::view::CardView;

/// Who is on a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resident {
    pub attempt: AttemptId,
    pub task: TaskId,
    pub believed_permille: Option<u32>,
    /// Set aside for it until a reading counts it: its estimate, without one the whole card.
    pub promise_bytes: u64,
    /// The promise is an estimate.
    is_estimated: bool,
    /// What was free on the card when it came: so much the others had left.
    found_free_bytes: u64,
    pub settled_ns: Option<u64>,
    /// What it holds by its own reading.
    pub held_bytes: Option<u64>,
    pub profiled: bool,
    /// The reading of the card has it.
    read: bool,
    company: Company,
    /// Somebody came to its card after it.
    joined: bool,
}

/// Since when somebody has a card for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Company {
    NeverHad,
    Has,
    LeftAt(u64),
}

#[derive(Debug, Default)]
struct Books {
    reserve_bytes: u64,
    residents: Vec<Resident>,
    /// As read, less the reserve.
    read_bytes: Option<u64>,
    /// What those held who were read and have left since.
    returned_bytes: u64,
    /// Somebody has left since the reading.
    outdated: bool,
    left_ns: u64,
}

/// The cards of a site: what is scanned lies together, and what is behind it apart.
#[derive(Debug)]
pub(crate) struct Cards {
    pub views: Vec<CardView>,
    books: Vec<Books>,
}

/// How an attempt left its cards.
pub(crate) struct Departure {
    pub newcomer: bool,
    pub alone: bool,
    /// The least that was free on any of them when it came.
    pub free_bytes: u64,
}

impl Cards {
    pub fn of(site: &[SiteCard]) -> Cards {
        let view = |(card, of): (u32, &SiteCard)| {
            let usable_bytes = of.capacity_bytes.saturating_sub(of.reserve_bytes);
            CardView {
                card: CardId(card),
                node: of.node,
                usable_bytes,
                free_bytes: usable_bytes,
                promised_bytes: 0,
                residents: 0,
                unsettled: 0,
                believed_permille: 0,
                sm_permille: None,
                occupancy_permille: None,
                dram_permille: None,
                read_ns: None,
                profiled: false,
                lost: false,
            }
        };
        let books = |of: &SiteCard| Books { reserve_bytes: of.reserve_bytes, ..Books::default() };
        Cards { views: (0..).zip(site).map(view).collect(), books: site.iter().map(books).collect() }
    }

    pub fn residents(&self, card: CardId) -> &[Resident] {
        self.books.get(card.0 as usize).map_or(&[], |books| &books.residents)
    }

    pub fn place(&mut self, attempt: AttemptId, task: &Task, cards: &[CardId], profiled: bool) {
        for card in cards {
            let at = card.0 as usize;
            let CardView { usable_bytes, free_bytes, .. } = self.views[at];
            let residents = &mut self.books[at].residents;
            residents.iter_mut().for_each(|resident| (resident.company, resident.joined) = (Company::Has, true));
            residents.push(Resident {
                attempt,
                task: task.id,
                believed_permille: task.believed_permille,
                promise_bytes: task.estimate_bytes.map_or(usable_bytes, |bytes| bytes.min(usable_bytes)),
                is_estimated: task.estimate_bytes.is_some(),
                found_free_bytes: free_bytes,
                settled_ns: None,
                held_bytes: None,
                profiled,
                read: false,
                company: if residents.is_empty() { Company::NeverHad } else { Company::Has },
                joined: false,
            });
            self.refresh(at);
        }
    }

    /// Change what is known of an attempt on each of its cards.
    pub fn change(&mut self, attempt: AttemptId, cards: &[CardId], change: impl Fn(&mut Resident)) {
        for card in cards {
            let at = card.0 as usize;
            self.books[at].residents.iter_mut().filter(|resident| resident.attempt == attempt).for_each(&change);
            self.refresh(at);
        }
    }

    pub fn leave(&mut self, attempt: AttemptId, cards: &[CardId], now_ns: u64, window_ns: u64) -> Departure {
        let mut left = Departure { newcomer: true, alone: true, free_bytes: u64::MAX };
        for card in cards {
            let at = card.0 as usize;
            let books = &mut self.books[at];
            let Some(found) = books.residents.iter().position(|resident| resident.attempt == attempt) else { continue };
            let gone = books.residents.remove(found);
            let alone = match gone.company {
                Company::NeverHad => true,
                Company::Has => false,
                Company::LeftAt(ns) => now_ns.saturating_sub(ns) >= window_ns,
            };
            // Whoever came to it may have left a moment before, for want of the same memory. One that never had all of its own memory has not
            // grown.
            left.newcomer &= alone || !gone.joined || gone.settled_ns.is_none();
            left.alone &= alone;
            if let [last] = books.residents.as_mut_slice() {
                last.company = Company::LeftAt(now_ns);
            }
            if gone.read {
                books.returned_bytes = books.returned_bytes.saturating_add(gone.held_bytes.unwrap_or_default());
            }
            (books.outdated, books.left_ns) = (true, now_ns);
            self.refresh(at);
            left.free_bytes = left.free_bytes.min(gone.found_free_bytes);
        }
        left
    }

    /// Take somebody off its card for a moment, as if it had never come.
    pub fn lift(&mut self, attempt: AttemptId, card: CardId) -> Option<Resident> {
        let at = card.0 as usize;
        let residents = &mut self.books.get_mut(at)?.residents;
        let found = residents.iter().position(|resident| resident.attempt == attempt)?;
        let lifted = residents.remove(found);
        self.refresh(at);
        Some(lifted)
    }

    pub fn put_back(&mut self, resident: Resident, card: CardId) {
        let at = card.0 as usize;
        let residents = &mut self.books[at].residents;
        residents.push(resident);
        if residents.len() > 1 {
            // Whoever came meanwhile has company from the beginning.
            residents.iter_mut().for_each(|resident| resident.company = Company::Has);
        }
        self.refresh(at);
    }

    /// False if an older reading came late, or of no card.
    pub fn read(&mut self, card: CardId, reading: Reading) -> bool {
        let at = card.0 as usize;
        let Some(view) = self.views.get_mut(at) else { return false };
        if view.read_ns.is_some_and(|before| before > reading.read_ns) {
            return false;
        }
        (view.sm_permille, view.occupancy_permille) = (reading.sm_permille, reading.occupancy_permille);
        (view.dram_permille, view.read_ns) = (reading.dram_permille, Some(reading.read_ns));
        let books = &mut self.books[at];
        books.read_bytes = reading.free_bytes.map(|bytes| bytes.saturating_sub(books.reserve_bytes));
        if books.left_ns <= reading.read_ns {
            (books.outdated, books.returned_bytes) = (false, 0);
        }
        let counts = books.read_bytes.is_some();
        for resident in &mut books.residents {
            resident.read = counts && resident.settled_ns.is_some_and(|ns| ns < reading.read_ns);
        }
        self.refresh(at);
        true
    }

    pub fn lose(&mut self, card: CardId) {
        self.views.get_mut(card.0 as usize).into_iter().for_each(|view| view.lost = true);
    }

    /// What is seen of a card, after something has changed behind it.
    fn refresh(&mut self, at: usize) {
        let (view, books) = (&mut self.views[at], &self.books[at]);
        let usable = view.usable_bytes;
        let (mut unread_held, mut read_held, mut promised) = (0u64, 0u64, 0u64);
        (view.residents, view.unsettled, view.believed_permille, view.profiled) = (0, 0, 0, false);
        for resident in &books.residents {
            view.residents += 1;
            view.unsettled += u32::from(resident.settled_ns.is_none());
            view.profiled |= resident.profiled;
            let believed = resident.believed_permille.unwrap_or(WHOLE_PERMILLE);
            view.believed_permille = view.believed_permille.saturating_add(believed);
            match (resident.settled_ns, resident.read, resident.held_bytes) {
                // Without an estimate the reading alone shows what it holds.
                (Some(_), true, held) => {
                    let estimate = || if resident.is_estimated { resident.promise_bytes } else { 0 };
                    read_held = read_held.saturating_add(held.unwrap_or_else(estimate));
                }
                (Some(_), false, Some(held)) => unread_held = unread_held.saturating_add(held),
                _ => promised = promised.saturating_add(resident.promise_bytes),
            }
        }
        let before = match books.read_bytes {
            // A reading before the last one left says nothing of an idle card.
            Some(_) if books.outdated && books.residents.is_empty() => usable,
            Some(read) if books.outdated => usable.saturating_sub(read_held).min(read.saturating_add(books.returned_bytes)),
            Some(read) => read,
            None => usable,
        };
        view.free_bytes = before.min(usable).saturating_sub(unread_held);
        view.promised_bytes = promised;
    }
}
