//! A drawing as commands of PGF (manual of TikZ and PGF, part IX). In: a laid out SVG. Out: a picture for `\input`, whose texts are set by
//! LaTeX. Of SVG it knows what figures have: paths with colours, dashes, opacity and hatches, and text in lines.

use std::fmt::Write;

use resvg::tiny_skia::{self, PathSegment, Point, Transform};
use resvg::usvg::{Color, FillRule, Group, Node, Paint, Path, Text, TextAnchor, TextChunk, TextSpan, Tree};

use crate::draw::latex::escape;

/// The whole picture; a unit of the drawing is `scale` points.
pub fn picture(tree: &Tree, scale: f32) -> String {
    let height = tree.size().height();
    // PGF's vertical axis points upwards.
    let mut writer =
        Writer { out: String::new(), place: Transform::from_row(scale, 0.0, 0.0, -scale, 0.0, scale * height), scale };
    writer.group(tree.root(), 1.0);
    let (width, height) = (scale * tree.size().width(), scale * height);
    format!(
        "% Needs \\usepackage{{pgf}}\\usepgflibrary{{patterns}} in the preamble; \\input this file where the figure is to stand.\n\\begingroup%\n\
         \\begin{{pgfpicture}}%\n\\pgfpathrectangle{{\\pgfpointorigin}}{{\\pgfqpoint{{{width:.2}bp}}{{{height:.2}bp}}}}%\n\
         \\pgfusepath{{use as bounding box}}%\n{}\\end{{pgfpicture}}%\n\\endgroup%\n",
        writer.out
    )
}

struct Writer {
    out: String,
    /// From units of the drawing to points.
    place: Transform,
    scale: f32,
}

impl Writer {
    fn line(&mut self, command: std::fmt::Arguments) {
        // Writing to a `String` cannot fail.
        let _ = self.out.write_fmt(command);
        self.out.push_str("%\n");
    }

    fn group(&mut self, group: &Group, opacity: f32) {
        let opacity = opacity * group.opacity().get();
        for node in group.children() {
            match node {
                Node::Group(group) => self.group(group, opacity),
                Node::Path(path) if path.is_visible() => self.path(path, opacity),
                Node::Text(text) => self.text(text, opacity),
                Node::Path(_) | Node::Image(_) => {}
            }
        }
    }

    fn scope(&mut self, draw: impl FnOnce(&mut Self)) {
        self.line(format_args!("\\begin{{pgfscope}}"));
        draw(self);
        self.line(format_args!("\\end{{pgfscope}}"));
    }

    fn color(&mut self, name: &str, color: Color) {
        self.line(format_args!("\\definecolor{{{name}}}{{RGB}}{{{},{},{}}}", color.red, color.green, color.blue));
    }

    fn path(&mut self, path: &Path, opacity: f32) {
        let Some(data) = path.data().clone().transform(path.abs_transform().post_concat(self.place)) else { return };
        if let Some(fill) = path.fill() {
            let opacity = opacity * fill.opacity().get();
            let is_even_odd = fill.rule() == FillRule::EvenOdd;
            match fill.paint() {
                Paint::Color(color) => self.fill(&data, *color, opacity, is_even_odd),
                // A hatch: its ground, pale, and its lines.
                Paint::Pattern(pattern) => {
                    let Some(color) = first_color(pattern.root()) else { return };
                    self.fill(&data, color, 0.22 * opacity, is_even_odd);
                    self.scope(|w| {
                        w.color("colloline", color);
                        w.line(format_args!("\\pgfsetfillpattern{{north east lines}}{{colloline}}"));
                        w.segments(&data);
                        w.line(format_args!("\\pgfusepath{{fill}}"));
                    });
                }
                Paint::LinearGradient(_) | Paint::RadialGradient(_) => {}
            }
        }
        let Some(stroke) = path.stroke() else { return };
        let Paint::Color(color) = stroke.paint() else { return };
        let (scale, opacity) = (self.scale, opacity * stroke.opacity().get());
        self.scope(|w| {
            w.color("colloline", *color);
            w.line(format_args!("\\pgfsetstrokecolor{{colloline}}\\pgfsetstrokeopacity{{{opacity:.3}}}"));
            w.line(format_args!("\\pgfsetlinewidth{{{:.3}bp}}", stroke.width().get() * scale));
            if let Some(dashes) = stroke.dasharray() {
                let dashes: String = dashes.iter().map(|dash| format!("{{{:.3}bp}}", dash * scale)).collect();
                w.line(format_args!("\\pgfsetdash{{{dashes}}}{{0bp}}"));
            }
            w.segments(&data);
            w.line(format_args!("\\pgfusepath{{stroke}}"));
        });
    }

