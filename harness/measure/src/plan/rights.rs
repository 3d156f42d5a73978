//! What is told instead of a cell that needs the card cut otherwise, where it cannot be: why, and what an administrator types.

use crate::device::fixed::Fixed;
use crate::device::{Gpu, Partition};
use crate::sharing::Seating;

/// Why the card cannot be made as this cell needs it; none if it can, or is so already.
pub fn against(gpu: &Gpu, found: &Partition, seating: &Seating, fixed: &Fixed) -> Option<String> {
    let asked = seating.partition.as_ref().filter(|asked| !found.is_as(asked))?;
    // The driver lets this user change nothing: the plainest reason comes first.
    let denied = || {
        let label = gpu.label();
        match asked.mig {
            true => format!("this needs {asked}, {label} has {found}, and this user may not cut it"),
            false => format!("this needs MIG off, {label} has it on ({found}), and this user may not change that"),
        }
    };
    match gpu.may_cut {
        Some(false) => Some(denied()),
        _ => fixed.against(found, asked).map(|not| not.reason()),
    }
}

/// The rest of the experiment now, an administrator's command, and what was left out: or all of it as root.
pub fn way_out(gpu: &Gpu, seating: &Seating, experiment: &str) -> String {
    let index = gpu.at.as_ref().map(|at| format!(" --gpu {}", at.index)).unwrap_or_default();
    // As people count, and so that it can be typed; any places will do.
    let layout = match seating.partition.as_ref().filter(|asked| asked.mig) {
        Some(asked) => asked.to_string().replace(' ', ""),
        None => "off".into(),
    };
    format!(
        "the rest is measured; then `sudo collo mig apply {layout} --services stop{index}`, then `collo run {experiment} --new --as-found{index}`; or all of it by \
         `sudo collo run {experiment} --services stop{index}`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Address;
    use crate::device::mig::Card;
    use crate::device::partition::Slice;

    fn gpu(index: u32) -> Gpu {
        let at = Address { index, uuid: format!("GPU-{index}"), pci: "00000000:36:00.0".into() };
        Gpu { at: Some(at), may_cut: Some(false), ..Gpu::planned(&Card::bare("a100-40gb", 7)) }
    }

    fn refused(gpu: &Gpu, found: &Partition, asked: Partition) -> String {
        let seating = Seating::whole(1, Some(asked));
        let reason = against(gpu, found, &seating, &Fixed::default()).unwrap_or_default();
        format!("{reason}\n{}", way_out(gpu, &seating, "gpu-smoke"))
    }

    #[test]
    fn who_may_not_cut_a_card_is_told_what_an_administrator_types() {
        let slice = |profile: &str, start, slices| Slice { profile: profile.into(), start: Some(start), compute: vec![slices] };
        let asked = Partition::on(vec![slice("3g.20gb", 4, 3), slice("1g.5gb", 0, 1), slice("1g.5gb", 1, 1)]);
        insta::assert_snapshot!(refused(&gpu(3), &Partition::off(), asked), @"");
        let cut = Partition::on(vec![slice("3g.20gb", 4, 3)]);
        insta::assert_snapshot!(refused(&gpu(0), &cut, Partition::off()), @"");
        let as_it_is = Seating::whole(1, Some(Partition::off()));
        assert_eq!(against(&gpu(0), &Partition::off(), &as_it_is, &Fixed::default()), None);
    }
}
