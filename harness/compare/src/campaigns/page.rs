//! A comparison as a document: every row with its ratio drawn, worst first.

use collo_figures::chart::{Interval, Ratios};
use collo_figures::document::{
    Align, Badge, Block, Column, Document, Fact, FactLine, Present, Section, Table, TableCell, TableLayout, Tone,
};
use collo_figures::modes::in_order;
use collo_quantity::number;
use collo_store::last_part;

use super::{By, ComparedCell, Comparison, Only, brief, trace_page, words};
use crate::ratio::Finding;
use crate::side::Head;

/// Rows on a page; further ones are in the JSON.
const ROWS: usize = 500;

/// Worst first: what no longer runs, what is worse, other changes, what cannot be told, what is the same.
fn worst_first(row: &ComparedCell) -> (usize, f64) {
    let rank = match row.finding {
        Finding::NoLongerRuns(_) => 0,
        Finding::Worse => 1,
        Finding::Higher | Finding::Lower => 2,
        Finding::Better | Finding::RunsNow(_) => 3,
        Finding::CannotTell(_) => 4,
        Finding::Same => 5,
        Finding::NotJudged(_) => 6,
    };
    (rank, -row.judged_ratio().map_or(0.0, |r| r.estimate.ln().abs()))
}

fn sorted(comparison: &Comparison) -> Vec<&ComparedCell> {
    let mut rows: Vec<&ComparedCell> = comparison.rows.iter().collect();
    rows.sort_by(|a, b| worst_first(a).0.cmp(&worst_first(b).0).then(worst_first(a).1.total_cmp(&worst_first(b).1)));
    rows
}

impl Present for Comparison {
    const NAME: &'static str = "compare";

    fn json(&self) -> serde_json::Value {
        serde_json::json!(self)
    }

    fn brief(&self) -> Vec<Block> {
        brief::blocks(self)
    }

    fn document(&self) -> Document {
        document(self)
    }
}

fn document(c: &Comparison) -> Document {
    let left = if c.left.experiment == c.right.experiment { String::new() } else { format!("{} ", c.right.experiment) };
    let title = format!("{} {} → {left}{}", c.left.experiment, last_part(&c.left.campaign), last_part(&c.right.campaign));
    let mut sections = vec![environment(c)];
    if !c.rows.is_empty() {
        sections.push(results(c));
    }
    sections.extend(trace_page::section(c));
    if !c.groups.is_empty() {
        sections.push(groups(c));
    }
    let alone = [("only-left", "Only left", &c.only_left), ("only-right", "Only right", &c.only_right)];
    sections.extend(alone.into_iter().filter(|(.., list)| !list.is_empty()).map(|(id, title, list)| only(id, title, list)));
    let (name, title) = (format!("collo compare: {title}"), format!("What changed: {title}"));
    Document {
        name,
        title,
        facts: vec![side("Left", &c.left), side("Right", &c.right)],
        files: vec![("Markdown", "compare.md"), ("JSON", "compare.json")],
        warnings: c.warnings.clone(),
        sections,
        ..Document::default()
    }
    .simulated(simulated(c))
}

fn simulated(c: &Comparison) -> Option<&'static str> {
    match (c.left.simulated, c.right.simulated) {
        (true, true) => Some("Nothing here was measured: a model invented the numbers of both sides. Marks are hollow."),
        (true, false) => Some("A model invented the numbers of the left side; those of the right were measured."),
        (false, true) => Some("A model invented the numbers of the right side; those of the left were measured."),
        (false, false) => None,
    }
}

fn side(name: &str, head: &Head) -> Fact {
    let mut fact = Fact::campaign(name, &head.created_utc, &head.campaign);
    fact.lines.insert(0, FactLine::Text(format!("{}, {}", head.device, head.experiment)));
    fact
}

fn environment(c: &Comparison) -> Section {
    let table = words::environment(c, str::to_string);
    let mut blocks = Vec::new();
    let mut finding = words::across(c).map_or_else(String::new, |text| format!("{text}."));
    if table.rows.is_empty() {
        finding = format!("{finding} The stored environments do not differ.").trim().to_string();
    } else {
        blocks.push(Block::Table(table.looking(TableLayout::Narrow)));
    }
    blocks.extend(words::alike(c).map(|names| Block::Remark(format!("Identical: {names}."))));
    Section { id: "environment", title: "Environment", finding, blocks, ..Section::default() }
}

