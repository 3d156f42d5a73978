//! The limits of one member on a device that it shares through MPS.

use std::fmt;

use collo_text::units;

/// The limits of one member; absent means unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    pub active_thread_percent: Option<u8>,
    pub memory_bytes: Option<u64>,
}

impl Limits {
    /// `50%`, `50%,mem=4GB`, `mem=4GB`; the error says what is wrong.
    pub fn parse(text: &str) -> Result<Limits, String> {
        let mut limits = Limits::default();
        let (percent, memory) = match text.split_once(',') {
            Some((percent, memory)) => (Some(percent), Some(memory)),
            None if text.starts_with("mem=") => (None, Some(text)),
            None => (Some(text), None),
        };
        if let Some(percent) = percent {
            let digits = percent.strip_suffix('%').filter(|d| d.chars().all(|c| c.is_ascii_digit()));
            let number = digits.and_then(|d| d.parse().ok()).filter(|p| (1..=100).contains(p));
            limits.active_thread_percent =
                Some(number.ok_or("the share of threads is between `1%` and `100%`, as in `mps:50%`")?);
        }
        if let Some(memory) = memory {
            let size = memory.strip_prefix("mem=").and_then(units::size_bytes).filter(|b| *b > 0);
            limits.memory_bytes = Some(size.ok_or(format!("memory is as in `mps:50%,mem=4GB`; {}", units::SIZE_HELP))?);
        }
        Ok(limits)
    }

    /// The environment of a daemon on so many devices, or of its clients, in the MPS guide's own variables. Devices are numbered: with
    /// their UUIDs the limit is not applied (k8s-device-plugin #572).
    pub fn environment(&self, devices: u32) -> Vec<(&'static str, String)> {
        let percent = self.active_thread_percent.map(|p| ("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", p.to_string()));
        let on_each = |bytes: u64| (0..devices).map(|device| format!("{device}={}M", bytes >> 20)).collect::<Vec<_>>().join(",");
        let memory = self.memory_bytes.map(|bytes| ("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", on_each(bytes)));
        percent.into_iter().chain(memory).collect()
    }
}

/// The format of [`Limits::parse`]; empty without a limit.
impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.active_thread_percent.map(|p| format!("{p}%"));
        let memory = self.memory_bytes.map(|b| format!("mem={}", units::size_text(b)));
        f.write_str(&percent.into_iter().chain(memory).collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: Limits = Limits { active_thread_percent: Some(50), memory_bytes: Some(4_000_000_000) };

    #[test]
    fn a_daemon_on_two_devices_limits_memory_on_both() {
        let memory = |devices| ASKED.environment(devices).pop().expect("a limit").1;
        assert_eq!((memory(1).as_str(), memory(2).as_str()), ("0=3814M", "0=3814M,1=3814M"));
    }
}
