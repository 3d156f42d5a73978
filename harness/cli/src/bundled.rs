//! Bundles as other verbs read them. In: a file of `collo bundle`. Out: its campaign, unpacked.

use std::path::Path;

use collo_store::{CampaignFolder, Runs};
use collo_text::Diagnostics;
use serde_json::Value;

use crate::archive;

/// The endings of a bundle's name.
const ENDINGS: [&str; 2] = [".tar.gz", ".tgz"];

/// Whether a file is named as a bundle is.
pub fn is_bundle(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// The campaign of a bundle in a temporary folder, which is deleted with the second.
pub fn read(bundle: &Path) -> Result<(CampaignFolder, tempfile::TempDir), Diagnostics> {
    let scratch = tempfile::tempdir()?;
    let (folder, about) = archive::unpack(bundle, scratch.path())?;
    Ok((its_campaign(&folder, &about)?, scratch))
}

/// The campaign of an unpacked bundle, by what its manifest says.
pub fn its_campaign(folder: &Path, about: &Value) -> Result<CampaignFolder, Diagnostics> {
    let id = about["campaign"].as_str().unwrap_or_default();
    Ok(Runs::at(folder.join("runs")).find(id)?)
}
