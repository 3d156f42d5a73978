//! Units: each one's suffix in names, how it is printed, and its name in monitoring.

/// The unit of a quantity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unit {
    /// The end of a name; empty for a plain ratio.
    pub suffix: &'static str,
    /// The printed unit, and the factor to it.
    pub symbol: &'static str,
    pub factor: f64,
    /// The base unit in OpenMetrics, and the factor to it.
    pub base: &'static str,
    pub to_base: f64,
}

const fn unit(suffix: &'static str, symbol: &'static str, base: &'static str) -> Unit {
    Unit { suffix, symbol, factor: 1.0, base, to_base: 1.0 }
}

/// GiB of a byte.
pub const GIB: f64 = 1.0 / (1u64 << 30) as f64;

pub const RATIO: Unit = unit("", "", "ratio");
/// A part of a whole, or a sum of such parts.
pub const SHARE: Unit = unit("_ratio", "", "ratio");
pub const CORES: Unit = unit("_ratio", "cores", "ratio");
pub const SECOND: Unit = unit("_s", "s", "seconds");
pub const BYTE: Unit = Unit { factor: GIB, ..unit("_bytes", "GiB", "bytes") };
pub const BYTE_PER_S: Unit = unit("_bytes_per_s", "B/s", "bytes_per_second");
pub const BYTE_PER_ITEM: Unit = unit("_bytes_per_item", "B", "bytes_per_item");
pub const PER_S: Unit = unit("_per_s", "per s", "per_second");
pub const JOULE_PER_EPOCH: Unit = unit("_j_per_epoch", "J", "joules_per_epoch");
pub const JOULE_PER_ITEM: Unit = unit("_j_per_item", "J", "joules_per_item");
pub const JOULE: Unit = unit("_j", "J", "joules");
/// How many of something.
pub const COUNT: Unit = unit("", "", "");
pub const WATT: Unit = unit("_w", "W", "watts");
pub const MEGAHERTZ: Unit = Unit { to_base: 1e6, ..unit("_mhz", "MHz", "hertz") };
pub const CELSIUS: Unit = unit("_c", "°C", "celsius");

/// Suffixes by which a metric without a definition is recognised. The first match counts.
const BY_SUFFIX: [Unit; 17] = [
    BYTE_PER_ITEM,
    BYTE_PER_S,
    JOULE_PER_EPOCH,
    JOULE_PER_ITEM,
    PER_S,
    BYTE,
    SHARE,
    MEGAHERTZ,
    Unit { to_base: 1e-9, ..unit("_ns", "ns", "seconds") },
    Unit { to_base: 1e-3, ..unit("_ms", "ms", "seconds") },
    Unit { to_base: 1e-3, ..unit("_mw", "mW", "watts") },
    Unit { to_base: 1e-3, ..unit("_mj", "mJ", "joules") },
    Unit { to_base: 1e-2, ..unit("_percent", "%", "ratio") },
    SECOND,
    JOULE,
    WATT,
    CELSIUS,
];

impl Unit {
    /// The unit that a name ends with.
    pub fn of(name: &str) -> Option<Unit> {
        BY_SUFFIX.into_iter().find(|unit| name.ends_with(unit.suffix))
    }
}
