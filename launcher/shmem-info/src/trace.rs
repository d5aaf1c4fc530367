//! `shmem-info trace DIR`: merges the records of a job's PEs into one trace for Perfetto, and makes
//! a page with the bytes between PEs, a timeline, and the longest waits with their causes.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::Path;

use charts::drawing::{Drawing, hit, label, px, rule, shortened, ticks_below, upright_label};
use charts::palette::{ABSENT, CARD, SERIES, SOFT, on_step, step, step_color};
use maud::{Markup, html};
use rushmem_trace::chrome;
use rushmem_trace::job::{FILE, JobTrace, MissingPes, TracedWait, WaitTotals};
use rushmem_trace::layout::{Kind, TraceRecord};
use rushmem_trace::pe::PeTrace;
use rushmem_trace::units::time;

use crate::terminal::wrapped;

/// The name of the page in the directory.
const PAGE: &str = "trace.html";
/// The number of waits on the page.
const WAITS: usize = 30;
/// The number of waits and of PEs on the terminal.
const SHOWN: usize = 3;
/// The left margin of drawings, the width of the timeline, and the height of the row of a PE.
const LEFT: f64 = 66.0;
const WIDTH: f64 = 900.0;
const ROW: f64 = 22.0;
/// The maximum number of PEs in the timeline and in the table of totals, and of rows of the matrix.
const ROWS: usize = 64;
/// The maximum side of the matrix, and of a cell.
const SIDE: f64 = 468.0;
const CELL: f64 = 60.0;
/// A matrix of at most this many rows has numbers in its cells. A larger one has labels at about
/// this many rows.
const WITH_VALUES: usize = 12;

/// Writes the trace and the page into the directory. Returns the text to print: a summary, and the
/// names of the two files.
pub fn show(dir: &Path) -> Result<String, String> {
    let job = JobTrace::of_dir(dir)?;
    let (trace, page) = (dir.join(FILE), dir.join(PAGE));
    let failed = |file: &Path| {
        let file = file.display().to_string();
        move |error: std::io::Error| format!("{file} cannot be written: {error}")
    };
    let mut out = File::create(&trace)
        .map(BufWriter::new)
        .map_err(failed(&trace))?;
    chrome::write(&job, &mut out)
        .and_then(|()| out.flush())
        .map_err(failed(&trace))?;
    std::fs::write(&page, self::page(&job)).map_err(failed(&page))?;
    let missing = match job.missing() {
        MissingPes { n: 0, .. } => String::new(),
        MissingPes { n, first } => format!(
            "The files of {n} PEs are not there, such as that of PE {first}; copy those of other \
             hosts into {}.\n",
            dir.display()
        ),
    };
    let (trace, page) = (trace.display(), page.display());
    let waits = job
        .longest_waits(SHOWN)
        .iter()
        .map(|wait| sentence(wait, &job))
        .collect::<String>();
    let dropped = dropped(&job).map_or_else(String::new, |sentence| sentence + "\n");
    let lines = format!("{missing}{dropped}{waits}{}", totals(&job));
    let lines: String = lines.lines().map(|line| wrapped(line, 2) + "\n").collect();
    Ok(format!(
        "{lines}The trace for Perfetto is in {trace}, the page in {page}.\n"
    ))
}

/// Returns a sentence about records for which the rings of PEs had no room.
fn dropped(job: &JobTrace) -> Option<String> {
    let n: u64 = job.pes.iter().map(|pe| pe.dropped).sum();
    (n > 0).then(|| {
        format!("{n} of the oldest records were dropped; SHMEM_TRACE_SIZE makes room for more.")
    })
}

/// Returns lines about the PEs for which others waited the longest.
fn totals(job: &JobTrace) -> String {
    let blamed = job
        .wait_totals()
        .into_iter()
        .filter(|of| of.made_wait > 0)
        .take(SHOWN);
    let longest = job.longest_waits(usize::MAX);
    let line = |of: WaitTotals| {
        let (pe, made_wait, waited) = (of.pe, time(of.made_wait), time(of.waited));
        let mut causes = longest.iter().filter_map(|wait| wait.cause);
        let cause = causes.find(|cause| job.pe(*cause) == pe);
        let call = cause.map_or_else(String::new, |cause| {
            format!(", the longest until it called {}", job.name(cause))
        });
        format!("PE {pe} made others wait {made_wait} in all{call}, and waited {waited}.\n")
    };
    blamed.map(line).collect()
}

