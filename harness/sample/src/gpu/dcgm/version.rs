//! The DCGM version, and how it affects what can be read.
//!
//! To add a version: its faults here, the widths of its columns in `simgpu/src/dcgm/version.rs`.

use super::command::DcgmCommand;

/// Major, minor and patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

impl Version {
    /// The version that `dcgmi --version` prints; `None` if it prints none.
    pub fn ask(command: &DcgmCommand<'_>) -> Option<Version> {
        let answer = command.ask(&["--version"]).ok()?;
        Version::parse(&answer.out)
    }

    /// The first word that is a version: `dcgmi  version: 3.3.9`.
    pub fn parse(said: &str) -> Option<Version> {
        let number = |word: &str| {
            let numbers: Vec<u32> = word.split('.').map(|n| n.parse().ok()).collect::<Option<_>>()?;
            (numbers.len() >= 3).then(|| Version(numbers[0], numbers[1], numbers[2]))
        };
        said.split_ascii_whitespace().find_map(number)
    }

    /// `dcgmi dmon` lists only the hierarchy of instances as soon as any GPU of the machine has one, so an unpartitioned GPU has
    /// no row (DCGM 2.4.7 to 3.3.9, dcgmi/DeviceMonitor.cpp, `sortedEntities`); 4.0 adds such GPUs.
    pub fn silences_whole_cards(self) -> bool {
        self >= Version(2, 4, 0) && self < Version(4, 0, 0)
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
    fn a_version_is_found_among_other_words() {
        assert_eq!(Version::parse("\ndcgmi  version: 3.3.9\n\n"), Some(Version(3, 3, 9)));
        assert_eq!(Version::parse("dcgmi  version: unknown"), None);
        let silent = |text: &str| Version::parse(text).is_some_and(Version::silences_whole_cards);
        assert_eq!(["2.3.4", "2.4.7", "3.3.9", "4.0.0"].map(silent), [false, true, true, false]);
    }
}
