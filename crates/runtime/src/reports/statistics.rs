//! The statistics of the job for `SHMEM_STATS`: at the last finalize PE 0 gathers the counters of
//! all PEs, and prints a table or writes a JSON file.

use crate::coll::collectives;
use crate::own_pe::OwnPe;
use rushmem_communication::links::Links;
use rushmem_communication::net::copy::CopyBetweenPes;
use rushmem_communication::observers::counters::{self, ContextCounters, Counters, Tally};
use rushmem_communication::observers::{self, AccessKind, CallKind, Observer};
use rushmem_pe::call::warning::warning;
use rushmem_pe::call::{Call, fail};
use rushmem_pe::job::Job;
use rushmem_pe::memory::areas::MIN_RECEIVE_BUFFER;
use rushmem_pe::settings::Statistics;
use rushmem_system::codec;
use rushmem_system::stderr;
use rushmem_trace::units::{size, time};
use rushmem_transport::progress::state::count_operations_in_flight;
use rushmem_transport::{NetworkActivity, Pe};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::Path;

/// Starts counting, in the first init, if `SHMEM_STATS` is set. PE 0 creates the JSON file, if one
/// is requested, and ends the job with an error if it cannot.
pub(crate) fn start(call: Call, job: &Job) {
    if counters::get().is_some() {
        return;
    }
    match &job.settings.statistics {
        Statistics::No => return,
        Statistics::Json(file) if job.me == Pe(0) => {
            if let Err(error) = File::create(file) {
                fail!(
                    call,
                    "SHMEM_STATS: {file} cannot be written: {error}; name another file"
                );
            }
        }
        Statistics::Json(_) | Statistics::Table => {}
    }

    count_operations_in_flight();
    let own = job.nodes.node_of(job.me.0);
    counters::start((0..job.n_pes).map(|pe| job.nodes.node_of(pe) == own));
    observers::add(Observer::Counters);
}

/// Returns the encoded counters of this PE; `None` if it does not count.
pub(crate) fn encode(links: &Links) -> Option<Vec<u8>> {
    let own = PeStatistics::new(links, counters::get()?);
    Some(codec::encode(&own))
}

/// Gathers the counters of all PEs and prints or writes them on PE 0. All PEs call this.
pub(crate) fn report(pe: &'static OwnPe, call: Call, own: Vec<u8>) {
    let job = pe.job();
    let encoded = gather(pe, call, own);
    if job.me != Pe(0) {
        return;
    }

    let mut pes: Vec<PeStatistics> = Vec::new();
    for (pe, bytes) in encoded.iter().enumerate() {
        match codec::decode(bytes) {
            Ok(statistics) => pes.push(statistics),
            Err(error) => fail!(call, "the statistics of PE {pe} cannot be read: {error}"),
        }
    }

    // The program has produced its result, so a failure is only a warning.
    let written = match &job.settings.statistics {
        Statistics::Json(file) => {
            let all = JobStatistics::new(job, pes);
            all.write(Path::new(file))
                .map_err(|error| format!("{file} cannot be written: {error}"))
        }
        _ => stderr::print(&table(&pes))
            .map_err(|error| format!("the table cannot be printed: {error}")),
    };
    if let Err(why) = written {
        warning!("SHMEM_STATS: {why}");
    }
}

/// Gathers the bytes of each PE on PE 0, which reads them from a receive buffer of that PE: receive
/// buffers are only in use during collectives. On the other PEs the elements of the result are
/// empty.
fn gather(pe: &'static OwnPe, call: Call, own: Vec<u8>) -> Vec<Vec<u8>> {
    let Links {
        job,
        area,
        endpoints,
        ..
    } = pe.links;
    if job.n_pes == 1 {
        return vec![own];
    }

    let lengths = collectives::gather_words(pe, call, pe.teams.world(), own.len() as u64);
    let longest = lengths.iter().copied().max().unwrap_or(0) as usize;
    let receive_buffer = area.range(area.areas().packed(0), MIN_RECEIVE_BUFFER);
    let mut all = vec![Vec::new(); lengths.len()];

    // Every PE takes part in all rounds, also one whose bytes have ended, since a round has two
    // barriers.
    for start in (0..longest).step_by(MIN_RECEIVE_BUFFER) {
        let shown = round_of(own.len(), start);
        receive_buffer.part(0, shown.len()).write(&own[shown]);
        collectives::barrier_all((pe, call));

        if job.me == Pe(0) {
            for (pe, &length) in lengths.iter().enumerate() {
                let nbytes = round_of(length as usize, start).len();
                all[pe].extend(
                    receive_buffer
                        .part(0, nbytes)
                        .read(endpoints, Pe(pe as u32)),
                );
            }
        }

        // The next part overwrites this one, which PE 0 must have read.
        collectives::barrier_all((pe, call));
    }
    all
}

