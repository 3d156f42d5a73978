//! CPU by member, compared with the cores of the device, and how long members waited for them.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_figures::document::{Block, Section};
use collo_quantity::Key;
use collo_quantity::number;

use crate::parts::absent::{Content, numbers};
use crate::parts::figure::{figure, indicative_note};
use crate::parts::values::values;

pub fn section(analysis: &Analysis) -> Content {
    numbers(analysis)?;
    let cores = analysis.campaign.device.cores.filter(|_| analysis.campaign.device.kind == "cpu");
    let capacity = cores.map(|n| (f64::from(n) * 100.0, format!("{} = {n}00 %", number::count(n as usize, "core"))));
    let (panels, left_out) = super::memory::panels(
        analysis,
        Key::Cpu,
        "% of one core, one segment per member",
        100.0,
        capacity.as_ref().map(|(v, t)| (*v, t.as_str())),
    );
    if panels.is_empty() {
        return Err("No sample of the members' CPU time was taken.".into());
    }
    let caption = format!(
        "Mean over the time when all members train past their warm-up; a member counts with all its threads and descendants. Whiskers: 95 % interval of the sum.{}{}{left_out}",
        super::memory::one_process_note(analysis),
        indicative_note(analysis.cells.iter())
    );
    let table = values(analysis, &[("% of one core", Key::Cpu, 100.0)]);
    let figure = figure(analysis, "cpu", "CPU by member", panels, caption, table);
    Ok(Section { finding: finding(analysis, cores), blocks: vec![Block::Figure(figure)], ..Section::default() })
}

fn finding(analysis: &Analysis, cores: Option<u32>) -> String {
    let used = |c: &&Cell| c.get(Key::Cpu).map_or(0.0, |q| q.estimate);
    let Some(most) = analysis.cells.iter().filter(|c| c.get(Key::Cpu).is_some()).max_by(|a, b| used(a).total_cmp(&used(b)))
    else {
        return String::new();
    };
    let of = cores.map_or_else(String::new, |n| format!(" of the {n}00 % that {} have", number::count(n as usize, "core")));
    let waited = most.metrics.get("cpu_pressure_some_ratio").map_or_else(String::new, |q| {
        format!(" Some process waited for a core during {} of that time.", number::percent(q.estimate))
    });
    format!("`{}` uses {}{of}.{waited}", most.name(), number::percent(used(&most)))
}
