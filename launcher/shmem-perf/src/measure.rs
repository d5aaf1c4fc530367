//! Executes one point of the plan: which PE issues, which one answers, which ones wait, and which
//! one decides the number of repetitions.
//!
//! If one PE issues, it decides alone how often to repeat. Until it has finished, its peer answers,
//! computes or waits in a barrier, and the other PEs wait in a barrier. If several issue, PE 0
//! decides and announces each batch.

use std::time::{Duration, Instant};

use rushmem_system::stderr::print_line;

use crate::job::BenchJob;
use crate::library::{OperationKind, Task};
use crate::options::PerfOptions;
use crate::plan::{Callee, Medium, Sweep};
use crate::record::{Measure, MemberTimes, Pair, Point};
use crate::repeat::{Batch, MOST_SAMPLES, RepeatLimits, repeat};
use crate::statistics::median;
use crate::wire::{BareWire, Direction, Exchange};

/// The state of the measurements in a job.
pub struct Bench<'a> {
    job: &'a BenchJob<'a>,
    options: &'a PerfOptions,
    pairs: Vec<Pair>,
    /// The connections of the first pair; none on other PEs.
    wires: Vec<OpenWire>,
}

/// A connection of this PE with its peer without the library.
pub struct OpenWire {
    pub medium: Medium,
    pub wire: Box<dyn BareWire>,
}

/// Iterations of the computing loop that are timed to find out how long one takes: so many that the
/// two readings of the clock do not matter.
const TURNS: u64 = 100_000;

/// What a PE does in a measurement whose data are verified.
struct Part {
    peer: u32,
    issues: bool,
    receives: bool,
}

/// The role of this PE in a pair.
enum Role {
    Leads(u32),
    Follows(u32),
    Waits,
}

impl<'a> Bench<'a> {
    pub fn new(
        job: &'a BenchJob<'a>,
        options: &'a PerfOptions,
        pairs: Vec<Pair>,
        wires: Vec<OpenWire>,
    ) -> Self {
        Self {
            job,
            options,
            pairs,
            wires,
        }
    }

    /// Creates the contexts and the team of a subject. All PEs call it.
    ///
    /// # Errors
    /// One sentence if the library cannot create them.
    pub fn prepare(&self, subject: &Sweep) -> Result<(), String> {
        match subject.call {
            Callee::Library(_) => self
                .job
                .library
                .prepare(&self.task(subject, 0, self.job.me)),
            Callee::Wire(..) | Callee::Init => Ok(()),
        }
    }

    /// Measures one size for about `time`, or the operations of `--iterations`. The start of the
    /// job was timed before. All PEs call it and get the same result.
    pub fn point(&mut self, subject: &Sweep, nbytes: u64, time: Duration) -> Point {
        match subject.call {
            Callee::Init => self.measure_start(),
            Callee::Wire(medium, direction) => {
                self.measure_wire(subject, medium, direction, nbytes, time)
            }
            Callee::Library(_) => self.measure_operation(subject, nbytes, time),
        }
    }

    /// Measures an operation of the library. With `--validate`, ends the job if the operation has
    /// left wrong data.
    fn measure_operation(&mut self, subject: &Sweep, nbytes: u64, time: Duration) -> Point {
        let library = &self.job.library;
        let mut part = None;
        if self.options.validate && !subject.is_floor {
            part = self.part(subject);
        }
        if let Some(part) = &part {
            library.fill(&self.task(subject, nbytes, part.peer));
        }

        let point = if self.has_one_issuer(subject) {
            self.measure_first_pair(subject, nbytes, time)
        } else {
            self.measure_all(subject, nbytes, time)
        };

        // All data has arrived after the first barrier. After the second one, no PE verifies what
        // the next measurement overwrites.
        library.barrier();
        if let Some(part) = part {
            let task = self.task(subject, nbytes, part.peer);
            if let Some(byte) = library.verify(&task, part.issues, part.receives) {
                print_line(format_args!(
                    "shmem-perf: PE {}: {} of {nbytes} bytes did not move what it should: byte \
                     {byte} is wrong",
                    self.job.me, subject.name
                ));
                library.exit_all(1);
            }
        }
        library.barrier();
        point
    }

