//! A history as a document: every cell with its nights as a line of dots, grouped by class.

use collo_analysis::words::capital;
use collo_figures::chart::{Spark, SparkDot};
use collo_figures::document::{Block, Document, Fact, Section, Table, TableCell, TableLayout, Tone};
use collo_quantity::stats::t_quantile;
use collo_quantity::{Key, number};

use super::summary::{CellHistory, Class, History, NIGHTS_SHOWN};
use super::track::NightPoint;
use super::words;

/// Drawn rows of a section; the others are in `history.json`.
const ROWS: usize = 400;

/// So many rows that need nobody's attention are not folded.
const UNFOLDED: usize = 20;

/// One class of cells: anchor, title, description, text if it is empty, whether it is folded if it is long.
type RowClass = (&'static str, &'static str, &'static str, &'static str, bool, fn(&Class) -> bool);

const KINDS: [RowClass; 5] = [
    (
        "steps",
        "Confirmed steps",
        "Time after ÷ time before, with its 95 % interval, from the repetitions that confirmed it.",
        "No cell stepped in the nights shown.",
        false,
        |c| matches!(c, Class::Stepped(_)),
    ),
    (
        "unstable",
        "Unstable",
        "Cells in which a step of 5 % cannot be distinguished from noise.",
        "No cell is unstable.",
        false,
        |c| matches!(c, Class::Unstable(_)),
    ),
    ("gone", "No longer running", "Cells that ran before and do not run now.", "Every cell that ran still runs.", false, |c| {
        matches!(c, Class::Gone { .. })
    }),
    ("learning", "Learning", "Cells with fewer than five nights, not judged yet.", "No cell is learning.", true, |c| {
        matches!(c, Class::Learning(_))
    }),
    ("quiet", "Quiet", "Cells without a detectable change of their own between nights.", "", true, |c| matches!(c, Class::Quiet)),
];

/// The whole history.
pub fn document(history: &History) -> Document {
    let night = history.tonight().map(|(n, _)| n);
    let device = night.map_or_else(|| "no device yet".into(), |n| n.device.clone());
    let simulated = night.is_some_and(|n| n.simulated);
    let rows = history.rows();
    let of = |kind: &RowClass| rows.iter().filter(|r| kind.5(&r.class)).collect::<Vec<_>>();
    let counts = KINDS.iter().map(|kind| (of(kind).len(), kind.1.to_lowercase())).filter(|(n, _)| *n > 0);
    let counts: Vec<String> = counts.map(|(n, title)| format!("{n} {title}")).collect();
    let lines = words::together(history).into_iter().chain(words::head(history));
    let mut summary: Vec<Block> = lines.map(Block::Text).collect();
    let none: Vec<&str> = KINDS.iter().filter(|kind| of(kind).is_empty() && !kind.3.is_empty()).map(|kind| kind.3).collect();
    let is_judged = history.tonight().is_some_and(|(_, judged)| judged.judged > 0);
    if is_judged && !none.is_empty() {
        summary.push(Block::Remark(none.join(" ")));
    }
    let finding = format!("{}.", verdict(history));
    let mut sections = vec![Section { id: "summary", title: "Last night", finding, blocks: summary, ..Section::default() }];
    sections.extend(
        KINDS.iter().map(|kind| (kind, of(kind))).filter(|(_, rows)| !rows.is_empty()).map(|(k, r)| section(history, k, &r)),
    );
    sections.push(legend(history));
    let judged = format!("{}, {} complete", number::count(history.nights.len(), "night"), history.whole());
    let last = night.map_or_else(|| Fact::new("Last night", ""), |n| Fact::campaign("Last night", &n.created_utc, &n.id));
    let invented = "Nothing here was measured. The numbers come from a documented interference model: their marks are hollow.";
    Document {
        name: format!("collo nights: {} on {device}", history.experiment),
        title: format!("Nights of {}", history.experiment),
        subtitle: "Each cell compared with its own history; the nightly guide explains how.".into(),
        facts: vec![Fact::new("Device", device), last, Fact::new(judged, counts.join(", "))],
        files: vec![("Markdown", "history.md"), ("JSON", "history.json")],
        sections,
        ..Document::default()
    }
    .simulated(simulated.then_some(invented))
}

