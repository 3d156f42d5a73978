//! `collo status`: what is running, and what is unfinished.

use collo_store::JournalEntry;
use serde_json::json;

use super::list::State;
use super::{Context, Ended};
use crate::{args, exit, say};

pub fn run(context: &Context<'_>, a: &args::Status) -> Ended {
    let runs = context.runs()?;
    let campaign = match &a.campaign {
        Some(asked) => runs.find(asked)?,
        None => {
            let (campaigns, _) = runs.campaigns()?;
            // What runs is more interesting than what is newest.
            let running = campaigns.iter().find(|c| c.running().is_some()).or(campaigns.first()).cloned();
            match running {
                Some(campaign) => campaign,
                None => {
                    say::remark("no campaign is stored yet, and nothing runs");
                    return Ok(exit::DONE);
                }
            }
        }
    };
    let m = campaign.manifest();
    let state = State::of(&campaign)?;
    let running = campaign.running();
    let now = campaign.history()?.into_iter().rev().find_map(|entry| match entry {
        JournalEntry::Began { folder, at_utc } => Some((folder, at_utc)),
        _ => None,
    });
    let unfinished = running.is_none() && state.stored < m.plan.order.len();
    let planned = now.as_ref().and_then(|(folder, _)| m.plan.order.iter().find(|p| m.plan.folder(p) == *folder));
    let cell = planned.map(|p| {
        let cell = &m.plan.cells[p.cell];
        format!("{} {}/{}", cell.cell, p.repetition, cell.repetitions)
    });
    if context.arguments.json {
        say::json(&json!({"schema": 1, "campaign": m.id, "experiment": m.experiment, "planned": m.plan.order.len(),
            "stored": state.stored, "failed": state.failed, "process": running.as_ref().map(|r| r.0),
            "since": running.as_ref().map(|r| &r.1), "now": if running.is_some() { cell } else { None }}));
    } else {
        let id = m.id.rsplit('-').next().unwrap_or(&m.id);
        let count = format!("{} of {} runs", state.stored, m.plan.order.len());
        match &running {
            Some((pid, since)) => {
                say::result(format!("{} {id} since {} (process {pid}): {count}", m.experiment, clock(since)));
                if let (Some(cell), Some((_, began))) = (cell, now) {
                    say::result(format!("  now    {cell}, since {}", clock(&began)));
                }
            }
            None => say::result(format!("{} {id} is not running: {count} are stored, {}", m.experiment, state.text())),
        }
        if unfinished {
            say::remark(format!("resume: collo run {}", m.experiment));
        }
    }
    Ok(if unfinished { exit::INCOMPLETE } else { exit::DONE })
}

/// `2026-11-20T18:42:09Z` → `18:42`
fn clock(utc: &str) -> &str {
    utc.get(11..16).unwrap_or(utc)
}
