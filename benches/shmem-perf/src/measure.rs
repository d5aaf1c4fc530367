//! Executes one point of the plan: which PE issues, which one answers, which ones wait, and which
//! one decides the number of repetitions.
//!
//! If one PE issues, it decides alone how often to repeat. Until it has finished, its peer answers,
//! computes or waits in a barrier, and the other PEs wait in a barrier. If several issue, PE 0
//! decides and announces each batch.

use rushmem_system::stderr::print_line;
use std::time::{Duration, Instant};

use crate::job::BenchJob;
use crate::library::{OperationKind, Task};
use crate::options::PerfOptions;
use crate::plan::{Callee, Medium, Sweep};
use crate::record::{Measure, Point};
use crate::repeat::{Batch, MOST_SAMPLES, RepeatLimits, repeat};
use crate::statistics::median;
use crate::wire::{BareWire, Direction, Exchange};

/// The state of the measurements in a job.
pub struct Bench<'a> {
    job: &'a BenchJob<'a>,
    options: &'a PerfOptions,
    /// Pairs, each the PE that issues and its peer.
    pairs: Vec<(u32, u32)>,
    /// The connections of the first pair.
    wires: Wires,
}

/// The connections between the PEs of a pair without the library, by medium; empty on other PEs.
pub type Wires = Vec<(Medium, Box<dyn BareWire>)>;

/// Iterations of the computing loop that are timed to find out how long one takes.
const TURNS: u64 = 100_000;

