//! `history.json`. In: a history. Out: an object with every cell's class, and its nights.

use serde::Serialize;
use serde_json::Value;

use super::detect::{JudgedNight, Mixture};
use super::night::NightlyRun;
use super::summary::{CellHistory, Class, History};
use super::track::Step;

/// The version of `history.json`.
pub const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct HistoryJson<'a> {
    schema: u32,
    experiment: &'a str,
    device: Option<&'a str>,
    simulated: bool,
    regression: bool,
    cells_that_could_show_five_percent: usize,
    cells: usize,
    nights: Vec<NightJson<'a>>,
    rows: Vec<CellHistoryJson<'a>>,
    problems: &'a [String],
}

#[derive(Serialize)]
struct NightJson<'a> {
    campaign: &'a str,
    created_utc: &'a str,
    whole: bool,
    incomplete: Option<&'a str>,
    device: &'a str,
    common_change: Option<f64>,
    machine_moved: bool,
    /// Cells that moved so, and all that have a move.
    common_cells: Option<[usize; 2]>,
    /// A part of the cells that moved otherwise.
    mixture: Option<Mixture>,
    scatter: Option<f64>,
    judged: usize,
    learning: usize,
    suspicious: Vec<&'a str>,
}

#[derive(Serialize)]
struct CellHistoryJson<'a> {
    cell: &'a str,
    sharing: &'a str,
    quantity: &'a str,
    class: &'static str,
    reason: Option<String>,
    since: Option<&'a str>,
    steps: Vec<StepJson<'a>>,
    detectable_step: Option<f64>,
    nights: Vec<PointJson<'a>>,
}

#[derive(Serialize)]
struct StepJson<'a> {
    confirmed: Option<&'a str>,
    since: Option<&'a str>,
    ratio: f64,
    low: Option<f64>,
    high: Option<f64>,
    p: f64,
    repetitions_added: usize,
    worse: bool,
    environment: Vec<String>,
}

#[derive(Serialize)]
struct PointJson<'a> {
    campaign: Option<&'a str>,
    /// As measured.
    time_s: f64,
    /// Without what changed for all cells alike: what is judged.
    adjusted_time_s: f64,
    repetitions: usize,
}

/// The history as JSON.
pub fn json(history: &History) -> Value {
    let tonight = history.tonight();
    let (able, all) = history.could_show();
    let nights = history.nights.iter().zip(&history.judged).skip(history.first_shown());
    serde_json::json!(HistoryJson {
        schema: SCHEMA,
        experiment: &history.experiment,
        device: tonight.map(|(n, _)| n.device.as_str()),
        simulated: tonight.is_some_and(|(n, _)| n.simulated),
        regression: history.has_regression(),
        cells_that_could_show_five_percent: able,
        cells: all,
        nights: nights.map(|(n, j)| night(n, j)).collect(),
        rows: history.rows().iter().map(|r| row(history, r)).collect(),
        problems: &history.problems,
    })
}

fn night<'a>(n: &'a NightlyRun, j: &'a JudgedNight) -> NightJson<'a> {
    NightJson {
        campaign: &n.id,
        created_utc: &n.created_utc,
        whole: j.whole,
        incomplete: n.incomplete.as_deref(),
        device: &n.device,
        common_change: j.common.as_ref().map(|c| c.ratio),
        machine_moved: j.common.as_ref().is_some_and(|c| c.moved),
        common_cells: j.common.as_ref().map(|c| [c.agree, c.cells]),
        mixture: j.mixture,
        scatter: j.disturbed,
        judged: j.judged,
        learning: j.learning,
        suspicious: j.suspects.iter().map(|s| s.cell.as_str()).collect(),
    }
}

fn row<'a>(history: &'a History, row: &CellHistory) -> CellHistoryJson<'a> {
    let track = &history.judge.tracks[row.track];
    let id = |night: usize| history.nights.get(night).map(|n| n.id.as_str());
    let step = |s: &Step| StepJson {
        confirmed: id(s.night),
        since: id(s.since),
        ratio: s.ratio.estimate,
        low: s.ratio.low,
        high: s.ratio.high,
        p: s.p,
        repetitions_added: s.again,
        worse: s.is_worse(),
        environment: history.explains(s.since),
    };
    let (class, reason) = match &row.class {
        Class::Stepped(_) => ("stepped", None),
        Class::Unstable(why) => ("unstable", Some(why.clone())),
        Class::Gone { outcome, .. } => ("gone", Some(outcome.clone())),
        Class::Learning(_) => ("learning", None),
        Class::Quiet => ("quiet", None),
    };
    let points = track.points.iter().filter(|p| p.night >= history.first_shown());
    CellHistoryJson {
        cell: &track.cell,
        sharing: &track.sharing,
        quantity: &track.quantity,
        class,
        reason,
        since: match &row.class {
            Class::Gone { since, .. } => id(*since),
            _ => None,
        },
        steps: track.steps.iter().map(step).collect(),
        detectable_step: row.detectable,
        nights: points
            .map(|p| PointJson {
                campaign: id(p.night),
                time_s: history.judge.measured(p).exp(),
                adjusted_time_s: p.x.exp(),
                repetitions: p.n,
            })
            .collect(),
    }
}
