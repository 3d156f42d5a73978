//! The report in other programs' formats, read back by readers of these formats.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::support::exports::export;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use collo_quantity::Key;
use collo_report::Report;
use collo_report::export::{csv_of_parquet, dataset};
use collo_store::{Outcome, RefusalRecord};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::skip::skip;
use crate::support::Fixture;
use crate::support::card::CardTruth;
use crate::vendor;

const HOSTILE: &str = "=cmd|'x'!A1, \"q\" <b>&]]> \\input{x} % $y$ 中\u{1b}\nnext";

fn analysed(fixture: &Fixture) -> Report {
    let folder = tempfile::tempdir().unwrap();
    Report::of(&fixture.write(folder.path())).unwrap()
}

fn text(report: &Report, format: &str) -> String {
    String::from_utf8(export(report, format).unwrap()).unwrap()
}

fn crash() -> Outcome {
    Outcome::Crashed { member: 1, status: "exited with 1".into(), message: HOSTILE.into(), place_alone: false }
}

fn refusal(cell: &str) -> RefusalRecord {
    let (reason, hint) = ("needs 8 slices, there are 7".into(), Some("ask for seven".into()));
    RefusalRecord { cell: cell.into(), sharing: "mig".into(), reason, hint }
}

/// Cells that completed, crashed, ran out of memory and cannot run, under names that are not meant well.
fn hostile() -> Fixture {
    let mut f = Fixture::quickstart().group("tiny", 32, 4, "naive", 3.3).ends(crash()).group("tiny", 32, 5, "naive", 4.0);
    f = f.ends(Outcome::OutOfMemory { member: 0, message: "tried to allocate 9 GiB".into() });
    f.cells[2].record.cell = HOSTILE.into();
    f.indicative = vec![HOSTILE.into()];
    f.limit_batches = Some(4);
    f.refusals = vec![refusal(HOSTILE)];
    f
}

fn on_card() -> Fixture {
    let truth = |active| CardTruth {
        sm_active_ratio: active,
        idle_w: 50.0,
        power_w: 250.0,
        instances: Vec::new(),
        sources: vec![("dcgm", 1.0)],
        pcie_rx_bytes_per_s: None,
        counter_resets: false,
        counters_of_instances: false,
    };
    let mut f = Fixture::named("on-card")
        .on_card("solo", &[("small", 1.0)], truth(0.3), 0.01)
        .on_card("solo", &[("large", 2.0)], truth(0.9), 0.01)
        .on_card("mps", &[("small", 1.4), ("large", 2.6)], truth(0.95), 0.01);
    f.device.name = "NVIDIA A100-SXM4-40GB".into();
    f.device.kind = "gpu".into();
    f.device.simulated = true;
    f.device.memory_bytes = Some(40 << 30);
    f.device.persistence = Some(true);
    f.synthetic = Some(false);
    f
}

/// Campaigns without a plan, without a run, and without a usable one.
fn thin() -> Vec<Report> {
    let mut empty = Fixture::named("empty");
    empty.repetitions = 0;
    let mut unrun = Fixture::quickstart();
    unrun.stop_after = 0;
    let mut failed = Fixture::quickstart();
    failed.cells.iter_mut().for_each(|c| c.outcome = crash());
    let mut once = Fixture::quickstart().repetitions(1);
    once.baselines = false;
    [empty, unrun, failed, once].iter().map(analysed).collect()
}

/// Rows by head.
fn rows(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::ReaderBuilder::new().from_reader(text.as_bytes());
    let heads = reader.headers().unwrap().clone();
    let unique: BTreeSet<&str> = heads.iter().collect();
    assert_eq!(unique.len(), heads.len(), "two columns of one name");
    let pairs = |r: csv::StringRecord| heads.iter().map(str::to_string).zip(r.iter().map(str::to_string)).collect();
    // A row that is longer or shorter than its heads is an error of the reader.
    reader.records().map(|r| pairs(r.unwrap())).collect()
}

#[test]
fn each_cell_is_a_row_with_its_intervals() {
    let report = analysed(&Fixture::quickstart());
    let rows = rows(&text(&report, "cells"));
    assert_eq!(rows.len(), 3);
    for (row, cell) in rows.iter().zip(&report.analysis.cells) {
        assert_eq!(row["cell"], cell.name());
        assert_eq!(
            (row["validity"].as_str(), row["simulated"].as_str(), row["synthetic"].as_str()),
            ("valid", "false", "CIFAR-10")
        );
        for (name, q) in &cell.quantities {
            let read = |end: &str| row[&format!("{name}{end}")].parse::<f64>().ok();
            assert_eq!((read(""), read("_low"), read("_high")), (Some(q.estimate), q.low, q.high), "{name}");
            assert_eq!(row[&format!("{name}_repetitions")], q.n.to_string());
        }
        for (name, q) in &cell.metrics {
            assert_eq!(row[&format!("metrics.{name}")].parse(), Ok(q.estimate));
        }
        // What was not measured is empty.
        assert!(!cell.quantities.contains_key(&Key::EnergyPerEpoch));
        assert_eq!((row["energy_j_per_epoch"].as_str(), row["energy_j_per_epoch_repetitions"].as_str()), ("", ""));
    }
    assert_eq!(rows[2]["throughput_gain_verdict"], "better");
    assert_eq!(rows[2]["settings"], "{}");
}

