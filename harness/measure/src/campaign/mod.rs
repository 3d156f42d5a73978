//! A whole campaign: open or continue it, measure what is missing, in order, and leave it complete or resumable.

mod attempts;
mod caught;
mod cooldown;
mod depends;
mod execution;
mod failures;
mod leased;
mod resume;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use collo_store::{Campaign, CampaignFolder, Ingredient, Outcome, PlannedRun, Runs, SCHEMA, Shard, StoredRun, utc_now};
use collo_text::{Diagnostic, PROCESS_LIMIT};

use crate::error::RunError;
use crate::events::{Event, Watcher};
use crate::run::RunContext;
use crate::stage::Consent;
use collo_launch::interrupt::Interrupts;
use collo_plan::facts::{DeviceFacts, Gpu};
use collo_plan::plan::Plan;
use collo_plan::select::Selection;
use collo_prepare::commands::MemberCommands;
use collo_prepare::data::Prepared;
use collo_prepare::ingredients::{Change, Ingredients};
use collo_prepare::{machine, surroundings};

pub use caught::is_want_of_threads;
pub use depends::{CARDS, files, own_gpus, selection, set};
pub use failures::{FailureLimit, Failures};
use leased::Leases;

/// Which runs of a campaign to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Only {
    /// Runs not stored, or interrupted.
    #[default]
    Missing,
    /// Failed runs and no others; the old ones are kept in `.superseded/`.
    Failed,
}

/// How to choose the campaign.
#[derive(Debug, Clone, Default)]
pub struct CampaignOptions {
    /// Always start a new one.
    pub new: bool,
    /// This one, instead of the newest of the experiment.
    pub campaign: Option<CampaignFolder>,
    /// Continue although ingredients changed; it is marked indicative.
    pub force: bool,
    pub only: Only,
    /// Start no further run after this time, from the beginning of the first round.
    pub time_limit: Option<Duration>,
    /// How many runs may fail before no further one is started.
    pub failures: FailureLimit,
    /// Add this many repetitions of the planned cells to the newest campaign, which may be complete.
    pub more: Option<u32>,
    pub consent: Consent,
    /// Of a further round: what the rounds before it used of `time_limit` and `failures`.
    pub spent: Spent,
}

/// What a measurement has used of its limits: some take several rounds.
#[derive(Debug, Clone, Default)]
pub struct Spent {
    /// When its first round began to measure.
    pub begun: Option<Instant>,
    pub failures: Failures,
}

/// The inputs of a campaign.
pub struct CampaignSpec<'a> {
    pub commands: MemberCommands<'a>,
    pub plan: &'a Plan,
    pub facts: &'a DeviceFacts,
    /// Versions of Python and its packages.
    pub python: &'a BTreeMap<String, String>,
    /// The data sets, as found or written.
    pub data: &'a [Prepared],
    /// The selection that the plan was made with, part of its identity.
    pub selection: Option<&'a Selection>,
    /// The part of the experiment that the plan is.
    pub shard: Option<Shard>,
    pub choice: CampaignOptions,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CampaignEnd {
    /// Every planned run is accounted for.
    Complete,
    /// Ctrl-C; `killed` if the current run was discarded.
    Interrupted { killed: bool },
    /// Another signal that asks collo to end, as SIGTERM.
    Terminated,
    /// The allowed time is over.
    TimeOver,
    /// The GPU disappeared.
    DeviceLost,
    /// As many runs failed as the choice allows, or the first ones all for this cause.
    TooManyFailures { failures: u32, cause: Option<String> },
}

/// A campaign and how it ended.
pub struct Finished {
    pub campaign: CampaignFolder,
    pub end: CampaignEnd,
    /// Runs of the plan that are stored and final.
    pub stored: usize,
    /// How long stopping took, if it was requested.
    pub stopping: Option<Duration>,
    /// Every GPU is as found, if there is any.
    pub put_back: bool,
    /// The results of a search, a line for each combination; otherwise empty.
    pub answers: Vec<String>,
    /// With the rounds before it.
    pub spent: Spent,
}

