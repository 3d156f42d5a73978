//! Errors of a GPU, as its driver reports them: Xids.

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

/// What the usual ones mean, after NVIDIA's table (<https://docs.nvidia.com/deploy/xid-errors/>).
const MEANINGS: [(u64, &str); 20] = [
    (13, "graphics engine exception: an error of the program, or of the hardware"),
    (31, "GPU memory page fault"),
    (32, "invalid or corrupted push buffer stream"),
    (38, "driver firmware error"),
    (43, "GPU stopped processing: a program's error ended it"),
    (45, "preemptive cleanup after earlier errors, or because a program was ended"),
    (48, "double bit ECC error"),
    (61, "internal micro-controller breakpoint"),
    (62, "internal micro-controller halt"),
    (63, "a row remapping or page retirement was recorded"),
    (64, "a row remapping or page retirement could not be recorded"),
    (68, "NVDEC exception"),
    (69, "graphics engine class error"),
    (74, "NVLink error"),
    (79, "GPU has fallen off the bus"),
    (92, "high single-bit ECC error rate"),
    (94, "contained ECC error"),
    (95, "uncontained ECC error"),
    (119, "GSP RPC timeout"),
    (120, "GSP error"),
];

impl XidError {
    /// `Xid 79 (GPU has fallen off the bus)`.
    pub fn text(&self) -> String {
        let Some(number) = self.number else { return "an Xid of unknown number".into() };
        match MEANINGS.iter().find(|(known, _)| *known == number) {
            Some((_, meaning)) => format!("Xid {number} ({meaning})"),
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
        assert!(MEANINGS.is_sorted_by_key(|(number, _)| *number));
    }
}
