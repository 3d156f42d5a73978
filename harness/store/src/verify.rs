//! Is a campaign complete, attested and intact? Reads everything, changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::record::run::SUPERSEDED;
use crate::recorded::Digests;
use crate::{AttestationVerdict, CampaignFolder, Foreign, Outcome, Recorded, Result, Standing, StoredRun, Verdict, copies};

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As it should be.
    Ok,
    /// Changes how far numbers can be trusted.
    Warning,
    /// The answer is no.
    No,
}

/// One line of `collo verify`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// `accounted`, `expected`, `intact`, `digests`, `attested`, `samples`, `enough`.
    pub subject: &'static str,
    pub level: Level,
    pub text: String,
}

/// Check a campaign. Problems are findings; an error means that it could not even be read.
pub fn verify(campaign: &CampaignFolder) -> Result<Vec<Finding>> {
    let (runs, foreign, digests) = campaign.runs_and_digests()?;
    let mut findings = vec![accounted(campaign, &runs)];
    findings.extend(expected(&runs));
    findings.extend(intact(campaign, &runs, &foreign, &digests));
    findings.push(attested(&runs));
    findings.push(samples(&runs));
    findings.push(enough(campaign, &runs));
    Ok(findings)
}

fn finding(level: Level, subject: &'static str, text: impl Into<String>) -> Finding {
    Finding { level, subject, text: text.into() }
}

fn accounted(campaign: &CampaignFolder, runs: &BTreeMap<String, StoredRun>) -> Finding {
    let plan = &campaign.manifest().plan;
    let mut counts = BTreeMap::<String, usize>::new();
    let mut missing = 0;
    for planned in &plan.order {
        match runs.get(&plan.folder(planned)) {
            Some(run) => *counts.entry(run.record.outcome.text()).or_default() += 1,
            None => missing += 1,
        }
    }
    let mut parts: Vec<String> = counts.iter().map(|(word, n)| format!("{n} {word}")).collect();
    if missing > 0 {
        parts.push(format!("{missing} missing"));
    }
    let level = if missing > 0 || counts.contains_key("interrupted") { Level::No } else { Level::Ok };
    let mut text = format!("{} planned = {}", plan.order.len(), parts.join(" + "));
    let retried: Vec<&StoredRun> = runs.values().filter(|run| !run.record.failed_attempts.is_empty()).collect();
    if !retried.is_empty() {
        let attempts: usize = retried.iter().map(|run| run.record.failed_attempts.len()).sum();
        text += &if attempts == 1 {
            "; 1 earlier attempt failed and was retried".to_string()
        } else {
            format!("; {attempts} earlier attempts failed and were retried")
        };
        // They are carried neither into a merged campaign nor in a bundle.
        if campaign.path().join(SUPERSEDED).is_dir() {
            text += &format!(", kept in {SUPERSEDED}/");
        }
    }
    finding(level, "accounted", text)
}

/// Whether what was expected to fail did so; `None` where nothing was expected.
fn expected(runs: &BTreeMap<String, StoredRun>) -> Option<Finding> {
    let expectations = || runs.iter().filter(|(_, run)| run.record.cell.expect.is_some());
    expectations().next()?;
    let mut wrong: Vec<String> = expectations()
        .filter(|(_, run)| run.record.standing().is_bad())
        .filter_map(|(folder, run)| Some(format!("{folder} {}", run.record.expectation()?)))
        .collect();
    let held = expectations().filter(|(_, run)| run.record.standing() == Standing::Expected).count();
    Some(match wrong.len() {
        0 => {
            finding(Level::Ok, "expected", format!("ended as the experiment expects: {held} of {} runs", expectations().count()))
        }
        1 => finding(Level::No, "expected", wrong.remove(0)),
        n => finding(Level::No, "expected", format!("{}; and {} more are not as expected", wrong[0], n - 1)),
    })
}

