//! Two campaigns beside each other. In: two sides. Out: matched cells with ratio, interval, p-value and verdict, cells of only one side, and
//! differences of the environments; then these as text, JSON, Markdown and a page. Sides of different GPU models are compared by each
//! one's gain, never by their times.

mod brief;
mod json;
mod page;
mod repetitions_needed;
pub mod trace;
mod trace_page;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use collo_guidelines::report_json::{CellJson, MemberJson};
use collo_quantity::stats::Quantity;
use collo_quantity::{Better, Key, Subject, Trait, key};
use collo_store::Sharing;
use serde::Serialize;

use crate::Result;
use crate::campaigns::trace::{ComparedPolicy, ComparedTraces};
use crate::history::CampaignVariation;
use crate::ratio::between::{self, Between, CommonVerdict};
use crate::ratio::{Finding, More, Quantiles, Ratio, judge};
use crate::side::environment::{self, Environment, EnvironmentDifference};
use crate::side::matching::{self, Pair};
use crate::side::quantity::{self, QuantityChoice};
use crate::side::{ComparedReport, Head};

/// What to group verdicts by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Mode,
    Workload,
}

/// How to compare.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// A quantity of cells, of GPUs or of traces; by default the time, or between different GPU models the throughput gain, and the
    /// main quantities of traces.
    pub quantity: Option<String>,
    pub by: Option<By>,
    /// What campaigns of the experiment differ by on this device, from its nights.
    pub variation: Option<CampaignVariation>,
}

/// The comparison of two sides, in the order of its JSON.
#[derive(Debug, Serialize)]
pub struct Comparison {
    schema: u32,
    pub left: Head,
    pub right: Head,
    #[serde(skip)]
    pub asked: QuantityChoice,
    pub different_devices: bool,
    /// Relative differences below this are not worth acting on: the smaller of both sides' thresholds.
    pub threshold: f64,
    #[serde(skip)]
    pub thresholds_differ: bool,
    method: &'static str,
    /// Ratios that were judged together.
    #[serde(rename = "judged")]
    pub family: usize,
    /// What the campaigns differ by although nothing changed, and what all cells have in common.
    pub between: Between,
    pub warnings: Vec<String>,
    /// Better first, then worse, undecided, the same, and what is not judged.
    #[serde(rename = "cells")]
    pub rows: Vec<ComparedCell>,
    /// Policies of traces that both measured, within orders.
    pub policies: Vec<ComparedPolicy>,
    pub only_left: Vec<Only>,
    pub only_right: Vec<Only>,
    pub environment: Environment,
    /// Rows by verdict, in print order; verdicts without a row are left out.
    #[serde(serialize_with = "json::by_word")]
    pub counts: Vec<(&'static str, usize)>,
    #[serde(skip)]
    pub by: Option<By>,
    pub groups: Vec<VerdictGroup>,
    /// Commands that would decide the undecided.
    pub decide: Vec<String>,
}

/// One matched cell.
#[derive(Debug, Serialize)]
pub struct ComparedCell {
    /// The cell's label; for different GPU models the right one's.
    #[serde(rename = "cell")]
    pub label: String,
    #[serde(rename = "left_cell")]
    pub left_label: String,
    pub sharing: String,
    pub degree: u64,
    pub workload: String,
    /// The quantity's name in JSON.
    pub quantity: String,
    pub left: Option<Quantity>,
    pub right: Option<Quantity>,
    /// Right ÷ left.
    pub ratio: Option<Quantity>,
    /// The same beside what all cells have in common, if that is taken out: what is judged.
    pub own_ratio: Option<Quantity>,
    pub p: Option<f64>,
    /// Holm's correction over all ratios judged together.
    pub p_adjusted: Option<f64>,
    #[serde(flatten, serialize_with = "json::of_cell")]
    pub finding: Finding,
    /// Further remarks on this row.
    pub notes: Vec<String>,
}

/// A cell of only one side.
#[derive(Debug, Serialize)]
pub struct Only {
    #[serde(rename = "cell")]
    pub label: String,
    /// Why the other side does not have it, if known.
    pub reason: Option<String>,
}

/// The verdicts of one mode or one workload.
#[derive(Debug, Serialize)]
pub struct VerdictGroup {
    pub name: String,
    #[serde(serialize_with = "json::by_word")]
    pub counts: Vec<(&'static str, usize)>,
    /// Geometric mean of the judged ratios, of one quantity. It has no interval: its cells are not independent.
    pub mean_ratio: Option<f64>,
    #[serde(rename = "cells")]
    pub judged: usize,
}

impl ComparedCell {
    /// The left one's label, if it differs.
    pub fn other_label(&self) -> Option<&str> {
        Some(self.left_label.as_str()).filter(|left| *left != self.label)
    }

