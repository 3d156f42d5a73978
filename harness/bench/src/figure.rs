//! A figure: the measurement, its limit or peer, and the verdict. As text for people, as JSON for the record.

use collo_quantity::stats::{median, median_interval, nearest_rank};
use serde_json::{Value as Json, json};

use crate::load::Load;

/// One row of the table.
#[derive(Debug, Clone, Default)]
pub struct Figure {
    pub name: String,
    pub unit: Unit,
    /// Median, mean or ratio, as the name or the note says; `None` if it could not be measured.
    pub value: Option<f64>,
    pub p99: Option<f64>,
    /// 95 % interval.
    pub interval: Option<(f64, f64)>,
    pub count: usize,
    /// The largest acceptable value, and the statistic it applies to.
    pub limit: Option<(f64, Statistic)>,
    /// What it is compared with: a name, and its value in the same run.
    pub peer: Option<(&'static str, f64)>,
    /// The same statistic on this machine without the harness.
    pub floor: Option<f64>,
    pub note: Option<String>,
}

/// The statistic that a limit applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistic {
    Value,
    P99,
    High,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unit {
    #[default]
    Seconds,
    /// Of one core.
    Share,
    Ratio,
    Bytes,
    /// Share of the cases, whatever else the machine does meanwhile.
    Frequency,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Met,
    Missed,
    NotComparable(String),
    /// There is no target.
    Told,
}

impl Figure {
    /// Seconds that were measured several times: their median with its interval, their p99, their number.
    pub fn of_seconds(name: impl Into<String>, seconds: &[f64]) -> Figure {
        let (value, p99) = (median(&mut seconds.to_vec()), nearest_rank(&mut seconds.to_vec(), 0.99));
        Figure { name: name.into(), value, p99, interval: median_interval(seconds), count: seconds.len(), ..Figure::default() }
    }

    /// A figure that could not be measured.
    pub fn absent(name: impl Into<String>, why: impl Into<String>) -> Figure {
        Figure { name: name.into(), note: Some(why.into()), ..Figure::default() }
    }

    fn asked(&self, which: Statistic) -> Option<f64> {
        match which {
            Statistic::Value => self.value,
            Statistic::P99 => self.p99,
            Statistic::High => self.interval.map(|i| i.1),
        }
    }

    /// A miss of a timing counts only if no other process used the machine.
    pub fn verdict(&self, load: &Load) -> Verdict {
        let Some((limit, which)) = self.limit else {
            return if self.value.is_some() { Verdict::Told } else { Verdict::NotComparable("not measured".into()) };
        };
        match self.asked(which) {
            None if self.value.is_some() => Verdict::NotComparable(format!("too few for {}", which.the())),
            None => Verdict::NotComparable("not measured".into()),
            Some(found) if found <= limit => Verdict::Met,
            Some(_) if self.floor.is_some_and(|floor| floor > limit) => Verdict::NotComparable(format!(
                "without the harness {}",
                self.floor.map(|f| self.unit.show(f)).unwrap_or_default()
            )),
            Some(_) if load.is_busy() && self.unit != Unit::Frequency => {
                Verdict::NotComparable(format!("others used {:.1} cores", load.others_cores))
            }
            Some(_) => Verdict::Missed,
        }
    }

    pub fn json(&self, load: &Load) -> Json {
        let verdict = match self.verdict(load) {
            Verdict::Met => "met",
            Verdict::Missed => "missed",
            Verdict::NotComparable(_) => "not comparable",
            Verdict::Told => "told",
        };
        json!({
            "figure": self.name,
            "unit": self.unit.as_str(),
            "value": self.value,
            "p99": self.p99,
            "interval_95": self.interval.map(|(low, high)| json!({"low": low, "high": high})),
            "count": self.count,
            "floor": self.floor,
            "limit": self.limit.map(|(limit, which)| json!({"of": which.as_str(), "at_most": limit})),
            "peer": self.peer.map(|(name, value)| json!({"name": name, "value": value, "ratio": self.value.map(|v| v / value)})),
            "verdict": verdict,
            "note": self.note,
        })
    }

