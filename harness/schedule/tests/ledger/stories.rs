//! Small stories of a site, told by hand.

use collo_schedule::{
    Act, Attempt, AttemptId, CardId, Decision, Ended, Happened, HowEnded, Keeps, Ledger, Reading, Rules, SiteCard, State, Task,
    TaskId, Why,
};

const GB: u64 = 1_000_000_000;

fn site(cards: usize) -> Vec<SiteCard> {
    vec![SiteCard { capacity_bytes: 40 * GB, reserve_bytes: 0, node: 0 }; cards]
}

fn rules(policy: &str, cards: usize) -> Rules {
    Rules { window_ns: 1000, ..Rules::of(policy, site(cards)) }
}

struct Told {
    ledger: Ledger,
    now_ns: u64,
}

impl Told {
    fn of(rules: &Rules) -> Told {
        Told { ledger: Ledger::open(rules).expect("rules"), now_ns: 0 }
    }

    /// A nanosecond later.
    fn tell(&mut self, what: Happened) -> Vec<Act> {
        self.now_ns += 1;
        let mut acts = Vec::new();
        self.ledger.on(what, self.now_ns, &mut acts);
        acts
    }

    fn arrives(&mut self, id: u32, estimate_gb: Option<u64>) -> Vec<Act> {
        let estimate_bytes = estimate_gb.map(|gb| gb * GB);
        self.tell(Happened::Arrived(Task {
            id: TaskId(id),
            arrives_ns: self.now_ns,
            cards: 1,
            estimate_bytes,
            believed_permille: None,
        }))
    }

    fn ends(&mut self, attempt: u32, how: HowEnded) -> Vec<Act> {
        self.tell(Happened::Ended(AttemptId(attempt), how))
    }

    fn settles(&mut self, attempt: u32, gb: u64) -> Vec<Act> {
        self.tell(Happened::Settled(AttemptId(attempt), Some(gb * GB)))
    }

    fn state(&self, id: u32) -> State {
        self.ledger.state(TaskId(id)).expect("it has arrived")
    }

    fn ended(&self, id: u32) -> Ended {
        self.ledger.account(TaskId(id)).and_then(|account| account.attempts[0].ended).expect("it has ended")
    }
}

fn start(id: u32, task: u32, card: u32) -> Act {
    Act::Start(Attempt { id: AttemptId(id), task: TaskId(task), cards: vec![CardId(card)] })
}

#[test]
fn a_task_goes_through_its_states_and_then_it_is_over() {
    let mut told = Told::of(&Rules { expects: Some(1), ..rules("exclusive", 1) });
    assert_eq!(told.arrives(7, None), [start(0, 7, 0)]);
    assert_eq!(told.state(7), State::Starting);
    told.tell(Happened::Started(AttemptId(0)));
    assert_eq!(told.state(7), State::Settling);
    told.settles(0, 3);
    assert_eq!(told.state(7), State::Running);
    assert_eq!(told.ends(0, HowEnded::Completed), [Act::Over]);
    assert_eq!(told.state(7), State::Done);
    let account = told.ledger.account(TaskId(7)).expect("an account");
    let attempt = &account.attempts[0];
    assert_eq!((attempt.started_ns, attempt.ended_ns, account.over_ns), (Some(2), Some(4), Some(4)));
    assert_eq!(attempt.held_bytes, Some(3 * GB));
    assert_eq!(told.tell(Happened::Look), []);
}

#[test]
fn whoever_comes_last_is_the_newcomer_and_who_had_no_company_was_alone() {
    let mut told = Told::of(&rules("magm", 1));
    told.arrives(0, Some(10));
    told.settles(0, 10);
    told.arrives(1, Some(10));
    told.ends(0, HowEnded::OutOfMemory);
    assert_eq!(told.ended(0), Ended { how: Some(HowEnded::OutOfMemory), newcomer: false, alone: false });
    assert_eq!(told.state(0), State::Recovering);
    // Its company left a moment ago: it did not run out of memory alone, but nothing is left to wait for.
    told.ends(1, HowEnded::OutOfMemory);
    assert_eq!(told.ended(1), Ended { how: Some(HowEnded::OutOfMemory), newcomer: true, alone: false });
    assert_eq!((told.state(0), told.state(1)), (State::Starting, State::Recovering), "one after the other, alone");
    told.ends(2, HowEnded::OutOfMemory);
    assert_eq!((told.state(0), told.state(1)), (State::Failed, State::Starting));
}

