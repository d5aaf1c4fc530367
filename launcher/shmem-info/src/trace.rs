//! `shmem-info trace DIR`: merges the records of a job's PEs into one trace for Perfetto, and makes
//! a page with the bytes between PEs, a timeline, and the longest waits with their causes.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::Path;

use charts::drawing::{Drawing, Tick, hit, label, px, rule, shortened, ticks_below, upright_label};
use charts::palette::{ABSENT, CARD, ColorRange, SERIES, SOFT, on_step, step, step_color};
use maud::{Markup, html};
use rushmem_trace::chrome;
use rushmem_trace::job::{FILE, JobTrace, TracedWait, WaitTotals};
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
/// The left margin of drawings.
const LEFT: f64 = 66.0;
/// The width of the timeline.
const WIDTH: f64 = 900.0;
/// The upper edge of the timeline.
const TIMELINE_TOP: f64 = 10.0;
/// The height of the row of a PE.
const ROW: f64 = 22.0;
/// The maximum number of PEs in the timeline and in the table of totals, and of rows of the matrix.
const ROWS: usize = 64;
/// The upper edge of the matrix.
const MATRIX_TOP: f64 = 40.0;
/// The maximum side of the matrix.
const SIDE: f64 = 468.0;
/// The maximum side of a cell.
const CELL: f64 = 60.0;
/// A matrix of at most this many rows has numbers in its cells. A larger one has labels at about
/// this many rows.
const WITH_VALUES: usize = 12;

/// Writes the trace and the page into the directory. Returns the text to print: a summary, and the
/// names of the two files.
pub fn show(dir: &Path) -> Result<String, String> {
    let job = JobTrace::of_dir(dir)?;
    let trace = dir.join(FILE);
    write_trace(&job, &trace)
        .map_err(|error| format!("{} cannot be written: {error}", trace.display()))?;

    let page = dir.join(PAGE);
    std::fs::write(&page, self::page(&job))
        .map_err(|error| format!("{} cannot be written: {error}", page.display()))?;

    let mut sentences = Vec::new();
    let missing = job.missing();
    if missing.n > 0 {
        sentences.push(format!(
            "The files of {} PEs are not there, such as that of PE {}; copy those of other hosts into {}.",
            missing.n,
            missing.first,
            dir.display()
        ));
    }
    sentences.extend(dropped(&job));
    for wait in job.longest_waits(SHOWN) {
        sentences.push(sentence(&wait, &job));
    }
    sentences.extend(totals(&job));

    let mut text = String::new();
    for sentence in sentences {
        text += &(wrapped(&sentence, 2) + "\n");
    }
    // The names of the files may be copied, so their line is not wrapped.
    text += &format!(
        "The trace for Perfetto is in {}, the page in {}.\n",
        trace.display(),
        page.display()
    );
    Ok(text)
}

fn write_trace(job: &JobTrace, file: &Path) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(file)?);
    chrome::write(job, &mut out)?;
    out.flush()
}

/// Returns a sentence about records for which the rings of PEs had no room.
fn dropped(job: &JobTrace) -> Option<String> {
    let n: u64 = job.pes.iter().map(|pe| pe.dropped).sum();
    if n == 0 {
        return None;
    }
    Some(format!(
        "{n} of the oldest records were dropped; SHMEM_TRACE_SIZE makes room for more."
    ))
}

