//! The tables: what is projected, and what was published below it.

use collo_figures::document::{Align, Block, Table};

use crate::arm::Arm;
use crate::figures::{CaseStudy, Quantity, Range};
use crate::law::Law;
use crate::published::published;
use crate::{FOUND, NAME, USES, assumptions};

/// The first law is the one that is printed in full; the others say how much hangs on it.
pub fn blocks(studies: &[(Law, CaseStudy)]) -> Vec<Block> {
    let says = published();
    let [(law, study), others @ ..] = studies else { return Vec::new() };
    let line = |text: String| Block::Text(text);
    let space = || Block::Text(String::new());
    let mut all = vec![
        line(format!("{NAME}, PROJECTED: no job ran")),
        line(format!(
            "{} jobs on {} cards ({}), {}: median [95 % of them]; shares in %, times in minutes",
            says.jobs,
            says.cards,
            says.device,
            orders(study)
        )),
        space(),
        Block::Table(totals(study)),
        space(),
        line("in % of slot-based, within each order".into()),
        Block::Table(against_slots(study, true)),
        space(),
    ];
    all.push(Block::Table(holds(study)));
    all.extend(found(study).into_iter().chain(DEFINITIONS.map(String::from)).map(line));
    for (other, study) in others {
        all.extend([
            space(),
            line("it hangs on what company costs: the same under another law, in % of slot-based, PROJECTED".into()),
            Block::Table(against_slots(study, false)),
            line(other.assumption(says)),
        ]);
    }
    all.extend([space(), line("assumed".into())]);
    all.extend(assumptions(*law).into_iter().map(|text| line(format!("- {text}"))));
    all.extend([space(), line("published".into()), line(format!("- {}", says.source))]);
    all.extend([&says.conditions].into_iter().chain(&says.slips).map(|text| line(format!("- {text}"))));
    all
}

fn orders(study: &CaseStudy) -> String {
    let seeds: Vec<u64> = study.seeds().collect();
    match seeds[..] {
        [one] => format!("the order of seed {one}"),
        [first, .., last] => format!("{} orders, seeds {first} to {last}", seeds.len()),
        [] => "no order".into(),
    }
}

/// Every scheduler, the published one below it.
fn totals(study: &CaseStudy) -> Table {
    let columns = [
        ("projected", Align::Left),
        ("utilisation", Align::Right),
        ("in use", Align::Right),
        ("makespan", Align::Right),
        ("execution", Align::Right),
        ("completion", Align::Right),
        ("out of memory", Align::Right),
    ];
    let mut table = Table::new(&columns, 4);
    for arm in Arm::ALL {
        let of = |quantity, factor| study.range(arm, quantity).map(|range| shown(range, factor, 0));
        table.values([
            Some(arm.name().into()),
            of(Quantity::Utilisation, 100.0),
            of(Quantity::UtilisationInUse, 100.0),
            of(Quantity::MakespanS, 1.0 / 60.0),
            of(Quantity::ExecutionS, 1.0 / 60.0),
            of(Quantity::CompletionS, 1.0 / 60.0),
            of(Quantity::OutOfMemory, 1.0),
        ]);
        if let Some(theirs) = published().of(arm) {
            table.values([
                Some("  published".into()),
                Some(format!("{:.1}", theirs.utilisation_percent.mean)),
                None,
                Some(format!("{:.1}", theirs.makespan_min.mean)),
                Some(format!("{:.1}", theirs.job_completion_s / 60.0)),
                None,
                None,
            ]);
        }
    }
    table
}

