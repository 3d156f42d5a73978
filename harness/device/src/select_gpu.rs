//! GPU selection: `--gpu 0`, a UUID, a PCI id, several of them, or `auto`.

use crate::company;
use collo_text::{Diagnostic, quoted};

use collo_plan::facts::{Driver, Gpu, SilentGpu};

/// GPUs as a person names them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum GpuSelector {
    /// The first GPU that is suitable for compute and free.
    #[default]
    Auto,
    /// So many of these, all alike; of all if fewer are free.
    Several(usize),
    Named(Vec<String>),
}

impl GpuSelector {
    /// `auto`, `0`, `0,1`, `GPU-5f3…`, `00000000:36:00.0`.
    pub fn parse(text: &str) -> GpuSelector {
        match text.trim() {
            "auto" | "" => GpuSelector::Auto,
            text => GpuSelector::Named(text.split(',').map(|part| part.trim().to_string()).collect()),
        }
    }

    /// A single name that can only be that of a GPU model: neither an index, nor a UUID, nor a PCI address.
    pub fn is_model(&self) -> bool {
        let GpuSelector::Named(names) = self else { return false };
        let [name] = &names[..] else { return false };
        let lower = name.to_lowercase();
        let of_driver = lower.starts_with("gpu-") || lower.starts_with("mig-") || name.contains(':');
        name.starts_with(|c: char| c.is_ascii_alphabetic()) && !of_driver
    }

    /// The selected GPUs of a driver, in that order; all must be alike.
    pub fn of(&self, driver: &Driver) -> Result<Vec<Gpu>, Diagnostic> {
        let names = match self {
            GpuSelector::Auto => return automatic(driver).map(|gpu| vec![gpu]),
            GpuSelector::Several(count) => return several(driver, *count),
            GpuSelector::Named(names) => names,
        };
        let mut chosen: Vec<Gpu> = Vec::new();
        for name in names {
            let found = driver.gpus.iter().find(|gpu| gpu.is_called(name)).ok_or_else(|| unknown(name, driver))?;
            if chosen.iter().any(|c| c.at == found.at) {
                return Err(Diagnostic::new(format!("{} is named twice", found.label())).hint("leave one out"));
            }
            if let Some(first) = chosen.first().filter(|first| !first.equals(found)) {
                let what = format!("{} is {}, but {} is {}", first.label(), first.name, found.label(), found.name);
                return Err(Diagnostic::new(what)
                    .hint("a campaign needs identical GPUs; run one for each model, and `collo compare` the two"));
            }
            chosen.push(found.clone());
        }
        Ok(chosen)
    }
}

fn automatic(driver: &Driver) -> Result<Gpu, Diagnostic> {
    let able: Vec<&Gpu> = driver.gpus.iter().filter(|gpu| gpu.computes()).collect();
    // What ran last still shows as load for a moment: without a second look the next run, or the rest of a campaign, would move to another card.
    let left = |gpu: &Gpu| gpu.at.as_ref().is_some_and(|at| company::settled(&at.uuid).is_nobody());
    let free = able.iter().find(|gpu| gpu.company.is_nobody() || (gpu.company.is_only_inferred() && left(gpu)));
    match free.or(able.first()) {
        Some(gpu) => Ok((*gpu).clone()),
        None if !driver.silent.is_empty() => Err(does_not_answer(driver)),
        None => Err(Diagnostic::new(format!("no GPU here is suitable for compute: {}", list(driver)))
            .hint("select one explicitly, as in `--gpu 0`")
            .of_machine()),
    }
}