#[test]
fn hostile_labels_stay_text_in_a_spreadsheet() {
    let rows = rows(&text(&analysed(&hostile()), "cells"));
    assert_eq!(rows.len(), 6, "five cells and a refusal");
    // A row is one line, whatever its texts hold.
    let printed = format!("'{}", HOSTILE.replace('\u{1b}', r"\u{1b}").replace('\n', r"\n"));
    assert_eq!((&rows[2]["cell"], &rows[0]["campaign_indicative"]), (&printed, &printed));
    let outcomes: Vec<&str> = rows.iter().map(|r| r["outcome"].as_str()).collect();
    assert_eq!(outcomes, ["completed", "completed", "completed", "crashed", "out_of_memory", "refused"]);
    assert!(rows[3..].iter().all(|r| r["epoch_time_s"].is_empty() && r["repetitions"] == "0"));
    let validity: Vec<&str> = rows[3..].iter().map(|r| r["validity"].as_str()).collect();
    assert_eq!(validity, ["discarded", "out_of_memory", "discarded"]);
    assert_eq!(rows[5]["reasons"], "needs 8 slices, there are 7; hint: ask for seven");
    assert!(rows.iter().all(|r| r["shortened"] == "tiny: 4 batches"));
    for field in rows.iter().flat_map(|r| r.values()) {
        assert!(!field.starts_with(['=', '+', '@', '\t']), "{field}");
    }
}

#[test]
fn a_comment_fits_below_a_pull_request_whatever_the_campaign() {
    let most = 60_000;
    let small = text(&analysed(&Fixture::quickstart()), "comment");
    assert!(small.starts_with("# How to share two cores\n") && small.contains("<summary>3 cells</summary>"), "{small}");
    assert!(small.contains("What to run") && small.contains("| tiny | 1.97: "), "{small}");
    assert!(small.ends_with(
        "`collo report 20261120-1842-7f3a` writes the rest: figures, every cell, and how the numbers were measured.\n"
    ));

    let mut f = Fixture::named("large").repetitions(1);
    (f.epochs, f.samples_hz) = (1, 2.0);
    for w in 0..30 {
        let name = format!("a-workload-with-quite-a-long-name-of-its-own-{w}");
        f = f.solo(&name, 32, 1.0);
        for (mode, pace) in [("naive", 0.9), ("mps", 0.7), ("time-slice", 0.8)] {
            f = (2..=4).fold(f, |f, degree| f.group(&name, 32, degree, mode, pace * f64::from(degree)));
        }
    }
    f.refusals = (0..400).map(|i| refusal(&format!("{HOSTILE}{i}"))).collect();
    f.device.simulated = true;
    let report = analysed(&f);
    assert!(text(&report, "markdown").chars().count() > 65_536, "else it needs no short form");
    let large = text(&report, "comment");
    assert!(large.chars().count() < most, "{}", large.chars().count());
    assert!(large.contains("**SIMULATED:**"), "{large}");
    let rows = large.split("<details>").nth(1).unwrap().lines().filter(|l| l.starts_with("| a-workload")).count();
    assert!(large.contains(&format!("<summary>{rows} of 300 cells: those that failed")) && rows > 10, "{rows}: {large}");

    // Where most cells failed, they leave room only for as many others as there are.
    let mut f = Fixture::named("failed").repetitions(1).solo("tiny", 32, 1.0);
    f = (2..12).fold(f, |f, degree| f.group("tiny", 32, degree, "naive", 1.0));
    f = (0..139).fold(f, |f, w| f.group(&format!("crashing-{w}"), 32, 2, "naive", 1.0).ends(crash()));
    let failed = text(&analysed(&f), "comment");
    let rows = failed.split("<details>").nth(1).unwrap().lines().filter(|l| l.starts_with("| ")).count() - 1;
    assert!(failed.contains(&format!("<summary>{rows} of 150 cells: those that failed")) && rows == 100, "{rows}: {failed}");
    assert!(failed.contains("tiny×11 naive b32"), "{failed}");

    // What is written by people has no limit of its own.
    let mut f = Fixture::quickstart();
    f.indicative = (0..3000).map(|i| format!("reason {i} {HOSTILE}")).collect();
    f.cells[2].record.cell = "x".repeat(200_000);
    let text = text(&analysed(&f), "comment");
    assert!(text.chars().count() < most && text.contains("3 cells"), "{}", text.chars().count());
}

