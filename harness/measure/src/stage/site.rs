//! Several cards staged at once, for members that come and go: a trace's site.
//!
//! Unlike the slots of a cell, a card's members are not known beforehand: what is staged holds for whoever comes, and evidence is
//! gathered for those who are there.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::daemon::Daemon;
use super::gpu_evidence;
use super::{evidence, orders};
use crate::stage::evidence::{InForce, attest};
use crate::stage::staged::StageError;
use crate::stage::staging::{StagedCard, Visible, empty_folder, needs_program};
use collo_device::lease::LeasedGpu;
use collo_device::nvml;
use collo_launch::protocol::Hello;
use collo_plan::experiment::SourceChoice;
use collo_plan::facts::{CardShare, Cores};
use collo_plan::sharing::{Limits, Seating};
use collo_prepare::slot::Slot;
use collo_sample::{Board, BoardInstance};
use collo_text::units::ranges;

/// The cards of a site.
pub struct StagedSite {
    cards: Vec<SiteCard>,
    daemons: Vec<Daemon>,
    sources: SourceChoice,
}

/// A GPU, a GPU instance, or a set of CPU cores.
struct SiteCard {
    /// `None` on a CPU.
    staged: Option<StagedCard>,
    cores: Option<Vec<u32>>,
    /// Which of the leases it belongs to.
    lease: usize,
    daemon: Option<usize>,
}

/// What the cards of a site are asked for.
pub struct SiteOrder<'a> {
    pub folder: &'a Path,
    /// By GPU, what of the machine its members have.
    pub shares: &'a [CardShare],
    pub exclusive: bool,
    pub foreign: bool,
    pub sources: SourceChoice,
    /// Some member computes on several cards: one daemon serves them all then, because a client has but one.
    pub across_cards: bool,
}

impl StagedSite {
    /// Sets of CPU cores.
    pub fn of_core_sets(sets: &[Vec<u32>]) -> StagedSite {
        let card = |cores: &Vec<u32>| SiteCard { staged: None, cores: Some(cores.clone()), lease: 0, daemon: None };
        StagedSite { cards: sets.iter().map(card).collect(), daemons: Vec::new(), sources: SourceChoice::default() }
    }

