//! Heat conduction in a plate whose rows are distributed over the PEs: rows are sent to the
//! neighbors by puts with signals, and a PE waits for its neighbors only.

use shmem::{Peer, Shmem, Signal, SymArray, SymBox, SymSlice};
use std::ops::Range;

/// The number of inner rows of each PE.
const ROWS: usize = 8;
const COLUMNS: usize = 32;
const STEPS: u64 = 50;

/// Returns the plate one step later. Its edge is unchanged.
fn step(plate: &[f64]) -> Vec<f64> {
    let mut next = plate.to_vec();
    for i in COLUMNS..plate.len() - COLUMNS {
        if (1..COLUMNS - 1).contains(&(i % COLUMNS)) {
            let around = plate[i - COLUMNS] + plate[i + COLUMNS] + plate[i - 1] + plate[i + 1];
            next[i] = plate[i] + 0.2 * (around - 4.0 * plate[i]);
        }
    }
    next
}

/// Returns a plate with `rows` inner rows, cold but for its first row.
fn plate(rows: usize, first: f64) -> Vec<f64> {
    let mut plate = vec![0.0; (rows + 2) * COLUMNS];
    plate[..COLUMNS].fill(first);
    plate
}

fn row(index: usize) -> Range<usize> {
    index * COLUMNS..(index + 1) * COLUMNS
}

/// The rows that a neighbor has put. There is room for two, since the neighbor may be one step
/// ahead.
struct Inbox<'s> {
    rows: SymArray<'s, f64>,
    step: SymBox<'s, Signal>,
}

impl<'s> Inbox<'s> {
    fn new(shmem: &'s Shmem) -> Inbox<'s> {
        Inbox {
            rows: shmem.array(2 * COLUMNS),
            step: shmem.zeroed(),
        }
    }

    fn room(&self, step: u64) -> &SymSlice<f64> {
        &self.rows[row(step as usize % 2)]
    }

    fn send(&self, peer: Peer<'_>, step: u64, values: &[f64]) {
        self.room(step)
            .on(peer)
            .put_with(values, self.step.set(step));
    }

    fn receive(&self, shmem: &Shmem, step: u64, values: &mut [f64]) {
        shmem.wait(self.step.ge(step));
        self.room(step).copy_to_slice(values);
    }
}

fn main() {
    let shmem = shmem::init();
    let me = shmem.my_pe();
    let n_pes = shmem.n_pes();
    let above = shmem.neighbor(-1);
    let below = shmem.neighbor(1);

    let from_above = Inbox::new(&shmem);
    let from_below = Inbox::new(&shmem);
    let mut mine = plate(ROWS, if me == 0 { 1.0 } else { 0.0 });

    for now in 1..=STEPS {
        if let Some(peer) = above {
            from_below.send(peer, now, &mine[row(1)]);
        }
        if let Some(peer) = below {
            from_above.send(peer, now, &mine[row(ROWS)]);
        }

        if above.is_some() {
            from_above.receive(&shmem, now, &mut mine[row(0)]);
        }
        if below.is_some() {
            from_below.receive(&shmem, now, &mut mine[row(ROWS + 1)]);
        }
        mine = step(&mine);
    }

    // Each PE checks its rows against the whole plate, which it computes alone.
    let mut whole = plate(ROWS * n_pes, 1.0);
    for _ in 0..STEPS {
        whole = step(&whole);
    }
    let first = me * ROWS;
    for i in 1..=ROWS {
        assert_eq!(mine[row(i)], whole[row(first + i)]);
    }

    let mean = mine.iter().sum::<f64>() / mine.len() as f64;
    println!("PE {me} has a mean of {mean:.4}");
}
