//! Each PE with each other one: latency and bandwidth, on which a wrong NIC, NUMA node or cable
//! stands out.
//!
//! One PE after the other measures with all others, which answer any PE: PEs meet once for
//! each row, not for each pair. Only where PEs outnumber CPUs they meet for each pair, since those
//! that waited for their turn would keep the pair from running.

use std::time::{Duration, Instant};

use crate::library::{OperationKind, Task};
use crate::record::{Matrix, Measure};
use crate::statistics::median;
use crate::world::BenchJob;

const ROUND_TRIP: &str = "p round trip";
const TRANSFER: &str = "put_nbi";
/// Bytes of each transfer of which the bandwidth is measured, and transfers before each completion.
const TRANSFER_BYTES: u64 = 64 * 1024;
const WINDOW: u64 = 8;
/// Samples of a pair: not fewer, so that a median says something, and not more.
const FEWEST: u64 = 5;
const MOST: u64 = 4096;

/// Measures both matrices, within about `time`. Calls `done` after each row with the number of rows
/// so far and in all. Collective.
pub fn matrices(
    world: &BenchJob<'_>,
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
        let named = |operation: &crate::library::Operation| operation.name == name;
        let operation = world.library.operations().iter().position(named);
        let operation = operation.expect("every library has it");
        let row = Row {
            world,
            task: Task {
                operation: operation as i32,
                team_size: world.n as i32,
                threads: 1,
                nbytes,
                window,
                ..Task::default()
            },
            time: time / 2 / world.n,
            meets: is_oversubscribed
                && world.library.operations()[operation].kind == OperationKind::RoundTrip,
        };
        if let Err(sentence) = world.library.prepare(&row.task) {
            eprintln!("shmem-perf: PE {}: {sentence}", world.me);
            world.library.exit_all(1);
        }
        let start = Instant::now();
        let mut values = Vec::new();
        for from in 0..world.n {
            let is_late: bool = world.share(from, Some(&(start.elapsed() > time)));
            let own = if is_late { vec![None; world.n as usize] } else { row.measured(from) };
            values.push(world.share(from, Some(&own)));
            done(index as u32 * world.n + from + 1, 2 * world.n);
        }
        if measure == Measure::Bandwidth {
            for value in values.iter_mut().flatten().flatten() {
                *value = (window * nbytes) as f64 / *value * 1e9;
            }
        }
        matrices.push(Matrix { measure, operation: name.into(), nbytes, values });
    }
    matrices
}

/// The figures from one PE to all others.
struct Row<'a> {
    world: &'a BenchJob<'a>,
    task: Task,
    /// About how long all of it may take.
    time: Duration,
    /// True if all PEs meet before each pair.
    meets: bool,
}

impl Row<'_> {
    /// Returns the median nanoseconds of a sample from `from` to each PE, on that PE; on others
    /// nothing that counts.
    fn measured(&self, from: u32) -> Vec<Option<f64>> {
        let (library, me) = (&self.world.library, self.world.me);
        let start = Instant::now();
        let mut values = vec![None; self.world.n as usize];
        for to in (0..self.world.n).filter(|&to| to != from) {
            if self.meets {
                library.barrier();
            }
            if me == from {
                let task = Task { peer: to as i32, ..self.task };
                let left = self.time.saturating_sub(start.elapsed());
                let n_left = self.world.n - to;
                values[to as usize] = Some(self.median(&task, left / n_left));
                library.end(&task);
            } else if me == to {
                library.follow(&Task { peer: from as i32, ..self.task });
            }
        }
        values
    }

    fn median(&self, task: &Task, time: Duration) -> f64 {
        let library = &self.world.library;
        let start = Instant::now();
        library.run(task, 2, 1);
        let each = start.elapsed() / 2;
        let fitting = time.as_nanos() / each.as_nanos().max(1);
        let times = library.run(task, (fitting as u64).clamp(FEWEST, MOST), 1);
        let overhead = self.world.clock.overhead_ns;
        let times: Vec<f64> = times.iter().map(|&ns| (ns as f64 - overhead).max(0.001)).collect();
        median(&times)
    }
}
