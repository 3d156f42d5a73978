//! Errors of a GPU, as its driver reports them: Xids.
//!
//! To add the meaning of an Xid: a row of `CATALOG`.

use serde::{Deserialize, Serialize};

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct XidError {
    /// When it was heard of.
    pub at_ns: u64,
    /// `gpu:UUID`.
    pub scope: String,
    /// Absent if the driver did not say which.
    pub number: Option<u64>,
}

/// Who is behind an Xid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// A program on the GPU that failed, or was ended; NVIDIA: the GPU stays healthy, or follow the other Xid.
    Program,
    /// The GPU, its links, its firmware or the driver.
    Gpu,
}

/// The usual ones: NVIDIA's description, and its origin by NVIDIA's actions and trigger conditions. Those of programs are the ones that
/// are described as an application's fault or end; 32 is "generally not caused by user application actions".
/// <https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html>; 45 is also what the driver ends other clients with after
/// an Xid of the GPU ("caused by previous Xid 145", open-gpu-kernel-modules #1150), which is reported itself.
const CATALOG: [(u64, &str, Origin); 42] = [
    (8, "GPU stopped processing", Origin::Gpu),
    (11, "invalid or corrupted push buffer stream", Origin::Gpu),
    (13, "graphics engine exception", Origin::Program),
    (25, "invalid or illegal push buffer stream", Origin::Gpu),
    (31, "GPU memory page fault", Origin::Program),
    (32, "invalid or corrupted push buffer stream", Origin::Gpu),
    (38, "driver firmware error", Origin::Gpu),
    (39, "copy engine exception", Origin::Gpu),
    (43, "GPU stopped processing: reset of a channel", Origin::Program),
    (44, "graphics engine fault during context switch", Origin::Gpu),
    (45, "preemptive cleanup, due to previous errors or the end of a program", Origin::Program),
    (46, "GPU stopped processing: timeout", Origin::Gpu),
    (48, "double bit ECC error", Origin::Gpu),
    (54, "auxiliary power is not connected to the GPU board", Origin::Gpu),
    (61, "internal micro-controller breakpoint", Origin::Gpu),
    (62, "internal micro-controller halt", Origin::Gpu),
    (63, "GPU memory remapping event", Origin::Gpu),
    (64, "GPU memory remapping failure", Origin::Gpu),
    (68, "NVDEC0 exception", Origin::Gpu),
    (69, "graphics engine class error", Origin::Program),
    (74, "NVLink error", Origin::Gpu),
    (79, "GPU has fallen off the bus", Origin::Gpu),
    (92, "high single-bit ECC error rate", Origin::Gpu),
    (94, "contained memory error", Origin::Gpu),
    (95, "uncontained memory error", Origin::Gpu),
    (109, "context switch timeout", Origin::Gpu),
    (119, "GSP RPC timeout", Origin::Gpu),
    (120, "GSP error", Origin::Gpu),
    (121, "C2C link error", Origin::Gpu),
    (136, "link training failed", Origin::Gpu),
    (137, "NVLink privilege error", Origin::Gpu),
    (140, "unrecovered ECC error", Origin::Gpu),
    (143, "GPU initialization error", Origin::Gpu),
    (144, "NVLink SAW error", Origin::Gpu),
    (145, "NVLink RLW error", Origin::Gpu),
    (146, "NVLink TLW error", Origin::Gpu),
    (147, "NVLink TREX error", Origin::Gpu),
    (148, "NVLink NVLPW_CTRL error", Origin::Gpu),
    (149, "NVLink NETIR error", Origin::Gpu),
    (150, "NVLink MSE error", Origin::Gpu),
    (154, "GPU recovery action changed", Origin::Gpu),
    (155, "NVLink software-defined error", Origin::Gpu),
];

impl XidError {
    fn known(&self) -> Option<&'static (u64, &'static str, Origin)> {
        CATALOG.iter().find(|(known, ..)| Some(*known) == self.number)
    }

    /// True if a program is behind it: the numbers of the others stay as they are. What is unknown may be the GPU.
    pub fn is_of_a_program(&self) -> bool {
        matches!(self.known(), Some((_, _, Origin::Program)))
    }

    /// `Xid 79 (GPU has fallen off the bus)`.
    pub fn text(&self) -> String {
        let Some(number) = self.number else { return "an Xid of unknown number".into() };
        match self.known() {
            Some((_, meaning, _)) => format!("Xid {number} ({meaning})"),
            None => format!("Xid {number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_xid_is_said_with_its_meaning() {
        let text = |number| XidError { at_ns: 1, scope: "gpu:GPU-1".into(), number }.text();
        assert_eq!(
            [text(Some(79)), text(Some(7)), text(None)],
            ["Xid 79 (GPU has fallen off the bus)", "Xid 7", "an Xid of unknown number"]
        );
        assert!(CATALOG.is_sorted_by_key(|(number, ..)| *number));
    }
    #[test]
    fn an_xid_is_of_a_program_only_where_nvidia_describes_it_so() {
        let is = |number: &u64| XidError { at_ns: 1, scope: "gpu:GPU-1".into(), number: Some(*number) }.is_of_a_program();
        assert!([13, 31, 43, 45, 69].iter().all(is));
        let gpu = [32, 48, 63, 64, 74, 79, 94, 95, 119, 145, 149];
        assert!(!gpu.iter().any(is) && !is(&7), "what is not known may be the GPU");
        assert!(!XidError { at_ns: 1, scope: "gpu:GPU-1".into(), number: None }.is_of_a_program());
    }
}
