//! What the maker of a GPU publishes of it. In: the name by which its driver calls it. Out: peaks, or that they are not known.
//!
//! NVIDIA's data sheets and architecture white papers of each card, at boost clock, without sparsity; an answer that is not in them is
//! absent.

use collo_text::Diagnostic;
use collo_text::quoted;

use super::work::{Arithmetic, OperationKind};

/// Peaks of a card.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Card {
    /// As drivers name it.
    pub names: &'static [&'static str],
    /// Of its memory, in bytes per second.
    pub bandwidth: f64,
    pub l2_bytes: f64,
    /// FLOP per second of its ordinary units.
    pub fp32: f64,
    /// Of its tensor cores; absent where there are none for TF32.
    pub tf32: Option<f64>,
    /// Of its tensor cores in bf16 or fp16.
    pub half: Option<f64>,
}

const MB: f64 = 1_048_576.0;

/// GB/s, MB, TFLOP/s.
const fn card(names: &'static [&'static str], bandwidth: f64, l2: f64, fp32: f64, tf32: Option<f64>, half: Option<f64>) -> Card {
    Card {
        names,
        bandwidth: bandwidth * 1e9,
        l2_bytes: l2 * MB,
        fp32: fp32 * 1e12,
        tf32: times_tera(tf32),
        half: times_tera(half),
    }
}

const fn times_tera(flops: Option<f64>) -> Option<f64> {
    match flops {
        Some(flops) => Some(flops * 1e12),
        None => None,
    }
}

const CARDS: [Card; 20] = [
    card(&["NVIDIA A100-SXM4-40GB", "NVIDIA A100-PCIE-40GB"], 1555.0, 40.0, 19.5, Some(156.0), Some(312.0)),
    card(&["NVIDIA A100-SXM4-80GB"], 2039.0, 40.0, 19.5, Some(156.0), Some(312.0)),
    card(&["NVIDIA A100 80GB PCIe"], 1935.0, 40.0, 19.5, Some(156.0), Some(312.0)),
    card(&["NVIDIA A30"], 933.0, 24.0, 10.3, Some(82.0), Some(165.0)),
    card(&["NVIDIA A10"], 600.0, 6.0, 31.2, Some(62.5), Some(125.0)),
    card(&["NVIDIA A40"], 696.0, 6.0, 37.4, Some(74.8), Some(149.7)),
    card(&["NVIDIA H100 80GB HBM3"], 3352.0, 50.0, 66.9, Some(494.7), Some(989.4)),
    card(&["NVIDIA H100 PCIe"], 2039.0, 50.0, 51.2, Some(378.0), Some(756.0)),
    card(&["NVIDIA H100 NVL"], 3938.0, 50.0, 60.0, Some(417.5), Some(835.5)),
    card(&["NVIDIA H200"], 4800.0, 50.0, 66.9, Some(494.7), Some(989.4)),
    card(&["NVIDIA GH200 480GB"], 4000.0, 50.0, 66.9, Some(494.7), Some(989.4)),
    card(&["NVIDIA L4"], 300.0, 48.0, 30.3, Some(60.0), Some(121.0)),
    card(&["NVIDIA L40S"], 864.0, 96.0, 91.6, Some(183.0), Some(366.0)),
    card(&["Tesla V100-SXM2-16GB", "Tesla V100-SXM2-32GB"], 900.0, 6.0, 15.7, None, Some(125.0)),
    card(&["Tesla T4"], 320.0, 4.0, 8.1, None, Some(65.0)),
    card(&["NVIDIA GeForce RTX 4090"], 1008.0, 72.0, 82.6, Some(82.6), Some(165.2)),
    card(&["NVIDIA GeForce RTX 3090"], 936.0, 6.0, 35.6, Some(35.6), Some(71.0)),
    card(&["NVIDIA GeForce RTX 2080 Ti"], 616.0, 5.5, 13.4, None, Some(53.8)),
    card(&["NVIDIA GeForce RTX 2080"], 448.0, 4.0, 10.1, None, Some(40.3)),
    card(&["NVIDIA GeForce GTX 1080"], 320.0, 2.0, 8.9, None, None),
];

impl Card {
    /// By the name that its driver gives it.
    pub fn named(name: &str) -> Result<&'static Card, Diagnostic> {
        let name = name.trim();
        let is_it = |card: &&Card| card.names.iter().any(|known| known.eq_ignore_ascii_case(name));
        CARDS.iter().find(is_it).ok_or_else(|| {
            Diagnostic::new(format!("the published peaks of {} are not known here", quoted(name)))
                .note("utilisation and step time are said in relation to a card's bandwidth and FLOP/s")
                .hint("`--gpu a100-40gb` predicts for a card whose peaks are known; measured cells need none")
                .of_machine()
        })
    }

    /// FLOP per second that the maker promises for a kind of operation in a precision. Ordinary units where no tensor core serves.
    pub fn peak(&self, arithmetic: Arithmetic, kind: OperationKind) -> f64 {
        let tensor = match (arithmetic, kind) {
            (_, OperationKind::Other) | (Arithmetic::Fp32, _) => None,
            (Arithmetic::TorchDefault, OperationKind::Convolution) | (Arithmetic::Tf32, _) => self.tf32,
            (Arithmetic::TorchDefault, OperationKind::Matmul) => None,
            (Arithmetic::Half, _) => self.half,
        };
        tensor.unwrap_or(self.fp32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_found_by_its_drivers_name_and_an_unknown_one_has_a_way_out() {
        let a100 = Card::named("nvidia a100-sxm4-40gb ").expect("known");
        assert_eq!(a100.bandwidth, 1.555e12);
        assert_eq!(a100.peak(Arithmetic::TorchDefault, OperationKind::Convolution), 156e12);
        assert_eq!(a100.peak(Arithmetic::TorchDefault, OperationKind::Matmul), 19.5e12);
        assert_eq!(a100.peak(Arithmetic::Half, OperationKind::Matmul), 312e12);
        let wrong = Card::named("Voodoo 2").expect_err("unknown");
        assert!(wrong.what().contains("`Voodoo 2`"), "{}", wrong.what());
    }

    #[test]
    fn every_card_is_listed_once_with_tensor_cores_no_slower_than_the_rest() {
        let mut names: Vec<&str> = CARDS.iter().flat_map(|card| card.names).copied().collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        for card in &CARDS {
            assert!(card.tf32.is_none_or(|tf32| tf32 >= card.fp32) && card.half.is_none_or(|half| half >= card.fp32), "{card:?}");
        }
    }
}