#[test]
fn papers_get_a_table_whose_caption_says_what_it_is() {
    let report = analysed(&Fixture::quickstart());
    insta::assert_snapshot!(text(&report, "latex"), @r"
    % needs \usepackage{booktabs}
    % data: synthetic stand-in for CIFAR-10
    \begin{table}
    \centering
    \caption{tiny: throughput gain over running in turn by mode and number of members (synthetic data); cpu (2 cores, 24 GiB), campaign 20261120-1842-7f3a; $\pm$: 95 \% interval}
    \label{tab:gain-quickstart-tiny}
    \begin{tabular}{lrr}
    \toprule
    mode & 2 & 3 \\
    \midrule
    naive & $1.97 \pm 0.02$ & $1.92 \pm 0.02$ \\
    \bottomrule
    \end{tabular}
    \end{table}
    \begin{table}
    \centering
    \caption{quickstart on cpu (2 cores, 24 GiB), campaign 20261120-1842-7f3a; data: synthetic stand-in for CIFAR-10; $\pm$: 95 \% interval, pooled t, 3 repetitions, 6 solo; gain: work per second against running in turn}
    \label{tab:quickstart}
    \footnotesize\setlength{\tabcolsep}{3pt}
    \begin{tabular}{llrrrrr}
    \toprule
    workload & mode & members & epoch (s) & slowdown & gain & memory (GiB) \\
    \midrule
    tiny & solo & 1 & $1.579 \pm 0.011$ & 1 & 1 & $0.750 \pm 0$ \\
     & naive & 2 & $1.600 \pm 0.015$ & $1.013 \pm 0.011$ & $1.97 \pm 0.02$ & $1.20 \pm 0$ \\
     & naive & 3 & $2.47 \pm 0.02$ & $1.564 \pm 0.018$ & $1.92 \pm 0.02$ & $1.80 \pm 0$ \\
    \bottomrule
    \end{tabular}
    \end{table}
    ");
    let simulated = text(&analysed(&on_card()), "latex");
    let caption = simulated.lines().find(|l| l.starts_with("\\caption")).unwrap();
    assert!(caption.contains("SIMULATED") && caption.contains("simulated NVIDIA A100-SXM4-40GB"), "{caption}");
    assert!(simulated.starts_with("% needs \\usepackage{booktabs}\n% SIMULATED"));
    assert!(simulated.contains("SMACT") && simulated.contains("energy per epoch (J)"), "{simulated}");
}

/// Seven groups of one workload in two modes.
fn many_degrees() -> Fixture {
    let each = (2..=8).flat_map(|degree| ["naive", "mps"].map(|mode| (degree, mode)));
    each.fold(Fixture::named("many").solo("tiny", 32, 1.57), |f, (degree, mode)| {
        f.group("tiny", 32, degree, mode, 0.8 * f64::from(degree))
    })
}

/// The parts of the table with this label, each as its rows of fields.
fn parts(tex: &str, label: &str) -> Vec<Vec<Vec<String>>> {
    let begins = [format!("\\label{{tab:{label}}}"), format!("\\label{{tab:{label}.")];
    let of_label = |table: &&str| begins.iter().any(|begin| table.contains(begin));
    let fields = |row: &str| row.trim_end_matches(" \\\\").split(" & ").map(str::to_string).collect();
    let rows = |table: &str| table.lines().filter(|line| line.ends_with("\\\\")).map(fields).collect();
    tex.split("\\begin{table}").filter(of_label).map(rows).collect()
}

#[test]
fn tables_that_are_divided_have_each_column_once_and_the_names_of_their_rows_in_every_part() {
    let degrees = text(&analysed(&many_degrees()), "latex");
    let policies = text(&analysed(&crate::traces::campaign(crate::traces::three())), "latex");
    let heads = [
        "total (s)",
        "total $\\div$ exclusive",
        "wait (s)",
        "execution (s)",
        "completion (s)",
        "stretch",
        "energy (kJ)",
        "energy $\\div$ exclusive",
        "OOM",
    ];
    for (tex, label, heads, names) in [
        (&degrees, "gain-many-tiny", &["2", "3", "4", "5", "6", "7", "8"][..], &["mode", "naive", "MPS"][..]),
        (&policies, "manager-policies", &heads[..], &["policy", "exclusive", "magm MPS", "magm:sm=80\\%,free=5GB measured MPS"]),
    ] {
        let parts = parts(tex, label);
        assert!(parts.len() > 1, "wide enough to be divided: {tex}");
        let found: Vec<&str> = parts.iter().flat_map(|rows| &rows[0][1..]).map(String::as_str).collect();
        assert_eq!(found, heads, "{tex}");
        for (i, rows) in parts.iter().enumerate() {
            assert_eq!(rows.iter().map(|row| row[0].as_str()).collect::<Vec<_>>(), names, "{tex}");
            assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{tex}");
            assert_eq!(tex.matches(&format!("; part {} of {}}}\n\\label{{tab:{label}", i + 1, parts.len())).count(), 1, "{tex}");
        }
        // The number of a row is in the part of its head.
        let cells: Vec<&String> = parts.iter().flat_map(|rows| &rows[1][1..]).collect();
        assert!(cells.iter().any(|cell| cell.contains("\\pm")) && cells.len() == heads.len(), "{tex}");
    }
}

#[test]
fn no_table_is_wider_than_the_page() {
    let Some(pdflatex) = collo_text::on_path("pdflatex") else {
        return skip("pdflatex", "no pdflatex in PATH: `apt-get install texlive-latex-recommended`");
    };
    let mut wide = on_card();
    for cell in &mut wide.cells {
        cell.record.members.iter_mut().for_each(|member| member.workload = "resnet18-cifar100-with-a-long-name".into());
    }
    let name = "resnet18-cifar100-with-a-long-name+vision_transformer_base:images=4096+square naive b32";
    let mut mixed = on_card();
    mixed.cells[2].record.cell = name.into();
    for fixture in
        [Fixture::quickstart(), on_card(), wide, mixed, many_degrees(), crate::traces::campaign(crate::traces::three())]
    {
        let folder = tempfile::tempdir().unwrap();
        let tables = text(&analysed(&fixture), "latex");
        let document =
            format!("\\documentclass{{article}}\\usepackage{{booktabs}}\\begin{{document}}\n{tables}\\end{{document}}\n");
        std::fs::write(folder.path().join("t.tex"), document).unwrap();
        let mut program = Command::new(&pdflatex);
        program.args(["-interaction=nonstopmode", "-halt-on-error", "t.tex"]).current_dir(folder.path());
        let output = program.output().unwrap();
        let log = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && !log.contains("Overfull \\hbox"), "{log}\n{tables}");
    }
}

