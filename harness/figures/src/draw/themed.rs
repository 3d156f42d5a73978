//! The backend that plotters draws with: SVG without a single literal colour, styled by the page's style sheet or a file's own.
//! plotters knows only colours and whole pixels. So a colour stands for a class here, and a pixel is a tenth of a unit. Rows and
//! grids, which have no axes, draw with it directly, in units.

use std::convert::Infallible;
use std::fmt::Write;

use plotters::style::{Color, RGBColor, ShapeStyle};
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind};

use super::cut;

/// Maximum characters of a text in a figure: no panel is as wide.
pub const LONGEST: usize = 160;
/// plotters' pixels in a unit: finer than a tenth is not visible.
pub const FINE: f64 = 10.0;
/// Estimated width of a character, without layout.
const CHARACTER: f64 = 7.2;

/// The classes that plotters draws with: the colour (0, 0, 3) is the one at index 3.
const CLASSES: [&str; 13] = ["gr", "ax", "ref", "pub", "capl", "ideal", "ln", "ln thin", "band", "area", "layer", "within", "wh"];

/// A class as plotters' style.
pub fn look(class: &str) -> ShapeStyle {
    let place = CLASSES.iter().position(|c| *c == class).expect("a class that plotters draws with");
    ShapeStyle { color: RGBColor(0, 0, place as u8).to_rgba(), filled: true, stroke_width: 1 }
}

fn class(color: BackendColor) -> &'static str {
    CLASSES.get(usize::from(color.rgb.2)).copied().unwrap_or_default()
}

fn units((x, y): BackendCoord) -> (f64, f64) {
    (f64::from(x) / FINE, f64::from(y) / FINE)
}

/// The approximate width of a text.
pub fn text_width(text: &str) -> f64 {
    CHARACTER * text.chars().count() as f64
}

/// Escape text for markup, in content and in attributes. Control characters, which XML forbids, become `\x1b`.
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

/// A coordinate, to a tenth of a unit.
fn n(x: f64) -> String {
    let text = format!("{x:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_string)
}

/// The anchor of a text's x.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// The second sign of a sharing mode, beside its hue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Circle,
    Square,
    Triangle,
    Down,
    Left,
    Right,
    Pentagon,
    Hexagon,
    Diamond,
    /// Two triangles that meet in a point, one above the other.
    Hourglass,
    /// The same, beside each other.
    Bow,
    Cross,
    Plus,
    /// Always hollow.
    Star,
}

/// A drawing of given size in units that is appended to a text.
pub struct ThemedSvg<'t> {
    out: &'t mut String,
    width: f64,
    height: f64,
}

impl<'t> ThemedSvg<'t> {
    pub fn new(out: &'t mut String, (width, height): (f64, f64)) -> Self {
        ThemedSvg { out, width, height }
    }

    /// Write a tag; writing to a `String` cannot fail.
    fn put(&mut self, markup: std::fmt::Arguments) {
        let _ = self.out.write_fmt(markup);
    }

