//! MPS: whether a private daemon starts and answers here, and how many files its clients may open.

use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use collo_measure::launch::{Service, ServiceOrders};
use collo_measure::mps::{self, Control};
use collo_measure::{Driver, sharing};

use super::timeout::TIMEOUT;
use super::{Check, Mark};

/// As recommended in NVIDIA's MPS guide.
const DESCRIPTORS: u64 = 16_384;

/// Start a daemon of our own, query it once, and end it. Daemons already running here are not touched.
pub fn mps(driver: &Driver) -> Check {
    if mps::program().is_none() {
        return Check::new(Mark::Fixable, "mps", format!("`{}` is not on the PATH", mps::PROGRAM))
            .hint("it comes with the driver, in a package such as `nvidia-utils` or `nvidia-compute-utils`");
    }
    let Some(uuid) = driver.gpus.iter().find(|g| g.computes()).and_then(|g| g.at.as_ref()).map(|at| at.uuid.clone()) else {
        return Check::new(Mark::Absent, "mps", "no GPU here is suitable for compute");
    };
    let mut modes: Vec<&str> = driver.gpus.iter().filter_map(|g| g.compute_mode.as_deref()).collect();
    modes.sort_unstable();
    modes.dedup();
    let modes = if modes.is_empty() { String::new() } else { format!("; compute mode {}", modes.join(", ")) };
    let (answers, answered) = mpsc::channel();
    let worker = std::thread::spawn(move || try_one(&uuid, &answers));
    let check = match answered.recv_timeout(TIMEOUT + Duration::from_millis(500)) {
        Ok(Ok(took)) => {
            Check::new(Mark::Good, "mps", format!("a private daemon starts and responds in {} ms{modes}", took.as_millis()))
        }
        Ok(Err(reason)) => Check::new(Mark::Fixable, "mps", format!("a private daemon does not work: {reason}"))
            .hint("`nvidia-cuda-mps-control -f` in a shell shows its messages"),
        Err(_) => Check::new(Mark::Fixable, "mps", format!("a private daemon does not respond within {} s", TIMEOUT.as_secs())),
    };
    // It ends within this; its supervisor sees to it when we are gone.
    let deadline = Instant::now() + TIMEOUT;
    while !worker.is_finished() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    check
}

fn try_one(uuid: &str, answers: &mpsc::Sender<Result<Duration, String>>) {
    // A short path: a Unix socket lies in it.
    let folder = match tempfile::Builder::new().prefix("collo-mps-").tempdir_in("/tmp") {
        Ok(folder) => folder,
        Err(e) => return drop(answers.send(Err(e.to_string()))),
    };
    let begun = Instant::now();
    let mut service = match Service::start(orders(uuid, folder.path())) {
        Ok(service) => service,
        Err(e) => return drop(answers.send(Err(e.to_string()))),
    };
    let control = Control::at(folder.path());
    let answer = loop {
        if control.is_ready() {
            break Ok(begun.elapsed());
        }
        if let Some(how) = service.ended() {
            break Err(format!("{how}{}", said(folder.path())));
        }
        if begun.elapsed() >= TIMEOUT {
            break Err(format!("no reply within {} s{}", TIMEOUT.as_secs(), said(folder.path())));
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let _ = answers.send(answer);
    service.stop(TIMEOUT);
}

pub(super) fn orders(uuid: &str, folder: &Path) -> ServiceOrders {
    let shown = folder.display().to_string();
    let mut env = sharing::scrubbed();
    env.insert("CUDA_VISIBLE_DEVICES".into(), Some(uuid.into()));
    env.insert("CUDA_MPS_PIPE_DIRECTORY".into(), Some(shown.clone()));
    env.insert("CUDA_MPS_LOG_DIRECTORY".into(), Some(shown));
    ServiceOrders {
        command: vec![mps::PROGRAM.into(), "-f".into()],
        folder: "/".into(),
        env,
        log: folder.join("daemon.log"),
        asked_to_end: Some(folder.into()),
    }
}

/// The last line of its log, if there is one.
fn said(folder: &Path) -> String {
    let text = fs_err::read_to_string(folder.join("daemon.log")).unwrap_or_default();
    text.lines().rev().find(|l| !l.trim().is_empty()).map(|l| format!(", it printed `{}`", l.trim())).unwrap_or_default()
}

/// How many files a process may open.
pub fn descriptors() -> Check {
    use nix::sys::resource::{Resource, getrlimit};
    match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((soft, _)) => of_limit(soft),
        Err(e) => Check::new(Mark::Absent, "files", format!("`ulimit -n` cannot be read: {e}")),
    }
}

fn of_limit(soft: u64) -> Check {
    match soft < DESCRIPTORS {
        true => Check::new(Mark::Changes, "files", format!("`ulimit -n` is {soft}: too few for an MPS server with many clients"))
            .hint(format!("`ulimit -n {DESCRIPTORS}`, in a container `--ulimit nofile=65536`")),
        false => Check::new(Mark::Good, "files", format!("`ulimit -n` is {DESCRIPTORS} or more")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_open_files_are_told_with_the_command_that_allows_more() {
        assert_eq!(of_limit(1024).mark, Mark::Changes);
        assert!(of_limit(1024).hint.expect("one").starts_with("`ulimit -n 16384`"));
        assert_eq!(of_limit(16_384).mark, Mark::Good);
    }
}
