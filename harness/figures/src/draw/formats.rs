//! A figure in formats that others read. In: its SVG. Out: PNG at twice the size, PDF and PGF at the width of a paper's column, all with
//! the bundled font, so that they look the same everywhere; PGF is set in the font of its document.

use std::sync::{Arc, LazyLock};

use krilla::SerializeSettings;
use krilla::configure::{ConfigurationBuilder, PdfVersion};
use krilla::geom::Size;
use krilla::page::PageSettings;
use krilla_svg::{SurfaceExt, SvgSettings};
use resvg::{tiny_skia, usvg};

use super::{WIDTH, pgf};
use crate::{Error, Result};

static REGULAR: &[u8] = include_bytes!("../../fonts/DejaVuSans.subset.ttf");
static BOLD: &[u8] = include_bytes!("../../fonts/DejaVuSans-Bold.subset.ttf");

static FONTS: LazyLock<Arc<usvg::fontdb::Database>> = LazyLock::new(|| {
    let mut fonts = usvg::fontdb::Database::new();
    fonts.load_font_data(REGULAR.to_vec());
    fonts.load_font_data(BOLD.to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    Arc::new(fonts)
});

/// Maximum number of pixels of a PNG.
const PIXELS: f32 = 8e6;

/// The drawing that an SVG describes, with its texts laid out.
fn tree(id: &str, svg: &str) -> Result<usvg::Tree> {
    let options = usvg::Options { fontdb: FONTS.clone(), font_family: "DejaVu Sans".into(), ..Default::default() };
    usvg::Tree::from_str(svg, &options).map_err(|e| Error::Figure { figure: id.to_string(), reason: e.to_string() })
}

/// A figure's SVG as PNG, at twice the size.
pub fn png(id: &str, svg: &str) -> Result<Vec<u8>> {
    let wrong = |reason: String| Error::Figure { figure: id.to_string(), reason };
    let tree = tree(id, svg)?;
    let size = tree.size();
    // A figure of very many panels is drawn smaller rather than not at all.
    let scale = (PIXELS / (size.width() * size.height())).sqrt().min(2.0);
    let (width, height) = ((size.width() * scale).ceil() as u32, (size.height() * scale).ceil() as u32);
    let mut pixels =
        tiny_skia::Pixmap::new(width, height).ok_or_else(|| wrong(format!("{width} × {height} pixels are too many")))?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|e| wrong(e.to_string()))
}

/// Width of a column of a paper, and of both, in points of PDF, 72 to an inch. The narrower classes decide: a column has 241.1 points of TeX in
/// `acmart` (sigconf: 8.5 in of paper, margins of 54 pt, a gap of 24 pt; acmart.dtx) and 252 in `IEEEtran` (`\textwidth` of 43 pc, a gap of
/// 1 pc; IEEEtran.cls), both together 506.3 and 516.
const COLUMN_PT: f32 = 240.0;
const PAGE_PT: f32 = 504.0;

/// Points of a paper in a unit of a drawing of this width.
fn points_per_unit(width: f32) -> f32 {
    if width > 1.5 * WIDTH as f32 { PAGE_PT / width } else { COLUMN_PT / width }
}

/// A figure laid out for a column of a paper.
pub struct ColumnFigure<'f> {
    id: &'f str,
    tree: usvg::Tree,
}

impl<'f> ColumnFigure<'f> {
    /// Read its SVG, whose layout is that of a column.
    pub fn of(id: &'f str, svg: &str) -> Result<ColumnFigure<'f>> {
        Ok(ColumnFigure { id, tree: tree(id, svg)? })
    }

    /// As PDF, with the bundled font embedded.
    pub fn pdf(&self) -> Result<Vec<u8>> {
        let wrong = |reason: String| Error::Figure { figure: self.id.to_string(), reason };
        let (width, height) = (self.tree.size().width(), self.tree.size().height());
        let scale = points_per_unit(width);
        let size = Size::from_wh(scale * width, scale * height);
        let page = PageSettings::from_wh(scale * width, scale * height);
        let (Some(size), Some(page)) = (size, page) else {
            return Err(wrong(format!("{width} × {height} is no size of a page")));
        };
        // The version that pdfTeX includes without a warning.
        let version = ConfigurationBuilder::new().with_version(PdfVersion::Pdf15).finish();
        let configuration = version.map_err(|e| wrong(format!("{e:?}")))?;
        let mut document = krilla::Document::new_with(SerializeSettings { configuration, ..SerializeSettings::default() });
        let mut page = document.start_page_with(page);
        let mut surface = page.surface();
        let drawn = surface.draw_svg(&self.tree, size, SvgSettings::default());
        surface.finish();
        page.finish();
        drawn.ok_or_else(|| wrong("it cannot be expressed as PDF".into()))?;
        document.finish().map_err(|e| wrong(format!("{e:?}")))
    }

    /// As commands of PGF, which LaTeX sets in the document's own font.
    pub fn pgf(&self) -> String {
        pgf::picture(&self.tree, points_per_unit(self.tree.size().width()))
    }
}
