//! Asks for descriptions: what a training step allocates and computes, traced on fake tensors without a GPU.
//!
//! In: members, or models by name. Out: their descriptions, kept in the user's cache by everything that they depend on. One serves
//! every batch size.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use collo_predict::Description;
use collo_store::{Diagnostic, Source, place_file, read_small_text, sha256_text};

use crate::cell::Member;
use crate::commands::process_environment;
use crate::ingredients::{IngredientWatch, Places};
use crate::interpreters::Interpreters;
use crate::launch::{Errand, Unanswered};
use crate::prepare::with_words_of;
use crate::project::Project;
use crate::python::{self, Progress};
use crate::sharing::scrubbed;
use crate::workload::Workload;

/// Most descriptions take seconds; the script itself gives up after two minutes, and says where.
const LIMIT: Duration = Duration::from_secs(150);
/// Descriptions larger than this are refused.
const MOST_BYTES: u64 = 64 << 20;
/// Changes when the question does, so that older answers are not taken for newer ones.
const QUESTION: &str = "collo description 1";

/// A network that its library makes by name, trained on random items: the published jobs, and rows of a table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedModel {
    /// `timm:resnet50`, `torchvision:vgg16`.
    pub model: String,
    /// Of one item: `[3, 224, 224]`.
    pub input: Vec<u32>,
    pub classes: u32,
    /// `adam`, `adamw`, `sgd`.
    pub optimizer: String,
    /// `fp32`, `bf16`.
    pub precision: String,
}

/// Asks for the descriptions of some workloads, and of models by name.
pub struct Describer<'a> {
    project: &'a Project,
    interpreters: Interpreters,
    /// Versions of the packages, on which descriptions depend.
    versions: BTreeMap<String, String>,
    /// Of the Python that makes models by name; absent if there are only workloads.
    torch: Option<PathBuf>,
    /// Ask again, whatever is in the cache.
    fresh: bool,
}

/// What is asked, with all that the answer depends on.
struct Question {
    /// What is described, for messages.
    name: String,
    program: PathBuf,
    arguments: Vec<String>,
    folder: PathBuf,
    env: BTreeMap<String, Option<String>>,
    places: Places,
    /// The option that names the file to write, beside the variable.
    option: Option<&'static str>,
}

impl<'a> Describer<'a> {
    /// For members of these workloads and, if asked for, models by name. Missing environments are built.
    pub fn new(
        project: &'a Project,
        workloads: &[Arc<Workload>],
        by_name: bool,
        own: Option<&Path>,
        fresh: bool,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<Describer<'a>, Diagnostic> {
        let target = Interpreters::target_without_gpu(project)?;
        let (interpreters, mut versions) = Interpreters::provide(project, workloads, own, target, tell)?;
        let mut torch = None;
        if by_name {
            let python = Interpreters::torch(project, own, tell)?;
            versions.extend(python.facts);
            torch = Some(python.interpreter);
        }
        Ok(Describer { project, interpreters, versions, torch, fresh })
    }

    /// The description of a member, at any batch size.
    pub fn member(&self, member: &Member) -> Result<Description, Diagnostic> {
        let workload = member.workload();
        if workload.epochs.is_some() {
            let what = format!(
                "`{}` cannot be described: it is a foreign script, whose training step collo does not see",
                workload.name
            );
            return Err(Diagnostic::new(what).hint("its memory has to be measured: `collo run`"));
        }
        // A step of thirteen items is traced, whatever the batch size: one description for all.
        let mut spec = member.spec();
        spec.batch_size = workload.settings.get("batch_size").and_then(|b| b.as_u64()).and_then(|b| u32::try_from(b).ok());
        let mut words = workload.command_for(&spec)?;
        self.interpreters.put_into(&mut words, workload);
        let Some((program, arguments)) = words.split_first() else {
            return Err(Diagnostic::new(format!("`{}` has no command", workload.name)));
        };
        self.ask(&Question {
            name: workload.name.clone(),
            program: program.into(),
            arguments: arguments.to_vec(),
            folder: workload.folder.clone(),
            env: process_environment(self.project, workload, &spec, &self.interpreters)?,
            places: Places::of(self.project, [workload.as_ref()])?,
            option: None,
        })
    }

