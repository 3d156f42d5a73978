//! All GPU models of a project, by name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use collo_text::{Diagnostic, Diagnostics, Source, nearest, quoted};
use fs_err as fs;

use super::{GpuModel, Peaks, read};
use collo_text::fields::listed;

/// All GPU models of a project.
#[derive(Debug, Clone, Default)]
pub struct Cards {
    all: BTreeMap<String, GpuModel>,
    broken: BTreeMap<String, Diagnostics>,
}

impl Cards {
    /// Read every `NAME.toml` of the folder. A broken one is kept with its mistakes: they matter only if it is requested.
    pub fn load(folder: &Path) -> Result<Cards, Diagnostic> {
        if !folder.is_dir() {
            let root = folder.parent().map(collo_text::shown).filter(|root| !root.is_empty()).unwrap_or(".".into());
            return Err(Diagnostic::new(format!("no `mig-profiles/` in {root}, so no GPU model is known"))
                .hint(format!("`collo init {root}` writes it, overwriting nothing")));
        }
        let unreadable = |e: std::io::Error| Diagnostic::new("the MIG profiles cannot be read").caused_by(e.to_string());
        let entries = fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(unreadable)?;
        let mut paths: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|e| e == "toml"));
        paths.sort();
        let mut cards = Cards::default();
        for path in paths {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let text = collo_text::read_small_text(&path, collo_text::fields::LARGEST)
                .map_err(|e| Diagnostic::new(format!("GPU `{name}` cannot be read")).caused_by(e.to_string()).into());
            let card = text.and_then(|text| read::parse(&name, &Source::file(collo_text::shown(&path), text)));
            cards.add(name, card);
        }
        Ok(cards)
    }

    /// GPU models by their names, from texts that are not in a folder.
    pub fn of(texts: impl IntoIterator<Item = (String, Arc<Source>)>) -> Cards {
        let mut cards = Cards::default();
        for (name, text) in texts {
            let card = read::parse(&name, &text);
            cards.add(name, card);
        }
        cards
    }

    fn add(&mut self, name: String, card: Result<GpuModel, Diagnostics>) {
        match card {
            Ok(card) => drop(self.all.insert(name, card)),
            Err(mistakes) => drop(self.broken.insert(name, mistakes)),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &GpuModel> {
        self.all.values()
    }

    /// Invalid files, with their errors.
    pub fn broken(&self) -> &BTreeMap<String, Diagnostics> {
        &self.broken
    }

    /// The published peaks of the board that its driver names so: of the project's files, else of those that come with collo.
    pub fn peaks_of(&self, product: &str) -> Option<&Peaks> {
        self.iter().find_map(|card| card.peaks_of(product)).or_else(|| crate::peaks_of(product))
    }

    /// The model of the board with this name in the driver, and the name as its file has it.
    pub fn of_product(&self, product: &str) -> Option<(&GpuModel, &str)> {
        let of = |card: &'_ GpuModel| card.product_names.iter().position(|name| crate::is_same_product(name, product));
        self.iter().find_map(|card| of(card).map(|at| (card, card.product_names[at].as_str())))
    }

    /// The GPU model of this name, or the error: unknown or broken.
    pub fn find(&self, name: &str) -> Result<&GpuModel, Diagnostics> {
        if let Some(card) = self.all.get(name) {
            return Ok(card);
        }
        if let Some(mistakes) = self.broken.get(name) {
            return Err(mistakes.clone());
        }
        let names = || self.all.keys().chain(self.broken.keys()).map(String::as_str);
        let begun: Vec<&str> = names().filter(|n| !name.is_empty() && n.starts_with(&name.to_lowercase())).take(6).collect();
        let note = match (&begun[..], nearest(name, names())) {
            ([], Some(near)) => format!("did you mean `{near}`? All: `collo list gpus`"),
            ([], None) => "all: `collo list gpus`".into(),
            (begun, _) => format!("did you mean {}? All: `collo list gpus`", listed(begun)),
        };
        Err(Diagnostic::new(format!("unknown GPU {}", quoted(name))).note(note).into())
    }
}
