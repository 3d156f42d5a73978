//! Asks for descriptions: what a training step allocates and computes, traced on fake tensors without a GPU.
//!
//! In: members, or models by name. Out: their descriptions, kept in the user's cache by everything that they depend on. One serves
//! every batch size. Many are asked of one process (`many.rs`).

mod many;

pub use many::Traced;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use collo_predict::{Basis, Description};
use collo_store::{place_file, sha256_text};
use collo_text::{Diagnostic, Source, read_small_text};

use crate::commands::process_environment;
use crate::consent::DescribeConsent;
use crate::data::with_words_of;
use crate::ingredients::{IngredientWatch, Places};
use crate::interpreters::Interpreters;
use crate::python::{self, Progress};
use collo_launch::environment::scrubbed;
use collo_launch::interrupted::Stopped;
use collo_launch::{Errand, Unanswered};
use collo_plan::cell::Member;
use collo_plan::project::Project;
use collo_plan::workload::Workload;

/// Most descriptions take seconds; the script itself gives up after two minutes, and says where.
const LIMIT: Duration = Duration::from_secs(150);
/// Descriptions larger than this are refused.
const MOST_BYTES: u64 = 64 << 20;
/// Changes when the question does, so that older answers are not taken for newer ones.
const QUESTION: &str = "collo description 1";

/// Settings under which the reserved memory is not what the caching allocator would reserve.
const NOT_REPLAYED: [&str; 2] = ["compile", "cuda_graphs"];

/// A network that its library makes by name, trained on random items: the published jobs, and rows of a table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedModel {
    /// `timm:resnet50`, `torchvision:vgg16`.
    pub model: String,
    /// Of one item: `[3, 224, 224]`. None: the one that its library made it for.
    pub input: Option<Vec<u32>>,
    pub classes: u32,
    /// One of [`OPTIMIZERS`](NamedModel::OPTIMIZERS).
    pub optimizer: String,
    /// One of [`PRECISIONS`](NamedModel::PRECISIONS).
    pub precision: String,
}

impl NamedModel {
    /// Those of `collo_describe.py`; `sgd` has a momentum of 0.9.
    pub const OPTIMIZERS: [&str; 3] = ["adam", "adamw", "sgd"];
    /// Those of `collo_torch.py`; `torch` is its own default: TF32 in convolutions alone.
    pub const PRECISIONS: [&str; 5] = ["fp32", "tf32", "bf16", "fp16", "torch"];
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
    /// The digests of what a description depends on, by the folder of the workload: read once.
    digests: RefCell<BTreeMap<Option<PathBuf>, String>>,
}

