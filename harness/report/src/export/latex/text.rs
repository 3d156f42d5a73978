//! Numbers, comments and labels as LaTeX.

use collo_figures::draw::latex::escape;
use collo_quantity::number;
use collo_quantity::stats::Quantity;

/// `$26.8 \pm 0.5$`.
pub fn value(q: &Quantity, factor: f64) -> String {
    if !q.estimate.is_finite() {
        return "--".into();
    }
    match number::scaled(q, factor).split_once(" ±") {
        Some((estimate, half)) => format!("${estimate} \\pm {half}$"),
        None => escape(&number::scaled(q, factor)),
    }
}

/// A comment ends with its line.
pub fn comment(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A label for references.
pub fn name(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_keeps_the_digits_of_its_interval() {
        let q = Quantity { estimate: 26.83, low: Some(26.33), high: Some(27.33), n: 3, df: Some(9.0) };
        assert_eq!(value(&q, 1.0), "$26.8 \\pm 0.5$");
        let one = Quantity { estimate: 1500.0, low: None, high: None, n: 1, df: None };
        assert_eq!(value(&one, 1e-3), "1.50 (1 run)");
    }
}
