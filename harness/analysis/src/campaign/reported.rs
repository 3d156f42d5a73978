//! What is known of a campaign from its report alone. In: what that has of the campaign, and its cells. Out: an [`Analysis`] without runs:
//! its numbers and verdicts are the file's, and what needs a run is absent. What sections derive from numbers of cells, as the order of
//! modes, is derived from these.

use std::collections::BTreeMap;

use collo_store::{Campaign, Devices};

use super::{Analysis, Index};
use crate::cell::Cell;
use crate::trace::Traces;
use crate::watching::Watching;

/// What a report has in another form than a campaign.
#[derive(Debug, Clone, Default)]
pub struct FromReport {
    /// The file.
    pub path: String,
    /// The program that measured it, if not collo.
    pub measured_by: Option<String>,
    pub environment: Vec<(String, String)>,
    pub merged_from: Vec<String>,
    /// Its members were predicted.
    pub is_predicted: bool,
}

impl Analysis {
    /// An analysis of these cells; what else the report has is filled in by the caller.
    pub fn reported(campaign: Campaign, devices: Devices, cells: Vec<Cell>, report: FromReport) -> Analysis {
        Analysis {
            index: Index::of(&cells, Vec::new(), BTreeMap::new()),
            comments: Vec::new(),
            planned: 0,
            accounted: Vec::new(),
            cells,
            traces: Traces::default(),
            watching: Watching::default(),
            borrowed: Vec::new(),
            drifts: Vec::new(),
            devices_can_be_told: None,
            devices,
            differences: Vec::new(),
            others_ratio: None,
            method: None,
            measured_for_s: None,
            synthetic: Vec::new(),
            shortened: Vec::new(),
            idle_w: BTreeMap::new(),
            problems: Vec::new(),
            timelines: Vec::new(),
            references: Vec::new(),
            report: Some(report),
            campaign,
        }
    }

    /// True if all planned cells are here: a report has no cells of traces, and none of those that say who watches.
    pub fn has_all_cells(&self) -> bool {
        !self.is_reported() || self.traces.is_empty() && self.watching.is_empty()
    }

    /// True if it is known how its runs ended: a report of another program may not have it.
    pub fn has_ends(&self) -> bool {
        !self.is_reported() || !self.accounted.is_empty() || self.cells.is_empty()
    }

    /// True if it was read from a report, so that no run is here.
    pub fn is_reported(&self) -> bool {
        self.report.is_some()
    }
}
