//! Tables of trainings alone: how busy each kept its card, and how long its step took. In: a row. Out: percentages, watts, seconds.

use collo_gpus::Peaks;
use collo_predict::utilisation::{Measured, peaks_of};
use collo_text::{Diagnostic, quoted};

use super::{Reading, is_share_for_percent};
use crate::lines::Row;

/// What was read of a training alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Profile {
    pub measured: Measured,
    /// Of its device; None: the row names none.
    pub peaks: Option<&'static Peaks>,
}

/// Columns of one reading: of each the name, and how many times as much a percent is.
type Columns = &'static [(&'static str, f64)];
const SM_ACTIVE: Columns =
    &[("sm_active_ratio", 100.0), ("sm_active_percent", 1.0), ("smact_percent", 1.0), ("device_sm_active_ratio", 100.0)];
const GPU_UTILISATION: Columns = &[
    ("gpu_utilisation_percent", 1.0),
    ("gpu_utilization_percent", 1.0),
    ("gpu_utilisation_ratio", 100.0),
    ("device_gpu_utilization_ratio", 100.0),
];
const DRAM_ACTIVE: Columns =
    &[("dram_active_ratio", 100.0), ("dram_active_percent", 1.0), ("drama_percent", 1.0), ("device_dram_active_ratio", 100.0)];

impl Reading for Profile {
    const EXAMPLE: &'static str = "model,input,batch_size,precision,sm_active_ratio,device,measured_by";

    fn columns() -> Vec<&'static str> {
        readings().chain(["power_w", "device_power_w", "step_s", "items_per_s", "slice"]).collect()
    }

    fn lacking(has: impl Fn(&str) -> bool, _is_dataset: bool) -> Vec<String> {
        let any = readings().chain(["step_s", "items_per_s"]).any(has);
        if any { Vec::new() } else { vec!["`sm_active_ratio` (or another reading)".into()] }
    }

    fn unmeasured(row: &Row<'_>) -> Option<&'static str> {
        if row.get("device_kind") == "cpu" {
            Some("was on a CPU, whose activity is none of a GPU's")
        } else if row.get("degree") != "1" {
            Some("is of a group: how busy one of its members kept the card cannot be told")
        } else if !row.get("slice").is_empty() {
            Some("was on an instance of MIG, not on the whole card")
        } else {
            None
        }
    }

    fn of(row: &Row<'_>, is_dataset: bool, batch_size: u64) -> Result<Profile, Diagnostic> {
        let per_s = number(row, "items_per_s", f64::INFINITY)?;
        let step_s = number(row, "step_s", f64::INFINITY)?;
        let measured = Measured {
            sm_active_percent: percent(row, SM_ACTIVE)?,
            gpu_utilisation_percent: percent(row, GPU_UTILISATION)?,
            dram_active_percent: percent(row, DRAM_ACTIVE)?,
            power_w: number(row, "power_w", f64::INFINITY)?.or(number(row, "device_power_w", f64::INFINITY)?),
            step_s: step_s
                .or(per_s.map(|items| batch_size as f64 / items))
                .filter(|seconds| *seconds > 0.0 && seconds.is_finite()),
        };
        if measured == Measured::default() && !is_dataset {
            return Err(row.wrong("sm_active_ratio", "nothing was read of this training").hint("an absent reading is no row"));
        }
        if let (Some(active), Some(busy)) = (measured.sm_active_percent, measured.gpu_utilisation_percent)
            && !is_dataset
            && is_share_for_percent(active / 100.0, busy / 100.0)
        {
            let what = format!("the GPU utilisation is {busy} %, and SMs were active for {active} % of the time");
            let hint = "`gpu_utilisation_percent` is from 0 to 100, `gpu_utilisation_ratio` from 0 to 1";
            return Err(row.wrong("gpu_utilisation_percent", what).hint(hint));
        }
        let device = row.get("device");
        let peaks = match device.is_empty() {
            true => None,
            false => Some(peaks_of(device).map_err(|unknown| row.wrong("device", unknown.what().to_string()))?),
        };
        Ok(Profile { measured, peaks })
    }

    fn read_by(_row: &Row<'_>, _is_cpu: bool) -> (String, bool) {
        ("alone".into(), false)
    }

    fn with_one_more(self, alike: f64, more: Profile) -> Profile {
        let mean = |a: Option<f64>, b: Option<f64>| Some((a? * alike + b?) / (alike + 1.0));
        let (a, b) = (self.measured, more.measured);
        let measured = Measured {
            sm_active_percent: mean(a.sm_active_percent, b.sm_active_percent),
            gpu_utilisation_percent: mean(a.gpu_utilisation_percent, b.gpu_utilisation_percent),
            dram_active_percent: mean(a.dram_active_percent, b.dram_active_percent),
            power_w: mean(a.power_w, b.power_w),
            step_s: mean(a.step_s, b.step_s),
        };
        Profile { measured, ..self }
    }

    fn measured_by() -> Option<&'static str> {
        Some("others")
    }
}

/// The columns of activities.
fn readings() -> impl Iterator<Item = &'static str> {
    SM_ACTIVE.iter().chain(GPU_UTILISATION).chain(DRAM_ACTIVE).map(|(name, _)| *name)
}

fn percent(row: &Row<'_>, columns: Columns) -> Result<Option<f64>, Diagnostic> {
    for (column, times) in columns {
        if let Some(value) = number(row, column, 100.0 / times)? {
            return Ok(Some(value * times));
        }
    }
    Ok(None)
}

/// From 0 to the most.
fn number(row: &Row<'_>, column: &str, most: f64) -> Result<Option<f64>, Diagnostic> {
    let text = row.get(column);
    if text.is_empty() {
        return Ok(None);
    }
    let value = text.parse::<f64>().ok().filter(|value| value.is_finite() && (0.0..=most).contains(value));
    let bound = if most.is_finite() { format!("from 0 to {most}") } else { "of 0 or more".into() };
    value.map(Some).ok_or_else(|| row.wrong(column, format!("`{column}` is {}, not a number {bound}", quoted(text))))
}
