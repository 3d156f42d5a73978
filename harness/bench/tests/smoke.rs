//! Every benchmark runs: once, with nothing timed. What they find is not looked at here. Not the peer's: it installs radT and
//! MLflow, which nobody needs who only wants to see the tests pass.

use std::process::Command;

fn smoke(name: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_collo-bench")).args(["--smoke", name]).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn each_benchmark_tells_its_figures() {
    for (name, figures) in [
        ("decide", &["a decision, 4 cards ", "a decision, 1000 cards "][..]),
        ("overhead", &["fixed cost of a run, degree 2 "]),
        ("skew", &["start skew, 7 members "]),
        ("sampler", &["sampling threads, 16 members, 10 Hz ", "lateness of a tick, 100 Hz "]),
        ("dispatch", &["card free → process runs ", "card free → member's first word "]),
        ("manage", &["8 tasks ÷ their list schedule ", "the manager's own CPU time ", "the manager's own memory "]),
        ("perturbation", &["epoch under collo ÷ by hand, wall ", "epoch under collo ÷ by hand, CPU "]),
    ] {
        let said = smoke(name);
        for figure in figures {
            let row = said.lines().find(|l| l.contains(figure)).unwrap_or_else(|| panic!("no `{figure}` in:\n{said}"));
            assert!(!row.contains("not measured"), "{row}");
        }
    }
}

#[test]
fn on_simulated_cards_it_tells_its_figures_or_what_to_build() {
    for (name, figures) in [
        (
            "staging",
            &["MIG off → 7×1g.5gb ", "7×1g.5gb → MIG off ", "MPS daemon, until its server serves ", "MPS daemon, its end "][..],
        ),
        ("gpu-sampler", &["GPU sampling threads, 8 GPUs × 7 ", "gpm, 5 Hz "]),
        ("orchestration", &["a run's cost outside its members ", "from one run's members to the next "]),
    ] {
        let said = smoke(name);
        if said.contains("hint: `cargo build") {
            continue;
        }
        for figure in figures {
            let row = said.lines().find(|l| l.contains(figure)).unwrap_or_else(|| panic!("no `{figure}` in:\n{said}"));
            assert!(!row.contains("not measured") && !row.contains('–'), "{row}");
        }
    }
}

#[test]
fn what_is_not_built_is_said() {
    assert!(smoke("report").contains("report of 10⁸ samples"));
    assert!(smoke("verdicts").contains("wrong verdicts"));
    assert!(smoke("plan").contains("collo plan, 10⁴ cells"));
}