/// What changes from the slot-based scheduler to each other one.
fn against_slots(study: &CaseStudy, beside_published: bool) -> Table {
    let columns = [
        ("projected", Align::Left),
        ("utilisation", Align::Right),
        ("in use", Align::Right),
        ("useful", Align::Right),
        ("makespan", Align::Right),
        ("execution", Align::Right),
        ("completion", Align::Right),
    ];
    let mut table = Table::new(&columns, 5);
    let says = published();
    for arm in Arm::ALL.into_iter().filter(|arm| *arm != Arm::SlotBased) {
        let of = |quantity| study.against_slots(arm, quantity).map(changed);
        table.values([
            Some(arm.name().into()),
            of(Quantity::Utilisation),
            of(Quantity::UtilisationInUse),
            of(Quantity::UsefulInUse),
            of(Quantity::MakespanS),
            of(Quantity::ExecutionS),
            of(Quantity::CompletionS),
        ]);
        if let Some((theirs, slots)) = says.of(arm).zip(says.of(Arm::SlotBased)).filter(|_| beside_published) {
            table.values([
                Some("  published".into()),
                says.utilisation_gain_percent(arm).map(|gain| format!("{gain:+.1}")),
                None,
                None,
                says.makespan_reduction_percent(arm).map(|less| signed(-less, 1)),
                Some(signed(100.0 * (theirs.job_completion_s / slots.job_completion_s - 1.0), 1)),
                None,
            ]);
        }
    }
    table
}

/// What the columns mean.
const DEFINITIONS: [&str; 4] = [
    "utilisation: as nvidia-smi reads it, over all cards until the last job is done; the paper does not define its own, this fits its means",
    "in use: the same over the time in which a card has a job",
    "useful: the same without what company costs and what was lost; an over-allocated card reads 100 %, whatever it gets done",
    "execution: without the wait, which fits the paper's job completion time; completion: with it",
];

/// In how many orders the paper's finding holds, and the predictor beats the control.
fn holds(study: &CaseStudy) -> Table {
    let columns = [
        ("holds in so many orders", Align::Left),
        ("utilisation", Align::Right),
        ("in use", Align::Right),
        ("useful", Align::Right),
        ("not by utilisation in seeds", Align::Left),
    ];
    let mut table = Table::new(&columns, 4);
    for arms in [&FOUND[..], &[Arm::Proactive, Arm::Shuffled]] {
        let each = USES.map(|quantity| study.decreasing(quantity, arms));
        let counts = each.iter().map(|holds| Some(format!("{} of {}", holds.seeds, holds.seeds + holds.not_in.len())));
        let claim: Vec<&str> = arms.iter().map(|arm| arm.name()).collect();
        let not_in = (!each[0].not_in.is_empty()).then(|| some_of(&each[0].not_in));
        table.values([Some(claim.join(" > "))].into_iter().chain(counts).chain([not_in]));
    }
    table
}

/// The paper's gains in these orders, and what a useless predictor keeps of them.
fn found(study: &CaseStudy) -> Vec<String> {
    let (says, arm) = (published(), Arm::Proactive);
    let mut all = Vec::new();
    if let Some((gain, less)) = says.utilisation_gain_percent(arm).zip(says.makespan_reduction_percent(arm)) {
        let gained = study.ratios_to_slots(arm, Quantity::Utilisation).iter().filter(|r| **r >= 1.0 + gain / 100.0).count();
        let saved = study.ratios_to_slots(arm, Quantity::MakespanS).iter().filter(|r| **r <= 1.0 - less / 100.0).count();
        all.push(format!(
            "the paper's +{gain} % of utilisation is reached in {gained} of {} orders, its −{less} % of makespan in {saved}",
            study.seeds().count()
        ));
    }
    let saved = |arm| study.against_slots(arm, Quantity::MakespanS).map(|range| 100.0 * (1.0 - range.median));
    if let Some((own, control)) = saved(arm).zip(saved(Arm::Shuffled)) {
        all.push(format!("makespan saved, in the median: {own:.0} % with predictions, {control:.0} % with those of other jobs"));
    }
    all
}

/// At most ten seeds.
fn some_of(seeds: &[u64]) -> String {
    let some: Vec<String> = seeds.iter().take(10).map(u64::to_string).collect();
    format!("{}{}", some.join(", "), if seeds.len() > 10 { " …" } else { "" })
}

fn shown(Range { median, low, high }: Range, factor: f64, digits: usize) -> String {
    format!("{:.digits$} [{:.digits$}–{:.digits$}]", factor * median, factor * low, factor * high)
}

