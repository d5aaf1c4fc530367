//! The results of a run, and everything that is needed to repeat it: the JSON that `shmem-perf`
//! writes and reads.

use std::path::Path;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// The version of this format. It grows when a reader of the older one would misread the newer one.
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
    /// The command of the launcher that started PE 0, as far as it could be seen.
    #[serde(default)]
    pub launcher: Vec<String>,
    /// The library that was measured.
    pub library: Library,
    /// The job in which it ran.
    pub job: JobInfo,
    /// The pairs of PEs that were active, each the PE that issues and its peer.
    #[serde(default)]
    pub pairs: Vec<(u32, u32)>,
    /// The settings of the library and of what is below it, with where each value comes from.
    pub settings: Vec<SettingInfo>,
    /// The clock.
    pub clock: Clock,
    /// The reasons to doubt the figures, one sentence each: load, frequency scaling, settings that
    /// cost time.
    pub warnings: Vec<String>,
    /// The devices that the floors of networks used and how their PEs waited, one sentence each.
    #[serde(default)]
    pub floors: Vec<String>,
    /// True if the data that each measurement moved was checked.
    #[serde(default)]
    pub validated: bool,
    /// True if the run was completed. What was measured before is here either way.
    pub complete: bool,
    /// The figures by size.
    pub series: Vec<Series>,
    /// The figures between each two PEs.
    pub matrices: Vec<Matrix>,
}

/// A library.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Library {
    /// The text of `shmem_info_get_name`.
    pub name: String,
    /// The version of the standard that it states, such as `1.6`.
    pub standard: String,
    /// The thread level that it provided, such as `multiple`; older records lack it.
    #[serde(default)]
    pub thread_level: Option<String>,
    /// The path between PEs, and the provider of libfabric, as far as it is known.
    pub transport: Option<String>,
    /// Why it was chosen, as far as the library says it.
    #[serde(default)]
    pub why: Option<String>,
    /// The findings of its transports, with the versions of the libraries that they call.
    #[serde(default)]
    pub below: Vec<String>,
}

impl Library {
    /// Returns the path between PEs, and the reason for it.
    pub fn path(&self) -> String {
        match (&self.transport, &self.why) {
            (None, _) => "not known".into(),
            (Some(transport), None) => transport.clone(),
            (Some(transport), Some(why)) => format!("{transport}: {why}"),
        }
    }
}

/// A job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobInfo {
    /// Hosts, each once.
    pub hosts: Vec<HostInfo>,
    /// PEs by their number.
    pub pes: Vec<PeInfo>,
}

impl JobInfo {
    /// Returns the number of PEs of each host.
    pub fn pes_by_host(&self) -> Vec<u32> {
        let n_pes = |host: u32| self.pes.iter().filter(|pe| pe.host == host).count() as u32;
        (0..self.hosts.len() as u32).map(n_pes).collect()
    }

    /// Returns true if the PEs of a host outnumber its CPUs.
    pub fn is_oversubscribed(&self) -> bool {
        self.hosts.iter().zip(self.pes_by_host()).any(|(host, n_pes)| n_pes > host.n_cpus)
    }
}

impl HostInfo {
    /// Returns true if other programs took CPUs.
    pub fn is_loaded(&self) -> bool {
        self.load > f64::from(self.n_cpus)
    }
}

/// A host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostInfo {
    /// Its name.
    pub name: String,
    /// The CPU's model.
    pub cpu: String,
    /// CPUs that the job may use there.
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

/// A PE.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeInfo {
    /// Index in [`JobInfo::hosts`].
    pub host: u32,
    /// The lowest number of the PEs whose memory it shares, its own included: those are its node.
    #[serde(default)]
    pub node: Option<u32>,
    /// CPUs that it may use, as the kernel lists them, such as `0-3,8`.
    pub cpus: String,
}

/// A setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SettingInfo {
    /// Its name, such as `SHMEM_TRANSPORT`.
    pub name: String,
    /// Its value.
    pub value: String,
    /// The origin, such as `environment` or `default`.
    pub origin: String,
}

/// A clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// Its name.
    pub name: String,
    /// Nanoseconds that reading it takes; they are subtracted from the figures.
    pub overhead_ns: f64,
    /// The smallest difference of two readings, in nanoseconds.
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
    /// Converts a figure to a time that is proportional to that of the same work. For overlap it is
    /// the time of a transfer beside a computation of the same length, in percent of the transfer.
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
    /// The measure of the figures.
    pub measure: Measure,
    /// The operation: the name of the routine without `shmem_`, such as `put`, or of a floor, such
    /// as `memcpy`.
    pub operation: String,
    /// True if this is not a routine of the library but a lower bound for one: plain loads and
    /// stores, `memcpy`, a socket.
    pub is_floor: bool,
    /// The PEs, contexts, threads and memory with which it was measured.
    pub shape: Shape,
    /// In ascending order of size.
    pub points: Vec<Point>,
}

