//! Reading the answers of an MPS control daemon. What is not understood is left out, never guessed.

/// How a server stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    Active,
    Initializing,
    /// A client's error has hit all clients; new ones are refused until these are gone.
    Fault,
    Other(String),
}

/// One pid a line; anything else on a line makes it none.
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

/// A size alone on the first line, as `4G`, `3814M` or `3814 MB`; what has another form is not guessed at.
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

/// A line of the daemon's logs that says what went wrong, without its stamp.
pub fn trouble(log: &str) -> Option<String> {
    const WORDS: [&str; 6] =
        ["fatal GPU error", "sticky error", "valid credentials", "failed to start", "exited with status", "error"];
    let said = |line: &str| {
        let text = line.split_once("] ").map_or(line, |(_, text)| text).trim();
        let bad = WORDS.iter().any(|w| text.contains(w)) && !text.contains("exited with status 0");
        bad.then(|| text.chars().take(200).collect())
    };
    log.lines().find_map(said)
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

    /// What holds for any answer: nothing breaks, and no number is made up.
    fn is_sane(text: &str) -> bool {
        let made_up = |pid: &u32| !text.contains(&pid.to_string());
        let size_is_there = size_bytes(text).is_none() || text.trim_start().starts_with(|c: char| c.is_ascii_digit());
        let _ = (status(text), number(text), trouble(text));
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
