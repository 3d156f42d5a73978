//! Whose a sample is: the words of the column `scope`, written by samplers and read by reports. A card's scopes are those that its
//! own library names it by.
//!
//! To add a scope: its word here.

use std::sync::Arc;

/// The one process that all members are threads of, with everything below its supervisor.
pub const PROCESS_SCOPE: &str = "process";

/// What the scope of a member begins with.
const MEMBER: &str = "member:";

/// The scope of member `index`, with everything below its supervisor.
pub fn member_scope(index: usize) -> Arc<str> {
    format!("{MEMBER}{index}").into()
}

/// The index of the member whose scope this is.
pub fn member_of_scope(scope: &str) -> Option<usize> {
    scope.strip_prefix(MEMBER)?.parse().ok()
}

/// True for members, for the process that they share, and for the instances of a GPU: what is read of them is part of what is read
/// of the host or the GPU, and is never added to it.
pub fn is_scope_of_a_part(scope: &str) -> bool {
    scope == PROCESS_SCOPE || [MEMBER, "mig:", "gi:"].iter().any(|part| scope.starts_with(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_members_use_is_a_part_of_what_the_machine_does() {
        let parts = [&*member_scope(0), PROCESS_SCOPE, "mig:MIG-5c", "gi:GPU-1/3"];
        assert!(parts.iter().all(|scope| is_scope_of_a_part(scope)), "{parts:?}");
        assert_eq!(parts.map(member_of_scope), [Some(0), None, None, None]);
        assert!(!["host", "gpu:GPU-1", "cores:0-3", "processes"].iter().any(|scope| is_scope_of_a_part(scope)));
    }
}
