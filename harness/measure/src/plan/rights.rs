//! What a user who may not cut a card is told instead of a cell that needs it cut otherwise.

use crate::device::{Gpu, Partition};
use crate::sharing::{Refusal, Seating};

/// The driver lets this user change nothing, and the card is not as this cell needs it.
pub fn refusal(gpu: &Gpu, found: &Partition, seating: &Seating) -> Refusal {
    let label = gpu.label();
    let index = gpu.at.as_ref().map(|at| format!(" --gpu {}", at.index)).unwrap_or_default();
    let Some(asked) = seating.partition.as_ref().filter(|asked| asked.mig) else {
        return Refusal {
            reason: format!("this needs MIG off, {label} has it on ({found}), and this user may not change that"),
            hint: Some(format!("`sudo collo mig clear{index}` turns it off")),
        };
    };
    // As it can be typed: without the spaces.
    let cut = asked.to_string().replace(' ', "");
    Refusal {
        reason: format!("this needs {asked}, {label} has {found}, and this user may not cut it"),
        hint: Some(format!("`sudo collo mig apply {cut}{index}`, then run it with `--as-found`, which needs no right")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Address;
    use crate::device::mig::Card;
    use crate::device::partition::Slice;

    fn gpu(index: u32) -> Gpu {
        let at = Address { index, uuid: format!("GPU-{index}"), pci: "00000000:36:00.0".into() };
        Gpu { at: Some(at), ..Gpu::planned(&Card::bare("a100-40gb", 7)) }
    }

    #[test]
    fn who_may_not_cut_a_card_is_told_what_an_administrator_types() {
        let slice = |profile: &str, slices| Slice { profile: profile.into(), start: Some(0), compute: vec![slices] };
        let asked = Partition::on(vec![slice("3g.20gb", 3), slice("1g.5gb", 1), slice("1g.5gb", 1)]);
        let refused = refusal(&gpu(3), &Partition::off(), &Seating::whole(1, Some(asked)));
        insta::assert_snapshot!(format!("{}\n{}", refused.reason, refused.hint.unwrap_or_default()), @r"
        this needs 3g.20gb + 2×1g.5gb, GPU 3 has MIG off, and this user may not cut it
        `sudo collo mig apply 3g.20gb+2×1g.5gb --gpu 3`, then run it with `--as-found`, which needs no right
        ");
        let whole = refusal(&gpu(0), &Partition::on(vec![slice("3g.20gb", 3)]), &Seating::whole(2, Some(Partition::off())));
        insta::assert_snapshot!(format!("{}\n{}", whole.reason, whole.hint.unwrap_or_default()), @r"
        this needs MIG off, GPU 0 has it on (3g.20gb), and this user may not change that
        `sudo collo mig clear --gpu 0` turns it off
        ");
    }
}
