//! Random rows in the layouts of all generations, written and read back, and torn lines.

use proptest::prelude::*;

use super::super::super::gpm_metrics::PROFILED;
use super::*;

/// The layout of a generation, by dcgmi/DeviceMonitor.cpp at its tags.
#[derive(Debug, Clone, Copy, PartialEq)]
enum DmonLayout {
    /// 4.5 on: left-aligned, the cell of a missing field empty, a first column of 16.
    Four,
    /// 4.0 to 4.4: one of 11.
    EarlyFour,
    /// 2.4 to 3.3: left-aligned after a first column of 10, and packed.
    Three,
    /// Until 2.3: right-aligned, and packed.
    Two,
}

impl DmonLayout {
    const ALL: [DmonLayout; 4] = [DmonLayout::Four, DmonLayout::EarlyFour, DmonLayout::Three, DmonLayout::Two];

    fn is_packed(self) -> bool {
        matches!(self, DmonLayout::Three | DmonLayout::Two)
    }
}

/// A generated cell.
#[derive(Debug, Clone, Copy, PartialEq)]
enum DmonField {
    Value(f64),
    NotAvailable,
    Empty,
}

fn width(p: &Profiled) -> usize {
    if p.is_ratio { 5 } else { 20 }
}

fn cells(layout: DmonLayout, first: &str, columns: &[&Profiled], texts: &[Option<String>]) -> String {
    let mut line = match layout {
        DmonLayout::Four => format!("{first:<16}"),
        DmonLayout::EarlyFour => format!("{first:<11}"),
        DmonLayout::Three => format!("{first:<10}"),
        DmonLayout::Two => first.to_string(),
    };
    let there: Vec<Option<&String>> = texts.iter().map(Option::as_ref).collect();
    let packed: Vec<Option<&String>> = there.iter().copied().filter(Option::is_some).collect();
    for (p, text) in columns.iter().zip(if layout.is_packed() { packed } else { there }) {
        let text = text.map_or("", String::as_str);
        match layout {
            DmonLayout::Two => {
                let gap = if text.len() >= width(p) + 2 { " " } else { "" };
                line += &format!("{gap}{text:>w$}", w = width(p) + 2);
            }
            _ => line += &format!("{text:<w$}", w = width(p) + 8),
        }
    }
    line
}

fn heads(layout: DmonLayout, columns: &[&Profiled]) -> String {
    let tags: Vec<Option<String>> = columns.iter().map(|p| Some(p.tag.to_string())).collect();
    cells(layout, if layout == DmonLayout::Two { "# Entity" } else { "#Entity" }, columns, &tags)
}

fn row(layout: DmonLayout, entity: &str, columns: &[&Profiled], values: &[DmonField]) -> String {
    let text = |(p, cell): (&&Profiled, &DmonField)| match cell {
        DmonField::Value(v) if p.is_ratio => Some(format!("{v:.3}")),
        DmonField::Value(v) => Some(format!("{v:.0}")),
        DmonField::NotAvailable => Some("N/A".to_string()),
        DmonField::Empty => None,
    };
    let texts: Vec<Option<String>> = columns.iter().zip(values).map(text).collect();
    // Until 2.3 the width is that of the group alone, and the number stands behind it.
    let (group, number) = entity.split_once(' ').unwrap_or((entity, ""));
    let first = if layout == DmonLayout::Two { format!("{group:>8} {number}") } else { entity.to_string() };
    cells(layout, &first, columns, &texts)
}

/// Columns in any order, with a cell for each.
fn table() -> impl Strategy<Value = Vec<(usize, DmonField)>> {
    let order = Just((0..PROFILED.len()).collect::<Vec<_>>()).prop_shuffle();
    let kinds = proptest::collection::vec((0u8..4, 0u32..=1000, 0u64..64_000_000_000), PROFILED.len());
    (order, kinds, 1..=PROFILED.len()).prop_map(|(order, kinds, n)| {
        let cell = |(index, (kind, thousandths, bytes)): (&usize, &(u8, u32, u64))| match kind {
            0 => DmonField::Empty,
            1 => DmonField::NotAvailable,
            _ if PROFILED[*index].is_ratio => DmonField::Value(f64::from(*thousandths) / 1000.0),
            _ => DmonField::Value(*bytes as f64),
        };
        order.iter().zip(&kinds).map(|(i, k)| (*i, cell((i, k)))).take(n).collect()
    })
}

