//! MIG's notation for sizes and places, parsed in one place: `3g.20gb`, `1c.3g.20gb`, `2×1g.5gb`, `1c+1c.3g.20gb@4`; and shares, which
//! name a size on every GPU model: `3g`, `3/7`.

/// No GPU has more instances; it keeps a number in a text from becoming a long list.
pub const MOST: u32 = 64;

/// Known suffixes after the memory in the name of a profile.
const EXTRAS: [&str; 5] = ["", "+me", "+gfx", "+me.all", "-me"];

/// A size of instance, or of a compute instance inside one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size<'a> {
    /// Compute slices of one compute instance; absent if it has the whole instance.
    pub compute: Option<u32>,
    /// Compute slices of the instance.
    pub slices: u32,
    pub memory_gb: u32,
    /// `+me`, `-me`; empty for a plain one.
    pub extras: &'a str,
}

impl Size<'_> {
    /// `3g.20gb`, `1c.3g.20gb`, `1g.24gb+me.all`.
    pub fn parse(text: &str) -> Option<Size<'_>> {
        let (compute, profile) = match text.split_once("c.") {
            Some((compute, profile)) => (Some(positive(compute)?), profile),
            None => (None, text),
        };
        let (slices, memory) = profile.split_once("g.")?;
        let (memory_gb, extras) = memory.split_once("gb")?;
        let word = |tail: &str| !tail.is_empty() && tail.chars().all(|c| c.is_ascii_lowercase() || c == '.');
        let is_extra = extras.is_empty() || extras.strip_prefix(['+', '-']).is_some_and(word);
        is_extra.then_some(Size { compute, slices: positive(slices)?, memory_gb: number(memory_gb)?, extras })
    }
}

/// A size as a person may write it, in a label or an experiment.
pub fn is_size(text: &str) -> bool {
    Size::parse(text).is_some_and(|size| EXTRAS.contains(&size.extras))
}

/// A share of a GPU's compute, which is another profile on each GPU model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    slices: u32,
    /// `7` of `3/7`; absent in `3g`, which counts compute slices, however many the GPU has.
    of: Option<u32>,
}

impl Share {
    /// `3g`, `3/7`.
    pub fn parse(text: &str) -> Option<Share> {
        let share = match text.split_once('/') {
            Some((slices, of)) => Share { slices: positive(slices)?, of: Some(positive(of)?) },
            None => Share { slices: positive(text.strip_suffix('g')?)?, of: None },
        };
        share.of.is_none_or(|of| share.slices <= of).then_some(share)
    }

    /// Its compute slices on a GPU that has so many; `None` if it is no whole number of them, as a seventh of four.
    pub fn slices_on(self, all: u32) -> Option<u32> {
        let Some(of) = self.of else { return Some(self.slices) };
        let slices = u64::from(self.slices) * u64::from(all);
        slices.is_multiple_of(u64::from(of)).then(|| u32::try_from(slices / u64::from(of)).ok())?
    }

    /// The share of so many of all slices, written in the same way.
    pub fn alike(self, slices: u32, all: u32) -> String {
        if self.of.is_some() { format!("{slices}/{all}") } else { format!("{slices}g") }
    }
}

/// A share as a person may write it, with the prefix of compute instances inside one: `3/7`, `1c.3g`.
pub fn is_share(text: &str) -> bool {
    let (compute, share) = text.split_once("c.").map_or((None, text), |(compute, share)| (Some(compute), share));
    compute.is_none_or(|compute| positive(compute).is_some()) && Share::parse(share).is_some()
}

/// A name for a layout: a letter, then letters, digits and `-`, at most 40.
pub fn is_layout(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.len() <= 40
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// Instances of one profile as written, each part verbatim: validating it is up to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item<'a> {
    /// `2` of `2×3g.20gb`.
    count: Option<Result<u32, &'a str>>,
    /// `1c+1c` of `1c+1c.3g.20gb`.
    compute: Option<&'a str>,
    /// `3g.20gb`
    pub profile: &'a str,
    /// `4` of `3g.20gb@4`.
    start: Option<&'a str>,
}

impl<'a> Item<'a> {
    /// Split a text into its parts; the rest is the profile.
    pub fn of(text: &'a str) -> Item<'a> {
        let (count, rest) = counted(text);
        let (rest, start) = rest.rsplit_once('@').map_or((rest, None), |(rest, start)| (rest, Some(start)));
        let divided = rest.split_once('.').filter(|(compute, _)| compute.ends_with('c'));
        let (compute, profile) = divided.map_or((None, rest), |(compute, profile)| (Some(compute), profile));
        Item { count, compute, profile, start }
    }

    /// The count; the error is the text that is not a valid one.
    pub fn count(&self) -> Result<Option<u32>, &'a str> {
        self.count.transpose()
    }

    /// The slices of each compute instance, if it is divided; the error is the invalid text.
    pub fn compute(&self) -> Result<Option<Vec<u32>>, &'a str> {
        let sizes = |text: &'a str| -> Result<Vec<u32>, &'a str> {
            text.split('+').map(|part| part.strip_suffix('c').and_then(number).ok_or(text)).collect()
        };
        self.compute.map(sizes).transpose()
    }

    /// Its place; the error is a text that is not a place on any GPU.
    pub fn start(&self) -> Result<Option<u32>, &'a str> {
        self.start.map(|text| number(text).filter(|start| *start < MOST).ok_or(text)).transpose()
    }

    /// Whether a place is given.
    pub fn is_placed(&self) -> bool {
        self.start.is_some()
    }
}

