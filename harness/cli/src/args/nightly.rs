//! What `collo nightly` and `collo prune` take.

use std::time::Duration;

use clap::Args;

use super::{Measure, Selection};
use crate::complete;

#[derive(Debug, Args)]
pub struct Nightly {
    /// An experiment of experiments/, or a path to one
    #[arg(value_name = "NAME", default_value = "nightly", add = complete::experiments())]
    pub name: String,
    #[command(flatten)]
    pub selection: Selection,
    /// Measure nothing; judge the stored campaigns
    #[arg(long)]
    pub judge_only: bool,
    /// Do not measure suspicious cells again; report only very clear steps
    #[arg(long)]
    pub no_rerun: bool,
    /// Additional repetitions of a suspicious cell in the same night
    #[arg(long, value_name = "COUNT", default_value_t = 9, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub more: u32,
    /// Run this shell command at the end, with the result as its input and the exit code in COLLO_EXIT:
    /// 'mail -s nightly me@example.org'
    #[arg(long, value_name = "COMMAND")]
    pub notify: Option<String>,
    /// The smallest step worth reporting, as in 3%; 2% if the experiment does not say
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub relevant: Option<f64>,
    #[command(flatten)]
    pub measure: Measure,
}

#[derive(Debug, Args)]
pub struct Prune {
    /// Keep this many of the newest complete campaigns of each experiment on each device
    #[arg(long, value_name = "COUNT")]
    pub keep: Option<usize>,
    /// Delete only what is older than this, as in 30d; the default if --keep is not given
    #[arg(long, value_name = "TIME", value_parser = age)]
    pub older_than: Option<Duration>,
    /// Only campaigns of this experiment
    #[arg(long, value_name = "NAME", add = complete::experiments())]
    pub experiment: Option<String>,
    /// Include unfinished campaigns
    #[arg(long)]
    pub unfinished: bool,
    /// Delete; without this, only list what would be deleted
    #[arg(long, conflicts_with = "dry_run")]
    pub yes: bool,
    /// Only list what would be deleted (the default without --yes)
    #[arg(long)]
    pub dry_run: bool,
}

fn share(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%').and_then(|n| n.trim().parse::<f64>().ok());
    number.filter(|p| *p > 0.0 && *p <= 100.0).map(|p| p / 100.0).ok_or_else(|| "a share is as in `3%`, above 0 %".into())
}

/// `30d`, `8w`, or any other duration.
fn age(text: &str) -> Result<Duration, String> {
    let whole = |unit: char, days: u64| {
        let n: u64 = text.strip_suffix(unit)?.parse().ok()?;
        n.checked_mul(days)?.checked_mul(86_400).map(Duration::from_secs)
    };
    whole('d', 1)
        .or_else(|| whole('w', 7))
        .or_else(|| collo_text::units::duration(text))
        .ok_or_else(|| "units are w, d, h, m, s, as in `30d`".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_shares_are_read_as_people_write_them() {
        let days = |n: u64| Ok(Duration::from_secs(n * 86_400));
        assert_eq!((age("30d"), age("2w"), age("36h")), (days(30), days(14), Ok(Duration::from_secs(129_600))));
        assert!(age("30").is_err() && age("-1d").is_err() && age("99999999999999999999w").is_err());
        assert_eq!((share("3%"), share("0.5 %")), (Ok(0.03), Ok(0.005)));
        assert!(share("3").is_err() && share("0%").is_err() && share("NaN%").is_err());
    }
}
