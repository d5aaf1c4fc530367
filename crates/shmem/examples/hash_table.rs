//! A hash table into which all PEs insert at the same time: a PE claims a slot by
//! compare-and-exchange, and adds to its value atomically.

use shmem::{Atomic, Peer, Shmem, SymArray};

/// The number of slots on each PE.
const SLOTS: usize = 128;
/// The number of keys of each PE. Every PE also inserts the keys of the next one.
const KEYS: u64 = 40;
/// The key of a free slot.
const FREE: u64 = 0;

/// A slot of the table.
struct Slot<'s> {
    peer: Peer<'s>,
    /// The index among the slots of the PE.
    index: usize,
}

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

    /// Returns the slots in which a key may be, in the order of the search.
    fn slots(&self, key: u64) -> impl Iterator<Item = Slot<'_>> {
        let all = SLOTS * self.shmem.n_pes();
        let first = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
        (first..first + all).map(move |slot| Slot {
            peer: self.shmem.pe(slot % all / SLOTS),
            index: slot % SLOTS,
        })
    }

    /// Adds to the sum of a key. Returns false if the table is full.
    fn add(&self, key: u64, value: u64) -> bool {
        for Slot { peer, index } in self.slots(key) {
            let found = self.keys[index].on(peer).compare_exchange(FREE, key);
            if found.is_ok() || found == Err(key) {
                self.sums[index].on(peer).add(value);
                return true;
            }
        }
        false
    }

    /// Returns the sum of a key. It may lack values that other PEs add meanwhile.
    fn get(&self, key: u64) -> Option<u64> {
        for Slot { peer, index } in self.slots(key) {
            let found = self.keys[index].on(peer).load();
            if found == FREE {
                return None;
            }
            if found == key {
                return Some(self.sums[index].on(peer).load());
            }
        }
        None
    }
}

fn main() {
    let shmem = shmem::init();
    let table = HashTable::new(&shmem);
    let me = shmem.my_pe() as u64;
    let n_pes = shmem.n_pes() as u64;

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
