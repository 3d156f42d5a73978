//! The file of `collo mig export`: a `[layout.NAME]` for each GPU, `cut` with the place of every instance, or `mig = false`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use ::toml::Spanned;
use collo_text::{Diagnostic, Source, nearest, quoted};
use serde::Deserialize;

use super::{WantedPartition, arranged, card_of, slice_of, slice_text};
use collo_gpus::partition::Partition;
use collo_plan::facts::Gpu;

/// The selected layouts of a file.
#[derive(Debug, Clone)]
pub struct LayoutFile {
    source: Arc<Source>,
    layouts: BTreeMap<String, Section>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct LayoutDocument {
    layout: BTreeMap<String, Section>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    /// The GPU model that it is for, if restricted to one.
    gpu: Option<Spanned<String>>,
    mig: Option<Spanned<bool>>,
    cut: Option<Vec<Spanned<String>>>,
}

impl LayoutFile {
    /// All layouts of a file, or the one of this name.
    pub fn read(source: &Arc<Source>, name: Option<&str>) -> Result<LayoutFile, Diagnostic> {
        let document: LayoutDocument = ::toml::from_str(source.text()).map_err(|e| {
            let what = e.message().lines().next().unwrap_or("it cannot be read").to_string();
            Diagnostic::new(format!("not a layout: {what}")).at(source, e.span().unwrap_or(0..0))
        })?;
        let mut layouts = document.layout;
        if let Some(name) = name {
            let only = layouts.remove(name).ok_or_else(|| unknown(source, name, layouts.keys()))?;
            layouts = BTreeMap::from([(name.to_string(), only)]);
        }
        if layouts.is_empty() {
            return Err(Diagnostic::new(format!("no layout in {}", source.name())).hint("`collo mig export` writes one"));
        }
        let file = LayoutFile { source: source.clone(), layouts };
        if file.layouts.len() > 1 && !file.names_cards() {
            let first = file.layouts.keys().next().cloned().unwrap_or_default();
            let names: Vec<String> = file.layouts.keys().map(|n| format!("`{n}`")).collect();
            let what = format!("{} has several layouts: {}", source.name(), names.join(", "));
            return Err(Diagnostic::new(what).hint(format!("name one, as in `{}:{first}`", source.name())));
        }
        Ok(file)
    }

    /// Whether every layout is named after a GPU: `gpu0`.
    pub fn names_cards(&self) -> bool {
        self.layouts.keys().all(|name| index(name).is_some())
    }

    /// The wanted partition of this GPU; `None` if each layout names a GPU and none names this one.
    pub fn of(&self, gpu: &Gpu, own_cards: bool) -> Result<Option<WantedPartition>, Diagnostic> {
        let at = gpu.at.as_ref().map(|at| at.index);
        let own = self.layouts.iter().find(|(name, _)| index(name).is_some() && index(name) == at);
        let only = self.layouts.iter().next().filter(|_| self.layouts.len() == 1 && !own_cards);
        match own.or(only) {
            Some((name, section)) => self.wanted(name, section, gpu).map(Some),
            None if own_cards => Ok(None),
            None => Err(Diagnostic::new(format!("{} has no layout for {}", self.source.name(), gpu.label()))
                .hint(format!("`[layout.gpu{}]` would be one", at.unwrap_or(0)))),
        }
    }

    fn wanted(&self, name: &str, section: &Section, gpu: &Gpu) -> Result<WantedPartition, Diagnostic> {
        let card = card_of(gpu)?;
        let at = |mistake: Diagnostic, span: Range<usize>| mistake.at(&self.source, span);
        if let Some(model) = section.gpu.as_ref().filter(|model| *model.get_ref() != card.name) {
            let what = format!("layout {} is for {}, but {} is {}", quoted(name), model.get_ref(), gpu.label(), card.name);
            return Err(at(Diagnostic::new(what), model.span()));
        }
        match (&section.mig, &section.cut) {
            (Some(mig), None) if !mig.get_ref() => Ok(WantedPartition { partition: Partition::off(), placed: true }),
            (Some(mig), Some(_)) if !mig.get_ref() => Err(at(
                Diagnostic::new(format!("layout {} has MIG off and a `cut`", quoted(name))).note("leave one out"),
                mig.span(),
            )),
            (_, Some(cut)) => {
                let mut slices = Vec::new();
                for text in cut {
                    slices.push(slice_of(text.get_ref(), card).map_err(|e| at(e, text.span()))?);
                }
                let span = cut.first().zip(cut.last()).map(|(first, last)| first.span().start..last.span().end);
                arranged(slices, card).map_err(|e| at(e, span.unwrap_or(0..0)))
            }
            (_, None) => Err(Diagnostic::new(format!("layout {} of {} has no `cut`", quoted(name), self.source.name()))
                .hint("as in `cut = [\"3g.20gb@4\", \"2g.10gb@0\"]`, or `mig = false`")),
        }
    }
}

fn unknown<'a>(source: &Source, name: &str, names: impl Iterator<Item = &'a String> + Clone) -> Diagnostic {
    let all: Vec<String> = names.clone().map(|n| format!("`{n}`")).collect();
    let note = match nearest(name, names.map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("it has {}", all.join(", ")),
    };
    Diagnostic::new(format!("no layout {} in {}", quoted(name), source.name())).hint(note)
}

/// `gpu0` → 0
fn index(name: &str) -> Option<u32> {
    name.strip_prefix("gpu").and_then(|n| n.parse().ok())
}

/// States of GPUs as a file.
pub fn written<'a>(cards: impl IntoIterator<Item = (&'a Gpu, &'a Partition)>) -> String {
    let mut text = String::new();
    for (gpu, partition) in cards {
        let index = gpu.at.as_ref().map_or(0, |at| at.index);
        let model = gpu.card.as_ref().map(|card| format!("gpu = {}\n", ::toml::Value::from(card.name.as_str())));
        let cut: Vec<String> = partition.instances.iter().map(|s| format!("\"{}\"", slice_text(s))).collect();
        let state = if partition.mig { format!("cut = [{}]", cut.join(", ")) } else { "mig = false".into() };
        let gap = if text.is_empty() { "" } else { "\n" };
        // A string takes any text.
        let _ = writeln!(text, "{gap}[layout.gpu{index}]\n{}{state}", model.unwrap_or_default());
    }
    text
}
