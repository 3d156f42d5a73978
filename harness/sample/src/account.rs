//! The account of one source: what it gave, why the rest is absent, and how well it was read.

use collo_store::{SAMPLING_OFF, SamplingQuality};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use nvml_wrapper::error::NvmlError;

/// Metric and scope.
type Reading = (&'static str, Arc<str>);

/// Kept while a source is read; reported when it ends.
#[derive(Debug, Clone, Default)]
pub struct Account {
    given: BTreeSet<Reading>,
    absent: BTreeMap<Reading, String>,
}

impl Account {
    /// A value was read.
    pub fn gave(&mut self, metric: &'static str, scope: &Arc<str>) {
        // Nearly always known: no copy of the scope for that.
        let reading = (metric, scope.clone());
        if self.given.insert(reading.clone()) {
            self.absent.remove(&reading);
        }
    }

    /// There is no value, and why; if it was given before, only `ended` sets a reason.
    pub fn lacks(&mut self, metric: &'static str, scope: &Arc<str>, why: &str) {
        let reading = (metric, scope.clone());
        if !self.given.contains(&reading) {
            self.absent.insert(reading, why.to_string());
        }
    }

    /// It gave values, but no longer does.
    pub fn ended(&mut self, metric: &'static str, scope: &Arc<str>, why: &str) {
        let reading = (metric, scope.clone());
        let text = if self.given.contains(&reading) { format!("ended early: {why}") } else { why.to_string() };
        self.absent.insert(reading, text);
    }

    /// Merge another account of the same source.
    pub fn join(&mut self, other: &Account) {
        self.given.extend(other.given.iter().cloned());
        self.absent.extend(other.absent.iter().map(|(k, v)| (k.clone(), v.clone())));
    }

    pub fn has(&self, metric: &'static str, scope: &Arc<str>) -> bool {
        self.given.contains(&(metric, scope.clone()))
    }

    /// Every reading that is absent, with its reason.
    pub fn absent(&self) -> impl Iterator<Item = (&'static str, &Arc<str>, &str)> {
        self.absent.iter().map(|((metric, scope), why)| (*metric, scope, why.as_str()))
    }

    /// Reasons by metric if the same for all scopes, else by `METRIC of SCOPE`.
    pub fn reported(&self) -> BTreeMap<String, String> {
        let is_one_for_all = |metric: &str, why: &str| {
            self.given.iter().all(|(m, _)| *m != metric) && self.absent().all(|(m, _, other)| m != metric || other == why)
        };
        let key = |(metric, scope, why): (&'static str, &Arc<str>, &str)| {
            let name = if is_one_for_all(metric, why) { metric.to_string() } else { format!("{metric} of {scope}") };
            (name, why.to_string())
        };
        self.absent().map(key).collect()
    }
}

/// Whether an NVML error is permanent, so that asking again is pointless.
pub fn is_never(e: &NvmlError) -> bool {
    matches!(e, NvmlError::NotSupported | NvmlError::InvalidArg | NvmlError::FunctionNotFound | NvmlError::FailedToLoadSymbol(_))
}

/// The result of reading a source, after its end.
pub struct SourceResult {
    pub quality: SamplingQuality,
    pub account: Account,
}

impl SourceResult {
    /// For a thread that did not end, because a call to the driver does not return.
    pub fn stuck(waited: Duration) -> SourceResult {
        let mut finished = SourceResult::without_reading("driver", 0.0, Account::default());
        finished
            .quality
            .absent
            .insert("all".into(), format!("a call to the driver did not return within {} s", waited.as_secs()));
        finished
    }

    /// For a thread that panicked: what it read until then is in the table.
    pub fn panicked(thread: &str) -> SourceResult {
        let mut finished = SourceResult::without_reading(thread, 0.0, Account::default());
        finished.quality.absent.insert("all".into(), "its thread ended with an error before the run did".into());
        finished
    }

    /// For time series that are not to be recorded.
    pub fn off() -> SourceResult {
        let mut finished = SourceResult::without_reading("off", 0.0, Account::default());
        finished.quality.absent.insert("all".into(), SAMPLING_OFF.into());
        finished
    }

    /// For a source that gave nothing, or whose caller fills in the rest.
    pub fn without_reading(source: &str, asked_hz: f64, account: Account) -> SourceResult {
        let quality = SamplingQuality {
            source: source.into(),
            asked_hz,
            achieved_hz: None,
            ticks: 0,
            missed: 0,
            longest_gap_s: None,
            lateness_p50_s: None,
            lateness_p99_s: None,
            lateness_max_s: None,
            cpu_ratio: None,
            moved_ratio: Default::default(),
            absent: account.reported(),
            unread_lines: 0,
            xids: Vec::new(),
            remarks: Vec::new(),
            instrument: None,
        };
        SourceResult { quality, account }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_reason_for_every_scope_is_told_once_and_one_for_some_names_them() {
        let (a, b): (Arc<str>, Arc<str>) = ("gpu:A".into(), "gpu:B".into());
        let mut account = Account::default();
        account.lacks("energy_j", &a, "not supported");
        account.lacks("energy_j", &b, "not supported");
        account.gave("power_w", &a);
        account.lacks("power_w", &a, "said once, later");
        account.lacks("power_w", &b, "not supported");
        account.gave("temperature_c", &a);
        account.ended("temperature_c", &a, "the GPU is lost");
        let told = account.reported();
        let expected = [
            ("energy_j", "not supported"),
            ("power_w of gpu:B", "not supported"),
            ("temperature_c of gpu:A", "ended early: the GPU is lost"),
        ];
        assert_eq!(told, expected.map(|(k, v)| (k.to_string(), v.to_string())).into());
        assert!(account.has("power_w", &a) && !account.has("power_w", &b));
    }
}
