use super::*;

fn mine() -> Arc<Source> {
    Source::file("experiments/mine.toml", "schema = 1\n\n\nrepetition = 3\nname = \"ä\"; x\n")
}

#[test]
fn a_mistake_shows_its_line_with_carets_and_the_way_out() {
    let m = Diagnostic::new("unknown key `repetition`").at(&mine(), 13..23).note("did you mean `repetitions`?");
    insta::assert_snapshot!(m, @"
    error: unknown key `repetition` at experiments/mine.toml:4:1
     4 | repetition = 3
       | ^^^^^^^^^^ did you mean `repetitions`?
    ");
}

#[test]
fn what_somebody_else_said_is_one_line_of_ours_at_most() {
    let m = Diagnostic::new("\x1b]0;title\x07").caused_by("one\n✓ 6/6 runs completed\nhint: \u{202e}x").hint("a\nerror: b");
    insta::assert_snapshot!(m, @r"
    error: \x1b]0;title\x07
      caused by: one
        ✓ 6/6 runs completed
        hint: \u{202e}x
    hint: a\x0aerror: b
    ");
}

#[test]
fn what_is_below_something_larger_is_its_first_cause_and_keeps_its_way_out() {
    let inner = Diagnostic::new("a, b").at(&mine(), 13..23).note("do c").caused_by("d").of_machine().hint("e");
    let outer = inner.under("cannot go on").of(ExitClass::Incomplete).resume("collo run x");
    assert_eq!(outer.class().code(), 4);
    insta::assert_snapshot!(outer, @"
    error: cannot go on
      caused by: a, b, at experiments/mine.toml:4:1
         4 | repetition = 3
           | ^^^^^^^^^^ do c
      caused by: d
    hint: e
    resume: collo run x
    ");
    let noted = Diagnostic::new("a").note("do b").hint("or c").under("larger");
    insta::assert_snapshot!(noted, @"
    error: larger
      caused by: a
    hint: do b
    hint: or c
    ");
    insta::assert_snapshot!(noted.only_hint("d"), @"
    error: larger
      caused by: a
    hint: d
    ");
}

#[test]
fn columns_count_characters_and_not_bytes() {
    let offset = mine().text().find("; x").expect("it is there");
    assert!(
        Diagnostic::new("a").at(&mine(), offset..offset + 1).to_string().starts_with("error: a at experiments/mine.toml:5:11\n")
    );
}

#[test]
fn a_way_out_that_does_not_fit_beside_the_carets_follows_as_a_hint() {
    let m = Diagnostic::new("a, b").at(&mine(), 13..23).note("x".repeat(90)).caused_by("the disk is full");
    insta::assert_snapshot!(m, @"
    error: a, b, at experiments/mine.toml:4:1
     4 | repetition = 3
       | ^^^^^^^^^^
      caused by: the disk is full
    hint: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
    ");
}

#[test]
fn a_line_of_a_million_characters_is_shown_around_the_mistake() {
    let text = format!("{}here{}", "a".repeat(500_000), "b".repeat(500_000));
    let shown = Diagnostic::new("x").at(&Source::file("f", text), 500_000..500_004).to_string();
    assert!(shown.lines().all(|l| l.chars().count() <= 100), "{shown}");
    let line = shown.lines().nth(1).expect("the line");
    let carets = shown.lines().nth(2).expect("the carets");
    let at = line.chars().collect::<Vec<_>>().windows(4).position(|w| w == ['h', 'e', 'r', 'e']);
    assert_eq!(at, carets.find('^'));
}

#[test]
fn at_most_ten_are_shown_in_the_order_of_their_places() {
    let mut all = Diagnostics::default();
    (0..12).rev().for_each(|i| all.push(Diagnostic::new(format!("m{i}")).at(&mine(), i..i + 1)));
    let text = all.into_result(()).expect_err("there are mistakes").to_string();
    let titles: Vec<&str> = text.lines().filter(|l| l.starts_with("error")).map(|l| &l[7..9]).collect();
    assert_eq!(titles, ["m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9"]);
    assert!(text.ends_with("hint: 2 more are not shown; fix these first"));
}

#[test]
fn a_span_past_the_end_or_inside_a_character_is_no_panic() {
    for span in [0..usize::MAX, 500..600, 31..32, 32..33, 33..34] {
        Diagnostic::new("x").at(&mine(), span).to_string();
    }
}
