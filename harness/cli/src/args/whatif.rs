//! The arguments of `collo whatif`.

use clap::Args;

#[derive(Debug, Args)]
pub struct Whatif {
    /// What to project: `published:hotcloud20`, the case study of that paper
    #[arg(value_name = "NAME")]
    pub name: String,
    /// How many times the jobs are drawn and ordered anew
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub orders: u32,
    /// The seed of the first order; the next ones follow it
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u32,
}
