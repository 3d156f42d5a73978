//! Numbers written as a sum: `"7 * 0.1"`, `"2 * (60 + 5)"`.
//!
//! ```text
//! sum = product *( ( "+" / "-" ) product )      product = factor *( ( "*" / "/" ) factor )
//! factor = number / "-" factor / "(" sum ")"
//! ```
//!
//! Expressions of `--where` compare axes and yield true or false; these have only constants and yield a number.

use std::sync::Arc;

use crate::{Diagnostic, Source, quoted};
use serde_json::Value as Json;

/// Maximum nesting: more would overflow the stack.
const DEEPEST: usize = 50;

/// The result of a sum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sum(f64);

impl Sum {
    pub fn number(self) -> f64 {
        self.0
    }

    /// It, if it is whole and small enough to be exact.
    pub fn whole(self) -> Option<i64> {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        (self.0.fract() == 0.0 && self.0.abs() <= EXACT).then_some(self.0 as i64)
    }

    /// As a setting whose default is this one.
    pub fn like(self, default: &Json) -> Json {
        match self.whole() {
            Some(whole) if !default.is_f64() => whole.into(),
            _ => self.0.into(),
        }
    }
}

/// The result of a text that is a sum; absent if it is something else, such as a word or a number alone.
pub fn sum(text: &str) -> Option<Result<Sum, Diagnostic>> {
    let of_numbers = |c: char| c.is_ascii_digit() || c.is_whitespace() || "+-*/().eE_".contains(c);
    let is_sum = text.chars().all(of_numbers)
        && text.contains(|c: char| c.is_ascii_digit())
        && text.trim_start_matches([' ', '-', '+']).contains(['+', '-', '*', '/', '('])
        && text.parse::<f64>().is_err();
    is_sum.then(|| {
        let source = Source::argument("a number", text);
        let mut reader = SumReader { source: &source, at: 0, depth: 0 };
        let result = reader.sum()?;
        match reader.peek() {
            None if !result.is_finite() => {
                Err(Diagnostic::new(format!("{} is not a finite number", quoted(text))).at(&source, 0..text.len()))
            }
            None => Ok(Sum(rounded(result))),
            Some(_) => Err(reader.expected("`+`, `-`, `*`, `/` or the end")),
        }
    })
}

/// To twelve digits, so that 7 × 0.1 is 0.7.
fn rounded(n: f64) -> f64 {
    format!("{n:.11e}").parse().unwrap_or(n)
}

struct SumReader<'a> {
    source: &'a Arc<Source>,
    at: usize,
    depth: usize,
}

impl SumReader<'_> {
    fn rest(&self) -> &str {
        &self.source.text()[self.at..]
    }

    fn peek(&mut self) -> Option<char> {
        self.at += self.rest().len() - self.rest().trim_start().len();
        self.rest().chars().next()
    }

    fn take(&mut self, sign: char) -> bool {
        let is = self.peek() == Some(sign);
        self.at += usize::from(is);
        is
    }

    fn expected(&mut self, what: &str) -> Diagnostic {
        let length = self.peek().map_or(0, char::len_utf8);
        Diagnostic::new(format!("expected {what}")).at(self.source, self.at..self.at + length)
    }

    fn sum(&mut self) -> Result<f64, Diagnostic> {
        let mut total = self.product()?;
        loop {
            if self.take('+') {
                total += self.product()?;
            } else if self.take('-') {
                total -= self.product()?;
            } else {
                return Ok(total);
            }
        }
    }

    fn product(&mut self) -> Result<f64, Diagnostic> {
        let mut total = self.factor()?;
        loop {
            if self.take('*') {
                total *= self.factor()?;
            } else if self.take('/') {
                let _ = self.peek();
                let start = self.at;
                let divisor = self.factor()?;
                if divisor == 0.0 {
                    return Err(Diagnostic::new("division by zero").at(self.source, start..self.at));
                }
                total /= divisor;
            } else {
                return Ok(total);
            }
        }
    }

    fn factor(&mut self) -> Result<f64, Diagnostic> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(
                Diagnostic::new(format!("more than {DEEPEST} levels of `-` and `(`")).at(self.source, self.at..self.at + 1)
            );
        }
        let value = if self.take('-') {
            -self.factor()?
        } else if self.take('(') {
            let inner = self.sum()?;
            if !self.take(')') {
                return Err(self.expected("`)`"));
            }
            inner
        } else {
            self.number()?
        };
        self.depth -= 1;
        Ok(value)
    }

    fn number(&mut self) -> Result<f64, Diagnostic> {
        if !self.peek().is_some_and(|c| c.is_ascii_digit() || c == '.') {
            return Err(self.expected("a number"));
        }
        let rest = self.rest();
        let mut length = 0;
        for (i, c) in rest.char_indices() {
            let exponent = matches!(rest[..i].chars().last(), Some('e' | 'E')) && matches!(c, '+' | '-');
            if !(c.is_ascii_digit() || "._eE".contains(c) || exponent) {
                break;
            }
            length = i + 1;
        }
        let text = rest[..length].replace('_', "");
        match text.parse::<f64>() {
            Ok(number) => {
                self.at += length;
                Ok(number)
            }
            Err(_) => {
                let what = format!("invalid number {}", quoted(&rest[..length]));
                Err(Diagnostic::new(what).at(self.source, self.at..self.at + length))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(text: &str) -> Option<f64> {
        sum(text).and_then(Result::ok).map(Sum::number)
    }

    #[test]
    fn products_bind_closer_than_sums_and_parentheses_closer_than_both() {
        let table = [
            ("7 * 0.1", 0.7),
            ("2*60", 120.0),
            ("1 + 2 * 3", 7.0),
            ("(1 + 2) * 3", 9.0),
            ("10 - 4 - 3", 3.0),
            ("12 / 4 / 3", 1.0),
            ("-2 * -3", 6.0),
            ("1e-3 * 2", 0.002),
            ("1_000 * 2", 2000.0),
        ];
        for (text, expected) in table {
            assert_eq!(result(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_word_and_a_number_alone_are_no_sum() {
        for text in ["bf16", "5", "-5", "0.5", "1e-3", "", "e", "--", "a + b", "2 * x"] {
            assert!(sum(text).is_none(), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_computed_is_said_with_its_place() {
        let said = |text: &str| sum(text).expect("a sum").expect_err("wrong").title();
        assert_eq!(said("7 *"), "expected a number at column 4 of `a number`");
        assert_eq!(said("(1 + 2"), "expected `)` at column 7 of `a number`");
        assert_eq!(said("1 2 * 3"), "expected `+`, `-`, `*`, `/` or the end, at column 3 of `a number`");
        assert_eq!(said("1 / (2 - 2)"), "division by zero at column 5 of `a number`");
        assert_eq!(said("1.2.3 * 2"), "invalid number `1.2.3` at column 1 of `a number`");
        assert!(said(&format!("{}1", "(".repeat(60))).contains("levels"));
    }

    #[test]
    fn a_setting_gets_the_kind_of_its_default() {
        let like = |text: &str, default: Json| sum(text).expect("a sum").expect("right").like(&default);
        assert_eq!(like("2 * 60", 1.into()), Json::from(120));
        assert_eq!(like("2 * 60", 1.0.into()), Json::from(120.0));
        assert_eq!(like("7 * 0.1", 1.into()), Json::from(0.7));
    }
}
