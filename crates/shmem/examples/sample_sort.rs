//! A sample sort: PEs agree on splitters, and exchange their buckets by one all-to-all.

/// The number of keys of each PE.
const KEYS: usize = 2000;
/// The number of keys by which each PE helps to choose the splitters.
const SAMPLES: usize = 32;

/// Returns the keys of a PE.
fn keys(pe: usize) -> Vec<u64> {
    let first = (pe * KEYS) as u64;
    (first..first + KEYS as u64)
        .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 36)
        .collect()
}

fn main() {
    let shmem = shmem::init();
    let me = shmem.my_pe();
    let n_pes = shmem.n_pes();
    let world = shmem.world();

    let mut mine = keys(me);
    mine.sort_unstable();

    let own: Vec<u64> = (0..SAMPLES).map(|i| mine[i * KEYS / SAMPLES]).collect();
    let mut samples = world.all_gather_slice(&own);
    samples.sort_unstable();
    let splitters: Vec<u64> = (1..n_pes).map(|pe| samples[pe * SAMPLES]).collect();

    // The keys are sorted, so the bucket of each PE is a block of them.
    let mut buckets = Vec::new();
    let mut rest = &mine[..];
    for splitter in &splitters {
        let (bucket, after) = rest.split_at(rest.partition_point(|key| key < splitter));
        buckets.push(bucket);
        rest = after;
    }
    buckets.push(rest);

    let mut sorted = world.all_to_all_varying(&buckets).concat();
    sorted.sort_unstable();

    // Every key is on a PE, and no key is less than those of the PEs before.
    let total = world.all_reduce(sorted.len(), shmem::Sum);
    assert_eq!(total, n_pes * KEYS);
    let first = world.all_gather(sorted.first().copied().unwrap_or(u64::MAX));
    let last = sorted.last().copied().unwrap_or(0);
    assert!(first[me + 1..].iter().all(|&next| last <= next));
    println!("PE {me} has {} keys", sorted.len());
}
