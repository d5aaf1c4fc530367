//! Answers three questions about a run: how long an operation takes, what is possible on this
//! machine, and what the likely reasons for the difference are.

use crate::operation::{Bound, bound, is_invalid};
use crate::record::{Ended, HostInfo, Measure, Pair, Point, Record, Series};
use crate::units::{self, figure, size};

/// The operations for which the questions are answered, if they were measured: latencies at the
/// smallest size, bandwidths at the largest.
const KEYS: [(Measure, &str); 7] = [
    (Measure::Latency, "put"),
    (Measure::Latency, "get"),
    (Measure::Latency, "fetch_add"),
    (Measure::Latency, "p round trip"),
    (Measure::Latency, "put_signal round trip"),
    (Measure::Bandwidth, "put_nbi"),
    (Measure::Bandwidth, "get_nbi"),
];
/// The maximum number of other latencies and bandwidths that stand in if none of `KEYS` was
/// measured.
const OTHERS: usize = 4;
/// The minimum ratio of an operation to its floor that is reported as a gap. Below it, the answer
/// says that there is none.
const GAP: f64 = 1.5;

/// The text in place of a floor if there is none, or none that is valid.
const NO_FLOOR: &str = "no valid floor";

/// The columns of an answer.
pub const HEAD: [&str; 5] = ["operation", "bytes", "takes", "ratio", "possible here"];
/// The columns of the answers of two runs.
pub const HEAD_OF_TWO: [&str; 6] = ["operation", "bytes", "A", "B", "A/B", "floor"];

/// The time or rate of an operation at one size, and its floor.
pub struct Answer<'a> {
    series: &'a Series,
    point: &'a Point,
    bound: Option<Bound<'a>>,
}

impl Answer<'_> {
    /// Returns the ratio of the operation's time to that of its floor; `None` if it has no valid
    /// floor.
    fn ratio(&self) -> Option<f64> {
        self.bound.as_ref().map(|bound| bound.ratio)
    }

    /// Returns the row of a table with the columns `HEAD`.
    pub fn row(&self) -> [String; 5] {
        [
            self.series.operation.clone(),
            size(self.point.nbytes),
            self.takes(),
            self.ratio().map_or(String::new(), units::ratio),
            self.floor().unwrap_or_else(|| NO_FLOOR.into()),
        ]
    }

    fn takes(&self) -> String {
        figure(self.series.measure, self.point.summary.p50)
    }

    fn cost(&self) -> f64 {
        self.series.measure.cost(self.point.summary.p50)
    }

    fn floor(&self) -> Option<String> {
        let bound = self.bound.as_ref()?;
        let value = figure(self.series.measure, bound.point.summary.p50);
        Some(format!("{value} ({})", bound.floor))
    }

    /// Returns true if the other answer is for the same operation, measure and size.
    fn is_like(&self, other: &Answer) -> bool {
        self.series.measure == other.series.measure
            && self.series.operation == other.series.operation
            && self.point.nbytes == other.point.nbytes
    }
}

/// Returns the answers of two runs as rows of one table. An operation that only one run has
/// measured has `-` for the other.
pub fn answers_of_two(a: &Record, b: &Record) -> Vec<[String; 6]> {
    let of_a = answers(a);
    let of_b = answers(b);

    let mut rows = Vec::new();
    for a in &of_a {
        let b = of_b.iter().find(|b| b.is_like(a));
        rows.push(row_of_two(a, Some(a), b));
    }
    for b in &of_b {
        if !of_a.iter().any(|a| a.is_like(b)) {
            rows.push(row_of_two(b, None, Some(b)));
        }
    }
    rows
}

/// Returns the row of an operation that one or both runs have measured; `one` is either of them.
fn row_of_two(one: &Answer, a: Option<&Answer>, b: Option<&Answer>) -> [String; 6] {
    let takes = |answer: Option<&Answer>| answer.map_or_else(|| "-".into(), Answer::takes);
    let ratio = match (a, b) {
        (Some(a), Some(b)) => units::ratio(a.cost() / b.cost()),
        _ => String::new(),
    };
    // A floor is a limit of the machine, so that of either run will do.
    let floor = a.and_then(Answer::floor).or(b.and_then(Answer::floor));

    [
        one.series.operation.clone(),
        size(one.point.nbytes),
        takes(a),
        takes(b),
        ratio,
        floor.unwrap_or_else(|| NO_FLOOR.into()),
    ]
}

