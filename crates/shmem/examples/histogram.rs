//! A histogram whose bins are distributed over the PEs: atomic additions to elements of other PEs.

use shmem::Atomic;

/// The number of bins on each PE.
const BINS: usize = 16;
const KEYS: usize = 1000;

/// Returns the bin of the key with this number.
fn bin(key: usize, n_pes: usize) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % (BINS * n_pes)
}

fn main() {
    let shmem = shmem::init();
    let (me, n_pes) = (shmem.my_pe(), shmem.n_pes());
    let counts = shmem.array::<Atomic<u64>>(BINS);
    for key in me * KEYS..(me + 1) * KEYS {
        let bin = bin(key, n_pes);
        counts[bin % BINS].on(shmem.pe(bin / BINS)).add(1);
    }
    shmem.barrier_all();

    let mut expected = [0; BINS];
    let all = (0..n_pes * KEYS).map(|key| bin(key, n_pes));
    all.filter(|bin| bin / BINS == me)
        .for_each(|bin| expected[bin % BINS] += 1);
    let mine = counts.on(shmem.me()).load_each();
    assert_eq!(mine, expected);
    println!("PE {me} has the bins {mine:?}");
}
