//! A device as a seating asks for: GPUs partitioned, MPS daemons started, and what each member may see.
//!
//! A group is on one card, each member on its seat. For members that come and go, as in a trace, each GPU or instance is a card: what is
//! staged serves all who come, and evidence is gathered for those who are there.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::daemon::{Daemon, MpsDaemon};
use super::staging::{Consent, StageError, StagedCard, Visible, empty_folder, needs_program};
use super::{evidence, gpu_evidence, orders};
use crate::stage::evidence::{InForce, attest};
use collo_device::lease::LeasedGpu;
use collo_device::nvml;
use collo_device::repartition::PartitionedGpu;
use collo_launch::protocol::Hello;
use collo_plan::cell::Cell;
use collo_plan::experiment::SourceChoice;
use collo_plan::facts::{CardShare, Cores, DeviceKind, core_sets};
use collo_plan::sharing::{Limits, Seat, Seating};
use collo_prepare::slot::Slot;
use collo_sample::gpu::{gpu_scope, mig_scope};
use collo_sample::{Board, BoardInstance, core_scope};
use collo_text::units::ranges;

/// The cards of a run.
pub struct StagedSite {
    cards: Vec<SiteCard>,
    /// With the lease whose journal knows each.
    daemons: Vec<(Daemon, usize)>,
    /// Those of the daemons.
    limits: Limits,
    sources: SourceChoice,
}

/// A GPU, a GPU instance, or a set of CPU cores.
#[derive(Default)]
struct SiteCard {
    /// `None` on a CPU.
    staged: Option<Arc<StagedCard>>,
    cores: Option<Vec<u32>>,
    /// How many cores of a set can be busy at a time; `None` of a GPU.
    set_at_a_time: Option<f64>,
}

/// What a device is staged for.
pub struct SiteOrder<'a> {
    /// The folder of the run, where daemons write their logs.
    pub folder: &'a Path,
    /// By GPU, what of the machine its members have.
    pub shares: &'a [CardShare],
    pub consent: Consent,
    pub sources: SourceChoice,
    pub placing: Placing,
}

/// How members are placed on cards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placing {
    /// Each member of a group on its seat, on one card.
    Seats,
    /// Members that come and go: a card is a whole GPU, an instance as it is partitioned, or one of `count` sets of CPU cores. If some
    /// compute on several, one daemon serves all cards, because a client has but one.
    Cards { count: usize, several: bool },
}

impl Placing {
    pub fn of(cell: &Cell) -> Placing {
        match cell.trace() {
            None => Placing::Seats,
            Some(trace) => {
                let several = trace.tasks.iter().any(|task| task.cards > 1);
                Placing::Cards { count: trace.record.cards as usize, several }
            }
        }
    }
}