/// Returns sentences about the PEs for which others waited the longest.
fn totals(job: &JobTrace) -> Vec<String> {
    let longest = job.longest_waits(usize::MAX);
    let mut sentences = Vec::new();
    for totals in job.wait_totals() {
        let WaitTotals {
            pe,
            made_wait,
            waited,
        } = totals;
        if made_wait == 0 || sentences.len() == SHOWN {
            continue;
        }

        let mut causes = longest.iter().filter_map(|wait| wait.cause);
        let cause = causes.find(|cause| job.pe(*cause) == pe);
        let call = match cause {
            Some(cause) => format!(", the longest until it called {}", job.name(cause)),
            None => String::new(),
        };
        sentences.push(format!(
            "PE {pe} made others wait {} in all{call}, and waited {}.",
            time(made_wait),
            time(waited)
        ));
    }
    sentences
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
    let pes_per_row = job.n_pes().div_ceil(ROWS as u32);
    let bytes = job.matrix(pes_per_row);
    let n = bytes.len();

    // Pairs without a byte have no cell.
    let mut cells = Vec::new();
    for (from, row) in bytes.iter().enumerate() {
        for (to, &nbytes) in row.iter().enumerate() {
            if nbytes > 0 {
                cells.push(Cell { from, to, nbytes });
            }
        }
    }
    let most = cells.iter().map(|cell| cell.nbytes).max().unwrap_or(0);
    let colors = ColorRange {
        worst: 1.0,
        // The scale needs two different ends.
        best: most.max(2) as f64,
    };

    let width = (SIDE / n as f64).min(CELL);
    let side = n as f64 * width;
    let x = |to: usize| LEFT + to as f64 * width;
    let y = |from: usize| MATRIX_TOP + from as f64 * width;
    let content = html! {
        rect fill=(ABSENT) x=(LEFT) y=(MATRIX_TOP) width=(px(side)) height=(px(side)) {}
        @for cell in &cells {
            @let color = step(cell.nbytes as f64, colors);
            rect fill=(step_color(color)) x=(px(x(cell.to))) y=(px(y(cell.from)))
                width=(px(width)) height=(px(width)) {}
            @if n <= WITH_VALUES {
                @let middle = (x(cell.to) + width / 2.0, y(cell.from) + width / 2.0 + 4.0);
                (label(middle, "middle", on_step(color), &size(cell.nbytes)))
            }
        }
        @for i in (0..n).step_by(n.div_ceil(WITH_VALUES)) {
            @let first = (i as u32 * pes_per_row).to_string();
            (label((x(i) + width / 2.0, MATRIX_TOP - 6.0), "middle", SOFT, &first))
            (label((LEFT - 6.0, y(i) + width / 2.0 + 4.0), "end", SOFT, &first))
        }
        (label((LEFT + side / 2.0, 14.0), "middle", SOFT, "to PE"))
        (upright_label((16.0, MATRIX_TOP + side / 2.0), "from PE"))
    };

    let pes = |row: usize| pes_of_row(row as u32, pes_per_row, job.n_pes());
    let hits = html! {
        @for Cell { from, to, nbytes } in cells {
            @let tip = format!("{} to {}: {nbytes} bytes", pes(from), pes(to));
            (hit((x(to), x(to + 1)), (y(from), y(from + 1)), &tip))
        }
    };

    Drawing {
        width: LEFT + WIDTH,
        height: MATRIX_TOP + side + 10.0,
        content,
        hits,
    }
}

/// Returns the PEs of a row or column of the matrix in words.
fn pes_of_row(row: u32, pes_per_row: u32, n_pes: u32) -> String {
    let first = row * pes_per_row;
    // The last row may have fewer PEs.
    let last = n_pes.min(first + pes_per_row) - 1;
    if first == last {
        format!("PE {first}")
    } else {
        format!("PEs {first} to {last}")
    }
}

/// A cell of the matrix: the bytes from the PEs of a row to those of a column.
struct Cell {
    from: usize,
    to: usize,
    nbytes: u64,
}

fn color(kind: Kind) -> &'static str {
    match kind {
        Kind::Put | Kind::Amo | Kind::Get | Kind::Move => SERIES[0],
        Kind::Collective => SERIES[1],
        Kind::Fence | Kind::Quiet => SERIES[2],
        Kind::Wait => SERIES[3],
        Kind::Lock => SERIES[4],
    }
}

