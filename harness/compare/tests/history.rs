//! The nightly's error rates, by simulated nights whose truth is known. In: noise of repetitions, of nights, shared, correlated, wild.
//! Out: false alarms per night, and how often a true step is found. A night is simulated by its summaries: three repetitions of a
//! hundred cells, and more of those that the judge finds suspicious.

use collo_compare::history::{CellNight, Judge, JudgedNight, Mean, NightlyRun, Rules};

const CELLS: usize = 100;
const BASELINES: usize = 10;
const REPETITIONS: usize = 3;
/// Standard deviations between repetitions.
const NOISES: [f64; 4] = [0.01, 0.02, 0.03, 0.05];

#[derive(Clone)]
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64 + 1e-18
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// `n` repetitions around a logarithm.
    fn mean(&mut self, centre: f64, sd: f64, n: usize) -> Option<Mean> {
        let times: Vec<f64> = (0..n).map(|_| (centre + sd * self.normal()).exp()).collect();
        Mean::of(&times)
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// Each night's noise is its own.
    Independent,
    /// A night's noise is correlated by .8 with the next one's.
    Correlated,
    /// All cells move together by 2 % from night to night.
    Shared,
    /// The same, and each night's move is correlated by .8 with the next one's.
    SharedCorrelated,
    /// A third of the cells are 2 % slower on two of seven nights.
    Weekend,
    /// One night in twenty all noise is three times as large; one cell-night in a hundred is 12 % off, and calm when measured again.
    Wild,
}

#[derive(Clone)]
struct World {
    random: Random,
    kind: Kind,
    /// Standard deviation of repetitions, and of each night's own part.
    repeat_sd: f64,
    night_sd: f64,
    /// Factor of each cell's noise.
    factor: Vec<f64>,
    state: Vec<f64>,
    night: usize,
    /// The move of all cells.
    shared: f64,
}

impl World {
    fn new(kind: Kind, repeat_sd: f64, seed: u64) -> Self {
        let night_sd = if repeat_sd >= 0.05 {
            0.01
        } else if repeat_sd <= 0.01 {
            0.003
        } else {
            0.005
        };
        let mut random = Random(seed);
        let factor = (0..CELLS).map(|_| (0.3 * random.normal()).exp()).collect();
        let state = (0..CELLS).map(|_| random.normal()).collect();
        World { random, kind, repeat_sd, night_sd, factor, state, night: 0, shared: 0.0 }
    }

    /// The next night; `step` is what some cells moved by. The second is where each cell truly was, for more repetitions.
    fn next(&mut self, step: &dyn Fn(usize) -> f64) -> (NightlyRun, Vec<(f64, f64)>) {
        self.night += 1;
        let r = &mut self.random;
        self.shared = match self.kind {
            Kind::Shared => 0.02 * r.normal(),
            Kind::SharedCorrelated => 0.8 * self.shared + 0.6 * 0.02 * r.normal(),
            _ => 0.0,
        };
        let weekend = if self.kind == Kind::Weekend && self.night % 7 < 2 { 0.02 } else { 0.0 };
        let wild_night = self.kind == Kind::Wild && r.uniform() < 0.05;
        let scale = if wild_night { 3.0 } else { 1.0 };
        let mut truth = Vec::new();
        let cells = (0..CELLS)
            .map(|c| {
                let fresh = r.normal();
                self.state[c] = if self.kind == Kind::Correlated { 0.8 * self.state[c] + 0.6 * fresh } else { fresh };
                let own = if c % 3 == 0 { weekend } else { 0.0 };
                let centre =
                    3.0 + 0.01 * c as f64 + self.shared + own + scale * self.night_sd * self.factor[c] * self.state[c] + step(c);
                let sd = scale * self.repeat_sd * self.factor[c];
                let thrown = self.kind == Kind::Wild && r.uniform() < 0.01;
                let first = r.mean(centre + if thrown { 0.12 } else { 0.0 }, sd, REPETITIONS);
                truth.push((centre, sd));
                CellNight {
                    cell: name(c),
                    sharing: "mps".into(),
                    quantity: "epoch_time_s".into(),
                    outcome: "completed".into(),
                    against: if c < BASELINES { vec![] } else { vec![name(c % BASELINES)] },
                    first,
                    ..CellNight::default()
                }
            })
            .collect();
        (NightlyRun { id: format!("night-{}", self.night), cells, ..NightlyRun::default() }, truth)
    }

