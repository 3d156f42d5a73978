//! The library itself: beginning, end, versions, names of processes and errors.

use std::ffi::{c_char, c_int};
use std::time::Duration;

use super::{code, library, nvml, put, put_text};
use crate::sim::Sim;

fn begin(symbol: &str) -> u32 {
    let mut library = library();
    if library.sim.is_none() {
        match Sim::open() {
            Ok(sim) => {
                // Cards without persistence are set up by whoever comes first.
                if let Some(seconds) = sim.scenario.duration_s("slow-nvml") {
                    std::thread::sleep(std::time::Duration::from_secs_f64(seconds));
                }
                library.sim = Some(sim);
            }
            Err(why) => {
                eprintln!("simulated GPU: {why}");
                return code::UNKNOWN;
            }
        }
    }
    if let Some(seconds) =
        library.sim.as_ref().filter(|_| library.users == 0).and_then(|sim| sim.scenario.duration_s("slow-init"))
    {
        std::thread::sleep(Duration::from_secs_f64(seconds));
    }
    let fault = library.sim.as_ref().and_then(|sim| sim.scenario.nvml_fault(symbol, || sim.elapsed_s()));
    if let Some(fault) = fault {
        return fault;
    }
    library.users += 1;
    code::SUCCESS
}

/// As in NVML.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> u32 {
    begin("nvmlInit_v2")
}

/// As in NVML; the flags change nothing here.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlInitWithFlags(_flags: u32) -> u32 {
    begin("nvmlInitWithFlags")
}

/// As in NVML.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlShutdown() -> u32 {
    let mut library = library();
    if library.users == 0 {
        return code::UNINITIALIZED;
    }
    library.users -= 1;
    if library.users == 0 {
        library.sim = None;
    }
    code::SUCCESS
}

/// As in NVML.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlErrorString(result: u32) -> *const c_char {
    let words = match result {
        0 => c"Success",
        1 => c"Uninitialized",
        2 => c"Invalid Argument",
        3 => c"Not Supported",
        4 => c"Insufficient Permissions",
        6 => c"Not Found",
        7 => c"Insufficient Size",
        9 => c"Driver Not Loaded",
        10 => c"Timeout",
        13 => c"Function Not Found",
        15 => c"GPU is lost",
        16 => c"GPU requires reset",
        19 => c"In use by another client",
        20 => c"Insufficient Memory",
        21 => c"No data",
        23 => c"Insufficient Resources",
        25 => c"Argument version mismatch",
        27 => c"Not Ready",
        28 => c"GPU Not Found",
        29 => c"Invalid State",
        _ => c"Unknown Error",
    };
    words.as_ptr()
}

/// The name of a process as NVML gives it: its first argument, or its file.
pub fn process_name(pid: u32) -> Option<String> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let first = line.split(|b| *b == 0).next().filter(|w| !w.is_empty())?;
    Some(String::from_utf8_lossy(first).into_owned())
}

nvml! {
    fn nvmlSystemGetDriverVersion(sim, now, version: *mut c_char, length: u32) {
        put_text(&sim.driver().0, version, length)
    }

    fn nvmlSystemGetNVMLVersion(sim, now, version: *mut c_char, length: u32) {
        let (driver, cuda) = sim.driver();
        put_text(&format!("{}.{driver}", cuda / 1000), version, length)
    }

    fn nvmlSystemGetCudaDriverVersion(sim, now, version: *mut c_int) {
        put(version, sim.driver().1)
    }

    fn nvmlSystemGetCudaDriverVersion_v2(sim, now, version: *mut c_int) {
        put(version, sim.driver().1)
    }

    fn nvmlSystemGetProcessName(_sim, now, pid: u32, name: *mut c_char, length: u32) {
        let mut found = process_name(pid).ok_or(code::NOT_FOUND)?;
        let room = (length as usize).saturating_sub(1);
        let end = (0..=room.min(found.len())).rev().find(|i| found.is_char_boundary(*i)).unwrap_or(0);
        found.truncate(end);
        put_text(&found, name, length)
    }
}
