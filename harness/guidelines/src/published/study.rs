//! Published results. In: `reports/published/study.json`, embedded in the binary: figures with their conditions and sources. Out:
//! the cells that each figure is about. Published numbers have no interval here, so that nothing is judged by them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::{Cell, Regime};
use collo_quantity::stats::Quantity;
use collo_quantity::{Key, key, number};
use collo_store::Sharing;
use serde::{Deserialize, Serialize};

use super::conditions::Conditions;
use super::position::Position;

/// The published results.
#[derive(Debug, Default, Deserialize)]
pub struct Study {
    pub device: String,
    pub software: String,
    /// Full citations, by their short names.
    sources: BTreeMap<String, String>,
    regimes: BTreeMap<String, Regime>,
    /// The regime of each source's members, by name.
    regime_of: BTreeMap<String, String>,
    pub figures: Vec<PublishedFigure>,
    /// Statements about no cell, with the reason.
    #[serde(rename = "held_against_no_cell")]
    pub others: Vec<Other>,
}

/// One published figure: a value, or a range, or an outcome.
#[derive(Debug, Deserialize)]
pub struct PublishedFigure {
    pub id: String,
    members: Vec<Who>,
    /// The family of modes; `None` if the source does not give it.
    sharing: Option<String>,
    pub quantity: String,
    pub member: Option<usize>,
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    pub outcome: Option<String>,
    /// In the words of the source.
    pub published: String,
    pub conditions: String,
    /// In full after reading.
    pub source: String,
}

/// Members of one kind.
#[derive(Debug, Deserialize)]
struct Who {
    workload: String,
    /// Other workloads that the figure is about as well.
    #[serde(default, rename = "or")]
    others: Vec<String>,
    batch_size: Option<u64>,
    count: usize,
    /// The name of its own regime; by default that of its source.
    #[serde(rename = "regime")]
    regime_name: Option<String>,
    /// Its training conditions according to its source.
    #[serde(skip)]
    regime: Regime,
}

/// A statement about no cell.
#[derive(Debug, Deserialize, Serialize)]
pub struct Other {
    pub published: String,
    pub why: String,
    /// In full after reading.
    pub source: String,
}

/// The study's figures; a test compares the file with its reader.
pub fn study() -> &'static Study {
    static STUDY: OnceLock<Study> = OnceLock::new();
    STUDY.get_or_init(|| {
        let text = include_str!("../../../../reports/published/study.json");
        serde_json::from_str(text).ok().and_then(Study::resolved).unwrap_or_default()
    })
}

impl Study {
    /// Replace every short name of a source or a regime by its meaning; `None` if one is undefined.
    fn resolved(mut self) -> Option<Study> {
        for figure in &mut self.figures {
            let usual = self.regime_of.get(&figure.source);
            for who in &mut figure.members {
                who.regime = self.regimes.get(who.regime_name.as_ref().or(usual)?)?.clone();
            }
            figure.source = self.sources.get(&figure.source)?.clone();
        }
        for other in &mut self.others {
            other.source = self.sources.get(&other.source)?.clone();
        }
        Some(self)
    }
}

impl Who {
    fn is(&self, workload: &str) -> bool {
        self.workload == workload || self.others.iter().any(|other| other == workload)
    }
}

impl PublishedFigure {
    /// Both ends of the published range, which are the same for a single value.
    pub fn range(&self) -> Option<(f64, f64)> {
        self.value.map(|v| (v, v)).or_else(|| self.low.zip(self.high))
    }

    /// True if the figure is about a cell of these members under this mode.
    pub fn is_about(&self, sharing: &str, members: &[(&str, Option<u64>)]) -> bool {
        let family = collo_figures::modes::family(sharing);
        let mode = self.sharing.as_deref().map_or(family != "solo", |mode| mode == family);
        // Limits and slices other than the study's are other modes, and of threads of one process nothing was published.
        let shared = Sharing::of_label(sharing);
        let plain = !(shared.limited || shared.partitioned && shared.mps || shared.one_process);
        let mut left: Vec<&(&str, Option<u64>)> = members.iter().collect();
        mode && plain
            && self.members.iter().map(|w| w.count).sum::<usize>() == members.len()
            && self.members.iter().all(|who| {
                (0..who.count).all(|_| {
                    let is_it = |m: &&(&str, Option<u64>)| who.is(m.0) && (who.batch_size.is_none() || who.batch_size == m.1);
                    left.iter().position(is_it).map(|at| left.remove(at)).is_some()
                })
            })
    }

    /// Its conditions compared with those of the members that the figure is about, each a workload with its reported regime.
    pub fn conditions<'a>(&self, members: impl Iterator<Item = (&'a str, Option<&'a Regime>)>) -> Conditions {
        let mut found = Conditions::default();
        for (workload, told) in members {
            if let Some(who) = self.members.iter().find(|who| who.is(workload)) {
                found.hold(workload, &who.regime, told);
            }
        }
        found
    }

    /// True if the figure is about a cell.
    pub fn is_about_cell(&self, cell: &Cell) -> bool {
        self.is_about(&cell.record.sharing, &members(cell))
    }

    /// Its conditions compared with those of a cell.
    pub fn conditions_of(&self, cell: &Cell) -> Conditions {
        self.conditions(cell.record.members.iter().enumerate().map(|(i, m)| (m.workload.as_str(), cell.regime(i))))
    }

    /// True if it is about several equal members.
    pub fn is_uniform(&self) -> bool {
        self.members.len() == 1 && self.members[0].count > 1
    }

    /// True if the figure is meaningless on another GPU model.
    pub fn is_absolute(&self) -> bool {
        key::is_absolute(&self.quantity)
    }

    /// The index of the member that it is about, among members of these workloads; `None` for a figure of the whole group.
    pub fn member_of<'w>(&self, mut workloads: impl Iterator<Item = &'w str>) -> Option<usize> {
        let who = self.members.get(self.member?)?;
        workloads.position(|workload| who.is(workload))
    }

    pub fn place(&self, ours: &Quantity) -> Option<Position> {
        let (least, most) = self.range()?;
        let (Some(low), Some(high)) = (ours.low, ours.high) else { return Some(Position::NoInterval) };
        Some(if low > most {
            Position::Outside(low / most)
        } else if high < least {
            Position::Outside(high / least)
        } else {
            Position::Inside
        })
    }
}

