//! The CPU cores that a member of a group is pinned to.

/// Which cores the members run on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Cores {
    /// All of them; the system decides.
    #[default]
    Shared,
    /// Each member has its own.
    Spread,
    /// All members share those near the GPU.
    GpuLocal,
    /// Each member has its own of those near the GPU.
    GpuLocalSpread,
    /// All members share these.
    Listed(Vec<u32>),
    /// One list for each member.
    PerMember(Vec<Vec<u32>>),
}

impl Cores {
    /// The cores of one member; `near` are those near its GPU. `None` if the system decides.
    pub fn of(&self, member: usize, members: usize, all: &[u32], near: Option<&[u32]>) -> Option<Vec<u32>> {
        match self {
            Cores::Shared => None,
            Cores::Spread => Some(spread(member, members, all)),
            Cores::GpuLocal => near.map(|near| usable(near, all)),
            Cores::GpuLocalSpread => {
                near.map(|near| usable(near, all)).filter(|c| !c.is_empty()).map(|c| spread(member, members, &c))
            }
            Cores::Listed(listed) => Some(listed.clone()),
            Cores::PerMember(lists) => lists.get(member).cloned(),
        }
    }

    /// Every core that is named.
    pub fn named(&self) -> Vec<u32> {
        match self {
            Cores::Shared | Cores::Spread | Cores::GpuLocal | Cores::GpuLocalSpread => Vec::new(),
            Cores::Listed(listed) => listed.clone(),
            Cores::PerMember(lists) => lists.concat(),
        }
    }

    /// Each member has its own.
    pub fn is_for_each(&self) -> bool {
        matches!(self, Cores::Spread | Cores::GpuLocalSpread | Cores::PerMember(_))
    }

    /// Members have different numbers of cores.
    pub fn is_uneven(&self) -> bool {
        matches!(self, Cores::PerMember(lists) if lists.windows(2).any(|two| two[0].len() != two[1].len()))
    }

    /// For how many members there are cores, if that is limited.
    pub fn most_members(&self) -> Option<usize> {
        match self {
            Cores::PerMember(lists) => Some(lists.len()),
            _ => None,
        }
    }
}

/// Those near the GPU that collo may use.
pub fn usable(near: &[u32], all: &[u32]) -> Vec<u32> {
    near.iter().filter(|core| all.contains(core)).copied().collect()
}

/// So many sets of equally many adjacent cores; what is left over is used by none.
pub fn core_sets(all: &[u32], sets: usize) -> Vec<Vec<u32>> {
    let each = all.len() / sets.max(1);
    (0..sets).map(|set| all[set * each..(set + 1) * each].to_vec()).collect()
}

/// Adjacent cores for each member, none shared while there are enough; then one each, in turn.
pub(super) fn spread(member: usize, members: usize, all: &[u32]) -> Vec<u32> {
    match all.len() / members.max(1) {
        0 => vec![all[member % all.len()]],
        each => all[member * each..(member + 1) * each].to_vec(),
    }
}

/// The numbers of a core list: `0-3,8`.
pub fn core_list(text: &str) -> Option<Vec<u32>> {
    let mut cores = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last > 65_535 {
            return None;
        }
        cores.extend(first..=last);
    }
    cores.sort_unstable();
    cores.dedup();
    Some(cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_member_has_its_list_or_its_part_of_the_cores_near_the_gpu() {
        let all = [0, 1, 2, 3, 4, 5];
        let each = |cores: &Cores| (0..2).map(|m| cores.of(m, 2, &all, Some(&[2, 3, 4, 5, 64]))).collect::<Vec<_>>();
        assert_eq!(each(&Cores::GpuLocalSpread), [Some(vec![2, 3]), Some(vec![4, 5])]);
        assert_eq!(each(&Cores::PerMember(vec![vec![0, 1], vec![5]])), [Some(vec![0, 1]), Some(vec![5])]);
        assert_eq!(Cores::GpuLocalSpread.of(0, 2, &all, None), None);
        assert_eq!(Cores::PerMember(vec![vec![0], vec![5]]).named(), [0, 5]);
    }

    #[test]
    fn spread_members_share_no_core_while_there_are_enough() {
        let all = [0, 1, 2, 3, 8];
        assert_eq!(spread(0, 2, &all), [0, 1]);
        assert_eq!(spread(1, 2, &all), [2, 3]);
        assert_eq!((0..7).map(|m| spread(m, 7, &all)).collect::<Vec<_>>(), [[0], [1], [2], [3], [8], [0], [1]]);
    }

    #[test]
    fn core_lists_are_ranges_and_numbers() {
        assert_eq!(core_list("0-3,8"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(core_list("5"), Some(vec![5]));
        for wrong in ["", "3-1", "a", "0-", "1,,2", "0-99999999"] {
            assert_eq!(core_list(wrong), None, "{wrong}");
        }
    }
}
