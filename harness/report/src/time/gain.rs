//! Throughput gain over running in turn, by degree.

use std::collections::HashMap;

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_analysis::words;
use collo_figures::chart::{DegreePoint, Failure, Lines, ModeLine};
use collo_figures::document::{Block, Section, Table, TableCell};
use collo_figures::draw::{Panel, cut};
use collo_figures::modes::{in_order, mode_label};
use collo_quantity::{Key, number};
use collo_store::Sharing;

use crate::parts::absent::{Content, numbers};
use crate::parts::figure::{failure, figure, hover, indicative_note, interval, legend};
use crate::parts::panels::{describe, drawn};
use crate::parts::places::alone_on_slice;
use crate::parts::published::{self, PublishedBeside};
use crate::parts::values::{finish, label, with_validity};
use crate::report::Report;

/// Equal members that train and share; one alone on a slice shares with none.
fn shared(cell: &Cell) -> bool {
    cell.record.is_uniform() && cell.record.degree > 1 && !cell.serves()
}

pub fn section(report: &Report) -> Content {
    let analysis = &report.analysis;
    numbers(analysis)?;
    let measured: Vec<&Cell> = analysis.groups().filter(|c| shared(c) && c.get(Key::ThroughputGain).is_some()).collect();
    if measured.is_empty() {
        let why = analysis.groups().filter(|c| shared(c)).find_map(|c| c.absent.get(&Key::ThroughputGain));
        let why = why.map_or_else(
            || {
                "There is no group of two or more equal members in this experiment; see Mixed workloads and All cells."
                    .to_string()
            },
            |w| format!("No gain can be computed: {w}."),
        );
        return Err(why);
    }
    let high = |c: &&Cell| c.get(Key::ThroughputGain).map_or(0.0, |q| q.high.unwrap_or(q.estimate));
    let largest = measured.iter().map(high).fold(0.0, f64::max);
    let (workloads, left_out) = drawn(analysis, &|c| shared(c) && c.get(Key::ThroughputGain).is_some());
    let panels: Vec<Panel> = workloads.into_iter().filter_map(|w| panel(analysis, w, largest)).collect();
    let mut sentences = crate::parts::finding::sentences(analysis);
    sentences.truncate(2);
    let beside = PublishedBeside::of(analysis, Key::ThroughputGain);
    let caption = format!(
        "1: no better than in turn; dotted: no member slows down; marks are joined where each degree has at most twice the members of the one before. Above the axis: groups that failed, by mode. Bands: 95 % intervals. One scale for all \
                   panels. The gain is Σ solo epoch time ÷ mean epoch time in the group, per repetition; under `exit` it is Σ \
                   solo makespan ÷ makespan.{}{left_out}{}",
        beside.sentence(),
        indicative_note(analysis.groups().filter(|c| shared(c)))
    );
    const TITLE: &str = "Throughput gain over running in turn";
    let values = table(analysis);
    let block = if has_line(&measured) {
        let mut fig = figure(analysis, "throughput-gain", TITLE, panels, caption, values);
        fig.legend = legend(analysis.groups().filter(|c| shared(c)));
        beside.add_to(&mut fig);
        Block::Figure(fig)
    } else {
        let mut values = Table { caption: TITLE.into(), ..values };
        beside.add_columns(&mut values);
        Block::Table(values)
    };
    Ok(Section {
        finding: match () {
            () if !sentences.is_empty() => sentences.join(" "),
            () if measured.iter().any(|c| c.get(Key::ThroughputGain).is_some_and(|q| q.low.is_some())) => String::new(),
            () if measured.iter().any(|c| c.count() > 1) && analysis.is_reported() => "No gain has an interval.".into(),
            () => "No gain has an interval: a group or its baseline has only one repetition.".into(),
        },
        blocks: vec![block],
        ..report.judged("collocate")
    })
}

/// True if some workload was measured at two degrees of a mode: single points are in the map of the first screen.
fn has_line(measured: &[&Cell]) -> bool {
    let mut degrees = HashMap::new();
    measured.iter().any(|c| *degrees.entry((c.workload(), &c.record.sharing)).or_insert(c.record.degree) != c.record.degree)
}

