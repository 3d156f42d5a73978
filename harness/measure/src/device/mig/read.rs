//! Reading one file of `mig-profiles/`.

use std::ops::Range;
use std::sync::Arc;

use super::{Card, Engines, Layout, Places, Profile, keys};
use crate::fields::{self, Fields, Found, Value};
use crate::mistake::{Mistake, Mistakes, Source, quoted};

/// The card that a text describes; its name is the file's.
pub fn parse(name: &str, source: &Arc<Source>) -> Result<Card, Mistakes> {
    let (fields, mistakes) = fields::read(source, &keys::CARD);
    let mut reader = Reader { source, mistakes };
    for needed in ["compute_slices", "profiles"] {
        // A value that was wrong is no longer there, and was said.
        if fields.found(needed).is_none() && reader.mistakes.is_empty() {
            reader.mistakes.push(
                Mistake::new(format!("`{needed}` is missing in {}", source.name()))
                    .hint(format!("all keys: `{}`", keys::CARD.help)),
            );
        }
    }
    let mut card = Card {
        name: name.to_string(),
        description: fields.text("description").map(str::to_string),
        product_names: fields.texts("product_names").unwrap_or_default(),
        pci_devices: fields.texts("pci_devices").unwrap_or_default(),
        memory_gb: fields.whole_u32("memory_gb"),
        sms: fields.whole_u32("sms"),
        compute_slices: fields.whole_u32("compute_slices").unwrap_or(0),
        memory_units: fields.whole_u32("memory_units"),
        profiles: Vec::new(),
        layouts: Vec::new(),
    };
    for table in fields.tables("profiles") {
        if let Some(profile) = reader.profile(&card, table) {
            card.profiles.push(Arc::new(profile));
        }
    }
    // With a wrong profile nothing can be said of the layouts.
    if reader.mistakes.is_empty() {
        for (name, span, found) in fields.table("layouts").map(Fields::in_order).unwrap_or_default() {
            if let Some(layout) = reader.layout(&card, name, span, found) {
                card.layouts.push(layout);
            }
        }
    }
    reader.mistakes.into_result(card)
}

struct Reader<'a> {
    source: &'a Arc<Source>,
    mistakes: Mistakes,
}

impl Reader<'_> {
    fn wrong(&mut self, mistake: Mistake, span: Range<usize>) {
        self.mistakes.push(mistake.at(self.source, span));
    }

    fn profile(&mut self, card: &Card, table: &Fields) -> Option<Profile> {
        let Some(found) = table.found("name") else {
            let brace = table.span.start..table.span.start + 1;
            self.wrong(Mistake::new("`name` is missing in this profile").note("as in `name = \"3g.20gb\"`"), brace);
            return None;
        };
        let name = found.text()?;
        let Some(slices) = slices(name) else {
            let what = Mistake::new(format!("{} is not a name for a profile", quoted(name)));
            self.wrong(what.note("as in `3g.20gb` or `1g.5gb+me`"), found.span.clone());
            return None;
        };
        if card.profiles.iter().any(|p| p.name == name) {
            self.wrong(Mistake::new(format!("`{name}` is here twice")).note("leave one out"), found.span.clone());
        }
        if slices > card.compute_slices && card.compute_slices > 0 {
            let what = format!("`{name}` has {slices} compute slices and the card {}", card.compute_slices);
            self.wrong(Mistake::new(what), found.span.clone());
        }
        let engines = table.table("engines");
        let engine = |name: &str| engines.and_then(|e| e.whole_u32(name));
        Some(Profile {
            name: name.to_string(),
            slices,
            id: table.whole_u32("id"),
            most: table.whole_u32("most"),
            memory_gib: table.number("memory_gib"),
            sms: table.whole_u32("sms"),
            engines: Engines {
                copy: engine("copy"),
                decode: engine("decode"),
                encode: engine("encode"),
                jpeg: engine("jpeg"),
                ofa: engine("ofa"),
            },
            places: self.places(card, name, table),
        })
    }

    fn places(&mut self, card: &Card, name: &str, table: &Fields) -> Option<Places> {
        let (starts, units) = (table.list("starts"), table.whole_u32("units"));
        for (there, missing) in [("starts", "units"), ("units", "starts")] {
            if let Some(span) = table.key_span(there).filter(|_| table.found(missing).is_none()) {
                self.wrong(Mistake::new(format!("`{there}` is of no use without `{missing}`")), span);
            }
        }
        let (starts, units) = (starts?, units?);
        let Some(there) = card.memory_units else {
            let span = table.key_span("starts").unwrap_or(table.span.clone());
            self.wrong(Mistake::new("`starts` are places on a grid").note("say its length: `memory_units = 8`"), span);
            return None;
        };
        let mut places = Places { starts: Vec::new(), units };
        for found in starts {
            let Value::Whole(start) = found.value else { continue };
            if start + u64::from(units) > u64::from(there) {
                let what = format!("`{name}` from unit {start} on takes {units} and the grid has {there}");
                self.wrong(Mistake::new(what), found.span.clone());
                continue;
            }
            places.starts.extend(u32::try_from(start));
        }
        places.starts.sort_unstable();
        places.starts.dedup();
        Some(places)
    }

    fn layout(&mut self, card: &Card, name: &str, span: &Range<usize>, found: &Found) -> Option<Layout> {
        if !is_layout_name(name) {
            let what = Mistake::new(format!("{} is not a name for a layout", quoted(name)));
            self.wrong(what.note("a letter, then letters, digits and `-`, at most 40"), span.clone());
        }
        let Value::List(items) = &found.value else { return None };
        let mut wanted = Vec::new();
        for item in items {
            match card.profile(item.text()?) {
                Ok(profile) => wanted.push(Arc::clone(profile)),
                Err(unknown) => self.wrong(unknown, item.span.clone()),
            }
        }
        if items.is_empty() {
            self.wrong(Mistake::new(format!("layout `{name}` has no instance")), found.span.clone());
        }
        if wanted.len() < items.len() {
            return None;
        }
        match card.place(&wanted, &[]) {
            Ok(instances) => Some(Layout { name: name.to_string(), instances }),
            Err(mistake) => {
                self.wrong(mistake, found.span.clone());
                None
            }
        }
    }
}

/// `3g.20gb`, `1g.24gb+me.all`, `1g.24gb-me`: the number before the `g`.
pub(super) fn slices(name: &str) -> Option<u32> {
    let (slices, rest) = name.split_once("g.")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit())?;
    let extras = rest[digits..].strip_prefix("gb")?;
    let tail = extras.strip_prefix(['+', '-']);
    let is_extra = |tail: &str| !tail.is_empty() && tail.chars().all(|c| c.is_ascii_lowercase() || c == '.');
    let right = digits > 0 && (extras.is_empty() || tail.is_some_and(is_extra));
    slices.parse().ok().filter(|n| *n > 0 && right && slices.chars().all(|c| c.is_ascii_digit()))
}

/// As `mig:NAME` of an experiment can say it.
fn is_layout_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.len() <= 40
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}
