//! Reading one file of `mig-profiles/`.

use std::ops::Range;
use std::sync::Arc;

use crate::notation::{self, Size};
use collo_text::{Diagnostic, Diagnostics, Source, fields, quoted};

use super::{GpuModel, Layout, Places};
use collo_text::fields::{Fields, Located, Value};

/// Parse a GPU model; its name is the file's.
pub fn parse(name: &str, source: &Arc<Source>) -> Result<GpuModel, Diagnostics> {
    let (fields, mistakes) = fields::read(source, GpuModel::KEYS);
    let mut reader = ModelReader { source, mistakes };
    // A value that was wrong is no longer there, and was reported.
    if reader.mistakes.is_empty() {
        reader.completeness(&fields);
        reader.peaks(&fields);
    }
    let mut card = GpuModel { name: name.into(), ..GpuModel::from_fields(&fields) };
    for peaks in card.peaks.iter_mut().filter(|peaks| peaks.product_names.is_empty()) {
        peaks.product_names.clone_from(&card.product_names);
    }
    let mut names = Vec::new();
    for (profile, table) in card.profiles.iter_mut().map(Arc::make_mut).zip(fields.tables("profiles")) {
        if let Some(slices) = reader.slices(&fields, table, &mut names) {
            (profile.slices, profile.places) = (slices, reader.places(&fields, &profile.name, table));
        }
    }
    reader.mistakes.clone().into_result(())?;
    for (name, span, found) in fields.table("layouts").map(Fields::in_order).unwrap_or_default() {
        let layout = reader.layout(&card, name, span, found);
        card.layouts.extend(layout);
    }
    reader.mistakes.into_result(card)
}

struct ModelReader<'a> {
    source: &'a Arc<Source>,
    mistakes: Diagnostics,
}

impl ModelReader<'_> {
    fn wrong(&mut self, mistake: Diagnostic, span: Range<usize>) {
        self.mistakes.push(mistake.at(self.source, span));
    }

    /// What of MIG is there requires the rest. A GPU without MIG has none of it.
    fn completeness(&mut self, fields: &Fields) {
        let there = ["compute_slices", "profiles", "memory_units", "layouts"].into_iter().find_map(|key| fields.key_span(key));
        let Some(span) = there else { return };
        for needed in ["compute_slices", "profiles"] {
            if fields.found(needed).is_none() {
                let hint = format!(
                    "a GPU without MIG has none of the two, no `memory_units` and no layout; all keys: `{}`",
                    GpuModel::KEYS.help
                );
                self.wrong(Diagnostic::new(format!("`{needed}` is missing")).hint(hint), span.clone());
            }
        }
    }

    /// Each has what predictions need, and is of boards of this file, which have no others.
    fn peaks(&mut self, card: &Fields) {
        let boards: Vec<String> = card.get("product_names");
        let mut with_peaks: Vec<String> = Vec::new();
        for table in card.tables("peaks") {
            let start = table.span.start..table.span.start + 1;
            for needed in ["memory_gb_per_s", "l2_mib", "fp32_tflops"] {
                if table.found(needed).is_none() {
                    self.wrong(Diagnostic::new(format!("`{needed}` is missing in these peaks")), start.clone());
                }
            }
            let span = table.key_span("product_names").unwrap_or(start);
            for name in table.get::<Option<_>>("product_names").unwrap_or_else(|| boards.clone()) {
                if !boards.contains(&name) {
                    let what = Diagnostic::new(format!("{} is none of the file's `product_names`", quoted(&name)));
                    self.wrong(what, span.clone());
                } else if with_peaks.contains(&name) {
                    let what = Diagnostic::new(format!("{} has peaks twice", quoted(&name)));
                    self.wrong(what.note("`product_names` of each names its boards"), span.clone());
                }
                with_peaks.push(name);
            }
        }
    }

    /// The compute slices of a profile.
    fn slices<'f>(&mut self, card: &Fields, table: &'f Fields, names: &mut Vec<&'f str>) -> Option<u32> {
        let Some(found) = table.found("name") else {
            let brace = table.span.start..table.span.start + 1;
            self.wrong(Diagnostic::new("`name` is missing in this profile").note("as in `name = \"3g.20gb\"`"), brace);
            return None;
        };
        let name = found.text()?;
        let Some(size) = Size::parse(name).filter(|size| size.compute.is_none()) else {
            let what = Diagnostic::new(format!("invalid profile name {}", quoted(name)));
            self.wrong(what.note("as in `3g.20gb` or `1g.5gb+me`"), found.span.clone());
            return None;
        };
        if names.contains(&name) {
            self.wrong(Diagnostic::new(format!("duplicate profile `{name}`")).note("leave one out"), found.span.clone());
        }
        names.push(name);
        if let Some(there) = card.get::<Option<u32>>("compute_slices").filter(|there| size.slices > *there) {
            self.wrong(
                Diagnostic::new(format!("`{name}` has {} compute slices, the GPU has {there}", size.slices)),
                found.span.clone(),
            );
        }
        Some(size.slices)
    }

    fn places(&mut self, card: &Fields, name: &str, table: &Fields) -> Option<Places> {
        for (there, missing) in [("starts", "units"), ("units", "starts")] {
            if let Some(span) = table.key_span(there).filter(|_| table.found(missing).is_none()) {
                self.wrong(Diagnostic::new(format!("`{there}` is useless without `{missing}`")), span);
            }
        }
        let (all, units) = (table.list("starts")?, table.get::<Option<u32>>("units")?);
        let Some(there) = card.get::<Option<u32>>("memory_units") else {
            let span = table.key_span("starts").unwrap_or(table.span.clone());
            self.wrong(Diagnostic::new("`starts` are places on a grid").note("add its length: `memory_units = 8`"), span);
            return None;
        };
        for found in all {
            let Value::Whole(start) = found.value else { continue };
            if start + u64::from(units) > u64::from(there) {
                let what = format!("`{name}` from unit {start} occupies {units}, the grid has {there}");
                self.wrong(Diagnostic::new(what), found.span.clone());
            }
        }
        let mut starts: Vec<u32> = table.get("starts");
        starts.sort_unstable();
        starts.dedup();
        Some(Places { starts, units })
    }

    fn layout(&mut self, card: &GpuModel, name: &str, span: &Range<usize>, found: &Located) -> Option<Layout> {
        if !notation::is_layout(name) {
            let what = Diagnostic::new(format!("invalid layout name {}", quoted(name)));
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
            self.wrong(Diagnostic::new(format!("layout `{name}` has no instance")), found.span.clone());
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
