//! Formats numbers for people. In: readings and their intervals. Out: text. It does not know what a number means.
//!
//! The interval determines the digits: its half-width shows one significant digit, two if it begins with 1, and the estimate
//! stops at the same place.

use crate::stats::Quantity;

/// Shown if nothing was measured.
pub const ABSENT: &str = "–";

/// Decimals that a half-width allows; negative where it rounds to tens or hundreds.
fn decimals(half_width: f64) -> i32 {
    let e = half_width.log10().floor() as i32;
    let lead = half_width / 10f64.powi(e);
    if lead < 1.95 { 1 - e } else { -e }
}

/// Maximum significant digits of an estimate: a spread that is far below them, of counters or of a model, is no accuracy.
const DIGITS: i32 = 5;

/// Decimals that an interval allows, without losing the estimate: if an interval is much wider than its estimate, neither the
/// estimate nor (as far as one more digit goes) the lower end is rounded to 0.
fn decimals_of(estimate: f64, low: f64, half_width: f64) -> i32 {
    let place = |x: f64| if x == 0.0 { i32::MIN } else { -(x.abs().log10().floor() as i32) };
    let least = place(estimate);
    let most = if estimate == 0.0 { i32::MAX } else { least.saturating_add(DIGITS - 1) };
    decimals(half_width).min(most).max(least).max(place(low).min(least.saturating_add(1)))
}

/// The upper end of an interval; one that is far above its estimate shows no more than its order, and has two digits.
fn upper(estimate: f64, high: f64, decimals: i32) -> String {
    let two = 1 - (high.abs().log10().floor() as i32);
    fixed(high, if estimate > 0.0 && high > 100.0 * estimate { decimals.min(two) } else { decimals })
}

/// A number with this many decimals; negative decimals round to tens, hundreds …
pub fn fixed(x: f64, decimals: i32) -> String {
    let text = if decimals >= 0 {
        format!("{x:.*}", decimals as usize)
    } else {
        let step = 10f64.powi(-decimals);
        format!("{:.0}", (x / step).round() * step)
    };
    // A rounded −0 is 0.
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().all(|c| c == '0' || c == '.') => rest.to_string(),
        _ => text,
    }
}

/// Three significant digits.
pub fn three(x: f64) -> String {
    if x == 0.0 || !x.is_finite() {
        return if x == 0.0 { "0".into() } else { ABSENT.into() };
    }
    let e = x.abs().log10().floor() as i32;
    // 9.996 rounds up into the next power of ten, which has one decimal less.
    let rounded = (x.abs() / 10f64.powi(e - 2)).round() * 10f64.powi(e - 2);
    let e = rounded.log10().floor() as i32;
    fixed(x, (2 - e).max(0))
}

/// Estimate and half-width: `26.8 ±0.5`; `1.94 [1.71, 2.20]` if the sides differ by more than a fifth; `27.3 (1 run)` without an
/// interval.
pub fn with_interval(q: &Quantity) -> String {
    scaled(q, 1.0)
}

/// The same after multiplying by `factor`: seconds as milliseconds, ratios as percent.
pub fn scaled(q: &Quantity, factor: f64) -> String {
    let estimate = q.estimate * factor;
    let (Some(low), Some(high)) = (q.low.map(|x| x * factor), q.high.map(|x| x * factor)) else {
        return format!("{} ({})", three(estimate), runs(q.n));
    };
    let (below, above) = (estimate - low, high - estimate);
    let half = below.max(above);
    if half <= estimate.abs() * 1e-9 {
        return if estimate == 1.0 { "1".into() } else { format!("{} ±0", three(estimate)) };
    }
    let d = decimals_of(estimate, low, half);
    if (above - below).abs() > 0.2 * below.max(above) {
        format!("{} [{}, {}]", fixed(estimate, d), fixed(low, d), upper(estimate, high, d))
    } else {
        let spread = fixed((below + above) / 2.0, d);
        let spread = if spread.bytes().all(|c| matches!(c, b'0' | b'.')) { "0".into() } else { spread };
        format!("{} ±{spread}", fixed(estimate, d))
    }
}

