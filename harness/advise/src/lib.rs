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

use std::sync::Arc;

use collo_gpus::mig::GpuModel;
use collo_plan::cell::Member;
use collo_plan::earlier::Measured;
use collo_plan::facts::Gpu;
use collo_plan::predictors::Predictors;
use collo_plan::project::Project;
use collo_plan::sharing::Limits;
use collo_plan::workload::Workloads;
use collo_schedule::{
    Act, CardId, DEFAULT_WINDOW_NS, Decided, Decision, Happened, Ledger, Reading, Rules, SiteCard, Task, TaskId, WHOLE_PERMILLE,
};
use collo_store::DeviceRecord;
use collo_text::{Diagnostic, Diagnostics, quoted, units};
use serde_json::{Value as Json, json};

use self::expected::{Company, Known};
pub use self::question::Question;
use self::question::{AskedTask, SeenCard, SharedBy};

/// What a driver uses of an idle GPU is less; a card without tasks of which more is used has one that was not listed.
const UNLISTED_BYTES: u64 = 1 << 30;
/// The same of SM activity.
const UNLISTED_SM: f64 = 0.05;
/// The moment of the decision. A reading is as much older as its `age_s`.
const NOW_NS: u64 = 1 << 60;

/// A card of the question.
struct Card<'a> {
    seen: &'a SeenCard,
    device: DeviceRecord,
    memory_bytes: u64,
    /// A task is on it that the question does not list.
    is_shared_unlisted: bool,
}

/// What a question is answered from.
pub struct Sources<'a> {
    pub project: &'a Project,
    pub workloads: &'a Workloads,
    pub predictors: &'a Predictors,
    /// What the project's reports have of a device.
    pub measured: &'a dyn Fn(&DeviceRecord) -> Measured,
}

/// The answer to a question.
///
/// # Errors
/// A workload, a policy or a GPU that does not exist, and a GPU whose memory is not known.
pub fn advise(question: &Question, sources: &Sources<'_>) -> Result<Json, Diagnostics> {
    let of_card = |seen| Card::of(sources.project, seen);
    let cards: Vec<Card<'_>> = question.cards.iter().map(of_card).collect::<Result<_, _>>()?;
    // The members of the question's tasks, in their order.
    let members: Vec<Option<Arc<Member>>> =
        question.tasks().map(|task| task.member(sources.workloads)).collect::<Result<_, _>>()?;
    let company = Company::on(sources, cards.iter().map(|card| &card.device));
    let site = Site { question, cards: &cards, members: &members, company: &company };
    Ok(site.advice()?)
}

impl AskedTask {
    /// The member that it is; `None` if it names no workload.
    fn member(&self, workloads: &Workloads) -> Result<Option<Arc<Member>>, Diagnostics> {
        let Some(name) = &self.workload else { return Ok(None) };
        let workload = workloads.find(name)?;
        let given = self.settings.iter().map(|(setting, value)| (setting.as_str(), value.clone()));
        Ok(Some(Arc::new(Member::new(workload, given)?)))
    }
}

impl<'a> Card<'a> {
    fn of(project: &Project, seen: &'a SeenCard) -> Result<Card<'a>, Diagnostics> {
        let own = project.cards();
        // The project's files go before those that come with collo.
        let models = || own.iter().chain(collo_gpus::known());
        let is_product = |model: &&GpuModel| model.product_names.iter().any(|name| collo_gpus::is_same_product(name, &seen.gpu));
        let (name, model) = match (models().find(is_product), models().find(|model| model.name == seen.gpu)) {
            (Some(model), _) => (seen.gpu.clone(), Some(model)),
            (None, Some(model)) => (Gpu::planned(model).name, Some(model)),
            // A GPU that no file describes serves by its name, if its memory is given.
            (None, None) if seen.gpu.contains(' ') => (seen.gpu.clone(), None),
            (None, None) => return Err(own.find(&seen.gpu).err().unwrap_or_default()),
        };
        let memory_bytes = seen.memory_bytes.or_else(|| model?.memory_bytes()).ok_or_else(|| {
            Diagnostic::new(format!("the memory of card {} is not known", quoted(&seen.id))).hint("give its `memory_bytes`")
        })?;
        if seen.free_bytes.is_some_and(|free| free > memory_bytes) {
            let what = format!("card {} has more `free_bytes` than memory, {}", quoted(&seen.id), units::gib(memory_bytes));
            return Err(Diagnostic::new(what).hint("give its `memory_bytes`, as the driver reports it").into());
        }
        let used = seen.free_bytes.map_or(0, |free| memory_bytes - free);
        let is_used = used > seen.reserve_bytes + UNLISTED_BYTES || seen.sm_active_ratio.is_some_and(|sm| sm > UNLISTED_SM);
        Ok(Card {
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
            is_shared_unlisted: seen.tasks.is_empty() && is_used,
            seen,
        })
    }

    fn usable_bytes(&self) -> u64 {
        self.memory_bytes.saturating_sub(self.seen.reserve_bytes)
    }
}

/// The question, with what its names stand for.
struct Site<'a> {
    question: &'a Question,
    cards: &'a [Card<'a>],
    /// Of each task of the question.
    members: &'a [Option<Arc<Member>>],
    company: &'a Company<'a>,
}

