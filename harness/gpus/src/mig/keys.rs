//! A file of `mig-profiles/`, a row for each key; what may be wrong with several of them is checked in `read.rs`.

use std::sync::Arc;

use collo_text::fields::ValueKind::{self, List, Map, Number, Text, Whole};

use super::{Layout, Places};

/// The solver represents the grid as one machine word.
pub const MOST_UNITS: u64 = 64;

const COUNT: ValueKind = Whole(1..=10_000);
const PEAK: ValueKind = Number(0.1..=1e7);
const SOME: ValueKind = Whole(0..=10_000);

collo_text::keys! { "collo schema gpu";
    /// A GPU model. What its file does not give is absent.
    #[derive(Debug, Clone, PartialEq)]
    pub struct GpuModel {
        description: Option<String>, "one sentence for lists";
        product_names: Vec<String>, "the driver's name of the GPU";
        pci_devices: Vec<String>, "PCI device ids, four hexadecimal digits each";
        memory_gb: Option<u32> [COUNT], "memory as advertised";
        memory_mib: Option<u64> [Whole(1..=100_000_000)], "memory without MIG, as `nvidia-smi` prints it";
        sms: Option<u32> [COUNT], "streaming multiprocessors of the whole GPU, without MIG";
        peaks: Vec<Peaks>,
            "how fast it is as published, at boost clock and without sparsity; once, or once for each board whose figures \
             differ";
        compute_slices: Option<u32> [Whole(1..=64)], "how many compute slices the GPU has; without it, the GPU has no MIG";
        memory_units: Option<u32> [Whole(1..=MOST_UNITS)], "length of the grid on which instances are placed";
        profiles: Vec<Arc<Profile>>, "the instance sizes that can be created";
        layouts [Map(&List(&Text))], "named layouts, each a list of profiles";
    } and {
        /// The name of its file, as in `--gpu a100-40gb`.
        pub name: String,
        pub layouts: Vec<Layout>,
    }

    /// Published peaks of boards, at boost clock and without sparsity, in the units of the file.
    #[derive(Debug, Clone, PartialEq, serde::Serialize)]
    pub struct Peaks {
        product_names: Vec<String>, "the boards that have them; without it, all of the file";
        memory_gb_per_s: f64 [PEAK], "bandwidth of the memory";
        l2_mib: f64 [PEAK], "size of the L2 cache";
        fp32_tflops: f64 [PEAK], "single precision without tensor cores";
        tf32_tflops: Option<f64> [PEAK], "TF32 of tensor cores; absent without them";
        half_tflops: Option<f64> [PEAK], "bf16 or fp16 of tensor cores; absent without them";
    }

    /// A size of instance.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Profile {
        name: String, "as `nvidia-smi` prints it, `3g.20gb`; the number before `g` is its compute slices";
        id: Option<u32> [SOME], "the profile id that `nvidia-smi mig -lgip` prints; not NVML's profile index";
        most: Option<u32> [COUNT], "how many such instances can exist at once";
        memory_gib: Option<f64>, "memory of one instance";
        memory_gib_also: Vec<f64>, "the same under other drivers, or on other boards";
        sms: Option<u32> [COUNT], "streaming multiprocessors of one instance";
        starts [List(&SOME)], "the memory units at which an instance may start";
        units [COUNT], "how many memory units an instance occupies";
        engines: Engines, "engines dedicated to an instance";
    } and {
        /// Compute slices: the number before the `g`.
        pub slices: u32,
        pub places: Option<Places>,
    }

    /// Engines that an instance has to itself.
    #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
    pub struct Engines {
        copy: Option<u32> [SOME], "copy engines";
        decode: Option<u32> [SOME], "video decoders";
        encode: Option<u32> [SOME], "video encoders";
        jpeg: Option<u32> [SOME], "JPEG decoders";
        ofa: Option<u32> [SOME], "optical flow accelerators";
    }
}
