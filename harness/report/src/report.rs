//! The contents of a report, before wording. In: a campaign folder. Out: its analysis, and the guidelines that follow.
//!
//! To add a model that divides energy: a variant of [`EnergyModel`], its word in `cli/src/args/report.rs`.

use std::path::PathBuf;

use collo_analysis::campaign::{Analysis, analyse};
use collo_figures::document::Section;
use collo_guidelines::list;
use collo_guidelines::rule::Guideline;
use collo_store::CampaignFolder;

use crate::Result;

/// The contents of a report, before wording: what was measured, and what follows from it.
#[derive(Debug)]
pub struct Report {
    pub analysis: Analysis,
    /// In print order.
    pub guidelines: Vec<Guideline>,
    /// Divide the energy among members by this model; not at all if absent.
    pub energy_model: Option<EnergyModel>,
    /// The folder of the campaign.
    pub folder: PathBuf,
}

impl Report {
    /// Of a stored campaign.
    pub fn of(campaign: &CampaignFolder) -> Result<Report> {
        Report::beside(campaign, None)
    }

    /// Of a stored campaign whose groups are compared with the baselines of another where they have none of their own.
    pub fn beside(campaign: &CampaignFolder, lender: Option<&CampaignFolder>) -> Result<Report> {
        let analysis = analyse(campaign, lender)?;
        Ok(Report { guidelines: list::all(&analysis), analysis, energy_model: None, folder: campaign.path().to_path_buf() })
    }

    /// The guideline with this id, if it applies here.
    pub fn guideline(&self, id: &str) -> Option<&Guideline> {
        self.guidelines.iter().find(|g| g.id == id)
    }

    /// A section with the verdict and the finding of a guideline, if it applies here.
    pub fn judged(&self, id: &str) -> Section {
        let (chip, finding) = self.guideline(id).map(|g| (g.holds.into(), g.finding.clone())).unzip();
        Section { chip, finding: finding.unwrap_or_default(), ..Section::default() }
    }
}

/// How energy is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnergyModel {
    /// Idle power in equal parts; what is above it by the SM activity of each member alone times its progress in the group, which
    /// is the SM time of its work per second.
    SmShare,
}

impl EnergyModel {
    pub fn name(self) -> &'static str {
        match self {
            EnergyModel::SmShare => "sm-share",
        }
    }

    /// Its assumptions, as a sentence has them.
    pub fn statement(self) -> &'static str {
        match self {
            EnergyModel::SmShare => {
                "a model, not a measurement. Idle power is divided equally; power above idle by each member's SMACT alone × its \
                 progress (1 ÷ slowdown)"
            }
        }
    }
}