fn panel(analysis: &Analysis, workload: &str, largest: f64) -> Option<Panel> {
    let groups: Vec<&Cell> = analysis.of_workload(workload).filter(|c| !c.is_solo() && !alone_on_slice(c)).collect();
    let solo = analysis.solo(workload);
    let modes = in_order(groups.iter().map(|c| c.record.sharing.as_str()));
    let point = |c: &Cell| {
        let q = c.get(Key::ThroughputGain)?;
        Some(DegreePoint {
            degree: c.record.degree,
            value: q.estimate,
            interval: interval(q, 1.0),
            runs: c.readings(Key::ThroughputGain),
            published: published::mark(analysis, c, Key::ThroughputGain, q, 1.0),
            indicative: !c.is_valid(),
            title: hover(c, "gain", Some(q), 1.0, ""),
        })
    };
    let most = groups.iter().map(|c| c.record.degree).max().unwrap_or(1);
    let mut lines = Vec::new();
    for sharing in modes {
        let mut points: Vec<DegreePoint> =
            groups.iter().filter(|c| c.record.sharing == sharing).filter_map(|c| point(c)).collect();
        // Naive sharing begins with one member on the whole device, which is the baseline itself; nothing else ran so.
        if Sharing::of_label(sharing) == Sharing::of_label("naive") && !points.iter().any(|p| p.degree == 1) {
            points.extend(solo.and_then(point));
        }
        points.sort_by_key(|p| p.degree);
        let Some(last) = points.last().filter(|p| p.degree > 1) else { continue };
        let beside = if last.degree < most { format!(" at ×{}", last.degree) } else { String::new() };
        let end = format!("{} {}{beside}", cut(&mode_label(sharing), 14), number::fixed(last.value, 2));
        lines.push(ModeLine { sharing: sharing.to_string(), points, end });
    }
    if lines.is_empty() {
        return None;
    }
    let mut degrees: Vec<u32> = analysis.of_workload(workload).map(|c| c.record.degree).collect();
    degrees.sort_unstable();
    degrees.dedup();
    let failed = groups.iter().filter(|c| shared(c) && c.get(Key::ThroughputGain).is_none());
    let failures: Vec<Failure> = failed
        .filter_map(|c| {
            Some(Failure {
                sharing: c.record.sharing.clone(),
                degree: c.record.degree,
                why: failure(c)?,
                title: hover(c, "gain", None, 1.0, ""),
            })
        })
        .collect();
    let (title, subtitle) = describe(analysis, workload);
    let drawing =
        Lines { caption: "× the throughput of running in turn", lines: &lines, failures: &failures, largest, degrees: &degrees }
            .draw();
    Some(Panel { label: format!("throughput gain of {title} by degree, one line per sharing mode"), title, subtitle, drawing })
}

fn table(analysis: &Analysis) -> Table {
    let mut table = Table::with(&["cell", "#gain", "95 % interval", "#p, Holm", "against 1", "#STP", "#ANTT"]);
    for cell in analysis.groups().filter(|c| shared(c)) {
        let q = |key: Key| cell.get(key).map_or_else(TableCell::default, |q| TableCell::number(number::estimate(q), q.estimate));
        let gain = cell.get(Key::ThroughputGain);
        let said = cell.gain_verdict.as_ref();
        let lent = cell.lender.as_ref().map_or_else(String::new, |l| format!("baseline of campaign {}", l.short_id()));
        table.row(vec![
            label(analysis, cell),
            TableCell { note: lent, ..q(Key::ThroughputGain) },
            TableCell {
                ends: gain.and_then(|q| q.low.zip(q.high)),
                ..TableCell::text(gain.map_or_else(|| failure(cell).unwrap_or_default(), number::bounds))
            },
            TableCell::text(said.map_or_else(String::new, |v| words::p(v.p_adjusted))),
            TableCell::text(said.map_or_else(String::new, |v| v.verdict.text())),
            q(Key::Stp),
            q(Key::Antt),
        ]);
    }
    with_validity(&mut table, analysis.groups().filter(|c| shared(c)));
    finish(analysis, table)
}
