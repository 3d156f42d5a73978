//! What was published of a sweep over launches. In: `reports/published/square.json`, embedded in the binary: readings of one kernel by
//! its blocks and threads. Out: the readings of a point. They are means of whole runs with idle head and tail, and none has a spread,
//! so that no point is judged by them.

use std::sync::OnceLock;

use collo_quantity::Key;
use serde::Deserialize;

use crate::published::Published;

/// The published readings.
#[derive(Debug, Default, Deserialize)]
pub struct Square {
    pub device: String,
    pub source: String,
    pub conditions: String,
    claims: Vec<SquareClaim>,
    pub points: Vec<PublishedLaunch>,
}

/// A statement that a guideline judges.
#[derive(Debug, Deserialize)]
struct SquareClaim {
    guideline: String,
    statement: String,
    short: String,
    source: String,
}

/// One point; a reading that was not published is absent.
#[derive(Debug, Deserialize)]
pub struct PublishedLaunch {
    pub blocks: u64,
    pub threads: u64,
    gpu_utilization_ratio: Option<f64>,
    graphics_active_ratio: Option<f64>,
    sm_active_ratio: Option<f64>,
    sm_occupancy_ratio: Option<f64>,
}

/// The readings; a test compares the file with its reader.
pub fn square() -> &'static Square {
    static SQUARE: OnceLock<Square> = OnceLock::new();
    SQUARE.get_or_init(|| serde_json::from_str(include_str!("../../../../reports/published/square.json")).unwrap_or_default())
}

impl Square {
    /// A metric of a point, if it was published.
    pub fn reading(&self, blocks: u64, threads: u64, key: Key) -> Option<f64> {
        let point = self.points.iter().find(|p| (p.blocks, p.threads) == (blocks, threads))?;
        match key {
            Key::GpuUtilization => point.gpu_utilization_ratio,
            Key::GraphicsActive => point.graphics_active_ratio,
            Key::SmActive => point.sm_active_ratio,
            Key::SmOccupancy => point.sm_occupancy_ratio,
            _ => None,
        }
    }

    /// What was published about the claim of a guideline.
    pub fn claim(&'static self, guideline: &str) -> Option<Published> {
        let claim = self.claims.iter().find(|c| c.guideline == guideline)?;
        Some(Published::new(&claim.statement, &claim.short, &claim.source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_read_whole_and_its_readings_are_shares_of_the_figure_they_are_from() {
        let square = square();
        assert_eq!(square.points.len(), 9);
        assert!(square.source.contains("EuroMLSys") && square.device.contains("A100") && square.conditions.contains("idle"));
        for p in &square.points {
            let of = |key| square.reading(p.blocks, p.threads, key).unwrap_or_else(|| panic!("{} × {}", p.blocks, p.threads));
            let [used, engine, active, warps] =
                [Key::GpuUtilization, Key::GraphicsActive, Key::SmActive, Key::SmOccupancy].map(of);
            assert!(warps <= active && active <= engine && engine <= 1.0 && used <= 1.0, "{p:?}");
        }
        assert_eq!(square.reading(8192, 1, Key::SmActive), Some(0.190));
        assert_eq!(square.reading(256, 1, Key::SmActive), None, "a point that nobody published here");
        assert_eq!(square.reading(8192, 1, Key::DramActive), None);
        assert!(square.claim("saturation").is_some_and(|c| c.short.contains("19 %")) && square.claim("other").is_none());
    }
}
