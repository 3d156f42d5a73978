//! PCIe traffic: bytes per item, and the link over time.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_figures::document::{Block, Section};
use collo_quantity::{Key, number};

use super::over_time::TraceFigure;
use crate::parts::absent::{Content, numbers, of_file};
use crate::parts::bars::{BarFigure, Scale};
use crate::parts::values::{has, reading};

pub fn section(analysis: &Analysis) -> Content {
    numbers(analysis)?;
    if !has(analysis, Key::PcieRxPerItem) && !has(analysis, Key::PcieRx) {
        return Err(match of_file(analysis, Key::PcieRxPerItem) {
            _ if analysis.campaign.device.kind == "cpu" => "Training on the CPU moves nothing over PCIe to a GPU.".into(),
            Some(why) => why,
            None => "No PCIe counter could be read during this campaign.".into(),
        });
    }
    let largest = analysis.cells.iter().filter_map(|c| c.get(Key::PcieRxPerItem)).map(|q| q.estimate).fold(0.0, f64::max);
    let (factor, unit) = if largest >= 2e6 { (1e-6, "MB") } else { (1e-3, "kB") };
    let per_item = BarFigure {
        id: "pcie-per-item",
        title: "PCIe bytes per item",
        factor,
        what: "PCIe per item",
        caption: &format!("{unit} per item, into the GPU"),
        head: &format!("{unit} per item"),
        meaning: "What the GPU received during the measured window, divided by the items trained in it.",
        scale: Scale::Own(" Each panel has its own scale."),
        ..BarFigure::of(Key::PcieRxPerItem)
    };
    let over_time = TraceFigure {
        id: "pcie",
        title: "PCIe traffic over time",
        caption: "MB/s into the GPU",
        of: |t| &t.pcie_rx_bytes_per_s,
        factor: 1e-6,
        unit: "MB/s",
        limit: None,
    };
    let rate = BarFigure {
        id: "pcie",
        title: "PCIe traffic into the GPU",
        factor: 1e-6,
        what: "PCIe",
        caption: "MB/s into the GPU",
        head: "MB/s",
        ..BarFigure::of(Key::PcieRx)
    };
    let rate = over_time.draw(analysis).or_else(|| rate.draw(analysis));
    let blocks = match (per_item.draw(analysis), rate) {
        (Some(per_item), Some(rate)) => vec![per_item, Block::Folded("Traffic over time".into(), vec![rate])],
        (per_item, rate) => per_item.into_iter().chain(rate).collect(),
    };
    Ok(Section { finding: finding(analysis, factor, unit), blocks, ..Section::default() })
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
            let item = cell
                .get(Key::PcieRxPerItem)
                .map_or_else(String::new, |q| format!(" ({} {unit})", number::three(q.estimate * factor)));
            return format!("`{}` needs {said} times the bytes per item of its members alone{item}.", cell.name());
        }
        let percent = number::percent_as_written(relevant);
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
