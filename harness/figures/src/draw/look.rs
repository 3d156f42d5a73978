//! How a sharing mode looks in every figure: hue and mark. A slice named in a label (`mig:3g.20gb`) has a shade and a mark of its own
//! beside the family's, by its number of compute slices.
//!
//! To add a mode: its hue and mark here, its place in `modes.rs`, its colour in `templates/page.css` and `file.rs`.

use collo_store::Sharing;

use super::chart;
use super::themed::Shape;
use crate::modes::{family, slices};

/// Classes of hues, in the order of legends: the page's style sheet and the style of files have a colour for each. Those of workloads
/// come last.
pub const TINTS: [&str; 17] =
    ["naive", "mps", "mig", "threads", "g1", "g2", "g3", "g4", "g7", "solo", "other", "w0", "w1", "w2", "w3", "w4", "w5"];

/// Hues of workloads, where colour tells who runs instead of how: the last one is for all that have none of their own.
pub const WORKLOAD_TINTS: [&str; 6] = ["w0", "w1", "w2", "w3", "w4", "w5"];

/// What a published value is called in legends, where sharing modes are.
pub const PUBLISHED: &str = "published";

/// The classes of a sharing mode, which determine its hue. An unknown mode is drawn in ink.
pub fn hue(sharing: &str) -> &'static str {
    match (family(sharing), slices(sharing)) {
        _ if sharing == PUBLISHED => "published",
        ("mig", Some(1)) => "mig g1",
        ("mig", Some(2)) => "mig g2",
        ("mig", Some(3)) => "mig g3",
        ("mig", Some(4..=6)) => "mig g4",
        ("mig", Some(7..)) => "mig g7",
        (family, _) => family,
    }
}

/// The mark of a mode; a variant of a family has its hue and another mark.
pub fn shape(sharing: &str) -> Shape {
    let mode = Sharing::of_label(sharing);
    match (family(sharing), slices(sharing)) {
        _ if sharing == PUBLISHED => Shape::Star,
        _ if mode.partitioned && mode.mps => Shape::Cross,
        _ if mode.limited => Shape::Plus,
        ("naive", _) => Shape::Circle,
        ("mps", _) => Shape::Square,
        ("mig", Some(1)) => Shape::Down,
        ("mig", Some(2)) => Shape::Left,
        ("mig", Some(3)) => Shape::Right,
        ("mig", Some(4..=6)) => Shape::Pentagon,
        ("mig", Some(7..)) => Shape::Hexagon,
        ("mig", _) => Shape::Triangle,
        ("threads", _) if sharing.contains(':') => Shape::Bow,
        ("threads", _) => Shape::Hourglass,
        _ => Shape::Diamond,
    }
}

/// A mode's mark beside its name, as markup: it contains only the family's class and fixed shapes, never a label.
pub fn mark(sharing: &str) -> String {
    let drawing = chart::drawing((12.0, 12.0), |svg| {
        svg.open(hue(sharing));
        svg.shape(shape(sharing), "mk", (6.0, 6.0));
        svg.close();
    });
    format!(r#"<svg class="mark" viewBox="0 0 12 12" aria-hidden="true">{}</svg>"#, drawing.body)
}

/// A ratio on a logarithmic axis from a half to eight, with a line at 1, as markup. Digits are beside it.
pub fn glyph(ratio: &f64, sharing: &str) -> String {
    let place = |x: f64| 4.0 + (x.clamp(0.5, 8.0) / 0.5).ln() / 16f64.ln() * 48.0;
    let drawing = chart::drawing((56.0, 14.0), |svg| {
        svg.line("ref", (place(1.0), 1.0), (place(1.0), 13.0));
        svg.open(hue(sharing));
        svg.shape(shape(sharing), "mk", (place(*ratio), 7.0));
        svg.close();
    });
    format!(r#"<svg class="glyph" viewBox="0 0 56 14" aria-hidden="true">{}</svg>"#, drawing.body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modes::mode_order;

    #[test]
    fn slices_stand_by_size_and_no_two_look_alike() {
        let mut modes = vec![
            "threads:no-lock",
            "mig:7g.40gb",
            "mig:1g.5gb",
            "exclusive:2",
            "mps:50%",
            "threads",
            "mig",
            "mig:4g.20gb",
            "solo",
            "mig:2g.10gb",
            "naive",
            "mps",
            "mig:3g.20gb",
        ];
        modes.sort_by_key(|m| mode_order(m));
        assert_eq!(
            modes,
            [
                "solo",
                "naive",
                "mps",
                "mps:50%",
                "mig",
                "mig:1g.5gb",
                "mig:2g.10gb",
                "mig:3g.20gb",
                "mig:4g.20gb",
                "mig:7g.40gb",
                "threads",
                "threads:no-lock",
                "exclusive:2"
            ]
        );
        // One that is not known has the last mark, whatever it is.
        let known: Vec<&str> = modes.iter().copied().filter(|mode| family(mode) != "other").collect();
        for (i, a) in known.iter().enumerate() {
            for b in &known[i + 1..] {
                assert_ne!(shape(a), shape(b), "{a} and {b}");
            }
        }
        let hues: std::collections::BTreeSet<&str> = modes.iter().map(|m| hue(m)).collect();
        assert_eq!(hues.len(), 11, "MPS with limits has the hue of MPS, threads have one: {hues:?}");
    }

    #[test]
    fn a_label_names_the_slices_it_has() {
        let sizes =
            ["mig:2×3g.20gb", "mig:1g.5gb+me", "mig:3g.40gb+mps", "mig:3g.20gb@4", "mig:balanced", "mig", "mps:50%", "naive"];
        assert_eq!(sizes.map(slices), [Some(3), Some(1), Some(3), Some(3), None, None, None, None]);
    }

    #[test]
    fn each_class_of_a_hue_has_its_colour_in_the_page() {
        let css = include_str!("../../templates/page.css");
        for family in TINTS {
            assert!(css.contains(&format!(".{family}{{--c:")) && css.contains(&format!(".f-{family}{{fill:")), "{family}");
        }
    }
}
