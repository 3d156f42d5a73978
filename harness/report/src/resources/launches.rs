//! What the metrics see: GPU utilisation, GRACT, SMACT and SMOCC of a sweep over launches, each point beside what was published of it.

use collo_analysis::campaign::Analysis;
use collo_analysis::campaign::launches::LaunchPoint;
use collo_figures::chart::{LaunchLine, LaunchMark, Launches};
use collo_figures::document::{Block, Figure, Section, Table, TableCell};
use collo_figures::draw::Panel;
use collo_guidelines::groups::saturation::METRICS;
use collo_guidelines::published::square::square;
use collo_quantity::{Key, number};

use crate::parts::absent::Content;
use crate::parts::anchor::cell_id;
use crate::parts::figure::{figure, indicative_note, interval, tags, told};
use crate::parts::panels::SWEEP;
use crate::report::Report;

pub fn section(report: &Report) -> Content {
    let analysis = &report.analysis;
    let points = analysis.launches();
    let read = |key: &Key| points.iter().any(|p| p.cell.metric(*key).is_some());
    let metrics: Vec<Key> = METRICS.into_iter().filter(read).collect();
    if metrics.is_empty() {
        return Err("Of no point of the sweep was a metric read.".into());
    }
    Ok(Section { blocks: vec![Block::Figure(drawn(analysis, &points, &metrics))], ..report.judged("saturation") })
}

/// Why a section has no figure where there is nothing but a sweep.
pub fn instead(analysis: &Analysis) -> Option<String> {
    analysis.only_sweeps().then(|| format!("{} are the points of one sweep, drawn in {SWEEP}.", all(analysis.launches().len())))
}

fn all(cells: usize) -> String {
    format!("All {}", number::count(cells, "cell"))
}

fn drawn(analysis: &Analysis, points: &[LaunchPoint], metrics: &[Key]) -> Figure {
    let panels = metrics.iter().map(|key| panel(points, *key)).collect();
    let square = square();
    let published = points.iter().filter(|p| square.reading(p.blocks, p.threads, Key::SmActive).is_some()).count();
    let mut caption = format!(
        "One kernel, launched over and over alone on the GPU: each of its threads squares a number. A line for each number of threads of a \
         block; means over the measured window.{}",
        indicative_note(points.iter().map(|p| p.cell))
    );
    if published > 0 {
        caption += &format!(
            " Crosses: published of {} of the {} points on an {}: {}. {}.",
            published,
            points.len(),
            collo_gpus::without_vendor(&square.device),
            square.conditions,
            square.source
        );
    }
    let mut fig = figure(
        analysis,
        "metrics-see",
        "Metrics by blocks and threads of a launch",
        panels,
        caption,
        table(analysis, points, metrics),
    );
    fig.legend = Vec::new();
    fig
}

fn panel(points: &[LaunchPoint], key: Key) -> Panel {
    let mut lines: Vec<LaunchLine> = Vec::new();
    for p in points {
        let q = p.cell.metric(key);
        let published = square().reading(p.blocks, p.threads, key);
        let mut title = format!("{} blocks × {} threads", p.blocks, p.threads);
        title += &q.map_or_else(|| format!("\n{} absent", key.label), |q| told(key.label, q, 100.0, " %"));
        if let Some(published) = published {
            title += &format!("\npublished {}", number::share(published));
        }
        let mark = LaunchMark {
            blocks: p.blocks as f64,
            value: q.map(|q| q.estimate),
            interval: q.and_then(|q| interval(q, 1.0)),
            published,
            indicative: !p.cell.is_valid(),
            title,
        };
        let threads = p.threads.to_string();
        // Points come by threads, then by blocks.
        match lines.last_mut().filter(|l| l.threads == threads) {
            Some(line) => line.points.push(mark),
            None => lines.push(LaunchLine { threads, points: vec![mark] }),
        }
    }
    let drawing = Launches { caption: &format!("{}, %", key.label), lines: &lines }.draw();
    Panel {
        title: key.label.into(),
        subtitle: meaning(key).into(),
        label: format!("{} over the blocks of a launch, by the threads of a block", key.label),
        drawing,
    }
}

/// What a metric is a share of, in the width of a panel.
fn meaning(key: Key) -> &'static str {
    match key {
        Key::GpuUtilization => "time with a kernel",
        Key::GraphicsActive => "time with an engine active",
        Key::SmActive => "SMs with a warp",
        _ => "warps of those that fit",
    }
}

/// A row for each point: every metric as measured here and, beside it, as published.
fn table(analysis: &Analysis, points: &[LaunchPoint], metrics: &[Key]) -> Table {
    let mut heads = vec!["#blocks".to_string(), "#threads".into()];
    for key in metrics {
        heads.extend([format!("#{} %", key.label), "#published %".into()]);
    }
    heads.extend(["#runs".to_string(), "validity".into()]);
    let mut table = Table::with(&heads.iter().map(String::as_str).collect::<Vec<_>>());
    // Shares near 1 differ in their tenths of a percent, those near 0 in their hundredths.
    let percent = |share: f64| {
        let percent = share * 100.0;
        TableCell::number(number::fixed(percent, if percent < 1.0 { 2 } else { 1 }), percent)
    };
    for p in points {
        let whole = |n: u64| TableCell::number(n.to_string(), n as f64);
        let mut row = vec![TableCell { link: cell_id(analysis, p.cell.name()), ..whole(p.blocks) }, whole(p.threads)];
        for key in metrics {
            row.push(p.cell.metric(*key).map_or_else(TableCell::default, |q| percent(q.estimate)));
            row.push(square().reading(p.blocks, p.threads, *key).map_or_else(TableCell::default, percent));
        }
        row.extend([TableCell::text(p.cell.count().to_string()), TableCell::text(p.cell.verdict().text())]);
        table.row(row);
    }
    table.tags = tags(analysis);
    table
}
