//! Parses the answers and logs of an MPS control daemon. What is not understood is left out, never guessed.
//!
//! The witnesses are NVIDIA's own programs of drivers 535.309.01, 550.163.01 and 555.58.02, run without a GPU (`tests/vendor.rs` of this
//! package and of `simgpu` run them again), the format strings of their libcuda, and for what a server logs on a GPU of driver 580
//! bottlerocket-os/bottlerocket-kernel-kit #415.

use collo_plan::sharing::Limits;
use std::collections::BTreeMap;

/// The status of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    Active,
    Initializing,
    /// A client's error has affected all clients; new ones are refused until these have exited.
    Fault,
    /// The driver's MPS has no such command, as that of 535.
    Unsupported,
    Other(String),
}

/// How the front end answers a command that the daemon does not know. Its exit status is 0, as of every answer.
const UNKNOWN_COMMAND: &str = "Unknown command ";

/// One pid per line; a line with anything else is skipped.
pub fn pids(answer: &str) -> Vec<u32> {
    answer.lines().filter_map(|line| line.trim().parse().ok()).filter(|pid| *pid > 0).collect()
}

/// A list of pids and nothing else: an error such as `Server 123 not found` comes with exit status 0.
pub fn only_pids(answer: &str) -> Option<Vec<u32>> {
    let pids = pids(answer);
    (pids.len() == answer.lines().filter(|line| !line.trim().is_empty()).count()).then_some(pids)
}

pub fn status(answer: &str) -> Status {
    match answer.trim() {
        "ACTIVE" => Status::Active,
        "INITIALIZING" => Status::Initializing,
        "FAULT" => Status::Fault,
        other if other.starts_with(UNKNOWN_COMMAND) => Status::Unsupported,
        other => Status::Other(other.chars().take(80).collect()),
    }
}

/// A number alone on the first line, as `100.0`.
pub fn number(answer: &str) -> Option<f64> {
    answer.lines().next()?.trim().parse().ok().filter(|n: &f64| n.is_finite())
}

/// A memory limit as a daemon reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportedLimit {
    pub bytes: u64,
    /// It was reported in GiB, with the rest cut off: a limit of 3814 MiB reads `3G`.
    pub whole_gib: bool,
}

impl ReportedLimit {
    /// Whether this may be the report of that limit.
    pub fn agrees_with(&self, asked_bytes: u64) -> bool {
        let shift = if self.whole_gib { 30 } else { 20 };
        self.bytes >> shift == asked_bytes >> shift
    }
}

/// A size alone on the first line, as `4G`, `512M` or `3814 MB`; other forms are not guessed. Empty where no limit was set by a command,
/// also where one was set by the daemon's environment.
pub fn reported_limit(answer: &str) -> Option<ReportedLimit> {
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
    let bytes = number.checked_shl(shift).filter(|bytes| bytes >> shift == number)?;
    Some(ReportedLimit { bytes, whole_gib: shift == 30 })
}

/// The line of an MPS log that is nearest to the cause of an error, without its timestamp: one that names a client at fault, else one that
/// gives a reason, else one that gives a consequence; of equal ones the last.
///
/// `User did not send valid credentials` is not one. It occurs in the logs of healthy daemons, once for each command, and
/// `Accepting connection...` precedes it (k8s-device-plugin #1614, nvidia-container-toolkit #277, dra-driver-nvidia-gpu #1153).
pub fn trouble(log: &str) -> Option<String> {
    const REASONS: [&str; 7] = [
        "fatal gpu error",
        "sticky error",
        "failed",
        "error",
        "not supported by this mps server",
        "invisible to this mps server",
        "unable to",
    ];
    const CONSEQUENCES: [&str; 3] = ["exited with status", "fatal exception", "warning:"];
    let rank = |text: &str| {
        let text = text.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
        // Commands are logged as they were typed; and the line above the numbers of the clients that an error has hit is no cause.
        let harmless =
            text.starts_with("cmd:") || text.ends_with("have a sticky error set:") || text.contains("exited with status 0");
        match () {
            () if harmless => None,
            () if text.starts_with("client process") && text.contains("fatal gpu error") => Some(2),
            () if has(&REASONS) => Some(1),
            () if has(&CONSEQUENCES) => Some(0),
            () => None,
        }
    };
    // The last of the greatest, which is what `max_by_key` returns.
    let found = log.lines().map(message).filter_map(|text| Some((rank(text)?, text))).max_by_key(|(rank, _)| *rank);
    found.map(|(_, text)| text.chars().take(200).collect())
}

