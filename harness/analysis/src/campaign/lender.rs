//! Baselines of another campaign on the same GPU, for groups whose own has none: no member can be measured on the
//! whole of a partitioned GPU. In: a campaign, the one that lends, what a report reads of runs. Out: its solo cells, on devices after the campaign's
//! own, and which device stands in for which. It computes no ratio.

use std::collections::{BTreeMap, BTreeSet};

use collo_store::{Campaign, CampaignFolder, MeasuredAt, Result, StoredRun, Verdict};

use super::Analysis;
use super::build::{begin, check_runs, read_run};
use crate::cell::Cell;
use crate::cell::lent::Lender;
use crate::cell::quantities::Baselines;
use crate::reading::repetition::Repetition;

/// Which devices stand in for which, and whose they are.
#[derive(Debug, Default)]
pub struct Lenders {
    /// By device: others of the same GPU, the first choice first.
    pub stand_ins: BTreeMap<usize, Vec<usize>>,
    /// By device that may stand in.
    of_device: BTreeMap<usize, Lender>,
    /// Solo cells of another campaign, each with the runs of one device.
    pub cells: Vec<Cell>,
    /// Devices, with those of the other campaign.
    pub devices: usize,
}

impl Lenders {
    /// Of a campaign, and of one that lends it baselines.
    pub fn of(campaign: &Campaign, other: Option<&CampaignFolder>) -> Result<Self> {
        let devices = campaign.devices();
        let mut found = Lenders { devices: devices.all().len(), ..Lenders::default() };
        let mut known: Vec<(usize, &MeasuredAt)> = devices.all().iter().enumerate().collect();
        // Of several campaigns the newest stands in first.
        let created = |at: &MeasuredAt| Some(campaign.origins.get(at.origin?)?.created_utc.clone());
        known.sort_by_key(|(index, at)| (std::cmp::Reverse(created(at)), *index));
        for (device, at) in &known {
            let same = known
                .iter()
                .filter(|(other, o)| other != device && at.uuid.is_some() && o.uuid == at.uuid && o.origin != at.origin);
            for (other, o) in same {
                let Some(origin) = o.origin.and_then(|origin| campaign.origins.get(origin)) else { continue };
                found.stand_ins.entry(*device).or_default().push(*other);
                let (campaign, created_utc) = (origin.campaign.clone(), origin.created_utc.clone());
                found.of_device.insert(*other, Lender { campaign, experiment: None, created_utc });
            }
        }
        if let Some(other) = other {
            found.borrow(campaign, other)?;
        }
        Ok(found)
    }

    /// Add the solo cells of another campaign, on the devices that both have.
    fn borrow(&mut self, campaign: &Campaign, other: &CampaignFolder) -> Result<()> {
        other.expect_unchanged()?;
        let from = other.manifest();
        let (own, theirs) = (campaign.devices(), from.devices());
        let (mut stored, _) = other.runs()?;
        let copies = collo_store::copies(&stored);
        let needed = |cell: &collo_store::CellRecord| {
            let members = || campaign.plan.cells.iter().flat_map(|c| &c.members);
            cell.is_solo() && cell.trace.is_none() && cell.observe.is_none() && members().any(|m| *m == cell.members[0])
        };
        let mut runs: Vec<(usize, StoredRun)> = Vec::new();
        for planned in from.plan.order.iter().filter(|p| from.plan.cells.get(p.cell).is_some_and(needed)) {
            let name = from.plan.folder(planned);
            runs.extend(stored.remove(&name).filter(|_| !copies.contains(&name)).map(|run| (planned.cell, run)));
        }
        let (cells, runs): (Vec<usize>, Vec<StoredRun>) = runs.into_iter().unzip();
        let mut read: Vec<Repetition> = runs.into_iter().map(|run| read_run(run, from)).collect();
        check_runs(&mut read, from);
        let mut of = BTreeMap::<(usize, usize), Vec<Repetition>>::new();
        for (cell, r) in cells.into_iter().zip(read) {
            of.entry((cell, theirs.of(r.record().block))).or_default().push(r);
        }
        let unknown = |at: &MeasuredAt| at.uuid.is_none();
        for ((cell, device), mut repetitions) in of {
            let at = &theirs.all()[device];
            let same: Vec<usize> = (0..own.all().len())
                .filter(|i| own.all()[*i].uuid == at.uuid || unknown(&own.all()[*i]) || unknown(at))
                .collect();
            if same.is_empty() {
                continue;
            }
            let place = self.devices + device;
            for own in same {
                let stand_ins = self.stand_ins.entry(own).or_default();
                if !stand_ins.contains(&place) {
                    stand_ins.push(place);
                }
            }
            let (campaign, experiment) = (from.id.clone(), Some(from.experiment.clone()));
            self.of_device.insert(place, Lender { campaign, experiment, created_utc: from.created_utc.clone() });
            repetitions.iter_mut().for_each(|r| r.device = place);
            self.cells.push(begin(from.plan.cells[cell].clone(), repetitions, BTreeMap::new()));
        }
        self.devices += theirs.all().len();
        Ok(())
    }
}

/// Why the numbers that lean on a baseline are indicative at best, by its device and label: it is itself.
pub type Doubts = BTreeMap<(usize, String), String>;

/// Those of these baselines.
pub fn doubts(baselines: &[&Cell]) -> Doubts {
    let doubtful = baselines.iter().filter(|c| c.validity.verdict == Verdict::Indicative);
    let of = |c: &&Cell| Some(((c.counted().next()?.device, c.name().to_string()), c.validity.reasons.join("; ")));
    doubtful.filter_map(of).collect()
}

/// Name the campaign whose baselines a cell is compared with, if they are not of its own, and lower it as they are.
pub fn name(cell: &mut Cell, baselines: &Baselines, lenders: &Lenders, doubts: &Doubts) {
    let labels = || cell.record.members.iter().map(|m| &m.solo).chain(&cell.record.alone_on_slice);
    let homes = cell.counted().flat_map(|r| labels().map(|label| (r.device, baselines.home(r.device, label), label)));
    let borrowed: BTreeSet<(usize, String)> =
        homes.filter(|(device, home, _)| device != home).map(|(_, home, label)| (home, label.clone())).collect();
    for (home, label) in borrowed {
        let Some(lender) = lenders.of_device.get(&home) else { continue };
        if let Some(why) = doubts.get(&(home, label.clone())) {
            let why = format!("its baseline `{label}`, of campaign {}, is indicative: {why}", lender.short_id());
            cell.validity.lower(Verdict::Indicative, why);
        }
        cell.lender.get_or_insert_with(|| lender.clone());
    }
}

impl Analysis {
    /// The campaigns that lent baselines to its cells, each once.
    pub fn lenders(&self) -> Vec<&Lender> {
        let mut found: Vec<&Lender> = self.cells.iter().filter_map(|c| c.lender.as_ref()).collect();
        found.sort();
        found.dedup();
        found
    }

    /// Cells with usable runs that have nothing to be compared with, each with the reason.
    pub fn cells_without_baseline(&self) -> impl Iterator<Item = (&Cell, &str)> {
        self.cells.iter().filter_map(|c| Some((c, c.no_baseline.as_deref()?)))
    }
}