/// `1 better, 1 worse …` at the beginning of a sentence.
fn finding(c: &Comparison) -> String {
    let matched = number::count(c.rows.len(), "matched cell");
    let counts = &c.counts;
    if counts.is_empty() {
        format!("{matched}: none has a number to compare.")
    } else {
        format!("{matched}: {}.", words::counted(counts))
    }
}

/// Every verdict with its number of rows; the rarer ones only if there are any.
fn chips(c: &Comparison) -> Vec<Badge> {
    let all = [
        (Tone::Good, "▲", "better", true),
        (Tone::Bad, "▼", "worse", true),
        (Tone::Bad, "✕", "no_longer_runs", false),
        (Tone::Good, "▲", "higher", false),
        (Tone::Good, "▼", "lower", false),
        (Tone::Good, "✓", "runs_now", false),
        (Tone::Open, "?", "cannot_tell", true),
        (Tone::Plain, "=", "same", true),
        (Tone::Plain, "–", "not_judged", false),
    ];
    let counted = all.into_iter().filter(|(.., word, always)| *always || c.count(word) > 0);
    let chip = |(tone, sign, word, _)| Badge::new(tone, sign, format!("{} {}", words::verdict(word), c.count(word)));
    let only = [("left", c.only_left.len()), ("right", c.only_right.len())];
    counted.map(chip).chain(only.map(|(side, n)| Badge::new(Tone::Plain, "", format!("only {side} {n}")))).collect()
}

/// A remark as a sentence.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

fn results(c: &Comparison) -> Section {
    let rows = sorted(c);
    let mut blocks = vec![Block::Chips(chips(c)), Block::Table(table(c, &rows[..rows.len().min(ROWS)]))];
    blocks.splice(0..0, words::together(c).into_iter().map(|text| Block::Text(sentence(&text))));
    blocks.extend(words::includes(c).map(|text| Block::Remark(sentence(&text))));
    blocks.push(Block::Remark(format!(
        "Grey band: {}. Whiskers: 95 % intervals of the difference of logarithms, one number per repetition, with the degrees of freedom of the weaker side; p is corrected for the number of cells, they are not. An arrow continues beyond the axis.",
        words::rests_on(c)
    )));
    if rows.len() > ROWS {
        let (left_out, all) = (number::count(rows.len() - ROWS, "row"), rows.len());
        blocks.push(Block::Remark(format!("Left out here: the last {left_out}; compare.json has all {all}.")));
    }
    blocks.extend(c.decide.iter().map(|command| Block::Command("To decide", command.clone())));
    Section { id: "results", title: "Results", finding: finding(c), blocks, ..Section::default() }
}

fn table(c: &Comparison, rows: &[&ComparedCell]) -> Table {
    let ratio = |r: &&ComparedCell| r.judged_ratio().map(|q| (q.estimate, q.low.zip(q.high)));
    let axis = Ratios::of(rows.iter().filter_map(ratio), c.threshold);
    let (words, unit, factor) = words::unit(&c.rows);
    let what = format!("{words} {unit}").trim().to_string();
    let modes = in_order(rows.iter().map(|r| r.sharing.as_str()));
    let (left, right) = (format!("#{what} left"), format!("#{what} right"));
    // Where a common move is taken out, what is judged stands beside what was measured, and is drawn.
    let own = rows.iter().any(|r| r.own_ratio.is_some());
    let mut names = vec!["cell", left.as_str(), right.as_str(), "#ratio, 95 %", "axis of ratios", "#p", "verdict"];
    if own {
        names.insert(4, "#own, 95 %");
    }
    let mut table = Table::with(&names).looking(TableLayout::Joined);
    table.columns[if own { 5 } else { 4 }] =
        Column { name: "axis of ratios".into(), align: Align::Left, axis: Some(axis.head()), ..Column::default() };
    table.caption = format!("Ratio right ÷ left of {}, worst first", c.asked.to_text());
    table.legend = modes.into_iter().map(|m| (m.to_string(), m.to_string())).collect();
    table.tags = if c.simulated() { vec!["simulated".into()] } else { Vec::new() };
    rows.iter().for_each(|r| table.row(cells(r, own, &axis, factor)));
    table
}

