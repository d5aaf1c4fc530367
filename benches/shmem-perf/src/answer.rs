//! Answers three questions about a run: how long an operation takes, what is possible on this
//! machine, and what the likely reasons for the difference are.

use crate::operation::{Bound, bound, is_invalid};
use crate::record::{Ended, HostInfo, Measure, Point, Record, Series};
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
/// The minimum ratio of an operation to its floor that is reported as a gap.
const GAP: f64 = 1.5;

/// The columns of an answer.
pub const HEAD: [&str; 5] = ["operation", "bytes", "takes", "ratio", "possible here"];
/// The columns of the answers of two runs.
pub const HEAD_OF_TWO: [&str; 6] = ["operation", "bytes", "A", "B", "A/B", "floor"];

/// The time or rate of an operation at one size, and its floor.
struct Answer<'a> {
    series: &'a Series,
    point: &'a Point,
    bound: Option<Bound<'a>>,
}

impl Answer<'_> {
    fn takes(&self) -> String {
        figure(self.series.measure, self.point.summary.p50)
    }

    fn floor(&self) -> Option<String> {
        let bound = self.bound.as_ref()?;
        let value = figure(self.series.measure, bound.point.summary.p50);
        Some(format!("{value} ({})", bound.floor))
    }

    /// Returns true if the other answer is for the same operation, measure and size.
    fn is_like(&self, other: &Answer) -> bool {
        let key = |answer: &Answer| (answer.series.measure, answer.point.nbytes);
        key(self) == key(other) && self.series.operation == other.series.operation
    }
}

/// Returns the answers as rows of a table, each with the ratio of the operation's time to its
/// floor; `None` without a valid floor.
pub fn answers(record: &Record) -> Vec<([String; 5], Option<f64>)> {
    let mut rows = Vec::new();
    for answer in found(record) {
        let ratio = answer.bound.as_ref().map(|bound| bound.ratio);
        let row = [
            answer.series.operation.clone(),
            size(answer.point.nbytes),
            answer.takes(),
            ratio.map_or(String::new(), units::ratio),
            answer.floor().unwrap_or_else(|| "no valid floor".into()),
        ];
        rows.push((row, ratio));
    }
    rows
}

/// Returns the answers of two runs as rows of one table. An operation that only one run has
/// measured has `-` for the other.
pub fn answers_of_two([a, b]: [&Record; 2]) -> Vec<[String; 6]> {
    let of_a = found(a);
    let of_b = found(b);
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
    let cost = |answer: &Answer| answer.series.measure.cost(answer.point.summary.p50);
    let ratio = match (a, b) {
        (Some(a), Some(b)) => units::ratio(cost(a) / cost(b)),
        _ => String::new(),
    };
    // A floor is a limit of the machine, so that of either run will do.
    let floor = [a, b].into_iter().flatten().find_map(Answer::floor);
    [
        one.series.operation.clone(),
        size(one.point.nbytes),
        takes(a),
        takes(b),
        ratio,
        floor.unwrap_or_else(|| "no valid floor".into()),
    ]
}

fn found<'a>(record: &'a Record) -> Vec<Answer<'a>> {
    let all = &record.series;
    let key = |(measure, name): &(Measure, &str)| {
        let is_it =
            |one: &&Series| !one.is_floor && one.measure == *measure && one.operation == *name;
        all.iter().find(is_it)
    };

    let mut series: Vec<&Series> = KEYS.iter().filter_map(key).collect();
    if series.is_empty() {
        // The run was of other operations.
        let is_one = |one: &&Series| {
            !one.is_floor && [Measure::Latency, Measure::Bandwidth].contains(&one.measure)
        };
        series = all.iter().filter(is_one).take(OTHERS).collect();
    }

    let answer = |series: &'a Series| {
        // A latency is that of the smallest size, a bandwidth that of the largest one.
        let point = if series.measure == Measure::Latency {
            series.points.first()?
        } else {
            series.points.last()?
        };
        Some(Answer {
            series,
            point,
            bound: bound(all, series, point),
        })
    };

    series.into_iter().filter_map(answer).collect()
}

/// Returns the likely reasons for a gap between times and floors, and reasons to doubt the figures,
/// as sentences; the more general ones first.
pub fn reasons(record: &Record) -> Vec<String> {
    let job = &record.job;
    let mut reasons = path(record);
    reasons.extend(record.warnings.iter().cloned());

    let answers = answers(record);
    let gaps = answers
        .iter()
        .filter_map(|(row, ratio)| Some((row, (*ratio)?)));
    let is_shared = job.is_oversubscribed() || job.hosts.iter().any(HostInfo::is_loaded);
    match gaps.max_by(|(_, a), (_, b)| a.total_cmp(b)) {
        Some((row, ratio)) if ratio >= GAP => {
            let what = if is_shared {
                "the CPUs were shared, so it measures the scheduler"
            } else {
                "it is the library's own work, and that of the PE which answers"
            };
            let operation = &row[0];
            reasons.push(format!("The largest gap is that of {operation}: {what}."));
        }
        Some(_) => reasons.push(format!(
            "No operation takes {GAP} times what is possible here."
        )),
        None => {}
    }

    let points = || {
        record
            .series
            .iter()
            .flat_map(|series| series.points.iter().map(move |point| (series, point)))
    };
    let n_invalid = points()
        .filter(|(series, point)| is_invalid(&record.series, series, point))
        .count();
    match n_invalid {
        0 => {}
        1 => reasons.push(
            "1 floor was slower than an operation that it should bound, and is not used.".into(),
        ),
        n => reasons.push(format!(
            "{n} floors were slower than operations that they should bound, and are not used."
        )),
    }

    let n_late = points()
        .filter(|(_, point)| point.summary.ended == Ended::TimeUp)
        .count();
    if n_late > 0 {
        reasons.push(format!(
            "{n_late} of {} medians are uncertain by more than 2 %: raise --time.",
            points().count()
        ));
    }
    reasons
}

