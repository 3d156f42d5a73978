//! Where one task should go, of the GPUs as a scheduler sees them: what `collo advise` answers.
//!
//! ```text
//! question (JSON) ──▶ task, GPUs with their tasks ──▶ Ledger of `schedule` ──▶ decision ──┐
//! reports of the project, predictors of company ──▶ expected slowdowns ──────────────────┴──▶ answer (JSON)
//! ```
//!
//! The decision is the ledger's, under its policy; what sharing is expected to cost is no part of it. Nothing is started, changed, stored or
//! printed.
//!
//! To add something that is known of a GPU or a task: a field in `question.rs`, its use in `Site::decide`, a row in the guide.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod expected;
mod question;

use std::collections::BTreeMap;
use std::sync::Arc;

use collo_gpus::mig::Cards;
use collo_plan::cell::Member;
use collo_plan::earlier::Measured;
use collo_plan::facts::{Gpu, Unlisted};
use collo_plan::predictors::Predictors;
use collo_plan::project::Project;
use collo_plan::sharing::Limits;
use collo_plan::workload::Workloads;
use collo_schedule::policy::{self, Estimate};
use collo_schedule::{
    Act, CardId, DEFAULT_WINDOW_NS, Decided, Decision, Happened, Ledger, Reading, Rules, Seen, SiteCard, Task, TaskId,
    WHOLE_PERMILLE,
};
use collo_store::DeviceRecord;
use collo_text::{Diagnostic, Diagnostics, quoted, units};
use serde_json::{Value as Json, json};

use self::expected::{Company, Known};
pub use self::question::Question;
use self::question::{AskedTask, SeenCard, SharedBy};

/// The moment of the decision. A reading is as much older as its `age_s`.
const NOW_NS: u64 = 1 << 60;

/// What a question is answered from.
pub struct Sources<'a> {
    pub project: &'a Project,
    pub workloads: &'a Workloads,
    pub predictors: &'a Predictors,
    /// What the project's reports have of a device.
    pub measured: &'a dyn Fn(&DeviceRecord) -> Measured,
}

/// A task of the question.
struct Asked<'a> {
    task: &'a AskedTask,
    /// Absent if it names no workload.
    member: Option<Arc<Member>>,
}

/// A card of the question.
struct Card<'a> {
    seen: &'a SeenCard,
    device: DeviceRecord,
    memory_bytes: u64,
    tasks: Vec<Asked<'a>>,
    /// A task is on it that the question does not list.
    is_shared_unlisted: bool,
}

/// The question, with what its names stand for.
struct Site<'a> {
    question: &'a Question,
    task: Asked<'a>,
    cards: Vec<Card<'a>>,
    company: Company<'a>,
}

/// The answer to a question.
///
/// # Errors
/// A workload, a policy or a GPU that does not exist, a GPU whose memory is not known, and a policy that needs an estimate of the task's
/// memory where there is none.
pub fn advise(question: &Question, sources: &Sources<'_>) -> Result<Json, Diagnostics> {
    let models = sources.project.cards();
    let task = Asked::of(&question.task, sources.workloads)?;
    let card = |seen| Card::of(&models, sources.workloads, seen);
    let cards: Vec<Card<'_>> = question.cards.iter().map(card).collect::<Result<_, _>>()?;
    let company = Company::on(sources, cards.iter().map(|card| &card.device));
    Ok(Site { question, task, cards, company }.advice()?)
}

