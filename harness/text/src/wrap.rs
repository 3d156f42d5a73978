//! Texts in several lines.

/// A text in lines of at most this width, where its words allow it.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    for word in text.split(' ') {
        let fits = all.last().is_some_and(|line| line.is_empty() || line.chars().count() + 1 + word.chars().count() <= width);
        match all.last_mut().filter(|_| fits) {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => *line += &format!(" {word}"),
            None => all.push(word.to_string()),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_is_shown_whole_in_several_wrapped() {
        assert_eq!(wrapped("[1, 2, 3, 4, 5]", 8), ["[1, 2,", "3, 4, 5]"]);
        assert_eq!(wrapped("averylongword", 8), ["averylongword"]);
        assert_eq!(wrapped("", 8), [""]);
    }
}
