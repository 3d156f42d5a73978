//! Guidelines on campaigns with known truth. `cargo bench -p collo-report --bench verdicts` judges many; a few of each scenario are judged
//! here, so that a rule that is wrong most of the time is found with the tests.

#[path = "../benches/verdicts/campaigns.rs"]
mod campaigns;
#[path = "../benches/verdicts/judge.rs"]
mod judge;
#[path = "../benches/verdicts/scenarios.rs"]
mod scenarios;
#[path = "../benches/verdicts/world.rs"]
mod world;

use std::collections::BTreeSet;

use scenarios::{SCENARIOS, Scenario, Wrong};

const CAMPAIGNS: usize = 4;
/// More wrong ones of four have a probability of 1.4 % at a rate of 5 %.
const ACCEPTED: f64 = 1.0 / 4.0;

#[test]
fn guidelines_are_rarely_wrong_where_the_truth_is_known() {
    let all: Vec<&Scenario> = SCENARIOS.iter().collect();
    let found = judge::judge(&all, CAMPAIGNS);
    let mut wrong = Vec::new();
    for (id, by_scenario) in &found {
        for (scenario, tally) in by_scenario {
            let about = all.iter().find(|s| s.name == *scenario).unwrap().about;
            assert_eq!((tally.campaigns, tally.absent), (CAMPAIGNS, 0), "{id} is asked of every campaign of {scenario}: {about}");
            if tally.wrong_ratio() > ACCEPTED {
                wrong.push((*id, *scenario));
            }
        }
    }
    assert!(wrong.is_empty(), "guideline and scenario: {wrong:?}");
    // A rule that is open everywhere is never wrong, and says nothing.
    let decided = |by_scenario: &std::collections::BTreeMap<_, judge::Tally>| by_scenario.values().any(|t| t.yes + t.no > 0);
    let silent: Vec<&str> = found.iter().filter(|(_, by_scenario)| !decided(by_scenario)).map(|(id, _)| *id).collect();
    assert_eq!(silent, Vec::<&str>::new());
}

#[test]
fn every_judged_guideline_can_be_wrong_both_ways() {
    let answers = |answer: Wrong| -> BTreeSet<&str> {
        SCENARIOS.iter().flat_map(|s| s.truths).filter(|(_, wrong)| *wrong == answer).map(|(id, _)| *id).collect()
    };
    let one_sided: Vec<&str> = answers(Wrong::Yes).symmetric_difference(&answers(Wrong::No)).copied().collect();
    assert_eq!(one_sided, Vec::<&str>::new());
}
