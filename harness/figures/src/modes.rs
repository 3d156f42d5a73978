//! Names and order of sharing modes in every figure, table and sentence. A slice named in a label (`mig:3g.20gb`) is a variant of its
//! family.

use collo_gpus::notation::Size;
use collo_store::Sharing;

/// The first word of a mode, or `solo`; an unknown one is `other`.
pub fn family(sharing: &str) -> &'static str {
    match Sharing::of_label(sharing).family.as_str() {
        _ if sharing == "solo" => "solo",
        "naive" => "naive",
        "mps" => "mps",
        "mig" => "mig",
        "threads" => "threads",
        _ => "other",
    }
}

/// Compute slices of the instances that a label names, if it names a size.
pub fn slices(sharing: &str) -> Option<u32> {
    let mode = Sharing::of_label(sharing);
    let cut = sharing.strip_suffix("+mps").unwrap_or(sharing).split_once(':')?.1;
    let size = Size::parse(cut.split('@').next()?.rsplit('×').next()?)?;
    mode.partitioned.then_some(size.slices)
}

/// A sharing mode as legends print it: `naive`, `MPS`, `MIG 4g.20gb`, `MPS 50%`, `threads no-lock`.
pub fn mode_label(sharing: &str) -> String {
    let part = |part: &str| match part.split_once(':') {
        Some((head, rest)) if family(part) == "threads" => format!("{head} {rest}"),
        _ if !matches!(family(part), "mps" | "mig") => part.to_string(),
        Some((head, rest)) => format!("{} {rest}", head.to_uppercase()),
        None => part.to_uppercase(),
    };
    sharing.split('+').map(part).collect::<Vec<_>>().join("+")
}

/// `MPS ×7`: a group among those of one workload.
pub fn mode_and_degree(sharing: &str, degree: u64) -> String {
    format!("{} ×{degree}", mode_label(sharing))
}

/// The order of modes everywhere: solo, naive, MPS, MIG, threads, then the others; variants after the plain mode, slices by size, then by
/// name.
pub fn mode_order(sharing: &str) -> (usize, u32, &str) {
    let rank = ["solo", "naive", "mps", "mig", "threads"].iter().position(|f| *f == family(sharing)).unwrap_or(5);
    (rank, slices(sharing).unwrap_or(0), sharing)
}

/// Each of some modes once, in their order.
pub fn in_order<'a>(modes: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut modes: Vec<&str> = modes.into_iter().collect();
    modes.sort_by_key(|mode| mode_order(mode));
    modes.dedup();
    modes
}
