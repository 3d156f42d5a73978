//! Sections about what groups use: memory and what fits, SMs, CPU, PCIe, energy, all of it over time.

pub mod cpu;
pub mod energy;
pub mod energy_by_member;
pub mod feasibility;
pub mod frontier;
pub mod launches;
pub mod memory;
pub mod over_time;
pub mod pcie;
pub mod sm_activity;
pub mod timeline;