impl Series {
    /// Returns true if both series measure the same operation in the same way.
    pub fn is_same_as(&self, other: &Self) -> bool {
        (self.measure, &self.operation, self.is_floor, &self.shape)
            == (other.measure, &other.operation, other.is_floor, &other.shape)
    }
}

/// The PEs, contexts, threads and memory with which an operation was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// PEs that took part.
    pub n_pes: u32,
    /// Pairs of PEs that were active at once: `one`, `neighbors`, `random`, `all`; empty for
    /// collectives.
    pub pairs: String,
    /// Members of the team of a collective.
    pub team_size: Option<u32>,
    /// Contexts per PE.
    pub contexts: u32,
    /// Threads per PE.
    pub threads: u32,
    /// Operations in flight before each completion, for rates and bandwidths.
    pub window: u32,
    /// Memory at the target: `heap` or `static`.
    pub memory: String,
    /// True if the target's PE computed meanwhile and called nothing; otherwise it waited in a
    /// barrier.
    #[serde(default)]
    pub target_computes: bool,
}

/// One size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Bytes of a transfer; of a collective, each member's.
    pub nbytes: u64,
    /// The result, in the unit of the measure.
    pub summary: Summary,
    /// The number of times that each value was seen, in ascending order: (value, count). Empty
    /// where single operations were not timed.
    pub histogram: Vec<(f64, u64)>,
    /// The mean time of each member of a collective: the minimum, the mean, and the maximum of
    /// these.
    #[serde(default)]
    pub by_pe: Option<(f64, f64, f64)>,
    /// Each value, by batch, where `--samples` asks for it; no record has them.
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
        Self { nbytes: 0, summary, histogram: Vec::new(), by_pe: None, samples: Vec::new() }
    }
}

/// Figures in the unit of their measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Repetitions.
    pub n: u64,
    /// Their mean.
    pub mean: f64,
    /// The minimum.
    pub min: f64,
    /// The median of the batches' medians, between the quartiles of all values.
    pub p50: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The 99.9th percentile; `None` if there are fewer than 1,000 values.
    pub p999: Option<f64>,
    /// The maximum.
    pub max: f64,
    /// The interval of confidence of the median, 95 %, from batches of repetitions; of fewer than
    /// six batches there is none.
    pub interval: Option<(f64, f64)>,
    /// The medians of these batches, in the order of time: what a comparison tests.
    pub batches: Vec<f64>,
    /// Why it was not measured longer.
    pub ended: Ended,
}

/// Why a measurement ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// The interval of confidence is narrow.
    Narrow,
    /// The time limit came first.
    TimeUp,
    /// It was repeated as often as `--iterations` says.
    Counted,
    /// It is an event that happens once.
    Once,
}

/// One figure for each two PEs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Matrix {
    /// The measure of the figures: latency or bandwidth.
    pub measure: Measure,
    /// The operation.
    pub operation: String,
    /// Bytes of a transfer.
    pub nbytes: u64,
    /// `from` by `to`; nothing on the diagonal and where the time was up.
    pub values: Vec<Vec<Option<f64>>>,
}

/// The beginning of a record in every format.
#[derive(Deserialize)]
struct Head {
    format: u32,
}

/// Returns the record in a file.
///
/// # Errors
/// A sentence that says why the file is no record.
pub fn load(path: &Path) -> Result<Record, String> {
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("{name} cannot be read: {error}."))?;
    match serde_json::from_str::<Head>(&text) {
        Err(error) => return Err(format!("{name} is no record of shmem-perf: {error}.")),
        Ok(Head { format }) if format != FORMAT => {
            return Err(format!(
                "{name} is a record of format {format}, but this shmem-perf reads format {FORMAT}."
            ));
        }
        Ok(_) => {}
    }
    serde_json::from_str(&text)
        .map_err(|error| format!("{name} is no record of shmem-perf: {error}."))
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
            interval: Some((1.5, 2.5)),
            batches: vec![2.0, 2.1],
            ended: Ended::TimeUp,
        };
        let text = serde_json::to_string(&summary).expect("numbers");
        assert!(text.contains("\"ended\":\"time_up\""), "{text}");
        assert_eq!(serde_json::from_str::<Summary>(&text).expect("what was written"), summary);
    }
}
