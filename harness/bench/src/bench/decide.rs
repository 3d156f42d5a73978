//! What a decision costs with its book-keeping, on sites of three sizes, beside a bare scan of the same cards.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use collo_quantity::stats::median;
use collo_schedule::{
    Act, Attempt, AttemptId, CardId, CardView, Happened, HowEnded, Ledger, Reading, Rules, SiteCard, Task, TaskId,
};

use super::Effort;
use crate::figure::{Figure, Statistic};
use crate::scratch_project::ScratchProject;

const GB: u64 = 1_000_000_000;
/// Cards, the limit of the 99th percentile in seconds, and how often a task comes and goes.
const SITES: [(u32, f64, usize); 3] = [(4, 20e-6, 10_000), (64, 50e-6, 4_000), (1000, 200e-6, 1_000)];
/// Tasks that wait meanwhile.
const WAITING: u32 = 1000;
const POLICY: &str = "magm:sm=80%,free=5GB";
const BUSY: Reading =
    Reading { free_bytes: Some(20 * GB), sm_permille: Some(900), occupancy_permille: None, dram_permille: None, read_ns: 0 };

pub fn run(_: &ScratchProject, effort: Effort) -> Result<Vec<Figure>> {
    SITES.iter().map(|(cards, limit_s, times)| figure(*cards, *limit_s, effort.times(*times))).collect()
}

fn figure(cards: u32, limit_s: f64, times: usize) -> Result<Figure> {
    let mut site = BusySite::of(cards)?;
    for _ in 0..times {
        site.turn()?;
    }
    let mut scans: Vec<f64> = (0..site.seconds.len().min(5000)).map(|_| scan(site.ledger.cards())).collect();
    let peer = median(&mut scans).context("no scan was timed")?;
    Ok(Figure {
        limit: Some((limit_s, Statistic::P99)),
        peer: Some(("a bare scan", peer)),
        note: Some(format!("`{POLICY}`, {WAITING} tasks waiting, every decision recorded; {} events", site.seconds.len())),
        ..Figure::of_seconds(format!("a decision, {cards} cards"), &site.seconds)
    })
}

/// The emptiest card that is below the cap and has enough free, and nothing else.
fn scan(cards: &[CardView]) -> f64 {
    let begin = Instant::now();
    let fits = |card: &&CardView| card.sm_permille.is_some_and(|sm| sm <= 800) && card.unpromised_bytes() >= 5 * GB;
    black_box(black_box(cards).iter().filter(fits).max_by_key(|card| card.unpromised_bytes()));
    begin.elapsed().as_secs_f64()
}

/// A site on which every card is above its cap and many tasks wait, so that each event asks for the first of them.
struct BusySite {
    ledger: Ledger,
    live: Vec<Attempt>,
    tasks: u32,
    turns: usize,
    now_ns: u64,
    seconds: Vec<f64>,
    acts: Vec<Act>,
}

impl BusySite {
    fn of(cards: u32) -> Result<BusySite> {
        let card = SiteCard { capacity_bytes: 40 * GB, reserve_bytes: GB, node: 0 };
        let rules = Rules::of(POLICY, vec![card; cards as usize]);
        let ledger = Ledger::open(&rules).map_err(|wrong| anyhow!("{wrong}"))?;
        let mut site =
            BusySite { ledger, live: Vec::new(), tasks: 0, turns: 0, now_ns: 0, seconds: Vec::new(), acts: Vec::new() };
        for _ in 0..cards + WAITING {
            site.arrive();
        }
        for attempt in site.live.clone() {
            site.settle(attempt.id);
        }
        (0..cards).for_each(|card| site.read(CardId(card), BUSY));
        site.seconds.clear();
        Ok(site)
    }

    /// One leaves, its card is read, the next comes, settles, and its card is read.
    fn turn(&mut self) -> Result<()> {
        let at = self.turns % self.live.len();
        self.turns += 1;
        let gone = self.live.swap_remove(at);
        let card = *gone.cards.first().context("an attempt without a card")?;
        self.tell(Happened::Ended(gone.id, HowEnded::Completed));
        self.read(card, Reading { free_bytes: Some(39 * GB), sm_permille: Some(600), ..BUSY });
        let newest = self.live.last().context("nobody runs")?.id;
        self.tell(Happened::Started(newest));
        self.settle(newest);
        self.read(card, BUSY);
        self.arrive();
        Ok(())
    }

    fn arrive(&mut self) {
        let task =
            Task { id: TaskId(self.tasks), arrives_ns: self.now_ns, cards: 1, estimate_bytes: None, believed_permille: None };
        self.tasks += 1;
        self.tell(Happened::Arrived(task));
    }

    fn settle(&mut self, attempt: AttemptId) {
        self.tell(Happened::Settled(attempt, Some(19 * GB)));
    }

    fn read(&mut self, card: CardId, reading: Reading) {
        self.tell(Happened::Read(card, Reading { read_ns: self.now_ns, ..reading }));
    }

    fn tell(&mut self, what: Happened) {
        // Readings stay within the window, however long the benchmark runs.
        self.now_ns += 1000;
        self.acts.clear();
        let begin = Instant::now();
        self.ledger.on(what, self.now_ns, &mut self.acts);
        let decided = self.ledger.take_decided();
        self.seconds.push(begin.elapsed().as_secs_f64());
        black_box(decided);
        self.live.extend(self.acts.drain(..).filter_map(|act| if let Act::Start(attempt) = act { Some(attempt) } else { None }));
    }
}
