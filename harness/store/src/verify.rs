//! Is a campaign complete, attested and intact? Reads everything, changes nothing.

use std::collections::BTreeMap;

use crate::{AttestationVerdict, CampaignFolder, JournalEntry, Outcome, Result, StoredRun, Verdict, digest};

/// How a finding counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// As it should be.
    Ok,
    /// Changes how far numbers can be trusted.
    Warning,
    /// The answer is no.
    No,
}

/// One line of `collo verify`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub level: Level,
    /// `accounted`, `intact`, `attested`, `samples`, `enough`.
    pub subject: &'static str,
    pub text: String,
}

/// Check a campaign. Problems are findings; an error means that it could not even be read.
pub fn verify(campaign: &CampaignFolder) -> Result<Vec<Finding>> {
    let (runs, foreign) = campaign.runs()?;
    let mut findings = vec![accounted(campaign, &runs), intact(campaign, &runs, &foreign)?, attested(&runs)];
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
    finding(level, "accounted", format!("{} planned = {}", plan.order.len(), parts.join(" + ")))
}

fn intact(campaign: &CampaignFolder, runs: &BTreeMap<String, StoredRun>, foreign: &[crate::Foreign]) -> Result<Finding> {
    let mut digests = BTreeMap::new();
    for entry in campaign.history()? {
        if let JournalEntry::Recorded { folder, sha256, .. } = entry {
            digests.insert(folder, sha256);
        }
    }
    let (mut files, mut bad) = (0, Vec::new());
    for f in foreign {
        bad.push(format!("{}: {}", f.path.file_name().unwrap_or_default().to_string_lossy(), f.reason));
    }
    for (folder, run) in runs {
        files += 1;
        if digests.get(folder).is_some_and(|d| digest::sha256_file(&run.path.join("run.json")).ok().as_ref() != Some(d)) {
            bad.push(format!("{folder}/run.json was changed after it was recorded"));
        }
        for (name, stored) in &run.record.files {
            files += 1;
            match digest::sha256_file(&run.path.join(name)) {
                Ok(found) if found == stored.sha256 => {}
                Ok(_) => bad.push(format!("{folder}/{name} does not have its checksum")),
                Err(_) => bad.push(format!("{folder}/{name} is missing")),
            }
        }
    }
    Ok(match bad.len() {
        0 => finding(Level::Ok, "intact", format!("{files} files, checksums agree")),
        1 => finding(Level::No, "intact", bad.remove(0)),
        n => finding(Level::No, "intact", format!("{} and {} more", bad[0], n - 1)),
    })
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
                Outcome::Completed if run.record.validity.verdict != Verdict::Void => valid += 1,
                Outcome::OutOfMemory { .. } => results += 1,
                _ => {}
            }
        }
        if valid + results < cell.repetitions {
            short.push(format!("{} has {valid} of {} repetitions", cell.cell, cell.repetitions));
        }
    }
    match short.len() {
        0 => finding(Level::Ok, "enough", format!("{} cells, all repetitions", plan.cells.len())),
        1 => finding(Level::No, "enough", short.remove(0)),
        n => finding(Level::No, "enough", format!("{} and {} more cells are short", short[0], n - 1)),
    }
}
