//! The sources of GPU metrics, and which of them an experiment reads.

/// A source of GPU metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MetricSource {
    Gpm,
    Dcgm,
    Nvml,
}

impl MetricSource {
    /// Its name in the column `source` of samples.
    pub fn as_str(self) -> &'static str {
        match self {
            MetricSource::Gpm => "gpm",
            MetricSource::Dcgm => "dcgm",
            MetricSource::Nvml => "nvml",
        }
    }
}

/// The sources for a profiler's metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SourceChoice {
    /// The only one to read. `None`: for each metric of each entity the first that answers, of GPM, DCGM and (PCIe alone) NVML.
    pub sm: Option<MetricSource>,
    /// Read and store GPM and DCGM side by side, to compare them. `sm` is ignored then.
    pub both: bool,
    /// Have DCGM read the FP64 and FP16 pipes too, where it alternates between them and SM activity.
    pub pipes: bool,
}

impl SourceChoice {
    /// The words that choose sources.
    pub const WORDS: [&str; 6] = ["auto", "gpm", "dcgm", "dcgm-pipes", "both", "nvml"];

    /// Those that an experiment may name: NVML alone has no SM activity.
    pub const OF_EXPERIMENTS: &[&str] = SourceChoice::WORDS.split_at(5).0;

    /// The choice that a word of [`SourceChoice::WORDS`] stands for.
    pub fn named(word: &str) -> Option<SourceChoice> {
        let only = |source| Some(SourceChoice { sm: Some(source), ..SourceChoice::default() });
        match word {
            "auto" => Some(SourceChoice::default()),
            "gpm" => only(MetricSource::Gpm),
            "dcgm" => only(MetricSource::Dcgm),
            "dcgm-pipes" => only(MetricSource::Dcgm).map(|choice| SourceChoice { pipes: true, ..choice }),
            "nvml" => only(MetricSource::Nvml),
            "both" => Some(SourceChoice { both: true, ..SourceChoice::default() }),
            _ => None,
        }
    }

    /// Whether GPM is to be read.
    pub fn gpm(self) -> bool {
        self.both || matches!(self.sm, None | Some(MetricSource::Gpm))
    }

    /// Whether DCGM is to be read.
    pub fn dcgm(self) -> bool {
        self.both || matches!(self.sm, None | Some(MetricSource::Dcgm))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_is_chosen_is_the_only_one_that_is_started() {
        let started = |word| SourceChoice::named(word).map(|c| (c.gpm(), c.dcgm()));
        let expected = [(true, true), (true, false), (false, true), (false, true), (true, true), (false, false)].map(Some);
        assert_eq!(SourceChoice::WORDS.map(started), expected);
        assert_eq!(started("smi"), None);
    }
}
