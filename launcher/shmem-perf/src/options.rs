//! The flags of a measurement, and the parser of the subcommands' flags.

use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Parser, ValueEnum};

use crate::library::MOST_LANES;
use crate::network::Network;
use crate::print::print;
use crate::record::{Measure, Pair};

/// The headings under which the help lists the options.
const WHAT: &str = "What is measured";
const PES: &str = "PEs and memory";
const TIME: &str = "Time";
const OUTPUT: &str = "Output";

/// Measure an OpenSHMEM library: latency, bandwidth, message rate, overlap and collectives, beside
/// the limits of the machine.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "shmem-perf",
    version,
    max_term_width = 100,
    override_usage = "shmem-perf [OPTIONS | COMMAND [ARGUMENT]...]",
    after_help = "Commands:\n  \
                  report   Make one page of HTML from records\n  \
                  compare  Say what differs beyond noise between runs before and after\n  \
                  build    Build this program for another OpenSHMEM library\n  \
                  tune     Measure algorithms of collectives, and write a file for SHMEM_COLL_TUNING\n\n\
                  shmem-perf COMMAND --help describes a command. The transport and other settings of the library are chosen by \
                  environment variables, as for any program; the record contains them.\n\n\
                  Exit status:\n  \
                  0  Everything was measured\n  \
                  1  The record could not be written, the library refused something, or --validate found wrong data\n  \
                  2  An option is not valid\n\n\
                  Examples:\n  \
                  oshrun -n 2 shmem-perf                         The most important figures, in 20 seconds\n  \
                  oshrun -n 2 shmem-perf -o before.json          The same, and a record of it\n  \
                  oshrun -H a,b shmem-perf --operations put,get  Two operations between two hosts\n  \
                  oshrun -n 16 shmem-perf --matrix               Every pair of PEs\n  \
                  oshrun -n 8 shmem-perf tune -o FILE            Rows for jobs of up to 8 PEs"
)]
pub struct PerfOptions {
    /// Operations, by the names in the tables; all: every one; by default those that most programs
    /// use
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', help_heading = WHAT)]
    pub operations: Vec<String>,

    /// Measures: latency, bandwidth, bidirectional, rate, overlap, collective, event; by default
    /// all
    #[arg(long, value_name = "MEASURE,...", value_delimiter = ',', hide_possible_values = true, help_heading = WHAT)]
    pub measures: Vec<Measure>,

    /// The smallest size in bytes; k and m are allowed
    #[arg(long, value_name = "BYTES", default_value = "8", value_parser = nbytes, help_heading = WHAT)]
    pub min_bytes: u64,

    /// The largest size in bytes
    #[arg(long, value_name = "BYTES", default_value = "2m", value_parser = nbytes, help_heading = WHAT)]
    pub max_bytes: u64,

    /// Factor between each size and the one before
    #[arg(long, value_name = "FACTOR", default_value_t = 4, value_parser = clap::value_parser!(u64).range(2..=1024), help_heading = WHAT)]
    pub growth: u64,

    /// These sizes in bytes instead
    #[arg(long, value_name = "BYTES,...", value_delimiter = ',', value_parser = nbytes, conflicts_with_all = ["min_bytes", "max_bytes", "growth"], help_heading = WHAT)]
    pub sizes: Vec<u64>,

    /// Pairs of PEs that are active at once: one, neighbors, random, or all, which is the first
    /// half with the second half
    #[arg(long, value_name = "PAIRS", default_value = "one", hide_possible_values = true, help_heading = PES)]
    pub pairs: Pairs,

    /// Which two PEs --pairs one uses, the one that issues first; by default the first two
    #[arg(long, value_name = "FROM,TO", value_parser = pair, help_heading = PES)]
    pub pair: Option<Pair>,

