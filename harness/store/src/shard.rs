//! Parts of an experiment measured on several GPUs or machines, and the campaigns that a merged one comes from.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{DeviceRecord, Machine};

/// One of the parts that an experiment was divided into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Shard {
    /// From 1.
    pub index: u32,
    pub count: u32,
}

impl Shard {
    /// Maximum number of shards of an experiment.
    pub const MOST: u32 = 1000;
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let number = |text: &str| text.trim().parse::<u32>().ok().filter(|n| *n > 0);
        let parts = text.split_once('/').and_then(|(index, count)| Some((number(index)?, number(count)?)));
        match parts {
            None => Err("a shard is two numbers from 1, as in `1/4`".into()),
            Some((_, count)) if count > Shard::MOST => Err(format!("{count} shards are more than {}", Shard::MOST)),
            Some((index, count)) if index > count => Err(format!("of {count} shards the last is `{count}/{count}`")),
            Some((index, count)) => Ok(Shard { index, count }),
        }
    }
}

/// A campaign that was merged into another: where and on what a part of the runs was measured. Their blocks tell which.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    pub campaign: String,
    #[serde(default)]
    pub shard: Option<Shard>,
    pub created_utc: String,
    /// Its blocks here, the first and the last.
    pub first_block: u32,
    pub last_block: u32,
    pub device: DeviceRecord,
    pub machine: Machine,
}

impl Origin {
    /// `7f3a: shard 1/2 on NVIDIA A100 (40 GiB) of node7`.
    pub fn text(&self) -> String {
        let shard = self.shard.map(|s| format!("shard {s} on ")).unwrap_or_default();
        format!("{}: {shard}{}", crate::names::last_part(&self.campaign), self.place())
    }

    /// `NVIDIA A100 (40 GiB) of node7`.
    pub fn place(&self) -> String {
        let host = self.machine.hostname.as_ref().map(|h| format!(" of {h}")).unwrap_or_default();
        let gpu = self.gpu_uuid().map(|uuid| format!(", {uuid}")).unwrap_or_default();
        format!("{}{host}{gpu}", self.device.text())
    }

    /// The GPU that was measured on, if there is no doubt which.
    pub fn gpu_uuid(&self) -> Option<&str> {
        self.machine.gpu_of(&self.device).map(|gpu| gpu.uuid.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_one_of_so_many() {
        assert_eq!("2/4".parse(), Ok(Shard { index: 2, count: 4 }));
        assert_eq!(Shard { index: 2, count: 4 }.to_string(), "2/4");
        for wrong in ["", "2", "0/4", "5/4", "a/4", "1/", "-1/2", "1/2/3", "1/2000"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
