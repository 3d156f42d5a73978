//! Groups predicted and measured. In: what was asked for. Out: a table of scores for each device and mode: fits that have not seen a group's
//! families, or the predictor of a file, beside rules of thumb.

use collo_figures::document::{Align, Table};
use collo_laboratory::company::{self, Groups, Measured, NamedScore};
use collo_plan::predictors;
use collo_predict::{CompanyMode, CompanyPredictor, CompanyScore, MeasuredGroup};
use serde_json::{Value as Json, json};

use super::super::percent;
use crate::args::Evaluate;
use crate::context::{Context, Ended};
use crate::{exit, output};

pub fn evaluate(context: &Context<'_>, asked: &Evaluate, predictor: Option<&str>) -> Ended {
    let groups = company::read(context, &asked.rows)?;
    let predictor = predictor.map(|name| named(context, name)).transpose()?;
    super::say(&groups);
    let mut parts = Vec::new();
    for (device, of_device) in groups.devices() {
        if asked.measured_by.as_ref().is_some_and(|who| *who != device) {
            continue;
        }
        for mode in CompanyMode::ALL {
            let of_mode: Vec<&Measured> = of_device.iter().copied().filter(|one| one.mode == mode).collect();
            if of_mode.is_empty() {
                continue;
            }
            let measured: Vec<MeasuredGroup> = of_mode.iter().map(|one| one.group.clone()).collect();
            let scores = match &predictor {
                Some(predictor) => company::by_file(context, predictor, mode, &measured),
                None => company::left_out(context, mode, &measured),
            };
            let head = format!("{} groups on {device}, {mode}", measured.len());
            if context.arguments.json {
                let list: Vec<Json> = scores.iter().map(|(name, score)| value(name, score)).collect();
                parts.push(json!({"device": device, "mode": mode.as_str(), "groups": measured.len(), "estimators": list}));
            } else {
                output::result(head);
                output::result(format!("{}\n", table(&scores).render(output::width()).trim_end()));
            }
        }
    }
    if context.arguments.json {
        output::json(&json!({"schema": 1, "quantity": "company", "measured": parts, "changed": changed(&groups),
            "left_out": groups.left_out, "warnings": groups.warnings}));
    } else {
        output::note("errors are shares of what was measured; bias: the median of estimated over measured gain");
        output::note("covered: slowdowns and gains between their bounds, meant for 95 %");
    }
    Ok(exit::DONE)
}

fn changed(groups: &Groups) -> Json {
    let count = groups.changes.iter().filter(|change| **change > 0.005).count();
    groups.change().map_or(
        Json::Null,
        |(median, largest)| json!({"pairs": groups.changes.len(), "changed": count, "median": median, "largest": largest}),
    )
}

/// A predictor of company, by its name or path.
pub fn named(context: &Context<'_>, name: &str) -> Result<CompanyPredictor, collo_text::Diagnostics> {
    predictors::find_of_company(&context.project()?, &context.folder()?, name)
}

pub fn table(scores: &[NamedScore]) -> Table {
    let columns = [
        ("estimator", Align::Left),
        ("groups", Align::Right),
        ("member median", Align::Right),
        ("gain median", Align::Right),
        ("p90", Align::Right),
        ("worst", Align::Right),
        ("bias", Align::Right),
        ("covered", Align::Right),
        ("worst group", Align::Left),
    ];
    let mut table = Table::new(&columns, 4);
    for (name, score) in scores {
        let share = |(covered, of): (usize, usize)| percent(covered as f64 / of as f64);
        table.values([
            Some(name.clone()),
            Some(score.groups.to_string()),
            Some(percent(score.member_median_error)),
            Some(percent(score.gain_median_error)),
            Some(percent(score.gain_p90_error)),
            Some(percent(score.gain_worst_error)),
            Some(format!("{:+.1} %", 100.0 * score.gain_bias)),
            score.covered.map(|covered| format!("{}, {}", share(covered[0]), share(covered[1]))),
            Some(score.worst_group.clone()),
        ]);
    }
    table
}

fn value(name: &str, score: &CompanyScore) -> Json {
    let covered = score.covered.map(|covered| {
        let of = |place: usize| json!({"covered": covered[place].0, "of": covered[place].1});
        json!({"slowdown": of(0), "gain": of(1), "antt": of(2), "fairness": of(3)})
    });
    json!({"estimator": name, "groups": score.groups, "members": score.members, "member_median_error": score.member_median_error,
        "gain_median_error": score.gain_median_error, "gain_p90_error": score.gain_p90_error,
        "gain_worst_error": score.gain_worst_error, "worst_group": score.worst_group, "gain_bias": score.gain_bias,
        "bounded": covered})
}
