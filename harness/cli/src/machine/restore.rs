//! `collo restore`: restores GPUs that a collo did not leave as found.
//!
//! The state found is in the journals of the state folder. A journal is kept until its GPU is as found.

use collo_device::lease::{self, GpuLease, Journal, Restored, Who, Written};
use collo_device::select_gpu::GpuSelector;
use collo_device::{holders, nvml, repartition, services};
use collo_launch::interrupted::Noted;
use collo_plan::facts::{Driver, Gpu, Holder};
use serde_json::{Value, json};

use collo_text::{Diagnostic, Remark};

use crate::answer::{Answer, Answered};
use crate::context::gpus::driver;
use crate::context::{Context, end_left_behind};
use crate::{args, exit, output};

pub fn run(context: &Context<'_>, a: &args::Restore) -> Answered {
    end_left_behind();
    let Written { journals: left, unread } = lease::written()?;
    unread.iter().for_each(|unread| output::failure(&unread.clone().into()));
    let mut code = if unread.is_empty() { exit::DONE } else { exit::MACHINE };
    if left.is_empty() {
        let mut answer = Answer::of(json!({"restored": []}));
        if unread.is_empty() {
            answer.lines("every GPU is as it was found: nothing to restore");
        }
        answer.code = code;
        return Ok(answer);
    }
    let driver = driver(context, "restore")?;
    let wanted = match a.gpu.as_deref().map(GpuSelector::parse) {
        Some(GpuSelector::Named(names)) => Some(GpuSelector::Named(names).of(&driver)?),
        Some(GpuSelector::Auto | GpuSelector::Several(_)) | None => None,
    };
    let is_meant = |journal: &&Journal| match &wanted {
        None => true,
        Some(gpus) => gpus.iter().filter_map(|gpu| gpu.at.as_ref()).any(|at| at.uuid == journal.uuid),
    };
    let mut list = Vec::new();
    let mut resumes = Vec::new();
    let mut count = 0;
    // What is restored is restored completely.
    let noted = Noted::begin();
    for journal in left.iter().filter(is_meant) {
        noted.go_on().map_err(|stopped| {
            let what = format!("stopped before {} was restored; its journal is kept", journal.label);
            stopped.error(what).hint("`collo restore` restores it")
        })?;
        count += 1;
        match one(context, journal, &driver) {
            Ok((value, resume)) => {
                list.push(value);
                resumes.extend(resume);
            }
            Err(wrong) => {
                output::failure(&wrong.into());
                code = exit::MACHINE;
            }
        }
    }
    let mut answer = Answer::of(json!({"restored": list}));
    if count == 0 {
        answer.lines("that GPU is as it was found: nothing to restore");
    }
    resumes.dedup();
    answer.after(resumes.iter().map(|name| Remark::Note(format!("resume: collo run {name}"))));
    answer.code = code;
    Ok(answer)
}

