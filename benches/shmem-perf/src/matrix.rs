//! Each PE with each other one: latency and bandwidth, on which a wrong NIC, NUMA node or cable stands out.
//!
//! One PE after the other measures with all others, which answer whoever asks: PEs meet once for each row, not for each pair.

use std::time::{Duration, Instant};

use crate::library::Task;
use crate::record::{Matrix, Measure};
use crate::statistics::median;
use crate::world::World;

const ROUND_TRIP: &str = "p round trip";
const TRANSFER: &str = "put_nbi";
/// Bytes of each transfer of which the bandwidth is measured, and transfers before each completion.
const TRANSFER_BYTES: u64 = 64 * 1024;
const WINDOW: u64 = 8;
/// Samples of a pair: not fewer, so that a median says something, and not more.
const FEWEST: u64 = 5;
const MOST: u64 = 4096;

/// Both matrices, within about `time`; `done` is told after each row how many of how many are there. All PEs call it.
pub fn matrices(job: &World<'_>, time: Duration, mut done: impl FnMut(u32, u32)) -> Vec<Matrix> {
    let each = [
        (ROUND_TRIP, Measure::Latency, 8, 1),
        (TRANSFER, Measure::Bandwidth, TRANSFER_BYTES, WINDOW),
    ];
    let cells = 2 * u64::from(job.n) * u64::from(job.n - 1);
    let cell = Duration::from_nanos(time.as_nanos() as u64 / cells.max(1));
    let start = Instant::now();
    let mut matrices = Vec::new();
    for (index, (name, measure, nbytes, window)) in each.into_iter().enumerate() {
        let operation =
            job.library.operations().iter().position(|operation| operation.name == name);
        let operation = operation.expect("every library has it");
        let task = Task {
            operation: operation as i32,
            team_size: job.n as i32,
            threads: 1,
            nbytes,
            window,
            ..Task::default()
        };
        if let Err(sentence) = job.library.prepare(&task) {
            eprintln!("shmem-perf: PE {}: {sentence}", job.me);
            job.library.exit_all(1);
        }
        let mut values = Vec::new();
        for from in 0..job.n {
            job.library.barrier();
            let is_late = start.elapsed() > time * 2;
            let row = match job.me == from {
                true => Some(row(job, task, cell, is_late)),
                false => {
                    job.library.follow(&Task { peer: from as i32, ..task });
                    None
                }
            };
            let row: Vec<Option<f64>> = job.share(from, row.as_ref());
            values.push(row);
            done(index as u32 * job.n + from + 1, 2 * job.n);
        }
        let value = |ns: f64| match measure {
            Measure::Bandwidth => (window * nbytes) as f64 / ns * 1e9,
            _ => ns,
        };
        for found in values.iter_mut().flatten().flatten() {
            *found = value(*found);
        }
        matrices.push(Matrix { measure, operation: name.into(), nbytes, values });
    }
    matrices
}

/// This PE with each other one: median nanoseconds of a sample.
fn row(job: &World<'_>, task: Task, cell: Duration, is_late: bool) -> Vec<Option<f64>> {
    let with = |to: u32| {
        if to == job.me {
            return None;
        }
        let task = Task { peer: to as i32, ..task };
        let found = (!is_late).then(|| {
            let start = Instant::now();
            job.library.run(&task, 2, 1);
            let warm_up = start.elapsed() / 2;
            let fitting = cell.as_nanos() / warm_up.as_nanos().max(1);
            let samples = (fitting as u64).clamp(FEWEST, MOST);
            let times = job.library.run(&task, samples, 1);
            let times: Vec<f64> =
                times.iter().map(|&ns| (ns as f64 - job.clock.overhead_ns).max(0.001)).collect();
            median(&times)
        });
        job.library.end(&task);
        found
    };
    (0..job.n).map(with).collect()
}
