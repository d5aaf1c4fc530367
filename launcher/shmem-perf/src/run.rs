//! A run from the flags to the record. All PEs carry it out together; PE 0 prints and writes.

use std::time::{Duration, Instant};

use clap::{CommandFactory, Parser};
use rushmem_system::stderr::print_line;

use crate::job::BenchJob;
use crate::library::{Joined, Routines};
use crate::measure::{Bench, OpenWire};
use crate::network::{ConnectedPair, Network, TransferNeeds};
use crate::options::PerfOptions;
use crate::output::{self, RecordFile};
use crate::plan::{self, Callee, Group, JobFacts, Medium, Sweep, needs_blocks, plan};
use crate::print::{Bar, print};
use crate::record::{FORMAT, JobInfo, Library, Pair, Record, Series, SettingInfo};
use crate::socket::Socket;
use crate::wire::BareWire;
use crate::{compare, compile, machine, matrix, report, rushmem, text};

/// The exit status of a run that failed, such as one whose record could not be written.
const FAILED: u8 = 1;
/// The exit status of wrong flags, or of a subcommand that failed.
const MISUSED: u8 = 2;
/// Each size may take at least its equal share of the time divided by this, however long earlier
/// sizes took: a slow size leaves the later ones few values rather than none.
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

    let subcommand: Option<Subcommand> = match arguments.get(1).map(String::as_str) {
        Some("build") => Some(compile::run),
        Some("compare") => Some(compare::run),
        Some("report") => Some(report::run),
        Some("tune") => Some(rushmem::tune),
        _ => None,
    };
    if let Some(subcommand) = subcommand {
        return subcommand(&arguments[2..]).unwrap_or_else(|sentence| {
            print_line(format_args!("shmem-perf {}: {sentence}", arguments[1]));
            MISUSED
        });
    }

    let options = match PerfOptions::try_parse_from(arguments) {
        Ok(options) => options,
        Err(error) => return print_answer(&error, library),
    };
    match library.join(options.threads > 1 || options.thread_multiple) {
        Ok(joined) => run(&options, &invocation, joined),
        Err(sentence) => {
            print_line(format_args!("shmem-perf: {sentence}"));
            FAILED
        }
    }
}

/// Prints what clap answers to the flags: help or a version, or an error. Returns the exit status.
fn print_answer(error: &clap::Error, library: Routines<'_>) -> u8 {
    if !error.use_stderr() {
        return match print(&error.to_string()) {
            Ok(()) => 0,
            Err(sentence) => {
                print_line(format_args!("shmem-perf: {sentence}"));
                FAILED
            }
        };
    }

    let text = error.to_string();
    let sentence = text.trim_start_matches("error: ").trim_end().to_owned();
    // In a job, or else each PE would print the same message.
    match library.join(false) {
        Ok(joined) => refuse(joined, &Refused::misused(sentence)),
        Err(_) => MISUSED,
    }
}

/// Why a run failed, equal on all PEs.
struct Refused {
    sentence: String,
    /// The exit status.
    status: u8,
}

impl Refused {
    fn misused(sentence: String) -> Self {
        Self {
            sentence,
            status: MISUSED,
        }
    }

    fn failed(sentence: String) -> Self {
        Self {
            sentence,
            status: FAILED,
        }
    }
}

/// Prints the message on PE 0 only, finalizes the library and returns the exit status.
fn refuse(library: Joined<'_>, why: &Refused) -> u8 {
    if library.my_pe() == 0 {
        print_line(format_args!("shmem-perf: {}", why.sentence));
    }
    library.finalize();
    why.status
}

fn run(options: &PerfOptions, invocation: &Invocation<'_>, mut library: Joined<'_>) -> u8 {
    let n = library.n_pes();
    if let Err(sentence) = options.check(n) {
        return refuse(library, &Refused::misused(sentence));
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
        return refuse(library, &Refused::failed(sentence));
    }

    let job = BenchJob::new(library);
    match measure(options, invocation, &job) {
        Ok(()) => {
            job.library.finalize();
            0
        }
        Err(why) => refuse(job.library, &why),
    }
}

fn measure(
    options: &PerfOptions,
    invocation: &Invocation<'_>,
    job: &BenchJob<'_>,
) -> Result<(), Refused> {
    let mut measurement = Measurement::new(options, invocation, job)?;
    measurement.all(invocation.start)
}

/// The state that all parts of a run need.
struct Measurement<'a> {
    options: &'a PerfOptions,
    job: &'a BenchJob<'a>,
    pairs: Vec<Pair>,
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