/// Whether a server logged that a client's error has ended the work of all clients.
pub fn has_fault(log: &str) -> bool {
    let is_fault = |text: &str| text.contains("fatal GPU error") || text.contains("sticky error");
    log.lines().map(message).any(is_fault)
}

/// A line of a log without its timestamp, `[2026-11-20 18:42:09.123 Server  4711]`.
fn message(line: &str) -> &str {
    line.split_once("] ").map_or(line, |(_, text)| text).trim()
}

/// How far a server has got that was asked to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerStart {
    Pending,
    Serving,
    Failed,
}

/// By the log of a daemon that has had no other server.
pub fn server_start(log: &str) -> ServerStart {
    let any = |is: &dyn Fn(&str) -> bool| log.lines().map(message).any(is);
    match () {
        () if any(&|text| text == "Server has started") => ServerStart::Serving,
        () if any(&|text| {
            text.starts_with("Failed to start") || text.starts_with("Server ") && text.contains(" exited with status ")
        }) =>
        {
            ServerStart::Failed
        }
        () => ServerStart::Pending,
    }
}

/// What a server logged when it started: the limits in force for its clients, whatever the daemon reports later.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Logged {
    pub active_thread_percent: Option<f64>,
    /// By device, in the daemon's numbering.
    pub memory_limit_bytes: BTreeMap<u32, u64>,
    /// The names of its devices, by the same numbers.
    pub devices: BTreeMap<u32, String>,
}

impl Logged {
    /// What the server logged that contradicts these limits, on a daemon of so many devices; `None` where the log does not decide. A server
    /// that logs the memory limit of one device logs that of each which has one.
    pub fn contradicts(&self, limits: &Limits, devices: u32) -> Option<String> {
        if let (Some(asked), Some(found)) = (limits.active_thread_percent.map(f64::from), self.active_thread_percent)
            && (found - asked).abs() >= 1.0
        {
            return Some(format!("active threads: asked for {asked} %, logged {found} %"));
        }
        let (asked, logged) = (limits.memory_bytes?, &self.memory_limit_bytes);
        let differs = |device: &u32| !logged.is_empty() && logged.get(device).is_none_or(|found| found >> 20 != asked >> 20);
        let device = (0..devices).find(differs)?;
        let found = logged.get(&device).map_or("none".into(), |bytes| format!("{} MiB", bytes >> 20));
        Some(format!("memory limit on device {device}: asked for {} MiB, logged {found}", asked >> 20))
    }
}

/// As in `Creating server context on device 0 (Tesla T4)`, `Active Threads Percentage set to 33.0` and `Device pinned memory limit for
/// device 0 set to 0x140000000 bytes`, the last of each. Other forms are not guessed.
pub fn logged(log: &str) -> Logged {
    let mut found = Logged::default();
    for line in log.lines().map(message) {
        if let Some(percent) = line.strip_prefix("Active Threads Percentage set to ") {
            found.active_thread_percent = number(percent).or(found.active_thread_percent);
        }
        if let Some((device, bytes)) = line.strip_prefix("Device pinned memory limit for device ").and_then(memory_limit) {
            found.memory_limit_bytes.insert(device, bytes);
        }
        if let Some((device, name)) =
            line.strip_prefix("Creating server context on device ").and_then(|rest| rest.split_once(' '))
        {
            let name = name.trim_start_matches('(').trim_end_matches(')');
            found.devices.extend(device.parse().ok().map(|device: u32| (device, name.to_string())));
        }
    }
    found
}

/// `0 set to 0x140000000 bytes`.
fn memory_limit(text: &str) -> Option<(u32, u64)> {
    let (device, limit) = text.split_once(" set to 0x")?;
    let digits = limit.strip_suffix("bytes").unwrap_or(limit).trim();
    Some((device.parse().ok()?, u64::from_str_radix(digits, 16).ok()?))
}

