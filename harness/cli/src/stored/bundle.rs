//! `collo bundle`: a campaign with everything to run it again elsewhere, in one file; and what other verbs make of such a file.

use collo_device::gpu;
use std::path::{Component, Path, PathBuf};

use collo_measure::campaign;

use collo_plan::host;
use collo_plan::project::Project;
use collo_prepare::machine;
use collo_store::archive::{self, Packed};
use collo_store::{Campaign, CampaignFolder, sha256_file};
use collo_text::{Diagnostic, Diagnostics, Remark, quoted, shown};
use fs_err as fs;
use serde::Serialize;
use serde_json::json;

use crate::answer::{Answer, Answered};
use crate::bundled::{is_bundle, its_campaign};
use crate::context::Context;
use crate::{args, output, shell};

/// Where the files lie that are ingredients of a campaign, besides its experiment's.
const FOLDERS: [&str; 3] = ["workloads/", "traces/", "observers/"];
/// Beside the workloads only pins, examples and the like are shared; anything larger is data.
const SHARED_LIMIT_BYTES: u64 = 4 << 20;

pub fn run(context: &Context<'_>, a: &args::Bundle) -> Answered {
    let project = context.project()?;
    let campaign = context.runs()?.find(&a.campaign)?;
    campaign.expect_unchanged()?;
    let m = campaign.manifest();
    super::merge::not_running(&campaign)?;
    let name = format!("{}-{}", m.experiment, m.id);
    let to = a.to.clone().unwrap_or_else(|| PathBuf::from(format!("{name}.tar.gz")));
    if !is_bundle(&to) {
        let what = format!("{} does not end in `.tar.gz`", to.display());
        return Err(Diagnostic::new(what).hint(format!("`--to {name}.tar.gz`")).into());
    }
    let to = context.folder()?.join(to);
    let scratch = tempfile::tempdir()?;
    let mut files = Packed::new();
    experiment(m, scratch.path(), &mut files)?;
    let changed = ingredients(&project, m, &mut files)?;
    if !changed.is_empty() && !a.force {
        let what = format!("{} changed since `{}` was measured", changed.join(", "), m.id);
        return Err(Diagnostic::new(what)
            .hint("restore what it was measured with; `--force` packs the files as they are now, and notes that in the bundle")
            .into());
    }
    let linked = linked_from_outside(&project, &files)?;
    if !linked.is_empty() && !a.force {
        let what = format!("{}: links that lead out of the project", linked.join(", "));
        return Err(Diagnostic::new(what)
            .hint("replace each by a copy, if its contents may be handed on; `--force` packs them")
            .into());
    }
    tree(&project.mig_profiles(), "mig-profiles", &mut files)?;
    tree(campaign.path(), &format!("runs/{}/{}", m.experiment, m.id), &mut files)?;
    let report = super::report::of(&context.runs()?, &campaign)?;
    collo_report::write(&report, &scratch.path().join("reports"))?;
    tree(&scratch.path().join("reports"), "reports", &mut files)?;
    let data = data(m);
    let about = json!({"collo": env!("CARGO_PKG_VERSION"), "experiment": m.experiment, "campaign": m.id,
        "created_utc": m.created_utc, "device": m.device, "data": data, "changed": changed});
    let count = files.len();
    let bytes = archive::pack(&to, &name, about, &files)?;
    let mut answer = Answer::of(json!({"campaign": m.id, "bundle": to, "bytes": bytes, "files": count, "data": data,
        "digest": campaign.digest()?}));
    answer.line(format!("{}: {count} files, {:.1} MB", shown(&to), bytes as f64 / 1e6));
    answer.line(format!("  campaign.json: {}", campaign.digest()?));
    linked
        .iter()
        .for_each(|link| answer.beside(Remark::Warning(format!("{link}, outside the project; its contents are packed"))));
    data.iter().for_each(|set| answer.line(format!("  not in it: {} ({}); {}", set.name, set.version, set.get)));
    let file = shell::quoted(to.file_name().unwrap_or_default());
    answer.elsewhere(format!("next, on another machine: {} run {file}", output::command()));
    Ok(answer)
}

