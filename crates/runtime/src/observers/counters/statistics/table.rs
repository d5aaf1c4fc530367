//! The statistics of a job as tables: of each counter that is not zero everywhere the minimum, the
//! median and the maximum, and on which PE that is; and for few PEs who has sent how much to whom.

use super::form::{ContextStatistics, PeStatistics, TrafficByKind};
use crate::observers::{AccessKind, CallKind};
use rushmem_trace::units::{size, time};
use rushmem_transport::NetworkActivity;
use std::fmt::Write;

/// The most PEs for which there is a matrix; the file has it for any number.
const IN_MATRIX: usize = 7;

/// Returns the table, by kinds.
pub(super) fn of(pes: &[PeStatistics]) -> String {
    let n_pes = pes.len();
    let mut text = format!("SHMEM_STATS: what {n_pes} PEs sent, by the PE that called\n");
    type Side = fn(&ContextStatistics) -> &TrafficByKind;
    let sides: [(&str, Side); 2] = [
        ("on the node", |context| &context.on_node),
        ("off the node", |context| &context.off_node),
    ];
    for (title, side) in sides {
        let rows = AccessKind::NAMES.iter().map(|kind| {
            let of = |pe: &PeStatistics| {
                let by_context = pe.contexts.iter().filter_map(|context| side(context).get(*kind));
                by_context
                    .fold((0, 0), |(n, sum), traffic| (n + traffic.operations, sum + traffic.bytes))
            };
            (*kind, pes.iter().map(of).collect())
        });
        section(&mut text, title, ["operations", "bytes"], size, rows);
    }
    let rows = CallKind::NAMES.iter().map(|kind| {
        let of = |pe: &PeStatistics| {
            pe.calls.get(*kind).map_or((0, 0), |time| (time.calls, time.nanoseconds))
        };
        (*kind, pes.iter().map(of).collect())
    });
    section(&mut text, "calls", ["calls", "time"], time, rows);
    network(&mut text, pes);
    matrix(&mut text, pes);
    text
}

/// Rows of what threads have done on the network, of one counter each.
fn network(text: &mut String, pes: &[PeStatistics]) {
    let mut head = Some(format!(
        "{:<16} {:>10} {:>10} {:>10} {:>6}\n",
        "network", "min", "median", "max", "PE"
    ));
    for (name, _) in NetworkActivity::default().by_name() {
        let of_pes = pes.iter().map(|pe| pe.network.get(name).copied().unwrap_or(0));
        let n = Spread::of(&of_pes.collect::<Vec<u64>>());
        if n.max > 0 {
            text.push_str(&head.take().unwrap_or_default());
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "  {name:<14} {:>10} {:>10} {:>10} {:>6}",
                n.min, n.median, n.max, n.max_pe
            );
        }
    }
}

/// Adds the bytes that each PE has sent to each.
fn matrix(text: &mut String, pes: &[PeStatistics]) {
    if pes.len() > IN_MATRIX {
        return;
    }
    text.push_str("bytes by PE     ");
    let columns = (0..pes.len()).map(|to| format!(" {:>10}", format!("to {to}")));
    text.extend(columns.chain(["\n".to_owned()]));
    for pe in pes {
        let sent = |to: usize| pe.peers.iter().find(|peer| peer.pe as usize == to);
        let bytes = (0..pes.len()).map(|to| sent(to).map_or(0, |peer| peer.bytes));
        let row: String = bytes.map(|bytes| format!(" {:>10}", size(bytes))).collect();
        let _ = writeln!(text, "  from {:<9}{row}", pe.pe);
    }
}

/// Rows of two counters each, if any is not zero; `shown` is how the second one is written.
fn section<'a>(
    text: &mut String,
    title: &str,
    [first, second]: [&str; 2],
    shown: fn(u64) -> String,
    rows: impl Iterator<Item = (&'a str, Vec<(u64, u64)>)>,
) {
    let mut head = Some(format!(
        "{title:<12} {:>14} {:>10} {:>10} {:>6} {:>11} {:>10} {:>10} {:>6}\n",
        format!("{first}: min"),
        "median",
        "max",
        "PE",
        format!("{second}: min"),
        "median",
        "max",
        "PE"
    ));
    for (kind, of_pes) in rows.filter(|(_, of_pes)| of_pes.iter().any(|(n, _)| *n > 0)) {
        let (n, sum): (Vec<u64>, Vec<u64>) = of_pes.into_iter().unzip();
        let (n, sum) = (Spread::of(&n), Spread::of(&sum));
        text.push_str(&head.take().unwrap_or_default());
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "  {kind:<14} {:>10} {:>10} {:>10} {:>6} {:>11} {:>10} {:>10} {:>6}",
            n.min,
            n.median,
            n.max,
            n.max_pe,
            shown(sum.min),
            shown(sum.median),
            shown(sum.max),
            sum.max_pe
        );
    }
}

/// Values of all PEs.
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
        let spread = Spread { min: 1, median: 4, max: 7, max_pe: 2 };
        assert_eq!(Spread::of(&[1, 4, 7, 7, 2]), spread);
        assert_eq!(Spread::of(&[5]), Spread { min: 5, median: 5, max: 5, max_pe: 0 });
    }

    #[test]
    fn rows_of_zeros_are_left_out() {
        let mut text = String::new();
        let rows = || [("put", vec![(0, 0), (2, 16)]), ("get", vec![(0, 0), (0, 0)])].into_iter();
        section(&mut text, "on the node", ["operations", "bytes"], size, rows());
        assert!(text.contains("\n  put ") && !text.contains("get"), "{text}");
        section(&mut text, "off the node", ["operations", "bytes"], size, rows().skip(1));
        assert!(!text.contains("off the node"), "{text}");
        let long = [("put_signal_nbi", vec![(1 << 33, 3 << 40)])].into_iter();
        section(&mut text, "off the node", ["operations", "bytes"], size, long);
        assert!(text.contains(" 3.0 TiB") && text.lines().all(|line| line.len() <= 100), "{text}");
    }
}
