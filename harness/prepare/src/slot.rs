//! One member's share of the device: an environment to start in, and cores to stay on.

use std::collections::BTreeMap;
use std::path::PathBuf;

use collo_plan::facts::Cores;

/// One member's share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Slot {
    /// On top of collo's own environment; `None` removes a variable.
    pub env: BTreeMap<String, Option<String>>,
    /// Logical processors to stay on; if `None`, all that collo may use.
    pub cores: Option<Vec<u32>>,
    /// The pipe folder of the MPS daemon whose client it has to be.
    pub client_of: Option<PathBuf>,
}

impl Slot {
    /// A member on the CPU: no GPU is visible to it, whatever the machine has.
    pub fn on_cpu(member: usize, members: usize, cores: &Cores, all: &[u32]) -> Slot {
        let hidden = |name: &str| (name.to_string(), Some(String::new()));
        let removed = |name: &str| (name.to_string(), None);
        let env = BTreeMap::from([
            hidden("CUDA_VISIBLE_DEVICES"),
            removed("CUDA_MPS_PIPE_DIRECTORY"),
            removed("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"),
        ]);
        Slot { env, cores: cores.of(member, members, all, None), client_of: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_on_the_cpu_sees_no_gpu() {
        let slot = Slot::on_cpu(0, 1, &Cores::Shared, &[0]);
        assert_eq!(slot.env["CUDA_VISIBLE_DEVICES"], Some(String::new()));
        assert_eq!(slot.cores, None);
    }
}
