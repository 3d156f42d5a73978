//! What a campaign tells whoever watches: the interface between measuring and showing.

use std::path::Path;
use std::time::Duration;

use collo_store::{CampaignFolder, PlannedRun, StoredRun};

use crate::device::hold::Restored;
use crate::ingredients::Change;
use crate::observe::View;
use crate::prepare::Prepared;
use crate::python;

/// Something that a watcher may want to show.
pub enum Event<'a> {
    /// The Python environment is being provided.
    Python(python::Progress),
    /// A workload's data was looked at, or written.
    Data(&'a Prepared),
    /// An unfinished campaign is not continued, because its ingredients changed.
    NotContinued { campaign: &'a CampaignFolder, changes: &'a [Change] },
    /// A campaign is open, or open again for the next round of a search: so many runs are stored, so many are to do, some of which were
    /// interrupted.
    Opened {
        campaign: &'a CampaignFolder,
        resumed: bool,
        stored: usize,
        todo: &'a [PlannedRun],
        interrupted: usize,
        /// What a run of each cell takes, by the campaign's plan; absent where nobody tells.
        forecast_s: &'a [Option<f64>],
        /// The pause between runs.
        cooldown: Duration,
    },
    /// A run begins.
    Begins { planned: &'a PlannedRun },
    /// How the run stands; a few times a second.
    Stands(View),
    /// A run is in the store.
    Ends { planned: &'a PlannedRun, run: &'a StoredRun },
    /// Runs wrote files beside the scripts; a folder's name ends in `/`. They are no ingredients.
    Wrote { files: &'a [String] },
    /// Somebody wants the campaign to stop; the current run is being ended.
    Stopping { now: bool },
    /// A card was put back as it was found.
    Restored { label: String, restored: Restored },
    /// It could not be: the journal stays for `collo restore`.
    NotRestored { label: String, reason: String },
    /// Partial runs of an earlier collo lie aside.
    Partials { folder: &'a Path, count: usize },
}

/// Takes events; never blocks for long, because it is called between measuring steps.
pub type Watcher<'a> = &'a mut dyn FnMut(Event<'_>);
