//! The control program of the simulated MPS.

use std::process::ExitCode;

fn main() -> ExitCode {
    simgpu::mps::control::main()
}
