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
use collo_plan::prior::Prior;
use collo_plan::select::{Expression, Selection};
use collo_plan::workload::{self, Workloads};
use collo_plan::{experiment as experiments, plan, sharing};
use collo_schedule::policy;

use crate::Accepted;
use crate::given::{self, folder, put, shown, text};

/// So many cells are planned; how many there can be is the plan's own limit.
const MOST_PLANNED: usize = 50;

/// The PCI device id of NVIDIA's A100-SXM4-40GB.
const A100_PCI: u32 = 0x20b0_10de;

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

pub fn experiment(bytes: &[u8]) -> Accepted {
    let source = text(bytes)?;
    // Beside the project's own, so that it may include them and name traces.
    let file = ROOT.join("experiments/given.toml");
    shown(Experiment::parse(&file, &source, &WORKLOADS)).as_ref().map(planned)
}

/// A file that an experiment includes, and the experiment itself if it is one.
pub fn included(bytes: &[u8]) -> Accepted {
    let folder = folder();
    put(folder.path(), "experiments/common.toml", bytes);
    put(folder.path(), "experiments/given.toml", b"include = [\"common.toml\"]\n[axes]\nworkload = \"tiny\"\n");
    let file = folder.path().join("experiments/given.toml");
    experiments::tags_of(&folder.path().join("experiments/common.toml"));
    shown(Experiment::read(&file, &WORKLOADS, &Default::default())).as_ref().map(planned)
}

pub fn workload(bytes: &[u8]) -> Accepted {
    given::file("given/workload.toml", bytes, |file| {
        let root = file.parent().and_then(Path::parent)?;
        let workloads = shown(Workloads::load(root))?;
        let name = shown(workloads.find("given").map(|workload| workload.name.clone()))?;
        shown(Cell::parse(&format!("{name}×2 naive"), &workloads));
        let experiment = format!("[axes]\nworkload = \"{name}\"\ndegree = 2\n");
        let source = collo_text::Source::file("given.toml", experiment);
        shown(Experiment::parse(Path::new("experiments/given.toml"), &source, &workloads)).as_ref().map(planned)
    })
}

pub fn observer(bytes: &[u8]) -> Accepted {
    given::file("observers/given.toml", bytes, |file| {
        let folder = file.parent().unwrap_or(file);
        for packages in ["py-spy.txt", "radt.txt"] {
            put(folder, packages, b"# no package\n");
        }
        let observers = Observers::load(folder);
        observers.broken().values().for_each(|wrong| drop(wrong.to_string()));
        let watched = |label: &str| shown(Observe::parse(label, &observers).map(|observe| (observe.label(), observe.rate_hz())));
        let both = [watched("given"), watched("given@5")];
        both.into_iter().flatten().next().map(drop)
    })
}

pub fn host(bytes: &[u8]) -> Accepted {
    shown(HostFile::parse(&text(bytes)?, Path::new("/nowhere"))).map(drop)
}

pub fn gpu_model(bytes: &[u8]) -> Accepted {
    let model = shown(mig::parse("given", &text(bytes)?))?;
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
    Some(())
}

fn requested(layout: &RequestedLayout, gpu: &Gpu) -> Accepted {
    shown(layout.on(std::slice::from_ref(gpu), true, &|_| Some(A100_PCI))).map(drop)
}

/// A file of layouts, by its name alone and by that of a layout in it.
fn layout_file(name: &str, bytes: &[u8]) -> Accepted {
    let gpu = a100()?;
    given::file(name, bytes, |file| {
        let folder = file.parent().unwrap_or(file);
        let applied = |typed: String| requested(&shown(RequestedLayout::parse(&typed, folder))?, &gpu);
        let both = [applied(name.into()), applied(format!("{name}:half"))];
        both.into_iter().flatten().next()
    })
}

pub fn layout(bytes: &[u8]) -> Accepted {
    layout_file("given.toml", bytes)
}

pub fn mig_parted(bytes: &[u8]) -> Accepted {
    layout_file("given.yaml", bytes)
}

/// Words as experiments, campaigns and command lines have them, a line each, which one of their readers accepts.
pub fn label(bytes: &[u8]) -> Accepted {
    let source = text(bytes)?;
    let all: Vec<Accepted> = source.text().lines().take(50).map(word).collect();
    all.into_iter().collect()
}

fn word(line: &str) -> Accepted {
    let gpu = a100()?;
    gpu.card.iter().for_each(|card| drop(sharing::resolve_shares(line, card)));
    workload::is_name(line);
    let condition = shown(Expression::parse("--where", line)).map(|condition| {
        Selection::Where(condition).holds(&|axis| Some(axis.into()));
    });
    let all = [
        shown(sharing::parse(line)).map(|mode| drop(mode.label())),
        requested(&RequestedLayout::Words(line.into()), &gpu),
        shown(Cell::parse(line, &WORKLOADS)).map(|cell| drop((cell.label(), cell.record(1)))),
        shown(Observe::parse(line, &OBSERVERS)).map(|observe| drop(observe.label())),
        shown(policy::parse(line)).map(|policy| drop(policy.label())),
        condition,
    ];
    all.into_iter().flatten().next()
}
