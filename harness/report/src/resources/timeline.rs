//! The members of one repetition over time, with their resource usage.

use collo_analysis::campaign::Analysis;
use collo_analysis::timeline::Timeline;
use collo_figures::chart::{Area, Lane, Timelines, peak};
use collo_figures::document::{Block, Figure, Section, Table, TableCell};
use collo_figures::draw::Panel;
use collo_figures::modes::mode_label;
use collo_quantity::number;
use collo_quantity::unit::GIB;
use collo_store::Sharing;

use crate::parts::absent::{Content, NO_RUNS, numbers};
use crate::parts::figure::{legend_with, tags};

/// Names of the figures: the mixed set comes before the uniform one.
const FIGURES: [&str; 2] = ["timelines", "timelines-uniform"];

pub fn section(analysis: &Analysis) -> Content {
    numbers(analysis)?;
    if analysis.is_reported() {
        return Err(NO_RUNS.into());
    }
    let shown: Vec<&Timeline> = analysis.timelines.iter().filter(|t| t.lives_shown).collect();
    if shown.is_empty() {
        return Err("No run recorded when its members trained.".into());
    }
    let mut sets: Vec<&str> = shown.iter().map(|t| t.set.as_str()).collect();
    sets.dedup();
    let of = |set: &str| -> Vec<&Timeline> { shown.iter().filter(|t| t.set == set).copied().collect() };
    let blocks = FIGURES.iter().zip(&sets).map(|(id, set)| Block::Figure(figure(analysis, id, set, &of(set)))).collect();
    Ok(Section { finding: finding(analysis, &of(sets[0])), blocks, ..Section::default() })
}

fn figure(analysis: &Analysis, id: &'static str, set: &str, shown: &[&Timeline]) -> Figure {
    let ends = shown.iter().map(|t| t.end_s).fold(0.0, f64::max);
    let starts = shown.iter().map(|t| t.start_s).fold(0.0, f64::min);
    let activity = shown.iter().any(|t| !t.sm_active_ratio.is_empty());
    let memory = if analysis.campaign.device.kind == "gpu" {
        "that of the GPU, by process, as the driver reports it"
    } else {
        "RSS, which counts shared pages once per member"
    };
    let turn = if shown.iter().any(|t| t.in_turn) { " In turn: the members' solo runs, one after the other." } else { "" };
    let is_shared = |t: &&Timeline| Sharing::of_label(&t.sharing).one_process;
    let process = if shown.iter().any(is_shared) { " Threads of one process: CPU and memory of that process." } else { "" };
    let used = if activity { "SMACT is that of the whole GPU" } else { "CPU in cores, members stacked" };
    let what = if activity { "SM activity" } else { "CPU" };
    let solo = if shown.iter().any(|t| t.in_turn) { "in turn" } else { "solo" };
    let legend = legend_with(shown.iter().map(|t| t.sharing.as_str()), solo);
    Figure {
        id: id.into(),
        title: format!("{set}: members' lifetimes, {what} and memory"),
        legend,
        panels: shown.iter().map(|t| panel(analysis, t, shown, (starts, ends), activity)).collect(),
        caption: format!(
            "One repetition of each; time from go. Outlined: warm-up and tail, not measured. Dotted: end of the group.{turn} {used}; \
             memory in GiB, members stacked, {memory}.{process} At most 60 points a line; all panels share their axes."
        ),
        values: values(analysis, shown),
        csv: None,
        simulated: analysis.campaign.device.simulated,
        tags: tags(analysis),
    }
}

/// Bytes as GiB.
fn gib(series: &[Vec<(f64, f64)>]) -> Vec<Vec<(f64, f64)>> {
    series.iter().map(|line| line.iter().map(|(t, b)| (*t, b * GIB)).collect()).collect()
}