fn written(cell: &DmonField) -> Option<f64> {
    match cell {
        // The marks that DCGM has for "blank" are none of a bus's speeds either.
        DmonField::Value(v) if (2_147_483_632.0..=2_147_483_647.0).contains(v) => None,
        DmonField::Value(v) => Some(*v),
        _ => None,
    }
}

/// What is read must be what was written, whatever is blank; if nothing is read, there must be an error.
fn check(layout: DmonLayout, table: &[(usize, DmonField)], entity: u32) {
    let columns: Vec<&Profiled> = table.iter().map(|(i, _)| &PROFILED[*i]).collect();
    let values: Vec<DmonField> = table.iter().map(|(_, c)| *c).collect();
    let mut parser = Parser::default();
    assert_eq!(parser.line(&heads(layout, &columns)), Err(NotARow::Heads));
    let line = row(layout, &format!("GPU-I {entity}"), &columns, &values);
    if layout.is_packed() && values.contains(&DmonField::Empty) {
        assert_eq!(parser.line(&line), Err(NotARow::Short), "{line:?}");
        return;
    }
    let read = parser.line(&line).unwrap_or_else(|why| panic!("{why:?}: {line:?}"));
    assert_eq!((read.level, read.entity, read.values.len()), (Level::GpuInstance, entity, columns.len()));
    for ((profiled, value), (column, cell)) in read.values.iter().zip(columns.iter().zip(&values)) {
        assert_eq!((profiled.tag, *value), (column.tag, written(cell)), "{line:?}");
    }
}

/// A row whose cells are not under their heads gives the values of their own columns, or is refused.
fn check_shifted(layout: DmonLayout, table: &[(usize, DmonField)], by: usize) {
    let columns: Vec<&Profiled> = table.iter().map(|(i, _)| &PROFILED[*i]).collect();
    let values: Vec<DmonField> = table.iter().map(|(_, c)| *c).collect();
    let mut parser = Parser::default();
    let _ = parser.line(&heads(layout, &columns));
    let line = row(layout, "GPU 0", &columns, &values).replacen("GPU 0", &format!("GPU 0{}", " ".repeat(by)), 1);
    let Ok(read) = parser.line(&line) else { return };
    for ((profiled, value), cell) in read.values.iter().zip(&values) {
        assert!(value.is_none() || *value == written(cell), "{}: {value:?} of {cell:?} in {line:?}", profiled.tag);
    }
}

const FOUR: &str = "\
#Entity         GRACT        SMACT        DRAMA        PCITX                       POWER             FBUSD             
ID                                                                                  W                                  
GPU 0           0.412        0.398        0.211        1043234                     141.250           18234             
GPU-I 0         0.803        0.777        0.420        N/A                                           9100              
GPU-CI 0        0.803        0.777        N/A          N/A                                           9100              
";

fn values(row: &Row) -> Vec<(&str, Option<f64>)> {
    row.values.iter().map(|(p, v)| (p.tag, *v)).collect()
}

#[test]
fn a_row_with_an_empty_cell_is_read_by_where_its_values_stand() {
    let mut parser = Parser::default();
    let lines: Vec<_> = FOUR.lines().map(|l| parser.line(l)).collect();
    assert_eq!((&lines[0], &lines[1]), (&Err(NotARow::Heads), &Err(NotARow::Units)));
    let rows: Vec<&Row> = lines[2..].iter().map(|l| l.as_ref().unwrap()).collect();
    let of_gpu = [("GRACT", Some(0.412)), ("SMACT", Some(0.398)), ("DRAMA", Some(0.211)), ("PCITX", Some(1_043_234.0))];
    assert_eq!(values(rows[0]), of_gpu);
    assert_eq!(values(rows[1]), [("GRACT", Some(0.803)), ("SMACT", Some(0.777)), ("DRAMA", Some(0.42)), ("PCITX", None)]);
    assert_eq!((rows[2].level, rows[2].entity, rows[2].values[2].1), (Level::ComputeInstance, 0, None));
}

