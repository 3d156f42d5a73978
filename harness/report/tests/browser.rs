//! The page in a real browser: no error on its console, every plot has its data, the table sorts and filters, keys walk the marks,
//! hostile names stay text, a phone needs no sideways scrolling. Where there is no Chromium, each test is skipped.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::support::Fixture;
use crate::support::card::CardTruth;
use crate::support::serving::Serves;
use collo_report::{Report, write};
use collo_store::{DeviceRecord, Outcome, RefusalRecord};
use serde_json::Value;

/// A busy machine with two cores is slow, not broken.
const TIMEOUT: Duration = Duration::from_secs(120);

/// One browser at a time.
static TURN: Mutex<()> = Mutex::new(());

/// Recorded before anything of the page runs.
const LISTEN: &str = "<script>window.wrong=[];addEventListener('error',e=>wrong.push(String(e.message)));\
    window.alert=x=>wrong.push('alert '+x);</script>";

/// Told into the page, where the dump shows it.
const TELL: &str = include_str!("support/tell.js");

/// A dump shows no frame: what was told in it is copied out.
const COPY: &str = "<script>onload=()=>{const p=document.body.appendChild(document.createElement('pre'));p.id='told';\
    p.textContent=frames[0].document.getElementById('told').textContent}</script>";

fn browser() -> Option<PathBuf> {
    let named = std::env::var_os("COLLO_CHROMIUM").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = ["chromium", "chromium-browser", "google-chrome"]
        .iter()
        .find_map(|name| std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file()));
    let chosen = named.or(found);
    if chosen.is_none() {
        crate::skip::skip("chromium", "no chromium, chromium-browser or google-chrome in PATH, and COLLO_CHROMIUM is not set");
    }
    chosen
}

/// What one page tells in a window; none where there is no browser.
fn told(fixture: &Fixture, width: u32) -> Option<Value> {
    let browser = browser()?;
    let (runs, reports) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let written = write(&Report::of(&fixture.write(runs.path())).unwrap(), reports.path()).unwrap();
    let page = std::fs::read_to_string(&written.html).unwrap();
    // A phone is an iframe: a window of a desktop has a least width.
    let folder = written.html.parent().unwrap();
    let inner = folder.join("inner.html");
    let (head, rest) = page.split_at(page.find("<head>").unwrap() + "<head>".len());
    std::fs::write(&inner, format!("{head}{LISTEN}{}", rest.replace("</body>", &format!("<script>{TELL}</script></body>"))))
        .unwrap();
    let outer = folder.join("outer.html");
    let frame = format!(
        "<!doctype html><body style=\"margin:0\"><iframe src=\"inner.html\" width=\"{width}\" height=\"900\" style=\"border:0\"></iframe>{COPY}"
    );
    std::fs::write(&outer, frame).unwrap();
    let opened = if width < 600 { outer } else { inner };
    let (dump, log) = dumped(&browser, &opened, width, reports.path());
    let errors: Vec<&str> = log.lines().filter(|l| l.contains("CONSOLE") || l.contains("Uncaught")).collect();
    assert!(errors.is_empty(), "the console is quiet: {errors:?}");
    Some(read(&dump).unwrap_or_else(|| panic!("the page told nothing; the browser said: {log}")))
}

fn read(dump: &str) -> Option<Value> {
    let text = &dump[dump.rfind("<pre id=\"told\">")? + "<pre id=\"told\">".len()..];
    let text =
        text[..text.find("</pre>")?].replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", "\u{a0}").replace("&amp;", "&");
    serde_json::from_str(&text).ok()
}

