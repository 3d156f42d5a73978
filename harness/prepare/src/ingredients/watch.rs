//! Watches the files of a campaign's workloads from its first run to its last: an edit ends the campaign, output of its runs is
//! ignored.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use collo_store::Ingredient;

use super::digests::Digests;
use super::kind::IngredientKind;
use super::walk::{Places, WorkloadFile};
use crate::git;

/// `workloads/mine/logs`: a folder inside that of a workload has at least this many parts.
const OWN: usize = 3;

/// Changes to the files during a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct AfterRun {
    /// A source that has changed.
    pub changed: Option<String>,
    /// Files written; a folder ends in `/`.
    pub written: Vec<String>,
}

/// The files that numbers depend on, by name, in their current state.
#[derive(Debug, Default)]
pub struct IngredientWatch {
    places: Places,
    files: BTreeMap<String, (WorkloadFile, String)>,
    digests: Digests,
}

impl IngredientWatch {
    /// Read all of them.
    pub fn over(places: Places) -> std::io::Result<IngredientWatch> {
        let mut watch = IngredientWatch { places, ..IngredientWatch::default() };
        for (name, file) in watch.places.walk()? {
            if let Some(digest) = watch.digests.of(&file.path) {
                watch.files.insert(name, (file, digest));
            }
        }
        Ok(watch)
    }

