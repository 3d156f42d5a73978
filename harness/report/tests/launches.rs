//! A sweep over launches: what its metrics see is one figure and one guideline, and no figure has a panel for each of its points.

use collo_guidelines::verdict::{Agreement, Holds};
use collo_quantity::Key;
use collo_report::{Report, write};
use collo_store::Outcome;
use serde_json::json;

use crate::support::Fixture;
use crate::support::card::CardTruth;
use crate::support::study::analysed;

/// Blocks, threads, GPU utilisation, GRACT, SMACT and SMOCC.
type Point = (u64, u64, [f64; 4]);

const POINTS: [Point; 5] = [
    (1, 1, [0.96, 0.95, 0.0016, 0.0004]),
    (1, 1024, [0.97, 0.96, 0.002, 0.001]),
    (8192, 1, [0.98, 0.97, 0.2, 0.012]),
    (8192, 1024, [0.985, 0.98, 0.93, 0.69]),
    (16384, 1024, [0.985, 0.98, 0.95, 0.74]),
];

fn card(sm_active_ratio: f64) -> CardTruth {
    CardTruth {
        sm_active_ratio,
        idle_w: 50.0,
        power_w: 150.0,
        instances: Vec::new(),
        sources: vec![("dcgm", 1.0)],
        counter_resets: false,
        counters_of_instances: false,
        pcie_rx_bytes_per_s: None,
    }
}

/// Each point alone, as `metrics` has them.
fn sweep(points: &[Point]) -> Fixture {
    let mut fixture = Fixture::named("metrics");
    for (blocks, threads, [used, engine, active, warps]) in points {
        fixture = fixture.on_card("solo", &[("square-cuda", 1.0)], card(*active), 0.001);
        let cell = fixture.cells.last_mut().unwrap();
        cell.shares = vec![("gpu_utilization_ratio", *used), ("graphics_active_ratio", *engine), ("sm_occupancy_ratio", *warps)];
        let label = format!("square-cuda solo blocks={blocks} threads={threads}");
        let spec = &mut cell.record.members[0];
        spec.batch_size = None;
        spec.settings = [("blocks", json!(blocks)), ("threads", json!(threads)), ("kernel", json!("cuda"))]
            .map(|(name, value)| (name.to_string(), value))
            .into();
        spec.solo.clone_from(&label);
        cell.record.slug = format!("square-cuda_{blocks}_{threads}~0000");
        cell.record.cell = label;
    }
    (fixture.device.name, fixture.device.kind) = ("NVIDIA A100-SXM4-40GB".into(), "gpu".into());
    fixture.member_noise = 0.0005;
    fixture
}

fn markdown(report: &Report) -> String {
    let reports = tempfile::tempdir().unwrap();
    let written = write(report, reports.path()).unwrap();
    std::fs::read_to_string(written.folder.join("report.md")).unwrap()
}

/// A section of a report as Markdown, without its figures.
fn section<'m>(markdown: &'m str, title: &str) -> &'m str {
    let (_, rest) = markdown.split_once(&format!("## {title}\n")).unwrap_or_else(|| panic!("no `{title}` in {markdown}"));
    rest.split("\n## ").next().unwrap()
}

#[test]
fn utilisation_is_full_from_one_thread_on_and_the_sms_are_not() {
    let report = analysed(&sweep(&POINTS));
    let guideline = report.guideline("saturation").unwrap();
    assert_eq!((guideline.holds, guideline.agrees), (Holds::Yes, Agreement::Yes));
    assert_eq!(guideline.statement, "Read SMACT and SMOCC to see what is free: GPU utilisation and GRACT are full long before.");
    assert_eq!(
        guideline.finding,
        "At 1 × 1 (blocks × threads of a launch) GPU utilisation reads 96 % and 0.16 % of the SMs are active. 90 % is certainly \
         passed, by the whole interval, first by GPU utilisation at 1 × 1, by GRACT at 1 × 1, by SMACT at 8192 × 1024, by SMOCC nowhere."
    );
    let key = guideline.key.as_ref().unwrap();
    assert_eq!((key.quantity, key.cell.as_str()), (Key::SmActive, "square-cuda solo blocks=1 threads=1"));
    assert_eq!(key.to_text(), "0.16 %");
    let evidence = |quantity: Key| guideline.evidence.iter().filter(|e| e.quantity == quantity).count();
    assert_eq!([Key::GpuUtilization, Key::GraphicsActive, Key::SmActive, Key::SmOccupancy].map(evidence), [2, 2, 2, 1]);
    let published = guideline.published.as_ref().unwrap();
    assert!(published.short.contains("SMACT 19 %") && published.source.contains("3.3.2"));
    let others: Vec<&str> = report.guidelines.iter().map(|g| g.id.as_str()).filter(|id| *id != "saturation").collect();
    assert!(others.is_empty(), "questions about groups are none of a sweep: {others:?}");
}

#[test]
fn utilisation_that_follows_the_sms_contradicts_what_was_published() {
    let points = [(1, 1, [0.1, 0.1, 0.1, 0.001]), (64, 64, [0.5, 0.5, 0.5, 0.2]), (8192, 1024, [0.97, 0.97, 0.95, 0.7])];
    let report = analysed(&sweep(&points));
    let guideline = report.guideline("saturation").unwrap();
    assert_eq!((guideline.holds, guideline.agrees), (Holds::No, Agreement::No), "{}", guideline.finding);
    assert!(guideline.command.is_none());
}