/// Returns which of a PE's `nbytes` bytes are in the round that begins at `start`; an empty range
/// if these bytes end before it.
fn round_of(nbytes: usize, start: usize) -> Range<usize> {
    start.min(nbytes)..nbytes.min(start + MIN_RECEIVE_BUFFER)
}

/// A number of operations, and their bytes.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Traffic {
    operations: u64,
    bytes: u64,
}

/// A number of calls, and the time in them.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct CallTime {
    calls: u64,
    nanoseconds: u64,
}

/// Traffic by the name of the kind of access.
type TrafficByKind = BTreeMap<String, Traffic>;

/// The operations issued on the contexts that had one index.
#[derive(Serialize, Deserialize)]
struct ContextStatistics {
    context: usize,
    on_node: TrafficByKind,
    off_node: TrafficByKind,
}

/// The operations on one PE.
#[derive(Serialize, Deserialize)]
struct PeerStatistics {
    pe: u32,
    operations: u64,
    bytes: u64,
}

/// The counters of a PE, without those that are zero.
#[derive(Serialize, Deserialize)]
struct PeStatistics {
    pe: u32,
    node: u32,
    calls: BTreeMap<String, CallTime>,
    contexts: Vec<ContextStatistics>,
    peers: Vec<PeerStatistics>,
    /// The network activity of its threads.
    network: BTreeMap<String, u64>,
}

/// The content of the JSON file.
#[derive(Serialize)]
struct JobStatistics {
    /// The version of the format.
    version: u32,
    n_pes: u32,
    pes: Vec<PeStatistics>,
}

const VERSION: u32 = 1;

impl PeStatistics {
    fn new(links: &Links, counters: &Counters) -> PeStatistics {
        let job = &links.job;
        let mut calls = BTreeMap::new();
        for (name, tally) in CallKind::NAMES.iter().zip(&counters.calls) {
            let (n_calls, nanoseconds) = tally.read();
            if n_calls > 0 {
                let time = CallTime {
                    calls: n_calls,
                    nanoseconds,
                };
                calls.insert((*name).to_owned(), time);
            }
        }

        let mut contexts = Vec::new();
        for (index, of_context) in counters.contexts() {
            contexts.push(ContextStatistics::new(index, of_context));
        }

        let mut peers = Vec::new();
        for (pe, peer) in (0..).zip(&counters.peers) {
            let Traffic { operations, bytes } = Traffic::of(&peer.traffic);
            if operations > 0 {
                peers.push(PeerStatistics {
                    pe,
                    operations,
                    bytes,
                });
            }
        }

        let mut network = BTreeMap::new();
        if let Some(activity) = links.network.activity() {
            for (name, n) in activity.by_name() {
                if n > 0 {
                    network.insert(name.to_owned(), n);
                }
            }
        }

        PeStatistics {
            pe: job.me.0,
            node: job.nodes.node_of(job.me.0),
            calls,
            contexts,
            peers,
            network,
        }
    }
}

impl ContextStatistics {
    fn new(context: usize, counters: &ContextCounters) -> ContextStatistics {
        let mut on_node = TrafficByKind::new();
        let mut off_node = TrafficByKind::new();
        for (name, tallies) in AccessKind::NAMES.iter().zip(&counters.accesses) {
            for (traffic, tally) in [&mut on_node, &mut off_node].into_iter().zip(tallies) {
                let of_kind = Traffic::of(tally);
                if of_kind.operations > 0 {
                    traffic.insert((*name).to_owned(), of_kind);
                }
            }
        }
        ContextStatistics {
            context,
            on_node,
            off_node,
        }
    }
}

