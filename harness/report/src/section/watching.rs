//! The cost of watching: epoch times under each observer beside nobody, and what observers take for themselves.

use super::tags;
use crate::Report;
use crate::analysis::Analysis;
use crate::analysis::watching::{WatchedCost, WatchedGroup};
use crate::compare::watching::published_tools;
use crate::document::{Align, Block, Column, Section, Table, TableCell, TableLayout};
use crate::number;
use crate::quantity::Key;
use crate::stats::{Quantity, RatioVerdict};

const ID: &str = "watching";
const TITLE: &str = "The cost of watching";

/// None if the campaign has no cell that says who watches.
pub fn section(report: &Report) -> Option<Section> {
    let analysis = &report.analysis;
    if analysis.watching.is_empty() {
        return None;
    }
    let mut blocks: Vec<Block> = Vec::new();
    for group in &analysis.watching.groups {
        blocks.push(Block::Table(times(analysis, group)));
        blocks.push(Block::Table(costs(analysis, group)));
    }
    blocks.extend(Some(lost(analysis)).filter(|lost| !lost.is_empty()).map(Block::Notes));
    blocks.push(Block::Table(published(analysis)));
    blocks.push(Block::Folded("Remarks".into(), vec![Block::Notes(remarks(analysis))]));
    Some(Section { id: ID, title: TITLE, finding: finding(analysis), blocks, ..Section::default() })
}

/// How a ratio to nobody reads.
pub fn verdict_text(row: &WatchedCost) -> &'static str {
    match row.test.as_ref().map(|test| test.verdict) {
        Some(RatioVerdict::Better) => "slower",
        Some(RatioVerdict::Worse) => "faster",
        Some(RatioVerdict::Same) => "same",
        Some(RatioVerdict::CannotTell { .. }) => "can't tell",
        None if row.ratio.as_ref().is_some_and(|ratio| ratio.low.is_some()) => "not judged",
        None => "",
    }
}

fn finding(analysis: &Analysis) -> String {
    let rows: Vec<(&WatchedGroup, &WatchedCost, &Quantity)> = analysis
        .watching
        .groups
        .iter()
        .flat_map(|g| g.rows.iter().filter_map(move |row| Some((g, row, row.ratio.as_ref()?))))
        .collect();
    let worst = rows.iter().max_by(|a, b| a.2.estimate.total_cmp(&b.2.estimate));
    match worst {
        None => "No observer was measured beside nobody in the same block.".into(),
        Some((group, row, ratio)) => {
            let others = rows.iter().filter(|(_, row, _)| verdict_text(row) == "same").count();
            let same = match others {
                0 => String::new(),
                n => format!(" {} within {} of 1.", number::count(n, "observer"), number::percent(threshold(analysis))),
            };
            format!(
                "The largest: under `{}` an epoch of `{}` takes {}× as long as unwatched.{same}",
                row.observer,
                group.name,
                text(ratio)
            )
        }
    }
}

fn threshold(analysis: &Analysis) -> f64 {
    analysis.campaign.thresholds.relevant_ratio
}

fn text(ratio: &Quantity) -> String {
    if ratio.low.is_some() { number::with_interval(ratio) } else { number::estimate(ratio) }
}

type Get<'g> = Box<dyn Fn(&WatchedCost) -> TableCell + 'g>;

