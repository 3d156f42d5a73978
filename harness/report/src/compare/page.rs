//! A comparison as a page that works offline, as Markdown, and as JSON beside them. In: a comparison and a folder. Out: three files.
//! Every text is escaped by the template engine; only drawings, which escape their own texts, are placed as they are.

use std::path::{Path, PathBuf};

use askama::Template;

use super::{By, Comparison, Finding, Only, Row, json, text};
use crate::number;
use crate::plot::{Canvas, Drawing, Interval, Ratios, family, mode_order, shape};
use crate::{Error, Result};

/// Rows that a page holds; further ones are in the JSON.
const ROWS: usize = 500;

/// Where a comparison was written.
#[derive(Debug, Clone)]
pub struct Written {
    pub html: PathBuf,
    pub markdown: PathBuf,
    pub json: PathBuf,
}

#[derive(Template)]
#[template(path = "compare.html")]
struct Page<'a> {
    c: &'a Comparison,
    title: String,
    subtitle: String,
    simulated: String,
    across: Option<String>,
    environment: Vec<[String; 4]>,
    alike: String,
    finding: String,
    chips: Vec<(&'static str, String)>,
    plot: String,
    modes: Vec<(String, String)>,
    what: String,
    head: Drawing,
    rows: Vec<Line>,
    caption: String,
    left_out: Option<String>,
    by: &'static str,
    groups: Vec<[String; 3]>,
    only: Vec<(String, Vec<String>)>,
    style: String,
}

/// A row of the plot.
struct Line {
    mark: String,
    label: String,
    notes: String,
    left: String,
    right: String,
    ratio: String,
    p: String,
    drawing: Drawing,
    said: String,
    verdict: String,
    class: &'static str,
}

/// Write `compare.html`, `compare.md` and `compare.json` into a folder.
pub fn write(comparison: &Comparison, folder: &Path) -> Result<Written> {
    fs_err::create_dir_all(folder)?;
    let mut data = serde_json::to_string_pretty(&json(comparison)).map_err(|e| Error::Io(e.into()))?;
    data.push('\n');
    let files = [("compare.html", html(comparison)?), ("compare.md", markdown(comparison)), ("compare.json", data)];
    put(folder, &files)?;
    let at = |name: &str| folder.join(name);
    Ok(Written { html: at("compare.html"), markdown: at("compare.md"), json: at("compare.json") })
}

/// Write files, each aside and then renamed, so that a reader sees the old one or the new one.
pub fn put(folder: &Path, files: &[(&str, String)]) -> Result<()> {
    for (name, content) in files {
        collo_store::place_file(&folder.join(name), content.as_bytes())?;
    }
    Ok(())
}

/// The style sheet of comparing pages.
pub fn style() -> String {
    format!("{}{}", include_str!("../../templates/page.css"), include_str!("../../templates/compare.css"))
}

/// The last part of a campaign's id, as people call it.
fn short(campaign: &str) -> &str {
    campaign.rsplit('-').next().unwrap_or(campaign)
}

/// Worst first: what no longer runs, what is worse, other changes, what cannot be told, what is the same.
fn worst_first(row: &Row) -> (usize, f64) {
    let rank = match row.finding {
        Finding::NoLongerRuns(_) => 0,
        Finding::Worse => 1,
        Finding::Higher | Finding::Lower => 2,
        Finding::Better | Finding::RunsNow(_) => 3,
        Finding::CannotTell(_) => 4,
        Finding::Same => 5,
        Finding::NotJudged(_) => 6,
    };
    (rank, -row.ratio.as_ref().map_or(0.0, |r| r.estimate.ln().abs()))
}

fn sorted(comparison: &Comparison) -> Vec<&Row> {
    let mut rows: Vec<&Row> = comparison.rows.iter().collect();
    rows.sort_by(|a, b| worst_first(a).0.cmp(&worst_first(b).0).then(worst_first(a).1.total_cmp(&worst_first(b).1)));
    rows
}