    /// A line through points, or the area it encloses.
    fn path(&mut self, class: &str, points: impl IntoIterator<Item = (f64, f64)>, end: &str) {
        let d: Vec<String> = points.into_iter().map(|(x, y)| format!("{} {}", n(x), n(y))).collect();
        if !d.is_empty() {
            self.put(format_args!(r#"<path class="{class}" d="M{}{end}"/>"#, d.join("L")));
        }
    }

    /// Straight lines as one path.
    pub fn strokes(&mut self, class: &str, strokes: &[[(f64, f64); 2]]) {
        let d: String = strokes.iter().map(|[a, b]| format!("M{} {}L{} {}", n(a.0), n(a.1), n(b.0), n(b.1))).collect();
        self.put(format_args!(r#"<path class="{class}" d="{d}"/>"#));
    }

    /// A straight line.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.strokes(class, &[[from, to]]);
    }

    /// A closed shape.
    pub fn polygon(&mut self, class: &str, points: &[(f64, f64)]) {
        self.path(class, points.iter().copied(), "Z");
    }

    /// A rectangle by its corner and size.
    pub fn rect(&mut self, class: &str, (x, y): (f64, f64), (w, h): (f64, f64)) {
        let (w, h) = (w.max(0.0), h.max(0.0));
        self.put(format_args!(r#"<rect class="{class}" x="{}" y="{}" width="{}" height="{}"/>"#, n(x), n(y), n(w), n(h)));
    }

    /// A regular polygon, a corner up.
    fn corners(&mut self, class: &str, (x, y): (f64, f64), corners: u32) {
        let at = |k: u32| std::f64::consts::TAU * f64::from(k) / f64::from(corners);
        let points: Vec<(f64, f64)> = (0..corners).map(|k| (x + 4.5 * at(k).sin(), y - 4.5 * at(k).cos())).collect();
        self.polygon(class, &points);
    }

    pub fn circle(&mut self, class: &str, (x, y): (f64, f64), radius: f64) {
        self.put(format_args!(r#"<circle class="{class}" cx="{}" cy="{}" r="{radius}"/>"#, n(x), n(y)));
    }

    /// A text, escaped, and truncated beyond readable length: laying it out takes time by the square of its length.
    pub fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => r#" text-anchor="middle""#,
            Anchor::End => r#" text-anchor="end""#,
        };
        let (x, y, text) = (n(x), n(y), escape(&cut(text, LONGEST)));
        self.put(format_args!(r#"<text class="{class}" x="{x}" y="{y}"{anchor}>{text}</text>"#));
    }

    /// `✕ OOM`, in the class of the failure.
    pub fn failure(&mut self, (x, y): (f64, f64), anchor: Anchor, why: &str, text: &str) {
        self.text(failure_class(why), (x, y), anchor, text);
    }

    /// A failure that reads upwards, inside a bar's slot.
    pub fn failure_up(&mut self, (x, y): (f64, f64), why: &str) {
        self.text_up(failure_class(why), (x, y), &format!("✕ {why}"));
    }

    /// A value that reads upwards, where it is wider than its bar.
    pub fn text_up(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        let (x, y, text) = (n(x), n(y), escape(&cut(text, LONGEST)));
        self.put(format_args!(r#"<text class="{class}" transform="translate({x} {y})rotate(-90)">{text}</text>"#));
    }

    /// An interval goes on beyond the top of the axis.
    pub fn beyond(&mut self, (x, y): (f64, f64)) {
        self.polygon("arrow", &[(x, y - 5.0), (x + 3.5, y + 1.0), (x - 3.5, y + 1.0)]);
    }

    /// Begin a mark: a group with its value on hover, and the class of its mode.
    pub fn open_mark(&mut self, class: &str, title: &str) {
        self.put(format_args!(r#"<g class="h {class}"><title>{}</title>"#, escape(title)));
    }

    /// Anything drawn inside has a hover text.
    pub fn titled(&mut self, title: &str, draw: impl FnOnce(&mut Self)) {
        self.put(format_args!("<g><title>{}</title>", escape(title)));
        draw(self);
        self.close();
    }

    /// Begin a plain group.
    pub fn open(&mut self, class: &str) {
        self.put(format_args!(r#"<g class="{class}">"#));
    }

    /// End a group.
    pub fn close(&mut self) {
        self.out.push_str("</g>");
    }

    /// A whisker with caps; its halo keeps it readable on a filled bar.
    pub fn whisker(&mut self, from: (f64, f64), to: (f64, f64), across: bool) {
        let (dx, dy) = if across { (0.0, 2.5) } else { (3.0, 0.0) };
        let cap = |(x, y)| [(x - dx, y - dy), (x + dx, y + dy)];
        for class in ["halo", "wh"] {
            self.strokes(class, &[[from, to], cap(from), cap(to)]);
        }
    }

    /// The mark of a mode's family.
    pub fn shape(&mut self, shape: Shape, class: &str, (x, y): (f64, f64)) {
        match shape {
            Shape::Circle => self.circle(class, (x, y), 3.8),
            Shape::Square => self.rect(class, (x - 3.4, y - 3.4), (6.8, 6.8)),
            Shape::Triangle => self.polygon(class, &[(x, y - 4.4), (x + 4.2, y + 3.2), (x - 4.2, y + 3.2)]),
            Shape::Down => self.polygon(class, &[(x, y + 4.4), (x + 4.2, y - 3.2), (x - 4.2, y - 3.2)]),
            Shape::Left => self.polygon(class, &[(x - 4.4, y), (x + 3.2, y + 4.2), (x + 3.2, y - 4.2)]),
            Shape::Right => self.polygon(class, &[(x + 4.4, y), (x - 3.2, y + 4.2), (x - 3.2, y - 4.2)]),
            Shape::Pentagon => self.corners(class, (x, y), 5),
            Shape::Hexagon => self.corners(class, (x, y), 6),
            Shape::Diamond => self.polygon(class, &[(x, y - 4.8), (x + 4.8, y), (x, y + 4.8), (x - 4.8, y)]),
            Shape::Hourglass => {
                self.polygon(class, &[(x - 4.0, y - 4.4), (x + 4.0, y - 4.4), (x - 4.0, y + 4.4), (x + 4.0, y + 4.4)])
            }
            Shape::Bow => self.polygon(class, &[(x - 4.4, y - 4.0), (x - 4.4, y + 4.0), (x + 4.4, y - 4.0), (x + 4.4, y + 4.0)]),
            Shape::Star => {
                let at = |k: u32| std::f64::consts::PI * f64::from(k) / 5.0;
                let far = |k: u32| if k.is_multiple_of(2) { 6.0 } else { 2.6 };
                let points: Vec<(f64, f64)> = (0..10).map(|k| (x + far(k) * at(k).sin(), y - far(k) * at(k).cos())).collect();
                self.polygon(&format!("{class} star"), &points);
            }
            Shape::Cross | Shape::Plus => {
                let (a, b) = if shape == Shape::Cross { (3.4, 3.4) } else { (0.0, 4.6) };
                let strokes = [[(x - a, y - b), (x + a, y + b)], [(x - b, y + a), (x + b, y - a)]];
                self.strokes(&format!("{class} stroke"), &strokes);
            }
        }
    }
}

fn failure_class(why: &str) -> &'static str {
    if why == "OOM" { "oom" } else { "none" }
}

type DrawingResult = Result<(), DrawingErrorKind<Infallible>>;

impl DrawingBackend for ThemedSvg<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        ((self.width * FINE) as u32, (self.height * FINE) as u32)
    }

    fn ensure_prepared(&mut self) -> DrawingResult {
        Ok(())
    }

    fn present(&mut self) -> DrawingResult {
        Ok(())
    }

    fn draw_pixel(&mut self, at: BackendCoord, color: BackendColor) -> DrawingResult {
        self.rect(class(color), units(at), (1.0 / FINE, 1.0 / FINE));
        Ok(())
    }

    fn draw_line<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S) -> DrawingResult {
        self.line(class(style.color()), units(from), units(to));
        Ok(())
    }

    fn draw_rect<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S, _: bool) -> DrawingResult {
        let ((left, top), (right, bottom)) = (units(from), units(to));
        self.rect(class(style.color()), (left, top), (right - left, bottom - top));
        Ok(())
    }

    /// Axes without a line of their own are transparent.
    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(&mut self, path: I, style: &S) -> DrawingResult {
        if style.color().alpha == 0.0 {
            return Ok(());
        }
        self.path(class(style.color()), path.into_iter().map(units), "");
        Ok(())
    }

    fn draw_circle<S: BackendStyle>(&mut self, at: BackendCoord, radius: u32, style: &S, _: bool) -> DrawingResult {
        self.circle(class(style.color()), units(at), f64::from(radius) / FINE);
        Ok(())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(&mut self, path: I, style: &S) -> DrawingResult {
        self.path(class(style.color()), path.into_iter().map(units), "Z");
        Ok(())
    }

    /// The font family is the class. A text that would overflow at the left or right is moved inside.
    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, at: BackendCoord) -> DrawingResult {
        let (x, y) = units(at);
        let (x, anchor) = match style.anchor().h_pos {
            HPos::Left => (x, Anchor::Start),
            HPos::Right => (x, Anchor::End),
            HPos::Center if x + text_width(text) / 2.0 > self.width => (self.width, Anchor::End),
            HPos::Center => (x.max(text_width(text) / 2.0), Anchor::Middle),
        };
        let below = match style.anchor().v_pos {
            VPos::Top => 10.0,
            VPos::Center => 4.0,
            VPos::Bottom => -8.0,
        };
        if !text.is_empty() {
            self.text(style.family().as_str(), (x, y + below), anchor, text);
        }
        Ok(())
    }

    fn estimate_text_size<S: BackendTextStyle>(
        &self,
        text: &str,
        _: &S,
    ) -> Result<(u32, u32), DrawingErrorKind<Self::ErrorType>> {
        Ok(((text_width(text) * FINE) as u32, (12.0 * FINE) as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_stays_text() {
        let mut markup = String::new();
        let mut svg = ThemedSvg::new(&mut markup, (9.0, 9.0));
        svg.text("t", (1.0, 2.0), Anchor::Start, "<script>alert('x')</script>\u{1b}[31m");
        assert!(!markup.contains("<script") && markup.contains("&lt;script&gt;") && markup.contains(r"\x1b[31m"), "{markup}");
    }

    #[test]
    fn what_plotters_draws_has_the_class_that_was_meant_and_tenths_of_a_unit() {
        use plotters::prelude::{IntoDrawingArea, PathElement, Text};
        let mut markup = String::new();
        let area = ThemedSvg::new(&mut markup, (30.0, 20.0)).into_drawing_area();
        area.draw(&PathElement::new([(5, 5), (255, 120)], look("capl"))).unwrap();
        area.draw(&Text::new("×2", (290, 50), "t")).unwrap();
        drop(area);
        assert_eq!(markup, r#"<path class="capl" d="M0.5 0.5L25.5 12"/><text class="t" x="29" y="15">×2</text>"#);
        for class in CLASSES {
            let selector = format!(".{}{{", class.replace(' ', "."));
            assert!(include_str!("../../templates/figure.css").contains(&selector), "{class} has no look");
        }
    }
}