    /// Each with its digest.
    pub fn digests(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(name, (_, sha256))| (name.as_str(), sha256.as_str()))
    }

    /// Each as an ingredient, with the commit that last touched it.
    pub fn ingredients(&self) -> impl Iterator<Item = (String, Ingredient)> {
        let version = |file: &WorkloadFile| {
            let version = file.tracked.then(|| git::version(&self.places.root, Some(&file.path))).flatten()?;
            Some(match version.strip_suffix("-dirty") {
                Some(commit) => format!("git {commit} (dirty)"),
                None => format!("git {version}"),
            })
        };
        self.files
            .iter()
            .map(move |(name, (file, sha256))| (name.clone(), Ingredient { sha256: sha256.clone(), version: version(file) }))
    }

    /// Files added since a campaign began that are not its own: code beside its code is, whenever it was added.
    pub fn new_since(&self, before: &BTreeMap<String, Ingredient>) -> BTreeSet<String> {
        let folders: BTreeSet<&Path> = before.keys().filter_map(|name| Path::new(name).parent()).collect();
        let is_code = |name: &str, file: &WorkloadFile| {
            file.tracked
                || (file.kind == IngredientKind::Program && Path::new(name).parent().is_some_and(|p| folders.contains(p)))
        };
        let new = |(name, (file, _)): &(&String, &(WorkloadFile, String))| !before.contains_key(*name) && !is_code(name, file);
        self.files.iter().filter(new).map(|(name, _)| name.clone()).collect()
    }

    /// Remove some that are not ingredients.
    pub fn forget(&mut self, names: &BTreeSet<String>) {
        self.files.retain(|name, _| !names.contains(name));
    }

    /// Whether runs of this project write a file of this name.
    pub fn is_output(&self, name: &str) -> bool {
        !self.files.contains_key(name) && self.places.is_output(name)
    }

    /// The first file that changed or disappeared; none should have. While runs are going on elsewhere, what they may write is theirs.
    pub fn changed(&mut self, beside_runs: bool) -> Option<String> {
        let digests = &mut self.digests;
        let mut differs = |(file, digest): &(WorkloadFile, String)| {
            !(beside_runs && file.may_be_written()) && digests.of(&file.path).as_ref() != Some(digest)
        };
        self.files.iter().find(|(_, watched)| differs(watched)).map(|(name, _)| name.clone())
    }

    /// After a run: which source changed, and which files were written. Those are not ingredients from now on.
    pub fn after_run(&mut self) -> AfterRun {
        let mut after = AfterRun::default();
        let mut written = BTreeSet::new();
        for (name, (file, digest)) in &self.files {
            if self.digests.of(&file.path).as_ref() == Some(digest) {
                continue;
            }
            match file.may_be_written() {
                true => drop(written.insert(name.clone())),
                false => after.changed = after.changed.or(Some(name.clone())),
            }
        }
        self.files.retain(|name, _| !written.contains(name));
        let holds_files = |folder: &Path| self.files.keys().any(|name| Path::new(name).starts_with(folder));
        for (name, file) in self.places.walk().unwrap_or_default() {
            if self.files.contains_key(&name) || written.contains(&name) {
                continue;
            }
            let path = Path::new(&name);
            // New code beside the code is somebody's work; the next collo that opens the campaign tells them.
            if file.tracked || (file.kind == IngredientKind::Program && path.parent().is_some_and(holds_files)) {
                continue;
            }
            // The largest folder that is new as a whole.
            let folders: Vec<&Path> = path.ancestors().skip(1).filter(|f| f.components().count() >= OWN).collect();
            let whole = folders.into_iter().rev().find(|folder| !holds_files(folder));
            written.insert(whole.map_or(name.clone(), |folder| format!("{}/", folder.display())));
        }
        self.places.outputs.extend(written.iter().cloned());
        after.written = written.into_iter().collect();
        after
    }

    /// The hint if a script writes a file that looks like a source.
    pub fn hint(&self, name: &str) -> Option<String> {
        let (file, _) = self.files.get(name)?;
        let folder = self.places.folders.iter().find(|folder| file.path.starts_with(folder))?;
        let below = file.path.strip_prefix(folder).ok()?.display();
        let said = format!("if the script itself writes it: `outputs = [\"{below}\"]` in its `workload.toml`");
        (!file.tracked && file.path.file_name().is_some_and(|name| name != "workload.toml")).then_some(said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Net(tempfile::TempDir);

    impl Net {
        fn new() -> Net {
            let net = Net(tempfile::tempdir().unwrap());
            net.write("train.py", "a");
            net
        }

        fn write(&self, name: &str, text: &str) {
            let place = self.0.path().join("workloads/net").join(name);
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            std::fs::write(place, text).unwrap();
        }

        fn watch(&self) -> IngredientWatch {
            let root = self.0.path().to_path_buf();
            IngredientWatch::over(Places { folders: [root.join("workloads/net")].into(), root, ..Places::default() }).unwrap()
        }
    }

    fn nothing() -> AfterRun {
        AfterRun::default()
    }

    #[test]
    fn a_file_that_was_edited_or_removed_has_changed() {
        let net = Net::new();
        net.write("conf.json", "1");
        let mut watch = net.watch();
        assert_eq!((watch.changed(false), watch.after_run()), (None, nothing()));
        net.write("conf.json", "2");
        assert_eq!(watch.changed(false).as_deref(), Some("workloads/net/conf.json"));
        assert_eq!(watch.after_run().changed.as_deref(), Some("workloads/net/conf.json"));
        assert!(watch.hint("workloads/net/conf.json").unwrap().contains("`outputs = [\"conf.json\"]`"));
        net.write("conf.json", "1");
        assert_eq!(watch.changed(false), None);
        std::fs::remove_file(net.0.path().join("workloads/net/train.py")).unwrap();
        assert_eq!(watch.changed(false).as_deref(), Some("workloads/net/train.py"));
    }

    #[test]
    fn a_file_beside_the_workloads_counts_by_its_content() {
        let net = Net::new();
        net.write("../../traces/six.toml", "arrivals_s = [0]");
        let root = net.0.path().to_path_buf();
        let watch = || {
            let mut places = Places { folders: [root.join("workloads/net")].into(), root: root.clone(), ..Places::default() };
            places.add_file(root.join("traces/six.toml"));
            IngredientWatch::over(places).unwrap()
        };
        let (before, mut watched): (BTreeMap<_, _>, _) = (watch().ingredients().collect(), watch());
        net.write("../../traces/six.toml", "arrivals_s = [1]");
        assert_eq!(watched.changed(true).as_deref(), Some("traces/six.toml"), "no run writes it");
        let changes = crate::ingredients::changes(&before, &watch().ingredients().collect());
        assert_eq!(changes.iter().map(|change| change.name.as_str()).collect::<Vec<_>>(), ["traces/six.toml"]);
    }

    #[test]
    fn what_a_run_writes_is_told_once_and_left_out() {
        let net = Net::new();
        net.write("weights.pt", "1");
        let mut watch = net.watch();
        assert_eq!(watch.ingredients().count(), 2);
        net.write("weights.pt", "2");
        net.write("checkpoint.pt", "1");
        net.write("logs/version_0/hparams.yaml", "1");
        net.write("logs/code/train.py", "1");
        let written = ["checkpoint.pt", "logs/", "weights.pt"].map(|n| format!("workloads/net/{n}")).to_vec();
        assert_eq!(watch.after_run(), AfterRun { changed: None, written });
        net.write("checkpoint.pt", "2");
        net.write("logs/version_1/hparams.yaml", "1");
        assert_eq!((watch.changed(false), watch.after_run()), (None, nothing()));
    }

    #[test]
    fn between_runs_weights_are_nobodys_to_change() {
        let net = Net::new();
        net.write("weights.pt", "1");
        let mut watch = net.watch();
        net.write("weights.pt", "2");
        assert_eq!(watch.changed(false).as_deref(), Some("workloads/net/weights.pt"));
        assert_eq!(watch.changed(true), None, "a run on another card writes them");
        net.write("train.py", "b");
        assert_eq!(watch.changed(true).as_deref(), Some("workloads/net/train.py"), "a source is nobody's to change");
    }

    #[test]
    fn a_campaign_that_is_continued_has_the_files_that_it_began_with_and_new_code() {
        let net = Net::new();
        let before: BTreeMap<_, _> = net.watch().ingredients().collect();
        net.write("checkpoint.pt", "1");
        net.write("out/config.json", "1");
        net.write("out/code/train.py", "1");
        net.write("helper.py", "1");
        let mut watch = net.watch();
        watch.forget(&watch.new_since(&before));
        let names: Vec<String> = watch.ingredients().map(|(name, _)| name).collect();
        assert_eq!(names, ["workloads/net/helper.py", "workloads/net/train.py"]);
    }
}