    /// A night with its second stage: what is suspicious is measured again, with its baselines.
    fn judged(&mut self, judge: &mut Judge, step: &dyn Fn(usize) -> f64) -> JudgedNight {
        let (mut night, truth) = self.next(step);
        if judge.rules.again {
            let suspects = judge.suspects(&night);
            for (c, cell) in night.cells.iter_mut().enumerate() {
                if suspects.iter().any(|s| s.cell == cell.cell || s.against.contains(&cell.cell)) {
                    cell.again = self.random.mean(truth[c].0, truth[c].1, judge.rules.more);
                }
            }
        }
        judge.take(&night)
    }
}

fn name(cell: usize) -> String {
    format!("cell {cell}")
}

const NO_STEP: &dyn Fn(usize) -> f64 = &|_| 0.0;

/// Nights with a false alarm, of so many after twenty nights of history; and how many cells were measured again a night.
fn false_alarms(kind: Kind, repeat_sd: f64, rules: Rules, nights: usize) -> (f64, f64, f64) {
    let (mut alarms, mut common, mut suspects, mut total) = (0, 0, 0, 0);
    let mut seed = 1;
    while total < nights {
        seed += 1;
        let mut world = World::new(kind, repeat_sd, 20_261_121 + seed);
        let mut judge = Judge::new(rules);
        for _ in 0..20 {
            world.judged(&mut judge, NO_STEP);
        }
        for _ in 0..60.min(nights - total) {
            let judged = world.judged(&mut judge, NO_STEP);
            assert!(judged.whole && judged.gone.is_empty());
            let slower = judged.common.as_ref().is_some_and(collo_compare::history::Common::is_worse);
            alarms += usize::from(slower || !judged.steps.is_empty());
            common += usize::from(slower);
            suspects += judged.suspects.len() + judged.steps.len();
            total += 1;
        }
    }
    (alarms as f64 / total as f64, common as f64 / total as f64, suspects as f64 / total as f64)
}

/// What became of steps of a known size.
struct Found {
    /// Share found within three nights.
    rate: f64,
    /// Mean of the reported sizes minus the true one.
    off: f64,
}

/// One cell steps after twenty nights, eight cells of each history in turn; `size` may depend on what the judge could show then.
fn power(kind: Kind, repeat_sd: f64, rules: Rules, histories: u64, size: &dyn Fn(&Judge, &str) -> f64) -> Found {
    let stepping: Vec<usize> = (0..8).map(|k| 15 + 10 * k).collect();
    let (mut found, mut off) = (0, 0.0);
    for seed in 0..histories {
        let mut world = World::new(kind, repeat_sd, 77 + 1000 * seed);
        // These have exactly the noise that the table names.
        stepping.iter().for_each(|&c| world.factor[c] = 1.0);
        let mut before = Judge::new(rules);
        for _ in 0..20 {
            world.judged(&mut before, NO_STEP);
        }
        for &stepped in &stepping {
            let (mut world, mut judge) = (world.clone(), before.clone());
            world.random.0 ^= stepped as u64;
            let size = size(&before, &name(stepped)).ln_1p();
            let step = |c: usize| if c == stepped { size } else { 0.0 };
            for _ in 0..3 {
                world.judged(&mut judge, &step);
            }
            let own = judge.tracks.iter().find(|t| t.cell == name(stepped)).expect("a track per cell");
            if let Some(s) = own.steps.iter().find(|s| s.night >= 20 && s.is_worse() == (size > 0.0)) {
                found += 1;
                off += s.ratio.estimate.ln() - size;
            }
        }
    }
    Found { rate: f64::from(found) / (histories * 8) as f64, off: off / f64::from(found.max(1)) }
}

