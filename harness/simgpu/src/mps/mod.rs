//! NVIDIA's Multi-Process Service: a control daemon per pipe directory, a server that it starts with its first client, and clients.
//!
//! In: `CUDA_MPS_PIPE_DIRECTORY` and `CUDA_MPS_LOG_DIRECTORY`. Out: the daemon's files there, and its answers.

use std::path::PathBuf;

pub mod client;
mod commands;
pub mod control;
mod daemon;
mod dialect;
mod journal;
mod server;

/// A second socket of the daemon, which has the longest name in its folder.
const PRIVILEGED: &str = "control_privileged";
/// The longest path of it with which the daemons of 535.309.01, 550.163.01 and 555.58.02 start: their folder has 87 bytes then.
const LONGEST_SOCKET_PATH: usize = 106;
/// What the daemon is called, and its pid file.
pub const CONTROL: &str = "nvidia-cuda-mps-control";
pub const SERVER: &str = "nvidia-cuda-mps-server";

/// The pipe directory of this process.
pub fn pipe_directory() -> PathBuf {
    named("CUDA_MPS_PIPE_DIRECTORY").unwrap_or_else(|| crate::sim::folder().join("nvidia-mps"))
}

/// The log directory of this process.
pub fn log_directory() -> PathBuf {
    named("CUDA_MPS_LOG_DIRECTORY").unwrap_or_else(|| crate::sim::folder().join("nvidia-mps-log"))
}

/// The daemon's socket.
pub fn socket() -> PathBuf {
    pipe_directory().join("control")
}

/// Whether the daemon's sockets fit into its folder.
pub fn fits() -> bool {
    pipe_directory().join(PRIVILEGED).as_os_str().len() <= LONGEST_SOCKET_PATH
}

fn named(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|v| !v.is_empty()).map(PathBuf::from)
}

/// What a process is called.
fn system_name(pid: u32) -> String {
    crate::nvml::process_name(pid).unwrap_or_default()
}

/// `2G`, `512M`, `100K`, `1048576`.
pub fn size_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let (number, scale) = match text.char_indices().last()? {
        (at, 'G' | 'g') => (&text[..at], 1 << 30),
        (at, 'M' | 'm') => (&text[..at], 1 << 20),
        (at, 'K' | 'k') => (&text[..at], 1 << 10),
        _ => (text, 1),
    };
    number.trim().parse::<u64>().ok().map(|n| n * scale)
}

/// The limit for a device in `0=1G,1=512M`.
pub fn limit_of(list: &str, device: usize) -> Option<u64> {
    let items = list.split(',').filter_map(|item| item.split_once('='));
    items.filter(|(at, _)| at.trim().parse() == Ok(device)).find_map(|(_, size)| size_bytes(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_per_device() {
        assert_eq!(limit_of("0=1G,1=512M", 1), Some(512 << 20));
        assert_eq!(limit_of("0=2G", 1), None);
        assert_eq!(size_bytes("4096M"), Some(4 << 30));
        assert_eq!(size_bytes("x"), None);
    }
}
