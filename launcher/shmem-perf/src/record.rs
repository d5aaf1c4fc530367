//! The record of a run: its results and everything that is needed to repeat it. `shmem-perf` writes
//! and reads it as JSON.

use std::path::Path;

use clap::ValueEnum;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The version of the format. It is incremented when a reader of the older version would
/// misinterpret the newer one.
pub const FORMAT: u32 = 2;

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of `shmem-perf`.
    pub tool: String,
    /// When the run began: RFC 3339, UTC.
    pub date: String,
    /// The arguments, the program's name first.
    pub command: Vec<String>,
    /// The command of the launcher that started PE 0, without the program's own; empty if it is not
    /// known.
    #[serde(default)]
    pub launcher: Vec<String>,
    /// The library that was measured.
    pub library: Library,
    /// The job in which it ran.
    pub job: JobInfo,
    /// The pairs of PEs that were active.
    #[serde(default)]
    pub pairs: Vec<Pair>,
    /// The settings of the library and of the libraries that it uses, each with its origin.
    pub settings: Vec<SettingInfo>,
    /// The clock that timed the operations.
    pub clock: Clock,
    /// The reasons to doubt the figures, one sentence each: load, frequency scaling, settings that
    /// cost time.
    pub warnings: Vec<String>,
    /// One sentence for each network whose floors were planned: the devices that they used and how
    /// their PEs waited, or why they were left out.
    #[serde(default)]
    pub floors: Vec<String>,
    /// True if the data that operations moved were checked (`--validate`).
    #[serde(default)]
    pub validated: bool,
    /// True if the run was completed. The record of an interrupted run has the results so far.
    pub complete: bool,
    /// The curves, in the order in which they were measured.
    pub series: Vec<Series>,
    /// The matrices of latency and bandwidth between all PEs; empty without `--matrix`.
    pub matrices: Vec<Matrix>,
}

/// Two PEs that measure with each other; one PE measures with itself. JSON has them as `[0,1]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, u32)", into = "(u32, u32)")]
pub struct Pair {
    /// The PE that issues operations.
    pub from: u32,
    /// Its peer.
    pub to: u32,
}

impl From<(u32, u32)> for Pair {
    fn from((from, to): (u32, u32)) -> Self {
        Self { from, to }
    }
}

impl From<Pair> for (u32, u32) {
    fn from(pair: Pair) -> Self {
        (pair.from, pair.to)
    }
}

/// The measured library, as it describes itself, and the path that it used between PEs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Library {
    /// The text of `shmem_info_get_name`.
    pub name: String,
    /// The version of the standard that it states, such as `1.6`.
    pub standard: String,
    /// The thread level that it provided, such as `multiple`; older records lack it.
    #[serde(default)]
    pub thread_level: Option<String>,
    /// The path between PEs, and the provider of libfabric; `None` if the library does not report
    /// it and no setting names it.
    pub transport: Option<String>,
    /// Why the library chose this path, if it says so.
    #[serde(default)]
    pub why: Option<String>,
    /// What each of its transports found, such as the versions of the libraries that it calls.
    #[serde(default)]
    pub below: Vec<String>,
}

impl Library {
    /// Returns the path between PEs, and the reason for its choice.
    pub fn path(&self) -> String {
        match (&self.transport, &self.why) {
            (None, _) => "not known".into(),
            (Some(transport), None) => transport.clone(),
            (Some(transport), Some(why)) => format!("{transport}: {why}"),
        }
    }
}

/// The hosts and the PEs of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobInfo {
    /// The hosts, in the order of their lowest PEs.
    pub hosts: Vec<HostInfo>,
    /// PEs by their number.
    pub pes: Vec<PeInfo>,
}

impl JobInfo {
    /// Returns the number of PEs of each host.
    pub fn pes_by_host(&self) -> Vec<u32> {
        let mut n_pes = vec![0; self.hosts.len()];
        for pe in &self.pes {
            // A record that was written by hand may name hosts that it lacks.
            if let Some(n_pes) = n_pes.get_mut(pe.host as usize) {
                *n_pes += 1;
            }
        }
        n_pes
    }

    /// Returns true if the PEs of a host outnumber its CPUs.
    pub fn is_oversubscribed(&self) -> bool {
        self.hosts
            .iter()
            .zip(self.pes_by_host())
            .any(|(host, n_pes)| n_pes > host.n_cpus)
    }
}

/// The hardware and the load of a host, as its first PE saw them before the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostInfo {
    /// The host name.
    pub name: String,
    /// The CPU's model.
    pub cpu: String,
    /// The number of CPUs that are online, or that its first PE may use if this is more.
    pub n_cpus: u32,
    /// The mean number of threads that were ready to run there in the minute before.
    #[serde(default)]
    pub load: f64,
    /// The kernel's release.
    pub kernel: String,
    /// The CPUs of each NUMA node, as the kernel lists them.
    #[serde(default)]
    pub numa_nodes: Vec<String>,
    /// Its RDMA devices, and the NUMA node of each where the kernel knows it, such as `mlx5_0 (NUMA
    /// node 1)`.
    #[serde(default)]
    pub nics: Vec<String>,
}

