//! Common parts of the charts: plotters lays them out and draws their grid, lines and areas. What it cannot draw (groups, titles
//! and the modes' shapes) is written to the backend by an element of our own.

use std::convert::Infallible;

use plotters::chart::{ChartBuilder, ChartContext, LabelAreaPosition};
use plotters::coord::Shift;
use plotters::coord::cartesian::Cartesian2d;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::element::{Drawable, PathElement, PointCollection, Text};
use plotters::series::LineSeries;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{TRANSPARENT, TextStyle};
use plotters_backend::{BackendCoord, DrawingErrorKind};

use super::axis::Axis;
use super::themed::{FINE, ThemedSvg, look, text_width};
use super::{Drawing, WIDTH, cut};
use crate::draw::look::hue;
use crate::draw::themed::Anchor;

pub type Root<'t> = DrawingArea<ThemedSvg<'t>, Shift>;
pub type DrawResult<T> = std::result::Result<T, DrawingAreaErrorKind<Infallible>>;

/// A drawing in units, without axes.
pub fn drawing((width, height): (f64, f64), draw: impl FnOnce(&mut ThemedSvg)) -> Drawing {
    let mut body = String::new();
    draw(&mut ThemedSvg::new(&mut body, (width, height)));
    Drawing { width, height, body }
}

/// A drawing of one or more charts.
pub fn charts((width, height): (f64, f64), draw: impl FnOnce(&Root) -> DrawResult<()>) -> Drawing {
    let mut body = String::new();
    draw(&ThemedSvg::new(&mut body, (width, height)).into_drawing_area()).expect("nothing refuses what is drawn as text");
    Drawing { width, height, body }
}

/// An element of our own, without a position of its own.
struct Own<F>(F);

impl<'e, F> PointCollection<'e, (f64, f64)> for &'e Own<F> {
    type Point = (f64, f64);
    type IntoIter = std::iter::Empty<(f64, f64)>;

    fn point_iter(self) -> Self::IntoIter {
        std::iter::empty()
    }
}

impl<'t, F: Fn(&mut ThemedSvg<'t>)> Drawable<ThemedSvg<'t>> for Own<F> {
    fn draw<I: Iterator<Item = BackendCoord>>(
        &self,
        _: I,
        svg: &mut ThemedSvg<'t>,
        _: (u32, u32),
    ) -> std::result::Result<(), DrawingErrorKind<Infallible>> {
        (self.0)(svg);
        Ok(())
    }
}

/// Units to pixels.
pub fn px(units: f64) -> i32 {
    (units * FINE).round() as i32
}

/// The position of a chart in its panel, in units from the edges, and the texts around it.
#[derive(Default)]
pub struct Frame<'f> {
    pub caption: &'f str,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
    pub left: f64,
    /// Gridlines at the ticks of the horizontal and of the vertical axis.
    pub grid: (bool, bool),
    /// The quantity of the horizontal axis, below its texts.
    pub below: &'f str,
    /// True if the texts on the left are names of rows.
    pub rows: bool,
    /// True if it begins at zero, which is drawn as the axis.
    pub zero: bool,
    /// How much lower the texts of the horizontal axis stand, below what is drawn there.
    pub sink: f64,
}

impl<'f> Frame<'f> {
    /// For a chart whose values go up from zero: `Frame { right: 10.0, ..Frame::of_values(caption, &y) }`.
    pub fn of_values(caption: &'f str, y: &Axis) -> Self {
        let left = y.gutter();
        Frame { caption, top: 30.0, right: 4.0, bottom: 24.0, left, grid: (false, true), zero: true, ..Frame::default() }
    }

    /// For values that need no zero.
    pub fn of_ratios(caption: &'f str, y: &Axis) -> Self {
        Frame { zero: false, ..Frame::of_values(caption, y) }
    }

