//! MIG behaviour here: the GPU is partitioned in three ways, each instance is loaded, and the partition is restored, through the
//! same journal as a campaign's: if this process is killed, `collo restore` finds it.

use std::cell::Cell;

use collo_device::layout::RequestedLayout;
use collo_device::lease::{GpuLease, Restored, Who};
use collo_device::{apply, repartition};
use collo_gpus::partition::Partition;
use collo_launch::interrupted::ENDING;
use collo_sample::gpu::dcgm_texts;
use collo_text::Remark;
use nix::sys::signal::SigSet;
use nix::sys::signalfd::{SfdFlags, SignalFd};
use serde_json::{Value, json};

use super::SelectedGpu;
use super::bundle::Bundle;
use super::busy::{self, Busy};
use super::files::When;

/// Defers signals that would end this process until dropped; they are checked between two steps.
pub struct Quiet {
    came: Option<SignalFd>,
    heard: Cell<bool>,
}

impl Quiet {
    pub fn begin() -> Quiet {
        let mut set = SigSet::empty();
        ENDING.into_iter().for_each(|signal| set.add(signal));
        // Threads that are started from now on have it too; programs are started with none held back.
        let held = set.thread_block();
        let came = held.and_then(|()| SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC));
        Quiet { came: came.ok(), heard: Cell::new(false) }
    }

    /// Whether one arrived meanwhile.
    pub fn heard(&self) -> bool {
        let now = self.came.as_ref().is_some_and(|came| came.read_signal().is_ok_and(|signal| signal.is_some()));
        self.heard.set(self.heard.get() || now);
        self.heard.get()
    }
}

/// The most informative layouts: equal small ones; larger beside smaller (DCGM #151: shares under-reported before Hopper); all
/// sizes.
fn layouts(card: &SelectedGpu) -> Vec<(String, Partition)> {
    let Some((model, most)) = card.gpu.card.as_ref().and_then(|model| Some((model, model.compute_slices?))) else {
        return Vec::new();
    };
    let plain =
        |slices: u32| model.profiles.iter().find(|p| p.slices == slices && !p.name.contains(['+', '-'])).map(|p| p.name.clone());
    let (one, two, four) = (plain(1), plain(2), plain(4));
    let mut texts: Vec<(&str, String)> = Vec::new();
    texts.extend(one.as_ref().map(|one| ("equal", format!("{most}×{one}"))));
    texts.extend(one.as_ref().zip(two.as_ref()).map(|(one, two)| ("unequal", format!("{}×{two}+{one}", (most - 1) / 2))));
    texts.extend(one.zip(two).zip(four).map(|((one, two), four)| ("mixed", format!("{four}+{two}+{one}"))));
    let gpus = std::slice::from_ref(&card.gpu);
    let placed = |(name, text): (&str, String)| {
        let layout = RequestedLayout::parse(&text, std::path::Path::new(".")).ok()?;
        let wanted = layout.on(gpus, true, &apply::pci_device).ok()?;
        Some((name.to_string(), wanted.first()?.1.partition.clone()))
    };
    texts.into_iter().filter_map(placed).collect()
}

/// Partition, collect, and restore; false if the restore failed.
pub fn collect(
    bundle: &mut Bundle,
    card: &SelectedGpu,
    busy: Option<&Busy>,
    interrupted: &dyn Fn() -> bool,
    remark: &dyn Fn(Remark),
) -> bool {
    const STATE: &str = "mig/state.json";
    let layouts = layouts(card);
    if layouts.is_empty() {
        bundle.note(STATE, json!({"absent": format!("{} has no MIG, or its profiles are unknown", card.gpu.label())}));
        return true;
    }
    let who = Who { experiment: "doctor --collect".into(), campaign: String::new() };
    let mut hold = match GpuLease::take(&card.gpu, &who, false) {
        Ok((hold, _)) => hold,
        Err(e) => {
            bundle.note(STATE, json!({"refused": e.to_string()}));
            return true;
        }
    };
    let mut states = vec![state(card, "found", None)];
    for (name, partition) in layouts {
        if interrupted() {
            break;
        }
        let brought = hold.apply(&partition);
        let refused = brought.as_ref().err().map(|e| e.line());
        states.push(state(card, &format!("{name}: {partition}"), refused.as_deref()));
        match brought {
            Ok(_) => look(bundle, card, &name, busy),
            Err(e) => {
                bundle.note(&format!("mig/{name}"), json!({"refused": e.line()}));
                // What one layout is refused for, the mode mostly, the next is too.
                break;
            }
        }
    }
    let restored = hold.restore();
    let refused = restored.as_ref().err().map(|e| e.line());
    states.push(state(card, "put back", refused.as_deref()));
    bundle.json(STATE, &json!(states));
    match restored {
        Ok(restored) => {
            if restored != Restored::default() {
                remark(Remark::Note(format!("{} is as it was found", card.gpu.label())));
            }
            true
        }
        Err(e) => {
            hold.give_up();
            remark(Remark::Warning(format!("{} is not as it was found: {}", card.gpu.label(), e.line())));
            false
        }
    }
}

