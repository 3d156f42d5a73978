//! Groups predicted and measured. In: measured groups of a mode. Out: the score of each estimator: fits that have not seen a group's
//! families, or the predictor of a file, beside rules of thumb.

use collo_predict::{
    CompanyMode, CompanyPeer, CompanyPredictor, CompanyScore, GroupEstimate, GroupLaw, Law, MeasuredGroup, ModeFit, SliceLaw,
    fit_company, fit_slices, score_company,
};
use collo_text::Remark;

use crate::caller::Caller;

/// What an estimator is called, with its score.
pub type NamedScore = (String, CompanyScore);

/// By fits that have not seen them.
pub fn left_out(caller: &dyn Caller, mode: CompanyMode, groups: &[MeasuredGroup]) -> Vec<NamedScore> {
    let left_out = match mode {
        // Of slices the law alone.
        CompanyMode::Mig => fit_slices(groups).map(|fit| (SliceLaw::NAME, 1, fit.left_out)),
        _ => fit_company(groups).map(|fit| (Law::NAME, 2, fit.left_out)),
    };
    let mut scores = Vec::new();
    match left_out {
        Ok((law, count, left_out)) => scores.extend(left_out.iter().flat_map(|by| by.scores(law).take(count))),
        Err(why) => caller.remark(Remark::Note(format!("no fit of these groups: {why}"))),
    }
    scores.extend(peers(mode, groups));
    scores
}

/// Rules of thumb, which are of members on the whole device.
fn peers(mode: CompanyMode, groups: &[MeasuredGroup]) -> impl Iterator<Item = NamedScore> {
    let peers = CompanyPeer::ALL.into_iter().filter(move |_| mode != CompanyMode::Mig);
    peers.filter_map(|peer| Some((peer.to_string(), score_company(&peer.estimates(groups))?)))
}

/// By a file as it is.
pub fn by_file(
    caller: &dyn Caller,
    predictor: &CompanyPredictor,
    mode: CompanyMode,
    groups: &[MeasuredGroup],
) -> Vec<NamedScore> {
    let of_groups = |(by, fit): (CompanyMode, &ModeFit)| {
        let widened = if by == mode { 1.0 } else { predictor.widening };
        (fit.estimates(groups, widened), constant(fit, groups))
    };
    let estimates = match mode {
        CompanyMode::Mig => predictor.modes.mig.as_ref().map(|fit| (fit.estimates(groups, 1.0), Vec::new())),
        _ => predictor.modes.serving(mode).map(of_groups),
    };
    let name = &predictor.name;
    let Some((law, constant)) = estimates else {
        caller.remark(Remark::Note(format!("predictor `{name}` has no coefficients for {mode}: no groups were measured so")));
        return Vec::new();
    };
    let named = [(format!("collo, {name}"), law), ("constant".to_string(), constant)];
    let scored = named.into_iter().filter_map(|(name, estimates)| Some((name, score_company(&estimates)?)));
    scored.chain(peers(mode, groups)).collect()
}

/// The median slowdown of the groups that the file was fitted on.
fn constant(fit: &ModeFit, groups: &[MeasuredGroup]) -> Vec<GroupEstimate> {
    groups.iter().map(|group| GroupEstimate::of(group, vec![fit.median_slowdown; group.members.len()], None)).collect()
}
