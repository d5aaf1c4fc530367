//! The numbers of PEs, and tables indexed by them. A table makes the entry of a PE at its first
//! use, so that a PE that is never used takes almost no memory.

use std::fmt;
use std::ops::{Index, IndexMut};
use std::sync::OnceLock;

/// A PE's number in the world: 0 to `shmem_n_pes() - 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pe(pub u32);

/// A PE's number in a team: 0 to `shmem_team_n_pes(team) - 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TeamPe(pub u32);

impl Pe {
    /// Returns the number as the index of a table with one entry per PE.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl TeamPe {
    /// Returns the number as the index of a table with one entry per member.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Pe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for TeamPe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A table for one thread. Indexing yields the default value for a PE without an entry, and makes
/// an entry to change the value.
#[derive(Debug)]
pub struct PeMap<T> {
    /// For each PE, the index of its entry. Zeros, which take no memory before they are written,
    /// refer to the default value at index 0.
    indices: Vec<u32>,
    entries: Vec<(Pe, T)>,
}

impl<T: Default> PeMap<T> {
    /// Returns a table without entries for a job of `n_pes` PEs.
    pub fn new(n_pes: usize) -> PeMap<T> {
        PeMap {
            indices: vec![0; n_pes],
            // The default value belongs to no PE.
            entries: vec![(Pe(u32::MAX), T::default())],
        }
    }

    /// Returns the number of PEs of the job.
    pub fn n_pes(&self) -> usize {
        self.indices.len()
    }

    /// Returns the entry of a PE, if there is one.
    #[inline]
    pub fn get(&self, pe: Pe) -> Option<&T> {
        let index = *self.indices.get(pe.index())?;
        if index == 0 {
            return None;
        }
        Some(&self.entries[index as usize].1)
    }

    /// Returns the mutable entry of a PE, if there is one.
    #[inline]
    pub fn get_mut(&mut self, pe: Pe) -> Option<&mut T> {
        let index = *self.indices.get(pe.index())?;
        if index == 0 {
            return None;
        }
        Some(&mut self.entries[index as usize].1)
    }

    /// Returns the entry of a PE. Calls `make` for it if there is none.
    #[inline]
    pub fn get_or_insert_with(&mut self, pe: Pe, make: impl FnOnce() -> T) -> &mut T {
        let index = &mut self.indices[pe.index()];
        if *index == 0 {
            *index = self.entries.len() as u32;
            self.entries.push((pe, make()));
        }
        &mut self.entries[*index as usize].1
    }

    /// Returns the PEs that have entries, with the entries.
    pub fn iter(&self) -> impl Iterator<Item = (Pe, &T)> {
        self.entries[1..].iter().map(|(pe, entry)| (*pe, entry))
    }

    /// Returns the mutable entries.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries[1..].iter_mut().map(|(_, entry)| entry)
    }
}

impl<T: Default> Index<Pe> for PeMap<T> {
    type Output = T;

    #[inline]
    fn index(&self, pe: Pe) -> &T {
        &self.entries[self.indices[pe.index()] as usize].1
    }
}

impl<T: Default> IndexMut<Pe> for PeMap<T> {
    #[inline]
    fn index_mut(&mut self, pe: Pe) -> &mut T {
        self.get_or_insert_with(pe, T::default)
    }
}

/// A table that several threads read without a lock. An entry is made once and lives as long as the
/// table. The cells of neighboring PEs are allocated together at the first use of one of them, so
/// that an empty table for a million PEs takes 256 KiB.
pub struct SharedPeMap<T> {
    blocks: Box<[OnceLock<Block<T>>]>,
    n_pes: usize,
}

/// The cells of neighboring PEs.
type Block<T> = Box<[OnceLock<T>; BLOCK]>;

/// The number of PEs whose cells are allocated together.
const BLOCK: usize = 64;

impl<T> SharedPeMap<T> {
    /// Returns a table without entries for a job of `n_pes` PEs.
    pub fn new(n_pes: usize) -> SharedPeMap<T> {
        let n_blocks = n_pes.div_ceil(BLOCK);
        SharedPeMap {
            blocks: (0..n_blocks).map(|_| OnceLock::new()).collect(),
            n_pes,
        }
    }

    /// Returns the number of PEs of the job.
    pub fn n_pes(&self) -> usize {
        self.n_pes
    }

    /// Returns the entry of a PE, if there is one.
    #[inline]
    pub fn get(&self, pe: Pe) -> Option<&T> {
        let block = self.blocks.get(pe.index() / BLOCK)?.get()?;
        block[pe.index() % BLOCK].get()
    }

    /// Returns the entry of a PE. Calls `make` for it if there is none. Returns `None` if there is
    /// no such PE.
    #[inline]
    pub fn get_or_insert_with(&self, pe: Pe, make: impl FnOnce() -> T) -> Option<&T> {
        // The last block has cells of PEs that do not exist.
        if pe.index() >= self.n_pes {
            return None;
        }

        let block = self.blocks[pe.index() / BLOCK]
            .get_or_init(|| Box::new([const { OnceLock::new() }; BLOCK]));
        Some(block[pe.index() % BLOCK].get_or_init(make))
    }

    /// Returns the PEs that have entries, with the entries.
    pub fn iter(&self) -> impl Iterator<Item = (Pe, &T)> {
        (0..self.n_pes as u32)
            .map(Pe)
            .filter_map(|pe| Some((pe, self.get(pe)?)))
    }
}

impl<T: fmt::Debug> fmt::Debug for SharedPeMap<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn an_entry_is_made_when_it_is_changed() {
        let mut map: PeMap<u8> = PeMap::new(5);
        assert_eq!(map.n_pes(), 5);
        assert_eq!(map[Pe(4)], 0);
        assert_eq!(map.iter().count(), 0, "a read makes no entry");

        map[Pe(3)] = 7;
        *map.get_or_insert_with(Pe(1), || 8) += 1;
        assert_eq!(*map.get_or_insert_with(Pe(3), || 6), 7);
        assert_eq!([0, 1, 2, 3].map(|pe| map[Pe(pe)]), [0, 9, 0, 7]);
        assert_eq!(map.get(Pe(0)), None);
        assert_eq!(map.get(Pe(1)), Some(&9));
        assert_eq!(map.get(Pe(7)), None, "no such PE");

        for entry in map.iter_mut() {
            *entry += 1;
        }
        assert!(map.iter().eq([(Pe(3), &8), (Pe(1), &10)]));
        assert_eq!(map[Pe(0)], 0, "the default value stays");
    }

    #[test]
    fn entries_are_made_once() {
        let map: SharedPeMap<Arc<u8>> = SharedPeMap::new(65);
        let first = Arc::new(13);
        for value in [first.clone(), Arc::new(4)] {
            let entry = map.get_or_insert_with(Pe(3), || value);
            assert_eq!(entry.map(|entry| **entry), Some(13), "the first one");
        }
        let entry = map.get_or_insert_with(Pe(64), Arc::default);
        assert_eq!(entry.map(|entry| **entry), Some(0));

        assert!(map.get(Pe(0)).is_none());
        assert!(map.get(Pe(65)).is_none());
        assert!(
            map.get_or_insert_with(Pe(65), Arc::default).is_none(),
            "no such PE, although its block has a cell"
        );
        assert!(map.iter().map(|(pe, _)| pe.0).eq([3, 64]));

        drop(map);
        assert_eq!(Arc::strong_count(&first), 1);
    }
}
