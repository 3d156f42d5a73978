//! One point of the matrix: the members, and how they share.
//!
//! In: members and a sharing mode. Out: a label that people read and type, a folder name, the stored record. A cell knows nothing of
//! repetitions, order or devices.

mod label;
mod slug;
mod trace;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use collo_store::AfterMeasured;
use collo_store::{CellRecord, MemberSpec, Sharing};
use collo_text::{Diagnostic, Diagnostics};
use serde_json::Value as Json;
pub use trace::{CellTask, CellTrace, ManagerRules, NO_ESTIMATE, Settle};

use crate::observer::{Observe, Observers, Place};
use crate::sharing::{Refusal, SharingMode};
use crate::workload::{RECIPE, Workload, Workloads};

/// The most members that one cell may have.
pub const MOST_MEMBERS: u64 = 256;

/// A workload with its settings: what one process of a group trains.
#[derive(Debug, Clone)]
pub struct Member {
    workload: Arc<Workload>,
    batch_size: Option<u32>,
    settings: BTreeMap<String, Json>,
    /// Workload and every setting in one text: the identity of a member.
    key: String,
    solo: String,
}

impl PartialEq for Member {
    fn eq(&self, other: &Member) -> bool {
        self.key == other.key
    }
}

impl Eq for Member {}

impl Member {
    /// A workload with some settings; the others are its defaults. An unknown setting is an error.
    pub fn new<'a>(workload: &Arc<Workload>, given: impl IntoIterator<Item = (&'a str, Json)>) -> Result<Member, Diagnostic> {
        let given: Vec<(&str, Json)> = given.into_iter().collect();
        let recipe = given.iter().rev().find(|(name, _)| *name == RECIPE).map(|(_, value)| value);
        let mut settings = workload.under(recipe).clone();
        for (name, value) in given {
            if let Some(wrong) = workload.wrong_value(name, &value) {
                return Err(wrong);
            }
            settings.insert(name.to_string(), workload.as_default(name, value));
        }
        let batch_size = settings.remove("batch_size").and_then(|b| b.as_u64()).and_then(|b| u32::try_from(b).ok());
        let key = format!("{} {batch_size:?} {}", workload.name, serde_json::json!(settings));
        let mut member = Member { workload: workload.clone(), batch_size, settings, key, solo: String::new() };
        member.solo = label::of(&[Term { member: Arc::new(member.clone()), count: 1 }], "naive");
        Ok(member)
    }

    pub fn workload(&self) -> &Arc<Workload> {
        &self.workload
    }

    pub fn batch_size(&self) -> Option<u32> {
        self.batch_size
    }

    /// The settings other than the batch size, defaults included.
    pub fn settings(&self) -> &BTreeMap<String, Json> {
        &self.settings
    }

    /// Workload and every setting in one text: equal exactly when two members are.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The label of the cell in which it trains alone.
    pub fn solo(&self) -> &str {
        &self.solo
    }

    /// For how long it answers requests, as it is told; `None` for a member that trains.
    pub fn serving_window(&self) -> Option<&str> {
        self.settings.get("window").and_then(Json::as_str)
    }

    pub fn spec(&self) -> MemberSpec {
        MemberSpec {
            workload: self.workload.name.clone(),
            batch_size: self.batch_size,
            settings: self.settings.clone(),
            solo: self.solo.clone(),
        }
    }

    /// True if a setting differs from the workload's default under the chosen recipe.
    fn differs(&self, name: &str) -> bool {
        let own = if name == RECIPE { &self.workload.settings } else { self.workload.under(self.settings.get(RECIPE)) };
        own.get(name) != self.settings.get(name)
    }
}

/// Copies of one member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    pub member: Arc<Member>,
    pub count: u32,
}

/// One point of the matrix, not yet run.
#[derive(Debug, Clone)]
pub struct Cell {
    terms: Vec<Term>,
    sharing: Arc<dyn SharingMode>,
    after_measured: AfterMeasured,
    kind: CellKind,
}

