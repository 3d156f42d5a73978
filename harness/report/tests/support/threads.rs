//! Campaigns whose members are also threads of one process.

use collo_store::Outcome;

use super::Fixture;
use super::predictions::card;

/// On two cores: alone, as processes, as threads of one that take turns with the lock.
pub fn on_cores() -> Fixture {
    let mut fixture = Fixture::named("one-process")
        .solo("tiny", 32, 1.57)
        .group("tiny", 32, 2, "naive", 1.60)
        .group("tiny", 32, 2, "threads", 2.40)
        .holding(0.4);
    (fixture.shared_noise, fixture.member_noise, fixture.power_w) = (1e-4, 1e-5, Some(30.0));
    fixture
}

/// On a card: threads ahead of processes that take turns, and as fast as clients of MPS.
pub fn on_a_card() -> Fixture {
    let mut fixture = Fixture::named("one-process-gpu");
    fixture.device.name = "NVIDIA A100-SXM4-40GB".into();
    fixture.device.kind = "gpu".into();
    fixture.device.memory_bytes = Some(40 << 30);
    fixture.device.cores = None;
    for (sharing, degree, epoch_s, gib) in
        [("solo", 1, 1.0, 2.0), ("naive", 2, 1.9, 2.0), ("mps", 2, 1.2, 1.8), ("threads", 2, 1.2, 1.5)]
    {
        fixture = fixture.on_card(sharing, &vec![("small", epoch_s); degree], card(), 0.0005).holding(gib);
    }
    fixture
}

/// The same on a card, of two workloads at several degrees beside each other mode, and one group whose process ended.
pub fn beside_all_modes() -> Fixture {
    let mut fixture = on_a_card();
    fixture.cells.clear();
    for (workload, alone_s) in [("small", 1.0), ("medium", 2.0)] {
        fixture = fixture.on_card("solo", &[(workload, alone_s)], card(), 0.01).holding(2.0);
        for (degree, naive) in [(2, 1.9), (3, 2.8)] {
            let modes = [("naive", 1.0), ("mps", 0.62), ("mig", 0.75), ("threads", 0.66), ("threads:no-lock", 0.6)];
            for (sharing, factor) in modes {
                let members = vec![(workload, alone_s * naive * factor); degree];
                fixture = fixture.on_card(sharing, &members, card(), 0.01).holding(if factor == 0.66 { 1.5 } else { 2.0 });
            }
        }
    }
    let message = "member 0 in epoch 1, member 1 in epoch 2".to_string();
    fixture.ends(Outcome::ProcessEnded { status: "killed by SIGSEGV".into(), message })
}
