//! The simulated `dcgmi`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    simgpu::dcgm::main(&arguments)
}
