//! An installed OpenSHMEM library that takes part in a comparison: builds the programs with its
//! compiler, runs them with its launcher, and writes a record of each run.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, ensure};
use shmem_perf::compile;
use shmem_perf::record::{self, Measure, Record};
use task_support::process;

use super::suites::{Measured, Suite};
use crate::program;
use crate::run_record::RunRecord;

/// Settings that Open MPI needs: its memory hooks crash in finalize, it refuses root and more PEs
/// than processors, and its own binding would conflict with that of the benchmark. Other libraries
/// ignore these variables.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("OMPI_MCA_memory", "^patcher"),
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("OMPI_MCA_hwloc_base_binding_policy", "none"),
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
];
/// The file name of the shmem-perf that is built.
const PERF: &str = "shmem-perf";
/// The time limit of one launch.
const LIMIT: Duration = Duration::from_secs(300);

/// The sources of the programs.
pub struct Sources {
    /// The directory benches/.
    pub benches: PathBuf,
    /// The directory of the parts of which shmem-perf is built, if the suite has it.
    pub parts: PathBuf,
}

/// A library, with the programs that were built with it.
pub struct Contender {
    /// The name of its directory and of its records.
    name: String,
    suite: &'static Suite,
    oshrun: PathBuf,
    /// The directory of the built programs, and of the records.
    dir: PathBuf,
    /// The records of the runs that were completed.
    runs: Vec<PathBuf>,
}

impl Contender {
    /// Builds the programs of the suite with the `oshcc` in `bin`, in the directory `name` of
    /// `dir`.
    pub fn build(
        name: &str,
        suite: &'static Suite,
        bin: &Path,
        sources: &Sources,
        dir: &Path,
    ) -> Result<Self> {
        let dir = dir.join(name);
        fs::create_dir_all(&dir)?;
        if !suite.measured.is_empty() {
            let build = compile::command(&bin.join("oshcc"), &sources.parts, &dir.join(PERF));
            process::run(&mut build.map_err(Error::msg)?)?;
        }

        // A set, since a program may run with several numbers of PEs.
        let mut programs = BTreeSet::new();
        for (program, _) in suite.programs {
            programs.insert(*program);
        }
        for launch in suite.launches {
            let is_of_system = launch.program.starts_with('/');
            if !is_of_system {
                programs.insert(launch.program);
            }
        }
        for program in programs {
            let source = sources.benches.join(program).with_extension("c");
            program::build(bin, &source, &[], dir.join(program))?;
        }
        for kernel in suite.kernels {
            let source = sources.benches.join("kernels").join(kernel.name);
            let source = source.with_extension("c");
            program::build(bin, &source, &[], dir.join(kernel.name))?;
        }

        Ok(Self {
            name: name.to_owned(),
            suite,
            oshrun: bin.join("oshrun"),
            dir,
            runs: Vec::new(),
        })
    }

    /// Runs the programs and jobs of the suite once, except launches that have run as often as they
    /// may, and writes a record of the results.
    pub fn run(&mut self) -> Result<()> {
        let mut run = RunRecord::new();
        for &(program, pes) in self.suite.programs {
            let printed = process::capture(&mut self.job(pes, program))?;
            for (name, ns) in program::values(&printed)? {
                run.add_event(name, pes, ns);
            }
        }

        for kernel in self.suite.kernels {
            for &pes in kernel.pes {
                let mut job = self.job(pes, kernel.name);
                if kernel.divisor > 1 {
                    job.arg(kernel.divisor.to_string());
                }
                let ns = program::value(&process::capture(&mut job)?, "time")?;
                run.add_event(kernel.name, pes, ns);
            }
        }

        for measured in self.suite.measured {
            run.add_job(self.measure(measured)?);
        }

        for launch in self.suite.launches {
            if self.runs.len() >= launch.most {
                continue;
            }
            let mut job = self.job(launch.pes, launch.program);
            let start = Instant::now();
            process::run(job.stdout(Stdio::null()))?;
            let ns = start.elapsed().as_secs_f64() * 1e9;
            run.add_event(launch.program, launch.pes, ns);
        }

        let path = self.dir.join(format!("run {}.json", self.runs.len() + 1));
        run.write(&path)?;
        self.runs.push(path);
        Ok(())
    }

