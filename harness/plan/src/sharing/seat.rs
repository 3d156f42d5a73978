//! Each member's share of a GPU, before anything is staged: pure, so that a plan can show it.

use std::fmt;

use collo_store::Sharing;

use super::{Hosting, Limits};
use crate::facts::DeviceFacts;
use collo_gpus::partition::{Partition, Slice};

/// The device state that a cell requires, and the place of each member.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seating {
    /// Absent if nothing can be partitioned: on a CPU, on a GPU without MIG.
    pub partition: Option<Partition>,
    /// By member.
    pub seats: Vec<Seat>,
    /// True if members share by MPS: a daemon for each GPU instance used, or one for the whole GPU.
    pub daemons: bool,
    /// By member, its limits under MPS; empty without limits.
    pub limits: Vec<Limits>,
    /// Members are threads of one process, and how it is started; `None` for a process each.
    pub hosting: Option<Hosting>,
    /// What the mode's label does not express.
    pub remark: Option<String>,
}

/// The place of one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seat {
    /// The whole device, possibly with others.
    Whole,
    /// A compute instance of a GPU instance, by their indices in the partition.
    Slice { instance: usize, compute: usize },
}

impl Seating {
    /// All of them on the whole device.
    pub fn whole(members: usize, partition: Option<Partition>) -> Seating {
        Seating { partition, seats: vec![Seat::Whole; members], ..Seating::default() }
    }

    /// The same on this device, with MIG off if it has MIG.
    pub fn whole_device(members: usize, facts: &DeviceFacts) -> Seating {
        Seating::whole(members, facts.gpu().filter(|gpu| gpu.has_mig).map(|_| Partition::off()))
    }

    /// The limits common to all members; `None` if they differ.
    pub fn common_limits(&self) -> Option<Limits> {
        let first = self.limits.first().copied().unwrap_or_default();
        self.limits.iter().all(|own| *own == first).then_some(first)
    }

    /// The same members in a larger partition that has all their slices: an administrator's, or that of an existing block. `None`
    /// if it does not have them.
    pub fn inside(&self, there: &Partition) -> Option<Seating> {
        let Some(own) = &self.partition else { return Some(self.clone()) };
        if own.mig != there.mig {
            return None;
        }
        let mut taken: Vec<usize> = Vec::new();
        let mut moved: Vec<Option<usize>> = vec![None; own.instances.len()];
        for (number, slice) in own.instances.iter().enumerate() {
            if self.members_in(number) == 0 {
                continue;
            }
            let same = |(n, s): &(usize, &Slice)| !taken.contains(n) && s.profile == slice.profile && s.compute == slice.compute;
            let mut alike = there.instances.iter().enumerate().filter(same);
            let first = alike.clone().next()?;
            // The very instance, where places are known.
            let (place, _) = alike.find(|(_, s)| s.start.is_some() && s.start == slice.start).unwrap_or(first);
            taken.push(place);
            moved[number] = Some(place);
        }
        let seat = |seat: &Seat| match seat {
            Seat::Whole => Some(Seat::Whole),
            Seat::Slice { instance, compute } => Some(Seat::Slice { instance: moved[*instance]?, compute: *compute }),
        };
        let seats = self.seats.iter().map(seat).collect::<Option<Vec<_>>>()?;
        Some(Seating { partition: Some(there.clone()), seats, ..self.clone() })
    }

    /// The sharing record of this seating under a mode's family.
    pub fn sharing(&self, family: &str) -> Sharing {
        let partition = self.partition.as_ref().filter(|p| p.mig);
        let own = |(number, slice): (usize, &Slice)| match self.members_in(number) {
            0 => true,
            inside => inside == 1 && slice.is_whole(),
        };
        Sharing {
            family: family.into(),
            mps: self.daemons,
            limited: self.limits.iter().any(|own| *own != Limits::default()),
            partitioned: partition.is_some(),
            one_process: self.hosting.is_some(),
            isolated: !self.daemons && partition.is_some_and(|p| p.instances.iter().enumerate().all(own)),
        }
    }

    fn members_in(&self, number: usize) -> usize {
        self.seats.iter().filter(|s| matches!(s, Seat::Slice { instance, .. } if *instance == number)).count()
    }

    /// The size of a member's slice, as in a mode's label: `1g.5gb`, `1c.3g.20gb`. `None` on the whole device.
    pub fn slice(&self, member: usize) -> Option<String> {
        let Seat::Slice { instance, compute } = *self.seats.get(member)? else { return None };
        let slice = self.partition.as_ref()?.instances.get(instance)?;
        let part = slice.compute.get(compute)?;
        Some(if slice.is_whole() { slice.profile.clone() } else { format!("{part}c.{}", slice.profile) })
    }
}

