//! The CPU cores that a member of a group is pinned to.

/// Which cores the members run on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cores {
    /// All of them; the system decides.
    Shared,
    /// Each member has its own.
    Spread,
    /// All members share those near the GPU.
    GpuLocal,
    /// All members share these.
    Listed(Vec<u32>),
}

impl Cores {
    /// The cores of one member; `near` are those near its GPU. `None` if the system decides.
    pub fn of(&self, member: usize, members: usize, all: &[u32], near: Option<&[u32]>) -> Option<Vec<u32>> {
        match self {
            Cores::Shared => None,
            Cores::Spread => Some(spread(member, members, all)),
            Cores::GpuLocal => near.map(|near| near.iter().filter(|c| all.contains(c)).copied().collect()),
            Cores::Listed(listed) => Some(listed.clone()),
        }
    }
}

/// Adjacent cores for each member, none shared while there are enough; then one each, in turn.
fn spread(member: usize, members: usize, all: &[u32]) -> Vec<u32> {
    match all.len() / members.max(1) {
        0 => vec![all[member % all.len()]],
        each => all[member * each..(member + 1) * each].to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_members_share_no_core_while_there_are_enough() {
        let all = [0, 1, 2, 3, 8];
        assert_eq!(spread(0, 2, &all), [0, 1]);
        assert_eq!(spread(1, 2, &all), [2, 3]);
        assert_eq!((0..7).map(|m| spread(m, 7, &all)).collect::<Vec<_>>(), [[0], [1], [2], [3], [8], [0], [1]]);
    }
}