fn page(job: &JobTrace) -> String {
    let Range { start: begin, end } = job.times();
    charts::page(
        "Trace of a job",
        &html! {
            h1 { "Trace of a job of " (job.n_pes()) " PEs" }
            p { "From the first record to the last it took " (time(end - begin)) "." }
            @if let Some(sentence) = dropped(job) { p .warnings { (sentence) } }
            @if job.missing().n > 0 {
                p .warnings { "The traces of " (job.missing().n) " PEs are missing." }
            }
            h2 { "Bytes between PEs" }
            figure { (matrix(job).svg("Bytes between PEs")) }
            h2 { "Timeline" }
            @if job.pes.len() > ROWS {
                p { (ROWS) " of " (job.pes.len()) " PEs: those of the longest waits, and the first others; the trace for Perfetto has all." }
            }
            figure { (timeline(job).svg("Timeline")) (legend(job)) }
            h2 { "Who made others wait" }
            (wait_totals(job))
            h2 { "Longest waits" }
            (waits(&job.longest_waits(WAITS), job))
        },
    )
}

/// Draws a cell for each pair of PEs, or of groups of PEs. The PE of the row has issued the
/// operations, the PE of the column was their target.
fn matrix(job: &JobTrace) -> Drawing {
    let group = job.n_pes().div_ceil(ROWS as u32);
    let bytes = job.matrix(group);
    let n = bytes.len();
    let first = |i: usize| i as u32 * group;
    let pes = |i: usize| match first(i)..job.n_pes().min(first(i + 1)) {
        one if one.len() == 1 => format!("PE {}", one.start),
        several => format!("PEs {} to {}", several.start, several.end - 1),
    };
    let cell = (SIDE / n as f64).min(CELL);
    let side = n as f64 * cell;
    let most = bytes.iter().flatten().copied().max().unwrap_or(0).max(2) as f64;
    let top = 40.0;
    let cells = (0..n).flat_map(|from| (0..n).map(move |to| (from, to)));
    let index = |i: usize, first: f64| first + i as f64 * cell;
    let of = |(from, to): (usize, usize)| bytes[from][to];
    let content = html! {
        rect fill=(ABSENT) x=(LEFT) y=(top) width=(px(side)) height=(px(side)) {}
        @for (from, to) in cells.clone().filter(|pair| of(*pair) > 0) {
            @let value = of((from, to));
            @let color = step(value as f64, (1.0, most));
            rect fill=(step_color(color)) x=(px(index(to, LEFT))) y=(px(index(from, top))) width=(px(cell)) height=(px(cell)) {}
            @if n <= WITH_VALUES {
                (label((index(to, LEFT) + cell / 2.0, index(from, top) + cell / 2.0 + 4.0), "middle", on_step(color), &size(value)))
            }
        }
        @for i in (0..n).step_by(n.div_ceil(WITH_VALUES)) {
            (label((index(i, LEFT) + cell / 2.0, top - 6.0), "middle", SOFT, &first(i).to_string()))
            (label((LEFT - 6.0, index(i, top) + cell / 2.0 + 4.0), "end", SOFT, &first(i).to_string()))
        }
        (label((LEFT + side / 2.0, 14.0), "middle", SOFT, "to PE"))
        (upright_label((16.0, top + side / 2.0), "from PE"))
    };
    let hits = html! {
        @for (from, to) in cells.filter(|pair| of(*pair) > 0) {
            @let tip = format!("{} to {}: {} bytes", pes(from), pes(to), of((from, to)));
            (hit((index(to, LEFT), index(to + 1, LEFT)), (index(from, top), index(from + 1, top)), &tip))
        }
    };
    Drawing {
        width: LEFT + WIDTH,
        height: top + side + 10.0,
        content,
        hits,
    }
}

/// Returns the color of a kind of call, and its name in the legend.
fn color(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Put | Kind::Amo | Kind::Get | Kind::Move => (SERIES[0], "access"),
        Kind::Collective => (SERIES[1], "collective"),
        Kind::Wait => (SERIES[3], "wait"),
        Kind::Lock => (SERIES[4], "lock"),
        Kind::Fence | Kind::Quiet => (SERIES[2], "quiet and fence"),
    }
}

fn legend(job: &JobTrace) -> Markup {
    let kinds = [
        Kind::Put,
        Kind::Collective,
        Kind::Wait,
        Kind::Lock,
        Kind::Quiet,
    ]
    .map(color);
    html! {
        p .note {
            @for (color, name) in kinds {
                svg width="14" height="10" { rect width="10" height="10" fill=(color) {} }
                (name) " \u{2003}"
            }
            svg width="14" height="10" { rect width="10" height="10" fill=(CARD) stroke=(SOFT) {} }
            "outside the library"
            @if job.pes.iter().any(|pe| pe.dropped > 0) {
                " \u{2003}"
                svg width="14" height="10" { rect width="10" height="10" fill=(ABSENT) {} }
                "dropped records"
            }
        }
    }
}

