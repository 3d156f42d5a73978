//! A simulated machine of one test, and members on it.
//!
//! The library reads its scenario from the environment, so every test runs in a process of its own: this same test binary, executed
//! again with the environment set.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nvml_wrapper::Nvml;
use nvml_wrapper::error::{NvmlError, nvml_sym, nvml_try};
use nvml_wrapper_sys::bindings as b;
use serde_json::{Value, json};

const INSIDE: &str = "COLLO_SIM_TEST_INSIDE";

/// Run `body` on a fresh machine; `test` is the name of the test that calls.
pub fn on(scenario: &str, test: &str, body: impl FnOnce(Machine)) {
    if std::env::var_os(INSIDE).is_some() {
        let folder = PathBuf::from(std::env::var_os("COLLO_SIM_DIR").expect("the folder is named"));
        return body(Machine { folder });
    }
    let folder = tempfile::Builder::new().prefix("sim").tempdir().expect("a folder");
    let status = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .env("COLLO_SIM_DIR", folder.path())
        .env("COLLO_SIM", scenario)
        .env("COLLO_SIM_EPOCH_S", "0.3")
        .env("CUDA_MPS_PIPE_DIRECTORY", folder.path().join("mps"))
        .env("CUDA_MPS_LOG_DIRECTORY", folder.path().join("log"))
        .env_remove("CUDA_VISIBLE_DEVICES")
        .status()
        .expect("this test starts");
    // A test that failed may leave its daemon behind.
    if let Ok(pid) = std::fs::read_to_string(folder.path().join("mps/nvidia-cuda-mps-control.pid")) {
        let _ = Command::new("kill").args(["-KILL", pid.trim()]).stderr(Stdio::null()).status();
    }
    assert!(status.success(), "{test} failed on `{scenario}`");
}

pub struct Machine {
    pub folder: PathBuf,
}

impl Machine {
    pub fn nvml(&self) -> Nvml {
        let beside = std::env::current_exe().expect("this test");
        let library = beside.parent().expect("its folder").join("libsimgpu.so");
        Nvml::builder().lib_path(library.as_os_str()).init().expect("the library opens")
    }

    /// What a program says, its status and what it says of errors.
    pub fn run(&self, program: &str, arguments: &[&str], input: &str) -> (i32, String, String) {
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        // One that has nobody to talk to ends without reading.
        let _ = child.stdin.take().expect("its input").write_all(input.as_bytes());
        let output = child.wait_with_output().expect("it ends");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
    }

    pub fn member(&self, env: &[(&str, &str)]) -> Member {
        Member::start("vision", &["--model=resnet26", "--dataset=cifar-10", "--batch-size=32"], env)
    }

    pub fn large_member(&self, env: &[(&str, &str)]) -> Member {
        Member::start("vision", &["--model=resnet152", "--dataset=imagenet", "--batch-size=32"], env)
    }
}

/// A member, with this test as its harness.
pub struct Member {
    pub child: Child,
    channel: UnixStream,
    lines: std::io::Lines<BufReader<UnixStream>>,
}

impl Member {
    pub fn start(workload: &str, options: &[&str], env: &[(&str, &str)]) -> Member {
        let (ours, theirs) = UnixStream::pair().expect("a channel");
        ours.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
        let theirs = OwnedFd::from(theirs);
        nix::fcntl::fcntl(&theirs, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty())).expect("it is inherited");
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads").join(workload);
        let child = Command::new(env!("CARGO_BIN_EXE_sim-train"))
            .arg("train.py")
            .args(options)
            .current_dir(folder)
            .env("COLLO_FD", theirs.as_raw_fd().to_string())
            .envs(env.iter().copied())
            .stderr(Stdio::null())
            .spawn()
            .expect("a member starts");
        let lines = BufReader::new(ours.try_clone().expect("a copy")).lines();
        Member { child, channel: ours, lines }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn say(&mut self, message: Value) {
        let _ = self.channel.write_all(format!("{message}\n").as_bytes());
    }

