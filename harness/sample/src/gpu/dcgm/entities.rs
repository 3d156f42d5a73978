//! Which entities of DCGM's to read, and why others cannot be.
//!
//! In: the wanted metrics of each GPU. Out: targets by level, and what is lost. GPUs are looked up in `discovery -l`, which lists
//! all of them; `discovery -c` lists instances, and only GPUs that have some (DcgmCacheManager.cpp, `PopulateMigHierarchy`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::gpm_metrics::Level;
use super::super::handle::Opened;
use super::command::DcgmCommand;
use super::discovery::Hierarchy;
use super::inventory::Inventory;
use super::stream::DcgmTarget;
use super::version::Version;
use super::{Scopes, UnreadableScope};
use collo_device::nvml::instances::Raw;

/// DCGM detects new instances seconds after their creation.
const NOTICED: Duration = Duration::from_secs(8);
const ASKED_EVERY: Duration = Duration::from_millis(500);

/// The entities to find.
pub struct Entities<'a> {
    pub boards: &'a [Arc<Opened>],
    pub wanted: &'a Scopes,
    pub version: Option<Version>,
}

/// The entities to read, by level, and what cannot be read.
#[derive(Default)]
pub struct FoundEntities {
    pub targets: BTreeMap<Level, Vec<DcgmTarget>>,
    pub lost: BTreeMap<Arc<str>, UnreadableScope>,
}

impl FoundEntities {
    /// Nothing, all for one reason.
    pub fn nothing(wanted: &Scopes, why: &str) -> FoundEntities {
        let lost = |(scope, metrics): (&Arc<str>, &Vec<_>)| {
            (scope.clone(), UnreadableScope { metrics: metrics.clone(), why: why.into() })
        };
        FoundEntities { targets: BTreeMap::new(), lost: wanted.iter().map(lost).collect() }
    }
}

