//! Lists of processes as drivers from 535.43.02 until before 535.104.05 have them: entries of 32 bytes under the name of those of 24, and in
//! 535.98 no such function at all (XuehaiPan/nvitop #79, #88; NVIDIA/go-nvml #75).

use nvml_wrapper_sys::bindings as b;

use super::{Done, code, put};
use crate::sim::Sim;

/// What those drivers write: the usual entry, and the memory that is protected by confidential computing.
#[repr(C)]
#[derive(Clone, Copy)]
struct Wide {
    usual: b::nvmlProcessInfo_t,
    protected: u64,
}

fn version(sim: &Sim) -> [u32; 3] {
    let (text, _) = sim.driver();
    let mut parts = text.split('.').map(|part| part.parse().unwrap_or(0));
    [0; 3].map(|_| parts.next().unwrap_or(0))
}

pub fn has_lists(sim: &Sim) -> Done {
    if version(sim)[..2] == [535, 98] { Err(code::FUNCTION_NOT_FOUND) } else { Ok(()) }
}

pub fn are_wide(sim: &Sim) -> bool {
    ([535, 43, 0]..[535, 98, 0]).contains(&version(sim))
}

/// Write the wide entries into room for so many of the usual ones. The driver goes on behind its end; this stops there.
///
/// # Safety
/// As `put_processes`.
pub unsafe fn put_wide(all: &[b::nvmlProcessInfo_t], to: *mut b::nvmlProcessInfo_t, count: *mut u32, given: usize) -> Done {
    // SAFETY: no byte is written behind the room that the caller gives.
    unsafe {
        put(count, all.len() as u32)?;
        if to.is_null() {
            return Ok(());
        }
        let room = given * size_of::<b::nvmlProcessInfo_t>();
        for (i, usual) in all.iter().enumerate() {
            let wide = Wide { usual: *usual, protected: 0 };
            let bytes = std::slice::from_raw_parts(std::ptr::from_ref(&wide).cast::<u8>(), size_of::<Wide>());
            for (k, byte) in bytes.iter().enumerate().filter(|(k, _)| i * size_of::<Wide>() + k < room) {
                to.cast::<u8>().add(i * size_of::<Wide>() + k).write(*byte);
            }
        }
    }
    Ok(())
}