/// Measure a campaign. Stored runs are safe, whatever the error.
pub async fn run(order: &CampaignSpec<'_>, watcher: Watcher<'_>) -> Result<Finished, RunError> {
    let runs = Runs::at(order.commands.project.runs());
    let mut ingredients = order.ingredients(&runs)?;
    // Whoever stops it while the card is cut wants the card back, too.
    let interrupts = Interrupts::listen().map_err(collo_store::Error::from)?;
    // First of all the cards, if there are any: what one refuses is said before a campaign is there.
    let mut leases = order.hold(watcher)?;
    let _notice = order.notice(watcher);
    let result = caught::caught(on_cards(order, &mut leases, &runs, &mut ingredients, &interrupts, watcher)).await;
    // Whatever the result: every card goes back to how it was found.
    let put_back = leases.put_back(watcher);
    let result = result.map(|ended| ended.map(|finished| Finished { put_back, ..finished }));
    result.unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().cloned().unwrap_or_default();
        match is_want_of_threads(&said) {
            true => Err(Diagnostic::new("this machine lets collo start no more threads")
                .caused_by(said)
                .hint(PROCESS_LIMIT)
                .of_machine()
                .into()),
            false => std::panic::resume_unwind(panic),
        }
    })
}

/// The same, with the GPUs leased.
async fn on_cards(
    order: &CampaignSpec<'_>,
    leases: &mut Leases<'_>,
    runs: &Runs,
    ingredients: &mut Ingredients,
    interrupts: &Interrupts,
    watcher: Watcher<'_>,
) -> Result<Finished, RunError> {
    let (campaign, resumed) = order.open(runs, ingredients, watcher)?;
    leases.each().for_each(|(_, hold)| hold.belongs_to(&campaign.manifest().id));
    let lock = campaign.lock()?;
    campaign.finish_drafts(&lock)?;
    // Another collo may have changed it until a moment ago.
    let mut campaign = CampaignFolder::open(campaign.path())?;
    if resumed && order.choice.more.is_some() {
        campaign.extend(&order.plan.record(), order.plan.predicted.as_ref())?;
    }
    if resumed && order.choice.force {
        let (_, changes) = order.changes_since(campaign.manifest(), ingredients);
        if !changes.is_empty() {
            let names: Vec<String> = changes.into_iter().map(|c| c.name).collect();
            campaign.mark_indicative(&format!("continued with --force although {} changed", names.join(", ")))?;
        }
    }
    if resumed {
        ingredients.continue_from(&campaign.manifest().ingredients);
    }
    let (stored, _) = campaign.runs()?;
    let todo = order.todo(&campaign, &stored);
    let interrupted = stored.values().filter(|run| run.record.outcome == Outcome::Interrupted).count();
    let plan = &campaign.manifest().plan;
    let is_kept = |p: &&PlannedRun| stored.get(&plan.folder(p)).is_some_and(|r| r.record.outcome.is_final()) && !todo.contains(p);
    let kept = plan.order.iter().filter(is_kept).count();
    let partials = campaign.partials()?;
    if !partials.is_empty() {
        watcher(Event::Partials { folder: campaign.path(), count: partials.len() });
    }
    watcher(Event::Opened {
        campaign: &campaign,
        resumed,
        stored: kept,
        todo: &todo,
        interrupted,
        forecast_s: &order.forecast_s(&campaign),
        cooldown: order.commands.experiment.cooldown,
    });

    let mut journal = campaign.journal()?;
    journal.opened(todo.len() as u32)?;
    let bench = RunContext {
        commands: order.commands,
        facts: order.facts,
        consent: order.choice.consent,
        campaign: &campaign,
        ingredients: &ingredients.all,
        files: Mutex::new(std::mem::take(&mut ingredients.files)),
        written: Mutex::default(),
        stop: interrupts.receiver(),
    };
    let mut spent = order.choice.spent.clone();
    let result = order.measure(&bench, (todo, &stored, &mut spent), leases, interrupts, &mut journal, watcher).await;
    let stopping = interrupts.since();
    let (end, done) = match result {
        Ok(ended) => ended,
        Err(e) => {
            // The disk may be full: what cannot be said in the journal is said by what is missing.
            let _ = journal.closed("error");
            return Err(e);
        }
    };
    journal.closed(match end {
        CampaignEnd::Complete if kept + done < campaign.manifest().plan.order.len() => "what failed is done, runs are missing",
        CampaignEnd::Complete => "complete",
        CampaignEnd::Interrupted { .. } => "interrupted",
        CampaignEnd::Terminated => "terminated",
        CampaignEnd::TimeOver => "time over",
        CampaignEnd::DeviceLost => "device lost",
        CampaignEnd::TooManyFailures { cause: None, .. } => "too many failures",
        CampaignEnd::TooManyFailures { cause: Some(_), .. } => "the first runs failed alike",
    })?;
    Ok(Finished { campaign, end, stored: kept + done, stopping, put_back: true, answers: Vec::new(), spent })
}