impl Entities<'_> {
    /// Query DCGM. Waits for instances, within a limit, and only if some are wanted.
    pub fn find(&self, command: &DcgmCommand<'_>) -> Result<FoundEntities, String> {
        let listed = command.ask(&["discovery", "-l"])?;
        let inventory = Inventory::parse(&listed.out);
        // It fails after a complete table of cards where the module of switches may not be loaded (status 223).
        let has_all = self.boards.iter().all(|b| inventory.card(&b.uuid).is_some());
        if let (Some(why), false) = (listed.failed, has_all) {
            return Err(why);
        }
        let hierarchy = if self.wants_hierarchy() { self.hierarchy(command, &inventory)? } else { Hierarchy::default() };
        Ok(self.sorted(&inventory, &hierarchy))
    }

    fn silences_whole_cards(&self) -> bool {
        self.version.is_some_and(Version::silences_whole_cards)
    }

    fn wants_hierarchy(&self) -> bool {
        self.silences_whole_cards() || self.boards.iter().any(|b| self.wants_parts(b))
    }

    fn wants_parts(&self, opened: &Opened) -> bool {
        let scopes = opened.parts.iter().flat_map(|p| std::iter::once(&p.scope).chain(p.compute_instances.iter().map(|c| &c.1)));
        scopes.into_iter().any(|scope| self.wanted.contains_key(scope))
    }

    /// The instances, as soon as all of these GPUs are there: not only those to be read, because DCGM numbers the instances of a GPU by their
    /// place in its list, and again with each that it detects (DcgmCacheManager.cpp, `InitializeGpuInstances`: the number of the GPU times its
    /// slices, plus the instances before). A number that was read before the last of them was detected may become that of another.
    fn hierarchy(&self, command: &DcgmCommand<'_>, inventory: &Inventory) -> Result<Hierarchy, String> {
        let deadline = Instant::now() + NOTICED;
        loop {
            let answer = command.ask(&["discovery", "-c"])?;
            if let Some(why) = answer.failed {
                return Err(why);
            }
            let hierarchy = Hierarchy::parse(&answer.out);
            let is_of_part = |level: &Level| *level != Level::Gpu;
            let lost =
                self.scopes(inventory, &hierarchy).into_iter().any(|(level, .., entity)| is_of_part(&level) && entity.is_none());
            let is_complete = !lost && self.boards.iter().all(|board| !self.wants_parts(board) || is_complete(board, &hierarchy));
            if is_complete || Instant::now() >= deadline {
                return Ok(hierarchy);
            }
            let next = Instant::now() + ASKED_EVERY;
            while Instant::now() < next {
                if (command.stop)() {
                    return Ok(hierarchy);
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    /// Every wanted scope, with its GPU and its entity.
    fn scopes<'b>(&'b self, inventory: &Inventory, hierarchy: &Hierarchy) -> Vec<(Level, &'b Opened, &'b Arc<str>, Option<u32>)> {
        let mut scopes: Vec<(Level, &Opened, &Arc<str>, Option<u32>)> = Vec::new();
        for opened in self.boards {
            scopes.push((Level::Gpu, opened, &opened.scope, inventory.card(&opened.uuid)));
            let has_numbers = is_complete(opened, hierarchy);
            for part in &opened.parts {
                let entity = hierarchy.instance(&opened.uuid, part.gpu_instance).filter(|_| has_numbers);
                scopes.push((Level::GpuInstance, opened, &part.scope, entity));
                for (id, scope) in &part.compute_instances {
                    let entity = hierarchy.compute_instance(&opened.uuid, part.gpu_instance, *id).filter(|_| has_numbers);
                    scopes.push((Level::ComputeInstance, opened, scope, entity));
                }
            }
        }
        scopes.retain(|(_, _, scope, _)| self.wanted.contains_key(*scope));
        scopes
    }

    fn sorted(&self, inventory: &Inventory, hierarchy: &Hierarchy) -> FoundEntities {
        let mut found = FoundEntities::default();
        for (level, opened, scope, entity) in self.scopes(inventory, hierarchy) {
            let metrics = self.wanted[scope].clone();
            let silent = if level == Level::Gpu { self.silent(opened, hierarchy) } else { None };
            match (entity, silent) {
                (Some(entity), None) => found.targets.entry(level).or_default().push(DcgmTarget {
                    entity,
                    scope: scope.clone(),
                    metrics,
                    pcie: opened.pcie.clone(),
                    tells: opened.dcgm_tells.clone(),
                }),
                (_, silent) => {
                    let why = silent.unwrap_or_else(|| missing(level));
                    found.lost.insert(scope.clone(), UnreadableScope { metrics, why });
                }
            }
        }
        found
    }

    /// Why an unpartitioned GPU has no row, in versions that omit such GPUs as soon as another one is partitioned.
    fn silent(&self, opened: &Opened, hierarchy: &Hierarchy) -> Option<String> {
        let version = self.version.filter(|_| self.silences_whole_cards() && opened.parts.is_empty())?;
        let other = hierarchy.instances.first()?.gpu;
        Some(format!(
            "`dcgmi` {version} shows no unpartitioned GPU while another is partitioned, and GPU {other} is: use DCGM 4, or destroy the instances there"
        ))
    }
}

/// Whether DCGM lists every GPU instance of a GPU that its driver lists; true where the driver lists none.
fn is_complete(opened: &Opened, hierarchy: &Hierarchy) -> bool {
    let driver = opened.card.ask(|device| Raw::new(opened.card.nvml(), device).mig_devices()).unwrap_or_default();
    driver.iter().all(|device| hierarchy.instance(&opened.uuid, device.gpu_instance).is_some())
}

/// Why an entity is missing.
fn missing(level: Level) -> String {
    match level {
        Level::Gpu => "`dcgmi discovery -l` does not list the GPU".into(),
        // Some drivers do not tell DCGM of such changes (DCGM #91).
        Level::GpuInstance | Level::ComputeInstance => {
            "the host engine has not detected all instances of the GPU: `dcgmi discovery -c` lacks one; \
             `sudo systemctl restart nvidia-dcgm`"
                .into()
        }
    }
}
