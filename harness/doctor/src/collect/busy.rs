//! A load on the GPU during the collection: a workload of ours that multiplies matrices, started directly, in collo's own Python.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use collo_device::driver::DriverTarget;
use collo_device::{holders, nvml};
use collo_launch::{Service, ServiceOrders};
use collo_plan::project::Project;
use collo_plan::workload::{Workload, Workloads};
use collo_prepare::commands::process_environment;
use collo_prepare::interpreters::Interpreters;
use collo_store::MemberSpec;
use collo_text::Diagnostic;
use serde_json::json;

use super::SelectedGpu;
use super::bundle::Bundle;

/// It loads the SMs and needs no data.
pub const WORKLOAD: &str = "compute-bound";
/// Time limit for the first import of torch and a first context.
const COMES_WITHIN: Duration = Duration::from_secs(90);
const ENDS_WITHIN: Duration = Duration::from_secs(15);
/// Practically endless: it trains until it is stopped.
const EPOCHS: u32 = 1_000_000;
/// Values lag a moment; the first ones are from before the load.
const SETTLES: Duration = Duration::from_secs(2);

/// What every load of this collection needs.
pub struct Busy {
    project: Project,
    workload: Arc<Workload>,
    interpreters: Interpreters,
    /// Observation time of each load.
    pub seconds: u32,
}

/// A running load, and its output.
pub struct Running {
    load: Service,
    file: String,
    log: PathBuf,
}

impl Busy {
    /// Find the workload and a Python for it; the error says what is missing.
    pub fn new(
        project: Result<Project, Diagnostic>,
        own: Option<&Path>,
        target: Option<DriverTarget>,
        seconds: u32,
    ) -> Result<Busy, String> {
        let project = project.map_err(|e| e.title())?;
        let workloads = Workloads::load(&project.workloads()).map_err(|e| e.titles())?;
        let workload = workloads.find(WORKLOAD).map_err(|e| e.titles())?.clone();
        let provided = Interpreters::provide(&project, std::slice::from_ref(&workload), own, target, &mut |_| {});
        let (interpreters, _) = provided.map_err(|e| e.to_string())?;
        Ok(Busy { project, workload, interpreters, seconds })
    }

    /// Rows of dmon, ten a second.
    pub fn rows(&self) -> u32 {
        (self.seconds * 10).clamp(5, 50)
    }

    /// Start one and wait until the driver sees it; `None`, and a recorded reason, if it does not appear.
    pub fn start(
        &self,
        bundle: &mut Bundle,
        card: &SelectedGpu,
        file: &str,
        device: &str,
        more: &[(&str, String)],
    ) -> Option<Running> {
        let before = seen(&card.uuid);
        let running = self.launch(bundle, file, device, more)?;
        self.wait(bundle, card, vec![running], before).pop()
    }

    /// Start one without waiting for it.
    pub fn launch(&self, bundle: &mut Bundle, file: &str, device: &str, more: &[(&str, String)]) -> Option<Running> {
        let log = bundle.aside(&file.replace('/', "-"));
        let does_not_start = |e: std::io::Error| Diagnostic::new(format!("`{WORKLOAD}` does not start")).caused_by(e.to_string());
        match self.orders(device, more, &log).and_then(|orders| Service::start(orders).map_err(does_not_start)) {
            Ok(load) => Some(Running { load, file: file.into(), log }),
            Err(e) => {
                bundle.note(file, json!({"without": e.to_string()}));
                None
            }
        }
    }

    /// A member that is not measured, with additional environment variables `more`.
    fn orders(&self, device: &str, more: &[(&str, String)], log: &Path) -> Result<ServiceOrders, Diagnostic> {
        let workload = &self.workload;
        let member =
            MemberSpec { workload: workload.name.clone(), batch_size: None, settings: BTreeMap::new(), solo: String::new() };
        let mut command = workload.command_for(&member)?;
        self.interpreters.put_into(&mut command, workload);
        command.push(format!("--epochs={EPOCHS}"));
        let mut env = process_environment(&self.project, workload, &member, &self.interpreters)?;
        // Unbuffered: what it prints is wanted while it runs.
        let own = [("CUDA_DEVICE_ORDER", "PCI_BUS_ID"), ("CUDA_VISIBLE_DEVICES", device), ("PYTHONUNBUFFERED", "1")];
        env.extend(own.map(|(name, value)| (name.to_string(), Some(value.to_string()))));
        env.extend(more.iter().map(|(name, value)| (name.to_string(), Some(value.clone()))));
        Ok(ServiceOrders { command, folder: workload.folder.clone(), env, log: log.into(), asked_to_end: None })
    }

    /// Wait until the driver sees as many new processes as were started; those that ended meanwhile are recorded and left out.
    pub fn wait(&self, bundle: &mut Bundle, card: &SelectedGpu, mut all: Vec<Running>, before: usize) -> Vec<Running> {
        let begun = Instant::now();
        loop {
            let mut at = 0;
            while at < all.len() {
                match all[at].load.ended() {
                    None => at += 1,
                    Some(how) => {
                        let over = all.remove(at);
                        let text = collo_text::read_end(&over.log, 64 << 10).unwrap_or_default();
                        let text = String::from_utf8_lossy(&text);
                        let last = text.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or_default();
                        bundle.note(&over.file, json!({"without": format!("{how}; it printed `{last}`")}));
                        over.stop(bundle);
                    }
                }
            }
            // A list that is closed to us never grows: then only time tells.
            if all.is_empty() || seen(&card.uuid) >= before + all.len() || begun.elapsed() > COMES_WITHIN {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        if !all.is_empty() {
            std::thread::sleep(SETTLES.min(Duration::from_secs(self.seconds.into())));
        }
        all
    }
}

impl Running {
    /// End it, and keep its output.
    pub fn stop(self, bundle: &mut Bundle) {
        self.load.stop(ENDS_WITHIN);
        bundle.take(&self.file, &self.log);
    }
}

/// How many processes the driver sees on the GPU.
pub fn seen(uuid: &str) -> usize {
    nvml::open().ok().and_then(|nvml| holders::computing(&nvml, uuid)).map_or(0, |all| all.len())
}
