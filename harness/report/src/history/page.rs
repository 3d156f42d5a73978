//! `index.html` of a history: one line per cell. In: a history. Out: one file that works offline and needs no script. Every text is
//! escaped by the template engine; only drawings, which escape their own texts, are placed as they are.

use askama::Template;

use super::story::{Class, History, NIGHTS_SHOWN, Row};
use super::words;
use crate::Result;
use crate::number;
use crate::plot::{Canvas, Drawing, Spark, SparkDot, family, shape};
use crate::quantity::{self, Key};
use crate::stats::t_quantile;

/// Rows of a section that are drawn; the others are in `history.json`.
const ROWS: usize = 400;

#[derive(Template)]
#[template(path = "history.html")]
struct Page {
    experiment: String,
    device: String,
    simulated: bool,
    last: String,
    campaign: String,
    total: usize,
    whole: usize,
    counts: String,
    verdict: String,
    head: Vec<String>,
    sections: Vec<Section>,
    hollow: Vec<String>,
    shown: usize,
    style: String,
}

struct Section {
    id: &'static str,
    title: &'static str,
    about: &'static str,
    none: &'static str,
    folded: bool,
    count: String,
    rows: Vec<Line>,
    left_out: usize,
}

struct Line {
    cell: String,
    family: &'static str,
    mark: String,
    time: String,
    drawing: Drawing,
    label: String,
    what: String,
    step: bool,
    why: String,
    detects: String,
}

/// The page.
pub fn page(history: &History) -> Result<String> {
    let tonight = history.tonight();
    let night = tonight.map(|(n, _)| n);
    let rows = history.rows();
    let section = |id, title, about, none, folded, belongs: fn(&Class) -> bool| {
        let all: Vec<&Row> = rows.iter().filter(|r| belongs(&r.class)).collect();
        let count = number::count(all.len(), "cell");
        let left_out = all.len().saturating_sub(ROWS);
        Section {
            id,
            title,
            about,
            none,
            folded,
            count,
            left_out,
            rows: all.iter().take(ROWS).map(|r| line(history, r)).collect(),
        }
    };
    let sections = vec![
        section(
            "steps",
            "Confirmed steps",
            "Time after ÷ time before, with its 95 % interval, from the repetitions that confirmed it.",
            "No cell stepped.",
            false,
            |c| matches!(c, Class::Stepped(_)),
        ),
        section(
            "unstable",
            "Unstable",
            "Cells in which a step of 5 % cannot be told from noise.",
            "No cell is unstable.",
            false,
            |c| matches!(c, Class::Unstable(_)),
        ),
        section(
            "gone",
            "No longer running",
            "Cells that ran before and do not run now.",
            "Every cell that ran still runs.",
            false,
            |c| matches!(c, Class::Gone { .. }),
        ),
        section(
            "learning",
            "Learning",
            "Cells with fewer than five nights, not judged yet.",
            "No cell is learning.",
            true,
            |c| matches!(c, Class::Learning(_)),
        ),
        section("quiet", "Quiet", "Cells whose nights cannot be told from each other.", "No cell is quiet.", true, |c| {
            matches!(c, Class::Quiet)
        }),
    ];
    let counts = sections
        .iter()
        .filter(|s| s.left_out + s.rows.len() > 0)
        .map(|s| format!("{} {}", s.left_out + s.rows.len(), s.title.to_lowercase()));
    let hollow =
        history.nights.iter().skip(history.first_shown()).filter_map(|n| Some(format!("{}: {}", n.id, n.incomplete.as_ref()?)));
    let page = Page {
        experiment: history.experiment.clone(),
        device: night.map_or_else(|| "no device yet".into(), |n| n.device.clone()),
        simulated: night.is_some_and(|n| n.simulated),
        last: night.map_or_else(String::new, |n| n.created_utc.replace('T', " ").replace('Z', " UTC")),
        campaign: night.map_or_else(String::new, |n| n.id.clone()),
        total: history.nights.len(),
        whole: history.whole(),
        counts: counts.collect::<Vec<_>>().join(", "),
        verdict: verdict(history),
        head: words::head(history),
        hollow: hollow.collect(),
        sections,
        shown: NIGHTS_SHOWN,
        style: format!("{}{}", include_str!("../../templates/page.css"), include_str!("../../templates/history.css")),
    };
    Ok(page.render()?)
}

/// The answer of the last night.
fn verdict(history: &History) -> String {
    let Some((night, judged)) = history.tonight() else { return "No night yet".into() };
    if night.incomplete.is_some() {
        return "The last night is not judged".into();
    }
    let worse: Vec<&str> = history.steps_of(judged).filter(|(_, s)| s.is_worse()).map(|(t, _)| t.cell.as_str()).collect();
    let better = judged.steps.len() - worse.len();
    let mut parts = Vec::new();
    if !worse.is_empty() {
        parts.push(format!("{} slower", number::count(worse.len(), "cell")));
    }
    if better > 0 {
        parts.push(format!("{} faster", number::count(better, "cell")));
    }
    if !judged.gone.is_empty() {
        parts.push(format!("{} no longer running", number::count(judged.gone.len(), "cell")));
    }
    if parts.is_empty() { "A quiet night".into() } else { format!("Last night: {}", parts.join(", ")) }
}

fn line(history: &History, row: &Row) -> Line {
    let track = &history.judge.tracks[row.track];
    let first = history.first_shown();
    let points: Vec<_> = track.points.iter().filter(|p| p.night >= first).collect();
    let dots = points.iter().map(|p| SparkDot {
        at: p.night - first,
        value: p.x,
        title: format!(
            "{}: {} s, {}",
            words::day_of(history, p.night),
            number::three(p.x.exp()),
            number::count(p.n, "repetition")
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
        nights: history.nights.len() - first,
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
    let last = points.last().map_or_else(String::new, |p| match quantity::find(&track.quantity) {
        Some(Key::LatencyP99) => format!("{} {} ms", Key::LatencyP99.head(), number::three(p.x.exp() * 1e3)),
        key => format!("{} {} s", key.map_or("time", |key| key.head()), number::three(p.x.exp())),
    });
    let said = if what.is_empty() { "quiet".to_string() } else { what.clone() };
    Line {
        cell: track.cell.clone(),
        family: family(&track.sharing),
        mark: mark(&track.sharing),
        time: last,
        label: format!("{} over {}: {said}", track.cell, number::count(points.len(), "night")),
        drawing: spark.draw(family(&track.sharing)),
        step: matches!(row.class, Class::Stepped(_)),
        what,
        why,
        detects: words::detects(row),
    }
}

/// A mode's mark beside a name, as markup: only the family's class and fixed shapes go in.
fn mark(sharing: &str) -> String {
    let mut c = Canvas::default();
    c.open(family(sharing));
    c.shape(shape(sharing), "mk", (6.0, 6.0));
    c.close();
    format!(r#"<svg class="mark" viewBox="0 0 12 12" aria-hidden="true">{}</svg>"#, c.into_markup())
}
