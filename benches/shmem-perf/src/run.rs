//! A run from the flags to the record. All PEs carry it out together; PE 0 prints and writes.

use rushmem_system::stderr::print_line;
use std::time::{Duration, Instant};

use clap::{CommandFactory, Parser};

use crate::job::BenchJob;
use crate::library::{Joined, Routines};
use crate::measure::{Bench, Wires};
use crate::network::{ConnectedPair, Network};
use crate::options::PerfOptions;
use crate::output::{self, RecordFile};
use crate::plan::{self, Callee, Group, JobFacts, Medium, Sweep, needs_blocks, plan};
use crate::print::{Bar, print};
use crate::record::{FORMAT, JobInfo, Library, Record, Series, SettingInfo};
use crate::socket::Socket;
use crate::wire::BareWire;
use crate::{compare, compile, machine, matrix, report, rushmem, text};

/// The exit statuses of a run that failed, such as one whose record could not be written, and of
/// wrong flags or a subcommand that failed.
const FAILED: u8 = 1;
const MISUSED: u8 = 2;
/// Each size may take at least its equal share of the time divided by this, however long earlier
/// sizes took.
const LEAST_SHARE: u32 = 4;
/// The minimum size of the buffers: room for the transfers of a matrix, and for 128 bytes of each
/// thread.
const LEAST_BYTES: u64 = 64 * 1024;

/// A subcommand: it takes the arguments after its name and returns the exit status.
type Subcommand = fn(&[String]) -> Result<u8, String>;

/// The command line and the environment of the program.
struct Invocation<'a> {
    arguments: &'a [String],
    start: Instant,
    /// The variables that configured the library before it was initialized.
    variables: Vec<SettingInfo>,
}

/// Runs the program and returns its exit status. Subcommands and `--help` do not initialize the
/// library.
pub fn main(arguments: &[String], library: Routines<'_>) -> u8 {
    if man_pages::print_if_requested(PerfOptions::command) {
        return 0;
    }
    let invocation = Invocation {
        arguments,
        start: Instant::now(),
        variables: machine::variables(),
    };

    let rest = arguments.get(2..).unwrap_or_default();
    let subcommand: Option<Subcommand> = match arguments.get(1).map(String::as_str) {
        Some("build") => Some(compile::run),
        Some("compare") => Some(compare::run),
        Some("report") => Some(report::run),
        Some("tune") => Some(rushmem::tune),
        _ => None,
    };
    if let Some(subcommand) = subcommand {
        return subcommand(rest).unwrap_or_else(|sentence| {
            print_line(format_args!("shmem-perf {}: {sentence}", arguments[1]));
            MISUSED
        });
    }

    match PerfOptions::try_parse_from(arguments) {
        Ok(options) => match library.join(options.threads > 1 || options.thread_multiple) {
            Ok(joined) => run(&options, &invocation, joined),
            Err(sentence) => {
                print_line(format_args!("shmem-perf: {sentence}"));
                FAILED
            }
        },
        Err(error) if !error.use_stderr() => match print(&error.to_string()) {
            Ok(()) => 0,
            Err(sentence) => {
                print_line(format_args!("shmem-perf: {sentence}"));
                FAILED
            }
        },
        // In a job, or else each PE would print the same message.
        Err(error) => match library.join(false) {
            Ok(joined) => refuse(
                joined,
                error.to_string().trim_start_matches("error: ").trim_end(),
                MISUSED,
            ),
            Err(_) => MISUSED,
        },
    }
}

/// Prints the message on PE 0 only, finalizes the library and returns the exit status.
fn refuse(library: Joined<'_>, sentence: &str, status: u8) -> u8 {
    if library.my_pe() == 0 {
        print_line(format_args!("shmem-perf: {sentence}"));
    }
    library.finalize();
    status
}

