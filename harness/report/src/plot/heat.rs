//! A heat map of slowdowns in one hue: rows suffer, columns cause. Each field has its number; shade is the second sign.

use super::chart::drawing;
use super::{Anchor, Drawing, WIDTH, cut, family};

/// One field.
#[derive(Debug, Clone)]
pub struct Field {
    pub value: f64,
    /// `[1.41, 1.49]`.
    pub bounds: String,
    pub informative: bool,
    pub title: String,
}

/// A panel: one sharing mode.
pub struct Heat<'a> {
    pub sharing: &'a str,
    /// `slowdown of`, over the rows.
    pub caption: &'a str,
    /// Names of rows and columns alike.
    pub names: &'a [String],
    /// By row, then column; `None` if the pair was not measured.
    pub fields: &'a [Vec<Option<Field>>],
    /// Values of the lightest and the darkest shade, shared by all panels.
    pub range: (f64, f64),
}

const LABEL: usize = 14;
const ROW: f64 = 36.0;

/// The class of a value's shade, 0 to 10, by its logarithm.
fn shade(value: f64, (low, high): (f64, f64)) -> usize {
    let (low, high) = (low.max(1e-6).ln(), high.max(1e-6).ln());
    let share = if high > low { (value.max(1e-6).ln() - low) / (high - low) } else { 0.0 };
    (share.clamp(0.0, 1.0) * 10.0).round() as usize
}

impl Heat<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let widest = self.names.iter().map(|n| n.chars().count()).max().unwrap_or(4).clamp(9, LABEL);
        let left = 10.0 + 7.2 * widest as f64;
        let wide = ((WIDTH - left - 2.0) / self.names.len().max(1) as f64).min(86.0);
        let across = ((wide / 7.0) as usize).max(3);
        let numbers = wide >= 34.0;
        let top = 36.0;
        drawing((WIDTH, top + self.names.len() as f64 * ROW + 4.0), |c| {
            c.text("cap", (left + 4.0, 11.0), Anchor::Start, "… beside");
            c.text("cap", (0.0, 27.0), Anchor::Start, self.caption);
            for (k, name) in self.names.iter().enumerate() {
                c.text("t", (left + (k as f64 + 0.5) * wide, 27.0), Anchor::Middle, &cut(name, across));
            }
            for (i, (name, row)) in self.names.iter().zip(self.fields).enumerate() {
                let y = top + i as f64 * ROW;
                c.text("rl", (left - 8.0, y + ROW / 2.0 + 4.0), Anchor::End, &cut(name, LABEL));
                for (k, field) in row.iter().enumerate() {
                    let x = left + k as f64 * wide;
                    let Some(field) = field else {
                        c.rect("hole", (x + 1.0, y + 1.0), (wide - 2.0, ROW - 2.0));
                        continue;
                    };
                    c.open_mark(
                        &format!("{}{}", family(self.sharing), if field.informative { " inf" } else { "" }),
                        &field.title,
                    );
                    let class = format!("heat o{}", shade(field.value, self.range));
                    c.rect(&class, (x + 1.0, y + 1.0), (wide - 2.0, ROW - 2.0));
                    if numbers {
                        c.text("hv", (x + wide / 2.0, y + 16.0), Anchor::Middle, &format!("{:.2}", field.value));
                    }
                    if wide >= 66.0 {
                        c.text("hb", (x + wide / 2.0, y + 29.0), Anchor::Middle, &field.bounds);
                    }
                    c.close();
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::shade;

    #[test]
    fn shades_follow_the_logarithm_and_stay_in_their_range() {
        assert_eq!([1.0, 2.0, 4.0, 9.0, 0.5].map(|v| shade(v, (1.0, 4.0))), [0, 5, 10, 10, 0]);
        assert_eq!(shade(1.0, (1.0, 1.0)), 0);
    }
}
