//! The books: which task is in which state, who is on which card. In: what happened. Out: what to do. It knows no process, no clock, and
//! nothing of a task that nobody has seen yet, so that processes and events are served by the same decisions.

mod choice;
mod decide;

use std::collections::BTreeMap;

use collo_text::Diagnostic;

use crate::account::{AttemptAccount, Ended, State, TaskAccount};
use crate::cards::{Cards, Resident};
use crate::decided::Decided;
use crate::event::{Act, Happened, HowEnded, Why};
use crate::policy::{self, Policy};
use crate::queue::{Discipline, Queue};
use crate::recovery::{Asks, Recovery};
use crate::rules::{Keeps, Rules, SiteCard};
use crate::task::{AttemptId, CardId, Task, TaskId};
use crate::view::CardView;

struct Entry {
    account: TaskAccount,
    /// Attempts that ran out of memory, that lost their mode, and that lost their card.
    ran_out: u32,
    modes_lost: u32,
    cards_lost: u32,
    asks: Option<Asks>,
    /// Later tasks that were placed before its first attempt.
    passed: u32,
    /// The reasons for which it was last said to wait.
    reasons: Option<u32>,
}

/// What the rules say, read.
pub struct Site {
    pub policy: Box<dyn Policy>,
    pub queue: Discipline,
    pub recovery: Recovery,
    pub recovery_keeps: Keeps,
    pub attempts: u32,
    pub window_ns: u64,
    pub decide_every_ns: Option<u64>,
    pub idle_first: bool,
    pub cards: Vec<SiteCard>,
}

/// The tasks and cards of a site under a policy.
pub struct Ledger {
    site: Site,
    cards: Cards,
    tasks: BTreeMap<TaskId, Entry>,
    /// How many tasks are in each state.
    counts: [usize; State::ALL.len()],
    /// The tasks of the attempts that live.
    live: BTreeMap<AttemptId, TaskId>,
    queue: Queue,
    /// Profiled since the last decision, and not yet placed by what was seen.
    profiled: Vec<TaskId>,
    next: u32,
    now_ns: u64,
    /// The recovering task for which cards are kept, and these cards.
    kept: Option<(TaskId, Vec<CardId>)>,
    /// The most cards that a node still has.
    widest: usize,
    expected: Option<usize>,
    /// Nothing further is placed.
    closed: bool,
    over: bool,
    /// The first of the queue, and since when it has kept others from what would fit them.
    blocks: Option<(TaskId, u64)>,
    blocked_ns: u64,
    /// The cadence: the next moment of a decision.
    due_ns: u64,
    look_ns: Option<u64>,
    decided: Option<Vec<Decided>>,
}

impl Site {
    fn read(rules: &Rules) -> Result<Site, Diagnostic> {
        rules.checked()?;
        Ok(Site {
            policy: policy::parse(&rules.policy)?,
            queue: Discipline::parse(&rules.queue)?,
            recovery: Recovery::parse(&rules.recovery)?,
            recovery_keeps: rules.recovery_keeps,
            attempts: rules.attempts,
            window_ns: rules.window_ns,
            decide_every_ns: rules.decide_every_ns,
            idle_first: rules.idle_first,
            cards: rules.cards.clone(),
        })
    }
}

impl Ledger {
    /// Idle cards and no task, under these rules.
    ///
    /// # Errors
    /// A policy, a queue or a recovery that does not exist, and a site that nothing can be placed on.
    pub fn open(rules: &Rules) -> Result<Ledger, Diagnostic> {
        let mut ledger = Ledger::at(Site::read(rules)?);
        ledger.expected = rules.expects.map(|tasks| tasks as usize);
        Ok(ledger)
    }

