//! What holds of the books, whatever happens, on every site and under every policy. `COLLO_EVENTS=1000000 cargo test -p
//! collo-schedule --test ledger -- --ignored --nocapture` tries that many events.

use std::collections::{BTreeMap, BTreeSet};

use collo_schedule::policy::{self, ORDERS};
use collo_schedule::{Act, AttemptId, Decision, Happened, HowEnded, Keeps, Ledger, Rules, State, TaskAccount, TaskId, replay};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::body::Body;
use crate::case::{Case, cases};

type Held = Result<(), String>;

macro_rules! holds {
    ($what:expr, $($words:tt)+) => {
        if !$what {
            return Err(format!($($words)+));
        }
    };
}

/// 1: every task is in one state, and lives at most once.
fn no_task_is_lost_or_doubled(body: &Body<'_>) -> Held {
    let ledger = &body.ledger;
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for account in ledger.accounts() {
        *counts.entry(account.state as usize).or_default() += 1;
        let lives = body.live.values().filter(|live| live.attempt.task == account.task.id).count();
        let expected = usize::from(account.state.is_live());
        holds!(
            lives == expected || account.state == State::Interrupted,
            "{:?} is {:?} with {lives} attempts",
            account.task.id,
            account.state
        );
    }
    for state in State::ALL {
        let counted = counts.get(&(state as usize)).copied().unwrap_or_default();
        holds!(ledger.count(state) == counted, "{counted} tasks are {state:?}, not {}", ledger.count(state));
    }
    let of = |what: &Happened| if let Happened::Arrived(task) = what { Some(task.id) } else { None };
    let arrived = body.events.iter().filter_map(|(_, what)| of(what)).collect::<BTreeSet<_>>().len();
    holds!(ledger.arrived_tasks() == arrived && counts.values().sum::<usize>() == arrived, "{arrived} tasks have arrived");
    for card in ledger.cards() {
        let mut on: Vec<AttemptId> = ledger.residents(card.card).iter().map(|resident| resident.attempt).collect();
        on.sort_unstable();
        let lives = body.live.values().filter(|live| live.attempt.cards.contains(&card.card));
        holds!(on == lives.map(|live| live.attempt.id).collect::<Vec<_>>(), "{} has {on:?}", card.card);
    }
    Ok(())
}

/// 2: what is promised and what is held stay within a card, if estimates are upper bounds and the policy heeds them.
fn no_promise_beyond_the_card(body: &Body<'_>, case: &Case) -> Held {
    for (n, card) in body.ledger.cards().iter().enumerate() {
        let on = body.live.values().filter(|live| live.attempt.cards.contains(&card.card));
        let sum: u64 = on
            .map(|live| {
                let given = &case.tasks[live.attempt.task.0 as usize];
                if live.gone && live.settled {
                    0
                } else if live.settled {
                    given.truly_bytes
                } else {
                    given.task.estimate_bytes.unwrap_or(u64::MAX)
                }
            })
            .fold(0, u64::saturating_add);
        let of = &case.rules.cards[n];
        holds!(
            sum <= of.capacity_bytes - of.reserve_bytes,
            "{sum} bytes on {} of {}",
            card.card,
            of.capacity_bytes - of.reserve_bytes
        );
    }
    holds!(body.out_of_memory == 0, "{} ran out of memory", body.out_of_memory);
    Ok(())
}

/// 3: attempts are bounded, what failed stays failed, and a recovery stops nobody elsewhere.
fn recovery_is_bounded(body: &Body<'_>, rules: &Rules) -> Held {
    for account in body.ledger.accounts() {
        let ends: Vec<HowEnded> = account.attempts.iter().filter_map(|attempt| attempt.ended?.how).collect();
        let of = |how: HowEnded| ends.iter().filter(|end| **end == how).count();
        let id = account.task.id;
        holds!(of(HowEnded::OutOfMemory) <= rules.attempts as usize, "{id:?} ran out of memory too often");
        holds!(rules.recovery != "none" || of(HowEnded::OutOfMemory) <= 1, "{id:?} was tried again");
        holds!(of(HowEnded::ModeLost) <= 2, "{id:?} lost its mode too often");
        let last = account.attempts.last().filter(|_| account.state.is_live()).map(|last| last.attempt.id);
        for attempt in &account.attempts {
            let Some(ended) = attempt.ended else { continue };
            let is_final = match ended.how {
                Some(HowEnded::Failed | HowEnded::Completed | HowEnded::Interrupted) => true,
                Some(HowEnded::OutOfMemory) => ended.alone,
                _ => false,
            };
            let others = account.attempts.iter().any(|other| other.attempt.id > attempt.attempt.id);
            holds!(!is_final || !(others || last.is_some()), "{id:?} was tried again after {ended:?}");
        }
        if account.state == State::Failed {
            let ended = account.attempts.last().and_then(|last| last.ended).ok_or("failed without an attempt")?;
            holds!(ended.how != Some(HowEnded::Completed), "{id:?} failed by completing");
            let alone = ended.alone || of(HowEnded::OutOfMemory) == rules.attempts as usize || rules.recovery == "none";
            holds!(ended.how != Some(HowEnded::OutOfMemory) || alone, "{id:?} had attempts left");
        }
    }
    Ok(())
}