/// Split `7×1g.5gb` into its count (or the text that is not a valid one), and the rest.
pub fn counted(text: &str) -> (Option<Result<u32, &str>>, &str) {
    let (digits, rest) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    // Typed input may say `x` for `×`; no profile begins with digits and an `x`.
    match rest.strip_prefix('×').or_else(|| rest.strip_prefix('x').filter(|_| !digits.is_empty())) {
        Some(rest) => (Some(number(digits).filter(|n| (1..=MOST).contains(n)).ok_or(digits)), rest),
        None => (None, text),
    }
}

/// The items between the pluses: `+me` and the like belong to the profile before them, `1c+` to the one after.
pub fn items(text: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    let mut compute = String::new();
    for part in text.split('+').map(str::trim) {
        if part.strip_suffix('c').is_some_and(|n| number(n).is_some()) {
            compute.push_str(part);
            compute.push('+');
        } else if let (false, Some(before)) = (part.starts_with(|c: char| c.is_ascii_digit()), items.last_mut()) {
            before.push('+');
            before.push_str(part);
        } else {
            items.push(std::mem::take(&mut compute) + part);
        }
    }
    if !compute.is_empty() {
        items.push(compute);
    }
    items
}

fn number(text: &str) -> Option<u32> {
    // A sign is none of MIG's.
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}

fn positive(text: &str) -> Option<u32> {
    number(text).filter(|n| *n > 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_size_is_its_numbers() {
        let size = |compute, slices, memory_gb, extras| Some(Size { compute, slices, memory_gb, extras });
        assert_eq!(Size::parse("3g.20gb"), size(None, 3, 20, ""));
        assert_eq!(Size::parse("1c.3g.20gb"), size(Some(1), 3, 20, ""));
        assert_eq!(Size::parse("1g.24gb+me.all"), size(None, 1, 24, "+me.all"));
        assert_eq!(Size::parse("1g.24gb-me"), size(None, 1, 24, "-me"));
        for wrong in
            ["", "3g", "g.20gb", "3g.gb", "0g.5gb", "0c.3g.20gb", "+3g.20gb", "3g.20gb+", "3g.20gb@4", "2×3g.20gb", "big"]
        {
            assert_eq!(Size::parse(wrong), None, "{wrong}");
        }
        assert!(is_size("1g.5gb+gfx") && !is_size("1g.5gb+foo"), "what nobody has seen is a slip");
    }

    #[test]
    fn a_share_is_a_number_of_slices_or_a_fraction_of_those_that_a_gpu_has() {
        let on = |text: &str, all: u32| Share::parse(text).and_then(|share| share.slices_on(all));
        assert_eq!((on("3/7", 7), on("1/7", 4), on("3g", 7), on("3g", 4)), (Some(3), None, Some(3), Some(3)));
        assert_eq!((on("1/2", 4), on("2/4", 4), on("1/2", 7), on("7/7", 4)), (Some(2), Some(2), None, Some(4)));
        for wrong in ["", "g", "0g", "0/7", "8/7", "3/0", "3/", "/7", "3", "+3g", "3g.20gb", "3/7g", "3g@4", "4294967296g"] {
            assert_eq!(Share::parse(wrong), None, "{wrong}");
        }
        assert!(is_share("3c.7g") && is_share("1c.3/7") && !is_share("0c.7g") && !is_share("sevenths") && !is_size("3g"));
        assert_eq!(on("4294967295/4294967295", 7), Some(7));
    }

    #[test]
    fn an_item_is_how_many_of_what_and_where() {
        let item = Item::of("2×1c+2c.3g.20gb@4");
        assert_eq!(
            (item.count(), item.compute(), item.profile, item.start()),
            (Ok(Some(2)), Ok(Some(vec![1, 2])), "3g.20gb", Ok(Some(4)))
        );
        let plain = Item::of("1g.5gb+me");
        assert_eq!((plain.count(), plain.compute(), plain.profile, plain.start()), (Ok(None), Ok(None), "1g.5gb+me", Ok(None)));
        assert_eq!(Item::of("7x1g.5gb").count(), Ok(Some(7)));
        assert_eq!(Item::of("99×1g.5gb").count(), Err("99"));
        assert_eq!(Item::of("×1g.5gb").count(), Err(""));
        assert_eq!(Item::of("1g.5gb@64").start(), Err("64"));
        assert_eq!(Item::of("yc.3g.20gb").compute(), Err("yc"));
    }

    #[test]
    fn pluses_part_instances_and_not_what_belongs_to_one() {
        assert_eq!(items("3g.20gb + 2×2g.10gb"), ["3g.20gb", "2×2g.10gb"]);
        assert_eq!(items("1g.5gb+me+2g.10gb"), ["1g.5gb+me", "2g.10gb"]);
        assert_eq!(items("1c+1c.3g.20gb@4+2g.10gb@0"), ["1c+1c.3g.20gb@4", "2g.10gb@0"]);
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_reading(text in "\\PC{0,40}|[0-9a-z.@+×x-]{0,40}") {
            let _ = (Size::parse(&text), is_size(&text), is_share(&text), is_layout(&text));
            let _ = Share::parse(&text).and_then(|share| share.slices_on(7));
            for part in items(&text) {
                let item = Item::of(&part);
                let _ = (item.count(), item.compute(), item.start());
            }
        }
    }
}
