//! The list of reports. In: a folder of reports. Out: `index.html` in it, with the answer of each report and a link to its page. It is made
//! of the reports' own files: no campaign is analysed again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use collo_analysis::cell::verdict::CellVerdict;
use collo_analysis::words;
use collo_figures::document::{Badge, Block, Document, Fact, Section, Table, TableCell, TableLayout, Tone, html, replace};
use collo_guidelines::report_json::ListedReport;
use collo_quantity::number;
use fs_err as fs;

use crate::Result;
use crate::parts::anchor::address;

/// The beginning of the page's title, by which a page that collo wrote is known.
const NAME: &str = "collo reports";
/// Sentences of an answer; the page of a campaign has all.
const SENTENCES: usize = 4;
/// Larger than the list of a hundred thousand campaigns.
const LIMIT_BYTES: u64 = 512 << 20;

/// Write the list, unless a page of its name is there that collo did not write.
pub fn write(reports: &Path) -> Result<()> {
    let path = reports.join("index.html");
    if path.exists() && !is_ours(&path) {
        return Ok(());
    }
    let mut found = files(reports)?;
    // Another collo may write a report, and this list, at the same time.
    for _ in 0..3 {
        replace(&path, html::document(&document(reports, &found))?.as_bytes())?;
        let now = files(reports)?;
        if now == found {
            break;
        }
        found = now;
    }
    Ok(())
}

fn is_ours(path: &Path) -> bool {
    let text = collo_text::read_small(path, LIMIT_BYTES).unwrap_or_default();
    let head = String::from_utf8_lossy(&text[..text.len().min(1000)]).into_owned();
    head.contains(&format!("<title>{NAME}"))
}

/// The `report.json` of every campaign: in `NAME/CAMPAIGN/`.
fn files(reports: &Path) -> Result<BTreeSet<PathBuf>> {
    let below = |folder: &Path| -> Result<Vec<PathBuf>> {
        let entries = fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path()));
        Ok(entries.filter(|path| path.is_dir()).collect())
    };
    let mut found = BTreeSet::new();
    for experiment in below(reports)? {
        let files = below(&experiment)?.into_iter().map(|campaign| campaign.join("report.json"));
        found.extend(files.filter(|file| file.is_file()));
    }
    Ok(found)
}

fn document(reports: &Path, files: &BTreeSet<PathBuf>) -> Document {
    let (mut listed, mut refused) = (Vec::new(), Vec::new());
    for file in files {
        match ListedReport::read(file) {
            Ok(report) => listed.push((file, report)),
            Err(why) => refused.push(format!("{why}.")),
        }
    }
    listed.sort_by(|(_, a), (_, b)| (&b.created_utc, &b.campaign).cmp(&(&a.created_utc, &a.campaign)));
    let experiments: BTreeSet<&str> = listed.iter().map(|(_, report)| report.experiment.as_str()).collect();
    let devices: BTreeSet<&str> = listed.iter().map(|(_, report)| report.device.name.as_str()).collect();
    let simulated = listed.iter().filter(|(_, report)| report.device.simulated).count();
    let numbers = match (simulated, listed.len() - simulated) {
        (0, n) => format!("{n} measured"),
        (n, 0) => format!("{n} simulated"),
        (simulated, measured) => format!("{measured} measured, {simulated} simulated"),
    };
    let mut table = Table::with(&["campaign", "device", "cells", "answer"]).looking(TableLayout::Prose);
    table.columns[3].prose = true;
    for (file, report) in &listed {
        table.row(row(reports, file, report));
    }
    let mut sections = vec![Section {
        id: "summary",
        title: "Campaigns",
        finding: if listed.is_empty() { "There is no report yet.".into() } else { String::new() },
        blocks: table.if_any().into_iter().collect(),
        ..Section::default()
    }];
    if !refused.is_empty() {
        let hint = "`collo report CAMPAIGN` writes the report of a stored campaign again.";
        let blocks = vec![Block::Notes(refused), Block::Remark(hint.into())];
        sections.push(Section { id: "not-read", title: "Not read", blocks, ..Section::default() });
    }
    let nights = nights(reports);
    if !nights.rows.is_empty() {
        let blocks = vec![Block::Table(nights)];
        sections.push(Section { id: "nights", title: "Nights", blocks, ..Section::default() });
    }
    let invented = "A model invented the numbers of every campaign in this list.";
    Document {
        name: NAME.into(),
        title: "Reports".into(),
        subtitle: "Every campaign with a report in this folder, the newest first, with the answer of its page.".into(),
        facts: vec![
            Fact::new("Campaigns", number::count(listed.len(), "campaign")),
            Fact::new("Experiments", number::count(experiments.len(), "experiment")),
            Fact::new("Devices", devices.into_iter().collect::<Vec<_>>().join(", ")),
            Fact::new("Numbers", numbers),
        ],
        sections,
        ..Document::default()
    }
    .simulated((simulated > 0 && simulated == listed.len()).then_some(invented))
}

