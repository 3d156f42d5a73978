//! Quantities as people write and read them: `30m`, `4GB`, `5%` in, `1:19`, `1 min 44 s`, `1.13 GiB` out.

use std::time::Duration;

/// The format of a duration, for error messages.
pub const DURATION_HELP: &str = "units are ms, s, m, h";
/// The format of a size.
pub const SIZE_HELP: &str = "units are B, kB, MB, GB, TB, KiB, MiB, GiB, TiB";

const SIZES: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];

/// Digits, optionally a point and digits, then a unit; nothing else.
fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    if !number.starts_with(|c: char| c.is_ascii_digit()) || number.ends_with('.') {
        return None;
    }
    number.parse().ok().filter(|n: &f64| n.is_finite()).map(|n| (n, unit))
}

/// `30m`, `1.5s`, `250ms`; up to 1000 hours.
pub fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = number_and_unit(text)?;
    let second = match unit {
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    Some(number * second).filter(|s| *s <= 3_600_000.0).map(|s| Duration::from_millis((s * 1e3).round() as u64))
}

/// The probable meaning of a text that is not a duration: `30 mins` → `30m`.
pub fn duration_meant(text: &str) -> Option<String> {
    let squeezed: String = text.split_whitespace().collect::<String>().to_lowercase();
    let (number, unit) = number_and_unit(&squeezed)?;
    let unit = match unit {
        "ms" | "msec" | "msecs" | "millis" | "milliseconds" => "ms",
        "s" | "sec" | "secs" | "second" | "seconds" => "s",
        "m" | "min" | "mins" | "minute" | "minutes" => "m",
        "h" | "hr" | "hrs" | "hour" | "hours" => "h",
        _ => return None,
    };
    Some(format!("{number}{unit}")).filter(|meant| duration(meant).is_some())
}

/// `4GB` (10⁹) or `4GiB`.
pub fn size_bytes(text: &str) -> Option<u64> {
    let (number, unit) = number_and_unit(text)?;
    let (_, factor) = SIZES.iter().find(|(name, _)| *name == unit)?;
    Some(number * *factor as f64).filter(|b| *b < 1e18).map(|b| b.round() as u64)
}

/// The shortest exact text of a size, so that `size_bytes(size_text(b)) == b`.
pub fn size_text(bytes: u64) -> String {
    let whole = SIZES.iter().filter(|(_, factor)| bytes != 0 && bytes.is_multiple_of(*factor));
    let (name, factor) = whole.max_by_key(|(_, factor)| *factor).copied().unwrap_or(("B", 1));
    format!("{}{name}", bytes / factor)
}

/// `5%`.
pub fn percent_ratio(text: &str) -> Option<f64> {
    let (number, unit) = number_and_unit(text)?;
    (unit == "%").then_some(number / 100.0)
}

/// A duration as written in an experiment: `30m`, `90s`, `250ms`.
pub fn duration_text(duration: Duration) -> String {
    let ms = duration.as_millis();
    match ms {
        0 => "0s".into(),
        _ if ms.is_multiple_of(3_600_000) => format!("{}h", ms / 3_600_000),
        _ if ms.is_multiple_of(60_000) => format!("{}m", ms / 60_000),
        _ if ms.is_multiple_of(1000) => format!("{}s", ms / 1000),
        _ => format!("{ms}ms"),
    }
}

