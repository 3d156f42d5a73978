//! The traces of an ended member: the last lines of its log, and the kernel's OOM kills.

use std::path::Path;

use super::last_words::last_words;
use super::memory;
use super::seat::Traces;
use collo_sample::field;

/// Read the end of a log, and whether the kernel killed for memory since `oom_kills_before`. `thread`: the member that it is read for,
/// if it is the log of a process of several: its lines are read, and those of the process, which have no name.
pub fn find(log: &Path, thread: Option<usize>, oom_kills_before: Option<u64>) -> Traces {
    let text = end_of(log);
    let lines = text.lines().filter_map(|line| match thread {
        None => Some(line),
        Some(thread) => of_thread(line, thread),
    });
    let lines: Vec<&str> = lines.filter(|line| !line.trim().is_empty()).collect();
    let words = last_words(&lines);
    let said = words.and_then(|words| Some((memory::said(&words)?, shown(&words))));
    let (out_of_memory, symptom) = match said {
        Some((said, words)) if said.sure => (Some((said.whose, words)), None),
        Some((_, words)) => (None, Some(words)),
        None => (None, None),
    };
    let kernel_oom_kill = matches!((oom_kills_before, kernel_oom_kills()), (Some(before), Some(now)) if now > before);
    Traces { log_tail: last(&lines), out_of_memory, symptom, kernel_oom_kill }
}

/// A line without the name that `workloads/collo_host.py` puts before it; `None` if it is another member's.
fn of_thread(line: &str, thread: usize) -> Option<&str> {
    let named = line.strip_prefix("member ").and_then(|rest| rest.split_once(": "));
    let Some((Ok(number), said)) = named.map(|(number, said)| (number.parse::<usize>(), said)) else { return Some(line) };
    (number == thread).then_some(said)
}

/// The last lines of a log.
pub fn tail(log: &Path) -> Vec<String> {
    last(&end_of(log).lines().filter(|line| !line.trim().is_empty()).collect::<Vec<_>>())
}

fn last(lines: &[&str]) -> Vec<String> {
    lines[lines.len().saturating_sub(5)..].iter().map(|line| shown(line)).collect()
}

/// Number of the kernel's OOM kills since boot.
pub fn kernel_oom_kills() -> Option<u64> {
    field(&std::fs::read_to_string("/proc/vmstat").ok()?, "\noom_kill ")
}

/// The end of a file, however large it is; empty if it is not a regular file: a member may have put something else in its place.
fn end_of(path: &Path) -> String {
    String::from_utf8_lossy(&collo_text::read_end(path, 64 << 10).unwrap_or_default()).into_owned()
}

/// A line as it is stored and shown: control characters as `\x1b`, at most 200 characters.
fn shown(line: &str) -> String {
    let mut shown = String::new();
    for c in line.trim_end().chars().take(200) {
        match c {
            '\t' => shown.push(' '),
            c if c.is_control() => shown.push_str(&format!("\\x{:02x}", c as u32)),
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use collo_launch::protocol::Whose;

    #[test]
    fn the_end_of_a_log_is_shown_without_its_control_characters() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("member-0.log");
        std::fs::write(&log, "one\n\n\x1b[31mtwo\n  three  \n").unwrap();
        let found = find(&log, None, None);
        assert_eq!((found.log_tail, found.out_of_memory), (vec!["one".into(), "\\x1b[31mtwo".into(), "  three".into()], None));
        std::fs::write(&log, "x\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.2 GiB\n").unwrap();
        let (whose, line) = find(&log, None, None).out_of_memory.unwrap();
        assert_eq!(whose, Whose::Card);
        assert!(line.contains("Tried to allocate 1.2 GiB"));
        assert!(find(&dir.path().join("none"), None, None).log_tail.is_empty());
    }

    #[test]
    fn in_the_log_of_a_process_of_several_a_member_is_judged_by_its_own_lines() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("process.log");
        let oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.2 GiB";
        let lines = ["Traceback (most recent call last):", "  File \"train.py\", line 3, in step", oom];
        let said: String = lines.iter().map(|line| format!("member 1: {line}\nmember 0: epoch 7\nmember 10: {line}\n")).collect();
        std::fs::write(&log, format!("libgomp: a word of the process\n{said}")).unwrap();
        let own = find(&log, Some(1), None);
        assert_eq!(own.out_of_memory, Some((Whose::Card, oom.to_string())));
        assert_eq!(own.log_tail[0], "libgomp: a word of the process");
        assert_eq!(find(&log, Some(0), None).out_of_memory, None);
    }

    #[test]
    fn a_symptom_in_a_log_is_no_proof_and_a_warning_is_not_even_a_symptom() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("member-0.log");
        let cublas = "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`";
        std::fs::write(&log, format!("x\n{cublas}\n")).unwrap();
        let found = find(&log, None, None);
        assert_eq!((found.out_of_memory, found.symptom.as_deref()), (None, Some(cublas)));
        let warning =
            "conv.py:456: UserWarning: Plan failed with an OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB";
        for log_of in [format!("{warning}\nValueError: x\n"), format!("ValueError: x\n{warning}\n")] {
            std::fs::write(&log, log_of).unwrap();
            let found = find(&log, None, None);
            assert_eq!((found.out_of_memory, found.symptom), (None, None));
        }
    }

    #[test]
    fn memory_that_is_spoken_of_but_did_not_run_out_is_no_reason() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("member-0.log");
        for harmless in [
            "All good: no MemoryError happened\n",
            "CUDA out of memory. Retrying with a batch of 64\nTraceback (most recent call last):\n  File \"x\", line 1\nValueError: half\n",
            "Traceback (most recent call last):\n  File \"x\", line 1\nAssertionError: expected a MemoryError here\n",
        ] {
            std::fs::write(&log, harmless).unwrap();
            let found = find(&log, None, None);
            assert_eq!((found.out_of_memory, found.symptom), (None, None), "{harmless}");
        }
    }

    #[test]
    fn of_a_log_only_the_end_is_read_and_of_what_is_no_file_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("member-0.log");
        let file = std::fs::File::create(&log).unwrap();
        file.set_len(1 << 40).unwrap(); // a hole of a tebibyte
        drop(file);
        use std::io::Write;
        let mut file = std::fs::File::options().append(true).open(&log).unwrap();
        file.write_all(b"\nMemoryError: full\n").unwrap();
        assert_eq!(find(&log, None, None).out_of_memory, Some((Whose::Host, "MemoryError: full".into())));
        let pipe = dir.path().join("member-1.log");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(find(&pipe, None, None).log_tail.is_empty());
    }
}