impl<'a> Asked<'a> {
    fn of(task: &'a AskedTask, workloads: &Workloads) -> Result<Asked<'a>, Diagnostics> {
        let Some(name) = &task.workload else { return Ok(Asked { task, member: None }) };
        let given = task.settings.iter().map(|(setting, value)| (setting.as_str(), value.clone()));
        Ok(Asked { task, member: Some(Arc::new(Member::new(workloads.find(name)?, given)?)) })
    }
}

impl<'a> Card<'a> {
    fn of(models: &Cards, workloads: &Workloads, seen: &'a SeenCard) -> Result<Card<'a>, Diagnostics> {
        let (name, model) = match models.of_product(&seen.gpu) {
            Some((model, product)) => (product.to_string(), Some(model)),
            // A GPU that no file describes serves by its name, if its memory is given.
            None if seen.gpu.contains(' ') => (seen.gpu.clone(), None),
            None => {
                let model = models.find(&seen.gpu)?;
                (Gpu::planned(model).name, Some(model))
            }
        };
        let memory_bytes = seen.memory_bytes.or_else(|| model?.memory_bytes()).ok_or_else(|| {
            Diagnostic::new(format!("the memory of card {} is not known", quoted(&seen.id))).hint("give its `memory_bytes`")
        })?;
        if seen.free_bytes.is_some_and(|free| free > memory_bytes) {
            let what = format!("card {} has more `free_bytes` than memory, {}", quoted(&seen.id), units::gib(memory_bytes));
            return Err(Diagnostic::new(what).hint("give its `memory_bytes`, as the driver reports it").into());
        }
        let used_bytes = seen.free_bytes.map_or(0, |free| memory_bytes - free).saturating_sub(seen.reserve_bytes);
        let busy_percent = seen.sm_active_ratio.unwrap_or(0.0) * 100.0;
        let is_used = used_bytes > Unlisted::LEAST_BYTES || busy_percent >= f64::from(Unlisted::LEAST_BUSY_PERCENT);
        Ok(Card {
            seen,
            device: DeviceRecord {
                name,
                kind: "gpu".into(),
                simulated: seen.simulated,
                memory_bytes: Some(memory_bytes),
                cores: None,
                quota_cores: None,
                persistence: None,
            },
            memory_bytes,
            tasks: seen.tasks.iter().map(|task| Asked::of(task, workloads)).collect::<Result<_, _>>()?,
            is_shared_unlisted: seen.tasks.is_empty() && is_used,
        })
    }

    fn usable_bytes(&self) -> u64 {
        self.memory_bytes.saturating_sub(self.seen.reserve_bytes)
    }

    /// What was read of it; absent if nothing was.
    fn reading(&self) -> Option<Reading> {
        let seen = self.seen;
        let values = Reading {
            free_bytes: seen.free_bytes,
            sm_permille: seen.sm_active_ratio.map(permille),
            occupancy_permille: seen.sm_occupancy_ratio.map(permille),
            dram_permille: seen.dram_active_ratio.map(permille),
            read_ns: 0,
        };
        let read_ns = NOW_NS.saturating_sub((seen.age_s * 1e9) as u64);
        (values != Reading::default()).then_some(Reading { read_ns, ..values })
    }
}

impl Site<'_> {
    fn advice(&self) -> Result<Json, Diagnostic> {
        let known: Vec<Known> = self.cards.iter().map(|card| self.company.known(&card.device, &self.task)).collect();
        // Of cards of several models, the most that it needs on any.
        let estimate = known.iter().filter_map(|known| known.memory_bytes).max();
        let (label, decided) = self.decide(estimate, known.iter().find_map(|known| known.busy))?;
        let placed: Vec<&Card<'_>> = decided.cards.iter().filter_map(|card| self.cards.get(card.0 as usize)).collect();
        let never = estimate.filter(|bytes| self.cards.iter().all(|card| card.usable_bytes() < *bytes));
        let (decision, why) = match (decided.outcome, never) {
            (_, Some(bytes)) => ("never", format!("it needs {}, and no card has as much memory", units::gib(bytes))),
            (Decision::Never, None) => ("never", decided.why),
            (Decision::Placed, None) => ("place", decided.why),
            (Decision::Waits, None) => ("wait", decided.why),
        };
        // The ledger lists every card in their order.
        let seen = |(card, seen): (&Card<'_>, &Seen)| {
            let too_small = estimate.filter(|bytes| card.usable_bytes() < *bytes);
            let why_not = match too_small {
                Some(bytes) => {
                    Some(format!("the task needs {}, and the card has {}", units::gib(bytes), units::gib(card.usable_bytes())))
                }
                None => seen.why_not.map(|why| why.words().to_string()),
            };
            let is_candidate = seen.candidate && why_not.is_none();
            json!({"id": card.seen.id, "node": card.seen.node, "candidate": is_candidate, "why_not": why_not,
                "free_bytes": seen.free_bytes, "promised_bytes": seen.promised_bytes, "tasks": card.tasks.len(),
                "unlisted_task": card.is_shared_unlisted, "expected": is_candidate.then(|| self.expected(card))})
        };
        let from = if self.question.task.memory_bytes.is_some() { "given" } else { "measured" };
        Ok(json!({
            "schema": 1,
            "decision": decision,
            "cards": placed.iter().map(|card| &card.seen.id).collect::<Vec<_>>(),
            "node": placed.first().and_then(|card| card.seen.node.as_ref()),
            "sharing": placed.first().map(|card| card.seen.sharing.as_str()),
            "limit": estimate.and_then(|bytes| limit(bytes, &placed)),
            "expected": match &placed[..] {
                [card] => self.expected(card),
                [] => Json::Null,
                _ => expected::none("of a task on several cards nothing is predicted"),
            },
            "why": why,
            "policy": label,
            "task": {"memory_bytes": estimate, "memory_from": estimate.map(|_| from)},
            "seen": self.cards.iter().zip(&decided.seen).map(seen).collect::<Vec<_>>(),
        }))
    }

