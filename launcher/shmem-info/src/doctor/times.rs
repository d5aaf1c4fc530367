//! The times of operations between the hosts of a job, from a record of `shmem-perf`.

use serde::Deserialize;

use super::finding::{Finding, Grade};
use super::outcome::CheckOutcome;

/// Options of `shmem-perf`. The caller appends the pair of PEs to measure, and `--matrix` to
/// measure all pairs.
pub const OPTIONS: &[&str] = &[
    "--operations",
    "put,get,fetch_add",
    "--measures",
    "latency,bandwidth",
    "--sizes",
    "8,64k",
    "--time",
    "0.5",
    "--validate",
    "--output",
    "/dev/stdout",
    "--pair",
];
/// The size in [`OPTIONS`] of which latencies are shown.
const WORD: u64 = 8;
/// The size of which bandwidths are shown.
const BLOCK: u64 = 64 << 10;

/// The part of a record that the doctor shows. Latencies are in nanoseconds, bandwidths in bytes
/// per second.
#[derive(Deserialize)]
struct Record {
    complete: bool,
    series: Vec<Series>,
    matrices: Vec<Matrix>,
}

#[derive(Deserialize)]
struct Series {
    measure: String,
    operation: String,
    points: Vec<Point>,
}

#[derive(Deserialize)]
struct Point {
    nbytes: u64,
    summary: Summary,
}

#[derive(Deserialize)]
struct Summary {
    p50: f64,
}

/// A value for each PE and each of its peers; `None` if the pair was not measured.
#[derive(Deserialize)]
struct Matrix {
    measure: String,
    values: Vec<Vec<Option<f64>>>,
}

/// Returns the times of a job of `shmem-perf` between the first and the last of the PEs with these
/// names. If there are more than two, also returns the best and the worst pair. If the job has
/// failed, returns a note with its first message instead.
pub fn findings(outcome: &CheckOutcome, names: &[String]) -> Vec<Finding> {
    // The record is written several times, each time with more in it. Only the last one is
    // complete.
    let mut complete = None;
    for line in outcome.tagged_lines() {
        if let Ok(record) = serde_json::from_str::<Record>(line.content)
            && record.complete
        {
            complete = Some(record);
        }
    }

    let record = match complete {
        Some(record) if outcome.succeeded => record,
        _ => {
            let complaint = outcome.complaints().into_iter().next().unwrap_or_default();
            let text = format!("not measured: {complaint}");
            return vec![Finding::new("times", Grade::Note, text)];
        }
    };

    let (Some(first), Some(last)) = (names.first(), names.last()) else {
        return Vec::new();
    };
    let ends = format!("{first} to {last}");
    let mut findings = vec![Finding::ok(ends, record.between_ends())];
    if names.len() > 2 {
        for matrix in &record.matrices {
            if let Some(text) = matrix.extremes(names) {
                findings.push(Finding::ok("all hosts", text));
            }
        }
    }
    findings
}

impl Record {
    fn median(&self, measure: &str, operation: &str, nbytes: u64) -> Option<f64> {
        let mut all = self.series.iter();
        let series =
            all.find(|series| series.measure == measure && series.operation == operation)?;
        let point = series.points.iter().find(|point| point.nbytes == nbytes)?;
        Some(point.summary.p50)
    }

    /// Returns the time of an operation on a word.
    fn time(&self, operation: &str) -> Option<String> {
        let ns = self.median("latency", operation, WORD)?;
        Some(seconds(ns * 1e-9))
    }

    /// Returns the bandwidth of an operation.
    fn speed(&self, operation: &str) -> Option<String> {
        let bytes_per_second = self.median("bandwidth", operation, BLOCK)?;
        Some(rate(bytes_per_second))
    }

    /// Describes the times of operations between the two PEs, then those of a socket to compare
    /// them with.
    fn between_ends(&self) -> String {
        let mut of_operations = Vec::new();
        for (operation, name) in [("put", "put"), ("get", "get"), ("fetch_add", "atomic add")] {
            if let Some(time) = self.time(operation) {
                of_operations.push(format!("{name} {time}"));
            }
        }
        if let Some(speed) = self.speed("put") {
            of_operations.push(speed);
        }

        let mut text = of_operations.join(", ");
        if let Some(time) = self.time("socket transfer")
            && let Some(speed) = self.speed("socket")
        {
            text += &format!("; a socket: transfer {time}, {speed}");
        }
        text
    }
}

