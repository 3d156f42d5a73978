//! Serving members: the latency of their answers, alone and beside training, and the speed of the training members beside them.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::absent::NOBODY_SERVES;
use collo_analysis::cell::server::Server;
use collo_analysis::cell::{Cell, Member};
use collo_figures::chart::{MarkRow, MarkRows, RowMark, RowScale, Tail, TailChart};
use collo_figures::document::{Block, Figure, Section, Table, TableCell, TableColumn};
use collo_figures::draw::Panel;
use collo_figures::modes::mode_order;
use collo_guidelines::groups::serving::{Promise, criterion, kept};
use collo_quantity::stats::Quantity;
use collo_quantity::{Key, number};
use collo_store::without_mode;

use crate::parts::absent::{Content, numbers};
use crate::parts::figure::{failure, figure, hover, indicative_note, legend_with, mark};
use crate::parts::panels::members;
use crate::parts::values::{finish, label, times, with_validity};
use crate::report::Report;

/// Maximum number of serving workloads drawn, and of groups of one of them.
const SERVERS: usize = 6;
const GROUPS: usize = 9;
const MS: f64 = 1e3;

/// One serving workload, with its cells in the order of the plan: alone first.
struct ServingSubject<'a> {
    solo: &'a str,
    servers: Vec<Server<'a>>,
}

/// Cells with the same members, by mode.
struct ServingGroup<'a> {
    label: String,
    servers: Vec<Server<'a>>,
}

pub fn section(report: &Report) -> Content {
    let analysis = &report.analysis;
    if !analysis.cells.iter().any(Cell::serves) {
        return Err(format!("{} in this experiment.", collo_analysis::words::capital(NOBODY_SERVES)));
    }
    numbers(analysis)?;
    let subjects = subjects(analysis);
    let mut blocks = Vec::new();
    blocks.extend(p99s(analysis, &subjects).map(Block::Figure));
    blocks.extend(lateness(analysis, &subjects).map(Block::Figure));
    if blocks.is_empty() {
        blocks.push(Block::Table(table(analysis, &subjects)));
    }
    Ok(Section { blocks, ..report.judged("serving") }.answering())
}

fn subjects(analysis: &Analysis) -> Vec<ServingSubject<'_>> {
    let mut found: Vec<ServingSubject> = Vec::new();
    for server in analysis.cells.iter().flat_map(Cell::servers) {
        match found.iter_mut().find(|s| s.solo == server.solo) {
            Some(subject) => subject.servers.push(server),
            None => found.push(ServingSubject { solo: server.solo, servers: vec![server] }),
        }
    }
    for subject in &mut found {
        subject.servers.sort_by_key(|s| (!s.cell.is_solo(), s.cell.record.degree));
    }
    found
}

impl<'a> ServingSubject<'a> {
    fn alone(&self) -> Option<&Server<'a>> {
        self.servers.iter().find(|s| s.cell.is_solo())
    }

    /// Its cells by the other members: alone, then the groups, each with its modes.
    fn groups(&self) -> Vec<ServingGroup<'a>> {
        let mut found: Vec<ServingGroup> = Vec::new();
        for server in &self.servers {
            let label = if server.cell.is_solo() { "alone".to_string() } else { members(server.cell, false) };
            match found.iter_mut().find(|g| g.label == label) {
                Some(group) => group.servers.push(*server),
                None => found.push(ServingGroup { label, servers: vec![*server] }),
            }
        }
        found.iter_mut().for_each(|g| g.servers.sort_by_key(|s| mode_order(&s.cell.record.sharing)));
        found
    }

    fn limit(&self) -> Option<(f64, String)> {
        let slo = self.servers.iter().find_map(|s| s.serving.slo_s)?;
        Some((slo * MS, format!("limit {}", number::duration(slo))))
    }

    /// `20 requests a second, up to 4 together`.
    fn asked(&self) -> String {
        let Some(serving) = self.servers.first().map(|s| s.serving) else { return String::new() };
        let together = match serving.batch_size {
            0 | 1 => String::new(),
            n => format!(", up to {n} together"),
        };
        format!("{} requests a second{together}", (serving.rate_per_s * 1e3).round() / 1e3)
    }
}