/// What is described.
#[derive(Debug, Clone, Copy)]
pub enum Describable<'a> {
    Member(&'a Member),
    Model(&'a NamedModel),
}

/// What is asked, with all that the answer depends on.
struct Question {
    /// What is described, for messages.
    name: String,
    program: PathBuf,
    arguments: Vec<String>,
    folder: PathBuf,
    env: BTreeMap<String, Option<String>>,
    /// None: only what workloads share.
    workload: Option<Arc<Workload>>,
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
        _consent: DescribeConsent,
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
        Ok(Describer { project, interpreters, versions, torch, fresh, digests: RefCell::default() })
    }

    /// For members of workloads that these interpreters run.
    pub fn with(
        project: &'a Project,
        interpreters: Interpreters,
        versions: BTreeMap<String, String>,
        _consent: DescribeConsent,
    ) -> Describer<'a> {
        Describer { project, interpreters, versions, torch: None, fresh: false, digests: RefCell::default() }
    }

    /// The version of a package, as members will have it.
    pub fn version_of(&self, package: &str) -> Option<String> {
        self.versions.get(package).cloned()
    }

    /// The description of a member, at any batch size.
    pub fn member(&self, member: &Member) -> Result<Description, Diagnostic> {
        self.ask(&self.of_member(member)?)
    }

    /// The description of a model by name, at any batch size.
    pub fn model(&self, model: &NamedModel) -> Result<Description, Diagnostic> {
        self.ask(&self.of_model(model)?)
    }

    fn of_member(&self, member: &Member) -> Result<Question, Diagnostic> {
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
        Ok(Question {
            name: workload.name.clone(),
            program: program.into(),
            arguments: arguments.to_vec(),
            folder: workload.folder.clone(),
            env: process_environment(self.project, workload, &spec, &self.interpreters)?,
            workload: Some(Arc::clone(workload)),
            option: None,
        })
    }

    fn of_model(&self, model: &NamedModel) -> Result<Question, Diagnostic> {
        let Some(program) = &self.torch else {
            return Err(Diagnostic::new(format!("no Python was provided to make `{}`", model.model)));
        };
        let input = model.input.as_ref().map(|input| input.iter().map(u32::to_string).collect::<Vec<_>>().join("x"));
        let mut arguments = vec!["-m".to_string(), "collo_describe".into()];
        for (option, value) in [
            ("--model", Some(model.model.clone())),
            ("--input", input),
            ("--classes", Some(model.classes.to_string())),
            ("--optimizer", Some(model.optimizer.clone())),
            ("--precision", Some(model.precision.clone())),
        ] {
            arguments.extend(value.into_iter().flat_map(|value| [option.to_string(), value]));
        }
        let env =
            [("PYTHONPATH", Some(self.project.workloads().display().to_string())), ("PYTHONNOUSERSITE", Some("1".to_string()))];
        Ok(Question {
            name: model.model.clone(),
            program: program.clone(),
            arguments,
            folder: self.project.workloads(),
            env: env.map(|(name, value)| (name.to_string(), value)).into(),
            workload: None,
            option: Some("--to"),
        })
    }

    /// From the cache, else from Python.
    fn ask(&self, question: &Question) -> Result<Description, Diagnostic> {
        let kept = self.kept_at(question)?;
        if let Some(description) = self.kept(question, &kept) {
            return Ok(description);
        }
        let scratch = tempfile::tempdir().map_err(|e| question.unanswered().of_machine().caused_by(e))?;
        let answer = scratch.path().join("description.json");
        run(question, &answer)?;
        keep(question, &answer, &kept)
    }

    /// Where the answer is kept.
    fn kept_at(&self, question: &Question) -> Result<PathBuf, Diagnostic> {
        let cache = python::cache_folder()?;
        Ok(cache.join("descriptions").join(format!("{}.json", self.key(question)?)))
    }

    fn kept(&self, question: &Question, at: &Path) -> Option<Description> {
        let text = (!self.fresh).then(|| read_small_text(at, MOST_BYTES).ok()).flatten()?;
        read(question, text).ok()
    }

    /// A digest of all that the answer depends on.
    fn key(&self, question: &Question) -> Result<String, Diagnostic> {
        let mut text = format!("{QUESTION}\n{}\n{:?}\n", question.name, question.arguments);
        // Where things are, and what does not reach it, changes no answer.
        let places = ["PATH", "PYTHONPATH", "VIRTUAL_ENV", "COLLO_DATA"];
        for (name, value) in question.env.iter().filter(|(name, _)| !places.contains(&name.as_str())) {
            text += &value.as_ref().map(|value| format!("{name}={value:?}\n")).unwrap_or_default();
        }
        for (name, version) in &self.versions {
            text += &format!("{name} {version}\n");
        }
        text += &self.digests(question.workload.as_deref())?;
        Ok(sha256_text(&text))
    }

    /// Of the files that it depends on, a line each.
    fn digests(&self, workload: Option<&Workload>) -> Result<String, Diagnostic> {
        let folder = workload.map(|workload| workload.folder.clone());
        if let Some(known) = self.digests.borrow().get(&folder) {
            return Ok(known.clone());
        }
        let watch = IngredientWatch::over(Places::of(self.project, workload)?)?;
        let text: String = watch.digests().map(|(name, digest)| format!("{name} {digest}\n")).collect();
        self.digests.borrow_mut().insert(folder, text.clone());
        Ok(text)
    }
}

impl Question {
    fn unanswered(&self) -> Diagnostic {
        Diagnostic::new(format!("`{}` cannot be described", self.name))
    }

    /// Its words after the program, and the environment: an answer is written to this file.
    fn words_and_environment(&self, to: &Path) -> (Vec<String>, BTreeMap<String, Option<String>>) {
        let to = to.display().to_string();
        let mut words = self.arguments.clone();
        if let Some(option) = self.option {
            words.extend([option.to_string(), to.clone()]);
        }
        let mut env = scrubbed();
        env.extend(self.env.clone());
        env.extend(
            [
                ("COLLO_DESCRIBE", Some("1".to_string())),
                ("COLLO_DESCRIPTION", Some(to)),
                ("COLLO_THREADS", Some("1".into())),
                ("OMP_NUM_THREADS", Some("1".into())),
                // On a machine with a GPU the same is traced.
                ("CUDA_VISIBLE_DEVICES", Some(String::new())),
                ("COLLO_FD", None),
            ]
            .map(|(name, value)| (name.to_string(), value)),
        );
        (words, env)
    }

