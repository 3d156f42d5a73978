//! `collo.toml`: what belongs to a machine and not to an experiment.
//!
//! In: the file in the root of a project, which may be absent. Out: its checked values. The command line overrides it. Only
//! [`OF_EXPERIMENTS`] changes what is measured: those keys are read with the experiment, below everything else.
//!
//! To add a key: its row in [`HostFile`].

use std::path::{Path, PathBuf};
use std::sync::Arc;

use collo_text::{Diagnostic, Diagnostics, Source, fields, shown};

use crate::project::Project;
use collo_text::fields::ValueKind::{Choice, Number, OneOrMore, Text};

/// Its name in the project's root.
pub const NAME: &str = "collo.toml";
/// Its keys that are also keys of experiments, which then override them.
pub const OF_EXPERIMENTS: &[&str] = &["cores"];

collo_text::keys! { "collo schema host";
    /// The values of a machine.
    #[derive(Debug, Clone)]
    pub struct HostFile {
        gpu: Option<String>, "the GPU to measure on, as after `--gpu`: its index, its UUID or its PCI id";
        python: Option<PathBuf>, "a Python that has torch, as after `--python`; relative to this file";
        foreign: Option<bool> [Choice(&["refuse", "allow"])], "what to do if other processes compute on the GPU, as after `--foreign`";
        cores [OneOrMore(&Text)], "`cores` of experiments that do not say";
        price_per_hour [Number(0.0..=1e9)], "what an hour on this machine costs";
        currency [Text], "the currency of that price, as in `EUR`";
    } and {
        source: Option<Arc<Source>>,
        pub price: Option<Price>,
    }
}

/// What an hour costs.
#[derive(Debug, Clone, PartialEq)]
pub struct Price {
    pub per_hour: f64,
    pub currency: String,
}

impl HostFile {
    /// The file of a project; nothing is set if there is none.
    pub fn of(project: &Project) -> Result<HostFile, Diagnostics> {
        let path = project.root().join(NAME);
        if !path.exists() {
            return Ok(HostFile::default());
        }
        let text = collo_text::read_small_text(&path, fields::LARGEST)
            .map_err(|e| Diagnostic::new(format!("{} cannot be read", shown(&path))).caused_by(e.to_string()))?;
        HostFile::parse(&Source::file(shown(&path), text), project.root())
    }

    /// The same from its text; paths are relative to this folder.
    pub fn parse(source: &Arc<Source>, folder: &Path) -> Result<HostFile, Diagnostics> {
        let (fields, mut mistakes) = fields::read(source, HostFile::KEYS);
        let (per_hour, currency) = (fields.get::<Option<f64>>("price_per_hour"), fields.text("currency"));
        for (has, lacks) in [("price_per_hour", "currency"), ("currency", "price_per_hour")] {
            if let (Some(found), None) = (fields.key_span(has), fields.found(lacks))
                && mistakes.is_empty()
            {
                let example = if lacks == "currency" { "currency = \"EUR\"" } else { "price_per_hour = 2.5" };
                let what = Diagnostic::new(format!("`{has}` without `{lacks}`"));
                mistakes.push(what.at(source, found).note(format!("add `{example}`")));
            }
        }
        let host = HostFile {
            source: Some(source.clone()),
            price: per_hour.zip(currency).map(|(per_hour, currency)| Price { per_hour, currency: currency.to_string() }),
            ..HostFile::from_fields(&fields)
        };
        let host = HostFile { python: host.python.map(|path| collo_text::written(folder, &path.to_string_lossy())), ..host };
        mistakes.into_result(host)
    }

    pub fn source(&self) -> Option<&Arc<Source>> {
        self.source.as_ref()
    }
}