#[test]
fn a_task_that_ran_before_the_ledger_was_opened_is_a_resident_that_readings_count() {
    let mut told = Told::of(&rules("magm:sm=80%", 2));
    let resident = Task { id: TaskId(9), arrives_ns: 0, cards: 1, estimate_bytes: None, believed_permille: None };
    told.ledger.adopt(resident, vec![CardId(0)], None);
    assert_eq!((told.state(9), told.ledger.residents(CardId(0)).len()), (State::Running, 1));
    let read = |card: u32, free_gb: u64, sm: u32| {
        let reading = Reading { free_bytes: Some(free_gb * GB), sm_permille: Some(sm), read_ns: 1, ..Reading::default() };
        Happened::Read(CardId(card), reading)
    };
    told.tell(read(0, 30, 500));
    told.tell(read(1, 12, 900));
    let view = told.ledger.cards()[0];
    assert_eq!(
        (view.free_bytes, view.promised_bytes, view.unsettled),
        (30 * GB, 0, 0),
        "nothing is promised besides the reading"
    );
}

#[test]
fn of_two_that_come_up_together_both_are_newcomers() {
    let mut told = Told::of(&rules("rr", 1));
    told.arrives(0, None);
    told.arrives(1, None);
    told.ends(0, HowEnded::OutOfMemory);
    assert!(told.ended(0).newcomer, "another came after it, but it never had its memory");
}

#[test]
fn company_that_left_a_window_ago_is_none() {
    for (since_ns, state) in [(999, State::Starting), (1000, State::Failed)] {
        let mut told = Told::of(&rules("magm", 1));
        told.arrives(0, Some(10));
        told.settles(0, 10);
        told.arrives(1, Some(10));
        told.ends(1, HowEnded::Completed);
        told.now_ns += since_ns - 1;
        told.ends(0, HowEnded::OutOfMemory);
        assert_eq!((told.ended(0).alone, told.state(0)), (state == State::Failed, state), "{since_ns} ns");
        assert_eq!(told.ended(0).newcomer, state == State::Failed, "who had joined it left a moment before");
    }
}

#[test]
fn a_promise_stands_until_a_younger_reading_shows_it() {
    let mut told = Told::of(&rules("magm", 1));
    let read = |told: &mut Told, free_gb: u64, read_ns: u64| {
        told.tell(Happened::Read(CardId(0), Reading { free_bytes: Some(free_gb * GB), read_ns, ..Reading::default() }));
    };
    let seen = |told: &Told| (told.ledger.cards()[0].free_bytes / GB, told.ledger.cards()[0].promised_bytes / GB);
    read(&mut told, 40, 1);
    told.arrives(0, Some(30));
    assert_eq!(seen(&told), (40, 30));
    told.now_ns = 10;
    told.settles(0, 25);
    assert_eq!(seen(&told), (15, 0), "the last reading is from before");
    read(&mut told, 40, 9);
    assert_eq!(seen(&told), (15, 0), "so is this one");
    read(&mut told, 14, 20);
    assert_eq!(seen(&told), (14, 0), "this one shows it, and a gigabyte of somebody else");
    read(&mut told, 15, 19);
    assert_eq!(seen(&told), (14, 0), "an older one that comes late changes nothing");
    told.now_ns = 30;
    told.arrives(1, Some(5));
    told.ends(0, HowEnded::Completed);
    assert_eq!(seen(&told), (39, 5), "what it held comes back, but not what somebody else has");
    told.ends(1, HowEnded::Completed);
    assert_eq!(seen(&told), (40, 0), "of an idle card that reading says nothing");
}