/// Returns the answers of a run.
pub fn answers(record: &Record) -> Vec<Answer<'_>> {
    let mut answers = Vec::new();
    for series in answered(&record.series) {
        // A latency is that of the smallest size, a bandwidth that of the largest one.
        let point = if series.measure == Measure::Latency {
            series.points.first()
        } else {
            series.points.last()
        };
        if let Some(point) = point {
            answers.push(Answer {
                series,
                point,
                bound: bound(&record.series, series, point),
            });
        }
    }
    answers
}

/// Returns the series of `KEYS`, or else, in a run of other operations, the first latencies and
/// bandwidths.
fn answered(all: &[Series]) -> Vec<&Series> {
    let of_library = all.iter().filter(|series| !series.is_floor);

    let mut found = Vec::new();
    for (measure, name) in KEYS {
        let mut series = of_library.clone();
        found.extend(series.find(|one| one.measure == measure && one.operation == name));
    }
    if found.is_empty() {
        let others =
            of_library.filter(|one| matches!(one.measure, Measure::Latency | Measure::Bandwidth));
        found.extend(others.take(OTHERS));
    }
    found
}

/// Returns the likely reasons for a gap between times and floors, and reasons to doubt the figures,
/// as sentences; the more general ones first.
pub fn reasons(record: &Record) -> Vec<String> {
    let mut reasons = path(record);
    reasons.extend(record.warnings.iter().cloned());
    reasons.extend(largest_gap(record));

    let mut n_points = 0;
    let mut n_invalid = 0;
    let mut n_late = 0;
    for series in &record.series {
        for point in &series.points {
            n_points += 1;
            if is_invalid(&record.series, series, point) {
                n_invalid += 1;
            }
            if point.summary.ended == Ended::TimeUp {
                n_late += 1;
            }
        }
    }

    match n_invalid {
        0 => {}
        1 => reasons.push(
            "1 floor was slower than an operation that it should bound, and is not used.".into(),
        ),
        n => reasons.push(format!(
            "{n} floors were slower than operations that they should bound, and are not used."
        )),
    }
    if n_late > 0 {
        reasons.push(format!(
            "{n_late} of {n_points} medians are uncertain by more than 2 %: raise --time."
        ));
    }
    reasons
}

/// Returns a sentence on the operation with the highest ratio to its floor; `None` if no operation
/// has a floor.
fn largest_gap(record: &Record) -> Option<String> {
    let mut widest: Option<Answer> = None;
    for answer in answers(record) {
        // `None`, of an answer without a floor, is below any ratio.
        if answer.ratio() >= widest.as_ref().and_then(Answer::ratio) {
            widest = Some(answer);
        }
    }

    let widest = widest?;
    if widest.ratio()? < GAP {
        return Some(format!(
            "No operation takes {GAP} times what is possible here."
        ));
    }

    let job = &record.job;
    let is_shared = job.is_oversubscribed() || job.hosts.iter().any(HostInfo::is_loaded);
    let what = if is_shared {
        "the CPUs were shared, so it measures the scheduler"
    } else {
        "it is the library's own work, and that of the PE which answers"
    };
    let operation = &widest.series.operation;
    Some(format!("The largest gap is that of {operation}: {what}."))
}

/// Describes in sentences the path between the PEs of the first pair, and says if these are not
/// bound to CPUs.
fn path(record: &Record) -> Vec<String> {
    let Some(&Pair { from, to }) = record.pairs.first() else {
        return Vec::new();
    };
    let pes = [from, to].map(|pe| record.job.pes.get(pe as usize));
    let [Some(a), Some(b)] = pes else {
        return Vec::new();
    };
    if from == to {
        return vec!["There is one PE, which measures with itself.".into()];
    }

    let pair = format!("PE {from} and PE {to}");
    let mut reasons = Vec::new();
    if a.host == b.host && a.node.is_some() && a.node == b.node {
        reasons.push(format!(
            "{pair} share memory: the CPU carries out their operations."
        ));
    } else {
        let place = if a.host == b.host {
            "are on one host, but share no memory"
        } else {
            "are on different hosts"
        };
        let over = record.library.path();
        reasons.push(format!("{pair} {place}: operations go over {over}."));
        reasons.extend(kernels_tcp(record));
    }

    // A PE that may use a single CPU stays there, also if another one shares it.
    let is_one_cpu = a.cpus.parse::<u32>().is_ok();
    if a.host == b.host && a.cpus == b.cpus && !is_one_cpu {
        reasons.push(format!(
            "{pair} are not bound to CPUs, so the kernel may move them (--bind)."
        ));
    }
    reasons
}

