//! Why instances do not fit a GPU, and what would: in words that a person can act on.

use std::sync::Arc;

use collo_text::Diagnostic;

use super::place::Limit;
use super::{GpuModel, Instance, Profile};

impl GpuModel {
    pub(super) fn why(&self, wanted: &[Arc<Profile>], beside: &[Instance]) -> Diagnostic {
        let wanted = self.largest_first(wanted);
        let there: Vec<String> = beside.iter().map(|i| format!("`{i}`")).collect();
        let there = if there.is_empty() { String::new() } else { format!(" next to {}", there.join(" and ")) };
        let limit = self.limit(&wanted, beside);
        if limit == Some(Limit::Unplaced) {
            return self.unplaced(&format!("`{}`", summed(&wanted)));
        }
        let (kept, left_out) = self.kept(&wanted, beside);
        let cause = match limit {
            Some(limit) => self.to_text(&limit),
            None => left_out.first().map(no_place).unwrap_or_default(),
        };
        let mistake = Diagnostic::new(format!("`{}` does not fit {}{there}", summed(&wanted), self.name)).caused_by(cause);
        if !beside.is_empty() && self.room(&wanted, &[]).is_some() {
            return mistake.hint(format!("{} has room for it if nothing else is there", self.name));
        }
        let would = self.would_fit(&wanted, &kept, &left_out, beside);
        if would.is_empty() { mistake } else { mistake.hint(format!("{} would fit", would.join(" or "))) }
    }

    /// Whether they fit is unknown, and so not an impossibility.
    pub fn unplaced(&self, what: &str) -> Diagnostic {
        let file = format!("mig-profiles/{}.toml", self.name);
        Diagnostic::new(format!("whether {what} can be placed on {} is not known", self.name))
            .caused_by(format!("{file} has no places of instances, which the driver reports once MIG is on"))
            .hint(format!(
                "`sudo collo mig apply on`, then plan again; or add `memory_units`, `starts` and `units`, as `nvidia-smi mig -lgipp` \
                 prints them, to {file}"
            ))
    }

    fn to_text(&self, limit: &Limit) -> String {
        let card = &self.name;
        match limit {
            Limit::Unplaced => format!("where instances of {card} may lie is not known"),
            Limit::Most { profile, most } => {
                let times = if *most == 1 { "once".to_string() } else { format!("{most} times") };
                format!("`{}` can be created at most {times} on {card}", profile.name)
            }
            Limit::Slices { wanted, there } => format!("together they need {wanted} compute slices, {card} has {there}"),
            Limit::Engines { name, wanted, there } => format!("together they need {wanted} {name} engines, {card} has {there}"),
            Limit::Units { wanted, there } => format!("together they need {wanted} memory units, {card} has {there}"),
        }
    }

    /// As many of them as fit, the largest first, and those left without a place.
    fn kept(&self, wanted: &[Arc<Profile>], beside: &[Instance]) -> (Vec<Arc<Profile>>, Vec<Arc<Profile>>) {
        let (mut kept, mut left_out) = (Vec::new(), Vec::new());
        for profile in wanted {
            kept.push(Arc::clone(profile));
            if self.room(&kept, beside).is_none() {
                left_out.extend(kept.pop());
            }
        }
        (kept, left_out)
    }

    /// For equal ones as many smaller ones; if one has no place, the others and a smaller one; else those that fit.
    fn would_fit(
        &self,
        wanted: &[Arc<Profile>],
        kept: &[Arc<Profile>],
        left_out: &[Arc<Profile>],
        beside: &[Instance],
    ) -> Vec<String> {
        let mut would = Vec::new();
        let mut add = |profiles: &[Arc<Profile>]| {
            let text = format!("`{}`", summed(profiles));
            if !profiles.is_empty() && !would.contains(&text) {
                would.push(text);
            }
        };
        let uniform = wanted.windows(2).all(|pair| pair[0].name == pair[1].name);
        let members = u32::try_from(wanted.len()).ok().filter(|_| uniform && beside.is_empty());
        let smaller = |p: &&Arc<Profile>| wanted.first().is_some_and(|large| p.slices < large.slices);
        if let Some(profile) = members.and_then(|members| self.equal(members)).filter(smaller) {
            add(&vec![Arc::clone(profile); wanted.len()]);
        }
        let instead = |p: &&Arc<Profile>| {
            p.is_plain() && left_out.first().is_some_and(|out| p.slices <= out.slices && p.units() <= out.units())
        };
        let swapped = self.largest_first(&self.profiles).iter().filter(instead).find_map(|profile| {
            let with: Vec<_> = kept.iter().chain([profile]).cloned().collect();
            self.room(&with, beside).map(|_| with)
        });
        match swapped.filter(|_| left_out.len() == 1) {
            Some(with) => add(&self.largest_first(&with)),
            None => add(kept),
        }
        would
    }
}

fn no_place(profile: &Arc<Profile>) -> String {
    let starts: Vec<String> = profile.places.iter().flat_map(|p| &p.starts).map(u32::to_string).collect();
    let starts = match starts.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} or {last}", before.join(", ")),
        _ => starts.concat(),
    };
    let units = match profile.units() {
        Some(1) | None => "a free memory unit".to_string(),
        Some(units) => format!("{units} free memory units"),
    };
    format!("no place for `{}`: it needs {units} from {starts} on", profile.name)
}

/// `2×3g.20gb + 1g.5gb`, for profiles in order.
fn summed(profiles: &[Arc<Profile>]) -> String {
    let groups = profiles.chunk_by(|a, b| a.name == b.name);
    let texts = groups.map(|group| match group {
        [one] => one.name.clone(),
        [first, ..] => format!("{}×{}", group.len(), first.name),
        [] => String::new(),
    });
    texts.collect::<Vec<_>>().join(" + ")
}
