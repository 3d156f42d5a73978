//! Stands where Python stands: `collo run NAME --python …/sim-train`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    simgpu::train::main(&arguments)
}