/// If the transport is the kernel's TCP, says so, and which transport would use the RDMA devices.
fn kernels_tcp(record: &Record) -> Option<String> {
    let transport = record.library.transport.as_deref().unwrap_or_default();
    if !transport.contains("tcp") && !transport.contains("sockets") {
        return None;
    }

    let kernels = "The kernels of both sides carry each operation over TCP";
    let hosts = &record.job.hosts;
    let nics: Vec<&str> = hosts
        .iter()
        .flat_map(|host| &host.nics)
        .map(String::as_str)
        .collect();
    if nics.is_empty() {
        return Some(format!("{kernels}; no RDMA device was found."));
    }

    let remedy = if transport.starts_with("ofi") {
        "another provider in SHMEM_OFI_PROVIDER"
    } else {
        "SHMEM_TRANSPORT=ucx or ofi"
    };
    let nics = nics.join(", ");
    Some(format!(
        "{kernels}, which does not use {nics}: {remedy} does."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn record(values: &[(&str, bool, f64)]) -> Record {
        let rng = &mut fastrand::Rng::with_seed(1);
        let mut all = Vec::new();
        for &(operation, is_floor, value) in values {
            let shape = fixture::pair("one", 2);
            let medians = [(8, value), (64, value)];
            let series = fixture::series(rng, Measure::Latency, operation, shape, medians);
            all.push(Series { is_floor, ..series });
        }
        Record {
            series: all,
            pairs: vec![Pair { from: 0, to: 4 }],
            ..fixture::empty()
        }
    }

    #[test]
    fn the_ratio_is_to_the_highest_floor() {
        let mut record = record(&[
            ("put", false, 3000.0),
            ("get", false, 1000.0),
            ("fi_write", true, 1000.0),
            ("socket transfer", true, 1500.0),
            ("ucp_put", true, 9000.0),
        ]);
        let rows: Vec<[String; 5]> = answers(&record).iter().map(Answer::row).collect();
        let [put, get] = &rows[..] else {
            panic!("{rows:?}")
        };
        assert!(put[3].starts_with("2.9"), "{put:?}");
        assert!(put[4].ends_with("(fi_write)"), "{put:?}");
        // A socket transfer bounds gets too, and takes longer than one here.
        assert_eq!([&get[0], &get[1], &get[3]], ["get", "8", ""]);
        assert_eq!(get[4], "no valid floor");

        let text = reasons(&record).join("\n");
        for part in [
            "PE 0 and PE 4 are on different hosts: operations go over ofi (tcp;ofi_rxm)",
            "does not use mlx5_0",
            ": another provider in SHMEM_OFI_PROVIDER does.",
            "largest gap is that of put",
            "4 floors were slower than operations that they should bound",
            "the library's own work",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }

        record.job.hosts[0].load = 200.0;
        let text = reasons(&record).join("\n");
        let shared = "the CPUs were shared, so it measures the scheduler";
        assert!(
            text.contains(shared) && !text.contains("own work"),
            "{text}"
        );
    }

    #[test]
    fn two_runs_have_one_table() {
        let a = record(&[("put", false, 200.0), ("memcpy to peer", true, 50.0)]);
        let b = record(&[("put", false, 100.0)]);
        let both = record(&[("put", false, 100.0), ("get", false, 70.0)]);

        let row = &answers_of_two(&a, &b)[0];
        assert_eq!([&row[0], &row[1]], ["put", "8"]);
        let ratio: f64 = row[4].parse().expect("a ratio");
        assert!((1.8..2.2).contains(&ratio), "{row:?}");
        assert!(row[5].ends_with("(memcpy to peer)"), "{row:?}");
        // The floor is that of the run which has one.
        assert_eq!(answers_of_two(&b, &a)[0][5], row[5]);

        let alone = &answers_of_two(&a, &both)[1];
        assert_eq!(
            [&*alone[0], &alone[2], &alone[4], &alone[5]],
            ["get", "-", "", "no valid floor"]
        );
    }

    #[test]
    fn what_was_measured_is_answered_for() {
        let mut record = record(&[("iput", false, 100.0), ("memcpy to peer", true, 90.0)]);
        record.pairs = vec![Pair { from: 0, to: 1 }];
        for pe in &mut record.job.pes {
            pe.node = Some(pe.host * 4);
        }
        record.series[0].points[0].summary.ended = Ended::TimeUp;
        assert_eq!(answers(&record)[0].series.operation, "iput");

        let text = reasons(&record).join("\n");
        for part in [
            "share memory",
            "No operation takes 1.5 times",
            "1 of 4 medians are uncertain",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(answers(&fixture::empty()).is_empty());
    }
}