    /// Seed of the random pairs
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = PES)]
    pub seed: u64,

    /// Contexts of each PE; 0: the default context
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=MOST_LANES as i64), help_heading = PES)]
    pub contexts: u32,

    /// Threads of each PE that issue at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=32), help_heading = PES)]
    pub threads: u32,

    /// Initialize with SHMEM_THREAD_MULTIPLE, as several --threads always do
    #[arg(long, help_heading = PES)]
    pub thread_multiple: bool,

    /// Operations before each completion, for rates and bandwidths
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=65536), help_heading = PES)]
    pub window: u32,

    /// Memory of the target: heap or static
    #[arg(long, value_name = "MEMORY", default_value = "heap", hide_possible_values = true, help_heading = PES)]
    pub memory: TargetMemory,

    /// Activity of the target PE meanwhile: waits (in the library), computes (and calls nothing)
    #[arg(long, value_name = "ACTIVITY", default_value = "waits", hide_possible_values = true, help_heading = PES)]
    pub target: TargetActivity,

    /// Members of the teams of collectives, each of the first PEs; by default all PEs
    #[arg(long, value_name = "N,...", value_delimiter = ',', help_heading = PES)]
    pub team_sizes: Vec<u32>,

    /// Also measure these libraries directly: ucx, libfabric; by default the one that connects the
    /// pair, if the library reports it
    #[arg(long, value_name = "LIBRARY,...", value_delimiter = ',', hide_possible_values = true, help_heading = WHAT)]
    pub floors: Vec<Network>,

    /// Bind each PE to its own CPU among those that its launcher lets it use, on hosts where these
    /// suffice
    #[arg(long, help_heading = PES)]
    pub bind: bool,

    /// Measure every pair of PEs, as often as --time permits, and nothing else unless --operations
    /// or --measures requests it
    #[arg(long, help_heading = WHAT)]
    pub matrix: bool,

    /// About how many seconds it may take
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = seconds, help_heading = TIME)]
    pub time: Duration,

    /// Operations before each measurement that are not counted; by default those of a 50th of its
    /// time, at most 50 ms
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..), help_heading = TIME)]
    pub warm_up: Option<u64>,

    /// Operations of each measurement (windows, for bandwidths and rates), however long they take;
    /// by default until the median is known to 2 % or the time is over
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = TIME)]
    pub iterations: Option<u64>,

    /// Move buffers through this many bytes, one after the other, which should be more than the
    /// caches hold
    #[arg(long, value_name = "BYTES", value_parser = nbytes, help_heading = PES)]
    pub off_cache: Option<u64>,

    /// Check after each measurement that the data was moved, and end with status 1 if it was not
    #[arg(long, conflicts_with = "off_cache", help_heading = OUTPUT)]
    pub validate: bool,

    /// Write each value into FILE.csv, too, with its batch
    #[arg(long, value_name = "FILE.csv", help_heading = OUTPUT)]
    pub samples: Option<PathBuf>,

    /// Write a record into FILE.json, or a table into FILE.csv
    #[arg(short, long, value_name = "FILE", help_heading = OUTPUT)]
    pub output: Option<PathBuf>,
}

/// Which PEs are active at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Pairs {
    One,
    /// PEs 0 and 1, 2 and 3, and so on.
    Neighbors,
    /// Pairs drawn with the seed of `--seed`.
    Random,
    /// The first half with the second half.
    All,
}

/// Memory of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TargetMemory {
    Heap,
    /// A global variable.
    Static,
}

/// The activity of the PE whose memory is the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TargetActivity {
    /// It waits in a barrier of the library, or answers round trips.
    Waits,
    /// It computes and calls no routine of the library.
    Computes,
}

/// Returns the name that a value has in flags and records.
pub fn name(value: impl ValueEnum) -> String {
    value
        .to_possible_value()
        .map_or(String::new(), |value| value.get_name().to_owned())
}

fn nbytes(text: &str) -> Result<u64, String> {
    let factor = match text.chars().last() {
        Some('k' | 'K') => 1 << 10,
        Some('m' | 'M') => 1 << 20,
        _ => 1,
    };
    let digits = text.trim_end_matches(['k', 'K', 'm', 'M']);
    if let Ok(number) = digits.parse::<u64>()
        && let Some(nbytes) = number.checked_mul(factor)
        && (1..=1 << 30).contains(&nbytes)
    {
        return Ok(nbytes);
    }
    Err("a number of bytes from 1 to 1024m is expected".into())
}

fn pair(text: &str) -> Result<Pair, String> {
    if let Some((from, to)) = text.split_once(',')
        && let Ok(from) = from.parse()
        && let Ok(to) = to.parse()
    {
        return Ok(Pair { from, to });
    }
    Err("two PEs are expected, such as 0,1".into())
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=86400.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("a number of seconds from 0.1 to 86400 is expected".into()),
    }
}

impl PerfOptions {
    pub fn sizes(&self) -> Vec<u64> {
        if !self.sizes.is_empty() {
            let mut sizes = self.sizes.clone();
            sizes.sort_unstable();
            sizes.dedup();
            return sizes;
        }
        let mut sizes = Vec::new();
        let mut next = Some(self.min_bytes);
        while let Some(size) = next
            && size <= self.max_bytes
        {
            sizes.push(size);
            next = size.checked_mul(self.growth);
        }
        sizes
    }

    /// Returns the maximum size of a buffer in bytes: the largest size, or `n_blocks` blocks of the
    /// smallest size if that is more.
    pub fn most_bytes(&self, n_blocks: u64) -> u64 {
        let sizes = self.sizes();
        // `check` refuses flags that leave no size.
        let smallest = sizes.first().copied().unwrap_or(self.max_bytes);
        let largest = if self.sizes.is_empty() {
            self.max_bytes
        } else {
            sizes.last().copied().unwrap_or(self.max_bytes)
        };
        largest.max(n_blocks * smallest)
    }

