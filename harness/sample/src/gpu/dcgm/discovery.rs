//! Parses `dcgmi discovery -c`: which entity of DCGM's is which GPU instance or compute instance. A GPU is listed only if it has
//! some (DcgmCacheManager.cpp, `PopulateMigHierarchy`; dcgmi/Query.cpp, `FormatMigHierarchy`).
//!
//! DCGM numbers its entities itself, across all GPUs and in its own order; NVML's numbers are in the first column of the table.

use super::dmon::whole;

/// The entities of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hierarchy {
    pub gpus: Vec<DcgmGpu>,
    pub instances: Vec<DcgmInstance>,
    pub compute_instances: Vec<DcgmComputeInstance>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DcgmGpu {
    pub index: u32,
    pub uuid: String,
    pub entity: u32,
}

/// A GPU instance, by the index of its GPU and NVML's id on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DcgmInstance {
    pub gpu: u32,
    pub id: u32,
    pub entity: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DcgmComputeInstance {
    pub gpu: u32,
    pub gpu_instance: u32,
    pub id: u32,
    pub entity: u32,
}

/// One line of the table.
enum DiscoveryLine {
    Gpu(DcgmGpu),
    Instance(DcgmInstance),
    ComputeInstance(DcgmComputeInstance),
}

impl Hierarchy {
    /// Read the whole table; lines that are not understood are left out, as is a number in two lines.
    pub fn parse(text: &str) -> Hierarchy {
        let mut all = Hierarchy::default();
        for line in text.lines() {
            match parse_line(line) {
                Some(DiscoveryLine::Gpu(gpu)) => all.gpus.push(gpu),
                Some(DiscoveryLine::Instance(instance)) => all.instances.push(instance),
                Some(DiscoveryLine::ComputeInstance(instance)) => all.compute_instances.push(instance),
                None => {}
            }
        }
        all.gpus = alone(all.gpus, |a, b| a.index == b.index || a.uuid == b.uuid || a.entity == b.entity);
        all.instances = alone(all.instances, |a, b| (a.gpu, a.id) == (b.gpu, b.id) || a.entity == b.entity);
        let same = |a: &DcgmComputeInstance, b: &DcgmComputeInstance| {
            (a.gpu, a.gpu_instance, a.id) == (b.gpu, b.gpu_instance, b.id) || a.entity == b.entity
        };
        all.compute_instances = alone(all.compute_instances, same);
        all
    }

    /// The entity of a GPU.
    pub fn gpu(&self, uuid: &str) -> Option<&DcgmGpu> {
        self.gpus.iter().find(|g| g.uuid == uuid)
    }

    /// The entity of a GPU instance of a GPU.
    pub fn instance(&self, uuid: &str, id: u32) -> Option<u32> {
        let gpu = self.gpu(uuid)?.index;
        self.instances.iter().find(|i| (i.gpu, i.id) == (gpu, id)).map(|i| i.entity)
    }

    /// The entity of a compute instance in a GPU instance of a GPU.
    pub fn compute_instance(&self, uuid: &str, gpu_instance: u32, id: u32) -> Option<u32> {
        let gpu = self.gpu(uuid)?.index;
        let wanted = |c: &&DcgmComputeInstance| (c.gpu, c.gpu_instance, c.id) == (gpu, gpu_instance, id);
        self.compute_instances.iter().find(wanted).map(|c| c.entity)
    }
}

/// Those that occur only once.
fn alone<T: Clone>(all: Vec<T>, same: impl Fn(&T, &T) -> bool) -> Vec<T> {
    let claims = |x: &T| all.iter().filter(|y| same(x, y)).count();
    all.iter().filter(|x| claims(x) == 1).cloned().collect()
}