impl Traffic {
    fn of(tally: &Tally) -> Traffic {
        let (operations, bytes) = tally.read();
        Traffic { operations, bytes }
    }
}

impl JobStatistics {
    fn new(job: &Job, pes: Vec<PeStatistics>) -> JobStatistics {
        JobStatistics {
            version: VERSION,
            n_pes: job.n_pes,
            pes,
        }
    }

    fn write(&self, file: &Path) -> std::io::Result<()> {
        let mut file = BufWriter::new(File::create(file)?);
        serde_json::to_writer(&mut file, self)?;
        file.write_all(b"\n")?;
        file.flush()
    }
}

/// Maximum number of PEs for which the table has a matrix of bytes between PEs: lines of more
/// columns are wider than a terminal. The JSON file has these numbers for any number of PEs.
const MAX_IN_MATRIX: usize = 7;

/// Returns the text of the table: the spread over the PEs of each counter that some PE has counted,
/// and the [`matrix`].
fn table(pes: &[PeStatistics]) -> String {
    let n_pes = pes.len();
    let mut text = format!("SHMEM_STATS: what {n_pes} PEs sent, by the PE that called\n");

    let counted = ["operations", "bytes"];
    let on_node = traffic_rows(pes, |context| &context.on_node);
    section(&mut text, "on the node", counted, size, on_node);
    let off_node = traffic_rows(pes, |context| &context.off_node);
    section(&mut text, "off the node", counted, size, off_node);
    section(&mut text, "calls", ["calls", "time"], time, call_rows(pes));

    network(&mut text, pes);
    matrix(&mut text, pes);
    text
}

/// A row of a section: two counters of each PE.
struct Row {
    kind: &'static str,
    /// The number of operations or calls of each PE.
    counts: Vec<u64>,
    /// The bytes or nanoseconds of each PE.
    amounts: Vec<u64>,
}

/// Returns the operations and bytes of each kind of access, over all contexts of a PE.
fn traffic_rows(pes: &[PeStatistics], side: fn(&ContextStatistics) -> &TrafficByKind) -> Vec<Row> {
    let mut rows = Vec::new();
    for &kind in AccessKind::NAMES {
        let mut counts = Vec::new();
        let mut amounts = Vec::new();
        for pe in pes {
            let mut sum = Traffic::default();
            for traffic in pe.contexts.iter().filter_map(|of| side(of).get(kind)) {
                sum.operations += traffic.operations;
                sum.bytes += traffic.bytes;
            }
            counts.push(sum.operations);
            amounts.push(sum.bytes);
        }
        rows.push(Row {
            kind,
            counts,
            amounts,
        });
    }
    rows
}

/// Returns the calls of each kind, and the time in them.
fn call_rows(pes: &[PeStatistics]) -> Vec<Row> {
    let mut rows = Vec::new();
    for &kind in CallKind::NAMES {
        let mut counts = Vec::new();
        let mut amounts = Vec::new();
        for pe in pes {
            let time = pe.calls.get(kind).copied().unwrap_or_default();
            counts.push(time.calls);
            amounts.push(time.nanoseconds);
        }
        rows.push(Row {
            kind,
            counts,
            amounts,
        });
    }
    rows
}

/// Appends a row for each counter of the activity of threads on the network that some PE has
/// counted.
fn network(text: &mut String, pes: &[PeStatistics]) {
    let mut rows = String::new();
    for (name, _) in NetworkActivity::default().by_name() {
        let mut of_pes = Vec::new();
        for pe in pes {
            of_pes.push(pe.network.get(name).copied().unwrap_or(0));
        }

        let n = Spread::of(&of_pes);
        if n.max > 0 {
            rows += &format!(
                "  {name:<14} {:>10} {:>10} {:>10} {:>6}\n",
                n.min, n.median, n.max, n.max_pe
            );
        }
    }

    if !rows.is_empty() {
        *text += &format!(
            "{:<16} {:>10} {:>10} {:>10} {:>6}\n",
            "network", "min", "median", "max", "PE"
        );
        *text += &rows;
    }
}

