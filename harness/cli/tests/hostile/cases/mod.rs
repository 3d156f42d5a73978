//! The catalogue, a file for each subject.

use crate::hostile::case::Case;

pub mod cards;
mod company;
mod in_place;
mod limits;
mod members;
mod preparing;
mod signals;
mod stores;
mod stray;
mod surroundings;
mod texts;
mod users;

pub fn all() -> Vec<Case> {
    let subjects = [
        members::cases,
        preparing::cases,
        texts::cases,
        stray::cases,
        in_place::cases,
        stores::cases,
        surroundings::cases,
        limits::cases,
        signals::cases,
        company::cases,
        users::cases,
        cards::cases,
    ];
    subjects.into_iter().flat_map(|cases| cases()).collect()
}