    /// The same for rules that are read.
    pub fn at(site: Site) -> Ledger {
        let mut ledger = Ledger {
            cards: Cards::of(&site.cards),
            tasks: BTreeMap::new(),
            counts: [0; State::ALL.len()],
            live: BTreeMap::new(),
            queue: Queue::new(site.queue),
            profiled: Vec::new(),
            next: 0,
            now_ns: 0,
            kept: None,
            widest: 0,
            expected: None,
            closed: false,
            over: false,
            blocks: None,
            blocked_ns: 0,
            due_ns: 0,
            look_ns: None,
            decided: Some(Vec::new()),
            site,
        };
        ledger.widest = ledger.widest_node();
        ledger
    }

    /// So many tasks will arrive; when all have ended, the ledger says `Over`.
    pub fn expects(&mut self, tasks: usize) {
        self.expected = Some(tasks);
    }

    /// The same, and no decision is recorded.
    pub fn unrecorded(mut self) -> Ledger {
        self.decided = None;
        self
    }

    /// Book a task that runs on these cards since before the ledger was opened, and has all its memory, which readings count.
    pub fn adopt(&mut self, task: Task, cards: Vec<CardId>, held_bytes: Option<u64>) {
        let id = task.id;
        if self.tasks.contains_key(&id) {
            return;
        }
        self.enter(task, State::Waiting);
        if let Some(attempt) = self.start(id, cards, None, &mut Vec::new()) {
            self.settled(attempt, held_bytes);
        }
    }

    /// Book what happened, and decide. Time never goes back: an earlier `now_ns` counts as the last one.
    pub fn on(&mut self, what: Happened, now_ns: u64, acts: &mut Vec<Act>) {
        self.book(what, now_ns, acts);
        self.decide(now_ns, acts);
    }

    /// Book what happened. What comes of it says `decide`, once everything of the moment is booked.
    pub fn book(&mut self, what: Happened, now_ns: u64, acts: &mut Vec<Act>) {
        self.pass_time(now_ns);
        match what {
            Happened::Arrived(task) => self.arrived(task),
            Happened::Started(attempt) => self.started(attempt),
            Happened::Settled(attempt, bytes) => self.settled(attempt, bytes),
            Happened::Profiled(attempt, permille) => self.watched(attempt, permille),
            Happened::Ended(attempt, how) => self.ended(attempt, how),
            Happened::Read(card, reading) => drop(self.cards.read(card, reading)),
            Happened::CardLost(card) => self.lost(card, acts),
            Happened::Look => {}
            Happened::Full => self.close(),
            Happened::Stopped => self.stop(acts),
        }
        if self.look_ns.is_some_and(|at| at <= self.now_ns) {
            self.look_ns = None;
        }
    }

    /// The policy, by its label.
    pub fn policy(&self) -> String {
        self.site.policy.label()
    }

