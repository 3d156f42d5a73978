//! The published peak that serves an operation. In: a GPU's peaks, a kind of operation, a precision. Out: FLOP per second.

use collo_gpus::Peaks;
use collo_text::{Diagnostic, quoted};

use super::work::{Arithmetic, OperationKind};

/// The published peaks of the GPU that its driver names so, among the GPU models that come with collo.
pub fn peaks_of(product: &str) -> Result<&'static Peaks, Diagnostic> {
    collo_gpus::peaks_of(product).ok_or_else(|| unknown_peaks(product))
}

/// The error that no file has the peaks of this GPU.
pub fn unknown_peaks(product: &str) -> Diagnostic {
    Diagnostic::new(format!("the published peaks of {} are not known here", quoted(product.trim())))
        .note("utilisation and step time are said in relation to a card's bandwidth and FLOP/s")
        .hint(
            "`--gpu a100-40gb` predicts for a card whose peaks are known, `[[peaks]]` in a file of mig-profiles/ adds others; measured \
             cells need none",
        )
        .of_machine()
}

/// FLOP per second that the maker promises for a kind of operation in a precision. Ordinary units where no tensor core serves.
pub fn peak(peaks: &Peaks, arithmetic: Arithmetic, kind: OperationKind) -> f64 {
    let tensor = match (arithmetic, kind) {
        (_, OperationKind::Other) | (Arithmetic::Fp32, _) => None,
        (Arithmetic::TorchDefault, OperationKind::Convolution) | (Arithmetic::Tf32, _) => peaks.tf32(),
        (Arithmetic::TorchDefault, OperationKind::Matmul) => None,
        (Arithmetic::Half, _) => peaks.half(),
    };
    tensor.unwrap_or_else(|| peaks.fp32())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_are_found_by_the_drivers_name_and_of_an_unknown_gpu_there_is_a_way_out() {
        let a100 = peaks_of("nvidia a100-sxm4-40gb ").expect("known");
        assert_eq!(a100.bandwidth(), 1.555e12);
        assert_eq!(peak(a100, Arithmetic::TorchDefault, OperationKind::Convolution), 156e12);
        assert_eq!(peak(a100, Arithmetic::TorchDefault, OperationKind::Matmul), 19.5e12);
        assert_eq!(peak(a100, Arithmetic::Half, OperationKind::Matmul), 312e12);
        let wrong = peaks_of("Voodoo 2").expect_err("unknown");
        assert!(wrong.what().contains("`Voodoo 2`"), "{}", wrong.what());
    }
}
