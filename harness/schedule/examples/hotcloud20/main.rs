//! The case study of HotCloud'20 on paper: what its three schedulers would do with a hundred jobs, and what a useless predictor would.
//!
//! The paper gives its results, not its jobs. They are drawn here from what it says of them; what it does not say is assumed, and
//! printed. Everything printed is projected, and beside it stands what was published.
//!
//! In: how many times the jobs are drawn, and the first seed. Out: tables, or JSON with every order of every scheduler.
//!
//! ```sh
//! cargo run -p collo-schedule --example hotcloud20                        # 20 orders, seeds 1 to 20; seconds
//! cargo run -p collo-schedule --example hotcloud20 -- 200 7               # 200 orders from seed 7 on
//! cargo run -p collo-schedule --example hotcloud20 -- --json
//! ```

mod arm;
mod figures;
mod jobs;
mod json;
mod law;
mod project;
mod published;
mod tables;

use std::process::ExitCode;

use arm::Arm;
use collo_figures::document::terminal::{self, LONGEST_LINE};
use figures::{CaseStudy, Quantity};
use law::Law;
use published::published;

const NAME: &str = "published:hotcloud20";
/// The order that the paper found.
const FOUND: [Arm; 3] = [Arm::Proactive, Arm::Reactive, Arm::SlotBased];
/// Quantities of which more is better, in which it is looked for.
const USES: [Quantity; 3] = [Quantity::Utilisation, Quantity::UtilisationInUse, Quantity::UsefulInUse];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match answer(&arguments) {
        Some(text) => {
            println!("{}", text.trim_end());
            ExitCode::SUCCESS
        }
        None => {
            eprintln!("usage: hotcloud20 [--json] [ORDERS [SEED]], with 1 to 1000 orders");
            ExitCode::from(2)
        }
    }
}

/// The text that these arguments ask for; `None` if they are not understood.
fn answer(arguments: &[String]) -> Option<String> {
    let (options, numbers): (Vec<&String>, Vec<&String>) = arguments.iter().partition(|word| word.starts_with('-'));
    let numbers: Vec<u64> = numbers.into_iter().map(|word| word.parse::<u32>().ok().map(u64::from)).collect::<Option<_>>()?;
    let (orders, seed) = match numbers[..] {
        [] => (20, 1),
        [orders] => (orders, 1),
        [orders, seed] => (orders, seed),
        _ => return None,
    };
    if !(1..=1000).contains(&orders) || options.iter().any(|word| *word != "--json") {
        return None;
    }
    let studies = Law::ALL.map(|law| (law, CaseStudy::of(seed..seed + orders, law)));
    Some(match options.is_empty() {
        true => terminal::text(&tables::blocks(&studies), LONGEST_LINE),
        false => serde_json::to_string_pretty(&json::value(&studies)).ok()?,
    })
}

/// What was assumed, for readers.
fn assumptions(law: Law) -> Vec<String> {
    let says = published();
    jobs::assumptions(says).into_iter().chain(arm::assumptions(says)).chain([law.assumption(says)]).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn asked(words: &str) -> Option<String> {
        answer(&words.split_whitespace().map(str::to_string).collect::<Vec<_>>())
    }

    fn parsed(words: &str) -> Value {
        serde_json::from_str(&asked(words).expect("understood")).expect("JSON")
    }

    /// A scheduler under the law that is printed first.
    fn scheduler<'a>(answer: &'a Value, name: &str) -> &'a Value {
        let all = answer["laws"][0]["schedulers"].as_array().expect("a list");
        all.iter().find(|one| one["scheduler"] == name).unwrap_or_else(|| panic!("no {name} in {all:?}"))
    }

    #[test]
    fn projected_and_published_are_marked_and_what_was_assumed_is_listed() {
        let text = asked("3").expect("understood");
        assert!(text.starts_with("published:hotcloud20, PROJECTED: no job ran\n"), "{text}");
        let parts =
            ["3 orders, seeds 1 to 3", "  published", "HotCloud 2020", "assumed\n- jobs: 100 at once", "under another law"];
        for part in parts {
            assert!(text.contains(part), "no `{part}` in {text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= LONGEST_LINE), "{text}");
    }

    #[test]
    fn every_order_is_there_for_programs_and_the_published_figures_only_where_there_are_any() {
        let answer = parsed("4 7 --json");
        assert_eq!((&answer["mark"], &answer["published"]["mark"]), (&"projected".into(), &"published".into()));
        assert_eq!(answer["seeds"], serde_json::json!([7, 8, 9, 10]));
        let proactive = scheduler(&answer, "proactive");
        assert_eq!(proactive["published"]["utilisation_percent"]["mean"], 69.6);
        assert_eq!(proactive["published_makespan_reduction_percent"], 33.6);
        assert_eq!(scheduler(&answer, "shuffled")["published"], Value::Null);
        assert_eq!(scheduler(&answer, "slot-based")["against_slot_based"]["makespan_s"]["median"], 1.0);
        let reactive = &scheduler(&answer, "reactive")["against_slot_based"];
        assert_eq!(reactive["out_of_memory"], Value::Null, "by slots nothing runs out");
        let of = |name: &str, quantity: &str| -> Vec<f64> {
            let values = scheduler(&answer, name)["by_seed"][quantity].as_array().expect("a list");
            values.iter().map(|value| value.as_f64().expect("a number")).collect()
        };
        let useful = |name| of(name, "useful_in_use");
        for ((proactive, reactive), slots) in useful("proactive").into_iter().zip(useful("reactive")).zip(useful("slot-based")) {
            assert!(proactive > reactive && reactive > slots, "{proactive} {reactive} {slots}");
        }
        // Wait included it takes longer than without.
        let (with, without) = (of("exact", "mean_completion_s"), of("exact", "mean_execution_s"));
        assert!(with.iter().zip(&without).all(|(with, without)| with > without), "{with:?} {without:?}");
    }

    #[test]
    fn a_seed_means_the_same_jobs_wherever_it_stands() {
        let (several, one) = (parsed("--json 2 4"), parsed("--json 1 5"));
        for name in Arm::ALL.map(Arm::name) {
            let of = |answer: &Value, at: usize| scheduler(answer, name)["by_seed"]["makespan_s"][at].as_f64().expect("a number");
            assert_eq!(of(&several, 1), of(&one, 0), "{name}");
            assert_ne!(of(&several, 0), of(&several, 1), "{name}");
        }
        let text = asked("1 5").expect("understood");
        for part in ["the order of seed 5", "0 of 1 orders", "1 of 1"] {
            assert!(text.contains(part), "no `{part}` in {text}");
        }
    }

    #[test]
    fn what_is_not_understood_is_not_projected() {
        for words in ["0", "1001", "many", "1 -1", "1 2 3", "--csv"] {
            assert_eq!(asked(words), None, "{words}");
        }
    }
}
