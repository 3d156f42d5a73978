//! A load on a GPU: a workload started directly, under a supervisor, so that the GPU can be observed under load. It is not
//! measured.
//!
//! In: a workload, a Python for it, a device by its CUDA name. Out: a process that keeps that device busy until stopped; its
//! output goes to a log.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use collo_store::MemberSpec;
use collo_text::Diagnostic;

use crate::commands::process_environment;
use crate::interpreters::Interpreters;
use collo_launch::environment::scrubbed;
use collo_launch::{Service, ServiceOrders};
use collo_plan::project::Project;
use collo_plan::workload::Workload;

/// Practically endless: it trains until it is stopped.
const EPOCHS: u32 = 1_000_000;
const ENDS_WITHIN: Duration = Duration::from_secs(15);

/// What all loads have in common.
pub struct Loads<'a> {
    pub project: &'a Project,
    pub workload: &'a Workload,
    pub interpreters: &'a Interpreters,
}

/// A running load; ended on drop.
pub struct Load(Service);

impl Loads<'_> {
    /// Start one on this device, with additional environment variables `more`.
    pub fn start(&self, device: &str, more: &[(&str, String)], log: &Path) -> Result<Load, Diagnostic> {
        let workload = self.workload;
        let member =
            MemberSpec { workload: workload.name.clone(), batch_size: None, settings: BTreeMap::new(), solo: String::new() };
        let mut command = workload.command_for(&member)?;
        self.interpreters.put_into(&mut command, workload);
        command.push(format!("--epochs={EPOCHS}"));
        let mut env = scrubbed();
        env.extend(process_environment(self.project, workload, &member, self.interpreters)?);
        env.insert("CUDA_DEVICE_ORDER".into(), Some("PCI_BUS_ID".into()));
        env.insert("CUDA_VISIBLE_DEVICES".into(), Some(device.into()));
        // What it prints is wanted while it runs.
        env.insert("PYTHONUNBUFFERED".into(), Some("1".into()));
        env.extend(more.iter().map(|(name, value)| (name.to_string(), Some(value.clone()))));
        let orders = ServiceOrders { command, folder: workload.folder.clone(), env, log: log.into(), asked_to_end: None };
        let started = Service::start(orders);
        started.map(Load).map_err(|e| Diagnostic::new(format!("`{}` does not start", workload.name)).caused_by(e.to_string()))
    }
}

impl Load {
    pub fn pid(&self) -> u32 {
        self.0.pid
    }

    /// How it ended, if it did so on its own.
    pub fn ended(&mut self) -> Option<String> {
        self.0.ended()
    }

    pub fn stop(self) {
        self.0.stop(ENDS_WITHIN);
    }
}