#[test]
fn memory_that_a_reading_already_shows_free_is_not_added_back_again() {
    let mut told = Told::of(&rules("magm", 1));
    for id in 0..2 {
        told.arrives(id, Some(10));
        told.settles(id, 10);
    }
    // The process of the first has gone, and its end has not been told.
    let reading = Reading { free_bytes: Some(30 * GB), read_ns: 5, ..Reading::default() };
    told.tell(Happened::Read(CardId(0), reading));
    told.ends(0, HowEnded::Completed);
    assert_eq!(told.ledger.cards()[0].free_bytes, 30 * GB);
}

#[test]
fn a_reading_tells_of_who_left_before_it_and_of_nobody_who_settled_at_its_moment() {
    let mut told = Told::of(&rules("magm", 1));
    let read = |told: &mut Told, free_gb: Option<u64>, read_ns: u64| {
        let free_bytes = free_gb.map(|gb| gb * GB);
        told.tell(Happened::Read(CardId(0), Reading { free_bytes, read_ns, ..Reading::default() }));
        told.ledger.cards()[0].free_bytes / GB
    };
    told.arrives(0, Some(10));
    told.arrives(1, Some(10));
    told.settles(0, 10);
    assert_eq!(read(&mut told, Some(40), 3), 30, "taken just before it settled, for all that anybody knows");
    assert_eq!(read(&mut told, Some(30), 4), 30);
    assert_eq!(read(&mut told, None, 5), 30, "without memory it says nothing of memory");
    assert_eq!(read(&mut told, Some(28), 6), 28, "with two gigabytes of somebody else");
    told.now_ns = 9;
    told.ends(0, HowEnded::Completed);
    assert_eq!(told.ledger.cards()[0].free_bytes / GB, 38);
    assert_eq!(read(&mut told, Some(28), 9), 38, "it has not gone yet there");
    assert_eq!(read(&mut told, Some(37), 10), 37, "and there it has");
}

#[test]
fn what_was_in_no_reading_does_not_come_back_and_of_whom_nothing_is_known_holds_its_promise() {
    let read = |told: &mut Told, free_gb: u64| {
        told.now_ns += 1;
        let reading = Reading { free_bytes: Some(free_gb * GB), read_ns: told.now_ns, ..Reading::default() };
        told.tell(Happened::Read(CardId(0), reading));
    };
    let free_gb = |told: &Told| told.ledger.cards()[0].free_bytes / GB;
    let mut told = Told::of(&rules("magm", 1));
    told.arrives(0, Some(5));
    told.arrives(1, Some(5));
    read(&mut told, 30);
    told.settles(0, 5);
    told.ends(0, HowEnded::Completed);
    assert_eq!(free_gb(&told), 30, "the other ten are somebody else's");

    let mut told = Told::of(&rules("magm", 1));
    told.arrives(0, Some(10));
    told.arrives(1, Some(20));
    told.tell(Happened::Settled(AttemptId(0), None));
    told.settles(1, 20);
    read(&mut told, 25);
    told.ends(1, HowEnded::Completed);
    assert_eq!(free_gb(&told), 30, "25 and 20 would be more than the other one leaves");
}

#[test]
fn without_an_estimate_the_whole_card_is_promised_until_it_has_settled() {
    let mut told = Told::of(&rules("magm", 1));
    told.arrives(0, None);
    assert_eq!(told.ledger.cards()[0].promised_bytes, 40 * GB);
    assert_eq!(told.arrives(1, Some(5)), []);
    assert_eq!(told.settles(0, 30), [start(1, 1, 0)]);
}

#[test]
fn a_recovery_keeps_one_card_free_and_the_rest_of_the_site_goes_on() {
    for (keeps, third) in [(Keeps::Card, vec![start(4, 4, 1)]), (Keeps::All, vec![]), (Keeps::Nothing, vec![start(4, 4, 0)])] {
        let mut told = Told::of(&Rules { recovery_keeps: keeps, ..rules("magm", 2) });
        for id in 0..4 {
            told.arrives(id, Some(10));
        }
        // Both cards have two; 2 runs out of memory on the first one.
        assert_eq!(told.ends(2, HowEnded::OutOfMemory), []);
        assert_eq!(told.arrives(4, Some(10)), third, "{keeps:?}");
    }
}