    /// Begin a chart: its caption, and its grid.
    pub fn on<'a, 't>(&self, root: &'a Root<'t>, x: Axis, y: Axis) -> DrawResult<Chart<'a, 't>> {
        root.draw(&Text::new(self.caption, (0, px(1.0)), "cap"))?;
        let (width, height) = root.dim_in_pixel();
        let style = TextStyle::from("cap").pos(Pos::new(HPos::Right, VPos::Bottom));
        root.draw(&Text::new(self.below, (width as i32 - px(self.right), height as i32), style))?;
        let mut builder = ChartBuilder::on(root);
        builder.margin_top(px(self.top)).margin_right(px(self.right));
        builder.x_label_area_size(px(self.bottom)).y_label_area_size(px(self.left));
        let mut context = builder.build_cartesian_2d(x, y)?;
        let mut mesh = context.configure_mesh();
        mesh.axis_style(TRANSPARENT).bold_line_style(look("gr")).light_line_style(look("gr")).x_label_style("t");
        // plotters sets texts twice this far from the axis.
        mesh.set_all_tick_mark_size(px(3.0)).set_tick_mark_size(LabelAreaPosition::Bottom, px(3.0 + self.sink / 2.0));
        if self.rows {
            mesh.y_label_style("rl").set_tick_mark_size(LabelAreaPosition::Left, px(4.0));
        } else {
            mesh.y_label_style("t");
        }
        if !self.grid.0 {
            mesh.disable_x_mesh();
        }
        if !self.grid.1 {
            mesh.disable_y_mesh();
        }
        mesh.draw()?;
        let mut chart = Chart(context);
        if self.zero {
            chart.level("ax", 0.0)?;
        }
        Ok(chart)
    }
}

/// A chart with its grid.
pub struct Chart<'a, 't: 'a>(ChartContext<'a, ThemedSvg<'t>, Cartesian2d<Axis, Axis>>);

/// The mapping from values to units of the panel.
pub type ToPanel<'p> = &'p dyn Fn(f64, f64) -> (f64, f64);

