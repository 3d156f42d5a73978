//! Interprets DCGM's refusals: which other fields to request, whether to retry, and what a person can do.

/// The fields to request, and fallbacks if DCGM refuses them: one field that a GPU does not have makes it refuse all.
pub fn falling(fields: &[u16]) -> Vec<Vec<u16>> {
    // Double precision, then all pipes, then occupancy and tensor cores.
    const LEFT_OUT: [&[u16]; 4] = [&[], &[1006], &[1006, 1007, 1008], &[1003, 1004, 1006, 1007, 1008]];
    let mut sets: Vec<Vec<u16>> = LEFT_OUT.map(|out| fields.iter().copied().filter(|f| !out.contains(f)).collect()).into();
    // And PCIe, which a part of a card does not have.
    sets.push(sets[3].iter().copied().filter(|f| *f < 1009).collect());
    sets.retain(|set| !set.is_empty());
    sets.dedup();
    sets
}

/// Refusals unrelated to the fields, by DCGM's messages (dcgmlib/src/dcgm_errors.c, dcgmi/DeviceMonitor.cpp) and ours, each with
/// an explanation.
const HOPELESS: [(&str, &str); 10] = [
    ("on the path", ""),
    ("does not start", ""),
    ("does not answer", ""),
    ("connection", "start the host engine: `sudo systemctl start nvidia-dcgm`"),
    ("connect to", "start the host engine: `sudo systemctl start nvidia-dcgm`"),
    ("running as root", "the host engine must run as root"),
    ("newer driver", ""),
    (
        "third-party profiling module",
        "another process has the profiling counters, which before Hopper have one owner on the whole machine: nsys, ncu, \
         dcgm-exporter or another host engine; `dcgmi profile --pause` takes them from DCGM and `--resume` returns them",
    ),
    (
        "not currently loaded",
        "its profiling module is missing: DCGM 4 has it in the package `datacenter-gpu-manager-4-proprietary`",
    ),
    ("profiling is not supported", ""),
];

fn known(why: &str) -> Option<&'static str> {
    let why = why.to_lowercase();
    HOPELESS.iter().find(|(words, _)| why.contains(words)).map(|(_, advice)| *advice)
}

/// Whether requesting fewer fields, or retrying, is pointless.
pub fn is_hopeless(why: &str) -> bool {
    known(why).is_some()
}

/// The reason, with what a person can do about it.
pub fn explained(why: &str) -> String {
    match known(why).filter(|advice| !advice.is_empty()) {
        Some(advice) => format!("{why} ({advice})"),
        None => why.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_fall_from_all_to_the_few_that_every_card_has() {
        let sets = falling(&(1001..=1010).collect::<Vec<_>>());
        assert_eq!(sets.len(), 5);
        assert_eq!((sets[0].len(), sets[1].contains(&1006), &sets[4][..]), (10, false, &[1001, 1002, 1005][..]));
        assert_eq!(falling(&[1002]), [[1002]], "the same set is not tried twice");
        assert_eq!(falling(&[1006]), [[1006]]);
    }

    #[test]
    fn what_has_nothing_to_do_with_the_fields_is_not_asked_again_with_fewer() {
        let hopeless = [
            "Unable to connect to host engine. Host engine connection invalid/disconnected",
            "no `dcgmi` on the PATH",
            "Error setting watches. Result: -37: The third-party Profiling module returned an unrecoverable error",
            "Error setting watches. Result: -33: This request is serviced by a module of DCGM that is not currently loaded",
            "Error setting watches. Result: -36: Profiling is not supported for this group of GPUs or GPU",
        ];
        assert!(hopeless.into_iter().all(is_hopeless));
        assert!(!is_hopeless("Error setting watches. Result: -6: Feature not supported"));
        assert!(explained(hopeless[2]).contains("nsys") && explained(hopeless[3]).contains("-4-proprietary"));
        assert_eq!(explained(hopeless[1]), hopeless[1]);
    }
}