#[test]
fn a_step_asks_for_more_than_the_others_had_left_it() {
    let mut told = Told::of(&Rules { recovery: "step:5GB".into(), recovery_keeps: Keeps::Nothing, ..rules("magm", 1) });
    let reads = |told: &mut Told, free_gb: u64| {
        let read_ns = told.now_ns + 1;
        let free_bytes = Some(free_gb * GB);
        let reading = Reading { free_bytes, sm_permille: None, occupancy_permille: None, dram_permille: None, read_ns };
        told.tell(Happened::Read(CardId(0), reading))
    };
    told.arrives(0, None);
    // As of a script, of which nobody knows what it holds.
    told.tell(Happened::Settled(AttemptId(0), None));
    reads(&mut told, 20);
    assert_eq!(told.arrives(1, None), [start(1, 1, 0)], "the others leave it 20 GB");
    reads(&mut told, 2);
    assert_eq!(told.ends(1, HowEnded::OutOfMemory), []);
    assert_eq!(reads(&mut told, 20), [], "it asks for 25");
    assert_eq!(told.state(1), State::Recovering);
    assert_eq!(reads(&mut told, 26), [start(2, 1, 0)]);
}

#[test]
fn a_kept_card_that_is_lost_is_kept_no_longer_but_another() {
    let mut told = Told::of(&rules("magm", 2));
    for id in 0..4 {
        told.arrives(id, Some(10));
    }
    told.ends(0, HowEnded::OutOfMemory);
    assert_eq!(told.tell(Happened::CardLost(CardId(0))), [Act::Stop(AttemptId(2), Why::CardLost)]);
    assert_eq!(told.arrives(4, Some(10)), [], "the other card is kept now");
    told.ends(1, HowEnded::Completed);
    assert_eq!(told.ends(3, HowEnded::Completed)[0], start(4, 0, 1));
}

#[test]
fn who_recovers_gets_the_first_idle_card_before_everybody_else() {
    let mut told = Told::of(&Rules { policy: "slots:2".into(), ..rules("slots:2", 1) });
    told.arrives(0, Some(1));
    told.arrives(1, Some(1));
    told.arrives(2, Some(1));
    told.ends(1, HowEnded::OutOfMemory);
    assert_eq!((told.state(1), told.state(2)), (State::Recovering, State::Waiting));
    assert_eq!(told.ends(0, HowEnded::Completed), [start(2, 1, 0), start(3, 2, 0)]);
}

#[test]
fn who_lost_its_mode_is_tried_once_more_and_who_crashed_is_not() {
    let mut told = Told::of(&Rules { attempts: 1, ..rules("exclusive", 1) });
    told.arrives(0, None);
    assert_eq!(told.ends(0, HowEnded::ModeLost), [start(1, 0, 0)]);
    assert_eq!(told.ends(1, HowEnded::ModeLost), []);
    assert_eq!(told.state(0), State::Failed);
    told.arrives(1, None);
    assert_eq!(told.ends(2, HowEnded::Failed), []);
    assert_eq!(told.state(1), State::Failed);
}

#[test]
fn a_lost_card_stops_who_is_on_it_and_gets_nobody() {
    let mut told = Told::of(&rules("exclusive", 2));
    told.arrives(0, None);
    assert_eq!(told.tell(Happened::CardLost(CardId(0))), [Act::Stop(AttemptId(0), Why::CardLost)]);
    assert_eq!(told.ends(0, HowEnded::CardLost), [start(1, 0, 1)]);
    told.tell(Happened::CardLost(CardId(1)));
    told.ends(1, HowEnded::CardLost);
    assert_eq!(told.state(0), State::Never);
    let last = told.ledger.take_decided().pop().expect("a decision");
    assert_eq!((last.outcome, last.why.as_str()), (Decision::Never, "no card is left"));
}

