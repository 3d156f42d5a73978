//! The files of a project, and the words in them.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use collo_device::layout::RequestedLayout;
use collo_gpus::mig::{self, Cards};
use collo_plan::cell::Cell;
use collo_plan::experiment::Experiment;
use collo_plan::facts::{DeviceFacts, Gpu};
use collo_plan::host::HostFile;
use collo_plan::observer::{Observe, Observers};
use collo_plan::plan;
use collo_plan::prior::Prior;
use collo_plan::select::{Expression, Selection};
use collo_plan::workload::{self, Workloads};
use collo_plan::{experiment as experiments, sharing};
use collo_schedule::policy;

use crate::given::{self, folder, put, shown, text};

/// So many cells are planned; how many there can be is the plan's own limit.
const MOST_PLANNED: usize = 50;

pub static ROOT: LazyLock<PathBuf> = LazyLock::new(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
pub static WORKLOADS: LazyLock<Workloads> = LazyLock::new(|| Workloads::load(&ROOT.join("workloads")).unwrap_or_default());
static CARDS: LazyLock<Cards> = LazyLock::new(|| Cards::load(&ROOT.join("mig-profiles")).unwrap_or_default());
static OBSERVERS: LazyLock<Observers> = LazyLock::new(|| Observers::load(&ROOT.join("observers")));

fn a100() -> Option<Gpu> {
    CARDS.find("a100-40gb").ok().map(Gpu::planned)
}

fn machines() -> [DeviceFacts; 2] {
    let cpu = DeviceFacts::of_cpu(4, 1 << 34);
    [DeviceFacts::on_gpus(a100().into_iter().collect(), None, cpu.clone(), true), cpu]
}

/// Expands an experiment and plans its cells, for a GPU and for a CPU.
fn planned(experiment: &Experiment) {
    for facts in machines() {
        let cells = shown(plan::cells_of(experiment, None, None, &facts));
        if let Some(cells) = cells.filter(|cells| cells.len() <= MOST_PLANNED) {
            plan::plan(experiment, &cells, &facts, &Prior::default());
        }
    }
}

pub fn experiment(bytes: &[u8]) {
    let Some(source) = text(bytes) else { return };
    // Beside the project's own, so that it may include them and name traces.
    let file = ROOT.join("experiments/given.toml");
    shown(Experiment::parse(&file, &source, &WORKLOADS)).iter().for_each(planned);
}

/// A file that an experiment includes, and the experiment itself if it is one.
pub fn included(bytes: &[u8]) {
    let folder = folder();
    put(folder.path(), "experiments/common.toml", bytes);
    put(folder.path(), "experiments/given.toml", b"include = [\"common.toml\"]\n[axes]\nworkload = \"tiny\"\n");
    let file = folder.path().join("experiments/given.toml");
    shown(Experiment::read(&file, &WORKLOADS, &Default::default())).iter().for_each(planned);
    experiments::tags_of(&folder.path().join("experiments/common.toml"));
}

pub fn workload(bytes: &[u8]) {
    given::file("given/workload.toml", bytes, |file| {
        let Some(root) = file.parent().and_then(Path::parent) else { return };
        let Some(workloads) = shown(Workloads::load(root)) else { return };
        let known = workloads.find("given").map(|workload| workload.name.clone());
        if let Some(name) = shown(known) {
            shown(Cell::parse(&format!("{name}×2 naive"), &workloads));
            let experiment = format!("[axes]\nworkload = \"{name}\"\ndegree = 2\n");
            let source = collo_text::Source::file("given.toml", experiment);
            shown(Experiment::parse(Path::new("experiments/given.toml"), &source, &workloads)).iter().for_each(planned);
        }
    });
}

pub fn observer(bytes: &[u8]) {
    given::file("observers/given.toml", bytes, |file| {
        let observers = Observers::load(file.parent().unwrap_or(file));
        observers.broken().values().for_each(|wrong| drop(wrong.to_string()));
        shown(Observe::parse("given@5", &observers).map(|observe| (observe.label(), observe.rate_hz())));
    });
}

pub fn host(bytes: &[u8]) {
    let Some(source) = text(bytes) else { return };
    shown(HostFile::parse(&source, Path::new("/nowhere")));
}

pub fn gpu_model(bytes: &[u8]) {
    let Some(source) = text(bytes) else { return };
    let Some(model) = shown(mig::parse("given", &source)) else { return };
    let gpu = Gpu::planned(&model);
    let all = model.profiles.iter().map(|profile| profile.name.clone()).chain(model.layouts.iter().map(|l| l.name.clone()));
    for typed in all.take(20) {
        let twice = format!("2×{typed}");
        for text in [typed, twice] {
            requested(&RequestedLayout::Words(text), &gpu);
        }
    }
    let facts = DeviceFacts::on_gpus(vec![gpu], None, DeviceFacts::of_cpu(4, 1 << 34), true);
    let source =
        collo_text::Source::file("given.toml", "[axes]\nworkload = \"tiny\"\nsharing = [\"mps:1/3\", \"mig\"]\ndegree = 2\n");
    if let Some(experiment) = shown(Experiment::parse(Path::new("experiments/given.toml"), &source, &WORKLOADS))
        && let Some(cells) = shown(plan::cells_of(&experiment, None, None, &facts))
    {
        plan::plan(&experiment, &cells, &facts, &Prior::default());
    }
}

fn requested(layout: &RequestedLayout, gpu: &Gpu) {
    shown(layout.on(std::slice::from_ref(gpu), true, &|_| None).map(|all| all.len()));
}

fn layout_file(name: &str, bytes: &[u8]) {
    let Some(gpu) = a100() else { return };
    given::file(name, bytes, |file| {
        let folder = file.parent().unwrap_or(file);
        for typed in [name.to_string(), format!("{name}:half")] {
            shown(RequestedLayout::parse(&typed, folder)).iter().for_each(|layout| requested(layout, &gpu));
        }
    });
}

pub fn layout(bytes: &[u8]) {
    layout_file("given.toml", bytes);
}

pub fn mig_parted(bytes: &[u8]) {
    layout_file("given.yaml", bytes);
}

/// Words as experiments, campaigns and command lines have them, a line each.
pub fn label(bytes: &[u8]) {
    let Some(source) = text(bytes) else { return };
    let gpu = a100();
    for line in source.text().lines().take(50) {
        shown(sharing::parse(line).map(|mode| mode.label()));
        gpu.iter().filter_map(|gpu| gpu.card.as_ref()).for_each(|card| drop(sharing::resolve_shares(line, card)));
        gpu.iter().for_each(|gpu| requested(&RequestedLayout::Words(line.into()), gpu));
        shown(Cell::parse(line, &WORKLOADS).map(|cell| (cell.label(), cell.record(1))));
        shown(Observe::parse(line, &OBSERVERS).map(|observe| observe.label()));
        shown(policy::parse(line).map(|policy| policy.label()));
        if let Some(condition) = shown(Expression::parse("--where", line)) {
            let selection = Selection::Where(condition);
            selection.holds(&|axis| Some(axis.into()));
        }
        workload::is_name(line);
    }
}
