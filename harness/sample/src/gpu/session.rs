//! The threads that read GPUs: which ones there are, and the fallbacks between them.

use collo_plan::experiment::MetricSource;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use nvml_wrapper::Nvml;

use super::dcgm::{self, DcgmCoordinator};
use super::gauges::{self, GpuGauges};
use super::gpm::{self, Gpm, Missing};
use super::handle::{GpuLoss, Opened};
use super::pcie::LastResort;
use super::processes::{Processes, Strangers};
use super::{Board, gpu_scope, mig_scope, xid};
use crate::account::{Account, SourceResult};
use crate::latest::Outlet;
use crate::member::Trees;
use crate::reader::{SamplerThread, thread};
use collo_device::nvml;

/// How to read the GPUs.
pub struct GpuSamplingSpec {
    pub nvml_hz: f64,
    pub slow_hz: f64,
    pub trees: Trees,
    pub outlet: Outlet,
    pub stop: Arc<AtomicBool>,
    /// Query NVML even for what better sources report.
    pub everything: bool,
}

/// GPUs being read.
#[derive(Default)]
pub struct GpuSession {
    pub readers: Vec<JoinHandle<Vec<SourceResult>>>,
    /// Of sources that could not be started.
    pub unread: Vec<SourceResult>,
    pub lost: GpuLoss,
    pub strangers: Strangers,
    /// Why a thread could not be started, if so.
    pub not_begun: Option<std::io::Error>,
}

/// Delay of the threads after the tick of the fast one, so that they do not all need a core together.
const NVML_AFTER: Duration = Duration::from_millis(25);
const GPM_AFTER: Duration = Duration::from_millis(40);
const SLOW_AFTER: Duration = Duration::from_millis(75);

impl GpuSession {
    /// Open the library and start reading; without GPUs, nothing is opened or started.
    pub fn start(boards: &[Board], setting: &GpuSamplingSpec) -> GpuSession {
        let mut session = GpuSession::default();
        if boards.is_empty() {
            return session;
        }
        let opened = session.open(boards, setting.nvml_hz, setting.everything);
        if opened.is_empty() {
            return session;
        }
        session.begin_gauges(&opened, setting);
        session.begin_profilers(&opened, setting);
        session.begin_events(opened, &setting.stop);
        session
    }

    /// Only listen for errors of the GPUs.
    pub fn listen(boards: &[Board], stop: &Arc<AtomicBool>) -> GpuSession {
        let mut session = GpuSession::default();
        if boards.is_empty() {
            return session;
        }
        let cards = session.open(boards, 0.0, false);
        session.begin_events(cards, stop);
        session
    }

    /// The GPUs that can be opened; the errors of the others are kept.
    fn open(&mut self, boards: &[Board], nvml_hz: f64, everything: bool) -> Vec<Arc<Opened>> {
        let mut account = Account::default();
        let mut opened = Vec::new();
        match nvml::open().map(Arc::new) {
            Ok(nvml) => {
                for board in boards {
                    match self.open_one(&nvml, board, everything) {
                        Ok(card) => opened.push(Arc::new(card)),
                        Err(why) => lack(&mut account, board, &why),
                    }
                }
            }
            Err(why) => boards.iter().for_each(|board| lack(&mut account, board, &why.to_string())),
        }
        if opened.len() < boards.len() {
            self.unread.push(SourceResult::without_reading("nvml", nvml_hz, account));
        }
        opened
    }

    fn open_one(&self, nvml: &Arc<Nvml>, board: &Board, everything: bool) -> Result<Opened, String> {
        let opened = Opened::open(nvml, board, &self.lost)?;
        if everything {
            opened.pcie.dcgm_does_not();
        }
        Ok(opened)
    }

    fn begin_events(&mut self, cards: Vec<Arc<Opened>>, stop: &Arc<AtomicBool>) {
        let stop = stop.clone();
        self.begin("nvml-events", move || xid::listen(&cards, &stop));
    }

    fn begin_gauges(&mut self, opened: &[Arc<Opened>], setting: &GpuSamplingSpec) {
        let fast = SamplerThread::of(vec![Box::new(GpuGauges::of(opened))], &setting.stop, &setting.outlet);
        let last = LastResort { boards: opened.to_vec(), account: Account::default() };
        let slow = vec![Box::new(Processes::of(opened, setting.trees.clone(), self.strangers.clone())) as _, Box::new(last) as _];
        let slow = SamplerThread::of(slow, &setting.stop, &setting.outlet);
        let (nvml_hz, slow_hz) = (setting.nvml_hz, setting.slow_hz);
        self.begin("nvml", move || vec![fast.run("nvml", nvml_hz, NVML_AFTER, None)]);
        self.begin("nvml-slow", move || vec![slow.run("nvml-slow", slow_hz, SLOW_AFTER, None)]);
    }