/// Describes in sentences the path between the PEs of the first pair, and says if these are not
/// bound to CPUs.
fn path(record: &Record) -> Vec<String> {
    let Some(&(from, to)) = record.pairs.first() else {
        return Vec::new();
    };
    let pes = [from, to].map(|pe| record.job.pes.get(pe as usize));
    let [Some(a), Some(b)] = pes else {
        return Vec::new();
    };
    let over = record.library.path();
    let pair = format!("PE {from} and PE {to}");
    let mut reasons = Vec::new();
    if from == to {
        return vec!["There is one PE, which measures with itself.".into()];
    } else if a.host == b.host && a.node.is_some() && a.node == b.node {
        reasons.push(format!(
            "{pair} share memory: the CPU carries out their operations."
        ));
    } else {
        let place = if a.host == b.host {
            "are on one host, but share no memory"
        } else {
            "are on different hosts"
        };
        reasons.push(format!("{pair} {place}: operations go over {over}."));

        let nics: Vec<&str> = record
            .job
            .hosts
            .iter()
            .flat_map(|host| &host.nics)
            .map(String::as_str)
            .collect();
        let transport = record.library.transport.as_deref().unwrap_or_default();
        if transport.contains("tcp") || transport.contains("sockets") {
            let remedy = if transport.starts_with("ofi") {
                "another provider in SHMEM_OFI_PROVIDER"
            } else {
                "SHMEM_TRANSPORT=ucx or ofi"
            };
            let kernels = "The kernels of both sides carry each operation over TCP";
            reasons.push(match nics.as_slice() {
                [] => format!("{kernels}; no RDMA device was found."),
                nics => format!(
                    "{kernels}, which does not use {}: {remedy} does.",
                    nics.join(", ")
                ),
            });
        }
    }

    let is_one_cpu = a.cpus.parse::<u32>().is_ok();
    if a.host == b.host && a.cpus == b.cpus && !is_one_cpu {
        reasons.push(format!(
            "{pair} are not bound to CPUs, so the kernel may move them (--bind)."
        ));
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn record(values: &[(&str, bool, f64)]) -> Record {
        let rng = &mut fastrand::Rng::with_seed(1);
        let mut one = |&(operation, is_floor, value): &(&str, bool, f64)| {
            let shape = fixture::pair("one", 2);
            let series = fixture::series(
                rng,
                Measure::Latency,
                operation,
                shape,
                [(8, value), (64, value)],
            );
            Series { is_floor, ..series }
        };
        let series = values.iter().map(&mut one).collect();
        Record {
            series,
            pairs: vec![(0, 4)],
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
        let found = answers(&record);
        let shown: Vec<[&str; 3]> = found
            .iter()
            .map(|(row, _)| [row[0].as_str(), &row[1], &row[3]])
            .collect();
        assert!(
            shown[0][2].starts_with("2.9") && shown[1] == ["get", "8", ""],
            "{shown:?}"
        );
        // A socket transfer bounds gets too, and takes longer than one here.
        assert!(found[0].0[4].ends_with("(fi_write)"), "{:?}", found[0].0);
        assert_eq!(found[1].0[4], "no valid floor");
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
        let floor = ("memcpy to peer", true, 50.0);
        let (a, b) = (
            record(&[("put", false, 200.0), floor]),
            record(&[("put", false, 100.0)]),
        );
        let both = record(&[("put", false, 100.0), ("get", false, 70.0)]);
        let rows = |a, b| answers_of_two([a, b]);
        let row = &rows(&a, &b)[0];
        assert_eq!([&*row[0], &row[1]], ["put", "8"]);
        assert!(
            (1.8..2.2).contains(&row[4].parse::<f64>().expect("a ratio")),
            "{row:?}"
        );
        assert!(row[5].ends_with("(memcpy to peer)"), "{row:?}");
        // The floor is that of the run which has one.
        assert_eq!(rows(&b, &a)[0][5], row[5]);
        let alone = &rows(&a, &both)[1];
        assert_eq!(
            [&*alone[0], &alone[2], &alone[4], &alone[5]],
            ["get", "-", "", "no valid floor"]
        );
    }

    #[test]
    fn what_was_measured_is_answered_for() {
        let mut record = record(&[("iput", false, 100.0), ("memcpy to peer", true, 90.0)]);
        record.pairs = vec![(0, 1)];
        record
            .job
            .pes
            .iter_mut()
            .for_each(|pe| pe.node = Some(pe.host * 4));
        record.series[0].points[0].summary.ended = Ended::TimeUp;
        assert_eq!(answers(&record)[0].0[0], "iput");
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