    /// Returns true if only the first PE of the first pair issues, so that it can decide alone when
    /// to end.
    fn has_one_issuer(&self, subject: &Sweep) -> bool {
        let Pair { from, to } = self.pairs[0];
        match subject.measure {
            Measure::Collective => false,
            // Both PEs of the pair issue, unless a single PE is both.
            Measure::BidirectionalBandwidth if from != to => false,
            // Other pairs would disturb the one that is measured.
            Measure::Overlap => true,
            _ => subject.is_floor || self.pairs.len() == 1,
        }
    }

    /// Returns the part of this PE in a measurement; `None` if it neither issues nor receives. In a
    /// collective, each PE of the job does both and is its own peer.
    fn part(&self, subject: &Sweep) -> Option<Part> {
        let me = self.job.me;
        if subject.measure == Measure::Collective {
            return Some(Part {
                peer: me,
                issues: true,
                receives: true,
            });
        }

        let Callee::Library(operation) = subject.call else {
            return None;
        };
        let n_active = if self.has_one_issuer(subject) {
            1
        } else {
            self.pairs.len()
        };
        let mut active = self.pairs[..n_active].iter();
        let pair = active.find(|pair| me == pair.from || me == pair.to)?;

        let both_issue = subject.measure == Measure::BidirectionalBandwidth
            || self.job.library.operations()[operation].kind == OperationKind::RoundTrip;
        Some(Part {
            peer: if me == pair.from { pair.to } else { pair.from },
            issues: both_issue || me == pair.from,
            receives: both_issue || me == pair.to,
        })
    }

    fn task(&self, subject: &Sweep, nbytes: u64, peer: u32) -> Task {
        let Callee::Library(operation) = subject.call else {
            unreachable!("only these are tasks")
        };
        Task {
            operation: operation as i32,
            peer: peer as i32,
            team_size: subject.shape.team_size.unwrap_or(self.job.n) as i32,
            threads: subject.shape.threads as i32,
            contexts: subject.shape.contexts as i32,
            is_static: (subject.shape.memory == "static").into(),
            target_computes: subject.shape.target_computes.into(),
            nbytes,
            window: subject.shape.window.into(),
            compute: 0,
            off_cache: self.options.off_cache.unwrap_or_default(),
        }
    }

    fn limits(&self, subject: &Sweep, time: Duration) -> RepeatLimits {
        let is_rooted = match subject.call {
            Callee::Library(index) => self.job.library.operations()[index].is_rooted,
            Callee::Wire(..) | Callee::Init => false,
        };
        RepeatLimits {
            time,
            clock_ns: self.job.clock.overhead_ns,
            // Calls in a row overlap if a member may return before the others have entered.
            groups: !is_rooted,
            most_samples: MOST_SAMPLES / u64::from(subject.shape.threads),
            warm_up: self.options.warm_up,
            iterations: self.options.iterations,
            keeps_samples: self.options.samples.is_some(),
        }
    }

    /// Measures the first pair while all other PEs wait. The PE that issues decides on the number
    /// of repetitions.
    fn measure_first_pair(&self, subject: &Sweep, nbytes: u64, time: Duration) -> Point {
        let job = self.job;
        let Pair { from, to } = self.pairs[0];
        job.library.barrier();

        let mut point = None;
        if job.me == from {
            let task = self.task(subject, nbytes, to);
            point = Some(match subject.measure {
                Measure::Overlap => self.overlap(subject, task, time),
                _ => self.lead(subject, &task, time),
            });
            job.library.end(&task);
        } else if job.me == to {
            job.library.follow(&self.task(subject, nbytes, from));
        }
        job.share(from, point.as_ref())
    }

