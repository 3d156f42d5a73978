//! A figure as a file of its own. In: panels. Out: one SVG with its head, legend and light colours inside; `formats.rs` makes other files
//! of it.

use std::fmt::Write;
use std::sync::LazyLock;

use super::chart::drawing;
use super::themed::LONGEST;
use super::{Panel, cut};
use crate::draw::look::shape;
use crate::draw::themed::{Anchor, escape};

/// Hues by family: naive, MPS, MIG, its slices, threads, solo and others; then those of workloads. The page's style sheet has the same as variables.
/// Slices, whose class comes after MIG's, have its text.
const HUES: [(&str, &str, &str); 17] = [
    ("naive", "#d2690e", "#a84f05"),
    ("mps", "#1d4f9c", "#1d4f9c"),
    ("mig", "#0e967a", "#08735d"),
    ("threads", "#bf7ad1", "#7a3a91"),
    ("g1", "#9aa81c", "#08735d"),
    ("g2", "#5d9c33", "#08735d"),
    ("g3", "#1f8f8a", "#08735d"),
    ("g4", "#0b6b63", "#08735d"),
    ("g7", "#0a4440", "#08735d"),
    ("solo", "#4a4f58", "#3d424a"),
    ("other", "#686f7a", "#4b525c"),
    ("w0", "#4e79a7", "#3d424a"),
    ("w1", "#e0a526", "#3d424a"),
    ("w2", "#b07aa1", "#3d424a"),
    ("w3", "#59a14f", "#3d424a"),
    ("w4", "#9c755f", "#3d424a"),
    ("w5", "#9aa1ab", "#3d424a"),
];

/// The style of a file: the page's variables, with light values.
static STYLE: LazyLock<String> = LazyLock::new(|| {
    let mut css = String::from(include_str!("../../templates/figure.css"));
    for (family, hue, text) in HUES {
        let _ = write!(
            css,
            ".{family} .bar,.{family} .life{{fill:{hue};stroke:{hue}}}.{family} .seg{{fill:{hue};stroke:#ffffff}}.{family} .area{{fill:{hue}}}\
             .{family} .ln{{stroke:{hue}}}.{family} .band{{fill:{hue}}}.{family} .mk{{fill:{hue};stroke:{hue}}}\
             .{family} .lb{{fill:{text}}}.{family} .open{{fill:none}}.{family} .heat{{fill:{hue}}}.{family} .asked{{stroke:{hue}}}\
             .sim .{family} .bar,.sim .{family} .seg,.sim .{family} .life,.sim .{family} .area{{fill:url(#h-{family})}}\
             .sim .{family} .mk{{fill:#ffffff}}.{family} .stroke{{fill:none}}.sim .{family} .open{{fill:none}}"
        );
    }
    css
});

/// Hatches of simulated numbers.
fn patterns() -> String {
    let pattern = |(family, hue, _): (&str, &str, &str)| {
        format!(
            r##"<pattern id="h-{family}" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="5" height="5" fill="{hue}" fill-opacity=".22"/><rect width="2.1" height="5" fill="{hue}" fill-opacity=".85"/></pattern>"##
        )
    };
    HUES.map(pattern).concat()
}

const GAP: f64 = 24.0;
const MARGIN: f64 = 16.0;
/// Panels beside each other.
const COLUMNS: usize = 3;

/// The content of a file.
pub struct Sheet<'f> {
    pub title: &'f str,
    /// Sharing modes and their labels.
    pub legend: &'f [(String, String)],
    pub panels: &'f [Panel],
    pub simulated: bool,
    /// Caveats about its numbers: `simulated`, `synthetic data`, `indicative`.
    pub tags: &'f [String],
}

/// How a figure becomes a sheet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SheetLayout {
    /// On its own: a title, and up to three panels beside each other on white.
    Alone,
    /// In a paper, which has a caption of its own: panels below each other, as wide as a column, without margin or background.
    Column,
}

/// The whole figure as one SVG.
pub fn standalone(figure: &Sheet, layout: SheetLayout) -> String {
    let wide = figure.panels.iter().map(|p| p.drawing.width).fold(super::WIDTH, f64::max);
    let is_alone = layout == SheetLayout::Alone;
    let (margin, most, least) = if is_alone { (MARGIN, COLUMNS, 640.0) } else { (0.0, 1, 0.0) };
    let columns = if wide > super::WIDTH { 1 } else { figure.panels.len().clamp(1, most) };
    let width = (2.0 * margin + columns as f64 * wide + (columns - 1) as f64 * GAP).max(least);
    let (head, mut y) = head(figure, layout, (margin, width));
    let mut body = head;
    for row in figure.panels.chunks(columns) {
        for (i, panel) in row.iter().enumerate() {
            let left = margin + i as f64 * (wide + GAP);
            body.push_str(&placed(panel, left, y));
        }
        y += row.iter().map(|p| p.drawing.height).fold(0.0, f64::max) + 24.0 + GAP;
    }
    let class = if figure.simulated { "fig sim" } else { "fig" };
    let (w, h) = (width.ceil(), (y - if is_alone { 4.0 } else { GAP }).ceil());
    let ground = if is_alone { format!(r#"<rect width="{w}" height="{h}" class="bg"/>"#) } else { String::new() };
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" viewBox="0 0 {w} {h}" font-family="DejaVu Sans, Verdana, sans-serif"><title>{title}</title><style>{style}</style><defs>{patterns}</defs>{ground}<g class="{class}">{body}</g></svg>
"#,
        title = escape(figure.title),
        style = *STYLE,
        patterns = patterns(),
    )
}

/// Title, caveats and legend, which takes as many lines as it needs; and the height of all of them.
fn head(figure: &Sheet, layout: SheetLayout, (margin, width): (f64, f64)) -> (String, f64) {
    let mut bottom = 0.0;
    let head = drawing((width, 62.0), |svg| {
        let tags = figure.tags.join(" · ");
        let (mut x, mut y) = match layout {
            SheetLayout::Alone => {
                svg.text("head", (margin, 26.0), Anchor::Start, figure.title);
                if !tags.is_empty() {
                    svg.text("tag", (width - margin, 26.0), Anchor::End, &tags);
                }
                (margin, 48.0)
            }
            SheetLayout::Column if tags.is_empty() => (margin, 12.0),
            SheetLayout::Column => {
                svg.text("tag", (margin, 12.0), Anchor::Start, &tags);
                (margin, 30.0)
            }
        };
        for (sharing, label) in figure.legend {
            let wide = 34.0 + 7.4 * label.chars().count() as f64;
            if x > margin && x + wide - 12.0 > width - margin {
                (x, y) = (margin, y + 18.0);
            }
            svg.open(crate::draw::look::hue(sharing));
            svg.shape(shape(sharing), "mk", (x + 5.0, y - 4.0));
            svg.close();
            svg.text("leg", (x + 15.0, y), Anchor::Start, label);
            x += wide;
        }
        bottom = y + 14.0;
    });
    (head.body, bottom)
}

fn placed(panel: &Panel, x: f64, y: f64) -> String {
    format!(
        r#"<g transform="translate({x} {y})"><text y="12" class="pt">{}<tspan class="ps" dx="6">{}</tspan></text><g transform="translate(0 24)">{}</g></g>"#,
        escape(&cut(&panel.title, LONGEST)),
        escape(&cut(&panel.subtitle, LONGEST)),
        panel.drawing.body
    )
}
