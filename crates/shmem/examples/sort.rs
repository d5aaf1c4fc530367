//! A sort of integers as in ISx: each key is put to the PE of its bucket, where a fetch-add
//! reserves the elements for it.

use shmem::Atomic;

/// The number of keys of each PE.
const KEYS: usize = 2000;
/// All keys are below this.
const MOST: u64 = 1 << 28;
/// The elements for a bucket: twice the mean number of keys.
const ROOM: usize = 2 * KEYS;

/// Returns the keys of a PE.
fn keys(pe: usize) -> impl Iterator<Item = u64> {
    let first = (pe * KEYS) as u64;
    (first..first + KEYS as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 36)
}

fn main() {
    let shmem = shmem::init();
    let me = shmem.my_pe();
    let n_pes = shmem.n_pes();
    let bucket = |key: u64| (key as usize * n_pes) / MOST as usize;
    let inbox = shmem.array(ROOM);
    let filled = shmem.zeroed::<Atomic<usize>>();

    let mut buckets = vec![Vec::new(); n_pes];
    for key in keys(me) {
        buckets[bucket(key)].push(key);
    }
    shmem.scope(|s| {
        for peer in s.peers_from_me() {
            let keys = &buckets[peer.pe()];
            let start = filled.on(shmem.pe(peer.pe())).fetch_add(keys.len());
            inbox[start..start + keys.len()].on(peer).put(keys);
        }
    });
    shmem.barrier_all();

    let mut sorted = inbox[..filled.load()].to_vec();
    sorted.sort_unstable();

    let mut expected: Vec<u64> = (0..n_pes)
        .flat_map(keys)
        .filter(|&key| bucket(key) == me)
        .collect();
    expected.sort_unstable();
    assert_eq!(sorted, expected);
    println!("PE {me} has {} keys", sorted.len());
}
