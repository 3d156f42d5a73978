//! The time limit of a job, and how long before it Slurm warns collo.

use crate::args;

/// Time between Slurm's warning and its kill, in which collo discards the current run and restores the GPU: at most, and at least.
const LEAD_S: (u64, u64) = (300, 60);
/// Slurm warns up to so much earlier than it was asked to (sbatch(1), `--signal`).
const EARLIER_S: u64 = 60;
/// With less time than this most of it is set-up and warning.
const SHORT_S: u64 = 600;

/// A time limit as it was typed, and what it is.
#[derive(Debug, PartialEq, Eq)]
pub struct TimeLimit {
    typed: String,
    seconds: u64,
}

/// The limit of the tasks: `--time`, or an option of sbatch's; `None` if there is none, or none that has an end.
pub fn of(a: &args::Slurm) -> Option<TimeLimit> {
    // The last one counts: `#SBATCH` lines of `--sbatch` follow the others.
    let typed = last_time(a.sbatch.iter().map(String::as_str)).or_else(|| a.time.clone())?;
    let seconds = seconds(&typed)?;
    Some(TimeLimit { typed, seconds })
}

/// The last `--time` or `-t` in `#SBATCH` lines, as getopt_long of `_set_options` in Slurm's src/sbatch/opt.c reads it. Shorter than
/// `--time` it is ambiguous, since there is `--time-min`, and sbatch refuses it.
fn last_time<'a>(lines: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut last = None;
    let mut words = lines.flat_map(words);
    while let Some(word) = words.next() {
        if word == "--time" || word == "-t" {
            last = words.next().or(last);
        } else if let Some(value) = word.strip_prefix("--time=") {
            last = Some(value.to_string());
        } else if let Some(value) = word.strip_prefix("-t") {
            last = Some(value.to_string());
        }
    }
    last
}

/// The arguments of a `#SBATCH` line: quotes group, a backslash takes the meaning of what follows, `#` begins a comment (`_get_argument` in
/// Slurm's src/sbatch/opt.c).
fn words(line: &str) -> Vec<String> {
    let (mut all, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = line.chars();
    while let Some(c) = letters.next() {
        match (c, quote) {
            ('\\', _) => word.get_or_insert_default().extend(letters.next()),
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => quote = Some(c),
            ('#', None) => break,
            (c, None) if c.is_whitespace() => all.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    all.extend(word);
    all
}

/// How many seconds before the limit Slurm is to warn: a quarter of a short one.
pub fn lead_s(limit: Option<&TimeLimit>) -> u64 {
    limit.map_or(LEAD_S.0, |limit| (limit.seconds / 4).clamp(LEAD_S.1, LEAD_S.0))
}

impl TimeLimit {
    /// A warning, if most of the time is not for measuring.
    pub fn is_short(&self) -> Option<String> {
        let lead_s = lead_s(Some(self));
        let left_s = self.seconds.saturating_sub(lead_s + EARLIER_S);
        (self.seconds < SHORT_S).then(|| {
            format!(
                "a task with the time limit {} is warned {lead_s} s to {} s before it, and ends then: {left_s} s are certainly its own, with the \
                 start; 10 minutes or more are better",
                self.typed,
                lead_s + EARLIER_S
            )
        })
    }
}

/// Seconds of a limit as Slurm reads it: minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes and
/// days-hours:minutes:seconds (sbatch(1), `--time`). 0 is no limit, as are its words.
fn seconds(text: &str) -> Option<u64> {
    let number = |text: &str| text.parse::<u64>().ok().filter(|n| *n <= 1_000_000);
    let (days, rest) = match text.trim().split_once('-') {
        Some((days, rest)) => (Some(number(days)?), rest),
        None => (None, text.trim()),
    };
    let parts = rest.split(':').map(number).collect::<Option<Vec<u64>>>()?;
    let rest_s = match (days.is_some(), &parts[..]) {
        (false, [minutes]) => minutes * 60,
        (false, [minutes, seconds]) => minutes * 60 + seconds,
        (true, [hours]) => hours * 3600,
        (true, [hours, minutes]) => hours * 3600 + minutes * 60,
        (_, [hours, minutes, seconds]) => hours * 3600 + minutes * 60 + seconds,
        _ => return None,
    };
    Some(days.unwrap_or(0) * 86_400 + rest_s).filter(|seconds| *seconds > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_limit_is_read_as_slurm_reads_it() {
        let all = ["4", "4:30", "00:04:00", "1-0", "1-2:3", "1-2:3:4", " 10 "].map(seconds);
        assert_eq!(all, [240, 270, 240, 86_400, 93_780, 93_784, 600].map(Some));
        assert_eq!(["", "0", "UNLIMITED", "INFINITE", "4m", "1:2:3:4", "-1", "1-", "1-a"].map(seconds), [None; 9]);
    }

    #[test]
    fn the_last_time_limit_of_sbatch_counts_and_no_other_option_is_one() {
        let last = |lines: &[&str]| last_time(lines.iter().copied());
        for line in ["--time=4:30", "--time 4:30", "-t4:30", "-t 4:30", "--time='4:30'", "--qos=long  --time=4:30 # as --time=9"]
        {
            assert_eq!(last(&[line]).as_deref(), Some("4:30"), "{line}");
        }
        assert_eq!(last(&["--time=9", "-t", "1-0", "--time-min=4"]).as_deref(), Some("1-0"));
        for other in
            ["--time-min=4", "--time-min 4", "--tim=4", "--threads-per-core=1", "--test-only", "--comment='-t 4'", "", "--time"]
        {
            assert_eq!(last(&[other]), None, "{other}");
        }
    }

    #[test]
    fn a_short_task_is_warned_later_and_its_user_now() {
        let of = |typed: &str| seconds(typed).map(|seconds| TimeLimit { typed: typed.into(), seconds });
        let leads = ["1", "4", "8", "10", "30", "8:00:00", "UNLIMITED"].map(|typed| lead_s(of(typed).as_ref()));
        assert_eq!(leads, [60, 60, 120, 150, 300, 300, 300]);
        let warning = |typed: &str| of(typed).and_then(|limit| limit.is_short());
        assert_eq!([warning("10"), warning("08:00:00")], [None, None]);
        insta::assert_snapshot!(warning("00:04:00").expect("short"), @"a task with the time limit 00:04:00 is warned 60 s to 120 s before it, and ends then: 120 s are certainly its own, with the start; 10 minutes or more are better");
        assert!(warning("1").expect("short").contains("0 s are certainly"));
    }
}
