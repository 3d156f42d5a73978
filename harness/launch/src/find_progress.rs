//! Finds the lines of an unknown script that report progress, and writes the pattern of the `[epochs]` adapter for them.
//!
//! In: the lines of its first output, each with its time. Out: patterns that the adapter itself reads epochs with, the best first. Lines
//! are alike if they have the same text around their numbers; one of these numbers must rise by the same step from line to line. Lines
//! that recur without such a number are the last resort. What goes on by itself is no progress: a clock, or the time of logging. A bar is
//! drawn again after a time, not after an amount of work: of a bar that starts again and again, only its starts count. A line that comes
//! at the beginning of an epoch, as `Epoch 2/12` of Keras, ends the one before it, so the first of them ends none: what follows it is the
//! first epoch, which is a warm-up. A duration that the lines print is used only if it is about the time between them: some scripts print
//! the time of one step of many, or that since the start.

mod pieces;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

use collo_plan::goal::EpochGoal;
use collo_plan::workload::adapters::{PRESETS, Preset};
use regex::Regex;

use super::adapter::{Adapter, Translator, behind_bar};
use pieces::{
    Piece, before, beginning, is_time, is_unit, is_whole_unit, names_time, number, numbers, pattern_of, pieces, place,
    text_after, unit_after, word_before,
};

/// A line of output, and when its last byte arrived, nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputLine {
    pub at_ns: u64,
    pub text: String,
}

/// A pattern that reads epochs from the lines of a script.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundProgress {
    /// For `[epochs]` of a workload.
    pub pattern: String,
    /// The preset with this pattern, if it is one's.
    pub preset: Option<&'static str>,
    /// Whether the lines name epochs, not steps or something else.
    pub names_epochs: bool,
    /// The first lines that it matches.
    pub lines: Vec<String>,
    /// When the first of them came, seconds after the launch.
    pub first_s: f64,
    /// When the newest line that ends an epoch came, seconds after the launch.
    pub last_s: f64,
    /// Durations of the epochs after the first, which has the start of the script in it, seconds.
    pub epochs_s: Vec<f64>,
}

impl FoundProgress {
    /// Whether the lines are those of steps that name the epoch in which they are.
    pub fn is_within_epochs(&self) -> bool {
        !self.names_epochs && self.lines.iter().any(|line| line.to_lowercase().contains("epoch"))
    }

    /// Whether its lines may still come, so many seconds after the launch: lines of the set-up end with it, and nothing need be printed
    /// after them. A silence of at most `pause_s` shows nothing.
    pub fn may_go_on_at(&self, at_s: f64, pause_s: f64) -> bool {
        let longest_s = self.epochs_s.iter().copied().fold(0.0, f64::max);
        at_s - self.last_s <= (MOST_APART * longest_s).max(pause_s)
    }

    /// The line of `[epochs]` in a `workload.toml`.
    pub fn toml(&self) -> String {
        match self.preset {
            Some(preset) => format!("preset = \"{preset}\""),
            // A literal string has no escapes, and no apostrophe.
            None if !self.pattern.contains('\'') && !self.pattern.contains(char::is_control) => {
                format!("pattern = '{}'", self.pattern)
            }
            // A basic string of TOML has the escapes of JSON.
            None => format!("pattern = {}", serde_json::Value::from(self.pattern.as_str())),
        }
    }
}

