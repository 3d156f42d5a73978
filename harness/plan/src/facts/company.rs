//! Other users of a GPU: listed by the driver, or inferred from memory and utilisation.

use std::fmt;

/// All visible users of a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Company {
    /// Compute processes; absent if the driver does not report them.
    pub listed: Option<Vec<Holder>>,
    /// Usage not explained by the listed ones.
    pub unlisted: Option<Unlisted>,
}

/// Work of an unlisted process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unlisted {
    /// Memory not used by a listed process.
    pub memory_bytes: Option<u64>,
    /// Utilisation while no process is listed.
    pub busy_percent: Option<u32>,
}

impl Unlisted {
    /// More than the driver's own contexts and the rounding of its lists; a training process uses more.
    pub const LEAST_BYTES: u64 = 1 << 30;
    /// Utilisation below this may come from monitoring.
    pub const LEAST_BUSY_PERCENT: u32 = 10;
}

/// `a process the driver does not list: 12.0 GiB used, 40 % busy`
impl fmt::Display for Unlisted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = self.memory_bytes.map(|bytes| format!("{} used", collo_text::units::gib(bytes)));
        let busy = self.busy_percent.map(|percent| format!("{percent} % busy"));
        let parts: Vec<String> = memory.into_iter().chain(busy).collect();
        write!(f, "a process the driver does not list: {}", parts.join(", "))
    }
}

impl Company {
    /// Certainly free.
    pub fn nobody() -> Company {
        Company { listed: Some(Vec::new()), unlisted: None }
    }

    pub fn is_nobody(&self) -> bool {
        *self == Company::nobody()
    }

    /// No process is listed, but the GPU is in use.
    pub fn is_only_inferred(&self) -> bool {
        self.unlisted.is_some() && self.listed.as_ref().is_some_and(Vec::is_empty)
    }

    /// A line for each; empty if the GPU is free.
    pub fn to_text(&self) -> Vec<String> {
        let Some(listed) = &self.listed else { return vec!["the driver does not report its processes".into()] };
        listed.iter().map(Holder::to_text).chain(self.unlisted.as_ref().map(Unlisted::to_string)).collect()
    }
}

/// A process that uses a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub pid: u32,
    /// Absent if the process is not visible, as from inside a container.
    pub name: Option<String>,
    pub user: Option<String>,
    pub memory_bytes: Option<u64>,
}

/// `nv-hostengine` (pid 2140)
impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "`{name}` (pid {})", self.pid),
            None => write!(f, "pid {}", self.pid),
        }
    }
}

impl Holder {
    /// pid 88121 `python` of bob, 31.2 GiB
    pub fn to_text(&self) -> String {
        let name = self.name.as_ref().map(|n| format!(" `{n}`")).unwrap_or_default();
        let user = self.user.as_ref().map(|u| format!(" of {u}")).unwrap_or_default();
        let memory = self.memory_bytes.map(|b| format!(", {}", collo_text::units::gib(b))).unwrap_or_default();
        format!("pid {}{name}{user}{memory}", self.pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_is_nobody_only_where_nothing_is_used_and_an_unread_one_never() {
        assert!(Company::nobody().is_nobody() && Company::nobody().to_text().is_empty());
        let unread = Company { listed: None, unlisted: None };
        assert!(!unread.is_nobody());
        assert_eq!(unread.to_text(), ["the driver does not report its processes"]);
        let somebody = Unlisted { memory_bytes: Some(12 << 30), busy_percent: Some(40) };
        let hidden = Company { listed: Some(Vec::new()), unlisted: Some(somebody) };
        assert!(!hidden.is_nobody());
        assert_eq!(hidden.to_text(), ["a process the driver does not list: 12.0 GiB used, 40 % busy"]);
    }

    #[test]
    fn a_holder_is_named_by_what_it_is() {
        let engine = Holder { pid: 2140, name: Some("nv-hostengine".into()), user: None, memory_bytes: None };
        assert_eq!(engine.to_string(), "`nv-hostengine` (pid 2140)");
        let python = Holder { pid: 9, name: Some("python".into()), user: Some("bob".into()), memory_bytes: Some(1 << 31) };
        assert_eq!(python.to_text(), "pid 9 `python` of bob, 2.0 GiB");
    }
}