    /// The ratio that is judged: beside what all cells have in common, if that is taken out.
    pub fn judged_ratio(&self) -> Option<&Quantity> {
        self.own_ratio.as_ref().or(self.ratio.as_ref())
    }
}

impl Comparison {
    /// Rows with this verdict.
    pub fn count(&self, word: &str) -> usize {
        self.rows.iter().filter(|r| r.finding.as_str() == word).count()
    }

    /// Lines about policies by verdict, in the same order.
    pub fn counts_of_policies(&self) -> Vec<(&'static str, usize)> {
        counts(self.policies.iter().map(|line| &line.finding))
    }

    /// True if a matched cell is worse, or no longer runs, or a policy is worse, or all cells are.
    pub fn has_worse(&self) -> bool {
        if self.between.common.as_ref().is_some_and(|c| c.verdict == CommonVerdict::Worse) {
            return true;
        }
        let mut findings = self.rows.iter().map(|r| &r.finding).chain(self.policies.iter().map(|line| &line.finding));
        findings.any(|finding| matches!(finding, Finding::Worse | Finding::NoLongerRuns(_)))
    }

    /// True if numbers of either side come from a model.
    pub fn simulated(&self) -> bool {
        self.left.simulated || self.right.simulated
    }

    /// What a difference may explain, if its direction is known and some row changed that way.
    fn may_explain(&self, difference: &EnvironmentDifference) -> Option<&'static str> {
        let times = self.rows.iter().any(|r| key::has(&r.quantity, Trait::Speed));
        let common = |verdict| self.between.common.as_ref().is_some_and(|c| c.verdict == verdict);
        match difference.slower? {
            _ if !times => None,
            true => (self.count("worse") > 0 || common(CommonVerdict::Worse)).then_some("worse"),
            false => (self.count("better") > 0 || common(CommonVerdict::Better)).then_some("better"),
        }
    }
}

/// The order of verdicts everywhere.
const ORDER: [&str; 9] =
    ["better", "worse", "higher", "lower", "no_longer_runs", "runs_now", "cannot_tell", "same", "not_judged"];

fn rank(finding: &Finding) -> usize {
    ORDER.iter().position(|word| *word == finding.as_str()).unwrap_or(ORDER.len())
}

fn counts<'a>(findings: impl Iterator<Item = &'a Finding>) -> Vec<(&'static str, usize)> {
    let mut found = ORDER.map(|word| (word, 0));
    for finding in findings {
        found[rank(finding)].1 += 1;
    }
    found.into_iter().filter(|(_, n)| *n > 0).collect()
}

