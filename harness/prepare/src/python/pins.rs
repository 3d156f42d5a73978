//! Selects the pinned set of packages for a machine.
//!
//! In: the CUDA version of its driver, the compute capability of its GPU, its processor's architecture. Out: a set, or why none
//! fits.

use super::PythonError;
use collo_device::driver;
use collo_device::driver::DriverTarget;

/// The lowest compute capability that each set's torch has kernels for: 2.10 for CUDA 12.8 from Volta on
/// (<https://github.com/pytorch/pytorch/pull/175253> has the matrix of 2.10), 2.14 for CUDA 13 from Turing on (its own list of
/// architectures begins with `sm_75`).
const LEAST_CUDA_12: (i32, i32) = (7, 0);
const LEAST_CUDA_13: (i32, i32) = (7, 5);

/// The pinned sets. Except for torch's own packages the three are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PinSet {
    /// Without the packages that torch needs only to compute on a GPU.
    Cpu,
    /// The newest torch whose wheel on the package index is built for CUDA 12: for drivers before 580, and for Volta.
    Cuda12,
    Cuda13,
}

impl PinSet {
    /// The set for this driver and GPU; without a driver the CPU's.
    pub fn for_driver(target: Option<DriverTarget>) -> Result<Self, PythonError> {
        Self::on(target, std::env::consts::ARCH)
    }

    fn on(target: Option<DriverTarget>, architecture: &str) -> Result<Self, PythonError> {
        let Some(DriverTarget { cuda, capability }) = target else { return Ok(PinSet::Cpu) };
        // Elsewhere that torch comes without CUDA: its members would train on the CPU.
        let has_12 = architecture == "x86_64";
        // A card whose capability nobody tells is taken for a later one.
        let has_kernels = |least: (i32, i32)| capability.is_none_or(|c| c >= least);
        let no_kernels = || {
            let (major, minor) = capability.unwrap_or_default();
            PythonError::NoKernels { capability: format!("{major}.{minor}") }
        };
        match cuda {
            13_000.. if has_kernels(LEAST_CUDA_13) => Ok(PinSet::Cuda13),
            12_000.. if !has_kernels(LEAST_CUDA_12) => Err(no_kernels()),
            12_000.. if has_12 => Ok(PinSet::Cuda12),
            13_000.. => Err(no_kernels()),
            12_000.. => Err(PythonError::NoSet { architecture: architecture.into() }),
            old => Err(PythonError::OldDriver { cuda: driver::shown(old) }),
        }
    }

    /// The set for this machine's driver. If none fits its GPU it is the CPU's, for work outside campaigns: to measure a GPU use
    /// [`PinSet::for_driver`], which returns the error.
    pub fn for_this_machine() -> Self {
        Self::for_driver(driver::target()).unwrap_or(PinSet::Cpu)
    }

