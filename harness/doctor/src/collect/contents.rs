//! The contents, printed before anything is collected: every file, what is in it, and which question it answers.

/// A file of the bundle, or several of a kind.
pub struct Part {
    pub file: &'static str,
    pub holds: &'static str,
    pub answers: &'static str,
}

const fn part(file: &'static str, holds: &'static str, answers: &'static str) -> Part {
    Part { file, holds, answers }
}

/// All of them; those of `mig/` only where `--mig` is given.
pub static PARTS: [Part; 17] = [
    part("README.txt", "this list", ""),
    part("steps.json", "every command, how it ended, how long it took, its stderr", "what was unavailable, and why"),
    part(
        "machine/nvidia-smi-*.txt",
        "`nvidia-smi -q` of the GPU, its topology, its view of MPS",
        "limits and clocks; who is listed",
    ),
    part("machine/modules.txt", "modules of the kernel whose name has `nvidia`", "what can block a change of MIG mode"),
    part("machine/services.json", "NVIDIA's services, active or not", "what keeps GPUs open by default"),
    part("machine/holders.json", "open device files, services by name, others by number", "who uses this GPU and no other"),
    part(
        "dcgm/*.txt",
        "`dcgmi` version, modules, discovery, profiling groups",
        "is the GPU listed with MIG off; in which format",
    ),
    part(
        "dcgm/dmon-*.txt",
        "`dcgmi dmon` under load, with 1, 3, 5 and 10 fields",
        "which fields run together, and how fresh they are",
    ),
    part(
        "nvml/*.json",
        "raw calls with return codes, process lists as bytes",
        "what this user may not read; 24 or 32 bytes an entry",
    ),
    part("nvml/energy.json", "each value of the energy counter during 3 s", "how often it changes"),
    part("mps/replies.json", "replies of a private MPS daemon, without and with two clients", "their exact form"),
    part("mps/*.log", "its logs", "what healthy ones log, and the limits in force"),
    part("load/*.txt", "output of collo's own load: device, SMs, pace", "the SMs that clients see at 10, 25, 50 and 75 %"),
    part("mig/state.json", "mode and instances at each step, power limits", "does the mode switch with DCGM up; what it resets"),
    part("mig/LAYOUT/*", "instances, DCGM's hierarchy, raw NVML under load", "what a user sees of MIG devices"),
    part(
        "mig/LAYOUT/dmon.txt",
        "`dcgmi dmon` of the GPU and each instance under full load",
        "is SMACT 1 in each, and never above",
    ),
    part(
        "mig/LAYOUT/dmon-other.txt",
        "`dcgmi dmon` of the next GPU meanwhile, if there is one",
        "does a partitioned GPU silence the others",
    ),
];

/// The list as printed and kept.
pub fn listed(mig: bool) -> Vec<String> {
    let wanted = |p: &&Part| mig || !p.file.starts_with("mig/");
    let width = PARTS.iter().map(|p| p.file.len()).max().unwrap_or(0);
    let line = |p: &Part| match p.answers {
        "" => format!("  {:<width$}  {}", p.file, p.holds),
        why => format!("  {:<width$}  {} ({why})", p.file, p.holds),
    };
    PARTS.iter().filter(wanted).map(line).collect()
}

/// How all of it is masked before it is written.
pub const MASKED: &str =
    "hosts, users, paths and command lines of others are replaced, UUIDs and serial numbers hashed, consistently";

pub fn readme() -> String {
    format!("Replies of a GPU and its driver, collected by `collo doctor --collect`.\n{}\n{MASKED}\n", listed(true).join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_collected_is_not_promised() {
        assert!(listed(false).iter().all(|l| !l.contains("mig/")));
        assert_eq!(listed(true).len(), PARTS.len());
        assert!(readme().contains("nvml/energy.json"));
    }
}