#[test]
fn a_full_disk_lets_what_runs_go_on_and_places_nobody() {
    let mut told = Told::of(&Rules { expects: Some(9), ..rules("exclusive", 1) });
    told.arrives(0, None);
    told.arrives(1, None);
    assert_eq!(told.tell(Happened::Full), []);
    assert_eq!((told.state(0), told.state(1)), (State::Starting, State::Interrupted));
    told.arrives(2, None);
    assert_eq!(told.state(2), State::Interrupted);
    assert_eq!(told.ends(0, HowEnded::Completed), [Act::Over]);
    assert_eq!(told.state(0), State::Done);
}

#[test]
fn a_full_disk_interrupts_who_waits_for_another_attempt() {
    let mut told = Told::of(&rules("slots:2", 1));
    told.arrives(0, Some(1));
    told.arrives(1, Some(1));
    told.ends(1, HowEnded::OutOfMemory);
    assert_eq!(told.tell(Happened::Full), []);
    assert_eq!((told.state(0), told.state(1)), (State::Starting, State::Interrupted));
    assert_eq!(told.ends(0, HowEnded::OutOfMemory), [Act::Over]);
    assert_eq!(told.state(0), State::Interrupted, "it would have been tried again");
}

#[test]
fn an_interruption_stops_everybody() {
    let mut told = Told::of(&rules("exclusive", 2));
    for id in 0..3 {
        told.arrives(id, None);
    }
    let stops = [0, 1].map(|id| Act::Stop(AttemptId(id), Why::Interrupted));
    assert_eq!(told.tell(Happened::Stopped), stops);
    assert_eq!([0, 1, 2].map(|id| told.state(id)), [State::Interrupted; 3]);
    assert_eq!(told.ends(0, HowEnded::Interrupted), []);
    assert_eq!(told.ends(1, HowEnded::Completed), [Act::Over]);
    assert_eq!(told.state(1), State::Done, "the stop came too late");
}

#[test]
fn blocked_is_the_time_in_which_a_later_task_would_have_fit() {
    let mut told = Told::of(&rules("magm", 1));
    told.arrives(0, Some(20));
    told.arrives(1, Some(30));
    told.now_ns = 10;
    told.arrives(2, Some(5));
    told.now_ns = 24;
    told.ends(0, HowEnded::Completed);
    // From 11, when the third came, until 25, when the first left.
    assert_eq!((told.ledger.blocked_ns(), told.ledger.account(TaskId(1)).expect("there").blocked_ns), (14, 14));
    assert_eq!((told.state(1), told.state(2)), (State::Starting, State::Starting));
    told.tell(Happened::Look);
    assert_eq!(told.ledger.blocked_ns(), 14);
}

#[test]
fn a_task_is_passed_so_often_and_no_more() {
    let mut told = Told::of(&Rules { queue: "fifo:pass=2".into(), ..rules("magm", 1) });
    told.arrives(0, Some(20));
    told.arrives(1, Some(30));
    assert_eq!(told.arrives(2, Some(5)), [start(1, 2, 0)]);
    assert_eq!(told.arrives(3, Some(5)), [start(2, 3, 0)]);
    assert_eq!(told.arrives(4, Some(5)), [], "it has been passed twice");
    told.ends(0, HowEnded::Completed);
    assert_eq!((told.state(1), told.state(4)), (State::Starting, State::Waiting));
}

#[test]
fn so_many_behind_the_first_are_asked_for_and_no_more() {
    for (pass, expected) in [(1, vec![]), (2, vec![start(1, 3, 0)])] {
        let mut told = Told::of(&Rules { queue: format!("fifo:pass={pass}"), ..rules("magm", 1) });
        for (id, gb) in [(0, 20), (1, 30), (2, 25)] {
            told.arrives(id, Some(gb));
        }
        assert_eq!(told.arrives(3, Some(5)), expected, "of two who wait, {pass} may be behind the first");
    }
    let mut told = Told::of(&Rules { queue: "fifo:pass=1".into(), ..rules("magm", 1) });
    told.arrives(0, Some(20));
    told.arrives(1, Some(30));
    assert_eq!(told.arrives(2, Some(5)), [start(1, 2, 0)]);
}

