//! The arguments of the verbs that are about a machine's GPUs.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::complete;

#[derive(Debug, Args)]
pub struct Restore {
    /// Only this GPU: its index, its UUID or its PCI id
    #[arg(long, value_name = "GPU", add = complete::gpus())]
    pub gpu: Option<String>,
}

/// What a machine may have to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Need {
    /// An NVIDIA GPU whose driver answers
    Gpu,
    /// Sharing through NVIDIA's Multi-Process Service
    Mps,
    /// Permission to partition a GPU
    Mig,
    /// SM activity, from GPM or DCGM
    Smact,
    /// An energy counter that is not interrupted
    Energy,
}

#[derive(Debug, Args)]
pub struct Doctor {
    /// Exit with code 3 if one of these is missing
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub require: Vec<Need>,
    /// Train for half a minute on each GPU, and check that its readings are plausible
    #[arg(long)]
    pub deep: bool,
    /// Collect this machine's answers in a file for the developers of collo (about ten minutes)
    #[arg(long, conflicts_with_all = ["deep", "require"])]
    pub collect: bool,
    /// With --deep or --collect: only this GPU, by its index, its UUID or its PCI id
    #[arg(long, value_name = "GPU", add = complete::gpus())]
    pub gpu: Option<String>,
    /// With --collect: also partition the selected GPU, and restore it afterwards
    #[arg(long, requires = "collect")]
    pub mig: bool,
    /// With --collect: the file to write
    #[arg(long, value_name = "FILE", requires = "collect")]
    pub to: Option<PathBuf>,
    /// With --collect: how long the GPU is observed under each load
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=60), requires = "collect")]
    pub seconds: u32,
    /// Check this Python, which must have torch; with --deep or --collect use it instead of the provided one
    #[arg(long, value_name = "PATH", env = "COLLO_PYTHON")]
    pub python: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Mig {
    #[command(subcommand)]
    pub what: MigVerb,
    /// On this GPU: its index, its UUID or its PCI id; several with commas
    #[arg(long, value_name = "GPU", global = true, add = complete::gpus())]
    pub gpu: Option<String>,
    /// What to do with services that have the GPU open when its MIG mode must change; stopping them needs root
    #[arg(long, value_name = "WHAT", default_value = "leave", global = true)]
    pub services: Services,
}

/// What to do with services that have a GPU open when its MIG mode must change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Services {
    /// Leave them running
    Leave,
    /// Stop nvidia-dcgm, nvsm and dcgm-exporter for the change, then start them again
    Stop,
}

impl From<Services> for collo_device::services::Services {
    fn from(services: Services) -> Self {
        match services {
            Services::Leave => Self::Leave,
            Services::Stop => Self::Stop,
        }
    }
}

/// How a layout is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// With the placement of every instance; `apply` reproduces it exactly
    Toml,
    /// As NVIDIA's mig-parted reads it, without placements
    MigParted,
}

/// What to do with the MIG layout of a GPU.
#[derive(Debug, Subcommand)]
pub enum MigVerb {
    /// Print the current layout, in the form that `apply` reads
    Export {
        /// Output format
        #[arg(long, value_name = "FORMAT", default_value = "toml")]
        format: Format,
    },
    /// Check that a GPU has this layout (exit code 1 if not)
    Assert {
        /// A layout of `collo list layouts`, instances such as `3g.20gb+2×2g.10gb`, `off`, or a file: FILE.toml, FILE.yaml:CONFIG
        #[arg(value_name = "LAYOUT")]
        layout: String,
    },
    /// Apply a layout; instances that match are kept
    Apply {
        /// A layout of `collo list layouts`, instances such as `3g.20gb+2×2g.10gb`, `off`, or a file: FILE.toml, FILE.yaml:CONFIG
        #[arg(value_name = "LAYOUT")]
        layout: String,
    },
    /// Destroy all instances and disable MIG
    Clear,
}

impl MigVerb {
    /// As it is typed.
    pub fn as_str(&self) -> &'static str {
        match self {
            MigVerb::Export { .. } => "export",
            MigVerb::Assert { .. } => "assert",
            MigVerb::Apply { .. } => "apply",
            MigVerb::Clear => "clear",
        }
    }
}