    /// One row, and the note below it.
    pub fn row(&self, load: &Load) -> String {
        let show = |v: f64| self.unit.show(v);
        let mut value = self.value.map_or("–".into(), show);
        if let Some((low, high)) = self.interval {
            value.push_str(&format!(" [{}, {}]", show(low), show(high)));
        }
        if let Some(p99) = self.p99 {
            value.push_str(&format!(", p99 {}", show(p99)));
        }
        let limit = self.limit.map(|(limit, which)| format!("{}≤ {}", which.prefix(), show(limit)));
        let peer = self.peer.map(|(name, peer)| {
            let ratio = self.value.map(|v| format!(" ×{:.3}", v / peer)).unwrap_or_default();
            format!("{name} {}{ratio}", show(peer))
        });
        let against = [limit, peer].into_iter().flatten().collect::<Vec<_>>().join("; ");
        let verdict = match self.verdict(load) {
            Verdict::Met => "met".into(),
            Verdict::Missed => "MISSED".into(),
            Verdict::NotComparable(why) => format!("not comparable: {why}"),
            Verdict::Told => String::new(),
        };
        let mut row = format!("{:<36} {value:<34} {against:<30} {verdict}", self.name).trim_end().to_string();
        if let Some(note) = &self.note {
            row.push_str(&format!("\n    {note}"));
        }
        row
    }
}

impl Statistic {
    fn as_str(self) -> &'static str {
        match self {
            Statistic::Value => "value",
            Statistic::P99 => "p99",
            Statistic::High => "upper bound",
        }
    }

    fn the(self) -> &'static str {
        match self {
            Statistic::Value => "a value",
            Statistic::P99 => "a p99",
            Statistic::High => "an interval",
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Statistic::Value => "",
            Statistic::P99 => "p99 ",
            Statistic::High => "upper ",
        }
    }
}

impl Unit {
    fn as_str(self) -> &'static str {
        match self {
            Unit::Seconds => "s",
            Unit::Share => "share of one core",
            Unit::Ratio => "ratio",
            Unit::Bytes => "bytes",
            Unit::Frequency => "share of the cases",
        }
    }

    fn show(self, v: f64) -> String {
        match self {
            Unit::Seconds if v.abs() < 0.1 => format!("{:.3} ms", v * 1e3),
            Unit::Seconds => format!("{v:.3} s"),
            Unit::Share => format!("{:.3} %", v * 1e2),
            Unit::Frequency => format!("{:.1} %", v * 1e2),
            Unit::Ratio => format!("{v:.4}"),
            Unit::Bytes => format!("{:.1} MB", v / 1e6),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Load = Load { average: 0.1, others_cores: 0.0 };
    const BUSY: Load = Load { average: 4.0, others_cores: 1.5 };

    fn skew(value: f64) -> Figure {
        Figure { name: "skew".into(), value: Some(value), limit: Some((0.001, Statistic::Value)), count: 3, ..Figure::default() }
    }

    #[test]
    fn a_miss_counts_only_on_a_machine_that_nobody_else_uses() {
        assert_eq!(skew(0.0009).verdict(&BUSY), Verdict::Met);
        assert_eq!(skew(0.002).verdict(&IDLE), Verdict::Missed);
        assert_eq!(skew(0.002).verdict(&BUSY), Verdict::NotComparable("others used 1.5 cores".into()));
        let floor = Some(0.0018);
        assert_eq!(Figure { floor, ..skew(0.002) }.verdict(&IDLE), Verdict::NotComparable("without the harness 1.800 ms".into()));
        assert_eq!(Figure { floor: Some(0.0005), ..skew(0.002) }.verdict(&IDLE), Verdict::Missed);
    }

    #[test]
    fn the_upper_bound_is_what_a_limit_asks_of_an_interval() {
        let limit = Some((1.005, Statistic::High));
        let figure = Figure { value: Some(1.0), interval: Some((0.99, 1.01)), limit, unit: Unit::Ratio, ..Figure::default() };
        assert_eq!(figure.verdict(&IDLE), Verdict::Missed);
        let few = Figure { interval: None, ..figure.clone() };
        assert_eq!(few.verdict(&IDLE), Verdict::NotComparable("too few for an interval".into()));
        assert!(figure.row(&IDLE).contains("1.0000 [0.9900, 1.0100]"));
    }

    #[test]
    fn what_was_not_measured_is_null_and_never_met() {
        let figure = Figure { limit: Some((1.0, Statistic::Value)), ..Figure::absent("radT", "no network") };
        assert_eq!(figure.json(&IDLE)["value"], Json::Null);
        assert_eq!(figure.json(&IDLE)["verdict"], "not comparable");
    }
}