fn section(history: &History, &(id, title, about, _, folded, _): &RowClass, rows: &[&CellHistory]) -> Section {
    let mut table = Table::with(&["cell", "nights", "what", "#detects"]).looking(TableLayout::Prose);
    let nights = Nights::of(history);
    rows.iter().take(ROWS).for_each(|r| table.row(line(history, &nights, r)));
    let mut blocks = vec![Block::Table(table)];
    if rows.len() > ROWS {
        blocks.push(Block::Remark(format!("{} more are in history.json.", rows.len() - ROWS)));
    }
    if folded && rows.len() > UNFOLDED {
        blocks = vec![Block::Folded(number::count(rows.len(), "cell"), blocks)];
    }
    blocks.insert(0, Block::Remark(about.into()));
    Section { id, title, blocks, ..Section::default() }
}

/// The meaning of the drawings, and the nights that were not judged.
fn legend(history: &History) -> Section {
    let how = format!(
        "Each dot is a night, oldest left, at most {NIGHTS_SHOWN}; up is slower; under the pointer are the value measured, its campaign, and what changed since the night before. A triangle on the axis marks a night with another commit, driver or other environment. The whisker on the last dot is its 95 % interval, the band the expected range of a quiet night. Changes common to all cells are removed from the dots. A vertical line precedes the first night after a step; a hollow tick at the foot is an incomplete night, not judged, a cross one on which the cell did not run. “Detects” is the smallest step found within three nights in four of five cases."
    );
    let mut blocks = vec![Block::Remark(how)];
    let shown = history.nights.iter().skip(history.first_shown());
    let hollow: Vec<String> = shown.filter_map(|n| Some(format!("{}: {}", n.id, n.incomplete.as_ref()?))).collect();
    if !hollow.is_empty() {
        blocks.push(Block::Folded("Nights that were not judged".into(), vec![Block::Notes(hollow)]));
    }
    Section { id: "nights", title: "How to read the plots", blocks, ..Section::default() }
}

/// The verdict on the last night.
fn verdict(history: &History) -> String {
    let Some((night, judged)) = history.tonight() else { return "No night yet".into() };
    if night.incomplete.is_some() {
        return "The last night is not judged".into();
    }
    let worse: Vec<&str> = history.steps_of(judged).filter(|(_, s)| s.is_worse()).map(|(t, _)| t.cell.as_str()).collect();
    let better = judged.steps.len() - worse.len();
    let mut parts: Vec<String> = Vec::new();
    if let Some(common) = judged.common.as_ref().filter(|c| c.moved) {
        let (cells, way) = (words::agreeing(common), words::way(common.ratio));
        parts.push(format!("{} {way}", capital(&cells)));
    }
    if let Some((low, _)) = history.all_stepped() {
        let cells = number::count(judged.steps.len(), "cell");
        parts.push(format!("All {cells} {}", words::way(low)));
    } else {
        let steps = [(worse.len(), "slower"), (better, "faster")].into_iter().filter(|(n, _)| *n > 0);
        parts.extend(steps.map(|(n, way)| format!("{} {way}", number::count(n, "cell"))));
    }
    if !judged.gone.is_empty() {
        parts.push(format!("{} no longer running", number::count(judged.gone.len(), "cell")));
    }
    if parts.is_empty() {
        parts.push(match judged.judged {
            // Its own repetitions were the last that its cells had to learn from.
            0 if !history.rows().iter().any(|r| matches!(r.class, Class::Learning(_))) => {
                "Not judged: its cells were still learning; the next night is the first that is judged".into()
            }
            0 => "Not judged yet: every cell is learning".into(),
            n => format!("No confirmed change in {}", number::count(n, "judged cell")),
        });
    }
    if !judged.suspects.is_empty() {
        parts.push(format!("{} suspicious, not confirmed", judged.suspects.len()));
    }
    parts.join(", ")
}

/// What all lines share: the dates of the nights shown, and the changes of the environment.
struct Nights {
    days: Vec<String>,
    changed: Vec<(usize, String)>,
}

impl Nights {
    fn of(history: &History) -> Self {
        let first = history.first_shown();
        let days = (first..history.nights.len()).map(|i| words::day_of(history, i)).collect();
        let changes = (first..history.nights.len()).filter(|i| history.nights[*i].incomplete.is_none());
        let changed = changes.filter_map(|i| {
            let what = words::explains(history, i, 6).replace(", ", "\n");
            (!what.is_empty()).then(|| (i - first, format!("{}\n{what}", words::day_of(history, i))))
        });
        Nights { days, changed: changed.collect() }
    }
}

