//! Groups predicted and measured. In: measured groups of a mode. Out: the score of each estimator: fits that have not seen a group's
//! families, or the predictor of a file, beside rules of thumb.

use collo_predict::{
    Alone, CompanyMode, CompanyPeer, CompanyPredictor, CompanyScore, FEWEST_GROUPS, GroupEstimate, MeasuredGroup, ModeFit,
    Serves, Widths, fit_company, fit_slices, score_company,
};
use collo_text::{Diagnostic, Remark};

use crate::caller::Caller;

/// What an estimator is called, with its score.
pub type NamedScore = (String, CompanyScore);

/// By fits that have not seen them.
pub fn left_out(caller: &dyn Caller, mode: CompanyMode, groups: &[MeasuredGroup]) -> Vec<NamedScore> {
    let mut scores = Vec::new();
    if mode == CompanyMode::Mig {
        match fit_slices(groups) {
            Ok((_, estimates, _)) => {
                scores.extend(
                    score_company(&estimates).map(|score| ("by share of the SMs, the group left out".to_string(), score)),
                );
            }
            Err(why) => caller.remark(Remark::Note(format!("no fit of these groups: {why}"))),
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
                caller.remark(Remark::Note(format!("no forest: {} groups of {FEWEST_GROUPS}", groups.len())));
            }
        }
        Err(why) => caller.remark(Remark::Note(format!("no fit of these groups: {why}"))),
    }
    scores.extend(peers(groups));
    scores
}

fn peers(groups: &[MeasuredGroup]) -> Vec<NamedScore> {
    CompanyPeer::ALL.into_iter().filter_map(|peer| Some((peer.to_string(), score_company(&peer.estimates(groups))?))).collect()
}

/// By a file as it is.
pub fn by_file(
    caller: &dyn Caller,
    predictor: &CompanyPredictor,
    mode: CompanyMode,
    groups: &[MeasuredGroup],
) -> Result<Vec<NamedScore>, Diagnostic> {
    let mut scores = Vec::new();
    let name = &predictor.name;
    if mode == CompanyMode::Mig {
        let Some(fit) = &predictor.modes.mig else { return Ok(none_of(caller, name, mode)) };
        let slowdowns =
            |group: &MeasuredGroup| group.members.iter().map(|m| Some(fit.law.log_slowdown(m.sm_share?).exp())).collect();
        scores.extend(score_company(&estimates(groups, fit.widths, slowdowns)).map(|score| (format!("collo, {name}"), score)));
        return Ok(scores);
    }
    let own = predictor.modes.of(mode).map(|fit| (fit, 1.0));
    let unsaid = predictor.modes.unrecorded.as_ref().map(|fit| (fit, predictor.widening));
    let Some((fit, widened)) = own.or(unsaid) else { return Ok(none_of(caller, name, mode)) };
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

fn none_of(caller: &dyn Caller, name: &str, mode: CompanyMode) -> Vec<NamedScore> {
    caller.remark(Remark::Note(format!("predictor `{name}` has no coefficients for {mode}: no groups were measured so")));
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
