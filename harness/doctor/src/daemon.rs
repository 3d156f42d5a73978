//! MPS: whether a private daemon and its server start here, and how many files its clients may open.

use collo_plan::sharing::{Limits, MPS_PROGRAM};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use collo_device::mps;
use collo_measure::stage::DaemonProcess;
use collo_plan::facts::Driver;

use crate::check::{Check, Mark};
use crate::timeout::TIMEOUT;

/// As recommended in NVIDIA's MPS guide.
const DESCRIPTORS: u64 = 16_384;

/// Start a daemon of our own and its server, and end them. Daemons already running here are not touched.
pub fn mps(driver: &Driver) -> Check {
    if mps::program().is_none() {
        return Check::new(Mark::Fixable, "mps", format!("`{}` is not on the PATH", MPS_PROGRAM))
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
        Ok(Ok(trial)) => Check::new(Mark::Good, "mps", format!("{}{modes}", works(&trial))),
        Ok(Err(reason)) => Check::new(Mark::Fixable, "mps", format!("a private daemon does not work: {reason}"))
            .hint("`nvidia-cuda-mps-control -f` in a shell, and `echo start_server -uid $UID | nvidia-cuda-mps-control` in another, show its messages"),
        Err(_) => Check::new(Mark::Fixable, "mps", format!("a private daemon does not respond within {} s", TIMEOUT.as_secs())),
    };
    // It ends within this; its supervisor sees to it when we are gone.
    let deadline = Instant::now() + TIMEOUT;
    while !worker.is_finished() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    check
}

fn works(trial: &Trial) -> String {
    let ms = |duration: &Duration| duration.as_millis();
    let devices: Vec<&str> = trial.logged.devices.values().map(String::as_str).collect();
    let on = if devices.is_empty() { String::new() } else { format!(" on {}", devices.join(", ")) };
    let shares = trial.logged.active_thread_percent.map(|percent| format!(", active threads {percent} %")).unwrap_or_default();
    let (answered, served) = (ms(&trial.answered_in), ms(&trial.served_in));
    format!("a private daemon responds in {answered} ms, its server serves{on} after {served} ms{shares}")
}

/// What a daemon of our own and its server did.
struct Trial {
    answered_in: Duration,
    served_in: Duration,
    logged: mps::Logged,
}

fn try_one(uuid: &str, answers: &mpsc::Sender<Result<Trial, String>>) {
    // A short path: a Unix socket lies in it.
    let folder = match tempfile::Builder::new().prefix("collo-mps-").tempdir_in("/tmp") {
        Ok(folder) => folder,
        Err(e) => return drop(answers.send(Err(e.to_string()))),
    };
    let begun = Instant::now();
    let mut process = match DaemonProcess::start(uuid, folder.path(), folder.path(), &Limits::default(), TIMEOUT) {
        Ok(process) => process,
        Err(reason) => return drop(answers.send(Err(reason))),
    };
    let answered_in = begun.elapsed();
    let left = TIMEOUT.saturating_sub(answered_in);
    let trial = process.start_server(left).map(|logged| Trial { answered_in, served_in: begun.elapsed(), logged });
    let _ = answers.send(trial);
    process.stop(TIMEOUT);
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
