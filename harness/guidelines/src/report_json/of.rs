//! From a report to the contents of its file. A number that is not finite is absent.

use collo_store::Predicted;
use serde_json::Value;

use super::{
    AdviceJson, CellJson, CommentJson, Device, DeviceDifferenceJson, EvidenceJson, LenderJson, MemberJson, PredictedBy,
    PredictedJson, PublishedJson, ReferenceJson, Refusal, ReportJson, SCHEMA, ScopeJson, Shortened, SurroundingsJson, Thresholds,
    TraceJson, WatchedJson,
};

use collo_analysis::campaign::devices::DeviceDifference;
use collo_analysis::campaign::reference::ReferenceCheck;
use collo_analysis::campaign::{Analysis, environment};
use collo_analysis::cell::Cell;
use collo_analysis::cell::lent::Lender;
use collo_analysis::cell::quantities::GainBy;
use collo_analysis::cell::second_look::{FarRun, SecondLook};
use collo_quantity::stats::RatioTest;
use collo_quantity::{Key, Trait};

use crate::report_json::cell::{FarRunJson, GainVerdict, SecondLookJson};
use crate::rule::Guideline;
use crate::rule::evidence::Evidence;
use crate::verdict::Scope;

fn finite(x: f64) -> Option<f64> {
    Some(x).filter(|x| x.is_finite())
}

impl ReportJson {
    /// Of what was analysed, and what follows from it.
    pub fn new(analysis: &Analysis, guidelines: &[Guideline]) -> Self {
        let c = &analysis.campaign;
        let shortened = analysis.shortened.iter().cloned();
        let refusals = c.plan.refusals.iter().cloned();
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
            },
            devices: match analysis.devices.are_several() {
                true => analysis.devices.all().iter().map(|device| device.label.clone()).collect(),
                false => Vec::new(),
            },
            device_differences: analysis.differences.iter().map(|d| difference(d, analysis)).collect(),
            shard: c.shard.map(|s| s.to_string()),
            merged_from: c.origins.iter().map(|o| o.campaign.clone()).collect(),
            baselines_from: analysis.lenders().into_iter().map(LenderJson::from).collect(),
            comments: analysis.comments.iter().map(|c| CommentJson { at_utc: c.at_utc.clone(), text: c.text.clone() }).collect(),
            surroundings: c.surroundings.as_ref().map(|s| SurroundingsJson {
                command: s.command.clone(),
                variables: s.variables.clone(),
                packages: s.packages.clone(),
            }),
            synthetic: analysis.synthetic.clone(),
            shortened: shortened.map(|(workload, limit_batches)| Shortened { workload, limit_batches }).collect(),
            indicative: c.indicative.clone(),
            environment: environment::of(analysis).into_iter().collect(),
            thresholds: (&c.thresholds).into(),
            method: analysis.method.map(String::from),
            planned: analysis.planned,
            accounted: analysis.accounted.iter().copied().collect(),
            refusals: refusals.map(|r| Refusal { cell: r.cell, sharing: r.sharing, reason: r.reason, hint: r.hint }).collect(),
            predicted: c.predicted.as_ref().map(PredictedBy::from),
            cells: analysis.cells.iter().map(|cell| of_cell(cell, c.predicted.as_ref())).collect(),
            traces: analysis.traces.matrices.iter().map(|matrix| TraceJson::of(matrix, analysis)).collect(),
            watching: WatchedJson::all(analysis),
            guidelines: guidelines.iter().map(AdviceJson::from).collect(),
            references: analysis.references().iter().map(ReferenceJson::from).collect(),
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
            "repetitions": c.counted.len(),
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

fn difference(d: &DeviceDifference, analysis: &Analysis) -> DeviceDifferenceJson {
    DeviceDifferenceJson {
        device: analysis.devices.all()[d.device].label.clone(),
        quantity: d.quantity.name.into(),
        ratio: d.ratio.clone(),
        p_adjusted: d.p,
    }
}

impl From<&Lender> for LenderJson {
    fn from(lender: &Lender) -> Self {
        let Lender { campaign, experiment, created_utc } = lender.clone();
        LenderJson { campaign, experiment, created_utc }
    }
}

impl From<&collo_store::Thresholds> for Thresholds {
    fn from(t: &collo_store::Thresholds) -> Self {
        Thresholds {
            relevant_ratio: t.relevant_ratio,
            slowdown: t.slowdown,
            overlap_ratio: t.overlap_ratio,
            start_skew_s: t.start_skew_s,
            baseline_drift_ratio: t.baseline_drift_ratio,
        }
    }
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
        repetitions: c.counted.len(),
        outcome: c.outcome().into(),
        outcomes: c.outcomes.iter().map(|(word, n)| (*word, *n)).collect(),
        validity: c.verdict().as_str().into(),
        reasons: c.validity.reasons.clone(),
        suspicious: c.suspicious.clone(),
        second_look: c.second_look.as_ref().map(SecondLookJson::from),
        quantities: Key::with(Trait::Cell).map(|key| (key.name, c.get(key).cloned())).collect(),
        throughput_gain_by: Some(GainBy::of(&c.record).as_str().into()),
        throughput_gain_verdict: c.gain_verdict.as_ref().map(GainVerdict::from),
        memory_kind: c.memory_kind.map(|kind| kind.as_str().into()),
        metrics: c.metrics.iter().map(|(name, q)| (name.as_str(), Some(q.clone()))).collect(),
        absent: absent.collect(),
        predicted: claims.and_then(|claims| claims.of_cell(c.name())).cloned(),
    }
}