    /// Its name in records and messages.
    pub fn name(self) -> &'static str {
        match self {
            PinSet::Cpu => "cpu",
            PinSet::Cuda12 => "cuda12",
            PinSet::Cuda13 => "cuda13",
        }
    }

    pub(super) fn file(self) -> String {
        format!("requirements-{}.txt", self.name())
    }

    /// Bytes to download, and bytes on disk with bytecode. Measured for the CPU's set. For the others the first is the sum of the
    /// wheels' sizes in the package index, the second an estimate: 1.7 times as much, as on the CPU, and a margin.
    pub fn size(self) -> (u64, u64) {
        match self {
            PinSet::Cpu => (2_620_000_000, 4_450_000_000),
            PinSet::Cuda12 => (4_170_000_000, 7_400_000_000),
            PinSet::Cuda13 => (3_060_000_000, 5_900_000_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    const ALL: [PinSet; 3] = [PinSet::Cpu, PinSet::Cuda12, PinSet::Cuda13];

    fn driver(cuda: i32) -> Option<DriverTarget> {
        Some(DriverTarget { cuda, capability: None })
    }

    fn card(cuda: i32, capability: (i32, i32)) -> Option<DriverTarget> {
        Some(DriverTarget { cuda, capability: Some(capability) })
    }

    #[test]
    fn the_driver_decides_the_set() {
        for (target, set) in [(None, "cpu"), (driver(12_000), "cuda12"), (driver(12_090), "cuda12"), (driver(13_000), "cuda13")] {
            assert_eq!(PinSet::on(target, "x86_64").expect("there is one").name(), set, "{target:?}");
        }
        // A driver runs what was built for an older CUDA.
        assert_eq!(PinSet::on(driver(14_010), "x86_64").expect("there is one"), PinSet::Cuda13);
        assert_eq!(PinSet::on(driver(13_000), "aarch64").expect("there is one"), PinSet::Cuda13);
    }

    #[test]
    fn a_card_that_the_newer_set_has_no_kernels_for_takes_the_older_one_or_none() {
        let on = |target, architecture| PinSet::on(target, architecture).map_err(|e| e.to_string());
        // T4, A100, and V100 on a driver that still has it.
        assert_eq!(on(card(13_000, (7, 5)), "x86_64"), Ok(PinSet::Cuda13));
        assert_eq!(on(card(13_000, (8, 0)), "x86_64"), Ok(PinSet::Cuda13));
        assert_eq!(on(card(13_000, (7, 0)), "x86_64"), Ok(PinSet::Cuda12));
        assert_eq!(on(card(12_040, (7, 0)), "x86_64"), Ok(PinSet::Cuda12));
        // GTX 1080 and P100.
        let none = |c: &str| Err(format!("the GPU has compute capability {c}, and no pinned PyTorch has kernels for it"));
        assert_eq!(on(card(13_000, (6, 1)), "x86_64"), none("6.1"));
        assert_eq!(on(card(12_040, (6, 0)), "x86_64"), none("6.0"));
        assert_eq!(on(card(13_000, (7, 2)), "aarch64"), none("7.2"));
        let hint = PinSet::on(card(13_000, (6, 1)), "x86_64").expect_err("none").hint().expect("one");
        assert!(hint.starts_with("`--python PATH` takes your own"), "{hint}");
    }

    #[test]
    fn a_driver_that_no_set_fits_is_told_with_the_way_out() {
        let old = PinSet::on(driver(11_080), "x86_64").expect_err("none");
        assert_eq!(old.to_string(), "the driver has CUDA 11.8, the pinned PyTorch needs CUDA 12 or later");
        assert_eq!(old.hint().expect("one"), "update the driver to 525 or later, or `--python PATH` takes your own");
        let arm = PinSet::on(driver(12_040), "aarch64").expect_err("none");
        assert_eq!(arm.to_string(), "the driver has CUDA 12, and PyTorch's wheel for it on aarch64 is without CUDA");
        assert_eq!(arm.hint().expect("one"), "update the driver to 580 or later, or `--python PATH` takes your own");
    }

    /// The text of a set in the checkout.
    fn text(set: PinSet) -> String {
        let workloads = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
        fs_err::read_to_string(workloads.join(set.file())).expect("it is there")
    }

    /// A line that pins nothing: a hash, a comment.
    fn is_beside(line: &str) -> bool {
        line.is_empty() || line.starts_with([' ', '#'])
    }

    /// Package → its versions; several if Python versions need different ones.
    fn pinned(set: PinSet) -> BTreeMap<String, BTreeSet<String>> {
        let mut all = BTreeMap::<String, BTreeSet<String>>::new();
        for line in text(set).lines().filter(|l| !is_beside(l)) {
            let (name, rest) = line.split_once("==").expect("every package is pinned");
            all.entry(name.into()).or_default().insert(rest.split([' ', ';']).next().unwrap_or_default().into());
        }
        all
    }

    fn is_torchs_own(name: &str) -> bool {
        ["torch", "triton", "cuda-", "nvidia-"].iter().any(|own| name.starts_with(own))
    }

    #[test]
    fn the_sets_differ_in_what_belongs_to_torch_alone() {
        let others = |set| pinned(set).into_iter().filter(|(name, _)| !is_torchs_own(name)).collect::<BTreeMap<_, _>>();
        assert!(others(PinSet::Cuda13).len() > 20);
        assert_eq!(others(PinSet::Cuda12), others(PinSet::Cuda13));
        assert_eq!(others(PinSet::Cpu), others(PinSet::Cuda13));
    }

    #[test]
    fn every_package_has_its_hashes_and_no_index_is_named() {
        for set in ALL {
            let text = text(set);
            assert!(text.len() < 1_000_000);
            assert!(!["://", "index-url", "find-links"].iter().any(|word| text.contains(word)), "{}", set.name());
            let mut lines = text.lines().peekable();
            while let Some(line) = lines.next() {
                let hashed = lines.peek().is_some_and(|next| next.starts_with("    --hash=sha256:"));
                assert!(is_beside(line) || hashed, "{}: {line}", set.name());
            }
        }
    }

    #[test]
    fn each_set_brings_the_cuda_that_its_name_says() {
        let has = |set, end: &str| pinned(set).keys().any(|name| name.starts_with("nvidia-") && name.ends_with(end));
        assert!(has(PinSet::Cuda12, "-cu12") && !has(PinSet::Cuda12, "-cu13"));
        assert!(has(PinSet::Cuda13, "-cu13") && !has(PinSet::Cuda13, "-cu12"));
        assert!(pinned(PinSet::Cuda12)["nvidia-cuda-runtime-cu12"].iter().all(|v| v.starts_with("12.")));
        assert!(pinned(PinSet::Cuda13)["nvidia-cuda-runtime"].iter().all(|v| v.starts_with("13.")));
    }
}
