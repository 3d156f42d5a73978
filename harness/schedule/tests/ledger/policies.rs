//! A policy does what its name says.

use collo_schedule::policy::{self, Estimate, ORDERS};
use collo_schedule::{Act, CardId, Happened, Ledger, Reading, Rules, SiteCard, Task, TaskId, WhyNot};
use proptest::prelude::*;

const GB: u64 = 1_000_000_000;
const CAPACITY: u64 = 40 * GB;
const RESERVE: u64 = GB;

/// What a card reads, with one resident that has settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Card {
    free_bytes: u64,
    sm_permille: u32,
    occupancy_permille: u32,
    dram_permille: u32,
}

impl Card {
    fn of(free_gb: u64, sm_permille: u32) -> Card {
        Card { free_bytes: free_gb * GB, sm_permille, occupancy_permille: 100, dram_permille: 100 }
    }
}

fn task(id: u32, estimate_bytes: Option<u64>) -> Task {
    Task { id: TaskId(id), arrives_ns: 0, cards: 1, estimate_bytes, believed_permille: Some(300) }
}

fn started(ledger: &mut Ledger, what: Happened, now_ns: u64) -> Option<Vec<CardId>> {
    let mut acts = Vec::new();
    ledger.on(what, now_ns, &mut acts);
    acts.into_iter().find_map(|act| if let Act::Start(attempt) = act { Some(attempt.cards) } else { None })
}

/// A ledger with one settled resident on each card, and these readings.
fn ledger(label: &str, cards: &[Card]) -> Ledger {
    let site = vec![SiteCard { capacity_bytes: CAPACITY, reserve_bytes: RESERVE, node: 0 }; cards.len()];
    let mut ledger = Ledger::open(&Rules::of(label, site)).expect("a policy");
    for n in 0..cards.len() as u32 {
        started(&mut ledger, Happened::Arrived(task(n, Some(GB))), 0).expect("a card is idle");
        let attempt = collo_schedule::AttemptId(n);
        started(&mut ledger, Happened::Settled(attempt, Some(GB)), 1);
    }
    for (n, card) in (0..).zip(cards) {
        let reading = Reading {
            free_bytes: Some(card.free_bytes),
            sm_permille: Some(card.sm_permille),
            occupancy_permille: Some(card.occupancy_permille),
            dram_permille: Some(card.dram_permille),
            read_ns: 2,
        };
        started(&mut ledger, Happened::Read(CardId(n), reading), 2);
    }
    ledger
}

/// Where a newcomer goes.
fn goes(label: &str, cards: &[Card], estimate_bytes: Option<u64>) -> Option<CardId> {
    started(&mut ledger(label, cards), Happened::Arrived(task(1000, estimate_bytes)), 3).map(|cards| cards[0])
}

/// The rule of candidates, written anew: what is read within its caps, in percent, and enough free.
fn fits(card: &Card, caps: [u32; 3], free_bytes: u64, estimate_bytes: Option<u64>, margin_bytes: u64) -> bool {
    let wanted = free_bytes.max(estimate_bytes.map_or(0, |bytes| bytes + margin_bytes));
    let read = [card.sm_permille, card.occupancy_permille, card.dram_permille];
    read.into_iter().zip(caps).all(|(read, cap)| read <= cap * 10) && card.free_bytes.saturating_sub(RESERVE) >= wanted
}

/// What an order's name says, written anew: the card that it picks among candidates, by free memory, SM activity and number.
fn named(order: &str, all: &[Card], candidates: &[usize]) -> Option<usize> {
    let by = |key: &dyn Fn(usize) -> i128| candidates.iter().copied().min_by_key(|n| (key(*n), *n));
    let (free, sm) = (|n: usize| i128::from(all[n].free_bytes), |n: usize| i128::from(all[n].sm_permille));
    match order {
        "ff" | "slots" | "packed" => candidates.first().copied(),
        "bf" => by(&|n| free(n)),
        "magm" => by(&|n| -free(n)),
        "lug" => by(&|n| sm(n)),
        "mug" => by(&|n| -sm(n)),
        // Each card has been given once, the first one first.
        "rr" => candidates.first().copied(),
        "exclusive" => None,
        other => panic!("say what `{other}` picks"),
    }
}

