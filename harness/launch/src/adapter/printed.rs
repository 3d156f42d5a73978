//! Durations as scripts print them: `12.5`, `0:01:02.5`, `1m2s`, `155.64ms`. Pure.
//!
//! In: what the groups of a pattern matched. Out: seconds, and how coarsely they were printed.
//!
//! To add a unit: a row of [`UNITS`], and of [`GROUPS`] if a pattern may name it.

use std::borrow::Cow;

use regex::{Captures, Match};

/// The groups of a pattern that name a duration; those of one line are added up.
const GROUPS: [(&str, f64); 4] = [("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0), ("milliseconds", 1e-3)];

/// Units behind a number, in lower case: those of pytorch-cifar's `format_time` (utils.py, `1D2h`, `1m2s`, `155ms`), of Keras
/// (`12s 155ms/step`) and the words.
const UNITS: [(&[&str], f64); 6] = [
    (&["d", "day", "days"], 86_400.0),
    (&["h", "hr", "hrs", "hour", "hours"], 3600.0),
    (&["m", "min", "mins", "minute", "minutes"], 60.0),
    (&["s", "sec", "secs", "second", "seconds"], 1.0),
    (&["ms", "msec", "msecs", "millisecond", "milliseconds"], 1e-3),
    (&["us", "µs", "μs", "usec", "microsecond", "microseconds"], 1e-6),
];

/// The forms that are read, for a message.
const FORMS: &str = "print one as in `12.5`, `0:01:02`, `1m2s` or `155ms`";

/// The time that an epoch took, as its line has it.
#[derive(Debug, Clone, PartialEq)]
pub struct PrintedDuration {
    pub seconds: f64,
    /// The value of its last printed digit.
    pub resolution_s: f64,
    /// For messages: `2.5 s`, `` `1m2s` (62 s) ``.
    pub shown: String,
}

impl PrintedDuration {
    /// The duration in a matched line; `None` if no group names one; an error has what is wrong with it.
    pub fn find(found: &Captures<'_>, line: &str) -> Option<Result<Self, String>> {
        let named = |(group, unit_s): (&str, f64)| found.name(group).map(|text| (text, unit_s));
        let parts: Vec<(Match<'_>, f64)> = GROUPS.into_iter().filter_map(named).collect();
        let text = parts.iter().map(|(text, _)| super::shorten(text.as_str())).collect::<Vec<_>>().join(" ");
        let read = |(text, unit_s): &(Match<'_>, f64)| {
            // `(?P<seconds>[0-9.]+)ms`: what stands behind the number is its unit, whatever the group is called.
            let unit_s = unit_behind(&line[text.end()..]).unwrap_or(*unit_s);
            parse(text.as_str(), unit_s)
        };
        let all: Option<Vec<(f64, f64)>> = parts.iter().map(read).collect();
        let sum = match all.as_deref() {
            Some([]) => return None,
            Some(all) => all.iter().fold((0.0, f64::INFINITY), |(sum, finest), (s, res)| (sum + s, res.min(finest))),
            None => return Some(Err(format!("`{text}`, which is no duration: {FORMS}"))),
        };
        let (seconds, resolution_s) = sum;
        if seconds == 0.0 {
            return Some(Err(format!("`{text}`, and an epoch takes a time above 0: print more digits, or leave out the group")));
        }
        let is_plain = text.parse() == Ok(seconds);
        let shown = if is_plain { format!("{text} s") } else { format!("`{text}` ({} s)", rounded(seconds)) };
        Some(Ok(PrintedDuration { seconds, resolution_s, shown }))
    }
}

/// Six significant digits at most.
fn rounded(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

/// Seconds and resolution of a text; `unit_s` is that of a number without a unit.
fn parse(text: &str, unit_s: f64) -> Option<(f64, f64)> {
    // `took (?P<seconds>\S+)` matches what ends the sentence, too.
    let text = text.trim().trim_end_matches([',', ';', '.', ')', ']']);
    let found = match text.contains(':') {
        true => clock(text)?,
        false => with_units(text).or_else(|| number(text).map(|(n, digit)| (n * unit_s, digit * unit_s)))?,
    };
    Some(found).filter(|(seconds, _)| seconds.is_finite())
}

/// `02:05`, `1:02:03.5`, and as `str(datetime.timedelta)` prints them `1 day, 2:03:04`
/// (https://docs.python.org/3/library/datetime.html#datetime.timedelta), as pandas `1 days 02:03:04`.
fn clock(text: &str) -> Option<(f64, f64)> {
    let (days, time) = match text.rsplit_once(' ') {
        Some((days, time)) => (with_units(days).filter(|(days, _)| days % 86_400.0 == 0.0)?.0, time),
        None => (0.0, text),
    };
    let (before, seconds) = time.rsplit_once(':')?;
    let (seconds, digit) = number(&seconds.replace(',', "."))?;
    let whole = |part: &str| part.parse::<u32>().ok().filter(|_| part.bytes().all(|b| b.is_ascii_digit()));
    let (hours, minutes) = match before.split_once(':') {
        Some((hours, minutes)) => (whole(hours)?, whole(minutes)?),
        None => (0, whole(before)?),
    };
    Some((days + f64::from(hours) * 3600.0 + f64::from(minutes) * 60.0 + seconds, digit))
}

/// `1h 2m 3s`, `2 min, 30 sec`, `155.64ms`: every number with its unit.
fn with_units(text: &str) -> Option<(f64, f64)> {
    let (mut rest, mut sum, mut digit) = (text, 0.0, None);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ',')).unwrap_or(rest.len());
        let (n, last) = number(&rest[..end])?;
        let behind = rest[end..].trim_start();
        let unit = behind.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
        let unit_s = unit_of(unit)?;
        (sum, digit) = (sum + n * unit_s, Some(last * unit_s));
        rest = behind[unit.len()..].trim_start_matches([' ', ',']);
    }
    Some((sum, digit?))
}

/// The unit that stands directly behind a number, if that is unmistakable: a lone `m` or `d` may mean anything.
fn unit_behind(rest: &str) -> Option<f64> {
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    let unit = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    unit_of(unit).filter(|_| unit.len() > 1 || unit == "s")
}

fn unit_of(name: &str) -> Option<f64> {
    let name = name.to_lowercase();
    UNITS.iter().find(|(names, _)| names.contains(&name.as_str())).map(|(_, unit_s)| *unit_s)
}

/// A number and the value of its last digit: `12`, `1,234.5`, `1.5e-3`, `0,25`.
fn number(text: &str) -> Option<(f64, f64)> {
    let text = with_point(text);
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((&*text, "0"));
    let exponent: i32 = exponent.parse().ok()?;
    let (whole, decimals) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_grouped = whole.split(',').skip(1).all(|three| three.len() == 3);
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b == b',');
    if !whole.starts_with(|c: char| c.is_ascii_digit())
        || !is_grouped
        || !digits(whole)
        || decimals.contains(',')
        || !digits(decimals)
    {
        return None;
    }
    let value: f64 = text.replace(',', "").parse().ok()?;
    Some((value, 10f64.powi(exponent.saturating_sub(decimals.len() as i32)))).filter(|(value, _)| value.is_finite())
}