#[test]
fn a_figure_for_a_column_is_read_by_pdflatex_and_as_wide_as_the_column() {
    let Some(pdflatex) = collo_text::on_path("pdflatex") else {
        return skip("pdflatex", "no pdflatex in PATH: `apt-get install texlive-latex-recommended texlive-pictures`");
    };
    let folder = tempfile::tempdir().unwrap();
    let campaign = on_card().write(&folder.path().join("runs"));
    let written = collo_report::write(&Report::of(&campaign).unwrap(), folder.path()).unwrap();
    let mut document =
        String::from("\\documentclass{article}\\usepackage{pgf,graphicx}\\usepgflibrary{patterns}\\begin{document}\n");
    for plot in &written.plots {
        let path = plot.with_extension("");
        let path = path.display();
        document +=
            &format!("\\setbox0\\hbox{{\\input{{{path}.pgf}}}}\\typeout{{wide: \\the\\wd0}}\\includegraphics{{{path}.pdf}}\n\n");
    }
    std::fs::write(folder.path().join("t.tex"), document + "\\end{document}\n").unwrap();
    let mut program = Command::new(&pdflatex);
    program.args(["-interaction=nonstopmode", "-halt-on-error", "t.tex"]).current_dir(folder.path());
    let output = program.output().unwrap();
    let log = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && !log.contains("pdfTeX warning"), "{log}");
    let widths: Vec<&str> = log.lines().filter_map(|line| line.strip_prefix("wide: ")).collect();
    assert_eq!(widths.len(), written.plots.len(), "{log}");
    let fits = |wide: &&str| {
        let points: f64 = wide.trim_end_matches("pt").parse().unwrap();
        // 240 and 504 points of PDF, in those of TeX: a column of acmart, and its page.
        [240.9, 505.89].iter().any(|wanted| (points - wanted).abs() < 0.1) && points < 506.3
    };
    assert!(widths.iter().all(fits), "{widths:?}");
}

#[test]
fn running_text_gets_a_macro_for_each_number_and_its_interval() {
    let report = analysed(&Fixture::quickstart());
    let tex = text(&report, "latex-macros");
    let of = |name: &str| {
        let begins = format!("\\newcommand{{\\collo{name}}}{{");
        let line = tex.lines().find(|l| l.starts_with(&begins)).unwrap_or_else(|| panic!("no {name} in {tex}"));
        line[begins.len()..line.len() - 1].to_string()
    };
    assert_eq!((of("GainTinyTwoNaive").as_str(), of("GainTinyTwoNaiveInterval").as_str()), ("1.97", "{[}1.95, 2.00{]}"));
    assert_eq!(of("EpochTinyOneSolo"), "1.579");
    assert!(of("Caveats").contains("CIFAR-10"));
    assert!(text(&analysed(&on_card()), "latex-macros").contains("\\colloCaveats}{SIMULATED"));
    // TeX ends a name at the first character that is no letter; a name given twice is an error.
    let mut f = hostile();
    f.cells[1].record.sharing = HOSTILE.into();
    for tex in [tex, text(&analysed(&f), "latex-macros")] {
        let mut names = BTreeSet::new();
        for line in tex.lines().filter(|l| !l.starts_with('%')) {
            let name = line.strip_prefix("\\newcommand{\\collo").unwrap().split_once('}').unwrap().0;
            assert!(name.chars().all(|c| c.is_ascii_alphabetic()) && names.insert(name.to_string()), "{line}");
        }
    }
}

