//! The cells, and the policies of traces, as gauges in OpenMetrics 1.0, for monitoring. In: an analysis. Out: the text exposition, which is one of
//! Prometheus' older text format, too: promtool and node_exporter's textfile collector read that one only, and a file with a type that it
//! lacks, such as `info`, not at all (`readingType` in expfmt/text_parse.go of prometheus/common). Values are in base units;
//! an interval's ends are families of their own (`_low`, `_high`), so that no sum over labels mixes them with estimates. An
//! absent value has no sample.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_analysis::trace::{Arm, TraceMatrix};
use collo_analysis::words;
use collo_quantity::stats::Quantity;
use collo_quantity::unit::Unit;
use collo_quantity::{Key, Trait};

use super::caveats;

/// The metric family of a quantity.
struct Family {
    /// Without its unit: `collo_epoch_time`.
    stem: String,
    unit: Option<&'static str>,
    factor: f64,
}

impl Family {
    fn of(key: Key) -> Family {
        Family { stem: format!("collo_{}", key.stem()), unit: Some(key.unit.base), factor: key.unit.to_base }
    }

    /// For a quantity of a trace: a count has no unit.
    fn of_policy(key: Key) -> Family {
        let unit = Some(key.unit.base).filter(|unit| !unit.is_empty());
        Family { stem: format!("collo_policy_{}", key.stem()), unit, factor: key.unit.to_base }
    }

    /// For a metric of the device, whose unit is at the end of its name.
    fn of_device(name: &str) -> Family {
        let unit = Unit::of(name);
        let stem = plain(name.strip_suffix(unit.map_or("", |u| u.suffix)).unwrap_or(name));
        let stem = format!("collo_device_{stem}").trim_end_matches('_').to_string();
        Family { stem, unit: unit.map(|u| u.base), factor: unit.map_or(1.0, |u| u.to_base) }
    }

    /// `collo_epoch_time_low_seconds`.
    fn name(&self, end: &str) -> String {
        let unit = self.unit.map_or_else(String::new, |u| format!("_{u}"));
        format!("{}{end}{unit}", self.stem)
    }
}

/// Letters, digits and underscores.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

/// The whole exposition.
pub fn exposition(analysis: &Analysis) -> String {
    let mut out = String::new();
    let common = common(analysis);
    let mut about = vec![("campaign", analysis.campaign.id.clone()), ("created_utc", analysis.campaign.created_utc.clone())];
    about.extend(common.clone());
    head(&mut out, "collo_campaign_info", "gauge", None, "The campaign behind the samples below, always 1.");
    let _ = writeln!(out, "collo_campaign_info{} 1", labels(&about));

    head(&mut out, "collo_runs", "gauge", None, "Planned runs by outcome; those never made are `missing`.");
    for (outcome, n) in &analysis.accounted {
        let mut of = common.clone();
        of.push(("outcome", outcome.to_string()));
        let _ = writeln!(out, "collo_runs{} {n}", labels(&of));
    }
    head(&mut out, "collo_refused_cells", "gauge", None, "Cells that cannot run on this device.");
    let _ = writeln!(out, "collo_refused_cells{} {}", labels(&common), analysis.campaign.plan.refusals.len());

    let cells: Vec<(&Cell, String)> = analysis.cells.iter().map(|cell| (cell, labels(&of_cell(&common, cell)))).collect();
    head(&mut out, "collo_cell_repetitions", "gauge", None, "Repetitions behind a cell's numbers.");
    for (cell, labels) in &cells {
        let _ = writeln!(out, "collo_cell_repetitions{labels} {}", cell.count());
    }
    for key in Key::with(Trait::Cell) {
        samples(&mut out, &Family::of(key), key.label, &cells, |cell| cell.get(key).cloned());
    }
    // Two metrics of one name in base units are one family, and only the first is told.
    let mut seen = BTreeSet::new();
    let metrics: BTreeSet<&String> = analysis.cells.iter().flat_map(|c| c.metrics.keys()).collect();
    for name in metrics {
        let family = Family::of_device(name);
        if seen.insert(family.name("")) {
            let help = format!("Of the device, over the measured window: {name}");
            samples(&mut out, &family, &help, &cells, |cell| cell.metrics.get(name).cloned());
        }
    }
    policies(&mut out, analysis, &common);
    out.push_str("# EOF\n");
    out
}

