//! Changes of bytes that no format is asked about.

/// A few flips, cuts, and bytes that come twice or from elsewhere; near the end more often, where Parquet has its table of contents.
/// `below` draws a number below another.
pub fn mutate(bytes: &mut Vec<u8>, below: &mut impl FnMut(usize) -> usize) {
    for _ in 0..1 + below(4) {
        if bytes.is_empty() {
            return;
        }
        let near_end = below(10) < 6;
        let from = if near_end { bytes.len().saturating_sub(900) } else { 0 };
        let at = from + below(bytes.len() - from);
        match below(8) {
            0 | 1 => bytes[at] ^= 1 << below(8),
            2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][below(5)],
            3 => bytes.truncate(at),
            4 => {
                let end = (at + 1 + below(40)).min(bytes.len());
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            5 => drop(bytes.drain(at..(at + 1 + below(40)).min(bytes.len()))),
            6 => {
                let end = (at + 8).min(bytes.len());
                bytes[at..end].fill([0, 0xff, 0x7f][below(3)]);
            }
            _ => drop(bytes.splice(at..at, std::iter::repeat_n(0xff, below(20)))),
        }
    }
}
