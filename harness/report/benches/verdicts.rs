//! How often a guideline concludes what is not true: campaigns with known truth, 200 of each scenario. Prints a table and writes
//! `target/bench/verdicts.json`.
//!
//! `cargo bench -p collo-report --bench verdicts`; behind `--`: names of scenarios, `--campaigns=1000`, `--list`, or `--print` for what the
//! guidelines of a scenario's first campaign say.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on ends here")]

#[path = "verdicts/campaigns.rs"]
mod campaigns;
#[path = "verdicts/judge.rs"]
mod judge;
#[path = "verdicts/scenarios.rs"]
mod scenarios;
#[expect(dead_code, reason = "the benchmark uses its part of the builder")]
#[path = "../tests/support/mod.rs"]
mod support;
#[path = "verdicts/world.rs"]
mod world;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use judge::{Tallies, Tally};
use scenarios::{SCENARIOS, Scenario};

const USAGE: &str = "usage: verdicts [--campaigns=N] [--list] [--print] [SCENARIO…]";
/// Of each scenario: the standard error of a rate of 5 % is then 1.5 %.
const CAMPAIGNS: usize = 200;

struct Asked {
    campaigns: usize,
    list: bool,
    print: bool,
    scenarios: Vec<&'static Scenario>,
}

fn main() {
    let asked = asked(std::env::args().skip(1).filter(|a| a != "--bench"));
    if asked.list {
        asked.scenarios.iter().for_each(|s| println!("{:<18} {}", s.name, s.about));
        return;
    }
    if asked.print {
        asked.scenarios.iter().for_each(|s| print(s));
        return;
    }
    let begin = Instant::now();
    let found = judge::judge(&asked.scenarios, asked.campaigns);
    let seconds = begin.elapsed().as_secs_f64();
    let campaigns = asked.scenarios.len() * asked.campaigns;
    let each_ms = seconds * 1e3 / campaigns as f64;
    println!("{campaigns} campaigns in {seconds:.0} s, {each_ms:.1} ms each");
    println!("{}", table(&found));
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/bench");
    fs_err::create_dir_all(&target).unwrap();
    let written = json!({
        "figure": "wrong verdicts on campaigns with known truth",
        "build": if cfg!(debug_assertions) { "dev" } else { "release" },
        "campaigns_per_scenario": asked.campaigns,
        "seconds_per_campaign": seconds / campaigns as f64,
        "guidelines": found.iter().map(|(id, by_scenario)| guideline(id, by_scenario)).collect::<Vec<_>>(),
    });
    fs_err::write(target.join("verdicts.json"), format!("{written:#}\n")).unwrap();
}

fn asked(words: impl Iterator<Item = String>) -> Asked {
    let mut asked = Asked { campaigns: CAMPAIGNS, list: false, print: false, scenarios: Vec::new() };
    for word in words {
        let scenario = SCENARIOS.iter().find(|s| s.name == word);
        match (word.as_str(), word.strip_prefix("--campaigns=").map(str::parse), scenario) {
            ("--list", ..) => asked.list = true,
            ("--print", ..) => asked.print = true,
            (_, Some(Ok(n)), _) if n > 0 => asked.campaigns = n,
            (.., Some(scenario)) => asked.scenarios.push(scenario),
            _ => panic!("`{word}`? {USAGE}"),
        }
    }
    if asked.scenarios.is_empty() {
        asked.scenarios = SCENARIOS.iter().collect();
    }
    asked
}

/// The first campaign of a scenario in the guidelines' own words.
fn print(scenario: &Scenario) {
    println!("## {}: {}", scenario.name, scenario.about);
    let report = judge::report(scenario, 1);
    for (id, wrong) in scenario.truths {
        let Some(g) = report.guideline(id) else {
            println!("{id}: not asked");
            continue;
        };
        println!("{id}: {}\n  holds here: {} (wrong would be {wrong:?})", g.statement, g.holds.as_str());
        let unlike = if scenario.unlike_published.contains(id) { " (the published statement is not true here)" } else { "" };
        println!("  agrees with the study: {}{unlike}\n  {}", g.agrees.text(), g.finding);
        let key = g.key.as_ref().map_or_else(|| "none".into(), |k| format!("`{}` {} {}", k.name(), k.to_text(), k.bounds()));
        println!("  key figure: {key}");
    }
    println!();
}

/// A row for each guideline and scenario.
fn table(found: &Tallies) -> String {
    let mut rows = vec![format!(
        "{:<17} {:<18} {:>6} {:>6} {:>6} {:>6} {:>8} {:>13} {:>9}",
        "guideline", "scenario", "judged", "yes", "no", "open", "wrong", "wrong agrees", "bare key"
    )];
    for (id, by_scenario) in found {
        rows.extend(by_scenario.iter().map(|(scenario, tally)| row(id, scenario, tally)));
        if by_scenario.len() > 1 {
            rows.push(row(id, "all", &sum(by_scenario)));
        }
    }
    rows.join("\n")
}

fn row(id: &str, scenario: &str, tally: &Tally) -> String {
    let percent = |n: usize| format!("{:.1} %", 100.0 * n as f64 / tally.campaigns as f64);
    format!(
        "{id:<17} {scenario:<18} {:>6} {:>6} {:>6} {:>6} {:>8} {:>13} {:>9}",
        tally.campaigns - tally.absent,
        tally.yes,
        tally.no,
        tally.open,
        percent(tally.wrong),
        percent(tally.wrongly_agrees),
        percent(tally.undecided_key),
    )
}

fn guideline(id: &str, by_scenario: &BTreeMap<&'static str, Tally>) -> Value {
    let of = |tally: &Tally| {
        json!({
            "campaigns": tally.campaigns, "yes": tally.yes, "no": tally.no, "open": tally.open, "absent": tally.absent,
            "wrong": tally.wrong, "wrongly_agrees": tally.wrongly_agrees, "undecided_key": tally.undecided_key,
        })
    };
    let scenarios: serde_json::Map<_, _> = by_scenario.iter().map(|(name, tally)| (name.to_string(), of(tally))).collect();
    let worst = by_scenario.iter().max_by(|a, b| a.1.wrong_ratio().total_cmp(&b.1.wrong_ratio())).unwrap();
    json!({"id": id, "all": of(&sum(by_scenario)), "worst": worst.0, "worst_wrong_ratio": worst.1.wrong_ratio(), "scenarios": scenarios})
}

/// All scenarios of a guideline together.
fn sum(by_scenario: &BTreeMap<&'static str, Tally>) -> Tally {
    by_scenario.values().fold(Tally::default(), |sum, of| Tally {
        campaigns: sum.campaigns + of.campaigns,
        yes: sum.yes + of.yes,
        no: sum.no + of.no,
        open: sum.open + of.open,
        absent: sum.absent + of.absent,
        wrong: sum.wrong + of.wrong,
        wrongly_agrees: sum.wrongly_agrees + of.wrongly_agrees,
        undecided_key: sum.undecided_key + of.undecided_key,
    })
}