fn first<'a>(body: &'a Body<'_>, state: State) -> Option<&'a TaskAccount> {
    body.ledger
        .accounts()
        .filter(|account| account.state == state)
        .min_by_key(|account| (account.task.arrives_ns, account.task.id))
}

/// 3, 4: nobody who may have it waits beside an idle card; a recovery keeps as many cards as it needs, and no more.
fn nobody_waits_beside_an_idle_card(body: &Body<'_>, rules: &Rules) -> Held {
    if rules.decide_every_ns.is_some() || !rules.queue.starts_with("fifo") || rules.queue == "fifo:one" {
        return Ok(());
    }
    let fresh = |ns: u64| ns + rules.window_ns >= body.now_ns;
    let free = body.ledger.cards().iter().filter(|card| card.is_idle() && !card.lost && card.read_ns.is_none_or(fresh)).count();
    let recovering = first(body, State::Recovering);
    let kept = match rules.recovery_keeps {
        Keeps::Nothing => 0,
        Keeps::Card | Keeps::All => recovering.map_or(0, |account| account.task.cards as usize),
    };
    if let Some(waits) = recovering.filter(|account| account.task.cards == 1) {
        holds!(free == 0, "{:?} recovers beside {free} idle cards", waits.task.id);
    }
    if let Some(waits) = first(body, State::Waiting).filter(|account| account.task.cards == 1) {
        holds!(free <= kept, "{:?} waits beside {free} idle cards, {kept} of them kept", waits.task.id);
    }
    Ok(())
}

/// 4: first attempts start in the order of arrival, or pass at most so often.
fn nobody_is_passed_too_often(body: &Body<'_>, rules: &Rules) -> Held {
    let Some(rest) = rules.queue.strip_prefix("fifo") else { return Ok(()) };
    let pass: usize = rest.strip_prefix(":pass=").map_or(0, |pass| pass.parse().expect("a number"));
    let arrived_ns: BTreeMap<TaskId, u64> = body.ledger.accounts().map(|account| (account.task.id, account.arrived_ns)).collect();
    let mut begun: Vec<(TaskId, u64)> = Vec::new();
    for (at_ns, act) in &body.acts {
        if let Act::Start(attempt) = act
            && begun.iter().all(|(task, _)| *task != attempt.task)
        {
            let passed = begun.iter().filter(|(task, ns)| *task > attempt.task && *ns >= arrived_ns[&attempt.task]).count();
            holds!(passed <= pass, "{:?} was passed {passed} times", attempt.task);
            begun.push((attempt.task, *at_ns));
        }
    }
    Ok(())
}

/// 4: if every attempt ends, every task ends, and then it is over, once.
fn everybody_ends(body: &mut Body<'_>) -> Held {
    holds!(body.end(), "it goes on for ever: {:?}", body.ledger.accounts().find(|account| !account.state.is_over()));
    body.now_ns += 1000;
    body.tell(Happened::Look);
    holds!(body.ledger.accounts().all(|account| account.state.is_over()), "not all is over");
    let over = body.acts.iter().filter(|(_, act)| *act == Act::Over).count();
    holds!(over == 1, "it was over {over} times");
    Ok(())
}