    /// The decisions since they were last taken.
    pub fn take_decided(&mut self) -> Vec<Decided> {
        self.decided.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The state of a task that has arrived.
    pub fn state(&self, task: TaskId) -> Option<State> {
        self.tasks.get(&task).map(|entry| entry.account.state)
    }

    /// How many tasks are in this state.
    pub fn count(&self, state: State) -> usize {
        self.counts[state as usize]
    }

    /// How many tasks have arrived.
    pub fn arrived_tasks(&self) -> usize {
        self.tasks.len()
    }

    /// What is known of a task that has arrived.
    pub fn account(&self, task: TaskId) -> Option<&TaskAccount> {
        self.tasks.get(&task).map(|entry| &entry.account)
    }

    /// All tasks that have arrived, by their ids.
    pub fn accounts(&self) -> impl Iterator<Item = &TaskAccount> {
        self.tasks.values().map(|entry| &entry.account)
    }

    /// The time in which a later task would have fit while the first of the queue waited, until the last event.
    pub fn blocked_ns(&self) -> u64 {
        self.blocked_ns
    }

    pub fn cards(&self) -> &[CardView] {
        &self.cards.views
    }

    /// Who is on a card, in the order in which they came.
    pub fn residents(&self, card: CardId) -> &[Resident] {
        self.cards.residents(card)
    }

    fn pass_time(&mut self, now_ns: u64) {
        let passed = now_ns.saturating_sub(self.now_ns);
        self.now_ns = self.now_ns.max(now_ns);
        if let Some((task, _)) = self.blocks
            && passed > 0
        {
            self.blocked_ns += passed;
            self.tasks.get_mut(&task).into_iter().for_each(|entry| entry.account.blocked_ns += passed);
        }
    }

    fn arrived(&mut self, task: Task) {
        if self.tasks.contains_key(&task.id) {
            return;
        }
        let state = if self.closed { State::Interrupted } else { State::Waiting };
        if !self.closed {
            self.queue.add(&task, false);
        }
        self.enter(task, state);
    }

    fn enter(&mut self, task: Task, state: State) {
        self.counts[state as usize] += 1;
        let account = TaskAccount {
            arrived_ns: self.now_ns,
            over_ns: self.closed.then_some(self.now_ns),
            task,
            state,
            attempts: Vec::new(),
            blocked_ns: 0,
        };
        let id = account.task.id;
        let entry = Entry { account, ran_out: 0, modes_lost: 0, cards_lost: 0, asks: None, passed: 0, reasons: None };
        self.tasks.insert(id, entry);
    }

    fn started(&mut self, attempt: AttemptId) {
        let now_ns = self.now_ns;
        let Some(id) = self.live.get(&attempt).copied() else { return };
        if let Some(live) = self.tasks.get_mut(&id).and_then(|entry| entry.account.live_mut()) {
            live.started_ns.get_or_insert(now_ns);
        }
        if self.state(id) == Some(State::Starting) {
            self.become_state(id, State::Settling);
        }
    }

    fn settled(&mut self, attempt: AttemptId, bytes: Option<u64>) {
        self.started(attempt);
        let now_ns = self.now_ns;
        let Some(id) = self.live.get(&attempt).copied() else { return };
        let Some(live) = self.tasks.get_mut(&id).and_then(|entry| entry.account.live_mut()) else { return };
        live.settled_ns.get_or_insert(now_ns);
        live.held_bytes = bytes.or(live.held_bytes);
        let (cards, settled_ns, held_bytes) = (live.attempt.cards.clone(), live.settled_ns, live.held_bytes);
        self.cards.change(attempt, &cards, |resident| (resident.settled_ns, resident.held_bytes) = (settled_ns, held_bytes));
        if self.state(id) == Some(State::Settling) {
            self.become_state(id, State::Running);
        }
    }

    fn watched(&mut self, attempt: AttemptId, permille: u32) {
        let Some(id) = self.live.get(&attempt).copied() else { return };
        let Some(entry) = self.tasks.get_mut(&id) else { return };
        entry.account.task.believed_permille = Some(permille);
        let cards = entry.account.live().map(|live| live.attempt.cards.clone()).unwrap_or_default();
        self.cards.change(attempt, &cards, |resident| {
            (resident.profiled, resident.believed_permille) = (false, Some(permille));
        });
        self.profiled.push(id);
    }

    fn ended(&mut self, attempt: AttemptId, how: HowEnded) {
        let Some(id) = self.live.remove(&attempt) else { return };
        let (now_ns, window_ns) = (self.now_ns, self.site.window_ns);
        let Some(entry) = self.tasks.get_mut(&id) else { return };
        let Some(live) = entry.account.live_mut() else { return };
        let left = self.cards.leave(attempt, &live.attempt.cards, now_ns, window_ns);
        live.ended_ns = Some(now_ns);
        live.ended = Some(Ended { how: Some(how), newcomer: left.newcomer, alone: left.alone });
        let again = match how {
            HowEnded::OutOfMemory => {
                entry.ran_out += 1;
                entry.asks = self.site.recovery.after(entry.ran_out, self.site.attempts, left.free_bytes);
                entry.asks.is_some() && !left.alone
            }
            HowEnded::ModeLost => {
                entry.modes_lost += 1;
                entry.modes_lost == 1
            }
            HowEnded::CardLost => {
                // Whoever loses more cards than there are says nothing that could be true.
                entry.cards_lost += 1;
                entry.cards_lost as usize <= self.site.cards.len()
            }
            HowEnded::Completed | HowEnded::Failed | HowEnded::Interrupted => false,
        };
        let next = match how {
            HowEnded::Completed => State::Done,
            HowEnded::Interrupted => State::Interrupted,
            _ if again && self.closed => State::Interrupted,
            _ if again => State::Recovering,
            _ => State::Failed,
        };
        // What was stopped stays interrupted, unless it was done before the stop reached it.
        if entry.account.state == State::Interrupted && next != State::Done {
            return;
        }
        if next == State::Recovering {
            entry.reasons = None;
            let task = entry.account.task.clone();
            self.queue.add(&task, true);
        }
        self.become_state(id, next);
    }

    fn lost(&mut self, card: CardId, acts: &mut Vec<Act>) {
        if self.cards.views.get(card.0 as usize).is_none_or(|view| view.lost) {
            return;
        }
        self.cards.lose(card);
        self.widest = self.widest_node();
        if self.kept.as_ref().is_some_and(|(_, cards)| cards.contains(&card)) {
            self.kept = None;
        }
        let stops = self.cards.residents(card).iter().map(|resident| Act::Stop(resident.attempt, Why::CardLost));
        acts.extend(stops);
    }

    fn widest_node(&self) -> usize {
        let mut of: BTreeMap<u32, usize> = BTreeMap::new();
        self.cards.views.iter().filter(|view| !view.lost).for_each(|view| *of.entry(view.node).or_default() += 1);
        of.into_values().max().unwrap_or_default()
    }

    /// Nothing further is placed, so whoever waits has waited for nothing.
    fn close(&mut self) {
        self.closed = true;
        self.kept = None;
        for id in self.queue.drain() {
            self.become_state(id, State::Interrupted);
        }
    }

    fn stop(&mut self, acts: &mut Vec<Act>) {
        self.close();
        let live: Vec<(AttemptId, TaskId)> = self.live.iter().map(|(attempt, task)| (*attempt, *task)).collect();
        for (attempt, task) in live {
            if self.state(task).is_some_and(State::is_live) {
                acts.push(Act::Stop(attempt, Why::Interrupted));
                self.become_state(task, State::Interrupted);
            }
        }
    }

    fn become_state(&mut self, id: TaskId, state: State) {
        let now_ns = self.now_ns;
        let Some(entry) = self.tasks.get_mut(&id) else { return };
        self.counts[entry.account.state as usize] -= 1;
        self.counts[state as usize] += 1;
        entry.account.state = state;
        entry.account.over_ns = state.is_over().then_some(now_ns);
    }

    fn start(&mut self, id: TaskId, cards: Vec<CardId>, profile_ns: Option<u64>, acts: &mut Vec<Act>) -> Option<AttemptId> {
        let now_ns = self.now_ns;
        let entry = self.tasks.get_mut(&id)?;
        let attempt = AttemptId(self.next);
        self.next += 1;
        self.cards.place(attempt, &entry.account.task, &cards, profile_ns.is_some());
        let placed = crate::task::Attempt { id: attempt, task: id, cards };
        self.site.policy.placed(&placed.cards);
        entry.account.attempts.push(AttemptAccount {
            attempt: placed.clone(),
            placed_ns: now_ns,
            started_ns: None,
            settled_ns: None,
            ended_ns: None,
            held_bytes: None,
            ended: None,
        });
        self.live.insert(attempt, id);
        self.become_state(id, State::Starting);
        acts.push(Act::Start(placed));
        acts.extend(profile_ns.map(|ns| Act::Profile(attempt, ns)));
        Some(attempt)
    }
}
