//! radT's metrics of one group in collo's names and units. What its listeners write for a value that they could not read is absent.
//!
//! To add a metric: its line in `METRICS`.

use std::collections::BTreeMap;

use super::tracking::TrackedRun;

/// Whose readings a metric has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// radt/run/listeners/smi_listener.py: of the GPU, also under MIG; −1 for what could not be read.
    Smi,
    /// radt/run/listeners/dcgmi_listener.py: of the GPU, under MIG of the run's instance; 0 for `N/A`.
    Dcgm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    /// The mean of the readings.
    Mean,
    /// Last less first reading of a counter.
    Growth,
}

/// A metric of collo's and where radT has it.
struct Imported {
    name: &'static str,
    radt: &'static str,
    from: Source,
    of: Of,
    /// To the unit in the name.
    factor: f64,
    /// Readings from here to there are possible; 0 W, or a counter at 0, is none.
    least: f64,
    most: f64,
}

const MIB: f64 = 1_048_576.0;
/// More than any board draws, and any link carries.
const MOST_W: f64 = 1e5;
const MOST_BYTES_PER_S: f64 = 1e13;

const fn share(name: &'static str, radt: &'static str) -> Imported {
    Imported { name, radt, from: Source::Dcgm, of: Of::Mean, factor: 1.0, least: 0.0, most: 1.0 }
}

/// nvidia-smi's `power.draw` is in W and `memory.used` in MiB (`nvidia-smi --help-query-gpu`); DCGM's field 156 in mJ, 1002 to 1005
/// are shares, 1009 and 1010 bytes per second (dcgm_fields.h). radT calls field 1002 `SN Active`. Of two sources the first counts.
const METRICS: [Imported; 9] = [
    Imported {
        name: "power_w",
        radt: "SMI - Power Draw",
        from: Source::Smi,
        of: Of::Mean,
        factor: 1.0,
        least: f64::MIN_POSITIVE,
        most: MOST_W,
    },
    Imported {
        name: "power_w",
        radt: "DCGMI - Power Usage",
        from: Source::Dcgm,
        of: Of::Mean,
        factor: 1.0,
        least: f64::MIN_POSITIVE,
        most: MOST_W,
    },
    Imported {
        name: "energy_j",
        radt: "DCGMI - Total Energy Consumption",
        from: Source::Dcgm,
        of: Of::Growth,
        factor: 1e-3,
        least: f64::MIN_POSITIVE,
        most: 1e18,
    },
    Imported {
        name: "memory_used_bytes",
        radt: "SMI - Mem Used",
        from: Source::Smi,
        of: Of::Mean,
        factor: MIB,
        least: 0.0,
        most: 1e9,
    },
    share("sm_active_ratio", "DCGMI - SN Active"),
    share("sm_occupancy_ratio", "DCGMI - SM Occupancy"),
    share("dram_active_ratio", "DCGMI - DRAM Active"),
    Imported {
        name: "pcie_tx_bytes_per_s",
        radt: "DCGMI - PCIE TX Bytes",
        from: Source::Dcgm,
        of: Of::Mean,
        factor: 1.0,
        least: 0.0,
        most: MOST_BYTES_PER_S,
    },
    Imported {
        name: "pcie_rx_bytes_per_s",
        radt: "DCGMI - PCIE RX Bytes",
        from: Source::Dcgm,
        of: Of::Mean,
        factor: 1.0,
        least: 0.0,
        most: MOST_BYTES_PER_S,
    },
];

/// The numbers of one group.
#[derive(Debug, Default)]
pub struct GroupMetrics {
    pub values: BTreeMap<&'static str, f64>,
    /// Why others are absent.
    pub absent: BTreeMap<&'static str, String>,
}