/// Divides the time of a run among its points.
struct Schedule {
    deadline: Instant,
    n_points: u32,
    /// The number of points that are not measured yet.
    n_left: u32,
    /// The minimum time of a point.
    least: Duration,
}

impl Schedule {
    fn new(groups: &[Group], start: Instant, time: Duration) -> Self {
        let mut n_points = 0;
        for subject in groups.iter().flat_map(|group| &group.subjects) {
            n_points += subject.sizes.len() as u32;
        }
        Self {
            deadline: start + time,
            n_points,
            n_left: n_points,
            least: time / n_points.max(1) / LEAST_SHARE,
        }
    }

    /// Returns the part of the points that are measured, from 0 to 1.
    fn part_done(&self) -> f64 {
        1.0 - f64::from(self.n_left) / f64::from(self.n_points)
    }

    /// Returns the time of the next point. What earlier points have left or overdrawn is shared by
    /// the others.
    fn next_share(&mut self) -> Duration {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let share = left / self.n_left;
        self.n_left -= 1;
        share.max(self.least)
    }
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

/// Returns the hosts and PEs of the job. All PEs call it.
fn machines(job: &BenchJob<'_>) -> JobInfo {
    let node = (0..job.n)
        .find(|&pe| job.library.maps(pe))
        .unwrap_or(job.me);
    let facts = job.gather(&machine::pe_facts(node));

    let mut machines = None;
    if job.me == 0 {
        machines = Some(machine::job(facts));
    }
    job.share(0, machines.as_ref())
}

/// For `--bind`: binds each PE to a CPU of its own, on hosts whose PEs may use enough CPUs.
fn bind(job: &BenchJob<'_>) -> Result<(), Refused> {
    let place = machine::places(&machines(job))[job.me as usize];
    let is_bound = place.is_none_or(|place| job.library.bind(place));

    let all = job.gather(&is_bound);
    let unbound = all.iter().position(|&is_bound| !is_bound);
    let unbound: Option<usize> = job.share(0, Some(&unbound));
    match unbound {
        None => Ok(()),
        Some(pe) => Err(Refused::failed(format!(
            "--bind: the kernel refuses to bind PE {pe} to a CPU that it may use"
        ))),
    }
}

/// Returns for each network whether its floors are measured between the PEs of a pair: those that
/// `--floors` names, or else the one that the library uses between PEs that share no memory.
fn networks(
    options: &PerfOptions,
    job: &BenchJob<'_>,
    pair: Pair,
    shares_memory: bool,
) -> [bool; Network::ALL.len()] {
    let mut used = None;
    if !shares_memory && let Some(path) = job.library.path() {
        // The reason for the choice of the path, which may name other networks, is left out.
        let (path, _reason) = path.split_once(':').unwrap_or((&path, ""));
        used = Network::of_path(path);
    }

    let wanted = Network::ALL.map(|network| {
        let is_wanted = if options.floors.is_empty() {
            used == Some(network)
        } else {
            options.floors.contains(&network)
        };
        is_wanted && pair.from != pair.to
    });
    job.share(pair.from, Some(&wanted))
}

/// Returns the record of a run that begins. All PEs call it.
fn empty_record(
    options: &PerfOptions,
    invocation: &Invocation<'_>,
    job: &BenchJob<'_>,
    machines: JobInfo,
    pairs: &[Pair],
) -> Record {
    let warnings = job.share(0, Some(&machine::warnings(&machines)));

    let name = job.library.name();
    let path = job.library.path();
    let (open, why) = match path.as_deref().and_then(|path| path.split_once(": ")) {
        Some((open, why)) => (Some(open.to_owned()), Some(why.to_owned())),
        None => (path.filter(|path| !path.is_empty()), None),
    };

    // PE 0 alone writes the record.
    let mut below = Vec::new();
    let mut reported = Vec::new();
    if job.me == 0
        && let Some(info) = rushmem::query(&name)
    {
        below = info.descriptions();
        reported = info.settings;
    }
    let settings = machine::settings(reported, &invocation.variables);

    Record {
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
        warnings,
        job: machines,
        pairs: pairs.to_vec(),
        settings,
        clock: job.clock.clone(),
        floors: Vec::new(),
        validated: options.validate,
        complete: false,
        series: Vec::new(),
        matrices: Vec::new(),
    }
}

impl<'a> Measurement<'a> {
    fn new(
        options: &'a PerfOptions,
        invocation: &Invocation<'_>,
        job: &'a BenchJob<'a>,
    ) -> Result<Self, Refused> {
        if options.bind {
            bind(job)?;
        }

        let machines = machines(job);
        let host_of = |pe: u32| machines.pes[pe as usize].host;
        let pairs = plan::pairs(options, job.n);
        let first = pairs[0];
        let shares_memory = job.share(first.from, Some(&job.library.maps(first.to)));
        let facts = JobFacts {
            n_pes: job.n,
            shares_memory,
            shares_host: host_of(first.from) == host_of(first.to),
            networks: networks(options, job, first, shares_memory),
        };

        // `--matrix` alone measures nothing else.
        let requests_more = !options.operations.is_empty() || !options.measures.is_empty();
        let groups = if options.matrix && !requests_more {
            Vec::new()
        } else {
            plan(options, job.library.operations(), facts).map_err(Refused::misused)?
        };
        let record = empty_record(options, invocation, job, machines, &pairs);

        let mut output = None;
        let mut samples = None;
        if job.me == 0 {
            output = options.output.as_deref().map(RecordFile::new);
            samples = options.samples.as_deref().map(RecordFile::new);
        }
        // Both files are written now, so that an error is reported before the measurements.
        let begun = begin_files(output.as_ref(), samples.as_ref(), &record);
        let begun: Result<(), String> = job.share(0, Some(&begun));
        begun.map_err(Refused::failed)?;

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
        let wires = self.wires(&mut groups);
        self.print(&text::paths(&self.record.floors));

        let matrix_time = if !self.options.matrix {
            Duration::ZERO
        } else if groups.is_empty() {
            self.options.time
        } else {
            self.options.time / 4
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
            Some(sentence) => Err(Refused::failed(sentence)),
            None => Ok(()),
        }
    }

