//! A histogram whose bins are distributed over the PEs: atomic additions to elements of other PEs.

use shmem::Atomic;

/// The number of bins on all PEs.
const BINS: usize = 50;
/// The number of keys of each PE.
const KEYS: usize = 1000;

/// Returns the bin of the key with this number.
fn bin(key: usize) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % BINS
}

fn main() {
    let shmem = shmem::init();
    let me = shmem.my_pe();
    let counts = shmem.world().block_array::<Atomic<u64>>(BINS);
    let keys = me * KEYS..(me + 1) * KEYS;
    counts.add_each(keys.map(|key| (bin(key), 1)));
    shmem.barrier_all();

    let mut expected = [0; BINS];
    (0..shmem.n_pes() * KEYS).for_each(|key| expected[bin(key)] += 1);
    let mine = counts.own().to_vec();
    assert_eq!(mine, expected[counts.own_range()]);
    println!("PE {me} has the bins {:?}: {mine:?}", counts.own_range());
}
