//! The page and its figures: well formed, self-contained, escaped, the same sections whatever is missing.

use collo_figures::document::Written;
use collo_report::{Report, write};
use collo_store::{Outcome, RefusalRecord};

use crate::support::Fixture;
use crate::support::card::CardTruth;

/// In the order of the page: anchor, and title by which one is named that has nothing to show.
const SECTIONS: [(&str, &str); 17] = [
    ("summary", ""),
    ("gain", "Throughput gain"),
    ("epoch-time", "Time per epoch"),
    ("threshold", "Threshold"),
    ("sm-activity", "SM activity"),
    ("memory", "Memory"),
    ("cpu", "CPU"),
    ("pcie", "PCIe"),
    ("energy", "Energy and power"),
    ("mixed", "Mixed workloads"),
    ("latency", "Latency"),
    ("timelines", "Timelines"),
    ("feasibility", "Feasibility"),
    ("fairness", "Fairness"),
    ("cells", "All cells"),
    ("quality", "Measurement quality"),
    ("provenance", "Provenance"),
];

fn written(fixture: &Fixture, check: impl Fn(&str, &Written)) {
    let (runs, reports) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let written = write(&Report::of(&fixture.write(runs.path())).unwrap(), reports.path()).unwrap();
    let page = std::fs::read_to_string(&written.html).unwrap();
    well_formed(&page);
    let left_out =
        page.split_once("Left out, having nothing to show.").map_or("", |(_, rest)| &rest[..rest.find("</p>").unwrap()]);
    let place = |(id, title): &(&str, &str)| {
        let at = page.find(&format!("<section id=\"sec-{id}\">"));
        let named = [", ", ": "].iter().any(|end| left_out.contains(&format!("{title}{end}")));
        assert!(at.is_some() || named, "{id} is on the page, or is said to be left out: {left_out}");
        assert!(at.is_none() || id == &"summary" || !left_out.contains(&format!(". {title}: ")), "{id} is both: {left_out}");
        assert_eq!(at.is_some(), page.contains(&format!("<a href=\"#sec-{id}\">")), "{id} in the navigation");
        at
    };
    let places: Vec<usize> = SECTIONS.iter().filter_map(place).collect();
    assert!(places.is_sorted() && places.len() >= 4, "sections in their order");
    check(&page, &written);
}

