//! Exit codes.

use std::process::ExitCode;

use collo_text::ExitClass;

/// Everything planned is accounted for.
pub const DONE: u8 = 0;
/// A run failed, or the answer is no.
pub const FAILED: u8 = ExitClass::Failed.code();
/// The command line or the experiment is wrong; nothing was touched.
pub const USAGE: u8 = ExitClass::Usage.code();
/// This machine cannot; nothing was touched.
pub const MACHINE: u8 = ExitClass::Machine.code();
/// Incomplete and resumable.
pub const INCOMPLETE: u8 = ExitClass::Incomplete.code();
/// Ctrl-C; otherwise as incomplete.
pub const INTERRUPTED: u8 = ExitClass::Interrupted.code();

/// The code as the process returns it.
pub fn code(code: u8) -> ExitCode {
    ExitCode::from(code)
}
