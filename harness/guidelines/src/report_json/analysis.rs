//! From a report that was read to an [`Analysis`], so that the same sections render it. Out: every number as the file has it, and none that
//! the file has not: runs, and what is read in them, are absent. What has an unknown name is refused, not left out. It is the inverse of
//! `of.rs`. Pairs of policies alone are compared again, from the file's values by order.

use std::collections::BTreeMap;

use collo_analysis::campaign::Analysis;
use collo_analysis::campaign::reported::FromReport;
use collo_analysis::cell::lent::Lender;
use collo_analysis::cell::reported::{MISSING, ReportedRuns};
use collo_analysis::cell::second_look::SecondLook;
use collo_analysis::cell::verdict::CellVerdict;
use collo_analysis::cell::{Cell, Member, absent};
use collo_analysis::reading::usage::MemoryKind;
use collo_analysis::trace::{Arm, ArmValues, OrdersNeeded, RatioToReference, TraceMatrix, verdict_text};
use collo_analysis::words;
use collo_quantity::Key;
use collo_quantity::stats::{Quantity, RatioTest, RatioVerdict};
use collo_store::{
    Campaign, CellRecord, DeviceRecord, Devices, Filing, Machine, MemberSpec, Outcome, PlanRecord, Sharing, Validity, Verdict,
};

use super::{CellJson, MemberJson, OrderJson, Ordered, PolicyJson, PolicyRatioJson, Quantities, ReportJson, Texts, TraceJson};
use crate::{Error, Result};

impl ReportJson {
    /// Its numbers and texts, without runs; `path` is its file.
    pub fn analysis(&self, path: &str) -> Result<Analysis> {
        let wrong = |reason: String| Error::NotAReport { what: path.into(), reason };
        let cells = self.cells.iter().enumerate();
        let cells = cells.map(|(i, cell)| self.cell(cell).map_err(|why| wrong(format!("`cells[{i}]`: {why}"))));
        let cells = cells.collect::<Result<Vec<Cell>>>()?;
        let report = FromReport {
            path: path.into(),
            measured_by: self.measured_by.clone(),
            environment: self.environment.iter().map(|(name, text)| (name.to_string(), text.clone())).collect(),
            merged_from: self.merged_from.clone(),
            is_predicted: self.predicted.is_some(),
        };
        let campaign = self.campaign(&cells).map_err(wrong)?;
        let mut analysis = Analysis::reported(campaign, Devices::labelled(&self.devices), cells, report);
        analysis.planned = self.planned;
        analysis.accounted = outcomes(&self.accounted).map_err(wrong)?;
        let accounted = sum(&self.accounted).map_err(wrong)?;
        if !analysis.accounted.is_empty() && accounted != self.planned as u64 {
            return Err(wrong(format!("`accounted` has {accounted} of {} planned runs", self.planned)));
        }
        analysis.comments.clone_from(&self.comments);
        analysis.differences.clone_from(&self.device_differences);
        for difference in &mut analysis.differences {
            let place = self.devices.iter().position(|label| *label == difference.device);
            difference.index = place.ok_or_else(|| wrong(format!("`{}` is none of its devices", difference.device)))?;
        }
        analysis.method.clone_from(&self.method);
        analysis.synthetic.clone_from(&self.synthetic);
        analysis.shortened.clone_from(&self.shortened);
        analysis.problems.clone_from(&self.problems);
        analysis.references.clone_from(&self.references);
        analysis.watching.groups.clone_from(&self.watching);
        let traces = self.traces.iter().enumerate();
        let matrices = traces.map(|(i, trace)| self.matrix(trace).map_err(|why| wrong(format!("`traces[{i}]`: {why}"))));
        analysis.traces.matrices = matrices.collect::<Result<Vec<TraceMatrix>>>()?;
        Ok(analysis)
    }

    fn campaign(&self, cells: &[Cell]) -> Result<Campaign, String> {
        let Self { device, thresholds, refusals, .. } = self;
        Ok(Campaign {
            schema: self.schema,
            id: self.campaign.clone(),
            experiment: self.experiment.clone(),
            description: None,
            tags: Vec::new(),
            created_utc: self.created_utc.clone(),
            source_toml: String::new(),
            thresholds: thresholds.clone(),
            references: Vec::new(),
            until: None,
            plan: PlanRecord {
                seed: 0,
                epochs: 0,
                measure_for_s: None,
                cells: cells.iter().map(|cell| cell.record.clone()).collect(),
                order: Vec::new(),
                refusals: refusals.clone(),
            },
            predicted: None,
            device: DeviceRecord {
                name: device.name.clone(),
                kind: device.kind.clone(),
                simulated: device.simulated,
                memory_bytes: device.memory_bytes,
                cores: device.cores.map(|cores| small(cores, "cores")).transpose()?,
                quota_cores: device.quota_cores,
                persistence: None,
            },
            machine: Machine::default(),
            ingredients: BTreeMap::new(),
            indicative: self.indicative.clone(),
            shard: self.shard.as_ref().map(|shard| shard.parse()).transpose()?,
            origins: Vec::new(),
            surroundings: self.surroundings.clone(),
            filing: Filing::default(),
        })
    }

