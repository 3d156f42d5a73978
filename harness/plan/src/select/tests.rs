use super::*;
use proptest::prelude::*;
use serde_json::json;

/// `tiny×2 naive b32`, with a setting.
fn axis(name: &str) -> Option<Json> {
    match name {
        "workload" => Some(json!("tiny")),
        "sharing" => Some(json!("naive")),
        "degree" => Some(json!(2)),
        "batch_size" => Some(json!(32)),
        "baseline" => Some(json!(false)),
        "rate" => Some(json!(0.5)),
        "cell" => Some(json!("tiny×2 naive b32")),
        _ => None,
    }
}

fn read(text: &str) -> Result<Expression, Diagnostic> {
    let expression = Expression::parse("--where", text)?;
    expression.check(&["rate".to_string(), "amp".to_string()].into())?;
    Ok(expression)
}

fn holds(text: &str) -> bool {
    read(text).unwrap_or_else(|mistake| panic!("{mistake}")).holds(&axis)
}

fn said(text: &str) -> String {
    read(text).expect_err("it is wrong").to_string()
}

#[test]
fn comparisons_hold_as_they_read() {
    for text in [
        "sharing == \"naive\" && degree <= 2",
        "sharing == 'streams'",
        "degree in [1, 2]",
        "sharing in ['mps', 'naive']",
        "degree > 1 && degree >= 2 && degree < 3 && degree != 4",
        "!(degree == 3) && !baseline",
        "baseline == false",
        "degree == 7 || degree == 2 && workload == 'tiny'",
        "rate == 0.5 && rate > 0.4e0",
        "cell =~ \"^tiny×2 \"",
        "workload < \"z\" && degree == 2.0 && degree > -1",
    ] {
        assert!(holds(text), "{text}");
    }
    for text in
        ["degree == 3", "baseline", "degree in [3]", "(degree == 2 || degree == 3) && workload == 'small'", "cell =~ 'solo'"]
    {
        assert!(!holds(text), "{text}");
    }
}

#[test]
fn an_axis_that_a_cell_has_not_equals_nothing() {
    assert!(!holds("amp == 'bf16'"));
    assert!(holds("amp != 'bf16'"));
    assert!(!holds("amp < 'z' || amp in ['off'] || amp =~ '.' || amp"));
}

#[test]
fn mistakes_are_shown_where_they_are() {
    insta::assert_snapshot!(said("sharing == \"naive\" && degre <= 2"), @r#"
    error: unknown axis `degre` at column 23 of `--where`
       | sharing == "naive" && degre <= 2
       |                       ^^^^^ did you mean `degree`?
    "#);
    insta::assert_snapshot!(said("colour == 2"), @r"
    error: unknown axis `colour` at column 1 of `--where`
       | colour == 2
       | ^^^^^^
    hint: axes are `workload`, `sharing`, `degree`, `batch_size`, `baseline`, `after_measured`, `observe`, `cell`, `amp` and `rate`
    ");
    insta::assert_snapshot!(said("after_measured == 'hold'"), @r"
    error: unknown after_measured `hold` at column 19 of `--where`
       | after_measured == 'hold'
       |                   ^^^^^^ one of `keep-running` or `exit`
    ");
    insta::assert_snapshot!(said("degree = 2"), @"
    error: unexpected `=` at column 8 of `--where`
       | degree = 2
       |        ^ equal is `==`
    ");
    insta::assert_snapshot!(said("sharing == naive"), @r#"
    error: expected a value at column 12 of `--where`
       | sharing == naive
       |            ^^^^^ strings must be quoted: `"naive"`
    "#);
    insta::assert_snapshot!(said("degree <="), @r"
    error: expected a value at column 10 of `--where`
       | degree <=
       |          ^ a number, `true`, `false`, or a quoted string
    ");
    insta::assert_snapshot!(said("degree == \"two\""), @r#"
    error: `degree` is a number at column 11 of `--where`
       | degree == "two"
       |           ^^^^^
    "#);
    insta::assert_snapshot!(said("(degree == 2"), @r"
    error: expected `)` at column 13 of `--where`
       | (degree == 2
       |             ^
    ");
    insta::assert_snapshot!(said("degree == 2 degree == 3"), @r"
    error: expected `&&`, `||` or the end, at column 13 of `--where`
       | degree == 2 degree == 3
       |             ^^^^^^
    ");
    insta::assert_snapshot!(said("sharing == 'naive"), @r"
    error: string without its closing quote at column 12 of `--where`
       | sharing == 'naive
       |            ^^^^^^
    ");
    insta::assert_snapshot!(said("degree == 2x"), @"
    error: invalid number `2x` at column 11 of `--where`
       | degree == 2x
       |           ^^ strings must be quoted
    ");
    insta::assert_snapshot!(said("cell =~ '('"), @r"
    error: invalid regular expression: unclosed group at column 9 of `--where`
       | cell =~ '('
       |         ^^^
    ");
    insta::assert_snapshot!(said(""), @r"
    error: expected an axis, as in `degree <= 2`, at column 1 of `--where`
       | 
       | ^
    ");
}

#[test]
fn deep_nesting_is_refused_and_no_overflow() {
    assert!(said(&"(".repeat(100_000)).contains("more than 100 levels"));
    assert!(said(&"!".repeat(100_000)).contains("more than 100 levels"));
}

proptest! {
    #[test]
    fn no_text_breaks_the_reading_of_expressions(text in "\\PC*|(degree|==|<=|&&|\\|\\||!|\\(|\\)|\\[|\\]|,|in|=~|'[a(]*'|[0-9]{1,3}| ){0,14}") {
        if let Ok(expression) = read(&text) {
            expression.holds(&axis);
        }
    }
}
