//! What launches of one short kernel show of a card, from their configuration: the rule behind `square`.
//!
//! In: blocks, threads of a block, the card. Out: [`Shown`], shares of the time between two launches. Everything is said by a few
//! constants, so that each point of a sweep follows from its launch and none is a figure of its own:
//!
//! - An SM holds as many blocks as its slots for blocks and for warps allow, the occupancy of the CUDA C++ Programming Guide
//!   ("Technical Specifications per Compute Capability", 8.0: 32 blocks, 64 warps of 32 threads).
//! - A launch begins with one wave, for [`FIRST_US`] on as many SMs as it has blocks. The rest of it is bound by what is slower: the
//!   card, which starts a block each [`START_US`], or the SMs, on which a block lives [`WARP_US`] for each of its warps.
//! - Blocks that begin and end leave room between them: [`FILLED`] of the warps that fit are there at most.
//! - A launch follows the one before it after [`LAUNCH_US`] or when that is done, with a gap of [`GAP_US`] in which nothing is active.
//!
//! The constants are rounded so that the shares of the study's 77 points lie near the medians of its logs, which its repository has
//! (Resource-Aware-Data-systems-RAD/PMDLT, `data/01-metic_data/summary_files/median.csv`, an A100 of 40 GB): the root of the mean squared
//! difference is 0.03 of GRACT, 0.12 of SMACT and 0.11 of SMOCC. It is a simulation, not a model to predict with: times are not fitted
//! (launches of full blocks take longer in the logs), and that medium blocks on medium grids are active for less than few on small
//! ones, as the logs have it, is not in it.

use std::collections::BTreeMap;

use crate::card::Card;

/// Threads of a warp.
const WARP: u32 = 32;
/// Between the beginnings of two launches of the study's program, at least.
const LAUNCH_US: f64 = 2.7;
const FIRST_US: f64 = 0.6;
const START_US: f64 = 0.0001;
const WARP_US: f64 = 0.003;
const FILLED: f64 = 0.78;
const GAP_US: f64 = 0.1;
/// Blocks that the card starts while the first wave lives, at most.
const FIRST_BLOCKS: f64 = 600.0;

/// The configuration of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    pub blocks: u32,
    pub threads: u32,
}

/// What launches without end show, in shares of the time, of the SMs over time, and of their places for warps over time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shown {
    pub launch_s: f64,
    pub graphics: f64,
    pub sm: f64,
    pub occupancy: f64,
}

/// Blocks and warps that an SM holds at most.
fn limits((major, _): (i32, i32)) -> (u32, u32) {
    if major >= 12 { (24, 48) } else { (32, 64) }
}

impl Launch {
    /// From the options of a script that launches blocks of threads.
    pub fn of(options: &BTreeMap<String, String>) -> Option<Launch> {
        let number = |name: &str| options.get(name)?.parse().ok().filter(|n: &u32| *n > 0);
        Some(Launch { blocks: number("blocks")?, threads: number("threads")? })
    }