    fn cell(&self, cell: &CellJson) -> Result<Cell, String> {
        let members = cell.members.iter().map(member).collect::<Result<Vec<Member>, String>>()?;
        let verdict = CellVerdict::ALL.into_iter().find(|v| v.as_str() == cell.validity);
        let verdict = verdict.ok_or_else(|| format!("the validity `{}` is unknown", cell.validity))?;
        if !members.is_empty() && cell.degree != members.len() as u64 {
            return Err(format!("its degree is {}, and the number of its members {}", cell.degree, members.len()));
        }
        let runs = sum(&cell.outcomes)?.max(cell.repetitions as u64);
        let quantities = keyed(&cell.quantities)?;
        let second_look = cell.second_look.clone().map(|look| with_all_runs(look, &quantities));
        let record = CellRecord {
            cell: cell.label.clone(),
            slug: cell.label.clone(),
            sharing: cell.sharing.clone(),
            mode: Sharing::of_label(&cell.sharing),
            degree: small(cell.degree, "degree")?,
            members: members.iter().map(|m| m.spec.clone()).collect(),
            baseline: cell.baseline,
            against: Vec::new(),
            repetitions: small(runs, "number of runs")?,
            after_measured: cell.after_measured,
            slots: cell.slots.clone(),
            alone_on_slice: Vec::new(),
            expect: None,
            trace: None,
            observe: None,
        };
        let lender = |campaign: &String| {
            let known = self.baselines_from.iter().find(|lender| lender.campaign == *campaign).cloned();
            let unknown = || Lender { campaign: campaign.clone(), experiment: None, created_utc: "at an unknown time".into() };
            known.unwrap_or_else(unknown)
        };
        let reported = ReportedRuns {
            counted: cell.repetitions,
            outcome: outcome(&cell.outcome)?,
            verdict,
            regimes: cell.members.iter().map(|m| m.regime.clone()).collect(),
            on_one_device: self.devices.len() < 2,
        };
        let metrics = cell.metrics.iter().filter_map(|(name, q)| Some((name.to_string(), q.clone()?)));
        let mut found = Cell::of_report(record, reported);
        found.validity = Validity { verdict: of_runs(verdict), reasons: cell.reasons.clone() };
        found.suspicious.clone_from(&cell.suspicious);
        found.outcomes = outcomes(&cell.outcomes)?.into_iter().collect();
        found.metrics = metrics.collect();
        found.members = members;
        found.absent = texts(&cell.absent);
        found.memory_kind = cell.memory_kind.as_deref().and_then(MemoryKind::find);
        let gain = cell.throughput_gain_verdict.as_ref();
        found.gain_verdict = gain.and_then(|gain| test(&gain.verdict, &gain.text, gain.p, gain.p_adjusted));
        found.lender = cell.baseline_campaign.as_ref().map(lender);
        found.second_look = second_look;
        found.quantities = quantities;
        found.no_baseline = absent::reported_no_baseline(&found);
        Ok(found)
    }

    fn matrix(&self, trace: &TraceJson) -> Result<TraceMatrix, String> {
        let arm = |policy: &PolicyJson| self.arm(trace, policy).map_err(|why| format!("policy `{}`: {why}", policy.label));
        let arms = trace.policies.iter().map(arm).collect::<Result<Vec<Arm>, String>>()?;
        let reference = trace.policies.iter().position(|policy| policy.label == trace.reference);
        let reference = reference.ok_or_else(|| format!("its reference, `{}`, is none of its policies", trace.reference))?;
        let matrix = TraceMatrix {
            trace: trace.trace.clone(),
            cards: trace.cards,
            scale: trace.scale,
            tasks: trace.tasks,
            orders: trace.orders.clone(),
            reference,
            arms,
            pairs: Vec::new(),
            noise_ratio: None,
            spread_ratio: None,
            method: trace.method.clone(),
            threshold: self.thresholds.relevant_ratio,
        };
        Ok(matrix.paired())
    }

    fn arm(&self, trace: &TraceJson, policy: &PolicyJson) -> Result<Arm, String> {
        let same = |p: &&PolicyJson| (&p.policy, &p.estimate) == (&policy.policy, &policy.estimate);
        let verdicts = [Verdict::Valid, Verdict::Indicative, Verdict::Discarded];
        let verdict = verdicts.into_iter().find(|v| words::verdict(*v) == policy.validity);
        let verdict = verdict.ok_or_else(|| format!("the validity `{}` is unknown", policy.validity))?;
        let ratio = |(name, ratio): (&str, &PolicyRatioJson)| Ok::<_, String>((quantity(name)?, to_reference(ratio)));
        Ok(Arm {
            policy: policy.policy.clone(),
            estimate: policy.estimate.clone(),
            sharing: policy.sharing.clone(),
            in_modes: trace.policies.iter().filter(same).any(|p| p.sharing != policy.sharing),
            validity: Validity { verdict, reasons: policy.reasons.clone() },
            by_order: policy.by_order.iter().map(|at| self.in_order(at)).collect::<Result<Vec<ArmValues>, String>>()?,
            quantities: keyed(&policy.quantities)?,
            ratios: policy.ratios.iter().map(ratio).collect::<Result<BTreeMap<Key, RatioToReference>, String>>()?,
        })
    }

