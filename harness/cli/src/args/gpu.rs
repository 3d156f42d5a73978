//! The arguments of the verbs that are about a machine's GPUs.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Args)]
pub struct Restore {
    /// Only this GPU: its index, its UUID or its PCI id
    #[arg(long, value_name = "GPU")]
    pub gpu: Option<String>,
}

/// What a machine may have to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Need {
    /// An NVIDIA GPU whose driver answers
    Gpu,
    /// Sharing through NVIDIA's Multi-Process Service
    Mps,
    /// The right to cut a GPU into instances
    Mig,
    /// SM activity, from GPM or DCGM
    Smact,
    /// Energy whose counter runs through
    Energy,
}

#[derive(Debug, Args)]
pub struct Doctor {
    /// End with exit code 3 where one of these is missing
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub require: Vec<Need>,
    /// Train for half a minute on each GPU, and say whether its numbers can be believed
    #[arg(long)]
    pub deep: bool,
    /// Write what this machine answers, in about ten minutes, into a file for whoever works on collo
    #[arg(long, conflicts_with_all = ["deep", "require"])]
    pub collect: bool,
    /// With --deep or --collect: only this GPU, by its index, its UUID or its PCI id
    #[arg(long, value_name = "GPU")]
    pub gpu: Option<String>,
    /// With --collect: cut the GPU that is named too, and put it back as it was found
    #[arg(long, requires = "collect")]
    pub mig: bool,
    /// With --collect: the file to write
    #[arg(long, value_name = "FILE", requires = "collect")]
    pub to: Option<PathBuf>,
    /// With --collect: how long the card is looked at under each load
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=60), requires = "collect")]
    pub seconds: u32,
    /// With --deep or --collect: use this Python, which must have torch, instead of the provided one
    #[arg(long, value_name = "PATH", env = "COLLO_PYTHON")]
    pub python: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Mig {
    #[command(subcommand)]
    pub what: MigVerb,
    /// On this GPU: its index, its UUID or its PCI id; several with commas
    #[arg(long, value_name = "GPU", global = true)]
    pub gpu: Option<String>,
    /// What to do with services that have the GPU open when its MIG mode must change; stopping them takes root
    #[arg(long, value_name = "WHAT", default_value = "leave", global = true)]
    pub services: Services,
}

/// What to do with services that have a GPU open when its MIG mode must change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Services {
    /// They run on
    Leave,
    /// nvidia-dcgm, nvsm and dcgm-exporter are stopped for the change, and started again
    Stop,
}

impl From<Services> for collo_measure::services::Services {
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
    /// With the place of every instance; `apply` makes the same again
    Toml,
    /// As NVIDIA's mig-parted reads it, which has no places
    MigParted,
}

/// What to do with the MIG layout of a GPU.
#[derive(Debug, Subcommand)]
pub enum MigVerb {
    /// Print the layout that is there, in the form that `apply` reads
    Export {
        /// In which form
        #[arg(long, value_name = "FORMAT", default_value = "toml")]
        format: Format,
    },
    /// Say whether a GPU is cut so: exit code 0, or 1 where it is not
    Assert {
        /// A layout of `collo list layouts`, a cut such as `3g.20gb+2×2g.10gb`, `off`, or a file: FILE.toml, FILE.yaml:CONFIG
        #[arg(value_name = "LAYOUT")]
        layout: String,
    },
    /// Cut a GPU so; what is so already is left alone
    Apply {
        /// A layout of `collo list layouts`, a cut such as `3g.20gb+2×2g.10gb`, `off`, or a file: FILE.toml, FILE.yaml:CONFIG
        #[arg(value_name = "LAYOUT")]
        layout: String,
    },
    /// Take all instances away and turn MIG off
    Clear,
}

impl MigVerb {
    /// As it is typed.
    pub fn word(&self) -> &'static str {
        match self {
            MigVerb::Export { .. } => "export",
            MigVerb::Assert { .. } => "assert",
            MigVerb::Apply { .. } => "apply",
            MigVerb::Clear => "clear",
        }
    }
}
