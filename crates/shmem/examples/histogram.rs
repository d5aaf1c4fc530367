//! A histogram whose bins are distributed over the PEs: atomic additions to elements of other PEs.

use shmem::Atomic;

/// The number of bins on each PE.
const BINS: u64 = 16;
const KEYS: u64 = 1000;

/// Returns the bin of the key with this number.
fn bin(key: u64, n_pes: u64) -> u64 {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % (BINS * n_pes)
}

fn main() {
    let shmem = shmem::init();
    let (me, n_pes) = (u64::from(shmem.my_pe()), u64::from(shmem.n_pes()));
    let counts = shmem.array::<Atomic<u64>>(BINS as usize);
    for key in me * KEYS..(me + 1) * KEYS {
        let bin = bin(key, n_pes);
        shmem.inc(counts.at((bin % BINS) as usize), (bin / BINS) as u32);
    }
    shmem.barrier_all();

    let mut expected = [0; BINS as usize];
    let all = (0..n_pes * KEYS).map(|key| bin(key, n_pes));
    all.filter(|bin| bin / BINS == me)
        .for_each(|bin| expected[(bin % BINS) as usize] += 1);
    let mut mine = [0; BINS as usize];
    shmem.fetch_all(&mut mine, &counts, shmem.my_pe());
    assert_eq!(mine, expected);
    println!("PE {me} has the bins {mine:?}");
}
