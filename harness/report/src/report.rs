//! The contents of a report, before wording. In: a campaign folder, or a `report.json`. Out: its analysis, and the guidelines that follow.
//!
//! To add a model that divides energy: a variant of [`EnergyModel`], its word in `cli/src/args/report.rs`.

use std::path::{Path, PathBuf};

use collo_analysis::campaign::{Analysis, analyse};
use collo_figures::document::Section;
use collo_guidelines::list;
use collo_guidelines::report_json::ReportJson;
use collo_guidelines::rule::Guideline;
use collo_store::{CampaignFolder, is_plain};

use crate::Result;
use crate::anonymous::{Anonymity, Parts};

/// The contents of a report, before wording: what was measured, and what follows from it.
#[derive(Debug)]
pub struct Report {
    pub analysis: Analysis,
    /// In print order.
    pub guidelines: Vec<Guideline>,
    /// Divide the energy among members by this model; not at all if absent.
    pub energy_model: Option<EnergyModel>,
    /// The folder of the campaign; of a report that was read, that of its file.
    pub folder: PathBuf,
    /// The file that it was read from, if it was not made of stored runs.
    pub read: Option<Box<ReportJson>>,
    /// The digest of `campaign.json`, as `collo bundle` and `collo verify` print it; absent where it was not made of stored runs.
    pub digest: Option<String>,
    /// What its files leave out, for a double-blind review.
    pub anonymity: Option<Anonymity>,
}

impl Report {
    /// Of a stored campaign.
    pub fn of(campaign: &CampaignFolder) -> Result<Report> {
        Report::beside(campaign, None)
    }

    /// Of a stored campaign whose groups are compared with the baselines of another where they have none of their own.
    pub fn beside(campaign: &CampaignFolder, lender: Option<&CampaignFolder>) -> Result<Report> {
        let analysis = analyse(campaign, lender)?;
        Ok(Report {
            guidelines: list::all(&analysis),
            analysis,
            energy_model: None,
            folder: campaign.path().to_path_buf(),
            read: None,
            digest: campaign.digest().ok(),
            anonymity: None,
        })
    }

    /// Read a `report.json` from this machine or another: its numbers and guidelines as they are there, without the runs.
    pub fn read(path: &Path) -> Result<Report> {
        let read = ReportJson::read(path)?;
        // Both become folders.
        for (name, key) in [(&read.experiment, "experiment"), (&read.campaign, "campaign")] {
            // Beside the folder of a campaign lie the newest files of its experiment, as `report.json`.
            if !is_plain(name) || name.starts_with("report.") {
                let reason = format!("its `{key}`, {name:?}, is no name");
                return Err(collo_guidelines::Error::NotAReport { what: path.display().to_string(), reason }.into());
            }
        }
        let analysis = read.analysis(&path.display().to_string())?;
        let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
        Ok(Report {
            guidelines: read.guidelines.clone(),
            analysis,
            energy_model: None,
            folder,
            read: Some(Box::new(read)),
            digest: None,
            anonymity: None,
        })
    }

    /// The same without the names of hosts and users, and without paths: `home` and `user` are those of who writes it.
    pub fn anonymous(mut self, home: Option<&Path>, user: Option<&str>) -> Report {
        let parts = Parts { analysis: &mut self.analysis, folder: &self.folder, read: self.read.as_deref_mut() };
        self.anonymity = Some(Anonymity::of(parts, home, user));
        self
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
