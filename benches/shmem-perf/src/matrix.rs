//! Measures the latency and the bandwidth between every two PEs, so that a wrong NIC, NUMA node or
//! cable stands out.
//!
//! One PE after the other measures a row: its figures with each other PE in turn. The others wait:
//! in a round trip until the PE of the row reaches them, otherwise in a barrier until the row is
//! complete. If PEs outnumber CPUs, there is a barrier before each pair's round trips: PEs that
//! wait for their turn by polling would keep the pair from running.

use rushmem_system::stderr::print_line;
use std::time::{Duration, Instant};

use crate::job::BenchJob;
use crate::library::{OperationKind, Task};
use crate::record::{Matrix, Measure};
use crate::statistics::median;

const ROUND_TRIP: &str = "p round trip";
const TRANSFER: &str = "put_nbi";
/// For the bandwidth: the bytes of each transfer, and the number of transfers before each
/// completion.
const TRANSFER_BYTES: u64 = 64 * 1024;
const WINDOW: u64 = 8;
/// The minimum and the maximum number of samples of a pair.
const FEWEST: u64 = 5;
const MOST: u64 = 4096;

/// Measures both matrices in about `time`. After each row, calls `done` with the number of rows so
/// far and the number of rows of both matrices. All PEs call it.
pub fn matrices(
    job: &BenchJob<'_>,
    time: Duration,
    is_oversubscribed: bool,
    mut done: impl FnMut(u32, u32),
) -> Vec<Matrix> {
    let each = [
        (ROUND_TRIP, Measure::Latency, 8, 1),
        (TRANSFER, Measure::Bandwidth, TRANSFER_BYTES, WINDOW),
    ];
    let mut matrices = Vec::new();
    for (index, (name, measure, nbytes, window)) in each.into_iter().enumerate() {
        let operation = job
            .library
            .operations()
            .iter()
            .position(|operation| operation.name == name)
            .expect("every library has it");
        let row = Row {
            job,
            task: Task {
                operation: operation as i32,
                team_size: job.n as i32,
                threads: 1,
                nbytes,
                window,
                ..Task::default()
            },
            time: time / 2 / job.n,
            meets: is_oversubscribed
                && job.library.operations()[operation].kind == OperationKind::RoundTrip,
        };
        if let Err(sentence) = job.library.prepare(&row.task) {
            print_line(format_args!("shmem-perf: PE {}: {sentence}", job.me));
            job.library.exit_all(1);
        }

        let start = Instant::now();
        let mut values = Vec::new();
        for from in 0..job.n {
            let is_late: bool = job.share(from, Some(&(start.elapsed() > time)));
            let own = if is_late {
                vec![None; job.n as usize]
            } else {
                row.measured(from)
            };
            values.push(job.share(from, Some(&own)));
            done(index as u32 * job.n + from + 1, 2 * job.n);
        }

        // Nanoseconds of a window become bytes per second.
        if measure == Measure::Bandwidth {
            for value in values.iter_mut().flatten().flatten() {
                *value = (window * nbytes) as f64 / *value * 1e9;
            }
        }

        matrices.push(Matrix {
            measure,
            operation: name.into(),
            nbytes,
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

impl Row<'_> {
    /// Measures from `from` to each other PE. On `from`, returns by target the median nanoseconds
    /// of a window; the result of the other PEs is not used.
    fn measured(&self, from: u32) -> Vec<Option<f64>> {
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
