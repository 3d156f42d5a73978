//! `collo merge`: the campaigns of one experiment from several GPUs or machines become one.

use std::collections::BTreeMap;

use collo_quantity::number;
use collo_store::{CampaignFolder, MergeDifference, MergeScope, Runs, Shard};
use collo_text::{Diagnostic, Diagnostics, shown};
use serde_json::json;

use crate::answer::{Answer, Answered};
use crate::context::Context;
use crate::stored::verify::EDITED;
use crate::{args, output};

pub fn run(context: &Context<'_>, a: &args::Merge) -> Answered {
    let runs = context.runs()?;
    let campaigns = if a.shards { shards(&runs, &a.campaigns)? } else { named(&runs, &a.campaigns)? };
    alone(&campaigns)?;
    finished(&campaigns, a.unfinished)?;
    let indicative = alike(&campaigns, MergeScope::OneExperiment, a.force)?;
    missing(&campaigns);
    let merged = collo_store::merge(&runs, &campaigns, &indicative)?;
    let m = merged.manifest();
    let runs = m.plan.order.len();
    let mut answer = Answer::of(json!({"campaign": m.id, "folder": merged.path(), "runs": runs,
        "merged_from": m.origins.iter().map(|o| &o.campaign).collect::<Vec<_>>(), "indicative": m.indicative}));
    let (runs, parts) = (number::count(runs, "run"), number::count(campaigns.len(), "campaign"));
    answer.line(format!("{}: {runs} of {parts} in {}", m.id, shown(merged.path())));
    m.origins.iter().for_each(|origin| answer.line(format!("  {}", origin.text())));
    answer.note(format!("next: collo report {}", m.short_id()));
    Ok(answer)
}

fn named(runs: &Runs, asked: &[String]) -> Result<Vec<CampaignFolder>, Diagnostics> {
    if let [one] = asked {
        let what = format!("`{one}` alone is already one campaign");
        return Err(Diagnostic::new(what).hint("name two or more, or an experiment with `--shards`").into());
    }
    Ok(asked.iter().map(|name| runs.find(name)).collect::<Result<_, _>>()?)
}

/// The newest campaign of each shard, of the newest division of the experiment.
fn shards(runs: &Runs, asked: &[String]) -> Result<Vec<CampaignFolder>, Diagnostics> {
    let [name] = asked else {
        return Err(Diagnostic::new("`--shards` is for one experiment").hint("`collo merge NAME --shards`").into());
    };
    let (campaigns, _) = runs.campaigns()?;
    let mut newest = BTreeMap::<u32, CampaignFolder>::new();
    let mut count = None;
    let (merged, measured): (Vec<_>, Vec<_>) =
        campaigns.into_iter().filter(|c| c.manifest().experiment == *name).partition(|c| c.manifest().is_merged());
    for campaign in measured {
        let Some(shard) = campaign.manifest().shard else { continue };
        if *count.get_or_insert(shard.count) == shard.count {
            newest.entry(shard.index).or_insert(campaign);
        }
    }
    let Some(count) = count else {
        let what = format!("no shard of `{name}` is stored");
        return Err(Diagnostic::new(what).hint(format!("`collo run {name} --shard 1/2` measures one")).into());
    };
    let missing: Vec<String> =
        (1..=count).filter(|index| !newest.contains_key(index)).map(|index| Shard { index, count }.to_string()).collect();
    if let Some(first) = missing.first() {
        let what = format!("of {count} shards of `{name}` {} stored: {}", not(missing.len()), missing.join(", "));
        let hint = format!("`collo run {name} --shard {first}` measures it; some of them by their ids: `collo merge ID ID`");
        return Err(Diagnostic::new(what).hint(hint).into());
    }
    let picked: Vec<CampaignFolder> = newest.into_values().collect();
    of_one_time(&picked, &merged)?;
    Ok(picked)
}

/// Refuse shards of which some were merged before, and others not: they are not of one measurement.
fn of_one_time(picked: &[CampaignFolder], merged: &[CampaignFolder]) -> Result<(), Diagnostics> {
    let within = |c: &&CampaignFolder| {
        let is_part = |other: &&CampaignFolder| other.manifest().origins.iter().any(|o| o.campaign == c.manifest().id);
        merged.iter().find(is_part).map(|other| other.manifest().short_id())
    };
    let earlier: Vec<(String, &str)> =
        picked.iter().filter_map(|c| Some((c.manifest().shard?.to_string(), within(&c)?))).collect();
    let Some((_, into)) = earlier.first().filter(|_| earlier.len() < picked.len()) else { return Ok(()) };
    let names: Vec<&str> = earlier.iter().map(|(shard, _)| shard.as_str()).collect();
    let are = if names.len() == 1 { "is" } else { "are" };
    let what = format!("{} {are} already merged in `{into}`, and the others are not", names.join(", "));
    let ids: Vec<&str> = picked.iter().map(|c| c.manifest().short_id()).collect();
    let hint = format!("measure the same shards again; or merge these by name: `collo merge {}`", ids.join(" "));
    Err(Diagnostic::new(what).caused_by("they may be of two measurements").hint(hint).into())
}

