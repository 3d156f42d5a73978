//! The cost of watching: epoch times under each observer beside nobody, and what observers take for themselves.

use collo_analysis::campaign::Analysis;
use collo_analysis::watching::{WatchedCost, WatchedGroup};
use collo_figures::chart::{MarkRow, MarkRows, RowScale};
use collo_figures::document::{Block, Section, Table, TableCell, TableLayout};
use collo_figures::draw::{PANELS, Panel, cut};
use collo_figures::modes::mode_label;
use collo_guidelines::published::watching::published_tools;
use collo_guidelines::rule::names;
use collo_quantity::number;
use collo_quantity::stats::{Quantity, RatioVerdict};
use collo_store::observer_name;

use crate::parts::absent::Content;
use crate::parts::figure::{failure, figure, indicative_note, legend, mark, tags};
use crate::parts::values::{NarrowColumn, narrow};

pub fn section(analysis: &Analysis) -> Content {
    let mut blocks: Vec<Block> = drawn(analysis).into_iter().collect();
    blocks.extend(tables(analysis).flat_map(|(_, both)| both.map(Block::Table)));
    blocks.extend(Some(lost(analysis)).filter(|lost| !lost.is_empty()).map(Block::Notes));
    blocks.push(Block::Table(published(analysis)));
    blocks.push(Block::Folded("Remarks".into(), vec![Block::Notes(remarks(analysis))]));
    Ok(Section { finding: finding(analysis), blocks, ..Section::default() }.answering())
}

