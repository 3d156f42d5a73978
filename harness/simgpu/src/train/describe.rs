//! A training step described, for a prediction: what tracing it would give if networks were what the simulated ones are.
//!
//! In: the folder of a workload, the options of its script. Out: a description whose allocations are about what the simulated member will
//! hold, at every batch size that the data have: off by up to a few percent either way, by the name of the network, since no trace is
//! exact. It is JSON by the contract of `collo_description.py`, written by hand: the simulation shares no code with what reads it.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;

use super::TORCH;
use super::options::Options;
use crate::workload::Workload;

const MIB: f64 = (1u64 << 20) as f64;
/// The largest share by which a description is off.
const OFF: f64 = 0.04;
/// Batch sizes between which memory is a line; the second is that of the larger entries of the data.
const BATCHES: [u32; 2] = [32, 128];

/// Whether a description is asked for.
pub fn asked() -> Option<String> {
    let asks = std::env::var("COLLO_DESCRIBE").is_ok_and(|v| v == "1");
    std::env::var("COLLO_DESCRIPTION").ok().filter(|_| asks)
}

/// Write the description of a workload; the error is for its stderr.
pub fn write(to: &str, folder: &str, options: &Options) -> Result<(), String> {
    let held = |batch: u32| -> Result<f64, String> {
        let mut all = options.0.clone();
        all.insert("batch_size".into(), batch.to_string());
        Ok(Workload::find(folder, &all)?.memory_mib_on(0) as f64)
    };
    let [at_first, at_second] = [held(BATCHES[0])?, held(BATCHES[1])?];
    let item = (at_second - at_first).max(0.0) / f64::from(BATCHES[1] - BATCHES[0]);
    let fixed = at_first - item * f64::from(BATCHES[0]);
    let exactness = 1.0 + OFF * sign_of(folder, &options.0);
    let (fixed, item) = (whole(fixed * exactness), whole(item * exactness));
    let parameters = Workload::find(folder, &options.0)?.parameters;
    let none = json!({"count": 0, "flops_per_item": 0, "bytes_per_item": 0, "fixed_bytes": 0});
    let kinds = ["convolution", "matmul", "normalisation", "activation", "other"];
    let operations: BTreeMap<&str, _> = kinds.into_iter().map(|kind| (kind, none.clone())).collect();
    let description = json!({
        "schema": 1, "torch": TORCH, "traced_batch": 13, "precision": "fp32", "optimizer": "SGD", "approximate": [],
        "parameters": parameters, "parameter_bytes": 4 * parameters, "trainable_parameter_bytes": 4 * parameters,
        "buffer_bytes": 0, "largest_layer_parameters": parameters / 10,
        "kinds": ["weights", "saved"],
        "allocations": [[fixed, 0, 0], [item, 1, 1]],
        "events": [1, 2, -2, 2, -2], "steps": [1, 3, 5],
        "workspace": {"item_bytes": 0, "fixed_bytes": 0},
        "operations": operations, "kernels_per_step": 100, "forward_flops_per_item": 2 * parameters,
        "features": {"convolutions": 0, "linear": 1, "activations": 0, "other": 0, "model_mb": parameters as f64 * 4e-6},
        "layers": [["linear", 1, parameters]], "horus_activations": 1, "fake_tensor": [[fixed, item]],
    });
    std::fs::write(Path::new(to), description.to_string()).map_err(|e| format!("`{to}`: {e}"))
}

/// Bytes of so many MiB.
fn whole(mib: f64) -> u64 {
    (mib * MIB) as u64
}

/// Between -1 and 1, by the folder and the network: the same each time.
fn sign_of(folder: &str, options: &BTreeMap<String, String>) -> f64 {
    let name = format!("{folder} {}", options.get("model").map_or("", String::as_str));
    // FNV-1a, whose low bits alone depend on the last letters.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    ((hash >> 32) % 2001) as f64 / 1000.0 - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_about_what_the_member_will_hold_at_both_batch_sizes() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("description.json");
        let words = ["--model=resnet26", "--dataset=cifar-10", "--batch-size=32"].map(str::to_string);
        write(path.to_str().expect("text"), "vision", &Options::read(&words)).expect("written");
        let read: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&path).expect("there")).expect("JSON");
        let bytes = |at: usize| read["allocations"][at][0].as_f64().expect("a number");
        for (batch, truth_mib) in [(32.0, 900.0), (128.0, 1500.0)] {
            let off = (bytes(0) + batch * bytes(1)) / (truth_mib * MIB) - 1.0;
            assert!(off.abs() <= OFF + 1e-6, "{off} at {batch}");
        }
    }
}