/// Restore one GPU; returns the actions, and the experiment or the campaign to continue with.
fn one(context: &Context<'_>, journal: &Journal, driver: &Driver) -> Result<(Value, Option<String>), Diagnostic> {
    if journal.is_held() {
        return Err(held(journal));
    }
    let gpu = driver.gpus.iter().find(|gpu| gpu.at.as_ref().is_some_and(|at| at.uuid == journal.uuid)).ok_or_else(|| {
        Diagnostic::new(format!("{} ({}) of {} is not here", journal.label, journal.uuid, journal.campaign))
            .of_machine()
            .hint("run `collo restore` again when it is back; the journal is kept")
    })?;
    let text = !context.arguments.json;
    if text {
        output::result(begun(journal));
    }
    let before = repartition::read(&journal.uuid, &journal.label).ok().map(|cut| cut.partition.mig);
    // The lock is taken with it, so that no collo that starts meanwhile does the same.
    let who = Who { experiment: "collo restore".into(), campaign: String::new() };
    let (_hold, restored) = GpuLease::take(gpu, &who, false).map_err(|e| not_restored(journal, e))?;
    let restored = restored.unwrap_or_default();
    let computing = nvml::open().ok().and_then(|nvml| holders::computing(&nvml, &journal.uuid)).unwrap_or_default();
    let campaign = context.runs().ok().and_then(|runs| runs.find(&journal.campaign).ok());
    let stored = campaign.as_ref().and_then(|c| c.progress().ok().map(|p| (p.stored, p.planned)));
    if text {
        let others: Vec<String> = computing.iter().map(Holder::to_text).collect();
        lines(journal, &restored, before, &others).iter().for_each(output::result);
        output::result(ended(gpu, stored));
    }
    let value = json!({"gpu": gpu.at.as_ref().map(|at| at.index), "uuid": journal.uuid, "simulated": journal.simulated,
        "campaign": journal.campaign, "experiment": journal.experiment, "process": journal.process,
        "found": journal.found.to_string(), "destroyed": restored.destroyed, "created": restored.created,
        "daemons": restored.daemons, "compute_mode": restored.compute_mode, "services": restored.services,
        "stored": stored.map(|s| s.0), "planned": stored.map(|s| s.1)});
    // Someone else's folder may hold the campaign: what is stored there is not seen from here, but its name is known.
    let unfinished = stored.is_none_or(|(stored, planned)| stored < planned);
    // By its experiment's name a campaign would be looked for on one card.
    let several = campaign.as_ref().map(|c| c.manifest()).filter(|m| m.machine.gpus.len() > 1);
    let resumed = several.map_or_else(|| journal.experiment.clone(), |m| m.short_id().to_string());
    Ok((value, unfinished.then_some(resumed)))
}

fn held(journal: &Journal) -> Diagnostic {
    let what = format!(
        "{} is in use by another collo: process {} runs `{}` since {}",
        journal.label,
        journal.process,
        journal.experiment,
        clock(&journal.since_utc)
    );
    Diagnostic::new(what).of_machine().hint("it restores the GPU when it ends: `collo status`")
}

/// What prevents the restore, and that nothing is lost.
fn not_restored(journal: &Journal, cause: Diagnostic) -> Diagnostic {
    let then = cause.way_out().map(|way| format!("{way}; then ")).unwrap_or_default();
    cause
        .under(format!("{} is not as it was found ({})", journal.label, journal.found))
        .only_hint(format!("{then}`collo restore` again; the journal is kept"))
        .of_machine()
}

/// `20261120-0210-c41d of small-7way-mig left GPU 0 staged (process 31882 is gone; simulated NVIDIA A100)`
fn begun(journal: &Journal) -> String {
    let Journal { campaign, experiment, label, process, name, .. } = journal;
    let simulated = if journal.simulated { "simulated " } else { "" };
    // The card is cut before the campaign is begun: a card that refuses costs nobody a campaign.
    let who = if campaign.is_empty() { experiment.clone() } else { format!("{campaign} of {experiment}") };
    format!("{who} left {label} staged (process {process} is gone; {simulated}{name})")
}

fn lines(journal: &Journal, restored: &Restored, mig_before: Option<bool>, others: &[String]) -> Vec<String> {
    let at = format!("as found at {}", clock_s(&journal.since_utc));
    let mut all = Vec::new();
    let mut add = |mark: char, what: &str, text: String| all.push(format!("  {mark} {what:<13}  {text}"));
    match others {
        [] => add('✓', "members", "none left".into()),
        others => others.iter().for_each(|other| add('!', "in use", other.clone())),
    }
    if restored.daemons > 0 {
        add('✓', "MPS daemons", format!("{} ended", restored.daemons));
    }
    if restored.destroyed > 0 {
        add('✓', "GPU instances", format!("{} destroyed, with their compute instances", restored.destroyed));
    }
    if restored.created > 0 {
        add('✓', "GPU instances", format!("{} created again, {at}", restored.created));
    }
    if restored.mode.is_some() || mig_before.is_some_and(|before| before != journal.found.mig) {
        let way = if journal.found.mig { "off → on" } else { "on → off" };
        add('✓', "MIG mode", format!("{way}, {at}"));
    }
    if let Some(mode) = &restored.compute_mode {
        add('✓', "compute mode", format!("{mode}, {at}"));
    }
    if !restored.settings.is_nothing() {
        add('✓', "settings", format!("{}, {at}", restored.settings.to_text()));
    }
    if restored.reset {
        add(
            '!',
            "locked clocks",
            "clocks locked with `nvidia-smi -lgc` were unlocked by the reset and cannot be read back".into(),
        );
    }
    if !restored.services.is_empty() {
        add('✓', "services", format!("{} started again", services::names(&restored.services)));
    }
    if *restored == Restored::default() {
        add('✓', "state", format!("{}, {at}: nothing had to be done", journal.found));
    }
    all
}