    /// Checks the flags against each other and against the number of PEs. An error is one sentence.
    pub fn check(&self, n_pes: u32) -> Result<(), String> {
        if self.max_bytes < self.min_bytes {
            return Err(format!(
                "--max-bytes {} is smaller than --min-bytes {}",
                self.max_bytes, self.min_bytes
            ));
        }

        if let Some(Pair { from, to }) = self.pair
            && from.max(to) >= n_pes
        {
            return Err(format!(
                "--pair {from},{to}: there are {n_pes} PEs, the first is PE 0"
            ));
        }
        if self.pair.is_some() && self.pairs != Pairs::One {
            return Err("--pair names one pair, which is not what --pairs asks for".into());
        }

        for size in &self.team_sizes {
            if !(1..=n_pes).contains(size) {
                return Err(format!(
                    "--team-sizes {size}: a team has from 1 to {n_pes} members here"
                ));
            }
        }

        if self.matrix && n_pes < 2 {
            return Err("--matrix needs at least 2 PEs".into());
        }
        if self.off_cache.is_some() && self.memory == TargetMemory::Static {
            return Err("--off-cache needs --memory heap".into());
        }

        if let Some(path) = &self.output {
            let extension = path.extension().and_then(|extension| extension.to_str());
            // A device, such as `/dev/null` or `/dev/stdout`, has no ending.
            if !matches!(extension, Some("json" | "csv")) && !path.starts_with("/dev") {
                return Err(format!(
                    "--output {}: it must end in .json or .csv",
                    path.display()
                ));
            }
        }
        Ok(())
    }
}

/// Parses the flags of a subcommand. Returns `None` if they contain `--help`, after printing it.
///
/// # Errors
/// The parser's message if the flags are wrong, or a sentence if the help cannot be printed.
pub fn subcommand<T: Parser>(program: &str, args: &[String]) -> Result<Option<T>, String> {
    let all = std::iter::once(program.to_owned()).chain(args.iter().cloned());
    match T::try_parse_from(all) {
        Ok(flags) => Ok(Some(flags)),
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {
            print(&error.to_string()).map(|()| None)
        }
        Err(error) => {
            let text = error.to_string();
            Err(text.trim_start_matches("error: ").trim_end().to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn options(words: &[&str]) -> PerfOptions {
        PerfOptions::try_parse_from([&["shmem-perf"], words].concat()).expect("flags")
    }

    #[test]
    fn the_help_has_groups_and_fits_a_terminal() {
        let help = PerfOptions::command()
            .term_width(80)
            .render_help()
            .to_string();
        for heading in [WHAT, PES, TIME, OUTPUT] {
            assert!(
                help.contains(&format!("\n{heading}:\n")),
                "{heading}\n{help}"
            );
        }
        assert!(
            help.lines().all(|line| line.chars().count() <= 80),
            "{help}"
        );
    }

    #[test]
    fn sizes_grow_to_the_largest() {
        let sizes = options(&["--min-bytes", "8", "--max-bytes", "1k", "--growth", "8"]).sizes();
        assert_eq!(sizes, [8, 64, 512]);
    }

    #[test]
    fn sizes_can_be_listed() {
        let listed = options(&["--sizes", "1m,8,8k,8"]);
        assert_eq!(listed.sizes(), [8, 8192, 1 << 20]);
        assert_eq!(
            (
                listed.most_bytes(2),
                options(&["--sizes", "8"]).most_bytes(4)
            ),
            (1 << 20, 32)
        );
        assert_eq!(options(&["--max-bytes", "100"]).most_bytes(4), 100);
        let both = PerfOptions::try_parse_from(["shmem-perf", "--sizes", "8", "--growth", "2"]);
        assert!(both.is_err());
    }

    #[test]
    fn what_does_not_fit_the_job_is_refused() {
        let refused = |words: &[&str], part: &str| {
            let sentence = options(words).check(2).expect_err("refused");
            assert!(sentence.contains(part), "{sentence}");
        };
        refused(
            &["--min-bytes", "2k", "--max-bytes", "1k"],
            "--max-bytes 1024",
        );
        refused(&["--pair", "0,2"], "there are 2 PEs");
        refused(&["--pair", "0,1", "--pairs", "all"], "one pair");
        refused(&["--team-sizes", "2,3"], "--team-sizes 3");
        refused(&["-o", "record.txt"], ".json or .csv");
        options(&[]).check(1).expect("the defaults suit every job");
    }
}
