//! Which DCGM it is: `dcgm=3.3`, and what that changes in what `dcgmi` prints.
//!
//! The rules are those of NVIDIA's source at the tags v2.1.4 to v4.6.0, `dcgmi/DeviceMonitor.cpp` and `dcgmi/Query.cpp`.

use crate::scenario::Scenario;

/// Major, minor and patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

/// Releases that are meant by their first two numbers.
const RELEASES: [Version; 11] = [
    Version(2, 3, 4),
    Version(2, 4, 7),
    Version(3, 1, 8),
    Version(3, 3, 9),
    Version(4, 0, 0),
    Version(4, 1, 1),
    Version(4, 2, 3),
    Version(4, 3, 1),
    Version(4, 4, 2),
    Version(4, 5, 3),
    NEWEST,
];

const NEWEST: Version = Version(4, 6, 0);

impl Version {
    /// That of a scenario; the newest where it names none.
    pub fn of(scenario: &Scenario) -> Result<Version, String> {
        scenario.value("dcgm").map_or(Ok(NEWEST), Version::parse)
    }

    fn parse(text: &str) -> Result<Version, String> {
        let numbers: Option<Vec<u32>> = text.split('.').map(|n| n.parse().ok()).collect();
        let known = match numbers.as_deref() {
            Some(&[major, minor]) => RELEASES.into_iter().find(|v| (v.0, v.1) == (major, minor)),
            Some(&[major, minor, patch]) => Some(Version(major, minor, patch)),
            _ => None,
        };
        known.ok_or_else(|| format!("there is no DCGM `{text}`"))
    }

    /// Errors of a running `dmon` go to stderr from 2.4 on (`SHOW_AND_LOG_ERROR`).
    pub fn errs_on_stderr(self) -> bool {
        self >= Version(2, 4, 0)
    }

    /// While any card has instances, a whole card without has no row: `dmon` goes through the hierarchy alone (`sortedEntities`), until 4.0
    /// merges cards into it (`MergeGpuAndMigEntities`).
    pub fn silences_whole_cards(self) -> bool {
        (Version(2, 4, 0)..Version(4, 0, 0)).contains(&self)
    }

    /// Where there is no sample there is a 0, whose status `dmon` does not look at; blank from 4.4.2 on.
    pub fn says_zero_for_nothing(self) -> bool {
        self < Version(4, 4, 2)
    }

    /// `8 GPUs found (Active).`
    pub fn counts_active(self) -> bool {
        self >= Version(4, 5, 0)
    }

    /// `discovery -l` ends in the processors of the same maker.
    pub fn lists_processors(self) -> bool {
        self >= Version(3, 3, 0)
    }

    /// And before them in network cards.
    pub fn lists_network_cards(self) -> bool {
        self >= Version(4, 2, 0)
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_numbers_mean_the_last_release_with_them_and_three_just_that_one() {
        let of = |text: &str| Version::of(&Scenario::parse(text).unwrap()).map(|v| v.to_string());
        assert_eq!(of("a100-40gb").unwrap(), "4.6.0");
        assert_eq!(of("a100-40gb,dcgm=3.3").unwrap(), "3.3.9");
        assert_eq!(of("a100-40gb,dcgm=4.4.1").unwrap(), "4.4.1");
        assert!(of("a100-40gb,dcgm=9.9").is_err() && of("a100-40gb,dcgm").is_ok());
    }
}