/// Whether an answer to a command has the expected form; true for any answer to a command that is not parsed.
pub fn understood(command: &str, answer: &str) -> bool {
    let name = command.split_whitespace().next().unwrap_or_default();
    match name {
        "get_server_list" | "get_client_list" => only_pids(answer).is_some(),
        "get_server_status" => !matches!(status(answer), Status::Other(_)),
        "get_default_active_thread_percentage" | "get_active_thread_percentage" => number(answer).is_some(),
        "get_default_device_pinned_mem_limit" | "get_device_pinned_mem_limit" => {
            answer.trim().is_empty() || reported_limit(answer).is_some()
        }
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
        assert_eq!(only_pids("4711\n4712\n"), Some(vec![4711, 4712]));
        assert_eq!(only_pids("Server 123 not found\n"), None, "it comes with exit status 0");
    }

    #[test]
    fn a_server_is_active_faulty_or_something_else() {
        assert_eq!(status("ACTIVE\n"), Status::Active);
        assert_eq!(status("FAULT"), Status::Fault);
        assert_eq!(status("Unknown command \"get_server_status\"\n"), Status::Unsupported, "as driver 535 answers");
        assert_eq!(status("?"), Status::Other("?".into()));
        assert_eq!(number("50.0\n"), Some(50.0));
        assert_eq!(number("nan"), None);
    }

    #[test]
    fn a_memory_limit_is_read_in_its_units_and_never_guessed() {
        let bytes = |answer: &str| reported_limit(answer).map(|limit| limit.bytes);
        assert_eq!(bytes("4G\n"), Some(4 << 30));
        assert_eq!(bytes("3814MB"), Some(3814 << 20));
        assert_eq!(bytes("0"), Some(0));
        for other in ["", "no limit", "4T", "-1", "99999999999999999999G"] {
            assert_eq!(bytes(other), None, "{other}");
        }
    }

    #[test]
    fn a_limit_that_was_cut_to_whole_gib_agrees_with_the_one_that_was_set() {
        let agrees = |answer: &str, asked_mib: u64| reported_limit(answer).expect("a limit").agrees_with(asked_mib << 20);
        // As NVIDIA's daemons answer: 3814M reads back as 3G, 4096M as 4G, 512M as 512M.
        assert!(agrees("3G", 3814) && agrees("4G", 4096) && agrees("512M", 512));
        assert!(!agrees("3G", 4096) && !agrees("4G", 3814) && !agrees("512M", 513));
    }

    #[test]
    fn the_log_gives_what_went_wrong() {
        let log = "[2026-11-20 18:42:09.123 Server  4711] Accepting connection...\n\
            [2026-11-20 18:42:10.123 Server  4711] Volta MPS: Server is handling a fatal GPU error.\n";
        assert_eq!(trouble(log).as_deref(), Some("Volta MPS: Server is handling a fatal GPU error."));
        assert_eq!(trouble("[x Control 1] Server 9 exited with status 0\n"), None);
        assert_eq!(trouble("[x Control 1] Cmd:set_error\n[x Control 1] UI closed\n"), None, "a command as it was typed");
    }

    #[test]
    fn the_client_whose_error_ended_all_is_named_before_what_followed() {
        let log = "[x Server 9] Client process 4267 encountered a fatal GPU error.\n\
            [x Server 9] Server is handling a fatal GPU error.\n[x Server 9] The following clients have a sticky error set:\n\
            [x Server 9] 4267\n[x Control 7] Server 9 exited with status 1\n";
        assert_eq!(trouble(log).as_deref(), Some("Client process 4267 encountered a fatal GPU error."));
        assert!(has_fault(log) && !has_fault("[x Server 9] Server has started\n"));
    }

    /// The log of a daemon whose server finds no device, as NVIDIA's of drivers 535, 550 and 555 print it.
    const NO_DEVICE: &str = "[2026-11-25 09:16:24.633 Control 18357] Starting new server 18371 for user 0\n\
        [2026-11-25 09:16:24.642 Other 18371] Startup\n\
        [2026-11-25 09:16:24.642 Other 18371] Initializing server process\n\
        [2026-11-25 09:16:24.726 Other 18371] Driver initialization failed with: no CUDA-capable device is detected\n\
        [2026-11-25 09:16:24.729 Other 18371] Failed to start : no CUDA-capable device is detected\n\
        [2026-11-25 09:16:24.729 Control 18357] Server encountered a fatal exception. Shutting down\n\
        [2026-11-25 09:16:24.729 Control 18357] Server 18371 exited with status 1\n";

    #[test]
    fn a_server_that_cannot_start_is_reported_with_its_reason_and_not_with_its_status() {
        assert_eq!(server_start(NO_DEVICE), ServerStart::Failed);
        assert_eq!(trouble(NO_DEVICE).as_deref(), Some("Failed to start : no CUDA-capable device is detected"));
        let begun: String = NO_DEVICE.lines().take(3).map(|line| format!("{line}\n")).collect();
        assert_eq!((server_start(&begun), trouble(&begun)), (ServerStart::Pending, None));
        for reason in [
            "Failed to accept new client. Maximum number of clients (48) reached.",
            "Failed to allocate shared memory region in /dev/shm.",
            "Device (uuid GPU-1) is not supported by this MPS server",
        ] {
            let log = format!("[x Server 9] {reason}\n[x Control 7] Server 9 exited with status 1\n");
            assert_eq!(trouble(&log).as_deref(), Some(reason));
        }
    }

    #[test]
    fn a_line_that_healthy_logs_have_is_no_trouble() {
        let healthy = "[2024-04-25 08:31:47.650 Control    65] Accepting connection...\n\
            [2024-04-25 08:31:47.650 Control    65] User did not send valid credentials\n\
            [2024-04-25 08:31:47.653 Control    65] Accepting connection...\n";
        assert_eq!(trouble(healthy), None);
        let failed = format!(
            "{healthy}[x Control 65] Server 9 exited with status 1\n[x Control 65] User did not send valid credentials\n"
        );
        assert_eq!(trouble(&failed).as_deref(), Some("Server 9 exited with status 1"));
    }

    #[test]
    fn a_server_logs_its_devices_and_the_limits_of_its_clients() {
        // Driver 580, bottlerocket-kernel-kit #415.
        let log = "[2026-04-28 18:20:41.704 Other 4428] Initializing server process\n\
            [2026-04-28 18:20:41.855 Server 4428] Creating server context on device 0 (Tesla T4)\n\
            [2026-04-28 18:20:41.986 Server 4428] Active Threads Percentage set to 33.0\n\
            [2026-04-28 18:20:41.986 Server 4428] Device pinned memory limit for device 0 set to 0x140000000 bytes\n\
            [2026-04-28 18:20:41.986 Server 4428] Server has started\n";
        let found = logged(log);
        assert_eq!(found.active_thread_percent, Some(33.0));
        assert_eq!(found.memory_limit_bytes, BTreeMap::from([(0, 5 << 30)]));
        assert_eq!(found.devices, BTreeMap::from([(0, "Tesla T4".to_string())]));
        assert_eq!(server_start(log), ServerStart::Serving);
        let line = |text: &str| logged(&format!("[x Server 65] Device pinned memory limit for device {text}")).memory_limit_bytes;
        assert_eq!(line("1 set to 0x10 bytes"), BTreeMap::from([(1, 16)]));
        assert_eq!(line("0 set to no limit"), BTreeMap::new());
        assert_eq!(line("0 set to 0x1 megabytes"), BTreeMap::new());
    }

    /// Properties of any answer: nothing panics, and no number is made up.
    fn is_sane(text: &str) -> bool {
        let made_up = |pid: &u32| !text.contains(&pid.to_string());
        let size_is_there = reported_limit(text).is_none() || text.trim_start().starts_with(|c: char| c.is_ascii_digit());
        let _ = (status(text), number(text), trouble(text), logged(text), server_start(text));
        // A plus sign and leading zeros are read over.
        size_is_there && (text.contains(['+', '0']) || !pids(text).iter().any(made_up))
    }

    proptest! {
        #[test]
        fn no_answer_breaks_the_reading_and_no_pid_is_made_up(text in "\\PC*(\n\\PC*){0,4}") {
            prop_assert!(is_sane(&text));
        }
    }

    #[test]
    fn limits_are_contradicted_by_what_a_server_logged_and_not_by_what_it_left_out() {
        const ASKED: Limits = Limits { active_thread_percent: Some(50), memory_bytes: Some(4_000_000_000) };
        let logged = |percent: f64, limits: &[(u32, u64)]| Logged {
            active_thread_percent: Some(percent),
            memory_limit_bytes: limits.iter().map(|(device, mib)| (*device, mib << 20)).collect(),
            ..Logged::default()
        };
        let found = |logged: &Logged, devices| logged.contradicts(&ASKED, devices);
        assert_eq!(found(&logged(50.0, &[(0, 3814)]), 1), None);
        assert_eq!(found(&logged(50.0, &[]), 1), None, "a server that logs no limit of memory decides nothing");
        assert_eq!(found(&Logged::default(), 2), None);
        assert_eq!(found(&logged(100.0, &[(0, 3814)]), 1).as_deref(), Some("active threads: asked for 50 %, logged 100 %"));
        let one = found(&logged(50.0, &[(0, 3814)]), 2);
        assert_eq!(one.as_deref(), Some("memory limit on device 1: asked for 3814 MiB, logged none"));
        let other = found(&logged(50.0, &[(0, 3072)]), 1);
        assert_eq!(other.as_deref(), Some("memory limit on device 0: asked for 3814 MiB, logged 3072 MiB"));
    }
}