/// A time in tables and live lines: `0:57`, `1:02:03`.
pub fn clock(seconds: f64) -> String {
    let s = seconds.max(0.0).round() as u64;
    if s < 3600 { format!("{}:{:02}", s / 60, s % 60) } else { format!("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60) }
}

/// A forecast in a sentence, no more precise than it is: `40 s`, `2 min`, `21 min`, `3 h 10 min`.
pub fn about(seconds: f64) -> String {
    let s = seconds.max(0.0);
    if s < 90.0 {
        return format!("{:.0} s", if s < 20.0 { s.ceil() } else { (s / 5.0).round() * 5.0 });
    }
    let minutes = (s / 60.0).round() as u64;
    if minutes < 60 {
        return format!("{minutes} min");
    }
    let minutes = minutes.div_ceil(5) * 5;
    if minutes.is_multiple_of(60) { format!("{} h", minutes / 60) } else { format!("{} h {} min", minutes / 60, minutes % 60) }
}

/// An amount of energy, no more precise than a forecast: `0.42 Wh`, `36 Wh`, `2.3 kWh`.
pub fn energy(joules: f64) -> String {
    let wh = joules / 3600.0;
    let two = |value: f64| {
        if value < 0.995 {
            format!("{value:.2}")
        } else if value < 9.95 {
            format!("{value:.1}")
        } else {
            format!("{value:.0}")
        }
    };
    if wh < 999.5 { format!("{} Wh", two(wh)) } else { format!("{} kWh", two(wh / 1000.0)) }
}

/// An error as a share of what was measured, in percent: a decimal below 10.
pub fn percent(ratio: f64) -> String {
    if ratio < 0.0995 { format!("{:.1} %", ratio * 100.0) } else { format!("{:.0} %", ratio * 100.0) }
}

/// Memory: GiB with two decimals below 2, else one; no decimals on a whole machine.
pub fn gib(bytes: u64) -> String {
    let gib = bytes as f64 / (1u64 << 30) as f64;
    if gib < 1.995 { format!("{gib:.2} GiB") } else { format!("{gib:.1} GiB") }
}

/// MiB, in which footprints of single trainings are compared; KiB for next to nothing, GiB above 10.
pub fn mib(bytes: f64) -> String {
    let mib = bytes / f64::from(1 << 20);
    if mib > 0.0 && mib < 0.095 {
        format!("{:.0} KiB", (mib * 1024.0).max(1.0))
    } else if mib > 0.0 && mib < 9.95 {
        format!("{mib:.1} MiB")
    } else if mib.abs() < 10_240.0 {
        format!("{mib:.0} MiB")
    } else {
        gib(bytes as u64)
    }
}

/// A number with two decimals at most: `0.15`, `5.33`, `2`.
pub fn hundredths(x: f64) -> String {
    ((x * 100.0).round() / 100.0).to_string()
}

/// Ascending numbers as a list of ranges: `0-3,8`.
pub fn ranges(numbers: &[u32]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut rest = numbers;
    while let Some((&first, _)) = rest.split_first() {
        let run = rest.iter().zip(first..).take_while(|(c, expected)| *c == expected).count();
        let last = rest[run - 1];
        parts.push(if run == 1 { first.to_string() } else { format!("{first}-{last}") });
        rest = &rest[run..];
    }
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ascending_numbers_read_as_ranges() {
        assert_eq!(ranges(&[0, 1, 2, 3, 8]), "0-3,8");
        assert_eq!(ranges(&[5]), "5");
        assert_eq!(ranges(&[]), "");
    }

    #[test]
    fn energy_is_written_with_about_two_digits() {
        let texts = [1800.0, 5400.0, 130_000.0, 8_280_000.0].map(energy);
        assert_eq!(texts, ["0.50 Wh", "1.5 Wh", "36 Wh", "2.3 kWh"]);
    }

    #[test]
    fn durations_carry_units() {
        assert_eq!(duration("30m"), Some(Duration::from_secs(1800)));
        assert_eq!(duration("1.5s"), Some(Duration::from_millis(1500)));
        assert_eq!(duration("0s"), Some(Duration::ZERO));
        for wrong in ["30", "30 m", "m", "", "-1s", "1.s", "1.2.3s", ".5s", "1e3s", "30mins", "inf", "9999h", "٣s"] {
            assert_eq!(duration(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_was_meant_is_guessed_from_the_word() {
        assert_eq!(duration_meant("30 mins").as_deref(), Some("30m"));
        assert_eq!(duration_meant("2 Hours").as_deref(), Some("2h"));
        assert_eq!(duration_meant("30"), None);
    }

    #[test]
    fn sizes_tell_ten_from_two() {
        assert_eq!(size_bytes("4GB"), Some(4_000_000_000));
        assert_eq!(size_bytes("4GiB"), Some(4 << 30));
        assert_eq!(size_bytes("4 GB"), None);
        assert_eq!(size_bytes("4G"), None);
        assert_eq!(size_text(4_000_000_000), "4GB");
        assert_eq!(size_text(1536 << 20), "1536MiB");
    }

    #[test]
    fn times_are_read_at_a_glance() {
        assert_eq!([clock(57.0), clock(342.4), clock(3723.0)], ["0:57", "5:42", "1:02:03"]);
        assert_eq!(
            [about(7.2), about(43.0), about(104.0), about(1260.0), about(7300.0)],
            ["8 s", "45 s", "2 min", "21 min", "2 h 5 min"]
        );
        assert_eq!([gib(1_213_000_000), gib(8_500_000_000)], ["1.13 GiB", "7.9 GiB"]);
    }

    proptest! {
        #[test]
        fn every_printed_size_reads_back(bytes in 0u64..1_000_000_000_000_000) {
            prop_assert_eq!(size_bytes(&size_text(bytes)), Some(bytes));
        }

        #[test]
        fn every_printed_duration_reads_back(ms in 0u64..3_600_000_000) {
            let d = Duration::from_millis(ms);
            prop_assert_eq!(duration(&duration_text(d)), Some(d));
        }

        #[test]
        fn no_text_breaks_the_readers(text in "\\PC*") {
            duration(&text);
            prop_assert!(duration_meant(&text).is_none_or(|meant| duration(&meant).is_some()));
            size_bytes(&text);
            percent_ratio(&text);
        }
    }
}