#[test]
fn hostile_labels_are_no_commands_and_keep_their_row() {
    let mut f = hostile().mixed(("tiny", 3.0), ("other", 4.0), "naive", "keep-running");
    f.cells.last_mut().unwrap().record.cell = HOSTILE.into();
    f.cells[2].record.cell = "tiny×3 naive b32".into();
    let tex = text(&analysed(&f), "latex");
    for line in tex.lines().filter(|l| !l.starts_with('%')) {
        assert!(!line.contains("\\input") && !line.contains('中'), "{line}");
        let (mut depth, mut before) = (0, ' ');
        for c in line.chars() {
            match c {
                '{' if before != '\\' => depth += 1,
                '}' if before != '\\' => depth -= 1,
                _ => {}
            }
            assert!(depth >= 0, "{line}");
            before = c;
        }
        assert_eq!(depth, 0, "{line}");
    }
    let tex = tex.replace("\\allowbreak{}", "");
    let row = tex.lines().find(|l| l.contains("=cmd") && l.ends_with("\\\\")).unwrap();
    assert!(row.ends_with("\\\\") && row.contains("\\textbackslash{}input\\{x\\} \\% \\$y\\$ U+4E2D"), "{row}");
    assert!(tex.contains("{l}{crashed}") && tex.contains("{l}{out of memory}"));
    // Rows of a table have as many columns as its heads.
    let columns = tex.lines().find(|l| l.starts_with("workload &")).unwrap().matches(" & ").count();
    let cells = tex.split("workload &").nth(1).unwrap();
    for row in cells.lines().skip(1).filter(|l| l.ends_with("\\\\") && !l.contains("multicolumn")) {
        assert_eq!(row.matches(" & ").count(), columns, "{row}");
    }
}

#[test]
fn a_ci_system_sees_failures_skips_and_passes() {
    let report = analysed(&hostile());
    let xml = text(&report, "junit");
    let document = roxmltree::Document::parse(&xml).unwrap();
    let suite = document.descendants().find(|n| n.has_tag_name("testsuite")).unwrap();
    let counts = ["tests", "failures", "errors", "skipped"].map(|n| suite.attribute(n).unwrap());
    assert_eq!(counts, ["6", "1", "0", "2"]);
    assert_eq!(suite.attribute("name"), Some("quickstart (synthetic data, shortened epochs, indicative)"));
    let cases: Vec<roxmltree::Node> = suite.children().filter(|n| n.has_tag_name("testcase")).collect();
    assert_eq!(cases.len(), 6);
    // A control character is no character of XML: it is named. A name is one line.
    assert_eq!(cases[2].attribute("name"), Some(HOSTILE.replace('\u{1b}', "\\u{1b}").replace('\n', " ").as_str()));
    let child = |i: usize, tag: &str| cases[i].children().find(|n| n.has_tag_name(tag));
    assert!(child(0, "failure").is_none() && child(0, "skipped").is_none());
    assert!(child(0, "system-out").unwrap().text().unwrap().starts_with("indicative: "), "{xml}");
    let failure = child(3, "failure").unwrap();
    assert_eq!(failure.attribute("type"), Some("crashed"));
    assert!(failure.attribute("message").unwrap().starts_with("crashed, member 1 exited with 1: =cmd|"), "{xml}");
    assert!(failure.text().unwrap().contains("repetition 3: crashed"));
    assert_eq!(child(4, "skipped").unwrap().attribute("message"), Some("out of memory, member 0: tried to allocate 9 GiB"));
    let refused = child(5, "skipped").unwrap().attribute("message");
    assert_eq!(refused, Some("refused: needs 8 slices, there are 7; hint: ask for seven"));
}

#[test]
fn simulated_runs_say_so_to_a_ci_system() {
    let report = analysed(&on_card());
    let xml = text(&report, "junit");
    let document = roxmltree::Document::parse(&xml).unwrap();
    let said = |name: &str| {
        let property = document.descendants().find(|n| n.attribute("name") == Some(name) && n.has_tag_name("property"));
        property.unwrap().attribute("value").unwrap().to_string()
    };
    assert_eq!(said("simulated"), "true");
    assert!(said("device").starts_with("simulated NVIDIA A100"));
    let cases: Vec<roxmltree::Node> = document.descendants().filter(|n| n.has_tag_name("testcase")).collect();
    assert!(cases.iter().all(|c| c.attribute("classname").unwrap().starts_with("on-card (simulated).")));
}

