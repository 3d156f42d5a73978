//! collo is killed at random instants while it holds a simulated card that it cut or put an MPS daemon on: the card goes back to how
//! it was found, nothing is left running, nothing stored is harmed, and the campaign ends whole. `just torture` does it a hundred times.

pub mod kills;

#[test]
fn killed_while_it_cuts_and_serves_collo_leaves_a_card_that_the_next_one_puts_right() {
    kills::kills("a100-40gb", 3, 11);
}

#[test]
fn killed_while_services_are_stopped_collo_leaves_what_the_next_one_starts_again() {
    kills::kills_beside_services("a100-40gb,services,power-limit=300,application-clocks=1095", 4, 13);
}

#[test]
fn instances_that_an_administrator_made_come_back_after_a_kill() {
    kills::kills("a100-40gb,mig=2×3g.20gb", 3, 12);
}
