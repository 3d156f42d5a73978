//! How fast a GPU is, as its maker publishes it. In: `[[peaks]]` of a model's file. Out: bytes and FLOP per second.

use crate::Peaks;

const GIGA: f64 = 1e9;
const TERA: f64 = 1e12;
const MIB: f64 = 1_048_576.0;

impl Peaks {
    /// Of the memory, in bytes per second.
    pub fn bandwidth(&self) -> f64 {
        self.memory_gb_per_s * GIGA
    }

    pub fn l2_bytes(&self) -> f64 {
        self.l2_mib * MIB
    }

    /// FLOP per second of ordinary units.
    pub fn fp32(&self) -> f64 {
        self.fp32_tflops * TERA
    }

    /// FLOP per second of tensor cores in TF32.
    pub fn tf32(&self) -> Option<f64> {
        self.tf32_tflops.map(|tflops| tflops * TERA)
    }

    /// FLOP per second of tensor cores in bf16 or fp16.
    pub fn half(&self) -> Option<f64> {
        self.half_tflops.map(|tflops| tflops * TERA)
    }

    /// Whether both promise the same, of whatever boards.
    pub fn agrees_with(&self, other: &Peaks) -> bool {
        let figures = |p: &Peaks| (p.memory_gb_per_s, p.l2_mib, p.fp32_tflops, p.tf32_tflops, p.half_tflops);
        figures(self) == figures(other)
    }

    /// Whether the board of this name has them.
    pub fn are_of(&self, product: &str) -> bool {
        self.names(product) || crate::peaks_of(product).is_some_and(|own| own.agrees_with(self))
    }

    pub(crate) fn names(&self, product: &str) -> bool {
        self.product_names.iter().any(|name| crate::is_same_product(name, product))
    }
}

#[cfg(test)]
mod tests {
    use crate::{known, mig, peaks_of};
    use collo_text::Source;

    #[test]
    fn figures_keep_the_units_of_the_file_and_are_given_in_bytes_and_flops() {
        let a100 = peaks_of("nvidia a100-sxm4-40gb ").expect("known");
        assert_eq!((a100.bandwidth(), a100.l2_bytes(), a100.fp32()), (1555.0 * 1e9, 40.0 * 1_048_576.0, 19.5 * 1e12));
        assert_eq!((a100.tf32(), a100.half()), (Some(156.0 * 1e12), Some(312.0 * 1e12)));
        let t4 = peaks_of("Tesla T4").expect("known");
        assert_eq!((t4.tf32(), t4.half()), (None, Some(65.0 * 1e12)), "Turing has no TF32");
    }

    #[test]
    fn boards_of_one_model_may_have_their_own_and_a_board_that_is_not_named_has_none() {
        let bandwidth = |product: &str| peaks_of(product).map(|peaks| peaks.memory_gb_per_s);
        assert_eq!((bandwidth("NVIDIA A100-SXM4-80GB"), bandwidth("NVIDIA A100 80GB PCIe")), (Some(2039.0), Some(1935.0)));
        let half = |product: &str| peaks_of(product).and_then(|peaks| peaks.half_tflops);
        assert_eq!((half("NVIDIA H200"), half("NVIDIA H200 NVL")), (Some(989.4), Some(835.5)));
        assert_eq!(bandwidth("Tesla V100-SXM3-32GB"), None, "its model is known, its data sheet is not");
        assert_eq!(bandwidth("Voodoo 2"), None);
    }

    #[test]
    fn boards_of_which_the_same_is_promised_have_the_same_peaks_in_whichever_file() {
        let small = peaks_of("Tesla V100-SXM2-16GB").expect("known");
        assert!(small.are_of("Tesla V100-SXM2-32GB") && small.are_of("Tesla V100-SXM2-16GB"));
        assert!(!small.are_of("Tesla V100-PCIE-16GB") && !small.are_of("Voodoo 2"));
        let text = "product_names = [\"Mine 1\"]\n[[peaks]]\nmemory_gb_per_s = 1\nl2_mib = 1\nfp32_tflops = 1";
        let mine = mig::parse("mine", &Source::file("mine", text)).expect("read");
        assert!(mine.peaks_of("Mine 1").expect("its own").are_of("Mine 1"), "no file that comes with collo knows it");
    }

    #[test]
    fn peaks_are_of_boards_of_their_model_each_once_with_tensor_cores_no_slower_than_the_rest() {
        let mut count = 0;
        for model in known() {
            let mut names: Vec<&String> = model.peaks.iter().flat_map(|peaks| &peaks.product_names).collect();
            assert!(names.iter().all(|name| model.product_names.contains(name)), "{}", model.name);
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all, "{}", model.name);
            for peaks in &model.peaks {
                let tensor = [peaks.tf32_tflops, peaks.half_tflops];
                assert!(tensor.into_iter().flatten().all(|tflops| tflops >= peaks.fp32_tflops), "{peaks:?}");
                assert!(peaks.tf32_tflops <= peaks.half_tflops, "{peaks:?}");
                count += 1;
            }
        }
        assert!(count >= 20, "only {count}");
    }
}