impl Matrix {
    /// Describes the lowest and the highest value, with their PEs; `None` if there are no values.
    fn extremes(&self, names: &[String]) -> Option<String> {
        let mut pairs = Vec::new();
        for (row, from) in self.values.iter().zip(names) {
            for (value, to) in row.iter().zip(names) {
                if let Some(value) = *value {
                    pairs.push(MeasuredPair { value, from, to });
                }
            }
        }

        let least = pairs.iter().min_by(|a, b| a.value.total_cmp(&b.value))?;
        let most = pairs.iter().max_by(|a, b| a.value.total_cmp(&b.value))?;

        let is_latency = self.measure == "latency";
        let what = if is_latency {
            "round trip of a word"
        } else {
            "puts"
        };
        Some(format!(
            "{what} from {} to {}",
            least.describe(is_latency),
            most.describe(is_latency)
        ))
    }
}

/// The value of a pair of PEs, with their names.
struct MeasuredPair<'a> {
    value: f64,
    from: &'a str,
    to: &'a str,
}

impl MeasuredPair<'_> {
    fn describe(&self, is_latency: bool) -> String {
        let value = if is_latency {
            seconds(self.value * 1e-9)
        } else {
            rate(self.value)
        };
        format!("{value} ({} to {})", self.from, self.to)
    }
}

/// Formats a time in seconds with a suitable unit.
pub fn seconds(time: f64) -> String {
    match time {
        long if long >= 1.0 => format!("{long:.1} s"),
        short if short >= 1e-3 => format!("{:.1} ms", short * 1e3),
        short if short >= 1e-5 => format!("{:.0} us", short * 1e6),
        tiny if tiny >= 1e-7 => format!("{:.2} us", tiny * 1e6),
        on_node => format!("{:.1} ns", on_node * 1e9),
    }
}

fn rate(bytes_per_second: f64) -> String {
    format!("{:.2} GB/s", bytes_per_second * 1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = r#"{ "complete": true, "series": [
        { "measure": "latency", "operation": "put", "points": [{ "nbytes": 8, "summary": { "p50": 1500 } }] },
        { "measure": "latency", "operation": "socket transfer", "points": [{ "nbytes": 8, "summary": { "p50": 1000 } }] },
        { "measure": "bandwidth", "operation": "socket", "points": [{ "nbytes": 65536, "summary": { "p50": 2e9 } }] }],
        "matrices": [{ "measure": "latency", "values": [[null, 2000, 3000], [9000, null, 4000], [1000, null, null]] }] }"#;

    fn outcome(stdout: String) -> CheckOutcome {
        CheckOutcome {
            succeeded: true,
            stdout,
            stderr: "shmem-perf: no room\n".to_owned(),
        }
    }

    #[test]
    fn times_are_those_of_the_complete_record() {
        let names = ["a", "b", "c"].map(str::to_owned);
        let record = RECORD.replace('\n', " ");
        let early = record.replace("true", "false");
        let text = format!("[0@a] {early}\n[0@a] Latency by size\n[0@a] {record}\n");
        let found = findings(&outcome(text), &names);
        let shown: Vec<String> = found.iter().map(Finding::to_string).collect();
        assert_eq!(
            shown,
            [
                "a to c: put 1.50 us; a socket: transfer 1.00 us, 2.00 GB/s",
                "all hosts: round trip of a word from 1.00 us (c to a) to 9.00 us (b to a)"
            ]
        );

        let found = findings(&outcome(format!("[0] {early}\n")), &names);
        assert_eq!(
            found[0].to_string(),
            "times: not measured: shmem-perf: no room"
        );
    }

    #[test]
    fn times_have_three_digits_or_so() {
        let shown = [2.0, 0.0123, 34e-6, 1.234e-6, 8.31e-9].map(seconds);
        assert_eq!(shown, ["2.0 s", "12.3 ms", "34 us", "1.23 us", "8.3 ns"]);
    }
}