    /// Repeats a task as the only PE that issues.
    fn lead(&self, subject: &Sweep, task: &Task, time: Duration) -> Point {
        let times = |batch: Batch| {
            let samples = self.job.library.run(task, batch.samples, batch.group);
            // The samples of the first thread come first, then those of the second one.
            let lanes: Vec<&[u64]> = samples.chunks_exact(batch.samples as usize).collect();
            self.times(subject, &lanes, batch.group)
        };
        let figure = |ns: f64| figure(subject, task.nbytes, 1, ns);
        repeat(task.nbytes, &self.limits(subject, time), times, figure)
    }

    /// Measures the transfer alone, and then together with a computation that takes as long.
    /// Returns the part of the transfer's time that the computation hides.
    fn overlap(&self, subject: &Sweep, mut task: Task, time: Duration) -> Point {
        let turn_ns = self.turn_ns();
        let limits = self.limits(subject, time / 2);
        let times = |task: &Task, batch: Batch| {
            let samples = self.job.library.run(task, batch.samples, batch.group);
            self.times(subject, &[&samples], batch.group)
        };

        let alone = repeat(task.nbytes, &limits, |batch| times(&task, batch), |ns| ns);
        let transfer_ns = alone.summary.p50.max(1.0);

        task.compute = (transfer_ns / turn_ns) as u64;
        let computation_ns = task.compute as f64 * turn_ns;
        let percent = |ns: f64| {
            let not_overlapped = (ns - computation_ns) / transfer_ns;
            (100.0 * (1.0 - not_overlapped)).clamp(0.0, 100.0)
        };
        repeat(task.nbytes, &limits, |batch| times(&task, batch), percent)
    }

    /// Returns the nanoseconds of an iteration of the computing loop: the median of five attempts,
    /// which an interrupt of one of them does not change.
    fn turn_ns(&self) -> f64 {
        let mut attempts = [0.0; 5];
        for ns in &mut attempts {
            let start = Instant::now();
            self.job.library.compute(TURNS);
            *ns = start.elapsed().as_nanos() as f64 / TURNS as f64;
        }
        // Not 0, by which the time of a transfer would be divided.
        median(&attempts).max(0.01)
    }

    /// Measures all pairs at once, both directions of one pair, or a team. PE 0 decides on the
    /// number of repetitions.
    fn measure_all(&self, subject: &Sweep, nbytes: u64, time: Duration) -> Point {
        let job = self.job;
        let mut point = None;
        if job.me == 0 {
            let mut members = MemberSums::default();
            let times = |batch: Batch| {
                job.share(0, Some(&Some(batch)));
                let gathered = job.gather_numbers(&self.step(subject, nbytes, batch));
                if subject.measure == Measure::Collective && !batch.warms_up {
                    members.add(&gathered, batch.group, job.clock.overhead_ns);
                }

                let mut lanes: Vec<&[u64]> = Vec::new();
                for samples in &gathered {
                    lanes.extend(samples.chunks_exact(batch.samples as usize));
                }
                self.times(subject, &lanes, batch.group)
            };
            let figure = |ns: f64| figure(subject, nbytes, self.n_active(subject), ns);
            let found = repeat(nbytes, &self.limits(subject, time), times, figure);
            point = Some(Point {
                by_pe: members.means(),
                ..found
            });
            // No further batch: the other PEs leave their loops.
            job.share(0, Some(&None::<Batch>));
        } else {
            while let Some(batch) = job.share::<Option<Batch>>(0, None) {
                job.gather_numbers(&self.step(subject, nbytes, batch));
            }
        }
        job.share(0, point.as_ref())
    }