    /// Measures all points of the plan in about `time` from `start` on, and prints a table for each
    /// group.
    fn measure(&mut self, mut bench: Bench<'_>, groups: &[Group], start: Instant, time: Duration) {
        let mut schedule = Schedule::new(groups, start, time);
        for group in groups {
            let first = self.record.series.len();
            for subject in &group.subjects {
                let series = self.measure_subject(&mut bench, subject, &mut schedule);
                self.record.series.push(series);
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

    /// Measures all sizes of a subject. Ends the job if the library cannot create its contexts or
    /// its team.
    fn measure_subject(
        &mut self,
        bench: &mut Bench<'_>,
        subject: &Sweep,
        schedule: &mut Schedule,
    ) -> Series {
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
            self.bar.show(schedule.part_done(), &what);

            let mut point = bench.point(subject, nbytes, schedule.next_share());
            let samples = std::mem::take(&mut point.samples);
            self.write_samples(subject, nbytes, &samples);
            points.push(point);
        }

        Series {
            measure: subject.measure,
            operation: subject.name.clone(),
            is_floor: subject.is_floor,
            shape: subject.shape.clone(),
            points,
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
    /// records one sentence on the path of each network. Removes from `groups` the floors of media
    /// by which the pair cannot be connected.
    fn wires(&mut self, groups: &mut [Group]) -> Vec<OpenWire> {
        let mut media: Vec<Medium> = Vec::new();
        for subject in groups.iter().flat_map(|group| &group.subjects) {
            if let Callee::Wire(medium, _) = subject.call
                && !media.contains(&medium)
            {
                media.push(medium);
            }
        }

        let pair = self.pairs[0];
        let mut wires = Vec::new();
        for medium in media {
            let wire = self.connect(pair, medium);
            // Both are shared in any case: all PEs take part.
            let ends = [pair.from, pair.to].map(|pe| self.job.share(pe, Some(&wire.is_some())));
            if ends.contains(&false) {
                for group in &mut *groups {
                    group.subjects.retain(|subject| {
                        !matches!(subject.call, Callee::Wire(found, _) if found == medium)
                    });
                }
            }
            if let Some(wire) = wire {
                wires.push(OpenWire { medium, wire });
            }
        }
        wires
    }

    /// Connects a pair by a medium, and records the path if it is a network. All PEs call it.
    fn connect(&mut self, pair: Pair, medium: Medium) -> Option<Box<dyn BareWire>> {
        // PEs that share a CPU would wait for the end of each other's time slices.
        let spins = !self.record.job.is_oversubscribed();
        match medium {
            Medium::Socket => {
                let socket = Socket::connect(self.job, pair, spins)?;
                Some(Box::new(socket))
            }
            Medium::Network(network) => {
                let largest = self.options.sizes().last().copied().unwrap_or_default();
                let needs = TransferNeeds {
                    // Operations that have one size have 8 bytes at most.
                    most_bytes: largest.max(8),
                    is_one_host: self.record.job.hosts.len() == 1,
                    spins,
                };
                let opened = ConnectedPair::open(self.job, pair, network, needs);
                self.record.floors.push(opened.path);
                let connection = opened.connection?;
                Some(Box::new(connection))
            }
        }
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