/// Samples `(name, labels, value)` of an exposition; what the format forbids fails.
fn samples(text: &str) -> Vec<(String, BTreeMap<String, String>, f64)> {
    let name = |s: &str| {
        !s.is_empty() && s.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !s.starts_with(|c: char| c.is_ascii_digit())
    };
    let (mut found, mut families, mut family, mut unit) = (Vec::new(), BTreeSet::new(), String::new(), None);
    assert!(text.ends_with("\n# EOF\n") && text.matches("# EOF").count() == 1);
    for line in text.lines().filter(|l| *l != "# EOF") {
        if let Some(rest) = line.strip_prefix("# ") {
            let words: Vec<&str> = rest.splitn(3, ' ').collect();
            match words[..] {
                ["TYPE", of, kind] => {
                    assert!(name(of) && families.insert(of.to_string()), "`{of}` twice, or no name");
                    assert_eq!(kind, "gauge", "the older text format has no other that fits");
                    (family, unit) = (of.to_string(), None);
                }
                ["UNIT", of, told] => {
                    assert!(of == family && of.ends_with(&format!("_{told}")), "{line}");
                    unit = Some(told.to_string());
                }
                ["HELP", of, _] => assert_eq!(of, family),
                _ => panic!("{line}"),
            }
            continue;
        }
        let (head, rest) = line.split_once('{').unwrap();
        assert!(head == family, "`{head}` among samples of `{family}`");
        let mut labels = BTreeMap::new();
        let mut chars = rest.chars();
        loop {
            let key: String = chars.by_ref().take_while(|c| *c != '=').collect();
            assert!(name(&key) && chars.next() == Some('"'), "{line}");
            let mut value = String::new();
            loop {
                match chars.next().unwrap() {
                    '\\' => value.push(if let c @ ('\\' | '"') = chars.next().unwrap() { c } else { '\n' }),
                    '"' => break,
                    c => value.push(c),
                }
            }
            assert!(labels.insert(key, value).is_none());
            if chars.next() == Some('}') {
                break;
            }
        }
        found.push((head.to_string(), labels, chars.as_str().trim().parse().unwrap()));
    }
    let places: BTreeSet<String> = found.iter().map(|(n, l, _)| format!("{n}{l:?}")).collect();
    assert_eq!(places.len(), found.len(), "one sample twice");
    let _ = unit;
    found
}

#[test]
fn monitoring_gets_each_quantity_of_each_cell_once_and_nothing_for_what_is_absent() {
    for fixture in [Fixture::quickstart(), hostile(), on_card()] {
        let report = analysed(&fixture);
        let samples = samples(&text(&report, "openmetrics"));
        let of = |metric: &str, cell: &str| {
            let mut all = samples.iter().filter(|(n, l, _)| n == metric && l.get("cell").is_some_and(|c| c == cell));
            let found = all.next().map(|s| s.2);
            assert!(all.next().is_none());
            found
        };
        for cell in &report.analysis.cells {
            let name = cell.name().replace('\u{1b}', "\u{fffd}");
            let q = cell.get(Key::EpochTime);
            assert_eq!(of("collo_epoch_time_seconds", &name), q.map(|q| q.estimate));
            assert_eq!(of("collo_epoch_time_low_seconds", &name), q.and_then(|q| q.low));
            assert_eq!(of("collo_slowdown_high_ratio", &name), cell.get(Key::Slowdown).and_then(|q| q.high));
            assert_eq!(of("collo_energy_joules_per_epoch", &name), cell.get(Key::EnergyPerEpoch).map(|q| q.estimate));
            let active = cell.metrics.get("sm_active_ratio").map(|q| q.estimate);
            assert_eq!(of("collo_device_sm_active_ratio", &name), active);
        }
        let simulated = report.analysis.campaign.device.simulated.to_string();
        assert!(samples.iter().all(|(_, l, _)| l["simulated"] == simulated));
        let info = samples.iter().find(|(n, _, _)| n == "collo_campaign_info").unwrap();
        assert_eq!(info.1["campaign"], report.analysis.campaign.id);
    }
}

/// The output of a program that reads this text.
fn read_by(mut program: Command, text: &str) -> Output {
    let mut child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A reader that refuses may not read to the end.
    let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
    child.wait_with_output().unwrap()
}

#[test]
fn promtool_reads_what_monitoring_gets() {
    let Some(promtool) = collo_text::on_path("promtool").or_else(vendor::promtool) else {
        return skip("promtool", "promtool is not in PATH or target/vendor: run `.ci/vendor-programs`");
    };
    for fixture in [Fixture::quickstart(), hostile(), on_card()] {
        let text = text(&analysed(&fixture), "openmetrics");
        let mut program = Command::new(&promtool);
        program.args(["check", "metrics"]);
        let output = read_by(program, &text);
        // 3 is advice about names, which are as OpenMetrics has them: units at the end.
        let advice = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(matches!(output.status.code(), Some(0 | 3)) && !advice.contains("error"), "{advice}\n{text}");
    }
}