    fn too_late(&self) -> Diagnostic {
        self.unanswered()
            .caused_by(format!("its training step was not reached within {} s", LIMIT.as_secs()))
            .hint("a network that is initialised without end on fake tensors cannot be described; its memory has to be measured")
    }
}

/// Read the answer, and keep it.
fn keep(question: &Question, answer: &Path, kept: &Path) -> Result<Description, Diagnostic> {
    let text = read_small_text(answer, MOST_BYTES).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => question
            .unanswered()
            .caused_by("it ended without a training step")
            .hint("a script is described by its call of `collo_torch.warm_up`: does it come there?"),
        _ => question.unanswered().caused_by(e),
    })?;
    let description = read(question, text.clone())?;
    // A cache that cannot be written costs time, nothing else.
    if let Some(folder) = kept.parent()
        && fs_err::create_dir_all(folder).is_ok()
    {
        let _ = place_file(kept, text.as_bytes());
    }
    Ok(description)
}

fn read(question: &Question, text: String) -> Result<Description, Diagnostic> {
    Description::read(&Source::file(format!("the description of `{}`", question.name), text))
}

/// Have Python write the description.
fn run(question: &Question, to: &Path) -> Result<(), Diagnostic> {
    let (words, env) = question.words_and_environment(to);
    let mut errand = Errand::to(&question.program, LIMIT).args(&words).folder(&question.folder);
    for (name, value) in env {
        errand = errand.env(name, value);
    }
    let answer = errand.run().map_err(|why| match why {
        Unanswered::Stopped(stopped) => stopped_at(question, stopped),
        Unanswered::TimedOut(_) => question.too_late(),
        other => question.unanswered().of_machine().caused_by(other),
    })?;
    match answer.success() {
        true => Ok(()),
        false => Err(with_words_of(&answer.err(), question.unanswered())),
    }
}

fn stopped_at(question: &Question, stopped: Stopped) -> Diagnostic {
    stopped.error(format!("stopped while describing `{}`", question.name))
}

/// Which peak of the replay stands for what the allocator of a member reserves.
pub fn basis_of(member: &Member) -> Basis {
    let settings = member.settings();
    let is_on = |name: &&str| settings.get(*name).is_some_and(|value| value.as_bool() == Some(true));
    let other_allocator = settings.get("allocator").and_then(serde_json::Value::as_str).is_some_and(|name| name != "native");
    if other_allocator || NOT_REPLAYED.iter().any(is_on) {
        return Basis::Allocated;
    }
    match settings.get("keep_cache").and_then(serde_json::Value::as_bool) {
        Some(false) => Basis::CacheEmptied,
        Some(true) | None => Basis::Reserved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use collo_plan::workload::Workloads;

    #[test]
    fn the_words_of_a_model_by_name_are_those_of_the_scripts() {
        let workloads = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
        // The keys of a dictionary at the top of a file.
        let keys = |file: &str, name: &str| {
            let text = fs_err::read_to_string(workloads.join(file)).expect("readable");
            let (_, body) = text.split_once(&format!("\n{name} = {{")).expect("there");
            let body = body.split('}').next().unwrap_or_default().to_string();
            let keys = body.split('"').skip(1).step_by(2).map(String::from);
            keys.collect::<std::collections::BTreeSet<String>>()
        };
        let known = |words: &[&str]| words.iter().map(|word| word.to_string()).collect();
        assert_eq!(keys("collo_describe.py", "OPTIMISERS"), known(&NamedModel::OPTIMIZERS));
        assert_eq!(keys("collo_torch.py", "PRECISIONS"), known(&NamedModel::PRECISIONS));
    }

    #[test]
    fn compiled_steps_graphs_and_another_allocator_are_predicted_by_what_tensors_need() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
        let workloads = Workloads::load(&folder).expect("readable");
        let vision = workloads.get("vision").expect("there");
        let basis =
            |name: &'static str, value: serde_json::Value| basis_of(&Member::new(vision, [(name, value)]).expect("right"));
        assert_eq!(basis("batch_size", 8.into()), Basis::CacheEmptied);
        assert_eq!(basis("keep_cache", true.into()), Basis::Reserved);
        assert_eq!(basis("compile", true.into()), Basis::Allocated);
        assert_eq!(basis("cuda_graphs", true.into()), Basis::Allocated);
        assert_eq!(basis("allocator", "cudaMallocAsync".into()), Basis::Allocated);
    }
}