fn html(comparison: &Comparison) -> Result<String> {
    let c = comparison;
    let rows = sorted(c);
    let shown = &rows[..rows.len().min(ROWS)];
    let ratio = |r: &&Row| r.ratio.as_ref().map(|q| (q.estimate, q.low.zip(q.high)));
    let axis = Ratios::of(shown.iter().filter_map(ratio), c.threshold);
    let (words, unit, factor) = text::unit(&c.rows);
    let mut modes: Vec<&str> = shown.iter().map(|r| r.sharing.as_str()).collect();
    modes.sort_by_key(|m| mode_order(m));
    modes.dedup();
    let left = if c.left.experiment == c.right.experiment { String::new() } else { format!("{} ", c.right.experiment) };
    let count = |word: &str| c.count(word);
    let chip = |class: &'static str, sign: &str, said: &str, n: usize| (class, format!("{sign} {said} {n}").trim().to_string());
    let mut chips = vec![chip("sup", "▲", "better", count("better")), chip("con", "▼", "worse", count("worse"))];
    for (class, sign, said, word) in [
        ("con", "✕", "no longer runs", "no_longer_runs"),
        ("sup", "▲", "higher", "higher"),
        ("sup", "▼", "lower", "lower"),
        ("sup", "✓", "runs now", "runs_now"),
    ] {
        if count(word) > 0 {
            chips.push(chip(class, sign, said, count(word)));
        }
    }
    chips.extend([chip("not", "?", "can't tell", count("cannot_tell")), chip("plain", "=", "same", count("same"))]);
    if count("not_judged") > 0 {
        chips.push(chip("plain", "–", "not judged", count("not_judged")));
    }
    chips.extend([chip("plain", "", "only left", c.only_left.len()), chip("plain", "", "only right", c.only_right.len())]);
    let page = Page {
        title: format!("{} {} → {left}{}", c.left.experiment, short(&c.left.campaign), short(&c.right.campaign)),
        subtitle: format!(
            "Left: campaign {} of {}, {}. Right: campaign {} of {}, {}.",
            c.left.campaign, c.left.created_utc, c.left.device, c.right.campaign, c.right.created_utc, c.right.device
        ),
        simulated: match (c.left.simulated, c.right.simulated) {
            (true, true) => "Nothing here was measured: a model invented the numbers of both sides. Marks are hollow.".into(),
            (true, false) => "A model invented the numbers of the left side; those of the right were measured.".into(),
            _ => "A model invented the numbers of the right side; those of the left were measured.".into(),
        },
        across: text::across(c),
        environment: environment(c),
        alike: c.environment.alike.join(", "),
        finding: format!("{}.", finding(c)),
        chips,
        plot: format!("Ratio right ÷ left of {}, worst first", c.asked.said()),
        modes: modes.into_iter().map(|m| (mark(m), m.to_string())).collect(),
        what: format!("{words} {unit}").trim().to_string(),
        head: axis.head(),
        rows: shown.iter().map(|r| line(r, &axis, factor)).collect(),
        caption: format!(
            "Grey band: {}. Whiskers: 95 % intervals of the difference of logarithms, one number per repetition, with the degrees of freedom of the weaker side; they are not widened for the number of cells, p is. An arrow goes on beyond the axis.",
            text::rests_on(c)
        ),
        left_out: (rows.len() > ROWS).then(|| {
            let left = rows.len() - ROWS;
            format!(
                "{} with the least to say are left out here; compare.json has all {}.",
                number::count(left, "row"),
                rows.len()
            )
        }),
        by: if c.by == Some(By::Workload) { "By workload" } else { "By mode" },
        groups: groups(c),
        only: [("Only left", &c.only_left), ("Only right", &c.only_right)]
            .into_iter()
            .filter(|(_, list)| !list.is_empty())
            .map(|(name, list)| (format!("{name}: {}", number::count(list.len(), "cell")), only(list)))
            .collect(),
        style: style(),
        c,
    };
    Ok(page.render()?)
}

/// `1 better, 1 worse …` as a sentence's beginning.
fn finding(c: &Comparison) -> String {
    let matched = number::count(c.rows.len(), "matched cell");
    let counts = c.counts();
    if counts.is_empty() {
        format!("{matched}: none has a number to compare")
    } else {
        format!("{matched}: {}", text::counted(&counts))
    }
}

fn line(row: &Row, axis: &Ratios, factor: f64) -> Line {
    let (sign, class) = match row.finding {
        Finding::Better => ("▲ ", "good"),
        Finding::Higher => ("▲ ", "good"),
        Finding::Lower => ("▼ ", "good"),
        Finding::Worse => ("▼ ", "bad"),
        Finding::NoLongerRuns(_) => ("✕ ", "bad"),
        Finding::RunsNow(_) => ("✓ ", "good"),
        Finding::CannotTell(_) => ("? ", ""),
        Finding::Same => ("= ", ""),
        Finding::NotJudged(_) => ("– ", ""),
    };
    let side = |q: &Option<crate::stats::Quantity>| q.as_ref().map_or_else(String::new, |q| number::scaled(q, factor));
    let ratio = row.ratio.as_ref().map_or_else(String::new, |r| match r.low {
        Some(_) => format!("{} {}", number::estimate(r), number::bounds(r)),
        None => number::with_interval(r),
    });
    let said = format!("{}: ratio {}, {}", row.label, if ratio.is_empty() { "absent" } else { &ratio }, row.finding.text());
    let interval = row.ratio.as_ref().map(|r| Interval {
        sharing: &row.sharing,
        value: r.estimate,
        interval: r.low.zip(r.high),
        title: format!("{}\nratio {ratio}\n{}", row.label, row.finding.text()),
        faint: matches!(row.finding, Finding::NotJudged(_)),
    });
    let mut notes = row.notes.clone();
    if let Some(left) = &row.left_label {
        notes.insert(0, format!("left: {left}"));
    }
    Line {
        mark: mark(&row.sharing),
        label: row.label.clone(),
        notes: notes.join("; "),
        left: side(&row.left),
        right: side(&row.right),
        ratio,
        p: row.p_adjusted.map_or_else(String::new, text::p),
        drawing: axis.row(interval.as_ref()),
        said,
        verdict: format!("{sign}{}", row.finding.text()),
        class,
    }
}

