//! What prevents a change of a GPU, and the hint: services first, then processes that have this GPU open.

use std::path::Path;

use nvml_wrapper::Nvml;

use super::{holders, services};
use collo_plan::facts::Holder;

/// Services and processes that have a GPU open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blame {
    /// Units of systemd.
    pub services: Vec<String>,
    /// Processes that belong to none of these.
    pub processes: Vec<Holder>,
    /// The minor number of the GPU's device file.
    pub minor: Option<u32>,
}

impl Blame {
    /// Collected from systemd, the driver's lists and the processes of this machine.
    pub fn of_the_card(nvml: &Nvml, uuid: &str) -> Blame {
        let minor = nvml.device_by_uuid(uuid).and_then(|device| device.minor_number()).ok();
        let mut processes = holders::computing(nvml, uuid).unwrap_or_default();
        // A library in the driver's place has no device files.
        if let Some(minor) = minor.filter(|_| std::env::var_os(super::nvml::LIBRARY).is_none()) {
            for pid in openers(Path::new("/proc"), minor) {
                if pid != std::process::id() && processes.iter().all(|h| h.pid != pid) {
                    processes.push(holders::holder(pid, None));
                }
            }
        }
        Blame::among(services::active(), processes, minor)
    }

    /// A process of a service is named by its service, whose unit stops it; harmless processes are not named at all.
    fn among(services: Vec<String>, mut processes: Vec<Holder>, minor: Option<u32>) -> Blame {
        let is = |h: &Holder, what: fn(&str) -> bool| h.name.as_deref().is_some_and(what);
        processes.retain(|h| !is(h, services::is_harmless) && (services.is_empty() || !is(h, services::is_process)));
        Blame { services, processes, minor }
    }

    pub fn is_nobody(&self) -> bool {
        self.services.is_empty() && self.processes.is_empty()
    }

    /// `nvidia-dcgm` and `nvsm` use the GPU
    pub fn to_text(&self) -> String {
        let processes: Vec<String> = self.processes.iter().map(Holder::to_string).collect();
        match (&self.services[..], &processes[..]) {
            ([], []) => "something uses the GPU".into(),
            ([], [one]) => format!("{one} uses the GPU"),
            ([], many) => format!("{} use the GPU", many.join(", ")),
            (units, []) => {
                let verb = if units.len() == 1 { "uses" } else { "use" };
                format!("{} {verb} the GPU", services::names(units))
            }
            (units, others) => format!("{} and {} use the GPU", services::names(units), others.join(", ")),
        }
    }

    /// How to free the GPU, if it has to be reset or one of its instances has to be destroyed.
    pub fn hint(&self, reset: bool) -> String {
        let stop = (!self.services.is_empty()).then(|| {
            let units = self.services.join(" ");
            format!("`--services stop` stops them for the change and restarts them; by hand: `sudo systemctl stop {units}`")
        });
        let end = (!self.processes.is_empty()).then(|| "end it, or select another GPU with `--gpu`".to_string());
        let parts: Vec<String> = stop.into_iter().chain(end).collect();
        if !parts.is_empty() {
            return parts.join("; ");
        }
        let file = self.minor.map_or("*".to_string(), |minor| minor.to_string());
        if !reset {
            return format!("`sudo lsof /dev/nvidia{file}` names it; stop it and retry");
        }
        // NVIDIA/mig-parted #181: the module for displays keeps the card, and no process is to be seen.
        format!(
            "`sudo lsof /dev/nvidia{file}` names it; if it names none, the kernel module `nvidia_drm` may use the GPU: `sudo \
             rmmod nvidia_drm`, then retry"
        )
    }
}

