//! The GPUs of this machine, for verbs that need them.

use collo_device::gpu;
use collo_gpus::mig::Cards;
use collo_plan::facts::Driver;
use collo_plan::project::Project;
use collo_text::{Diagnostic, Source, trust};

use super::Context;
use crate::{carried, output};

/// The GPU models for a verb that changes a machine: for root, those of the project only if nobody else could have written them.
/// `sudo collo mig apply NAME` runs in the caller's folder, which must not redefine a name.
fn believed_cards(context: &Context<'_>) -> Cards {
    let Ok(Some(project)) = context.folder().and_then(|folder| Project::nearest(&folder)) else { return carried_cards() };
    let folder = project.mig_profiles();
    let trusted = match nix::unistd::geteuid().is_root() {
        true => trust::files(&folder, "toml").map_err(|why| why.to_string()),
        false => context.project().map(drop).map_err(|why| why.what().to_string()),
    };
    match trusted {
        Ok(()) => project.cards(),
        Err(why) => {
            output::note(format!("{} is not used: {why}; the built-in layouts are", folder.display()));
            carried_cards()
        }
    }
}

/// The GPU models embedded in this binary, as `collo init` writes them.
fn carried_cards() -> Cards {
    let named = carried::CARRIED.iter().filter_map(|(name, content)| {
        let card = name.strip_prefix("mig-profiles/")?.strip_suffix(".toml")?;
        Some((card.to_string(), Source::file(*name, std::str::from_utf8(content).ok()?)))
    });
    Cards::of(named)
}

/// The driver of this machine with its GPUs, for a verb that needs them; works outside a project.
pub fn driver(context: &Context<'_>, verb: &str) -> Result<Driver, Diagnostic> {
    gpu::ask(&believed_cards(context)).map_err(|e| {
        Diagnostic::new(format!("`collo {verb}` needs an NVIDIA GPU: {e}"))
            .of_machine()
            .hint(e.hint().unwrap_or("check this machine: `collo doctor`"))
    })
}