/// The GPU's state, including what a change of mode may lose.
fn state(card: &SelectedGpu, when: &str, refused: Option<&str>) -> Value {
    let is = repartition::read(&card.uuid, &card.gpu.label()).map(|c| c.partition.to_string());
    json!({"when": when, "is": is.as_ref().ok(), "unread": is.as_ref().err().map(|e| e.line()), "refused": refused,
        "limits": limits(card)})
}

/// Limits and clocks: a reset of the GPU loses them.
fn limits(card: &SelectedGpu) -> Option<String> {
    let names =
        "power.limit,power.default_limit,clocks.applications.graphics,clocks.max.graphics,mig.mode.current,mig.mode.pending";
    let (_, said) = crate::timeout::ask("nvidia-smi", &["-i", &card.index, &format!("--query-gpu={names}"), "--format=csv"])?;
    Some(said.trim().to_string())
}

/// Everything about one layout, each instance under full load.
fn look(bundle: &mut Bundle, card: &SelectedGpu, name: &str, busy: Option<&Busy>) {
    bundle.word("layout", name);
    bundle.fill(When::Layout);
    let devices: Vec<String> = match repartition::read(&card.uuid, &card.gpu.label()) {
        Ok(cut) => cut.instances.iter().flat_map(|i| i.devices.iter().map(|d| d.uuid.clone())).collect(),
        Err(e) => {
            bundle.note(&format!("mig/{name}/instances"), json!({"refused": e.line()}));
            Vec::new()
        }
    };
    let before = busy::seen(&card.uuid);
    let mut running = Vec::new();
    if let Some(busy) = busy {
        for (number, uuid) in devices.iter().enumerate() {
            running.extend(busy.launch(bundle, &format!("load/mig-{name}-{number}.txt"), uuid, &[]));
        }
        running = busy.wait(bundle, card, running, before);
    }
    // The engine notices new instances seconds after they were made; the loads have taken as long to come.
    let hierarchy = crate::timeout::ask("dcgmi", &["discovery", "-c"]).map(|(_, said)| said).unwrap_or_default();
    bundle.word("entities", entities(&hierarchy, &card.uuid, &card.index));
    another(card).into_iter().for_each(|other| bundle.word("other", other));
    bundle.fill(When::Instances);
    running.into_iter().for_each(|load| load.stop(bundle));
}

/// Another GPU of this machine, by DCGM's number.
fn another(card: &SelectedGpu) -> Option<u32> {
    let own: u32 = card.index.parse().ok()?;
    let nvml = collo_device::nvml::open().ok()?;
    let count = nvml.device_count().ok().filter(|count| *count > 1)?;
    let uuid = nvml.device_by_index((own + 1) % count).ok()?.uuid().ok()?;
    let (_, listed) = crate::timeout::ask("dcgmi", &["discovery", "-l"])?;
    dcgm_texts::entity(&listed, &uuid)
}

/// The GPU and its instances, as arguments for dmon, by DCGM's numbers; without instances the GPU alone, by the driver's.
fn entities(hierarchy: &str, uuid: &str, index: &str) -> String {
    let found = dcgm_texts::parts(hierarchy, uuid);
    let (card, parts) = found.map_or((index.to_string(), Vec::new()), |(card, parts)| (card.to_string(), parts));
    let parts = parts.iter().map(|part| format!("i:{part}"));
    std::iter::once(format!("gpu:{card}")).chain(parts).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_of_the_card_are_asked_for_by_dcgms_numbers() {
        let text = "| GPU 1 | GPU GPU-5a1c (EntityID: 4) |\n| -> I 1/2 | GPU Instance (EntityID: 7) |\n\
            |    -> CI 1/2/0 | Compute Instance (EntityID: 9) |\n| -> I 0/1 | GPU Instance (EntityID: 3) |\n";
        assert_eq!(entities(text, "GPU-5a1c", "1"), "gpu:4,i:7");
        assert_eq!(entities("", "GPU-5a1c", "1"), "gpu:1");
    }

    #[test]
    fn a_signal_that_is_held_back_is_heard() {
        // In a thread of its own: what is held back stays so for the thread.
        std::thread::spawn(|| {
            let quiet = Quiet::begin();
            assert!(!quiet.heard());
            nix::sys::signal::raise(nix::sys::signal::Signal::SIGUSR1).expect("to this thread");
            assert!(quiet.heard());
            assert!(quiet.heard(), "and not forgotten");
        })
        .join()
        .expect("it ends");
    }
}
