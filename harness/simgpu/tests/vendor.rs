//! NVIDIA's own MPS control program and the simulated one are asked the same, and must answer and log the same, line by line.

#[path = "../../store/tests/support/skip.rs"]
mod skip;
#[path = "../../store/tests/support/vendor.rs"]
mod vendor;

#[path = "support/mps_control.rs"]
mod mps_control;

use std::fmt::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use mps_control::{Control, TIMEOUT, until};
use vendor::Vendor;

/// What both are asked, in this order; `UID` is the user's own.
const COMMANDS: &[&str] = &[
    "get_server_list",
    "get_server_status 123",
    "get_client_list 123",
    "get_device_client_list",
    "terminate_client 123 456",
    "ps",
    "get_default_active_thread_percentage",
    "set_default_active_thread_percentage 33",
    "get_default_active_thread_percentage",
    "set_default_active_thread_percentage 0",
    "set_default_active_thread_percentage 101",
    "set_default_active_thread_percentage x",
    "get_active_thread_percentage 123",
    "set_active_thread_percentage 123 50",
    "get_default_device_pinned_mem_limit 0",
    "get_default_device_pinned_mem_limit",
    "set_default_device_pinned_mem_limit 0 3814M",
    "get_default_device_pinned_mem_limit 0",
    "set_default_device_pinned_mem_limit 0 4096M",
    "get_default_device_pinned_mem_limit 0",
    "set_default_device_pinned_mem_limit 0 512M",
    "get_default_device_pinned_mem_limit 0",
    "set_default_device_pinned_mem_limit 1 x",
    "get_default_device_pinned_mem_limit 1",
    "get_device_pinned_mem_limit 123 0",
    "set_device_pinned_mem_limit 123 0 1G",
    "get_default_client_priority",
    "set_default_client_priority 1",
    "get_default_client_priority",
    "set_default_client_priority 7",
    "start_server",
    "start_server -uid",
    "start_server -uid UID",
    "get_server_list",
    "shutdown_server 123",
    "shutdown_server",
    "nonsense",
    "",
    "quit",
];

/// Every command, its answer, its status and what is logged of it, and how the daemon ends.
fn transcript(control: &Control) -> String {
    let daemon = control.start(&[]);
    let mut text = String::new();
    for command in COMMANDS {
        let said = daemon.ask(command);
        let _ = writeln!(text, "> {}", said.words);
        // Whether the front end still hears of the daemon's status at the end is a race in NVIDIA's.
        let status = if *command == "quit" { "any".into() } else { said.status.to_string() };
        text.extend(said.answer.lines().map(|line| format!("{line}\n")));
        let _ = writeln!(text, "status {status}");
        text.extend(said.log.iter().map(|line| format!("  {line}\n")));
    }
    let _ = writeln!(text, "the daemon ends with {}", daemon.end());
    let _ = writeln!(text, "log folder {:?}, pipe folder {:?}", control.names("log"), ours(&control.names("pipe")));
    text
}

/// The files of a pipe folder that clients and we use; a further socket, `log`, is the real one's own.
fn ours(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).filter(|name| *name != "log").collect()
}

/// Two texts side by side, with a mark where they differ.
fn side_by_side(left: &str, right: &str) -> String {
    let (left, right): (Vec<&str>, Vec<&str>) = (left.lines().collect(), right.lines().collect());
    let mut text = String::new();
    for at in 0..left.len().max(right.len()) {
        let line = |side: &[&str]| side.get(at).copied().unwrap_or("").to_string();
        let (left, right) = (line(&left), line(&right));
        let _ = writeln!(text, "{} {left:<100} | {right}", if left == right { " " } else { "≠" });
    }
    text
}

#[test]
fn the_simulated_mps_answers_and_logs_as_nvidias_own_line_by_line() {
    for vendor in Vendor::all(skip::skip) {
        let real = transcript(&Control::of_vendor(&vendor));
        let simulated = transcript(&Control::simulated(vendor.major));
        let both = side_by_side(&real, &simulated);
        println!("driver {}: NVIDIA's, and the simulated one\n{both}", vendor.major);
        assert!(real == simulated, "driver {}:\n{both}", vendor.major);
    }
}

/// Both programs of every driver.
fn each(look: impl Fn(u32, Control)) {
    for vendor in Vendor::all(skip::skip) {
        look(vendor.major, Control::of_vendor(&vendor));
        look(vendor.major, Control::simulated(vendor.major));
    }
}

