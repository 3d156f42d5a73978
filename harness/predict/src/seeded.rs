//! Numbers that look random and are the same every time.

/// The mixer of SplitMix64 (Steele and others 2014, doi 10.1145/2660193.2660195): neighbours in, strangers out.
pub fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// From 0 to below 1.
pub fn share(number: u64) -> f64 {
    (mixed(number) >> 11) as f64 / (1u64 << 53) as f64
}