fn run(options: &PerfOptions, invocation: &Invocation<'_>, mut library: Joined<'_>) -> u8 {
    let n = library.n_pes();
    if let Err(sentence) = options.check(n) {
        return refuse(library, &sentence, MISUSED);
    }

    // A collective moves a block for each member.
    let n_blocks = if needs_blocks(options, library.operations()) {
        n
    } else {
        1
    };

    let nbytes = options
        .most_bytes(u64::from(n_blocks))
        .max(LEAST_BYTES)
        .max(options.off_cache.unwrap_or_default());
    if let Err(sentence) = library.allocate(nbytes) {
        return refuse(library, &sentence, FAILED);
    }

    let pairs = plan::pairs(n, options.pairs, options.pair, options.seed);
    let job = BenchJob::new(library);
    let run = Measurement::new(options, invocation, &job, pairs);
    let outcome = run.and_then(|mut run| run.all(invocation.start));
    match outcome {
        Ok(()) => {
            job.library.finalize();
            0
        }
        Err((sentence, status)) => refuse(job.library, &sentence, status),
    }
}

/// The state that all parts of a run need.
struct Measurement<'a> {
    options: &'a PerfOptions,
    job: &'a BenchJob<'a>,
    pairs: Vec<(u32, u32)>,
    facts: JobFacts,
    groups: Vec<Group>,
    record: Record,
    output: Option<RecordFile>,
    samples: Option<RecordFile>,
    /// The error of the last attempt to write the record.
    unwritten: Option<String>,
    /// The last error in writing single values.
    unwritten_samples: Option<String>,
    /// The last error in printing.
    unprinted: Option<String>,
    bar: Bar,
}

/// Begins the files of a run that are to be written: the record so far, and the head of the single
/// values.
fn begin_files(
    output: Option<&RecordFile>,
    samples: Option<&RecordFile>,
    record: &Record,
) -> Result<(), String> {
    if let Some(output) = output {
        output.write(record)?;
    }
    if let Some(samples) = samples {
        samples.begin(output::SAMPLES)?;
    }
    Ok(())
}

/// Why a run failed, with its exit status; equal on all PEs.
type Refused = (String, u8);

fn machines(job: &BenchJob<'_>) -> JobInfo {
    let node = (0..job.n)
        .find(|&pe| job.library.maps(pe))
        .unwrap_or(job.me);
    let owns = job.gather(&machine::pe_facts(node));
    let machines = (job.me == 0).then(|| machine::job(owns));
    job.share(0, machines.as_ref())
}

/// For `--bind`: binds each PE to a CPU of its own, on hosts whose PEs may use enough CPUs.
fn bind(job: &BenchJob<'_>) -> Result<(), Refused> {
    let place = machine::places(&machines(job))[job.me as usize];
    let is_bound = place.is_none_or(|place| job.library.bind(place));
    let all = job.gather(&is_bound);
    let fail = all.iter().position(|&is_bound| !is_bound);
    let fail: Option<usize> = job.share(0, Some(&fail));
    match fail {
        None => Ok(()),
        Some(pe) => Err((
            format!("--bind: the kernel refuses to bind PE {pe} to a CPU that it may use"),
            FAILED,
        )),
    }
}

/// Returns for each network whether its floors are measured between the two PEs: those that
/// `--floors` names, or else the one that the library uses between PEs that share no memory.
fn networks(
    options: &PerfOptions,
    job: &BenchJob<'_>,
    (from, to): (u32, u32),
    shares_memory: bool,
) -> [bool; Network::ALL.len()] {
    let open = job.library.path().filter(|_| !shares_memory);
    let way = open.as_deref().and_then(|path| path.split(':').next());
    let used = way.and_then(Network::of_path);
    let is_wanted = |network| match options.floors.as_slice() {
        [] => used == Some(network),
        named => named.contains(&network),
    };
    let wanted = Network::ALL.map(|network| from != to && is_wanted(network));
    job.share(from, Some(&wanted))
}