/// A bar of the timeline: calls of a PE that have the same color, without a visible gap between
/// them.
struct Bar {
    color: &'static str,
    left: f64,
    right: f64,
    is_access: bool,
    first: usize,
    n: usize,
}

/// Returns the bars of a PE, in the order of their first records. Calls of the same color that are
/// closer than `gap` share a bar.
fn bars(records: &[TraceRecord], span: impl Fn(&TraceRecord) -> (f64, f64), gap: f64) -> Vec<Bar> {
    let mut bars: Vec<Bar> = Vec::new();
    let mut last: HashMap<&str, usize> = HashMap::new();
    for (first, record) in records.iter().enumerate() {
        let (left, right) = span(record);
        let right = right.max(left + 1.0);
        let (color, _) = color(record.kind);
        match last
            .get(color)
            .map(|at| &mut bars[*at])
            .filter(|bar| left < bar.right + gap)
        {
            Some(bar) => {
                bar.right = bar.right.max(right);
                bar.n += 1;
            }
            None => {
                last.insert(color, bars.len());
                let is_access = record.is_access();
                bars.push(Bar {
                    color,
                    left,
                    right,
                    is_access,
                    first,
                    n: 1,
                });
            }
        }
    }
    bars
}

/// Returns the PEs in the timeline: all, or those of the longest waits and the first others.
fn shown(job: &JobTrace) -> Vec<&PeTrace> {
    let waits = job.longest_waits(WAITS);
    let of_waits = waits
        .iter()
        .flat_map(|wait| [Some(wait.call), wait.cause])
        .flatten();
    let mut shown: Vec<usize> = Vec::new();
    for pe in of_waits.map(|call| call.pe).chain(0..job.pes.len()) {
        if shown.len() < ROWS && !shown.contains(&pe) {
            shown.push(pe);
        }
    }
    shown.sort_unstable();
    shown.into_iter().map(|pe| &job.pes[pe]).collect()
}

/// Draws a row for each PE that is [`shown`], with the bars of its calls.
fn timeline(job: &JobTrace) -> Drawing {
    let Range { start: begin, end } = job.times();
    let pes = shown(job);
    let all = (end - begin).max(1) as f64;
    let x = |time: u64| LEFT + (time - begin) as f64 / all * WIDTH;
    let bottom = 10.0 + pes.len() as f64 * ROW;
    let ticks: Vec<(f64, String)> = (0..=5)
        .map(|i| {
            let at = all / 5.0 * f64::from(i);
            (LEFT + at / all * WIDTH, time(at as u64))
        })
        .collect();
    let row = |i: usize| 10.0 + i as f64 * ROW;
    let span = |record: &TraceRecord| (x(record.begin), x(record.end.unwrap_or(end)));
    let gap = pes.len() as f64 / 16.0;
    let rows: Vec<_> = pes.iter().map(|pe| bars(&pe.records, span, gap)).collect();
    // A PE drops its oldest records, so its row begins with a gap.
    let first = |pe: &PeTrace| x(pe.records.first().map_or(end, |record| record.begin));
    let gaps: Vec<_> = (0..).zip(&pes).filter(|(_, pe)| pe.dropped > 0).collect();
    let gaps: Vec<_> = gaps
        .into_iter()
        .map(|(i, pe)| (row(i), first(pe), *pe))
        .filter(|(_, until, _)| *until > LEFT)
        .collect();
    let content = html! {
        (ticks_below(&ticks, (10.0, bottom)))
        @for (y, until, _) in &gaps {
            rect fill=(ABSENT) x=(LEFT) y=(px(y + 2.0)) width=(px(until - LEFT)) height=(px(ROW - 4.0)) {}
        }
        @for (i, bars) in rows.iter().enumerate() {
            (label((LEFT - 6.0, row(i) + ROW / 2.0 + 4.0), "end", SOFT, &format!("PE {}", pes[i].pe)))
            (rule(ABSENT, (LEFT, row(i) + ROW), (LEFT + WIDTH, row(i) + ROW)))
            @for bar in bars {
                // The bar of an access is lower, so that the call that contains it stays visible.
                @let inset = if bar.is_access { 5.0 } else { 2.0 };
                rect fill=(bar.color) x=(px(bar.left)) y=(px(row(i) + inset)) width=(px(bar.right - bar.left)) height=(px(ROW - 2.0 * inset)) {}
            }
        }
    };
    let hits = html! {
        @for (y, until, pe) in &gaps {
            @let tip = format!("PE {}: {} records were dropped", pe.pe, pe.dropped);
            (hit((LEFT, *until), (*y, y + ROW), &tip))
        }
        @for (i, bars) in rows.iter().enumerate() {
            @for bar in bars {
                @let record = &pes[i].records[bar.first];
                @let lasted = record.end.map_or("until its end".into(), |end| time(end - record.begin));
                @let more = if bar.n > 1 { format!(", and {} more", bar.n - 1) } else { String::new() };
                @let tip = format!("PE {}: {}, {lasted}{more}", pes[i].pe, pes[i].name(record));
                (hit((bar.left, bar.right), (row(i), row(i) + ROW), &tip))
            }
        }
    };
    Drawing {
        width: LEFT + WIDTH + 34.0,
        height: bottom + 26.0,
        content,
        hits,
    }
}

