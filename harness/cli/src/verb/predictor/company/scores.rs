//! Groups predicted and measured. In: what was asked for. Out: a table of scores for each device and mode: fits that have not seen a group's
//! families, or the predictor of a file, beside rules of thumb.

use collo_figures::document::{Align, Table};
use collo_plan::predictors;
use collo_predict::{
    Alone, CompanyMode, CompanyPeer, CompanyPredictor, CompanyScore, FEWEST_GROUPS, GroupEstimate, MeasuredGroup, ModeFit,
    Serves, Widths, fit_company, fit_slices, score_company,
};
use collo_text::Diagnostic;
use serde_json::{Value as Json, json};

use super::super::percent;
use super::groups::{self, Groups, Measured};
use crate::args::Evaluate;
use crate::verb::{Context, Ended};
use crate::{exit, output};

/// What an estimator is called, with its score.
type Named = (String, CompanyScore);

pub fn evaluate(context: &Context<'_>, asked: &Evaluate, predictor: Option<&str>) -> Ended {
    let groups = groups::read(context, &asked.rows)?;
    let predictor = predictor.map(|name| named(context, name)).transpose()?;
    groups.say();
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
                Some(predictor) => by_file(predictor, mode, &measured)?,
                None => left_out(mode, &measured),
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

/// By fits that have not seen them.
fn left_out(mode: CompanyMode, groups: &[MeasuredGroup]) -> Vec<Named> {
    let mut scores = Vec::new();
    if mode == CompanyMode::Mig {
        match fit_slices(groups) {
            Ok((_, estimates, _)) => {
                scores.extend(
                    score_company(&estimates).map(|score| ("by share of the SMs, the group left out".to_string(), score)),
                );
            }
            Err(why) => output::note(format!("no fit of these groups: {why}")),
        }
        return scores;
    }
    match fit_company(groups) {
        Ok(fit) => {
            for by in &fit.left_out {
                for (name, score) in by.scores() {
                    scores.extend(score.map(|score| (format!("{name}, {}", by.unseen), score)));
                }
            }
            if fit.forest.is_none() {
                output::note(format!("no forest: {} groups of {FEWEST_GROUPS}", groups.len()));
            }
        }
        Err(why) => output::note(format!("no fit of these groups: {why}")),
    }
    scores.extend(peers(groups));
    scores
}

fn peers(groups: &[MeasuredGroup]) -> Vec<Named> {
    CompanyPeer::ALL.into_iter().filter_map(|peer| Some((peer.to_string(), score_company(&peer.estimates(groups))?))).collect()
}

/// By a file as it is.
fn by_file(predictor: &CompanyPredictor, mode: CompanyMode, groups: &[MeasuredGroup]) -> Result<Vec<Named>, Diagnostic> {
    let mut scores = Vec::new();
    let name = &predictor.name;
    if mode == CompanyMode::Mig {
        let Some(fit) = &predictor.modes.mig else { return Ok(none_of(name, mode)) };
        let slowdowns =
            |group: &MeasuredGroup| group.members.iter().map(|m| Some(fit.law.log_slowdown(m.sm_share?).exp())).collect();
        scores.extend(score_company(&estimates(groups, fit.widths, slowdowns)).map(|score| (format!("collo, {name}"), score)));
        return Ok(scores);
    }
    let own = predictor.modes.of(mode).map(|fit| (fit, 1.0));
    let unsaid = predictor.modes.unrecorded.as_ref().map(|fit| (fit, predictor.widening));
    let Some((fit, widened)) = own.or(unsaid) else { return Ok(none_of(name, mode)) };
    let members = |group: &MeasuredGroup| group.members.iter().map(|member| member.alone).collect::<Vec<Alone>>();
    let serves = |which: Serves| if fit.serves == which { ", serves" } else { "" };
    let law = estimates(groups, fit.law_widths.times(widened), |group| Some(fit.by_law(&members(group))));
    scores.extend(score_company(&law).map(|score| (format!("collo, {name}, law{}", serves(Serves::Law)), score)));
    if let Some(forest) = &fit.forest {
        let found = estimates(groups, forest.widths.times(widened), |group| fit.by_forest(&members(group)));
        scores.extend(score_company(&found).map(|score| (format!("collo, {name}, forest{}", serves(Serves::Forest)), score)));
    }
    let constant = constant(fit, groups);
    scores.extend(score_company(&constant).map(|score| ("constant".to_string(), score)));
    scores.extend(peers(groups));
    Ok(scores)
}

fn none_of(name: &str, mode: CompanyMode) -> Vec<Named> {
    output::note(format!("predictor `{name}` has no coefficients for {mode}: no groups were measured so"));
    Vec::new()
}

/// The median slowdown of the groups that the file was fitted on.
fn constant(fit: &ModeFit, groups: &[MeasuredGroup]) -> Vec<GroupEstimate> {
    let mut found = estimates(groups, fit.law_widths, |group| Some(vec![fit.median_slowdown; group.members.len()]));
    found.iter_mut().for_each(|estimate| estimate.widths = None);
    found
}

/// Of the groups whose members all have an estimate.
fn estimates(groups: &[MeasuredGroup], widths: Widths, of: impl Fn(&MeasuredGroup) -> Option<Vec<f64>>) -> Vec<GroupEstimate> {
    groups.iter().filter_map(|group| Some(GroupEstimate::of(group, of(group)?, Some(widths)))).collect()
}

pub fn table(scores: &[Named]) -> Table {
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
