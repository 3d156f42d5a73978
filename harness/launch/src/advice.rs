//! What the output of a script shows about why it cannot be measured as it is, with the way out.

/// A failure that scripts have as members of a group and not in a shell, and what to do about it.
struct KnownFailure {
    /// Parts of lines that show it.
    marks: &'static [&'static str],
    advice: &'static str,
}

const KNOWN: &[KnownFailure] = &[
    // `os.popen("stty size")` of utils.py in kuangliu/pytorch-cifar; `os.get_terminal_size()` of Python 3.11 raises the second.
    KnownFailure {
        marks: &["stty size", "[Errno 25] Inappropriate ioctl for device"],
        advice: "it asks for the size of its terminal, and a member has none; the command `script -qefc 'python train.py' /dev/null` gives it one",
    },
    // `EOFError` of `input()` in Python 3.11.
    KnownFailure {
        marks: &["EOF when reading a line"],
        advice: "it waits for something to be typed, and a member has no input: set it by an option or a variable of the environment",
    },
    // `UsageError` of wandb 0.31.0, sdk/lib/wbauth/authenticate.py.
    KnownFailure {
        marks: &["No API key configured"],
        advice: "wandb needs an account; with `WANDB_MODE=offline` before the command, or in `[variables]` of the `workload.toml`, its records \
                 stay on this machine",
    },
    // EADDRINUSE as torch.distributed 2.14 and Python 3.11 print it; rank 0 takes a free port for `MASTER_PORT=0`, which was tried.
    KnownFailure {
        marks: &["EADDRINUSE", "Address already in use", "address already in use"],
        advice: "it needs a port that is in use, perhaps by another member: let each take a free one (`torchrun --standalone`, \
                 `MASTER_PORT=0`, port 0)",
    },
    // DataLoader's message, in libtorch_python of torch 2.14.
    KnownFailure {
        marks: &["raise your shared memory limit", "insufficient shared memory"],
        advice: "`/dev/shm` is too small for the workers of all members: enlarge it (`docker run --shm-size=8g`), or use fewer workers",
    },
    KnownFailure {
        marks: &["Too many open files"],
        advice: "`ulimit -n` limits the open files of each process: raise it, or use fewer workers",
    },
];

/// What to do about a script that failed after printing these lines, if one of them shows a known failure.
pub fn advice_for_failure<'a>(lines: impl IntoIterator<Item = &'a str>) -> Option<&'static str> {
    let lines: Vec<&str> = lines.into_iter().collect();
    let is_shown = |known: &&KnownFailure| known.marks.iter().any(|mark| lines.iter().any(|line| line.contains(mark)));
    KNOWN.iter().find(is_shown).map(|known| known.advice)
}

/// Why output in which no progress was found has a bar all the same, and what to do about it. Where the output is no terminal, rich prints
/// what it draws only when it stops (`Live.refresh` in rich/live.py, rich 15.0.0).
pub fn bar_without_terminal<'a>(lines: impl IntoIterator<Item = &'a str>) -> Option<&'static str> {
    lines.into_iter().any(|line| line.contains("━━")).then_some(
        "its bar is one of `rich`, which is printed once, at its end, where there is no terminal: print a line at the end of each epoch; \
         with Lightning, `callbacks=[TQDMProgressBar()]` prints such lines, and `collo_lightning.Collo()` speaks the protocol",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find_progress::{OutputLine, find_progress};

    #[test]
    fn a_bar_that_is_printed_once_has_its_reason() {
        let once = "Epoch 5/5  ━━━━━━━━━━━━━━━━━━━━━━━━━━━ 3000/3000 0:00:02 • 0:00:00 1211.77it/s";
        let line = |at_s: u64, text: &str| OutputLine { at_ns: at_s * 1_000_000_000, text: text.into() };
        assert!(find_progress(&[line(1, "loading"), line(9, once)], 0).is_empty());
        assert!(bar_without_terminal(["loading", once]).is_some_and(|why| why.contains("`rich`")));
        assert_eq!(bar_without_terminal(["loading", "done"]), None);
    }

    #[test]
    fn a_failure_that_only_members_have_has_its_way_out() {
        let of = |line: &str| advice_for_failure(["Traceback (most recent call last):", line]);
        let known = [
            ("    _, term_width = os.popen('stty size', 'r').read().split()", "script -qefc"),
            ("OSError: [Errno 25] Inappropriate ioctl for device", "script -qefc"),
            ("EOFError: EOF when reading a line", "no input"),
            ("wandb.errors.errors.UsageError: No API key configured. Use `wandb login` to log in.", "WANDB_MODE=offline"),
            (
                "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29577, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use",
                "--standalone",
            ),
            ("OSError: [Errno 98] Address already in use", "port"),
            ("out of shared memory. Please try to raise your shared memory limit.", "--shm-size"),
            ("OSError: [Errno 24] Too many open files: '/tmp/a'", "ulimit -n"),
        ];
        for (line, way_out) in known {
            assert!(of(line).is_some_and(|advice| advice.contains(way_out)), "{line}: {:?}", of(line));
        }
        assert_eq!(of("KeyError: 'O'"), None);
    }
}
