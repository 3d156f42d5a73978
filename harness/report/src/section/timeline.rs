//! The lives of the members of one repetition, with what they used.

use super::common::{nothing, tags, without};
use super::{Block, Figure, Section, Table, TableCell};
use crate::analysis::{Analysis, MemoryKind, Timeline};
use crate::number;
use crate::plot::{Area, Lane, Panel, Timelines, peak};

const ID: &str = "timelines";
const TITLE: &str = "Timelines";

pub fn section(analysis: &Analysis) -> Section {
    if let Some(why) = nothing(analysis) {
        return without(ID, TITLE, why);
    }
    if analysis.timelines.is_empty() {
        return without(ID, TITLE, "No run tells when its members trained.");
    }
    let ends = analysis.timelines.iter().map(|t| t.end_s).fold(0.0, f64::max);
    let starts = analysis.timelines.iter().map(|t| t.start_s).fold(0.0, f64::min);
    let panels = analysis.timelines.iter().map(|t| panel(analysis, t, (starts, ends))).collect();
    let legend = analysis.timelines.iter().map(|t| (t.sharing.clone(), t.sharing.clone()));
    let mut modes: Vec<(String, String)> = legend.collect();
    modes.dedup();
    let figure = Figure {
        id: "timelines",
        title: "Members' lives, CPU and memory".into(),
        legend: modes,
        panels,
        caption: format!(
            "One repetition of each; seconds from go. Outlined: warm-up and tail, not measured. CPU in cores and memory in GiB, \
             members stacked, at most 60 points a line; dashed: what the device has. All panels share one time axis. Memory here is {}.",
            match analysis.timelines.iter().any(|t| t.memory_kind == Some(MemoryKind::Gpu)) {
                true => "that of the card, by process, as the driver tells it",
                false => "RSS, which counts shared pages once per member",
            }
        ),
        values: values(analysis),
        simulated: analysis.campaign.device.simulated,
        tags: tags(analysis),
    };
    Section { id: ID, title: TITLE, chip: None, finding: finding(&analysis.timelines), blocks: vec![Block::Figure(figure)] }
}

/// Bytes as GiB.
fn gib(series: &[Vec<(f64, f64)>]) -> Vec<Vec<(f64, f64)>> {
    series.iter().map(|line| line.iter().map(|(t, b)| (*t, b / 1073741824.0)).collect()).collect()
}

fn panel(analysis: &Analysis, t: &Timeline, span_s: (f64, f64)) -> Panel {
    let lanes: Vec<Lane> = t.lives.iter().map(|l| Lane { name: l.workload.clone(), epochs: l.epochs.clone() }).collect();
    let device = &analysis.campaign.device;
    let all = &analysis.timelines;
    let highest = |of: &dyn Fn(&Timeline) -> f64| all.iter().map(of).fold(0.0, f64::max);
    let areas = [
        Area {
            caption: "cores",
            series: t.cpu.clone(),
            capacity: device.cores.filter(|_| device.kind == "cpu").map(f64::from),
            peak: highest(&|t| peak(&t.cpu)),
        },
        Area {
            caption: "GiB",
            series: gib(&t.memory),
            capacity: device.memory_bytes.map(|b| b as f64 / 1073741824.0),
            peak: highest(&|t| peak(&gib(&t.memory))),
        },
    ];
    let lanes_high = all.iter().map(|t| t.lives.len()).max().unwrap_or(0);
    Panel {
        title: t.cell.clone(),
        subtitle: format!("repetition {}", t.repetition),
        label: format!("lives, CPU and memory of the members of {}", t.cell),
        drawing: Timelines { sharing: &t.sharing, lanes: &lanes, lanes_high, areas: &areas, span_s }.draw(),
    }
}

fn values(analysis: &Analysis) -> Table {
    let mut table = Table::with(&["cell", "#member", "workload", "#from s", "#to s", "epochs"]);
    table.tags = tags(analysis);
    for t in &analysis.timelines {
        for (i, life) in t.lives.iter().enumerate() {
            let (Some(first), Some(last)) = (life.epochs.first(), life.epochs.last()) else { continue };
            let measured = life.epochs.iter().filter(|e| e.2).count();
            table.row(vec![
                TableCell::text(t.cell.clone()),
                TableCell::text(i.to_string()),
                TableCell::text(life.workload.clone()),
                TableCell::text(format!("{:.2}", first.0)),
                TableCell::text(format!("{:.2}", last.1)),
                TableCell::text(format!("{}, {measured} measured", number::count(life.epochs.len(), "epoch"))),
            ]);
        }
    }
    table
}

fn finding(timelines: &[Timeline]) -> String {
    match timelines.iter().max_by_key(|t| t.lives.len()) {
        Some(t) => {
            let spread = t.lives.iter().filter_map(|l| l.epochs.first().map(|e| e.0));
            let (low, high) = spread.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), s| (l.min(s), h.max(s)));
            if t.lives.len() > 1 && high >= low {
                let apart = number::milliseconds(high - low);
                format!("The {} of `{}` began within {apart} of each other.", number::count(t.lives.len(), "member"), t.cell)
            } else {
                format!("One repetition of `{}`, second by second.", t.cell)
            }
        }
        None => String::new(),
    }
}
