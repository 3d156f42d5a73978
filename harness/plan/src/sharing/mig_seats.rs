//! From a partition and the members of a group to placed instances, and the seat of each member; or why not, and what would fit.

use std::collections::BTreeMap;
use std::sync::Arc;

use collo_gpus::notation::{self, Item};
use collo_store::MemberSpec;
use collo_text::Diagnostic;

use super::mig::Cut;
use super::mps::MOST_CLIENTS;
use super::{Refusal, Seat, Seating};
use collo_gpus::mig::{GpuModel, Instance, Profile};
use collo_gpus::partition::{Partition, Slice};

/// The question.
pub struct Seats<'a> {
    pub card: &'a GpuModel,
    pub members: &'a [MemberSpec],
    /// Several members may share an instance.
    pub mps: bool,
    pub slices: &'a BTreeMap<String, String>,
}

impl Seats<'_> {
    /// The answer.
    pub fn of(&self, cut: &Cut) -> Result<Seating, Refusal> {
        self.cut(cut).and_then(|seating| self.served(seating))
    }

    fn cut(&self, cut: &Cut) -> Result<Seating, Refusal> {
        match cut {
            Cut::Equal if self.is_mixed() && !self.slices.is_empty() => self.by_workload(),
            Cut::Equal => self.equal(),
            Cut::Profile { count, profile: size } => {
                let item = Item::of(size);
                match item.compute().ok().flatten().as_deref() {
                    Some([compute]) => self.inside_one(*count, *compute, item.profile),
                    _ => self.of_profile(*count, item.profile),
                }
            }
            Cut::Layout(name) => self.layout(name),
        }
    }

    /// Not more members on an instance than its MPS server has clients: "the maximum number of clients (48) is lowered proportionally to
    /// the Compute Instance size" (<https://docs.nvidia.com/datacenter/tesla/mig-user-guide/deployment-considerations.html>). One more fails as it starts.
    fn served(&self, seating: Seating) -> Result<Seating, Refusal> {
        let Some(all) = self.card.compute_slices.filter(|_| seating.daemons) else { return Ok(seating) };
        for (member, seat) in seating.seats.iter().enumerate() {
            let Seat::Slice { instance, compute } = *seat else { continue };
            let partition = seating.partition.as_ref();
            let slices = partition.and_then(|p| p.instances.get(instance)?.compute.get(compute)).copied();
            let Some(slices) = slices else { continue };
            let most = (MOST_CLIENTS * slices as usize / all.max(1) as usize).max(1);
            let clients = seating.seats.iter().filter(|other| *other == seat).count();
            if clients > most {
                let size = seating.slice(member).unwrap_or_default();
                return Err(Refusal {
                    reason: format!("{clients} members are more than the {most} clients of the MPS server of one `{size}`"),
                    hint: Some("a smaller `degree`, more instances, or larger ones".into()),
                });
            }
        }
        Ok(seating)
    }

    fn degree(&self) -> u32 {
        u32::try_from(self.members.len()).unwrap_or(u32::MAX)
    }

    fn is_mixed(&self) -> bool {
        self.members.windows(2).any(|w| w[0].workload != w[1].workload)
    }

    /// `mig` alone: the largest profile with an instance for each.
    fn equal(&self) -> Result<Seating, Refusal> {
        if !self.card.has_places() && (self.mps || Some(self.degree()) <= self.card.compute_slices) {
            let what = if self.degree() == 1 { "an instance".into() } else { format!("{} equal instances", self.degree()) };
            return Err(refusal(self.card.unplaced(&what)));
        }
        let most = (1..=self.card.compute_slices.unwrap_or(0)).rev().find(|n| self.card.equal(*n).is_some());
        let wanted = if self.mps { self.degree().min(most.unwrap_or(0)) } else { self.degree() };
        let Some(profile) = self.card.equal(wanted) else {
            let hint = most.map(|most| format!("`degree` up to {most} fits; more share an instance with `mig+mps`"));
            let reason = format!("{} cannot be partitioned into {wanted} equal instances", self.card.name);
            return Err(Refusal { reason, hint });
        };
        self.placed(&vec![Arc::clone(profile); wanted as usize])
    }

    fn of_profile(&self, count: Option<u32>, name: &str) -> Result<Seating, Refusal> {
        let profile = self.card.sized(name).map_err(refusal)?;
        let count = match count {
            Some(count) => count,
            // Members of one instance share it by MPS, so as many instances as there is room for will do.
            None if self.mps => {
                let fits = |n: &u32| self.card.place(&vec![Arc::clone(profile); *n as usize], &[]).is_ok();
                (1..=self.degree().min(notation::MOST)).take_while(fits).last().unwrap_or(1)
            }
            None => self.degree(),
        };
        if !self.mps && count < self.degree() {
            let reason = format!("{} members need an instance each, `{count}×{name}` has {count}", self.degree());
            return Err(Refusal { reason, hint: Some(format!("`mig:{count}×{name}+mps` lets several share one")) });
        }
        self.placed(&vec![Arc::clone(profile); count as usize])
    }

    /// `2×1c.3g.20gb`: compute instances that share the memory of one GPU instance.
    fn inside_one(&self, count: Option<u32>, compute: u32, name: &str) -> Result<Seating, Refusal> {
        let profile = self.card.sized(name).map_err(refusal)?;
        let count = count.unwrap_or(self.degree());
        if count * compute > profile.slices {
            return Err(Refusal {
                reason: format!(
                    "{count} compute instances of {compute} slices do not fit `{}`, which has {}",
                    profile.name, profile.slices
                ),
                hint: Some(format!("{} of them fit", profile.slices / compute.max(1))).filter(|_| compute <= profile.slices),
            });
        }
        if !self.mps && count < self.degree() {
            let reason = format!("{} members need a compute instance each, there are {count}", self.degree());
            return Err(Refusal { reason, hint: None });
        }
        let placed = self.card.place(&[Arc::clone(profile)], &[]).map_err(refusal)?;
        let start = placed.first().map(|i| i.start);
        let slice = Slice { profile: profile.name.clone(), start, compute: vec![compute; count as usize] };
        let seats = (0..self.members.len()).map(|m| Seat::Slice { instance: 0, compute: m % count.max(1) as usize }).collect();
        Ok(self.seating(Partition::on(vec![slice]), seats))
    }

    fn layout(&self, name: &str) -> Result<Seating, Refusal> {
        let layout = self.card.layout(name).map_err(refusal)?;
        let partition = Partition::of(&layout.instances);
        let alike = layout.instances.windows(2).all(|w| w[0].profile.name == w[1].profile.name);
        if self.is_mixed() && !alike {
            return self.assign(&layout.instances, partition);
        }
        if !self.mps && self.members.len() > layout.instances.len() {
            let reason = format!(
                "{} members need an instance each, `{name}` on {} has {}",
                self.members.len(),
                self.card.name,
                layout.instances.len()
            );
            return Err(Refusal { reason, hint: Some(format!("`mig:{name}+mps` lets several share one")) });
        }
        Ok(self.in_turn(partition))
    }

    /// Each workload its own profile.
    fn by_workload(&self) -> Result<Seating, Refusal> {
        let wanted = self.wanted(self.slices)?;
        match self.card.place(&wanted, &[]) {
            Ok(instances) => self.assign(&instances, Partition::of(&instances)),
            Err(mistake) => {
                let mut refusal = refusal(mistake);
                refusal.hint = self.would_fit().or(refusal.hint);
                Err(refusal)
            }
        }
    }

    fn wanted(&self, slices: &BTreeMap<String, String>) -> Result<Vec<Arc<Profile>>, Refusal> {
        let profile = |m: &MemberSpec| {
            let Some(name) = slices.get(&m.workload) else {
                return Err(Refusal {
                    reason: format!("`slices` has no profile for `{}`", m.workload),
                    hint: Some(format!(
                        "as in `slices = {{ {} = \"1g\" }}`; all: `collo list gpus --gpu {}`",
                        m.workload, self.card.name
                    )),
                });
            };
            self.card.sized(name).cloned().map_err(refusal)
        };
        self.members.iter().map(profile).collect()
    }

    /// The members on instances of their workload's profile, in the order of their places.
    fn assign(&self, instances: &[Instance], partition: Partition) -> Result<Seating, Refusal> {
        let wanted = self.wanted(self.slices)?;
        let mut taken = vec![false; instances.len()];
        let mut seats = Vec::new();
        for profile in wanted {
            let free = |(n, i): &(usize, &Instance)| !taken[*n] && i.profile.name == profile.name;
            let Some((number, _)) = instances.iter().enumerate().find(free) else {
                let reason = format!("{partition} has too few instances of `{}` for this group", profile.name);
                return Err(Refusal { reason, hint: None });
            };
            taken[number] = true;
            seats.push(Seat::Slice { instance: number, compute: 0 });
        }
        Ok(self.seating(partition, seats))
    }

    fn placed(&self, wanted: &[Arc<Profile>]) -> Result<Seating, Refusal> {
        let instances = self.card.place(wanted, &[]).map_err(refusal)?;
        Ok(self.in_turn(Partition::of(&instances)))
    }

    fn in_turn(&self, partition: Partition) -> Seating {
        let count = partition.instances.len().max(1);
        let seats = (0..self.members.len()).map(|m| Seat::Slice { instance: m % count, compute: 0 }).collect();
        self.seating(partition, seats)
    }

    fn seating(&self, partition: Partition, seats: Vec<Seat>) -> Seating {
        Seating { partition: Some(partition), seats, daemons: self.mps, ..Seating::default() }
    }

    /// The smallest number of workloads to move to smaller slices so that the group fits, solved.
    fn would_fit(&self) -> Option<String> {
        let mut names: Vec<&str> = self.members.iter().map(|m| m.workload.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let smaller = |name: &str| -> Vec<Option<&Arc<Profile>>> {
            let own = self.slices.get(name).and_then(|p| self.card.sized(p).ok());
            let mut all: Vec<&Arc<Profile>> =
                self.card.profiles.iter().filter(|p| p.is_plain() && own.is_some_and(|o| p.slices < o.slices)).collect();
            all.sort_by_key(|p| std::cmp::Reverse(p.slices));
            [None].into_iter().chain(all.into_iter().map(Some)).collect()
        };
        type Change<'a> = (&'a str, Option<&'a Arc<Profile>>);
        let mut choices: Vec<Vec<Change<'_>>> = vec![Vec::new()];
        for name in names.into_iter().take(4) {
            let options = smaller(name);
            choices = choices.iter().flat_map(|c| options.iter().map(|o| [c.as_slice(), &[(name, *o)]].concat())).collect();
        }
        // Few changes first, and of those the one that takes the fewest slices from members.
        let lost = |name: &str, profile: &Arc<Profile>| -> u32 {
            let own = self.slices.get(name).and_then(|p| self.card.sized(p).ok()).map_or(0, |p| p.slices);
            let copies = self.members.iter().filter(|m| m.workload == name).count() as u32;
            copies * own.saturating_sub(profile.slices)
        };
        choices.sort_by_key(|choice| {
            let changes = choice.iter().filter_map(|(name, p)| Some(lost(name, (*p)?)));
            (changes.clone().count(), changes.sum::<u32>())
        });
        choices.iter().find_map(|choice| {
            let mut slices = self.slices.clone();
            for (name, profile) in choice {
                if let Some(profile) = profile {
                    slices.insert(name.to_string(), profile.name.clone());
                }
            }
            let instances = self.card.place(&self.wanted(&slices).ok()?, &[]).ok()?;
            let changed: Vec<String> =
                choice.iter().filter_map(|(name, p)| Some(format!("{name} = \"{}\"", p.as_ref()?.name))).collect();
            let places: Vec<String> = instances.iter().map(|i| format!("{}g@{}", i.profile.slices, i.start)).collect();
            (!changed.is_empty()).then(|| format!("`{}` in `slices` fits: {}", changed.join(", "), places.join(" ")))
        })
    }
}

fn refusal(mistake: Diagnostic) -> Refusal {
    let cause = mistake.cause().map(|c| format!(": {c}")).unwrap_or_default();
    Refusal { reason: format!("{}{cause}", mistake.what()), hint: mistake.way_out().map(str::to_string) }
}

#[cfg(test)]
#[path = "mig_seats_tests.rs"]
mod tests;
