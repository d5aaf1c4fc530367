//! `shmem-info trace DIR`: merges the records of a job's PEs into one trace for Perfetto, and makes
//! a page with the bytes between PEs, a timeline, and the longest waits with their causes.

mod matrix;
mod timeline;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::Path;

use charts::drawing::shortened;
use maud::{Markup, html};
use rushmem_trace::chrome;
use rushmem_trace::job::{FILE, JobTrace, TracedWait, WaitTotals};
use rushmem_trace::layout::Kind;
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
/// The maximum number of PEs in the timeline and in the table of totals, and of rows of the matrix.
const ROWS: usize = 64;

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
            figure { (matrix::draw(job).svg("Bytes between PEs")) }
            h2 { "Timeline" }
            @if job.pes.len() > ROWS {
                p { (ROWS) " of " (job.pes.len()) " PEs: those of the longest waits, and the first others; the trace for Perfetto has all." }
            }
            figure { (timeline::draw(job).svg("Timeline")) (timeline::legend(job)) }
            h2 { "Who made others wait" }
            (wait_totals(job))
            h2 { "Longest waits" }
            (waits(&job.longest_waits(WAITS), job))
        },
    )
}

/// Returns the table of how long PEs waited and made others wait, for [`ROWS`] PEs at most.
fn wait_totals(job: &JobTrace) -> Markup {
    html! {
        div .wide { table {
            thead { tr { th { "PE" } th .number { "made others wait" } th .number { "waited" } } }
            @for totals in job.wait_totals().into_iter().take(ROWS) {
                tr {
                    td { (totals.pe) }
                    td .number { (time(totals.made_wait)) }
                    td .number { (time(totals.waited)) }
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
