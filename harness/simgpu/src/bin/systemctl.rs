//! The simulated `systemctl`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    simgpu::services::main(&arguments)
}