/// 5: completion is wait and execution, to the nanosecond; here execution is what the body saw.
fn time_adds_up(body: &Body<'_>) -> Held {
    let mut begun: BTreeMap<AttemptId, u64> = BTreeMap::new();
    let mut executed_ns: BTreeMap<TaskId, u64> = BTreeMap::new();
    let task_of: BTreeMap<AttemptId, TaskId> = body
        .acts
        .iter()
        .filter_map(|(_, act)| if let Act::Start(attempt) = act { Some((attempt.id, attempt.task)) } else { None })
        .collect();
    let mut ended: Vec<(AttemptId, u64)> = Vec::new();
    for (at_ns, what) in &body.events {
        match what {
            Happened::Started(id) | Happened::Settled(id, _) => drop(begun.entry(*id).or_insert(*at_ns)),
            Happened::Ended(id, _) if ended.iter().all(|(other, _)| other != id) => ended.push((*id, *at_ns)),
            _ => {}
        }
    }
    let moved = body.acts.iter().filter_map(|(at_ns, act)| match act {
        Act::Stop(id, collo_schedule::Why::Moved) => Some((*id, *at_ns)),
        _ => None,
    });
    for (id, at_ns) in ended.into_iter().chain(moved) {
        *executed_ns.entry(task_of[&id]).or_default() += at_ns - begun.get(&id).copied().unwrap_or(at_ns);
    }
    let mut told_ns: BTreeMap<TaskId, u64> = BTreeMap::new();
    for (at_ns, what) in &body.events {
        if let Happened::Arrived(task) = what {
            told_ns.entry(task.id).or_insert(*at_ns);
        }
    }
    for account in body.ledger.accounts() {
        holds!(told_ns.get(&account.task.id) == Some(&account.arrived_ns), "{:?} came at another time", account.task.id);
    }
    for account in body.ledger.accounts().filter(|account| account.state == State::Done) {
        let (mut known_ns, mut waited_ns) = (account.arrived_ns, 0);
        for attempt in &account.attempts {
            let ended_ns = attempt.ended_ns.ok_or("an attempt without an end")?;
            let began_ns = attempt.started_ns.unwrap_or(ended_ns);
            holds!(
                known_ns <= attempt.placed_ns && attempt.placed_ns <= began_ns && began_ns <= ended_ns,
                "times go back: {attempt:?}"
            );
            waited_ns += began_ns - known_ns;
            known_ns = ended_ns;
        }
        let completion_ns = account.over_ns.ok_or("done at no time")? - account.arrived_ns;
        let executed_ns = executed_ns.get(&account.task.id).copied().unwrap_or_default();
        holds!(completion_ns == waited_ns + executed_ns, "{completion_ns} is not {waited_ns} + {executed_ns}");
    }
    let blocked_ns: u64 = body.ledger.accounts().map(|account| account.blocked_ns).sum();
    holds!(blocked_ns == body.ledger.blocked_ns(), "blocked time does not add up");
    Ok(())
}

/// 7, 8: what was recorded gives the same acts and decisions, to another body as well.
fn the_same_in_is_the_same_out(body: &Body<'_>, rules: &Rules) -> Held {
    let read = |text: serde_json::Result<String>| text.expect("it is written");
    let rules: Rules = serde_json::from_str(&read(serde_json::to_string(rules))).expect("it is read");
    let events: Vec<(u64, Happened)> = serde_json::from_str(&read(serde_json::to_string(&body.events))).expect("it is read");
    let replayed = replay(&rules, events.iter().cloned()).map_err(|wrong| wrong.to_string())?;
    holds!(replayed.acts == body.acts, "other acts");
    holds!(replayed.decided == body.decided, "other decisions");
    // As the body of events does it: booked, then decided, and nothing written.
    let mut ledger = Ledger::open(&rules).map_err(|wrong| wrong.to_string())?.unrecorded();
    let (mut acts, mut done) = (Vec::new(), Vec::new());
    for (now_ns, what) in events {
        ledger.book(what, now_ns, &mut acts);
        ledger.decide(now_ns, &mut acts);
        done.extend(acts.drain(..).map(|act| (now_ns, act)));
    }
    holds!(done == body.acts, "the body of events gets other acts");
    holds!(ledger.take_decided().is_empty(), "it was to write nothing");
    Ok(())
}

/// Every attempt has its decision, and a reason to wait is said once.
fn decisions_are_recorded(body: &Body<'_>) -> Held {
    let started: Vec<&collo_schedule::Attempt> =
        body.acts.iter().filter_map(|(_, act)| if let Act::Start(attempt) = act { Some(attempt) } else { None }).collect();
    let placed: Vec<_> = body.decided.iter().filter(|decided| decided.outcome == Decision::Placed).collect();
    holds!(placed.len() == started.len(), "{} decisions for {} attempts", placed.len(), started.len());
    for (decided, attempt) in placed.iter().zip(started) {
        holds!(decided.attempt == Some(attempt.id) && decided.cards == attempt.cards, "{decided:?} is not of {attempt:?}");
        let seen = |card: &collo_schedule::CardId| decided.seen[card.0 as usize].candidate;
        holds!(decided.cards.iter().all(seen), "placed where it may not be: {decided:?}");
        let nodes: Vec<u32> = decided.cards.iter().map(|card| body.ledger.cards()[card.0 as usize].node).collect();
        holds!(nodes.windows(2).all(|two| two[0] == two[1]), "over two nodes: {decided:?}");
    }
    let mut said: BTreeMap<TaskId, (Decision, &str)> = BTreeMap::new();
    for decided in &body.decided {
        let before = said.insert(decided.task, (decided.outcome, &decided.why));
        let again = before == Some((Decision::Waits, &decided.why)) && decided.outcome == Decision::Waits;
        holds!(!again, "said twice: {}", decided.why);
    }
    Ok(())
}

