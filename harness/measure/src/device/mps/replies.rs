//! Parses the answers of an MPS control daemon. What is not understood is left out, never guessed.

/// The status of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    Active,
    Initializing,
    /// A client's error has affected all clients; new ones are refused until these have exited.
    Fault,
    Other(String),
}

/// One pid per line; a line with anything else is skipped.
pub fn pids(answer: &str) -> Vec<u32> {
    answer.lines().filter_map(|line| line.trim().parse().ok()).filter(|pid| *pid > 0).collect()
}

pub fn status(answer: &str) -> Status {
    match answer.trim() {
        "ACTIVE" => Status::Active,
        "INITIALIZING" => Status::Initializing,
        "FAULT" => Status::Fault,
        other => Status::Other(other.chars().take(80).collect()),
    }
}

/// A number alone on the first line, as `100.0`.
pub fn number(answer: &str) -> Option<f64> {
    answer.lines().next()?.trim().parse().ok().filter(|n: &f64| n.is_finite())
}

/// A size alone on the first line, as `4G`, `3814M` or `3814 MB`; other forms are not guessed.
pub fn size_bytes(answer: &str) -> Option<u64> {
    let text = answer.lines().next()?.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let shift = match text[digits..].trim() {
        "" | "B" => 0,
        "K" | "KB" => 10,
        "M" | "MB" => 20,
        "G" | "GB" => 30,
        _ => return None,
    };
    number.checked_shl(shift).filter(|bytes| bytes >> shift == number)
}

/// The last line of an MPS log that reports an error, without its timestamp: later ones are nearer to the end.
///
/// `User did not send valid credentials` is not one. It occurs in the control.log of healthy daemons, once for each command, and
/// `Accepting connection...` follows (k8s-device-plugin #1614, nvidia-container-toolkit #277, dra-driver-nvidia-gpu #1153).
pub fn trouble(log: &str) -> Option<String> {
    const WORDS: [&str; 5] = ["fatal GPU error", "sticky error", "failed to start", "exited with status", "error"];
    let said = |line: &str| {
        let text = message(line);
        let bad = WORDS.iter().any(|w| text.contains(w)) && !text.contains("exited with status 0");
        // What it says of the clients that an error has hit is no cause.
        let bad = bad && !text.ends_with("have a sticky error set:");
        bad.then(|| text.chars().take(200).collect())
    };
    log.lines().rev().find_map(said)
}

/// A line of a log without its timestamp, `[2026-11-20 18:42:09.123 Server  4711]`.
fn message(line: &str) -> &str {
    line.split_once("] ").map_or(line, |(_, text)| text).trim()
}

/// The limits that a server logged when it started: those in force for its clients, whatever the daemon reports later.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Logged {
    pub active_thread_percent: Option<f64>,
    pub memory_limit_bytes: Option<u64>,
}

/// As in `Active Threads Percentage set to 33.0` and `Device pinned memory limit for device 0 set to 0x1d4c00000`, the last of
/// each (the server.log in bottlerocket-os/bottlerocket #415). Other forms are not guessed.
pub fn logged(log: &str) -> Logged {
    let mut found = Logged::default();
    for line in log.lines().map(message) {
        if let Some(percent) = line.strip_prefix("Active Threads Percentage set to ") {
            found.active_thread_percent = number(percent).or(found.active_thread_percent);
        }
        if let Some(limit) = line.strip_prefix("Device pinned memory limit for device 0 set to 0x") {
            found.memory_limit_bytes = u64::from_str_radix(limit.trim(), 16).ok().or(found.memory_limit_bytes);
        }
    }
    found
}

