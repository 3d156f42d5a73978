//! A figure as a file of its own. In: panels. Out: one SVG with its head, legend and light colours inside, and the same as PNG at
//! twice the size, with the bundled font, so that it looks the same everywhere.

use std::fmt::Write;
use std::sync::{Arc, LazyLock};

use resvg::{tiny_skia, usvg};

use super::chart::drawing;
use super::themed::LONGEST;
use super::{Panel, cut};
use crate::draw::look::shape;
use crate::draw::themed::{Anchor, escape};
use crate::{Error, Result};

static REGULAR: &[u8] = include_bytes!("../../fonts/DejaVuSans.subset.ttf");
static BOLD: &[u8] = include_bytes!("../../fonts/DejaVuSans-Bold.subset.ttf");

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

/// The whole figure as one SVG.
pub fn standalone(figure: &Sheet) -> String {
    let wide = figure.panels.iter().map(|p| p.drawing.width).fold(super::WIDTH, f64::max);
    let columns = if wide > super::WIDTH { 1 } else { figure.panels.len().clamp(1, COLUMNS) };
    let width = (2.0 * MARGIN + columns as f64 * wide + (columns - 1) as f64 * GAP).max(640.0);
    let head = drawing((width, 62.0), |svg| {
        svg.text("head", (MARGIN, 26.0), Anchor::Start, figure.title);
        if !figure.tags.is_empty() {
            svg.text("tag", (width - MARGIN, 26.0), Anchor::End, &figure.tags.join(" · "));
        }
        let mut x = MARGIN;
        for (sharing, label) in figure.legend {
            svg.open(crate::draw::look::hue(sharing));
            svg.shape(shape(sharing), "mk", (x + 5.0, 44.0));
            svg.close();
            svg.text("leg", (x + 15.0, 48.0), Anchor::Start, label);
            x += 34.0 + 7.4 * label.chars().count() as f64;
        }
    });
    let mut body = head.body;
    let mut y = 62.0;
    for row in figure.panels.chunks(columns) {
        for (i, panel) in row.iter().enumerate() {
            let left = MARGIN + i as f64 * (wide + GAP);
            body.push_str(&placed(panel, left, y));
        }
        y += row.iter().map(|p| p.drawing.height).fold(0.0, f64::max) + 24.0 + GAP;
    }
    let class = if figure.simulated { "fig sim" } else { "fig" };
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" viewBox="0 0 {w} {h}" font-family="DejaVu Sans, Verdana, sans-serif"><title>{title}</title><style>{style}</style><defs>{patterns}</defs><rect width="{w}" height="{h}" class="bg"/><g class="{class}">{body}</g></svg>
"#,
        w = width.ceil(),
        h = (y - 4.0).ceil(),
        title = escape(figure.title),
        style = *STYLE,
        patterns = patterns(),
    )
}

fn placed(panel: &Panel, x: f64, y: f64) -> String {
    format!(
        r#"<g transform="translate({x} {y})"><text y="12" class="pt">{}<tspan class="ps" dx="6">{}</tspan></text><g transform="translate(0 24)">{}</g></g>"#,
        escape(&cut(&panel.title, LONGEST)),
        escape(&cut(&panel.subtitle, LONGEST)),
        panel.drawing.body
    )
}

static FONTS: LazyLock<Arc<usvg::fontdb::Database>> = LazyLock::new(|| {
    let mut fonts = usvg::fontdb::Database::new();
    fonts.load_font_data(REGULAR.to_vec());
    fonts.load_font_data(BOLD.to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    Arc::new(fonts)
});

/// Maximum number of pixels of a PNG.
const PIXELS: f32 = 8e6;

/// A figure's SVG as PNG, at twice the size.
pub fn png(id: &str, svg: &str) -> Result<Vec<u8>> {
    let wrong = |reason: String| Error::Figure { figure: id.to_string(), reason };
    let options = usvg::Options { fontdb: FONTS.clone(), font_family: "DejaVu Sans".into(), ..Default::default() };
    let tree = usvg::Tree::from_str(svg, &options).map_err(|e| wrong(e.to_string()))?;
    let size = tree.size();
    // A figure of very many panels is drawn smaller rather than not at all.
    let scale = (PIXELS / (size.width() * size.height())).sqrt().min(2.0);
    let (width, height) = ((size.width() * scale).ceil() as u32, (size.height() * scale).ceil() as u32);
    let mut pixels =
        tiny_skia::Pixmap::new(width, height).ok_or_else(|| wrong(format!("{width} × {height} pixels are too many")))?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|e| wrong(e.to_string()))
}
