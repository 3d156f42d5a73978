//! What is predicted of the members of a plan, before they run.
//!
//! In: a plan, its device, the predictors of the project, stored runs. Out: the claims, as a campaign keeps them; none where no
//! predictor serves the device. What cannot be predicted of a member is absent, with the reason.

mod alone;
mod company;
mod contexts;

use std::collections::BTreeMap;
use std::sync::Arc;

use collo_predict::{
    Basis, Chosen, CompanyPredictor, Description, MemoryPredictor, PredictorFile, PredictorLaw, Target, TargetDevice,
    UtilisationPredictor, choose,
};
use collo_store::{GraphNumbers, Predicted, PredictedMember, PredictedMemory, PredictorRecord, Runs, sha256_text, utc_now};
use collo_text::Diagnostic;

use crate::describe::{Describable, Describer, basis_of};
use alone::AlonePredictor;
use collo_plan::cell::Member;
use collo_plan::earlier::Measured;
use collo_plan::facts::{DeviceFacts, DeviceKind};
use collo_plan::plan::Plan;
pub use collo_plan::plan::published::published_estimate;
use collo_plan::predictors::Predictors;
use collo_plan::project::Project;
use company::Groups;
use contexts::{Context, Contexts};

/// A member, in one way of having a context.
struct Subject<'a> {
    member: &'a Arc<Member>,
    mps: bool,
}

/// The predictor that was chosen, for one way of having a context.
struct Adapted {
    predictor: MemoryPredictor,
    /// How many stored runs its context is from; 0: it is the predictor's.
    context_runs: usize,
}

/// Who predicts what, of those that serve the device.
#[derive(Clone, Copy, Default)]
pub struct ChosenPredictors<'a> {
    pub memory: Option<Chosen<'a, MemoryPredictor>>,
    pub utilisation: Option<Chosen<'a, UtilisationPredictor>>,
    pub company: Option<Chosen<'a, CompanyPredictor>>,
}

impl<'a> ChosenPredictors<'a> {
    /// The nearest of each quantity.
    pub fn of(all: &'a Predictors, target: &Target) -> ChosenPredictors<'a> {
        ChosenPredictors {
            memory: choose(all.memory.iter(), target),
            utilisation: choose(all.utilisation.iter(), target),
            company: choose(all.company.iter(), target),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.memory.is_none() && self.utilisation.is_none() && self.company.is_none()
    }

    /// Whether something is predicted from what members compute, not from what they were measured to do.
    pub fn describe(&self) -> bool {
        self.memory.is_some() || self.utilisation.is_some()
    }
}

/// What is predicted of a plan: of its members, if they can be described, and of its groups.
pub fn predict(
    project: &Project,
    plan: &Plan,
    facts: &DeviceFacts,
    chosen: &ChosenPredictors<'_>,
    describer: Option<&Describer<'_>>,
    measured: &Measured,
    tell: &mut dyn FnMut(usize),
) -> Result<Predicted, Diagnostic> {
    let cards = project.cards();
    let alone = || Some(AlonePredictor { chosen: chosen.utilisation.as_ref()?, peaks: cards.peaks_of(&facts.gpu()?.name)? });
    let members = match describer {
        Some(describer) => members(project, plan, facts, chosen, alone(), describer, tell)?,
        None => Vec::new(),
    };
    let cells = chosen
        .company
        .as_ref()
        .map(|company| Groups { facts, measured, members: &members, company, alone: alone() }.claims(plan));
    Ok(Predicted {
        made_utc: utc_now(),
        predictor: chosen.memory.as_ref().filter(|_| describer.is_some()).map(|chosen| record(chosen.predictor, chosen.widened)),
        utilisation_predictor: chosen
            .utilisation
            .as_ref()
            .filter(|_| describer.is_some() && alone().is_some())
            .map(|chosen| record(chosen.predictor, chosen.widened)),
        company_predictor: chosen.company.as_ref().map(|chosen| record(chosen.predictor, chosen.widened)),
        members,
        cells: cells.unwrap_or_default(),
        // What may run out of memory is known when the cells are planned with this.
        marked: Vec::new(),
    })
}

fn members(
    project: &Project,
    plan: &Plan,
    facts: &DeviceFacts,
    chosen: &ChosenPredictors<'_>,
    alone: Option<AlonePredictor<'_>>,
    describer: &Describer<'_>,
    tell: &mut dyn FnMut(usize),
) -> Result<Vec<PredictedMember>, Diagnostic> {
    let subjects = subjects(plan);
    let contexts = match facts.kind {
        DeviceKind::Cpu => Contexts::default(),
        DeviceKind::Gpu => Contexts::read(&Runs::at(project.runs()), &facts.record(), facts.driver.as_deref()),
    };
    // One description serves every batch size and mode.
    let mut distinct: Vec<(String, &Arc<Member>)> = Vec::new();
    for Subject { member, .. } in &subjects {
        if !distinct.iter().any(|(known, _)| *known == without_batch(member)) {
            distinct.push((without_batch(member), member));
        }
    }
    let describable: Vec<Describable<'_>> = distinct.iter().map(|(_, member)| Describable::Member(member)).collect();
    let answers = describer.all(&describable, &mut |traced| {
        if traced.done == 0 {
            tell(traced.of);
        }
    })?;
    let described: BTreeMap<String, Result<Description, Diagnostic>> =
        distinct.into_iter().map(|(key, _)| key).zip(answers).collect();
    let adapted = |mps: bool| chosen.memory.as_ref().map(|memory| Adapted::of(memory, contexts.of(mps)));
    let (own, of_clients) = (adapted(false), adapted(true));
    let mut members = Vec::new();
    for Subject { member, mps } in subjects {
        let spec = member.spec();
        let mut claim = PredictedMember { solo: spec.solo.clone(), mps, memory: None, alone: None, graph: None, reason: None };
        match (&described[&without_batch(member)], spec.batch_size) {
            (Err(why), _) => claim.reason = Some(in_a_line(why)),
            (Ok(_), None) => claim.reason = Some(format!("workload `{}` has no batch size", spec.workload)),
            (Ok(description), Some(batch)) => {
                let basis = if facts.kind == DeviceKind::Cpu { Basis::Uncached } else { basis_of(member) };
                claim.alone = alone.as_ref().map(|alone| alone.claim(description, u64::from(batch)));
                let adapted = if mps { &of_clients } else { &own };
                match adapted.as_ref().map(|adapted| adapted.said(description, u64::from(batch), basis)) {
                    Some(Ok((memory, graph))) => (claim.memory, claim.graph) = (Some(memory), Some(graph)),
                    Some(Err(why)) => claim.reason = Some(in_a_line(&why)),
                    None => {}
                }
            }
        }
        members.push(claim);
    }
    Ok(members)
}

/// What a description depends on, but for the files.
fn without_batch(member: &Member) -> String {
    let spec = member.spec();
    format!("{} {:?}", spec.workload, spec.settings)
}

/// The members of a plan's cells, each once in each way of having a context.
fn subjects(plan: &Plan) -> Vec<Subject<'_>> {
    let mut subjects: Vec<Subject<'_>> = Vec::new();
    for planned in &plan.cells {
        let mps = planned.record.mode.mps;
        for member in planned.cell.members() {
            if !subjects.iter().any(|known| known.mps == mps && known.member.solo() == member.solo()) {
                subjects.push(Subject { member, mps });
            }
        }
    }
    subjects
}

impl Adapted {
    /// With the context that stored runs have shown, if any has.
    fn of(chosen: &Chosen<'_>, context: Option<Context>) -> Adapted {
        let predictor = chosen.predictor.adapted(chosen.width(), context.map(|context| context.bytes as f64));
        Adapted { predictor, context_runs: context.map_or(0, |context| context.runs) }
    }