#[test]
fn a_point_that_failed_leaves_open_whether_utilisation_follows_the_sms() {
    let points = [
        (1, 1, [0.1, 0.1, 0.1, 0.001]),
        (64, 64, [0.5, 0.5, 0.4, 0.2]),
        (128, 64, [0.97, 0.97, 0.2, 0.1]),
        (8192, 1024, [0.97, 0.97, 0.95, 0.7]),
    ];
    let mut fixture = sweep(&points);
    let (status, message) = ("exited with 1".into(), "boom".into());
    fixture.cells[2].outcome = Outcome::Crashed { member: 0, status, message, place_alone: false };
    let report = analysed(&fixture);
    let guideline = report.guideline("saturation").unwrap();
    assert_eq!(guideline.holds, Holds::Open, "{}", guideline.finding);
    assert!(guideline.finding.ends_with(" Not judged: `square-cuda solo blocks=128 threads=64`."), "{}", guideline.finding);
    assert_eq!(analysed(&sweep(&points)).guideline("saturation").unwrap().holds, Holds::Yes);
}

#[test]
fn points_that_were_not_read_or_are_all_full_leave_the_question_open() {
    let full =
        [(4096, 1024, [0.97, 0.97, 0.9, 0.7]), (8192, 1024, [0.97, 0.97, 0.95, 0.7]), (16384, 1024, [0.97, 0.97, 0.96, 0.7])];
    let mut unread = sweep(&POINTS);
    unread.cells.iter_mut().for_each(|c| c.shares.clear());
    for fixture in [sweep(&full), unread] {
        let report = analysed(&fixture);
        let guideline = report.guideline("saturation").unwrap();
        assert_eq!(guideline.holds, Holds::Open, "{}", guideline.finding);
        assert_eq!(guideline.command.as_deref(), Some("collo run metrics --more 2"));
    }
}

#[test]
fn each_point_has_what_was_published_of_it_beside_what_was_measured() {
    let text = markdown(&analysed(&sweep(&POINTS)));
    let section = section(&text, "What the metrics see");
    let rows: Vec<&str> = section.lines().filter(|l| l.starts_with("| ")).collect();
    let head = "| blocks | threads | GPU utilisation % | published % | GRACT % | published % | SMACT % | published % | SMOCC % | published % |";
    assert!(rows[0].starts_with(head), "{}", rows[0]);
    let nothing = ["", "", "", ""];
    // By threads, then by blocks.
    let expected = [
        (POINTS[0], ["65.0", "68.3", "0.16", "0.00"]),
        (POINTS[2], ["97.0", "95.1", "19.0", "1.2"]),
        (POINTS[1], nothing),
        (POINTS[3], ["99.6", "99.4", "92.9", "68.7"]),
        (POINTS[4], nothing),
    ];
    assert_eq!(rows.len(), 1 + expected.len());
    for (row, ((blocks, threads, truth), published)) in rows[1..].iter().zip(expected) {
        let fields: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        assert_eq!(fields[..2], [blocks.to_string(), threads.to_string()], "{row}");
        for (i, (truth, published)) in truth.iter().zip(published).enumerate() {
            let measured: f64 = fields[2 + 2 * i].parse().unwrap();
            assert!((measured - 100.0 * truth).abs() < 1.0, "{measured} of {truth}: {row}");
            assert_eq!(fields[3 + 2 * i], published, "{row}");
        }
    }
    assert!(section.contains("published of 3 of the 5 points on an A100-SXM4-40GB"), "{section}");
    for named in ["Throughput gain", "Time per epoch", "SM activity", "Energy and power", "Memory"] {
        let said = text.split_once("Left out, having nothing to show.").unwrap().1;
        assert!(said.contains(named), "{named} has no panel for each point: {said}");
    }
    assert!(text.contains("All 5 cells are the points of one sweep, drawn in What the metrics see."));
}

#[test]
fn beside_other_cells_the_points_of_a_sweep_have_no_panels_of_their_own() {
    let fixture = sweep(&POINTS).on_card("solo", &[("small", 1.0)], card(0.3), 0.01).on_card(
        "naive",
        &[("small", 1.4), ("small", 1.4)],
        card(0.5),
        0.01,
    );
    let report = analysed(&fixture);
    let text = markdown(&report);
    let activity = section(&text, "SM activity");
    assert!(activity.contains("5 points of a sweep are drawn in What the metrics see."), "{activity}");
    assert!(!activity.contains("blocks=8192"), "{activity}");
    assert!(section(&text, "What the metrics see").contains("| 8192"));
    assert!(report.guideline("collocate").is_some() && report.guideline("saturation").is_some());
}

#[test]
fn a_baseline_of_a_group_and_two_launches_are_no_sweep() {
    let mut fixture = sweep(&POINTS[..3]);
    let members = vec![fixture.cells[0].record.members[0].clone(); 2];
    fixture = fixture.on_card("naive", &[("square-cuda", 1.2), ("square-cuda", 1.2)], card(0.01), 0.01);
    let group = fixture.cells.last_mut().unwrap();
    group.record.against = vec![members[0].solo.clone()];
    group.record.members = members;
    for fixture in [fixture, sweep(&POINTS[..2])] {
        let report = analysed(&fixture);
        assert!(report.guideline("saturation").is_none());
        assert!(!markdown(&report).contains("What the metrics see"));
    }
}