/// The processes that have the device file of this GPU open, below a folder such as `/proc`. Processes whose files cannot be read
/// are left out: only an administrator sees those of others.
fn openers(root: &Path, minor: u32) -> Vec<u32> {
    let file = format!("/dev/nvidia{minor}");
    let has_it_open = |process: &Path| {
        let files = std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        files.filter_map(|f| std::fs::read_link(f.path()).ok()).any(|target| target.as_os_str() == file.as_str())
    };
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    let numbered = entries.filter_map(|e| Some((e.file_name().to_str()?.parse::<u32>().ok()?, e.path())));
    let mut pids: Vec<u32> = numbered.filter(|(_, path)| has_it_open(path)).map(|(pid, _)| pid).collect();
    pids.sort_unstable();
    pids
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(pid: u32, name: &str) -> Holder {
        Holder { pid, name: Some(name.into()), user: None, memory_bytes: None }
    }

    /// The processes of a DGX, sorted by pid.
    fn dgx(folder: &Path) -> Vec<Holder> {
        let all: [(u32, &str, &[&str]); 6] = [
            (900, "nvidia-persiste", &["/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia1"]),
            (950, "nv-fabricmanage", &["/dev/nvidia-nvswitchctl", "/dev/nvidia0", "/dev/nvidia1"]),
            (2140, "nv-hostengine", &["/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia1"]),
            (2200, "nvsm_core", &["/dev/nvidia1", "/dev/nvidia-caps/nvidia-cap1"]),
            (3000, "python", &["/dev/nvidiactl", "/dev/nvidia0"]),
            (3001, "python", &["/dev/nvidiactl", "/dev/nvidia11", "/dev/nvidia1"]),
        ];
        for (pid, _, files) in all {
            let open = folder.join(pid.to_string()).join("fd");
            std::fs::create_dir_all(&open).unwrap();
            for (number, file) in files.iter().enumerate() {
                std::os::unix::fs::symlink(file, open.join(number.to_string())).unwrap();
            }
        }
        // No process, and one whose files cannot be read.
        std::fs::create_dir_all(folder.join("self/fd")).unwrap();
        std::fs::create_dir_all(folder.join("7777")).unwrap();
        all.map(|(pid, name, _)| holder(pid, name)).to_vec()
    }

    fn blamed(minor: u32, units: &[&str]) -> Blame {
        let folder = tempfile::tempdir().unwrap();
        let all = dgx(folder.path());
        let open = openers(folder.path(), minor);
        let processes = all.into_iter().filter(|h| open.contains(&h.pid)).collect();
        Blame::among(units.iter().map(|u| u.to_string()).collect(), processes, Some(minor))
    }

    #[test]
    fn only_who_has_this_card_open_is_blamed_and_services_before_all() {
        let first = blamed(0, &["nvidia-dcgm", "nvsm"]);
        assert_eq!(first.to_text(), "`nvidia-dcgm` and `nvsm` and `python` (pid 3000) use the GPU");
        assert!(first.hint(true).contains("sudo systemctl stop nvidia-dcgm nvsm"), "{}", first.hint(true));
        let pids = |minor| blamed(minor, &["nvidia-dcgm"]).processes.iter().map(|h| h.pid).collect::<Vec<_>>();
        assert_eq!((pids(0), pids(1), pids(11), pids(5)), (vec![3000], vec![3001], vec![3001], vec![]));
    }

    #[test]
    fn the_persistence_daemon_and_the_fabric_manager_are_never_blamed() {
        for minor in [0, 1, 7] {
            for units in [&[][..], &["nvidia-dcgm"]] {
                let blame = blamed(minor, units);
                let text = format!("{} {}", blame.to_text(), blame.hint(true));
                assert!(!text.contains("persist") && !text.contains("fabric"), "{text}");
            }
        }
    }

    #[test]
    fn an_engine_without_systemd_is_named_as_a_process() {
        let blame = blamed(0, &[]);
        assert_eq!(blame.to_text(), "`nv-hostengine` (pid 2140), `python` (pid 3000) use the GPU");
        assert_eq!(blame.hint(true), "end it, or select another GPU with `--gpu`");
    }

    #[test]
    fn where_nobody_is_found_the_module_for_displays_is_mentioned() {
        let blame = blamed(5, &[]);
        assert!(blame.is_nobody());
        assert_eq!(blame.to_text(), "something uses the GPU");
        assert!(blame.hint(true).contains("/dev/nvidia5") && blame.hint(true).contains("nvidia_drm"), "{}", blame.hint(true));
        assert!(!blame.hint(false).contains("nvidia_drm"), "{}", blame.hint(false));
    }
}
