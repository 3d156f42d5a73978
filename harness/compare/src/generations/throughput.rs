//! The figure of throughput. In: the cells of all sides. Out: a panel for each workload with a group of bars for each GPU model, one bar
//! for each sharing mode; and every value as a table.

use collo_analysis::words;
use collo_figures::chart::{Bar, BarGroup, Bars};
use collo_figures::document::{Figure, Table, TableCell};
use collo_figures::draw::{PANELS, Panel, WIDTH, cut};
use collo_figures::modes::{family, in_order, mode_label, mode_order};
use collo_guidelines::report_json::CellJson;
use collo_quantity::{Key, number};

use super::best::BestRow;
use crate::side::ComparedReport;

/// Width of a character of a label below the axis.
const CHARACTER: f64 = 6.6;

/// The drawn throughput: the panels and the table of values.
#[derive(Debug, Default)]
pub struct Throughput {
    panels: Vec<(String, Vec<BarGroup>)>,
    rows: Vec<Vec<TableCell>>,
    left_out: usize,
    has_indicative: bool,
    modes: Vec<String>,
}

impl Throughput {
    /// Of every workload that some side decides about, and that has items per second.
    pub fn of(sides: &[ComparedReport], best: &[BestRow], names: &[String]) -> Throughput {
        let mut found = Throughput::default();
        let all_alike = sides.windows(2).all(|pair| pair[0].device.simulated == pair[1].device.simulated);
        let most = ((WIDTH - 40.0) / CHARACTER / sides.len().max(1) as f64) as usize;
        let label = |name: &str| {
            let short = if all_alike { name.replace("simulated ", "") } else { name.replace("simulated ", "sim. ") };
            cut(&short, most.max(4))
        };
        for row in best {
            let of = |side: &'_ ComparedReport| -> Vec<CellJson> {
                let [workload] = &row.members[..] else { return Vec::new() };
                let is_of = |cell: &&CellJson| {
                    let alone_on_slice = cell.degree == 1 && !cell.is_solo();
                    cell.members.iter().all(|m| m.solo == *workload) && !cell.members.is_empty() && !alone_on_slice
                };
                side.cells.iter().filter(is_of).cloned().collect()
            };
            let on: Vec<Vec<CellJson>> = sides.iter().map(of).collect();
            if !on.iter().flatten().any(|cell| cell.get(Key::Items.name).is_some()) {
                continue;
            }
            for (cells, name) in on.iter().zip(names) {
                found.rows.extend(cells.iter().map(|cell| values(&row.subject, name, cell)));
            }
            if found.panels.len() == PANELS {
                found.left_out += 1;
                continue;
            }
            let mut families: Vec<&str> = on.iter().flatten().map(|cell| family(&cell.sharing)).collect();
            families.sort_by_key(|mode| mode_order(mode));
            families.dedup();
            let group = |((cells, name), side): ((&Vec<CellJson>, &String), &ComparedReport)| BarGroup {
                label: label(name),
                bars: families
                    .iter()
                    .map(|mode| Some(Bar { simulated: side.device.simulated, ..bar(cells, mode, name)? }))
                    .collect(),
            };
            let groups: Vec<BarGroup> = on.iter().zip(names).zip(sides).map(group).collect();
            let bars = || groups.iter().flat_map(|g| g.bars.iter().flatten());
            found.has_indicative |= bars().any(|bar| bar.indicative);
            found.modes.extend(bars().map(|bar| bar.sharing.clone()));
            found.panels.push((row.subject.clone(), groups));
        }
        found
    }

    /// The figure; `None` if nothing has items per second.
    pub fn figure(&self, simulated: bool, tags: Vec<String>) -> Option<Figure> {
        if self.panels.is_empty() {
            return None;
        }
        let panel = |(subject, groups): &(String, Vec<BarGroup>)| Panel {
            title: subject.clone(),
            subtitle: String::new(),
            label: format!("items per second of {subject} by GPU model and sharing mode"),
            drawing: Bars { caption: "items per second", groups, ..Bars::default() }.draw(),
        };
        let indicative = if self.has_indicative { " Pale, dashed: indicative." } else { "" };
        let left_out = match self.left_out {
            0 => String::new(),
            n => format!(" Drawn: the first {PANELS} workloads; {n} more are in the values."),
        };
        let mut values = Table::with(&["workload", "GPU", "cell", "#items/s", "95 % interval", "validity"]);
        self.rows.iter().for_each(|row| values.row(row.clone()));
        let modes = in_order(self.modes.iter().map(String::as_str));
        Some(Figure {
            id: "throughput-by-gpu".into(),
            title: "Throughput by GPU model".into(),
            legend: modes.into_iter().map(|mode| (mode.to_string(), mode_label(mode))).collect(),
            panels: self.panels.iter().map(panel).collect(),
            caption: format!(
                "Items per second of all members together. Of each mode the number of members with the largest mean, which is below its \
                 mark. Whiskers: 95 % intervals of the repetitions. Each workload has its own scale.{indicative}{left_out}"
            ),
            values,
            csv: None,
            simulated,
            tags,
        })
    }
}

/// The fastest cell of a mode; if none has a number, why.
fn bar(cells: &[CellJson], mode: &str, device: &str) -> Option<Bar> {
    let of = || cells.iter().filter(|cell| family(&cell.sharing) == mode);
    let items = |cell: &CellJson| cell.get(Key::Items.name).filter(|_| cell.validity != "discarded");
    let estimate = |cell: &&CellJson| items(cell).map_or(f64::NEG_INFINITY, |q| q.estimate);
    let cell = of().max_by(|a, b| estimate(a).total_cmp(&estimate(b)))?;
    let below = if cell.degree > 1 { format!("×{}", cell.degree) } else { String::new() };
    let q = items(cell);
    let said = q.as_ref().map_or_else(|| outcome(cell), |q| format!("{} items per second", number::with_interval(q)));
    Some(Bar {
        sharing: mode.to_string(),
        below,
        value: q.as_ref().map(|q| q.estimate),
        interval: q.as_ref().and_then(|q| q.low.zip(q.high)),
        failure: q.is_none().then(|| if cell.outcome == "out_of_memory" { "OOM".into() } else { outcome(cell) }),
        indicative: q.is_some() && cell.validity != "valid",
        title: format!("{} on {device}\n{said}", cell.label),
        text: q.as_ref().map_or_else(String::new, number::estimate),
        ..Bar::default()
    })
}

fn outcome(cell: &CellJson) -> String {
    match cell.outcome.as_str() {
        "completed" if cell.validity == "discarded" => cell.validity.clone(),
        "completed" => number::ABSENT.into(),
        other => words::outcome(other),
    }
}

fn values(subject: &str, device: &str, cell: &CellJson) -> Vec<TableCell> {
    let [items, bounds] = match cell.get(Key::Items.name) {
        Some(q) => [
            TableCell::number(number::estimate(&q), q.estimate),
            TableCell { ends: q.low.zip(q.high), ..TableCell::text(number::bounds(&q)) },
        ],
        None => [TableCell::text(outcome(cell)), TableCell::default()],
    };
    let [subject, device, label] = [subject, device, &cell.label].map(TableCell::text);
    vec![subject, device, label, items, bounds, TableCell::text(cell.validity.replace('_', " "))]
}