/// How the members of a cell begin.
#[derive(Debug, Clone, PartialEq)]
enum CellKind {
    /// Together. An observer watches them; `None` where the experiment does not say: then collo samples.
    Group(Option<Observe>),
    /// One after another, as they arrive.
    Trace(Arc<CellTrace>),
}

impl PartialEq for Cell {
    fn eq(&self, other: &Cell) -> bool {
        let alike = self.after_measured == other.after_measured && self.kind == other.kind;
        alike && self.terms == other.terms && self.sharing.label() == other.sharing.label()
    }
}

impl Cell {
    /// A group of at least one member. Unless said otherwise, finished members keep running in a uniform group and exit in a mixed one.
    pub fn new(
        members: impl IntoIterator<Item = (Arc<Member>, u32)>,
        sharing: Arc<dyn SharingMode>,
        after_measured: Option<AfterMeasured>,
    ) -> Cell {
        let mut terms: Vec<Term> = Vec::new();
        for (member, count) in members {
            match terms.iter_mut().find(|term| term.member == member) {
                Some(term) => term.count += count,
                None => terms.push(Term { member, count }),
            }
        }
        terms.sort_by(|a, b| {
            let order = |t: &Term| (t.count, t.member.workload.name.clone(), t.member.batch_size);
            order(a).cmp(&order(b)).then_with(|| a.member.key.cmp(&b.member.key))
        });
        let after_measured =
            after_measured.unwrap_or(if terms.len() == 1 { AfterMeasured::KeepRunning } else { AfterMeasured::Exit });
        Cell { terms, sharing, after_measured, kind: CellKind::Group(None) }
    }

    /// The tasks of a trace under a policy.
    pub fn of_trace(trace: CellTrace, sharing: Arc<dyn SharingMode>) -> Cell {
        let members: Vec<(Arc<Member>, u32)> = trace.tasks.iter().map(|task| (task.member.clone(), 1)).collect();
        Cell { kind: CellKind::Trace(Arc::new(trace)), ..Cell::new(members, sharing, Some(AfterMeasured::Exit)) }
    }

    /// A member alone on the whole device.
    pub fn solo(member: &Arc<Member>, after_measured: Option<AfterMeasured>) -> Cell {
        Cell::new([(member.clone(), 1)], Arc::new(crate::sharing::Naive), after_measured)
    }

    /// A group under another observer, or under none; traces have no observers.
    pub fn observed(self, observe: Option<Observe>) -> Cell {
        match self.kind {
            CellKind::Group(_) => Cell { kind: CellKind::Group(observe), ..self },
            CellKind::Trace(_) => self,
        }
    }

    /// Parse a label as people type it: `tinyx2 naive b32` is accepted.
    pub fn parse(text: &str, workloads: &Workloads) -> Result<Cell, Diagnostics> {
        let observers = Observers::load(&workloads.observers());
        label::parse(text, workloads, &observers)
    }

    /// `tiny×2 naive b32`; of a trace `tiny-12/1 rr naive ×2`.
    pub fn label(&self) -> String {
        let mode = self.sharing.label();
        match &self.kind {
            CellKind::Trace(trace) => trace.label(&mode),
            CellKind::Group(Some(by)) => format!("{} {}", label::of(&self.terms, &mode), by.label()),
            CellKind::Group(None) => label::of(&self.terms, &mode),
        }
    }

    /// `tinyx2_naive_b32~b04e`.
    pub fn slug(&self) -> String {
        slug::of(self, 4)
    }

    /// The slug with more digits of the cell's hash, in case four are not enough.
    pub(crate) fn slug_of(&self, digits: usize) -> String {
        slug::of(self, digits)
    }

    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    pub fn mode(&self) -> &Arc<dyn SharingMode> {
        &self.sharing
    }

    pub fn after_measured(&self) -> AfterMeasured {
        self.after_measured
    }

    /// Its tasks, if it is a trace.
    pub fn trace(&self) -> Option<&Arc<CellTrace>> {
        match &self.kind {
            CellKind::Trace(trace) => Some(trace),
            CellKind::Group(_) => None,
        }
    }