    /// Performs the part of this PE in a batch. Returns its samples if it issues.
    fn step(&self, subject: &Sweep, nbytes: u64, batch: Batch) -> Vec<u64> {
        let library = &self.job.library;
        library.barrier();

        if subject.measure == Measure::Collective {
            let is_member = self.job.me < subject.shape.team_size.unwrap_or(self.job.n);
            if !is_member {
                return Vec::new();
            }
            let task = self.task(subject, nbytes, self.job.me);
            return library.run(&task, batch.samples, batch.group);
        }

        match self.role(subject) {
            Role::Leads(peer) => {
                let task = self.task(subject, nbytes, peer);
                let samples = library.run(&task, batch.samples, batch.group);
                library.end(&task);
                samples
            }
            Role::Follows(peer) => {
                library.follow(&self.task(subject, nbytes, peer));
                Vec::new()
            }
            Role::Waits => Vec::new(),
        }
    }

    fn role(&self, subject: &Sweep) -> Role {
        let me = self.job.me;
        let both_issue = subject.measure == Measure::BidirectionalBandwidth;
        for &Pair { from, to } in &self.pairs {
            if me == from {
                return Role::Leads(to);
            }
            if me == to && both_issue {
                return Role::Leads(from);
            }
            if me == to {
                return Role::Follows(from);
            }
        }
        Role::Waits
    }

    /// Returns the number of PEs that issue at once.
    fn n_active(&self, subject: &Sweep) -> u64 {
        let n_pairs = self.pairs.len() as u64;
        if subject.measure == Measure::BidirectionalBandwidth && self.job.n > 1 {
            2 * n_pairs
        } else {
            n_pairs
        }
    }

    /// Converts the samples of a batch, by active PE and thread, to nanoseconds of one operation or
    /// one window. A collective has one value per sample. A rate or bandwidth of several PEs or
    /// threads has one value per batch. Otherwise each sample of each PE and thread is a value.
    fn times(&self, subject: &Sweep, lanes: &[&[u64]], group: u64) -> Vec<f64> {
        let overhead = self.job.clock.overhead_ns;
        match subject.measure {
            // A collective takes as long as its slowest member.
            Measure::Collective => {
                let n_samples = lanes.first().map_or(0, |lane| lane.len());
                let mut times = Vec::new();
                for sample in 0..n_samples {
                    let slowest = lanes.iter().map(|lane| lane[sample]).max();
                    times.push(operation_ns(slowest.unwrap_or_default(), overhead, group));
                }
                times
            }
            // The common rate is the work of all, divided by the mean time of the slowest.
            Measure::Bandwidth | Measure::BidirectionalBandwidth | Measure::MessageRate
                if lanes.len() > 1 =>
            {
                let mut slowest = 0.0f64;
                for lane in lanes {
                    let times = lane.iter().map(|&ns| operation_ns(ns, overhead, group));
                    slowest = slowest.max(times.sum::<f64>() / lane.len() as f64);
                }
                vec![slowest]
            }
            _ => {
                let mut times = Vec::new();
                for lane in lanes {
                    times.extend(lane.iter().map(|&ns| operation_ns(ns, overhead, group)));
                }
                times
            }
        }
    }

    /// Measures a floor by a connection of the first pair, while all other PEs wait. Ends the job
    /// if the connection fails.
    fn measure_wire(
        &mut self,
        subject: &Sweep,
        medium: Medium,
        direction: Direction,
        nbytes: u64,
        time: Duration,
    ) -> Point {
        let job = self.job;
        let Pair { from, to } = self.pairs[0];
        let limits = self.limits(subject, time);
        let overhead = job.clock.overhead_ns;
        let exchange = Exchange {
            nbytes,
            window: subject.shape.window.into(),
            direction,
        };

        job.library.barrier();
        let mut point = None;
        let mut failed = None;
        if let Some(open) = self.wires.iter_mut().find(|open| open.medium == medium) {
            let wire = &mut open.wire;
            if job.me == to {
                failed = wire.follow(exchange).err();
            } else if job.me == from {
                let times = |batch: Batch| {
                    let led = wire.lead(exchange, batch.samples, batch.group);
                    let samples = led.unwrap_or_else(|error| {
                        // The job ends below; until then, the repetitions need some times.
                        failed = Some(error);
                        vec![1; batch.samples as usize]
                    });

                    let mut times = Vec::new();
                    for ns in samples {
                        times.push(operation_ns(ns, overhead, batch.group));
                    }
                    times
                };
                let figure = |ns: f64| figure(subject, nbytes, 1, ns);
                point = Some(repeat(nbytes, &limits, times, figure));

                // Also after an error, so that the other PE does not wait for the end.
                failed = failed.or(wire.end(exchange).err());
            }
        }

        if let Some(error) = failed {
            print_line(format_args!(
                "shmem-perf: PE {}: {} between PEs {from} and {to} failed: {error}",
                job.me, subject.name
            ));
            job.library.exit_all(1);
        }
        job.share(from, point.as_ref())
    }

