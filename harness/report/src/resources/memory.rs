//! Memory by member, compared with the device's.

use collo_analysis::campaign::Analysis;
use collo_figures::document::Section;
use collo_quantity::unit::GIB;
use collo_quantity::{Key, number};

use crate::parts::absent::{Content, numbers, of_file};
use crate::parts::bars::{BarFigure, Scale};
use crate::parts::figure::failure;
use crate::report::Report;

pub fn section(report: &Report) -> Content {
    let analysis = &report.analysis;
    numbers(analysis)?;
    let capacity =
        analysis.campaign.device.memory_bytes.map(|b| (b as f64 * GIB, format!("the device has {}", number::gib(b as f64))));
    let mut kinds: Vec<_> = analysis.cells.iter().filter_map(|c| c.memory_kind).map(|k| k.text()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let on_instances = analysis.cells.iter().any(|c| c.record.mode.partitioned && c.get(Key::MemoryHeadroom).is_some());
    let outlines = analysis.groups().any(|c| failure(c).as_deref() == Some("OOM"));
    let meaning = format!(
        "Each member's peak while it trained, warm-up included, added up: an upper bound of their simultaneous use. Read as {}. Whiskers: 95 % interval of the sum.{}{}{}",
        kinds.join("; or as "),
        if on_instances { " Left on instances: of those that the members have." } else { "" },
        one_process_note(analysis),
        if outlines { " Dotted outlines: solo use of the members of a group that ran out of memory." } else { "" },
    );
    let bars = BarFigure {
        id: "memory",
        title: "Memory by member",
        factor: GIB,
        what: "sum",
        caption: "GiB, one segment per member",
        head: "GiB",
        meaning: &meaning,
        scale: Scale::Members,
        beside: &[("GiB left", Key::MemoryHeadroom)],
        limit: capacity.as_ref().map(|(value, text)| (*value, text.as_str())),
        ..BarFigure::of(Key::Memory)
    };
    let figure = bars.draw(analysis).ok_or_else(|| {
        of_file(analysis, Key::Memory).unwrap_or_else(|| "No memory was read: no sample was taken and no peak was kept.".into())
    })?;
    let finding = report.guideline("memory-adds-up").map_or_else(|| finding(analysis), |g| g.finding.clone());
    Ok(Section { finding, blocks: vec![figure], ..report.judged("memory-adds-up") })
}

/// What a figure of segments by member shows of members that share a process.
pub fn one_process_note(analysis: &Analysis) -> &'static str {
    if analysis.cells.iter().any(|c| c.record.mode.one_process) {
        " Threads of one process: one segment, of that process."
    } else {
        ""
    }
}

/// The group that uses most of the device's memory.
fn finding(analysis: &Analysis) -> String {
    let most =
        analysis.cells.iter().filter_map(|c| Some((c, c.get(Key::Memory)?))).max_by(|a, b| a.1.estimate.total_cmp(&b.1.estimate));
    let Some((cell, q)) = most else { return String::new() };
    let of = analysis.campaign.device.memory_bytes.map_or_else(String::new, |b| format!(" of {}", number::gib(b as f64)));
    let used = if q.low.is_some() {
        format!("{} GiB", number::scaled(q, GIB))
    } else {
        format!("{} ({})", number::gib(q.estimate), number::runs(q.n))
    };
    format!("`{}` uses most: {used}{of}.", cell.name())
}