/// A row for each observer; columns that nobody fills are left out.
fn table(analysis: &Analysis, group: &WatchedGroup, caption: String, columns: Vec<(&str, Get<'_>)>) -> Table {
    let mut table = Table { look: TableLayout::Narrow, caption, tags: tags(analysis), ..Table::default() };
    let filled = |(_, get): &(&str, Get<'_>)| group.rows.iter().any(|row| !get(row).text.is_empty());
    let columns: Vec<(&str, Get<'_>)> = columns.into_iter().filter(filled).collect();
    table.columns.push(Column { name: "observer".into(), ..Column::default() });
    for (rank, (name, _)) in columns.iter().enumerate() {
        let align = if *name == "verdict" { Align::Left } else { Align::Right };
        table.columns.push(Column { name: (*name).into(), align, rank: if rank < 3 { 0 } else { rank }, ..Column::default() });
    }
    for row in &group.rows {
        let head = TableCell::with_note(row.observer.clone(), row.place.clone().unwrap_or_default());
        table.row(std::iter::once(head).chain(columns.iter().map(|(_, get)| get(row))).collect());
    }
    table
}

fn number_cell(value: Option<f64>, text: impl Fn(f64) -> String) -> TableCell {
    value.map_or_else(TableCell::default, |x| TableCell::number(text(x), x))
}

fn times(analysis: &Analysis, group: &WatchedGroup) -> Table {
    let epoch = |row: &WatchedCost| analysis.watching.cells[row.cell].get(Key::EpochTime).map(|q| q.estimate);
    let ratio = |q: &Option<Quantity>| match q {
        None => TableCell::default(),
        Some(q) => TableCell { sort: Some(q.estimate), ..TableCell::text(text(q)) },
    };
    let columns: Vec<(&str, Get<'_>)> = vec![
        ("epoch", Box::new(move |row| number_cell(epoch(row), number::duration))),
        ("÷ none", Box::new(move |row| ratio(&row.ratio))),
        ("verdict", Box::new(|row| TableCell::text(verdict_text(row)))),
        ("members' CPU ÷ none", Box::new(move |row| ratio(&row.members_cpu_ratio))),
        ("runs", Box::new(|row| number_cell(Some(row.runs as f64), number::factor))),
    ];
    let method = group.method.map_or("one block carries no interval".into(), |m| format!("95 % interval, {m}"));
    let caption = format!("{}: time of an epoch, and its ratio to that of nobody within the same block ({method})", group.name);
    table(analysis, group, caption, columns)
}

fn costs(analysis: &Analysis, group: &WatchedGroup) -> Table {
    let cores = |x: f64| format!("{} %", number::three(x * 100.0));
    let columns: Vec<(&str, Get<'_>)> = vec![
        ("its CPU", Box::new(move |row| number_cell(row.cpu_cores, cores))),
        ("its services' CPU", Box::new(move |row| number_cell(row.daemons_cpu_cores, cores))),
        ("its memory", Box::new(|row| number_cell(row.memory_bytes, bytes))),
        ("written", Box::new(|row| number_cell(row.bytes, bytes))),
        ("per hour", Box::new(|row| number_cell(row.bytes_per_hour, bytes))),
        ("collo's CPU", Box::new(move |row| number_cell(row.collo_cpu_cores, cores))),
    ];
    let caption = format!("{}: what observers take, means of runs; CPU as a share of one core", group.name);
    table(analysis, group, caption, columns)
}

/// `20.5 KB`, as files are measured.
fn bytes(n: f64) -> String {
    let (factor, unit) = match n {
        n if n >= 1e9 => (1e-9, "GB"),
        n if n >= 1e6 => (1e-6, "MB"),
        n if n >= 1e3 => (1e-3, "KB"),
        _ => (1.0, "B"),
    };
    format!("{} {unit}", number::three(n * factor))
}

fn lost(analysis: &Analysis) -> Vec<String> {
    let rows = analysis.watching.groups.iter().flat_map(|group| group.rows.iter().map(move |row| (group, row)));
    let said = |(group, row): (&WatchedGroup, &WatchedCost)| {
        let why = row.why_lost.as_ref()?;
        Some(format!(
            "`{}` under `{}`: {} not watched to the end, which has no number: the observer {why}.",
            group.name,
            row.observer,
            number::runs(row.lost)
        ))
    };
    rows.filter_map(said).collect()
}

/// Published figures, beside ours where the same tool was measured.
fn published(analysis: &Analysis) -> Table {
    let all = published_tools();
    let mut table = Table::with(&["published tool", "light CNN ÷ no tool", "ResNet50 ÷ no tool", "space", "ours: epoch ÷ none"]);
    table.look = TableLayout::Narrow;
    for tool in &all.tools {
        let (light, heavy) = all.ratios(tool);
        let ours: Vec<String> = analysis
            .watching
            .groups
            .iter()
            .flat_map(|group| group.rows.iter().map(move |row| (group, row)))
            .filter(|(_, row)| tool.is_of(&row.observer))
            .filter_map(|(group, row)| Some(format!("{}× ({} {})", text(row.ratio.as_ref()?), group.name, row.observer)))
            .collect();
        table.row(vec![
            TableCell::text(tool.name.clone()),
            number_cell(light, |x| number::fixed(x, 3)),
            number_cell(heavy, |x| number::fixed(x, 3)),
            TableCell::text(tool.space.clone().unwrap_or_default()),
            TableCell::text(ours.join("; ")),
        ]);
    }
    table.caption = format!(
        "Published, not measured by collo: {}; {}. {}. Other members, another device: they are not compared",
        all.device, all.conditions, all.source
    );
    table.tags = tags(analysis).into_iter().chain(["published".to_string()]).collect();
    table
}

fn remarks(analysis: &Analysis) -> Vec<String> {
    let mut notes = vec![
        "`none` is without any sampling, also by collo; `collo` is its own sampling and nobody else. Every other observer watches alone."
            .into(),
        "An observer starts before the members' `go`, so that every measured epoch is watched, and is asked to end after the last. The CPU \
         time and the memory of one around or inside the members cannot be told from theirs: it shows in their CPU time."
            .into(),
    ];
    let rows = || analysis.watching.groups.iter().flat_map(|group| &group.rows);
    let mut services: Vec<&String> = rows().flat_map(|row| &row.daemons).collect();
    services.sort();
    services.dedup();
    if !services.is_empty() {
        let names: Vec<String> = services.iter().map(|name| format!("`{name}`")).collect();
        notes.push(format!("Services: {}. What they do for others counts as well.", names.join(", ")));
    }
    notes.extend(published_tools().others.iter().map(|o| format!("Published: {} ({}).", o.published, o.source)));
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_as_files_are_measured() {
        assert_eq!([12.0, 20_480.0, 1.4e9].map(bytes), ["12.0 B", "20.5 KB", "1.40 GB"]);
    }
}
