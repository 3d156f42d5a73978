//! What a report remarks on numbers: whether they are as the references, and whether epochs kept their length.

use collo_analysis::campaign::reference::ReferenceVerdict;
use collo_analysis::campaign::width::WidthVerdict;
use collo_quantity::Key;
use collo_report::Report;
use collo_store::{Reference, WantedWidth};

use crate::support::Fixture;
use crate::support::exports::export;

fn analysed(fixture: &Fixture) -> Report {
    let folder = tempfile::tempdir().unwrap();
    Report::of(&fixture.write(folder.path())).unwrap()
}

fn text(report: &Report, format: &str) -> String {
    String::from_utf8(export(report, format).unwrap()).unwrap()
}

fn reference(cell: &str, quantity: &str, value: f64, tolerance_ratio: f64) -> Reference {
    Reference { cell: cell.into(), quantity: quantity.into(), value, tolerance_ratio, device: None }
}

#[test]
fn each_value_is_within_its_reference_or_outside_and_other_devices_are_not_compared() {
    let mut f = Fixture::quickstart();
    let pair = "tiny×2 naive b32";
    f.references = vec![
        reference(pair, "throughput_gain", 2.0, 0.05),
        reference(pair, "throughput_gain", 2.4, 0.05),
        reference("tiny solo b32", "memory_bytes", 0.75 * 1073741824.0, 0.01),
        reference("tiny×9 naive b32", "slowdown", 3.0, 0.05),
        reference(pair, "energy_j_per_epoch", 3.0, 0.05),
        Reference { device: Some("a100".into()), ..reference(pair, "slowdown", 99.0, 0.01) },
    ];
    let report = analysed(&f);
    let checks = &report.analysis.references;
    let verdicts: Vec<ReferenceVerdict> = checks.iter().map(|c| c.verdict).collect();
    use ReferenceVerdict::{Outside, Unmeasured, Within};
    assert_eq!(verdicts, [Within, Outside, Within, Unmeasured, Unmeasured]);
    assert!(
        checks[1].text().starts_with("`tiny×2 naive b32`: throughput gain 1.97 ±0.02, outside 2.40 ±5"),
        "{}",
        checks[1].text()
    );
    assert!(checks[2].text().contains("0.750 GiB ±1"), "{}", checks[2].text());

    let listed = collo_report::json(&report)["references"].clone();
    let words: Vec<&str> = listed.as_array().unwrap().iter().filter_map(|r| r["verdict"].as_str()).collect();
    assert_eq!(words, ["within", "outside", "within", "unmeasured", "unmeasured"]);
    assert_eq!(
        (&listed[1]["cell"], &listed[1]["value"], &listed[1]["tolerance_ratio"]),
        (&pair.into(), &2.4.into(), &0.05.into())
    );
    assert_eq!(listed[1]["measured"]["estimate"], checks[1].measured.as_ref().unwrap().estimate);
    assert!(listed[3]["measured"].is_null());

    let page = text(&report, "markdown");
    assert!(page.contains("- **not as the reference**: `tiny×2 naive b32`: throughput gain 1.97 ±0.02, outside 2.40"), "{page}");
    assert!(page.contains("Reference values: 2 of 5 within their tolerance."), "{page}");

    let xml = text(&report, "junit");
    let document = roxmltree::Document::parse(&xml).unwrap();
    let of = |class: &str| {
        document.descendants().filter(|n| n.attribute("classname").is_some_and(|c| c.ends_with(class))).collect::<Vec<_>>()
    };
    let cases = of(".reference");
    let child = |i: usize, tag: &str| cases[i].children().any(|n: roxmltree::Node| n.has_tag_name(tag));
    assert_eq!(cases.len(), 5);
    assert_eq!((child(0, "failure"), child(1, "failure"), child(3, "failure"), child(3, "skipped")), (false, true, false, true));

    // On the GPU that it is about it counts.
    f.device.name = "NVIDIA A100-SXM4-40GB".into();
    assert_eq!(analysed(&f).analysis.references.len(), 6);
    // Without references nobody speaks of them.
    assert!(!text(&analysed(&Fixture::quickstart()), "markdown").contains("eference"));
}

#[test]
fn epochs_that_grow_within_runs_are_suspicious_and_stay_in_the_numbers() {
    let mut f = Fixture::quickstart();
    f.epochs = 6;
    let suspicious = |f: &Fixture| -> Vec<String> {
        let report = analysed(f);
        let text = text(&report, "markdown");
        let cells = report.analysis.cells.iter();
        cells
            .inspect(|c| assert!(c.suspicious.iter().all(|s| text.contains(s)), "{text}"))
            .flat_map(|c| c.suspicious.clone())
            .collect()
    };
    let said = |all: &[String]| all.iter().filter(|s| s.contains("steadily")).count();
    assert_eq!(said(&suspicious(&f)), 0);
    f.growth = 1.2;
    let all = suspicious(&f);
    assert_eq!(said(&all), 3, "{all:?}");
    assert!(all[0].starts_with("epochs became steadily longer within 6 of 6 runs, by 7"), "{all:?}");
    assert!(analysed(&f).analysis.cells.iter().all(|c| c.is_valid() && c.count() == c.repetitions.len()));
    f.growth = 0.8;
    assert_eq!(suspicious(&f).iter().filter(|s| s.contains("steadily shorter")).count(), 3);
}

