//! Whether a torch can compute on this machine's GPU: compares its build with the driver.

use std::collections::BTreeMap;

use super::{PinSet, PythonError};
use collo_device::driver;
use collo_device::driver::DriverTarget;

/// Whether the torch in these facts fits a driver. A driver runs builds for its own CUDA's major version, whatever the minor one,
/// or for an older. `cuda` is the driver's (`12020`), `version` its own if known. Without torch the check passes.
pub fn fits(facts: &BTreeMap<String, String>, version: Option<&str>, cuda: i32) -> Result<(), PythonError> {
    let Some(torch) = facts.get("torch") else { return Ok(()) };
    let built_for = facts.get("torch_cuda");
    let major = built_for.and_then(|v| v.split('.').next()?.parse::<i32>().ok());
    if major.is_some_and(|major| major <= cuda / 1000) {
        return Ok(());
    }
    Err(PythonError::Misfit(Box::new(Misfit {
        torch: torch.clone(),
        built_for: built_for.cloned(),
        first_driver: major.and_then(driver::first_with),
        driver: version.map(String::from),
        cuda,
        workload: None,
    })))
}

/// A torch and a driver that do not fit.
#[derive(Debug, PartialEq, Eq)]
pub struct Misfit {
    torch: String,
    /// The CUDA that it is built for; `None` for a build without.
    built_for: Option<String>,
    /// The first driver that has that CUDA, if known.
    first_driver: Option<u32>,
    driver: Option<String>,
    cuda: i32,
    /// The workload whose own environment it is in; `None` if `--python` named it.
    workload: Option<String>,
}

impl std::fmt::Display for Misfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Misfit { torch, built_for, driver, cuda, workload, .. } = self;
        let torch = workload.as_ref().map_or(torch.clone(), |name| format!("{torch} of workload `{name}`"));
        let driver = driver.as_ref().map_or("the driver".into(), |version| format!("driver {version}"));
        match built_for {
            Some(built_for) => write!(f, "torch {torch} is built for CUDA {built_for}, {driver} has CUDA {}", cuda / 1000),
            None => write!(f, "torch {torch} is built without CUDA, so its members would train on the CPU"),
        }
    }
}

impl Misfit {
    /// It is in the environment that this workload names as its own.
    pub fn of_workload(mut self, name: &str) -> Self {
        self.workload = Some(name.into());
        self
    }

    /// The hint: a pinned set if one fits, a driver if one is known to.
    pub fn hint(&self) -> String {
        let leave_out = match &self.workload {
            Some(name) => format!("leave out `environment` in `workloads/{name}/workload.toml`"),
            None => "leave out `--python`".into(),
        };
        let set = PinSet::for_driver(Some(DriverTarget { cuda: self.cuda, capability: None })).ok();
        let set = set.map(|set| format!("{leave_out} to take the pinned `{}` set", set.name()));
        let update = self.built_for.is_some().then(|| match self.first_driver {
            Some(first) => format!("update the driver to {first}"),
            None => "update the driver".into(),
        });
        let ways: Vec<String> = set.into_iter().chain(update).collect();
        if ways.is_empty() { format!("use a torch built for CUDA {}", self.cuda / 1000) } else { ways.join(", or ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn torch(version: &str, cuda: Option<&str>) -> BTreeMap<String, String> {
        let facts = [("torch", Some(version)), ("torch_cuda", cuda)];
        facts.into_iter().filter_map(|(name, value)| Some((name.to_string(), value?.to_string()))).collect()
    }

    #[test]
    fn a_torch_runs_on_a_driver_of_its_cuda_or_a_later_one() {
        for (built_for, driver) in [("13.0", 13_000), ("13.2", 13_000), ("12.8", 12_020), ("12.8", 13_010), ("11.8", 12_000)] {
            fits(&torch("2.15.0", Some(built_for)), None, driver).unwrap_or_else(|e| panic!("{built_for} on {driver}: {e}"));
        }
        fits(&torch("2.14.1+simulated", Some("13.0")), None, 13_000).expect("the simulated one too");
        fits(&BTreeMap::new(), None, 12_000).expect("no torch, nothing to fit");
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_torch_that_is_newer_than_the_driver_is_told_with_the_way_out() {
        let error = fits(&torch("2.15.0", Some("13.2")), Some("535.183.06"), 12_020).expect_err("it does not fit");
        assert_eq!(error.to_string(), "torch 2.15.0 is built for CUDA 13.2, driver 535.183.06 has CUDA 12");
        let out = "leave out `--python` to take the pinned `cuda12` set, or update the driver to 580";
        assert_eq!(error.hint().expect("one"), out);
        let error = fits(&torch("3.0.0", Some("14.1")), None, 13_000).expect_err("it does not fit");
        assert_eq!(error.to_string(), "torch 3.0.0 is built for CUDA 14.1, the driver has CUDA 13");
        assert!(error.hint().expect("one").ends_with("`cuda13` set, or update the driver"));
        // No pinned set fits such an old one.
        let error = fits(&torch("2.10.0", Some("12.8")), Some("470.82.01"), 11_040).expect_err("it does not fit");
        assert_eq!(error.hint().expect("one"), "update the driver to 525");
    }

    #[test]
    fn a_torch_without_cuda_does_not_fit_a_gpu() {
        let error = fits(&torch("2.14.1+cpu", None), Some("580.95.05"), 13_000).expect_err("it does not fit");
        assert_eq!(error.to_string(), "torch 2.14.1+cpu is built without CUDA, so its members would train on the CPU");
        assert!(error.hint().expect("one").ends_with("to take the pinned `cuda13` set"));
        let error = fits(&torch("2.14.1+cpu", None), None, 11_040).expect_err("it does not fit");
        assert_eq!(error.hint().expect("one"), "use a torch built for CUDA 11");
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_torch_of_a_workloads_own_environment_is_named_with_it() {
        let Err(PythonError::Misfit(misfit)) = fits(&torch("2.15.0", Some("13.2")), Some("535.183.06"), 12_020) else {
            panic!("it does not fit")
        };
        let misfit = misfit.of_workload("mynet");
        let said = "torch 2.15.0 of workload `mynet` is built for CUDA 13.2, driver 535.183.06 has CUDA 12";
        assert_eq!(misfit.to_string(), said);
        assert!(misfit.hint().starts_with("leave out `environment` in `workloads/mynet/workload.toml` to take the pinned"));
    }
}