impl<'a> Measurement<'a> {
    fn new(
        options: &'a PerfOptions,
        invocation: &Invocation<'_>,
        job: &'a BenchJob<'a>,
        pairs: Vec<(u32, u32)>,
    ) -> Result<Self, Refused> {
        let (from, to) = pairs[0];
        if options.bind {
            bind(job)?;
        }

        let machines = machines(job);
        let warnings = job.share(0, Some(&machine::warnings(&machines)));
        let maps = job.share(from, Some(&job.library.maps(to)));
        let networks = networks(options, job, (from, to), maps);
        let facts = JobFacts {
            n_pes: job.n,
            shares_memory: maps,
            shares_host: machines.pes[from as usize].host == machines.pes[to as usize].host,
            networks,
        };

        // `--matrix` alone measures nothing else.
        let requests_more = !options.operations.is_empty() || !options.measures.is_empty();
        let groups = if options.matrix && !requests_more {
            Vec::new()
        } else {
            plan(options, job.library.operations(), facts)
                .map_err(|sentence| (sentence, MISUSED))?
        };

        let name = job.library.name();
        let path = job.library.path();
        let (open, why) = match path.as_deref().and_then(|path| path.split_once(": ")) {
            Some((open, why)) => (Some(open.to_owned()), Some(why.to_owned())),
            None => (path.filter(|path| !path.is_empty()), None),
        };
        // PE 0 alone writes the record.
        let info = if job.me == 0 {
            rushmem::query(&name)
        } else {
            None
        };
        let below = info
            .as_ref()
            .map(rushmem::Info::descriptions)
            .unwrap_or_default();
        let reported = info.map(|info| info.settings).unwrap_or_default();
        let settings = machine::settings(reported, &invocation.variables);

        let record = Record {
            format: FORMAT,
            tool: env!("CARGO_PKG_VERSION").into(),
            date: machine::date(),
            command: invocation.arguments.to_vec(),
            launcher: machine::launcher(invocation.arguments),
            library: Library {
                name,
                standard: job.library.standard(),
                thread_level: Some(job.library.thread_level()),
                transport: machine::transport(open, &settings, &machines),
                why,
                below,
            },
            job: machines,
            pairs: pairs.clone(),
            settings,
            clock: job.clock.clone(),
            warnings,
            floors: Vec::new(),
            validated: options.validate,
            complete: false,
            series: Vec::new(),
            matrices: Vec::new(),
        };

        let mut output = None;
        let mut samples = None;
        if job.me == 0 {
            output = options.output.as_deref().map(RecordFile::new);
            samples = options.samples.as_deref().map(RecordFile::new);
        }
        // Both files are written now, so that an error is reported before the measurements.
        let begun = begin_files(output.as_ref(), samples.as_ref(), &record);
        let begun: Result<(), String> = job.share(0, Some(&begun));
        begun.map_err(|sentence| (sentence, FAILED))?;

        Ok(Self {
            options,
            job,
            pairs,
            facts,
            groups,
            record,
            output,
            samples,
            unwritten: None,
            unwritten_samples: None,
            unprinted: None,
            bar: Bar::new(job.me == 0),
        })
    }

    fn all(&mut self, start: Instant) -> Result<(), Refused> {
        self.print(&text::head(
            &self.record,
            &self.pairs,
            self.facts.shares_memory,
        ));
        let mut groups = std::mem::take(&mut self.groups);
        let (wires, paths) = self.wires(&mut groups);
        self.print(&text::paths(&paths));
        self.record.floors = paths;

        let matrix_time = match (self.options.matrix, groups.is_empty()) {
            (false, _) => Duration::ZERO,
            (true, true) => self.options.time,
            (true, false) => self.options.time / 4,
        };
        let bench = Bench::new(self.job, self.options, self.pairs.clone(), wires);
        self.measure(bench, &groups, start, self.options.time - matrix_time);
        if self.options.matrix {
            self.measure_matrices(matrix_time);
        }

        self.bar.clear();
        self.print(&text::answers(&self.record));
        self.record.complete = true;
        self.write();

        // The last errors of PE 0, so that all PEs end with the same status.
        let failed = self
            .unwritten
            .take()
            .or(self.unwritten_samples.take())
            .or(self.unprinted.take());
        let failed: Option<String> = self.job.share(0, Some(&failed));
        match failed {
            Some(sentence) => Err((sentence, FAILED)),
            None => Ok(()),
        }
    }