    /// The claim about one member at its batch size.
    fn said(&self, description: &Description, batch: u64, basis: Basis) -> Result<(PredictedMemory, GraphNumbers), Diagnostic> {
        let prediction = self.predictor.predict(description, batch, basis)?;
        let footprint = prediction.footprint;
        let memory = PredictedMemory {
            estimate_bytes: footprint.bytes as u64,
            training_bytes: footprint.training_bytes as u64,
            low_bytes: prediction.low_bytes as u64,
            high_bytes: prediction.high_bytes as u64,
            upper_bytes: prediction.upper_bytes as u64,
            least_bytes: prediction.least_bytes as u64,
            context_bytes: self.predictor.law.coefficients.context_bytes as u64,
            context_runs: self.context_runs,
            approximate: footprint.approximate,
        };
        let moved: f64 = description.operations.values().map(|cost| cost.bytes_per_item + cost.fixed_bytes / batch as f64).sum();
        let graph = GraphNumbers {
            parameters: description.parameters,
            parameter_bytes: description.parameter_bytes,
            allocated_bytes: footprint.replayed.allocated_bytes,
            reserved_bytes: footprint.replayed.reserved_bytes,
            workspace_bytes: description.workspace.bytes_at(batch),
            kernels_per_step: description.kernels_per_step,
            flops_per_item: description.forward_flops_per_item,
            bytes_per_item: moved,
            precision: description.precision.clone(),
            optimizer: description.optimizer.clone(),
            torch: description.torch.clone(),
        };
        Ok((memory, graph))
    }
}

/// What is wrong, and why.
fn in_a_line(why: &Diagnostic) -> String {
    let cause = why.cause().and_then(|cause| cause.lines().next());
    cause.map_or_else(|| why.title(), |cause| format!("{}: {cause}", why.title()))
}

fn record<L: PredictorLaw>(predictor: &PredictorFile<L>, widened: f64) -> PredictorRecord {
    PredictorRecord {
        name: predictor.name.clone(),
        sha256: sha256_text(&predictor.to_text()),
        fitted_on: predictor.mark.as_str().into(),
        device: match predictor.conditions.device {
            TargetDevice::Cpu => Some("cpu".into()),
            TargetDevice::Gpu => predictor.conditions.gpu.clone(),
        },
        widened,
        families: predictor.law.families(),
    }
}
