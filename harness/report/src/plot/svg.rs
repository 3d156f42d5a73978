//! SVG as text. In: shapes in panel coordinates, each with a class. Out: markup without a single literal colour: the page's style
//! sheet, or the one of a file, gives the classes their look.

use std::fmt::Write;

use super::cut;

/// Characters of a text in a figure, at most: no panel is as wide.
pub const LONGEST: usize = 160;

/// Text made safe for markup, in content and in attributes. Control characters, which XML forbids, become `\x1b`.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                let _ = write!(out, "\\x{:02x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out
}

/// Where a text's x lies in it.
#[derive(Debug, Clone, Copy)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// The shapes of one panel.
#[derive(Debug, Default)]
pub struct Canvas {
    body: String,
}

/// A coordinate: a tenth of a unit is as fine as anybody sees.
pub fn n(x: f64) -> String {
    let text = format!("{x:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_string)
}

impl Canvas {
    /// The markup so far.
    pub fn into_markup(self) -> String {
        self.body
    }

    /// Write a tag; writing to a `String` cannot fail.
    fn put(&mut self, markup: std::fmt::Arguments) {
        let _ = self.body.write_fmt(markup);
    }

    /// A straight line.
    pub fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        self.put(format_args!(r#"<path class="{class}" d="M{} {}L{} {}"/>"#, n(x1), n(y1), n(x2), n(y2)));
    }

    /// A rectangle by its corner and size.
    pub fn rect(&mut self, class: &str, (x, y): (f64, f64), (w, h): (f64, f64)) {
        let (w, h) = (w.max(0.0), h.max(0.0));
        self.put(format_args!(r#"<rect class="{class}" x="{}" y="{}" width="{}" height="{}"/>"#, n(x), n(y), n(w), n(h)));
    }

    /// A line through points.
    pub fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        let d: Vec<String> = points.iter().map(|(x, y)| format!("{} {}", n(*x), n(*y))).collect();
        if !d.is_empty() {
            self.put(format_args!(r#"<path class="{class}" d="M{}"/>"#, d.join("L")));
        }
    }

    /// A closed shape.
    pub fn polygon(&mut self, class: &str, points: &[(f64, f64)]) {
        let d: Vec<String> = points.iter().map(|(x, y)| format!("{} {}", n(*x), n(*y))).collect();
        if !d.is_empty() {
            self.put(format_args!(r#"<path class="{class}" d="M{}Z"/>"#, d.join("L")));
        }
    }

    /// A text, escaped, and cut where nobody would read on: to lay a text out takes time by the square of its length.
    pub fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => r#" text-anchor="middle""#,
            Anchor::End => r#" text-anchor="end""#,
        };
        self.put(format_args!(
            r#"<text class="{class}" x="{}" y="{}"{anchor}>{}</text>"#,
            n(x),
            n(y),
            escape(&cut(text, LONGEST))
        ));
    }

    /// A text that reads upwards: only for `✕ OOM` inside a bar's slot.
    pub fn text_up(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        let (x, y) = (n(x), n(y));
        self.put(format_args!(
            r#"<text class="{class}" transform="translate({x} {y})rotate(-90)">{}</text>"#,
            escape(&cut(text, LONGEST))
        ));
    }

    /// Begin a mark: a group with its value on hover, and the class of its mode.
    pub fn open_mark(&mut self, class: &str, title: &str) {
        self.put(format_args!(r#"<g class="h {class}"><title>{}</title>"#, escape(title)));
    }

    /// Begin a plain group.
    pub fn open(&mut self, class: &str) {
        self.put(format_args!(r#"<g class="{class}">"#));
    }

    /// End a group.
    pub fn close(&mut self) {
        self.body.push_str("</g>");
    }

    /// A whisker with caps; its halo keeps it readable on a filled bar.
    pub fn whisker(&mut self, x: f64, low: f64, high: f64) {
        let d = format!(
            "M{x} {low}V{high}M{l} {low}H{r}M{l} {high}H{r}",
            x = n(x),
            low = n(low),
            high = n(high),
            l = n(x - 3.0),
            r = n(x + 3.0)
        );
        self.put(format_args!(r#"<path class="halo" d="{d}"/><path class="wh" d="{d}"/>"#));
    }

    /// A horizontal whisker with caps.
    pub fn whisker_across(&mut self, y: f64, low: f64, high: f64) {
        let (low, high, top, bottom) = (n(low), n(high), n(y - 2.5), n(y + 2.5));
        let d = format!("M{low} {y}H{high}M{low} {top}V{bottom}M{high} {top}V{bottom}", y = n(y));
        self.put(format_args!(r#"<path class="halo" d="{d}"/><path class="wh" d="{d}"/>"#));
    }

    /// A mark of a mode's family: circle, square, triangle or diamond.
    pub fn shape(&mut self, shape: Shape, class: &str, (x, y): (f64, f64)) {
        let (xs, ys) = (n(x), n(y));
        match shape {
            Shape::Circle => self.put(format_args!(r#"<circle class="{class}" cx="{xs}" cy="{ys}" r="3.8"/>"#)),
            Shape::Square => self.rect(class, (x - 3.4, y - 3.4), (6.8, 6.8)),
            Shape::Triangle => self.polygon(class, &[(x, y - 4.4), (x + 4.2, y + 3.2), (x - 4.2, y + 3.2)]),
            Shape::Cross | Shape::Plus => {
                let (a, b) = if shape == Shape::Cross { (3.4, 3.4) } else { (0.0, 4.6) };
                let d =
                    [(x - a, y - b), (x + a, y + b), (x - b, y + a), (x + b, y - a)].map(|(x, y)| format!("{} {}", n(x), n(y)));
                self.put(format_args!(r#"<path class="{class} stroke" d="M{}L{}M{}L{}"/>"#, d[0], d[1], d[2], d[3]));
            }
            Shape::Diamond => self.polygon(class, &[(x, y - 4.8), (x + 4.8, y), (x, y + 4.8), (x - 4.8, y)]),
        }
    }
}

/// The second sign of a sharing mode, beside its hue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Circle,
    Square,
    Triangle,
    Diamond,
    Cross,
    Plus,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_stays_text() {
        let mut c = Canvas::default();
        c.text("t", (1.0, 2.0), Anchor::Start, "<script>alert('x')</script>\u{1b}[31m");
        let markup = c.into_markup();
        assert!(!markup.contains("<script") && markup.contains("&lt;script&gt;") && markup.contains(r"\x1b[31m"), "{markup}");
    }
}