fn not(n: usize) -> String {
    if n == 1 { "1 is not".into() } else { format!("{n} are not") }
}

/// Each once, and none that is still measured.
pub fn alone(campaigns: &[CampaignFolder]) -> Result<(), Diagnostics> {
    let mut seen: Vec<&str> = Vec::new();
    for c in campaigns {
        let m = c.manifest();
        let parts: Vec<&str> = if m.is_merged() { m.origins.iter().map(|o| &*o.campaign).collect() } else { vec![&m.id] };
        if let Some(twice) = parts.iter().find(|id| seen.contains(id)) {
            return Err(Diagnostic::new(format!("the runs of `{twice}` would be in it twice"))
                .hint("name each campaign once")
                .into());
        }
        seen.extend(parts);
        not_running(c)?;
    }
    Ok(())
}

/// Refuse a campaign that is still measured.
pub fn not_running(campaign: &CampaignFolder) -> Result<(), Diagnostic> {
    let Some((pid, since)) = campaign.running() else { return Ok(()) };
    let m = campaign.manifest();
    let what = format!("`{}` is still being measured (process {pid}, since {since})", m.id);
    Err(Diagnostic::new(what).hint(format!("`collo status {}`", m.short_id())))
}

pub fn finished(campaigns: &[CampaignFolder], unfinished: bool) -> Result<(), Diagnostics> {
    for c in campaigns.iter().filter(|_| !unfinished) {
        let progress = c.progress()?;
        let id = c.manifest().short_id();
        if let Some(folder) = progress.edited.first() {
            let what = format!("`{folder}` of `{}` was changed after it was recorded", c.manifest().id);
            return Err(Diagnostic::new(what).hint(EDITED).hint(format!("all such: `collo verify {id}`")).into());
        }
        if !progress.is_complete() {
            let what = format!("{} of {} runs of `{}` are stored", progress.stored, progress.planned, c.manifest().id);
            let hint = format!("`collo run {id}` finishes it; `--unfinished` merges what there is");
            return Err(Diagnostic::new(what).hint(hint).into());
        }
    }
    Ok(())
}

/// Refuse campaigns that differ in more than their GPUs and machines. Returns the reasons why the result is indicative.
pub fn alike(campaigns: &[CampaignFolder], scope: MergeScope, force: bool) -> Result<Vec<String>, Diagnostics> {
    let differences = collo_store::differences(campaigns, scope);
    let never: Vec<&MergeDifference> = differences.iter().filter(|d| !d.may_be_forced).collect();
    let refused: Vec<&MergeDifference> = if force { never.clone() } else { differences.iter().collect() };
    if refused.is_empty() {
        return Ok(differences.iter().map(|d| format!("merged with --force although {} differs", d.what)).collect());
    }
    let named: Vec<String> = refused.iter().map(|d| d.to_string()).collect();
    let wrong = Diagnostic::new("these campaigns were not measured under the same conditions").caused_by(named.join("; "));
    // A report of several has no `--force`: what it would pool is not stored, and so marked nowhere.
    Err(match never.is_empty() && scope == MergeScope::OneExperiment {
        true => wrong.hint("`--force` merges them anyway, marked indicative"),
        false => wrong.hint("`collo compare` compares them"),
    }
    .into())
}

/// Warn of shards that are left out.
fn missing(campaigns: &[CampaignFolder]) {
    let shards: Vec<Shard> = campaigns
        .iter()
        .flat_map(|c| {
            let m = c.manifest();
            m.shard.into_iter().chain(m.origins.iter().filter_map(|o| o.shard))
        })
        .collect();
    let Some(count) = shards.first().map(|s| s.count) else { return };
    let absent: Vec<String> = (1..=count)
        .filter(|index| !shards.iter().any(|s| s.index == *index))
        .map(|index| Shard { index, count }.to_string())
        .collect();
    if !absent.is_empty() {
        output::warning(format!("shards {} are not among them: their cells are missing", absent.join(", ")));
    }
}
