//! The GPU profiler's metrics, with their numbers and names in GPM and DCGM.
//!
//! Directions are the GPU's own: `pcie_rx` is what it receives from the host, `pcie_tx` what it sends.

/// The level of a row's entity, from the whole GPU down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    Gpu,
    GpuInstance,
    ComputeInstance,
}

/// One metric of the profiler.
#[derive(Debug, PartialEq)]
pub struct Profiled {
    pub metric: &'static str,
    /// Its number in GPM, and GPM's unit in ours.
    pub gpm: u32,
    pub gpm_unit: f64,
    /// Its field number in DCGM, and its column head in `dcgmi dmon`.
    pub dcgm: u16,
    pub tag: &'static str,
    /// The lowest level at which DCGM defines it.
    pub lowest: Level,
    /// A share, from 0 to 1.
    pub is_ratio: bool,
}

const fn ratio(metric: &'static str, gpm: u32, dcgm: u16, tag: &'static str, lowest: Level) -> Profiled {
    // GPM counts in percent, DCGM from 0 to 1.
    Profiled { metric, gpm, gpm_unit: 0.01, dcgm, tag, lowest, is_ratio: true }
}

const fn traffic(metric: &'static str, gpm: u32, dcgm: u16, tag: &'static str) -> Profiled {
    // GPM counts in MiB/s, DCGM in bytes/s.
    Profiled { metric, gpm, gpm_unit: 1_048_576.0, dcgm, tag, lowest: Level::Gpu, is_ratio: false }
}

pub const PCIE_TX: &str = "pcie_tx_bytes_per_s";
pub const PCIE_RX: &str = "pcie_rx_bytes_per_s";

/// All metrics read, in DCGM's order.
pub const PROFILED: [Profiled; 10] = [
    ratio("graphics_active_ratio", 1, 1001, "GRACT", Level::ComputeInstance),
    ratio("sm_active_ratio", 2, 1002, "SMACT", Level::ComputeInstance),
    ratio("sm_occupancy_ratio", 3, 1003, "SMOCC", Level::ComputeInstance),
    ratio("tensor_active_ratio", 5, 1004, "TENSO", Level::ComputeInstance),
    ratio("dram_active_ratio", 10, 1005, "DRAMA", Level::GpuInstance),
    ratio("fp64_active_ratio", 11, 1006, "FP64A", Level::ComputeInstance),
    ratio("fp32_active_ratio", 12, 1007, "FP32A", Level::ComputeInstance),
    ratio("fp16_active_ratio", 13, 1008, "FP16A", Level::ComputeInstance),
    traffic(PCIE_TX, 20, 1009, "PCITX"),
    traffic(PCIE_RX, 21, 1010, "PCIRX"),
];

impl Profiled {
    /// Whether the metric exists for so small a part of a GPU. GPM's values for an instance's PCIe traffic are not confirmed, and
    /// DCGM has none: it does not exist.
    pub fn exists_at(&self, level: Level) -> bool {
        level <= self.lowest
    }

    /// The metric with this column head.
    pub fn of_tag(tag: &str) -> Option<&'static Profiled> {
        PROFILED.iter().find(|p| p.tag == tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_over_pcie_is_of_a_whole_card_and_the_dram_of_a_gpu_instance_at_the_least() {
        let names = |level| PROFILED.iter().filter(move |p| p.exists_at(level)).map(|p| p.dcgm).collect::<Vec<_>>();
        assert_eq!(names(Level::Gpu), (1001..=1010).collect::<Vec<_>>());
        assert_eq!(names(Level::GpuInstance), (1001..=1008).collect::<Vec<_>>());
        assert_eq!(names(Level::ComputeInstance), [1001, 1002, 1003, 1004, 1006, 1007, 1008]);
    }
}