impl<'t> Chart<'_, 't> {
    pub fn x(&self) -> &Axis {
        self.0.plotting_area().as_coord_spec().x_spec()
    }

    pub fn y(&self) -> &Axis {
        self.0.plotting_area().as_coord_spec().y_spec()
    }

    /// The mapping from values to units of the panel.
    pub fn place(&self) -> impl Fn(f64, f64) -> (f64, f64) {
        |x, y| {
            let (x, y) = self.0.plotting_area().map_coordinate(&(x, y));
            (f64::from(x) / FINE, f64::from(y) / FINE)
        }
    }

    /// An element of plotters.
    pub fn draw<E>(&mut self, element: E) -> DrawResult<()>
    where
        for<'e> &'e E: PointCollection<'e, (f64, f64)>,
        E: Drawable<ThemedSvg<'t>>,
    {
        self.0.draw_series(std::iter::once(element)).map(|_| ())
    }

    /// Draw what plotters does not support.
    pub fn own(&mut self, draw: impl Fn(&mut ThemedSvg<'t>, ToPanel)) -> DrawResult<()> {
        let place = self.place();
        self.0.plotting_area().draw(&Own(|svg: &mut ThemedSvg<'t>| draw(svg, &place)))
    }

    /// A mark of a mode, with its value on hover; pale if it is indicative.
    pub fn mark(
        &mut self,
        sharing: &str,
        indicative: bool,
        title: &str,
        draw: impl Fn(&mut ThemedSvg<'t>, ToPanel),
    ) -> DrawResult<()> {
        let class = format!("{}{}", hue(sharing), if indicative { " inf" } else { "" });
        self.own(|svg, place| {
            svg.open_mark(&class, title);
            draw(svg, place);
            svg.close();
        })
    }

    /// Anything drawn inside has the hue of a mode.
    pub fn hued(&mut self, sharing: &str, draw: impl FnOnce(&mut Self) -> DrawResult<()>) -> DrawResult<()> {
        self.own(|svg, _| svg.open(hue(sharing)))?;
        draw(self)?;
        self.own(|svg, _| svg.close())
    }

    /// A line in the hue of a mode.
    pub fn line(&mut self, class: &str, sharing: &str, points: impl IntoIterator<Item = (f64, f64)>) -> DrawResult<()> {
        self.hued(sharing, |chart| chart.path(class, points))
    }

    /// A line through values, in the hue of what it is drawn inside.
    pub fn path(&mut self, class: &str, points: impl IntoIterator<Item = (f64, f64)>) -> DrawResult<()> {
        self.0.draw_series(LineSeries::new(points, look(class))).map(|_| ())
    }

    /// A straight line between two values.
    pub fn straight(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) -> DrawResult<()> {
        self.draw(PathElement::new([from, to], look(class)))
    }

    /// From edge to edge at a value of the vertical axis.
    pub fn level(&mut self, class: &str, value: f64) -> DrawResult<()> {
        let (from, to) = (self.x().min(), self.x().max());
        self.straight(class, (from, value), (to, value))
    }

    /// From top to bottom at a value of the horizontal axis.
    pub fn upright(&mut self, class: &str, value: f64) -> DrawResult<()> {
        let (from, to) = (self.y().min(), self.y().max());
        self.straight(class, (value, from), (value, to))
    }

    /// A limit that cannot be exceeded, with its text above the line, or below if there is no room.
    pub fn capacity(&mut self, (value, text): (f64, &str)) -> DrawResult<()> {
        self.level("capl", value)?;
        let end = self.x().max();
        self.own(|svg, place| {
            let (right, y) = place(end, value);
            svg.text("capt", (right, if y < 29.0 { y + 13.0 } else { y - 5.0 }), Anchor::End, text);
        })
    }

    /// An accepted value of the horizontal axis, with its text above the drawing.
    pub fn threshold(&mut self, (value, text): (f64, &str)) -> DrawResult<()> {
        self.upright("pub", value)?;
        self.own(|svg, place| {
            let (x, top) = (place(value, 0.0).0, place(value, f64::MAX).1.min(place(value, f64::MIN).1));
            let beside = if x + text_width(text) > WIDTH { (WIDTH, Anchor::End) } else { (x + 4.0, Anchor::Start) };
            svg.text("it", (beside.0, top - 6.0), beside.1, text);
        })
    }
}

/// Rows under each other on one horizontal axis.
pub struct Rows<'r> {
    pub caption: &'r str,
    /// Names and heights, in units.
    pub rows: Vec<(&'r str, f64)>,
    /// Maximum characters of a name.
    pub longest: usize,
    pub axis: Axis,
    /// An accepted value, and its text.
    pub threshold: Option<(f64, &'r str)>,
}

impl Rows<'_> {
    /// Draw them: `draw` gets the chart, a row's index, its top and its height, in the chart's units.
    pub fn draw(self, draw: impl Fn(&mut Chart, usize, f64, f64) -> DrawResult<()>) -> Drawing {
        let names: Vec<String> = self.rows.iter().map(|r| cut(r.0, self.longest)).collect();
        let left = 12.0 + 7.5 * names.iter().map(|n| n.chars().count()).max().unwrap_or(4) as f64;
        let (top, right, bottom) = (34.0, 14.0, 24.0);
        let mut body = 0.0;
        let mut begins = Vec::new();
        for (_, height) in &self.rows {
            begins.push(body);
            body += height;
        }
        let middles = self.rows.iter().zip(&begins).map(|(r, begin)| begin + r.1 / 2.0);
        let y = Axis::named(body..0.0, middles.zip(names).collect());
        let mut x = self.axis;
        x.thin(((WIDTH - left - right) / 28.0) as usize);
        charts((WIDTH, top + body + bottom), |root| {
            let frame =
                Frame { caption: self.caption, top, right, bottom, left, grid: (true, false), rows: true, ..Frame::default() };
            let mut chart = frame.on(root, x, y)?;
            if let Some(threshold) = self.threshold {
                chart.threshold(threshold)?;
            }
            for (i, ((_, height), begin)) in self.rows.iter().zip(begins).enumerate() {
                draw(&mut chart, i, begin, *height)?;
                chart.level("gr", begin + height)?;
            }
            Ok(())
        })
    }
}
