//! A heat map in one hue: slowdowns, where rows suffer and columns cause, or gains by workload and degree. Each field has its
//! number, shade is the second sign; a field without one says why.

use collo_quantity::number;
use collo_quantity::stats::Quantity;

use crate::draw::chart::drawing;
use crate::draw::look::hue;
use crate::draw::themed::{Anchor, ThemedSvg};
use crate::draw::{Drawing, WIDTH, cut};

/// The content of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldValue {
    Number(HeatNumber),
    /// It ran, and ended otherwise: `OOM`, `crashed`.
    Failed(String),
    Refused,
    /// It ran, but has no number: `too little overlap`.
    Unusable(&'static str),
    /// Not part of the plan, or not run.
    Unmeasured,
}

/// The number of a field, with the digits that its interval allows.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatNumber {
    pub value: f64,
    /// `1.45`.
    pub text: String,
    /// `[1.41, 1.49]`.
    pub bounds: String,
}

impl HeatNumber {
    pub fn of(q: &Quantity) -> HeatNumber {
        HeatNumber { value: q.estimate, text: number::estimate(q), bounds: number::bounds(q) }
    }
}

/// One field.
#[derive(Debug, Clone)]
pub struct Field {
    pub value: FieldValue,
    pub indicative: bool,
    pub title: String,
}

/// A panel: one sharing mode.
pub struct Heat<'a> {
    pub sharing: &'a str,
    /// `slowdown of`, over the rows.
    pub caption: &'a str,
    /// `… beside`, over the columns.
    pub over: &'a str,
    pub rows: &'a [String],
    pub columns: &'a [String],
    /// By row, then column.
    pub fields: &'a [Vec<Field>],
    /// Values of the lightest and the darkest shade, shared by all panels.
    pub range: (f64, f64),
    /// Values below 1 are losses, in a hue of their own: the lower, the darker.
    pub losses: bool,
    /// Height of a row; a high one shows the interval, too.
    pub row: f64,
}

/// Characters of a row's name at least, and at most where there are few columns.
const LABEL: usize = 14;
const LONG_LABEL: usize = 28;
/// Width of a column that needs no more.
const COLUMN: f64 = 60.0;
/// Width of a character of a row's name, and of what stands beside the name.
const CHARACTER: f64 = 7.6;
const BESIDE: f64 = 13.0;

/// Height of a row from which on it has room for a second line.
pub const HIGH: f64 = 34.0;
/// Width of a character of a number, and of its interval.
const VALUE: f64 = 7.0;
const BOUND: f64 = 5.2;

/// The class of a value's shade, 0 to 10, by its logarithm.
fn shade(value: f64, (low, high): (f64, f64)) -> usize {
    let (low, high) = (low.max(1e-6).ln(), high.max(1e-6).ln());
    let share = if high > low { (value.max(1e-6).ln() - low) / (high - low) } else { 0.0 };
    (share.clamp(0.0, 1.0) * 10.0).round() as usize
}