impl CampaignSpec<'_> {
    /// The forecast for each cell of the campaign's plan, as far as this order has the cell.
    fn forecast_s(&self, campaign: &CampaignFolder) -> Vec<Option<f64>> {
        let planned = self.plan.by_slug();
        campaign.manifest().plan.cells.iter().map(|cell| planned.get(&*cell.slug)?.forecast.each_s).collect()
    }

    /// The campaign to measure, and whether it already existed.
    fn open(&self, runs: &Runs, ingredients: &Ingredients, watcher: Watcher<'_>) -> Result<(CampaignFolder, bool), RunError> {
        let choice = &self.choice;
        if let Some(candidate) = choice.candidate(runs, self.commands.experiment, self.shard, |run| self.refuses(run))? {
            candidate.expect_unchanged()?;
            let (fixed, others) = self.changes_since(candidate.manifest(), ingredients);
            let may_be_forced = fixed.is_empty();
            let changes: Vec<Change> = fixed.into_iter().chain(choice.objections(others)).collect();
            if changes.is_empty() {
                return Ok((candidate, true));
            }
            let edited = changes.iter().any(|change| change.name == depends::EXPERIMENT);
            let keys = self.commands.experiment.keys_changed_since(&candidate.manifest().source_toml);
            let keys = if edited { &keys[..] } else { &[] };
            watcher(Event::NotContinued { campaign: &candidate, changes: &changes, keys, may_be_forced });
            // What was asked for is about that campaign: a new one has neither its name nor a failed run.
            if self.choice.campaign.is_some() || self.choice.only == Only::Failed {
                let id = candidate.manifest().short_id();
                let what = Diagnostic::new(format!("`{id}` cannot be continued"));
                let name = &self.commands.experiment.name;
                let continues = match changes.iter().any(|change| change.name == depends::CARDS) {
                    true => {
                        let own = depends::own_gpus(candidate.manifest());
                        format!("; `{id}` continues only on {own}: there `collo run {id}`, without `--gpu`")
                    }
                    false if may_be_forced => format!(", `--force` continues `{id}`"),
                    false => String::new(),
                };
                return Err(what.hint(format!("`collo run {name} --new` starts a new campaign{continues}")).into());
            }
        }
        Ok((runs.create(self.manifest(runs, &ingredients.all))?, false))
    }

    /// The runs to do, in order.
    fn todo(&self, campaign: &CampaignFolder, stored: &BTreeMap<String, StoredRun>) -> Vec<PlannedRun> {
        self.choice.todo(self.commands.experiment, campaign, stored, |run| self.refuses(run))
    }

    fn refuses(&self, run: &StoredRun) -> bool {
        self.plan.refusals.iter().any(|r| r.record.cell == run.record.cell.cell)
    }

    fn manifest(&self, runs: &Runs, ingredients: &BTreeMap<String, Ingredient>) -> Campaign {
        let memory = collo_device::cpu::facts().memory_bytes.unwrap_or_default();
        Campaign {
            schema: SCHEMA,
            id: runs.new_id(&self.commands.experiment.name),
            experiment: self.commands.experiment.name.clone(),
            description: self.commands.experiment.description.clone(),
            tags: self.commands.experiment.tags.clone(),
            created_utc: utc_now(),
            source_toml: self.commands.experiment.layers.text(),
            thresholds: self.commands.experiment.thresholds.clone(),
            references: self.commands.experiment.references.clone(),
            until: self.commands.experiment.until.clone(),
            plan: self.plan.record(),
            predicted: self.plan.predicted.clone(),
            device: self.facts.record(),
            machine: collo_store::Machine {
                driver: self.facts.driver.clone(),
                cuda: self.facts.cuda.map(|v| format!("{}.{}", v / 1000, v % 1000 / 10)),
                gpus: self.facts.gpus.iter().filter_map(Gpu::record).collect(),
                ..machine::describe(
                    Some(self.commands.project.root()),
                    self.facts.cores.len() as u32,
                    memory,
                    self.python.clone(),
                )
            },
            ingredients: ingredients.clone(),
            indicative: Vec::new(),
            shard: self.shard,
            origins: Vec::new(),
            surroundings: Some(surroundings::describe(
                self.commands.project,
                self.commands.interpreters,
                self.plan.members().map(|m| &**m.workload()),
            )),
            filing: Default::default(),
        }
    }
}