/// A mode's mark beside its name, as markup: only the family's class and fixed shapes go in, never a label.
fn mark(sharing: &str) -> String {
    let mut c = Canvas::default();
    c.open(family(sharing));
    c.shape(shape(sharing), "mk", (6.0, 6.0));
    c.close();
    format!(r#"<svg class="mark" viewBox="0 0 12 12" aria-hidden="true">{}</svg>"#, c.into_markup())
}

fn environment(c: &Comparison) -> Vec<[String; 4]> {
    let text = |t: &Option<String>| t.clone().unwrap_or_else(|| number::ABSENT.into());
    let explains = |d| c.may_explain(d).map_or(String::new(), |word| format!("may explain “{word}”"));
    c.environment.different.iter().map(|d| [d.name.clone(), text(&d.left), text(&d.right), explains(d)]).collect()
}

fn groups(c: &Comparison) -> Vec<[String; 3]> {
    let of = |g: &super::Group| {
        let mean = g.mean_ratio.map_or(String::new(), |m| format!("{m:.3} of {}", number::count(g.judged, "cell")));
        [g.name.clone(), text::counted(&g.counts), mean]
    };
    c.groups.iter().map(of).collect()
}

fn only(list: &[Only]) -> Vec<String> {
    let mut out: Vec<String> = list
        .iter()
        .take(ROWS)
        .map(|o| o.reason.as_ref().map_or_else(|| o.label.clone(), |why| format!("{}: {why}", o.label)))
        .collect();
    if list.len() > ROWS {
        out.push(format!("and {} more, in compare.json", list.len() - ROWS));
    }
    out
}

/// Text that stays text in a Markdown table.
pub fn plain(text: &str) -> String {
    let mut out = String::new();
    for c in text::printable(text).chars() {
        if matches!(c, '|' | '<' | '>' | '*' | '_' | '[' | ']' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

fn markdown(c: &Comparison) -> String {
    let mut out = vec![format!("# What changed: {}", plain(&text::title(&c.left, &c.right))), String::new()];
    if c.simulated() {
        out.extend(["**Simulated: a model invented numbers here.**".to_string(), String::new()]);
    }
    for warning in &c.warnings {
        out.extend([format!("> **Warning:** {}", plain(warning)), String::new()]);
    }
    out.extend(text::across(c).map(|text| format!("{text}.\n")));
    if !c.environment.different.is_empty() {
        out.extend(["| environment | left | right | |".to_string(), "|---|---|---|---|".into()]);
        out.extend(
            environment(c).iter().map(|row| format!("| {} |", row.iter().map(|t| plain(t)).collect::<Vec<_>>().join(" | "))),
        );
        out.push(String::new());
    }
    if !c.environment.alike.is_empty() {
        out.extend([format!("Alike: {}.", plain(&c.environment.alike.join(", "))), String::new()]);
    }
    out.extend([format!("{}; {}.", finding(c), text::rests_on(c)), String::new()]);
    let (words, unit, factor) = text::unit(&c.rows);
    let what = format!("{words} {unit}");
    out.push(format!("| cell | {} left | {} right | ratio | p | verdict |", what.trim(), what.trim()));
    out.push("|---|--:|--:|--:|--:|---|".into());
    let rows = sorted(c);
    let value =
        |q: &Option<crate::stats::Quantity>, factor: f64| q.as_ref().map_or_else(String::new, |q| number::scaled(q, factor));
    for row in rows.iter().take(ROWS) {
        let notes = if row.notes.is_empty() { String::new() } else { format!(" ({})", row.notes.join("; ")) };
        let cells = [
            plain(&row.label),
            value(&row.left, factor),
            value(&row.right, factor),
            plain(&value(&row.ratio, 1.0)),
            row.p_adjusted.map_or_else(String::new, |p| plain(&text::p(p))),
            plain(&format!("{}{notes}", row.finding.text())),
        ];
        out.push(format!("| {} |", cells.join(" | ")));
    }
    out.push(String::new());
    if rows.len() > ROWS {
        out.extend([format!("{} more are in compare.json.", rows.len() - ROWS), String::new()]);
    }
    for group in groups(c) {
        out.push(format!("- {}", group.iter().filter(|t| !t.is_empty()).map(|t| plain(t)).collect::<Vec<_>>().join("; ")));
    }
    for (name, list) in [("Only left", &c.only_left), ("Only right", &c.only_right)] {
        if !list.is_empty() {
            out.push(format!("- {name}: {}", only(list).iter().map(|t| plain(t)).collect::<Vec<_>>().join(", ")));
        }
    }
    out.extend(c.decide.iter().map(|command| format!("\nDecide: `{command}`")));
    out.join("\n").trim_end().to_string() + "\n"
}