    /// What a card shows of it.
    pub fn on(self, card: &Card) -> Shown {
        let (most_blocks, most_warps) = limits(card.extra.capability);
        let (blocks, sms) = (f64::from(self.blocks), f64::from(card.sms));
        let warps = self.threads.div_ceil(WARP);
        let places = f64::from((most_warps / warps).clamp(1, most_blocks)) * sms;
        // Of all places for warps, by one block.
        let share = f64::from(warps) / (f64::from(most_warps) * sms);
        let life_us = WARP_US * f64::from(warps) / card.extra.sm_speed;
        let bound_by_places = blocks * life_us / places;
        let rest_us = bound_by_places.max(blocks * START_US);
        let alive = blocks * life_us / rest_us;
        // Those that do not fill the card meet on its SMs by chance.
        let reached = if rest_us > bound_by_places { 1.0 - (-alive / sms).exp() } else { 1.0 };
        let launch_us = LAUNCH_US.max(FIRST_US + rest_us + GAP_US);
        let sm = ((blocks / sms).min(1.0) * FIRST_US + reached * rest_us) / launch_us;
        let first = blocks.min(places).min(FIRST_BLOCKS) * share;
        let occupancy = FILLED * (first * FIRST_US + alive * share * rest_us) / launch_us;
        Shown { launch_s: launch_us / 1e6, graphics: 1.0 - GAP_US / launch_us, sm, occupancy: occupancy.min(sm) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(key: &str, blocks: u32, threads: u32) -> Shown {
        Launch { blocks, threads }.on(&Card::find(key).unwrap())
    }

    const BLOCKS: [u32; 11] = [1, 128, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072];
    const THREADS: [u32; 7] = [1, 8, 32, 128, 256, 512, 1024];

    #[test]
    fn the_nine_points_of_the_paper_lie_near_what_was_published() {
        // Blocks, threads, SMACT and SMOCC as the paper's means; those of runs of seconds hold idle head and tail, so that they are low.
        let published = [
            (1, 1, 0.0016, 0.0),
            (128, 1, 0.177, 0.003),
            (1024, 1024, 0.524, 0.365),
            (8192, 1, 0.190, 0.012),
            (8192, 1024, 0.929, 0.687),
            (32768, 32, 0.307, 0.026),
            (65536, 128, 0.787, 0.450),
            (131072, 1, 0.291, 0.014),
            (131072, 1024, 0.991, 0.779),
        ];
        let far = |ours: f64, theirs: f64| (ours - theirs).powi(2);
        let shown = published.map(|(blocks, threads, sm, occupancy)| {
            let shown = on("a100-40gb", blocks, threads);
            (far(shown.sm, sm), far(shown.occupancy, occupancy))
        });
        let root = |sum: f64| (sum / 9.0).sqrt();
        let (sm, occupancy) = (root(shown.iter().map(|s| s.0).sum()), root(shown.iter().map(|s| s.1).sum()));
        assert!(sm < 0.08 && occupancy < 0.14, "{sm:.3} {occupancy:.3}");
    }

    #[test]
    fn more_blocks_or_more_threads_never_show_less_of_the_warps_and_all_are_shares() {
        for (key, wastes) in [("a100-40gb", false), ("h100-80gb", false), ("rtx-pro-6000", true), ("a30-24gb", false)] {
            for blocks in BLOCKS {
                let of = THREADS.map(|threads| on(key, blocks, threads));
                // Of 48 warps a block of 32 leaves 16 that no other fits in.
                let compared = if wastes { &of[..6] } else { &of[..] };
                assert!(compared.windows(2).all(|w| w[0].occupancy <= w[1].occupancy + 1e-12), "{key} {blocks}: {of:?}");
                for shown in of {
                    let Shown { launch_s, graphics, sm, occupancy } = shown;
                    assert!(
                        launch_s >= 2.7e-6 && occupancy <= sm && sm <= graphics + 1e-9 && graphics < 1.0,
                        "{blocks} {shown:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn one_thread_keeps_the_engine_active_and_one_sm_of_all_a_little() {
        let one = on("a100-40gb", 1, 1);
        assert!(one.graphics > 0.9 && one.sm < 0.01 && one.occupancy < 0.001, "{one:?}");
        let full = on("a100-40gb", 131_072, 1024);
        assert!(full.sm > 0.95 && (full.occupancy - 0.78).abs() < 0.01, "{full:?}");
        let two_thirds = on("rtx-pro-6000", 131_072, 1024);
        assert!((two_thirds.occupancy - 0.78 * 2.0 / 3.0).abs() < 0.01, "{two_thirds:?}");
    }

    #[test]
    fn a_launch_needs_both_numbers() {
        let options = |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect();
        assert_eq!(Launch::of(&options(&[("blocks", "8"), ("threads", "32")])), Some(Launch { blocks: 8, threads: 32 }));
        assert_eq!(Launch::of(&options(&[("blocks", "8")])), None);
        assert_eq!(Launch::of(&options(&[("blocks", "0"), ("threads", "32")])), None);
    }
}
