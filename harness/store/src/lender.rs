//! A campaign whose baselines another is compared with: members alone on the whole GPU, which a campaign on a partitioned GPU cannot
//! measure. In: a campaign without them, the stored campaigns. Out: the one that lends them, or why one does not. It reads no run.

use std::collections::BTreeSet;
use std::fmt;

use crate::{Campaign, CampaignFolder, CellRecord, MemberSpec, MergeDifference, MergeScope, Result, Runs, merge};

impl CellRecord {
    /// True for a workload alone on the whole device.
    pub fn is_solo(&self) -> bool {
        matches!(&self.members[..], [only] if only.solo == self.cell)
    }
}

impl Campaign {
    /// The members whose own solo cell is not in the plan, one of each label.
    pub fn without_solo(&self) -> Vec<&MemberSpec> {
        let planned: BTreeSet<&str> = self.plan.cells.iter().filter(|c| c.is_solo()).map(|c| c.cell.as_str()).collect();
        let mut found: Vec<&MemberSpec> = Vec::new();
        for member in self.plan.cells.iter().filter(|c| !c.is_solo()).flat_map(|c| &c.members) {
            if !planned.contains(member.solo.as_str()) && found.iter().all(|known| known.solo != member.solo) {
                found.push(member);
            }
        }
        found
    }

    /// The members of its groups whose solo cell is in this plan.
    fn solos_for<'a>(&self, other: &'a Campaign) -> Vec<&'a MemberSpec> {
        let alone = |member: &&MemberSpec| self.plan.cells.iter().any(|c| c.is_solo() && c.members[0] == **member);
        other.plan.cells.iter().filter(|c| !c.is_solo()).flat_map(|c| &c.members).filter(alone).collect()
    }

    /// True if both were measured on one device: the same GPU, or, where its UUID is not known, one of the same name.
    pub fn shares_device_with(&self, other: &Campaign) -> bool {
        let uuids = |c: &Campaign| -> BTreeSet<String> { c.devices().all().iter().filter_map(|d| d.uuid.clone()).collect() };
        let (own, others) = (uuids(self), uuids(other));
        let known = !own.is_empty() && !others.is_empty();
        self.device.is_of_model(&other.device)
            && if known { !own.is_disjoint(&others) } else { self.machine.hostname == other.machine.hostname }
    }
}

/// Why a campaign lends no baselines to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LendsNothing {
    /// It is the one that needs them.
    Itself,
    /// The device of the lender, and of the other.
    OtherDevice(String, String),
    Conditions(Vec<MergeDifference>),
    /// None of its cells is a member of the other alone on the whole device.
    NoSolo,
}

impl fmt::Display for LendsNothing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LendsNothing::Itself => f.write_str("it is the campaign itself"),
            LendsNothing::OtherDevice(own, other) => write!(f, "it was measured on {own}, and the campaign on {other}"),
            LendsNothing::Conditions(differences) => {
                let all: Vec<String> = differences.iter().map(MergeDifference::to_string).collect();
                write!(f, "it was measured under other conditions: {}", all.join("; "))
            }
            LendsNothing::NoSolo => f.write_str("it has no solo cell of a workload of the campaign, with the same settings"),
        }
    }
}

/// Whether the baselines of one campaign hold for another: on the same device, under the conditions under which campaigns are merged.
pub fn lends(lender: &CampaignFolder, to: &CampaignFolder) -> std::result::Result<(), LendsNothing> {
    let (from, own) = (lender.manifest(), to.manifest());
    if from.id == own.id || own.origins.iter().any(|o| o.campaign == from.id) {
        return Err(LendsNothing::Itself);
    }
    if !from.shares_device_with(own) {
        return Err(LendsNothing::OtherDevice(from.device_identity(), own.device_identity()));
    }
    if from.solos_for(own).is_empty() {
        return Err(LendsNothing::NoSolo);
    }
    let differing = merge::differences(&[lender.clone(), to.clone()], MergeScope::SameIngredients);
    if differing.is_empty() { Ok(()) } else { Err(LendsNothing::Conditions(differing)) }
}

/// The newest stored campaign that lends its baselines to one on a GPU that has none at all; one with all of them before one with some.
pub fn lender(runs: &Runs, to: &CampaignFolder) -> Result<Option<CampaignFolder>> {
    let own = to.manifest();
    let needed = own.without_solo();
    if own.device.kind != "gpu" || needed.is_empty() || own.plan.cells.iter().any(CellRecord::is_solo) {
        return Ok(None);
    }
    let known = |c: &CampaignFolder| c.manifest().devices().all().iter().any(|d| d.uuid.is_some());
    if !known(to) {
        return Ok(None);
    }
    let (campaigns, _) = runs.campaigns()?;
    let fits = |c: &CampaignFolder| {
        known(c)
            && c.running().is_none()
            && lends(c, to).is_ok()
            && c.progress().is_ok_and(|p| p.stored > 0)
            && c.expect_unchanged().is_ok()
    };
    let has = |c: &CampaignFolder| {
        needed
            .iter()
            .filter(|member| c.manifest().plan.cells.iter().any(|cell| cell.is_solo() && cell.members[0] == ***member))
            .count()
    };
    let mut best: Option<(usize, CampaignFolder)> = None;
    for campaign in campaigns.into_iter().filter(fits) {
        let count = has(&campaign);
        if best.as_ref().is_none_or(|(most, _)| count > *most) {
            best = Some((count, campaign));
        }
    }
    Ok(best.map(|(_, campaign)| campaign))
}
