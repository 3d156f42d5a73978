//! The books under every policy: what holds whatever happens, and that a policy does what its name says.

mod body;
mod case;
mod invariants;
mod policies;
mod stories;