fn intact(campaign: &CampaignFolder, runs: &BTreeMap<String, StoredRun>, foreign: &[Foreign], digests: &Digests) -> Vec<Finding> {
    let mut bad: Vec<String> = campaign.expect_unchanged().err().map(|e| e.to_string()).into_iter().collect();
    bad.extend(digests.unreadable.iter().map(|e| format!("the journal cannot be read: {e}")));
    let name = |f: &Foreign| f.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    bad.extend(foreign.iter().map(|f| format!("{}: {}", name(f), f.reason)));
    // A run that was dropped from the plan is gone all the same.
    let (plan, here) = (&campaign.manifest().plan, |folder: &String| campaign.path().join(folder).exists());
    // A collo was killed between the digest and the run: the next one puts it there.
    let on_its_way: BTreeSet<String> =
        campaign.noted_drafts(digests).unwrap_or_default().into_iter().map(|(folder, _)| folder).collect();
    let planned: BTreeSet<String> = plan.order.iter().map(|p| plan.folder(p)).collect();
    bad.extend(digests.runs.keys().filter(|f| !planned.contains(*f) || !(here(f) || on_its_way.contains(*f))).map(|folder| {
        match here(folder) {
            true => format!("{folder} was recorded but is not in the plan"),
            false => format!("{folder} was recorded but is missing"),
        }
    }));
    bad.extend(
        runs.keys()
            .filter(|f| !planned.contains(*f) && !digests.runs.contains_key(*f))
            .map(|f| format!("{f} is not in the plan")),
    );
    bad.extend(copies(runs).iter().map(|folder| format!("{folder} is the same measurement as another run")));
    let mut files = 1;
    for (folder, run) in runs {
        files += 1 + run.record.files.len();
        bad.extend(run.damaged(|_| true).iter().map(|what| format!("{folder}/{what}")));
    }
    let agrees = bad.is_empty();
    let mut findings = vec![match bad.len() {
        0 => finding(Level::Ok, "intact", format!("{files} files, checksums agree")),
        1 => finding(Level::No, "intact", bad.remove(0)),
        n => finding(Level::No, "intact", format!("{} and {} more", bad[0], n - 1)),
    }];
    // Earlier collos noted less: nothing can be said of it, which is neither yes nor no.
    let without = runs.keys().filter(|folder| !digests.runs.contains_key(*folder)).count();
    let what = match (campaign.recorded() == Recorded::Never, without) {
        (false, 0) => return findings,
        (true, 0) => "campaign.json has".to_string(),
        (false, 1) => "1 run has".to_string(),
        (false, n) => format!("{n} runs have"),
        (true, 1) => "campaign.json and 1 run have".to_string(),
        (true, n) => format!("campaign.json and {n} runs have"),
    };
    if agrees {
        findings[0].level = Level::Warning;
    }
    findings.push(finding(Level::Warning, "digests", format!("{what} no digest in the journal: changes would not show")));
    findings
}

fn attested(runs: &BTreeMap<String, StoredRun>) -> Finding {
    let completed: Vec<_> = runs.values().filter(|r| r.record.outcome == Outcome::Completed).collect();
    let attested = completed.iter().filter(|r| r.record.attestation.verdict == AttestationVerdict::Attested).count();
    let level = if attested == completed.len() { Level::Ok } else { Level::No };
    finding(level, "attested", format!("{attested} of {} completed runs", completed.len()))
}

fn samples(runs: &BTreeMap<String, StoredRun>) -> Finding {
    let mut worst: Option<(f64, String)> = None;
    let mut gap: Option<(f64, &str)> = None;
    for (folder, run) in runs {
        for q in run.record.sampling.iter().filter(|q| q.asked_hz > 0.0) {
            let Some(achieved) = q.achieved_hz else { continue };
            let ratio = achieved / q.asked_hz;
            if worst.as_ref().is_none_or(|(w, _)| ratio < *w) {
                worst = Some((ratio, format!("{} {achieved:.2} of {} Hz", q.source, q.asked_hz)));
            }
            if let Some(g) = q.longest_gap_s.filter(|g| *g > 3.0 / q.asked_hz && gap.is_none_or(|(w, _)| *g > w)) {
                gap = Some((g, folder));
            }
        }
    }
    match (worst, gap) {
        (None, _) => finding(Level::Warning, "samples", "no run was sampled"),
        (Some((ratio, text)), gap) => {
            let gap_text = gap.map(|(g, folder)| format!("; longest gap {g:.1} s, in {folder}")).unwrap_or_default();
            let level = if ratio < 0.9 || gap.is_some() { Level::Warning } else { Level::Ok };
            finding(level, "samples", format!("{text} at worst{gap_text}"))
        }
    }
}

fn enough(campaign: &CampaignFolder, runs: &BTreeMap<String, StoredRun>) -> Finding {
    let plan = &campaign.manifest().plan;
    let mut short = Vec::new();
    for (index, cell) in plan.cells.iter().enumerate() {
        let of_cell = plan.order.iter().filter(|p| p.cell == index).filter_map(|p| runs.get(&plan.folder(p)));
        let (mut valid, mut results) = (0, 0);
        for run in of_cell {
            match run.record.outcome {
                Outcome::Completed if run.record.validity.verdict != Verdict::Discarded => valid += 1,
                Outcome::OutOfMemory { .. } => results += 1,
                _ if run.record.standing() == Standing::Expected => results += 1,
                _ => {}
            }
        }
        if valid + results < cell.repetitions {
            short.push(format!("{} has {valid} of {} repetitions", cell.cell, cell.repetitions));
        }
    }
    match short.len() {
        0 if plan.cells.len() == 1 => finding(Level::Ok, "enough", "1 cell, all repetitions"),
        0 => finding(Level::Ok, "enough", format!("{} cells, all repetitions", plan.cells.len())),
        1 => finding(Level::No, "enough", short.remove(0)),
        2 => finding(Level::No, "enough", format!("{}, and 1 more cell is short", short[0])),
        n => finding(Level::No, "enough", format!("{}, and {} more cells are short", short[0], n - 1)),
    }
}
