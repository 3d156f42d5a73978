//! `collo report --format`: each format printed and written, and what cannot be meant.

use std::path::Path;

use crate::support::Bench;

/// A project with a campaign of one cell and its baseline.
fn measured() -> Bench {
    let bench = Bench::of("epochs = 2\n[axes]\nworkload = \"sleep\"\nseconds = 0.05\nitems = 5\ndegree = 2");
    bench.run(&[]).exits(0);
    bench
}

#[test]
fn each_format_is_printed_or_written_and_nothing_else_is() {
    let bench = measured();
    for (format, begins, ends) in [
        ("csv", "experiment,campaign,", "\n"),
        ("latex", "% needs \\usepackage{booktabs}", "\\end{table}\n"),
        ("latex-macros", "% \\input this in the preamble", "}\n"),
        ("junit", "<?xml version=\"1.0\"", "</testsuites>\n"),
        ("openmetrics", "# TYPE collo_campaign_info gauge", "# EOF\n"),
        ("json", "{\n  \"schema\": 2", "}\n"),
        ("markdown", "# ", "\n"),
        ("comment", "# ", "measured.\n"),
    ] {
        let printed = bench.collo(&["report", "--format", format]).exits(0);
        assert!(printed.stdout.starts_with(begins) && printed.stdout.ends_with(ends), "{format}: {}", printed.stdout);
        assert!(printed.stderr.is_empty(), "{}", printed.stderr);
        let written = bench.collo(&["report", "last", "--format", format, "--to", "out.txt"]).exits(0).says("report: out.txt");
        assert!(written.stdout.is_empty());
        assert_eq!(fs_err::read_to_string(bench.at("out.txt")).expect("written"), printed.stdout);
    }
    let dataset = bench.collo(&["report", "--format", "csv", "--table", "dataset"]).exits(0).stdout;
    assert!(dataset.starts_with("experiment,campaign,") && dataset.ends_with('\n'));
    bench.collo(&["report", "--format", "parquet", "--table", "dataset", "--to", "members.parquet"]).exits(0);
    let parquet = fs_err::read(bench.at("members.parquet")).expect("written");
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    bench.collo(&["report", "--format", "sqlite", "--to", "x.sqlite"]).exits(0).says("report: x.sqlite");
    assert!(fs_err::read(bench.at("x.sqlite")).expect("written").starts_with(b"SQLite format 3\0"));
    bench.collo(&["report", "--format", "mlflow", "--to", "mlruns"]).exits(0).says("in the MLflow store mlruns");
    assert!(bench.at("mlruns").is_dir());
    bench
        .collo(&["report", "--format", "mlflow", "--to", "x.sqlite"])
        .exits(2)
        .says("is a file, and an MLflow store is a folder");
    assert!(!bench.at("reports").exists() && !bench.at("out.txt.aside").exists());

    // Without a format all is as it was.
    bench.collo(&["report"]).exits(0).says("report: reports/x/report.html");
    bench.collo(&["report", "--to", "elsewhere"]).exits(0);
    assert!(bench.at("elsewhere/x/report.html").is_file());
    // A format of the page is the page's own file.
    let json = bench.collo(&["report", "--format", "json"]).stdout;
    assert_eq!(fs_err::read_to_string(bench.at("reports/x/report.json")).expect("written"), json);
    if Path::new("/dev/stdout").exists() {
        assert_eq!(bench.collo(&["report", "--format", "json", "--to", "/dev/stdout", "-q"]).exits(0).stdout, json);
    }
}

#[test]
fn what_cannot_be_meant_is_refused_before_anything_is_read() {
    let bench = Bench::new();
    fs_err::create_dir(bench.at("reports")).expect("a folder");
    let refused = |arguments: &[&str]| bench.collo(&[&["report"], arguments].concat()).exits(2);
    refused(&["--format", "pdf"]).says("invalid value 'pdf'").says("openmetrics");
    refused(&["--format", "csv", "--to", "reports"])
        .says("error: `reports` is a folder, and `--format` makes one file")
        .says("hint: name a file in it");
    refused(&["--format", "csv", "--to", "x.parquet"])
        .says("error: `x.parquet` would be csv, not Parquet")
        .says("`--format parquet`");
    refused(&["--format", "parquet"]).says("error: a Parquet file is not printed").says("`--to report.parquet`");
    refused(&["--format", "latex", "--table", "runs"]).says("error: `--format latex` has no `--table`");
    refused(&["--format", "csv", "--table", "members"]).says("invalid value 'members'").says("dataset");
    refused(&["--format", "sqlite"]).says("error: a database is not printed").says("hint: name its file: `--to report.sqlite`");
    refused(&["--format", "mlflow"]).says("error: an MLflow store is a folder").says("`--to mlruns`");
    refused(&["--format", "csv", "--json"]).says("error: `--json` and `--format` request two formats");
    refused(&["--format", "csv"])
        .says("error: no campaign `last`: none is stored in")
        .says("hint: `collo run quickstart` measures one");
}