/// Compare two sides. Having nothing in common is an error that names the contents of each.
pub fn compare(left: &ComparedReport, right: &ComparedReport, options: &Options) -> Result<Comparison> {
    let other = environment::different_devices(left, right);
    let asked = QuantityChoice::of(left, right, options.quantity.as_deref(), other)?;
    let mut cautions = environment::cautions(left, right);
    let mut matched = matching::of(left, right, other);
    cautions.warnings.append(&mut matched.warnings);
    let ends = Quantiles::at(0.975);
    let threshold = left.relevant_ratio().min(right.relevant_ratio());
    let of_traces = options.quantity.as_deref().and_then(quantity::of_traces);
    let traces = match options.quantity.is_none() || of_traces.is_some() {
        true => trace::compare((left, right), of_traces, other, cautions.withheld.as_deref(), threshold),
        false => ComparedTraces::default(),
    };
    if matched.pairs.is_empty() && traces.lines.is_empty() {
        return Err(crate::side::nothing_in_common(left, right));
    }
    matched.pairs.retain(|_| of_traces.is_none());
    let mut rows: Vec<(ComparedCell, Option<Ratio>)> = matched
        .pairs
        .iter()
        .filter(|pair| !asked.is_by_definition(pair))
        .map(|pair| row(pair, &asked, (left, right), cautions.withheld.as_deref(), &ends))
        .collect();
    let judged: Vec<usize> = (0..rows.len()).filter(|&i| rows[i].1.is_some()).collect();
    let (between, own) = with_between(&rows, &asked, (left, right), options.variation.as_ref(), threshold, &ends);
    let ratios: Vec<_> = own.iter().zip(&judged).map(|(own, &i)| (own, asked.better(&rows[i].0.quantity))).collect();
    let verdicts = judge(&ratios, threshold, &ends);
    let family = verdicts.iter().filter(|v| v.p.is_some()).count();
    for (&i, own) in judged.iter().zip(&own) {
        let (row, ratio) = &mut rows[i];
        row.own_ratio = between.common.as_ref().map(|_| own.value.clone()).filter(|own| own.low.is_some());
        // With what campaigns differ by, around what was measured.
        let measured = ratio.as_ref().map_or(0.0, |r| own.value.estimate.ln() - r.value.estimate.ln());
        row.ratio = Some(own.shifted(-measured));
    }
    for (i, verdict) in judged.into_iter().zip(verdicts) {
        let row = &mut rows[i].0;
        (row.p, row.p_adjusted, row.finding) = (verdict.p, verdict.p_adjusted, verdict.finding);
    }
    let mut rows: Vec<ComparedCell> = rows.into_iter().map(|(row, _)| row).collect();
    let decide = repetitions_needed::commands(&rows, left, right);
    // Within a verdict the largest change comes first; the sort keeps the plan's order where ratios are alike.
    let size = |row: &ComparedCell| row.judged_ratio().map_or(0.0, |r| r.estimate.ln().abs());
    rows.sort_by(|a, b| rank(&a.finding).cmp(&rank(&b.finding)).then(size(b).total_cmp(&size(a))));
    let mut found = Comparison {
        schema: json::SCHEMA,
        left: Head::of(left),
        right: Head::of(right),
        threshold,
        method: json::METHOD,
        counts: counts(rows.iter().map(|row| &row.finding)),
        thresholds_differ: left.relevant_ratio() != right.relevant_ratio(),
        different_devices: other,
        warnings: cautions.warnings,
        groups: options.by.map(|by| groups(&rows, by)).unwrap_or_default(),
        family,
        between,
        only_left: only(&matched.only_left, right).into_iter().chain(traces.only_left).collect(),
        only_right: only(&matched.only_right, left).into_iter().chain(traces.only_right).collect(),
        policies: traces.lines,
        environment: Environment::of(left, right),
        by: options.by,
        decide,
        rows,
        asked,
    };
    found.between.text = words::together(&found).into_iter().chain(words::includes(&found)).collect();
    let explained: Vec<_> = found.environment.different.iter().map(|d| found.may_explain(d)).collect();
    for (difference, word) in found.environment.different.iter_mut().zip(explained) {
        difference.may_explain = word;
    }
    Ok(found)
}

/// What the two campaigns differ by, and each ratio to judge beside that.
fn with_between(
    rows: &[(ComparedCell, Option<Ratio>)],
    asked: &QuantityChoice,
    (left, right): (&ComparedReport, &ComparedReport),
    known: Option<&CampaignVariation>,
    threshold: f64,
    ends: &Quantiles,
) -> (Between, Vec<Ratio>) {
    let solos: BTreeSet<&str> =
        [left, right].iter().flat_map(|side| &side.cells).filter(|c| c.is_solo()).map(|c| c.label.as_str()).collect();
    let of = |(row, ratio): &'_ (ComparedCell, Option<Ratio>)| {
        ratio.clone().map(|ratio| (row.label.clone(), row.quantity.clone(), ratio))
    };
    let all: Vec<(String, String, Ratio)> = rows.iter().filter_map(of).collect();
    let compared: Vec<between::Compared<'_>> = all
        .iter()
        .map(|(cell, quantity, ratio)| {
            let is_baseline = solos.contains(cell.as_str());
            between::Compared { cell, quantity, ratio, is_baseline }
        })
        .collect();
    let is_speed = !compared.is_empty() && compared.iter().all(|c| key::has(c.quantity, Trait::Speed));
    let better = compared.first().map_or(Better::Neither, |c| asked.better(c.quantity));
    between::apply(&compared, known, (threshold, is_speed, better), ends)
}

