//! `collo init`: writes the experiments, observers, traces, workloads and MIG profiles embedded in this binary, and a justfile with the
//! daily commands, so that an installed collo works outside a checkout.

use std::path::Path;

use fs_err as fs;
use serde_json::json;

use collo_text::{Diagnostic, shown};

use crate::answer::{Answer, Answered};
use crate::args;
use crate::carried::CARRIED;
use crate::context::Context;

/// The daily commands as recipes.
const JUSTFILE: (&str, &[u8]) = ("justfile", include_bytes!("justfile"));

/// Write missing files. An existing file is never overwritten: it may be a user's work.
pub fn run(context: &Context<'_>, a: &args::Init) -> Answered {
    let root = context.folder()?.join(&a.place);
    let (mut written, mut kept) = (0, 0);
    // Beside a file that `just` reads under another name, it would refuse both.
    let has_recipes = root.read_dir().is_ok_and(|all| all.flatten().any(|entry| is_justfile(&entry.path())));
    let recipes = [JUSTFILE].into_iter().filter(|_| !has_recipes || root.join(JUSTFILE.0).exists());
    for (name, content) in CARRIED.iter().copied().chain(recipes) {
        let place = root.join(name);
        if is_there(&place, content) {
            kept += 1;
            continue;
        }
        write(&place, content).map_err(|e| {
            Diagnostic::new(format!("{} cannot be written", shown(&place)))
                .of_machine()
                .caused_by(&e)
                .way_out_of(&e)
                .hint("`collo init` again writes the missing files; existing ones are kept")
        })?;
        written += 1;
    }
    let there = if kept == 0 { String::new() } else { format!(", {kept} already there, unchanged") };
    let mut answer = Answer::of(json!({"folder": root, "written": written, "kept": kept}));
    answer.line(format!("{written} files written to {}{there}", a.place.display()));
    let first = if a.place == Path::new(".") { String::new() } else { format!("cd {} && ", a.place.display()) };
    answer.note(format!("next: {first}collo run quickstart"));
    Ok(answer)
}

/// The names that `just` looks for, in any case.
fn is_justfile(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    name.trim_start_matches('.') == JUSTFILE.0
}

/// True for anything that may be a user's work; an empty file that should not be empty is left over from a full disk.
fn is_there(place: &Path, content: &[u8]) -> bool {
    let left_empty = |meta: std::fs::Metadata| meta.is_file() && meta.len() == 0 && !content.is_empty();
    std::fs::symlink_metadata(place).is_ok_and(|meta| !left_empty(meta))
}

/// Written under a temporary name, then renamed: a full disk leaves no partial file.
fn write(place: &Path, content: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = place.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut aside = place.as_os_str().to_owned();
    aside.push(format!(".aside-{}", std::process::id()));
    let written = fs::write(&aside, content).and_then(|()| fs::rename(&aside, place));
    if written.is_err() {
        let _ = std::fs::remove_file(&aside);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_full_disk_left_empty_is_written_again_and_anything_else_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("empty"), "").unwrap();
        fs::write(at("mine"), "a").unwrap();
        std::os::unix::fs::symlink("nowhere", at("link")).unwrap();
        let there = ["empty", "mine", "link", "absent"].map(|name| is_there(&at(name), b"content"));
        assert_eq!(there, [false, true, true, false]);
        assert!(is_there(&at("empty"), b""), "it is empty in the checkout, too");
        write(&at("a/b"), b"content").unwrap();
        assert_eq!(fs::read(at("a/b")).unwrap(), b"content");
        fs::create_dir(at("folder")).unwrap();
        write(&at("folder"), b"content").unwrap_err();
        let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert!(!left.iter().any(|name| name.to_string_lossy().contains("aside")), "{left:?}");
    }

    #[test]
    fn the_recipes_are_commands_that_there_are() {
        use clap::CommandFactory;

        let command = crate::args::Arguments::command();
        let text = String::from_utf8(JUSTFILE.1.to_vec()).unwrap();
        let typed: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("    collo ")).collect();
        for line in &typed {
            let verb = line.split(' ').find(|word| command.find_subcommand(word).is_some());
            assert!(verb.is_some() && line.ends_with(" \"$@\""), "{line}");
        }
        assert!(typed.len() > 8, "{typed:?}");
        assert!(is_justfile(Path::new("a/.Justfile")) && !is_justfile(Path::new("a/justfile.md")));
    }

    #[test]
    fn what_is_carried_is_what_lies_in_the_checkout() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        assert!(CARRIED.iter().any(|(name, _)| *name == "experiments/quickstart.toml"));
        assert!(CARRIED.iter().any(|(name, _)| *name == "workloads/collo.py"));
        assert!(CARRIED.iter().any(|(name, _)| *name == "traces/philly-90.toml"));
        assert!(CARRIED.iter().any(|(name, _)| *name == "observers/top.toml"));
        assert!(CARRIED.iter().any(|(name, _)| *name == "mig-profiles/a100-40gb.toml"));
        for (name, content) in CARRIED {
            assert_eq!(fs::read(root.join(name)).unwrap(), *content, "{name}");
            assert!(!name.contains("__pycache__") && !name.contains("/tests/"), "{name}");
        }
    }
}
