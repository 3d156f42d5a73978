//! Whether this process sees the pids of the whole machine.

/// The inode of the first pid namespace of a machine, a constant of the kernel (`PROC_PID_INIT_INO`).
const FIRST: &str = "pid:[4026531836]";

/// The variable that replaces the kernel's answer, as in sandboxes with a `/proc` of their own: `first` or `inner`.
pub const VARIABLE: &str = "COLLO_PID_NAMESPACE";

/// Whether this is the machine's first pid namespace; `None` if unknown. In any other one, as in a container, the driver lists
/// only processes that have a pid here (from 535.113.01 on), or the pids of the host (before).
pub fn is_first() -> Option<bool> {
    match std::env::var(VARIABLE).as_deref() {
        Ok("first") => return Some(true),
        Ok("inner") => return Some(false),
        _ => {}
    }
    let own = std::fs::read_link("/proc/self/ns/pid").ok()?;
    Some(own.to_string_lossy() == FIRST)
}
