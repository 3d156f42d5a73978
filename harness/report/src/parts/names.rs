//! Names of cells as people read them: settings that all cells have in common are written once, and left out of the names.

/// The settings at the end of all these names, each with the space before it; empty if they have none in common.
pub fn common_settings<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<Vec<&str>> = names.map(|name| name.split(' ').rev().collect()).collect();
    let Some(first) = names.first() else { return String::new() };
    let is_common = |(at, word): &(usize, &&str)| word.contains('=') && names.iter().all(|words| words.get(*at) == Some(*word));
    let words: Vec<&str> = first.iter().enumerate().take_while(is_common).map(|(_, word)| *word).collect();
    words.iter().rev().map(|word| format!(" {word}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_all_cells_have_are_common_and_others_are_not() {
        let of = |names: &[&str]| common_settings(names.iter().copied());
        assert_eq!(of(&["small solo b32 recipe=timm", "small×7 mps b32 recipe=timm"]), " recipe=timm");
        assert_eq!(of(&["a solo lr=1 x=2", "a×2 naive lr=1 x=2"]), " lr=1 x=2");
        assert_eq!(of(&["a solo lr=1 x=2", "a×2 naive lr=2 x=2"]), " x=2");
        assert_eq!(of(&["a solo lr=1", "a×2 naive"]), "");
        assert_eq!(of(&["a solo b32", "a×2 naive b32"]), "", "a batch size is a part of the name");
        assert_eq!(of(&[]), "");
    }
}
