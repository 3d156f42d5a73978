//! Text as LaTeX. Every label is escaped: none of it is a command.

use std::fmt::Write;

/// Escape text; a pair of backticks is set as code. A character without a LaTeX glyph of its own is written by code point.
pub fn escape(text: &str) -> String {
    let mut out = String::new();
    let (in_pairs, mut is_code) = (text.matches('`').count().is_multiple_of(2), false);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\textbackslash{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '<' => out.push_str("\\textless{}"),
            '>' => out.push_str("\\textgreater{}"),
            '|' => out.push_str("\\textbar{}"),
            // Quotes of the encoding that is there without a package.
            '"' => out.push_str("{''}"),
            '`' if in_pairs => {
                out.push_str(if is_code { "}" } else { "\\texttt{" });
                is_code = !is_code;
            }
            '`' => out.push_str("{`}"),
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => {
                out.push('\\');
                out.push(c);
            }
            // Two hyphens are a dash to TeX, and a bracket after a row's end its argument.
            '-' if out.ends_with('-') => out.push_str("{}-"),
            '[' | ']' => {
                let _ = write!(out, "{{{c}}}");
            }
            '×' | '✕' => out.push_str("$\\times$"),
            '↑' => out.push_str("$\\uparrow$"),
            '·' => out.push_str("$\\cdot$"),
            '÷' => out.push_str("$\\div$"),
            '±' => out.push_str("$\\pm$"),
            'Σ' => out.push_str("$\\Sigma$"),
            'µ' | 'μ' => out.push_str("$\\mu$"),
            '≤' => out.push_str("$\\leq$"),
            '≥' => out.push_str("$\\geq$"),
            '°' => out.push_str("$^{\\circ}$"),
            '–' => out.push_str("--"),
            '—' => out.push_str("---"),
            '…' => out.push_str("\\ldots{}"),
            c if c.is_control() || c.is_whitespace() => out.push(' '),
            c if c.is_ascii() => out.push(c),
            // Latin letters with their accents; the others of that range need another encoding.
            'À'..='ÿ' if !"ÐÞðþ".contains(c) => out.push(c),
            c => {
                let _ = write!(out, "U+{:04X}", c as u32);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_cannot_become_a_command() {
        assert_eq!(
            escape("\\input{x} 50 % $a_1$ #&~^"),
            "\\textbackslash{}input\\{x\\} 50 \\% \\$a\\_1\\$ \\#\\&\\textasciitilde{}\\textasciicircum{}"
        );
        assert_eq!(escape("tiny×2 mps:25,25"), "tiny$\\times$2 mps:25,25");
        assert_eq!(escape("a\r\nb 中 é"), "a  b U+4E2D é");
        assert_eq!(escape("[2cm] a-b ---"), "{[}2cm{]} a-b -{}-{}-");
        assert_eq!(escape("\"`ð"), "{''}{`}U+00F0");
        assert_eq!(escape("by `limit_batches`"), "by \\texttt{limit\\_batches}");
    }
}
