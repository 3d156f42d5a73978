//! The functions of NVML that a harness uses, exported under their names.
//!
//! In: what NVML's header says. Out: NVML's return codes, and the state of the simulated machine. A function that is not here is a
//! symbol that an older driver does not have. A scenario can make any of them fail (`nvml:SYMBOL=CODE`).

use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard};

use crate::sim::Sim;

mod board;
mod compute;
mod device;
mod entry;
mod events;
mod gpm;
mod mig;
mod process;
mod profile;
mod readings;
mod rights;
mod system;

pub use device::bus_id;
pub use gpm::SAMPLE_SPACING_NS;
pub use process::{foreign, foreign_bytes};
pub use readings::{Board, FOREIGN_BYTES, RESERVED_MIB, memory_mib};
pub use system::process_name;

/// NVML's codes, as far as they are used.
pub mod code {
    pub const SUCCESS: u32 = 0;
    pub const UNINITIALIZED: u32 = 1;
    pub const INVALID_ARGUMENT: u32 = 2;
    pub const NOT_SUPPORTED: u32 = 3;
    pub const NO_PERMISSION: u32 = 4;
    pub const NOT_FOUND: u32 = 6;
    pub const INSUFFICIENT_SIZE: u32 = 7;
    pub const TIMEOUT: u32 = 10;
    pub const FUNCTION_NOT_FOUND: u32 = 13;
    pub const GPU_IS_LOST: u32 = 15;
    pub const RESET_REQUIRED: u32 = 16;
    pub const IN_USE: u32 = 19;
    pub const INSUFFICIENT_RESOURCES: u32 = 23;
    pub const ARGUMENT_VERSION_MISMATCH: u32 = 25;
    pub const UNKNOWN: u32 = 999;
}

/// Done, or NVML's code for why not.
type Done = Result<(), u32>;

/// The library in this process: initialised so many times.
struct Library {
    users: u32,
    sim: Option<Sim>,
}

static LIBRARY: Mutex<Library> = Mutex::new(Library { users: 0, sim: None });

fn library() -> MutexGuard<'static, Library> {
    LIBRARY.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// One call of NVML: look what is new, fail if the scenario says so, else do it.
fn call(symbol: &str, what: impl FnOnce(&mut Sim, u64) -> Done) -> u32 {
    let done = catch_unwind(AssertUnwindSafe(|| {
        let mut library = library();
        let sim = library.sim.as_mut().ok_or(code::UNINITIALIZED)?;
        let now = sim.refresh();
        match sim.scenario.nvml_fault(symbol, || sim.elapsed_s()) {
            Some(fault) => Err(fault),
            None => rights::allowed(sim, symbol).and_then(|()| what(sim, now)),
        }
    }));
    match done {
        Ok(Ok(())) => code::SUCCESS,
        Ok(Err(code)) => code,
        Err(_) => code::UNKNOWN,
    }
}

/// Export functions of NVML: each gets the machine and the moment besides its own arguments.
macro_rules! nvml {
    ($(fn $name:ident($sim:ident, $now:ident $(, $arg:ident: $kind:ty)* $(,)?) $body:block)*) => {$(
        /// As in NVML.
        ///
        /// # Safety
        /// Pointers are null or point to what NVML's header says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $kind),*) -> u32 {
            $crate::nvml::call(stringify!($name), |$sim: &mut $crate::sim::Sim, $now: u64| {
                let _ = &$now;
                // SAFETY: the caller keeps NVML's contract; null is checked.
                unsafe { $body }
            })
        }
    )*};
}
use nvml;

/// The same for functions that write nothing.
macro_rules! nvml_in {
    ($(fn $name:ident($sim:ident $(, $arg:ident: $kind:ty)* $(,)?) $body:block)*) => {$(
        /// As in NVML. Its arguments are values and handles, which are never followed.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($arg: $kind),*) -> u32 {
            $crate::nvml::call(stringify!($name), |$sim: &mut $crate::sim::Sim, _| $body)
        }
    )*};
}
use nvml_in;

/// What a device handle stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Device {
    card: usize,
    /// GPU instance and compute instance of a MIG device.
    mig: Option<(u32, u32)>,
}

/// Handles are tags, never addresses: a kind, a card, and the serial number of an instance, which is never given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Card = 1,
    MigDevice = 2,
    GpuInstance = 3,
    ComputeInstance = 4,
}

