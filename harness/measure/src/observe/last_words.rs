//! The final error of a failed process, from the end of its log and nowhere else. Pure.
//!
//! In: the end of a log. Out: the line with the uncaught exception, or the error with which a program gave up. Earlier errors
//! that a script recovered from are not the reason for its end.

use std::sync::LazyLock;

use regex::Regex;

/// An uncaught exception may be followed by a few lines of cleanup code.
const TIDYING: usize = 5;
/// "The most recent call last" is how Python begins the trace of an exception: https://docs.python.org/3/library/traceback.html
const TRACEBACK: &str = "Traceback (most recent call last):";

/// The prefix that launchers of several processes put before each line: `[rank0]: `.
static PREFIX: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\[[\w-]+\]: ?").ok());
/// `ValueError: x`, `torch.OutOfMemoryError`: the name of an exception, and its message.
static EXCEPTION: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^(?:\w+\.)*\w+(?::|$)").ok());
static NAMED_SO: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^(?:\w+\.)*\w*(?:Error|Exception|Failed)(?::|$)").ok());
/// `train.cu:33: CUDA error: out of memory`.
static ERROR: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?i:\berror\b)|CUDA_ERROR_|cudaError|CUDNN_STATUS_").ok());

fn is(pattern: &Option<Regex>, line: &str) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(line))
}

/// The final error in the non-blank lines at the end of a log.
pub fn last_words(lines: &[&str]) -> Option<String> {
    let lines: Vec<&str> = lines.iter().map(|line| without_prefix(line).trim_end()).collect();
    let traced = lines.iter().rposition(|line| line.ends_with(TRACEBACK)).and_then(|at| {
        let behind = lines.get(at + 1..)?;
        let named = behind.iter().position(|line| !line.starts_with(char::is_whitespace))?;
        let (&line, rest) = behind[named..].split_first()?;
        // `BackendCompilerFailed: backend='inductor' raised:` and then what was raised.
        let (words, rest) = match rest.split_first() {
            Some((more, rest)) if line.ends_with(':') => (format!("{line} {}", more.trim_start()), rest),
            _ => (line.to_string(), rest),
        };
        (is(&EXCEPTION, line) && rest.len() <= TIDYING).then_some(words)
    });
    traced.or_else(|| {
        // A shell adds how its child ended.
        let last = lines.iter().rposition(|line| !line.starts_with("Aborted"))?;
        let line = lines[last];
        // `terminate called after throwing an instance of 'std::bad_alloc'`, `  what():  std::bad_alloc`: libstdc++, vterminate.cc
        if let Some(what) = line.trim_start().strip_prefix("what():") {
            let thrown = lines[..last].last().filter(|line| line.starts_with("terminate called"))?;
            return Some(format!("{thrown}:{what}"));
        }
        // A warning is of something that was got over: torch has one for each way to convolve that does not fit.
        let gave_up = is(&NAMED_SO, line) || line.starts_with("terminate called") || is(&ERROR, line);
        (gave_up && !line.contains("Warning:")).then(|| line.to_string())
    })
}

fn without_prefix(line: &str) -> &str {
    let end = PREFIX.as_ref().and_then(|prefix| prefix.find(line)).map_or(0, |found| found.end());
    &line[end..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(log: &str) -> Option<String> {
        last_words(&log.lines().filter(|line| !line.trim().is_empty()).collect::<Vec<_>>())
    }

    const OOM: &str = "Traceback (most recent call last):\n  File \"train.py\", line 3, in step\n    loss.backward()\n\
                       torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.\n";

    #[test]
    fn an_exception_that_nobody_caught_is_named_by_the_line_behind_its_trace() {
        let oom = Some("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.".to_string());
        assert_eq!(of(&format!("epoch 1\n{OOM}")), oom);
        assert_eq!(of(&format!("{OOM}wandb: View run\nwandb: Synced\n")), oom, "who tidies up speaks later");
        assert_eq!(of(&OOM.lines().map(|line| format!("[rank0]: {line}\n")).collect::<String>()), oom);
        assert_eq!(of(&format!(" 50%|###   | 7/14 [00:00<00:00]{OOM}")), oom, "a bar has no end of line");
        let compiler = "Traceback (most recent call last):\n  File \"x.py\", line 1\n\
                        torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\nOutOfMemoryError: CUDA out of memory.\n";
        let raised = "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised: OutOfMemoryError: CUDA out of memory.";
        assert_eq!(of(compiler).as_deref(), Some(raised));
        assert_eq!(
            of("Traceback (most recent call last):\n  File \"x.py\", line 1\nMemoryError\n").as_deref(),
            Some("MemoryError")
        );
    }

    #[test]
    fn what_was_got_over_is_not_the_end() {
        let went_on = format!("{OOM}retrying with 64\n{}", "epoch done\n".repeat(6));
        assert_eq!(of(&went_on), None);
        let then = format!(
            "{OOM}\nDuring handling of the above exception, another exception occurred:\n\n\
                            Traceback (most recent call last):\n  File \"train.py\", line 9, in <module>\nKeyError: 'half'\n"
        );
        assert_eq!(of(&then).as_deref(), Some("KeyError: 'half'"));
        assert_eq!(of("CUDA out of memory, retrying\nepoch 1 done\n"), None);
        assert_eq!(of("All good: no MemoryError happened\n"), None);
        assert_eq!(of("x.py:4: UserWarning: Plan failed with an OutOfMemoryError: CUDA out of memory\n"), None);
        assert_eq!(of(""), None);
    }

    #[test]
    fn a_program_that_gives_up_says_so_in_its_last_line() {
        for line in [
            "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB",
            "train.cu:33: CUDA error: out of memory",
            "cuCtxCreate failed: CUDA_ERROR_OUT_OF_MEMORY",
        ] {
            assert_eq!(of(&format!("epoch 1\n{line}\n")).as_deref(), Some(line));
            assert_eq!(of(&format!("{line}\nepoch 2\n")), None);
        }
        let thrown =
            "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\nAborted (core dumped)\n";
        assert_eq!(
            of(thrown).as_deref(),
            Some("terminate called after throwing an instance of 'std::bad_alloc':  std::bad_alloc")
        );
    }
}
