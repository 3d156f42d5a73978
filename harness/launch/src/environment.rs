//! The variables of collo's own environment that reach no member.

use std::collections::BTreeMap;

/// Prefixes of variables that change how a library computes or allocates: `NVIDIA_TF32_OVERRIDE` overrides every flag of torch
/// (<https://docs.nvidia.com/deeplearning/cudnn/backend/latest/developer/misc.html>), `PYTORCH_CUDA_ALLOC_CONF` the allocator.
/// With `COLLO_DESCRIBE` a script describes its step and does not train.
const CHANGES_TRAINING: [&str; 9] =
    ["CUDA_", "CUBLAS_", "CUBLASLT_", "CUDNN_", "NVIDIA_TF32_OVERRIDE", "PYTORCH_", "TORCH", "TRITON_", "COLLO_DESCRI"];

/// Locations of toolkits and caches, which are kept.
const PLACES: [&str; 9] = [
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_CACHE_PATH",
    "TORCH_HOME",
    "TORCH_EXTENSIONS_DIR",
    "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_HOME",
    "TRITON_CACHE_DIR",
    "TRITON_PTXAS_PATH",
];

fn changes_training(name: &str) -> bool {
    CHANGES_TRAINING.iter().any(|beginning| name.starts_with(beginning)) && !PLACES.contains(&name)
}

/// Every variable of collo's own environment that changes how a member trains: none may reach one by accident.
pub fn scrubbed() -> BTreeMap<String, Option<String>> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.filter(|name| changes_training(name)).map(|name| (name, None)).collect()
}

/// The names of those that the user set on purpose, to report that they do not reach members. The choice of GPU is reported
/// elsewhere.
pub fn withheld() -> Vec<String> {
    let chooses = |name: &String| ["CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"].contains(&name.as_str());
    scrubbed().into_keys().filter(|name| !chooses(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_how_a_member_trains_does_not_reach_it_and_where_things_are_does() {
        for name in ["CUDA_LAUNCH_BLOCKING", "NVIDIA_TF32_OVERRIDE", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"] {
            assert!(changes_training(name), "{name}");
        }
        for name in
            ["TORCHINDUCTOR_MAX_AUTOTUNE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "CUBLAS_WORKSPACE_CONFIG", "TRITON_INTERPRET"]
        {
            assert!(changes_training(name), "{name}");
        }
        for name in ["COLLO_DESCRIBE", "COLLO_DESCRIPTION"] {
            assert!(changes_training(name), "{name}");
        }
        for name in ["PATH", "NVIDIA_VISIBLE_DEVICES", "TORCH_HOME", "TRITON_CACHE_DIR", "CUDA_HOME", "LD_LIBRARY_PATH"] {
            assert!(!changes_training(name), "{name}");
        }
    }
}
