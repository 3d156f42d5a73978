//! A hundred jobs, drawn by a seed.

use crate::project::Work;
use collo_schedule::WHOLE_PERMILLE;
use collo_store::Shuffle;

use crate::published::{HotCloud20, published};

/// The architectures of the paper's table 1, from the fewest to the most FLOPs.
const ARCHITECTURES: [&str; 13] = [
    "LSTM",
    "Transformer",
    "ShuffleNetV2",
    "MobileNetV2",
    "MNASNet",
    "SqueezeNet",
    "GoogLeNet",
    "ResNet",
    "PyramidNet",
    "DenseNet",
    "ResNeXt",
    "DualPathNetwork",
    "VGGNet",
];
/// How far a configuration moves the utilisation of its architecture.
const CONFIGURATION_PERMILLE: f64 = 100.0;
const GIB: f64 = (1u64 << 30) as f64;
/// CUDA's context, with what a process holds whatever it trains.
const CONTEXT_GIB: f64 = 0.6;
/// What the smallest batch holds; batches are 1, 2, 4 and 8 times it, as 64 to 512 are. The paper took what its cards of 8 GB could hold,
/// so the greatest nearly fills one.
const SMALLEST_BATCH_GIB: (f64, f64) = (0.1, 0.9);
const BATCHES: f64 = 4.0;

/// A job of the case study.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Job {
    pub work: Work,
    /// By the paper's random forest, as wrong as published.
    pub predicted_permille: u32,
}

/// The jobs of a seed, in the order of their submission.
pub fn drawn(seed: u64) -> Vec<Job> {
    let says = published();
    let mut dice = Shuffle::seeded(seed);
    (0..says.jobs).map(|_| one(&mut dice, says)).collect()
}

fn one(dice: &mut Shuffle, says: &HotCloud20) -> Job {
    let [least, most] = says.utilisation_percent.map(|percent| percent * 10.0);
    let complexity = (dice.share() * ARCHITECTURES.len() as f64).floor() / (ARCHITECTURES.len() - 1) as f64;
    let configuration = (2.0 * dice.share() - 1.0) * CONFIGURATION_PERMILLE;
    let utilisation = (least + complexity * (most - least) + configuration).clamp(least, most);
    let minutes = log_uniform(dice, says.duration_min);
    let batch = 2f64.powf((dice.share() * BATCHES).floor());
    let memory_gib = CONTEXT_GIB + batch * log_uniform(dice, [SMALLEST_BATCH_GIB.0, SMALLEST_BATCH_GIB.1]);
    let predicted = utilisation * (says.predictor_rmsle * dice.normal()).exp();
    Job {
        work: Work {
            solo_ns: (minutes * 60e9).round() as u64,
            utilisation_permille: utilisation.round() as u32,
            memory_bytes: (memory_gib * GIB).round() as u64,
        },
        predicted_permille: predicted.round().clamp(1.0, f64::from(WHOLE_PERMILLE)) as u32,
    }
}

fn log_uniform(dice: &mut Shuffle, [from, to]: [f64; 2]) -> f64 {
    from * (to / from).powf(dice.share())
}

/// What is assumed of the jobs.
pub fn assumptions(says: &HotCloud20) -> [String; 4] {
    let ([shortest, longest], [least, most]) = (says.duration_min, says.utilisation_percent);
    [
        format!(
            "jobs: {} at once in a drawn order; {shortest} to {longest} min alone, log-uniform, whatever they train",
            says.jobs
        ),
        format!(
            "utilisation alone: {least} to {most} %, the {} architectures evenly by their FLOPs, give or take up to {} points for the configuration",
            ARCHITECTURES.len(),
            CONFIGURATION_PERMILLE / 10.0
        ),
        format!(
            "memory: {CONTEXT_GIB} GiB, and {} to {} GiB (log-uniform) for each of 1, 2, 4 or 8 times the smallest batch; cards of {} GiB",
            SMALLEST_BATCH_GIB.0, SMALLEST_BATCH_GIB.1, says.card_gib
        ),
        format!("predictions: log-normal around the truth, RMSLE {}, the paper's random forest", says.predictor_rmsle),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn many() -> Vec<Job> {
        (0..100).flat_map(drawn).collect()
    }

    #[test]
    fn jobs_are_within_what_the_paper_says_and_as_long_as_its_own_on_average() {
        let says = published();
        let jobs = many();
        for job in &jobs {
            let (minutes, percent) = (job.work.solo_ns as f64 / 60e9, f64::from(job.work.utilisation_permille) / 10.0);
            assert!((says.duration_min[0]..=says.duration_min[1]).contains(&minutes), "{minutes}");
            assert!((says.utilisation_percent[0]..=says.utilisation_percent[1]).contains(&percent), "{percent}");
            assert!(job.work.memory_bytes < says.card_gib << 30, "each fits alone, as the paper's did");
        }
        // Slot-based, its mean completion time is that of jobs alone.
        let mean_s = jobs.iter().map(|job| job.work.solo_ns as f64 / 1e9).sum::<f64>() / jobs.len() as f64;
        let theirs = says.of(crate::arm::Arm::SlotBased).expect("published").job_completion_s;
        assert!((mean_s / theirs - 1.0).abs() < 0.1, "{mean_s} s, not {theirs}");
    }

    #[test]
    fn predictions_are_as_wrong_as_the_paper_s() {
        let jobs = many();
        let square = |job: &Job| {
            let logs =
                [job.predicted_permille, job.work.utilisation_permille].map(|permille| (f64::from(permille) / 10.0).ln_1p());
            (logs[0] - logs[1]).powi(2)
        };
        let rmsle = (jobs.iter().map(square).sum::<f64>() / jobs.len() as f64).sqrt();
        // A little less: nothing is predicted above 100 %, and the metric adds 1 to both.
        assert!((0.135..0.155).contains(&rmsle), "{rmsle}");
    }

    #[test]
    fn some_triples_run_out_of_memory_and_few_pairs() {
        let jobs = many();
        let beyond = |of: usize| {
            let sums = jobs.chunks_exact(of).map(|group| group.iter().map(|job| job.work.memory_bytes).sum::<u64>());
            let (all, beyond) = sums.fold((0.0, 0.0), |(all, n), sum| (all + 1.0, n + f64::from(u8::from(sum > 8 << 30))));
            beyond / all
        };
        assert!((0.1..0.25).contains(&beyond(3)) && (0.01..0.1).contains(&beyond(2)), "{} {}", beyond(3), beyond(2));
    }
}
