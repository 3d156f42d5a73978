//! Workloads by the names that tasks have in files of others: `Inception*=inception-v3`.

use collo_text::{Diagnostic, Source, quoted};

/// What tasks are named elsewhere, each with the workload that it is here. The first that fits a name holds.
#[derive(Debug, Default)]
pub struct NameMap(Vec<MappedName>);

#[derive(Debug)]
struct MappedName {
    /// As it was typed.
    name: String,
    workload: String,
    is_used: bool,
}

impl NameMap {
    /// Read `NAME=WORKLOAD` each; a `*` in the name stands for any text.
    ///
    /// # Errors
    /// One without `=`, without a name or workload, or with several `*`, with the place.
    pub fn parse<'a>(option: &str, all: impl IntoIterator<Item = &'a str>) -> Result<NameMap, Diagnostic> {
        let read = |text: &str| {
            let wrong = |what: String| {
                let source = Source::argument(option, text);
                let note = "write a name of the file and a workload, as in `Inception*=inception-v3`";
                Diagnostic::new(what).at(&source, 0..text.len()).note(note)
            };
            let parts = text.split_once('=').map(|(name, workload)| (name.trim(), workload.trim()));
            match parts.filter(|(name, workload)| !name.is_empty() && !workload.is_empty()) {
                None => Err(wrong(format!("{} names no workload", quoted(text)))),
                Some((name, _)) if name.matches('*').count() > 1 => Err(wrong(format!("{} has several `*`", quoted(name)))),
                Some((name, workload)) => Ok(MappedName { name: name.into(), workload: workload.into(), is_used: false }),
            }
        };
        Ok(NameMap(all.into_iter().map(read).collect::<Result<_, _>>()?))
    }

    /// The workload of a task of this name; the name itself if none is given for it.
    pub fn workload<'a>(&'a mut self, name: &'a str) -> &'a str {
        match self.0.iter_mut().find(|mapped| fits(&mapped.name, name)) {
            Some(mapped) => {
                mapped.is_used = true;
                &mapped.workload
            }
            None => name,
        }
    }

    /// The workloads that were given.
    pub fn workloads(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|mapped| mapped.workload.as_str())
    }

    /// The first name that was asked for no task.
    pub fn unused(&self) -> Option<&str> {
        self.0.iter().find(|mapped| !mapped.is_used).map(|mapped| mapped.name.as_str())
    }
}

fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        Some((begin, end)) => name.strip_prefix(begin).is_some_and(|rest| rest.ends_with(end)),
        None => pattern == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_that_fits_is_the_workload_and_an_unused_one_is_known() {
        let typed = ["Inception3=inception-v3-large", "Inception*=inception-v3", "a*z = tiny", "aa=b"];
        let mut names = NameMap::parse("--map", typed).expect("names");
        assert_eq!(
            ["Inception3", "Inception", "az", "abz", "za", "inception"].map(|name| names.workload(name).to_string()),
            ["inception-v3-large", "inception-v3", "tiny", "tiny", "za", "inception"]
        );
        assert_eq!(names.unused(), Some("aa"));
        assert_eq!(names.workload("aa"), "b");
        assert_eq!((names.unused(), names.workloads().count()), (None, 4));
    }

    #[test]
    fn a_name_without_a_workload_is_refused_with_an_example() {
        for wrong in ["Inception", "=inception-v3", "Inception=", "a*b*=c"] {
            let wrong = NameMap::parse("--map", [wrong]).expect_err("wrong").to_string();
            assert!(wrong.contains("`Inception*=inception-v3`"), "{wrong}");
        }
    }
}
