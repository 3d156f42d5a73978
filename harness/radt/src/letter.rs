//! radT's name of a run within its group: the devices, which of several on them, and the collocation, joined by `_`, as in `0_B_MPS`
//! (`start_schedule` in radt/schedule/schedule.py).

use super::Collocation;

/// The parts of a letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    pub devices: String,
    /// `A` for the first; `None` for the only one on its devices.
    pub number: Option<char>,
    pub collocation: Collocation,
}

impl Letter {
    pub fn parse(text: &str) -> Result<Letter, String> {
        let mut parts = text.trim().split('_').peekable();
        let devices = parts.next().unwrap_or_default().trim().to_string();
        let is_number = |part: &str| part.len() == 1 && part.starts_with(|c: char| c.is_ascii_uppercase());
        let number = parts.next_if(|part| is_number(part)).and_then(|part| part.chars().next());
        let collocation = Collocation::parse(&parts.collect::<Vec<_>>().join("_"))?;
        Ok(Letter { devices, number, collocation })
    }

    /// Why letters are not those of one whole group on one GPU.
    pub fn wrong(all: &[Letter]) -> Option<String> {
        let devices: std::collections::BTreeSet<&str> = all.iter().map(|l| l.devices.as_str()).collect();
        if let Some(several) = devices.iter().find(|d| d.contains('+')) {
            return Some(format!("a run on several GPUs, {several}"));
        }
        if devices.len() > 1 {
            let named = devices.into_iter().collect::<Vec<_>>().join(" and ");
            return Some(format!("a group on several GPUs, {named}: collo measures those that share one"));
        }
        let mut numbers: Vec<Option<char>> = all.iter().map(|l| l.number).collect();
        numbers.sort_unstable();
        let whole: Vec<Option<char>> = if all.len() == 1 { vec![None] } else { ('A'..='Z').take(all.len()).map(Some).collect() };
        if numbers != whole {
            let said = numbers.iter().map(|n| n.map_or("none".into(), |c| c.to_string())).collect::<Vec<_>>().join(", ");
            return Some(format!("others of its group are not here: of its letters only {said}"));
        }
        Collocation::together(&all.iter().map(|l| l.collocation.clone()).collect::<Vec<_>>())
            .is_none()
            .then(|| "its runs are collocated in different ways".to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_names_devices_number_and_collocation() {
        let of = |text: &str| Letter::parse(text).map(|l| (l.devices, l.number, l.collocation));
        assert_eq!(of("0"), Ok(("0".into(), None, Collocation::Naive)));
        assert_eq!(of("0_B"), Ok(("0".into(), Some('B'), Collocation::Naive)));
        assert_eq!(of("0_MPS"), Ok(("0".into(), None, Collocation::Mps)));
        assert_eq!(of("2_A_3g.20gb"), Ok(("2".into(), Some('A'), Collocation::Mig("3g.20gb".into()))));
        assert!(of("0_B_what").is_err());
    }

    #[test]
    fn letters_tell_whether_a_group_is_whole_and_on_one_gpu() {
        let wrong = |letters: &[&str]| Letter::wrong(&letters.iter().map(|l| Letter::parse(l).unwrap()).collect::<Vec<_>>());
        assert_eq!((wrong(&["0"]), wrong(&["0_B_MPS", "0_A_MPS"]), wrong(&["2_A_1g.5gb", "2_B_3g.20gb"])), (None, None, None));
        insta::assert_snapshot!(wrong(&["0_A"]).unwrap(), @"others of its group are not here: of its letters only A");
        insta::assert_snapshot!(wrong(&["0_B", "0_C"]).unwrap(), @"others of its group are not here: of its letters only B, C");
        insta::assert_snapshot!(wrong(&["0", "1"]).unwrap(), @"a group on several GPUs, 0 and 1: collo measures those that share one");
        insta::assert_snapshot!(wrong(&["0+1"]).unwrap(), @"a run on several GPUs, 0+1");
        insta::assert_snapshot!(wrong(&["0_A", "0_B_MPS"]).unwrap(), @"its runs are collocated in different ways");
    }
}