/// The automatic choice, then others like it, free ones first, in the order of their indices.
fn several(driver: &Driver, count: usize) -> Result<Vec<Gpu>, Diagnostic> {
    let first = automatic(driver)?;
    let like_it = |gpu: &&Gpu| gpu.computes() && gpu.at != first.at && gpu.equals(&first);
    let (free, taken): (Vec<&Gpu>, Vec<&Gpu>) = driver.gpus.iter().filter(like_it).partition(|gpu| gpu.company.is_nobody());
    let others: Vec<Gpu> = free.into_iter().chain(taken).take(count.saturating_sub(1)).cloned().collect();
    let mut chosen: Vec<Gpu> = std::iter::once(first).chain(others).collect();
    chosen.sort_by_key(|gpu| gpu.at.as_ref().map(|at| at.index));
    Ok(chosen)
}

fn does_not_answer(driver: &Driver) -> Diagnostic {
    let all: Vec<String> = driver.silent.iter().map(SilentGpu::text).collect();
    Diagnostic::new(all.join("; ")).hint(driver.hint_of_silent()).of_machine()
}

fn unknown(name: &str, driver: &Driver) -> Diagnostic {
    if driver.silent.iter().any(|gpu| name.parse() == Ok(gpu.index)) {
        return does_not_answer(driver);
    }
    Diagnostic::new(format!("no GPU {} here", quoted(name))).hint(format!("GPUs here: {}", list(driver))).of_machine()
}

/// `0 (NVIDIA A100-SXM4-40GB), 1 (…)`
fn list(driver: &Driver) -> String {
    let parts: Vec<String> = driver.gpus.iter().filter_map(|g| Some(format!("{} ({})", g.at.as_ref()?.index, g.name))).collect();
    if parts.is_empty() { "none".into() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use collo_gpus::mig::GpuModel;
    use collo_plan::facts::Address;

    fn gpu(index: u32, name: &str, gb: u64) -> Gpu {
        let pci = format!("00000000:{:02X}:00.0", 0x36 + index);
        let at = Some(Address { index, uuid: format!("GPU-0000000{index}-aaaa"), pci });
        Gpu { at, name: name.into(), memory_bytes: Some(gb << 30), ..Gpu::planned(&GpuModel::bare("x", 7)) }
    }

    fn station() -> Driver {
        let gpus = vec![gpu(0, "T400", 4), gpu(1, "A100", 40), gpu(2, "A100", 40)];
        Driver { version: "580.95.05".into(), cuda: Some(13000), gpus, silent: Vec::new() }
    }

    fn indices(text: &str) -> Result<Vec<u32>, String> {
        let chosen = GpuSelector::parse(text).of(&station()).map_err(|e| e.to_string())?;
        Ok(chosen.iter().filter_map(|g| g.at.as_ref()).map(|at| at.index).collect())
    }

    #[test]
    fn auto_takes_the_first_card_made_for_computing_that_nobody_uses() {
        assert_eq!(indices("auto"), Ok(vec![1]));
        let mut driver = station();
        let holder = collo_plan::facts::Holder { pid: 1, name: None, user: None, memory_bytes: None };
        driver.gpus[1].company.listed = Some(vec![holder]);
        assert_eq!(GpuSelector::Auto.of(&driver).unwrap()[0].at.as_ref().unwrap().index, 2);
    }

    #[test]
    fn a_card_has_an_index_a_uuid_and_a_place_on_the_bus() {
        assert_eq!(indices("2,1"), Ok(vec![2, 1]));
        assert_eq!(indices("gpu-00000002"), Ok(vec![2]));
        assert_eq!(indices("37:00.0"), Ok(vec![1]));
        assert_eq!(indices("00000000:38:00.0"), Ok(vec![2]));
        assert_eq!(indices("0000:38:00.0"), Ok(vec![2]));
    }

    #[test]
    fn what_is_not_there_or_not_alike_is_refused() {
        insta::assert_snapshot!(indices("7").unwrap_err(), @r"
        error: no GPU `7` here
        hint: GPUs here: 0 (T400), 1 (A100), 2 (A100)
        ");
        assert!(indices("0,1").unwrap_err().contains("GPU 0 is T400, but GPU 1 is A100"));
        assert!(indices("1,1").unwrap_err().contains("GPU 1 is named twice"));
    }
}
