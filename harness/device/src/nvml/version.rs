//! Driver versions whose lists of processes must not be read.
//!
//! 535.43.02 introduced a wider entry for lists of processes, 32 bytes with a field of confidential computing, under the old name
//! `nvmlDeviceGetComputeRunningProcesses_v3`; NVIDIA reverted it to 24 bytes, in 535.98 the function is missing, from 535.104.05
//! on it is correct (XuehaiPan/nvitop #79, #88; NVIDIA/go-nvml #75; wookayin/gpustat #161). Reading 24 bytes yields pids that do
//! not exist, and the driver writes past the end of a list of the exact length.

use super::NoDriver;

/// The first driver with the wide entries, and the first correct one.
const WIDE: [u32; 3] = [535, 43, 0];
const RIGHT: [u32; 3] = [535, 104, 5];

/// `535.104.05` → its three numbers; missing ones are 0.
fn numbers(version: &str) -> Option<[u32; 3]> {
    let mut numbers = [0; 3];
    let mut parts = version.split('.');
    for (number, part) in numbers.iter_mut().zip(parts.by_ref()) {
        *number = part.trim().parse().ok()?;
    }
    Some(numbers)
}

/// A driver with wrong process lists is not used at all.
pub fn check(version: &str) -> Result<(), NoDriver> {
    match numbers(version).is_some_and(|v| (WIDE..RIGHT).contains(&v)) {
        true => Err(NoDriver::Unsafe(version.into())),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_between_535_43_and_535_104_05_are_refused_and_no_other() {
        for wrong in ["535.43.02", "535.54.03", "535.86.10", "535.98", "535.104.03"] {
            assert_eq!(check(wrong), Err(NoDriver::Unsafe(wrong.into())), "{wrong}");
        }
        for right in ["525.147.05", "530.41.03", "535.104.05", "535.104.12", "535.183.06", "550.54.14", "580.95.05", "unknown"] {
            assert_eq!(check(right), Ok(()), "{right}");
        }
    }
}
