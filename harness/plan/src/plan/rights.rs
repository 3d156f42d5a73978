//! The refusal of a cell that needs another partition, where that is impossible: the reason, and the administrator's command.

use crate::facts::{Fixed, Gpu};
use crate::sharing::Seating;
use collo_gpus::mig::Layout;
use collo_gpus::partition::Partition;

/// Why the GPU cannot be partitioned for this cell; `None` if it can, or already is.
pub fn against(gpu: &Gpu, found: &Partition, seating: &Seating, fixed: &Fixed) -> Option<String> {
    let asked = seating.partition.as_ref().filter(|asked| !found.is_as(asked))?;
    // The driver lets this user change nothing: the plainest reason comes first.
    let denied = || {
        let label = gpu.label();
        match asked.mig {
            true => format!("this needs {asked}, {label} has {found}, and this user may not partition it"),
            false => format!("this needs MIG off, {label} has it on ({found}), and this user may not change that"),
        }
    };
    match gpu.may_cut {
        Some(false) => Some(denied()),
        _ => fixed.against(found, asked).map(|not| not.reason()),
    }
}

/// An administrator's command and what it makes possible; or the whole experiment as root. If something would be lost, what to do
/// first.
pub fn way_out(gpu: &Gpu, found: &Partition, seating: &Seating, fixed: &Fixed, experiment: &str) -> String {
    let against = seating.partition.as_ref().and_then(|asked| fixed.against(found, asked));
    if let Some(hint) = against.filter(|not| not.forgets && gpu.may_cut != Some(false)).and_then(|not| not.hint.clone()) {
        return hint;
    }
    let index = gpu.at.as_ref().map(|at| format!(" --gpu {}", at.index)).unwrap_or_default();
    // As people count, and so that it can be typed; any places will do.
    let layout = match seating.partition.as_ref().filter(|asked| asked.mig) {
        Some(asked) => serving_layout(gpu, asked).unwrap_or_else(|| asked.to_string().replace(' ', "")),
        None => "off".into(),
    };
    format!(
        "`sudo collo mig apply {layout} --services stop{index}`, then `collo run {experiment} --new --as-found{index}`; or all of it by \
         `sudo collo run {experiment} --services stop{index}`"
    )
}

/// The layout with only instances of the one size that is asked for, and at least as many: it serves every cell of that size.
fn serving_layout(gpu: &Gpu, asked: &Partition) -> Option<String> {
    let [first, others @ ..] = &asked.instances[..] else { return None };
    let is_same = |profile: &str| profile == first.profile;
    if !others.iter().all(|other| is_same(&other.profile) && other.compute == first.compute) || first.compute.len() > 1 {
        return None;
    }
    let is_serving = |layout: &&Layout| {
        layout.instances.len() >= asked.instances.len() && layout.instances.iter().all(|i| is_same(&i.profile.name))
    };
    let layouts = gpu.card.as_ref()?.layouts.iter().filter(is_serving);
    layouts.max_by_key(|layout| layout.instances.len()).map(|layout| layout.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Address;
    use collo_gpus::mig::GpuModel;
    use collo_gpus::partition::Slice;

    fn gpu(index: u32) -> Gpu {
        let at = Address { index, uuid: format!("GPU-{index}"), pci: "00000000:36:00.0".into() };
        Gpu { at: Some(at), may_cut: Some(false), ..Gpu::planned(&GpuModel::bare("a100-40gb", 7)) }
    }

    fn refused(gpu: &Gpu, found: &Partition, asked: Partition) -> String {
        let seating = Seating::whole(1, Some(asked));
        let reason = against(gpu, found, &seating, &Fixed::default()).unwrap_or_default();
        format!("{reason}\n{}", way_out(gpu, found, &seating, &Fixed::default(), "gpu-smoke"))
    }

    #[test]
    fn who_may_not_cut_a_card_is_told_what_an_administrator_types() {
        let slice = |profile: &str, start, slices| Slice { profile: profile.into(), start: Some(start), compute: vec![slices] };
        let asked = Partition::on(vec![slice("3g.20gb", 4, 3), slice("1g.5gb", 0, 1), slice("1g.5gb", 1, 1)]);
        insta::assert_snapshot!(refused(&gpu(3), &Partition::off(), asked), @r"
        this needs 3g.20gb + 2×1g.5gb, GPU 3 has MIG off, and this user may not partition it
        `sudo collo mig apply 3g.20gb+2×1g.5gb --services stop --gpu 3`, then `collo run gpu-smoke --new --as-found --gpu 3`; or all of it by `sudo collo run gpu-smoke --services stop --gpu 3`
        ");
        let cut = Partition::on(vec![slice("3g.20gb", 4, 3)]);
        insta::assert_snapshot!(refused(&gpu(0), &cut, Partition::off()), @r"
        this needs MIG off, GPU 0 has it on (3g.20gb), and this user may not change that
        `sudo collo mig apply off --services stop --gpu 0`, then `collo run gpu-smoke --new --as-found --gpu 0`; or all of it by `sudo collo run gpu-smoke --services stop --gpu 0`
        ");
        let as_it_is = Seating::whole(1, Some(Partition::off()));
        assert_eq!(against(&gpu(0), &Partition::off(), &as_it_is, &Fixed::default()), None);
    }
}
