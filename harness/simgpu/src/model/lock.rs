//! Python's lock, for which threads of one process take turns as processes do for a GPU without MPS.
//!
//! In: loads, and how much longer each waits for the GPU than alone. Out: [`rates`], how fast each gets on. A load that is alone in its
//! process waits for nobody. Of N that are alike each has the lock for the share `h` = [`HELD`]·(1−u) of its solo time, so that they gain
//! at most 1/h together, however many they are.
//!
//! What is left out: CPython gives the lock to a waiter after 5 ms at the latest (`sys.setswitchinterval`), so that who only wants it for
//! a moment may wait for longer than the other one would need it.

use super::Fitted;

/// Share of the time off the GPU in which a training thread holds Python's lock. Nobody's measurement, an assumption: torch's bindings give
/// the lock away inside every operator (`pybind11::gil_scoped_release no_gil` in `tools/autograd/gen_python_functions.py`) and for all of
/// the backward pass, and hold it between operators, in modules, optimisers and loaders, which is the larger part of a small network.
pub const HELD: f64 = 0.6;

/// Enough for the waits to settle.
const ROUNDS: usize = 200;

/// Solo seconds per second of each, where its kernels take so many times as long as alone.
pub(super) fn rates(all: &[Fitted], stretches: &[f64]) -> Vec<f64> {
    let rate = |i: usize, wait: f64| {
        let off = 1.0 - all[i].u;
        1.0 / (off * (1.0 - HELD) + off * HELD * wait + all[i].u * stretches[i])
    };
    let mut waits = vec![1.0; all.len()];
    if all.iter().any(|f| f.lock.is_some()) {
        for _ in 0..ROUNDS {
            let wants: Vec<f64> = (0..all.len()).map(|i| (1.0 - all[i].u) * HELD * waits[i] * rate(i, waits[i])).collect();
            let others =
                |i: usize| (0..all.len()).filter(move |&j| j != i && all[i].lock.is_some() && all[j].lock == all[i].lock);
            let next: Vec<f64> = (0..all.len()).map(|i| 1.0 + others(i).map(|j| wants[j]).sum::<f64>()).collect();
            let moved = next.iter().zip(&waits).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            waits = next;
            if moved < 1e-9 {
                break;
            }
        }
    }
    (0..all.len()).map(|i| rate(i, waits[i])).collect()
}
