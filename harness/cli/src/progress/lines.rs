//! The plain display: every line is complete in itself, with its UTC time, its run and its cell; one per change, one `alive` a
//! minute.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use collo_measure::events::Event;
use collo_measure::observe::{MemberView, Phase, View};
use collo_quantity::number;
use collo_store::{CampaignFolder, Outcome, PlannedRun, utc_now};

use super::eta::Eta;
use super::words::MeasuringGoal;
use super::{Display, python, words};
use crate::output;
use collo_text::shown;

/// No output: `-q`.
pub struct Silent;

impl Display for Silent {
    fn show(&mut self, _event: Event<'_>) {}
    fn end(&mut self) {}
}

/// One line per change.
#[derive(Default)]
pub struct Lines {
    eta: Eta,
    campaign: Option<CampaignFolder>,
    done: usize,
    total: usize,
    /// By card.
    runs: BTreeMap<Option<u32>, RunLine>,
}

struct RunLine {
    name: String,
    goal: MeasuringGoal,
    went: bool,
    alive: Instant,
}

const ALIVE: Duration = Duration::from_secs(60);

impl Lines {
    fn begins(&mut self, planned: &PlannedRun) {
        let Some(campaign) = &self.campaign else { return };
        let plan = &campaign.manifest().plan;
        self.eta.begins(planned);
        let name = words::planned(campaign.manifest(), planned);
        self.runs.insert(planned.card, RunLine { name, goal: MeasuringGoal::of(plan), went: false, alive: Instant::now() });
    }

    fn stands(&mut self, planned: &PlannedRun, view: &View) {
        let left = self.left();
        let Some(run) = self.runs.get_mut(&planned.card) else { return };
        let place = format!("{}/{} {}", self.done, self.total, run.name);
        if !run.went
            && let Some(ready_s) = view.ready_after_s
            && view.members.iter().all(|member| member.last_epoch_s.is_some())
        {
            run.went = true;
            line(match view.skew_ns {
                Some(skew_ns) => format!("{place}: go, ready after {ready_s:.1} s, skew {:.1} ms", skew_ns as f64 / 1e6),
                // A script is ready when it is started, as far as is known.
                None => format!("{place}: all members train"),
            });
        }
        if run.alive.elapsed() > ALIVE {
            run.alive = Instant::now();
            let epochs: Vec<String> = view.members.iter().map(|m| progress(m, run.goal)).collect();
            line(format!("{place}: alive, {}{left}", epochs.join(" ")));
        }
    }

    fn left(&self) -> String {
        self.eta.left().map(|left| format!(", {} left", left.to_text())).unwrap_or_default()
    }
}

fn progress(m: &MemberView, goal: MeasuringGoal) -> String {
    match m.phase {
        Phase::Measure | Phase::Tail => {
            let served = m.served.map(|s| format!(" ({})", words::served(&s))).unwrap_or_default();
            format!("{}{served}", goal.reached(m))
        }
        other => other.as_str().to_string(),
    }
}

/// Print what is to be known of an event, whatever the display.
pub fn tell(event: &Event<'_>) {
    super::notice(event).iter().for_each(output::noticed);
}

fn line(text: String) {
    let utc = utc_now();
    output::note(format!("{} {text}", utc.get(11..19).unwrap_or_default()));
}

impl Display for Lines {
    fn show(&mut self, event: Event<'_>) {
        match event {
            Event::Python(progress) => {
                if let Some(text) = python::line(&progress) {
                    output::note(text);
                }
            }
            Event::Describes { count } => output::note(describes(count)),
            Event::Data(prepared) => {
                if let Some(text) = data_line(prepared) {
                    output::note(text);
                }
            }
            Event::Opened { campaign, stored, todo, forecast_s, cooldown, .. } => {
                tell(&event);
                self.eta = Eta::new(&campaign.manifest().plan.cells, forecast_s, cooldown, todo);
                self.campaign = Some(campaign.clone());
                (self.done, self.total) = (stored, stored + todo.len());
                let m = campaign.manifest();
                let about = self.eta.left().map(|left| format!(", {}", left.in_a_sentence())).unwrap_or_default();
                let (cells, runs) = (number::count(m.plan.cells.len(), "cell"), number::runs(self.total));
                line(format!("{} {} on {}: {cells}, {runs}{about}", m.experiment, m.id, m.device.name_said()));
            }
            Event::Begins { planned } => self.begins(planned),
            Event::Stands { planned, view } => self.stands(planned, &view),
            Event::Ends { planned, run } => {
                let seconds = self.eta.ends(planned);
                self.done += usize::from(run.record.outcome != Outcome::Interrupted);
                let name = self.runs.remove(&planned.card).map_or_else(|| words::name(run), |line| line.name);
                let done = if run.record.outcome == Outcome::Completed { "completed, " } else { "" };
                let place = format!("{}/{} {name}", self.done, self.total);
                line(format!("{place}: {done}{}, {seconds:.1} s", words::outcome(run)));
                for trace in words::trace(run) {
                    output::note(trace);
                }
            }
            Event::Retries { planned, .. } => {
                self.done -= 1;
                self.eta.again(planned);
                tell(&event);
            }
            Event::Stopping { now } => {
                line(super::stopping(&self.runs.values().map(|run| &*run.name).collect::<Vec<_>>(), now));
            }
            Event::NotContinued { .. }
            | Event::FindsIdle { .. }
            | Event::Cools { .. }
            | Event::Beside { .. }
            | Event::Waits { .. }
            | Event::Partials { .. }
            | Event::NothingMatches { .. }
            | Event::Wrote { .. }
            | Event::Restored { .. }
            | Event::NotRestored { .. } => tell(&event),
        }
    }

    fn end(&mut self) {}
}

/// That training steps are traced, which takes seconds each.
pub fn describes(count: usize) -> String {
    let steps = if count == 1 { "1 training step is".to_string() } else { format!("{count} training steps are") };
    format!("predict {steps} traced, once")
}

/// The line about a data set, if worth one: it is a stand-in, or was written.
pub fn data_line(prepared: &collo_prepare::data::Prepared) -> Option<String> {
    let Some(place) = prepared.place.as_deref().map(|p| shown(std::path::Path::new(p))) else {
        return prepared.synthetic.then(|| format!("data    {}: made in memory, marked synthetic", prepared.dataset));
    };
    match (prepared.synthetic, prepared.written) {
        (true, true) => {
            Some(format!("data    {} is absent: a stand-in was written to {place}, marked synthetic", prepared.dataset))
        }
        (true, false) => {
            Some(format!("data    {} is absent: the stand-in in {place} is used, marked synthetic", prepared.dataset))
        }
        (false, _) => None,
    }
}