/// The estimate alone, with the digits that its interval allows.
pub fn estimate(q: &Quantity) -> String {
    match (q.low, q.high) {
        (Some(low), Some(high)) if high - low > q.estimate.abs() * 1e-9 => {
            fixed(q.estimate, decimals_of(q.estimate, low, (q.estimate - low).max(high - q.estimate)))
        }
        _ if q.estimate == 1.0 => "1".into(),
        _ => three(q.estimate),
    }
}

/// The interval alone, `[1.71, 2.20]`; without an interval the number of runs.
pub fn bounds(q: &Quantity) -> String {
    match (q.low, q.high) {
        (Some(low), Some(high)) if high - low > q.estimate.abs() * 1e-9 => {
            let d = decimals_of(q.estimate, low, (q.estimate - low).max(high - q.estimate));
            format!("[{}, {}]", fixed(low, d), upper(q.estimate, high, d))
        }
        // A baseline against itself has no spread to speak of, and no degrees of freedom.
        (Some(_), Some(_)) if q.df.is_none() => "by definition".into(),
        (Some(low), Some(high)) => format!("[{}, {}]", three(low), three(high)),
        _ => runs(q.n),
    }
}

/// `1 run`, `3 runs`.
pub fn runs(n: usize) -> String {
    count(n, "run")
}

/// `1 cell`, `3 cells`.
pub fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// A share as whole percent; `99.9 %` if whole percent would hide that something is missing.
pub fn percent(ratio: f64) -> String {
    let p = ratio * 100.0;
    if p < 100.0 && p > 99.5 { format!("{:.1} %", (p * 10.0).floor() / 10.0) } else { format!("{p:.0} %") }
}

/// A share as percent, with two digits where it is below one percent: `0.16 %`, `97 %`.
pub fn share(ratio: f64) -> String {
    let p = ratio * 100.0;
    if p >= 0.995 || p <= 0.0 { percent(ratio) } else { format!("{} %", fixed(p, if p < 0.0995 { 3 } else { 2 })) }
}

/// A share that somebody wrote, as percent with at most two decimals: `40 %`, `2.5 %`.
pub fn percent_as_written(ratio: f64) -> String {
    format!("{} %", (ratio * 1e4).round() / 100.0)
}

/// How many times something is, with at most two decimals: `1.5`, `2.25`, `3.38`.
pub fn factor(x: f64) -> String {
    ((x * 100.0).round() / 100.0).to_string()
}

/// Memory in GiB: two decimals below 2, else one.
pub fn gib(bytes: f64) -> String {
    format!("{} GiB", gib_number(bytes))
}

/// The same without the unit.
pub fn gib_number(bytes: f64) -> String {
    let x = bytes / (1u64 << 30) as f64;
    if x < 2.0 { format!("{x:.2}") } else { format!("{x:.1}") }
}

