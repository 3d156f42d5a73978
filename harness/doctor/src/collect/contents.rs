//! The contents, printed before anything is collected: every file, what is in it, and which question it answers.

/// A file of the bundle, or several of a kind: what it has, and which question it answers. Those of `mig/` only where `--mig` is given.
pub static PARTS: [(&str, &str, &str); 17] = [
    ("README.txt", "this list", ""),
    ("steps.json", "every command, how it ended, how long it took, its stderr", "what was unavailable, and why"),
    ("machine/nvidia-smi-*.txt", "`nvidia-smi -q` of the GPU, its topology, its view of MPS", "limits and clocks; who is listed"),
    ("machine/modules.txt", "modules of the kernel whose name has `nvidia`", "what can block a change of MIG mode"),
    ("machine/services.json", "NVIDIA's services, active or not", "what keeps GPUs open by default"),
    ("machine/holders.json", "open device files, services by name, others by number", "who uses this GPU and no other"),
    ("dcgm/*.txt", "`dcgmi` version, modules, discovery, profiling groups", "is the GPU listed with MIG off; in which format"),
    (
        "dcgm/dmon-*.txt",
        "`dcgmi dmon` under load, with 1, 3, 5 and 10 fields",
        "which fields run together, and how fresh they are",
    ),
    (
        "nvml/*.json",
        "raw calls with return codes, process lists as bytes",
        "what this user may not read; 24 or 32 bytes an entry",
    ),
    ("nvml/energy.json", "each value of the energy counter during 3 s", "how often it changes"),
    ("mps/replies.json", "replies of a private MPS daemon, without and with two clients", "their exact form"),
    ("mps/*.log", "its logs", "what healthy ones log, and the limits in force"),
    ("load/*.txt", "output of collo's own load: device, SMs, pace", "the SMs that clients see at 10, 25, 50 and 75 %"),
    ("mig/state.json", "mode and instances at each step, power limits", "does the mode switch with DCGM up; what it resets"),
    ("mig/LAYOUT/*", "instances, DCGM's hierarchy, raw NVML under load", "what a user sees of MIG devices"),
    ("mig/LAYOUT/dmon.txt", "`dcgmi dmon` of the GPU and each instance under full load", "is SMACT 1 in each, and never above"),
    (
        "mig/LAYOUT/dmon-other.txt",
        "`dcgmi dmon` of the next GPU meanwhile, if there is one",
        "does a partitioned GPU silence the others",
    ),
];

/// The list as printed and kept.
pub fn listed(mig: bool) -> Vec<String> {
    let width = PARTS.iter().map(|(file, ..)| file.len()).max().unwrap_or(0);
    let line = |(file, has, answers): &(&str, &str, &str)| match *answers {
        "" => format!("  {file:<width$}  {has}"),
        why => format!("  {file:<width$}  {has} ({why})"),
    };
    PARTS.iter().filter(|(file, ..)| mig || !file.starts_with("mig/")).map(line).collect()
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