#[test]
fn the_strict_parser_of_prometheus_client_reads_what_monitoring_gets() {
    let python = std::env::var("COLLO_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let code = "import sys\nfrom prometheus_client.openmetrics.parser import text_string_to_metric_families as read\n\
        print(sum(len(family.samples) for family in read(sys.stdin.read())))";
    let program = || {
        let mut program = Command::new(&python);
        program.args(["-c", code]);
        program
    };
    if !Command::new(&python).args(["-c", "import prometheus_client"]).output().is_ok_and(|o| o.status.success()) {
        let way_out = "`pip install prometheus_client`, COLLO_TEST_PYTHON names another Python";
        return skip("prometheus_client", &format!("python3 cannot import it; {way_out}"));
    }
    for fixture in [Fixture::quickstart(), hostile(), on_card()] {
        let text = text(&analysed(&fixture), "openmetrics");
        let output = read_by(program(), &text);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), samples(&text).len().to_string());
    }
}

#[test]
fn predictors_get_a_row_for_each_member_of_each_repetition() {
    let report = analysed(&on_card());
    let rows = rows(&text(&report, "dataset"));
    let stored = report.analysis.cells.iter().flat_map(|c| &c.repetitions).map(|r| r.record().members.len());
    assert_eq!(rows.len(), stored.sum::<usize>());
    let pair: Vec<_> = rows.iter().filter(|r| r["degree"] == "2" && r["repetition"] == "1").collect();
    let [small, large] = pair[..] else { panic!("{}", pair.len()) };
    assert_eq!((small["workload"].as_str(), small["company"].as_str()), ("small", "large solo b32"));
    assert_eq!((large["member"].as_str(), large["company"].as_str()), ("1", "small solo b32"));
    let number = |row: &BTreeMap<String, String>, name: &str| row[name].parse::<f64>().unwrap();
    // The truth: 1.0 s alone, 1.4 s in company.
    assert!((number(small, "slowdown") / 1.4 - 1.0).abs() < 0.06 && (number(large, "slowdown") / 1.3 - 1.0).abs() < 0.06);
    assert_eq!(number(small, "slowdown"), number(small, "epoch_time_s") / number(small, "solo_epoch_time_s"));
    assert!((number(small, "solo_sm_active_ratio") / 0.3 - 1.0).abs() < 0.05);
    assert_eq!(small["company_solo_sm_active_ratio"], large["solo_sm_active_ratio"]);
    assert_eq!(small["device_sm_active_ratio"], large["device_sm_active_ratio"]);
    assert_eq!((small["graph_parameters"].as_str(), small["graph_layers"].as_str()), ("175258", "16"));
    assert_eq!(
        (small["graph_conv_layers"].as_str(), small["graph_layers_by_kind"].as_str()),
        ("15", "{\"Conv2d\":15,\"Linear\":1}")
    );
    assert!(rows.iter().all(|r| r["simulated"] == "true" && r["marks"] == "simulated" && r["synthetic"] == "false"));
    let alone: Vec<_> = rows.iter().filter(|r| r["degree"] == "1").collect();
    assert!(alone.iter().all(|r| r["company"].is_empty() && r["company_solo_memory_bytes"].is_empty()));
}

#[test]
fn runs_whose_numbers_may_not_be_used_have_rows_without_results() {
    let report = analysed(&hostile());
    let rows = rows(&text(&report, "dataset"));
    let columns = dataset::table(&report.analysis).heads;
    let results: Vec<&str> = columns.iter().map(|c| c.0.as_str()).skip_while(|c| *c != "epoch_time_s").collect();
    assert!(results.len() > 20);
    let failed: Vec<_> = rows.iter().filter(|r| r["outcome"] != "completed").collect();
    assert_eq!(failed.len(), 3 * 4 + 3 * 5);
    for row in &failed {
        assert!(results.iter().all(|name| row[*name].is_empty()), "{row:?}");
        assert!(!row["graph_parameters"].is_empty() && !row["solo_epoch_time_s"].is_empty());
    }
    let shown = rows.iter().filter(|r| r["outcome"] == "completed");
    assert!(shown.clone().count() > 0 && shown.clone().all(|r| !r["epoch_time_s"].is_empty() && r["validity"] == "indicative"));
    assert!(rows.iter().all(|r| r["limit_batches"] == "4" && r["marks"] == "synthetic data; shortened epochs; indicative"));
}

/// The whole of a file of Parquet.
fn table(bytes: Vec<u8>) -> RecordBatch {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&bytes).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().with_batch_size(1 << 20);
    let schema = reader.schema().clone();
    reader.build().unwrap().next().map_or_else(|| RecordBatch::new_empty(schema), |batch| batch.unwrap())
}

