//! Up to which summed demand members keep their speed: slowdown over the sum of the members' solo SM activity, with the fitted
//! hinge.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_figures::chart::{Reference, Scatter, ScatterPoint};
use collo_figures::document::{Block, Section, Table, TableCell};
use collo_figures::draw::Panel;
use collo_guidelines::groups::threshold::{HingeFit, PUBLISHED_RATIO, fit};
use collo_guidelines::rule::Guideline;
use collo_quantity::stats::Quantity;
use collo_quantity::{Key, number};

use crate::parts::absent::{Content, numbers};
use crate::parts::figure::{figure, hover, indicative_note, interval, legend, tags};
use crate::parts::values::{label, with_validity};
use crate::report::Report;

pub fn section(report: &Report) -> Content {
    let analysis = &report.analysis;
    numbers(analysis)?;
    let has_both = |c: &&Cell| {
        c.record.degree > 1 && c.get(Key::SoloSmActiveSum).is_some() && c.get(Key::Slowdown).is_some() && shares_all(c)
    };
    let cells: Vec<&Cell> = analysis.groups().filter(has_both).collect();
    if cells.is_empty() {
        let solo_activity = analysis.cells.iter().any(|c| c.is_solo() && c.metric(Key::SmActive).is_some());
        let why = if solo_activity {
            "No group on the undivided GPU can be compared with the sum of its members' solo SM activity."
        } else {
            "A threshold of summed solo SM activity needs a GPU that reports it; this campaign has none."
        };
        return Err(why.into());
    }
    if ["naive", "mps"].into_iter().all(|mode| fit(analysis, mode).is_none()) {
        let why = report.guideline("sm-threshold").map(|g| g.finding.clone()).filter(|why| !why.is_empty());
        return Err(why.unwrap_or_else(|| "There are too few groups on both sides for a fit.".into()));
    }
    let mut modes: Vec<&str> = cells.iter().map(|c| c.record.sharing.as_str()).collect();
    modes.sort_unstable();
    modes.dedup();
    let panels = modes.iter().filter_map(|mode| panel(analysis, mode, &cells)).collect();
    let limit = number::percent_as_written(analysis.campaign.thresholds.slowdown - 1.0);
    let caption = format!(
        "One mark per group on the undivided GPU: mean slowdown of its members over the sum of what each keeps busy alone, in percent of the GPU's SMs. The line is a hinge: flat, then a power of the sum; the threshold is where it passes a slowdown of {limit}, its band the 95 % \
         interval (F test on the fit; groups of one workload are not independent, which the band ignores). Dashed: published.{}",
        indicative_note(cells.iter().copied())
    );
    let mut fig =
        figure(analysis, "threshold", "Slowdown over summed solo SM activity", panels, caption, table(analysis, &cells));
    fig.legend = legend(cells.iter().copied());
    let finding = report.guideline("sm-threshold").map_or_else(String::new, finding);
    Ok(Section { finding, blocks: vec![Block::Figure(fig)], ..report.judged("sm-threshold") })
}

/// The section has no column for the number, so the sentence has it.
fn finding(guideline: &Guideline) -> String {
    match &guideline.key {
        Some(key) => format!("Members keep their speed up to a sum of {} {}. {}", key.to_text(), key.bounds(), guideline.finding),
        None => guideline.finding.clone(),
    }
}

/// Members of instances have no common sum.
fn shares_all(cell: &Cell) -> bool {
    !cell.record.mode.partitioned
}

fn panel(analysis: &Analysis, mode: &str, cells: &[&Cell]) -> Option<Panel> {
    let points: Vec<ScatterPoint> = cells
        .iter()
        .filter(|c| c.record.sharing == mode)
        .filter_map(|c| {
            let (sum, slowdown) = (c.get(Key::SoloSmActiveSum)?, c.get(Key::Slowdown)?);
            let title = format!(
                "{}\nsum of solo SM activity {}",
                hover(c, Key::Slowdown.head(), Some(slowdown), 1.0, ""),
                number::percent(sum.estimate)
            );
            let at = (sum.estimate, slowdown.estimate);
            let indicative = !c.is_valid();
            Some(ScatterPoint { sharing: mode.to_string(), at, interval: interval(slowdown, 1.0), indicative, title })
        })
        .collect();
    let fitted = ["naive", "mps"].into_iter().find(|m| *m == mode).and_then(|m| fit(analysis, m));
    let mut references = Vec::new();
    let mut line = Vec::new();
    if let Some(f) = &fitted {
        references.push(reference(f));
        let furthest = points.iter().map(|p| p.at.0).fold(0.0, f64::max);
        line = (0..=60).map(|i| furthest * f64::from(i) / 60.0).filter(|x| *x > 0.0).map(|x| (x, f.at(x))).collect();
    }
    references.push(Reference { value: PUBLISHED_RATIO, interval: None, text: "published 80 %".into(), published: true });
    let limit = analysis.campaign.thresholds.slowdown;
    let accepted = format!("accepted: {}", number::three(limit));
    let drawing = Scatter {
        caption: "slowdown against running alone",
        below: "sum of solo SM activity, % of the GPU",
        points: &points,
        line: (!line.is_empty()).then_some((mode, line.as_slice())),
        references: &references,
        limit: Some((limit, &accepted)),
    }
    .draw();
    let subtitle = if fitted.is_some() { String::new() } else { "too few groups on both sides for a fit".into() };
    let title = collo_figures::modes::mode_label(mode);
    (!points.is_empty()).then(|| Panel { label: format!("slowdown over summed SM activity, {title}"), title, subtitle, drawing })
}

fn reference(f: &HingeFit) -> Reference {
    let text = format!("fitted {}", number::percent(f.threshold.estimate));
    Reference { value: f.threshold.estimate, interval: f.threshold.low.zip(f.threshold.high), text, published: false }
}

fn table(analysis: &Analysis, cells: &[&Cell]) -> Table {
    let mut table = Table::with(&["cell", "#sum of solo SMACT %", "#SMACT %", "#slowdown", "95 % interval"]);
    for cell in cells {
        let percent = |q: Option<&Quantity>| q.map_or_else(String::new, |q| format!("{:.0}", q.estimate * 100.0));
        let slowdown = cell.get(Key::Slowdown);
        table.row(vec![
            label(analysis, cell),
            TableCell::text(percent(cell.get(Key::SoloSmActiveSum))),
            TableCell::text(percent(cell.metric(Key::SmActive))),
            TableCell::text(slowdown.map_or_else(String::new, number::estimate)),
            TableCell::text(slowdown.map_or_else(String::new, number::bounds)),
        ]);
    }
    with_validity(&mut table, cells.iter().copied());
    table.tags = tags(analysis);
    table
}