/// The p99 alone and beside others, by mode.
fn p99s(analysis: &Analysis, subjects: &[ServingSubject]) -> Option<Figure> {
    let drawn = &subjects[..subjects.len().min(SERVERS)];
    let shown = |s: &ServingSubject| s.servers.iter().any(|s| s.get(Key::LatencyP99).is_some());
    let ends = |s: &Server| {
        let q = s.get(Key::LatencyP99)?;
        Some([q.low.unwrap_or(q.estimate) * MS, q.high.unwrap_or(q.estimate) * MS])
    };
    let of_all = drawn.iter().flat_map(|s| &s.servers).filter_map(ends).flatten();
    let reach: Vec<f64> = of_all.chain(drawn.iter().filter_map(|s| Some(s.limit()?.0))).collect();
    let (low, high) = (reach.iter().copied().reduce(f64::min)?, reach.iter().copied().reduce(f64::max)?);
    let mut beyond = 0;
    let panels = drawn.iter().filter(|s| shown(s)).map(|subject| {
        let groups = subject.groups();
        beyond += groups.len().saturating_sub(GROUPS);
        let rows: Vec<MarkRow> = groups.iter().take(GROUPS).map(row).collect();
        let limit = subject.limit();
        let threshold = limit.as_ref().map(|(v, t)| (*v, t.as_str()));
        let drawing = MarkRows { caption: "p99, ms", rows: &rows, scale: RowScale::Logarithmic(low, high), threshold }.draw();
        let title = without_mode(subject.solo);
        Panel {
            label: format!("p99 of {title}, alone and beside others, by sharing mode"),
            title,
            subtitle: subject.asked(),
            drawing,
        }
    });
    let panels: Vec<Panel> = panels.collect();
    let mut caption = format!(
        "From when a request was due to its answer, waiting included; one request in a hundred is later. Logarithmic. \
         Whiskers: 95 % interval over repetitions, each cell by its own spread.{}",
        indicative_note(analysis.cells.iter().filter(|c| c.serves()))
    );
    let left_out = beyond + subjects.len().saturating_sub(SERVERS);
    if left_out > 0 {
        caption += &format!(" {} more are in the table.", number::count(left_out, "row"));
    }
    let mut fig = figure(analysis, "latency", "p99 alone and beside others", panels, caption, table(analysis, subjects));
    fig.legend = legend_with(drawn.iter().flat_map(|s| &s.servers).map(|s| s.cell.record.sharing.as_str()), "alone");
    (!fig.panels.is_empty()).then_some(fig)
}

fn row(group: &ServingGroup) -> MarkRow {
    MarkRow { label: group.label.clone(), marks: group.servers.iter().map(delay).collect(), ..MarkRow::default() }
}

fn delay(server: &Server) -> RowMark {
    let mut delay = mark(server.cell, "p99", server.get(Key::LatencyP99), MS, " ms");
    if let Some(share) = server.get(Key::WithinSlo) {
        delay.title += &format!("\n{} in time", number::percent(share.estimate));
    }
    RowMark { failure: Some(why(server)), ..delay }
}