    /// Its next event of that kind; what comes before it is passed over, but for an error.
    pub fn hear(&mut self, event: &str) -> Value {
        loop {
            let line = self.lines.next().expect("it still speaks").expect("it speaks in time");
            let value: Value = serde_json::from_str(&line).expect("it speaks JSON");
            if value["event"] == event {
                return value;
            }
            assert_ne!(value["event"], "error", "waiting for {event}: {value}");
        }
    }

    pub fn warm_up(&mut self) -> Value {
        let hello = self.hear("hello");
        self.say(json!({ "command": "warm_up" }));
        self.hear("ready");
        hello
    }

    pub fn go(&mut self, epochs: u32, after: &str) {
        self.say(json!({ "command": "go", "epochs": epochs, "after_measured": after }));
    }

    /// Seconds of its next epoch.
    pub fn epoch_s(&mut self) -> f64 {
        let epoch = self.hear("epoch");
        (epoch["end_ns"].as_u64().expect("an end") - epoch["start_ns"].as_u64().expect("a start")) as f64 / 1e9
    }

    /// Stop it, and wait for its end.
    pub fn stop(mut self) {
        self.say(json!({ "command": "stop" }));
        self.child.wait().expect("it ends");
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Make a GPU instance with a compute instance that fills it; its id.
pub fn cut(nvml: &Nvml, card: u32, profile: u32, start: u32, size: u32) -> Result<u32, NvmlError> {
    let device = nvml.device_by_index(card)?;
    let lib = nvml.lib();
    let place = b::nvmlGpuInstancePlacement_t { start, size };
    let (mut gi, mut ci) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: every pointer is to a local of the type that NVML wants.
    unsafe {
        let make = nvml_sym(lib.nvmlDeviceCreateGpuInstanceWithPlacement.as_ref())?;
        nvml_try(make(device.handle(), profile, &place, &mut gi))?;
        let mut info: b::nvmlGpuInstanceInfo_t = std::mem::zeroed();
        nvml_try(nvml_sym(lib.nvmlGpuInstanceGetInfo.as_ref())?(gi, &mut info))?;
        let mut own: b::nvmlComputeInstanceProfileInfo_t = std::mem::zeroed();
        let describe = nvml_sym(lib.nvmlGpuInstanceGetComputeInstanceProfileInfo.as_ref())?;
        for index in (0..8).rev() {
            if describe(gi, index, 0, &mut own) == 0 && own.instanceCount == 1 {
                break;
            }
        }
        nvml_try(nvml_sym(lib.nvmlGpuInstanceCreateComputeInstance.as_ref())?(gi, own.id, &mut ci))?;
        Ok(info.id)
    }
}

/// Destroy every instance of a card.
pub fn clear(nvml: &Nvml, card: u32) -> Result<(), NvmlError> {
    let device = nvml.device_by_index(card)?;
    let lib = nvml.lib();
    for id in 0..20 {
        let mut gi = std::ptr::null_mut();
        // SAFETY: every pointer is to a local of the type that NVML wants.
        unsafe {
            if nvml_sym(lib.nvmlDeviceGetGpuInstanceById.as_ref())?(device.handle(), id, &mut gi) != 0 {
                continue;
            }
            for ci in 0..8 {
                let mut compute = std::ptr::null_mut();
                if nvml_sym(lib.nvmlGpuInstanceGetComputeInstanceById.as_ref())?(gi, ci, &mut compute) == 0 {
                    nvml_try(nvml_sym(lib.nvmlComputeInstanceDestroy.as_ref())?(compute))?;
                }
            }
            nvml_try(nvml_sym(lib.nvmlGpuInstanceDestroy.as_ref())?(gi))?;
        }
    }
    Ok(())
}

/// Wait until something is so.
pub fn until(what: &str, mut so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !so() {
        assert!(began.elapsed() < Duration::from_secs(20), "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