    /// Runs a job of shmem-perf. If the suite names an interface, checks that the data of the job's
    /// puts went through it, and not through shared memory.
    fn measure(&self, measured: &Measured) -> Result<Record> {
        let record = self.record(measured);
        let mut job = self.job(measured.pes, PERF);
        job.args(["--bind", "--operations", measured.operations])
            .args(measured.options.split(' '))
            .arg("-o")
            .arg(&record)
            .stdout(Stdio::null());

        let Some(interface) = self.suite.carrier else {
            process::run(&mut job)?;
            return record::load(&record).map_err(Error::msg);
        };
        let carried_before = sent_bytes(interface)?;
        process::run(&mut job)?;
        let found = record::load(&record).map_err(Error::msg)?;
        check_carried(interface, carried_before, &found)?;
        Ok(found)
    }

    /// Returns the records of the completed runs.
    pub fn runs(&self) -> &[PathBuf] {
        &self.runs
    }

    /// Returns the records of the jobs of shmem-perf in the last run.
    pub fn last_jobs(&self) -> impl Iterator<Item = PathBuf> {
        self.suite
            .measured
            .iter()
            .map(|measured| self.record(measured))
    }

    fn record(&self, measured: &Measured) -> PathBuf {
        self.dir
            .join(format!("{}, {}.json", self.name, measured.title))
    }

    /// Returns the command that launches a built program, or any other program given by its path.
    fn job(&self, pes: usize, program: &str) -> Command {
        let mut command = process::limited(LIMIT, &self.oshrun);
        command
            .args(["-n", &pes.to_string()])
            .arg(self.dir.join(program))
            .envs(ENVIRONMENT.iter().chain(self.suite.environment).copied());
        command
    }
}

/// Returns the number of bytes that all programs have sent through an interface since the start of
/// the machine.
fn sent_bytes(interface: &str) -> Result<u64> {
    let file = format!("/sys/class/net/{interface}/statistics/tx_bytes");
    let text = fs::read_to_string(&file).with_context(|| format!("could not read {file}"))?;
    text.trim()
        .parse()
        .with_context(|| format!("{file}: {text}"))
}

/// Checks that an interface has sent at least the bytes of the puts of a job since it had sent
/// `before` bytes.
fn check_carried(interface: &str, before: u64, found: &Record) -> Result<()> {
    let carried = sent_bytes(interface)? - before;
    let moved = nbytes_put(found);
    ensure!(
        carried >= moved,
        "puts of {moved} bytes do not go through {interface}, which has carried {carried} bytes meanwhile"
    );
    Ok(())
}

/// Returns the minimum number of bytes of the puts whose latency was measured: without the warm-up,
/// and puts that were timed together count once.
fn nbytes_put(found: &Record) -> u64 {
    let mut nbytes = 0;
    for one in &found.series {
        let is_put = one.operation == "put" || one.operation == "put_nbi";
        if is_put && !one.is_floor && one.measure == Measure::Latency {
            for point in &one.points {
                nbytes += point.nbytes * point.summary.n;
            }
        }
    }
    nbytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use shmem_perf::record::{Point, Series, Shape};

    #[test]
    fn puts_that_an_interface_has_not_carried_are_refused() {
        let before = sent_bytes("lo").expect("every machine has a loopback interface");
        let series = |operation: &str, nbytes, is_floor| {
            let mut point = Point {
                nbytes,
                ..Point::once(1.0)
            };
            point.summary.n = 10;
            Series {
                measure: Measure::Latency,
                operation: operation.to_owned(),
                is_floor,
                shape: Shape::default(),
                points: vec![point],
            }
        };
        let puts = Record {
            series: vec![
                series("put", 1 << 40, false),
                series("get", 1 << 41, false),
                series("put", 1 << 42, true),
            ],
            ..Record::default()
        };
        assert_eq!(nbytes_put(&puts), 10 << 40);
        let refused = check_carried("lo", before, &puts)
            .expect_err("it is much")
            .to_string();
        assert!(refused.contains("do not go through lo"), "{refused}");
        check_carried("lo", before, &Record::default()).expect("nothing was moved");
        assert!(sent_bytes("no-such-interface").is_err());
    }
}
