//! Random sites, policies and tasks, and a body that lets anything happen to them at any time.

use collo_schedule::policy::{ORDERS, Order};
use collo_schedule::{Keeps, Rules, SiteCard, Task, TaskId};
use proptest::prelude::*;

const GB: u64 = 1_000_000_000;

/// A task as it is drawn: gap, cards, true need, estimate over it, whether it is known, belief.
type Drawn = (u64, u32, u64, u64, u32, Option<u32>);

/// A task, and what it truly needs of each of its cards. No ledger sees that.
#[derive(Debug, Clone)]
pub struct Given {
    pub task: Task,
    pub truly_bytes: u64,
}

/// A random trace on a random site.
#[derive(Debug, Clone)]
pub struct Case {
    pub rules: Rules,
    pub tasks: Vec<Given>,
    /// What happens, in the words of the body.
    pub choices: Vec<u32>,
    /// Cards are lost, disks fill, people interrupt.
    pub misfortune: bool,
}

/// Any label of an order: whatever is added to `ORDERS` is in every property.
pub fn label(order: &Order, numbers: [u32; 6]) -> String {
    let [which, sm, free, margin, most, sum] = numbers;
    let mut parts: Vec<String> = Vec::new();
    if order.numbered {
        parts.push((most % 4 + 1).to_string());
    }
    for (n, parameter) in order.parameters.iter().enumerate() {
        let value = match *parameter {
            "sm" | "occupancy" | "dram" => format!("{}%", 30 + sm % 70),
            "free" => format!("{}GB", free % 6 + 1),
            "margin" => format!("{}GB", margin % 3 + 1),
            "sum" => format!("{}%", 50 + sum % 100),
            "most" => format!("{}", most % 4 + 1),
            "profile" => format!("{}ms", 1 + sum % 9),
            other => panic!("say what `{other}` can be"),
        };
        // Without it the packing is none.
        if which >> n & 1 == 1 || *parameter == "sum" {
            parts.push(format!("{parameter}={value}"));
        }
    }
    let colon = if parts.is_empty() { "" } else { ":" };
    format!("{}{colon}{}", order.name, parts.join(","))
}

fn policies() -> impl Strategy<Value = String> {
    (0..ORDERS.len(), any::<[u32; 6]>()).prop_map(|(order, numbers)| label(&ORDERS[order], numbers))
}

fn rules() -> impl Strategy<Value = Rules> {
    let cards = proptest::collection::vec((4u64..12, 0u64..2, 0u32..2), 1..6);
    let queue = prop_oneof![Just("fifo"), Just("fifo:pass=1"), Just("fifo:pass=3"), Just("fifo:one"), Just("decreasing")];
    let recovery = prop_oneof![Just("exclusive"), Just("step:2GB"), Just("none")];
    let keeps = prop_oneof![Just(Keeps::Card), Just(Keeps::All), Just(Keeps::Nothing)];
    // A cadence is shorter than the window: or else the cards' readings may be too old whenever it decides.
    let times = (100u64..500, proptest::option::weighted(0.2, 1u64..60));
    (policies(), queue, recovery, keeps, 1u32..5, times, any::<bool>(), cards).prop_map(
        |(policy, queue, recovery, recovery_keeps, attempts, (window_ns, decide_every_ns), idle_first, cards)| {
            let card = |(capacity, reserve, node): (u64, u64, u32)| SiteCard {
                capacity_bytes: capacity * GB,
                reserve_bytes: reserve * GB,
                node,
            };
            Rules {
                queue: queue.into(),
                recovery: recovery.into(),
                recovery_keeps,
                attempts,
                window_ns,
                decide_every_ns,
                idle_first,
                ..Rules::of(policy, cards.into_iter().map(card).collect())
            }
        },
    )
}

/// With estimates of all tasks that are upper bounds and fit every card, or with any or none.
pub fn cases(bounds: bool) -> impl Strategy<Value = Case> {
    let task = (0u64..40, 1u32..3, 1u64..90, 0u64..30, 0u32..3, proptest::option::of(1u32..1300));
    let tasks = proptest::collection::vec(task, 1..30);
    let choices = proptest::collection::vec(any::<u32>(), 1..250);
    (rules(), tasks, choices, proptest::bool::weighted(0.3)).prop_map(move |(rules, tasks, choices, misfortune)| {
        let least = rules.cards.iter().map(|card| card.capacity_bytes - card.reserve_bytes).min().expect("cards");
        let mut at_ns = 0;
        let given = |(id, (gap_ns, cards, truly, over, known, believed_permille)): (u32, Drawn)| {
            at_ns += gap_ns;
            let truly_bytes = if bounds { (truly * GB / 10).min(least) } else { truly * GB / 6 };
            let estimate = match (bounds, known) {
                (true, _) => Some((truly_bytes + over * GB / 10).min(least)),
                (_, 0) => None,
                (_, 1) => Some(truly_bytes),
                _ => Some(truly_bytes * over / 15),
            };
            let task = Task { id: TaskId(id), arrives_ns: at_ns, cards, estimate_bytes: estimate, believed_permille };
            Given { task, truly_bytes }
        };
        let tasks: Vec<Given> = (0..).zip(tasks).map(given).collect();
        let expects = Some(tasks.len() as u32);
        Case { rules: Rules { expects, ..rules }, tasks, choices, misfortune }
    })
}