    /// Why its observer cannot watch its members, and the way out: an observer inside a process needs the help of its script.
    pub fn unobservable(&self) -> Option<Refusal> {
        let tool = self.observe()?.tool().filter(|tool| tool.place == Place::Inside)?;
        let foreign = self.members().map(|member| member.workload()).find(|workload| workload.epochs.is_some())?;
        let reason = format!(
            "observer `{}` watches from inside scripts that speak collo's protocol, and `{}` is measured by its output alone",
            tool.name, foreign.name
        );
        Some(Refusal { reason, hint: Some("observers beside the members watch any script: `collo list observers`".into()) })
    }

    /// Who watches its members, if the experiment says so.
    pub fn observe(&self) -> Option<&Observe> {
        match &self.kind {
            CellKind::Group(observe) => observe.as_ref(),
            CellKind::Trace(_) => None,
        }
    }

    pub fn degree(&self) -> u32 {
        self.terms.iter().map(|term| term.count).sum()
    }

    /// One member on the whole device, which others are compared with.
    pub fn is_baseline(&self) -> bool {
        self.observe().is_none() && self.is_alone()
    }

    fn is_alone(&self) -> bool {
        self.trace().is_none() && self.degree() == 1 && self.sharing.family() == "naive"
    }

    /// What others are compared with: a baseline, or a group that nobody watches.
    pub fn is_reference(&self) -> bool {
        self.is_baseline() || self.observe().is_some_and(Observe::is_nobody)
    }

    /// The cells that it is compared with: the same group unwatched, or each member alone; none if it is one of those itself.
    pub fn references(&self, after_measured: Option<AfterMeasured>) -> Vec<Cell> {
        match self.observe() {
            _ if self.is_reference() => Vec::new(),
            Some(_) => vec![self.clone().observed(Some(Observe::nobody()))],
            None => self.terms.iter().map(|term| Cell::solo(&term.member, after_measured)).collect(),
        }
    }

    /// The name by which cells that are compared with it find it: its member, of a group its label.
    pub fn reference_key(&self) -> String {
        if self.is_baseline() { self.terms[0].member.key.clone() } else { self.label() }
    }

    /// The mode's label; `solo` for one member on the whole device.
    pub fn sharing(&self) -> String {
        if self.is_alone() { "solo".into() } else { self.sharing.label() }
    }

    /// All members individually, copies repeated.
    pub fn members(&self) -> impl Iterator<Item = &Arc<Member>> {
        self.terms.iter().flat_map(|term| std::iter::repeat_n(&term.member, term.count as usize))
    }

    /// An axis by name, as `--where` sees it; absent if the members differ.
    pub fn axis(&self, name: &str) -> Option<Json> {
        self.axes().axis(name)
    }

    /// The part of its record that has its axes. The workloads of a trace are by name, not by arrival.
    fn axes(&self) -> CellRecord {
        CellRecord {
            cell: self.label(),
            sharing: self.sharing(),
            degree: self.degree(),
            members: self.terms.iter().map(|term| term.member.spec()).collect(),
            baseline: self.is_reference(),
            after_measured: self.after_measured,
            trace: self.trace().map(|trace| trace.record.clone()),
            observe: self.observe().map(Observe::label),
            ..CellRecord::default()
        }
    }

    /// The cell as it is stored with a plan.
    pub fn record(&self, repetitions: u32) -> CellRecord {
        let members = match &self.kind {
            CellKind::Trace(trace) => trace.tasks.iter().map(|task| task.member.spec()).collect(),
            CellKind::Group(_) => self.members().map(|member| member.spec()).collect(),
        };
        CellRecord {
            slug: self.slug(),
            mode: Sharing::of_label(&self.sharing()),
            members,
            against: self.references(None).iter().map(Cell::label).collect(),
            repetitions,
            ..self.axes()
        }
    }
}

#[cfg(test)]
mod tests;
