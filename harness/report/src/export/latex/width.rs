//! How wide a table is, and the size in which it fits a page of the class `article`. In: its lines. Out: a size, or that it has to be divided.
//!
//! TeX alone knows the width. It is estimated from above by the widths of Computer Modern's characters (cmr10.tfm), so that what fits by the
//! estimate fits the page.

/// `\textwidth` of `article` in its 10 pt and on any paper (size10.clo).
const PAGE_PT: f64 = 345.0;

/// A size of type, with the space beside each column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TypeSize {
    /// What is written before the table.
    pub commands: &'static str,
    scale: f64,
    beside_pt: f64,
}

/// The largest first; `\tabcolsep` is 6 pt unless set. Smaller letters are less small than their size: digits of cmr10, cmr9 and cmr8 are 5.0, 4.625
/// and 4.25 pt wide.
const SIZES: [TypeSize; 3] = [
    TypeSize { commands: "", scale: 1.0, beside_pt: 6.0 },
    TypeSize { commands: "\\small\\setlength{\\tabcolsep}{3pt}\n", scale: 0.925, beside_pt: 3.0 },
    TypeSize { commands: "\\footnotesize\\setlength{\\tabcolsep}{3pt}\n", scale: 0.85, beside_pt: 3.0 },
];

/// The widths of the columns of rows: of their widest fields, at 10 pt.
pub fn widths_pt<'a>(rows: impl IntoIterator<Item = &'a str>) -> Vec<f64> {
    let mut widths: Vec<f64> = Vec::new();
    for row in rows {
        // A field over several columns widens none of them.
        let fields = row.trim_end().trim_end_matches("\\\\").split(" & ").take_while(|field| !field.contains("\\multicolumn"));
        for (n, field) in fields.enumerate() {
            widths.resize(widths.len().max(n + 1), 0.0);
            widths[n] = widths[n].max(width_pt(field.trim()));
        }
    }
    widths
}

/// The largest size in which columns of these widths fit a page; otherwise the smallest.
pub fn size(widths_pt: &[f64]) -> TypeSize {
    SIZES.into_iter().find(|size| size.fits(widths_pt)).unwrap_or(SIZES[SIZES.len() - 1])
}

/// Which of the columns behind the first `kept` stand in one table: all of them, or as many as fit a page in the smallest size.
pub fn divided(widths_pt: &[f64], kept: usize) -> Vec<std::ops::Range<usize>> {
    let (kept_pt, others_pt) = widths_pt.split_at(kept.min(widths_pt.len()));
    let smallest = SIZES[SIZES.len() - 1];
    let mut parts = Vec::new();
    let mut from = 0;
    for to in 1..=others_pt.len() {
        let fits = |to: usize| smallest.fits(&[kept_pt, &others_pt[from..to]].concat());
        if to == others_pt.len() || !fits(to + 1) {
            parts.push(from..to);
            from = to;
        }
    }
    parts
}

/// A text as it is, or in lines of this width at 10 pt if it is wider: without that no size and no division makes a table fit. An em is the
/// size of the type.
pub fn wrapped(latex: String, most_pt: f64) -> String {
    if width_pt(&latex) <= most_pt {
        return latex;
    }
    // TeX breaks lines at spaces and hyphens alone.
    let breaks =
        ["+", ",", ":", "/", "=", "\\_"].iter().fold(latex, |text, end| text.replace(end, &format!("{end}\\allowbreak{{}}")));
    format!("{BOX}{}em}}{{\\raggedright {breaks}}}", most_pt / 10.0)
}

/// How a text of several lines begins, before their width.
const BOX: &str = "\\parbox[t]{";

impl TypeSize {
    pub fn fits(&self, widths_pt: &[f64]) -> bool {
        widths_pt.iter().map(|width| width * self.scale + 2.0 * self.beside_pt).sum::<f64>() <= PAGE_PT
    }
}

/// A field's width at 10 pt.
fn width_pt(latex: &str) -> f64 {
    if let Some((em, _)) = latex.strip_prefix(BOX).and_then(|rest| rest.split_once("em}")) {
        return em.parse().map_or(0.0, |em: f64| em * 10.0);
    }
    let (mut width, mut in_math) = (0.0, false);
    let mut chars = latex.chars().peekable();
    while let Some(c) = chars.next() {
        width += match c {
            '$' => {
                in_math = !in_math;
                0.0
            }
            // TeX sets its own space there.
            ' ' if in_math => 0.0,
            '{' | '}' => 0.0,
            '\\' => {
                let mut command = String::new();
                while let Some(letter) = chars.next_if(char::is_ascii_alphabetic) {
                    command.push(letter);
                }
                match command.as_str() {
                    // An escaped character, which comes next, or one whose argument does.
                    "" | "textsuperscript" | "texttt" => 0.0,
                    // Binary operators have a space on both sides.
                    "pm" | "times" | "div" => 12.3,
                    _ => 9.0,
                }
            }
            c => char_pt(c),
        };
    }
    width
}

/// A character's width in cmr10, at most.
fn char_pt(c: char) -> f64 {
    match c {
        'i' | 'l' | '.' | ',' | ':' | ';' | '\'' => 2.8,
        'f' | 'j' => 3.1,
        ' ' | '-' => 3.4,
        'r' | 's' | 't' | '(' | ')' => 4.0,
        '0'..='9' | 'a' | 'c' | 'e' | 'g' | 'o' | 'z' | '/' => 5.0,
        'w' => 7.3,
        'a'..='l' | 'n'..='z' => 5.6,
        'm' | '%' => 8.4,
        'M' | 'W' => 10.3,
        _ => 7.9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_follows_from_the_widest_field_of_each_column() {
        let rows = [
            "tiny & naive & 2 & $1.97 \\pm 0.02$ \\\\\n",
            " & MPS & 3 & \\multicolumn{1}{l}{a very long word of failure} \\\\\n",
        ];
        let widths = widths_pt(rows);
        assert_eq!(widths.len(), 4, "a field over several columns widens none: {widths:?}");
        // In cmr10 `$1.97 \pm 0.02$` is 47.8 pt wide.
        assert!((47.8..48.5).contains(&widths[3]), "{widths:?}");
        assert_eq!(size(&widths).commands, "");
        assert!(size(&[320.0, 20.0]).commands.starts_with("\\small"));
        assert!(size(&[360.0, 20.0]).commands.starts_with("\\footnotesize"));
    }

    #[test]
    fn a_text_that_is_too_wide_is_set_in_lines() {
        assert_eq!(wrapped("tiny+square".into(), 100.0), "tiny+square");
        let long = wrapped("resnet18-cifar100+square\\_net".into(), 100.0);
        assert_eq!(long, "\\parbox[t]{10em}{\\raggedright resnet18-cifar100+\\allowbreak{}square\\_\\allowbreak{}net}");
        assert_eq!(widths_pt([format!("{long} & 1 \\\\\n").as_str()])[0], 100.0);
    }

    #[test]
    fn a_table_is_divided_where_no_size_fits() {
        assert_eq!(divided(&[60.0, 40.0, 20.0, 60.0, 60.0], 3), std::slice::from_ref(&(0..2)));
        assert_eq!(divided(&[100.0, 80.0, 60.0, 60.0, 60.0, 60.0, 60.0], 2), [0..3, 3..5]);
        assert_eq!(divided(&[500.0, 60.0, 60.0], 1), [0..1, 1..2], "what never fits is given column by column");
        assert!(divided(&[60.0], 1).is_empty());
    }
}