fn cells(row: &ComparedCell, own: bool, axis: &Ratios, factor: f64) -> Vec<TableCell> {
    let (sign, tone) = match row.finding {
        Finding::Better | Finding::Higher => ("▲ ", Tone::Good),
        Finding::Lower => ("▼ ", Tone::Good),
        Finding::Worse => ("▼ ", Tone::Bad),
        Finding::NoLongerRuns(_) => ("✕ ", Tone::Bad),
        Finding::RunsNow(_) => ("✓ ", Tone::Good),
        Finding::CannotTell(_) => ("? ", Tone::Plain),
        Finding::Same => ("= ", Tone::Plain),
        Finding::NotJudged(_) => ("– ", Tone::Plain),
    };
    let side = |q: &Option<collo_quantity::stats::Quantity>| q.as_ref().map_or_else(String::new, |q| number::scaled(q, factor));
    let text_of = |q: Option<&collo_quantity::stats::Quantity>| {
        q.map_or_else(String::new, |r| match r.low {
            Some(_) => format!("{} {}", number::estimate(r), number::bounds(r)),
            None => number::with_interval(r),
        })
    };
    let (measured, ratio) = (text_of(row.ratio.as_ref()), text_of(row.judged_ratio()));
    let interval = row.judged_ratio().map(|r| Interval {
        sharing: &row.sharing,
        value: r.estimate,
        interval: r.low.zip(r.high),
        title: format!("{}\nratio {ratio}\n{}", row.label, row.finding.text()),
        faint: matches!(row.finding, Finding::NotJudged(_)),
    });
    let text = format!("{}: ratio {}, {}", row.label, if ratio.is_empty() { "absent" } else { &ratio }, row.finding.text());
    let notes: Vec<String> =
        row.other_label().iter().map(|left| format!("left: {left}")).chain(row.notes.iter().cloned()).collect();
    let mut cells = vec![
        TableCell { mode: row.sharing.clone(), ..TableCell::with_note(&row.label, notes.join("; ")) },
        TableCell::text(side(&row.left)),
        TableCell::text(side(&row.right)),
        TableCell::text(measured),
        TableCell { drawing: Some(axis.row(interval.as_ref())), ..TableCell::text(text) },
        TableCell::text(row.p_adjusted.map_or_else(String::new, words::p)),
        TableCell { tone, ..TableCell::text(format!("{sign}{}", row.finding.text())) },
    ];
    if own {
        cells.insert(4, TableCell::text(text_of(row.own_ratio.as_ref())));
    }
    cells
}

fn groups(c: &Comparison) -> Section {
    let mut table = Table::with(&["", "verdicts", "geometric mean of ratios"]).looking(TableLayout::Narrow);
    for g in &c.groups {
        let mean = g.mean_ratio.map_or(String::new(), |m| format!("{m:.3} of {}", number::count(g.judged, "cell")));
        table.texts([g.name.clone(), words::counted(&g.counts), mean]);
    }
    let why = "A mean of ratios has no interval here: its cells are not independent. There is no overall mean.";
    let title = if c.by == Some(By::Workload) { "By workload" } else { "By mode" };
    Section { id: "groups", title, blocks: vec![Block::Table(table), Block::Remark(why.into())], ..Section::default() }
}

fn only(id: &'static str, title: &'static str, list: &[Only]) -> Section {
    let mut names: Vec<String> = list.iter().take(ROWS).map(words::only).collect();
    if list.len() > ROWS {
        names.push(format!("and {} more, in compare.json", list.len() - ROWS));
    }
    Section {
        id,
        title,
        finding: format!("{}.", number::count(list.len(), "cell")),
        blocks: vec![Block::Notes(names)],
        ..Section::default()
    }
}