#[test]
fn the_oldest_layout_stands_to_the_right_and_its_rows_further_than_their_heads() {
    let mut parser = Parser::default();
    for head in ["# Entity  GRACT  TENSO", "      Id              "] {
        assert!(parser.line(head).unwrap_err().is_expected());
    }
    let row = parser.line("     GPU 0  0.000  0.125").unwrap();
    assert_eq!(values(&row), [("GRACT", Some(0.0)), ("TENSO", Some(0.125))]);
    assert_eq!(parser.line("     GPU 0  0.000"), Err(NotARow::Short), "left out, not guessed");
}

#[test]
fn a_row_of_dcgm_3_with_a_value_too_few_is_no_row_for_its_values_have_moved_up() {
    let mut parser = Parser::default();
    let _ = parser.line("#Entity   GRACT        PCITX                       SMACT        ");
    // SMACT of a GPU instance, which has no PCITX, stands under PCITX.
    assert_eq!(parser.line("GPU-I 0   0.803        0.777        "), Err(NotARow::Short));
    let row = parser.line("GPU 0     0.412        1043234                     0.398        ").unwrap();
    assert_eq!(values(&row), [("GRACT", Some(0.412)), ("PCITX", Some(1_043_234.0)), ("SMACT", Some(0.398))]);
    // A number that fills the first column runs into the value behind it.
    assert_eq!(parser.line("GPU-CI 1000.803        1043234                     0.777        "), Err(NotARow::Other));
}

#[test]
fn one_share_above_1_leaves_the_row_as_it_was_said() {
    let mut parser = Parser::default();
    let _ = parser.line("#Entity         GRACT        SMACT        DRAMA        ");
    let row = parser.line("GPU-I 21        0.999        1.294        0.871        ").unwrap();
    assert_eq!(values(&row), [("GRACT", Some(0.999)), ("SMACT", Some(1.294)), ("DRAMA", Some(0.871))]);
}

#[test]
fn columns_are_known_by_their_heads_in_whatever_order() {
    let mut parser = Parser::default();
    let _ = parser.line("#Entity         SMACT        XYZ          GRACT        ");
    let row = parser.line("GPU 3           0.398        77           0.412        ").unwrap();
    assert_eq!((row.entity, values(&row)), (3, vec![("SMACT", Some(0.398)), ("GRACT", Some(0.412))]));
}

#[test]
fn what_is_not_a_row_says_what_it_is() {
    let mut parser = Parser::default();
    assert_eq!(parser.line("GPU 0  0.1"), Err(NotARow::NoHeads));
    let _ = parser.line("#Entity         SMACT        ");
    let not_rows = [
        ("", NotARow::Blank),
        ("   ", NotARow::Blank),
        ("ID  ", NotARow::Units),
        ("dmon was stopped due to receiving a signal", NotARow::Other),
        ("Error setting watches. Result: -29: x", NotARow::Other),
        ("Switch 0        0.398", NotARow::Other),
        ("GPU 0 LINK      0.398", NotARow::Misaligned),
        ("GPU x           0.398", NotARow::Other),
        ("GPU 0           0.3...", NotARow::Garbled),
        ("GPU 0           -0.398", NotARow::Garbled),
        ("GPU 0           nan", NotARow::Garbled),
        ("GPU 0           3.9.8", NotARow::Garbled),
        ("GPU 0           0.398        0.412", NotARow::Misaligned),
    ];
    for (line, why) in not_rows {
        assert_eq!(parser.line(line), Err(why), "{line:?}");
    }
    assert_eq!(parser.line("GPU 0           140737488355328.000").unwrap().values[0].1, None, "the mark for a blank");
}