    /// The description of a model by name, at any batch size.
    pub fn model(&self, model: &NamedModel) -> Result<Description, Diagnostic> {
        let Some(program) = &self.torch else {
            return Err(Diagnostic::new(format!("no Python was provided to make `{}`", model.model)));
        };
        let input = model.input.iter().map(u32::to_string).collect::<Vec<_>>().join("x");
        let mut arguments = vec!["-m".to_string(), "collo_describe".into()];
        for (option, value) in [
            ("--model", model.model.clone()),
            ("--input", input),
            ("--classes", model.classes.to_string()),
            ("--optimizer", model.optimizer.clone()),
            ("--precision", model.precision.clone()),
        ] {
            arguments.extend([option.to_string(), value]);
        }
        let env =
            [("PYTHONPATH", Some(self.project.workloads().display().to_string())), ("PYTHONNOUSERSITE", Some("1".to_string()))];
        self.ask(&Question {
            name: model.model.clone(),
            program: program.clone(),
            arguments,
            folder: self.project.workloads(),
            env: env.map(|(name, value)| (name.to_string(), value)).into(),
            places: Places::of(self.project, [])?,
            option: Some("--to"),
        })
    }

    /// From the cache, else from Python.
    fn ask(&self, question: &Question) -> Result<Description, Diagnostic> {
        let what = || Diagnostic::new(format!("`{}` cannot be described", question.name));
        let kept = python::cache_folder().join("descriptions").join(format!("{}.json", self.key(question)?));
        if !self.fresh
            && let Ok(text) = read_small_text(&kept, MOST_BYTES)
            && let Ok(description) = read(question, text)
        {
            return Ok(description);
        }
        let scratch = tempfile::tempdir().map_err(|e| what().of_machine().caused_by(e))?;
        let answer = scratch.path().join("description.json");
        run(question, &answer)?;
        let text = read_small_text(&answer, MOST_BYTES).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => what()
                .caused_by("it ended without a training step")
                .hint("a script is described by its call of `collo_torch.warm_up`: does it come there?"),
            _ => what().caused_by(e),
        })?;
        let description = read(question, text.clone())?;
        // A cache that cannot be written costs time, nothing else.
        if let Some(folder) = kept.parent()
            && fs_err::create_dir_all(folder).is_ok()
        {
            let _ = place_file(&kept, text.as_bytes());
        }
        Ok(description)
    }

    /// A digest of all that the answer depends on.
    fn key(&self, question: &Question) -> Result<String, Diagnostic> {
        let mut text = format!("{QUESTION}\n{}\n{:?}\n", question.name, question.arguments);
        for (name, value) in question.env.iter().filter(|(name, _)| !matches!(name.as_str(), "PYTHONPATH" | "COLLO_DATA")) {
            text += &format!("{name}={value:?}\n");
        }
        for (name, version) in &self.versions {
            text += &format!("{name} {version}\n");
        }
        for (name, digest) in IngredientWatch::over(question.places.clone())?.digests() {
            text += &format!("{name} {digest}\n");
        }
        Ok(sha256_text(&text))
    }
}

fn read(question: &Question, text: String) -> Result<Description, Diagnostic> {
    Description::read(&Source::file(format!("the description of `{}`", question.name), text))
}

/// Have Python write the description.
fn run(question: &Question, to: &Path) -> Result<(), Diagnostic> {
    let what = || Diagnostic::new(format!("`{}` cannot be described", question.name));
    let mut errand = Errand::to(&question.program, LIMIT).args(&question.arguments).folder(&question.folder);
    if let Some(option) = question.option {
        errand = errand.arg(option).arg(to);
    }
    let mut env = scrubbed();
    env.extend(question.env.clone());
    env.extend(
        [
            ("COLLO_DESCRIBE", Some("1".to_string())),
            ("COLLO_DESCRIPTION", Some(to.display().to_string())),
            ("COLLO_THREADS", Some("1".into())),
            ("OMP_NUM_THREADS", Some("1".into())),
            // On a machine with a GPU the same is traced.
            ("CUDA_VISIBLE_DEVICES", Some(String::new())),
            ("COLLO_FD", None),
        ]
        .map(|(name, value)| (name.to_string(), value)),
    );
    for (name, value) in env {
        errand = errand.env(name, value);
    }
    let answer = errand.run().map_err(|why| match why {
        Unanswered::Stopped(stopped) => {
            Diagnostic::new(format!("stopped while describing `{}`", question.name)).of(stopped.class()).caused_by(stopped)
        }
        Unanswered::TimedOut(_) => what()
            .caused_by(format!("its training step was not reached within {} s", LIMIT.as_secs()))
            .hint("a network that is initialised without end on fake tensors cannot be described; its memory has to be measured"),
        other => what().of_machine().caused_by(other),
    })?;
    match answer.success() {
        true => Ok(()),
        false => Err(with_words_of(&answer.err(), what())),
    }
}