    /// The label of the policy, and the ledger's decision about the task.
    fn decide(&self, estimate: Option<u64>, busy: Option<f64>) -> Result<(String, Decided), Diagnostic> {
        let policy = policy::parse(&self.question.policy)?;
        if policy.needs().estimate == Estimate::Required && estimate.is_none() {
            let what = format!("the policy {} decides by the memory of the task, which is not known", quoted(&policy.label()));
            return Err(Diagnostic::new(what).hint("give its `memory_bytes`, or measure its workload alone: `collo run`"));
        }
        let mut nodes: BTreeMap<Option<&str>, u32> = BTreeMap::new();
        let mut site = Vec::new();
        for card in &self.cards {
            let next = nodes.len() as u32;
            let node = *nodes.entry(card.seen.node.as_deref()).or_insert(next);
            site.push(SiteCard { capacity_bytes: card.memory_bytes, reserve_bytes: card.seen.reserve_bytes, node });
        }
        let mut rules = Rules::of(policy.label(), site);
        rules.window_ns = self.question.window_s.map_or(DEFAULT_WINDOW_NS, |s| (s * 1e9) as u64).max(1);
        let mut ledger = Ledger::open(&rules)?;
        let mut acts: Vec<Act> = Vec::new();
        let mut id = 0;
        let mut task = |estimate_bytes: Option<u64>, busy: Option<f64>, cards: u32| {
            id += 1;
            Task { id: TaskId(id), arrives_ns: 0, cards, estimate_bytes, believed_permille: busy.map(permille) }
        };
        for (index, card) in (0..).zip(&self.cards) {
            for asked in &card.tasks {
                let known = self.company.known(&card.device, asked);
                ledger.adopt(task(known.memory_bytes, known.busy, 1), vec![CardId(index)], None);
            }
            if card.is_shared_unlisted {
                ledger.adopt(task(None, None, 1), vec![CardId(index)], None);
            }
        }
        for (index, card) in (0..).zip(&self.cards) {
            // The ledger gives an idle card to any task; one that is too small is no candidate here.
            if estimate.is_some_and(|bytes| card.usable_bytes() < bytes) {
                ledger.book(Happened::CardLost(CardId(index)), NOW_NS, &mut acts);
            } else if let Some(reading) = card.reading() {
                ledger.book(Happened::Read(CardId(index), reading), NOW_NS, &mut acts);
            }
        }
        let newcomer = task(estimate, busy, self.question.task.cards);
        let id = newcomer.id;
        ledger.on(Happened::Arrived(newcomer), NOW_NS, &mut acts);
        let decided = ledger.take_decided().into_iter().rfind(|decided| decided.task == id);
        // A task that has arrived is placed, is refused, or waits for a reason.
        decided
            .map(|decided| (rules.policy, decided))
            .ok_or_else(|| Diagnostic::new("the policy has not decided about the task").of_machine())
    }

    /// What sharing this card costs the task and those that run on it.
    fn expected(&self, card: &Card<'_>) -> Json {
        if card.is_shared_unlisted {
            return expected::none("a task that is not listed is on the card");
        }
        let tasks: Vec<&Asked<'_>> = std::iter::once(&self.task).chain(&card.tasks).collect();
        self.company.expected(&card.device, card.seen.sharing, &tasks)
    }
}

fn permille(ratio: f64) -> u32 {
    (ratio * f64::from(WHOLE_PERMILLE)).round() as u32
}

/// What keeps the task within what is set aside for it, in whole MiB, as MPS counts; only MPS enforces it.
fn limit(bytes: u64, placed: &[&Card<'_>]) -> Option<Json> {
    placed.first().filter(|card| card.seen.sharing == SharedBy::Mps)?;
    let bytes = bytes.div_ceil(1 << 20) << 20;
    let limits = Limits { memory_bytes: Some(bytes), ..Limits::default() };
    let variables = limits.environment(placed.len() as u32).into_iter();
    let environment: serde_json::Map<String, Json> = variables.map(|(name, value)| (name.into(), value.into())).collect();
    Some(json!({"memory_bytes": bytes, "environment": environment}))
}
