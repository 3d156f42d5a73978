//! The files of a history. In: a history and the folder of reports. Out: `history/NAME/` with the page, Markdown and JSON, each
//! written aside and renamed.

use std::path::{Path, PathBuf};

use collo_store::place_file;
use fs_err as fs;

use super::{History, json, page, source, text};
use crate::{Error, Result};

/// Where a history was written.
#[derive(Debug, Clone)]
pub struct Written {
    pub html: PathBuf,
    pub markdown: PathBuf,
    pub json: PathBuf,
}

/// Write `index.html`, `history.md` and `history.json`.
pub fn write(history: &History, reports: &Path) -> Result<Written> {
    let folder = source::folder(reports, &history.experiment);
    fs::create_dir_all(&folder)?;
    let (html, markdown, file) = (folder.join("index.html"), folder.join("history.md"), folder.join("history.json"));
    let mut object = serde_json::to_string_pretty(&json::json(history)).map_err(|e| Error::Io(e.into()))?;
    object.push('\n');
    place_file(&file, object.as_bytes())?;
    place_file(&markdown, text::markdown(history).as_bytes())?;
    place_file(&html, page::page(history)?.as_bytes())?;
    Ok(Written { html, markdown, json: file })
}