impl StagedSite {
    /// The CPU, or these GPUs in the state that this seating asks for.
    pub fn stage(leases: &mut [LeasedGpu<'_>], seating: &Seating, order: &SiteOrder<'_>) -> Result<StagedSite, StageError> {
        // A daemon is told what all its clients have alike; else each client is.
        let limits = seating.common_limits().unwrap_or_default();
        let mut site = StagedSite { cards: Vec::new(), daemons: Vec::new(), limits, sources: order.sources };
        if let [CardShare { facts, .. }] = order.shares
            && facts.kind == DeviceKind::Cpu
        {
            site.cards = match order.placing {
                Placing::Seats => vec![SiteCard::default()],
                Placing::Cards { count, .. } => {
                    let device = facts.record();
                    let card = |cores: Vec<u32>| SiteCard {
                        staged: None,
                        set_at_a_time: Some(device.set_at_a_time(cores.len(), count)),
                        cores: Some(cores),
                    };
                    core_sets(&facts.cores, count).into_iter().map(card).collect()
                }
            };
            return Ok(site);
        }
        match site.stage_gpus(leases, seating, order) {
            Ok(()) => Ok(site),
            Err(why) => {
                site.end(leases);
                Err(why)
            }
        }
    }

    fn stage_gpus(&mut self, leases: &mut [LeasedGpu<'_>], seating: &Seating, order: &SiteOrder<'_>) -> Result<(), StageError> {
        if leases.is_empty() {
            return Err(StageError::because("no GPU is leased"));
        }
        let mig = seating.partition.as_ref().is_some_and(|p| p.mig);
        let exclusive = seating.daemons && order.consent.exclusive && !mig;
        let told = self.limits;
        let own_limits = seating.common_limits().is_none();
        for (lease, (gpu, hold)) in leases.iter_mut().enumerate() {
            if !exclusive {
                hold.make_shared()?;
            }
            let as_found = (mig && order.placing != Placing::Seats).then(|| hold.found().clone());
            let cut = as_found.or_else(|| seating.partition.clone()).map(|partition| hold.apply(&partition)).transpose()?;
            let whole = Visible {
                uuid: hold.uuid().into(),
                sms: gpu.sms,
                gpu_instance: None,
                compute_instance: None,
                daemon: None,
                percent: told.active_thread_percent,
            };
            let cards = match order.placing {
                Placing::Seats => vec![seats(&whole, seating, cut.as_ref())?],
                Placing::Cards { .. } => cards(&whole, cut.filter(|_| mig)),
            };
            for devices in cards {
                let staged = StagedCard {
                    label: gpu.label(),
                    uuid: hold.uuid().to_string(),
                    sms: gpu.sms,
                    mig,
                    devices,
                    daemons: Vec::new(),
                    empty: empty_folder()?,
                    foreign: order.consent.foreign,
                    thread_limit_percent: told.active_thread_percent,
                    memory_limit_bytes: told.memory_bytes,
                    own_memory_limits: own_limits && seating.limits.iter().any(|l| l.memory_bytes.is_some()),
                };
                let near = gpu.near_cores();
                let cores = order.shares.get(lease).and_then(|share| share.cores.of(0, 1, &share.facts.cores, near.as_deref()));
                self.cards.push(SiteCard { staged: Some(Arc::new(staged)), cores, set_at_a_time: None });
            }
            if exclusive {
                hold.make_exclusive()?;
            }
        }
        if seating.daemons { self.start_daemons(leases, order, mig) } else { Ok(()) }
    }

    fn start_daemons(&mut self, leases: &mut [LeasedGpu<'_>], order: &SiteOrder<'_>, mig: bool) -> Result<(), StageError> {
        needs_program()?;
        let staged = self.cards.iter().filter_map(|card| card.staged.as_deref());
        let served = orders::served(staged, order.placing);
        for (number, uuids) in served.into_iter().enumerate() {
            let log = orders::log_folder(order.folder, mig || order.placing != Placing::Seats, number);
            let mut staged: Vec<_> = self.cards.iter_mut().filter_map(|card| card.staged.as_mut()).collect();
            staged.retain(|staged| staged.is_among(&uuids));
            let lease = leases.iter().position(|(_, hold)| hold.uuid() == staged[0].uuid).unwrap_or_default();
            let daemon = Daemon::start(&uuids, &log, leases[lease].1, &self.limits)?;
            staged.into_iter().for_each(|staged| Arc::make_mut(staged).serve(&uuids, daemon.served().clone()));
            self.daemons.push((daemon, lease));
        }
        Ok(())
    }

    /// A GPU as it is staged; `None` of a set of cores.
    pub fn card(&self, card: usize) -> Option<Arc<StagedCard>> {
        self.cards[card].staged.clone()
    }

    /// By member of a group, its slot on the one card.
    pub fn slots(&self, seating: &Seating, share: &CardShare) -> Vec<Slot> {
        let (members, all) = (seating.seats.len(), &share.facts.cores);
        match &self.cards[0].staged {
            Some(card) => {
                let near = share.facts.gpu().and_then(|gpu| gpu.near_cores());
                orders::slots(card, seating, &share.cores, all, near.as_deref())
            }
            None => (0..members).map(|member| Slot::on_cpu(member, members, &share.cores, all)).collect(),
        }
    }

    /// The CUDA name of a card.
    fn device(&self, card: usize) -> Option<&str> {
        self.visible(card).map(|device| device.uuid.as_str())
    }

    pub fn cards(&self) -> usize {
        self.cards.len()
    }

    /// The CUDA name of a card and whether it is an instance; `None` of a set of cores.
    pub fn visible(&self, card: usize) -> Option<&Visible> {
        self.cards[card].staged.as_ref().map(|staged| &staged.devices[0])
    }

    /// The scope of its samples.
    pub fn scope(&self, card: usize) -> Arc<str> {
        match self.visible(card) {
            Some(device) if device.gpu_instance.is_some() => mig_scope(&device.uuid),
            Some(device) => gpu_scope(&device.uuid),
            None => core_scope(self.cores_of(card).unwrap_or_default()),
        }
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

    /// How many cores of a card that is a set of them can be busy at a time; `None` of a GPU.
    pub fn set_at_a_time(&self, card: usize) -> Option<f64> {
        self.cards[card].set_at_a_time
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
        let found = evidence::misplaced(self.cards[card].staged.as_deref(), 0, hello)?;
        Some(collo_store::Check { member: Some(member as u32), ..found })
    }

    /// The daemons of a card.
    fn daemons_of(&self, card: usize) -> &[MpsDaemon] {
        self.cards[card].staged.as_ref().map_or(&[], |staged| &staged.daemons)
    }

    /// What is wrong with the daemons of a card; `None` if they work, or it has none.
    pub fn trouble(&mut self, card: usize) -> Option<String> {
        let own = self.daemons_of(card).to_vec();
        self.daemons.iter_mut().filter(|(daemon, _)| own.contains(daemon.served())).find_map(|(daemon, _)| daemon.trouble())
    }

    /// The cards that share a daemon with this one, itself among them.
    pub fn served_with(&self, card: usize) -> Vec<usize> {
        let own = self.daemons_of(card);
        let shares = |other: &usize| *other == card || self.daemons_of(*other).iter().any(|daemon| own.contains(daemon));
        (0..self.cards.len()).filter(shares).collect()
    }

    /// Start the daemon of these cards anew, once nobody is on any card that it serves. It serves no others from now on.
    pub fn renew(&mut self, cards: &[usize], leases: &mut [LeasedGpu<'_>]) -> Result<(), StageError> {
        let Some(before) = cards.first().and_then(|card| self.daemons_of(*card).first()).cloned() else { return Ok(()) };
        let Some(number) = self.daemons.iter().position(|(daemon, _)| *daemon.served() == before) else { return Ok(()) };
        let uuids = cards.iter().filter_map(|card| self.device(*card)).collect::<Vec<_>>().join(",");
        let (daemon, lease) = &mut self.daemons[number];
        // Daemons are written down with the same GPU throughout.
        let hold = &mut *leases[*lease].1;
        let fresh = Daemon::start(&uuids, &daemon.next_log(), hold, &self.limits)?;
        let served = fresh.served().clone();
        std::mem::replace(daemon, fresh).end(hold);
        for card in cards {
            if let Some(staged) = &mut self.cards[*card].staged {
                Arc::make_mut(staged).daemons = vec![served.clone()];
            }
        }
        Ok(())
    }

    /// End what was started for this run alone.
    pub fn end(self, leases: &mut [LeasedGpu<'_>]) {
        for (daemon, lease) in self.daemons {
            daemon.end(leases[lease].1);
        }
    }
}

/// What each member of a group must see. The instances that are there have an order of their own: by place for an administrator, by id for
/// other users, who see no places.
fn seats(whole: &Visible, seating: &Seating, cut: Option<&PartitionedGpu>) -> Result<Vec<Visible>, StageError> {
    let there = match cut {
        Some(cut) => seating.inside(&cut.partition),
        None => Some(seating.clone()),
    };
    let lacking = || StageError::because("the instances of the GPU are not those that the members need");
    let seating = &there.ok_or_else(lacking)?;
    let visible = |(member, seat): (usize, &Seat)| {
        let percent = seating.limits.get(member).and_then(|l| l.active_thread_percent);
        let whole = Visible { percent, ..whole.clone() };
        let Seat::Slice { instance, compute } = *seat else { return Some(whole) };
        Some(whole.on(cut?.instances.get(instance)?.devices.get(compute)?))
    };
    let all: Option<Vec<Visible>> = seating.seats.iter().enumerate().map(visible).collect();
    all.ok_or_else(|| StageError::because("an instance was created, but CUDA does not see it"))
}

/// The whole GPU as a card, or each of its instances.
fn cards(whole: &Visible, cut: Option<PartitionedGpu>) -> Vec<Vec<Visible>> {
    let Some(cut) = cut else { return vec![vec![whole.clone()]] };
    cut.instances.iter().flat_map(|instance| &instance.devices).map(|device| vec![whole.on(device)]).collect()
}

/// The evidence of those whose main card it is (with `member` numbering them from 0, in this order), beside those who compute on it
/// besides their own, or on another instance of its GPU, each with the device of its main card; and of the latter who computes on it.
/// `None` if nobody's main card it is.
pub fn attest_beside(
    card: Option<&StagedCard>,
    own: &[InForce],
    besides: &[(InForce, Option<String>)],
) -> (Option<collo_store::Attestation>, Vec<Option<bool>>) {
    let found = |card: Option<&StagedCard>, all: &[InForce]| (!own.is_empty()).then(|| attest(card, None, all));
    let Some(staged) = card else { return (found(None, own), vec![None; besides.len()]) };
    let device = &staged.devices[0];
    let card = StagedCard { devices: vec![device.clone(); own.len()], ..staged.clone() };
    // They are nobody's strangers, and have no device here to be attested on.
    let beyond = besides.iter().map(|(there, _)| InForce { member: usize::MAX, ..there.clone() });
    let all: Vec<InForce> = own.iter().cloned().chain(beyond).collect();
    let on = |uuid: &str, there: &InForce| gpu_evidence::computes(uuid, &there.pids);
    let computes = |(there, main): &(InForce, Option<String>)| match on(&device.uuid, there) {
        // One that has ended, or is just ending, computes on no card: it leaves none of them idle.
        Some(false) => main.as_ref().and_then(|main| on(main, there)).filter(|is_there| *is_there).map(|_| false),
        found => found,
    };
    (found(Some(&card), &all), besides.iter().map(computes).collect())
}
