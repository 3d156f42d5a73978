//! CPU by member, compared with the cores of the device, and how long members waited for them.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_figures::document::Section;
use collo_quantity::{Key, number};

use super::memory::one_process_note;
use crate::parts::absent::{Content, numbers, of_file};
use crate::parts::bars::{BarFigure, Scale};
use crate::parts::values::times;

pub fn section(analysis: &Analysis) -> Content {
    numbers(analysis)?;
    let device = &analysis.campaign.device;
    if device.kind == "gpu" {
        return Err("Members share the GPU, not the cores; the CPU load of each cell is in All cells.".into());
    }
    let cores = device.cores_text().filter(|_| device.kind == "cpu");
    let usable = device.cores_at_a_time().map(|cores| cores * 100.0);
    let capacity = cores.zip(usable).map(|(cores, percent)| (percent, format!("{cores} = {percent:.0} %")));
    let meaning = format!(
        "Mean over the time when all members train past their warm-up; a member counts with all its threads and descendants. Whiskers: 95 % interval of the sum.{}",
        one_process_note(analysis)
    );
    let bars = BarFigure {
        id: "cpu",
        title: "CPU by member",
        factor: 100.0,
        what: "sum",
        caption: "% of one core, one segment per member",
        head: "% of one core",
        meaning: &meaning,
        scale: Scale::Members,
        limit: capacity.as_ref().map(|(value, text)| (*value, text.as_str())),
        ..BarFigure::of(Key::Cpu)
    };
    let figure = bars
        .draw(analysis)
        .ok_or_else(|| of_file(analysis, Key::Cpu).unwrap_or_else(|| "No sample of the members' CPU time was taken.".into()))?;
    Ok(Section { finding: finding(analysis), blocks: vec![figure], ..Section::default() })
}

fn finding(analysis: &Analysis) -> String {
    let used = |c: &&Cell| c.get(Key::Cpu).map_or(0.0, |q| q.estimate);
    let Some(most) = analysis.cells.iter().filter(|c| c.get(Key::Cpu).is_some()).max_by(|a, b| used(a).total_cmp(&used(b)))
    else {
        return String::new();
    };
    let device = &analysis.campaign.device;
    let cores = device.cores.filter(|_| device.kind == "cpu");
    let of = match device.quota_cores {
        Some(quota) if cores.is_some() => format!(" of the {} that a CPU quota allows", number::percent(quota)),
        _ => cores.map_or_else(String::new, |n| format!(" of the {n}00 % that {} have", number::count(n as usize, "core"))),
    };
    let waited = most.metrics.get("cpu_pressure_some_ratio").map_or_else(String::new, |q| {
        format!(" Some process waited for a core during {} of that time.", number::percent(q.estimate))
    });
    // With the digits of the figure and its table.
    let percent = most.get(Key::Cpu).map_or_else(String::new, |q| number::estimate(&times(q, 100.0)));
    format!("`{}` uses {percent} %{of}.{waited}", most.name())
}