#[test]
fn what_cannot_be_written_is_named_as_it_was_typed_with_the_way_out() {
    let bench = measured().file("mine", "a file");
    let refused = |arguments: &[&str]| bench.collo(&[&["report"], arguments].concat()).exits(3);
    refused(&["--to", "mine"]).says("hint: a file lies where a folder is needed: move it away, or name another place");
    refused(&["--format", "csv", "--to", "mine/a.csv"]).says("error: failed to write `mine/a.csv`").says("hint: a file lies");
    refused(&["--format", "csv", "--to", "absent/a.csv"]).says("hint: check the path, and that its folder exists");
    let bench = Bench::new().file("runs", "a file");
    for verb in ["list", "show", "status", "prune"] {
        bench.collo(&[verb]).exits(3).says("/runs`").says("hint: a file lies where a folder is needed");
    }
    bench.collo(&["doctor"]).answers("/runs is a file, not a folder");
}

#[test]
fn a_report_json_is_rendered_without_its_campaign_and_replaces_nothing() {
    let bench = measured();
    bench.collo(&["report"]).exits(0);
    let written = fs_err::read_to_string(bench.at("reports/x/report.json")).expect("written");
    let id = serde_json::from_str::<serde_json::Value>(&written).expect("JSON")["campaign"].as_str().expect("an id").to_string();

    // Its own folder has the page of the runs.
    let own = format!("reports/x/{id}/report.json");
    let page = fs_err::read_to_string(bench.at(&format!("reports/x/{id}/report.html"))).expect("written");
    for asked in [own.as_str(), "reports/x"] {
        bench
            .collo(&["report", asked])
            .exits(2)
            .says("has a report of this campaign already")
            .says("`--to DIR` writes it elsewhere");
    }
    assert_eq!(fs_err::read_to_string(bench.at(&format!("reports/x/{id}/report.html"))).expect("kept"), page);
    bench.collo(&["report", &own, "--to", "reports"]).exits(2).says("has a report of this campaign already");

    // Mailed to where nothing else of it is.
    fs_err::create_dir(bench.at("mail")).expect("a folder");
    fs_err::rename(bench.at("reports/x/report.json"), bench.at("mail/report.json")).expect("moved");
    fs_err::remove_dir_all(bench.at("reports")).expect("removed");
    fs_err::remove_dir_all(bench.at("runs")).expect("removed");
    let ended = bench.collo(&["report", "mail/report.json"]).exits(0).says(&format!("report: reports/x/{id}/report.html"));
    assert!(ended.stdout.contains("rendered from `report.json`"), "{}", ended.stdout);
    let folder = bench.at(&format!("reports/x/{id}"));
    assert_eq!(fs_err::read_to_string(folder.join("report.json")).expect("written"), written, "byte for byte");
    assert!(fs_err::read_to_string(folder.join("report.html")).expect("written").contains("rendered from"));
    assert!(!bench.at("reports/x/report.html").exists(), "the copies are of the newest campaign with runs");
    bench.collo(&["report", "mail/report.json"]).exits(2).says("has a report of this campaign already");
    bench.collo(&["report", "mail", "--to", "out"]).exits(0).says(&format!("report: out/x/{id}/report.html"));
    assert_eq!(bench.collo(&["report", "mail/report.json", "--format", "json"]).exits(0).stdout, written);

    // What needs the runs says so, and what has them.
    for (arguments, what) in [
        (&["--format", "junit"][..], "`--format junit` needs the stored runs"),
        (&["--format", "csv", "--table", "runs"], "`--table runs` needs the stored runs"),
        (&["--baseline", "last"], "`--baseline` needs the stored runs"),
        (&["--energy-model", "sm-share"], "`--energy-model` needs the stored runs"),
    ] {
        let asked = [&["report", "mail/report.json"], arguments].concat();
        bench.collo(&asked).exits(2).says(what).says("where its runs are stored: `collo report CAMPAIGN");
    }
    bench.collo(&["report", "mail/other.json"]).exits(2).says("no `mail/other.json` here");
    bench.collo(&["report", "mail/report.json", "last"]).exits(2).says("only stored campaigns become one report");
}