fn cards() -> impl Strategy<Value = Vec<Card>> {
    // Whole percents, so that a cap is often met exactly.
    let card = (2u64..39, [0u32..=100, 0..=100, 0..=100]).prop_map(|(gb, [sm, occupancy, dram])| Card {
        free_bytes: gb * GB,
        sm_permille: sm * 10,
        occupancy_permille: occupancy * 10,
        dram_permille: dram * 10,
    });
    proptest::collection::vec(card, 1..8)
}

fn distinct(cards: &[Card]) -> bool {
    let differ = |key: &dyn Fn(&Card) -> u64| {
        let mut all: Vec<u64> = cards.iter().map(key).collect();
        all.sort_unstable();
        all.windows(2).all(|two| two[0] != two[1])
    };
    differ(&|card| card.free_bytes) && differ(&|card| u64::from(card.sm_permille))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_policy_picks_what_its_name_says_among_those_that_its_conditions_allow(
        all in cards(), caps in [0u32..=100, 50..=100, 50..=100], free in 0u64..20, margin in 0u64..4,
        estimate in proptest::option::of(1u64..30),
    ) {
        let [sm, occupancy, dram] = caps;
        for order in ORDERS {
            let conditions = order.parameters.contains(&"sm");
            let slots = if order.numbered { "3," } else { "" };
            let label = match (order.name, conditions) {
                (name, true) => {
                    format!("{name}:{slots}sm={sm}%,occupancy={occupancy}%,dram={dram}%,free={free}GB,margin={margin}GB")
                }
                ("packed", _) => "packed:sum=100%".to_string(),
                (name, false) => name.to_string(),
            };
            let estimate_bytes = estimate.map(|gb| gb * GB);
            let may = |n: &usize| !conditions || fits(&all[*n], caps, free * GB, estimate_bytes, margin * GB);
            let candidates: Vec<usize> = (0..all.len()).filter(may).collect();
            let expected = named(order.name, &all, &candidates).map(|n| CardId(n as u32));
            prop_assert_eq!(goes(&label, &all, estimate_bytes), expected, "{}", label);
        }
    }

    #[test]
    fn shuffled_numbers_of_cards_permute_the_choice(all in cards().prop_filter("no ties", |all| distinct(all)), turn in 0usize..8) {
        let turn = turn % all.len();
        let mut turned = all.clone();
        turned.rotate_left(turn);
        for order in ["bf", "magm", "lug", "mug"] {
            let [before, after] = [&all, &turned].map(|cards| goes(&format!("{order}:sm=80%"), cards, Some(4 * GB)));
            prop_assert_eq!(before.map(|card| all[card.0 as usize]), after.map(|card| turned[card.0 as usize]), "{}", order);
        }
    }

    #[test]
    fn what_a_policy_likes_never_makes_it_leave_a_card(all in cards(), more in 1u64..10) {
        let changed = |card: CardId, change: &dyn Fn(&mut Card)| {
            let mut cards = all.clone();
            change(&mut cards[card.0 as usize]);
            cards
        };
        let liked: [(&str, Change<'_>); 4] = [
            ("magm", &|card| card.free_bytes += more * GB),
            ("bf", &|card| card.free_bytes = card.free_bytes.saturating_sub(more * GB).max(2 * GB)),
            ("lug", &|card| card.sm_permille = card.sm_permille.saturating_sub(more as u32)),
            ("mug", &|card| card.sm_permille += more as u32),
        ];
        for (order, change) in liked {
            let before = goes(order, &all, None).expect("nothing is asked");
            prop_assert_eq!(goes(order, &changed(before, change), None), Some(before), "{}", order);
        }
    }

    #[test]
    fn opposites_differ_whenever_candidates_do(all in cards().prop_filter("no ties", |all| all.len() > 1 && distinct(all))) {
        prop_assert_ne!(goes("bf", &all, None), goes("magm", &all, None));
        prop_assert_ne!(goes("lug", &all, None), goes("mug", &all, None));
    }

    #[test]
    fn a_label_reads_back(order in 0..ORDERS.len(), numbers in any::<[u32; 6]>()) {
        let text = crate::case::label(&ORDERS[order], numbers);
        let label = policy::parse(&text).expect("a label").label();
        prop_assert_eq!(policy::parse(&label).expect("a label").label(), label.clone());
        // The parts of both are the same; two spellings have one label.
        prop_assert_eq!(label, text);
    }

    #[test]
    fn no_text_breaks_the_reader_of_labels(text in "\\PC*") {
        let _ = policy::parse(&text).map(|policy| policy.label());
    }
}

/// What is changed of a card.
type Change<'a> = &'a dyn Fn(&mut Card);

#[test]
fn the_circle_goes_round_and_slots_fill_evenly_and_exclusive_never_shares() {
    let site = vec![SiteCard { capacity_bytes: CAPACITY, reserve_bytes: 0, node: 0 }; 3];
    let given = |label: &str, idle_first: bool, tasks: u32| {
        let rules = Rules { idle_first, ..Rules::of(label, site.clone()) };
        let mut ledger = Ledger::open(&rules).expect("a policy");
        (0..tasks).map(|n| started(&mut ledger, Happened::Arrived(task(n, None)), 0).map(|cards| cards[0].0)).collect::<Vec<_>>()
    };
    assert_eq!(given("rr", false, 5), [0, 1, 2, 0, 1].map(Some));
    assert_eq!(given("slots:2", true, 7), [Some(0), Some(1), Some(2), Some(0), Some(1), Some(2), None]);
    assert_eq!(given("slots:3", false, 7), [0, 1, 2, 0, 1, 2, 0].map(Some));
    assert_eq!(given("exclusive", true, 4), [Some(0), Some(1), Some(2), None]);
    assert_eq!(given("bf", false, 1), [Some(0)]);
    assert_eq!(given("packed:sum=60%", false, 4), [0, 0, 1, 1].map(Some), "first fit, not the emptiest");
}

#[test]
fn idle_cards_come_first_unless_the_rules_say_otherwise() {
    let site = vec![SiteCard { capacity_bytes: CAPACITY, reserve_bytes: 0, node: 0 }; 2];
    for (idle_first, expected) in [(true, 1), (false, 0)] {
        let mut ledger = Ledger::open(&Rules { idle_first, ..Rules::of("bf", site.clone()) }).expect("a policy");
        let first = started(&mut ledger, Happened::Arrived(task(0, Some(GB))), 0).expect("idle")[0];
        assert_eq!(first, CardId(0));
        let second = started(&mut ledger, Happened::Arrived(task(1, Some(GB))), 0).expect("there is room")[0];
        assert_eq!(second, CardId(expected));
    }
}

#[test]
fn what_is_promised_is_not_free_and_between_equals_the_fewest_residents_come_first() {
    let site = vec![SiteCard { capacity_bytes: CAPACITY, reserve_bytes: 0, node: 0 }; 2];
    let settles = |ledger: &mut Ledger, id: u32, gb: u64| {
        started(ledger, Happened::Settled(collo_schedule::AttemptId(id), Some(gb * GB)), 1);
    };
    for (order, expected) in [("magm", 1), ("bf", 0)] {
        let mut ledger = Ledger::open(&Rules::of(order, site.clone())).expect("a policy");
        started(&mut ledger, Happened::Arrived(task(0, Some(25 * GB))), 0);
        started(&mut ledger, Happened::Arrived(task(1, Some(20 * GB))), 0);
        settles(&mut ledger, 1, 20);
        // 15 GB are left of the first card, of which nothing is held yet, and 20 of the other.
        let third = started(&mut ledger, Happened::Arrived(task(2, Some(GB))), 2);
        assert_eq!(third, Some(vec![CardId(expected)]), "{order}");
    }
    let mut ledger = Ledger::open(&Rules::of("magm", site)).expect("a policy");
    for (id, gb) in [(0, 10), (1, 20), (2, 10)] {
        let card = started(&mut ledger, Happened::Arrived(task(id, Some(gb * GB))), 0);
        assert_eq!(card, Some(vec![CardId(id % 2)]), "two on the first card, one on the other");
        settles(&mut ledger, id, gb);
    }
    assert_eq!(started(&mut ledger, Happened::Arrived(task(3, Some(GB))), 2), Some(vec![CardId(1)]), "20 GB are free of each");
}

#[test]
fn several_cards_are_the_first_of_the_order_and_of_one_node() {
    let nodes = [0, 1, 1, 0];
    let site = nodes.map(|node| SiteCard { capacity_bytes: CAPACITY, reserve_bytes: 0, node }).to_vec();
    let mut ledger = Ledger::open(&Rules::of("magm", site)).expect("a policy");
    for (n, free_gb) in (0..).zip([30, 39, 31, 32]) {
        let reading = Reading { free_bytes: Some(free_gb * GB), ..Reading::default() };
        started(&mut ledger, Happened::Read(CardId(n), reading), 0);
    }
    let two = Task { cards: 2, ..task(0, Some(GB)) };
    // By free memory they come as 1, 3, 2, 0: the first two of one node are 1 and 2.
    assert_eq!(started(&mut ledger, Happened::Arrived(two), 0), Some(vec![CardId(1), CardId(2)]));
    let three = Task { cards: 3, ..task(1, None) };
    started(&mut ledger, Happened::Arrived(three), 0);
    assert_eq!(ledger.state(TaskId(1)), Some(collo_schedule::State::Never), "no node has three");
}

#[test]
fn without_an_estimate_a_card_with_somebody_unsettled_is_no_candidate() {
    let site = vec![SiteCard { capacity_bytes: CAPACITY, reserve_bytes: 0, node: 0 }];
    let mut ledger = Ledger::open(&Rules::of("magm:sm=80%", site)).expect("a policy");
    started(&mut ledger, Happened::Arrived(task(0, Some(GB))), 0).expect("idle");
    assert_eq!(started(&mut ledger, Happened::Arrived(task(1, None)), 1), None);
    let why = ledger.take_decided().pop().expect("a decision");
    assert_eq!((why.why.as_str(), why.seen[0].why_not), ("no card: a reading is missing", Some(WhyNot::NoReading)));
    let reading = Reading { free_bytes: Some(39 * GB), sm_permille: Some(900), read_ns: 2, ..Reading::default() };
    assert_eq!(started(&mut ledger, Happened::Read(CardId(0), reading), 2), None);
    assert_eq!(ledger.take_decided().pop().expect("a decision").why, "no card: SM activity above the cap");
    assert_eq!(
        started(&mut ledger, Happened::Read(CardId(0), Reading { sm_permille: Some(800), read_ns: 3, ..reading }), 3),
        None
    );
    assert_eq!(ledger.take_decided().pop().expect("a decision").why, "no card: somebody has not settled");
    let settled = Happened::Settled(collo_schedule::AttemptId(0), Some(GB));
    assert_eq!(started(&mut ledger, settled, 4), Some(vec![CardId(0)]));
}

#[test]
fn a_reading_older_than_the_window_rules_a_card_out() {
    let site = vec![SiteCard { capacity_bytes: CAPACITY, reserve_bytes: 0, node: 0 }; 2];
    let rules = Rules { window_ns: 10, ..Rules::of("rr", site) };
    let mut ledger = Ledger::open(&rules).expect("a policy");
    started(&mut ledger, Happened::Read(CardId(0), Reading { read_ns: 0, ..Reading::default() }), 0);
    started(&mut ledger, Happened::Read(CardId(1), Reading { read_ns: 5, ..Reading::default() }), 5);
    assert_eq!(started(&mut ledger, Happened::Arrived(task(0, None)), 11), Some(vec![CardId(1)]));
    assert_eq!(ledger.take_decided().pop().expect("a decision").seen[0].why_not, Some(WhyNot::StaleReading));
    let mut ledger = Ledger::open(&rules).expect("a policy");
    started(&mut ledger, Happened::Read(CardId(0), Reading { read_ns: 0, ..Reading::default() }), 0);
    assert_eq!(started(&mut ledger, Happened::Arrived(task(0, None)), 10), Some(vec![CardId(0)]), "as old as the window");
}

#[test]
fn a_look_is_asked_for_when_a_mean_could_have_fallen_to_its_cap() {
    let cards = [Card::of(30, 900), Card::of(30, 830)];
    let mut ledger = ledger("magm:sm=80%", &cards);
    let mut acts = Vec::new();
    ledger.on(Happened::Arrived(task(9, None)), 3, &mut acts);
    // 30 ‰ above the cap fall away in 30 thousandths of 90 s at the earliest.
    assert_eq!(acts, [Act::LookAt(2 + 2_700_000_000)]);
    acts.clear();
    ledger.on(Happened::Look, 4, &mut acts);
    assert_eq!(acts, [], "it is asked for once");
    let read_ns = 2 + 2_700_000_000;
    let reading = Reading { free_bytes: Some(30 * GB), sm_permille: Some(810), read_ns, ..Reading::default() };
    ledger.on(Happened::Read(CardId(1), reading), read_ns, &mut acts);
    assert_eq!(acts, [Act::LookAt(read_ns + 900_000_000)], "and again once that has passed");
}

#[test]
fn a_cadence_decides_at_its_multiples_alone() {
    let site = vec![SiteCard { capacity_bytes: CAPACITY, reserve_bytes: 0, node: 0 }];
    let mut ledger = Ledger::open(&Rules { decide_every_ns: Some(35), ..Rules::of("exclusive", site) }).expect("a policy");
    let mut acts = Vec::new();
    ledger.on(Happened::Look, 1, &mut acts);
    ledger.on(Happened::Arrived(task(0, None)), 2, &mut acts);
    assert_eq!(acts, [Act::LookAt(35)]);
    assert_eq!(started(&mut ledger, Happened::Look, 35), Some(vec![CardId(0)]));
    acts.clear();
    ledger.on(Happened::Arrived(task(1, None)), 36, &mut acts);
    ledger.on(Happened::Look, 70, &mut acts);
    assert_eq!(acts, [Act::LookAt(70), Act::LookAt(105)], "it waits for the next one, and the next");
}

#[test]
fn what_a_policy_needs_is_said_by_its_label() {
    let needs = |label: &str| policy::parse(label).expect("a policy").needs();
    assert!(!needs("exclusive").uses_estimate() && !needs("rr").uses_estimate() && needs("magm").uses_estimate());
    assert_eq!(needs("bf:margin=2GB").estimate, Estimate::Required);
    assert!(needs("lug").sm && needs("ff:sm=80%").sm && !needs("ff").sm);
    assert!(needs("ff:occupancy=45%").occupancy && needs("ff:dram=40%").dram);
}

#[test]
fn a_label_that_is_wrong_says_what_would_be_right() {
    let wrong = |text: &str| policy::parse(text).err().expect("a mistake").to_string();
    insta::assert_snapshot!(wrong("mgam:sm=80%"), @r#"
    error: unknown policy `mgam` at column 1 of `policy`
       | mgam:sm=80%
       | ^^^^ did you mean `magm`?
    "#);
    insta::assert_snapshot!(wrong("magm:smm=80%"), @r#"
    error: unknown parameter `smm` of `magm` at column 6 of `policy`
       | magm:smm=80%
       |      ^^^^^^^ did you mean `sm`?
    "#);
    insta::assert_snapshot!(wrong("magm:sm=80"), @r#"
    error: `80` is no value of `sm` at column 6 of `policy`
       | magm:sm=80
       |      ^^^^^ write a share of at most 100 %: `80%`
    "#);
    for text in [
        "",
        "magm:",
        "magm:sm",
        "magm:sm=80%,sm=70%",
        "slots",
        "slots:0",
        "slots:x",
        "rr:sm=80%",
        "magm:free=5",
        "packed",
        "magm:sm=101%",
    ] {
        let said = wrong(text);
        assert!(said.lines().count() > 1, "{said}");
    }
}
