//! Events of a campaign: the interface between measuring and showing progress.

use std::path::Path;
use std::time::Duration;

use collo_store::{CampaignFolder, PlannedRun, StoredRun};

use crate::observe::View;
use collo_device::lease::Restored;
use collo_launch::protocol::Shortfall;
use collo_plan::experiment::ChangedKey;
use collo_prepare::data::Prepared;
use collo_prepare::ingredients::Change;
use collo_prepare::python;

/// An event that a display may want to show.
pub enum Event<'a> {
    /// Progress of setting up the Python environment.
    Python(python::Progress),
    /// So many training steps are traced, for a prediction: none of them was before.
    Describes { count: usize },
    /// A workload's data was checked, or written.
    Data(&'a Prepared),
    /// An unfinished campaign is not continued, because its ingredients changed.
    NotContinued {
        campaign: &'a CampaignFolder,
        changes: &'a [Change],
        /// The keys of the experiment among them.
        keys: &'a [ChangedKey],
        /// Whether `--force` continues it.
        may_be_forced: bool,
    },
    /// A campaign was opened, or reopened for the next round of a search, with the number of runs stored and to do, and how many
    /// of these were interrupted.
    Opened {
        campaign: &'a CampaignFolder,
        resumed: bool,
        stored: usize,
        todo: &'a [PlannedRun],
        interrupted: usize,
        /// Duration of a run of each cell in the campaign's plan; absent if unknown.
        forecast_s: &'a [Option<f64>],
        /// The pause between runs.
        cooldown: Duration,
    },
    /// The idle temperature of the GPU, named where there are several, is awaited, to which a thermal gate refers.
    FindsIdle { card: Option<&'a str>, now_c: f64, at_most: Duration },
    /// The GPU is warmer than a thermal gate lets a run begin.
    Cools { card: Option<&'a str>, from_c: f64, limit_c: f64, at_most: Duration },
    /// Another collo measures the same CPU, as far as it can be named.
    Beside { other: String },
    /// Another collo uses the GPU, or measures the same CPU: its end is awaited.
    Waits { other: &'a str, at_most: Duration },
    /// A run begins. On several cards one may run on each.
    Begins { planned: &'a PlannedRun },
    /// Status of the run; sent a few times a second.
    Stands { planned: &'a PlannedRun, view: View },
    /// A foreign script has trained for long, and no line of its output matches.
    NothingMatches { planned: &'a PlannedRun, member: usize, shortfall: &'a Shortfall },
    /// A run is in the store.
    Ends { planned: &'a PlannedRun, run: &'a StoredRun },
    /// It failed and is measured again: the experiment has retries left.
    Retries { planned: &'a PlannedRun, run: &'a StoredRun },
    /// Runs wrote files beside the scripts; a folder's name ends in `/`. They are not ingredients.
    Wrote { files: &'a [String] },
    /// A stop was requested; the current run is being ended.
    Stopping { now: bool },
    /// A GPU was restored as found.
    Restored { label: String, restored: Restored },
    /// The restore failed: the journal is kept for `collo restore`.
    NotRestored { label: String, reason: String },
    /// Partial runs of an earlier collo exist.
    Partials { folder: &'a Path, count: usize },
}

/// Takes events; must not block for long, because it is called between measuring steps. Each card has a thread that calls it, one at a
/// time.
pub type Watcher<'a> = &'a mut (dyn FnMut(Event<'_>) + Send);
