//! An installed OpenSHMEM that takes part: building the programs with its compiler, running them
//! with its launcher, and the values that came out.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, bail};
use shmem_perf::compile;
use shmem_perf::record;
use shmem_perf::statistics::Spread;
use task_support::process;

use super::suite::{Measured, Suite};
use super::{carrier, figures};
use crate::program;

/// The settings that Open MPI needs to run at all: its memory hooks crash in finalize, root is
/// refused, as are more PEs than processors, and a binding of its own would be in the way of the
/// benchmark's. Others ignore these variables.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("OMPI_MCA_memory", "^patcher"),
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("OMPI_MCA_hwloc_base_binding_policy", "none"),
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
];
/// The name of shmem-perf once this oshcc has built it.
const PERF: &str = "shmem-perf";
/// The time limit of one launch.
const LIMIT: Duration = Duration::from_secs(300);

pub struct Contender {
    name: String,
    suite: &'static Suite,
    oshrun: PathBuf,
    /// The directory of the programs that it built.
    dir: PathBuf,
    runs: usize,
    /// Values by the name of the row, one per run.
    samples: HashMap<String, Vec<f64>>,
}

impl Contender {
    /// Compiles the programs of the suite into the directory of this name with the oshcc of `bin`,
    /// and shmem-perf of its `parts`.
    pub fn build(
        name: &str,
        suite: &'static Suite,
        bin: &Path,
        (benches, parts): (&Path, &Path),
        dir: &Path,
    ) -> Result<Self> {
        let dir = &dir.join(name);
        fs::create_dir_all(dir)?;
        if !suite.measured.is_empty() {
            let build = compile::command(&bin.join("oshcc"), parts, &dir.join(PERF));
            process::run(&mut build.map_err(Error::msg)?)?;
        }
        let sources = suite.sources.iter().map(|name| (benches.join(name), *name));
        let kernels = suite.kernels.iter().map(|kernel| kernel.name);
        let kernels = kernels.map(|name| (benches.join("kernels").join(name), name));
        for (source, name) in sources.chain(kernels) {
            program::build(bin, &source.with_extension("c"), &[], (dir, name))?;
        }
        Ok(Self {
            name: name.to_owned(),
            suite,
            oshrun: bin.join("oshrun"),
            dir: dir.to_owned(),
            runs: 0,
            samples: HashMap::new(),
        })
    }

    /// Takes one sample of every row.
    pub fn measure(&mut self) -> Result<()> {
        self.runs += 1;
        for (program, pes) in self.suite.programs {
            let printed = process::capture(&mut self.job(*pes, program))?;
            for (name, value) in readings(&printed)? {
                self.add(&name, value);
            }
        }
        for kernel in self.suite.kernels {
            for &pes in kernel.pes {
                let mut job = self.job(pes, kernel.name);
                if kernel.divisor > 1 {
                    job.arg(kernel.divisor.to_string());
                }
                let time = program::value(&process::capture(&mut job)?, "time")?;
                self.add(&kernel.row(pes), time);
            }
        }
        for measured in self.suite.measured {
            let record = self.record(measured);
            let mut job = self.job(measured.pes, PERF);
            let before = self.suite.carrier.map(carrier::carried).transpose()?;
            job.args(["--bind", "--operations", measured.operations])
                .args(measured.words.split(' '))
                .arg("-o")
                .arg(&record);
            process::run(job.stdout(Stdio::null()))?;
            let found = record::load(&record).map_err(Error::msg)?;
            if let (Some(interface), Some(before)) = (self.suite.carrier, before) {
                carrier::check(interface, before, &found)?;
            }
            for (row, value) in figures::of(&found) {
                self.add(&row, value);
            }
        }
        let run = self.runs;
        for launch in self.suite.launches.iter().filter(|launch| run <= launch.most) {
            let mut job = self.job(launch.pes, launch.program);
            let start = Instant::now();
            process::run(job.stdout(Stdio::null()))?;
            self.add(launch.row, start.elapsed().as_secs_f64() * 1e9);
        }
        for (name, program) in self.suite.costs {
            let percent = self.cost(program)?;
            self.add(name, percent);
        }
        Ok(())
    }

    /// Returns the records of the last run.
    pub fn records(&self) -> impl Iterator<Item = PathBuf> {
        self.suite.measured.iter().map(|measured| self.record(measured))
    }

    fn record(&self, measured: &Measured) -> PathBuf {
        self.dir.join(format!("{}, {}.json", self.name, measured.title))
    }

    /// Returns by how many percent `program` takes longer if there is a second PE. The order of the
    /// two jobs alternates.
    fn cost(&self, program: &str) -> Result<f64> {
        let time = |pes| -> Result<f64> {
            match readings(&process::capture(&mut self.job(pes, program))?)?.as_slice() {
                [(_, value)] => Ok(*value),
                lines => bail!("{program} printed {} lines instead of one", lines.len()),
            }
        };
        let (alone, with_peer) = if self.runs.is_multiple_of(2) {
            let alone = time(1)?;
            (alone, time(2)?)
        } else {
            let with_peer = time(2)?;
            (time(1)?, with_peer)
        };
        Ok(percent_more(with_peer, alone))
    }

    /// Returns a program that it built, or any other by its path.
    fn job(&self, pes: usize, program: &str) -> Command {
        let mut command = process::limited(LIMIT, &self.oshrun);
        command
            .args(["-n", &pes.to_string()])
            .arg(self.dir.join(program))
            .envs(ENVIRONMENT.iter().chain(self.suite.environment).copied());
        command
    }

    fn add(&mut self, name: &str, value: f64) {
        self.samples.entry(name.to_owned()).or_default().push(value);
    }

    /// Returns the spread of each row that was measured, by its name.
    pub fn spreads(&self) -> HashMap<&str, Spread> {
        self.samples.iter().map(|(name, sample)| (name.as_str(), Spread::of(sample))).collect()
    }
}

fn percent_more(longer: f64, than: f64) -> f64 {
    (longer / than - 1.0) * 100.0
}

/// Returns the lines `name value` that a benchmark prints.
fn readings(printed: &str) -> Result<Vec<(String, f64)>> {
    printed
        .lines()
        .map(|line| {
            line.split_once(' ')
                .and_then(|(name, number)| Some((name.to_owned(), number.trim().parse().ok()?)))
                .with_context(|| format!("the benchmark printed `{line}`"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_are_names_and_values() {
        assert_eq!(
            readings("put8 2.5\np8 1.75\n").unwrap(),
            [("put8".to_owned(), 2.5), ("p8".to_owned(), 1.75)]
        );
        assert!(readings("Segmentation fault\n").is_err());
    }

    #[test]
    fn a_cost_is_relative_to_the_loop_without_a_peer() {
        assert_eq!(percent_more(3.0, 2.0), 50.0);
        assert_eq!(percent_more(1.0, 2.0), -50.0);
    }
}