/// The bits of a serial number in a handle.
const SERIAL: u64 = 0xffff_ffff_ffff;

/// The handle of a whole card, until its MIG mode changes.
fn of_card<T>(sim: &Sim, card: usize) -> *mut T {
    tag(Kind::Card, card, sim.state().cards[card].resets & SERIAL)
}

fn tag<T>(kind: Kind, card: usize, serial: u64) -> *mut T {
    ((kind as usize) << 56 | card << 48 | serial as usize) as *mut T
}

fn untag<T>(handle: *mut T) -> (usize, usize, u64) {
    let bits = handle as usize;
    (bits >> 56, (bits >> 48) & 0xff, bits as u64 & SERIAL)
}

/// The device of a handle; a handle of an instance that was destroyed stands for nothing.
fn device<T>(sim: &Sim, handle: *mut T) -> Result<Device, u32> {
    let (kind, card, serial) = untag(handle);
    let state = sim.state().cards.get(card).ok_or(code::INVALID_ARGUMENT)?;
    if sim.is_lost(card) {
        return Err(code::GPU_IS_LOST);
    }
    if kind == Kind::Card as usize {
        // A change of MIG mode resets the card, and what stood for it before stands for nothing.
        let fresh = serial == state.resets & SERIAL;
        return if fresh { Ok(Device { card, mig: None }) } else { Err(code::INVALID_ARGUMENT) };
    }
    let found = state.compute().find(|(_, c)| kind == Kind::MigDevice as usize && c.serial == serial);
    let (gpu, compute) = found.ok_or(code::INVALID_ARGUMENT)?;
    Ok(Device { card, mig: Some((gpu.id, compute.id)) })
}

/// The same where only a whole card will do.
fn card<T>(sim: &Sim, handle: *mut T) -> Result<usize, u32> {
    match device(sim, handle)? {
        Device { card, mig: None } => Ok(card),
        _ => Err(code::NOT_SUPPORTED),
    }
}

unsafe fn put<T>(to: *mut T, value: T) -> Done {
    if to.is_null() {
        return Err(code::INVALID_ARGUMENT);
    }
    // SAFETY: not null, and the caller keeps NVML's contract.
    unsafe { to.write(value) };
    Ok(())
}

unsafe fn get<T: Copy>(from: *const T) -> Result<T, u32> {
    if from.is_null() {
        return Err(code::INVALID_ARGUMENT);
    }
    // SAFETY: not null, and the caller keeps NVML's contract.
    Ok(unsafe { from.read() })
}

unsafe fn put_text(text: &str, to: *mut c_char, room: u32) -> Done {
    if to.is_null() {
        return Err(code::INVALID_ARGUMENT);
    }
    if text.len() + 1 > room as usize {
        return Err(code::INSUFFICIENT_SIZE);
    }
    for (i, byte) in text.bytes().chain([0]).enumerate() {
        // SAFETY: inside the room that the caller gives.
        unsafe { to.add(i).write(byte as c_char) };
    }
    Ok(())
}

unsafe fn text(from: *const c_char) -> Result<String, u32> {
    if from.is_null() {
        return Err(code::INVALID_ARGUMENT);
    }
    // SAFETY: not null, and ends with a zero by NVML's contract.
    Ok(unsafe { CStr::from_ptr(from) }.to_string_lossy().into_owned())
}

/// Write a list whose length the caller may ask for first; `room` holds its room, and then the length.
unsafe fn put_list<T: Copy>(all: &[T], to: *mut T, room: *mut u32) -> Done {
    // SAFETY: as the caller.
    unsafe {
        let given = get(room)? as usize;
        put(room, all.len() as u32)?;
        if to.is_null() {
            return if given == 0 || all.is_empty() { Ok(()) } else { Err(code::INVALID_ARGUMENT) };
        }
        if given < all.len() {
            return Err(code::INSUFFICIENT_SIZE);
        }
        all.iter().enumerate().for_each(|(i, item)| to.add(i).write(*item));
    }
    Ok(())
}

/// A fixed field of characters.
fn letters<const N: usize>(text: &str) -> [c_char; N] {
    let mut all = [0; N];
    for (to, byte) in all.iter_mut().zip(text.bytes().take(N - 1)) {
        *to = byte as c_char;
    }
    all
}

/// The first word of a structure that has versions.
fn version_word<T>(version: u32) -> u32 {
    size_of::<T>() as u32 | version << 24
}