impl Heat<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let room = WIDTH - BESIDE - COLUMN * self.columns.len() as f64;
        let longest = ((room / CHARACTER) as usize).clamp(LABEL, LONG_LABEL);
        let caption = self.caption.chars().count().min(longest);
        let widest = self.rows.iter().map(|n| n.chars().count()).max().unwrap_or(4).clamp(caption, longest);
        let left = BESIDE + CHARACTER * widest as f64;
        let wide = ((WIDTH - left - 2.0) / self.columns.len().max(1) as f64).min(86.0);
        let across = ((wide / 7.0) as usize).max(3);
        let top = 36.0;
        drawing((WIDTH, top + self.rows.len() as f64 * self.row + 4.0), |c| {
            c.text("cap", (left + 4.0, 11.0), Anchor::Start, self.over);
            c.text("cap", (0.0, 27.0), Anchor::Start, self.caption);
            for (k, name) in self.columns.iter().enumerate() {
                c.text("t", (left + (k as f64 + 0.5) * wide, 27.0), Anchor::Middle, &cut(name, across));
            }
            for (i, (name, row)) in self.rows.iter().zip(self.fields).enumerate() {
                let y = top + i as f64 * self.row;
                c.text("rl", (left - 8.0, y + self.row / 2.0 + 4.0), Anchor::End, &cut(name, longest));
                for (k, field) in row.iter().enumerate() {
                    self.field(c, field, (left + k as f64 * wide, y), wide);
                }
            }
        })
    }

    fn field(&self, c: &mut ThemedSvg, field: &Field, (x, y): (f64, f64), wide: f64) {
        let (corner, size) = ((x + 1.0, y + 1.0), (wide - 2.0, self.row - 2.0));
        let (middle, base) = (x + wide / 2.0, y + self.row / 2.0 + 4.0);
        c.open_mark(&format!("{}{}", hue(self.sharing), if field.indicative { " inf" } else { "" }), &field.title);
        match &field.value {
            FieldValue::Number(HeatNumber { value, text, bounds }) => {
                let class = match value {
                    loss if self.losses && *loss < 1.0 => format!("heat loss o{}", shade(1.0 / loss, self.range)),
                    value => format!("heat o{}", shade(*value, self.range)),
                };
                c.rect(&class, corner, size);
                let room = |text: &str, character: f64| wide - 4.0 >= character * text.chars().count() as f64;
                let with_bounds = self.row >= HIGH && room(bounds, BOUND);
                if room(text, VALUE) {
                    let base = if with_bounds { y + 16.0 } else { base };
                    c.text("hv", (middle, base), Anchor::Middle, text);
                }
                if with_bounds {
                    c.text("hb", (middle, y + 29.0), Anchor::Middle, bounds);
                }
            }
            FieldValue::Failed(why) => {
                let ran_out = why == "OOM";
                c.rect(if ran_out { "frame out" } else { "frame" }, corner, size);
                let text = if wide >= 16.0 + 7.0 * why.chars().count() as f64 { format!("✕ {why}") } else { "✕".into() };
                c.failure((middle, base), Anchor::Middle, why, &text);
            }
            FieldValue::Refused => {
                c.rect("frame", corner, size);
                c.text("none", (middle, base), Anchor::Middle, if wide >= 50.0 { "refused" } else { "⊘" });
            }
            FieldValue::Unusable(why) => {
                c.rect("hole", corner, size);
                match why.rsplit_once(' ').filter(|_| self.row >= HIGH && wide >= 56.0) {
                    Some((first, rest)) => {
                        c.text("hb", (middle, y + 15.0), Anchor::Middle, first);
                        c.text("hb", (middle, y + 27.0), Anchor::Middle, rest);
                    }
                    None => c.text("none", (middle, base), Anchor::Middle, "–"),
                }
            }
            FieldValue::Unmeasured => c.rect("hole", corner, size),
        }
        c.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_on_the_darkest_shade_is_ink() {
        for css in [include_str!("../../templates/page.css"), include_str!("../../templates/figure.css")] {
            let (_, look) = css.split_once(".hb{").unwrap();
            let (look, _) = look.split_once('}').unwrap();
            assert!(look.contains("fill:var(--ink)") || look.contains("fill:#171a1f"), "{look}");
        }
    }

    #[test]
    fn shades_follow_the_logarithm_and_stay_in_their_range() {
        assert_eq!([1.0, 2.0, 4.0, 9.0, 0.5].map(|v| shade(v, (1.0, 4.0))), [0, 5, 10, 10, 0]);
        assert_eq!(shade(1.0, (1.0, 1.0)), 0);
    }

    #[test]
    fn a_number_has_the_digits_of_its_interval_and_the_bounds_are_below_it_where_there_is_room() {
        let q = Quantity { estimate: 2.98, low: Some(1.1), high: Some(7.2), n: 3, df: Some(2.0) };
        let drawn = |columns: usize, row: f64| {
            let field = Field { value: FieldValue::Number(HeatNumber::of(&q)), indicative: true, title: "t".into() };
            let (rows, names) = (["a".to_string()], vec!["×2".to_string(); columns]);
            let fields = [vec![field; columns]];
            let heat = Heat {
                sharing: "naive",
                caption: "",
                over: "degree",
                rows: &rows,
                columns: &names,
                fields: &fields,
                range: (1.0, 3.0),
                losses: false,
                row,
            };
            heat.draw().body
        };
        let wide = drawn(2, 36.0);
        assert!(wide.contains(">3<") && wide.contains(">[1, 7]<") && !wide.contains("2.98"), "{wide}");
        assert!(wide.contains(" inf\""), "it is marked as indicative: {wide}");
        assert!(!drawn(2, 26.0).contains(">[1, 7]<"), "no room below");
        assert!(!drawn(24, 36.0).contains(">[1, 7]<"), "no room beside the next");
    }

    #[test]
    fn what_has_no_number_says_why_and_each_kind_looks_different() {
        let field = |value| Field { value, indicative: false, title: "why".into() };
        let kinds = [
            FieldValue::Number(HeatNumber { value: 1.5, text: "1.50".into(), bounds: String::new() }),
            FieldValue::Failed("OOM".into()),
            FieldValue::Failed("crashed".into()),
            FieldValue::Refused,
            FieldValue::Unusable("too little overlap"),
            FieldValue::Unmeasured,
        ];
        let looks = kinds.map(|kind| {
            let fields = [vec![field(kind)]];
            let (rows, columns) = (["a".to_string()], ["×2".to_string()]);
            let heat = Heat {
                sharing: "mps",
                caption: "gain",
                over: "degree",
                rows: &rows,
                columns: &columns,
                fields: &fields,
                range: (1.0, 2.0),
                losses: false,
                row: 36.0,
            };
            let body = heat.draw().body;
            assert!(body.contains("<title>why</title>"));
            body[body.find("</title>").unwrap()..].to_string()
        });
        for (i, a) in looks.iter().enumerate() {
            assert!(looks[i + 1..].iter().all(|b| a != b), "{a}");
        }
        assert!(looks[1].contains("✕ OOM") && looks[3].contains("refused") && looks[4].contains("overlap"));
    }
}
