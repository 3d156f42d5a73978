use super::*;
use crate::file::Conditions;
use crate::memory_law::tests::published;

const A100: &str = "NVIDIA A100-SXM4-40GB";
const A30: &str = "NVIDIA A30";

fn text(text: &str) -> Option<String> {
    Some(text.to_string()).filter(|text| !text.is_empty())
}

fn fitted(name: &str, mark: Mark, gpu: &str, architecture: &str, torch: &str) -> MemoryPredictor {
    let conditions = Conditions { gpu: text(gpu), architecture: text(architecture), torch: text(torch), ..Conditions::default() };
    MemoryPredictor { name: name.into(), mark, conditions, ..published() }
}

fn own(name: &str, gpu: &str, architecture: &str, torch: &str) -> MemoryPredictor {
    fitted(name, Mark::Own, gpu, architecture, torch)
}

fn on_cpu(name: &str, torch: &str) -> MemoryPredictor {
    let mut predictor = own(name, "", "", torch);
    predictor.conditions.device = TargetDevice::Cpu;
    predictor
}

fn gpu(gpu: &str, architecture: &str, torch: &str) -> Target {
    Target { gpu: text(gpu), architecture: text(architecture), torch: text(torch), ..Target::default() }
}

/// Its name, and why.
fn chosen<'a>(all: &'a [MemoryPredictor], target: &Target) -> Option<(&'a str, Because)> {
    choose(all.iter(), target).map(|chosen| (chosen.predictor.name.as_str(), chosen.because))
}

#[test]
fn the_nearest_serves_and_each_step_back_widens_the_interval() {
    let mut all = vec![
        fitted("far", Mark::Published, "NVIDIA H100 PCIe", "hopper", "2.14.1"),
        own("ampere", A30, "ampere", "2.14.1"),
        own("older", A100, "ampere", "2.4.0"),
        own("same", A100, "ampere", "2.14.1"),
    ];
    let target = gpu(A100, "Ampere", "2.14.1");
    let wanted = [
        ("same", Because::SameDeviceAndTorch, 0),
        ("older", Because::SameDevice, 1),
        ("ampere", Because::SameArchitecture, 2),
        ("far", Because::Published, 3),
    ];
    for (name, because, steps) in wanted {
        let found = choose(all.iter(), &target).expect("one");
        assert_eq!((found.predictor.name.as_str(), found.because), (name, because));
        assert!((found.widened - 1.5f64.powi(steps)).abs() < 1e-12);
        assert!((found.width().upper_log - found.widened * found.predictor.law.width.upper_log).abs() < 1e-12);
        assert!((found.width().above_log - found.widened * found.predictor.law.width.above_log).abs() < 1e-12);
        all.pop();
    }
    assert_eq!(choose(all.iter(), &target), None);
}

#[test]
fn the_factor_is_the_files_own_and_no_interval_becomes_absurd() {
    let far = MemoryPredictor { widening: 10.0, ..own("far", A30, "ampere", "") };
    let found = choose([&far].into_iter(), &gpu("NVIDIA H100 PCIe", "hopper", "")).expect("one");
    assert_eq!((found.because, found.widened), (Because::Any, 10_000.0));
    assert_eq!(found.width().upper_log, 3.0);
}

#[test]
fn a_table_that_collo_did_not_measure_is_a_step_back_and_after_what_was_published() {
    let table = |torch: &str| fitted("table", Mark::Table, A100, "ampere", torch);
    let target = gpu(A100, "ampere", "2.14.1");
    let all = [table("2.14.1"), published(), own("mine", A100, "ampere", "")];
    assert_eq!(chosen(&all, &target), Some(("mine", Because::SameDevice)));
    assert_eq!(chosen(&all[..2], &target), Some(("published-a100", Because::SameDevice)), "of the same device, too");
    let only = choose(all[..1].iter(), &target).expect("one");
    assert_eq!((only.because, only.widened), (Because::SameDeviceAndTorch, 1.5), "it has the width of one step");
    let elsewhere = gpu(A30, "ampere", "2.14.1");
    let of_its_device = [fitted("table", Mark::Table, A30, "ampere", "2.14.1"), published()];
    assert_eq!(chosen(&of_its_device, &elsewhere), Some(("table", Because::SameDeviceAndTorch)), "what was published is farther");
}

#[test]
fn simulated_runs_serve_simulated_devices_only_and_the_reverse() {
    let all = [fitted("sim", Mark::Simulated, A100, "ampere", "2.14.1"), published(), own("mine", A100, "ampere", "")];
    let real = gpu(A100, "ampere", "2.14.1");
    let simulated = Target { simulated: true, ..real.clone() };
    assert_eq!(chosen(&all, &real), Some(("mine", Because::SameDevice)));
    assert_eq!(chosen(&all, &simulated), Some(("sim", Because::SameDeviceAndTorch)));
    assert_eq!(chosen(&all[..1], &real), None);
    assert_eq!(chosen(&all[1..], &simulated), None);
}

#[test]
fn what_was_fitted_on_a_gpu_never_serves_a_cpu_and_the_reverse() {
    let all = [published(), on_cpu("old", "2.4.0"), on_cpu("new", "2.14.1")];
    let cpu = Target { device: TargetDevice::Cpu, torch: text("2.14.1"), ..Target::default() };
    assert_eq!(chosen(&all, &cpu), Some(("new", Because::SameDeviceAndTorch)));
    assert_eq!(chosen(&all[..2], &cpu), Some(("old", Because::SameDevice)));
    assert_eq!(chosen(&all[..1], &cpu), None);
    assert_eq!(chosen(&all[1..], &gpu(A100, "ampere", "2.14.1")), None);
}

#[test]
fn at_one_distance_own_measurements_come_first_then_the_more_architectures_and_rows() {
    let sized = |name: &str, families: usize, rows: usize| {
        let mut predictor = own(name, A100, "ampere", "");
        (predictor.law.width.families, predictor.law.left_out.rows) = (families, rows);
        predictor
    };
    let all = [published(), sized("b", 5, 90), sized("a", 5, 90), sized("rows", 5, 120), sized("families", 25, 30)];
    let target = gpu(A100, "ampere", "2.14.1");
    assert_eq!(chosen(&all, &target), Some(("families", Because::SameDevice)));
    assert_eq!(chosen(&all[..4], &target), Some(("rows", Because::SameDevice)));
    assert_eq!(chosen(&all[..3], &target), Some(("a", Because::SameDevice)));
    assert_eq!(chosen(&all[..1], &target), Some(("published-a100", Because::SameDevice)));
}

#[test]
fn what_is_unknown_is_the_same_as_nothing() {
    assert_eq!(chosen(&[own("mine", "", "", "")], &gpu("", "", "")), Some(("mine", Because::Any)));
}