/// Every tag is closed in its order. Scripts and styles are text.
fn well_formed(markup: &str) {
    const VOID: [&str; 6] = ["meta", "br", "input", "img", "link", "hr"];
    let mut open: Vec<String> = Vec::new();
    let mut rest = markup;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let end = rest.find('>').expect("a tag ends");
        let tag = &rest[..end];
        rest = &rest[end + 1..];
        if tag.starts_with('!') || tag.starts_with('?') {
            continue;
        }
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "</{name}> before {}", &rest[..rest.len().min(80)]);
            continue;
        }
        let name: String = tag.chars().take_while(|c| c.is_alphanumeric()).collect();
        assert!(!name.is_empty() && tag.matches('"').count().is_multiple_of(2), "<{tag}>");
        if name == "script" || name == "style" {
            let close = format!("</{name}>");
            rest = &rest[rest.find(&close).expect("it closes") + close.len()..];
        } else if !tag.ends_with('/') && !VOID.contains(&name.as_str()) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn the_page_needs_nothing_but_itself() {
    written(&Fixture::quickstart(), |page, written| {
        // A reader may follow the identifier of a paper; the page loads nothing from there.
        let page = page.replace("<a href=\"https://doi.org/", "<a href=\"");
        for outside in ["http://", "https://", "src=", "@import", "url(\"", "<link"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert_eq!(page.matches("<figure ").count(), 8);
        assert_eq!(written.plots.len(), 8);
        let whole = std::fs::read_to_string(written.folder.join("report.json")).unwrap();
        assert_eq!(whole, std::fs::read_to_string(&written.json).unwrap());
        assert!(!written.folder.join("report.html.aside").exists());
    });
}

#[test]
fn drawings_in_the_page_have_no_colour_of_their_own() {
    written(&Fixture::quickstart(), |page, _| {
        for svg in page.split("<svg").skip(1).map(|s| &s[..s.find("</svg>").unwrap()]) {
            for literal in ["=\"#", "rgb", "style=", "fill=", "stroke="] {
                assert!(!svg.contains(literal), "{literal} in {svg}");
            }
        }
    });
}

#[test]
fn figures_are_files_of_their_own_too() {
    written(&Fixture::quickstart(), |_, written| {
        for plot in &written.plots {
            let svg = std::fs::read_to_string(plot).unwrap();
            well_formed(&svg);
            assert!(svg.contains("synthetic data") && !svg.contains("var("), "{}", plot.display());
            let png = std::fs::read(plot.with_extension("png")).unwrap();
            assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
            let side = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
            assert!(side(16) >= 1280 && side(20) > 200 && png.len() < 1_000_000);
            let pdf = std::fs::read(plot.with_extension("pdf")).unwrap();
            assert!(pdf.starts_with(b"%PDF-") && pdf.len() < 200_000, "{}", plot.display());
            let pgf = std::fs::read_to_string(plot.with_extension("pgf")).unwrap();
            assert!(pgf.contains("\\begin{pgfpicture}") && pgf.contains("synthetic data"), "{pgf}");
        }
    });
}

#[test]
fn each_figure_links_to_its_files_and_its_values_travel_with_the_page() {
    written(&Fixture::quickstart(), |page, written| {
        for plot in &written.plots {
            let id = plot.file_stem().unwrap().to_str().unwrap();
            let figure = &page[page.find(&format!("<figure id=\"fig-{id}\"")).unwrap()..];
            let figure = &figure[..figure.find("</figure>").unwrap()];
            for kind in ["svg", "png", "csv"] {
                assert!(figure.contains(&format!("/plots/{id}.{kind}\" download=\"{id}.{kind}\"")), "{id}.{kind}");
            }
            let csv = std::fs::read_to_string(plot.with_extension("csv")).unwrap();
            assert!(csv.lines().count() > 1, "{id}: {csv}");
            let head = csv.lines().next().unwrap();
            // A quoted field may hold a comma.
            let fields = |line: &str| line.split('"').step_by(2).map(|part| part.matches(',').count()).sum::<usize>();
            assert!(csv.lines().all(|line| fields(line) == fields(head)), "{csv}");
            let carried = figure.split_once("<span class=\"csv\" hidden>").unwrap().1;
            assert!(carried.starts_with(head.split(['"', '\'', '&', '<']).next().unwrap()), "{id}");
        }
        let gain = std::fs::read_to_string(written.folder.join("plots/throughput-gain.csv")).unwrap();
        assert!(gain.starts_with("cell,gain,gain low,gain high,"), "{gain}");
    });
}

#[test]
fn settings_that_all_cells_have_stand_once_and_values_for_programs_keep_them() {
    let mut fixture = Fixture::quickstart();
    for truth in &mut fixture.cells {
        let record = &mut truth.record;
        record.cell += " recipe=timm";
        record.members.iter_mut().for_each(|m| m.solo += " recipe=timm");
    }
    written(&fixture, |page, written| {
        assert!(page.contains("; every cell with recipe=timm"), "below the title");
        let heads = page.split("<th scope=\"row\">").skip(1).map(|rest| &rest[..rest.find("</th>").unwrap()]);
        assert_eq!(heads.filter(|head| head.contains("recipe=timm")).collect::<Vec<_>>(), Vec::<&str>::new());
        let carried = page.split("<span class=\"csv\" hidden>").skip(1).map(|rest| &rest[..rest.find("</span>").unwrap()]);
        assert!(carried.filter(|csv| csv.contains("tiny×2 naive b32 recipe=timm")).count() > 2, "what the page saves as CSV");
        let file = std::fs::read_to_string(written.folder.join("plots/epoch-time.csv")).unwrap();
        assert!(file.contains("tiny×2 naive b32 recipe=timm"), "{file}");
    });
}

#[test]
fn what_one_member_does_alone_stands_at_one_beside_the_groups() {
    let mut fixture = Fixture::named("slice").solo("small", 32, 1.0).group("small", 32, 1, "mig:1g.5gb", 2.4);
    fixture.device.kind = "gpu".into();
    written(&fixture, |page, _| {
        let figure = page.split_once("<figure id=\"fig-epoch-time\"").expect("it is compared with solo").1;
        let figure = &figure[..figure.find("</figure>").unwrap()];
        assert_eq!(figure.matches("class=\"bar\"").count(), 2, "solo and the slice");
        assert!(figure.contains(">×1<") && figure.contains(">1g<") && figure.contains("At ×1 stands what one member does alone"));
    });
}

/// The study's small model on its GPU, with an optimiser that its members report: the study's is `sgd`.
fn of_the_study(optimiser: &str) -> Fixture {
    let mut fixture =
        Fixture::named("study").solo("small", 32, 1.0).group("small", 32, 3, "mps", 1.2).group("small", 32, 7, "mps", 1.4);
    fixture.device.kind = "gpu".into();
    fixture.device.name = "NVIDIA A100-SXM4-40GB".into();
    fixture.regime = serde_json::json!({ "optimiser": optimiser });
    (fixture.shared_noise, fixture.member_noise) = (0.0, 0.0);
    fixture
}

#[test]
fn a_published_value_is_a_star_beside_ours_with_its_distance() {
    written(&of_the_study("sgd"), |page, written| {
        let figure = page.split_once("<figure id=\"fig-throughput-gain\"").expect("two degrees").1;
        let figure = &figure[..figure.find("</figure>").unwrap()];
        assert!(figure.contains("published 5.35; ours ÷ published: 0.93"), "{figure}");
        assert!(figure.contains("Stars: published for the same members, mode and conditions") && figure.contains("mk star"));
        let csv = std::fs::read_to_string(written.folder.join("plots/throughput-gain.csv")).unwrap();
        assert!(csv.lines().next().unwrap().ends_with(",published,ours ÷ published"), "{csv}");
    });
}

#[test]
fn what_was_published_of_other_training_conditions_is_counted_and_not_drawn() {
    written(&of_the_study("adamw"), |page, _| {
        assert!(page.contains("1 published value of other training conditions is not drawn."));
        assert!(!page.contains("mk star"));
    });
}

#[test]
fn dots_are_the_repetitions_and_a_single_one_has_none() {
    let check = |repetitions: u32, is_right: fn(usize) -> bool| {
        let mut fixture = Fixture::quickstart();
        fixture.repetitions = repetitions;
        written(&fixture, |page, _| {
            let figure = page.split_once("<figure id=\"fig-epoch-time\"").unwrap().1;
            let dots = figure[..figure.find("</figure>").unwrap()].matches("class=\"rep\"").count();
            assert!(is_right(dots), "{repetitions}: {dots}");
        });
    };
    check(1, |dots| dots == 0);
    check(3, |dots| dots >= 6);
}

#[test]
fn the_first_figure_is_the_gain_of_every_workload() {
    written(&Fixture::quickstart(), |page, _| {
        let first = page.find("<figure id=\"").unwrap();
        assert!(page[first..].starts_with("<figure id=\"fig-gain-by-mode\""));
        assert!(first < page.find("class=\"gh\"").unwrap_or(usize::MAX), "above the guidelines");
    });
}

#[test]
fn a_cell_is_one_click_from_its_runs_where_they_lie_in_the_project() {
    let project = tempfile::tempdir().unwrap();
    let campaign = Fixture::quickstart().write(&project.path().join("runs"));
    let folder = campaign.path().strip_prefix(project.path()).unwrap().to_str().unwrap().to_string();
    let written = write(&Report::of(&campaign).unwrap(), &project.path().join("reports")).unwrap();
    for (page, up) in [(written.html.clone(), "../../"), (written.folder.join("report.html"), "../../../")] {
        let text = std::fs::read_to_string(&page).unwrap();
        let links: Vec<&str> = text.split("class=\"run\" href=\"").skip(1).map(|l| &l[..l.find('"').unwrap()]).collect();
        assert!(links.len() > 6 && links.iter().all(|l| l.starts_with(&format!("{up}{folder}/"))), "{links:?}");
        for link in links.iter().filter(|l| l.ends_with('/')) {
            assert!(page.parent().unwrap().join(link).is_dir(), "{link}");
        }
        assert!(text.contains("class=\"show\""), "and has what `collo show` prints");
    }
}

#[test]
fn hostile_names_stay_text() {
    let hostile = "x<script>alert(1)</script>\"'&|`";
    let mut fixture = Fixture::named("hostile").solo(hostile, 32, 1.0).group(hostile, 32, 2, "naive\"><img>", 1.1);
    fixture = fixture.ends(Outcome::Crashed {
        member: 0,
        status: "</pre><script>2".into(),
        message: "\u{1b}[31m".into(),
        place_alone: false,
    });
    fixture = fixture.group(hostile, 32, 3, "naive\"><img>", 1.2);
    fixture.indicative = vec!["</style><script>3".into()];
    fixture.device.name = "cpu</title><script>4".into();
    fixture.refusals =
        vec![RefusalRecord { cell: "<b>".into(), sharing: "mps".into(), reason: "</td><script>5".into(), hint: None }];
    written(&fixture, |page, written| {
        assert_eq!(page.matches("<script").count(), 1, "ours alone");
        assert!(!page.contains("<img") && page.contains("&#60;script&#62;"));
        for plot in &written.plots {
            let svg = std::fs::read_to_string(plot).unwrap();
            well_formed(&svg);
            assert!(!svg.contains("<script"));
        }
        let markdown = std::fs::read_to_string(&written.markdown).unwrap();
        // An escaped backtick begins no code.
        let outside_code: String = markdown.replace("\\`", "").split('`').step_by(2).collect();
        assert!(!outside_code.contains("<script"), "{outside_code}");
    });
}

#[test]
fn simulated_shows_in_every_crop() {
    let mut fixture = Fixture::quickstart();
    fixture.device.simulated = true;
    written(&fixture, |page, written| {
        assert!(page.contains("SIMULATED") && page.contains("<body class=\"sim\""));
        for figure in page.split("<figure ").skip(1) {
            let head = &figure[..figure.find("<div class=\"panels").unwrap()];
            assert!(head.contains(">simulated<"), "{head}");
        }
        for table in page.split("<table").skip(1).map(|t| &t[..t.find("</table>").unwrap()]) {
            let evidence = table.contains(">quantity</th>");
            let refusals = table.contains("refused cell");
            assert!(evidence || refusals || table.contains(">simulated<"), "{table}");
        }
        assert!(std::fs::read_to_string(&written.plots[0]).unwrap().contains("class=\"fig sim\""));
    });
}

#[test]
fn campaigns_with_nothing_in_them_are_whole_pages() {
    let mut empty = Fixture::named("empty");
    empty.repetitions = 0;
    written(&empty, |page, written| {
        assert!(page.contains("The plan has no cells.") && written.plots.is_empty());
        assert!(page.contains("0 planned, 0 accounted for"));
    });
    let mut unrun = Fixture::quickstart();
    unrun.stop_after = 0;
    written(&unrun, |page, _| assert!(page.contains("Nothing has run yet.") && page.contains("12 planned, 0 accounted for")));
    let oom = || Outcome::OutOfMemory { member: 0, message: "tried to allocate 9 GiB".into() };
    let mut failed = Fixture::quickstart();
    failed.cells.iter_mut().for_each(|c| c.outcome = oom());
    written(&failed, |page, _| {
        assert!(page.contains("12 out of memory") && page.contains("tried to allocate 9 GiB"));
        assert!(page.contains("No run completed with a usable number"));
    });
    let mut alone = Fixture::quickstart().repetitions(1);
    alone.baselines = false;
    alone.samples_hz = 0.5;
    written(&alone, |page, _| assert!(page.contains("no baseline"), "the heat map and the advice say why there is no gain"));
}

#[test]
fn of_very_many_cells_the_page_has_the_most_telling_and_says_so() {
    let mut many = Fixture::named("many").repetitions(1);
    for workload in 0..260 {
        let name = format!("w{workload}");
        many = many.solo(&name, 32, 1.0);
        for sharing in ["naive", "mps", "mig"] {
            for degree in [2, 3, 4] {
                many = many.group(&name, 32, degree, sharing, 1.1);
            }
        }
    }
    // A few were run, so that there are figures; each says how many workloads it leaves out.
    many.samples_hz = 0.5;
    many.stop_after = 40;
    written(&many, |page, written| {
        assert!(page.contains("500 of 2600 cells: those that failed, then those furthest from running in turn"));
        assert!(page.contains("The first 240 of") && page.contains("Drawn: the first 12"));
        assert_eq!(page.matches("class=\"glyph\"").count(), 40, "every cell with a number is among the rows");
        assert!(page.len() < 2_000_000 && !page.contains("href=\"#c-"), "{}", page.len());
        assert!(std::fs::metadata(&written.markdown).unwrap().len() < 2_000_000);
        let plots: Vec<_> = std::fs::read_dir(written.folder.join("plots")).unwrap().map(|f| f.unwrap().file_name()).collect();
        let csv = std::fs::read_to_string(written.folder.join("plots/feasibility.csv")).unwrap_or_else(|_| panic!("{plots:?}"));
        assert_eq!(csv.lines().count(), 1 + 2600, "the file of a figure has every cell");
    });
}

#[test]
fn the_csv_of_a_figure_says_why_a_value_is_absent() {
    let oom = Outcome::OutOfMemory { member: 0, message: "CUDA out of memory".into() };
    written(&Fixture::quickstart().ends(oom), |_, written| {
        let csv = std::fs::read_to_string(written.folder.join("plots/epoch-time.csv")).unwrap();
        let (head, failed) = (csv.lines().next().unwrap(), csv.lines().find(|l| l.starts_with("tiny×3 naive b32,")).unwrap());
        let at = head.split(',').position(|h| h.ends_with(" reason")).unwrap();
        assert_eq!(failed.split(',').nth(at), Some("OOM"), "{csv}");
    });
}

#[test]
fn a_level_above_all_bars_is_inside_the_scale_that_panels_share() {
    let card = |power_w: f64| CardTruth {
        sm_active_ratio: 0.5,
        idle_w: 50.0,
        power_w,
        instances: Vec::new(),
        sources: vec![("dcgm", 1.0)],
        counter_resets: false,
        counters_of_instances: false,
        pcie_rx_bytes_per_s: None,
    };
    let mut fixture = Fixture::named("power").on_card("solo", &[("tiny", 1.0)], card(400.0), 0.001).on_card(
        "naive",
        &[("tiny", 1.3), ("tiny", 1.3)],
        card(100.0),
        0.001,
    );
    (fixture.device.name, fixture.device.kind) = ("Some GPU".into(), "gpu".into());
    written(&fixture, |page, _| {
        let figure = &page[page.find("<figure id=\"fig-power\"").unwrap()..];
        let drawn = &figure[..figure.find("<figcaption>").unwrap()];
        let ticks = drawn.split("<text").filter_map(|t| t.split_once('>')?.1.split_once('<')?.0.parse::<f64>().ok());
        assert!(ticks.reduce(f64::max) >= Some(400.0), "the axis goes beyond solo: {drawn}");
    });
}

#[test]
fn a_group_of_which_some_runs_fitted_is_not_drawn_as_out_of_memory() {
    let folder = tempfile::tempdir().unwrap();
    let mut report = Report::of(&Fixture::quickstart().write(folder.path())).unwrap();
    report.analysis.cells[2].outcomes = [("completed", 2), ("out_of_memory", 1)].into();
    let written = write(&report, &folder.path().join("reports")).unwrap();
    let svg = std::fs::read_to_string(written.folder.join("plots/feasibility.svg")).unwrap();
    assert!(svg.contains("out of memory, 2 of 3 runs completed") && !svg.contains("class=\"oom\""), "{svg}");
}

#[test]
fn an_epoch_before_go_is_a_negative_number_in_the_values_of_its_figure() {
    let folder = tempfile::tempdir().unwrap();
    let mut report = Report::of(&Fixture::quickstart().write(folder.path())).unwrap();
    let drawn = report.analysis.timelines.iter_mut().find(|t| t.lives_shown && !t.in_turn).unwrap();
    drawn.lives[0].epochs[0].0 = -1.25;
    let written = write(&report, &folder.path().join("reports")).unwrap();
    let csv = std::fs::read_to_string(written.folder.join("plots/timelines.csv")).unwrap();
    assert!(csv.contains(",0,tiny,-1.25,"), "{csv}");
}
