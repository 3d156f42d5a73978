//! `threads`: all members in one process, a thread and, on a GPU, a CUDA stream of its own for each.
//!
//! Kernels of different streams of one context can run side by side without MPS; the members share an allocator, the settings of a
//! process, and Python's lock unless the interpreter has none.

use std::sync::Arc;

use collo_store::MemberSpec;

use super::{Each, Family, Refusal, Seating, SharingMode};
use crate::facts::DeviceFacts;

pub static THREADS: Family = Family {
    name: "threads",
    examples: &["threads", "threads:no-lock"],
    about: "all members in one process, a thread and a CUDA stream each; `:no-lock` without Python's lock, which needs a \
            free-threaded Python",
    parse: |label| match label.split_once(':') {
        None => (label == "threads").then(|| Ok(mode(true))),
        Some(("threads", "no-lock")) => Some(Ok(mode(false))),
        Some(("threads", other)) => Some(Err(format!("`threads` has no `{other}`: it is `threads` or `threads:no-lock`"))),
        Some(_) => None,
    },
};

fn mode(lock: bool) -> Arc<dyn SharingMode> {
    Arc::new(Threads { lock })
}

/// Members are threads of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Threads {
    /// Python's global lock is in force.
    pub lock: bool,
}

/// How the one process of all members is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hosting {
    /// With Python's global lock.
    pub lock: bool,
}

impl SharingMode for Threads {
    fn label(&self) -> String {
        if self.lock { "threads".into() } else { "threads:no-lock".into() }
    }

    fn family(&self) -> &'static str {
        THREADS.name
    }

    fn seat(&self, facts: &DeviceFacts, members: &[MemberSpec], _: &Each) -> Result<Seating, Refusal> {
        // One process is what exclusive compute modes allow.
        if let Some("Prohibited") = facts.gpu().and_then(|gpu| gpu.compute_mode.as_deref()) {
            return Err(Refusal {
                reason: "the GPU is in compute mode Prohibited, in which no process computes on it".into(),
                hint: Some("`sudo nvidia-smi -c DEFAULT`".into()),
            });
        }
        Ok(Seating { hosting: Some(Hosting { lock: self.lock }), ..Seating::whole_device(members.len(), facts) })
    }
}