#[test]
fn one_odd_run_is_named_and_kept_and_its_cell_has_numbers_with_it_and_without() {
    let (two, three) = ("tiny×2 naive b32", "tiny×3 naive b32");
    let width = |report: &Report, cell: &str| {
        let gain = report.analysis.cell(cell).unwrap().get(Key::ThroughputGain).unwrap();
        (gain.high.unwrap() / gain.low.unwrap()).ln()
    };
    let calm = analysed(&Fixture::quickstart());
    assert!(calm.analysis.cells.iter().all(|c| c.second_look.is_none()));
    let mut f = Fixture::quickstart();
    f.odd_run = Some((two, 2, 1.31));
    let odd = analysed(&f);
    let cell = odd.analysis.cell(two).unwrap();
    let look = cell.second_look.as_ref().unwrap();
    assert_eq!((cell.count(), look.left_out.len(), look.left_out[0].repetition), (3, 1, 2), "kept, and named");
    assert!(odd.analysis.cells.iter().filter(|c| c.name() != two).all(|c| c.second_look.is_none()));
    assert!(width(&odd, three) < 2.0 * width(&calm, three), "{} {}", width(&odd, three), width(&calm, three));
    assert!(width(&odd, two) > 5.0 * width(&calm, two), "its own scatter stays in its own interval");
    let said = &cell.suspicious[0];
    assert!(said.starts_with("repetition 2 deviates +3"), "{said}");
    assert!(said.contains("gain ") && said.contains(", without it ") && said.contains("; slowdown "), "{said}");
    for printed in [text(&odd, "markdown"), collo_report::terminal(&odd, 160)] {
        assert!(printed.contains("deviates +3"), "{printed}");
    }
    let json = collo_report::json(&odd);
    let cells = json["cells"].as_array().unwrap();
    let without = &cells.iter().find(|c| c["cell"] == two).unwrap()["second_look"];
    let (with, without) = (cell.get(Key::ThroughputGain).unwrap(), &without["quantities"]["throughput_gain"]);
    assert!(without["repetitions"] == 2 && without["estimate"].as_f64().unwrap() > 1.05 * with.estimate, "{without}");
    // Through its baseline a run touches every group.
    f.odd_run = Some(("tiny solo b32", 1, 1.31));
    let odd = analysed(&f);
    let said = &odd.analysis.cell(three).unwrap().suspicious[0];
    assert!(said.starts_with("repetition 1 of `tiny solo b32` deviates +3"), "{said}");
    assert!(said.contains("gain ") && !said.contains("epoch time"), "{said}");
}

#[test]
fn a_cell_is_repeated_while_its_interval_is_wider_than_wanted_and_the_limit_allows_it() {
    use WidthVerdict::{Capped, Narrow, Wide};
    let judged = |quantity: &str, width_ratio: f64, at_most: u32| {
        let mut f = Fixture::quickstart();
        f.until = Some(WantedWidth { quantity: quantity.into(), width_ratio, at_most });
        let report = analysed(&f);
        let verdicts: Vec<WidthVerdict> = report.analysis.widths().unwrap().into_iter().map(|(_, verdict)| verdict).collect();
        (verdicts, report.analysis.width_sentence().unwrap())
    };
    // A baseline's own gain is 1 without a spread.
    assert_eq!(judged("throughput_gain", 0.05, 10).0, [Narrow, Narrow, Narrow]);
    assert_eq!(judged("throughput_gain", 0.001, 10).0, [Narrow, Wide, Wide]);
    let (verdicts, said) = judged("throughput_gain", 0.001, 3);
    assert_eq!(verdicts, [Narrow, Capped, Capped]);
    assert_eq!(
        said,
        "Repeated until the interval of throughput gain is at most 0.1 % wide, at most 3 repetitions: reached by 1 of 3 cells; \
         stopped at the limit: `tiny×2 naive b32`, `tiny×3 naive b32`. Repeating stops early where the spread happens to be small, so \
         intervals are slightly too narrow."
    );
    // A baseline has had its three repetitions with six runs.
    assert_eq!(judged("epoch_time_s", 0.001, 3).0, [Capped, Capped, Capped]);
    assert!(analysed(&Fixture::quickstart()).analysis.widths().is_none());
}

#[test]
fn the_load_of_the_host_never_stands_in_for_the_members_own() {
    let folder = tempfile::tempdir().unwrap();
    let mut report = Report::of(&Fixture::quickstart().write(folder.path())).unwrap();
    let cell = &mut report.analysis.cells[0];
    let some = cell.get(Key::EpochTime).unwrap().clone();
    cell.quantities.remove(&Key::Cpu);
    for key in [Key::Cpu, Key::Power] {
        cell.metrics.insert(key.name.into(), some.clone());
    }
    assert!(cell.reading(Key::Cpu).is_none(), "the metric `cpu_ratio` is that of all processes");
    assert_eq!(cell.reading(Key::Power), Some(&some));
}

#[test]
fn the_makespan_of_equal_members_never_stands_in_for_their_epoch() {
    let mut report = analysed(&Fixture::quickstart());
    let cell = &mut report.analysis.cells[1];
    let makespan = collo_quantity::number::estimate(cell.get(Key::Makespan).unwrap());
    cell.quantities.remove(&Key::EpochTime);
    let page = text(&report, "markdown");
    let row = page.lines().find(|line| line.starts_with("| tiny×2 naive b32 | naive |")).unwrap();
    assert!(!row.contains(&format!("| {makespan} |")), "{row}");
}

#[test]
fn missed_ticks_are_those_of_the_worst_run() {
    let mut report = analysed(&Fixture::quickstart());
    let runs = &mut report.analysis.cells[1].repetitions;
    (runs[0].run.record.sampling[0].missed, runs[1].run.record.sampling[0].missed) = (3, 4);
    let page = text(&report, "markdown");
    let row = page.lines().find(|line| line.starts_with("| proc |")).unwrap();
    assert!(row.contains("| 4 |") && !row.contains("| 7 |"), "{row}");
}
