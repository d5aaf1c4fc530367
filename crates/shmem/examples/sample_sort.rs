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

    let mut samples = Vec::new();
    for i in 0..SAMPLES {
        samples.extend(world.all_gather(mine[i * KEYS / SAMPLES]));
    }
    samples.sort_unstable();
    let splitters: Vec<u64> = (1..n_pes).map(|pe| samples[pe * SAMPLES]).collect();

    // The keys are sorted, so the bucket of each PE is a block of them.
    let mut counts = Vec::new();
    let mut start = 0;
    for splitter in &splitters {
        let end = mine.partition_point(|key| key < splitter);
        counts.push(end - start);
        start = end;
    }
    counts.push(KEYS - start);

    let outbox = shmem.array_from(&mine);
    let inbox = shmem.array(2 * KEYS);
    let received = world.all_to_all_blocks(&outbox, &counts, &inbox);
    let mut sorted = inbox[..received].to_vec();
    sorted.sort_unstable();

    // Every key is on a PE, and no key is less than those of the PEs before.
    let total = world.all_reduce(sorted.len(), shmem::Sum);
    assert_eq!(total, n_pes * KEYS);
    let first = world.all_gather(sorted.first().copied().unwrap_or(u64::MAX));
    let last = sorted.last().copied().unwrap_or(0);
    assert!(first[me + 1..].iter().all(|&next| last <= next));
    println!("PE {me} has {} keys", sorted.len());
}