    /// Returns the time of `shmem_init` or `shmem_init_thread` on the slowest PE.
    fn measure_start(&self) -> Point {
        let own = self.job.library.init_ns as u64;
        let all = self.job.gather_numbers(&[own]);
        let slowest = all.iter().flatten().copied().max().unwrap_or(own) as f64;
        Point::once(self.job.share(0, Some(&slowest)))
    }
}

/// The times of each member of a collective so far.
#[derive(Default)]
struct MemberSums {
    /// The sum of the nanoseconds of a call, over all samples, by PE.
    sums: Vec<f64>,
    /// The number of samples of each member.
    n: u64,
}

impl MemberSums {
    /// Adds the samples of a batch, by PE. Each is the time of `group` calls. PEs that are not
    /// members have no samples.
    fn add(&mut self, gathered: &[Vec<u64>], group: u64, overhead: f64) {
        self.sums.resize(gathered.len(), 0.0);
        self.n += gathered.first().map_or(0, Vec::len) as u64;
        for (sum, times) in self.sums.iter_mut().zip(gathered) {
            let groups = times.iter().map(|&ns| (ns as f64 - overhead).max(0.0));
            *sum += groups.sum::<f64>() / group as f64;
        }
    }

    /// Returns the range of the members' mean times; `None` if there are no times.
    fn means(&self) -> Option<MemberTimes> {
        let mut means = Vec::new();
        for sum in &self.sums {
            // PEs that are not members have no time.
            if *sum > 0.0 {
                means.push(sum / self.n as f64);
            }
        }

        Some(MemberTimes {
            min: means.iter().copied().min_by(f64::total_cmp)?,
            mean: means.iter().sum::<f64>() / means.len() as f64,
            max: means.iter().copied().max_by(f64::total_cmp)?,
        })
    }
}

/// Returns the nanoseconds of an operation or window of a sample of `group` of them. The result is
/// above 0, since a rate is divided by it: a sample may be shorter than the clock's overhead.
fn operation_ns(sample_ns: u64, overhead: f64, group: u64) -> f64 {
    ((sample_ns as f64 - overhead) / group as f64).max(0.001)
}

/// Converts the nanoseconds of an operation, or of a window on each of `n_active` PEs, to the unit
/// of the subject's measure.
fn figure(subject: &Sweep, nbytes: u64, n_active: u64, ns: f64) -> f64 {
    let threads = u64::from(subject.shape.threads);
    let operations = (u64::from(subject.shape.window) * n_active * threads) as f64;
    match subject.measure {
        Measure::Bandwidth | Measure::BidirectionalBandwidth => {
            operations * nbytes as f64 / ns * 1e9
        }
        Measure::MessageRate => operations / ns * 1e9,
        Measure::Latency | Measure::Overlap | Measure::Collective | Measure::Event => ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_have_means_of_their_own() {
        let mut members = MemberSums::default();
        assert_eq!(members.means(), None);
        // Two calls in each sample; the third PE is no member.
        members.add(&[vec![210, 410], vec![810, 1210], Vec::new()], 2, 10.0);
        members.add(&[vec![310], vec![1010], Vec::new()], 2, 10.0);
        let expected = MemberTimes {
            min: 150.0,
            mean: 325.0,
            max: 500.0,
        };
        assert_eq!(members.means(), Some(expected));
    }
}