/// Everything, over one case; with how many events.
fn held(case: &Case, bounds: bool) -> Result<usize, String> {
    let mut body = Body::of(case);
    let heeds = bounds && policy::parse(&case.rules.policy).expect("a policy").needs().uses_estimate();
    let check = |body: &Body<'_>| {
        no_task_is_lost_or_doubled(body)?;
        recovery_is_bounded(body, &case.rules)?;
        nobody_waits_beside_an_idle_card(body, &case.rules)?;
        if heeds { no_promise_beyond_the_card(body, case) } else { Ok(()) }
    };
    for choice in &case.choices {
        body.choose(*choice);
        check(&body)?;
    }
    everybody_ends(&mut body)?;
    check(&body)?;
    nobody_is_passed_too_often(&body, &case.rules)?;
    one_is_placed_at_a_time(&body, &case.rules)?;
    time_adds_up(&body)?;
    the_same_in_is_the_same_out(&body, &case.rules)?;
    decisions_are_recorded(&body)?;
    Ok(body.events.len())
}

/// Each decision places one task at most, if the queue says so; who was watched alone goes on besides.
fn one_is_placed_at_a_time(body: &Body<'_>, rules: &Rules) -> Held {
    if rules.queue != "fifo:one" || rules.policy.contains("profile=") {
        return Ok(());
    }
    let starts: Vec<u64> = body.acts.iter().filter(|(_, act)| matches!(act, Act::Start(_))).map(|(at_ns, _)| *at_ns).collect();
    let mut events: BTreeMap<u64, usize> = BTreeMap::new();
    body.events.iter().for_each(|(at_ns, _)| *events.entry(*at_ns).or_default() += 1);
    for at_ns in &starts {
        let placed = starts.iter().filter(|other| *other == at_ns).count();
        let decisions = if rules.decide_every_ns.is_some() { 1 } else { events.get(at_ns).copied().unwrap_or_default() };
        holds!(placed <= decisions, "{placed} were placed at {at_ns} ns, in {decisions} decisions");
    }
    Ok(())
}

fn sober(case: Case) -> Case {
    Case { misfortune: false, ..case }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_books_hold_whatever_happens(case in cases(false)) {
        if let Err(wrong) = held(&case, false) {
            prop_assert!(false, "{wrong}");
        }
    }

    #[test]
    fn with_estimates_that_are_upper_bounds_nothing_runs_out_of_memory(case in cases(true).prop_map(sober)) {
        if let Err(wrong) = held(&case, true) {
            prop_assert!(false, "{wrong}");
        }
    }
}

#[test]
#[ignore = "as many events as COLLO_EVENTS says, a million without it"]
fn the_books_hold_over_very_many_events() {
    let wanted: usize = std::env::var("COLLO_EVENTS").ok().and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let mut runner = TestRunner::deterministic();
    let (mut events, mut sites) = (0, 0);
    let mut of_orders: BTreeMap<&str, usize> = ORDERS.iter().map(|order| (order.name, 0)).collect();
    let begun = std::time::Instant::now();
    while events < wanted {
        let bounds = sites % 3 == 0;
        let case = cases(bounds).new_tree(&mut runner).expect("a case").current();
        let case = if bounds { sober(case) } else { case };
        let held = held(&case, bounds).unwrap_or_else(|wrong| panic!("{wrong}: {case:#?}"));
        let order = case.rules.policy.split(':').next().expect("a label begins with its order");
        *of_orders.get_mut(order).expect("one of the list") += held;
        events += held;
        sites += 1;
    }
    println!("{events} events over {sites} sites in {:.1} s: {of_orders:?}", begun.elapsed().as_secs_f64());
    assert!(of_orders.values().all(|events| *events > 0), "an order was never tried: {of_orders:?}");
}
