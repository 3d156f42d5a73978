//! What ran and what did not, as a grid: hatched ran, pale with ✕ ran in part, dashed was not run, ✕ grey would not fit or was refused, ✕ plum ran out.

use crate::draw::axis::apart;
use crate::draw::chart::drawing;
use crate::draw::look::hue;
use crate::draw::themed::Anchor;
use crate::draw::{Drawing, WIDTH, cut};

/// The result of a planned or conceivable group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feasibility {
    Ran,
    /// Some runs of it completed, others did not.
    RanPartly,
    /// Not planned, or planned and not run.
    NotRun,
    /// By the sum of footprints.
    TooLarge,
    Refused,
    RanOut,
    /// Failed otherwise.
    Failed,
}

/// One square.
#[derive(Debug, Clone)]
pub struct Square {
    pub sharing: String,
    pub fit: Feasibility,
    pub title: String,
}

/// A row: a sharing mode of a workload, or a mixed group.
#[derive(Debug, Clone)]
pub struct SquareRow {
    pub label: String,
    /// The family that colours the label; empty for ink.
    pub sharing: String,
    pub squares: Vec<Option<Square>>,
}

/// A panel of rows.
pub struct Squares<'a> {
    pub caption: &'a str,
    /// Heads of the columns.
    pub heads: &'a [String],
    pub rows: &'a [SquareRow],
}

const LABEL: usize = 22;
const ROW: f64 = 18.0;

impl Squares<'_> {
    /// Draw it.
    pub fn draw(&self) -> Drawing {
        let widest = self.rows.iter().map(|r| r.label.chars().count()).max().unwrap_or(4).clamp(5, LABEL);
        let left = 8.0 + 7.9 * widest as f64;
        let wide = ((WIDTH - left) / self.heads.len().max(1) as f64).min(54.0);
        let most = ((1.3 * wide / 7.2) as usize).max(4);
        let heads: Vec<String> = self.heads.iter().map(|head| cut(head, most)).collect();
        let middles = (0..heads.len()).map(|k| left + (k as f64 + 0.5) * wide);
        let top = 34.0;
        drawing((WIDTH, top + self.rows.len() as f64 * ROW + 4.0), |c| {
            c.text("cap", (0.0, 11.0), Anchor::Start, self.caption);
            for (middle, head) in middles.clone().zip(apart(middles.zip(heads.iter().map(String::as_str)))) {
                c.text("t", (middle, 27.0), Anchor::Middle, &head);
            }
            for (i, row) in self.rows.iter().enumerate() {
                let y = top + i as f64 * ROW;
                if row.sharing.is_empty() {
                    c.text("rl", (left - 6.0, y + 13.0), Anchor::End, &cut(&row.label, LABEL));
                } else {
                    c.open(hue(&row.sharing));
                    c.text("lb", (left - 6.0, y + 13.0), Anchor::End, &cut(&row.label, LABEL));
                    c.close();
                }
                for (k, square) in row.squares.iter().enumerate() {
                    let Some(square) = square else { continue };
                    let (x, size) = (left + k as f64 * wide + 1.0, (wide - 2.0, ROW - 4.0));
                    let pale = if square.fit == Feasibility::RanPartly { " inf" } else { "" };
                    c.open_mark(&format!("{}{pale}", hue(&square.sharing)), &square.title);
                    c.rect(frame(square.fit), (x, y + 2.0), size);
                    let sign = match square.fit {
                        Feasibility::Ran | Feasibility::NotRun => None,
                        Feasibility::RanOut => Some("oom"),
                        Feasibility::RanPartly | Feasibility::TooLarge | Feasibility::Refused | Feasibility::Failed => {
                            Some("none")
                        }
                    };
                    if let Some(class) = sign {
                        let word = if square.fit == Feasibility::Refused && wide >= 52.0 { "refused" } else { "✕" };
                        c.text(class, (x + size.0 / 2.0, y + 13.0), Anchor::Middle, word);
                    }
                    c.close();
                }
            }
        })
    }
}

fn frame(fit: Feasibility) -> &'static str {
    match fit {
        Feasibility::Ran | Feasibility::RanPartly => "bar",
        Feasibility::NotRun | Feasibility::TooLarge => "hole",
        Feasibility::Refused => "frame",
        Feasibility::RanOut => "frame out",
        Feasibility::Failed => "frame",
    }
}
