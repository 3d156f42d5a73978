//! From an experiment to its cells.
//!
//! In: an experiment, and optionally a selection. Out: the cells in the order of the experiment, each once, every solo baseline
//! before the first cell that needs it. It does not check which cells the device can run.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use collo_store::{AfterMeasured, TraceCell};
use collo_text::{Diagnostic, nearest};
use serde_json::Value as Json;

use crate::cell::{Cell, CellTrace, Member, NO_ESTIMATE};
use crate::experiment::{Axes, CORE_SETS, Experiment, Sharing, TracePlan};
use crate::observer::Observe;
use crate::select::Selection;
use crate::workload::Workload;

/// Maximum number of cells in a plan.
pub const MOST_CELLS: usize = 100_000;
/// Maximum number of tasks in all traces of a plan: each is a member that is planned, started and stored.
pub const MOST_TASKS: usize = 100_000;
/// Maximum number of combinations searched for the selected ones.
const MOST_CANDIDATES: usize = 5_000_000;

/// A cell of a plan, and whether it was requested.
#[derive(Debug, Clone, PartialEq)]
pub struct Expanded {
    pub cell: Cell,
    /// False for a baseline that is included only because others are compared with it.
    pub asked: bool,
}

/// The cells of an experiment, or those matching `selection` with the baselines that they need.
pub fn expand(experiment: &Experiment, selection: Option<&Selection>) -> Result<Vec<Expanded>, Diagnostic> {
    if let Some(selection) = selection {
        selection.check(&settings(experiment))?;
    }
    if let Some(trace) = &experiment.trace {
        return traces(experiment, trace, selection);
    }
    let candidates = size(&experiment.axes);
    if candidates > if selection.is_some() { MOST_CANDIDATES } else { MOST_CELLS } {
        let hint = if candidates > MOST_CANDIDATES {
            "shorten an axis"
        } else {
            "select some, as in `--where 'degree <= 7'`, or shorten an axis"
        };
        return Err(
            Diagnostic::new(format!("{candidates} cells ({}) are more than {MOST_CELLS}", product(&experiment.axes))).hint(hint)
        );
    }
    let mut expansion =
        Expansion { experiment, selection, cells: Vec::new(), places: HashMap::new(), after_measured: HashMap::new() };
    matrix(&experiment.axes, |member, sharing, degree, observe| {
        let cell = Cell::new([(member.clone(), degree)], sharing.mode.clone(), experiment.after_measured);
        expansion.add(cell.observed(observe.cloned()))
    })?;
    // Groups are watched as the matrix is.
    let watched = experiment.axes.observed();
    for group in &experiment.groups {
        for sharing in &group.sharing {
            let cells: Vec<Cell> = if sharing.solo {
                group.members.iter().map(|(member, _)| Cell::solo(member, experiment.after_measured)).collect()
            } else {
                let after_measured = group.after_measured.or(experiment.after_measured);
                vec![Cell::new(group.members.iter().cloned(), sharing.mode.clone(), after_measured)]
            };
            for observe in &watched {
                cells.iter().try_for_each(|cell| expansion.add(cell.clone().observed(observe.clone())))?;
            }
        }
    }
    if selection.is_none() && !experiment.search {
        references(experiment, &expansion.cells)?;
    }
    Ok(expansion.cells)
}

/// The cells of a trace: each order under each combination of policy, estimate and sharing. The members of all tasks alone come first.
fn traces(experiment: &Experiment, trace: &TracePlan, selection: Option<&Selection>) -> Result<Vec<Expanded>, Diagnostic> {
    let mut expansion =
        Expansion { experiment, selection, cells: Vec::new(), places: HashMap::new(), after_measured: HashMap::new() };
    let dimensions = Dimension::all(&experiment.axes);
    let mut planned = 0;
    for (order, tasks) in &trace.orders {
        combine(&dimensions, &Step::default(), &mut |step| {
            let Some(sharing) = step.sharing else { return Ok(()) };
            let record = TraceCell {
                trace: trace.name.clone(),
                order: *order,
                policy: step.policy.unwrap_or("exclusive").into(),
                estimate: step.estimate.unwrap_or(NO_ESTIMATE).into(),
                scale: trace.scale,
                cards: trace.cards.unwrap_or(CORE_SETS),
                tasks: tasks.len() as u32,
            };
            let cell = CellTrace { record, tasks: tasks.clone(), manager: trace.manager.clone() };
            let before = expansion.cells.len();
            expansion.add(Cell::of_trace(cell, sharing.mode.clone()))?;
            planned += if expansion.cells.len() > before { tasks.len() } else { 0 };
            check_tasks(planned, tasks.len())
        })?;
    }
    let (solos, traces) = expansion.cells.into_iter().partition::<Vec<_>, _>(|expanded| expanded.cell.trace().is_none());
    Ok(solos.into_iter().chain(traces).collect())
}