    /// Measures all points of the plan in about `time` from `start` on, and prints a table for each
    /// group.
    fn measure(&mut self, mut bench: Bench<'_>, groups: &[Group], start: Instant, time: Duration) {
        let deadline = start + time;
        let mut left: u32 = groups
            .iter()
            .flat_map(|group| &group.subjects)
            .map(|subject| subject.sizes.len() as u32)
            .sum();
        let n_points = f64::from(left.max(1));
        let least = time / left.max(1) / LEAST_SHARE;

        for group in groups {
            let first = self.record.series.len();
            for subject in &group.subjects {
                bench.prepare(subject).unwrap_or_else(|sentence| {
                    print_line(format_args!("shmem-perf: PE {}: {sentence}", self.job.me));
                    self.job.library.exit_all(i32::from(FAILED));
                });

                let mut points = Vec::new();
                for &nbytes in &subject.sizes {
                    let what = if nbytes > 0 {
                        format!("{}, {nbytes} bytes", subject.name)
                    } else {
                        subject.name.clone()
                    };
                    self.bar.show(1.0 - f64::from(left) / n_points, &what);

                    // What earlier points have left or overdrawn is shared by the others.
                    let share = deadline.saturating_duration_since(Instant::now()) / left.max(1);
                    let mut point = bench.point(subject, nbytes, share.max(least));
                    let samples = std::mem::take(&mut point.samples);
                    self.write_samples(subject, nbytes, &samples);
                    points.push(point);
                    left -= 1;
                }

                self.record.series.push(Series {
                    measure: subject.measure,
                    operation: subject.name.clone(),
                    is_floor: subject.is_floor,
                    shape: subject.shape.clone(),
                    points,
                });
                // A run that is killed leaves what it has measured so far.
                self.write();
            }
            self.print(&text::table(
                group,
                &self.record.series[first..],
                &self.record.series,
            ));
        }
    }

    fn measure_matrices(&mut self, time: Duration) {
        let is_oversubscribed = self.record.job.is_oversubscribed();
        let bar = &mut self.bar;
        let show = |done: u32, all: u32| bar.show(f64::from(done) / f64::from(all), "matrix");
        let matrices = matrix::matrices(self.job, time, is_oversubscribed, show);
        for found in &matrices {
            self.print(&text::matrix(found));
        }
        self.record.matrices = matrices;
    }

    /// Connects the first pair by each medium in `groups`. Returns the connections of this PE, and
    /// one sentence on the path of each network. Removes from `groups` the floors of media by which
    /// the pair cannot be connected.
    fn wires(&self, groups: &mut [Group]) -> (Wires, Vec<String>) {
        let spins = !self.record.job.is_oversubscribed();
        let mut paths = Vec::new();
        let (from, to) = self.pairs[0];
        let mut wires = Wires::new();
        let mut media: Vec<Medium> = Vec::new();
        for subject in groups.iter().flat_map(|group| &group.subjects) {
            if let Callee::Wire(medium, _) = subject.call
                && !media.contains(&medium)
            {
                media.push(medium);
            }
        }

        for medium in media {
            let wire: Option<Box<dyn BareWire>> = match medium {
                Medium::Socket => {
                    Socket::connect(self.job, (from, to), spins).map(|wire| Box::new(wire) as _)
                }
                Medium::Network(network) => {
                    let most = self
                        .options
                        .sizes()
                        .last()
                        .copied()
                        .unwrap_or_default()
                        .max(8);
                    let is_one_host = self.record.job.hosts.len() == 1;
                    let (wire, path) = ConnectedPair::open(
                        self.job,
                        (from, to),
                        network,
                        most,
                        is_one_host,
                        spins,
                    );
                    paths.push(path);
                    wire.map(|wire| Box::new(wire) as _)
                }
            };

            let ends = [from, to].map(|pe| self.job.share(pe, Some(&wire.is_some())));
            if ends.contains(&false) {
                for group in &mut *groups {
                    group.subjects.retain(|subject| {
                        !matches!(subject.call, Callee::Wire(found, _) if found == medium)
                    });
                }
            }
            wires.extend(wire.map(|wire| (medium, wire)));
        }
        (wires, paths)
    }

    fn print(&mut self, text: &str) {
        if self.job.me == 0 {
            self.bar.clear();
            // The run goes on, since the record may still be written to a file.
            self.unprinted = print(text).err().or(self.unprinted.take());
        }
    }

    fn write_samples(&mut self, subject: &Sweep, nbytes: u64, samples: &[Vec<f64>]) {
        if let Some(file) = &self.samples {
            let written = file.append(&output::samples(subject, nbytes, samples));
            self.unwritten_samples = written.err().or(self.unwritten_samples.take());
        }
    }

    fn write(&mut self) {
        if let Some(output) = &self.output {
            self.unwritten = output.write(&self.record).err();
        }
    }
}