/// Five hundred nights, of which one in twenty and two standard errors may raise a false alarm.
fn alarms_are_rare(kind: Kind, rules: Rules, noises: &[f64]) {
    const NIGHTS: usize = 500;
    let limit = 0.05 + 2.0 * (0.05f64 * 0.95 / NIGHTS as f64).sqrt();
    for &repeat_sd in noises {
        let (rate, common, again) = false_alarms(kind, repeat_sd, rules, NIGHTS);
        let repeat = repeat_sd * 100.0;
        println!(
            "{kind:?}, repeats {repeat:.0} %: {rate:.3} of nights with a false alarm, {common:.3} of all cells, {again:.1} suspicious cells a night"
        );
        assert!(rate <= limit, "{kind:?} {repeat_sd}: {rate} > {limit}");
    }
}

#[test]
fn false_alarms_are_rare_on_independent_nights() {
    alarms_are_rare(Kind::Independent, Rules::default(), &NOISES);
}

#[test]
fn false_alarms_are_rare_on_nights_that_follow_each_other() {
    alarms_are_rare(Kind::Correlated, Rules::default(), &NOISES);
}

#[test]
fn false_alarms_are_rare_when_all_cells_move_together() {
    alarms_are_rare(Kind::Shared, Rules::default(), &NOISES);
    alarms_are_rare(Kind::SharedCorrelated, Rules::default(), &[0.01, 0.03]);
}

#[test]
fn false_alarms_are_rare_where_a_third_of_the_cells_is_slower_at_weekends() {
    alarms_are_rare(Kind::Weekend, Rules::default(), &[0.01, 0.03]);
}

/// What becomes of a change on the twenty-first night and two nights more: the share of its cells reported slower, of the others
/// reported faster, and how often all cells were called slower.
fn change_of_many(kind: Kind, repeat_sd: f64, again: bool, moved: &dyn Fn(usize) -> bool, size: f64) -> (f64, f64, f64) {
    const HISTORIES: u64 = 12;
    let (mut slower, mut faster, mut common) = (0, 0, 0);
    let step = |c: usize| if moved(c) { size.ln_1p() } else { 0.0 };
    let cells = (0..CELLS).filter(|c| moved(*c)).count();
    for seed in 0..HISTORIES {
        let mut world = World::new(kind, repeat_sd, 900 + seed);
        let mut judge = Judge::new(Rules { again, ..Rules::default() });
        (0..20).for_each(|_| drop(world.judged(&mut judge, NO_STEP)));
        let mut whole = false;
        for _ in 0..3 {
            let judged = world.judged(&mut judge, &step);
            whole |= judged.common.as_ref().is_some_and(collo_compare::history::Common::is_worse);
        }
        common += usize::from(whole);
        let stepped = |c: usize, worse: bool| {
            let track = judge.tracks.iter().find(|t| t.cell == name(c)).expect("a track per cell");
            track.steps.iter().any(|s| s.night >= 20 && s.is_worse() == worse)
        };
        slower += (0..CELLS).filter(|&c| moved(c) && stepped(c, true)).count();
        faster += (0..CELLS).filter(|&c| !moved(c) && stepped(c, false)).count();
    }
    let share = |n: usize, of: usize| n as f64 / (of as f64 * HISTORIES as f64).max(1.0);
    (share(slower, cells), share(faster, CELLS - cells), common as f64 / HISTORIES as f64)
}

