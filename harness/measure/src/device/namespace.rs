//! Whether this process sees the pids of the whole machine.

/// The inode of the first pid namespace of a machine, a constant of the kernel (`PROC_PID_INIT_INO`).
const FIRST: &str = "pid:[4026531836]";

/// Whether this is the machine's first pid namespace; none where the kernel does not tell. In any other one, as in a container, the driver
/// lists only processes that have a pid here (from 535.113.01 on), or the pids of the host (before).
pub fn is_first() -> Option<bool> {
    let own = std::fs::read_link("/proc/self/ns/pid").ok()?;
    Some(own.to_string_lossy() == FIRST)
}