/// A ratio as a change in percent.
fn changed(Range { median, low, high }: Range) -> String {
    let [median, low, high] = [median, low, high].map(|ratio| signed(100.0 * (ratio - 1.0), 0));
    format!("{median} [{} {}]", low.trim_start_matches('+'), high.trim_start_matches('+'))
}

/// With its sign, a true minus.
fn signed(number: f64, digits: usize) -> String {
    format!("{number:+.digits$}").replace('-', "−")
}

#[cfg(test)]
mod tests {
    use collo_figures::document::terminal;

    use super::*;

    /// `docs/decisions/0046-the-case-study-is-an-example.md` has these numbers.
    #[test]
    fn twenty_orders_stand_beside_what_was_published() {
        let study = CaseStudy::of(1..=20, Law::Knee);
        let tables = [totals(&study), against_slots(&study, true), holds(&study)].map(Block::Table);
        let text = format!("{}{}", terminal::text(&tables, 100), found(&study).join("\n"));
        insta::assert_snapshot!(text, @r"
        projected    utilisation      in use       makespan   execution     completion  out of memory
        slot-based    45 [38–51]  55 [50–59]  300 [250–345]  29 [26–33]  123 [110–142]        0 [0–0]
          published         43.1           –          306.9        31.1              –              –
        reactive      54 [48–63]  70 [67–73]  246 [220–296]  30 [28–35]    97 [83–116]       4 [0–21]
          published         47.1           –          277.6        36.5              –              –
        proactive     62 [56–66]  80 [76–85]  228 [204–263]  33 [29–36]    91 [74–115]       8 [0–69]
          published         69.6           –          204.0        33.7              –              –
        shuffled      55 [47–63]  78 [70–83]  281 [242–350]  39 [34–45]    99 [94–127]       6 [1–68]
        exact         66 [56–72]  82 [77–84]  221 [189–249]  31 [28–35]    93 [71–107]      10 [1–57]
        projected    utilisation       in use       useful       makespan    execution     completion
        reactive     +22 [12 34]  +28 [17 41]  +24 [15 35]   −15 [−22 −9]     +4 [3 5]  −21 [−27 −12]
          published         +9.2            –            –           −9.5        +17.3              –
        proactive    +38 [22 59]  +47 [33 61]  +38 [26 48]  −22 [−32 −12]   +10 [8 16]  −26 [−39 −11]
          published        +61.5            –            –          −33.6         +8.3              –
        shuffled     +28 [−3 50]  +39 [34 54]  +17 [11 28]    −9 [−22 28]  +37 [23 45]   −16 [−28 −4]
        exact        +43 [17 76]  +48 [37 66]  +40 [32 55]  −26 [−39 −10]     +6 [5 8]  −28 [−43 −14]
        holds in so many orders            utilisation    in use    useful  not by utilisation in seeds
        proactive > reactive > slot-based     20 of 20  20 of 20  20 of 20  –
        proactive > shuffled                  16 of 20  16 of 20  20 of 20  3, 4, 5, 8
        the paper's +61.5 % of utilisation is reached in 0 of 20 orders, its −33.6 % of makespan in 0
        makespan saved, in the median: 22 % with predictions, 9 % with those of other jobs
        ");
    }

    #[test]
    fn numbers_have_true_minus_signs_and_long_lists_of_seeds_end() {
        assert_eq!(signed(-3.26, 1), "−3.3");
        assert_eq!(changed(Range { median: 0.8, low: 0.7, high: 1.1 }), "−20 [−30 10]");
        assert_eq!(shown(Range { median: 0.45, low: 0.4, high: 0.5 }, 100.0, 0), "45 [40–50]");
        assert_eq!(some_of(&[3, 5]), "3, 5");
        assert_eq!(some_of(&(1..=11).collect::<Vec<u64>>()), "1, 2, 3, 4, 5, 6, 7, 8, 9, 10 …");
    }
}