/// `whole GPU`, `whole GPU, shared`, `1g.5gb + 3×2g.10gb`, `2×1c in one 3g.20gb`; after a colon what the label does not express.
impl fmt::Display for Seating {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.partition.as_ref().filter(|p| p.mig) {
            Some(partition) => f.write_str(&self.slices(partition))?,
            None => f.write_str(if self.seats.len() == 1 { "whole GPU" } else { "whole GPU, shared" })?,
        }
        self.remark.as_ref().map_or(Ok(()), |remark| write!(f, ": {remark}"))
    }
}

impl Seating {
    fn slices(&self, partition: &Partition) -> String {
        let mut counted: Vec<(String, usize)> = Vec::new();
        let mut add = |words: String| match counted.iter_mut().find(|(w, _)| *w == words) {
            Some((_, n)) => *n += 1,
            None => counted.push((words, 1)),
        };
        for (number, slice) in partition.instances.iter().enumerate() {
            match (self.members_in(number), slice.is_whole()) {
                (0, _) => {}
                (inside, true) if inside > 1 => add(format!("{} of {inside}", slice.profile)),
                (_, true) => add(slice.profile.clone()),
                (inside, false) => {
                    let part = slice.compute.first().copied().unwrap_or(0);
                    add(format!("{inside}×{part}c in one {}", slice.profile));
                }
            }
        }
        counted.sort();
        let text = |(words, n): &(String, usize)| if *n == 1 { words.clone() } else { format!("{n}×{words}") };
        counted.iter().map(text).collect::<Vec<_>>().join(" + ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(profile: &str, start: u32, compute: &[u32]) -> Slice {
        Slice { profile: profile.into(), start: Some(start), compute: compute.to_vec() }
    }

    fn seated(slices: &[Slice], seats: &[(usize, usize)]) -> Seating {
        let seats = seats.iter().map(|&(instance, compute)| Seat::Slice { instance, compute }).collect();
        Seating { partition: Some(Partition::on(slices.to_vec())), seats, ..Seating::default() }
    }

    #[test]
    fn slots_read_as_people_count_them() {
        assert_eq!(Seating::whole(1, None).to_string(), "whole GPU");
        assert_eq!(Seating::whole(7, Some(Partition::off())).to_string(), "whole GPU, shared");
        let mixed = [slice("1g.5gb", 0, &[1]), slice("2g.10gb", 2, &[2]), slice("2g.10gb", 4, &[2])];
        assert_eq!(seated(&mixed, &[(0, 0), (1, 0), (2, 0)]).to_string(), "1g.5gb + 2×2g.10gb");
        assert_eq!(seated(&[slice("3g.20gb", 0, &[1, 1])], &[(0, 0), (0, 1)]).to_string(), "2×1c in one 3g.20gb");
        assert_eq!(seated(&[slice("3g.20gb", 0, &[3])], &[(0, 0), (0, 0)]).to_string(), "3g.20gb of 2");
    }

    #[test]
    fn a_member_finds_its_slice_in_a_larger_partition_or_is_told_that_it_is_not_there() {
        let one = seated(&[slice("2g.10gb", 0, &[2])], &[(0, 0)]);
        let there = Partition::on(vec![slice("1g.5gb", 0, &[1]), slice("2g.10gb", 2, &[2])]);
        let inside = one.inside(&there).unwrap();
        assert_eq!(inside.seats, [Seat::Slice { instance: 1, compute: 0 }]);
        assert_eq!(inside.slice(0).as_deref(), Some("2g.10gb"));
        assert_eq!(one.inside(&Partition::off()), None);
        // In the order of ids that a user sees, which has no places; and the same instance where places are known.
        let balanced = [slice("2g.10gb", 0, &[2]), slice("1g.5gb", 2, &[1]), slice("1g.5gb", 3, &[1]), slice("3g.20gb", 4, &[3])];
        let all = seated(&balanced, &[(0, 0), (1, 0), (2, 0), (3, 0)]);
        let by_id = [3, 0, 1, 2].map(|i: usize| Slice { start: None, ..balanced[i].clone() });
        let seats = |there: &[Slice]| all.inside(&Partition::on(there.to_vec())).unwrap().seats;
        let on = |instances: [usize; 4]| instances.map(|instance| Seat::Slice { instance, compute: 0 });
        assert_eq!(seats(&balanced), on([0, 1, 2, 3]));
        assert_eq!(seats(&by_id), on([1, 2, 3, 0]));
        let two = seated(&[slice("2g.10gb", 0, &[2]), slice("2g.10gb", 2, &[2])], &[(0, 0), (1, 0)]);
        assert_eq!(two.inside(&there), None, "there is only one of them");
        assert_eq!(Seating::whole(2, Some(Partition::off())).inside(&there), None);
    }
}
