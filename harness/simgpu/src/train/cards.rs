//! The cards that CUDA gives a member, and the MPS server that it is a client of.

use super::member::{End, cuda_error, failed};
use super::options::Options;
use super::torch_cuda;
use crate::mps::client::{Answer, Client, attach};
use crate::scenario::Who;
use crate::sim::Sim;
use crate::state::PROHIBITED;
use crate::visible::{Place, places};

/// What `cudaErrorDevicesUnavailable` says.
pub const UNAVAILABLE: &str = "CUDA-capable device(s) is/are busy or unavailable";

/// Where a member computes.
pub struct Cards {
    /// The first is its own, the others are those that it spreads its batches to.
    pub places: Vec<Place>,
    pub client: Option<Client>,
}

/// The cards of a member. More than one only if its script spreads batches, as `language` does with `data_parallel`.
pub fn of(sim: &Sim, who: &Who, options: &Options) -> Result<Cards, End> {
    let (_, brings) = sim.driver();
    if torch_cuda().split('.').next().and_then(|major| major.parse().ok()).is_some_and(|major: i32| major > brings / 1000) {
        let words = "The NVIDIA driver on your system is too old";
        return Err(failed("other", format!("{words} (found version {brings}). Please update your GPU driver")));
    }
    let none = || failed("other", "No CUDA GPUs are available");
    let variable = std::env::var("CUDA_VISIBLE_DEVICES").ok();
    let alone = sim.scenario.has("mps-no-attach") && sim.scenario.means_member("mps-no-attach", who.member);
    let answer = if alone { Answer::Nobody } else { attach() };
    let client = match answer {
        Answer::Nobody => None,
        Answer::Served(client) => Some(client),
        Answer::Refused(code) => return Err(cuda_error(&format!("the MPS server is not ready to accept new clients ({code})"))),
    };
    let mut seen = match &client {
        None => places(sim, variable.as_deref()),
        Some(client) => served(sim, client, variable.as_deref()),
    };
    let spreads = options.0.get("data_parallel").is_some_and(|word| word == "auto") && !sim.scenario.means("idle-cards", who);
    seen.truncate(if spreads { usize::MAX } else { 1 });
    if seen.is_empty() || seen.iter().any(|place| sim.is_lost(place.card)) {
        return Err(none());
    }
    if seen.iter().any(|place| sim.state().cards[place.card].compute_mode == PROHIBITED) {
        return Err(cuda_error(UNAVAILABLE));
    }
    Ok(Cards { places: seen, client })
}

/// A server counts its own devices from 0; what is not a device ends the list.
fn served(sim: &Sim, client: &Client, variable: Option<&str>) -> Vec<Place> {
    let place = |uuid: &String| places(sim, Some(uuid)).into_iter().next();
    let Some(variable) = variable else { return client.devices.iter().map_while(place).collect() };
    let named = |word: &str| match word.parse::<usize>() {
        Ok(index) => client.devices.get(index),
        Err(_) => client.devices.iter().find(|uuid| word.len() > 4 && uuid.starts_with(word)),
    };
    variable.split(',').map(str::trim).map_while(|word| place(named(word)?)).collect()
}