impl Site<'_> {
    fn advice(&self) -> Result<Json, Diagnostic> {
        let known: Vec<Known> = self.cards.iter().map(|card| self.known(card, 0)).collect();
        // Of cards of several models, the most that it needs on any.
        let estimate = known.iter().filter_map(|known| known.memory_bytes).max();
        let (label, decided) = self.decide(estimate, known.iter().find_map(|known| known.busy))?;
        let placed: Vec<&Card<'_>> = decided.cards.iter().filter_map(|card| self.cards.get(card.0 as usize)).collect();
        let never = estimate.filter(|bytes| self.cards.iter().all(|card| card.usable_bytes() < *bytes));
        let why = match never {
            Some(bytes) => format!("it needs {}, and no card has as much memory", units::gib(bytes)),
            None => decided.why.clone(),
        };
        let decision = match (decided.outcome, never) {
            (_, Some(_)) | (Decision::Never, _) => "never",
            (Decision::Placed, None) => "place",
            (Decision::Waits, None) => "wait",
        };
        let limit = estimate.and_then(|bytes| limit(bytes, placed.first()?.seen.sharing));
        let seen = |(index, card): (usize, &Card<'_>)| {
            let seen = decided.seen.iter().find(|seen| seen.card.0 as usize == index);
            let too_small = estimate.filter(|bytes| card.usable_bytes() < *bytes);
            let why_not = match too_small {
                Some(bytes) => {
                    Some(format!("the task needs {}, and the card has {}", units::gib(bytes), units::gib(card.usable_bytes())))
                }
                None => seen.and_then(|seen| seen.why_not).map(|why| why.words().to_string()),
            };
            let is_candidate = why_not.is_none() && seen.is_some_and(|seen| seen.candidate);
            let expected = if is_candidate { self.expected(index) } else { Json::Null };
            json!({"id": card.seen.id, "node": card.seen.node, "candidate": is_candidate, "why_not": why_not,
                "free_bytes": seen.map(|seen| seen.free_bytes), "promised_bytes": seen.map(|seen| seen.promised_bytes),
                "tasks": card.seen.tasks.len(), "unlisted_task": card.is_shared_unlisted, "expected": expected})
        };
        let from = |is_given: bool| if is_given { "given" } else { "measured" };
        Ok(json!({
            "schema": 1,
            "decision": decision,
            "cards": placed.iter().map(|card| &card.seen.id).collect::<Vec<_>>(),
            "node": placed.first().and_then(|card| card.seen.node.as_ref()),
            "sharing": placed.first().map(|card| card.seen.sharing.as_str()),
            "limit": limit,
            "expected": match &decided.cards[..] {
                [card] => self.expected(card.0 as usize),
                [] => Json::Null,
                _ => expected::none("of a task on several cards nothing is predicted"),
            },
            "why": why,
            "policy": label,
            "task": {"memory_bytes": estimate, "memory_from": estimate.map(|_| from(self.question.task.memory_bytes.is_some()))},
            "seen": self.cards.iter().enumerate().map(seen).collect::<Vec<_>>(),
        }))
    }

    /// What is known of a task on the model of a card.
    fn known(&self, card: &Card<'_>, task: usize) -> Known {
        let asked = self.question.tasks().nth(task).unwrap_or(&self.question.task);
        self.company.known(&card.device, asked, self.members.get(task).and_then(Option::as_ref))
    }

    /// The place in the question of the first task that runs on a card.
    fn first_on(&self, card: usize) -> usize {
        1 + self.cards[..card].iter().map(|card| card.seen.tasks.len()).sum::<usize>()
    }

    /// The label of the policy, and the ledger's decision about the task.
    fn decide(&self, estimate: Option<u64>, busy: Option<f64>) -> Result<(String, Decided), Diagnostic> {
        // A node is known by its first card.
        let node_of =
            |card: &Card<'_>| self.cards.iter().position(|first| first.seen.node == card.seen.node).unwrap_or_default() as u32;
        let site = |card: &Card<'_>| SiteCard {
            capacity_bytes: card.memory_bytes,
            reserve_bytes: card.seen.reserve_bytes,
            node: node_of(card),
        };
        let mut rules = Rules::of(self.question.policy.clone(), self.cards.iter().map(site).collect());
        rules.window_ns = self.question.window_s.map_or(DEFAULT_WINDOW_NS, |s| (s * 1e9) as u64).max(1);
        let mut ledger = Ledger::open(&rules)?;
        let mut acts: Vec<Act> = Vec::new();
        let mut id = 0;
        let mut task = |estimate_bytes: Option<u64>, busy: Option<f64>, cards: u32| {
            id += 1;
            let believed_permille = busy.map(permille);
            Task { id: TaskId(id), arrives_ns: 0, cards, estimate_bytes, believed_permille }
        };
        for (index, card) in (0..).zip(self.cards) {
            let first = self.first_on(index as usize);
            for place in first..first + card.seen.tasks.len() {
                let known = self.known(card, place);
                ledger.adopt(task(known.memory_bytes, known.busy, 1), vec![CardId(index)], None);
            }
            if card.is_shared_unlisted {
                ledger.adopt(task(None, None, 1), vec![CardId(index)], None);
            }
        }
        for (index, card) in (0..).zip(self.cards) {
            if estimate.is_some_and(|bytes| card.usable_bytes() < bytes) {
                ledger.book(Happened::CardLost(CardId(index)), NOW_NS, &mut acts);
                continue;
            }
            let seen = card.seen;
            let reading = Reading {
                free_bytes: seen.free_bytes,
                sm_permille: seen.sm_active_ratio.map(permille),
                occupancy_permille: seen.sm_occupancy_ratio.map(permille),
                dram_permille: seen.dram_active_ratio.map(permille),
                read_ns: NOW_NS.saturating_sub((seen.age_s * 1e9) as u64),
            };
            if reading != (Reading { read_ns: reading.read_ns, ..Reading::default() }) {
                ledger.book(Happened::Read(CardId(index), reading), NOW_NS, &mut acts);
            }
        }
        let newcomer = task(estimate, busy, self.question.task.cards);
        let id = newcomer.id;
        ledger.on(Happened::Arrived(newcomer), NOW_NS, &mut acts);
        let label = ledger.policy();
        let decided = ledger.take_decided().into_iter().rfind(|decided| decided.task == id);
        // A task that has arrived is placed, is refused, or waits for a reason.
        decided
            .map(|decided| (label, decided))
            .ok_or_else(|| Diagnostic::new("the policy has not decided about the task").of_machine())
    }

    /// What sharing this card costs the task and those that run on it.
    fn expected(&self, index: usize) -> Json {
        let card = &self.cards[index];
        if card.is_shared_unlisted {
            return expected::none("a task that is not listed is on the card");
        }
        let first = self.first_on(index);
        let places = std::iter::once(0).chain(first..first + card.seen.tasks.len());
        let tasks: Vec<(&AskedTask, Option<&Arc<Member>>)> =
            places.filter_map(|place| Some((self.question.tasks().nth(place)?, self.members.get(place)?.as_ref()))).collect();
        self.company.expected(&card.device, card.seen.sharing, &tasks)
    }
}

fn permille(ratio: f64) -> u32 {
    (ratio * f64::from(WHOLE_PERMILLE)).round() as u32
}

/// What keeps the task within what it was given; only MPS enforces it.
fn limit(bytes: u64, sharing: SharedBy) -> Option<Json> {
    let limits = Limits { memory_bytes: Some(bytes), ..Limits::default() };
    let environment = |devices| limits.environment(devices).into_iter().map(|(name, value)| (name.to_string(), json!(value)));
    match sharing {
        SharedBy::Naive => None,
        SharedBy::Mps => Some(json!({"memory_bytes": bytes, "environment": environment(1).collect::<serde_json::Map<_, _>>()})),
    }
}
