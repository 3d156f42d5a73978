//! Paces of machines that are known.

use super::*;

/// A baseline around and between two runs of a group, whose times are 1 and `ratio`, at these paces.
fn campaign(ratio: f64, pace: impl Fn(usize) -> f64) -> Vec<PacedRun> {
    let cells = [0, 0, 0, 0, 1, 1, 1, 0, 0];
    let of = |(at, cell): (usize, usize)| PacedRun { cell, log: pace(at) + if cell == 1 { ratio.ln() } else { 0.0 } };
    cells.into_iter().enumerate().map(of).collect()
}

#[test]
fn an_even_drift_and_a_step_leave_no_trace_in_a_ratio() {
    let trend = |at: usize| 0.01 * at as f64;
    let step = |at: usize| if at < 5 { 0.0 } else { 0.1 };
    for (pace, what) in [(&trend as &dyn Fn(usize) -> f64, "a trend"), (&step, "a step")] {
        let found = Pace::fit(&campaign(1.5, pace)).expect("nine runs");
        let log = (4..7).map(|run| 1.5f64.ln() + pace(run) - found.log_at(0, run)).sum::<f64>() / 3.0;
        assert!((log.exp() - 1.5).abs() < 1e-6, "{what}: {}", log.exp());
        assert!(found.variance(&[(1, 1.0), (0, -1.0)]).s2 < 1e-12, "{what}");
    }
}

#[test]
fn cells_at_one_time_differ_by_their_noise_alone_and_a_wandering_machine_widens_the_rest() {
    // Two cells in turn, and a third one afterwards.
    let noise = [0.004, -0.006, 0.001, 0.005, -0.003, 0.002, -0.004, 0.003, -0.001, 0.006, -0.002, 0.001];
    let runs = |wave: f64| {
        let log = |at: usize| noise[at] + wave * (at as f64 * 1.1).sin();
        (0..12).map(|at| PacedRun { cell: if at < 8 { at % 2 } else { 2 }, log: log(at) }).collect::<Vec<_>>()
    };
    let (calm, wandering) = (Pace::fit(&runs(0.0)).expect("twelve runs"), Pace::fit(&runs(0.05)).expect("twelve runs"));
    let apart = |of: &FittedPace| of.variance(&[(2, 1.0), (0, -1.0)]).s2.sqrt();
    let beside = |of: &FittedPace| of.variance(&[(1, 1.0), (0, -1.0)]).s2.sqrt();
    assert!(apart(&calm) > 1.5 * beside(&calm), "{} {}", apart(&calm), beside(&calm));
    assert!(apart(&wandering) > 4.0 * apart(&calm), "{} {}", apart(&wandering), apart(&calm));
    assert_eq!(calm.variance(&[(2, 1.0), (0, -1.0)]).df, 8.0);
}

#[test]
fn too_few_runs_have_no_pace() {
    let once =
        |cells: &[usize]| Pace::fit(&cells.iter().map(|cell| PacedRun { cell: *cell, log: 0.0 }).collect::<Vec<_>>()).is_none();
    assert!(once(&[]) && once(&[0]) && once(&[0, 0]) && once(&[0, 1, 0]) && once(&[0, 1, 2, 3]));
}