/// A comma before decimals as a point: the only comma, with other than three digits behind it or a zero before it. `1,234` is a thousand.
fn with_point(text: &str) -> Cow<'_, str> {
    let Some((whole, decimals)) = text.split_once(',').filter(|_| !text.contains('.')) else { return text.into() };
    let is_decimal = whole == "0" || decimals.len() != 3;
    let are_digits = !decimals.is_empty() && decimals.bytes().all(|b| b.is_ascii_digit());
    if is_decimal && are_digits { format!("{whole}.{decimals}").into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regex::Regex;

    fn seconds(text: &str) -> Option<f64> {
        parse(text, 1.0).map(|(seconds, _)| rounded(seconds))
    }

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, expected) in [
            ("12", 12.0),
            ("0.25", 0.25),
            ("1.5e-3", 0.0015),
            ("1,234.5", 1234.5),
            ("1,234", 1234.0),
            ("12,5", 12.5),
            ("0.6 sec.", 0.6),
            ("0:01:02,", 62.0),
            ("1 days 02:03:04.5", 93_784.5),
            ("0,600", 0.6),
            ("0:00:12,250", 12.25),
            ("2,5 min", 150.0),
            ("0:00:01", 1.0),
            ("02:05", 125.0),
            ("1:02:03.5", 3723.5),
            ("1 day, 0:00:01", 86_401.0),
            ("2 days, 1:00:00", 176_400.0),
            ("1m2s", 62.0),
            ("1h2m3s", 3723.0),
            ("1h 2m 3.5s", 3723.5),
            ("2 min, 30 sec", 150.0),
            ("1D2h", 93_600.0),
            ("155.64ms", 0.15564),
            ("1s155ms", 1.155),
            ("30us", 0.00003),
            ("3 minutes", 180.0),
        ] {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
        for no_time in
            ["nan", "NaN", "inf", "-1.0", "1e999", "1.2.3", "", "1m30", "1,23,4", "1:2:3:4", "x:01", "-0:01", "3 apples"]
        {
            assert_eq!(seconds(no_time), None, "{no_time}");
        }
    }

    #[test]
    fn every_group_may_be_in_a_pattern() {
        let known = collo_plan::workload::adapters::GROUPS;
        assert!(GROUPS.iter().all(|(group, _)| known.contains(group)));
    }

    #[test]
    fn the_last_printed_digit_is_known() {
        let resolution = |text: &str| parse(text, 1.0).unwrap().1;
        assert_eq!(["12", "12.50", "0:00:01", "0:00:01.5", "2h3m"].map(resolution), [1.0, 0.01, 1.0, 0.1, 60.0]);
        assert!((resolution("155.64ms") - 1e-5).abs() < 1e-12);
    }

    fn of(pattern: &str, line: &str) -> Result<(f64, String), String> {
        let pattern = Regex::new(pattern).unwrap();
        let found = PrintedDuration::find(&pattern.captures(line).unwrap(), line).expect("a group");
        found.map(|duration| (rounded(duration.seconds), duration.shown))
    }

    #[test]
    fn a_group_names_the_unit_unless_the_line_does() {
        let read = |pattern: &str, line: &str| of(pattern, line).unwrap().0;
        assert_eq!(read(r"time (?P<milliseconds>[0-9.]+)", "time 155.64"), 0.15564);
        assert_eq!(read(r"time (?P<milliseconds>[0-9.]+)ms", "time 155.64ms"), 0.15564);
        assert_eq!(read(r"time (?P<seconds>[0-9.]+)ms", "time 155.64ms"), 0.15564);
        assert_eq!(read(r"time (?P<seconds>\S+)", "time 155.64ms"), 0.15564);
        assert_eq!(read(r"(?P<minutes>[0-9.]+) min", "took 2.5 min"), 150.0);
        assert_eq!(read(r"(?P<seconds>[0-9.]+)", "took 2.5 min"), 150.0);
        assert_eq!(read(r"took (?P<minutes>[0-9.]+)", "took 2.5 model"), 150.0, "no unit stands there");
        assert_eq!(read(r"(?P<seconds>\d+)", "took 3 m"), 3.0, "metres, for all that is known");
        assert_eq!(read(r"(?P<minutes>\d+) min (?P<seconds>\d+) s", "took 2 min 30 s"), 150.0, "groups are added up");
        assert_eq!(read(r"(?P<hours>\d+):(?P<minutes>\d+) h", "took 1:30 h"), 5400.0);
        assert!(PrintedDuration::find(&Regex::new("x").unwrap().captures("x").unwrap(), "x").is_none());
    }

    #[test]
    fn a_message_has_the_text_and_what_it_means() {
        assert_eq!(of(r"(?P<seconds>\S+)", "2.50").unwrap().1, "2.50 s");
        assert_eq!(of(r"(?P<seconds>\S+)", "1m2s").unwrap().1, "`1m2s` (62 s)");
        assert_eq!(of(r"(?P<milliseconds>\S+)", "155.64").unwrap().1, "`155.64` (0.15564 s)");
        insta::assert_snapshot!(of(r"(?P<seconds>\S+)", "nan").unwrap_err(), @"`nan`, which is no duration: print one as in `12.5`, `0:01:02`, `1m2s` or `155ms`");
        insta::assert_snapshot!(of(r"(?P<seconds>\S+)", "0:00:00").unwrap_err(), @"`0:00:00`, and an epoch takes a time above 0: print more digits, or leave out the group");
    }
}