impl HostInfo {
    /// Returns true if more threads than the host has CPUs were ready to run before the run.
    pub fn is_loaded(&self) -> bool {
        self.load > f64::from(self.n_cpus)
    }
}

/// The place of a PE in the job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeInfo {
    /// Index in [`JobInfo::hosts`].
    pub host: u32,
    /// The lowest PE whose memory this PE can access by loads and stores, which may be itself. PEs
    /// with the same value are a node.
    #[serde(default)]
    pub node: Option<u32>,
    /// The CPUs that the PE may use, as the kernel lists them, such as `0-3,8`.
    pub cpus: String,
}

/// A setting of the library or of a library that it uses, with its value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SettingInfo {
    /// The variable, such as `SHMEM_TRANSPORT`.
    pub name: String,
    /// The value as text.
    pub value: String,
    /// Where the value is from, such as `environment` or `default`.
    pub origin: String,
}

/// The clock that timed the operations, as measured on PE 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// The name in C, such as `CLOCK_MONOTONIC`.
    pub name: String,
    /// Nanoseconds that a reading takes; they are subtracted from the figures.
    pub overhead_ns: f64,
    /// The granularity in nanoseconds.
    pub resolution_ns: f64,
}

/// The measure of a figure, and its unit.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ValueEnum,
)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Nanoseconds per operation, from call to completion.
    Latency,
    /// Bytes per second, one way.
    Bandwidth,
    /// Bytes per second, both ways at once, the sum.
    #[value(name = "bidirectional")]
    BidirectionalBandwidth,
    /// Operations per second.
    #[value(name = "rate")]
    MessageRate,
    /// Percent of the time of a transfer during which the PE can compute.
    Overlap,
    /// Nanoseconds per collective, the slowest PE's.
    Collective,
    /// Nanoseconds of an event that happens once, such as the start of a job.
    Event,
}

impl Measure {
    /// Converts a figure of this measure to a cost, proportional to the time that a fixed amount of
    /// work takes. For overlap, the cost is the time of a transfer beside a computation of equal
    /// length, in percent of the transfer alone.
    pub fn cost(self, value: f64) -> f64 {
        match self {
            Self::Latency | Self::Collective | Self::Event => value,
            Self::Bandwidth | Self::BidirectionalBandwidth | Self::MessageRate => 1.0 / value,
            Self::Overlap => 200.0 - value,
        }
    }
}

/// One curve: an operation by size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The measure, which determines the unit of the figures.
    pub measure: Measure,
    /// The operation: the name of the routine without `shmem_`, such as `put`, or of a floor, such
    /// as `memcpy to peer`.
    pub operation: String,
    /// True if this is not a routine of the library but a lower bound for one: plain loads and
    /// stores, `memcpy`, a socket, or a network's own operation.
    pub is_floor: bool,
    /// The PEs, contexts, threads and memory with which it was measured.
    pub shape: Shape,
    /// The points in ascending order of size.
    pub points: Vec<Point>,
}

impl Series {
    /// Returns true if both series measure the same operation in the same way.
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.measure == other.measure
            && self.operation == other.operation
            && self.is_floor == other.is_floor
            && self.shape == other.shape
    }
}

/// The PEs, contexts, threads and memory with which an operation was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// PEs of the job, of which only some may have been active.
    pub n_pes: u32,
    /// Pairs of PEs that were active at once: `one`, `neighbors`, `random`, `all`; empty for
    /// collectives and events.
    pub pairs: String,
    /// Members of the team of a collective.
    pub team_size: Option<u32>,
    /// Contexts per PE; 0 is the default context.
    pub contexts: u32,
    /// Threads per PE.
    pub threads: u32,
    /// Operations in flight before each completion, for rates and bandwidths.
    pub window: u32,
    /// Memory at the target: `heap` or `static`.
    pub memory: String,
    /// True if the target PE computed meanwhile and called no routine; otherwise it answered or
    /// waited in a barrier.
    #[serde(default)]
    pub target_computes: bool,
}

/// The result of a series at one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Bytes of a transfer, or for a collective of one member's contribution.
    pub nbytes: u64,
    /// The result, in the unit of the measure.
    pub summary: Summary,
    /// The values in ascending order; those within 2 % are counted as one. Empty if operations were
    /// timed in groups.
    pub histogram: Vec<ValueCount>,
    /// The times of the members of a collective.
    #[serde(default)]
    pub by_pe: Option<MemberTimes>,
    /// With `--samples`: all values by batch. They are written to a file of their own, so a record
    /// on disk does not have them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Vec<f64>>,
}

