//! The list of all keys in a file of `mig-profiles/`: the reader, the JSON Schema and the hints are all derived from it.
//!
//! To add a key: its line here, its field in `Model`, `Peaks` or `Profile`; what may be wrong with it, in `read.rs`.

use collo_text::fields::{Key, Shape, ValueKind};

const HELP: &str = "collo schema gpu";

const fn key(name: &'static str, kind: ValueKind, about: &'static str) -> Key {
    Key { name, kind, default: None, about, former: None }
}

/// The solver represents the grid as one machine word.
pub const MOST_UNITS: u64 = 64;

const COUNT: ValueKind = ValueKind::Whole { from: 1, to: 10_000 };
const MEMORY: ValueKind = ValueKind::Number { from: 0.0, to: f64::INFINITY };
const PEAK: ValueKind = ValueKind::Number { from: 0.1, to: 1e7 };
const SOME: ValueKind = ValueKind::Whole { from: 0, to: 10_000 };

pub static CARD: Shape = Shape {
    help: HELP,
    others: None,
    keys: &[
        key("description", ValueKind::Text, "one sentence for lists"),
        key("product_names", ValueKind::List(&ValueKind::Text), "the driver's name of the GPU"),
        key("pci_devices", ValueKind::List(&ValueKind::Text), "PCI device ids, four hexadecimal digits each"),
        key("memory_gb", COUNT, "memory as advertised"),
        key("memory_mib", ValueKind::Whole { from: 1, to: 100_000_000 }, "memory without MIG, as `nvidia-smi` prints it"),
        key("sms", COUNT, "streaming multiprocessors of the whole GPU, without MIG"),
        key(
            "peaks",
            ValueKind::Tables(&PEAKS),
            "how fast it is as published, at boost clock and without sparsity; once, or once for each board whose figures differ",
        ),
        key(
            "compute_slices",
            ValueKind::Whole { from: 1, to: 64 },
            "how many compute slices the GPU has; without it, the GPU has no MIG",
        ),
        key("memory_units", ValueKind::Whole { from: 1, to: MOST_UNITS }, "length of the grid on which instances are placed"),
        key("profiles", ValueKind::Tables(&PROFILE), "the instance sizes that can be created"),
        key("layouts", ValueKind::Table(&LAYOUTS), "named layouts, each a list of profiles"),
    ],
};

pub static PEAKS: Shape = Shape {
    help: HELP,
    others: None,
    keys: &[
        key("product_names", ValueKind::List(&ValueKind::Text), "the boards that have them; without it, all of the file"),
        key("memory_gb_per_s", PEAK, "bandwidth of the memory"),
        key("l2_mib", PEAK, "size of the L2 cache"),
        key("fp32_tflops", PEAK, "single precision without tensor cores"),
        key("tf32_tflops", PEAK, "TF32 of tensor cores; absent without them"),
        key("half_tflops", PEAK, "bf16 or fp16 of tensor cores; absent without them"),
    ],
};

pub static PROFILE: Shape = Shape {
    help: HELP,
    others: None,
    keys: &[
        key("name", ValueKind::Text, "as `nvidia-smi` prints it, `3g.20gb`; the number before `g` is its compute slices"),
        key("id", SOME, "the profile id that `nvidia-smi mig -lgip` prints; not NVML's profile index"),
        key("most", COUNT, "how many such instances can exist at once"),
        key("memory_gib", MEMORY, "memory of one instance"),
        key("memory_gib_also", ValueKind::List(&MEMORY), "the same under other drivers, or on other boards"),
        key("sms", COUNT, "streaming multiprocessors of one instance"),
        key("starts", ValueKind::List(&SOME), "the memory units at which an instance may start"),
        key("units", COUNT, "how many memory units an instance occupies"),
        key("engines", ValueKind::Table(&ENGINES), "engines dedicated to an instance"),
    ],
};

pub static ENGINES: Shape = Shape {
    help: HELP,
    others: None,
    keys: &[
        key("copy", SOME, "copy engines"),
        key("decode", SOME, "video decoders"),
        key("encode", SOME, "video encoders"),
        key("jpeg", SOME, "JPEG decoders"),
        key("ofa", SOME, "optical flow accelerators"),
    ],
};

pub static LAYOUTS: Shape = Shape { help: HELP, others: Some(&ValueKind::List(&ValueKind::Text)), keys: &[] };
