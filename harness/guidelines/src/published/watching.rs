//! What was published of the cost of tools that watch. In: `reports/published/watching.json`, embedded in the binary: figures with their
//! conditions and sources. Out: each beside the observer that it is about. None of them has a spread, so that nothing is judged by them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

/// The published results.
#[derive(Debug, Default, Deserialize)]
pub struct PublishedTools {
    pub device: String,
    pub conditions: String,
    /// Full citations, by their short names.
    sources: BTreeMap<String, String>,
    pub tools: Vec<PublishedTool>,
    /// In full after reading.
    pub source: String,
    pub others: Vec<PublishedRemark>,
}

/// A tool.
#[derive(Debug, Deserialize)]
pub struct PublishedTool {
    /// As an experiment of ours calls it.
    pub observer: String,
    /// As the source does.
    pub name: String,
    /// Seconds of an epoch of the light model.
    pub light_s: Option<f64>,
    /// Minutes of an epoch of the heavy model.
    pub heavy_min: Option<f64>,
    /// Disk space, in the words of the source.
    pub space: Option<String>,
}

/// A statement about no observer.
#[derive(Debug, Deserialize)]
pub struct PublishedRemark {
    pub published: String,
    /// In full after reading.
    pub source: String,
}

/// The figures; a test compares the file with its reader.
pub fn published_tools() -> &'static PublishedTools {
    static TOOLS: OnceLock<PublishedTools> = OnceLock::new();
    TOOLS.get_or_init(|| {
        let text = include_str!("../../../../reports/published/watching.json");
        serde_json::from_str(text).ok().and_then(PublishedTools::resolved).unwrap_or_default()
    })
}

impl PublishedTools {
    /// Replace every short name of a source by the source; `None` if one is undefined.
    fn resolved(mut self) -> Option<PublishedTools> {
        for source in self.others.iter_mut().map(|o| &mut o.source).chain([&mut self.source]) {
            *source = self.sources.get(source.as_str())?.clone();
        }
        Some(self)
    }

    /// Epoch time under a tool ÷ that without one, of the light and of the heavy model.
    pub fn ratios(&self, tool: &PublishedTool) -> (Option<f64>, Option<f64>) {
        let none = self.tools.iter().find(|t| t.observer == collo_store::NOBODY_WATCHES);
        let ratio = |of: fn(&PublishedTool) -> Option<f64>| Some(of(tool)? / of(none?)?);
        (ratio(|t| t.light_s), ratio(|t| t.heavy_min))
    }
}

impl PublishedTool {
    /// Whether an observer of ours runs it, at any rate.
    pub fn is_of(&self, observer: &str) -> bool {
        collo_store::observer_name(observer) == self.observer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_figures_are_read_and_their_ratios_are_those_of_the_source() {
        let all = published_tools();
        assert_eq!(all.tools.len(), 6);
        let of = |observer: &str| all.tools.iter().find(|tool| tool.is_of(observer));
        let ratio = |observer: &str| of(observer).map(|tool| all.ratios(tool)).expect("it is published");
        // 13.65 s beside 9.61 s; of the heavy model it was not measured.
        let (light, heavy) = ratio("torch-profiler");
        assert!(light.is_some_and(|r| (r - 1.4204).abs() < 1e-3) && heavy.is_none());
        let (light, heavy) = ratio("nsys");
        assert!(light.is_some_and(|r| (r - 1.0281).abs() < 1e-3) && heavy.is_some_and(|r| (r - 1.0559).abs() < 1e-3));
        assert_eq!(ratio("none").0, Some(1.0));
        assert_eq!(of("top:10Hz").map(|tool| tool.name.as_str()), Some("top"));
        assert!(of("py-spy").is_none());
        assert!(all.source.contains("thesis") && all.others[0].source.contains("EuroMLSys"));
    }
}