/// Of each policy of a trace its means over orders.
fn policies(out: &mut String, analysis: &Analysis, common: &[(&'static str, String)]) {
    let of_matrix = |m: &'_ TraceMatrix| -> Vec<(&'static str, String)> {
        [("trace", m.trace.clone()), ("cards", m.cards.to_string()), ("scale", m.scale.to_string())].into()
    };
    let of_arm = |matrix: &TraceMatrix, arm: &Arm| {
        let mut of = [common.to_vec(), of_matrix(matrix)].concat();
        of.extend([
            ("policy", arm.policy.clone()),
            ("estimate", arm.estimate.clone()),
            ("sharing", arm.sharing.clone()),
            ("validity", words::verdict(arm.validity.verdict).to_string()),
        ]);
        labels(&of)
    };
    let arms: Vec<(&Arm, String)> =
        analysis.traces.matrices.iter().flat_map(|m| m.arms.iter().map(move |arm| (arm, of_arm(m, arm)))).collect();
    if arms.is_empty() {
        return;
    }
    head(out, "collo_policy_orders", "gauge", None, "Orders of a trace behind a policy's numbers.");
    for (arm, labels) in &arms {
        let _ = writeln!(out, "collo_policy_orders{labels} {}", arm.by_order.len());
    }
    for key in Key::of_traces() {
        samples(out, &Family::of_policy(key), key.label, &arms, |arm| arm.get(key).cloned());
    }
}

/// An estimate's family and those of its interval's ends; a family without a sample is left out.
fn samples<T>(out: &mut String, family: &Family, help: &str, all: &[(&T, String)], of: impl Fn(&T) -> Option<Quantity>) {
    type End = (&'static str, &'static str, fn(&Quantity) -> Option<f64>);
    let ends: [End; 3] = [
        ("", "", |q| Some(q.estimate)),
        ("_low", ", lower end of the 95 % interval", |q| q.low),
        ("_high", ", upper end of the 95 % interval", |q| q.high),
    ];
    for (end, addition, value) in ends {
        let found: Vec<(&String, f64)> =
            all.iter().filter_map(|(one, labels)| Some((labels, value(&of(one)?)?))).filter(|(_, v)| v.is_finite()).collect();
        if found.is_empty() {
            continue;
        }
        let name = family.name(end);
        head(out, &name, "gauge", family.unit, &format!("{help}{addition}"));
        for (labels, v) in found {
            let _ = writeln!(out, "{name}{labels} {}", v * family.factor);
        }
    }
}

fn head(out: &mut String, name: &str, kind: &str, unit: Option<&str>, help: &str) {
    let _ = writeln!(out, "# TYPE {name} {kind}");
    if let Some(unit) = unit {
        let _ = writeln!(out, "# UNIT {name} {unit}");
    }
    let _ = writeln!(out, "# HELP {name} {}", escape(help));
}

/// The campaign's labels on every sample: a series continues from one campaign to the next of the same experiment and device.
fn common(analysis: &Analysis) -> Vec<(&'static str, String)> {
    let c = &analysis.campaign;
    let marks = caveats::tags(analysis);
    let holds = |word: &str| marks.iter().any(|m| m == word).to_string();
    vec![
        ("experiment", c.experiment.clone()),
        ("device", c.device.name.clone()),
        ("simulated", c.device.simulated.to_string()),
        ("synthetic", holds("synthetic data")),
        ("shortened", holds("shortened epochs")),
    ]
}

fn of_cell(common: &[(&'static str, String)], cell: &Cell) -> Vec<(&'static str, String)> {
    let mut labels = common.to_vec();
    labels.extend([
        ("cell", cell.name().to_string()),
        ("sharing", cell.record.sharing.clone()),
        ("degree", cell.record.degree.to_string()),
        ("validity", cell.verdict().as_str().to_string()),
    ]);
    labels
}

fn labels(pairs: &[(&'static str, String)]) -> String {
    let unique: BTreeMap<&str, &String> = pairs.iter().map(|(k, v)| (*k, v)).collect();
    let all: Vec<String> = unique.iter().map(|(k, v)| format!("{k}=\"{}\"", escape(v))).collect();
    format!("{{{}}}", all.join(","))
}

fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            // Readers that split into lines do so at these as well.
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_base_units_at_the_end_of_the_name() {
        let of = |f: Family| (f.name(""), f.name("_low"), f.unit, f.factor);
        let expect = |name: &str, low: &str, unit: &'static str, factor| (name.into(), low.into(), Some(unit), factor);
        let (key, device) = (|key| of(Family::of(key)), |name| of(Family::of_device(name)));
        assert_eq!(key(Key::EpochTime), expect("collo_epoch_time_seconds", "collo_epoch_time_low_seconds", "seconds", 1.0));
        assert_eq!(key(Key::Slowdown), expect("collo_slowdown_ratio", "collo_slowdown_low_ratio", "ratio", 1.0));
        assert_eq!(key(Key::Items), expect("collo_items_per_second", "collo_items_low_per_second", "per_second", 1.0));
        let above = expect(
            "collo_energy_above_idle_joules_per_epoch",
            "collo_energy_above_idle_low_joules_per_epoch",
            "joules_per_epoch",
            1.0,
        );
        assert_eq!(key(Key::EnergyPerEpochAboveIdle), above);
        assert_eq!(
            device("sm_clock_mhz"),
            expect("collo_device_sm_clock_hertz", "collo_device_sm_clock_low_hertz", "hertz", 1e6)
        );
        assert_eq!(device("power_w"), expect("collo_device_power_watts", "collo_device_power_low_watts", "watts", 1.0));
        assert_eq!(
            device("hostile\n{name}"),
            ("collo_device_hostile__name".into(), "collo_device_hostile__name_low".into(), None, 1.0)
        );
    }

    #[test]
    fn every_quantity_of_a_cell_has_a_name_of_its_own() {
        let families: Vec<Family> = Key::with(Trait::Cell).map(Family::of).collect();
        let names: BTreeSet<String> = families.iter().flat_map(|f| ["", "_low", "_high"].map(|end| f.name(end))).collect();
        assert_eq!(names.len(), 3 * families.len());
    }

    #[test]
    fn a_label_cannot_end_its_line() {
        assert_eq!(labels(&[("cell", "a\"b\\c\nd\re".into())]), "{cell=\"a\\\"b\\\\c\\nd\u{fffd}e\"}");
    }
}
