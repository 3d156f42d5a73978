//! What a member leaves behind when it ends: the last lines of its log, and what the kernel says of memory.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use super::memory;
use super::seat::Traces;
use crate::sampler::field;

/// Read the end of a log, and whether the kernel killed for memory since `oom_kills_before`.
pub fn find(log: &Path, oom_kills_before: Option<u64>) -> Traces {
    let lines = last_lines(log, 40);
    // A warning is of something that was got over: torch has one for each way to convolve that does not fit.
    let errors = lines.iter().rev().filter(|line| !line.contains("Warning:"));
    let said = |line: &String| Some((memory::said(line)?, line.clone()));
    let (sure, symptoms): (Vec<_>, Vec<_>) = errors.filter_map(said).partition(|(words, _)| words.sure);
    let out_of_memory = sure.into_iter().next().map(|(words, line)| (words.whose, line));
    let symptom = symptoms.into_iter().next().map(|(_, line)| line);
    let kernel_oom_kill = matches!((oom_kills_before, kernel_oom_kills()), (Some(before), Some(now)) if now > before);
    let from = lines.len().saturating_sub(5);
    Traces { log_tail: lines[from..].to_vec(), out_of_memory, symptom, kernel_oom_kill }
}

/// How often the kernel's OOM killer struck since boot.
pub fn kernel_oom_kills() -> Option<u64> {
    field(&std::fs::read_to_string("/proc/vmstat").ok()?, "\noom_kill ")
}

/// The last non-blank lines of a file, control characters as `\x1b`, each at most 200 characters.
pub fn last_lines(path: &Path, count: usize) -> Vec<String> {
    const END: u64 = 16 << 10;
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = std::fs::File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(END)))?;
        let mut bytes = Vec::new();
        file.take(END).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<String> = text.lines().filter(|l| !l.trim().is_empty()).map(escape).collect();
    lines[lines.len().saturating_sub(count)..].to_vec()
}

fn escape(line: &str) -> String {
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
    use crate::launch::protocol::Whose;

    #[test]
    fn the_end_of_a_log_is_shown_without_its_control_characters() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("member-0.log");
        std::fs::write(&log, "one\n\n\x1b[31mtwo\n  three  \n").unwrap();
        assert_eq!(last_lines(&log, 2), ["\\x1b[31mtwo", "  three"]);
        assert!(find(&log, None).out_of_memory.is_none());
        std::fs::write(&log, "x\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.2 GiB\n").unwrap();
        let (whose, line) = find(&log, None).out_of_memory.unwrap();
        assert_eq!(whose, Whose::Card);
        assert!(line.contains("Tried to allocate 1.2 GiB"));
        assert!(last_lines(&dir.path().join("none"), 5).is_empty());
    }

    #[test]
    fn a_symptom_in_a_log_is_no_proof_and_a_warning_is_not_even_a_symptom() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("member-0.log");
        let cublas = "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`";
        std::fs::write(&log, format!("x\n{cublas}\n")).unwrap();
        let found = find(&log, None);
        assert_eq!((found.out_of_memory, found.symptom.as_deref()), (None, Some(cublas)));
        let warning = "conv.py:456: UserWarning: Plan failed with an OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB";
        std::fs::write(&log, format!("{warning}\nValueError: x\n")).unwrap();
        let found = find(&log, None);
        assert_eq!((found.out_of_memory, found.symptom), (None, None));
    }
}