fn row(reports: &Path, file: &Path, report: &ListedReport) -> Vec<TableCell> {
    let folder = file.parent().unwrap_or(reports);
    let when = report.created_utc.replace('T', " ").replace('Z', " UTC");
    let note = format!("{when}, {}", report.campaign);
    let source = match (&report.measured_by, report.device.simulated) {
        (_, true) => Badge::new(Tone::Open, "", "simulated"),
        (Some(program), false) => Badge::new(Tone::Plain, "", format!("measured by {program}")),
        (None, false) => Badge::new(Tone::Plain, "", "measured"),
    };
    let data = if report.synthetic.is_empty() { "" } else { "synthetic data" };
    let (cells, caveats) = validity(report);
    vec![
        TableCell { page: link(reports, &folder.join("report.html")), ..TableCell::with_note(&report.experiment, note) },
        TableCell { chip: Some(source), ..TableCell::with_note(&report.device.name, data) },
        TableCell::with_note(cells, caveats.join(", ")),
        TableCell::text(answer(report)),
    ]
}

/// `10 of 12 valid`, and what else became of cells and runs.
fn validity(report: &ListedReport) -> (String, Vec<String>) {
    let count = |verdict: CellVerdict| report.validities().filter(|word| *word == verdict.as_str()).count();
    let what = if report.has_only_traces() { "policies" } else { "cells" };
    let text = match report.validities().count() {
        // Cells that are watched have no validity of their own in a report.
        0 => {
            let completed = report.accounted.get("completed").copied().unwrap_or(0);
            format!("{completed} of {} completed", number::runs(report.planned))
        }
        all => format!("{} of {all} {what} valid", count(CellVerdict::Valid)),
    };
    let others = CellVerdict::ALL.into_iter().filter(|verdict| *verdict != CellVerdict::Valid && count(*verdict) > 0);
    let mut caveats: Vec<String> = others.map(|verdict| format!("{} {}", count(verdict), verdict.text())).collect();
    let missing = report.accounted.get("missing").copied().unwrap_or(0);
    if missing > 0 {
        caveats.push(format!("unfinished: {missing} of {} {}", number::runs(report.planned), words::outcome("missing")));
    }
    if !report.indicative.is_empty() {
        caveats.push(format!("all indicative: {}", report.indicative.join("; ")));
    }
    (text, caveats)
}

/// The sentences of its page, each on a line of its own.
fn answer(report: &ListedReport) -> String {
    let Some(answer) = report.answer.as_ref().filter(|answer| !answer.is_empty()) else {
        return match (&report.measured_by, &report.answer) {
            (Some(program), _) => format!("Measured by {program}: its report decides nothing."),
            (None, None) => "An earlier version wrote its report, without an answer; `collo report` writes it again.".into(),
            (None, Some(_)) => "Its report decides nothing.".into(),
        };
    };
    let more = answer.len().saturating_sub(SENTENCES);
    let more = (more > 0).then(|| format!("{} on its page.", number::count(more, "more answer")));
    answer.iter().take(SENTENCES).cloned().chain(more).collect::<Vec<_>>().join("\n")
}

/// The pages of nightlies.
fn nights(reports: &Path) -> Table {
    let mut table = Table::with(&["nights of"]).looking(TableLayout::Narrow);
    let folders = std::fs::read_dir(reports.join("history")).into_iter().flatten().flatten();
    let mut pages: Vec<PathBuf> = folders.map(|entry| entry.path().join("index.html")).collect();
    pages.sort();
    for page in pages {
        let name = page.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        let to = link(reports, &page);
        if let (Some(name), false) = (name, to.is_empty()) {
            table.row(vec![TableCell { page: to, ..TableCell::text(name) }]);
        }
    }
    table
}

/// The address of a page from the list; empty where it is not there.
fn link(reports: &Path, page: &Path) -> String {
    let Some(inside) = page.strip_prefix(reports).ok().filter(|_| page.is_file()) else { return String::new() };
    inside.components().map(|part| address(&part.as_os_str().to_string_lossy())).collect::<Vec<_>>().join("/")
}
