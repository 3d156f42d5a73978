//! `collo init`: the experiments, workloads and MIG profiles that this binary carries, so that an installed collo works outside a checkout.

use std::path::Path;

use fs_err as fs;

use super::{Context, Ended};
use crate::{args, exit, say};

// `CARRIED`: path inside a project, and content; made by build.rs.
include!(concat!(env!("OUT_DIR"), "/carried.rs"));

/// Write what is missing. A file that is there is never overwritten: it may be somebody's work.
pub fn run(context: &Context<'_>, a: &args::Init) -> Ended {
    let root = context.folder()?.join(&a.place);
    let (mut written, mut kept) = (0, 0);
    for (name, content) in CARRIED {
        let place = root.join(name);
        if place.exists() {
            kept += 1;
            continue;
        }
        if let Some(folder) = place.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&place, content)?;
        written += 1;
    }
    let there = if kept == 0 { String::new() } else { format!(", {kept} were there and are left alone") };
    say::result(format!("{written} files written to {}{there}", a.place.display()));
    let first = if a.place == Path::new(".") { String::new() } else { format!("cd {} && ", a.place.display()) };
    say::remark(format!("next: {first}collo run quickstart"));
    Ok(exit::DONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_carried_is_what_lies_in_the_checkout() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        assert!(CARRIED.iter().any(|(name, _)| *name == "experiments/quickstart.toml"));
        assert!(CARRIED.iter().any(|(name, _)| *name == "workloads/collo.py"));
        assert!(CARRIED.iter().any(|(name, _)| *name == "mig-profiles/a100-40gb.toml"));
        for (name, content) in CARRIED {
            assert_eq!(fs::read(root.join(name)).unwrap(), *content, "{name}");
            assert!(!name.contains("__pycache__") && !name.contains("/tests/"), "{name}");
        }
    }
}
