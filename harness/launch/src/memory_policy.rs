//! The NUMA memory policy of processes: set for what is started, and read back.
//!
//! `MPOL_BIND`, not a preference: with memory elsewhere a run would not be what was asked for, and nobody would know. A policy is kept
//! over fork and exec (set_mempolicy(2)).

use std::io::Read;

use nix::errno::Errno;
use nix::libc;

use super::tree;
use collo_text::units::ranges;

/// Bits of the mask that are passed; Linux has 1024 nodes at most (`CONFIG_NODES_SHIFT` is 10 at most).
const MOST_NODES: usize = 1024;
const WORD: usize = libc::c_ulong::BITS as usize;

/// Bind the memory of this process, and so of all that it starts from now on.
pub fn bind(nodes: &[u32]) -> Result<(), String> {
    let mut mask = [0 as libc::c_ulong; MOST_NODES / WORD];
    for node in nodes.iter().map(|node| *node as usize).filter(|node| *node < MOST_NODES) {
        mask[node / WORD] |= 1 << (node % WORD);
    }
    // The kernel takes one bit less than it is told (get_nodes in mm/mempolicy.c; libnuma adds it, too).
    // SAFETY: the mask is as long as is said.
    let answer = unsafe { libc::syscall(libc::SYS_set_mempolicy, libc::MPOL_BIND, mask.as_ptr(), MOST_NODES + 1) };
    if answer == 0 {
        return Ok(());
    }
    let e = Errno::last();
    // Docker's default profile allows the call only with it (https://docs.docker.com/engine/security/seccomp/).
    let hint = if e == Errno::EPERM { "; a container needs CAP_SYS_NICE for it" } else { "" };
    Err(format!("the kernel refuses to bind its memory to NUMA nodes {} by set_mempolicy: {e}{hint}", ranges(nodes)))
}

/// A bound policy as `/proc/PID/numa_maps` shows it: `bind:0-1` (numa(7); mpol_to_str in mm/mempolicy.c).
pub fn text(nodes: &[u32]) -> String {
    format!("bind:{}", ranges(nodes))
}

/// The policy of every thread of these processes; `None` if they differ or cannot be read.
pub fn of(pids: &[u32]) -> Option<String> {
    let mut common: Option<String> = None;
    for (pid, thread) in pids.iter().flat_map(|pid| tree::threads(*pid).into_iter().map(move |thread| (*pid, thread))) {
        let Some(found) = first_of(&format!("/proc/{pid}/task/{thread}/numa_maps")) else {
            // One that has ended meanwhile has no policy.
            if std::path::Path::new(&format!("/proc/{pid}/task/{thread}")).exists() && !tree::is_zombie(pid) {
                return None;
            }
            continue;
        };
        if common.as_ref().is_some_and(|known| *known != found) {
            return None;
        }
        common = Some(found);
    }
    common
}

/// The second field of the first line. The kernel walks the pages of a range when its line is read, so no more is read: the first range
/// is of the program itself, which has no policy of its own, and the thread's is shown.
fn first_of(file: &str) -> Option<String> {
    let mut begin = [0; 128];
    let read = std::fs::File::open(file).ok()?.read(&mut begin).ok()?;
    Some(std::str::from_utf8(&begin[..read]).ok()?.split_whitespace().nth(1)?.to_string())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::supervised::Supervised;
    use crate::supervisor::{Orders, Output, Report};

    /// A program under a supervisor, bound to these nodes; its policy as read while it runs, or why it did not start.
    fn policy(nodes: &[u32]) -> Result<Option<String>, String> {
        let orders = Orders {
            command: vec!["sleep".into(), "60".into()],
            folder: "/".into(),
            env: Default::default(),
            output: Output::Inherited,
            cores: None,
            memory_nodes: Some(nodes.to_vec()),
            adapter: None,
            has_channel: false,
            channels: 0,
            asked_to_end: None,
            client_of: None,
        };
        let supervised = Supervised::start(&orders, None).expect("started");
        supervised.control.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(&supervised.control), &mut line).expect("a report");
        match serde_json::from_str(&line).expect("a report") {
            Report::Started { pid, .. } => Ok(of(&[pid])),
            Report::NotStarted { reason, .. } => Err(reason),
            Report::Ended { .. } => panic!("it sleeps"),
        }
    }

    #[test]
    fn what_is_bound_is_read_back_of_the_program_and_what_the_kernel_refuses_is_named() {
        if of(&[std::process::id()]).is_none() || policy(&[0]).is_err_and(|why| why.contains("EPERM")) {
            eprintln!("not tested: this kernel or container has no NUMA policies");
            return;
        }
        assert_eq!(policy(&[0]), Ok(Some("bind:0".into())));
        assert_eq!(text(&[0, 1, 3]), "bind:0-1,3");
        let refused = policy(&[1000]).expect_err("no machine has so many");
        assert!(
            refused.starts_with("the kernel refuses to bind its memory to NUMA nodes 1000 by set_mempolicy: EINVAL"),
            "{refused}"
        );
    }
}
