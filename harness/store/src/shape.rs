//! Consistency checks: a plan whose parts fit together, a run that belongs to its campaign and its folder. Later code may then
//! use indices, members and names unchecked.
//!
//! To add a rule: its check here, and a row in `store/tests/edited.rs`.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Campaign, CellRecord, MemberRecord, Outcome, PlanRecord, RunRecord, Sharing, Thresholds, names, observed};

/// Why a manifest cannot be that of a campaign.
pub(crate) fn campaign(c: &Campaign) -> Result<(), String> {
    for (what, name) in [("id", &c.id), ("experiment", &c.experiment)] {
        if !names::is_plain(name) {
            return Err(format!("its {what}, {name:?}, is not a folder name"));
        }
    }
    thresholds(&c.thresholds)?;
    if c.until.as_ref().is_some_and(|u| !u.width_ratio.is_finite() || u.width_ratio <= 0.0) {
        return Err("invalid width of intervals".into());
    }
    if let Some(r) = c.references.iter().find(|r| !r.value.is_finite() || !(0.0..=1e9).contains(&r.tolerance_ratio)) {
        return Err(format!("invalid reference of {:?}", r.cell));
    }
    // What was written before digests were noted may have been trimmed without a new count.
    plan(&c.plan, c.filing.digests)?;
    cards(c)
}

/// A block lies on one card, and that is one of its machine's.
fn cards(c: &Campaign) -> Result<(), String> {
    let mut of_block = BTreeMap::new();
    for run in &c.plan.order {
        let there = c.machine_of(run.block).gpus.len();
        if let Some(card) = run.card.filter(|card| *card as usize >= there) {
            return Err(format!("its plan has a run on card {card}, but its machine has {there} cards"));
        }
        if *of_block.entry(run.block).or_insert(run.card) != run.card {
            return Err(format!("its plan has block {} on two cards", run.block));
        }
    }
    Ok(())
}

fn thresholds(t: &Thresholds) -> Result<(), String> {
    let all = [t.relevant_ratio, t.slowdown, t.overlap_ratio, t.start_skew_s, t.baseline_drift_ratio];
    match all.iter().find(|x| !x.is_finite() || **x < 0.0) {
        Some(x) => Err(format!("invalid threshold {x}")),
        None => Ok(()),
    }
}

fn plan(plan: &PlanRecord, counts: bool) -> Result<(), String> {
    let mut slugs = BTreeSet::new();
    for c in &plan.cells {
        cell(c)?;
        if !slugs.insert(&c.slug) {
            return Err(format!("its plan has the cell {:?} twice", c.slug));
        }
    }
    let mut counted = vec![0u32; plan.cells.len()];
    let mut seen = BTreeSet::new();
    for run in &plan.order {
        let Some(count) = counted.get_mut(run.cell) else {
            return Err(format!("its plan has a run of cell {}, but {} cells", run.cell, plan.cells.len()));
        };
        *count += 1;
        if !seen.insert((run.cell, run.repetition)) {
            return Err(format!("its plan has repetition {} of `{}` twice", run.repetition, plan.cells[run.cell].cell));
        }
    }
    match plan.cells.iter().zip(&counted).find(|(cell, count)| counts && cell.repetitions != **count) {
        Some((cell, count)) => {
            Err(format!("its plan has {} repetitions of {:?}, but orders {count}", cell.repetitions, cell.cell))
        }
        None => Ok(()),
    }
}

fn cell(c: &CellRecord) -> Result<(), String> {
    if !names::is_plain(&c.slug) {
        return Err(format!("the slug of a cell, {:?}, is not a folder name", c.slug));
    }
    let known = Sharing::of_label(&c.sharing);
    if c.mode.family != known.family || (c.mode.isolated && !c.mode.partitioned) || (c.mode.limited && !c.mode.mps) {
        return Err(format!("its cell {:?} does not match its sharing mode {:?}", c.cell, c.sharing));
    }
    if c.members.is_empty() || c.members.len() != c.degree as usize {
        return Err(format!("its cell {:?} of degree {} has {} members", c.cell, c.degree, c.members.len()));
    }
    Ok(())
}

/// Why a record cannot be that of the run in this folder of this campaign.
pub(crate) fn run(r: &RunRecord, folder: &str, campaign: &Campaign) -> Result<(), String> {
    if r.campaign != campaign.id || r.experiment != campaign.experiment {
        return Err(format!("it is a run of the campaign {:?} of {:?}", r.campaign, r.experiment));
    }
    if format!("{}-{}", r.cell.slug, r.repetition) != folder {
        return Err(format!("it is repetition {} of {:?}, which is another folder's", r.repetition, r.cell.slug));
    }
    let layers = |m: &MemberRecord| {
        let counts = m.features.iter().flat_map(|f| f.layers.values());
        counts.copied().try_fold(0u64, u64::checked_add).is_some()
    };
    if !r.members.iter().all(layers) {
        return Err("its members have more layers than can be counted".into());
    }
    // A run of a cell that was never planned may lie here: it is not in the plan, and said to be so.
    if let Some(planned) = campaign.plan.cells.iter().find(|c| c.slug == r.cell.slug) {
        let same = |a: &CellRecord, b: &CellRecord| {
            a.cell == b.cell
                && a.sharing == b.sharing
                && a.mode == b.mode
                && a.members == b.members
                && a.trace == b.trace
                && a.observe == b.observe
        };
        if !same(planned, &r.cell) {
            return Err(format!("its cell {:?} differs from the planned one of that name", r.cell.cell));
        }
    }
    cell(&r.cell)?;
    if let Some(wrong) = observed::wrong(r.observer.as_ref(), r.cell.observe.as_deref(), r.outcome == Outcome::Completed) {
        return Err(wrong);
    }
    if r.trace.is_some() != r.cell.trace.is_some() && r.outcome == Outcome::Completed {
        return Err("it has tasks where its cell has none, or none where it has".into());
    }
    // The members of a run of a trace are its attempts.
    let (told, members) = (r.members.len(), r.cell.members.len());
    if r.trace.is_none() && told != members && !(told == 0 && r.outcome != Outcome::Completed) {
        return Err(format!("it has {told} members, but its cell has {members}"));
    }
    Ok(())
}
