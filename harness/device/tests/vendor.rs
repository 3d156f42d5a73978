//! What asks and reads MPS here, tried on NVIDIA's own control program of every driver that `.ci/vendor-programs` obtains. Without a GPU its
//! daemon works in full, and its server ends with a real error.

#[path = "../../store/tests/support/skip.rs"]
mod skip;
#[path = "../../store/tests/support/vendor.rs"]
mod vendor;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use collo_device::mps::{self, Control, MpsUnanswered, ServerStart, Status};
use collo_plan::sharing::MPS_PROGRAM;
use vendor::Vendor;

const TIMEOUT: Duration = Duration::from_secs(60);
/// The driver whose programs the inner test finds on its PATH.
const DRIVER: &str = "COLLO_TEST_DRIVER";

/// Run one of the tests below, which are left out otherwise, with each driver's programs on its PATH.
fn with_each(test: &str) {
    for vendor in Vendor::all(skip::skip) {
        let mut inner = Command::new(std::env::current_exe().expect("this test"));
        inner.args(["--ignored", "--exact", test]).envs(vendor.environment()).env(DRIVER, vendor.major.to_string());
        let output = inner.output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("1 passed"), "driver {}: {said}", vendor.major);
    }
}

fn driver() -> u32 {
    std::env::var(DRIVER).ok().and_then(|text| text.parse().ok()).expect("started by `with_each`")
}

/// A daemon of NVIDIA's in a folder of its own.
struct Daemon {
    folder: tempfile::TempDir,
    child: Child,
}

impl Daemon {
    fn start(limits: &str) -> (Daemon, Control) {
        let folder = tempfile::Builder::new().prefix("mps").tempdir_in("/tmp").expect("a folder");
        let log = std::fs::File::create(folder.path().join(mps::LOG)).expect("a file");
        let mut command = Command::new(MPS_PROGRAM);
        command.arg("-f").env("CUDA_MPS_PIPE_DIRECTORY", folder.path()).env("CUDA_MPS_LOG_DIRECTORY", folder.path());
        if !limits.is_empty() {
            command.env("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", limits);
        }
        let child = command.stdin(Stdio::null()).stdout(log).spawn().expect("it starts");
        let control = Control::at(folder.path());
        let daemon = Daemon { folder, child };
        daemon.until("an answer", || control.is_ready());
        (daemon, control)
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join(mps::LOG)).expect("readable")
    }

    fn until(&self, what: &str, done: impl Fn() -> bool) {
        let begun = Instant::now();
        while !done() {
            assert!(begun.elapsed() < TIMEOUT, "waiting for {what}: {}", self.log());
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn answers_and_errors_of_nvidias_daemon_are_told_apart_although_all_have_exit_status_0() {
    with_each("asked_of_a_daemon");
}

#[test]
#[ignore = "it needs a driver's programs on its PATH"]
fn asked_of_a_daemon() {
    let (_daemon, control) = Daemon::start("");
    assert_eq!(control.servers(), Ok(vec![]));
    let words = "get_client_list 123".to_string();
    assert_eq!(control.clients(123), Err(MpsUnanswered::Refused { words, answer: "Server 123 not found".into() }));
    let expected = if driver() < 550 { Status::Unsupported } else { Status::Other("Server 123 not found".into()) };
    assert_eq!(control.status(123), Ok(expected));
    for (set, agrees, differs) in [("3814M", 3814, 4096), ("4096M", 4096, 3814), ("512M", 512, 511)] {
        control.say(&format!("set_default_device_pinned_mem_limit 0 {set}")).expect("an answer");
        let reported = control.memory_limit(0).expect("an answer").expect("a limit");
        assert!(reported.agrees_with(agrees << 20) && !reported.agrees_with(differs << 20), "{set}: {reported:?}");
    }
    assert_eq!(control.memory_limit(1), Ok(None));
}

#[test]
fn a_limit_of_the_environment_is_not_read_back_from_nvidias_daemon() {
    with_each("limited_by_the_environment");
}

#[test]
#[ignore = "it needs a driver's programs on its PATH"]
fn limited_by_the_environment() {
    let (_daemon, control) = Daemon::start("0=3814M");
    assert_eq!(control.memory_limit(0), Ok(None));
}

#[test]
fn a_server_of_nvidias_that_finds_no_device_is_reported_with_its_reason_and_the_daemon_ends_on_request() {
    with_each("a_server_without_a_device");
}

#[test]
#[ignore = "it needs a driver's programs on its PATH"]
fn a_server_without_a_device() {
    let (mut daemon, control) = Daemon::start("");
    assert_eq!(mps::server_start(&daemon.log()), ServerStart::Pending);
    assert_eq!(mps::trouble(&daemon.log()), None, "the log of a healthy daemon");
    control.start_server(nix::unistd::geteuid().as_raw()).expect("it is asked");
    daemon.until("the server's end", || mps::server_start(&daemon.log()) == ServerStart::Failed);
    assert_eq!(mps::trouble(&daemon.log()).as_deref(), Some("Failed to start : no CUDA-capable device is detected"));
    assert!(!mps::has_fault(&daemon.log()));
    daemon.until("its status", || daemon.log().contains("exited with status 1"));
    assert_eq!(control.end(TIMEOUT), Ok(()), "whatever the daemon's status, it has ended");
    assert_eq!(daemon.child.wait().expect("it ends").code(), Some(1), "a server had failed");
    assert!(!control.is_ready());
}

#[test]
fn nvidias_daemon_starts_in_the_longest_folder_that_is_allowed() {
    with_each("in_the_longest_folder");
}

#[test]
#[ignore = "it needs a driver's programs on its PATH"]
fn in_the_longest_folder() {
    let length = mps::LONGEST_FOLDER - "/tmp/".len() - std::process::id().to_string().len();
    let pipe = format!("/tmp/{}{}", "x".repeat(length), std::process::id());
    std::fs::create_dir(&pipe).expect("a folder");
    let mut child = Command::new(MPS_PROGRAM)
        .arg("-f")
        .env("CUDA_MPS_PIPE_DIRECTORY", &pipe)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    let control = Control::at(&pipe);
    let begun = Instant::now();
    let ready = loop {
        if control.is_ready() || begun.elapsed() > TIMEOUT {
            break control.is_ready();
        }
    };
    let _ = child.kill();
    let _ = child.wait();
    let _ = std::fs::remove_dir_all(Path::new(&pipe));
    assert!(ready, "no daemon in a folder of {} bytes", pipe.len());
}