/// True for the GPU model of the study.
pub fn is_card(name: &str) -> bool {
    collo_gpus::is_same_product(name, &study().device)
}

/// The published figure of a quantity of a cell, and how its conditions compare with the cell's; only on the study's GPU model, and of
/// times only where epochs are whole.
pub fn of_cell(analysis: &Analysis, cell: &Cell, key: Key) -> Option<(&'static PublishedFigure, Conditions)> {
    let is_whole = key != Key::EpochTime || analysis.shortened.is_empty();
    let figure = figure(&analysis.campaign.device.name, &cell.record.sharing, &members(cell), key).filter(|_| is_whole)?;
    Some((figure, figure.conditions_of(cell)))
}

/// The workloads of a cell's members with their batch sizes.
fn members(cell: &Cell) -> Vec<(&str, Option<u64>)> {
    cell.record.members.iter().map(|m| (m.workload.as_str(), m.batch_size.map(u64::from))).collect()
}

/// The published figure of a quantity under a mode, on the study's GPU model.
fn figure(device: &str, sharing: &str, members: &[(&str, Option<u64>)], key: Key) -> Option<&'static PublishedFigure> {
    if !is_card(device) {
        return None;
    }
    study().figures.iter().find(|f| f.quantity == key.name && f.is_about(sharing, members))
}

impl PublishedFigure {
    /// `5.35`, `1.5–2.1`, `out of memory`.
    pub fn value_text(&self) -> String {
        let (_, unit, factor) = key::column(&self.quantity);
        let number = |x: f64| format!("{} {unit}", number::three(x * factor)).trim().to_string();
        match (&self.outcome, self.range()) {
            (Some(outcome), _) => collo_analysis::words::outcome(outcome),
            (None, Some((low, high))) if low == high => number(low),
            (None, Some((low, high))) => format!("{}–{}", number::three(low * factor), number(high)),
            (None, None) => number::ABSENT.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_reads_and_has_its_source() {
        let study = study();
        assert!(study.figures.len() >= 170 && study.others.len() >= 4, "{}", study.figures.len());
        for f in &study.figures {
            assert!(f.range().is_some() != f.outcome.is_some(), "{}", f.id);
            let known = ["progress", "outcome"].contains(&f.quantity.as_str()) || Key::find(&f.quantity).is_some();
            assert!(known, "{}: {}", f.id, f.quantity);
            assert!(f.members.iter().all(|m| !m.regime.is_empty()), "{} has no conditions", f.id);
            assert!(!f.source.is_empty() && !f.conditions.is_empty() && !f.published.is_empty(), "{}", f.id);
        }
        let mut ids: Vec<&str> = study.figures.iter().map(|f| f.id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), study.figures.len(), "each once");
    }

    #[test]
    fn a_figure_meets_its_cell_and_no_other() {
        let seven = [("small", Some(32)); 7];
        let on = |device: &str, sharing: &str, members: &[(&str, Option<u64>)], key: Key| {
            super::figure(device, sharing, members, key).map(PublishedFigure::value_text)
        };
        let value = |sharing: &str, members: &[(&str, Option<u64>)], key: Key| on("A100-SXM4-40GB", sharing, members, key);
        assert_eq!(on("NVIDIA H200", "mps", &seven, Key::ThroughputGain), None, "it was measured on another card");
        assert_eq!(value("mps", &seven, Key::ThroughputGain).as_deref(), Some("5.35"));
        assert_eq!(value("mig:1g.5gb", &seven, Key::ThroughputGain).as_deref(), Some("2.90"));
        assert_eq!(value("mps:14%", &seven, Key::ThroughputGain), None, "a limit of threads is another mode");
        let of_threads = study().figures.iter().filter(|f| f.is_about("threads", &seven)).count();
        assert_eq!(of_threads, 0, "whichever mode a figure is of");
        assert_eq!(value("mps", &seven[..6], Key::ThroughputGain), None);
        assert_eq!(value("mps", &[("small", Some(128)); 7], Key::ThroughputGain), None);
        assert_eq!(value("mps", &[("small", Some(128)); 3], Key::Slowdown).as_deref(), Some("1.50–2.10"));
        let pair = [("xception", Some(32)), ("vgg16", Some(64))];
        assert!(study().figures.iter().filter(|f| f.is_about("naive", &pair)).count() == 2, "in whatever order");
    }

    #[test]
    fn where_a_published_value_lies() {
        let figure = study().figures.iter().find(|f| f.id == "gain-small-7-mps").unwrap();
        let q = |low: f64, high: f64| Quantity {
            estimate: (low * high).sqrt(),
            low: Some(low),
            high: Some(high),
            n: 3,
            df: Some(9.0),
        };
        assert_eq!(figure.place(&q(5.2, 5.5)), Some(Position::Inside));
        assert_eq!(figure.place(&q(5.4, 5.6)).unwrap().text(), "outside: ours is at least 0.9 % higher");
        assert_eq!(figure.place(&q(4.0, 5.0)).unwrap().text(), "outside: ours is at least 6.5 % lower");
    }
}