/// The part of a PE in a measurement whose data are verified.
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
        pairs: Vec<(u32, u32)>,
        wires: Wires,
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
        let part = if self.options.validate && !subject.is_floor {
            self.part(subject)
        } else {
            None
        };
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
        let wrong = part.and_then(|part| {
            let task = self.task(subject, nbytes, part.peer);
            library.verify(&task, part.issues, part.receives)
        });
        if let Some(byte) = wrong {
            print_line(format_args!(
                "shmem-perf: PE {}: {} of {nbytes} bytes did not move what it should: byte {byte} \
                 is wrong",
                self.job.me, subject.name
            ));
            library.exit_all(1);
        }
        library.barrier();
        point
    }

    /// Returns true if only the first PE of the first pair issues, so that it can decide alone when
    /// to end.
    fn has_one_issuer(&self, subject: &Sweep) -> bool {
        let pair = self.pairs[0];
        let is_one =
            subject.is_floor || self.pairs.len() == 1 || subject.measure == Measure::Overlap;
        let is_both = subject.measure == Measure::BidirectionalBandwidth && pair.0 != pair.1;
        is_one && !is_both && subject.measure != Measure::Collective
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
        let is_both = subject.measure == Measure::BidirectionalBandwidth
            || self.job.library.operations()[operation].kind == OperationKind::RoundTrip;
        let n_pairs = if self.has_one_issuer(subject) {
            1
        } else {
            self.pairs.len()
        };
        let &(from, to) = self.pairs[..n_pairs]
            .iter()
            .find(|(from, to)| [*from, *to].contains(&me))?;
        Some(Part {
            peer: if me == from { to } else { from },
            issues: is_both || me == from,
            receives: is_both || me == to,
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
        let (from, to) = self.pairs[0];
        job.library.barrier();
        let mut point = None;
        if job.me == from {
            let task = self.task(subject, nbytes, to);
            let found = match subject.measure {
                Measure::Overlap => self.overlap(subject, task, time),
                _ => self.lead(subject, &task, time),
            };
            job.library.end(&task);
            point = Some(found);
        } else if job.me == to {
            job.library.follow(&self.task(subject, nbytes, from));
        }
        job.share(from, point.as_ref())
    }

    fn lead(&self, subject: &Sweep, task: &Task, time: Duration) -> Point {
        let times = |Batch { samples, group, .. }: Batch| {
            let times = self.job.library.run(task, samples, group);
            let lanes: Vec<&[u64]> = times.chunks_exact(samples as usize).collect();
            self.each(subject, &lanes, group)
        };
        let value = |ns: f64| value(subject, task.nbytes, 1, ns);
        repeat(task.nbytes, &self.limits(subject, time), times, value)
    }

    /// Measures the transfer alone, and then together with a computation that takes as long.
    fn overlap(&self, subject: &Sweep, mut task: Task, time: Duration) -> Point {
        let library = &self.job.library;
        let turn_ns = || {
            let start = Instant::now();
            library.compute(TURNS);
            start.elapsed().as_nanos() as f64 / TURNS as f64
        };
        let turn_ns = median(&[turn_ns(), turn_ns(), turn_ns(), turn_ns(), turn_ns()]).max(0.01);

        let limits = self.limits(subject, time / 2);
        let times = |task: &Task, Batch { samples, group, .. }: Batch| {
            self.each(subject, &[&library.run(task, samples, group)], group)
        };
        let pure = repeat(task.nbytes, &limits, |batch| times(&task, batch), |ns| ns);
        let pure = pure.summary.p50.max(1.0);

        task.compute = (pure / turn_ns) as u64;
        let computed = task.compute as f64 * turn_ns;
        let percent = |ns: f64| (100.0 * (1.0 - (ns - computed) / pure)).clamp(0.0, 100.0);
        repeat(task.nbytes, &limits, |batch| times(&task, batch), percent)
    }

    /// Measures all pairs at once, both directions of one pair, or a team. PE 0 decides on the
    /// number of repetitions.
    fn measure_all(&self, subject: &Sweep, nbytes: u64, time: Duration) -> Point {
        let job = self.job;
        let mut point = None;
        let mut members = MemberTimes::default();
        if job.me == 0 {
            let times = |batch: Batch| {
                let Batch {
                    samples,
                    group,
                    warms_up,
                } = batch;
                job.share(0, Some(&Some(batch)));
                let gathered = job.gather_numbers(&self.step(subject, nbytes, samples, group));
                if subject.measure == Measure::Collective && !warms_up {
                    members.add(&gathered, group, job.clock.overhead_ns);
                }
                let lanes: Vec<&[u64]> = gathered
                    .iter()
                    .flat_map(|times| times.chunks_exact(samples as usize))
                    .collect();
                self.each(subject, &lanes, group)
            };

            let value = |ns: f64| value(subject, nbytes, self.n_active(subject), ns);

            let found = repeat(nbytes, &self.limits(subject, time), times, value);
            point = Some(Point {
                by_pe: members.means(),
                ..found
            });
            job.share(0, Some(&None::<Batch>));
        } else {
            while let Some(Batch { samples, group, .. }) = job.share::<Option<Batch>>(0, None) {
                job.gather_numbers(&self.step(subject, nbytes, samples, group));
            }
        }
        job.share(0, point.as_ref())
    }

    /// Performs the part of this PE in a batch. Returns its times if it issues.
    fn step(&self, subject: &Sweep, nbytes: u64, samples: u64, group: u64) -> Vec<u64> {
        let library = &self.job.library;
        library.barrier();
        if subject.measure == Measure::Collective {
            let is_member = self.job.me < subject.shape.team_size.unwrap_or(self.job.n);
            let task = self.task(subject, nbytes, self.job.me);
            return if is_member {
                library.run(&task, samples, group)
            } else {
                Vec::new()
            };
        }

        match self.role(subject) {
            Role::Leads(peer) => {
                let task = self.task(subject, nbytes, peer);
                let times = library.run(&task, samples, group);
                library.end(&task);
                times
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
        let is_both = subject.measure == Measure::BidirectionalBandwidth;
        for &(from, to) in &self.pairs {
            if me == from {
                return Role::Leads(to);
            }
            if me == to {
                return if is_both {
                    Role::Leads(from)
                } else {
                    Role::Follows(from)
                };
            }
        }
        Role::Waits
    }

    /// Returns the number of PEs that issue at once.
    fn n_active(&self, subject: &Sweep) -> u64 {
        let is_both = subject.measure == Measure::BidirectionalBandwidth && self.job.n > 1;
        self.pairs.len() as u64 * if is_both { 2 } else { 1 }
    }

    /// Converts the samples of a batch, by active PE and thread, to nanoseconds of one operation or
    /// one window. A collective has one value per sample. A rate or bandwidth of several PEs or
    /// threads has one value per batch. Otherwise each sample of each PE and thread is a value.
    fn each(&self, subject: &Sweep, lanes: &[&[u64]], group: u64) -> Vec<f64> {
        let overhead = self.job.clock.overhead_ns;
        // Not 0, by which a rate would be divided: the time may be less than the clock's overhead.
        let each = |ns: u64| ((ns as f64 - overhead) / group as f64).max(0.001);

        match subject.measure {
            // A collective takes as long as its slowest member.
            Measure::Collective => {
                let n = lanes.first().map_or(0, |lane| lane.len());
                let slowest = |sample: usize| lanes.iter().map(|lane| lane[sample]).max();
                (0..n).filter_map(slowest).map(each).collect()
            }
            // The common rate is the work of all, divided by the mean time of the slowest.
            Measure::Bandwidth | Measure::BidirectionalBandwidth | Measure::MessageRate
                if lanes.len() > 1 =>
            {
                let mean = |lane: &&[u64]| {
                    lane.iter().map(|&ns| each(ns)).sum::<f64>() / lane.len() as f64
                };
                let slowest = lanes.iter().map(mean).max_by(f64::total_cmp);
                slowest.into_iter().collect()
            }
            _ => lanes
                .iter()
                .flat_map(|lane| lane.iter().map(|&ns| each(ns)))
                .collect(),
        }
    }

    fn measure_wire(
        &mut self,
        subject: &Sweep,
        medium: Medium,
        direction: Direction,
        nbytes: u64,
        time: Duration,
    ) -> Point {
        let job = self.job;
        let (from, to) = self.pairs[0];
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
        if let Some((_, wire)) = self.wires.iter_mut().find(|(found, _)| *found == medium) {
            if job.me == to {
                failed = wire.follow(exchange).err();
            } else if job.me == from {
                let times = |Batch { samples, group, .. }: Batch| {
                    let times = wire.lead(exchange, samples, group).unwrap_or_else(|error| {
                        failed = Some(error);
                        vec![1; samples as usize]
                    });
                    let each = |ns: u64| ((ns as f64 - overhead) / group as f64).max(0.001);
                    times.into_iter().map(each).collect()
                };
                point = Some(repeat(nbytes, &limits, times, |ns| {
                    value(subject, nbytes, 1, ns)
                }));
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

/// The times of each member of a collective.
#[derive(Default)]
struct MemberTimes {
    /// The sum of the nanoseconds of a call, over all samples, by PE.
    sums: Vec<f64>,
    /// The number of samples of each member.
    n: u64,
}

impl MemberTimes {
    /// Adds the samples of a batch, by PE. Each is the time of `group` calls. PEs that are not
    /// members have no samples.
    fn add(&mut self, gathered: &[Vec<u64>], group: u64, overhead: f64) {
        self.sums.resize(gathered.len(), 0.0);
        self.n += gathered.first().map_or(0, Vec::len) as u64;
        for (sum, times) in self.sums.iter_mut().zip(gathered) {
            *sum += times
                .iter()
                .map(|&ns| (ns as f64 - overhead).max(0.0))
                .sum::<f64>()
                / group as f64;
        }
    }

    /// Returns the minimum, the mean and the maximum over the members of each member's mean time.
    fn means(&self) -> Option<(f64, f64, f64)> {
        let means: Vec<f64> = self
            .sums
            .iter()
            .filter(|sum| **sum > 0.0)
            .map(|sum| sum / self.n as f64)
            .collect();
        let least = means.iter().copied().min_by(f64::total_cmp)?;
        let most = means.iter().copied().max_by(f64::total_cmp)?;
        Some((least, means.iter().sum::<f64>() / means.len() as f64, most))
    }
}

/// Converts the nanoseconds of an operation, or of a window on each of `n_active` PEs, to the unit
/// of the subject's measure.
fn value(subject: &Sweep, nbytes: u64, n_active: u64, ns: f64) -> f64 {
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
        let mut members = MemberTimes::default();
        assert_eq!(members.means(), None);
        // Two calls in each sample; the third PE is no member.
        members.add(&[vec![210, 410], vec![810, 1210], Vec::new()], 2, 10.0);
        members.add(&[vec![310], vec![1010], Vec::new()], 2, 10.0);
        assert_eq!(members.means(), Some((150.0, 325.0, 500.0)));
    }
}