/// A row without its verdict, and the ratio to judge if there is one.
fn row(
    pair: &Pair<'_>,
    asked: &QuantityChoice,
    sides: (&ComparedReport, &ComparedReport),
    withheld: Option<&str>,
    ends: &Quantiles,
) -> (ComparedCell, Option<Ratio>) {
    let Pair { left, right } = *pair;
    let name = asked.of_pair(pair);
    let (l, r) = (left.get(&name), right.get(&name));
    let ratio = l.as_ref().zip(r.as_ref()).map(|(l, r)| Ratio::of(l, r, ends));
    let mut notes = Vec::new();
    let changed = settings(left, right);
    if !changed.is_empty() {
        notes.push(format!("settings differ: {}", changed.join(", ")));
    }
    let withheld = withheld.map(|why| Finding::NotJudged(why.into()));
    let finding = withheld.or_else(|| not_judged(pair, &name, (&l, &r), sides));
    let judged = finding.is_none();
    let row = ComparedCell {
        label: right.label.clone(),
        left_label: left.label.clone(),
        sharing: right.sharing.clone(),
        degree: right.degree,
        workload: right.workload(),
        left: l,
        right: r,
        ratio: ratio.as_ref().map(|r| r.value.clone()),
        own_ratio: None,
        p: None,
        p_adjusted: None,
        finding: finding.unwrap_or(Finding::CannotTell(More::OneRun)),
        notes: if sides.0.device.name == sides.1.device.name { notes } else { [notes, matching::sms(pair, sides)].concat() },
        quantity: name,
    };
    (row, ratio.filter(|_| judged))
}

/// Why a pair is shown but never judged.
fn not_judged(
    pair: &Pair<'_>,
    name: &str,
    (l, r): (&Option<Quantity>, &Option<Quantity>),
    sides: (&ComparedReport, &ComparedReport),
) -> Option<Finding> {
    let Pair { left, right } = *pair;
    let word = |cell: &CellJson| collo_analysis::words::outcome(&cell.outcome);
    let ran = |cell: &CellJson| cell.outcome == "completed";
    let not = |why: String| Some(Finding::NotJudged(why));
    let label = Key::find(name).map_or(name, |key| key.label);
    let way = || other_quantity(pair, sides.0.device.name != sides.1.device.name);
    match (l.is_some(), r.is_some()) {
        (true, false) if !ran(right) && right.outcome != "missing" => return Some(Finding::NoLongerRuns(word(right))),
        (false, true) if !ran(left) && left.outcome != "missing" => return Some(Finding::RunsNow(word(left))),
        (false, false) if !ran(left) || !ran(right) => return not(format!("{} left, {} right", word(left), word(right))),
        (false, false) => return not(format!("neither side has its {label}{}", way())),
        (true, false) if ran(right) => return not(format!("no {label} on the right{}", way())),
        (true, false) => return not("not run on the right".into()),
        (false, true) if ran(left) => return not(format!("no {label} on the left{}", way())),
        (false, true) => return not("not run on the left".into()),
        (true, true) => {}
    }
    let invalid: Vec<String> = [("left", left), ("right", right)]
        .into_iter()
        // One repetition is said by the verdict.
        .filter(|(_, cell)| cell.validity != "valid" && cell.reasons() != "one repetition carries no interval")
        .map(|(who, cell)| format!("{} {who}", cell.validity))
        .collect();
    if !invalid.is_empty() {
        return not(invalid.join(", "));
    }
    // Under one label a mode may partition the GPU otherwise; between GPU models slices are matched by their share.
    let cut = |cell: &CellJson| cell.slots.clone().filter(|_| Sharing::of_label(&cell.sharing).partitioned);
    if let (Some(l), Some(r)) = (cut(left), cut(right))
        && l != r
        && sides.0.device.name == sides.1.device.name
    {
        return not(format!("{l} left, {r} right"));
    }
    if left.after_measured != right.after_measured {
        return not(format!("finished members {} left, {} right", left.after_measured.as_str(), right.after_measured.as_str()));
    }
    fn shorter<'a>(side: &'a ComparedReport, cell: &CellJson) -> Vec<Option<&'a BTreeSet<u64>>> {
        cell.members.iter().map(|m| side.shortened.get(&m.workload)).collect()
    }
    if key::has(name, Trait::EpochLength) && shorter(sides.0, left) != shorter(sides.1, right) {
        return not("epochs differ in length".into());
    }
    if Key::find(name).is_some_and(|q| q.subject == Subject::Requests) && left.served() != right.served() {
        return not("request rates or limits differ".into());
    }
    if name == Key::Makespan.name && sides.0.fact("epochs").zip(sides.1.fact("epochs")).is_some_and(|(l, r)| l != r) {
        return not("numbers of epochs differ".into());
    }
    // What a gain is of, or how memory was read.
    let kind = |cell: &'_ CellJson| match name {
        _ if name.starts_with("throughput_gain") => cell.throughput_gain_by.clone(),
        _ if name.starts_with("memory") => cell.memory_kind.clone(),
        _ => None,
    };
    match (kind(left), kind(right)) {
        (Some(l), Some(r)) if l != r => not(format!("{l} left, {r} right")),
        _ => None,
    }
}