    fn in_order(&self, at: &OrderJson) -> Result<ArmValues, String> {
        let device = match &at.device {
            Some(label) => self.devices.iter().position(|known| known == label),
            None => (self.devices.len() < 2).then_some(0),
        };
        let label = at.device.as_deref().unwrap_or("null");
        let device = device.ok_or_else(|| format!("the device of order {}, `{label}`, is none of the report's", at.order))?;
        let value = |(name, value): (&String, &f64)| Ok::<_, String>((quantity(name)?, *value));
        Ok(ArmValues {
            order: (device, at.order),
            repetitions: at.runs,
            values: at.values.iter().map(value).collect::<Result<BTreeMap<Key, f64>, String>>()?,
        })
    }
}

fn member(member: &MemberJson) -> Result<Member, String> {
    let spec = MemberSpec {
        workload: member.workload.clone(),
        batch_size: member.batch_size.map(|size| small(size, "batch size")).transpose()?,
        settings: member.settings.clone(),
        solo: member.solo.clone(),
    };
    Ok(Member {
        spec,
        serving: member.serving.clone(),
        quantities: keyed(&member.quantities)?,
        absent: texts(&member.absent),
        loss: member.loss,
        features: member.features.clone(),
    })
}

fn small(number: u64, what: &str) -> Result<u32, String> {
    u32::try_from(number).map_err(|_| format!("{number} is too large for its {what}"))
}

fn quantity(name: &str) -> Result<Key, String> {
    Key::find(name).ok_or_else(|| format!("the quantity `{name}` is unknown"))
}

fn keyed(all: &Quantities) -> Result<BTreeMap<Key, Quantity>, String> {
    let known = all.iter().filter_map(|(name, q)| Some((name, q.as_ref()?)));
    known.map(|(name, q)| Ok((quantity(name)?, q.clone()))).collect()
}

fn sum(runs: &Ordered<usize>) -> Result<u64, String> {
    let mut all = 0_u64;
    for (_, n) in runs.iter() {
        all = all.checked_add(*n as u64).ok_or("its outcomes have too many runs")?;
    }
    Ok(all)
}

// Imported reports have reasons for metrics without a definition, too: nothing shows these.
fn texts(all: &Texts) -> BTreeMap<Key, String> {
    all.iter().filter_map(|(name, why)| Some((Key::find(name)?, why.clone()))).collect()
}

fn outcome(word: &str) -> Result<&'static str, String> {
    let known = Outcome::WORDS.into_iter().chain([MISSING]).find(|known| *known == word);
    known.ok_or_else(|| format!("the outcome `{word}` is unknown"))
}

fn outcomes(all: &Ordered<usize>) -> Result<Vec<(&'static str, usize)>, String> {
    all.iter().map(|(word, n)| Ok((outcome(word)?, *n))).collect()
}

fn of_runs(verdict: CellVerdict) -> Verdict {
    match verdict {
        CellVerdict::Valid => Verdict::Valid,
        CellVerdict::Indicative => Verdict::Indicative,
        CellVerdict::Discarded | CellVerdict::OutOfMemory => Verdict::Discarded,
    }
}

fn test(verdict: &str, text: &str, p: Option<f64>, p_adjusted: Option<f64>) -> Option<RatioTest> {
    let verdict = RatioVerdict::find(verdict, text)?;
    Some(RatioTest { p: p.unwrap_or(f64::NAN), p_adjusted: p_adjusted.unwrap_or(f64::NAN), verdict })
}

fn with_all_runs(look: SecondLook, all: &BTreeMap<Key, Quantity>) -> SecondLook {
    let both = |(key, _, without): (Key, Quantity, Quantity)| Some((key, all.get(&key)?.clone(), without));
    SecondLook { quantities: look.quantities.into_iter().filter_map(both).collect(), ..look }
}

fn to_reference(ratio: &PolicyRatioJson) -> RatioToReference {
    let test = ratio.verdict.as_ref().and_then(|verdict| test(verdict, "", ratio.p, ratio.p_adjusted));
    let others = [OrdersNeeded::Unknown, OrdersNeeded::ManyMore, OrdersNeeded::MoreThanAThousand];
    let other = || others.into_iter().find(|needed| verdict_text(test.as_ref(), *needed) == ratio.text);
    let needed = ratio.orders_needed.map(OrdersNeeded::Of).or_else(other).unwrap_or(OrdersNeeded::Unknown);
    RatioToReference { ratio: ratio.ratio.clone(), test, needed }
}