#[test]
fn what_moves_a_part_of_the_cells_is_found_cell_by_cell_and_the_others_are_never_faster() {
    type Moved = (&'static str, fn(usize) -> bool);
    let parts: [Moved; 4] =
        [("all that share", |c| c >= BASELINES), ("60 %", |c| c % 10 < 6), ("half", |c| c % 2 == 0), ("30 %", |c| c % 10 < 3)];
    for (what, moved) in parts {
        for (size, repeat_sd, least) in [(0.08, 0.015, 0.95), (0.05, 0.015, 0.85), (0.08, 0.03, 0.6)] {
            for again in [true, false] {
                let (slower, faster, common) = change_of_many(Kind::Independent, repeat_sd, again, &moved, size);
                println!(
                    "{what} {:+.0} %, repeats {:.1} %, measured again {again}: slower {slower:.3}, others faster {faster:.4}, all cells {common:.2}",
                    size * 100.0,
                    repeat_sd * 100.0
                );
                assert!(
                    slower >= if again { least } else { least - 0.3 } && faster <= 0.005 && common <= 0.1,
                    "{what} {size} {repeat_sd} {again}: {slower} {faster} {common}"
                );
            }
        }
    }
}

#[test]
fn what_moves_all_cells_makes_the_night_slower_and_no_cell() {
    for (kind, size, least) in [(Kind::Independent, 0.08, 1.0), (Kind::Independent, 0.03, 1.0), (Kind::Shared, 0.12, 0.8)] {
        let (slower, _, common) = change_of_many(kind, 0.015, true, &|_| true, size);
        println!("{kind:?} all {:+.0} %: all cells {common:.2}, single ones {slower:.4}", size * 100.0);
        assert!(common >= least && slower <= 0.005, "{kind:?} {size}: {common} {slower}");
    }
}

#[test]
fn false_alarms_are_rare_among_wild_nights() {
    alarms_are_rare(Kind::Wild, Rules::default(), &NOISES);
}

#[test]
fn without_a_second_stage_false_alarms_are_rare_too() {
    for kind in [Kind::Independent, Kind::Correlated, Kind::Shared] {
        alarms_are_rare(kind, Rules { again: false, ..Rules::default() }, &[0.02, 0.05]);
    }
}

#[test]
fn a_step_of_five_percent_is_found_within_three_nights() {
    for kind in [Kind::Independent, Kind::Correlated, Kind::Shared, Kind::Wild] {
        for (repeat_sd, least) in [(0.01, 0.95), (0.02, 0.95), (0.03, 0.7), (0.05, 0.0)] {
            // Two hundred steps where a rate is promised, eighty where it is only told.
            let histories = if (0.015..0.035).contains(&repeat_sd) { 25 } else { 10 };
            let found = power(kind, repeat_sd, Rules::default(), histories, &|_, _| 0.05);
            let (repeat, rate, off) = (repeat_sd * 100.0, found.rate, found.off * 100.0);
            println!("{kind:?}, repeats {repeat:.0} %: 5 % found in {rate:.3} of {}, its size off by {off:+.2} %", histories * 8);
            // The wild world throws cells about on purpose: its rate is printed.
            let slack = if kind == Kind::Wild { 0.06 } else { 0.0 };
            assert!(rate >= least - slack, "{kind:?} {repeat_sd}: {rate}");
        }
    }
}

#[test]
fn an_improvement_is_found_as_well_as_a_regression() {
    let found = power(Kind::Independent, 0.02, Rules::default(), 20, &|_, _| 1.0 / 1.05 - 1.0);
    assert!(found.rate >= 0.95, "{}", found.rate);
}

#[test]
fn the_step_that_a_cell_says_it_detects_is_found_in_four_of_five_cases() {
    for again in [true, false] {
        for repeat_sd in [0.01, 0.02, 0.03, 0.05] {
            let rules = Rules { again, ..Rules::default() };
            let says = |judge: &Judge, cell: &str| {
                let track = judge.tracks.iter().position(|t| t.cell == cell).expect("a track per cell");
                judge.detectable()[track].expect("twenty nights are enough")
            };
            let found = power(Kind::Independent, repeat_sd, rules, 12, &says);
            println!("measured again: {again}, repeats {:.0} %: {:.3} of 96", repeat_sd * 100.0, found.rate);
            assert!(found.rate >= 0.8 - 2.0 * (0.16f64 / 96.0).sqrt(), "{again} {repeat_sd}: {}", found.rate);
        }
    }
}