/// The share of the requests that is later than a latency: alone, and beside the same others under each mode.
fn lateness(analysis: &Analysis, subjects: &[ServingSubject]) -> Option<Figure> {
    let mut panels = Vec::new();
    let mut values = Table::with(&["cell", "server", "#p50, ms", "#p95, ms", "#p99, ms", "runs"]);
    let mut cells: Vec<&Cell> = Vec::new();
    let all = || subjects.iter().take(SERVERS).flat_map(|s| &s.servers);
    // What is earlier than most is not what anybody looks for.
    let reach: Vec<f64> = all().flat_map(Server::lateness).filter(|p| p.0 < 0.7).map(|(_, late)| late * MS).collect();
    let (low, high) = (reach.iter().copied().reduce(f64::min)?, reach.iter().copied().reduce(f64::max)?);
    let high = subjects.iter().take(SERVERS).filter_map(ServingSubject::limit).map(|l| l.0).fold(high, f64::max);
    let mut modes = Vec::new();
    for subject in subjects.iter().take(SERVERS) {
        let groups = subject.groups();
        let beside = groups.iter().filter(|g| g.servers.iter().any(|s| !s.cell.is_solo()));
        // Without a group the line of the workload alone stands by itself.
        let shown: Vec<Option<&ServingGroup>> =
            if groups.len() > 1 { beside.take(GROUPS).map(Some).collect() } else { vec![None] };
        for group in shown {
            let of_group = group.iter().flat_map(|g| &g.servers);
            let servers: Vec<&Server> = subject.alone().into_iter().chain(of_group).collect();
            let tails: Vec<Tail> = servers.iter().filter_map(|s| tail(s)).collect();
            if tails.is_empty() {
                continue;
            }
            for (server, tail) in servers.iter().filter_map(|s| Some((s, tail(s)?))) {
                if !modes.contains(&tail.sharing) {
                    modes.push(tail.sharing);
                }
                // One that stands alone is in every panel, and once in the table.
                if values.rows.iter().all(|r| r.cells[0].text != server.cell.name() || r.cells[1].text != server.workload) {
                    values.row(value_row(analysis, server));
                    cells.push(server.cell);
                }
            }
            let limit = subject.limit();
            let limit = limit.as_ref().map(|(v, t)| (*v, t.as_str()));
            let drawing = TailChart { below: "latency, ms", tails: &tails, limit, range: (low, high) }.draw();
            let title = group.map_or_else(|| without_mode(subject.solo), |g| g.label.clone());
            let label = format!("share of requests to {} that exceed a latency, {title}", subject.solo);
            panels.push(Panel { title, subtitle: subject.asked(), label, drawing });
        }
    }
    let text = "The share of requests answered later, mean over repetitions at equal shares; requests never answered are later than any. Both axes are logarithmic. Marks: p50, p95 and p99, the last on the thick line. The earliest third of the requests \
                is not drawn; a line ends where a repetition has too few.";
    with_validity(&mut values, cells);
    let mut fig = figure(analysis, "lateness", "Shares of later requests", panels, text.into(), finish(analysis, values));
    fig.legend = legend_with(modes.iter().map(String::as_str), "alone");
    (!fig.panels.is_empty()).then_some(fig)
}

fn tail(server: &Server) -> Option<Tail> {
    let points: Vec<(f64, f64)> = server.lateness().into_iter().map(|(share, late)| (share, late * MS)).collect();
    let quantiles = [(Key::LatencyP50, 0.5), (Key::LatencyP95, 0.05), (Key::LatencyP99, 0.01)];
    let marks: Vec<(f64, f64, String)> = quantiles
        .into_iter()
        .filter_map(|(key, share)| {
            let q = server.get(key)?;
            Some((share, q.estimate * MS, hover(server.cell, key.head(), Some(q), MS, " ms")))
        })
        .collect();
    let sharing = server.cell.record.sharing.clone();
    (!marks.is_empty()).then(|| Tail { sharing, points, marks, indicative: !server.cell.is_valid() })
}

fn value_row(analysis: &Analysis, server: &Server) -> Vec<TableCell> {
    let ms = |key: Key| TableCell::text(server.get(key).map_or_else(String::new, |q| number::estimate(&times(q, MS))));
    let runs = server.get(Key::LatencyP50).map_or_else(String::new, |q| q.n.to_string());
    vec![
        label(analysis, server.cell),
        TableCell::text(server.workload),
        ms(Key::LatencyP50),
        ms(Key::LatencyP95),
        ms(Key::LatencyP99),
        TableCell::text(runs),
    ]
}

