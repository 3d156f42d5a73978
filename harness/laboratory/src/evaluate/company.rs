//! Predicted groups. In: measured groups. Out: scores for each device and mode: of fits that have not seen a group's families, or of the
//! predictor of a file, beside rules of thumb.

use collo_figures::document::Table;
use collo_plan::predictors;
use collo_predict::{CompanyMode, CompanyPredictor, CompanyScore, GroupEstimate, MeasuredGroup, NamedScore, score_left_out};
use collo_text::Diagnostics;
use collo_text::units::percent;
use serde_json::{Value as Json, json};

use super::{Comparison, Scores, named, note, table};
use crate::caller::Caller;
use crate::company::{self, Groups, Measured};

pub fn evaluate(caller: &dyn Caller, asked: &Comparison<'_>, scores: &mut Scores) -> Result<Json, Diagnostics> {
    let groups = company::read(caller, asked.rows.rows)?;
    let find = |name: &str| predictors::find_of(&caller.project()?, &caller.folder()?, name);
    let predictor: Option<CompanyPredictor> = asked.predictor.map(find).transpose()?;
    for (device, of_device) in groups.devices() {
        if asked.rows.measured_by.is_some_and(|who| who != device) {
            continue;
        }
        for mode in CompanyMode::ALL {
            let of_mode = of_device.iter().filter(|one: &&&Measured| one.mode == mode);
            let measured: Vec<MeasuredGroup> = of_mode.map(|one| one.group.clone()).collect();
            if measured.is_empty() {
                continue;
            }
            let scored = scored(caller, predictor.as_ref(), mode, &measured);
            scores.lines(format!("{} groups on {device}, {mode}", measured.len()));
            scores.table(of_scores(&scored));
            let list: Vec<Json> = scored.iter().map(|(name, score)| value(name, score)).collect();
            scores.add(json!({"device": device, "mode": mode.as_str(), "groups": measured.len(), "estimators": list}));
        }
    }
    scores.note("errors are shares of what was measured; bias: the median of estimated over measured gain");
    scores.note("covered: slowdowns and gains between their bounds, meant for 95 %");
    Ok(json!({"changed": changed(&groups), "left_out": groups.left_out, "warnings": groups.warnings}))
}

/// By a file as it is, or by fits that have not seen the groups.
fn scored(
    caller: &dyn Caller,
    predictor: Option<&CompanyPredictor>,
    mode: CompanyMode,
    groups: &[MeasuredGroup],
) -> Vec<NamedScore> {
    let Some(predictor) = predictor else {
        let (scores, unfit) = score_left_out(mode, groups);
        unfit.iter().for_each(|why| note(caller, format!("no fit of these groups: {why}")));
        return scores;
    };
    predictor.score(mode, groups).unwrap_or_else(|| {
        let name = &predictor.name;
        note(caller, format!("predictor `{name}` has no coefficients for {mode}: no groups were measured so"));
        Vec::new()
    })
}

fn changed(groups: &Groups) -> Json {
    groups.change().map_or(Json::Null, |change| {
        json!({"pairs": groups.changes.len(), "changed": change.changed, "median": change.median, "largest": change.largest})
    })
}

fn of_scores(scores: &[NamedScore]) -> Table {
    let lines = scores.iter().map(|(name, score)| {
        let share = |(covered, of): (usize, usize)| percent(covered as f64 / of as f64);
        vec![
            Some(name.clone()),
            Some(score.groups.to_string()),
            Some(percent(score.member_median_error)),
            Some(percent(score.gain_median_error)),
            Some(percent(score.gain_p90_error)),
            Some(percent(score.gain_worst_error)),
            Some(format!("{:+.1} %", 100.0 * score.gain_bias)),
            score.covered.map(|covered| format!("{}, {}", share(covered[0]), share(covered[1]))),
            Some(score.worst_group.clone()),
        ]
    });
    let numbers = ["groups", "member median", "gain median", "p90", "worst", "bias", "covered"];
    table("estimator", &numbers, Some("worst group"), 4, lines)
}

fn value(name: &str, score: &CompanyScore) -> Json {
    let mut value = named(name, serde_json::to_value(score));
    value["bounded"] = score.covered.map_or(Json::Null, |covered| {
        let [slowdown, gain, antt, fairness] = covered.map(|(covered, of)| json!({"covered": covered, "of": of}));
        json!({"slowdown": slowdown, "gain": gain, "antt": antt, "fairness": fairness})
    });
    value["predicted"] = score.estimates.iter().map(row).collect();
    value
}

/// A group beside its estimate, from which the score can be computed again.
fn row(estimate: &GroupEstimate) -> Json {
    let (measured, predicted) = estimate.gain();
    let bounds = estimate.gain_interval().map(|within| [within.low, within.high]);
    json!({"group": estimate.label, "families": estimate.families,
        "measured": {"slowdowns": estimate.measured, "gain": measured},
        "predicted": {"slowdowns": estimate.estimated, "gain": predicted, "gain_bounds": bounds}})
}
