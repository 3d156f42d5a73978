//! The state of the simulated machine that outlives processes: MIG modes and instances, compute modes. A JSON file, replaced whole.
//!
//! In: a folder and the scenario that it is made from on first use. Out: [`State`]. Like a real machine's, the state is lost when the
//! machine boots.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::card::Card;
use crate::dice::Dice;
use crate::history::Base;
use crate::scenario::Scenario;
use crate::services::{self, Service};
use crate::{clock, cut};

/// The variable that makes the cards of a machine others than those of an equal one: no two cards in the world have one UUID.
pub const SERIAL: &str = "COLLO_SIM_SERIAL";

/// Compute modes as NVML numbers them.
pub const DEFAULT: u32 = 0;
pub const PROHIBITED: u32 = 2;
pub const EXCLUSIVE_PROCESS: u32 = 3;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub boot: String,
    /// From where the log of activity goes on.
    pub base: Base,
    /// Of the last thing that was made; no number is given twice.
    pub serial: u64,
    /// How often destroying was refused because the scenario says so.
    pub refused: u32,
    pub cards: Vec<CardState>,
    /// None on a machine without any.
    #[serde(default)]
    pub services: Vec<Service>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CardState {
    pub uuid: String,
    pub mig: bool,
    pub mig_pending: bool,
    pub compute_mode: u32,
    pub persistence: bool,
    /// Watts; absent: the card's own.
    #[serde(default)]
    pub power_limit_w: Option<f64>,
    /// MHz that somebody asked for with the clocks of applications, or locked; a reset forgets both.
    #[serde(default)]
    pub application_mhz: Option<u32>,
    #[serde(default)]
    pub locked_mhz: Option<u32>,
    /// How often the card was reset: handles from before a reset stand for nothing.
    #[serde(default)]
    pub resets: u64,
    pub instances: Vec<GpuInstance>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuInstance {
    pub id: u32,
    pub serial: u64,
    /// The profile's id.
    pub profile: u32,
    pub start: u32,
    pub size: u32,
    pub made_ns: u64,
    pub compute: Vec<ComputeInstance>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComputeInstance {
    pub id: u32,
    pub serial: u64,
    pub uuid: String,
    /// The profile's id.
    pub profile: u32,
    pub start: u32,
    pub slices: u32,
    pub sms: u32,
    /// Its place in the enumeration of MIG devices; places of destroyed ones stay empty.
    pub index: u32,
}

impl State {
    /// A machine that was just switched on.
    pub fn new(scenario: &Scenario, cards: &[Arc<Card>]) -> Result<State, String> {
        let base = Base { at_ns: clock::now_ns(), ..Base::default() };
        let mut state =
            State { boot: clock::boot_id(), base, serial: 0, refused: 0, cards: Vec::new(), services: services::new(scenario) };
        for (i, card) in cards.iter().enumerate() {
            state.cards.push(CardState {
                uuid: uuid(card, i),
                mig: false,
                mig_pending: false,
                compute_mode: if scenario.has("exclusive") { EXCLUSIVE_PROCESS } else { DEFAULT },
                persistence: !scenario.has("no-persistence"),
                power_limit_w: scenario.number("power-limit"),
                application_mhz: scenario.number("application-clocks").map(|mhz| mhz as u32),
                locked_mhz: scenario.number("locked-clocks").map(|mhz| mhz as u32),
                resets: 0,
                instances: Vec::new(),
            });
        }
        if let Some(layout) = scenario.value("mig") {
            for (i, card) in cards.iter().enumerate().filter(|(_, card)| card.mig.is_some()) {
                state.cards[i].mig = true;
                state.cards[i].mig_pending = true;
                for profile in named(card, layout)? {
                    state.found(card, i, profile)?;
                }
            }
        }
        Ok(state)
    }

    /// An instance that somebody made before, with one compute instance that fills it.
    fn found(&mut self, card: &Card, index: usize, profile: u32) -> Result<(), String> {
        let wrong = || format!("the layout of the scenario does not fit: profile {profile}");
        // A 3g lies to the right: so whatever comes with it has room.
        let free = cut::free_starts(card, &self.cards[index], profile);
        let right = card.profile(profile).is_some_and(|p| p.slices == 3);
        let start = *if right { free.last() } else { free.first() }.ok_or_else(wrong)?;
        let serial = self.next_serial();
        let gi = cut::make_gpu_instance(card, &mut self.cards[index], profile, start, serial).map_err(|_| wrong())?;
        let own = cut::whole_compute_profile(card, profile).ok_or_else(wrong)?;
        let serial = self.next_serial();
        cut::make_compute_instance(card, &mut self.cards[index], gi, own, serial).map_err(|_| wrong())?;
        // It is older than whatever looks at it: it was there when the machine was switched on.
        let began_ns = self.base.at_ns;
        self.cards[index].instances.iter_mut().filter(|g| g.id == gi).for_each(|g| g.made_ns = began_ns);
        Ok(())
    }

    /// Whether it is the state of these cards: with others, the machine is another.
    pub fn is_of(&self, cards: &[Arc<Card>]) -> bool {
        let same = |(i, (state, card)): (usize, (&CardState, &Arc<Card>))| state.uuid == uuid(card, i);
        self.cards.len() == cards.len() && self.cards.iter().zip(cards).enumerate().all(same)
    }

    pub fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    pub fn read(path: &Path) -> Option<State> {
        let state: State = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
        (state.boot == clock::boot_id()).then_some(state)
    }

    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        let aside = path.with_extension("new");
        std::fs::write(&aside, serde_json::to_vec_pretty(self)?)?;
        crate::sim::open_to_all(&aside);
        std::fs::rename(&aside, path)
    }
}

fn uuid(card: &Card, index: usize) -> String {
    card_uuid(&card.key, index, &std::env::var(SERIAL).unwrap_or_default())
}

/// The UUID of a card by its kind, its index, and the serial number of its machine, which may be empty.
pub fn card_uuid(kind: &str, index: usize, serial: &str) -> String {
    let index = index.to_string();
    let parts = [kind, &index, serial];
    let known = if serial.is_empty() { &parts[..2] } else { &parts[..] };
    format!("GPU-{}", Dice::of(known).uuid())
}

/// `2×3g.20gb`, several of these joined by `/`, a layout of the card's file, or `none` for MIG without instances.
fn named(card: &Card, layout: &str) -> Result<Vec<u32>, String> {
    let mut ids = Vec::new();
    if layout == "none" {
        return Ok(ids);
    }
    let listed: Vec<String> = match card.layouts.get(layout) {
        Some(profiles) => profiles.clone(),
        None => layout.split('/').map(str::to_string).collect(),
    };
    for item in listed {
        let (count, name) = item.split_once(['×', 'x']).unwrap_or(("1", &item));
        let count: u32 = count.parse().map_err(|_| format!("`mig={layout}`: `{item}` is no number of instances"))?;
        let profile = card.profile_named(name).ok_or_else(|| format!("`mig={layout}`: {} has no `{name}`", card.name))?;
        ids.extend(std::iter::repeat_n(profile.id, count as usize));
    }
    Ok(ids)
}

impl CardState {
    /// What a reset of the card forgets.
    pub fn reset(&mut self) {
        self.compute_mode = DEFAULT;
        self.power_limit_w = None;
        self.application_mhz = None;
        self.locked_mhz = None;
        self.resets += 1;
    }

    pub fn instance(&self, id: u32) -> Option<&GpuInstance> {
        self.instances.iter().find(|g| g.id == id)
    }

    /// All compute instances with the GPU instances that hold them.
    pub fn compute(&self) -> impl Iterator<Item = (&GpuInstance, &ComputeInstance)> {
        self.instances.iter().flat_map(|g| g.compute.iter().map(move |c| (g, c)))
    }
}