#[test]
fn a_limit_that_the_environment_sets_is_in_force_and_not_reported() {
    each(|_, control| {
        let env = [("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "33"), ("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=3814M")];
        let daemon = control.start(&env);
        assert_eq!(control.say("get_default_active_thread_percentage"), ("33.0\n".into(), 0), "{:?}", control.program);
        assert_eq!(control.say("get_default_device_pinned_mem_limit 0"), (String::new(), 0), "{:?}", control.program);
        drop(daemon);
    });
}

#[test]
fn without_a_daemon_the_front_end_ends_with_1_and_a_second_daemon_does_not_start() {
    each(|_, control| {
        let none = ("Cannot find MPS control daemon process\n".to_string(), 1);
        assert_eq!(control.say("get_server_list"), none, "{:?}", control.program);
        assert_eq!(control.say("quit"), none, "{:?}", control.program);
        let daemon = control.start(&[]);
        let again = control.command().arg("-f").output().expect("it ends");
        let said = String::from_utf8_lossy(&again.stdout).into_owned();
        assert_eq!((again.status.code(), said.as_str()), (Some(1), "An instance of this daemon is already running\n"));
        drop(daemon);
    });
}

#[test]
fn a_daemon_in_the_background_writes_two_files_and_one_in_the_foreground_none() {
    each(|driver, control| {
        let daemon = control.start(&[]);
        assert_eq!(control.names("log"), [""; 0], "{:?}", control.program);
        let pid = control.path("pipe/nvidia-cuda-mps-control.pid").is_file();
        assert_eq!(pid, driver >= 550, "driver {driver} and the pid file, {:?}", control.program);
        control.say("quit");
        assert_eq!(daemon.end(), 0, "no server had failed");
        let started = control.command().arg("-d").output().expect("it goes to the background");
        assert!(started.status.success());
        until(&control, "an answer", || control.say("get_server_list").1 == 0);
        control.say("quit");
        let log = || std::fs::read_to_string(control.path("log/control.log")).unwrap_or_default();
        until(&control, "the end in control.log", || log().contains("Exit with status 0"));
        assert!(
            control.names("log").iter().all(|name| ["control.log", "server.log"].contains(&&**name)),
            "{:?}",
            control.program
        );
    });
}

#[test]
fn the_longest_folder_in_which_a_daemon_starts_has_87_bytes() {
    each(|_, control| {
        let begins = |length: usize| {
            let own = control.path("").display().to_string().trim_end_matches('/').len();
            let pipe = control.path(&"x".repeat(length - own - 1));
            std::fs::create_dir(&pipe).expect("a folder");
            let mut command = control.command();
            command.arg("-f").env("CUDA_MPS_PIPE_DIRECTORY", &pipe).stdin(Stdio::null()).stdout(Stdio::null());
            let mut child = command.spawn().expect("it starts");
            let begun = Instant::now();
            let begins = loop {
                if pipe.join("control_privileged").exists() {
                    break true;
                }
                if let Some(status) = child.try_wait().expect("ours") {
                    assert_eq!(status.code(), Some(1));
                    break false;
                }
                assert!(begun.elapsed() < TIMEOUT);
                std::thread::sleep(Duration::from_millis(5));
            };
            let _ = child.kill();
            let _ = child.wait();
            begins
        };
        assert_eq!([86, 87, 88].map(begins), [true, true, false], "{:?}", control.program);
    });
}

#[test]
fn a_daemon_that_a_signal_ends_leaves_its_sockets_and_stops_no_later_one() {
    each(|_, control| {
        let mut daemon = control.start(&[]);
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(daemon.child.id() as i32), nix::sys::signal::Signal::SIGTERM)
            .expect("ours");
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&daemon.child.wait().expect("it ends")), Some(15));
        assert!(Path::new(&control.path("pipe/control")).exists(), "{:?}", control.program);
        drop(daemon);
        let next = control.start(&[]);
        assert_eq!(control.say("get_default_active_thread_percentage"), ("100.0\n".into(), 0));
        drop(next);
    });
}

#[test]
fn a_normal_user_has_a_daemon_of_its_own_and_starts_servers_for_itself_alone() {
    const NOBODY: u32 = 65534;
    if !nix::unistd::geteuid().is_root() {
        return skip::skip("root", "another user is needed beside the administrator");
    }
    each(|driver, mut control| {
        let open = |path: &Path| {
            let all = std::os::unix::fs::PermissionsExt::from_mode(0o777);
            std::fs::set_permissions(path, all).expect("ours");
        };
        std::fs::create_dir_all(control.path("machine")).expect("a folder");
        for name in ["", "pipe", "log", "machine"] {
            open(&control.path(name));
        }
        control.user = Some(NOBODY);
        if control.command().arg("--help").output().is_err() {
            return skip::skip("vendor", "another user may not enter the folder of this build");
        }
        let daemon = control.start(&[]);
        let more = if driver >= 550 { ". Only the root user may start server for another user." } else { "" };
        let refusal = format!("Insufficient privileges for UID {NOBODY}{more}\n");
        assert_eq!(control.say("start_server -uid 0"), (refusal, 0), "{:?}", control.program);
        assert_eq!(control.say(&format!("start_server -uid {NOBODY}")), (String::new(), 0), "{:?}", control.program);
        daemon.until("the server's end", || control.printed().contains("exited with status 1"));
        assert!(control.printed().contains(&format!(" for user {NOBODY}")), "{}", control.printed());
    });
}

#[test]
fn nvidias_programs_leave_no_device_file_behind() {
    let device_files = || {
        std::fs::read_dir("/dev")
            .expect("readable")
            .flatten()
            .filter(|e| e.file_name().to_string_lossy().starts_with("nvidia"))
            .count()
    };
    let before = device_files();
    for vendor in Vendor::all(skip::skip) {
        let control = Control::of_vendor(&vendor);
        let daemon = control.start(&[]);
        control.say(&format!("start_server -uid {}", nix::unistd::geteuid()));
        daemon.until("the server's end", || control.printed().contains("exited with status 1"));
        assert_eq!(device_files(), before, "driver {}", vendor.major);
    }
}