    fn fill(&mut self, data: &tiny_skia::Path, color: Color, opacity: f32, is_even_odd: bool) {
        self.scope(|w| {
            w.color("collofill", color);
            w.line(format_args!("\\pgfsetfillcolor{{collofill}}\\pgfsetfillopacity{{{opacity:.3}}}"));
            if is_even_odd {
                w.line(format_args!("\\pgfseteorule"));
            }
            w.segments(data);
            w.line(format_args!("\\pgfusepath{{fill}}"));
        });
    }

    fn segments(&mut self, data: &tiny_skia::Path) {
        let at = |p: Point| format!("{{\\pgfqpoint{{{:.3}bp}}{{{:.3}bp}}}}", p.x, p.y);
        let mut from = Point::zero();
        for segment in data.segments() {
            match segment {
                PathSegment::MoveTo(p) => self.line(format_args!("\\pgfpathmoveto{}", at(p))),
                PathSegment::LineTo(p) => self.line(format_args!("\\pgfpathlineto{}", at(p))),
                PathSegment::QuadTo(control, p) => {
                    let third = |end: Point| Point::from_xy((end.x + 2.0 * control.x) / 3.0, (end.y + 2.0 * control.y) / 3.0);
                    self.line(format_args!("\\pgfpathcurveto{}{}{}", at(third(from)), at(third(p)), at(p)));
                }
                PathSegment::CubicTo(a, b, p) => self.line(format_args!("\\pgfpathcurveto{}{}{}", at(a), at(b), at(p))),
                PathSegment::Close => self.line(format_args!("\\pgfpathclose")),
            }
            from = match segment {
                PathSegment::MoveTo(p) | PathSegment::LineTo(p) | PathSegment::QuadTo(_, p) | PathSegment::CubicTo(_, _, p) => p,
                PathSegment::Close => from,
            };
        }
    }

    fn text(&mut self, text: &Text, opacity: f32) {
        let transform = text.abs_transform();
        let turn = -transform.ky.atan2(transform.sx).to_degrees();
        for chunk in text.chunks() {
            let mut at = Point::from_xy(chunk.x().unwrap_or_default(), chunk.y().unwrap_or_default());
            transform.post_concat(self.place).map_point(&mut at);
            let side = match chunk.anchor() {
                TextAnchor::Start => "left,",
                TextAnchor::Middle => "",
                TextAnchor::End => "right,",
            };
            let spans: Vec<String> = chunk.spans().iter().map(|span| self.span(chunk, span)).collect();
            let spans = spans.join("~");
            self.line(format_args!(
                "\\begin{{pgfscope}}\\pgfsetfillopacity{{{opacity:.3}}}\\pgftext[x={:.3}bp,y={:.3}bp,{side}base,rotate={turn:.1}]{{{spans}}}\\end{{pgfscope}}",
                at.x, at.y
            ));
        }
    }

    /// One part of a line in its size, weight and colour.
    fn span(&self, chunk: &TextChunk, span: &TextSpan) -> String {
        let text = escape(chunk.text().get(span.start()..span.end()).unwrap_or_default());
        let size = span.font_size().get() * self.scale;
        let color = match span.fill().map(|fill| fill.paint()) {
            Some(Paint::Color(color)) => *color,
            _ => Color::black(),
        };
        let weight = if span.font().weight() > 500 { "\\bfseries" } else { "" };
        format!(
            "\\fontsize{{{size:.2}}}{{{:.2}}}\\selectfont{weight}\\textcolor[RGB]{{{},{},{}}}{{{text}}}\\mdseries",
            1.2 * size,
            color.red,
            color.green,
            color.blue
        )
    }
}

/// The colour of the first filled path.
fn first_color(group: &Group) -> Option<Color> {
    group.children().iter().find_map(|node| match node {
        Node::Group(group) => first_color(group),
        Node::Path(path) => match path.fill()?.paint() {
            Paint::Color(color) => Some(*color),
            _ => None,
        },
        Node::Text(_) | Node::Image(_) => None,
    })
}
