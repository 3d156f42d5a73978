//! The processor of this machine, as the kernel describes it.

/// The line of `/proc/cpuinfo` with the name of its model.
pub const CPU_MODEL: &str = "model name";

/// The model of this machine's processor, as the kernel names it.
pub fn cpu_model() -> Option<String> {
    cpu_line(&fs_err::read_to_string("/proc/cpuinfo").ok()?, CPU_MODEL)
}

/// The value of the first line that begins with this name.
pub fn cpu_line(cpuinfo: &str, name: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|l| l.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_string())
}
