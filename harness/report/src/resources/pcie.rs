//! PCIe traffic: bytes per item, and the link over time.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_figures::document::{Block, Section};
use collo_quantity::Key;
use collo_quantity::number;
use collo_quantity::stats::Quantity;

use super::over_time;
use crate::parts::absent::{nothing, without};
use crate::parts::bars::{BarSpec, bar_panels};
use crate::parts::figure::{figure, indicative_note, whiskers};
use crate::parts::values::{Reading, reading, values};

const ID: &str = "pcie";
const TITLE: &str = "PCIe";

pub fn section(analysis: &Analysis) -> Section {
    if let Some(why) = nothing(analysis) {
        return without(ID, TITLE, why);
    }
    let item: Reading = &|c| c.get(Key::PcieRxPerItem).cloned();
    let rate: Reading = &|c| reading(c, Key::PcieRx);
    let has = |get: Reading| analysis.cells.iter().any(|c| get(c).is_some());
    if !has(item) && !has(rate) {
        let why = if analysis.campaign.device.kind == "cpu" {
            "Training on the CPU moves nothing over PCIe to a GPU."
        } else {
            "No PCIe counter could be read during this campaign."
        };
        return without(ID, TITLE, why);
    }
    let largest = analysis.cells.iter().filter_map(item).map(|q| q.estimate).fold(0.0, f64::max);
    let (factor, unit) = if largest >= 2e6 { (1e-6, "MB") } else { (1e-3, "kB") };
    let mut blocks = Vec::new();
    let caption = format!("{unit} per item, into the GPU");
    let (panels, left_out) = bar_panels(analysis, &BarSpec::of("PCIe per item", &caption, item, factor));
    if !panels.is_empty() {
        let text = format!(
            "What the GPU received during the measured window, divided by the items trained in it. {}{} Each panel has its own scale.{left_out}",
            whiskers(analysis),
            indicative_note(analysis.cells.iter())
        );
        let table = values(analysis, &format!("{unit} per item"), item, factor);
        blocks.push(Block::Figure(figure(analysis, "pcie-per-item", "PCIe bytes per item", panels, text, table)));
    }
    let traces = over_time::Spec {
        id: "pcie",
        title: "PCIe traffic over time",
        caption: "MB/s into the GPU",
        of: &|t| &t.pcie_rx_bytes_per_s,
        factor: 1e-6,
        unit: "MB/s",
        limit: None,
    };
    match over_time::figure(analysis, &traces) {
        Some(figure) => blocks.push(Block::Figure(figure)),
        None if has(rate) => {
            let spec = BarSpec { shared: true, ..BarSpec::of("PCIe", "MB/s into the GPU", rate, 1e-6) };
            let figure = crate::parts::bars::metric_figure(analysis, "pcie", "PCIe traffic into the GPU", "MB/s", &spec);
            blocks.extend(figure.map(Block::Figure));
        }
        None => {}
    }
    Section { id: ID, title: TITLE, finding: finding(analysis, factor, unit), blocks, ..Section::default() }
}

/// The group whose traffic per item grows most over running alone.
fn finding(analysis: &Analysis, factor: f64, unit: &str) -> String {
    let of_solo = |c: &Cell| c.get(Key::PcieRxOfSolo).filter(|_| c.record.degree > 1).cloned();
    let groups = analysis.groups().filter_map(|c| Some((c, of_solo(c)?)));
    if let Some((cell, q)) = groups.max_by(|a, b| a.1.estimate.total_cmp(&b.1.estimate)) {
        let relevant = analysis.campaign.thresholds.relevant_ratio;
        let said = if q.low.zip(q.high).is_some_and(|(low, high)| high - low < 1e-3 * q.estimate) {
            format!("{:.3}", q.estimate)
        } else {
            number::with_interval(&q)
        };
        if q.low.is_some_and(|low| low > 1.0 + relevant) {
            let item = c_item(cell).map_or_else(String::new, |q| format!(" ({} {unit})", number::three(q.estimate * factor)));
            return format!("`{}` needs {said} times the bytes per item of its members alone{item}.", cell.name());
        }
        let percent = number::percent(relevant);
        return format!(
            "No group certainly needs {percent} more bytes per item than its members alone; the most is {said} times, in `{}`.",
            cell.name()
        );
    }
    let rate = |c: &Cell| reading(c, Key::PcieRx);
    let most = analysis.cells.iter().filter_map(|c| Some((c, rate(c)?))).max_by(|a, b| a.1.estimate.total_cmp(&b.1.estimate));
    most.map_or_else(String::new, |(cell, q)| {
        format!("`{}` loads the link most: {} MB/s into the GPU on average.", cell.name(), number::scaled(&q, 1e-6))
    })
}

fn c_item(cell: &Cell) -> Option<Quantity> {
    cell.get(Key::PcieRxPerItem).cloned()
}