/// Run the browser until it has dumped the page; what it said besides comes second.
fn dumped(browser: &Path, page: &Path, width: u32, folder: &Path) -> (String, String) {
    let _turn = TURN.lock().unwrap_or_else(|held| held.into_inner());
    let out = std::fs::File::create(folder.join("dump")).unwrap();
    let err = std::fs::File::create(folder.join("log")).unwrap();
    let mut child = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"])
        .args(["--disable-sync", "--disable-dev-shm-usage", "--allow-file-access-from-files", "--enable-logging=stderr", "--v=0"])
        .args([format!("--window-size={width},900"), format!("--user-data-dir={}", folder.join("profile").display())])
        .arg("--dump-dom")
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .spawn()
        .unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > TIMEOUT {
            let _ = child.kill();
            let _ = child.wait();
            panic!("the browser did not end within {} s", TIMEOUT.as_secs());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let text = |name: &str| {
        let mut bytes = Vec::new();
        std::fs::File::open(folder.join(name)).unwrap().read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    (text("dump"), text("log"))
}

/// A card with every mode, groups of equal and of different members, one that ran out of memory and one that was refused.
fn card() -> Fixture {
    let truth = |sm: f64, power_w: f64| CardTruth {
        sm_active_ratio: sm,
        idle_w: 60.0,
        power_w,
        instances: Vec::new(),
        sources: vec![("gpm", 1.0)],
        pcie_rx_bytes_per_s: None,
        counter_resets: false,
        counters_of_instances: false,
    };
    let mut f = Fixture::named("card");
    f.device = DeviceRecord {
        name: "NVIDIA A100-SXM4-40GB".into(),
        kind: "gpu".into(),
        simulated: true,
        memory_bytes: Some(40 << 30),
        cores: None,
        quota_cores: None,
        persistence: Some(true),
    };
    let two = |a: &'static str, x: f64, b: &'static str, y: f64| [(a, x), (b, y)];
    f = f.on_card("solo", &[("small", 1.0)], truth(0.2, 110.0), 0.01);
    f = f.on_card("solo", &[("large", 1.2)], truth(0.8, 300.0), 0.01);
    for (mode, stretch, sm) in [("naive", 1.6, 0.3), ("mps", 1.05, 0.4), ("mig", 1.2, 0.35)] {
        f = f.on_card(mode, &two("small", stretch, "small", stretch), truth(sm, 150.0), 0.01);
        f = f.on_card(mode, &[("small", 1.3 * stretch); 3], truth(1.4 * sm, 190.0), 0.01);
        f = f.on_card(mode, &two("large", 1.9 * stretch, "large", 1.9 * stretch), truth(0.9, 350.0), 0.01);
        f = f.on_card(mode, &two("small", 1.4 * stretch, "large", 1.5 * stretch), truth(0.9, 340.0), 0.01);
        f.cells.last_mut().unwrap().record.after_measured = collo_store::AfterMeasured::Exit;
    }
    f = f.on_card("naive", &[("large", 3.0); 7], truth(0.9, 350.0), 0.01);
    f = f.ends(Outcome::OutOfMemory { member: 3, message: "tried to allocate 2 GiB".into() });
    f.refusals = vec![RefusalRecord {
        cell: "large×7 mig b32".into(),
        sharing: "mig".into(),
        reason: "7×1g.5gb have 5 GiB each".into(),
        hint: None,
    }];
    f
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|v| v.as_str().unwrap()).collect()
}

fn numbers(value: &Value) -> Vec<Option<f64>> {
    texts(value).iter().map(|t| t.parse().ok()).collect()
}

/// Every plot has its data, nothing runs out of its drawing, every link leads somewhere.
fn whole(t: &Value) {
    assert_eq!(t["wrong"], serde_json::json!([]));
    assert_eq!((&t["dead"], &t["twice"]), (&serde_json::json!([]), &serde_json::json!([])), "links and ids");
    for figure in t["figures"].as_array().unwrap() {
        let marks: Vec<u64> = figure["panels"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
        let rows = figure["rows"].as_u64().unwrap();
        assert!(rows > 0 && marks.iter().all(|n| *n > 0), "every panel has marks: {figure}");
        assert!(marks.iter().sum::<u64>() >= rows, "a mark for each row of its table: {figure}");
        // Solo is a line in each panel, here in one for each workload.
        let bars = ["fig-epoch-time", "fig-sm-activity", "fig-memory", "fig-cpu", "fig-energy"];
        if bars.contains(&figure["id"].as_str().unwrap()) {
            assert_eq!(marks.iter().sum::<u64>(), rows, "as many marks as rows: {figure}");
        }
        assert_eq!(figure["outside"], serde_json::json!([]), "{}", figure["id"]);
    }
}

#[test]
fn sections_are_folded_until_a_link_a_button_or_paper_opens_them() {
    let Some(t) = told(&card(), 1280) else { return };
    let folded = &t["folded"];
    let all = folded["sections"].as_u64().unwrap();
    assert!(all > 8, "{folded}");
    assert_eq!((&folded["first"], &folded["opened"]), (&all.into(), &serde_json::json!(["sec-quality"])), "{folded}");
    assert_eq!(folded["address"], serde_json::json!(["sec-cells"]), "an address of the table opens it: {folded}");
    assert_eq!((&folded["all"], &folded["none"]), (&0.into(), &all.into()), "{folded}");
    assert_eq!((&folded["printed"], &folded["after"]), (&0.into(), &all.into()), "{folded}");
}

#[test]
fn every_plot_has_its_data_and_keys_walk_it() {
    let Some(t) = told(&card(), 1280) else { return };
    whole(&t);
    let ids: Vec<&str> = t["figures"].as_array().unwrap().iter().map(|f| f["id"].as_str().unwrap()).collect();
    for id in [
        "gain-by-mode",
        "epoch-time",
        "throughput-gain",
        "sm-activity",
        "memory",
        "energy",
        "mixed",
        "timelines",
        "feasibility",
        "pairs",
        "slowdown",
    ] {
        assert!(ids.contains(&format!("fig-{id}").as_str()), "{id} in {ids:?}");
    }
    assert_eq!(t["overflow"], t["width"], "no sideways scrolling");
    assert!(t["head"].as_u64().unwrap() < 160, "the facts of the head are not squeezed into a column: {}", t["head"]);
    assert_eq!(t["focus"][0], true);
    assert_eq!(t["focus"][2], 0, "a plot is one tab stop");
    let (first, second) = (&t["keys"]["first"], &t["keys"]["second"]);
    assert_eq!((&first[0], &first[1], &first[3]), (&"block".into(), &first[2], &true.into()), "the first mark is told");
    assert_eq!(second[0], second[1], "the next one, too");
    assert_ne!(first[1], second[0]);
    assert_eq!(t["keys"]["after"], "none");
}

/// Two that serve, alone and beside one and two that train, under each mode.
fn serving() -> Fixture {
    let usual = Serves { slo_s: Some(0.15), ..Serves::usual() };
    let slow = Serves { rate_per_s: 20.0, capacity_per_s: 45.0, slo_s: None, ..Serves::usual() };
    let mut f = Fixture::named("serving").solo("tiny", 32, 8.0).serves("serve", &usual).serves("decode", &slow);
    for (mode, left, epoch_s) in [("naive", 70.0, 12.0), ("mps", 105.0, 10.0)] {
        f = f.beside(&[("serve", usual.clone().left(left))], &[("tiny", epoch_s)], mode);
        f = f.beside(&[("serve", usual.clone().left(left - 8.0))], &[("tiny", 1.9 * epoch_s); 2], mode);
        f = f.beside(&[("decode", slow.clone().left(left / 3.0))], &[("tiny", epoch_s)], mode);
    }
    f
}

#[test]
fn latencies_have_their_plots_and_a_phone_reads_them() {
    for width in [1280, 390] {
        let Some(t) = told(&serving(), width) else { return };
        whole(&t);
        let ids: Vec<&str> = t["figures"].as_array().unwrap().iter().map(|f| f["id"].as_str().unwrap()).collect();
        assert!(ids.contains(&"fig-latency") && ids.contains(&"fig-lateness"), "{ids:?}");
        assert!(!ids.contains(&"fig-mixed") && !ids.contains(&"fig-pairs"), "{ids:?}");
        assert_eq!((&t["overflow"], &t["opened"]), (&t["width"], &t["width"]), "no sideways scrolling: {}", t["wide"]);
    }
}

#[test]
fn predictions_have_their_plots_and_a_phone_reads_them() {
    for width in [1280, 390] {
        let Some(t) = told(&crate::support::predictions::predicted(), width) else { return };
        let figure = t["figures"].as_array().unwrap().iter().find(|f| f["id"] == "fig-prediction").unwrap();
        assert_eq!((&t["wrong"], &figure["outside"]), (&serde_json::json!([]), &serde_json::json!([])));
        assert_eq!(figure["panels"], serde_json::json!([9, 9]), "a mark for each point in both panels");
        assert_eq!((&t["overflow"], &t["opened"]), (&t["width"], &t["width"]), "no sideways scrolling: {}", t["wide"]);
    }
}

#[test]
fn threads_stand_beside_every_other_mode_and_a_phone_reads_them() {
    for width in [1280, 390] {
        let Some(t) = told(&crate::support::threads::beside_all_modes(), width) else { return };
        whole(&t);
        assert_eq!((&t["overflow"], &t["opened"]), (&t["width"], &t["width"]), "no sideways scrolling: {}", t["wide"]);
    }
}

#[test]
fn a_phone_needs_no_sideways_scrolling() {
    let Some(t) = told(&card(), 390) else { return };
    assert!(t["width"].as_u64().unwrap() <= 390);
    let (closed, opened) = (&t["overflow"], &t["opened"]);
    assert_eq!((closed, opened), (&t["width"], &t["width"]), "closed, and with everything unfolded: {}", t["wide"]);
    whole(&t);
}

#[test]
fn the_table_of_cells_sorts_and_filters() {
    let Some(t) = told(&card(), 1000) else { return };
    let gain = &t["sorted"]["gain"];
    assert_eq!((&gain["said"], &gain["then"]), (&"ascending".into(), &"descending".into()));
    let (up, down) = (numbers(&gain["up"]), numbers(&gain["down"]));
    let known = |all: &[Option<f64>]| all.iter().flatten().copied().collect::<Vec<f64>>();
    assert!(known(&up).is_sorted() && known(&down).iter().rev().is_sorted(), "{up:?} {down:?}");
    assert!(known(&up).len() > 5 && up.last() == Some(&None) && down.last() == Some(&None), "absent stands last: {up:?}");
    assert!(texts(&t["sorted"]["cell"]["up"]).is_sorted_by(|a, b| a.to_lowercase() <= b.to_lowercase()));
    assert_eq!((&t["all"], &t["again"]), (&"15 of 15 cells".into(), &"15 of 15 cells".into()));
    assert_eq!(t["words"][0], "3 of 15 cells");
    assert!(texts(&t["words"][1]).iter().all(|cell| cell.contains("naive") && cell.contains("small")));
    assert!(texts(&t["boxes"]).contains(&"MPS") && texts(&t["boxes"]).contains(&"out of memory"), "{}", t["boxes"]);
    assert!(texts(&t["unticked"][1]).iter().all(|mode| *mode != t["boxes"][0]), "{}", t["unticked"]);
}

#[test]
fn what_is_chosen_stands_in_the_address_and_a_row_opens() {
    let Some(t) = told(&card(), 1000) else { return };
    assert_eq!(t["address"], "#cells?find=naive&sort=-cell", "sorted twice before");
    assert_eq!(t["restored"], serde_json::json!(["10 of 15 cells", "small", ["outcome"], "descending"]));
    let row = &t["row"];
    assert_eq!((&row[0], &row[3]), (&"true".into(), &15.into()), "and closes again");
    let (text, name) = (row[1].as_str().unwrap(), row[2].as_str().unwrap());
    assert!(text.starts_with(name) && text.contains("ran on"), "{text}");
}

#[test]
fn figures_can_be_taken_from_the_page_alone() {
    let Some(t) = told(&card(), 1280) else { return };
    let taken = t["taken"].as_array().unwrap();
    assert_eq!(taken.len(), 4);
    for figure in taken {
        assert_eq!(
            (&figure["broken"], &figure["own"], &figure["ground"]),
            (&false.into(), &false.into(), &"#fff".into()),
            "{figure}"
        );
        assert_eq!((&figure["titles"], &figure["rows"]), (&figure["marks"], &figure["values"]), "{figure}");
    }
}

#[test]
fn hostile_names_and_logs_do_nothing() {
    let hostile = "x<script>alert(1)</script><img src=x onerror=alert(2)>\"'&|`";
    let mode = "naive\" onload=\"alert(3)\"><svg onload=alert(4)>";
    let mut f = Fixture::named("hostile").solo(hostile, 32, 1.0).group(hostile, 32, 2, mode, 1.1);
    f = f.mixed((hostile, 1.1), ("</script><script>alert(5)</script>", 1.2), mode, "keep-running");
    f = f.ends(Outcome::Crashed {
        member: 0,
        status: "</pre><script>alert(6)</script>".into(),
        message: "</textarea>\u{1b}[31m".into(),
        place_alone: false,
    });
    f = f.group(hostile, 32, 3, mode, 1.2);
    f.indicative = vec!["</style><script>alert(7)</script>".into()];
    f.device.name = "cpu</title><script>alert(8)</script>".into();
    let told_off = || RefusalRecord {
        cell: "<b onclick=alert(9)>".into(),
        sharing: "mps".into(),
        reason: "</td><script>alert(10)</script>".into(),
        hint: Some("javascript:alert(11)".into()),
    };
    f.refusals = vec![told_off()];
    let Some(t) = told(&f, 1280) else { return };
    assert_eq!(t["wrong"], serde_json::json!([]));
    assert_eq!(t["scripts"], 3, "the page's own and the two of this test");
    assert!(t["plan"][0].as_str().unwrap().contains("<script>alert(1)</script>"), "its name is read as it is");
    whole(&t);
}

#[test]
fn a_page_without_numbers_is_whole_and_the_cpu_has_one_too() {
    let mut empty = Fixture::named("empty");
    empty.repetitions = 0;
    let Some(t) = told(&empty, 1280) else { return };
    whole(&t);
    let mut failed = card();
    failed.cells.iter_mut().for_each(|c| c.outcome = Outcome::OutOfMemory { member: 0, message: "9 GiB".into() });
    whole(&told(&failed, 1280).unwrap());
    whole(&told(&Fixture::quickstart(), 1280).unwrap());
}