/// Appends the matrix of the bytes that each PE has written to and read from each PE, if there are
/// at most [`MAX_IN_MATRIX`] PEs.
fn matrix(text: &mut String, pes: &[PeStatistics]) {
    if pes.len() > MAX_IN_MATRIX {
        return;
    }

    text.push_str("bytes by PE     ");
    for to in 0..pes.len() {
        text.push_str(&format!(" {:>10}", format!("to {to}")));
    }
    text.push('\n');

    for pe in pes {
        text.push_str(&format!("  from {:<9}", pe.pe));
        for to in 0..pes.len() {
            // A peer without traffic has no entry.
            let peer = pe.peers.iter().find(|peer| peer.pe as usize == to);
            let bytes = peer.map_or(0, |peer| peer.bytes);
            text.push_str(&format!(" {:>10}", size(bytes)));
        }
        text.push('\n');
    }
}

/// Appends a section with a row for each kind that some PE has counted. The heading names the
/// counts and the amounts of the rows; `shown` formats an amount.
fn section(
    text: &mut String,
    title: &str,
    [counts, amounts]: [&str; 2],
    shown: fn(u64) -> String,
    mut rows: Vec<Row>,
) {
    rows.retain(|row| row.counts.iter().any(|count| *count > 0));
    if rows.is_empty() {
        return;
    }

    *text += &format!(
        "{title:<12} {:>14} {:>10} {:>10} {:>6} {:>11} {:>10} {:>10} {:>6}\n",
        format!("{counts}: min"),
        "median",
        "max",
        "PE",
        format!("{amounts}: min"),
        "median",
        "max",
        "PE"
    );

    for row in rows {
        let counts = Spread::of(&row.counts);
        let amounts = Spread::of(&row.amounts);
        *text += &format!(
            "  {:<14} {:>10} {:>10} {:>10} {:>6} {:>11} {:>10} {:>10} {:>6}\n",
            row.kind,
            counts.min,
            counts.median,
            counts.max,
            counts.max_pe,
            shown(amounts.min),
            shown(amounts.median),
            shown(amounts.max),
            amounts.max_pe
        );
    }
}

/// The spread of a counter over the PEs.
#[derive(Debug, PartialEq, Eq)]
struct Spread {
    min: u64,
    median: u64,
    max: u64,
    /// The first PE with the maximum.
    max_pe: usize,
}

impl Spread {
    fn of(values: &[u64]) -> Spread {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        let max = sorted.last().copied().unwrap_or(0);
        Spread {
            min: sorted.first().copied().unwrap_or(0),
            median: sorted.get(sorted.len() / 2).copied().unwrap_or(0),
            max,
            max_pe: values.iter().position(|value| *value == max).unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_names_the_first_pe_with_the_maximum() {
        let spread = Spread {
            min: 1,
            median: 4,
            max: 7,
            max_pe: 2,
        };
        assert_eq!(Spread::of(&[1, 4, 7, 7, 2]), spread);

        let of_one = Spread {
            min: 5,
            median: 5,
            max: 5,
            max_pe: 0,
        };
        assert_eq!(Spread::of(&[5]), of_one);
    }

    #[test]
    fn rows_of_zeros_are_left_out() {
        let mut text = String::new();
        let put = Row {
            kind: "put",
            counts: vec![0, 2],
            amounts: vec![0, 16],
        };
        let get = || Row {
            kind: "get",
            counts: vec![0, 0],
            amounts: vec![0, 0],
        };

        let counted = ["operations", "bytes"];
        section(&mut text, "on the node", counted, size, vec![put, get()]);
        assert!(text.contains("\n  put ") && !text.contains("get"), "{text}");

        section(&mut text, "off the node", counted, size, vec![get()]);
        assert!(!text.contains("off the node"), "{text}");

        let long = Row {
            kind: "put_signal_nbi",
            counts: vec![1 << 33],
            amounts: vec![3 << 40],
        };
        section(&mut text, "off the node", counted, size, vec![long]);
        assert!(text.contains(" 3.0 TiB"), "{text}");
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    }
}
