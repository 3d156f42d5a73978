//! The options of a training script: `--batch-size=32` or `--batch-size 32`.

use std::collections::BTreeMap;

/// Names with `_`, values as text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options(pub BTreeMap<String, String>);

impl Options {
    pub fn read(words: &[String]) -> Options {
        let mut all = BTreeMap::new();
        let mut words = words.iter().peekable();
        while let Some(word) = words.next() {
            let Some(option) = word.strip_prefix("--") else { continue };
            let (name, value) = match option.split_once('=') {
                Some((name, value)) => (name, value.to_string()),
                None => match words.peek().filter(|next| !next.starts_with("--")) {
                    Some(_) => (option, words.next().cloned().unwrap_or_default()),
                    None => (option, "true".to_string()),
                },
            };
            all.insert(name.replace('-', "_"), value);
        }
        Options(all)
    }

    pub fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_are_read() {
        let words = ["--model=resnet26", "--batch-size", "32", "--compile", "--seed", "-1"].map(str::to_string);
        let options = Options::read(&words);
        assert_eq!(options.0["model"], "resnet26");
        assert_eq!((options.number("batch_size"), options.0["compile"].as_str()), (Some(32), "true"));
        assert_eq!(options.0["seed"], "-1");
    }
}
