//! Run by hand, against a library named by `COLLO_NVML` (and its programs on the PATH): whatever GPUs it shows.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use nvml_wrapper::error::{nvml_sym, nvml_try};

use super::*;
use crate::latest::{Latest, Outlet};
use crate::member::Trees;

/// The GPUs of the library, as partitioned.
fn boards() -> Vec<Board> {
    let nvml = collo_device::nvml::open().unwrap();
    let sources = std::env::var("SM_SOURCE").map_or(SourceChoice::default(), |word| SourceChoice::named(&word).unwrap());
    let instance = |device: &nvml_wrapper::Device<'_>, index| {
        let mig = device.mig_device_by_index(index).ok()?;
        let mut id = 0;
        // SAFETY: the handle is one of this open library's.
        unsafe { nvml_try(nvml_sym(nvml.lib().nvmlDeviceGetGpuInstanceId.as_ref()).unwrap()(mig.handle(), &mut id)).unwrap() };
        Some(BoardInstance { uuid: mig.uuid().unwrap(), gpu_instance: id, compute_instance: None })
    };
    let board = |index| {
        let device = nvml.device_by_index(index).unwrap();
        let instances = (0..device.mig_device_count().unwrap_or(0)).filter_map(|i| instance(&device, i)).collect();
        Board { uuid: device.uuid().unwrap(), instances, sources }
    };
    (0..nvml.device_count().unwrap()).map(board).collect()
}

#[test]
#[ignore = "needs COLLO_NVML, or a card"]
fn probe_shows_the_matrix() {
    for p in probe(&boards()) {
        let moved = p.moved_every_ns.map_or("-".into(), |ns| format!("{:.0} ms", ns as f64 / 1e6));
        let rate = p.rate_hz.map_or("-".into(), |hz| format!("{hz:.1}/s"));
        println!("{:<50} {:<24} {:<5} {rate:>8} {moved:>9} {}", p.scope, p.metric, p.source, p.reason.unwrap_or_default());
    }
}

#[test]
#[ignore = "needs COLLO_NVML, or a card"]
fn a_session_reads_the_cards_and_leaves_them() {
    let (batches, received) = mpsc::channel();
    let (stop, latest) = (Arc::new(AtomicBool::new(false)), Latest::default());
    let outlet = Outlet { batches, latest: latest.clone(), tap: None };
    // Something that trains, if there is something: `cd FOLDER && PROGRAM train.py …`.
    let member =
        std::env::var("TRAIN").ok().map(|command| std::process::Command::new("sh").args(["-c", &command]).spawn().unwrap());
    std::thread::sleep(Duration::from_millis(300));
    let trees = Trees::below(&[std::process::id()]);
    trees.refresh();
    let setting = GpuSamplingSpec { nvml_hz: 10.0, slow_hz: 1.0, trees, outlet, stop: stop.clone(), everything: false };
    let session = GpuSession::start(&boards(), &setting);
    drop(setting);
    let seconds = std::env::var("SECONDS_TO_READ").ok().and_then(|s| s.parse().ok()).unwrap_or(4);
    std::thread::sleep(Duration::from_secs(seconds));
    stop.store(true, Ordering::Relaxed);
    if let Some(mut member) = member {
        member.kill().unwrap();
        member.wait().unwrap();
    }
    println!("lost: {:?}", session.lost.why());
    let finished = session.unread.into_iter().chain(session.readers.into_iter().flat_map(|r| r.join().unwrap()));
    for f in finished {
        println!("{:#?}", f.quality);
    }
    let samples: Vec<_> = received.try_iter().flatten().collect();
    println!("{} rows", samples.len());
    for (scope, watched) in latest.lock().unwrap().iter() {
        println!("{scope}: {watched:?}");
    }
    let chosen = std::env::var("METRIC").unwrap_or_else(|_| "sm_active_ratio".into());
    for s in samples.iter().filter(|s| s.metric == chosen) {
        println!("{s:?}");
    }
}
