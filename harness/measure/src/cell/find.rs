//! The cell of a plan that a person names: a label, a slug, or the beginning of one.

use collo_store::text::quoted;
use collo_store::{CellRecord, Diagnostic};

use crate::nearest::nearest;

/// The index of the cell named by `typed`; `x` may replace `×`, and a repetition's folder names its cell.
pub fn find(cells: &[CellRecord], typed: &str) -> Result<usize, Diagnostic> {
    let plain = |text: &str| text.trim().to_lowercase().replace('×', "x");
    let wanted = plain(typed);
    let folder =
        wanted.rsplit_once('-').filter(|(_, n)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit())).map(|(slug, _)| slug);
    let whole = cells.iter().position(|c| plain(&c.cell) == wanted || c.slug == wanted || folder == Some(c.slug.as_str()));
    if let Some(index) = whole {
        return Ok(index);
    }
    let begun: Vec<usize> =
        (0..cells.len()).filter(|i| plain(&cells[*i].cell).starts_with(&wanted) || cells[*i].slug.starts_with(&wanted)).collect();
    match begun[..] {
        [only] => Ok(only),
        [] => {
            let labels: Vec<&str> = cells.iter().map(|c| c.cell.as_str()).collect();
            let mistake = Diagnostic::new(format!("there is no cell {}", quoted(typed)));
            Err(match nearest(typed, labels.iter().copied()).or(labels.first().copied()) {
                Some(near) => mistake.hint(format!("cells are named as `{near}`")),
                None => mistake,
            })
        }
        _ => {
            let mut labels: Vec<String> = begun.iter().take(4).map(|i| format!("`{}`", cells[*i].cell)).collect();
            if begun.len() > 4 {
                labels.push("…".into());
            }
            let mistake = Diagnostic::new(format!("{} begins {} cells: {}", quoted(typed), begun.len(), labels.join(", ")));
            Err(mistake.hint(format!("give the slug, as `{}`", cells[begun[0]].slug)))
        }
    }
}