/// Whether an answer to a command has the expected form; true for any answer to a command that is not parsed.
pub fn understood(command: &str, answer: &str) -> bool {
    let name = command.split_whitespace().next().unwrap_or_default();
    match name {
        "get_server_list" | "get_client_list" => pids(answer).len() == answer.lines().filter(|l| !l.trim().is_empty()).count(),
        "get_server_status" => !matches!(status(answer), Status::Other(_)),
        "get_default_active_thread_percentage" | "get_active_thread_percentage" => number(answer).is_some(),
        "get_default_device_pinned_mem_limit" | "get_device_pinned_mem_limit" => size_bytes(answer).is_some(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_list_of_pids_is_read_and_nothing_else() {
        assert_eq!(pids("4711\n 4712 \n\n"), [4711, 4712]);
        assert_eq!(pids(""), [0; 0]);
        assert_eq!(pids("Server 4711 not found\n0\n-3\n"), [0; 0]);
    }

    #[test]
    fn a_server_is_active_faulty_or_something_else() {
        assert_eq!(status("ACTIVE\n"), Status::Active);
        assert_eq!(status("FAULT"), Status::Fault);
        assert_eq!(status("?"), Status::Other("?".into()));
        assert_eq!(number("50.0\n"), Some(50.0));
        assert_eq!(number("nan"), None);
    }

    #[test]
    fn a_memory_limit_is_read_in_its_units_and_never_guessed() {
        assert_eq!(size_bytes("4G\n"), Some(4 << 30));
        assert_eq!(size_bytes("3814MB"), Some(3814 << 20));
        assert_eq!(size_bytes("0"), Some(0));
        for other in ["", "no limit", "4T", "-1", "99999999999999999999G"] {
            assert_eq!(size_bytes(other), None, "{other}");
        }
    }

    #[test]
    fn the_log_tells_what_went_wrong() {
        let log = "[2026-11-20 18:42:09.123 Server  4711] Accepting connection...\n\
            [2026-11-20 18:42:10.123 Server  4711] Volta MPS: Server is handling a fatal GPU error.\n";
        assert_eq!(trouble(log).as_deref(), Some("Volta MPS: Server is handling a fatal GPU error."));
        assert_eq!(trouble("[x Control 1] Server 9 exited with status 0\n"), None);
    }

    #[test]
    fn a_word_that_healthy_logs_have_is_no_trouble_and_the_last_line_counts() {
        let healthy = "[2024-04-25 08:31:47.650 Control    65] Accepting connection...\n\
            [2024-04-25 08:31:47.650 Control    65] User did not send valid credentials\n\
            [2024-04-25 08:31:47.653 Control    65] Accepting connection...\n";
        assert_eq!(trouble(healthy), None);
        let failed = format!(
            "{healthy}[x Control 65] Server 9 exited with status 1\n[x Control 65] MPS server failed to start\n\
            [x Control 65] User did not send valid credentials\n"
        );
        assert_eq!(trouble(&failed).as_deref(), Some("MPS server failed to start"));
        let fatal = "[x Server 9] Volta MPS: Server is handling a fatal GPU error.\n\
            [x Server 9] The following clients have a sticky error set:\n[x Server 9] 88\n";
        assert_eq!(trouble(fatal).as_deref(), Some("Volta MPS: Server is handling a fatal GPU error."));
    }

    #[test]
    fn a_server_writes_down_the_limits_of_its_clients() {
        let log = "[x Other 65] Initializing server process\n[x Server 65] Active Threads Percentage set to 33.0\n\
            [x Server 65] Device pinned memory limit for device 0 set to 0x1d4c00000\n[x Server 65] Server has started\n";
        let found = logged(log);
        assert_eq!(found, Logged { active_thread_percent: Some(33.0), memory_limit_bytes: Some(0x1d4c_00000) });
        assert_eq!(logged("[x Server 65] Device pinned memory limit for device 0 set to no limit"), Logged::default());
        assert_eq!(logged("[x Server 65] Device pinned memory limit for device 1 set to 0x10"), Logged::default());
    }

    /// Properties of any answer: nothing panics, and no number is made up.
    fn is_sane(text: &str) -> bool {
        let made_up = |pid: &u32| !text.contains(&pid.to_string());
        let size_is_there = size_bytes(text).is_none() || text.trim_start().starts_with(|c: char| c.is_ascii_digit());
        let _ = (status(text), number(text), trouble(text), logged(text));
        // A plus sign and leading zeros are read over.
        size_is_there && (text.contains(['+', '0']) || !pids(text).iter().any(made_up))
    }

    #[test]
    #[ignore = "a million inputs: `just torture`"]
    fn fuzz_what_mps_daemons_answer() {
        const PIECES: [&str; 16] = [
            "ACTIVE",
            "FAULT",
            "4711",
            "0",
            "-3",
            "4G",
            "3814M",
            "MB",
            " ",
            "\n",
            "\t",
            "nan",
            "×",
            "1e9",
            "99999999999999999999",
            ".",
        ];
        let cases = std::env::var("COLLO_TORTURE").ok().and_then(|n| n.parse().ok()).unwrap_or(1_000_000u64);
        // A linear congruential sequence (Knuth's MMIX constants) is random enough to put pieces together.
        let mut state = 42u64;
        let mut next = |below: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % below
        };
        for _ in 0..cases {
            let text: String = (0..next(9)).map(|_| PIECES[next(PIECES.len())]).collect();
            assert!(is_sane(&text), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_answer_breaks_the_reading_and_no_pid_is_made_up(text in "\\PC*(\n\\PC*){0,4}") {
            prop_assert!(is_sane(&text));
        }
    }
}
