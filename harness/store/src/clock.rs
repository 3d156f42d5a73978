//! The one clock of measurements (`CLOCK_MONOTONIC`), and UTC as a label.

use std::time::{SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};

/// Nanoseconds of `CLOCK_MONOTONIC`, the clock of every sample and epoch, in Rust and in Python (`time.monotonic_ns()`).
pub fn monotonic_ns() -> u64 {
    // The call fails only for a clock id that the kernel does not know, and this one is in every Linux.
    let t = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("CLOCK_MONOTONIC exists on every Linux");
    t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64
}

/// UTC now as `2026-11-20T18:42:09Z`: a label, never arithmetic.
pub fn utc_now() -> String {
    utc_text(SystemTime::now())
}

/// A wall-clock time as `2026-11-20T18:42:09Z`.
pub fn utc_text(at: SystemTime) -> String {
    let (y, mo, d, h, mi, s) = civil(at);
    format!("{y:04}-{mo:02}-{d:02}T{h:02}:{mi:02}:{s:02}Z")
}

/// Seconds since 1970 of a time that [`utc_text`] wrote; `None` for any other text.
pub fn utc_seconds(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let three = |text: &str, by: char| -> Option<[i64; 3]> {
        let digits = text.chars().all(|c| c.is_ascii_digit() || c == by);
        let parts = text.split(by).map(|part| part.parse().ok()).collect::<Option<Vec<i64>>>()?;
        parts.try_into().ok().filter(|_| digits)
    };
    let ([year, month, day], [h, m, s]) = (three(date, '-')?, three(time, ':')?);
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) {
        return None;
    }
    // Days from civil: the year begins in March, so that a leap day is its last.
    let (y, from_march) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, of_era) = (y.div_euclid(400), y.rem_euclid(400));
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + (153 * from_march + 2) / 5 + day - 1 - 719_468;
    let seconds = u64::try_from(days * 86_400 + h * 3600 + m * 60 + s).ok()?;
    // What is no date, as the 31st of April, comes back as another one.
    (utc_text(UNIX_EPOCH + std::time::Duration::from_secs(seconds)) == text).then_some(seconds)
}

/// A wall-clock time as the first part of a campaign's id, `20261120-1842`.
pub fn utc_id(at: SystemTime) -> String {
    let (y, mo, d, h, mi, _) = civil(at);
    format!("{y:04}{mo:02}{d:02}-{h:02}{mi:02}")
}

/// Calendar fields of a time, by the days-from-civil algorithm (proleptic Gregorian, UTC has no leap seconds in Unix time).
fn civil(at: SystemTime) -> (i64, u32, u32, u32, u32, u32) {
    let secs = at.duration_since(UNIX_EPOCH).map(|d| d.as_secs() as i64).unwrap_or(0);
    let (days, rest) = (secs.div_euclid(86_400), secs.rem_euclid(86_400));
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = (doy - (153 * mp + 2) / 5 + 1) as u32;
    let month = if mp < 10 { mp + 3 } else { mp - 9 } as u32;
    let year = yoe + era * 400 + i64::from(month <= 2);
    (year, month, day, (rest / 3600) as u32, (rest % 3600 / 60) as u32, (rest % 60) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn utc_agrees_with_known_dates() {
        let at = |s: u64| utc_text(UNIX_EPOCH + Duration::from_secs(s));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(1_795_200_129), "2026-11-20T18:42:09Z");
        for seconds in [0, 951_782_400, 1_795_200_129, 4_107_542_399] {
            assert_eq!(utc_seconds(&at(seconds)), Some(seconds));
        }
        for wrong in
            ["", "2026-11-20", "2026-04-31T00:00:00Z", "2026-13-01T00:00:00Z", "+026-11-20T18:42:09Z", "2026-11-20T18:61:09Z"]
        {
            assert_eq!(utc_seconds(wrong), None, "{wrong}");
        }
        assert_eq!(utc_id(UNIX_EPOCH + Duration::from_secs(1_795_200_129)), "20261120-1842");
    }

    #[test]
    fn the_monotonic_clock_moves_forward() {
        let a = monotonic_ns();
        assert!(monotonic_ns() >= a);
    }
}
