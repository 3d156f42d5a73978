//! From a report to the contents of its file. A number that is not finite is absent.

use collo_store::{Predicted, Surroundings};
use serde_json::Value;

use super::{CellJson, Device, MemberJson, PredictedBy, PredictedJson, ReportJson, SCHEMA, TraceJson};

use collo_analysis::campaign::{Analysis, environment};
use collo_analysis::cell::Cell;
use collo_analysis::cell::quantities::GainBy;
use collo_quantity::{Key, Trait};

use crate::rule::Guideline;

impl ReportJson {
    /// Of what was analysed, and what follows from it. Its answer and its decisions are added by the report that makes them.
    pub fn new(analysis: &Analysis, guidelines: &[Guideline]) -> Self {
        let c = &analysis.campaign;
        ReportJson {
            schema: SCHEMA,
            experiment: c.experiment.clone(),
            campaign: c.id.clone(),
            created_utc: c.created_utc.clone(),
            measured_by: None,
            device: Device {
                name: c.device.name.clone(),
                kind: c.device.kind.clone(),
                simulated: c.device.simulated,
                memory_bytes: c.device.memory_bytes,
                cores: c.device.cores.map(u64::from),
                quota_cores: c.device.quota_cores,
            },
            devices: match analysis.devices.are_several() {
                true => analysis.devices.all().iter().map(|device| device.label.clone()).collect(),
                false => Vec::new(),
            },
            device_differences: analysis.differences.clone(),
            shard: c.shard.map(|s| s.to_string()),
            merged_from: c.origins.iter().map(|o| o.campaign.clone()).collect(),
            baselines_from: analysis.lenders().into_iter().cloned().collect(),
            comments: analysis.comments.clone(),
            surroundings: c.surroundings.clone().map(|s| Surroundings { scheduling: None, ..s }),
            synthetic: analysis.synthetic.clone(),
            shortened: analysis.shortened.clone(),
            indicative: c.indicative.clone(),
            environment: environment::of(analysis).into_iter().collect(),
            thresholds: c.thresholds.clone(),
            method: analysis.method.clone(),
            planned: analysis.planned,
            accounted: analysis.accounted.iter().copied().collect(),
            refusals: c.plan.refusals.clone(),
            predicted: c.predicted.as_ref().map(PredictedBy::from),
            cells: analysis.cells.iter().map(|cell| of_cell(cell, c.predicted.as_ref())).collect(),
            traces: analysis.traces.matrices.iter().map(|matrix| TraceJson::of(matrix, analysis)).collect(),
            watching: analysis.watching.groups.clone(),
            guidelines: guidelines.to_vec(),
            answer: Vec::new(),
            decisions: Vec::new(),
            references: analysis.references.clone(),
            problems: analysis.problems.clone(),
        }
    }
}

/// A cell by its label, with the report's schema and campaign; of a trace, which is no cell of a report, what it is and its runs.
pub fn cell(analysis: &Analysis, label: &str) -> Option<Value> {
    let c = analysis.all_cells().find(|cell| cell.name() == label)?;
    let own = match &c.record.trace {
        None => serde_json::json!(of_cell(c, analysis.campaign.predicted.as_ref())),
        Some(trace) => serde_json::json!({
            "cell": c.name(),
            "trace": trace,
            "sharing": c.record.sharing,
            "repetitions": c.count(),
            "outcome": c.outcome(),
            "validity": c.verdict().as_str(),
            "reasons": c.validity.reasons,
            "runs": analysis.traces.of_cell(label).map(super::run::json).collect::<Vec<_>>(),
        }),
    };
    let mut answer = serde_json::json!({ "schema": SCHEMA, "campaign": analysis.campaign.id });
    for (key, value) in own.as_object().into_iter().flatten() {
        answer[key] = value.clone();
    }
    Some(answer)
}

fn of_cell(c: &Cell, claims: Option<&Predicted>) -> CellJson {
    let absent = c.absent.iter().map(|(name, why)| (name.to_string(), why.clone()));
    CellJson {
        label: c.name().into(),
        sharing: c.record.sharing.clone(),
        degree: c.record.degree.into(),
        baseline: c.record.baseline,
        baseline_campaign: c.lender.as_ref().map(|l| l.campaign.clone()),
        after_measured: c.record.after_measured,
        slots: c.record.slots.clone(),
        members: (0..c.members.len()).map(|index| member(c, index, claims)).collect(),
        repetitions: c.count(),
        outcome: c.outcome().into(),
        outcomes: c.outcomes.iter().map(|(word, n)| (*word, *n)).collect(),
        validity: c.verdict().as_str().into(),
        reasons: c.validity.reasons.clone(),
        suspicious: c.suspicious.clone(),
        second_look: c.second_look.clone(),
        quantities: Key::with(Trait::Cell).map(|key| (key.name, c.get(key).cloned())).collect(),
        throughput_gain_by: Some(GainBy::of(&c.record).as_str().into()),
        throughput_gain_verdict: c.gain_verdict.as_ref().map(Into::into),
        memory_kind: c.memory_kind.map(|kind| kind.as_str().into()),
        metrics: c.metrics.iter().map(|(name, q)| (name.as_str(), Some(q.clone()))).collect(),
        absent: absent.collect(),
        predicted: claims.and_then(|claims| claims.of_cell(c.name())).cloned(),
    }
}

fn member(cell: &Cell, index: usize, claims: Option<&Predicted>) -> MemberJson {
    let m = &cell.members[index];
    MemberJson {
        workload: m.spec.workload.clone(),
        batch_size: m.spec.batch_size.map(u64::from),
        settings: m.spec.settings.clone(),
        regime: cell.regime(index).cloned(),
        solo: m.spec.solo.clone(),
        serving: m.serving.clone(),
        quantities: Key::with(Trait::Member).map(|key| (key.name, m.get(key).cloned())).collect(),
        absent: m.absent.iter().map(|(name, why)| (name.to_string(), why.clone())).collect(),
        loss: m.loss.filter(|loss| loss.is_finite()),
        features: m.features.clone(),
        predicted: claims.and_then(|claims| claims.of(&m.spec.solo, &cell.record.mode)).map(PredictedJson::from),
    }
}