#[test]
fn the_same_head_twice_is_no_head() {
    let mut parser = Parser::default();
    let _ = parser.line("#Entity         SMACT        SMACT        ");
    assert_eq!(parser.line("GPU 0           0.398        0.412        "), Err(NotARow::NoHeads));
}

proptest! {
    #[test]
    fn a_row_is_read_as_it_was_written_whatever_is_blank(table in table(), entity in 0u32..99) {
        DmonLayout::ALL.iter().for_each(|layout| check(*layout, &table, entity));
    }

    #[test]
    fn a_row_that_is_shifted_never_gives_a_value_of_another_column(table in table(), by in 1usize..=5) {
        DmonLayout::ALL.iter().for_each(|layout| check_shifted(*layout, &table, by));
    }

    #[test]
    fn any_line_at_all_is_read_without_a_panic(lines in proptest::collection::vec("(#Entity|GPU|GPU-I|ID|)[ 0-9A-Z./#é-]{0,80}", 0..6)) {
        let mut parser = Parser::default();
        for line in &lines {
            let _ = parser.line(line);
        }
    }
}

/// Small random numbers, the same ones for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }

    fn table(&mut self) -> Vec<(usize, DmonField)> {
        let mut order: Vec<usize> = (0..PROFILED.len()).collect();
        (1..order.len()).rev().for_each(|i| order.swap(i, self.below(i as u64 + 1) as usize));
        order.truncate(1 + self.below(PROFILED.len() as u64) as usize);
        let mut cell = |index: usize| match self.below(4) {
            0 => DmonField::Empty,
            1 => DmonField::NotAvailable,
            _ if PROFILED[index].is_ratio => DmonField::Value(self.below(1001) as f64 / 1000.0),
            _ => {
                let digits = self.below(11) as u32;
                DmonField::Value(self.below(10_u64.pow(digits).max(2)) as f64)
            }
        };
        order.into_iter().map(|i| (i, cell(i))).collect()
    }

    /// Pieces of `dcgmi` output, in any order.
    fn junk(&mut self) -> String {
        const PIECES: [&str; 24] = [
            "#Entity",
            "# Entity",
            "GPU",
            "GPU-I",
            "GPU-CI",
            " ",
            "   ",
            "0",
            "7",
            "0.5",
            "N/A",
            "SMACT",
            "GRACT",
            "|",
            "->",
            "I",
            "0/1",
            "CI",
            "(EntityID:",
            ")",
            "GPU-5a1c",
            "-1",
            "é",
            "9223372036854775792",
        ];
        (0..self.below(14))
            .map(|_| PIECES[self.below(PIECES.len() as u64) as usize])
            .collect::<Vec<_>>()
            .join([" ", ""][self.below(2) as usize])
    }
}

/// Number of random inputs: `COLLO_TORTURE`, by default 10⁶; each is a row in some layout, a shifted row and junk.
#[test]
#[ignore = "for `just torture`"]
fn fuzz_what_dmon_and_discovery_print() {
    let inputs: u64 = std::env::var("COLLO_TORTURE").ok().and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    println!("seed {seed}");
    let mut dice = Dice(seed);
    let (mut parser, mut rows) = (Parser::default(), 0_u64);
    for _ in 0..inputs {
        let table = dice.table();
        let (entity, by) = (dice.below(99) as u32, 1 + dice.below(5) as usize);
        let layout = DmonLayout::ALL[dice.below(4) as usize];
        check(layout, &table, entity);
        check_shifted(layout, &table, by);
        let junk = dice.junk();
        if let Ok(row) = parser.line(&junk) {
            rows += 1;
            let can_be = |(_, v): &(&Profiled, Option<f64>)| v.is_none_or(|v| v.is_finite() && v >= 0.0);
            assert!(row.values.iter().all(can_be), "{junk:?}");
        }
        super::super::discovery::Hierarchy::parse(&junk);
    }
    println!("{inputs} inputs; {rows} of the junk were rows");
}
