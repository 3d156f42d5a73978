//! A simulated NVIDIA GPU. Production code runs unchanged against it.
//!
//! - the library itself, opened as `libnvidia-ml.so.1` would be: the functions of NVML that a harness uses ([`nvml`])
//! - `nvidia-cuda-mps-control`, `dcgmi`, `nvidia-smi`, `systemctl`: programs for the PATH
//! - `sim-train`: stands where Python stands, and trains at the pace that the card gives it; with `collo_host.py` as its script it is one
//!   process whose threads are members ([`train::host`])
//!
//! In: `COLLO_SIM`, a card and how it misbehaves ([`scenario`]); `COLLO_SIM_DIR`, a folder that all of them share ([`sim`]); the cards of
//! `mig-profiles/` ([`card`]), or of the folder `COLLO_SIM_CARDS`; `COLLO_SIM_EPOCH_S`, about how long an epoch takes alone (1.5), or `COLLO_SIM_SCALE`, by how much whole epochs are
//! shortened instead, all alike ([`train::epoch_length`]);
//! `COLLO_SIM_TORCH_CUDA`, the CUDA of the simulated torch (13.0); `COLLO_SIM_SERIAL`, what makes the cards of one machine others than those of an equal one. Another card, or another number of them, is another machine: the
//! folder then begins anew.
//!
//! Out: a machine whose every number follows from one page of formulas ([`model`]) and from the log of who
//! trained when ([`history`]). The clock is never sped up. Every name says *simulated*.

pub mod card;
pub mod clock;
pub mod cut;
pub mod dcgm;
pub mod dice;
pub mod history;
pub mod launch;
pub mod log;
pub mod model;
pub mod mps;
pub mod nvml;
pub mod scenario;
pub mod services;
pub mod sim;
pub mod smi;
pub mod state;
pub mod train;
pub mod truth;
pub mod visible;
pub mod workload;

pub use truth::truth;
