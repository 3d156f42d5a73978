//! Listens to the driver for errors of the GPUs (Xids) while a run lasts.
//!
//! NVML hands each to everybody who has registered for it. Without the rights to all instances of a GPU only those of the whole GPU
//! come (nvml.h, nvmlEventSetWait_v2).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use collo_store::{XidError, monotonic_ns};
use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enums::event::XidError as Told;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{EventSet, Nvml};

use super::gpu_scope;
use super::handle::Opened;
use crate::account::{Account, SourceResult};
use collo_device::nvml::text;

const METRIC: &str = "xid";
/// A run ends no later because of this.
const WAIT_MS: u32 = 50;

/// Listen until told to stop. No result if there is nothing to report: all was well.
pub fn listen(opened: &[Arc<Opened>], stop: &AtomicBool) -> Vec<SourceResult> {
    let Some(first) = opened.first() else { return Vec::new() };
    let nvml = first.card.nvml().clone();
    let mut account = Account::default();
    let mut xids = Vec::new();
    match register(&nvml, opened) {
        Err(e) => opened.iter().for_each(|card| account.lacks(METRIC, &card.scope, &text(&e))),
        Ok(set) => loop {
            // One that came with the end of the run is still heard.
            let last = stop.load(Ordering::Relaxed);
            match set.wait(WAIT_MS) {
                Ok(event) => {
                    let scope = event.device.uuid().map_or_else(|_| first.scope.clone(), |uuid| gpu_scope(&uuid));
                    let number = match event.event_data {
                        Some(Told::Value(number)) => Some(number),
                        Some(Told::Unknown) | None => None,
                    };
                    xids.push(XidError { at_ns: monotonic_ns(), scope: scope.to_string(), number });
                    continue;
                }
                Err(NvmlError::Timeout) => {}
                Err(e) => {
                    opened.iter().for_each(|card| account.ended(METRIC, &card.scope, &text(&e)));
                    break;
                }
            }
            if last {
                break;
            }
        },
    }
    if xids.is_empty() && account.absent().next().is_none() {
        return Vec::new();
    }
    let mut result = SourceResult::without_reading("nvml-events", 0.0, account);
    result.quality.xids = xids;
    vec![result]
}

fn register<'n>(nvml: &'n Nvml, opened: &[Arc<Opened>]) -> Result<EventSet<'n>, NvmlError> {
    let mut set = nvml.create_event_set()?;
    for card in opened {
        let device = nvml.device_by_uuid(card.uuid.as_str())?;
        set = device.register_events(EventTypes::CRITICAL_XID_ERROR, set).map_err(|e| e.error)?;
    }
    Ok(set)
}
