//! What the numbers of a campaign depend on: its files, its experiment, the machine.

use collo_store::{Campaign, CellRecord, JournalEntry, Runs, sha256_text};
use collo_text::Diagnostic;

use super::CampaignSpec;
use collo_plan::experiment::{INCLUDE, SET, part};
use collo_plan::facts::cpu_model;
use collo_plan::select::{Expression, Selection};
use collo_plan::traces;
use collo_prepare::data::Prepared;
use collo_prepare::ingredients::{self, ABSENT, Change, IngredientWatch, Ingredients, Places};

/// The name under which the experiment's file is an ingredient.
pub(super) const EXPERIMENT: &str = "experiment";
/// The name under which a selection is an ingredient.
pub(super) const SELECTION: &str = "--where";

/// The name under which the cards of a campaign that has several are an ingredient.
pub const CARDS: &str = "cards";
/// The name under which the model of the processor is one, of a campaign on the CPU.
const PROCESSOR: &str = "processor";

/// Whether a campaign's own device would be another one. What an earlier version did not record has not changed.
fn is_of_device(change: &Change) -> bool {
    [CARDS, PROCESSOR].contains(&change.name.as_str()) && change.before != ABSENT
}

/// The GPUs that a campaign began on, which alone it is continued on.
pub fn own_gpus(campaign: &Campaign) -> String {
    let uuids: Vec<&str> = campaign.machine.gpus.iter().map(|gpu| gpu.uuid.as_str()).collect();
    match &uuids[..] {
        [one] => format!("its own GPU, {one}"),
        several => format!("its own GPUs, {}", several.join(" and ")),
    }
}

/// The selection that a campaign was planned with: part of its identity.
pub fn selection(campaign: &Campaign) -> Result<Option<Selection>, Diagnostic> {
    let text = campaign.ingredients.get(SELECTION).and_then(|i| i.version.as_deref());
    text.map(|text| Expression::parse(SELECTION, text.trim_matches('`')).map(Selection::Where)).transpose()
}

/// What was set over the experiment of a campaign, as it would be typed again: part of its identity, too.
pub fn set(campaign: &Campaign) -> Vec<String> {
    let of_set = campaign.ingredients.iter().filter(|(name, _)| name.starts_with(&format!("{SET} ")));
    of_set.filter_map(|(_, i)| i.version.as_deref()).map(|text| text.trim_matches('`').to_string()).collect()
}

/// The files of a campaign's experiment as they were measured, by their paths from its folder; its own has none. `Err` names one
/// that the campaign's record does not contain.
pub fn files(campaign: &Campaign) -> Result<Vec<(Option<&str>, &str)>, &str> {
    let mut files = Vec::new();
    for (name, ingredient) in &campaign.ingredients {
        let included = name.strip_prefix(INCLUDE);
        if included.is_none() && name != EXPERIMENT {
            continue;
        }
        let text = part(&campaign.source_toml, included, |text| sha256_text(text) == ingredient.sha256);
        files.push((included, text.ok_or(name.as_str())?));
    }
    Ok(files)
}

impl CampaignSpec<'_> {
    /// What changed since a campaign began. First what it is never continued in spite of, because its runs would be stored as those of
    /// another device, or of members that sit otherwise, as after a layout was edited; then everything else.
    pub(super) fn changes_since(&self, campaign: &Campaign, ingredients: &Ingredients) -> (Vec<Change>, Vec<Change>) {
        let (mut fixed, mut others): (Vec<Change>, Vec<Change>) =
            ingredients.changes_since(&campaign.ingredients).into_iter().partition(is_of_device);
        let planned = self.plan.by_slug();
        let seated = |cell: &CellRecord| {
            let (before, after) = (cell.slots.clone()?, planned.get(&*cell.slug)?.record.slots.clone()?);
            (before != after).then(|| Change { name: format!("`{}`", cell.cell), before, after })
        };
        fixed.extend(campaign.plan.cells.iter().filter_map(seated));
        // On a CPU they are a part of the device; on a GPU the loaders of data share them.
        let (before, after) = (campaign.machine.cpu_cores, self.facts.cores.len() as u32);
        if !self.facts.gpus.is_empty() && before != after {
            others.push(Change { name: "cores".into(), before: before.to_string(), after: after.to_string() });
        }
        (fixed, others)
    }

    /// All of them, in their current state.
    pub(super) fn ingredients(&self, runs: &Runs) -> Result<Ingredients, collo_store::Error> {
        let mut found = Ingredients::of(IngredientWatch::over(self.places(runs)?)?);
        let mut add = |name: &str, text: &str, version: Option<String>| {
            found.all.insert(name.to_string(), ingredients::text(text, version));
        };
        for (name, text, version) in self.commands.experiment.layers.ingredients() {
            add(&name, text, version);
        }
        if let Some(selection) = self.selection {
            let text = selection.text();
            add(SELECTION, &text, Some(format!("`{text}`")));
        }
        for (name, version) in self.python {
            add(name, version, Some(version.clone()));
        }
        let own = env!("CARGO_PKG_VERSION");
        add("collo", own, Some(own.into()));
        let kernel = nix::sys::utsname::uname().map(|u| u.release().to_string_lossy().into_owned()).unwrap_or_default();
        add("kernel", &kernel, Some(kernel.clone()));
        let device = self.facts.record().text();
        add("device", &device, Some(device.clone()));
        if let Some(model) = cpu_model().filter(|_| self.facts.gpus.is_empty()) {
            add(PROCESSOR, &model, Some(model.clone()));
        }
        if !self.facts.gpus.is_empty() {
            // Which cards: no two are equally fast, and of several the plan divides its runs among them.
            let cards = self.facts.gpus.iter().filter_map(|gpu| Some(gpu.at.as_ref()?.uuid.as_str()));
            add(CARDS, &cards.collect::<Vec<_>>().join(" "), Some(self.facts.labels()));
        }
        if let Some(driver) = &self.facts.driver {
            add("driver", driver, Some(driver.clone()));
        }
        found.all.extend(self.data.iter().map(Prepared::ingredient));
        Ok(found)
    }

    /// The files that numbers depend on.
    fn places(&self, runs: &Runs) -> Result<Places, collo_store::Error> {
        let mut places = Places::of(self.commands.project, self.plan.members().map(|member| member.workload().as_ref()))?;
        if let Some(trace) = &self.commands.experiment.trace {
            places.add_file(traces::file(&self.commands.project.traces(), &trace.name));
        }
        // Also those of refused cells: without its file the experiment could not be read.
        let observed = self.commands.experiment.axes.observed();
        for tool in observed.iter().flatten().filter_map(|by| by.tool()) {
            places.add_file(tool.file.clone());
            tool.packages.iter().for_each(|pins| places.add_file(pins.clone()));
        }
        // What runs wrote once they write again.
        for campaign in runs.campaigns()?.0 {
            for entry in campaign.history().unwrap_or_default() {
                if let JournalEntry::Wrote { files, .. } = entry {
                    places.outputs.extend(files);
                }
            }
        }
        Ok(places)
    }
}