    /// GPM if wanted and available; DCGM for the rest, or immediately if GPM is missing, or is to be compared with it.
    fn begin_profilers(&mut self, opened: &[Arc<Opened>], setting: &GpuSamplingSpec) {
        let (sender, wanted) = mpsc::channel();
        let mut account = Account::default();
        let (mut having, mut expected) = (Vec::new(), 0);
        for (i, card) in opened.iter().enumerate() {
            let sources = card.sources;
            if sources.sm == Some(MetricSource::Nvml) && !sources.both {
                continue;
            }
            expected += 1;
            let has_gpm = sources.gpm()
                && match gpm::supported(card) {
                    Ok(()) => true,
                    Err(why) => {
                        dcgm::everything(card).iter().for_each(|(scope, p)| account.lacks(p.metric, scope, &why));
                        false
                    }
                };
            if has_gpm {
                having.push(i);
            }
            if !has_gpm || sources.both {
                // The one that receives is started below.
                let _ = sender.send((i, dcgm::everything(card)));
            }
        }
        if account.absent().next().is_some() {
            self.unread.push(SourceResult::without_reading("gpm", gpm::RATE_HZ, account));
        }
        if !having.is_empty() {
            let cards = opened.to_vec();
            let settled = Box::new(move |board: usize, missing: Vec<Missing>| {
                let card = &cards[board];
                if !card.sources.both {
                    // The one that received may have stopped already.
                    let _ = sender.send((board, missing));
                }
            });
            let gpm = SamplerThread::of(vec![Box::new(Gpm::of(opened, &having, settled))], &setting.stop, &setting.outlet);
            // Whoever asks for fewer readings pays for no more.
            let rate_hz = gpm::RATE_HZ.min(setting.nvml_hz);
            self.begin("gpm", move || vec![gpm.run("gpm", rate_hz, GPM_AFTER, None)]);
        }
        if expected > 0 {
            let (boards, stop, outlet) = (opened.to_vec(), setting.stop.clone(), setting.outlet.clone());
            let conductor = DcgmCoordinator { boards, wanted, expected, stop, outlet };
            self.begin("dcgm", move || conductor.run());
        }
    }

    fn begin(&mut self, name: &str, work: impl FnOnce() -> Vec<SourceResult> + Send + 'static) {
        match thread(name, work) {
            Ok(reader) => self.readers.push(reader),
            Err(e) => self.not_begun = Some(e),
        }
    }
}

/// Nothing of a GPU can be read.
fn lack(account: &mut Account, board: &Board, why: &str) {
    let gpu = gpu_scope(&board.uuid);
    gauges::metrics().for_each(|metric| account.lacks(metric, &gpu, why));
    board.instances.iter().for_each(|i| account.lacks(gauges::OF_INSTANCES, &mig_scope(&i.uuid), why));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::BoardInstance;
    use crate::latest::Latest;

    #[test]
    fn a_card_that_cannot_be_opened_is_absent_with_its_reason_and_nothing_is_begun() {
        let (batches, received) = mpsc::channel();
        let outlet = Outlet { batches, latest: Latest::default(), tap: None };
        let (trees, stop) = (Trees::default(), Arc::new(AtomicBool::new(false)));
        let setting = GpuSamplingSpec { nvml_hz: 10.0, slow_hz: 1.0, trees, outlet, stop, everything: false };
        let instance = BoardInstance { uuid: "MIG-none".into(), gpu_instance: 1, compute_instance: None };
        let board = Board { uuid: "GPU-none".into(), instances: vec![instance], ..Board::default() };
        let session = GpuSession::start(&[board], &setting);
        assert!(session.readers.is_empty() && session.lost.why().is_none());
        let absent = &session.unread[0].quality.absent;
        assert!(absent.keys().eq(gauges::metrics().collect::<std::collections::BTreeSet<_>>()), "{absent:?}");
        drop(setting);
        assert!(received.recv().is_err(), "nobody is left who could send");
    }
}