/// The files of the experiment as they were measured, from the campaign's own record.
fn experiment(m: &Campaign, scratch: &Path, files: &mut Packed) -> Result<(), Diagnostics> {
    let texts = campaign::files(m).map_err(|name| {
        let what = format!("`{}` does not contain the text of its `{name}`", m.id);
        let why = if m.is_merged() { "it was merged from several experiments" } else { "its record is incomplete" };
        Diagnostic::new(what).caused_by(why).hint("bundle the campaigns one by one")
    })?;
    for (index, (included, text)) in texts.into_iter().enumerate() {
        let own = format!("{}.toml", m.experiment);
        let written = included.unwrap_or(&own);
        let name = inside(Path::new("experiments"), Path::new(written)).filter(|name| !files.contains_key(name));
        let Some(name) = name else {
            let what = format!("`{}` includes {}, which has no place in a bundle", m.experiment, quoted(written));
            return Err(Diagnostic::new(what).hint("move that file beside the experiment's, and measure again").into());
        };
        let copy = scratch.join(format!("experiment-{index}.toml"));
        fs::write(&copy, text)?;
        files.insert(name, copy);
    }
    Ok(())
}

/// A path from a folder of an archive as a name in that archive, unless it leads out of it.
fn inside(folder: &Path, path: &Path) -> Option<String> {
    let mut parts: Vec<&str> = folder.iter().map(|part| part.to_str()).collect::<Option<_>>()?;
    for part in path.components() {
        match part {
            Component::Normal(name) => parts.push(name.to_str()?),
            Component::ParentDir => drop(parts.pop()?),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

/// The files of the workloads, as the campaign knows them, what they share, and the trace. Returns those that changed since.
fn ingredients(project: &Project, m: &Campaign, files: &mut Packed) -> Result<Vec<String>, Diagnostics> {
    let mut changed = Vec::new();
    let is_file = |name: &str| FOLDERS.iter().any(|folder| name.starts_with(folder));
    for (name, ingredient) in m.ingredients.iter().filter(|(name, _)| is_file(name)) {
        let path = project.root().join(name);
        if !path.is_file() {
            changed.push(format!("`{name}`, which is gone,"));
            continue;
        }
        if sha256_file(&path)? != ingredient.sha256 {
            changed.push(format!("`{name}`"));
        }
        files.insert(name.clone(), path);
    }
    // Pins, the list of errors, examples of the protocol: what scripts and collo read beside the programs.
    for entry in fs::read_dir(project.workloads())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let meta = entry.metadata()?;
        if meta.is_file() && !name.starts_with('.') && meta.len() <= SHARED_LIMIT_BYTES {
            files.entry(format!("workloads/{name}")).or_insert(entry.path());
        }
    }
    // A folder of a workload is one by its description.
    let named: Vec<String> =
        files.keys().filter_map(|name| name.strip_prefix("workloads/")?.split_once('/')).map(|(f, _)| f.into()).collect();
    for folder in named {
        for name in ["workload.toml", "requirements.txt"] {
            let path = project.workloads().join(&folder).join(name);
            if path.is_file() {
                files.entry(format!("workloads/{folder}/{name}")).or_insert(path);
            }
        }
    }
    Ok(changed)
}

/// Files behind links that lead out of the project, whose folders may be links themselves: they may be private.
fn linked_from_outside(project: &Project, files: &Packed) -> Result<Vec<String>, Diagnostics> {
    let mut outside = Vec::new();
    for folder in FOLDERS {
        for (name, path) in files.iter().filter(|(name, _)| name.starts_with(folder)) {
            let there = fs::canonicalize(path)?;
            let inside = [project.root().to_path_buf(), project.root().join(folder)];
            if !inside.iter().any(|place| fs::canonicalize(place).is_ok_and(|place| there.starts_with(place))) {
                outside.push(format!("{} is {}", quoted(name), quoted(&there.display().to_string())));
            }
        }
    }
    Ok(outside)
}

/// All regular files of a campaign's folder, but neither its lock nor what was cut off.
fn tree(folder: &Path, name: &str, files: &mut Packed) -> std::io::Result<()> {
    add_files(folder, name, files, &|name| name.starts_with('.') || name == "lock")
}

/// All regular files of a folder and of those in it, without the entries of the folder itself that are left out.
fn add_files(folder: &Path, name: &str, files: &mut Packed, is_left_out: &dyn Fn(&str) -> bool) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let entry = entry?;
        let own = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type()?;
        if is_left_out(&own) {
            continue;
        }
        match kind {
            // A record may name any file of a run; but no bundle with a folder of Git's is unpacked.
            kind if kind.is_dir() => {
                add_files(&entry.path(), &format!("{name}/{own}"), files, &|name| name.eq_ignore_ascii_case(".git"))?;
            }
            kind if kind.is_file() => drop(files.insert(format!("{name}/{own}"), entry.path())),
            _ => {}
        }
    }
    Ok(())
}

