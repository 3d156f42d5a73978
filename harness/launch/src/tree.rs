//! The processes below a process, and how to end them all: nothing that a member started may outlive its run.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, SysconfVar, sysconf};

use super::process;

/// All descendants of `root`, parents first, without `root` itself. Threads count as their process.
pub fn descendants(root: u32) -> Vec<u32> {
    match through_children_files(root) {
        Some(found) => found,
        None => through_all_processes(root),
    }
}

/// By `/proc/PID/task/TID/children`, which is cheap but not in every kernel; `None` if missing.
fn through_children_files(root: u32) -> Option<Vec<u32>> {
    let mut found = Vec::new();
    let mut queue = vec![root];
    let mut any = false;
    while let Some(pid) = queue.pop() {
        let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { continue };
        for task in tasks.flatten() {
            let Ok(text) = std::fs::read_to_string(task.path().join("children")) else { continue };
            any = true;
            for child in text.split_whitespace().filter_map(|c| c.parse().ok()) {
                found.push(child);
                queue.push(child);
            }
        }
    }
    any.then_some(found)
}

fn through_all_processes(root: u32) -> Vec<u32> {
    let mut children = HashMap::<u32, Vec<u32>>::new();
    for pid in process::all() {
        if let Some(parent) = parent_of(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut queue = vec![root];
    while let Some(pid) = queue.pop() {
        for &child in children.get(&pid).into_iter().flatten() {
            found.push(child);
            queue.push(child);
        }
    }
    found
}

/// The parent of a process.
pub fn parent_of(pid: u32) -> Option<u32> {
    process::stat(pid).map(|stat| stat.parent)
}

/// CPU time of these processes, nanoseconds: that of their threads, and of their children that have ended, such as the workers of a data
/// loader that starts new ones for each epoch; `None` if the kernel reports it for none of them.
pub fn cpu_time_ns(pids: &[u32]) -> Option<u64> {
    let tick_ns = sysconf(SysconfVar::CLK_TCK).ok().flatten().map(|per_second| 1_000_000_000 / per_second as u64);
    let ticks = |pid| process::stat(pid).zip(tick_ns);
    let of_one = |pid: u32| {
        // `on-CPU ns, waiting ns, timeslices`: finer than the ticks of `stat`, in which a member that sleeps uses nothing, but of living
        // threads alone.
        let of_thread = |tid: i32| thread_cpu_time_ns(pid, tid as u32);
        let fine = threads(pid).into_iter().filter_map(of_thread).reduce(|sum, ns| sum + ns);
        let coarse = ticks(pid).map(|(stat, tick_ns)| stat.cpu_ticks * tick_ns);
        let reaped = ticks(pid).map_or(0, |(stat, tick_ns)| stat.reaped_ticks * tick_ns);
        fine.max(coarse).map(|own| own + reaped)
    };
    pids.iter().filter_map(|&pid| of_one(pid)).reduce(|sum, ns| sum + ns)
}

/// CPU time of a process, its ended threads too, seconds: coarser than [`cpu_time_ns`].
pub fn cpu_time_s(pid: u32) -> Option<f64> {
    let per_second = sysconf(SysconfVar::CLK_TCK).ok()??;
    Some(process::stat(pid)?.cpu_ticks as f64 / per_second as f64)
}

/// CPU time of one thread of a process, nanoseconds; `None` if it is not one, or the kernel does not report it.
pub fn thread_cpu_time_ns(pid: u32, tid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// The threads of a process.
pub fn threads(pid: u32) -> Vec<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks.filter_map(|t| t.file_name().to_str()?.parse().ok()).collect()
}

/// The logical processors that every thread of these processes may run on; `None` if they differ or cannot be read.
pub fn affinity(pids: &[u32]) -> Option<Vec<u32>> {
    let mut common: Option<Vec<u32>> = None;
    for tid in pids.iter().flat_map(|pid| threads(*pid)) {
        let set = match nix::sched::sched_getaffinity(Pid::from_raw(tid)) {
            Ok(set) => set,
            Err(Errno::ESRCH) => continue,
            Err(_) => return None,
        };
        let cores: Vec<u32> = (0..nix::sched::CpuSet::count()).filter(|&c| set.is_set(c) == Ok(true)).map(|c| c as u32).collect();
        if common.as_ref().is_some_and(|known| *known != cores) {
            return None;
        }
        common = Some(cores);
    }
    common
}

/// The short name of a process in the kernel.
pub fn name_of(pid: u32) -> Option<String> {
    Some(std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim_end().to_string())
}

/// Send SIGKILL to every live descendant of `root`, once. Returns their pids.
pub fn kill_descendants(root: u32) -> Vec<u32> {
    let mut hit = descendants(root);
    // ESRCH means that it ended in between, which is what we want.
    hit.retain(|&pid| !is_zombie(pid) && kill(Pid::from_raw(pid as i32), Signal::SIGKILL).is_ok());
    hit
}

/// Kill every descendant of this process and reap them, repeatedly until none is left or `patience` has passed. Descendants that
/// forked meanwhile are killed in the next round.
pub fn end_descendants(patience: Duration) {
    let deadline = Instant::now() + patience;
    loop {
        reap();
        let hit = kill_descendants(std::process::id());
        if (hit.is_empty() && !has_children()) || Instant::now() > deadline {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Collect the exit status of every child that has ended.
fn reap() {
    while let Ok(status) = waitpid(None, Some(WaitPidFlag::WNOHANG)) {
        if status == WaitStatus::StillAlive {
            break;
        }
    }
}

fn has_children() -> bool {
    !matches!(waitpid(None, Some(WaitPidFlag::WNOHANG)), Err(Errno::ECHILD))
}

/// True for a process that has ended and waits to be reaped.
pub fn is_zombie(pid: u32) -> bool {
    process::stat(pid).is_some_and(|stat| stat.is_over())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_process_that_is_not_there_is_no_zero() {
        assert!(cpu_time_s(std::process::id()).is_some_and(|s| s >= 0.0));
        assert_eq!(cpu_time_s(u32::MAX >> 1), None);
    }

    #[test]
    fn the_time_of_children_that_have_ended_is_not_lost() {
        let script = "(i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done); echo ended; read x";
        let mut command = std::process::Command::new("sh");
        let pipes = || std::process::Stdio::piped();
        let mut shell = command.args(["-c", script]).stdin(pipes()).stdout(pipes()).spawn().unwrap();
        let mut line = String::new();
        let out = shell.stdout.as_mut().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).unwrap();
        let used_ns = cpu_time_ns(&[shell.id()]).unwrap();
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert_eq!(line, "ended\n");
        assert!(used_ns >= 30_000_000, "the loop of the child that has ended took longer than {used_ns} ns");
        assert_eq!(cpu_time_ns(&[u32::MAX >> 1]), None);
    }

    #[test]
    fn both_ways_of_looking_see_a_grandchild() {
        let mut child = std::process::Command::new("sh").args(["-c", "sleep 30 & wait"]).spawn().unwrap();
        let mut seen = Vec::new();
        for _ in 0..200 {
            seen = descendants(child.id());
            if !seen.is_empty() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(seen.len(), 1, "the sleep below the shell");
        assert_eq!(through_all_processes(child.id()), seen);
        assert_eq!(parent_of(seen[0]), Some(child.id()));
        for pid in seen {
            kill(Pid::from_raw(pid as i32), Signal::SIGKILL).unwrap();
        }
        child.wait().unwrap();
    }
}
