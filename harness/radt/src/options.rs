//! The arguments of a script, as radT passes them, and as a workload's command with settings.

use std::collections::BTreeMap;

use collo_plan::workload::{RECIPE, is_setting_name};
use serde_json::Value as Json;

/// The words after a script: with placeholders, and the values that stand there in one row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScriptOptions {
    pub words: Vec<String>,
    /// Settings with their values as written.
    pub values: Vec<(String, String)>,
}

impl ScriptOptions {
    /// Of `--batch-size 128 --amp`. radT splits at white space and knows no quotes: `sys.argv` in radt/run/run.py. An option with
    /// one value is a setting; what else there is stays as it is.
    pub fn parse(params: &str) -> Result<ScriptOptions, String> {
        let tokens: Vec<&str> = params.split_whitespace().collect();
        let mut found = ScriptOptions::default();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let value = tokens.get(at + 1).filter(|value| !is_option(value));
            let is_alone = tokens.get(at + 2).is_none_or(|next| is_option(next));
            let setting = match (token.split_once('='), value) {
                (Some((name, value)), _) if is_option(token) => {
                    found.setting(name, value).map(|setting| vec![format!("{name}={{{setting}}}")])
                }
                (None, Some(value)) if is_option(token) && is_alone => {
                    found.setting(token, value).map(|setting| vec![token.to_string(), format!("{{{setting}}}")])
                }
                _ => None,
            };
            let words = setting.unwrap_or_else(|| vec![token.to_string()]);
            if words.len() == 1 && words[0] == *token && token.contains('{') {
                return Err(format!("{} in Params would be a placeholder", collo_text::quoted(token)));
            }
            at += words.len();
            found.words.extend(words);
        }
        Ok(found)
    }

    /// Take a value as that of a setting, if there can be such a setting.
    fn setting(&mut self, option: &str, value: &str) -> Option<String> {
        let name = setting_name(option);
        let batch = name != "batch_size" || value.parse::<u32>().is_ok_and(|n| (1..=1_000_000).contains(&n));
        let is_new = self.values.iter().all(|(before, _)| *before != name);
        if !is_setting_name(&name) || name == RECIPE || !batch || !is_new || value.is_empty() {
            return None;
        }
        self.values.push((name.clone(), value.into()));
        Some(name)
    }
}

/// `--batch-size` is `batch_size`.
pub fn setting_name(option: &str) -> String {
    option.trim_start_matches('-').replace('-', "_")
}

/// argparse: an argument that looks like a negative number is a value.
fn is_option(token: &str) -> bool {
    token.len() > 1 && token.starts_with('-') && token.parse::<f64>().is_err()
}

/// The values of a setting with their common type: numbers only if each of them is written as collo would write it.
pub fn typed(values: &[&str]) -> Vec<Json> {
    let numbers: Option<Vec<Json>> = values.iter().map(|value| number(value)).collect();
    let alike = |all: &Vec<Json>| all.iter().all(Json::is_i64) || all.iter().all(Json::is_f64);
    numbers.filter(alike).unwrap_or_else(|| values.iter().map(|value| Json::from(*value)).collect())
}

fn number(text: &str) -> Option<Json> {
    let value: Json = serde_json::from_str(text).ok()?;
    let written = value.to_string();
    (value.is_number() && written == text).then_some(value)
}

/// The options among the words of a command that are followed by no placeholder, by name: flags, and values that are always the same.
pub fn fixed_options(command: &[String]) -> Vec<String> {
    let placed = |word: Option<&String>| word.is_some_and(|word| word.starts_with('{'));
    let fixed = |(at, word): (usize, &String)| is_option(word) && !word.contains('{') && !placed(command.get(at + 1));
    let all = command.iter().enumerate().filter(|(at, word)| fixed((*at, word)));
    all.map(|(_, word)| setting_name(word.split_once('=').map_or(word.as_str(), |(name, _)| name))).collect()
}

/// The settings and flags among the options that radT logged of a run: one without a value is empty, several values are joined by
/// spaces (`update_params_listing` in radt/run/run.py).
pub fn logged(options: &BTreeMap<String, String>) -> (Vec<(String, String)>, Vec<String>) {
    let (values, flags): (Vec<_>, Vec<_>) = options.iter().partition(|(_, value)| !value.trim().is_empty());
    let values = values.into_iter().map(|(name, value)| (setting_name(name), value.trim().to_string())).collect();
    (values, flags.into_iter().map(|(name, _)| setting_name(name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(params: &str) -> (String, Vec<(String, String)>) {
        let found = ScriptOptions::parse(params).unwrap();
        (found.words.join(" "), found.values)
    }

    fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
        all.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    #[test]
    fn an_option_with_one_value_is_a_setting_and_all_else_stays_in_the_command() {
        assert_eq!(
            of("--batch-size 128 --lr=0.1 --amp -w -1"),
            (
                "--batch-size {batch_size} --lr={lr} --amp -w {w}".into(),
                pairs(&[("batch_size", "128"), ("lr", "0.1"), ("w", "-1")])
            )
        );
        assert_eq!(of("data/ --layers 1 2 3 --amp"), ("data/ --layers 1 2 3 --amp".into(), vec![]));
        assert_eq!(
            of("--degree 2 --batch-size auto"),
            ("--degree 2 --batch-size auto".into(), vec![]),
            "no setting has such a name"
        );
        assert_eq!(of("--lr 1 --lr 2"), ("--lr {lr} --lr 2".into(), pairs(&[("lr", "1")])));
        assert_eq!(of(""), (String::new(), vec![]));
        assert!(ScriptOptions::parse("--out {name}").is_ok(), "as a value it is not read again");
        assert!(ScriptOptions::parse("{name} x").is_err());
    }

    #[test]
    fn values_are_numbers_only_if_all_are_and_none_would_be_written_otherwise() {
        assert_eq!(typed(&["1", "32"]), [json!(1), json!(32)]);
        assert_eq!(typed(&["0.1", "0.25"]), [json!(0.1), json!(0.25)]);
        assert_eq!(typed(&["1", "0.5"]), [json!("1"), json!("0.5")]);
        assert_eq!(typed(&["0.10"]), [json!("0.10")]);
        assert_eq!(typed(&["adam"]), [json!("adam")]);
    }

    #[test]
    fn what_a_command_always_has_is_known() {
        let words = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
        assert_eq!(
            fixed_options(&words("python train.py --batch-size {batch_size} --amp --mode=fast --lr={lr} -v")),
            ["amp", "mode", "v"]
        );
    }
}