/// What to ask for in place of a quantity that a side lacks; empty if there is nothing that both have.
fn other_quantity(pair: &Pair<'_>, different_devices: bool) -> String {
    let is_comparable = |key: &Key| match key {
        // Of a baseline it is 1, and of different devices no power is compared.
        Key::ThroughputGain => !pair.left.is_solo(),
        _ => !different_devices,
    };
    let has = |key: &Key| pair.left.get(key.name).is_some() && pair.right.get(key.name).is_some();
    let other = [Key::ThroughputGain, Key::Power].into_iter().find(|key| is_comparable(key) && has(key));
    other.map_or_else(String::new, |key| format!(" (`--quantity {}` compares it)", key.name))
}

/// Settings of members that differ under the same label: `workers 0 → 4`.
fn settings(left: &CellJson, right: &CellJson) -> Vec<String> {
    let mut found = Vec::new();
    for (l, r) in left.members.iter().zip(&right.members).filter(|(l, r)| !l.is_like(r)) {
        let names: std::collections::BTreeSet<&String> = l.settings.keys().chain(r.settings.keys()).collect();
        for name in names {
            let text = |m: &MemberJson| match m.settings.get(name) {
                None => "none".to_string(),
                Some(serde_json::Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
            };
            if l.settings.get(name) != r.settings.get(name) {
                found.push(format!("{name} {} → {}", text(l), text(r)));
            }
        }
    }
    found.dedup();
    found
}

fn only(cells: &[&CellJson], other: &ComparedReport) -> Vec<Only> {
    let refused: BTreeMap<&str, &str> = other.refusals.iter().map(|r| (r.cell.as_str(), r.reason.as_str())).collect();
    let reason = |cell: &CellJson| refused.get(cell.label.as_str()).map(|why| format!("refused there: {why}"));
    cells.iter().map(|c| Only { label: c.label.clone(), reason: reason(c) }).collect()
}

fn groups(rows: &[ComparedCell], by: By) -> Vec<VerdictGroup> {
    let name = |row: &ComparedCell| if by == By::Mode { row.sharing.clone() } else { row.workload.clone() };
    let mut names: Vec<String> = Vec::new();
    let mut members: BTreeMap<String, Vec<&ComparedCell>> = BTreeMap::new();
    for row in rows {
        let name = name(row);
        if !members.contains_key(&name) {
            names.push(name.clone());
        }
        members.entry(name).or_default().push(row);
    }
    if by == By::Mode {
        names.sort_by(|a, b| collo_figures::modes::mode_order(a).cmp(&collo_figures::modes::mode_order(b)));
    }
    let of = |name: String| {
        let rows = &members[&name];
        let judged: Vec<&&ComparedCell> = rows.iter().filter(|r| r.p.is_some()).collect();
        let one_quantity = judged.windows(2).all(|w| w[0].quantity == w[1].quantity);
        let logs: Vec<f64> = judged.iter().filter_map(|r| r.ratio.as_ref()).map(|r| r.estimate.ln()).collect();
        let mean = (one_quantity && !logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp());
        VerdictGroup { counts: counts(rows.iter().map(|row| &row.finding)), mean_ratio: mean, judged: logs.len(), name }
    };
    names.into_iter().map(of).collect()
}