#[test]
fn one_at_a_time_is_placed_at_each_look_and_a_recovery_is_one() {
    let mut told = Told::of(&Rules { queue: "fifo:one".into(), decide_every_ns: Some(100), ..rules("rr", 2) });
    assert_eq!(told.arrives(0, None), [start(0, 0, 0)], "the first look is at once");
    (1..3).for_each(|id| drop(told.arrives(id, None)));
    let looked = |told: &mut Told, at_ns: u64| {
        told.now_ns = at_ns - 1;
        let acts = told.tell(Happened::Look);
        acts.into_iter().filter(|act| matches!(act, Act::Start(_))).collect::<Vec<_>>()
    };
    assert_eq!(looked(&mut told, 100), [start(1, 1, 1)]);
    assert_eq!(looked(&mut told, 150), [], "it is not time yet");
    assert_eq!(looked(&mut told, 200), [start(2, 2, 0)]);
    told.arrives(3, None);
    told.ends(1, HowEnded::Completed);
    told.ends(2, HowEnded::OutOfMemory);
    assert_eq!(looked(&mut told, 300), [start(3, 2, 1)], "who recovers comes first, and nobody besides");
    assert_eq!(looked(&mut told, 400), [start(4, 3, 0)]);
}

#[test]
fn it_is_not_over_before_the_last_has_come() {
    let mut told = Told::of(&Rules { expects: Some(2), ..rules("exclusive", 1) });
    told.arrives(0, None);
    assert_eq!(told.ends(0, HowEnded::Completed), []);
    told.arrives(1, None);
    assert_eq!(told.ends(1, HowEnded::Completed), [Act::Over]);
}

#[test]
fn who_is_watched_is_alone_and_moves_when_it_has_been_seen() {
    let mut told = Told::of(&Rules { idle_first: false, ..rules("packed:sum=150%,profile=1ms", 2) });
    let arrives = |told: &mut Told, id: u32, believed_permille: Option<u32>| {
        let task = Task { id: TaskId(id), arrives_ns: 0, cards: 1, estimate_bytes: None, believed_permille };
        told.tell(Happened::Arrived(task))
    };
    assert_eq!(arrives(&mut told, 0, None), [start(0, 0, 0), Act::Profile(AttemptId(0), 1_000_000)]);
    // By their sum both could be on the first card.
    assert_eq!(arrives(&mut told, 1, Some(300)), [start(1, 1, 1)]);
    told.tell(Happened::Started(AttemptId(0)));
    told.now_ns = 9;
    assert_eq!(told.tell(Happened::Profiled(AttemptId(0), 200)), [], "the first that fits is where it is");
    told.ends(1, HowEnded::Completed);
    told.now_ns = 19;
    assert_eq!(arrives(&mut told, 2, None), [start(2, 2, 1), Act::Profile(AttemptId(2), 1_000_000)]);
    told.tell(Happened::Started(AttemptId(2)));
    told.now_ns = 29;
    assert_eq!(told.tell(Happened::Profiled(AttemptId(2), 500)), [Act::Stop(AttemptId(2), Why::Moved), start(3, 2, 0)]);
    let account = told.ledger.account(TaskId(2)).expect("it has arrived");
    let times = |n: usize| (account.attempts[n].placed_ns, account.attempts[n].started_ns, account.attempts[n].ended_ns);
    assert_eq!((times(0), times(1)), ((20, Some(21), Some(30)), (30, None, None)));
}

#[test]
fn a_task_that_is_believed_to_need_more_than_a_card_has_gets_one_for_itself() {
    let mut told = Told::of(&rules("magm:margin=2GB", 1));
    assert_eq!(told.arrives(0, Some(90)), [start(0, 0, 0)]);
    assert_eq!(told.arrives(1, Some(1)), []);
    assert_eq!(told.settles(0, 20), [start(1, 1, 0)]);
}