/// Fewest lines that show a step; of lines that name epochs two are enough.
const FEWEST: usize = 3;
/// Longest line that is searched, bytes.
const LONGEST: usize = 2000;
/// Kinds of lines at most: a script that prints anything has no more than that.
const MOST_KINDS: usize = 400;
/// Texts with words that distinguish the beginning of a line from those of others, at most.
const MOST_WORDS: usize = 4;
/// A percent of a bar is as late as its drawing, up to a tenth of a second: shorter ones are not timed, seconds.
const LEAST_PERCENT_S: f64 = 0.5;
/// Lines of progress may be late by this much, whatever the time between them, seconds.
pub const LATE_S: f64 = 1.0;
/// Lines that are shown of a pattern.
const SHOWN: usize = 3;
/// A printed duration may differ from the time between two lines by this ratio and this time, seconds.
const ABOUT: (f64, f64) = (0.25, 0.05);
/// An epoch may take so many times as long as another.
const MOST_APART: f64 = 10.0;
/// Durations that differ by at most this part are those of the same epochs.
const ALIKE: f64 = 0.1;
/// Lines are spread over an epoch that is at most so many times as long as the time between the first and the last of them.
const SPREAD: u64 = 4;
/// Seconds and milliseconds since 1970, of the years 2001 to 2100.
const UNIX_TIMES: [Range<u64>; 2] = [1_000_000_000..4_102_444_800, 1_000_000_000_000..4_102_444_800_000];
/// Words before a number of epochs, also in `epoch_0003`, in `Epoch(train) [3]` of mmengine, and in other languages.
const EPOCH: &str = r"(?i)(?:\b|_)(?:ep(?:och|ochs|oche|oca)?|époque|época|epok|эпоха)(?:\(\w+\))?[\W_]*$";

/// The time at which a line was logged, near its beginning: `2026-11-27 15:40:46,842`, `[11/27 15:39:51`, `Nov 27 15:40:09`, glog's
/// `I1127 15:40:09.123456 12345`; also behind a level or a
/// rank, as in Optuna's `[I 2026-11-27 15:40:46,842]`, torchrun's `[default0]:` and Ray's `(trainer pid=9646)`.
static LOGGED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let rank = r"(?:[\[(][A-Za-z][^\]):]{0,30}[\])]:?\s*)?";
    let date = r"(?:[IWEF]?\d[\d/.-]*[T\s]\s*)?";
    let time = r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?(?:\s+\d{4,})?\b\W*";
    Regex::new(&format!(r"^{rank}(?P<before>\D{{0,24}}?){date}{time}")).ok()
});