/// Of the runs of a group on one GPU; `divided` if each has a MIG instance.
///
/// Each run reads the whole GPU for as long as it trains, so that the one that read longest has seen most of the group.
pub fn of(runs: &[&TrackedRun], divided: bool) -> GroupMetrics {
    let mut found = GroupMetrics::default();
    let shifted = has_shifted_names(runs);
    for metric in &METRICS {
        if found.values.contains_key(metric.name) {
            continue;
        }
        let longest = runs.iter().map(|run| run.readings(metric.radt)).max_by_key(|s| span_ms(s)).unwrap_or_default();
        let value = match metric.from {
            _ if longest.is_empty() => Err("radT has no reading of it".to_string()),
            Source::Dcgm if divided => Err("under MIG, radT reads DCGM of a run's instance, not of the GPU".into()),
            Source::Dcgm if shifted && metric.radt.contains("PCIE") => Err(SHIFTED.into()),
            _ => metric.value(longest),
        };
        match value {
            Ok(value) => {
                found.absent.remove(metric.name);
                found.values.insert(metric.name, value);
            }
            Err(why) => drop(found.absent.entry(metric.name).or_insert(why)),
        }
    }
    found
}

/// The names that readings are wanted of.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    METRICS.iter().map(|metric| metric.radt).chain(NVLINK)
}

const NVLINK: [&str; 2] = ["DCGMI - NVlink TX Bytes", "DCGMI - NVlink RX Bytes"];

/// On GPUs without field 1006 dcgmi_listener.py asks for one field less and keeps its list of names, so that each name after
/// `DRAM Active` has the next one's values, and the last name none.
fn has_shifted_names(runs: &[&TrackedRun]) -> bool {
    let [sent, received] = NVLINK.map(|name| runs.iter().any(|run| !run.readings(name).is_empty()));
    sent && !received
}

const SHIFTED: &str = "on this GPU, which lacks DCGM's field 1006, radT's names are one field off";

fn span_ms(series: &[(u64, f64)]) -> u64 {
    series.first().zip(series.last()).map_or(0, |(first, last)| last.0 - first.0)
}

impl Imported {
    fn value(&self, series: &[(u64, f64)]) -> Result<f64, String> {
        let possible: Vec<f64> =
            series.iter().map(|(_, v)| *v).filter(|v| v.is_finite() && (self.least..=self.most).contains(v)).collect();
        if self.from == Source::Dcgm && series.iter().all(|(_, v)| *v == 0.0) {
            return Err("every reading is 0, which radT writes where DCGM reports N/A".into());
        }
        let (Some(first), Some(last)) = (possible.first(), possible.last()) else {
            return Err("none of radT's readings is possible".into());
        };
        match self.of {
            Of::Mean => Ok(possible.iter().sum::<f64>() / possible.len() as f64 * self.factor),
            Of::Growth if possible.windows(2).any(|w| w[1] < w[0]) => Err("its counter ran backwards".into()),
            Of::Growth if last == first => Err("its counter has one reading, or stood still".into()),
            Of::Growth => Ok((last - first) * self.factor),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(radt: &str, readings: &[f64]) -> Result<f64, String> {
        let metric = METRICS.iter().find(|m| m.radt == radt).unwrap();
        metric.value(&readings.iter().enumerate().map(|(i, v)| (i as u64 * 1000, *v)).collect::<Vec<_>>())
    }

    #[test]
    fn what_radt_could_not_read_is_absent_and_no_zero() {
        assert!(value("DCGMI - SN Active", &[0.0, 0.0]).unwrap_err().contains("N/A"));
        assert_eq!(value("DCGMI - SN Active", &[0.0, 0.5, 1.5]), Ok(0.25), "a share above 1 is no reading");
        assert_eq!(value("DCGMI - Power Usage", &[0.0, 100.0]), Ok(100.0), "no board draws nothing");
        assert_eq!(value("SMI - Mem Used", &[-1.0, 2.0]), Ok(2.0 * MIB));
        assert!(value("SMI - Power Draw", &[-1.0]).is_err());
    }

    #[test]
    fn energy_is_the_growth_of_a_counter_that_never_falls() {
        let energy = |readings: &[f64]| value("DCGMI - Total Energy Consumption", readings);
        assert_eq!(energy(&[0.0, 7_000.0, 9_500.0, 12_000.0]), Ok(5.0));
        assert!(energy(&[7_000.0, 6_000.0]).unwrap_err().contains("backwards"));
        assert!(energy(&[7_000.0]).unwrap_err().contains("one reading"));
    }
}