/// Both tables of each group.
pub fn tables(analysis: &Analysis) -> impl Iterator<Item = (&WatchedGroup, [Table; 2])> {
    analysis.watching.groups.iter().map(|group| (group, [times(analysis, group), costs(analysis, group)]))
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
            let of = |wanted: &str| {
                let those = rows.iter().filter(|(_, row, _)| verdict_text(row) == wanted);
                Some(names(those.map(|(_, row, _)| row.observer.clone()))).filter(|named| !named.is_empty())
            };
            let within = number::percent_as_written(threshold(analysis));
            let same = of("same").map_or_else(String::new, |named| format!(" Within {within} of unwatched: {named}."));
            let open = of("can't tell").map_or_else(String::new, |named| format!(" Undecided: {named}."));
            format!(
                "Under `{}` an epoch of `{}` takes {}× as long as unwatched, the most of all observers.{same}{open}",
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

/// A row for each observer.
fn table(analysis: &Analysis, group: &WatchedGroup, caption: String, columns: Vec<NarrowColumn<WatchedCost>>) -> Table {
    let head = |row: &WatchedCost| TableCell::with_note(row.observer.clone(), row.place.clone().unwrap_or_default());
    let rows: Vec<(TableCell, &WatchedCost)> = group.rows.iter().map(|row| (head(row), row)).collect();
    Table { caption, tags: tags(analysis), ..narrow("observer", &rows, columns) }
}

fn number_cell(value: Option<f64>, text: impl Fn(f64) -> String) -> TableCell {
    value.map_or_else(TableCell::default, |x| TableCell::number(text(x), x))
}

/// Ratios to nobody, a panel for each group, all on one scale.
fn drawn(analysis: &Analysis) -> Option<Block> {
    // A report does not say how valid each cell is: the tables have its numbers.
    let groups =
        || analysis.watching.groups.iter().filter(|g| !analysis.is_reported() && g.rows.iter().any(|row| row.ratio.is_some()));
    let ratios = || groups().flat_map(|g| &g.rows).filter_map(|row| row.ratio.as_ref());
    let low = ratios().map(|q| q.low.unwrap_or(q.estimate)).fold(1.0, f64::min);
    // An interval of two blocks may reach far: it is cut off before it makes all others invisible.
    let high = ratios().map(|q| q.high.unwrap_or(q.estimate).min(1.5 * q.estimate)).fold(1.0, f64::max);
    let limit = 1.0 + threshold(analysis);
    let said = format!("{} slower", number::percent_as_written(threshold(analysis)));
    let panels: Vec<Panel> = groups()
        .take(PANELS)
        .map(|group| {
            let rows: Vec<MarkRow> = group.rows.iter().filter(|row| !row.is_nobody()).map(|row| dot(analysis, row)).collect();
            let caption = "epoch time ÷ that unwatched";
            let drawing =
                MarkRows { caption, rows: &rows, scale: RowScale::Ratios(low, high), threshold: Some((limit, &said)) }.draw();
            let mode = group.rows.first().map(|row| mode_label(&analysis.watching.cells[row.cell].record.sharing));
            Panel {
                label: format!("epoch time of {} under each observer divided by that unwatched", group.name),
                title: group.name.clone(),
                subtitle: mode.unwrap_or_default(),
                drawing,
            }
        })
        .collect();
    if panels.is_empty() {
        return None;
    }
    let mut values = Table::with(&["group", "observer", "#ratio", "#low", "#high", "#blocks", "verdict"]);
    for group in groups() {
        for row in &group.rows {
            let Some(q) = &row.ratio else { continue };
            values.row(vec![
                TableCell::text(group.name.clone()),
                TableCell::text(row.observer.clone()),
                TableCell::number(number::estimate(q), q.estimate),
                number_cell(q.low, number::three),
                number_cell(q.high, number::three),
                TableCell::text(q.n.to_string()),
                TableCell::text(verdict_text(row)),
            ]);
        }
    }
    let cells = || analysis.watching.cells.iter();
    let left_out = match groups().count() {
        n if n > PANELS => format!(" Drawn: {PANELS} of {n} groups; all are in the tables."),
        _ => String::new(),
    };
    let method =
        groups().find_map(|g| g.method.as_ref()).map_or("One block carries no interval.".into(), |m| format!("Whiskers: {m}."));
    let caption = format!(
        "Time of an epoch under each observer ÷ that unwatched within the same block. 1: it costs no time. {method}{}{left_out}",
        indicative_note(cells())
    );
    let mut fig = figure(analysis, "watching", "Epoch time under each observer", panels, caption, values);
    fig.legend = legend(cells());
    Some(Block::Figure(fig))
}

fn dot(analysis: &Analysis, row: &WatchedCost) -> MarkRow {
    let cell = &analysis.watching.cells[row.cell];
    let dot = row.ratio.as_ref().map(|q| mark(cell, "epoch time ÷ that unwatched", Some(q), 1.0, ""));
    let note = failure(cell).unwrap_or_default();
    MarkRow { label: cut(&row.observer, 24), marks: dot.into_iter().collect(), least: 22.0, note }
}

fn times(analysis: &Analysis, group: &WatchedGroup) -> Table {
    let epoch = |row: &WatchedCost| row.epoch_time_s.as_ref().map(|q| q.estimate);
    let ratio = |q: &Option<Quantity>| match q {
        None => TableCell::default(),
        Some(q) => TableCell { sort: Some(q.estimate), ..TableCell::text(text(q)) },
    };
    let columns: Vec<NarrowColumn<WatchedCost>> = vec![
        ("epoch".into(), Box::new(move |row| number_cell(epoch(row), number::duration))),
        ("÷ none".into(), Box::new(move |row| ratio(&row.ratio))),
        ("verdict".into(), Box::new(|row| TableCell::text(verdict_text(row)))),
        ("members' CPU ÷ none".into(), Box::new(move |row| ratio(&row.members_cpu_ratio))),
        ("runs".into(), Box::new(|row| number_cell(Some(row.runs as f64), number::factor))),
    ];
    let method = group.method.as_ref().map_or("one block carries no interval".into(), |m| format!("95 % interval, {m}"));
    let caption = format!("{}: time of an epoch, and its ratio to that unwatched within the same block ({method})", group.name);
    table(analysis, group, caption, columns)
}

fn costs(analysis: &Analysis, group: &WatchedGroup) -> Table {
    let cores = |x: f64| format!("{} %", number::three(x * 100.0));
    let columns: Vec<NarrowColumn<WatchedCost>> = vec![
        ("its CPU".into(), Box::new(move |row| number_cell(row.cpu_cores, cores))),
        ("its services' CPU".into(), Box::new(move |row| number_cell(row.daemons_cpu_cores, cores))),
        ("its memory".into(), Box::new(|row| number_cell(row.memory_bytes, bytes))),
        ("written".into(), Box::new(|row| number_cell(row.bytes, bytes))),
        ("per hour".into(), Box::new(|row| number_cell(row.bytes_per_hour, bytes))),
        ("collo's CPU".into(), Box::new(move |row| number_cell(row.collo_cpu_cores, cores))),
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
    let rows = || analysis.watching.groups.iter().flat_map(|group| group.rows.iter().map(move |row| (group, row)));
    let said = |(group, row): (&WatchedGroup, &WatchedCost)| {
        let why = row.why_lost.as_ref()?;
        Some(format!(
            "`{}` under `{}`: {} not watched to the end, which has no number: the observer {why}.",
            group.name,
            row.observer,
            number::runs(row.lost)
        ))
    };
    let cut_off = |(group, row): (&WatchedGroup, &WatchedCost)| {
        (row.killed > 0).then(|| {
            format!(
                "`{}` under `{}`: {} in which the observer did not end in time and was killed; the table has not what it wrote there.",
                group.name,
                row.observer,
                number::runs(row.killed)
            )
        })
    };
    rows().filter_map(said).chain(rows().filter_map(cut_off)).collect()
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
        "What is written per hour: of an observer beside the members by the time that it watched, of one inside them by that of their \
         measured epochs, of one around them and of collo by that of the whole run. CPU: from the start of an observer until it has ended, \
         what it writes in the end included; of services while it watches."
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
    let mut disturbing: Vec<(&str, &String)> =
        rows().filter_map(|row| Some((observer_name(&row.observer), row.disturbs.as_ref()?))).collect();
    disturbing.sort();
    disturbing.dedup();
    notes.extend(disturbing.into_iter().map(|(name, whom)| format!("`{name}` disturbs others: {whom}.")));
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
