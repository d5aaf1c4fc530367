//! The timeline: a row for each PE, with bars for its calls, and the legend.

use std::collections::HashMap;
use std::ops::Range;

use charts::drawing::{Drawing, Tick, hit, label, px, rule, ticks_below};
use charts::palette::{ABSENT, CARD, SERIES, SOFT};
use maud::{Markup, html};
use rushmem_trace::job::JobTrace;
use rushmem_trace::layout::{Kind, TraceRecord};
use rushmem_trace::pe::PeTrace;
use rushmem_trace::units::time;

use super::{LEFT, ROWS, WAITS, WIDTH};

/// The upper edge of the first row.
const TOP: f64 = 10.0;
/// The height of the row of a PE.
const ROW: f64 = 22.0;

/// Draws a row for each PE that is [`shown`], with the bars of its calls.
pub fn draw(job: &JobTrace) -> Drawing {
    let axis = TimeAxis { times: job.times() };
    let rows = rows(job, &axis);
    let bottom = TOP + rows.len() as f64 * ROW;
    let content = html! {
        (ticks_below(&axis.ticks(), (TOP, bottom)))
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

/// Returns the meaning of the colors.
pub fn legend(job: &JobTrace) -> Markup {
    /// A kind of call for each color, and the name of all kinds that have this color.
    const ENTRIES: [(Kind, &str); 5] = [
        (Kind::Put, "access"),
        (Kind::Collective, "collective"),
        (Kind::Wait, "wait"),
        (Kind::Lock, "lock"),
        (Kind::Quiet, "quiet, flush and fence"),
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

fn color(kind: Kind) -> &'static str {
    match kind {
        Kind::Put | Kind::Amo | Kind::Get | Kind::Move => SERIES[0],
        Kind::Collective => SERIES[1],
        Kind::Fence | Kind::Quiet | Kind::Flush => SERIES[2],
        Kind::Wait => SERIES[3],
        Kind::Lock => SERIES[4],
    }
}

fn rows<'a>(job: &'a JobTrace, axis: &TimeAxis) -> Vec<Row<'a>> {
    let pes = shown(job);
    // With a bar for each call of many PEs, the page would be too large. So the more PEs, the wider
    // the gaps (in pixels) that are not shown.
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
            top: TOP + index as f64 * ROW,
            gap_end,
            bars: bars(&pe.records, axis, gap),
        });
    }
    rows
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
    /// Returns the duration in nanoseconds, which is not 0.
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