/// A duration in a sentence: `9.1 s`, `44 s`, `2 min 4 s`, `1 h 3 min`.
pub fn duration(seconds: f64) -> String {
    let s = seconds.round() as u64;
    match s {
        _ if seconds < 1.0 => milliseconds(seconds),
        _ if seconds < 9.95 => format!("{seconds:.1} s"),
        0..60 => format!("{s} s"),
        60..3600 => format!("{} min {} s", s / 60, s % 60),
        _ => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}

/// A short time in milliseconds: `0.3 ms`, `12 ms`.
pub fn milliseconds(seconds: f64) -> String {
    let ms = seconds * 1e3;
    if ms < 9.95 { format!("{ms:.1} ms") } else { format!("{ms:.0} ms") }
}

/// The time of a training step or less: `14 µs`, `9.2 ms`, `140 ms`, `1.40 s`.
pub fn short_time(seconds: f64) -> String {
    match seconds {
        s if s < 9.95e-6 => format!("{:.1} µs", s * 1e6),
        s if s < 1e-3 => format!("{:.0} µs", s * 1e6),
        s if s < 0.1 => format!("{:.1} ms", s * 1e3),
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

/// Small counts in words, as sentences begin with them: `two`, `seven`, `12`.
pub fn word(n: u32) -> String {
    const WORDS: [&str; 11] = ["none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    WORDS.get(n as usize).map_or_else(|| n.to_string(), |w| (*w).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn q(estimate: f64, low: f64, high: f64) -> Quantity {
        Quantity { estimate, low: Some(low), high: Some(high), n: 3, df: Some(9.0) }
    }

    #[test]
    fn the_interval_gives_the_digits() {
        assert_eq!(with_interval(&q(26.83, 26.33, 27.33)), "26.8 ±0.5");
        assert_eq!(with_interval(&q(1.0124, 0.9944, 1.0304)), "1.012 ±0.018");
        assert_eq!(with_interval(&q(1.0, 0.993, 1.007)), "1.000 ±0.007");
        assert_eq!(with_interval(&q(1234.0, 1200.0, 1268.0)), "1230 ±30");
        assert_eq!(with_interval(&q(5.0, 4.904, 5.096)), "5.00 ±0.10");
        assert_eq!(with_interval(&q(11.199, 11.06, 11.338)), "11.20 ±0.14");
    }

    #[test]
    fn unequal_sides_are_printed_as_bounds() {
        assert_eq!(with_interval(&q(1.94, 1.71, 2.26)), "1.9 [1.7, 2.3]");
        assert_eq!(with_interval(&q(1.94, 1.80, 2.12)), "1.94 [1.80, 2.12]");
    }

    #[test]
    fn nothing_that_was_measured_is_rounded_to_zero_by_a_wide_interval() {
        assert_eq!(with_interval(&q(340.0, 20.0, 4000.0)), "340 [20, 4000]");
        assert_eq!(estimate(&q(340.0, 20.0, 4000.0)), "340");
        assert_eq!(bounds(&q(0.2, 0.03, 9.0)), "[0.03, 9.00]");
        assert_eq!(bounds(&q(96.0, 0.003, 2_915_147.0)), "[0, 2900000]", "an end that far above shows no more than its order");
        assert_eq!(bounds(&q(5.0, 1e-6, 15.0)), "[0.0, 15.0]", "one more digit than the estimate's, and no more");
    }

    #[test]
    fn an_estimate_has_five_digits_at_most_however_narrow_its_interval_is() {
        let narrow = q(11.699_999_67, 11.699_999_55, 11.699_999_79);
        assert_eq!((estimate(&narrow), bounds(&narrow)), ("11.700".to_string(), "[11.700, 11.700]".to_string()));
        assert_eq!(with_interval(&narrow), "11.700 ±0");
        assert_eq!(with_interval(&q(1234.56, 1234.5, 1234.62)), "1234.6 ±0.1");
    }

    #[test]
    fn one_run_has_no_interval_and_a_baseline_is_one() {
        assert_eq!(with_interval(&Quantity { estimate: 27.34, low: None, high: None, n: 1, df: None }), "27.3 (1 run)");
        assert_eq!(with_interval(&q(1.0, 1.0, 1.0)), "1");
    }

    #[test]
    fn three_significant_digits_also_across_powers_of_ten() {
        assert_eq!([0.01234, 9.996, 0.9996, 123.4, 12345.0, 0.0].map(three), ["0.0123", "10.0", "1.00", "123", "12345", "0"]);
    }

    #[test]
    fn units_are_the_house_s() {
        assert_eq!(gib(0.75 * 1073741824.0), "0.75 GiB");
        assert_eq!(gib(2.3 * 1073741824.0), "2.3 GiB");
        assert_eq!([percent_as_written(0.4), percent_as_written(0.025)], ["40 %", "2.5 %"]);
        assert_eq!([percent(0.9996), percent(1.0), percent(0.934), percent(1.98)], ["99.9 %", "100 %", "93 %", "198 %"]);
        assert_eq!([1.38e-7, 1.4e-5, 0.0092, 0.14, 1.4].map(short_time), ["0.1 µs", "14 µs", "9.2 ms", "140 ms", "1.40 s"]);
        assert_eq!([duration(124.0), duration(9.13), duration(44.2), duration(0.0123)], ["2 min 4 s", "9.1 s", "44 s", "12 ms"]);
    }
}
