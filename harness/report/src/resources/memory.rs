//! Memory by member, compared with the device's.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_figures::chart::{Stack, Stacks};
use collo_figures::document::{Block, Section};
use collo_figures::draw::Panel;
use collo_figures::draw::slots::reach;
use collo_quantity::Key;
use collo_quantity::number;
use collo_quantity::unit::GIB;

use crate::parts::absent::{Content, numbers};
use crate::parts::figure::{failure, figure, hover, indicative_note, interval};
use crate::parts::panels::{describe, describe_alone, drawn};
use crate::parts::places::{Places, compute_slices, drawn_as};
use crate::parts::values::values;
use crate::report::Report;

pub fn section(report: &Report) -> Content {
    let analysis = &report.analysis;
    numbers(analysis)?;
    let capacity =
        analysis.campaign.device.memory_bytes.map(|b| (b as f64 * GIB, format!("the device has {}", number::gib(b as f64))));
    let (panels, left_out) =
        panels(analysis, Key::Memory, "GiB, one segment per member", GIB, capacity.as_ref().map(|(v, t)| (*v, t.as_str())));
    if panels.is_empty() {
        return Err("No memory was read: no sample was taken and no peak was kept.".into());
    }
    let outlines = analysis.groups().any(|c| failure(c).as_deref() == Some("OOM"));
    let mut kinds: Vec<_> = analysis.cells.iter().filter_map(|c| c.memory_kind).map(|k| k.text()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let caption = format!(
        "Each member's peak while it trained, warm-up included, added up: an upper bound of their simultaneous use. Read as {}. Whiskers: 95 % interval of the sum.{}{}{}{}{left_out}",
        kinds.join("; or as "),
        if analysis.cells.iter().any(|c| c.record.mode.partitioned && c.get(Key::MemoryHeadroom).is_some()) {
            " Left on instances: of those that the members have."
        } else {
            ""
        },
        one_process_note(analysis),
        if outlines { " Dotted outlines: solo use of the members of a group that ran out of memory." } else { "" },
        indicative_note(analysis.cells.iter())
    );
    let table = values(analysis, &[("GiB", Key::Memory, GIB), ("GiB left", Key::MemoryHeadroom, GIB)]);
    let figure = figure(analysis, "memory", "Memory by member", panels, caption, table);
    let finding = report.guideline("memory-adds-up").map_or_else(|| finding(analysis), |g| g.finding.clone());
    Ok(Section { finding, blocks: vec![Block::Figure(figure)], ..report.judged("memory-adds-up") })
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
    format!("`{}` uses most: {} GiB{of}.", cell.name(), number::scaled(q, GIB))
}

/// Panels of stacks, one per workload, from a quantity that members and cells both have; and the sentence about what is left out.
pub fn panels(analysis: &Analysis, key: Key, caption: &str, factor: f64, capacity: Option<(f64, &str)>) -> (Vec<Panel>, String) {
    let ends = |c: &Cell| c.get(key).map(|q| (q.estimate * factor, q.high.map(|high| high * factor)));
    let largest = reach(analysis.cells.iter().filter(|c| c.record.is_uniform()).filter_map(ends));
    let (mut panels, mut alone_panels) = (Vec::new(), Vec::new());
    let (workloads, left_out) = drawn(analysis, &|c| c.get(key).is_some());
    for workload in workloads {
        let alone = analysis.solo(workload).and_then(|s| s.get(key)).map(|q| q.estimate * factor);
        let Places { groups, slices } = Places::of(analysis, workload, true);
        let (title, subtitle) = describe(analysis, workload);
        let panel = |stacks: Vec<Stack>, subtitle: String, label: String| {
            let drawing = Stacks { caption, stacks: &stacks, capacity, largest }.draw();
            Panel { title: title.clone(), subtitle, label, drawing }
        };
        let stacks = groups.iter().flat_map(|(degree, cells)| {
            let at = move |c: &Option<&Cell>| {
                let label = format!("×{degree}");
                c.map_or_else(|| Stack::vacant(&label), |c| stack(c, &label, key, factor, alone))
            };
            cells.iter().map(at)
        });
        let stacks: Vec<Stack> = stacks.collect();
        if !stacks.is_empty() {
            panels.push(panel(stacks, subtitle, format!("{caption} of {title} by degree and sharing mode")));
        }
        let label = |c: &Cell| compute_slices(c).unwrap_or_else(|| "MIG".into());
        let stacks: Vec<Stack> = slices.iter().map(|c| stack(c, &label(c), key, factor, alone)).collect();
        if !stacks.is_empty() {
            let label = format!("{caption} of {title} alone on each slice");
            alone_panels.push(panel(stacks, describe_alone(analysis, workload), label));
        }
    }
    // Sharing first; what a slice is worth is another question.
    panels.append(&mut alone_panels);
    (panels, left_out)
}

fn stack(cell: &Cell, label: &str, key: Key, factor: f64, alone: Option<f64>) -> Stack {
    let q = cell.get(key);
    let of_members = || cell.members.iter().map(|m| Some(m.get(key)?.estimate * factor)).collect::<Option<Vec<f64>>>();
    // Of the one process that members share only the whole is known.
    let segments = if cell.record.mode.one_process { q.map(|q| vec![q.estimate * factor]) } else { of_members() };
    let failed = failure(cell);
    // Only memory is asked for and refused.
    let asked = alone.filter(|_| q.is_none() && key == Key::Memory && failed.as_deref() == Some("OOM"));
    let mut title = hover(cell, "sum", q, factor, "");
    if let Some(each) = asked {
        title += &format!("\nalone its members use {}, added up", number::three(each * f64::from(cell.record.degree)));
    }
    Stack {
        label: label.to_string(),
        vacant: false,
        sharing: drawn_as(cell),
        segments: segments.filter(|_| q.is_some()).unwrap_or_default(),
        asked: asked.map_or_else(Vec::new, |each| vec![each; cell.record.degree as usize]),
        interval: q.and_then(|q| interval(q, factor)).filter(|(low, high)| high - low > 1e-6 * high),
        failure: failed,
        indicative: !cell.is_valid(),
        title,
        text: q.map_or_else(String::new, |q| {
            if factor == GIB {
                number::gib_number(q.estimate)
            } else {
                let value = q.estimate * factor;
                if value < 9.95 { number::three(value) } else { format!("{value:.0}") }
            }
        }),
    }
}