/// `| -> I 0/1   | GPU Instance (EntityID: 0)   |`
fn parse_line(line: &str) -> Option<DiscoveryLine> {
    let mut cells = line.trim().strip_prefix('|')?.split('|');
    let (name, about) = (cells.next()?.trim(), cells.next()?.trim());
    let entity = whole(about.split_once("(EntityID:")?.1.split_once(')')?.0.trim())?;
    let name = name.strip_prefix("->").unwrap_or(name).trim_start();
    let (kind, path) = name.split_once(' ')?;
    let path: Vec<u32> = path.trim().split('/').map(whole).collect::<Option<_>>()?;
    match (kind, &path[..]) {
        ("GPU", &[index]) => {
            let uuid = about.split_ascii_whitespace().find(|w| w.starts_with("GPU-"))?.to_string();
            Some(DiscoveryLine::Gpu(DcgmGpu { index, uuid, entity }))
        }
        ("I", &[gpu, id]) => Some(DiscoveryLine::Instance(DcgmInstance { gpu, id, entity })),
        ("CI", &[gpu, gpu_instance, id]) => {
            Some(DiscoveryLine::ComputeInstance(DcgmComputeInstance { gpu, gpu_instance, id, entity }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// By the rules of dcgmi/Query.cpp and DcgmiOutput.cpp, as in dcgmi/tests/OutputTests.cpp; GPU 2 is not partitioned and so
    /// missing.
    const TABLE: &str = "\
+-------------------+--------------------------------------------------------------------+
| Instance Hierarchy                                                                     |
+===================+====================================================================+
| GPU 0             | GPU GPU-5a1c (EntityID: 0)                                         |
| -> I 0/2          | GPU Instance (EntityID: 1)                                         |
|    -> CI 0/2/0    | Compute Instance (EntityID: 0)                                     |
| -> I 0/1          | GPU Instance (EntityID: 0)                                         |
|    -> CI 0/1/0    | Compute Instance (EntityID: 1)                                     |
|    -> CI 0/1/1    | Compute Instance (EntityID: 2)                                     |
+-------------------+--------------------------------------------------------------------+
| GPU 1             | GPU GPU-77fe (EntityID: 1)                                         |
| -> I 1/1          | GPU Instance (EntityID: 7)                                         |
+-------------------+--------------------------------------------------------------------+
";

    #[test]
    fn an_instance_is_known_by_its_card_and_nvmls_number_not_by_the_order_of_the_table() {
        let all = Hierarchy::parse(TABLE);
        assert_eq!(all.gpu("GPU-77fe"), Some(&DcgmGpu { index: 1, uuid: "GPU-77fe".into(), entity: 1 }));
        assert_eq!(
            [all.instance("GPU-5a1c", 1), all.instance("GPU-5a1c", 2), all.instance("GPU-77fe", 1)].map(Option::unwrap),
            [0, 1, 7]
        );
        assert_eq!((all.compute_instance("GPU-5a1c", 1, 1), all.compute_instance("GPU-5a1c", 1, 2)), (Some(2), None));
        assert_eq!((all.instance("GPU-5a1c", 3), all.instance("GPU-0000", 1)), (None, None));
    }

    #[test]
    fn a_machine_without_instances_has_an_empty_table() {
        let lines: Vec<&str> = TABLE.lines().collect();
        let empty = [&lines[..3], &lines[lines.len() - 1..]].concat().join("\n");
        assert_eq!(Hierarchy::parse(&empty), Hierarchy::default());
    }

    #[test]
    fn a_number_that_two_lines_claim_is_nobodys() {
        let twice = format!("{TABLE}| -> I 0/1           | GPU Instance (EntityID: 4)          |\n");
        assert_eq!(Hierarchy::parse(&twice).instance("GPU-5a1c", 1), None);
        assert_eq!(Hierarchy::parse(&twice).instance("GPU-5a1c", 2), Some(1));
    }

    #[test]
    fn lines_that_are_cut_short_say_nothing() {
        for cut in 0..TABLE.len() {
            let part = Hierarchy::parse(&TABLE[..cut]);
            let whole = Hierarchy::parse(TABLE);
            assert!(part.instances.iter().all(|i| whole.instances.contains(i)), "{part:?}");
            assert!(part.compute_instances.iter().all(|i| whole.compute_instances.contains(i)), "{part:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_read_is_read_without_a_panic(text in "[ |>\\-0-9/()A-Za-z:\n]{0,300}") {
            Hierarchy::parse(&text);
        }

        #[test]
        fn a_table_is_read_back_as_it_was_written(
            rows in proptest::collection::btree_map((0u32..8, 0u32..14), Just(()), 1..20), seed in 0u32..50,
        ) {
            let entity = |i: usize| (i as u32 * 7 + seed) % 97;
            let mut text = String::new();
            for gpu in 0..8 {
                text += &format!("| {:<19}| {:<69}|\n", format!("GPU {gpu}"), format!("GPU GPU-{gpu:04} (EntityID: {gpu})"));
            }
            for (i, (gpu, id)) in rows.keys().enumerate() {
                text += &format!("| {:<19}| {:<69}|\n", format!("-> I {gpu}/{id}"), format!("GPU Instance (EntityID: {})", entity(i)));
            }
            let all = Hierarchy::parse(&text);
            for (i, (gpu, id)) in rows.keys().enumerate() {
                prop_assert_eq!(all.instance(&format!("GPU-{gpu:04}"), *id), Some(entity(i)));
            }
        }
    }
}
