//! GPU models and the shares of their slices. In: a GPU model's name and the name of a slice. Out: the slice's share of the GPU,
//! by which slices of different GPU models are matched, and its SMs. The known models are those of `collo-gpus`.

use collo_gpus::notation::Size;

/// A GPU model from its file, or guessed from its memory if no file has its name.
#[derive(Debug, Clone)]
pub struct GpuModel {
    model: Option<&'static collo_gpus::GpuModel>,
    memory_gb: f64,
    compute_slices: u32,
    memory_units: u32,
}

/// The GPU model of this product name. An unknown one with this much memory is assumed to be partitioned like most, into seven
/// slices of compute and eight of memory, with an unknown number of SMs.
pub fn card(name: &str, memory_bytes: Option<u64>) -> Option<GpuModel> {
    let model = collo_gpus::of_product(name);
    let memory_gb = match model.and_then(|model| model.memory_gb) {
        Some(gb) => f64::from(gb),
        None => memory_bytes? as f64 / f64::from(1 << 30),
    };
    Some(GpuModel {
        model,
        memory_gb,
        compute_slices: model.and_then(|model| model.compute_slices).unwrap_or(collo_gpus::USUAL_COMPUTE_SLICES),
        memory_units: model.and_then(|model| model.memory_units).unwrap_or(collo_gpus::USUAL_MEMORY_UNITS),
    })
}

impl GpuModel {
    /// A text about a mode, with its slice named by its share of the GPU: `mig:1g.5gb` is `mig:1/7+1/8`, a seventh of the compute
    /// with an eighth of the memory. The texts of two GPU models are equal if their slices have the same share.
    pub fn by_share(&self, text: &str) -> String {
        each_slice(text, &|name, size| {
            let inside = size.compute.map_or(String::new(), |compute| format!("{}c.", part(compute, self.compute_slices)));
            let known = self.model.and_then(|model| model.profile(name).ok()).and_then(|profile| profile.units());
            let guess = || (f64::from(size.memory_gb) / self.memory_gb * f64::from(self.memory_units)).round() as u32;
            let units = known.unwrap_or_else(guess);
            Some(format!("{inside}{}+{}{}", part(size.slices, self.compute_slices), part(units, self.memory_units), size.extras))
        })
    }

    /// SMs of the slice that a text names, of the GPU's total: `14 of 108 SMs`.
    pub fn sms_of(&self, text: &str) -> Option<String> {
        let model = self.model?;
        let found = std::cell::Cell::new(None);
        each_slice(text, &|name, _| {
            found.set(model.profile(name).ok().and_then(|profile| profile.sms));
            None
        });
        Some(format!("{} of {} SMs", found.get()?, model.sms?))
    }
}

/// A share in lowest terms.
fn part(of: u32, all: u32) -> String {
    let (mut a, mut b) = (of.max(1), all.max(1));
    while b != 0 {
        (a, b) = (b, a % b);
    }
    format!("{}/{}", of / a, all / a)
}

/// Replace every word that looks like a slice, `3g.20gb` or `1c.3g.20gb`, by the result of `say` for the profile and the size.
fn each_slice(text: &str, say: &dyn Fn(&str, Size<'_>) -> Option<String>) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '+';
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(is_part) {
        let (before, from) = rest.split_at(at);
        let end = from.find(|c| !is_part(c)).unwrap_or(from.len());
        let word = &from[..end];
        let slice = Size::parse(word).and_then(|size| {
            let profile = size.compute.map_or(Some(word), |_| word.split_once("c.").map(|(_, profile)| profile));
            say(profile?, size)
        });
        out.push_str(before);
        out.push_str(&slice.unwrap_or_else(|| word.to_string()));
        rest = &from[end..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_card_is_as_its_file_says_and_one_that_no_file_knows_is_like_most() {
        let found = |name: &str, gib: u64| card(name, Some(gib * GIB)).map(|c| (c.compute_slices, c.memory_gb));
        assert_eq!(found("NVIDIA A100-SXM4-80GB", 80), Some((7, 80.0)));
        assert_eq!(found("NVIDIA A30", 24), Some((4, 24.0)));
        assert_eq!(found("NVIDIA H200", 140), Some((7, 141.0)), "as it is sold");
        assert_eq!(found("NVIDIA H800 PCIe", 80), Some((7, 80.0)), "no file has its name");
        assert!(card("cpu", None).is_none());
    }

    #[test]
    fn slices_of_different_cards_meet_by_their_share() {
        let a100 = card("NVIDIA A100-SXM4-40GB", None).unwrap();
        let h100 = card("NVIDIA H100 80GB HBM3", None).unwrap();
        let h200 = card("NVIDIA H200", Some(141 * GIB)).unwrap();
        let unknown = card("NVIDIA H800 PCIe", Some(80 * GIB)).unwrap();
        assert_eq!(a100.by_share("small×7 mig:1g.5gb b32"), "small×7 mig:1/7+1/8 b32");
        assert_eq!(h100.by_share("mig:1g.10gb"), a100.by_share("mig:1g.5gb"));
        assert_eq!(unknown.by_share("mig:1g.10gb"), a100.by_share("mig:1g.5gb"));
        assert_eq!(h200.by_share("7×1g.18gb"), a100.by_share("7×1g.5gb"));
        let gb200 = card("NVIDIA GB200", None).unwrap();
        for (ours, theirs) in [("mig:1g.23gb", "mig:1g.5gb"), ("mig:4g.93gb", "mig:4g.20gb"), ("7×1g.23gb", "7×1g.5gb")] {
            assert_eq!(gb200.by_share(ours), a100.by_share(theirs), "by its memory, where no file has its units");
        }
        assert_eq!(a100.by_share("mig:2×3c.7g.40gb"), "mig:2×3/7c.1/1+1/1");
        assert_eq!(h100.by_share("mig:2×3c.7g.80gb"), a100.by_share("mig:2×3c.7g.40gb"), "compute instances of the whole GPU");
        assert_ne!(h100.by_share("mig:1g.20gb"), h100.by_share("mig:1g.10gb"), "twice the memory is another share");
        let a30 = card("NVIDIA A30", Some(24 * GIB)).unwrap();
        assert_eq!(a30.by_share("2g.12gb+me"), "1/2+1/2+me", "an A30 has four slices");
        assert_eq!(a100.sms_of("7×1g.5gb").as_deref(), Some("14 of 108 SMs"));
        assert_eq!(h100.sms_of("3×2g.20gb").as_deref(), Some("32 of 132 SMs"));
        assert_eq!((a100.sms_of("whole GPU, shared"), unknown.sms_of("1g.10gb")), (None, None));
    }
}
