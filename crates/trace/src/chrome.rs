//! The trace of a job as JSON in the Trace Event Format, which Perfetto opens.
//!
//! Nodes are processes of the format, and PEs are its threads. Calls and accesses are slices,
//! operations in flight are asynchronous slices, bytes in flight are a counter, and flows between
//! PEs are arrows.

use std::collections::BTreeSet;
use std::io::{self, Write};

use serde_json::{Value, json};

use crate::job::{Flow, JobTrace, RecordIndex};
use crate::layout::Kind;

/// Writes the trace of a job as JSON to `out`.
///
/// # Errors
/// When `out` fails.
pub fn write(job: &JobTrace, out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
    let mut events = Events {
        job,
        start: job.times().start,
        out,
        is_first: true,
    };

    for (pe, trace) in job.pes.iter().enumerate() {
        events.name_tracks(pe)?;
        for record in 0..trace.records.len() {
            events.slice(RecordIndex { pe, record })?;
        }
        events.in_flight(pe)?;
    }
    for (id, flow) in job.flows().into_iter().enumerate() {
        events.arrow(id, flow)?;
    }

    out.write_all(b"\n]}\n")
}

struct Events<'a, W> {
    job: &'a JobTrace,
    /// The time that is 0 in the trace, since numbers in JSON have 53 bits.
    start: u64,
    out: &'a mut W,
    is_first: bool,
}

impl<W: Write> Events<'_, W> {
    /// Writes an event on the track of a record. `phase` is the letter of the event's type in the
    /// format, and `more` has further members of the JSON object.
    fn put(
        &mut self,
        index: RecordIndex,
        time: u64,
        name: &str,
        phase: &str,
        more: Value,
    ) -> io::Result<()> {
        let thread = self.job.record(index).thread;
        let mut event = self.of_pe(index.pe, thread, name, phase);
        event["ts"] = self.microseconds(time.saturating_sub(self.start));
        self.emit(event, more)
    }

    /// Returns an event of a thread of a PE, without its time.
    fn of_pe(&self, pe: usize, thread: u32, name: &str, phase: &str) -> Value {
        let trace = &self.job.pes[pe];
        // The tracks of the first threads of all PEs have the lowest numbers, in the order of PEs.
        let track = u64::from(thread) * u64::from(trace.n_pes) + u64::from(trace.pe) + 1;
        json!({"ph": phase, "name": name, "pid": u64::from(trace.node) + 1, "tid": track})
    }

    fn microseconds(&self, nanoseconds: u64) -> Value {
        (nanoseconds as f64 / 1000.0).into()
    }

    /// Writes an event, to which the members of `more` are added.
    fn emit(&mut self, mut event: Value, more: Value) -> io::Result<()> {
        if let (Value::Object(event), Value::Object(more)) = (&mut event, more) {
            event.extend(more);
        }
        if !std::mem::take(&mut self.is_first) {
            self.out.write_all(b",\n")?;
        }
        serde_json::to_writer(&mut *self.out, &event).map_err(io::Error::from)
    }

    /// Names the node and the threads of a PE, and says what its ring dropped.
    fn name_tracks(&mut self, pe: usize) -> io::Result<()> {
        let trace = &self.job.pes[pe];
        let node = format!("node {}", trace.node);
        let named = |name: String| json!({"args": {"name": name}});
        self.emit(self.of_pe(pe, 0, "process_name", "M"), named(node))?;

        let threads: BTreeSet<u32> = trace.records.iter().map(|record| record.thread).collect();
        for thread in threads {
            let name = match thread {
                0 => format!("PE {}", trace.pe),
                _ => format!("PE {}, thread {thread}", trace.pe),
            };
            self.emit(self.of_pe(pe, thread, "thread_name", "M"), named(name))?;
        }

        if trace.dropped > 0 && !trace.records.is_empty() {
            let text = format!("{} older records were dropped", trace.dropped);
            let first = RecordIndex { pe, record: 0 };
            let begin = trace.records[0].begin;
            self.put(first, begin, &text, "i", json!({"s": "t"}))?;
        }
        Ok(())
    }

    /// Writes the slice of a call or access. If it has not ended, writes only its begin.
    fn slice(&mut self, index: RecordIndex) -> io::Result<()> {
        let job = self.job;
        let record = job.record(index);
        let args = match record.peer {
            Some(peer) => json!({"peer": peer, "bytes": record.nbytes, "context": record.context}),
            None if record.kind == Kind::Collective => {
                json!({"members": format!("{:x}", record.subject[0]), "nth": record.subject[1]})
            }
            None => json!({}),
        };
        let mut more = json!({"cat": record.kind.name(), "args": args});

        let (name, called_at) = parts(job.name(index));
        if let Some(called_at) = called_at {
            more["args"]["called at"] = called_at.into();
        }

        let phase = match record.end {
            Some(end) => {
                more["dur"] = self.microseconds(end - record.begin);
                "X"
            }
            None => "B",
        };
        self.put(index, record.begin, name, phase, more)
    }

    /// Writes an asynchronous slice for each operation of a PE that was in flight, and the counter
    /// of the bytes in flight.
    fn in_flight(&mut self, pe: usize) -> io::Result<()> {
        let job = self.job;
        let mut changes = Vec::new();
        for (i, end) in job.completions(pe).into_iter().enumerate() {
            let index = RecordIndex { pe, record: i };
            let record = job.record(index);
            if !record.in_flight {
                continue;
            }

            // Unique in the file: the PE and the index of the record.
            let id = u64::from(job.pes[pe].pe) << 32 | i as u64;
            let more = json!({"cat": "in flight", "id": format!("{id:x}")});
            let (name, _) = parts(job.name(index));
            self.put(index, record.begin, name, "b", more.clone())?;
            changes.push(Change {
                time: record.begin,
                index,
                nbytes: record.nbytes,
            });

            // An operation without an end was in flight when the trace ended.
            if let Some(end) = end {
                self.put(index, end, name, "e", more)?;
                changes.push(Change {
                    time: end,
                    index,
                    nbytes: record.nbytes.wrapping_neg(),
                });
            }
        }

        changes.sort_unstable();
        let name = format!("PE {}: bytes in flight", job.pes[pe].pe);
        let mut bytes = 0u64;
        for Change {
            time,
            index,
            nbytes,
        } in changes
        {
            bytes = bytes.wrapping_add(nbytes);
            self.put(index, time, &name, "C", json!({"args": {"bytes": bytes}}))?;
        }
        Ok(())
    }

    /// Writes the two ends of an arrow between PEs.
    fn arrow(&mut self, id: usize, flow: Flow) -> io::Result<()> {
        let from = self.job.record(flow.from);
        let to = self.job.record(flow.to);
        let Some(end) = to.end else { return Ok(()) };

        let name = from.kind.name();
        let start = json!({"id": id, "cat": "message"});
        self.put(flow.from, from.begin, name, "s", start)?;

        let head = json!({"id": id, "cat": "message", "bp": "e"});
        // The viewer binds the event to a slice only before the end of the slice.
        let time = end.saturating_sub(1).max(to.begin);
        self.put(flow.to, time, name, "f", head)
    }
}

/// A change of the number of bytes in flight. Changes are sorted by their times, and those at one
/// time by their records.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Change {
    time: u64,
    index: RecordIndex,
    /// The bytes that are added; a negative number wraps around.
    nbytes: u64,
}

/// Splits a name into the function and the location of the call, if it has one.
fn parts(name: &str) -> (&str, Option<&str>) {
    match name.split_once(" (") {
        Some((function, place)) => (function, Some(place.trim_end_matches(')'))),
        None => (name, None),
    }
}