/// So many tasks in all traces, of which one has so many.
fn check_tasks(all: usize, of_one: usize) -> Result<(), Diagnostic> {
    if all <= MOST_TASKS {
        return Ok(());
    }
    let what = format!("traces of {of_one} tasks each are more than the {MOST_TASKS} tasks that a plan can have");
    let window = "play a window of the trace: `collo trace make NAME --window 4h`";
    Err(Diagnostic::new(what).hint(match of_one > MOST_TASKS {
        true => window.into(),
        false => format!("select some, as in `--where 'order == 1'`; or {window}"),
    }))
}

/// A reference of a cell that no plan has would never be compared with anything.
fn references(experiment: &Experiment, cells: &[Expanded]) -> Result<(), Diagnostic> {
    if experiment.references.is_empty() {
        return Ok(());
    }
    let labels: Vec<String> = cells.iter().map(|c| c.cell.label()).collect();
    match experiment.references.iter().find(|r| !labels.contains(&r.cell)) {
        Some(r) => {
            let wrong = Diagnostic::new(format!("a `[[reference]]` is about `{}`, which is no cell of this experiment", r.cell));
            Err(match nearest(&r.cell, labels.iter().map(String::as_str)) {
                Some(meant) => wrong.hint(format!("did you mean `{meant}`?")),
                None => wrong.hint(format!("all: `collo plan {}`, once it is left out", experiment.name)),
            })
        }
        None => Ok(()),
    }
}

/// The names of all settings that some cell of the experiment has.
fn settings(experiment: &Experiment) -> BTreeSet<String> {
    let grouped = experiment.groups.iter().flat_map(|group| group.members.iter().map(|(member, _)| member.workload()));
    let tasks = experiment.trace.iter().flat_map(TracePlan::workloads);
    let own = experiment.trace.as_ref().map(|_| TraceCell::AXES).unwrap_or_default();
    let all = experiment.axes.workloads().chain(grouped).chain(tasks).flat_map(|workload| workload.settings.keys().cloned());
    all.chain(own.iter().map(|axis| axis.to_string())).collect()
}

/// What one step along an axis gives, or along several that step together.
#[derive(Clone, Default)]
struct Step<'a> {
    workload: Option<&'a Arc<Workload>>,
    settings: Vec<(&'a str, Json)>,
    sharing: Option<&'a Sharing>,
    degree: Option<u32>,
    observe: Option<&'a Observe>,
    policy: Option<&'a str>,
    estimate: Option<&'a str>,
}

/// An axis, or several that step together.
struct Dimension<'a> {
    name: String,
    /// Its place among the others.
    rank: usize,
    steps: Vec<Step<'a>>,
}

