//! What processes used of a machine over one run: those of a member, or the one process that all members are threads of. In: the
//! summaries of its scope, and what the kernel kept of it. Out: plain numbers, each absent if it was not read.
//!
//! To add a number: a field of [`Usage`]; why members that are threads lack it, in `of_thread` of `cell/absent.rs`.

use super::samples::Summaries;

/// CPU, memory, storage and the fight for cores of one scope.
#[derive(Debug, Clone, Default)]
pub struct Usage {
    /// Peak of its memory while it trained.
    pub memory: Option<Memory>,
    /// Mean CPU over the measured window, in cores.
    pub cpu_ratio: Option<f64>,
    pub read_bytes_per_s: Option<f64>,
    /// Involuntary switches: a core was taken away.
    pub involuntary_switches_per_s: Option<f64>,
    /// The same peak by less accurate readings, bytes.
    rss: Option<f64>,
    kernel: Option<f64>,
}

/// A footprint and how it was read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Memory {
    pub bytes: f64,
    pub kind: MemoryKind,
}

/// How a footprint was read, the most accurate first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemoryKind {
    /// Memory of the GPU, by process.
    Gpu,
    /// Proportional share: shared pages are divided among the members. At its largest RSS, see [`super::samples::proportional_peak`].
    Pss,
    /// Resident: shared pages count for each member.
    Rss,
    /// Resident peak of the member's first process alone, from the kernel.
    PeakRss,
}

impl MemoryKind {
    /// By its word in JSON.
    pub fn find(word: &str) -> Option<MemoryKind> {
        use MemoryKind::{Gpu, PeakRss, Pss, Rss};
        [Gpu, Pss, Rss, PeakRss].into_iter().find(|kind| kind.as_str() == word)
    }

    /// For captions.
    pub fn text(self) -> &'static str {
        match self {
            MemoryKind::Gpu => "GPU memory by process",
            MemoryKind::Pss => "the peak of PSS, which counts shared pages once",
            MemoryKind::Rss => "RSS, which counts shared pages once per member",
            MemoryKind::PeakRss => "VmHWM of each member's first process; no sample was taken while it trained",
        }
    }

    /// For JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            MemoryKind::Gpu => "gpu_memory",
            MemoryKind::Pss => "pss_peak",
            MemoryKind::Rss => "rss",
            MemoryKind::PeakRss => "peak_rss",
        }
    }
}

impl Usage {
    /// Of a scope, with the peak of its proportional memory; `kernel_bytes` is the kernel's own peak of its first process. On a card
    /// the memory of the host stands for nothing: who has no reading of the card's has none.
    pub fn of(summaries: &Summaries, scope: &str, pss: Option<f64>, kernel_bytes: Option<u64>, on_a_card: bool) -> Usage {
        let of = |metric: &str| summaries.get(&(scope.to_string(), metric.to_string()));
        let peak = |metric: &str| of(metric)?.peak;
        let held = |kind: MemoryKind| move |bytes: f64| Memory { bytes, kind };
        let (rss, kernel) = (peak("rss_bytes"), kernel_bytes.map(|bytes| bytes as f64));
        let memory = if on_a_card {
            peak("gpu_memory_bytes").map(held(MemoryKind::Gpu))
        } else {
            let sampled = pss.map(held(MemoryKind::Pss)).or(rss.map(held(MemoryKind::Rss)));
            sampled.or(kernel.map(held(MemoryKind::PeakRss)))
        };
        Usage {
            memory,
            cpu_ratio: of("cpu_ratio").and_then(|s| s.mean),
            read_bytes_per_s: of("read_bytes").and_then(|s| s.per_second),
            involuntary_switches_per_s: of("involuntary_context_switches").and_then(|s| s.per_second),
            rss,
            kernel,
        }
    }

    /// Footprints of one run are summed, and those of the runs of a cell averaged, so all are read the same way: the least accurate of
    /// any of them.
    pub fn level<'a>(all: impl IntoIterator<Item = &'a mut Usage>) {
        let mut all: Vec<&mut Usage> = all.into_iter().collect();
        let Some(worst) = all.iter().filter_map(|u| u.memory.map(|m| m.kind)).max() else { return };
        for usage in all.iter_mut() {
            let same = if worst == MemoryKind::Rss { usage.rss } else { usage.kernel };
            if let Some(memory) = usage.memory.as_mut().filter(|m| m.kind != worst) {
                *memory = same.map_or(*memory, |bytes| Memory { bytes, kind: worst });
            }
        }
    }
}