impl From<&SecondLook> for SecondLookJson {
    fn from(look: &SecondLook) -> Self {
        let run =
            |far: &FarRun| FarRunJson { cell: far.cell.clone(), repetition: far.repetition, deviation_ratio: far.log.exp_m1() };
        SecondLookJson {
            left_out: look.left_out.iter().map(run).collect(),
            quantities: look.quantities.iter().map(|(key, _, without)| (key.name, Some(without.clone()))).collect(),
        }
    }
}

impl From<&RatioTest> for GainVerdict {
    fn from(g: &RatioTest) -> Self {
        let (p, p_adjusted) = (finite(g.p), finite(g.p_adjusted));
        GainVerdict { p, p_adjusted, verdict: g.verdict.as_str().into(), text: g.verdict.text() }
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
        loss: m.loss.and_then(finite),
        features: m.features.clone(),
        predicted: claims.and_then(|claims| claims.of(&m.spec.solo, &cell.record.mode)).map(PredictedJson::from),
    }
}

impl From<&Guideline> for AdviceJson {
    fn from(g: &Guideline) -> Self {
        AdviceJson {
            id: g.id.into(),
            statement: g.statement.clone(),
            finding: g.finding.clone(),
            holds: Some(g.holds),
            agrees: g.agrees,
            tested: g.tested.clone(),
            evidence: g.evidence.iter().map(EvidenceJson::from).collect(),
            published: g.published.map(|p| PublishedJson { statement: p.statement.into(), source: p.source.into() }),
            scope: g.scope.as_ref().map(ScopeJson::from),
            command: g.command.clone(),
            summary: g.summary,
        }
    }
}

impl From<&Scope> for ScopeJson {
    fn from(s: &Scope) -> Self {
        ScopeJson {
            judged: s.judged,
            unjudged: s.unjudged.iter().cloned().collect(),
            out_of_memory: s.out_of_memory,
            workloads: s.workloads.clone(),
            degrees: s.degrees.clone(),
            devices: s.devices,
            repetitions_min: s.repetitions.map(|r| r.0),
            repetitions_max: s.repetitions.map(|r| r.1),
            text: s.text(),
        }
    }
}

impl From<&ReferenceCheck> for ReferenceJson {
    fn from(check: &ReferenceCheck) -> Self {
        ReferenceJson {
            cell: check.reference.cell.clone(),
            quantity: check.reference.quantity.clone(),
            value: check.reference.value,
            tolerance_ratio: check.reference.tolerance_ratio,
            measured: check.measured.clone(),
            verdict: check.verdict.as_str().into(),
        }
    }
}

impl From<&Evidence> for EvidenceJson {
    fn from(e: &Evidence) -> Self {
        EvidenceJson {
            cell: e.cell.clone(),
            against: e.against.clone(),
            quantity: e.quantity.name.into(),
            value: Some(e.value.clone()),
            repetitions: e.value.n,
        }
    }
}
