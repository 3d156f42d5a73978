//! `comments.jsonl`: what people wrote about a campaign, one comment per line. It is no part of what was measured: no digest has it,
//! and a line that cannot be read is skipped.

use std::path::Path;

use fs_err as fs;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CampaignFolder, Result, clock, place};

const NAME: &str = "comments.jsonl";
const LIMIT_BYTES: u64 = 16 << 20;

/// A comment on a campaign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct Comment {
    pub at_utc: String,
    pub text: String,
}

/// Write the comments of a new campaign; without any there is no file.
pub(crate) fn write(campaign: &Path, comments: &[Comment]) -> Result<()> {
    let line = |comment: &Comment| serde_json::to_string(comment).map(|text| format!("{text}\n"));
    let lines = comments.iter().map(line).collect::<std::result::Result<String, _>>().map_err(|e| crate::Error::Io(e.into()))?;
    if lines.is_empty() { Ok(()) } else { place::replace_file(&campaign.join(NAME), lines.as_bytes()) }
}

impl CampaignFolder {
    /// The comments, the oldest first.
    pub fn comments(&self) -> Vec<Comment> {
        let bytes = collo_text::read_small(&self.path.join(NAME), LIMIT_BYTES).unwrap_or_default();
        bytes.split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }

    /// Add a comment. The file is replaced as a whole, so that a kill leaves the old comments or all of them.
    pub fn comment(&self, text: &str) -> Result<Comment> {
        // Two that comment at once would each leave out the other's; the lock is the folder's and ends with this call.
        let folder = fs::File::open(&self.path)?;
        folder.file().lock()?;
        let path = self.path.join(NAME);
        let mut all = match std::fs::symlink_metadata(&path) {
            Ok(_) => collo_text::read_small(&path, LIMIT_BYTES)?,
            Err(_) => Vec::new(),
        };
        if all.last().is_some_and(|last| *last != b'\n') {
            all.push(b'\n');
        }
        let comment = Comment { at_utc: clock::utc_now(), text: text.into() };
        serde_json::to_writer(&mut all, &comment).map_err(|e| crate::Error::Io(e.into()))?;
        all.push(b'\n');
        place::replace_file(&path, &all)?;
        Ok(comment)
    }
}
