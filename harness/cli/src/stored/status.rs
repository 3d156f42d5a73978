//! `collo status`: what is running, what is unfinished, and whether each GPU is as it was found.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::IsTerminal;
use std::time::Duration;

use collo_device::lease::{self, Journal, Unread};
use collo_device::repartition;
use collo_gpus::partition::Partition;
use collo_launch::interrupted::Noted;
use collo_store::{CampaignFolder, JournalEntry, PlannedRun};
use collo_text::{Diagnostic, Diagnostics, Remark};
use serde_json::{Value, json};

use crate::answer::{Answer, Answered};
use crate::context::Context;
use crate::machine::restore::clock;
use crate::progress::words;
use crate::{args, exit, output};

/// How often a campaign is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub fn run(context: &Context<'_>, a: &args::Status) -> Answered {
    if let Some(port) = a.serve {
        let campaign = match newest(context, a)? {
            Ok(campaign) => campaign,
            Err(none) => return Err(Diagnostic::new(format!("{none}, so that there is no page to serve")).into()),
        };
        return super::serve::serve(context, &campaign, port);
    }
    let noted = a.watch.then(Noted::begin);
    let mut shown = None;
    loop {
        let (answer, is_running) = look(context, a)?;
        if shown.is_some() && shown.as_ref() != answer.keys() && std::io::stdout().is_terminal() && !context.arguments.json {
            // Each status replaces the one before it, as with watch(1).
            output::bytes(b"\x1b[H\x1b[2J");
        }
        if !is_running || noted.as_ref().is_none_or(|noted| noted.came().is_some()) {
            return Ok(answer);
        }
        if shown.as_ref() != answer.keys() {
            shown = answer.keys().cloned();
            answer.print(context);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// The status now, and whether the campaign is running.
fn look(context: &Context<'_>, a: &args::Status) -> Result<(Answer, bool), Diagnostics> {
    let campaign = match newest(context, a)? {
        Ok(campaign) => campaign,
        Err(none) => return Ok((without_campaign(none), false)),
    };
    let m = campaign.manifest();
    let state = campaign.progress()?;
    let running = campaign.running();
    let now = going_on(&campaign)?;
    let staged = Staged::all();
    let left = staged.is_left();
    let unfinished = running.is_none() && !state.is_complete();
    let names: Vec<&str> = now.iter().map(|(name, _)| name.as_str()).filter(|_| running.is_some()).collect();
    let mut answer = Answer::of(json!({"campaign": m.id, "experiment": m.experiment, "planned": m.plan.order.len(),
        "stored": state.stored, "failed": state.failed, "process": running.as_ref().map(|r| r.0),
        "since": running.as_ref().map(|r| &r.1), "now": names.first(), "runs": names,
        "gpus": staged.values(), "unread": staged.unread}));
    let id = m.short_id();
    let count = format!("{} of {} runs", state.stored, m.plan.order.len());
    match &running {
        Some((pid, since)) => {
            answer.line(format!("{} {id} since {} (process {pid}): {count}", m.experiment, clock(since)));
            for (name, began) in &now {
                answer.line(format!("  now    {name}, since {}", clock(began)));
            }
        }
        None => answer.line(format!("{} {id} is not running: {count} are stored, {}", m.experiment, state.text())),
    }
    staged.show(&mut answer);
    if unfinished {
        answer.note(match m.is_merged() {
            true => super::verify::MERGED_LACKS.to_string(),
            false => format!("resume: collo run {}", m.short_id()),
        });
    }
    answer.code = if unfinished || left { exit::INCOMPLETE } else { exit::DONE };
    Ok((answer, running.is_some()))
}

/// The campaign that is asked for, else one that runs, else the newest; else what is known of there being none.
fn newest(context: &Context<'_>, a: &args::Status) -> Result<Result<CampaignFolder, &'static str>, Diagnostics> {
    let runs = context.runs()?;
    if let Some(asked) = &a.campaign {
        return Ok(Ok(runs.find(asked)?));
    }
    let (campaigns, foreign) = runs.campaigns()?;
    super::list::left_alone(&foreign).for_each(|remark| output::remark(&remark));
    let none = if foreign.is_empty() { "no campaign is stored yet" } else { super::list::NONE_READABLE };
    // What runs is more interesting than what is newest.
    let running = campaigns.iter().find(|c| c.running().is_some()).or(campaigns.first()).cloned();
    Ok(running.ok_or(none))
}

/// The last run that began on each card, with its time.
fn going_on(campaign: &CampaignFolder) -> Result<Vec<(String, String)>, collo_store::Error> {
    let m = campaign.manifest();
    let planned: HashMap<String, &PlannedRun> = m.plan.order.iter().map(|p| (m.plan.folder(p), p)).collect();
    let mut last = BTreeMap::new();
    let mut ended = BTreeSet::new();
    for entry in campaign.history()? {
        match entry {
            JournalEntry::Began { folder, at_utc } => {
                if let Some(p) = planned.get(&folder) {
                    ended.remove(&p.card);
                    last.insert(p.card, (words::planned(m, p), at_utc));
                }
            }
            // Of several cards one may have nothing left to do.
            JournalEntry::Recorded { folder, .. } => ended.extend(planned.get(&folder).map(|p| p.card).filter(Option::is_some)),
            _ => {}
        }
    }
    last.retain(|card, _| !ended.contains(card));
    Ok(last.into_values().collect())
}

/// No campaign is stored here; a GPU may still be staged by one stored elsewhere.
fn without_campaign(none: &str) -> Answer {
    let staged = Staged::all();
    let mut answer = Answer::of(json!({"campaign": null, "gpus": staged.values(), "unread": staged.unread}));
    answer.note(format!("{none}, and nothing runs from here"));
    staged.show(&mut answer);
    answer.code = if staged.is_left() { exit::INCOMPLETE } else { exit::DONE };
    answer
}

/// The recorded state of GPUs.
struct Staged {
    cards: Vec<StagedCard>,
    /// Journals that cannot be trusted: the original state of these GPUs is unknown.
    unread: Vec<Unread>,
    /// The state folder itself cannot be trusted.
    refused: Option<Diagnostics>,
}

impl Staged {
    fn all() -> Staged {
        match lease::written() {
            Ok(all) => {
                Staged { cards: all.journals.into_iter().map(StagedCard::of).collect(), unread: all.unread, refused: None }
            }
            Err(e) => Staged { cards: Vec::new(), unread: Vec::new(), refused: Some(e.into()) },
        }
    }

    /// Something has to be fixed by the user.
    fn is_left(&self) -> bool {
        self.cards.iter().any(|card| !card.held) || !self.unread.is_empty() || self.refused.is_some()
    }

    fn values(&self) -> Vec<Value> {
        self.cards.iter().map(StagedCard::value).collect()
    }

    fn show(&self, answer: &mut Answer) {
        self.cards.iter().for_each(|card| answer.line(card.line()));
        if self.cards.iter().any(|card| !card.held) {
            answer.note("back: collo restore");
        }
        let unread = self.unread.iter().cloned().map(Diagnostics::from);
        unread.chain(self.refused.clone()).for_each(|wrong| answer.beside(Remark::Failure(wrong)));
    }
}

/// A GPU that is not as found, or may not be.
struct StagedCard {
    journal: Journal,
    /// A running collo has the lease, and restores it.
    held: bool,
    /// Absent if the driver does not report it.
    now: Option<Partition>,
    compute_mode: Option<String>,
}

impl StagedCard {
    fn of(journal: Journal) -> StagedCard {
        let now = repartition::read(&journal.uuid, &journal.label).ok().map(|cut| cut.partition);
        StagedCard { held: journal.is_held(), now, compute_mode: lease::compute_mode(&journal.uuid), journal }
    }

    /// `  GPU 0  staged: 7×1g.5gb; found: MIG off`
    fn line(&self) -> String {
        let journal = &self.journal;
        let mut staged: Vec<String> = self.now.iter().filter(|now| **now != journal.found).map(Partition::to_string).collect();
        // Written down also where only a change of MIG mode could have reset it.
        let (found_mode, mode) = (journal.found_compute_mode.as_ref(), self.compute_mode.as_ref());
        let changed = mode.filter(|mode| found_mode.is_some_and(|found| found != *mode));
        staged.extend(changed.map(|mode| format!("compute mode {mode}")));
        match journal.daemons.len() {
            0 => {}
            1 => staged.push("MPS daemon".into()),
            n => staged.push(format!("{n} MPS daemons")),
        }
        let staged = match (&self.now, staged.is_empty()) {
            (None, true) => "the driver does not report it".into(),
            (Some(_), true) => "nothing".into(),
            _ => staged.join(", "),
        };
        let left = if self.held { "" } else { "left " };
        let mode = found_mode.filter(|found| changed.is_some() || *found != "Default");
        let mode = mode.map(|mode| format!(", compute mode {mode}")).unwrap_or_default();
        let mps = if journal.daemons.is_empty() { "" } else { ", no MPS" };
        if staged == "nothing" {
            let how = if self.held { "in use" } else { "nothing left behind" };
            return format!("  {}  {how} ({}{mode}{mps}, as found)", journal.label, journal.found);
        }
        format!("  {}  {left}staged: {staged}; found: {}{mode}{mps}", journal.label, journal.found)
    }

    fn value(&self) -> Value {
        let j = &self.journal;
        json!({"gpu": j.label, "uuid": j.uuid, "simulated": j.simulated, "held": self.held, "process": j.process,
            "campaign": j.campaign, "experiment": j.experiment, "found": j.found.to_string(),
            "now": self.now.as_ref().map(Partition::to_string), "daemons": j.daemons.len(),
            "found_compute_mode": j.found_compute_mode, "compute_mode": self.compute_mode})
    }
}

#[cfg(test)]
mod tests {
    use collo_gpus::partition::Slice;

    use super::*;

    fn staged(held: bool, now: Option<Partition>) -> StagedCard {
        let journal = Journal {
            schema: 1,
            uuid: "GPU-1".into(),
            label: "GPU 0".into(),
            name: "NVIDIA A100-SXM4-40GB".into(),
            simulated: true,
            experiment: "small-7way-mps".into(),
            campaign: "20261120-1905-a07b".into(),
            process: 40117,
            since_utc: "2026-11-20T19:05:00Z".into(),
            found: Partition::off(),
            ..Journal::default()
        };
        StagedCard { journal, held, now, compute_mode: Some("Default".into()) }
    }

    #[test]
    fn a_card_is_told_as_it_is_and_as_it_was_found() {
        let sevenths =
            Partition::on((0..7).map(|start| Slice { profile: "1g.5gb".into(), start: Some(start), compute: vec![1] }).collect());
        assert_eq!(staged(true, Some(sevenths.clone())).line(), "  GPU 0  staged: 7×1g.5gb; found: MIG off");
        assert_eq!(staged(false, Some(sevenths)).line(), "  GPU 0  left staged: 7×1g.5gb; found: MIG off");
        let mut mps = staged(true, Some(Partition::off()));
        mps.journal.daemons.push("/tmp/collo-mps-x".into());
        assert_eq!(mps.line(), "  GPU 0  staged: MPS daemon; found: MIG off, no MPS");
        mps.journal.found_compute_mode = Some("Default".into());
        mps.compute_mode = Some("ExclusiveProcess".into());
        assert_eq!(
            mps.line(),
            "  GPU 0  staged: compute mode ExclusiveProcess, MPS daemon; found: MIG off, compute mode Default, no MPS"
        );
        assert_eq!(staged(false, None).line(), "  GPU 0  left staged: the driver does not report it; found: MIG off");
        assert_eq!(staged(false, Some(Partition::off())).line(), "  GPU 0  nothing left behind (MIG off, as found)");
        assert_eq!(staged(true, Some(Partition::off())).line(), "  GPU 0  in use (MIG off, as found)");
    }
}