#[test]
fn parquet_has_the_same_rows_with_types_and_nulls() {
    let report = analysed(&hostile());
    let bytes = export(&report, "dataset.parquet").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rows.parquet");
    std::fs::write(&file, &bytes).unwrap();
    assert_eq!(csv_of_parquet(&file, 1 << 20).unwrap(), text(&report, "dataset"), "and back");
    let refused = csv_of_parquet(&file, 100).unwrap_err().to_string();
    assert!(refused.contains("it unpacks to more than 100 bytes"), "{refused}");
    let table = table(bytes);
    let rows = rows(&text(&report, "dataset"));
    assert_eq!(table.num_rows(), rows.len());
    let names: Vec<String> = table.schema_ref().fields().iter().map(|f| f.name().clone()).collect();
    let columns = dataset::table(&report.analysis).heads;
    assert_eq!(names, columns.iter().map(|c| c.0.clone()).collect::<Vec<_>>());
    for (name, kind) in &columns {
        let (name, column) = (name.as_str(), table.column_by_name(name).unwrap());
        let dtype = match kind.as_str() {
            "text" => DataType::Utf8,
            "number" => DataType::Float64,
            "whole" => DataType::Int64,
            _ => DataType::Boolean,
        };
        assert_eq!(*column.data_type(), dtype, "{name}");
        let empty = rows.iter().filter(|r| r[name].is_empty()).count();
        assert_eq!(column.null_count(), empty, "{name}");
    }
    let epochs = table.column_by_name("epoch_time_s").unwrap().as_primitive::<Float64Type>();
    for (epoch, row) in epochs.iter().zip(&rows) {
        assert_eq!(epoch, row["epoch_time_s"].parse().ok());
    }
    // No apostrophe where nothing takes text for a formula.
    let cells = table.column_by_name("cell").unwrap().as_string::<i32>();
    assert!(cells.iter().any(|cell| cell == Some(HOSTILE)));
}

#[test]
fn the_data_dictionary_has_every_column_and_no_other() {
    let guide = include_str!("../../../docs/guide/exports.md");
    let (_, part) = guide.split_once("\n## dataset\n").unwrap();
    let described: Vec<(&str, &str)> = part
        .lines()
        .filter_map(|l| l.strip_prefix("| `"))
        .map(|l| l.split_once("` | ").map(|(name, rest)| (name, rest.split(" | ").next().unwrap())).unwrap())
        .collect();
    let columns = dataset::table(&analysed(&Fixture::quickstart()).analysis).heads;
    assert_eq!(described, columns.iter().map(|(name, kind)| (name.as_str(), kind.as_str())).collect::<Vec<_>>());
}

#[test]
fn what_is_printed_stands_alone() {
    let report = analysed(&on_card());
    let markdown = text(&report, "markdown");
    assert!(markdown.starts_with("# ") && markdown.contains("SIMULATED"));
    assert!(!markdown.contains("![") && !markdown.contains(".svg"), "{markdown}");
    assert!(markdown.contains("\nTime per epoch"), "{markdown}");
    let value: serde_json::Value = serde_json::from_str(&text(&report, "json")).unwrap();
    assert_eq!(value, collo_report::json(&report));
    assert_eq!(value["device"]["simulated"], true);
}

#[test]
fn campaigns_with_nothing_in_them_are_still_files_of_their_format() {
    for report in thin() {
        let cells = rows(&text(&report, "cells"));
        assert_eq!(cells.len(), report.analysis.cells.len());
        assert!(text(&report, "latex").contains("\\bottomrule"));
        roxmltree::Document::parse(&text(&report, "junit")).unwrap();
        samples(&text(&report, "openmetrics"));
        let members: usize = report.analysis.cells.iter().flat_map(|c| &c.repetitions).map(|r| r.members.len()).sum();
        assert_eq!(rows(&text(&report, "dataset")).len(), members);
        let parquet = export(&report, "dataset.parquet").unwrap();
        assert_eq!(table(parquet).num_rows(), members);
        assert!(text(&report, "markdown").starts_with("# "));
    }
}

#[test]
fn runs_that_were_never_made_are_skipped_and_not_passed() {
    let mut unrun = Fixture::quickstart();
    unrun.stop_after = 4;
    let xml = text(&analysed(&unrun), "junit");
    let document = roxmltree::Document::parse(&xml).unwrap();
    let skipped: Vec<&str> =
        document.descendants().filter(|n| n.has_tag_name("skipped")).map(|n| n.attribute("message").unwrap()).collect();
    assert_eq!(skipped.len(), 3);
    assert!(skipped.iter().all(|why| why.starts_with("incomplete: ") && why.ends_with(" not run")), "{skipped:?}");
}