/// Returns the table of how long PEs waited and made others wait, for [`ROWS`] PEs at most.
fn wait_totals(job: &JobTrace) -> Markup {
    html! {
        div .wide { table {
            thead { tr { th { "PE" } th .number { "made others wait" } th .number { "waited" } } }
            @for of in job.wait_totals().into_iter().take(ROWS) {
                tr {
                    td { (of.pe) }
                    td .number { (time(of.made_wait)) }
                    td .number { (time(of.waited)) }
                }
            }
        } }
    }
}

/// Returns the table of waits, each with the call that ended it, if that is known.
fn waits(waits: &[TracedWait], job: &JobTrace) -> Markup {
    let start = job.times().start;
    html! {
        div .wide { table {
            thead { tr {
                th { "PE" } th { "call" } th .number { "time" } th .number { "began at" } th { "ended by" }
            } }
            @for wait in waits {
                @let record = job.record(wait.call);
                tr {
                    td { (job.pe(wait.call)) }
                    td { (call(&shortened(job.name(wait.call), 60))) }
                    td .number { (time(wait.nanoseconds)) }
                    td .number { (time(record.begin - start)) }
                    td { (cause(wait, job)) }
                }
            }
        } }
    }
}

/// Returns the name of a function, which may break at its underscores.
fn call(name: &str) -> Markup {
    html! { code { @for part in name.split_inclusive('_') { (part) wbr; } } }
}

/// Returns a wait as a line on the terminal.
fn sentence(wait: &TracedWait, job: &JobTrace) -> String {
    let (pe, call) = (job.pe(wait.call), job.name(wait.call));
    if job.record(wait.call).end.is_none() {
        return format!("PE {pe} was in {call} when its trace ended.\n");
    }
    let cause = wait.cause.map_or_else(String::new, |cause| {
        format!(", until PE {} called {}", job.pe(cause), job.name(cause))
    });
    format!(
        "PE {pe} was in {call} for {}{cause}.\n",
        time(wait.nanoseconds)
    )
}

fn cause(wait: &TracedWait, job: &JobTrace) -> Markup {
    let Some(cause) = wait.cause else {
        let has_ended = job.record(wait.call).end.is_some();
        return html! { @if !has_ended { "nothing: it has not ended" } };
    };
    let record = job.record(cause);
    let after = time(record.begin.saturating_sub(job.record(wait.call).begin));
    html! {
        "PE " (job.pe(cause)) ", " (call(job.name(cause)))
        @if record.kind == Kind::Collective { ", which came last, " (after) " later" }
        @else { ", " (after) " after the wait began" }
    }
}

/// Formats a number of bytes so that it fits a cell of the matrix.
fn size(nbytes: u64) -> String {
    let value = nbytes as f64;
    match nbytes {
        0..10_000 => nbytes.to_string(),
        10_000..10_000_000 => format!("{:.0}K", value / 1e3),
        10_000_000..10_000_000_000 => format!("{:.0}M", value / 1e6),
        _ => format!("{:.0}G", value / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: Kind, begin: u64, end: u64) -> TraceRecord {
        TraceRecord {
            kind,
            in_flight: false,
            name: 0,
            peer: None,
            thread: 0,
            context: 0,
            begin,
            end: Some(end),
            nbytes: 0,
            subject: [0; 2],
        }
    }

    #[test]
    fn calls_of_one_color_without_a_gap_are_one_bar() {
        let collectives = [(0, 10), (10, 12), (100, 101)];
        let mut records: Vec<_> = collectives
            .iter()
            .map(|&(begin, end)| record(Kind::Collective, begin, end))
            .collect();
        records.push(record(Kind::Wait, 101, 110));
        let bars = bars(
            &records,
            |of| (of.begin as f64, of.end.unwrap_or(0) as f64),
            1.0,
        );
        let seen: Vec<_> = bars
            .iter()
            .map(|bar| (bar.left, bar.right, bar.first, bar.n))
            .collect();
        assert_eq!(
            seen,
            [
                (0.0, 12.0, 0, 2),
                (100.0, 101.0, 2, 1),
                (101.0, 110.0, 3, 1)
            ]
        );
    }
}
