//! A pause that ends with a temperature: `until 5C above idle, at most 10m`.

use std::time::Duration;

use regex::Regex;

use collo_text::units;

/// Before each run the GPU cools down to its idle temperature.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ThermalGate {
    /// As near as this to the temperature before the campaign.
    pub above_idle_c: f64,
    /// The longest wait; then the run begins all the same, and is indicative.
    pub at_most: Duration,
}

/// The longest wait if none is written.
const AT_MOST: Duration = Duration::from_secs(5 * 60);
/// For error messages.
pub const HELP: &str = "write a pause as in `\"5s\"`, or `\"until 5C above idle, at most 10m\"`";

impl ThermalGate {
    pub fn parse(text: &str) -> Option<ThermalGate> {
        let form = r"^until\s+([0-9]+(?:\.[0-9]+)?)\s*°?\s*C\s+above\s+idle(?:\s*,\s*at\s+most\s+([0-9.]+[a-z]+))?$";
        let found = Regex::new(form).ok()?.captures(text.trim())?;
        let at_most = match found.get(2) {
            Some(limit) => units::duration(limit.as_str()).filter(|limit| !limit.is_zero())?,
            None => AT_MOST,
        };
        Some(ThermalGate { above_idle_c: found[1].parse().ok()?, at_most })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_has_a_distance_from_idle_and_a_longest_wait() {
        let gate =
            |above_idle_c: f64, minutes: u64| Some(ThermalGate { above_idle_c, at_most: Duration::from_secs(60 * minutes) });
        assert_eq!(ThermalGate::parse("until 5C above idle"), gate(5.0, 5));
        assert_eq!(ThermalGate::parse("until 2.5 °C above idle, at most 10m"), gate(2.5, 10));
        for wrong in ["until 5 above idle", "until idle", "5s", "until 5C above idle, at most 0s", "until -5C above idle"] {
            assert_eq!(ThermalGate::parse(wrong), None, "{wrong}");
        }
    }
}
