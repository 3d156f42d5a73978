//! What differs between the MPS programs of NVIDIA's drivers.
//!
//! In: the scenario. Out: a [`Dialect`]. 535.309.01, 550.163.01 and 555.58.02 were run without a GPU, and answer as
//! `harness/simgpu/tests/vendor.rs` compares; what their servers log once a GPU is there are format strings of their libcuda. 580 is a
//! capture (bottlerocket-os/bottlerocket-kernel-kit #415), and in all else as 555.

use crate::sim::Sim;

/// The words of one driver's MPS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    /// The major version of the driver.
    driver: u32,
}

impl Dialect {
    /// That of the word `mps`, else of the driver that the machine has.
    pub fn of(sim: &Sim) -> Dialect {
        let named = sim.scenario.value("mps").and_then(|value| value.parse().ok());
        let own = || sim.driver().0.split('.').next().and_then(|major| major.parse().ok());
        Dialect { driver: named.or_else(own).unwrap_or(580) }
    }

    pub fn has_server_status(self) -> bool {
        self.driver >= 550
    }

    pub fn has_pid_file(self) -> bool {
        self.driver >= 550
    }

    /// The one whose pid the line on a server's start is logged under: 550 forks first.
    pub fn starter(self, control: u32, server: u32) -> u32 {
        if self.driver >= 550 { server } else { control }
    }

    /// Why a server of another user cannot be started.
    pub fn insufficient_privileges(self, uid: u32) -> String {
        let reason = " Only the root user may start server for another user.";
        format!("Insufficient privileges for UID {uid}{}", if self.driver >= 550 { format!(".{reason}") } else { String::new() })
    }

    /// What a server prints of itself between its context and its limits.
    pub fn versions(self) -> Vec<String> {
        if self.driver < 580 {
            return Vec::new();
        }
        vec!["CUDA MPS Server for Linux/Unix. Binary version: 13000".into(), format!("Display Driver version: {}", self.driver)]
    }

    /// What a server logs of a client that connects, with the client's number.
    pub fn connected(self, pid: u32, number: u32) -> Vec<String> {
        if self.driver < 580 {
            return vec![
                "Received new client request".into(),
                "Worker created".into(),
                "Creating worker thread".into(),
                format!("Status of client {{{pid}, {number}}} is ACTIVE"),
            ];
        }
        vec![
            format!("Received new client request for {{PID: {pid}, Context ID: {number}}}"),
            format!("Client {{PID: {pid}, Context ID: {number}}} connected"),
        ]
    }
}