fn legend(job: &JobTrace) -> Markup {
    /// A kind of call for each color, and the name of all kinds that have this color.
    const ENTRIES: [(Kind, &str); 5] = [
        (Kind::Put, "access"),
        (Kind::Collective, "collective"),
        (Kind::Wait, "wait"),
        (Kind::Lock, "lock"),
        (Kind::Quiet, "quiet and fence"),
    ];
    html! {
        p .note {
            @for (kind, name) in ENTRIES {
                svg width="14" height="10" { rect width="10" height="10" fill=(color(kind)) {} }
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
    /// The index of its first record.
    first: usize,
    /// The number of its calls.
    n: usize,
}

/// The horizontal axis of the timeline.
struct TimeAxis {
    times: Range<u64>,
}

impl TimeAxis {
    /// The duration in nanoseconds, which is not 0.
    fn duration(&self) -> f64 {
        (self.times.end - self.times.start).max(1) as f64
    }

    fn x(&self, time: u64) -> f64 {
        LEFT + (time - self.times.start) as f64 / self.duration() * WIDTH
    }

    /// Returns six ticks from one end to the other.
    fn ticks(&self) -> Vec<Tick> {
        let mut ticks = Vec::new();
        for i in 0..=5 {
            let after = self.duration() / 5.0 * f64::from(i);
            ticks.push(Tick {
                position: LEFT + after / self.duration() * WIDTH,
                text: time(after as u64),
            });
        }
        ticks
    }
}

/// Returns the bars of a PE, in the order of their first records. Calls of the same color that are
/// closer than `gap` share a bar.
fn bars(records: &[TraceRecord], axis: &TimeAxis, gap: f64) -> Vec<Bar> {
    let mut bars: Vec<Bar> = Vec::new();
    // The index of the last bar of each color.
    let mut last: HashMap<&str, usize> = HashMap::new();
    for (first, record) in records.iter().enumerate() {
        let left = axis.x(record.begin);
        // A call that has not ended lasts to the end of the trace.
        let end = axis.x(record.end.unwrap_or(axis.times.end));
        // A short call must stay visible.
        let right = end.max(left + 1.0);
        let color = color(record.kind);

        if let Some(&index) = last.get(color)
            && left < bars[index].right + gap
        {
            let bar = &mut bars[index];
            bar.right = bar.right.max(right);
            bar.n += 1;
        } else {
            last.insert(color, bars.len());
            bars.push(Bar {
                color,
                left,
                right,
                is_access: record.is_access(),
                first,
                n: 1,
            });
        }
    }
    bars
}

/// Returns the PEs in the timeline: all, or those of the longest waits and the first others.
fn shown(job: &JobTrace) -> Vec<&PeTrace> {
    let mut candidates = Vec::new();
    for wait in job.longest_waits(WAITS) {
        candidates.push(wait.call.pe);
        if let Some(cause) = wait.cause {
            candidates.push(cause.pe);
        }
    }
    candidates.extend(0..job.pes.len());

    let mut shown: Vec<usize> = Vec::new();
    for pe in candidates {
        if shown.len() < ROWS && !shown.contains(&pe) {
            shown.push(pe);
        }
    }
    shown.sort_unstable();
    shown.into_iter().map(|pe| &job.pes[pe]).collect()
}

/// The row of a PE in the timeline.
struct Row<'a> {
    pe: &'a PeTrace,
    /// The upper edge.
    top: f64,
    /// The end of the gap at its beginning, if the PE has dropped records: its oldest ones.
    gap_end: Option<f64>,
    bars: Vec<Bar>,
}

impl Row<'_> {
    /// Returns the text about a bar.
    fn tip(&self, bar: &Bar) -> String {
        let record = &self.pe.records[bar.first];
        let lasted = match record.end {
            Some(end) => time(end - record.begin),
            None => "until its end".to_owned(),
        };
        let more = match bar.n {
            1 => String::new(),
            n => format!(", and {} more", n - 1),
        };
        let name = self.pe.name(record);
        format!("PE {}: {name}, {lasted}{more}", self.pe.pe)
    }
}

/// Draws a row for each PE that is [`shown`], with the bars of its calls.
fn timeline(job: &JobTrace) -> Drawing {
    let axis = TimeAxis { times: job.times() };
    let rows = rows(job, &axis);
    let bottom = TIMELINE_TOP + rows.len() as f64 * ROW;
    let content = html! {
        (ticks_below(&axis.ticks(), (TIMELINE_TOP, bottom)))
        @for row in &rows {
            @if let Some(end) = row.gap_end {
                rect fill=(ABSENT) x=(LEFT) y=(px(row.top + 2.0)) width=(px(end - LEFT))
                    height=(px(ROW - 4.0)) {}
            }
        }
        @for row in &rows {
            @let name = format!("PE {}", row.pe.pe);
            (label((LEFT - 6.0, row.top + ROW / 2.0 + 4.0), "end", SOFT, &name))
            (rule(ABSENT, (LEFT, row.top + ROW), (LEFT + WIDTH, row.top + ROW)))
            @for bar in &row.bars {
                // The bar of an access is lower, so that the call that contains it stays visible.
                @let inset = if bar.is_access { 5.0 } else { 2.0 };
                rect fill=(bar.color) x=(px(bar.left)) y=(px(row.top + inset))
                    width=(px(bar.right - bar.left)) height=(px(ROW - 2.0 * inset)) {}
            }
        }
    };

    let hits = html! {
        @for row in &rows {
            @if let Some(end) = row.gap_end {
                @let tip = format!("PE {}: {} records were dropped", row.pe.pe, row.pe.dropped);
                (hit((LEFT, end), (row.top, row.top + ROW), &tip))
            }
        }
        @for row in &rows {
            @for bar in &row.bars {
                (hit((bar.left, bar.right), (row.top, row.top + ROW), &row.tip(bar)))
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

fn rows<'a>(job: &'a JobTrace, axis: &TimeAxis) -> Vec<Row<'a>> {
    let pes = shown(job);
    // With many PEs, the page would be too large with a bar for each call.
    let gap = pes.len() as f64 / 16.0;
    let mut rows = Vec::new();
    for (index, pe) in pes.into_iter().enumerate() {
        let mut gap_end = None;
        if pe.dropped > 0 {
            let first = pe.records.first();
            let first = axis.x(first.map_or(axis.times.end, |record| record.begin));
            if first > LEFT {
                gap_end = Some(first);
            }
        }
        rows.push(Row {
            pe,
            top: TIMELINE_TOP + index as f64 * ROW,
            gap_end,
            bars: bars(&pe.records, axis, gap),
        });
    }
    rows
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

/// Returns the sentence about a wait on the terminal.
fn sentence(wait: &TracedWait, job: &JobTrace) -> String {
    let pe = job.pe(wait.call);
    let call = job.name(wait.call);
    if job.record(wait.call).end.is_none() {
        return format!("PE {pe} was in {call} when its trace ended.");
    }

    let cause = match wait.cause {
        Some(cause) => format!(", until PE {} called {}", job.pe(cause), job.name(cause)),
        None => String::new(),
    };
    let lasted = time(wait.nanoseconds);
    format!("PE {pe} was in {call} for {lasted}{cause}.")
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
        let records = [
            record(Kind::Collective, 0, 10),
            record(Kind::Collective, 10, 12),
            record(Kind::Collective, 100, 101),
            record(Kind::Wait, 101, 110),
        ];
        let axis = TimeAxis { times: 0..110 };
        let bars = bars(&records, &axis, 1.0);

        let firsts: Vec<usize> = bars.iter().map(|bar| bar.first).collect();
        assert_eq!(firsts, [0, 2, 3]);
        let numbers: Vec<usize> = bars.iter().map(|bar| bar.n).collect();
        assert_eq!(numbers, [2, 1, 1]);

        assert_eq!(bars[0].left, LEFT);
        assert_eq!(bars[0].right, axis.x(12));
        assert_eq!(bars[2].right, LEFT + WIDTH);
    }
}
