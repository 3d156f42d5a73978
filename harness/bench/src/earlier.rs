//! Figures of an earlier run on the same machine, and whether those of now are worse.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::figure::{Figure, Unit};
use crate::load::Load;

/// A difference that matters. Builds of the same source differ by a few percent, by where the linker puts the code.
const MARGIN_RATIO: f64 = 0.10;

/// One benchmark's file in `target/bench`, as far as it is compared.
#[derive(Deserialize)]
pub struct Earlier {
    build: String,
    /// Absent in files of before it was recorded.
    #[serde(default)]
    machine: Option<String>,
    others_cores: f64,
    figures: Vec<EarlierFigure>,
}

#[derive(Deserialize)]
struct EarlierFigure {
    figure: String,
    value: Option<f64>,
    interval_95: Option<Bounds>,
}

#[derive(Deserialize)]
struct Bounds {
    low: f64,
    high: f64,
}

/// A figure beside the same one of an earlier run. All figures are costs: a larger one is worse.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// The 95 % interval of the ratio of now to then is beyond the margin.
    Worse(f64),
    Better(f64),
    /// The interval is within the margin.
    Same(f64),
    Open(f64),
    NotComparable(String),
}

impl Earlier {
    /// Read the file of a benchmark; `None` where the folder has none.
    pub fn read(folder: &Path, bench: &str) -> Result<Option<Earlier>> {
        ensure!(folder.is_dir(), "no folder `{}`: `--against` takes a copy of `target/bench`", folder.display());
        let path = folder.join(format!("{bench}.json"));
        if !path.exists() {
            return Ok(None);
        }
        let text = fs_err::read_to_string(&path)?;
        let earlier =
            serde_json::from_str(&text).with_context(|| format!("`{}` is not a file of this benchmark", path.display()))?;
        Ok(Some(earlier))
    }

    /// Why nothing of it can be compared with this run.
    fn differs(&self, build: &str, machine: &str, load: &Load) -> Option<String> {
        let then = Load { average: 0.0, others_cores: self.others_cores };
        match () {
            () if self.build != build => Some(format!("it was a {} build", self.build)),
            () if self.machine.as_deref() != Some(machine) => {
                let other = self.machine.as_deref().map(|other| format!("it was another machine, {other}"));
                Some(other.unwrap_or_else(|| "its machine is not recorded".into()))
            }
            () if then.is_busy() => Some(format!("others used {:.1} cores then", then.others_cores)),
            () if load.is_busy() => Some(format!("others used {:.1} cores now", load.others_cores)),
            () => None,
        }
    }

    /// What became of a figure.
    pub fn change(&self, now: &Figure, build: &str, machine: &str, load: &Load) -> Change {
        let why = self.differs(build, machine, load);
        // Shares of cases do not depend on the machine.
        if let Some(why) = why.filter(|_| now.unit != Unit::Frequency) {
            return Change::NotComparable(why);
        }
        let Some(then) = self.figures.iter().find(|then| then.figure == now.name) else {
            return Change::NotComparable("it had no such figure".into());
        };
        let (Some(value), Some(earlier)) = (now.value, then.value.filter(|v| *v > 0.0)) else {
            return Change::NotComparable("one of the two was not measured".into());
        };
        let ratio = value / earlier;
        match (now.interval, &then.interval_95) {
            (Some((low, high)), Some(before)) if before.low > 0.0 => judge(ratio, (low / before.high, high / before.low)),
            _ => Change::NotComparable(format!("×{ratio:.3}, one value each, without an interval")),
        }
    }
}

fn judge(ratio: f64, (low, high): (f64, f64)) -> Change {
    let (least, most) = (1.0 / (1.0 + MARGIN_RATIO), 1.0 + MARGIN_RATIO);
    match () {
        () if low > most => Change::Worse(ratio),
        () if high < least => Change::Better(ratio),
        () if least <= low && high <= most => Change::Same(ratio),
        () => Change::Open(ratio),
    }
}

impl Change {
    /// The line below a figure.
    pub fn text(&self) -> String {
        let margin = format!("{:.0} %", MARGIN_RATIO * 100.0);
        match self {
            Change::Worse(ratio) => format!("×{ratio:.3} of the earlier figure: WORSE by more than {margin}"),
            Change::Better(ratio) => format!("×{ratio:.3} of the earlier figure: better by more than {margin}"),
            Change::Same(ratio) => format!("×{ratio:.3} of the earlier figure: the same within {margin}"),
            Change::Open(ratio) => format!("×{ratio:.3} of the earlier figure: not certainly beyond {margin}, nor within it"),
            Change::NotComparable(why) => format!("not compared with the earlier figure: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Load = Load { average: 0.1, others_cores: 0.0 };

    fn earlier(seconds: &[f64]) -> Earlier {
        let figure = Figure::of_seconds("plan", seconds).json(&IDLE);
        let file = serde_json::json!({"build": "release", "machine": "a", "others_cores": 0.0, "figures": [figure]});
        serde_json::from_value(file).expect("as it is written")
    }

    fn change(then: &[f64], now: &[f64]) -> Change {
        earlier(then).change(&Figure::of_seconds("plan", now), "release", "a", &IDLE)
    }

    #[test]
    fn a_figure_is_worse_only_if_its_whole_interval_is_beyond_the_margin() {
        let around = |middle: f64| -> Vec<f64> { (-10..=10).map(|i| middle * (1.0 + f64::from(i) * 0.001)).collect() };
        assert_eq!(change(&around(1.0), &around(1.2)), Change::Worse(1.2));
        assert_eq!(change(&around(1.2), &around(0.6)), Change::Better(0.5));
        assert_eq!(change(&around(1.0), &around(1.0)), Change::Same(1.0));
        assert_eq!(change(&around(1.0), &around(1.1)), Change::Open(1.1));
        let why = |change: Change| change.text();
        assert!(why(change(&[1.0; 3], &[2.0; 3])).contains("×2.000, one value each"), "three values have no interval");
    }

    #[test]
    fn another_build_machine_or_load_is_not_compared() {
        let (earlier, now) = (earlier(&[1.0; 9]), Figure::of_seconds("plan", &[2.0; 9]));
        let text = |build: &str, machine: &str, load: Load| earlier.change(&now, build, machine, &load).text();
        assert!(text("dev", "a", IDLE).ends_with("it was a release build"));
        assert!(text("release", "b", IDLE).ends_with("it was another machine, a"));
        let busy = Load { others_cores: 1.5, ..IDLE };
        assert!(text("release", "a", busy).ends_with("others used 1.5 cores now"));
        assert!(text("release", "a", IDLE).contains("WORSE by more than 10 %"));
        let other = Figure { name: "help".into(), ..now.clone() };
        assert!(earlier.change(&other, "release", "a", &IDLE).text().ends_with("it had no such figure"));
    }
}