impl Point {
    /// Returns the point of an event that happened once and took `ns` nanoseconds.
    pub fn once(ns: f64) -> Self {
        let summary = Summary {
            n: 1,
            mean: ns,
            min: ns,
            p50: ns,
            p90: ns,
            p99: ns,
            p999: None,
            max: ns,
            interval: None,
            batches: vec![ns],
            ended: Ended::Once,
        };
        Self {
            nbytes: 0,
            summary,
            histogram: Vec::new(),
            by_pe: None,
            samples: Vec::new(),
        }
    }
}

/// A value of a histogram, and how often it occurred. JSON has them as `[1.5,20]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "(f64, u64)", into = "(f64, u64)")]
pub struct ValueCount {
    /// The value, in the unit of the measure.
    pub value: f64,
    /// The number of its occurrences.
    pub count: u64,
}

impl From<(f64, u64)> for ValueCount {
    fn from((value, count): (f64, u64)) -> Self {
        Self { value, count }
    }
}

impl From<ValueCount> for (f64, u64) {
    fn from(one: ValueCount) -> Self {
        (one.value, one.count)
    }
}

/// The range of the mean times that the members of a collective measured. JSON has the numbers as
/// `[1.5,2.0,2.5]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "(f64, f64, f64)", into = "(f64, f64, f64)")]
pub struct MemberTimes {
    /// The mean of the fastest member.
    pub min: f64,
    /// The mean of the members' means.
    pub mean: f64,
    /// The mean of the slowest member.
    pub max: f64,
}

impl From<(f64, f64, f64)> for MemberTimes {
    fn from((min, mean, max): (f64, f64, f64)) -> Self {
        Self { min, mean, max }
    }
}

impl From<MemberTimes> for (f64, f64, f64) {
    fn from(times: MemberTimes) -> Self {
        (times.min, times.mean, times.max)
    }
}

/// The distribution of a point's values, in the unit of its measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The number of values.
    pub n: u64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The minimum.
    pub min: f64,
    /// The median of the batches' medians. With batches of equal size, it is between the quartiles
    /// of all values.
    pub p50: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The 99.9th percentile; `None` if there are fewer than 1,000 values.
    pub p999: Option<f64>,
    /// The maximum.
    pub max: f64,
    /// The 95 % confidence interval of the median, computed from the batches' medians; `None` if
    /// there are fewer than six batches.
    pub interval: Option<Interval>,
    /// The medians of the batches, in the order of time. Comparisons test these.
    pub batches: Vec<f64>,
    /// Why the measurement ended.
    pub ended: Ended,
}

/// A confidence interval. JSON has it as `[1.5,2.5]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "(f64, f64)", into = "(f64, f64)")]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl From<(f64, f64)> for Interval {
    fn from((low, high): (f64, f64)) -> Self {
        Self { low, high }
    }
}

impl From<Interval> for (f64, f64) {
    fn from(interval: Interval) -> Self {
        (interval.low, interval.high)
    }
}

/// Why a measurement ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// The confidence interval of the median was narrow enough.
    Narrow,
    /// The time was over before the interval was narrow enough.
    TimeUp,
    /// The number of operations that `--iterations` requests was reached.
    Counted,
    /// The event happens only once.
    Once,
}

/// One figure for each ordered pair of PEs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Matrix {
    /// The measure of the figures: latency or bandwidth.
    pub measure: Measure,
    /// The operation, named as in [`Series`].
    pub operation: String,
    /// Bytes of a transfer.
    pub nbytes: u64,
    /// A row for each PE that issues, a column for each target PE. `None` on the diagonal, and for
    /// pairs for which there was no time left.
    pub values: Vec<Vec<Option<f64>>>,
}

/// The only field that a record has in every version of the format.
#[derive(Deserialize)]
struct Head {
    format: u32,
}

/// Reads a record from a JSON file.
///
/// # Errors
/// A sentence that says why the file cannot be read or is no record of this format.
pub fn load(path: &Path) -> Result<Record, String> {
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("{name} cannot be read: {error}."))?;

    // First the version, since a record of another one may lack any other field.
    let Head { format } = parsed(path, &text)?;
    if format != FORMAT {
        return Err(format!(
            "{name} is a record of format {format}, but this shmem-perf reads format {FORMAT}."
        ));
    }
    parsed(path, &text)
}

fn parsed<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, String> {
    serde_json::from_str(text)
        .map_err(|error| format!("{} is no record of shmem-perf: {error}.", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_survives_json() {
        let summary = Summary {
            n: 3,
            mean: 2.5,
            min: 1.0,
            p50: 2.0,
            p90: 4.5,
            p99: 4.5,
            p999: None,
            max: 4.5,
            interval: Some(Interval {
                low: 1.5,
                high: 2.5,
            }),
            batches: vec![2.0, 2.1],
            ended: Ended::TimeUp,
        };
        let text = serde_json::to_string(&summary).expect("numbers");
        assert!(text.contains("\"ended\":\"time_up\""), "{text}");
        assert!(text.contains("\"interval\":[1.5,2.5]"), "{text}");
        assert_eq!(
            serde_json::from_str::<Summary>(&text).expect("what was written"),
            summary
        );
    }
}