fn ended(gpu: &Gpu, stored: Option<(usize, usize)>) -> String {
    let runs = stored.map(|(stored, planned)| format!("; {stored} of {planned} runs are stored")).unwrap_or_default();
    format!("{} is as it was found{runs}", gpu.label())
}

/// `2026-11-20T18:42:09Z` → `18:42`
pub fn clock(utc: &str) -> &str {
    utc.get(11..16).unwrap_or(utc)
}

/// `2026-11-20T18:42:09Z` → `18:42:09`
fn clock_s(utc: &str) -> &str {
    utc.get(11..19).unwrap_or(utc)
}

#[cfg(test)]
mod tests {
    use super::*;
    use collo_gpus::partition::Partition;

    fn journal() -> Journal {
        Journal {
            schema: 1,
            uuid: "GPU-1".into(),
            label: "GPU 0".into(),
            name: "NVIDIA A100-SXM4-40GB".into(),
            simulated: true,
            experiment: "small-7way-mig".into(),
            campaign: "20261120-0210-c41d".into(),
            process: 31882,
            since_utc: "2026-11-20T02:10:41Z".into(),
            found: Partition::off(),
            ..Journal::default()
        }
    }

    #[test]
    fn a_card_that_is_put_back_says_what_was_done_to_it() {
        let restored = Restored { destroyed: 7, mode: Some(true), daemons: 1, ..Restored::default() };
        let text = [vec![begun(&journal())], lines(&journal(), &restored, Some(true), &[])].concat().join("\n");
        insta::assert_snapshot!(text, @"
        20261120-0210-c41d of small-7way-mig left GPU 0 staged (process 31882 is gone; simulated NVIDIA A100-SXM4-40GB)
          ✓ members        none left
          ✓ MPS daemons    1 ended
          ✓ GPU instances  7 destroyed, with their compute instances
          ✓ MIG mode       on → off, as found at 02:10:41
        ");
    }

    #[test]
    fn a_card_that_was_cut_before_its_campaign_was_begun_is_told_by_its_experiment() {
        let text = begun(&Journal { campaign: String::new(), ..journal() });
        insta::assert_snapshot!(text, @"small-7way-mig left GPU 0 staged (process 31882 is gone; simulated NVIDIA A100-SXM4-40GB)");
    }

    #[test]
    fn a_card_that_was_as_found_already_says_so_and_whoever_is_on_it_is_named() {
        let text = lines(&journal(), &Restored::default(), Some(false), &["pid 9 `python` of bob".into()]).join("\n");
        insta::assert_snapshot!(text, @"
          ! in use         pid 9 `python` of bob
          ✓ state          MIG off, as found at 02:10:41: nothing had to be done
        ");
    }

    #[test]
    fn what_is_in_the_way_is_told_and_the_journal_stays() {
        let cause =
            Diagnostic::new("1g.5gb@0 of GPU 0 cannot be destroyed").of_machine().caused_by("NVML says in use").hint("end it");
        insta::assert_snapshot!(not_restored(&journal(), cause), @"
        error: GPU 0 is not as it was found (MIG off)
          caused by: 1g.5gb@0 of GPU 0 cannot be destroyed
          caused by: NVML says in use
        hint: end it; then `collo restore` again; the journal is kept
        ");
    }
}