/// Every server of every cell.
fn table(analysis: &Analysis, subjects: &[ServingSubject]) -> Table {
    /// A server, and what it can answer alone.
    type Served<'a> = (&'a Server<'a>, Option<&'a Quantity>);
    let of = |server: &Server, key: Key, factor: f64| server.get(key).map(|q| told(&times(q, factor)));
    let text = |server: &Server, key: Key, factor: f64| of(server, key, factor).unwrap_or_default();
    let columns: &[TableColumn<Served>] = &[
        ("cell", &|(server, _)| label(analysis, server.cell)),
        ("server", &|(server, _)| {
            let limit = server.serving.slo_s.map_or("no limit".into(), |slo| format!("limit {}", number::duration(slo)));
            TableCell::with_note(server.workload, limit)
        }),
        ("#due per s", &|(server, _)| text(server, Key::Offered, 1.0)),
        ("#capacity alone", &|(_, capacity)| capacity.map(told).unwrap_or_default()),
        ("#p50, ms", &|(server, _)| text(server, Key::LatencyP50, MS)),
        ("#p95, ms", &|(server, _)| text(server, Key::LatencyP95, MS)),
        ("#p99, ms", &|(server, _)| of(server, Key::LatencyP99, MS).unwrap_or_else(|| TableCell::with_note("–", why(server)))),
        ("#p99 ÷ alone", &|(server, _)| text(server, Key::LatencyP99OfSolo, 1.0)),
        ("#in time, %", &|(server, _)| text(server, Key::WithinSlo, 100.0)),
        ("#goodput per s", &|(server, _)| text(server, Key::Goodput, 1.0)),
        ("training slowdown", &|(server, _)| {
            let slowdown = |m: &Member| Some(format!("{} {}", m.spec.workload, number::with_interval(m.get(Key::Slowdown)?)));
            TableCell::text(server.cell.trainers().filter_map(slowdown).collect::<Vec<_>>().join(", "))
        }),
        ("as asked", &|(server, _)| {
            TableCell::text(match kept(server) {
                Promise::Kept => "yes",
                Promise::Missed => "no",
                Promise::Open if server.get(criterion(server)).is_none() => match server.cell.reported {
                    Some(_) if server.cell.counts() => "not in the file",
                    _ => "",
                },
                Promise::Open => "open",
            })
        }),
    ];
    let servers = subjects.iter().flat_map(|subject| {
        let capacity = subject.alone().and_then(|s| s.cell.members.first()?.get(Key::Capacity));
        subject.servers.iter().map(move |server| (server, capacity))
    });
    let mut table = Table::of(columns, servers);
    with_validity(&mut table, subjects.iter().flat_map(|subject| &subject.servers).map(|server| server.cell));
    finish(analysis, table)
}

/// The slowdown of the members that train beside others that serve; of several the slowest's. `None` where nobody serves.
pub fn trainers_slowdown(cell: &Cell) -> Option<String> {
    let known: Vec<&Quantity> = cell.trainers().filter(|_| cell.serves()).filter_map(|m| m.get(Key::Slowdown)).collect();
    let slowest = known.iter().max_by(|a, b| a.estimate.total_cmp(&b.estimate))?;
    let of = if known.len() > 1 { format!(" (slowest of {})", known.len()) } else { String::new() };
    Some(format!("{}{of}", number::with_interval(slowest)))
}

/// An estimate with its interval below it.
fn told(q: &Quantity) -> TableCell {
    TableCell { sort: Some(q.estimate), ..TableCell::with_note(number::estimate(q), number::bounds(q)) }
}

/// Why there is no p99, in a few words.
fn why(server: &Server) -> String {
    match server.leaves_unanswered() {
        // Which of the reasons it is, is read in the runs.
        _ if server.cell.reported.is_some() => failure(server.cell).unwrap_or_else(|| "absent".into()),
        true if server.is_overloaded() => "below its rate".to_string(),
        true => "some never answered".to_string(),
        false => failure(server.cell).unwrap_or_else(|| "too few requests".into()),
    }
}
