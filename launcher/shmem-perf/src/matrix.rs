//! Measures the latency and the bandwidth between every two PEs, so that a wrong NIC, NUMA node or
//! cable stands out.
//!
//! One PE after the other measures a row: its figures with each other PE in turn. The others wait:
//! in a round trip until the PE of the row reaches them, otherwise in a barrier until the row is
//! complete. If PEs outnumber CPUs, there is a barrier before each pair's round trips: PEs that
//! wait for their turn by polling would keep the pair from running.

use std::time::{Duration, Instant};

use rushmem_system::stderr::print_line;

use crate::job::BenchJob;
use crate::library::{OperationKind, Task};
use crate::record::{Matrix, Measure};
use crate::statistics::median;

/// The minimum number of samples of a pair.
const FEWEST: u64 = 5;
/// The maximum number of samples of a pair.
const MOST: u64 = 4096;

/// An operation that is measured between every two PEs.
struct Plan {
    operation: &'static str,
    measure: Measure,
    nbytes: u64,
    /// The number of operations before each completion.
    window: u64,
}

const PLANS: [Plan; 2] = [
    Plan {
        operation: "p round trip",
        measure: Measure::Latency,
        nbytes: 8,
        window: 1,
    },
    Plan {
        operation: "put_nbi",
        measure: Measure::Bandwidth,
        nbytes: 64 * 1024,
        window: 8,
    },
];

/// Measures both matrices in about `time`. After each row, calls `done` with the number of rows so
/// far and the number of rows of both matrices. All PEs call it.
pub fn matrices(
    job: &BenchJob<'_>,
    time: Duration,
    is_oversubscribed: bool,
    mut done: impl FnMut(u32, u32),
) -> Vec<Matrix> {
    let n_rows = PLANS.len() as u32 * job.n;
    let mut n_done = 0;
    let mut matrices = Vec::new();
    for plan in PLANS {
        let row = Row::prepare(job, &plan, time / n_rows, is_oversubscribed);
        let start = Instant::now();
        let mut values = Vec::new();
        for from in 0..job.n {
            let is_late: bool = job.share(from, Some(&(start.elapsed() > time)));
            let own = if is_late {
                vec![None; job.n as usize]
            } else {
                row.measure(from)
            };
            values.push(job.share(from, Some(&own)));
            n_done += 1;
            done(n_done, n_rows);
        }

        // Nanoseconds of a window become bytes per second.
        if plan.measure == Measure::Bandwidth {
            for value in values.iter_mut().flatten().flatten() {
                *value = (plan.window * plan.nbytes) as f64 / *value * 1e9;
            }
        }

        matrices.push(Matrix {
            measure: plan.measure,
            operation: plan.operation.into(),
            nbytes: plan.nbytes,
            values,
        });
    }
    matrices
}

/// The parameters by which each row of a matrix is measured.
struct Row<'a> {
    job: &'a BenchJob<'a>,
    task: Task,
    /// About how long the whole row may take.
    time: Duration,
    /// True if there is a barrier before each pair.
    meets: bool,
}

impl<'a> Row<'a> {
    /// Prepares the operation of a plan. Ends the job if the library cannot.
    fn prepare(
        job: &'a BenchJob<'a>,
        plan: &Plan,
        time: Duration,
        is_oversubscribed: bool,
    ) -> Self {
        let operations = job.library.operations();
        let index = operations
            .iter()
            .position(|operation| operation.name == plan.operation)
            .expect("every library has it");
        let task = Task {
            operation: index as i32,
            team_size: job.n as i32,
            threads: 1,
            nbytes: plan.nbytes,
            window: plan.window,
            ..Task::default()
        };

        if let Err(sentence) = job.library.prepare(&task) {
            print_line(format_args!("shmem-perf: PE {}: {sentence}", job.me));
            job.library.exit_all(1);
        }
        Self {
            job,
            task,
            time,
            meets: is_oversubscribed && operations[index].kind == OperationKind::RoundTrip,
        }
    }

    /// Measures from `from` to each other PE. On `from`, returns by target the median nanoseconds
    /// of a window; the result of the other PEs is not used.
    fn measure(&self, from: u32) -> Vec<Option<f64>> {
        let library = &self.job.library;
        let me = self.job.me;
        let start = Instant::now();
        let mut values = vec![None; self.job.n as usize];
        for to in (0..self.job.n).filter(|&to| to != from) {
            if self.meets {
                library.barrier();
            }

            if me == from {
                let task = Task {
                    peer: to as i32,
                    ..self.task
                };
                // What earlier pairs have left or overdrawn is shared by the others.
                let left = self.time.saturating_sub(start.elapsed());
                let n_left = self.job.n - to;
                values[to as usize] = Some(self.median(&task, left / n_left));
                library.end(&task);
            } else if me == to {
                library.follow(&Task {
                    peer: from as i32,
                    ..self.task
                });
            }
        }
        values
    }

    fn median(&self, task: &Task, time: Duration) -> f64 {
        let library = &self.job.library;
        // Two samples, which also warm up, tell how many fit into the time.
        let start = Instant::now();
        library.run(task, 2, 1);
        let each = start.elapsed() / 2;
        let fitting = time.as_nanos() / each.as_nanos().max(1);

        let times = library.run(task, (fitting as u64).clamp(FEWEST, MOST), 1);
        let overhead = self.job.clock.overhead_ns;
        let times: Vec<f64> = times
            .iter()
            .map(|&ns| (ns as f64 - overhead).max(0.001))
            .collect();
        median(&times)
    }
}
