//! Writes the files of a document. In: a document, its JSON, and a folder. Out: page, Markdown and JSON beside each other, each
//! written under a temporary name and renamed, so that a reader sees the old one or the new one, however many processes write.

use std::path::{Path, PathBuf};

use super::{Document, html, markdown};
use crate::{Error, Result};

/// Where a document was written.
#[derive(Debug, Clone)]
pub struct Written {
    pub html: PathBuf,
    pub markdown: PathBuf,
    pub json: PathBuf,
    /// The folder of a report's figures, which the next campaign does not overwrite; else the folder of the other files.
    pub folder: PathBuf,
    /// Every figure as SVG, with a PNG of the same name beside it.
    pub plots: Vec<PathBuf>,
}

/// Write `NAME.html`, `NAME.md` and `NAME.json`, or a page of another name.
pub fn write(folder: &Path, (page, name): (&str, &str), document: &Document, json: &serde_json::Value) -> Result<Written> {
    fs_err::create_dir_all(folder)?;
    let at = |name: &str, ending: &str| folder.join(format!("{name}.{ending}"));
    let written = Written {
        html: at(page, "html"),
        markdown: at(name, "md"),
        json: at(name, "json"),
        folder: folder.to_path_buf(),
        plots: Vec::new(),
    };
    replace(&written.json, pretty(json)?.as_bytes())?;
    replace(&written.markdown, markdown::document(document).as_bytes())?;
    replace(&written.html, html::document(document)?.as_bytes())?;
    Ok(written)
}

/// JSON as written to a file.
fn pretty(json: &serde_json::Value) -> Result<String> {
    Ok(serde_json::to_string_pretty(json).map_err(|e| Error::Io(e.into()))? + "\n")
}

/// Write a temporary file and rename it.
pub fn replace(path: &Path, content: &[u8]) -> Result<()> {
    Ok(collo_store::place_file(path, content)?)
}