impl<'a> Dimension<'a> {
    /// One for each axis.
    fn each(axes: &'a Axes) -> Vec<Dimension<'a>> {
        let workload = axes.workload.iter().map(|w| Step { workload: Some(w), ..Step::default() }).collect();
        let batch_size = setting("batch_size", axes.batch_size.iter().map(|b| Json::from(*b)));
        let settings = axes.settings.iter().map(|(name, values)| (name.as_str(), 2, setting(name, values.iter().cloned())));
        let sharing = axes.sharing.iter().map(|s| Step { sharing: Some(s), ..Step::default() }).collect();
        let degree = axes.degree.iter().map(|d| Step { degree: Some(*d), ..Step::default() }).collect();
        let observe = axes.observe.iter().map(|o| Step { observe: Some(o), ..Step::default() }).collect();
        let policy = axes.policy.iter().map(|p| Step { policy: Some(p), ..Step::default() }).collect();
        let estimate = axes.estimate.iter().map(|e| Step { estimate: Some(e), ..Step::default() }).collect();
        let all = [("workload", 0, workload), ("batch_size", 1, batch_size)];
        let all = all.into_iter().chain(settings).chain([("policy", 2, policy), ("estimate", 2, estimate)]);
        let all = all.chain([("sharing", 3, sharing), ("degree", 4, degree), ("observe", 5, observe)]);
        let all = all.filter(|(.., steps): &(_, _, Vec<Step<'_>>)| !steps.is_empty());
        all.map(|(name, rank, steps)| Dimension { name: name.into(), rank, steps }).collect()
    }

    /// The axes of a zip, which step together.
    fn zipped(zip: &'a Axes) -> Option<Dimension<'a>> {
        Dimension::each(zip).into_iter().reduce(|a, b| Dimension {
            name: format!("{}+{}", a.name, b.name),
            rank: a.rank.min(b.rank),
            steps: a.steps.iter().zip(&b.steps).map(|(a, b)| a.with(b)).collect(),
        })
    }

    /// All of a matrix, in the order of nesting.
    fn all(axes: &'a Axes) -> Vec<Dimension<'a>> {
        let mut all = Dimension::each(axes);
        all.extend(axes.zips.iter().filter_map(Dimension::zipped));
        all.sort_by_key(|dimension| dimension.rank);
        all
    }
}

impl<'a> Step<'a> {
    fn with(&self, more: &Step<'a>) -> Step<'a> {
        Step {
            workload: more.workload.or(self.workload),
            settings: [&self.settings[..], &more.settings[..]].concat(),
            sharing: more.sharing.or(self.sharing),
            degree: more.degree.or(self.degree),
            observe: more.observe.or(self.observe),
            policy: more.policy.or(self.policy),
            estimate: more.estimate.or(self.estimate),
        }
    }
}

fn setting<'a>(name: &'a str, values: impl Iterator<Item = Json>) -> Vec<Step<'a>> {
    values.map(|value| Step { settings: vec![(name, value)], ..Step::default() }).collect()
}

fn size(axes: &Axes) -> usize {
    if axes.workloads().next().is_none() {
        return 0;
    }
    Dimension::all(axes).iter().fold(1usize, |product, dimension| product.saturating_mul(dimension.steps.len()))
}

/// `6 workload × 5 batch_size`.
fn product(axes: &Axes) -> String {
    let all = Dimension::all(axes);
    let factors = all.iter().filter(|dimension| dimension.steps.len() > 1);
    factors.map(|dimension| format!("{} {}", dimension.steps.len(), dimension.name)).collect::<Vec<_>>().join(" × ")
}

/// Call `each` for every combination of the axes; workload varies slowest, degree fastest.
fn matrix(
    axes: &Axes,
    mut each: impl FnMut(&Arc<Member>, &Sharing, u32, Option<&Observe>) -> Result<(), Diagnostic>,
) -> Result<(), Diagnostic> {
    let mut last: Option<(Step<'_>, Arc<Member>)> = None;
    combine(&Dimension::all(axes), &Step::default(), &mut |step| {
        let (Some(workload), Some(sharing)) = (step.workload, step.sharing) else { return Ok(()) };
        let same = |(before, _): &&(Step<'_>, Arc<Member>)| {
            before.workload.is_some_and(|w| Arc::ptr_eq(w, workload)) && before.settings == step.settings
        };
        let member = match last.as_ref().filter(same) {
            Some((_, member)) => member.clone(),
            None => Arc::new(Member::new(workload, step.settings.clone())?),
        };
        last = Some((step.clone(), member.clone()));
        each(&member, sharing, if sharing.solo { 1 } else { step.degree.unwrap_or(1) }, step.observe)
    })
}

fn combine<'a>(
    left: &[Dimension<'a>],
    so_far: &Step<'a>,
    each: &mut impl FnMut(&Step<'a>) -> Result<(), Diagnostic>,
) -> Result<(), Diagnostic> {
    let Some((dimension, left)) = left.split_first() else { return each(so_far) };
    for step in &dimension.steps {
        combine(left, &so_far.with(step), each)?;
        // A single member has one degree, whatever the axis.
        if dimension.name == "degree" && so_far.sharing.is_some_and(|sharing| sharing.solo) {
            break;
        }
    }
    Ok(())
}

struct Expansion<'a> {
    experiment: &'a Experiment,
    selection: Option<&'a Selection>,
    cells: Vec<Expanded>,
    /// Index of the baseline of each member.
    places: HashMap<String, usize>,
    /// What finished members do, by label of the cell, to notice the same cell with another choice.
    after_measured: HashMap<String, AfterMeasured>,
}

impl Expansion<'_> {
    fn add(&mut self, cell: Cell) -> Result<(), Diagnostic> {
        if self.experiment.exclude.iter().any(|exclusion| exclusion.holds(&|axis| cell.axis(axis))) {
            return Ok(());
        }
        // The baselines come into being with the first cell that they serve, so a selection may mean them alone.
        let selected = self.selects(&cell);
        for solo in cell.references(self.experiment.after_measured) {
            let asked = self.selection.is_some() && self.selects(&solo);
            if selected || asked {
                self.baseline(solo, asked);
            }
        }
        if !selected {
            return Ok(());
        }
        if cell.is_reference() {
            self.baseline(cell, true);
            return self.check_room();
        }
        match self.after_measured.insert(cell.label(), cell.after_measured()) {
            Some(after) if after != cell.after_measured() => {
                return Err(Diagnostic::new(format!(
                    "cell `{}` is requested with `after_measured` both `keep-running` and `exit`",
                    cell.label()
                ))
                .hint("leave one out: both would have the same name"));
            }
            Some(_) => {}
            None => self.cells.push(Expanded { cell, asked: true }),
        }
        self.check_room()
    }

    fn selects(&self, cell: &Cell) -> bool {
        self.selection.is_none_or(|selection| selection.holds(&|axis| cell.axis(axis)))
    }

    fn baseline(&mut self, solo: Cell, asked: bool) {
        let key = solo.reference_key();
        match self.places.get(&key) {
            Some(place) => self.cells[*place].asked |= asked,
            None => {
                self.places.insert(key, self.cells.len());
                self.cells.push(Expanded { cell: solo, asked });
            }
        }
    }

    fn check_room(&self) -> Result<(), Diagnostic> {
        if self.cells.len() <= MOST_CELLS {
            return Ok(());
        }
        Err(Diagnostic::new(format!("more than {MOST_CELLS} cells are selected"))
            .hint("select fewer, as in `--where 'degree <= 7'`"))
    }
}

#[cfg(test)]
mod tests;