/// A data set that a campaign used, and how to get it.
#[derive(Serialize)]
struct UsedData<'a> {
    name: &'a str,
    /// Its digest is that of this text, and says nothing of the files.
    version: String,
    get: String,
}

fn data(m: &Campaign) -> Vec<UsedData<'_>> {
    let sets = m.ingredients.iter().filter_map(|(name, i)| Some((name.strip_prefix("data ")?, i)));
    sets.map(|(name, i)| {
        let version = i.version.clone().unwrap_or_default();
        let get = match version.starts_with("synthetic") {
            true => "`collo run` writes the same stand-in".to_string(),
            false => format!("`collo data check {name}` says which files are needed, and where"),
        };
        UsedData { name, version, get }
    })
    .collect()
}

/// Unpack a bundle beside the current folder's other work. Returns its folder and its campaign; says what differs between the
/// machine it comes from and this one.
pub fn opened(context: &Context<'_>, bundle: &Path) -> Result<(PathBuf, CampaignFolder), Diagnostics> {
    let (folder, about) = archive::unpack(bundle, &context.folder()?)?;
    output::note(format!("unpacked into {}", shown(&folder)));
    output::work_in(&folder);
    let campaign = its_campaign(&folder, &about)?;
    for line in differs(campaign.manifest(), &Project::at(&folder)) {
        output::note(line);
    }
    for changed in &about.changed {
        output::warning(format!("{changed} is not what the campaign was measured with"));
    }
    if let Some(set) = campaign.manifest().ingredients.get(host::NAME).and_then(|i| i.version.as_deref()) {
        let own = shown(&folder.join(host::NAME));
        let what = format!("{} set {set} there, and stays with that machine; write it into {own} to measure with it", host::NAME);
        output::note(what);
    }
    Ok((folder, campaign))
}

/// What differs between the machine of a campaign and this one, a line each.
fn differs(origin: &Campaign, project: &Project) -> Vec<String> {
    // Not of its checkout: nothing of what was unpacked is executed to compare machines.
    let here = machine::describe(None, 0, 0, Default::default());
    let driver = gpu::ask(&project.cards()).ok();
    let there = &origin.machine;
    let gpus = |names: Vec<String>| Some(names.join(", ")).filter(|n| !n.is_empty());
    let gpu_here = gpus(driver.iter().flat_map(|d| &d.gpus).filter_map(|g| g.record()).map(|g| g.name).collect());
    let facts = [
        ("GPU", gpus(there.gpus.iter().map(|g| g.name.clone()).collect()), gpu_here),
        ("driver", there.driver.clone(), driver.as_ref().map(|d| d.version.clone())),
        ("CPU", there.cpu_model.clone(), here.cpu_model),
        ("kernel", there.kernel.clone(), here.kernel),
        ("os", there.os.clone(), here.os),
        ("collo", Some(format!("{}, {} build", there.collo, there.build)), Some(format!("{}, {} build", here.collo, here.build))),
    ];
    let differ = facts.into_iter().filter(|(_, there, here)| there.is_some() && there != here);
    let said = |text: Option<String>| text.unwrap_or_else(|| "none".into());
    differ.map(|(what, there, here)| format!("{what}: {} there, {} here", said(there), said(here))).collect()
}
