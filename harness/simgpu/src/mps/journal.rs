//! The logs of MPS: `[2026-11-21 13:43:40.123 Control  1234] message`.
//!
//! A daemon in the background has two files in its log folder. One in the foreground (`-f`) prints everything to standard output and
//! writes no file: its manual page, and the programs of 535.309.01, 550.163.01 and 555.58.02 as they were run.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use crate::clock;

/// Where a daemon and its servers log.
#[derive(Debug, Clone)]
pub enum Journal {
    Printed,
    Folder(PathBuf),
}

impl Journal {
    /// Add a line: `Control` to `control.log`, all others (`Server`, `Other`) to `server.log`.
    pub fn write(&self, who: &str, pid: u32, message: &str) {
        let line = format!("[{} {who} {pid:>5}] {message}\n", stamp(clock::wall_us()));
        let Journal::Folder(folder) = self else {
            let _ = std::io::stdout().lock().write_all(line.as_bytes());
            return;
        };
        let name = if who == "Control" { "control.log" } else { "server.log" };
        if let Ok(mut file) = File::options().create(true).append(true).open(folder.join(name)) {
            let _ = file.write_all(line.as_bytes());
        }
    }
}

/// `2026-11-21 13:43:40.123`, UTC.
fn stamp(wall_us: i64) -> String {
    let (days, in_day) = (wall_us.div_euclid(86_400_000_000), wall_us.rem_euclid(86_400_000_000) / 1000);
    let (year, month, day) = civil(days);
    let (ms, s) = (in_day % 1000, in_day / 1000);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}.{ms:03}", s / 3600, s / 60 % 60, s % 60)
}

/// Year, month and day of a number of days since 1970. The year is taken to begin in March, so that the leap day is its last.
fn civil(days: i64) -> (i64, i64, i64) {
    let since = days + 719_468;
    let era = since.div_euclid(146_097);
    let of_era = since.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_dates() {
        assert_eq!(stamp(0), "1970-01-01 00:00:00.000");
        assert_eq!(stamp(1_709_210_096_007_000), "2024-02-29 12:34:56.007");
    }
}
