//! The JSON: every order of every scheduler, under each law.

use serde_json::{Value as Json, json};

use crate::arm::Arm;
use crate::figures::{CaseStudy, Holds, Quantity, Range};
use crate::law::Law;
use crate::published::published;
use crate::{FOUND, NAME, USES, assumptions};

pub fn value(studies: &[(Law, CaseStudy)]) -> Json {
    let says = published();
    let laws: Vec<Json> = studies
        .iter()
        .map(|(law, study)| {
            let schedulers: Vec<Json> = Arm::ALL.into_iter().map(|arm| of_scheduler(study, arm)).collect();
            let holds = |arms: &[Arm]| -> Json {
                USES.iter().map(|quantity| (quantity.key().to_string(), of_holds(&study.decreasing(*quantity, arms)))).collect()
            };
            json!({"law": law.name(), "assumed": assumptions(*law), "schedulers": schedulers,
                "proactive_reactive_slot_based": holds(&FOUND), "proactive_shuffled": holds(&[Arm::Proactive, Arm::Shuffled])})
        })
        .collect();
    let seeds: Vec<u64> = studies.first().map(|(_, study)| study.seeds().collect()).unwrap_or_default();
    json!({"schema": 1, "name": NAME, "mark": "projected", "seeds": seeds, "laws": laws,
        "published": {"mark": "published", "source": says.source, "device": says.device, "conditions": says.conditions,
            "slips": says.slips}})
}

fn of_scheduler(study: &CaseStudy, arm: Arm) -> Json {
    let ranges = |of: &dyn Fn(Quantity) -> Option<Range>| -> Json {
        let value = |range: Range| json!({"median": range.median, "low": range.low, "high": range.high});
        Quantity::ALL.into_iter().map(|quantity| (quantity.key().to_string(), of(quantity).map_or(Json::Null, value))).collect()
    };
    let by_seed = |quantity| -> Vec<Option<f64>> { study.seeds().map(|seed| study.value(seed, arm, quantity)).collect() };
    let each: Json = Quantity::ALL.into_iter().map(|quantity| (quantity.key().to_string(), json!(by_seed(quantity)))).collect();
    json!({"scheduler": arm.name(), "what": arm.what(), "policy": arm.policy().label(),
        "projected": ranges(&|quantity| study.range(arm, quantity)),
        "against_slot_based": ranges(&|quantity| study.against_slots(arm, quantity)),
        "by_seed": each,
        "published": published().of(arm),
        "published_utilisation_gain_percent": published().utilisation_gain_percent(arm),
        "published_makespan_reduction_percent": published().makespan_reduction_percent(arm)})
}

fn of_holds(holds: &Holds) -> Json {
    json!({"seeds": holds.seeds, "not_in": holds.not_in})
}
