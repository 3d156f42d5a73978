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

/// Prefixes of variables by which a launcher describes one rank of a distributed job. A member is a job of its own: a script that
/// finds collo's rank waits for ranks that never come. `PET_*` are torchrun's options (torch/distributed/argparse_util.py; its
/// `TORCHELASTIC_*` are above), `ACCELERATE_*` and `FSDP_*` those of `accelerate launch` (accelerate/utils/launch.py), `SLURM_*`
/// are srun's (<https://slurm.schedmd.com/srun.html#SECTION_OUTPUT-ENVIRONMENT-VARIABLES>), `OMPI_*` Open MPI's
/// (<https://docs.open-mpi.org/en/v5.0.x/tuning-apps/environment-var.html>). `PMI_*`, `MV2_*` and Intel's `MPI_LOCAL*` are read by
/// `get_int_from_env` of accelerate, jsrun's by Lightning (fabric/plugins/environments/lsf.py). Flux sets `FLUX_TASK_*` per task
/// (flux-core, src/shell/task.c), Cray's PALS `PALS_*` (flux-coral2, src/shell/plugins/cray_pals.c), and Horovod reads `HOROVOD_RANK` and
/// its like (horovod/common/gloo/gloo_context.cc).
const RANK_PREFIXES: [&str; 17] = [
    "PET_",
    "ACCELERATE_",
    "FSDP_",
    "SLURM_NTASKS",
    "SLURM_TASK",
    "SLURM_STEP",
    "SLURM_SRUN_",
    "SLURM_PMI",
    "OMPI_",
    "MV2_COMM_WORLD_",
    "MPI_LOCAL",
    "PMI_",
    "PMIX_",
    "JSM_NAMESPACE_",
    "PALS_",
    "FLUX_TASK_",
    "HOROVOD_",
];

/// Whole names of such variables: first torchrun's (torch/distributed/elastic/agent/server/local_elastic_agent.py), then
/// Lightning's (fabric/plugins/environments/lightning.py) and TensorFlow's
/// (<https://www.tensorflow.org/guide/distributed_training#setting_up_the_tf_config_environment_variable>). Of Slurm's,
/// Lightning takes `SLURM_NTASKS` for a distributed job (fabric/plugins/environments/slurm.py), torchvision's references
/// `SLURM_PROCID`, accelerate and transformers none. What names the job, its nodes and its share of them (`SLURM_JOB_ID`,
/// `SLURM_JOB_NODELIST`, `SLURM_TMPDIR`, `SLURM_CPUS_PER_TASK`) is a rank to none of them, and stays.
const RANK_NAMES: [&str; 21] = [
    "RANK",
    "LOCAL_RANK",
    "GROUP_RANK",
    "ROLE_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "GROUP_WORLD_SIZE",
    "ROLE_WORLD_SIZE",
    "ROLE_NAME",
    "MASTER_ADDR",
    "MASTER_PORT",
    "GLOBAL_RANK",
    "NODE_RANK",
    "TF_CONFIG",
    "SLURM_PROCID",
    "SLURM_LOCALID",
    "SLURM_NODEID",
    "SLURM_NPROCS",
    "SLURM_GTIDS",
    "SLURM_NNODES",
    "SLURM_JOB_NUM_NODES",
];

fn changes_training(name: &str) -> bool {
    CHANGES_TRAINING.iter().any(|beginning| name.starts_with(beginning)) && !PLACES.contains(&name)
}

fn describes_a_rank(name: &str) -> bool {
    RANK_NAMES.contains(&name) || RANK_PREFIXES.iter().any(|beginning| name.starts_with(beginning))
}

/// Every variable of collo's own environment that changes how a member trains, or makes it a rank of a job: none may reach one by
/// accident.
pub fn scrubbed() -> BTreeMap<String, Option<String>> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.filter(|name| changes_training(name) || describes_a_rank(name)).map(|name| (name, None)).collect()
}

/// The names of those that are set here, to report that they do not reach members. The choice of GPU is reported
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

    #[test]
    fn no_variable_that_makes_a_member_a_rank_of_a_job_reaches_it_and_what_names_the_job_does() {
        let of_torch = ["RANK", "WORLD_SIZE", "LOCAL_RANK", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT", "PET_NNODES"];
        let of_slurm =
            ["SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_STEPID"];
        let of_mpi = ["OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMIX_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"];
        for name in of_torch.into_iter().chain(of_slurm).chain(of_mpi).chain(["ACCELERATE_USE_FSDP", "JSM_NAMESPACE_RANK"]) {
            assert!(describes_a_rank(name), "{name}");
        }
        assert!(changes_training("TORCHELASTIC_RUN_ID"));
        for name in
            ["SLURM_JOB_ID", "SLURM_TMPDIR", "SLURM_CPUS_PER_TASK", "SLURM_ARRAY_TASK_ID", "SLURM_JOB_NODELIST", "RANKING"]
        {
            assert!(!describes_a_rank(name), "{name}");
        }
    }
}