fn panel(analysis: &Analysis, t: &Timeline, all: &[&Timeline], span_s: (f64, f64), activity: bool) -> Panel {
    let lanes: Vec<Lane> = t.lives.iter().map(|l| Lane { name: l.workload.clone(), epochs: l.epochs.clone() }).collect();
    let device = &analysis.campaign.device;
    let highest = |of: &dyn Fn(&Timeline) -> f64| all.iter().map(|t| of(t)).fold(0.0, f64::max);
    let card = |t: &Timeline| vec![t.sm_active_ratio.clone()];
    let used = if activity {
        Area { caption: "SMACT", series: card(t), capacity: None, peak: 1.0 }
    } else {
        Area {
            caption: "cores",
            series: t.cpu.clone(),
            capacity: device.cores_at_a_time().filter(|_| device.kind == "cpu"),
            peak: highest(&|t| peak(&t.cpu)),
        }
    };
    let memory = Area {
        caption: "memory, GiB",
        series: gib(&t.memory),
        capacity: device.memory_bytes.map(|b| b as f64 * GIB),
        peak: highest(&|t| peak(&gib(&t.memory))),
    };
    let lanes_high = all.iter().map(|t| t.lives.len()).max().unwrap_or(0);
    let title = if t.in_turn { "in turn".to_string() } else { mode_label(&t.sharing) };
    let areas = [used, memory];
    Panel {
        title,
        subtitle: format!("{}, repetition {}", number::duration(t.end_s - t.start_s.min(0.0)), t.repetition),
        label: format!("lifetimes, activity and memory of the members of {}", t.cell),
        drawing: Timelines { sharing: &t.sharing, lanes: &lanes, lanes_high, areas: &areas, span_s, end_s: t.end_s }.draw(),
    }
}

fn values(analysis: &Analysis, shown: &[&Timeline]) -> Table {
    let mut table = Table::with(&["run", "#member", "workload", "#from s", "#to s", "epochs"]);
    table.tags = tags(analysis);
    let seconds = |s: f64| TableCell::number(format!("{s:.2}"), s);
    for t in shown {
        for (i, life) in t.lives.iter().enumerate() {
            let (Some(first), Some(last)) = (life.epochs.first(), life.epochs.last()) else { continue };
            let measured = life.epochs.iter().filter(|e| e.2).count();
            table.row(vec![
                TableCell::text(t.cell.clone()),
                TableCell::text(i.to_string()),
                TableCell::text(life.workload.clone()),
                seconds(first.0),
                seconds(last.1),
                TableCell::text(format!("{}, {measured} measured", number::count(life.epochs.len(), "epoch"))),
            ]);
        }
    }
    table
}

/// How long the same members take under each mode.
fn finding(analysis: &Analysis, shown: &[&Timeline]) -> String {
    let length = |t: &Timeline| t.end_s - t.start_s.min(0.0);
    let Some(t) = shown.iter().filter(|t| !t.in_turn && t.lives.len() > 1).min_by(|a, b| length(a).total_cmp(&length(b))) else {
        return shown.first().map_or_else(String::new, |t| format!("One repetition of `{}`, second by second.", t.cell));
    };
    let turn = shown
        .iter()
        .find(|t| t.in_turn)
        .map_or_else(String::new, |all| format!("; in turn they take {}", number::duration(length(all))));
    let starts = || t.lives.iter().filter_map(|l| l.epochs.first().map(|e| e.0));
    let (low, high) = starts().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), s| (l.min(s), h.max(s)));
    let apart = if high >= low {
        format!(" They started within {} of each other.", number::milliseconds(high - low))
    } else {
        String::new()
    };
    let members = number::count(t.lives.len(), "member");
    if analysis.cells.iter().any(|c| c.name() == t.cell && c.serves()) {
        return format!("One repetition of `{}`, second by second: it serves until stopped.{apart}", t.cell);
    }
    format!("The {members} of `{}` finished after {}, warm-up included{turn}.{apart}", t.cell, number::duration(length(t)))
}
