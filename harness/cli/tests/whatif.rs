//! `collo whatif`: a case study on paper, marked as such.

use serde_json::Value;

use crate::support::Bench;

const CASE: [&str; 2] = ["whatif", "published:hotcloud20"];

fn asked(bench: &Bench, more: &[&str]) -> Value {
    bench.collo(&[&CASE, more, &["--json"]].concat()).exits(0).json()
}

/// The ranges of a scheduler under the law that is told.
fn scheduler<'a>(answer: &'a Value, name: &str) -> &'a Value {
    let all = answer["laws"][0]["schedulers"].as_array().expect("a list");
    all.iter().find(|one| one["scheduler"] == name).unwrap_or_else(|| panic!("no {name} in {all:?}"))
}

#[test]
fn a_case_study_says_projected_and_published_and_what_was_assumed() {
    let bench = Bench::new();
    let said = bench.collo(&[&CASE[..], &["--orders", "3"]].concat()).exits(0);
    assert!(said.stdout.starts_with("published:hotcloud20, PROJECTED: no job ran\n"), "{}", said.stdout);
    let said = said.answers("3 orders, seeds 1 to 3").answers("  published").answers("+61.5").answers("−33.6");
    let said = said.answers("proactive > reactive > slot-based").answers("proactive > shuffled").answers("HotCloud 2020");
    let said = said.answers("assumed\n- jobs: 100 at once").answers("RMSLE 0.154").answers("under another law");
    assert!(said.stdout.lines().all(|line| line.chars().count() <= 100), "{}", said.stdout);
    assert_eq!(bench.campaigns(), 0);
}

#[test]
fn every_order_is_there_for_programs_and_the_published_figures_only_where_there_are_any() {
    let bench = Bench::new();
    let answer = asked(&bench, &["--orders", "4", "--seed", "7"]);
    assert_eq!((&answer["mark"], &answer["published"]["mark"]), (&"projected".into(), &"published".into()));
    assert_eq!(answer["seeds"], serde_json::json!([7, 8, 9, 10]));
    let proactive = scheduler(&answer, "proactive");
    assert_eq!(proactive["published"]["utilisation_percent"]["mean"], 69.6);
    assert_eq!(proactive["published_makespan_reduction_percent"], 33.6);
    assert_eq!(scheduler(&answer, "shuffled")["published"], Value::Null);
    assert_eq!(scheduler(&answer, "slot-based")["against_slot_based"]["makespan_s"]["median"], 1.0);
    assert_eq!(scheduler(&answer, "reactive")["against_slot_based"]["out_of_memory"], Value::Null, "by slots nothing runs out");
    let of = |name: &str, quantity: &str| -> Vec<f64> {
        let values = scheduler(&answer, name)["by_seed"][quantity].as_array().expect("a list");
        values.iter().map(|value| value.as_f64().expect("a number")).collect()
    };
    let orders =
        of("proactive", "useful_in_use").into_iter().zip(of("reactive", "useful_in_use")).zip(of("slot-based", "useful_in_use"));
    for ((proactive, reactive), slots) in orders {
        assert!(proactive > reactive && reactive > slots, "{proactive} {reactive} {slots}");
    }
    // Wait included it takes longer than without.
    assert!(of("exact", "mean_completion_s").iter().zip(of("exact", "mean_execution_s")).all(|(with, without)| *with > without));
}

#[test]
fn a_seed_means_the_same_jobs_wherever_it_stands() {
    let bench = Bench::new();
    let (several, one) = (asked(&bench, &["--orders", "2", "--seed", "4"]), asked(&bench, &["--orders", "1", "--seed", "5"]));
    for name in ["slot-based", "reactive", "proactive", "shuffled", "exact"] {
        let of = |answer: &Value, at: usize| scheduler(answer, name)["by_seed"]["makespan_s"][at].as_f64().expect("a number");
        assert_eq!(of(&several, 1), of(&one, 0), "{name}");
        assert_ne!(of(&several, 0), of(&several, 1), "{name}");
    }
    let said = bench.collo(&[&CASE[..], &["--orders", "1", "--seed", "5"]].concat()).exits(0);
    said.answers("the order of seed 5").answers("0 of 1 orders").answers("1 of 1");
}

#[test]
fn what_cannot_be_projected_is_said_with_what_can() {
    let bench = Bench::new();
    bench.collo(&["whatif", "published:hotclod20"]).exits(2).says("did you mean `published:hotcloud20`?");
    bench
        .collo(&["whatif", "quickstart"])
        .exits(2)
        .says("nothing is called `quickstart`")
        .says("available: `published:hotcloud20`");
    bench.collo(&["whatif"]).exits(2).says("<NAME>");
    bench.collo(&[&CASE[..], &["--orders", "0"]].concat()).exits(2).says("1..=1000");
    bench.collo(&[&CASE[..], &["--orders", "many"]].concat()).exits(2).says("many");
    bench.collo(&[&CASE[..], &["--seed", "-1"]].concat()).exits(2);
}
