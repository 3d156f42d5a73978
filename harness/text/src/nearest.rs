//! The known word nearest to a mistyped one, for `did you mean`.

/// The nearest of the words, if it is near enough to be meant.
pub fn nearest<'a>(typed: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    let most = (typed.chars().count() / 3).clamp(1, 3);
    words
        .into_iter()
        .map(|word| (distance(&typed, &word.to_lowercase()), word))
        .filter(|(d, word)| *d <= most && *d < word.chars().count())
        .min_by_key(|(d, _)| *d)
        .map(|(_, word)| word)
}

/// The only one of the words that has all letters of a shorter one in their order, beginning with the same: `reps` is `repetitions`.
pub fn abbreviated<'a>(typed: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const LEAST: usize = 3;
    let typed = typed.to_lowercase();
    let has_all = |word: &str| {
        let mut letters = word.chars();
        word.chars().next() == typed.chars().next() && typed.chars().all(|letter| letters.any(|other| other == letter))
    };
    let mut found = words.into_iter().filter(|word| typed.chars().count() >= LEAST && has_all(word));
    found.next().filter(|_| found.next().is_none())
}

/// Insertions, deletions, replacements and swaps of neighbours between the beginnings of two words.
fn distance(a: &str, b: &str) -> usize {
    const LONGEST: usize = 100;
    let beginning = |word: &str| word.chars().take(LONGEST).collect::<String>();
    strsim::osa_distance(&beginning(a), &beginning(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abbreviation_is_known_if_only_one_word_has_its_letters() {
        let keys = ["repetitions", "thresholds", "timeout", "tags"];
        assert_eq!(abbreviated("reps", keys), Some("repetitions"));
        assert_eq!(abbreviated("th", keys), None);
        assert_eq!(abbreviated("spe", keys), None, "it begins with another letter");
        assert_eq!(abbreviated("tim", ["time", "timeout"]), None, "two have them");
    }

    #[test]
    fn a_slip_of_the_finger_finds_its_word() {
        let words = ["repetitions", "epochs", "seed", "sharing", "mps"];
        assert_eq!(nearest("repetition", words), Some("repetitions"));
        assert_eq!(nearest("sharign", words), Some("sharing"));
        assert_eq!(nearest("msp", words), Some("mps"));
        assert_eq!(nearest("Seed", words), Some("seed"));
    }

    #[test]
    fn a_different_word_finds_none() {
        assert_eq!(nearest("colour", ["repetitions", "epochs", "seed"]), None);
        assert_eq!(nearest("x", ["y"]), None);
        assert_eq!(nearest("", ["a"]), None);
    }
}
