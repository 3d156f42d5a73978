//! Where the numbers of a forecast come from.

/// Where a number comes from, the most certain first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ForecastSource {
    /// Earlier runs on this device.
    Measured,
    Predicted,
    /// The workload's file.
    Workload,
}

impl ForecastSource {
    pub fn as_str(self) -> &'static str {
        match self {
            ForecastSource::Measured => "measured",
            ForecastSource::Predicted => "predicted",
            ForecastSource::Workload => "workload.toml",
        }
    }

    /// The letter that stands for it in a table.
    pub fn letter(self) -> &'static str {
        match self {
            ForecastSource::Measured => "m",
            ForecastSource::Predicted => "p",
            ForecastSource::Workload => "w",
        }
    }
}
