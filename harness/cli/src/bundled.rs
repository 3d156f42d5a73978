//! Bundles as other verbs read them. In: a file of `collo bundle`. Out: its campaign, unpacked.

use std::path::Path;

use collo_plan::project::Project;
use collo_prepare::python;
use collo_store::archive::{self, Manifest};
use collo_store::{CampaignFolder, Runs};
use collo_text::Diagnostics;

/// The endings of a bundle's name.
const ENDINGS: [&str; 2] = [".tar.gz", ".tgz"];

/// Whether a file is named as a bundle is.
pub fn is_bundle(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// The campaign of a bundle in a temporary folder, which is deleted with the second: in the project, or else in the cache, which are
/// on disks, as the folder of the system's temporary files often is not.
pub fn read(bundle: &Path, project: Option<&Project>) -> Result<(CampaignFolder, tempfile::TempDir), Diagnostics> {
    let in_cache = || {
        let cache = python::cache_folder()?;
        python::make_cache(&cache)?;
        archive::scratch(&cache)
    };
    let scratch = project.and_then(|project| archive::scratch(project.root()).ok()).map_or_else(in_cache, Ok)?;
    let (folder, about) = archive::unpack(bundle, scratch.path())?;
    Ok((its_campaign(&folder, &about)?, scratch.until_the_end()))
}

/// The campaign of an unpacked bundle, by what its manifest says.
pub fn its_campaign(folder: &Path, about: &Manifest) -> Result<CampaignFolder, Diagnostics> {
    Ok(Runs::at(folder.join("runs")).find(&about.campaign)?)
}
