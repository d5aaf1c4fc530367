//! A hash table into which all PEs insert at the same time: a PE claims a slot by
//! compare-and-exchange, and adds to its value atomically.

use shmem::{Atomic, Peer, Shmem, SymArray};

/// The number of slots on each PE.
const SLOTS: usize = 128;
/// The number of keys of each PE. Every PE also inserts the keys of the next one.
const KEYS: u64 = 40;
/// The key of a free slot.
const FREE: u64 = 0;

/// Sums by key, with open addressing over the slots of all PEs.
struct HashTable<'s> {
    shmem: &'s Shmem,
    keys: SymArray<'s, Atomic<u64>>,
    sums: SymArray<'s, Atomic<u64>>,
}

impl<'s> HashTable<'s> {
    /// Makes an empty table. Collective.
    fn new(shmem: &'s Shmem) -> HashTable<'s> {
        HashTable {
            shmem,
            keys: shmem.array(SLOTS),
            sums: shmem.array(SLOTS),
        }
    }

    /// Returns the slots in which a key may be, in the order of the search: an index and a PE.
    fn places(&self, key: u64) -> impl Iterator<Item = (usize, Peer<'_>)> {
        let all = SLOTS * self.shmem.n_pes();
        let first = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
        let peer = move |slot| self.shmem.pe(slot % all / SLOTS);
        (first..first + all).map(move |slot| (slot % SLOTS, peer(slot)))
    }

    /// Adds to the sum of a key. Returns false if the table is full.
    fn add(&self, key: u64, value: u64) -> bool {
        let place = self.places(key).find(|&(slot, peer)| {
            let found = self.keys[slot].on(peer).compare_exchange(FREE, key);
            found.is_ok() || found == Err(key)
        });
        place
            .map(|(slot, peer)| self.sums[slot].on(peer).add(value))
            .is_some()
    }

    /// Returns the sum of a key. It may lack values that other PEs add meanwhile.
    fn get(&self, key: u64) -> Option<u64> {
        for (slot, peer) in self.places(key) {
            match self.keys[slot].on(peer).load() {
                FREE => return None,
                found if found == key => return Some(self.sums[slot].on(peer).load()),
                _ => {}
            }
        }
        None
    }
}

fn main() {
    let shmem = shmem::init();
    let table = HashTable::new(&shmem);
    let (me, n_pes) = (shmem.my_pe() as u64, shmem.n_pes() as u64);
    for pe in [me, (me + 1) % n_pes] {
        for key in pe * KEYS + 1..=(pe + 1) * KEYS {
            assert!(table.add(key, key));
        }
    }
    shmem.barrier_all();
    for key in 1..=n_pes * KEYS {
        assert_eq!(table.get(key), Some(2 * key));
    }
    assert_eq!(table.get(n_pes * KEYS + 1), None);
    println!("PE {me} found the {} keys", n_pes * KEYS);
}