    /// Whole GPUs, or every instance of them as they are partitioned, in the state that this seating asks for.
    pub fn of_gpus(leases: &mut [LeasedGpu<'_>], seating: &Seating, order: &SiteOrder<'_>) -> Result<StagedSite, StageError> {
        let mut site = StagedSite { cards: Vec::new(), daemons: Vec::new(), sources: order.sources };
        let staged = site.stage(leases, seating, order);
        match staged {
            Ok(()) => Ok(site),
            Err(why) => {
                site.end(leases);
                Err(why)
            }
        }
    }

    fn stage(&mut self, leases: &mut [LeasedGpu<'_>], seating: &Seating, order: &SiteOrder<'_>) -> Result<(), StageError> {
        let common = seating.common_limits().unwrap_or_default();
        for (lease, (gpu, hold)) in leases.iter_mut().enumerate() {
            let mig = seating.partition.as_ref().is_some_and(|p| p.mig);
            let exclusive = seating.daemons && order.exclusive && !mig;
            if !exclusive {
                hold.make_shared().map_err(StageError::from)?;
            }
            let wanted = if mig { Some(hold.found().clone()) } else { seating.partition.clone() };
            let cut = wanted.map(|partition| hold.apply(&partition)).transpose().map_err(StageError::from)?;
            if exclusive {
                hold.make_exclusive().map_err(StageError::from)?;
            }
            let whole = Visible {
                uuid: hold.uuid().into(),
                sms: gpu.sms,
                gpu_instance: None,
                compute_instance: None,
                daemon: None,
                percent: common.active_thread_percent,
            };
            let devices = match cut.filter(|_| mig) {
                None => vec![whole],
                Some(cut) => cut
                    .instances
                    .iter()
                    .flat_map(|i| &i.devices)
                    .map(|device| Visible {
                        uuid: device.uuid.clone(),
                        sms: device.sms,
                        gpu_instance: Some(device.gpu_instance),
                        compute_instance: Some(device.compute_instance),
                        ..whole.clone()
                    })
                    .collect(),
            };
            for device in devices {
                let instance = device.gpu_instance.zip(device.compute_instance);
                let staged = StagedCard {
                    label: gpu.label(),
                    uuid: hold.uuid().to_string(),
                    sms: gpu.sms,
                    mig,
                    instances: instance.map(|(gi, ci)| (device.uuid.clone(), gi, ci)).into_iter().collect(),
                    devices: vec![device],
                    daemons: Vec::new(),
                    empty: empty_folder()?,
                    foreign: order.foreign,
                    thread_limit_percent: common.active_thread_percent,
                    memory_limit_bytes: common.memory_bytes,
                    own_memory_limits: false,
                };
                let near = gpu.near_cores();
                let cores = order.shares.get(lease).and_then(|share| share.cores.of(0, 1, &share.facts.cores, near.as_deref()));
                self.cards.push(SiteCard { staged: Some(staged), cores, lease, daemon: None });
            }
        }
        if seating.daemons {
            self.start_daemons(leases, order, &common)?;
        }
        Ok(())
    }

    fn start_daemons(&mut self, leases: &mut [LeasedGpu<'_>], order: &SiteOrder<'_>, limits: &Limits) -> Result<(), StageError> {
        needs_program()?;
        let all: Vec<usize> = (0..self.cards.len()).collect();
        let groups: Vec<Vec<usize>> =
            if order.across_cards { vec![all] } else { all.into_iter().map(|card| vec![card]).collect() };
        for (number, group) in groups.into_iter().enumerate() {
            let uuids: Vec<&str> = group.iter().filter_map(|card| self.device(*card)).collect();
            let log = order.folder.join(format!("mps-{number}"));
            let hold = &mut *leases[self.cards[group[0]].lease].1;
            let daemon = Daemon::start(&uuids.join(","), &log, hold, limits)?;
            for card in group {
                self.cards[card].daemon = Some(number);
                if let Some(staged) = &mut self.cards[card].staged {
                    staged.daemons = vec![daemon.served().clone()];
                    staged.devices[0].daemon = Some(0);
                }
            }
            self.daemons.push(daemon);
        }
        Ok(())
    }

    /// The CUDA name of a card.
    fn device(&self, card: usize) -> Option<&str> {
        self.cards[card].staged.as_ref().map(|staged| staged.devices[0].uuid.as_str())
    }

    pub fn cards(&self) -> usize {
        self.cards.len()
    }

    /// The CUDA name of a card and whether it is an instance; `None` of a set of cores.
    pub fn visible(&self, card: usize) -> Option<&Visible> {
        self.cards[card].staged.as_ref().map(|staged| &staged.devices[0])
    }

    /// The UUID of the GPU that a card is or lies on; `None` of a set of cores.
    pub fn board_of(&self, card: usize) -> Option<&str> {
        self.cards[card].staged.as_ref().map(|staged| staged.uuid.as_str())
    }

    /// The cards on the same GPU as this one, itself among them.
    pub fn on_board(&self, card: usize) -> Vec<usize> {
        let own = self.board_of(card);
        (0..self.cards.len()).filter(|other| *other == card || (own.is_some() && self.board_of(*other) == own)).collect()
    }

    /// The driver's report if the GPU of a card has disappeared.
    pub fn lost(&self, card: usize) -> Option<String> {
        nvml::lost(self.board_of(card)?)
    }

    /// For people.
    pub fn label(&self, card: usize) -> String {
        match (&self.cards[card].staged, &self.cards[card].cores) {
            (Some(staged), _) if staged.mig => format!("{} of {}", staged.devices[0].uuid, staged.label),
            (Some(staged), _) => staged.label.clone(),
            (None, cores) => format!("cores {}", ranges(cores.as_deref().unwrap_or_default())),
        }
    }

    /// The cores of a card; `None` if the system decides.
    pub fn cores_of(&self, card: usize) -> Option<&[u32]> {
        self.cards[card].cores.as_deref()
    }

    /// What to sample: each GPU once, with the instances of it that are cards.
    pub fn boards(&self) -> Vec<Board> {
        let mut boards: Vec<Board> = Vec::new();
        for staged in self.cards.iter().filter_map(|card| card.staged.as_ref()) {
            let own = staged.board(self.sources);
            let mut instances: Vec<BoardInstance> = own.instances.clone();
            match boards.iter_mut().find(|board| board.uuid == own.uuid) {
                Some(board) => board.instances.append(&mut instances),
                None => boards.push(own),
            }
        }
        boards
    }

    /// The place of a member on these cards, the first of which is its main one.
    pub fn slot(&self, cards: &[usize]) -> Slot {
        let main = &self.cards[cards[0]];
        let Some(staged) = &main.staged else {
            let cores: Vec<u32> = cards.iter().filter_map(|card| self.cards[*card].cores.as_ref()).flatten().copied().collect();
            return Slot { cores: Some(cores), ..Slot::on_cpu(0, 1, &Cores::Shared, &[]) };
        };
        let uuids: Vec<&str> = cards.iter().filter_map(|card| self.device(*card)).collect();
        let mut env: BTreeMap<String, Option<String>> = orders::environment(staged, 0, None);
        env.insert("CUDA_VISIBLE_DEVICES".into(), Some(uuids.join(",")));
        Slot { env, cores: main.cores.clone(), client_of: staged.pipe_of(0).map(Path::to_path_buf) }
    }

    /// The check that fails if a member's hello names another device than its main card.
    pub fn misplaced(&self, card: usize, member: usize, hello: &Hello) -> Option<collo_store::Check> {
        let found = evidence::misplaced(self.cards[card].staged.as_ref(), 0, hello)?;
        Some(collo_store::Check { member: Some(member as u32), ..found })
    }

    /// What to ask on a thread of its own for the evidence of a card.
    pub fn asking(&self, card: usize) -> CardEvidence {
        CardEvidence { staged: self.cards[card].staged.clone().map(Arc::new) }
    }

    /// What is wrong with the daemon of a card; `None` if it works, or has none.
    pub fn trouble(&mut self, card: usize) -> Option<String> {
        self.daemons.get_mut(self.cards[card].daemon?)?.trouble()
    }

    /// The cards that share a daemon with this one, itself among them.
    pub fn served_with(&self, card: usize) -> Vec<usize> {
        let own = self.cards[card].daemon;
        (0..self.cards.len()).filter(|other| *other == card || (own.is_some() && self.cards[*other].daemon == own)).collect()
    }

    /// Start the daemon of these cards anew, once nobody is on any card that it serves. It serves no others from now on.
    pub fn renew(&mut self, cards: &[usize], leases: &mut [LeasedGpu<'_>], limits: &Limits) -> Result<(), StageError> {
        let Some(number) = cards.first().and_then(|card| self.cards[*card].daemon) else { return Ok(()) };
        let uuids: Vec<&str> = cards.iter().filter_map(|card| self.device(*card)).collect();
        // Daemons are written down with the same GPU throughout.
        let hold = &mut *leases[self.lease_of(number)].1;
        let log = self.daemons[number].next_log();
        let fresh = Daemon::start(&uuids.join(","), &log, hold, limits)?;
        std::mem::replace(&mut self.daemons[number], fresh).end(hold);
        let served = self.daemons[number].served().clone();
        for card in cards {
            if let Some(staged) = &mut self.cards[*card].staged {
                staged.daemons = vec![served.clone()];
            }
        }
        Ok(())
    }

    /// The lease of the GPU with which a daemon is written down.
    fn lease_of(&self, daemon: usize) -> usize {
        self.cards.iter().find(|card| card.daemon == Some(daemon)).map_or(0, |card| card.lease)
    }

    /// End what was started for this run alone.
    pub fn end(self, leases: &mut [LeasedGpu<'_>]) {
        let holds: Vec<usize> = (0..self.daemons.len()).map(|number| self.lease_of(number)).collect();
        for (daemon, lease) in self.daemons.into_iter().zip(holds) {
            daemon.end(leases[lease].1);
        }
    }
}

/// Asks whether the mode is in force for those on a card.
#[derive(Clone)]
pub struct CardEvidence {
    staged: Option<Arc<StagedCard>>,
}

impl CardEvidence {
    /// The evidence of those whose main card it is (with `member` numbering them from 0, in this order), beside those who compute on it
    /// besides their own, or on another instance of its GPU; and of the latter who computes on it. `None` if nobody's main card it is.
    pub fn attest(&self, own: &[InForce], besides: &[InForce]) -> (Option<collo_store::Attestation>, Vec<Option<bool>>) {
        let found = |card: Option<&StagedCard>, all: &[InForce]| (!own.is_empty()).then(|| attest(card, None, all));
        let Some(staged) = &self.staged else { return (found(None, own), vec![None; besides.len()]) };
        let mut card = StagedCard::clone(staged);
        card.devices = vec![card.devices[0].clone(); own.len()];
        // They are nobody's strangers, and have no device here to be attested on.
        let beyond = besides.iter().map(|there| InForce { member: usize::MAX, ..there.clone() });
        let all: Vec<InForce> = own.iter().cloned().chain(beyond).collect();
        let found = found(Some(&card), &all);
        let uuid = &staged.devices[0].uuid;
        (found, besides.iter().map(|there| gpu_evidence::computes(uuid, &there.pids)).collect())
    }
}