fn line(history: &History, nights: &Nights, row: &CellHistory) -> Vec<TableCell> {
    let track = &history.judge.tracks[row.track];
    let first = history.first_shown();
    let key = Key::find(&track.quantity);
    let longest = track.points.iter().map(|p| p.x.exp()).fold(0.0, f64::max);
    let (per_s, unit) = if longest < 1.0 { (1e3, "ms") } else { (1.0, "s") };
    let head = key.map_or("time", |key| key.head());
    let points: Vec<_> = track.points.iter().filter(|p| p.night >= first).collect();
    let measured = |p: &NightPoint| history.judge.measured(p);
    let moved = points.iter().any(|p| (measured(p) - p.x).abs() > 1e-12);
    let caption = format!("{head}, {unit}{}", if moved { ", without changes common to all cells" } else { "" });
    let shown = |log: f64| number::three(log.exp() * per_s);
    let dots = points.iter().map(|p| SparkDot {
        at: p.night - first,
        value: p.x,
        title: format!(
            "{}: {} {unit}{}, {}\n{}{}",
            words::day_of(history, p.night),
            shown(measured(p)),
            if shown(measured(p)) == shown(p.x) { String::new() } else { format!(" ({} without the common change)", shown(p.x)) },
            number::count(p.n, "repetition"),
            history.nights[p.night].id,
            nights.changed.iter().find(|c| c.0 == p.night - first).map_or("", |c| c.1.split_at(c.1.find('\n').unwrap_or(0)).1)
        ),
    });
    let not_judged = history.nights.iter().enumerate().skip(first).filter_map(|(i, n)| {
        let why = n.incomplete.as_ref()?;
        Some((i - first, format!("{}: {why}", words::day(&n.created_utc))))
    });
    let failed = history.nights.iter().enumerate().skip(first).filter_map(|(i, n)| {
        let cell = n.cells.iter().find(|c| c.cell == track.cell && (c.content == track.content || c.first.is_none()))?;
        let fails = n.incomplete.is_none() && cell.first.is_none() && cell.outcome != "completed";
        fails.then(|| (i - first, format!("{}: {}", words::day(&n.created_utc), cell.outcome.replace('_', " "))))
    });
    let noise = history.judge.noises()[row.track];
    let spark = Spark {
        sharing: &track.sharing,
        caption: &caption,
        per_s,
        days: &nights.days,
        changed: &nights.changed,
        dots: dots.collect(),
        hollow: not_judged.collect(),
        band: history.judge.expected_of(row.track),
        whisker: noise.map(|n| t_quantile(0.975, n.repeat.df) * n.nightly_sd()),
        steps: track.steps.iter().filter(|s| s.since > first).map(|s| s.since - first).collect(),
        failed: failed.collect(),
    };
    let what = words::row(history, row);
    let why = match &row.class {
        Class::Stepped(steps) => words::explains(history, steps[0].since, 4),
        Class::Gone { since, .. } => words::explains(history, *since, 4),
        _ => String::new(),
    };
    let last = points.last().map_or_else(String::new, |p| match Key::find(&track.quantity) {
        Some(Key::LatencyP99) => format!("{} {} ms", Key::LatencyP99.head(), number::three(measured(p).exp() * 1e3)),
        key => format!("{} {} s", key.map_or("time", |key| key.head()), number::three(measured(p).exp())),
    });
    let said = if what.is_empty() { "quiet".to_string() } else { what.clone() };
    let label = format!("{} over {}: {said}", track.cell, number::count(points.len(), "night"));
    let tone = match &row.class {
        Class::Stepped(steps) if steps[0].is_worse() => Tone::Bad,
        Class::Stepped(_) => Tone::Good,
        _ => Tone::Plain,
    };
    vec![
        TableCell { mode: track.sharing.clone(), ..TableCell::with_note(&track.cell, last) },
        TableCell { drawing: Some(spark.draw()), ..TableCell::text(label) },
        TableCell { tone, ..TableCell::with_note(what, why) },
        TableCell::text(words::detects(row)),
    ]
}