/// The patterns that read at least two epochs from these lines, the best first; `launched_ns` is when the script was started.
pub fn find_progress(lines: &[OutputLine], launched_ns: u64) -> Vec<FoundProgress> {
    let lines: Vec<&OutputLine> = lines.iter().filter(|l| !l.text.is_empty() && l.text.len() <= LONGEST).collect();
    let is_its = |preset: &&Preset| preset.beside.is_none_or(|text| lines.iter().any(|line| line.text.contains(text)));
    let presets = PRESETS
        .iter()
        .filter(is_its)
        .filter_map(|preset| found(preset.pattern.to_string(), Some(preset.name), preset.is_of_epochs(), &lines, launched_ns));
    let mut all: Vec<FoundProgress> = presets.collect();
    all.extend(bars(&lines).into_iter().filter_map(|drawn| bar(&drawn, &lines, launched_ns)));
    // What is logged while a bar is drawn stands behind it.
    let without_bar = |line: &&OutputLine| {
        let text = behind_bar(&line.text).unwrap_or(&line.text).to_string();
        OutputLine { at_ns: line.at_ns, text }
    };
    let texts: Vec<OutputLine> = lines.iter().map(without_bar).collect();
    let lines: Vec<&OutputLine> = texts.iter().collect();
    let mut kinds = BTreeMap::<Vec<String>, Vec<(&OutputLine, Vec<Piece<'_>>)>>::new();
    for &line in &lines {
        if is_bar(&line.text) {
            continue;
        }
        let pieces = pieces(&line.text);
        let kind = kind(&line.text);
        if kinds.len() < MOST_KINDS || kinds.contains_key(&kind) {
            kinds.entry(kind).or_default().push((line, pieces));
        }
    }
    for of_kind in kinds.values() {
        all.extend(counted(of_kind, &lines, launched_ns));
    }
    if all.is_empty() {
        all.extend(kinds.values().filter_map(|of_kind| recurring(of_kind, &lines, launched_ns)));
    }
    // Epochs before steps, what is long before what is short, so that little of it is lost between two readings.
    let typical = |found: &FoundProgress| {
        let mut all = found.epochs_s.clone();
        all.sort_by(f64::total_cmp);
        // Of two, one may be the first epoch, with one-time work in it.
        all.get(all.len().saturating_sub(1) / 2).copied().unwrap_or(0.0)
    };
    all.sort_by(|a, b| {
        (b.names_epochs, b.preset.is_some())
            .cmp(&(a.names_epochs, a.preset.is_some()))
            .then(typical(b).total_cmp(&typical(a)))
            .then(a.pattern.len().cmp(&b.pattern.len()))
    });
    all.dedup_by(|a, b| a.pattern == b.pattern);
    // Of lines that come once in the same epochs, those that come later are nearer to their ends, and leave all of the first epoch out.
    if let Some(best) = all.first() {
        let epoch_s = typical(best);
        let first_epoch_s = best.epochs_s.first().copied().unwrap_or(0.0);
        let is_later = |other: &FoundProgress| {
            let later_s = other.first_s - best.first_s;
            (other.names_epochs, other.preset) == (best.names_epochs, best.preset)
                && (typical(other) - epoch_s).abs() <= ALIKE * epoch_s
                && (ALIKE * epoch_s..first_epoch_s).contains(&later_s)
        };
        let later = (1..all.len()).filter(|n| is_later(&all[*n])).max_by(|a, b| all[*a].first_s.total_cmp(&all[*b].first_s));
        if let Some(later) = later {
            let later = all.remove(later);
            all.insert(0, later);
        }
    }
    all
}

/// What lines of one kind have in common: the texts before and behind their first number, whatever the padding of their numbers. What follows
/// the second number may differ, as a time that is not yet known. When a line was logged is no part of it, what stands before that is.
fn kind(line: &str) -> Vec<String> {
    let at = LOGGED.as_ref().and_then(|logged| logged.captures(line));
    let before = at.as_ref().map(|at| at["before"].to_string());
    let texts = pieces(behind_time(line)).into_iter().filter_map(|piece| match piece {
        Piece::Text(text) => Some(text.split_whitespace().collect::<Vec<_>>().join(" ")),
        Piece::Number(_) => None,
    });
    before.into_iter().chain(texts.take(2)).collect()
}

/// A line without the time at which it was logged.
fn behind_time(line: &str) -> &str {
    LOGGED.as_ref().and_then(|logged| logged.find(line)).map_or(line, |at| &line[at.end()..])
}

/// Lines whose first rising number counts epochs or steps.
fn counted(of_kind: &[(&OutputLine, Vec<Piece<'_>>)], lines: &[&OutputLine], launched_ns: u64) -> Option<FoundProgress> {
    let slots = of_kind.iter().map(|(_, pieces)| numbers(pieces)).min()?;
    (0..slots).find_map(|slot| {
        let mut firsts: Vec<(u64, usize)> = Vec::new();
        for (at, (_, pieces)) in of_kind.iter().enumerate() {
            let value = number(pieces, slot)?.parse::<u64>().ok()?;
            if firsts.last().is_none_or(|(last, _)| *last != value) {
                firsts.push((value, at));
            }
        }
        let steps: Vec<i128> = firsts.windows(2).map(|pair| i128::from(pair[1].0) - i128::from(pair[0].0)).collect();
        // The first may be printed besides: 1, 10, 20, 30.
        let step = *steps.get(1).filter(|_| firsts.len() > FEWEST).or(steps.first())?;
        let is_even = (1..=step).contains(&steps[0]) && steps.iter().skip(1).all(|s| *s == step);
        let names_epochs = Regex::new(EPOCH).ok()?.is_match(&before(&of_kind[0].1, slot));
        // What counts seconds counts as evenly as any, whatever is done meanwhile.
        let is_clock =
            is_time(&of_kind[0].1, slot) || UNIX_TIMES.iter().any(|of| firsts.iter().all(|(value, _)| of.contains(value)));
        if !is_even || is_clock || firsts.len() < if names_epochs { 2 } else { FEWEST } {
            return None;
        }
        let of_first: Vec<&(&OutputLine, Vec<Piece<'_>>)> = firsts.iter().map(|(_, at)| &of_kind[*at]).collect();
        let group = match names_epochs || step == 1 {
            // A step of an epoch, or of so many, begins again with the next.
            _ if !names_epochs && begins_again(&of_kind[0].0.text, &of_kind[0].1, slot) => None,
            true => Some("epoch"),
            false => Some("step"),
        };
        let mut plain = begin(&of_kind[0].1, slot, group, r"\d+");
        if names_epochs && firsts[0].0 < 2 && (is_header(of_kind, slot) || is_spread(&plain, lines)) {
            let but_the_first = if firsts[0].0 == 0 { r"0*[1-9]\d*" } else { r"0*(?:[2-9]|[1-9]\d+)" };
            plain = begin(&of_kind[0].1, slot, group, but_the_first);
        }
        let timed = duration_after(&of_first, slot).map(|end| plain.clone() + &end);
        let timed = timed.and_then(|pattern| found(pattern, None, names_epochs, lines, launched_ns));
        timed.or_else(|| found(plain, None, names_epochs, lines, launched_ns))
    })
}

/// Whether lines are headings: after the number of the epoch at most the total comes, as in `Epoch 2/12`.
fn is_header(of_kind: &[(&OutputLine, Vec<Piece<'_>>)], slot: usize) -> bool {
    let total = number(&of_kind[0].1, slot + 1);
    of_kind.iter().all(|(_, pieces)| {
        let has_words = (slot..numbers(pieces)).any(|n| text_after(pieces, n).contains(char::is_alphabetic));
        numbers(pieces) <= slot + 2 && number(pieces, slot + 1) == total && !has_words
    })
}

/// Whether the lines of an epoch that a pattern matches are spread over it, so that the first of them is not at its end.
fn is_spread(pattern: &str, lines: &[&OutputLine]) -> bool {
    let Ok(pattern) = Regex::new(pattern) else { return false };
    // The first and the last line of each.
    let mut epochs: Vec<(String, u64, u64)> = Vec::new();
    for line in lines {
        let Some(name) = pattern.captures(&line.text).and_then(|found| Some(found.name("epoch")?.as_str().to_string())) else {
            continue;
        };
        match epochs.last_mut() {
            Some((last, _, end_ns)) if *last == name => *end_ns = line.at_ns,
            _ => epochs.push((name, line.at_ns, line.at_ns)),
        }
    }
    let spread = epochs.windows(2).filter(|two| SPREAD * (two[0].2 - two[0].1) >= two[1].1.saturating_sub(two[0].1));
    2 * spread.count() >= epochs.len()
}

/// Lines that come again and again, without a number that counts.
fn recurring(of_kind: &[(&OutputLine, Vec<Piece<'_>>)], lines: &[&OutputLine], launched_ns: u64) -> Option<FoundProgress> {
    let pieces = &of_kind.first()?.1;
    let first_value =
        |(line, _): &(&OutputLine, Vec<Piece<'_>>)| number(&self::pieces(behind_time(&line.text)), 0)?.parse::<f64>().ok();
    // A clock that is printed goes on, whatever is done meanwhile; a duration falls as well as rises.
    let is_clock = is_time(&self::pieces(behind_time(&of_kind[0].0.text)), 0)
        && of_kind.windows(2).all(|pair| first_value(&pair[0]) < first_value(&pair[1]));
    if of_kind.len() < FEWEST || is_clock {
        return None;
    }
    // As few words as distinguish these lines from all others.
    let patterns: Vec<String> = (1..=MOST_WORDS).filter_map(|words| beginning(pieces, words)).collect();
    let is_its_own = |pattern: &&String| {
        let read = Regex::new(pattern);
        read.is_ok_and(|read| lines.iter().filter(|line| read.is_match(&line.text)).count() == of_kind.len())
    };
    let pattern = patterns.iter().find(is_its_own).or(patterns.last())?;
    found(pattern.clone(), None, false, lines, launched_ns)
}

/// A drawing of a bar of tqdm.
struct Drawn<'a> {
    /// The place of its line among all.
    at: usize,
    line: &'a str,
    description: &'a str,
    count: u64,
    total: &'a str,
    /// It is the first of its start. A bar is drawn again before its first step where its postfix or numbers of its description are set.
    starts: bool,
}

/// The drawings of each bar of tqdm, the first bar first: bars differ in their totals and in their first words, as those of training, of
/// validation and of what was prepared before (tqdm 4, `format_meter`), and where they start in any word.
fn bars<'a>(lines: &[&'a OutputLine]) -> Vec<Vec<Drawn<'a>>> {
    let Ok(bar) = Regex::new(r"^(.*?)\s*\d+%\|.*?\| (\d+)/(\d+) \[") else { return Vec::new() };
    let mut all: Vec<Vec<Drawn<'_>>> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some((_, [description, count, total])) = bar.captures(&line.text).map(|found| found.extract()) else { continue };
        let Ok(count) = count.parse::<u64>() else { continue };
        let is_alike = |of: &[Drawn<'_>]| of[0].total == total && words(of[0].description) == words(description);
        // The one of them that was drawn last goes on. `Epoch 1 [train]` is followed by `Epoch 1 [val]`.
        let newest = (0..all.len()).filter(|n| is_alike(&all[*n])).max_by_key(|n| all[*n].last().map(|last| last.at));
        let is_other = |last: &Drawn<'_>| last.count > 0 || all_words(last.description) != all_words(description);
        let starts = count == 0 && newest.is_none_or(|n| all[n].last().is_some_and(is_other));
        let its = match starts {
            true => all.iter().position(|of| is_alike(of) && all_words(of[0].description) == all_words(description)),
            false => newest,
        };
        let drawn = Drawn { at, line: &line.text, description, count, total, starts };
        match its {
            Some(n) => all[n].push(drawn),
            None => all.push(vec![drawn]),
        }
    }
    all
}

/// The words before the first number of a description.
fn words(description: &str) -> &str {
    description.split(|c: char| c.is_ascii_digit()).next().unwrap_or_default()
}

/// The words of a description, without its numbers, an exponent of one included.
fn all_words(description: &str) -> Vec<&str> {
    let words = description.split(|c: char| !c.is_alphabetic());
    words.filter(|word| word.chars().count() > 1 && !["nan", "inf"].contains(word)).collect()
}

/// Of a bar that starts again and again each start is the end of an epoch, and of one that counts by ones and does not start again each
/// step is; in between it is drawn after a time (tqdm 4, `mininterval`). Of one whose steps are shorter than that each percent is.
fn bar(drawn: &[Drawn<'_>], lines: &[&OutputLine], launched_ns: u64) -> Option<FoundProgress> {
    let first = drawn.first()?;
    // A description may have numbers in it, such as a loss.
    let described = pattern_of(&pieces(first.description));
    let is_of_all = |begin: &Regex| drawn.iter().all(|drawn| begin.is_match(drawn.line));
    let begin = match Regex::new(&format!(r"^{described}\s*\d+%\|")).is_ok_and(|begin| is_of_all(&begin)) {
        true => format!(r"^{described}\s*"),
        false => r"^.*?\b".to_string(),
    };
    let mut counts: Vec<u64> = drawn.iter().map(|drawn| drawn.count).collect();
    counts.dedup();
    let by_ones = counts.len() > FEWEST && counts.windows(2).all(|pair| pair[1] == pair[0] + 1);
    if by_ones {
        let pattern = format!(r"{begin}\d+%\|.*?\| (?P<epoch>[1-9]\d*)/{} \[", first.total);
        return found(pattern, None, false, lines, launched_ns);
    }
    // Below half a percent it is `0%` as well. At its start a bar has the description that it was made with, and no postfix.
    let starts = [format!("{begin}0%"), format!(r"^{described}\s*0%")];
    let ends = [r" \[", r" \[[\d:]+<\?, [^,\]]*\]"];
    let patterns = starts.iter().flat_map(|start| ends.map(|end| format!(r"{start}\|.*?\| 0/{}{end}", first.total)));
    let patterns: Vec<String> = patterns.collect();
    let is_of_starts = |pattern: &&String| {
        Regex::new(pattern).is_ok_and(|start| drawn.iter().all(|drawn| start.is_match(drawn.line) == drawn.starts))
    };
    let pattern = patterns.iter().find(is_of_starts).or(patterns.first())?;
    found(pattern.clone(), None, true, lines, launched_ns).or_else(|| {
        let pattern = format!(r"{begin}(?P<epoch>\d+)%\|.*?\| \d+/{} \[", first.total);
        let percents = found(pattern, None, false, lines, launched_ns)?;
        let least_s = percents.epochs_s.iter().copied().fold(f64::INFINITY, f64::min);
        (percents.epochs_s.len() >= FEWEST && least_s >= LEAST_PERCENT_S).then_some(percents)
    })
}

/// Whether a line is a drawing of a bar.
fn is_bar(line: &str) -> bool {
    const BLOCKS: [char; 6] = ['█', '━', '▏', '▎', '▍', '■'];
    line.contains("%|") || line.contains(BLOCKS)
}

/// What the adapter reads with a pattern, if that is at least one epoch after the first, and nothing impossible.
fn found(
    pattern: String,
    preset: Option<&'static str>,
    names_epochs: bool,
    lines: &[&OutputLine],
    launched_ns: u64,
) -> Option<FoundProgress> {
    let goal = EpochGoal { epochs: u32::MAX, measure_for_ns: 0 };
    let mut translator = Translator::new(
        &Adapter { pattern: pattern.clone(), preset: preset.map(str::to_string), items: None, goal, measures_on: false },
        launched_ns,
    )
    .ok()?;
    let (mut epochs, mut shown, mut first_ns) = (Vec::new(), Vec::new(), None);
    let mut last_ns = None;
    let mut matched_ns = launched_ns;
    for line in lines {
        for message in translator.line(&line.text, line.at_ns) {
            if message["event"] != "epoch" {
                return None;
            }
            let span_ns = (message["start_ns"].as_u64()?, message["end_ns"].as_u64()?);
            matched_ns = line.at_ns;
            first_ns.get_or_insert(line.at_ns);
            let since_ns: Option<u64> = last_ns.replace(span_ns.1).map(|last| span_ns.1.saturating_sub(last));
            epochs.push((span_ns.1.saturating_sub(span_ns.0) as f64 / 1e9, since_ns.map(|ns| ns as f64 / 1e9)));
            if shown.len() < SHOWN {
                shown.push(line.text.clone());
            }
        }
    }
    // The time between two lines has what a script does between epochs in it; a duration is at most that, and not a small part of it.
    // All of them together: one line that is read late is no evidence against the others.
    let both: Vec<(f64, f64)> = epochs.iter().filter_map(|(took_s, since_s)| Some((*took_s, (*since_s)?))).collect();
    let (took_s, since_s) = both.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let is_about = (took_s - since_s).abs() <= ABOUT.0 * since_s + ABOUT.1;
    let epochs_s: Vec<f64> = epochs.iter().skip(1).map(|epoch| epoch.0).collect();
    let longest = epochs_s.iter().copied().fold(0.0, f64::max);
    // Lines of the set-up end with it.
    let silent_s = lines.last().map_or(0, |last| last.at_ns.saturating_sub(matched_ns)) as f64 / 1e9;
    let goes_on = silent_s <= MOST_APART * longest;
    (!epochs_s.is_empty() && is_regular(&epochs_s) && is_about && goes_on).then_some(FoundProgress {
        pattern,
        preset,
        names_epochs,
        lines: shown,
        first_s: first_ns.unwrap_or(launched_ns).saturating_sub(launched_ns) as f64 / 1e9,
        last_s: matched_ns.saturating_sub(launched_ns) as f64 / 1e9,
        epochs_s,
    })
}

/// Whether durations are of one kind: a line that comes twice for one epoch leaves a short one behind each, while of steps beside
/// other processes some are long.
fn is_regular(epochs_s: &[f64]) -> bool {
    let mut all = epochs_s.to_vec();
    all.sort_by(f64::total_cmp);
    let quarter = |n: usize| all.get((all.len() * n / 4).min(all.len().saturating_sub(1))).copied().unwrap_or(0.0);
    quarter(1) >= quarter(3) / MOST_APART
}

/// Whether a number that rises may begin again: behind an epoch that is named, or a whole number that may be one, as in `[1,  2000]` of
/// PyTorch's tutorials, or before a total.
fn begins_again(line: &str, pieces: &[Piece<'_>], slot: usize) -> bool {
    let names_epoch = |earlier: usize| Regex::new(EPOCH).is_ok_and(|epoch| epoch.is_match(&before(pieces, earlier)));
    // The numbers of a date are no epochs.
    let own = numbers(&self::pieces(behind_time(line)));
    let may_be_epoch = |earlier: usize| number(pieces, earlier).is_some_and(|number| number.parse::<u64>().is_ok());
    (0..slot).any(names_epoch)
        || (numbers(pieces) - own..slot).any(may_be_epoch)
        || text_after(pieces, slot).trim_start().starts_with('/')
}

/// The pattern from the beginning of a line to one of its numbers, which becomes this group of these digits if there is one.
fn begin(pieces: &[Piece<'_>], slot: usize, group: Option<&str>, digits: &str) -> String {
    let before = pattern_of(&pieces[..place(pieces, slot).unwrap_or(pieces.len())]);
    let counted = group.map_or(r"\d+".into(), |group| format!("(?P<{group}>{digits})"));
    // What follows belongs to it: `epoch 1` is not the beginning of `epoch 10`. Before a letter no word ends: `3epoch`, `第3轮`.
    let end = match text_after(pieces, slot).chars().next() {
        Some(next) if next.is_alphanumeric() || next == '_' => regex::escape(&next.to_string()),
        _ => r"\b".into(),
    };
    format!("^{before}{counted}{end}")
}

/// The rest of a pattern, from behind the number that counts to a duration, if all lines have one at the same place.
fn duration_after(of_first: &[&(&OutputLine, Vec<Piece<'_>>)], slot: usize) -> Option<String> {
    let pieces = &of_first.last()?.1;
    (slot + 1..numbers(pieces)).find_map(|at| {
        let (word, after) = (word_before(pieces, at), text_after(pieces, at));
        let value = number(pieces, at)?;
        // `0m 58s` is one duration of two numbers.
        if at > 0 && is_unit(&text_after(pieces, at - 1)) || is_unit(&after) && is_whole_unit(&after) && at + 1 < numbers(pieces)
        {
            return None;
        }
        let is_named = names_time(&word);
        let unit = unit_after()?;
        let unit = unit.captures(&after).map(|found| (found[1].to_string(), found[2].to_string()));
        let (group, end) = match unit {
            Some((space, unit)) if unit == "ms" => ("milliseconds", format!("{space}{unit}")),
            Some((space, unit)) if unit.starts_with("min") => ("minutes", format!("{space}{unit}")),
            Some((space, unit)) => ("seconds", format!("{space}{unit}")),
            None if is_named && value.contains(':') => ("seconds", String::new()),
            None => return None,
        };
        let is_alike = |of: &&(&OutputLine, Vec<Piece<'_>>)| {
            let pieces = &of.1;
            word_before(pieces, at) == word && text_after(pieces, at).starts_with(&end)
        };
        let digits = if value.contains(':') { r"[\d.:]+" } else { r"[\d.]+" };
        let pattern = format!(".*?{}(?P<{group}>{digits}){}", regex::escape(&word), regex::escape(&end));
        // After the number that counts, `.*?` alone would find an earlier number: there must be something to go by.
        let can_be_found = !word.trim().is_empty() || !end.trim().is_empty();
        (can_be_found && of_first.iter().all(is_alike)).then_some(pattern)
    })
}

#[cfg(test)]
#[path = "find_progress_tests.rs"]
mod tests;
