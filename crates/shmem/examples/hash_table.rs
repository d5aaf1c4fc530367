//! A hash table that all PEs insert into at once: slots are claimed by compare-and-swap, values are
//! added to.

use shmem::{Atomic, Shmem, SymArray};

/// Slots of each PE.
const SLOTS: usize = 128;
/// Keys of each PE; every PE inserts those of the next one, too.
const KEYS: u64 = 40;
/// No key.
const FREE: u64 = 0;

/// Sums by key, with open addressing over the slots of all PEs.
struct HashTable<'s> {
    shmem: &'s Shmem,
    keys: SymArray<'s, Atomic<u64>>,
    sums: SymArray<'s, Atomic<u64>>,
}

impl<'s> HashTable<'s> {
    /// Collective.
    fn new(shmem: &'s Shmem) -> HashTable<'s> {
        HashTable { shmem, keys: shmem.array(SLOTS), sums: shmem.array(SLOTS) }
    }

    /// Returns the places of a key, in the order of trying: an index and a PE.
    fn places(&self, key: u64) -> impl Iterator<Item = (usize, u32)> {
        let all = SLOTS * self.shmem.n_pes() as usize;
        let first = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
        (first..first + all).map(move |slot| (slot % SLOTS, (slot % all / SLOTS) as u32))
    }

    /// Adds to the sum of a key. Whether there is room.
    fn add(&self, key: u64, value: u64) -> bool {
        let place = self.places(key).find(|&(slot, pe)| {
            let found = self.shmem.compare_swap(self.keys.at(slot), FREE, key, pe);
            found == FREE || found == key
        });
        place.map(|(slot, pe)| self.shmem.add(self.sums.at(slot), value, pe)).is_some()
    }

    /// Returns the sum of a key. What others add meanwhile may be missing.
    fn get(&self, key: u64) -> Option<u64> {
        for (slot, pe) in self.places(key) {
            match self.shmem.fetch(self.keys.at(slot), pe) {
                FREE => return None,
                found if found == key => return Some(self.shmem.fetch(self.sums.at(slot), pe)),
                _ => {}
            }
        }
        None
    }
}

fn main() {
    let shmem = shmem::init();
    let table = HashTable::new(&shmem);
    let (me, n_pes) = (u64::from(shmem.my_pe()), u64::from(shmem.n_pes()));
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
