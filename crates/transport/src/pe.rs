//! The numbers of PEs, and tables indexed by them. A table makes the entry of a PE at its first
//! use, so that a PE that is never used takes almost no memory.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Index, IndexMut};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};

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
        (index != 0).then(|| &self.entries[index as usize].1)
    }

    /// Returns the mutable entry of a PE, if there is one.
    #[inline]
    pub fn get_mut(&mut self, pe: Pe) -> Option<&mut T> {
        let index = *self.indices.get(pe.index())?;
        (index != 0).then(|| &mut self.entries[index as usize].1)
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

/// A table that several threads use without a lock. An entry is made once and lives as long as the
/// table. The entries of `BLOCK` neighboring PEs are made together, so that small ones share an
/// allocation.
pub struct SharedPeMap<T, const BLOCK: usize> {
    /// One pointer for each block, null at first. Zeroed memory takes no pages before it is
    /// written.
    blocks: NonNull<AtomicPtr<[T; BLOCK]>>,
    n_pes: usize,
}

// SAFETY: the table owns its entries, which may be sent and shared.
unsafe impl<T: Send + Sync, const BLOCK: usize> Send for SharedPeMap<T, BLOCK> {}
// SAFETY: threads share the entries, which may be sent and shared, and the pointers are atomic.
unsafe impl<T: Send + Sync, const BLOCK: usize> Sync for SharedPeMap<T, BLOCK> {}

impl<T, const BLOCK: usize> SharedPeMap<T, BLOCK> {
    /// Returns a table without entries for a job of `n_pes` PEs.
    pub fn new(n_pes: usize) -> SharedPeMap<T, BLOCK> {
        let layout = Self::layout(n_pes);
        // SAFETY: the size is at least that of one pointer.
        let blocks = unsafe { alloc_zeroed(layout) }.cast();
        let blocks = NonNull::new(blocks).unwrap_or_else(|| handle_alloc_error(layout));
        SharedPeMap { blocks, n_pes }
    }

    fn layout(n_pes: usize) -> Layout {
        let n_blocks = n_pes.div_ceil(BLOCK).max(1);
        Layout::array::<AtomicPtr<[T; BLOCK]>>(n_blocks).expect("a job has fewer than 2^32 PEs")
    }

    /// Returns the number of PEs of the job.
    pub fn n_pes(&self) -> usize {
        self.n_pes
    }

    #[inline]
    fn block(&self, pe: Pe) -> Option<&AtomicPtr<[T; BLOCK]>> {
        if pe.index() >= self.n_pes {
            return None;
        }
        // SAFETY: one of the pointers that `new` allocated.
        let block = unsafe { self.blocks.add(pe.index() / BLOCK) };
        // SAFETY: zeroed memory is a null `AtomicPtr`, and it is freed only with the table.
        Some(unsafe { block.as_ref() })
    }

    /// Returns the entry of a PE, if there is one.
    #[inline]
    pub fn get(&self, pe: Pe) -> Option<&T> {
        let block = self.block(pe)?.load(Ordering::Acquire);
        // SAFETY: null, or a box of `insert`, which is freed only with the table.
        unsafe { block.as_ref() }?.get(pe.index() % BLOCK)
    }

    /// Stores `made` as the block of a PE, unless another thread has stored that block before.
    /// Returns the PE's entry, or `None` if there is no such PE.
    pub fn insert(&self, pe: Pe, made: [T; BLOCK]) -> Option<&T> {
        let block = self.block(pe)?;
        let made = Box::into_raw(Box::new(made));
        let (new, old) = (Ordering::AcqRel, Ordering::Acquire);
        if block.compare_exchange(null_mut(), made, new, old).is_err() {
            // SAFETY: made above, and not in the table.
            drop(unsafe { Box::from_raw(made) });
        }
        self.get(pe)
    }

    /// Returns the PEs that have entries, with the entries.
    pub fn iter(&self) -> impl Iterator<Item = (Pe, &T)> {
        (0..self.n_pes as u32)
            .map(Pe)
            .filter_map(|pe| Some((pe, self.get(pe)?)))
    }
}

impl<T: Default, const BLOCK: usize> SharedPeMap<T, BLOCK> {
    /// Returns the entry of a PE, with default values if it is new. Returns `None` if there is no
    /// such PE.
    #[inline]
    pub fn get_or_default(&self, pe: Pe) -> Option<&T> {
        match self.get(pe) {
            Some(entry) => Some(entry),
            None => self.insert(pe, std::array::from_fn(|_| T::default())),
        }
    }
}

impl<T: fmt::Debug, const BLOCK: usize> fmt::Debug for SharedPeMap<T, BLOCK> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<T, const BLOCK: usize> Drop for SharedPeMap<T, BLOCK> {
    fn drop(&mut self) {
        for pe in (0..self.n_pes).step_by(BLOCK) {
            let block = self
                .block(Pe(pe as u32))
                .map(|block| block.load(Ordering::Acquire));
            if let Some(block) = block.filter(|block| !block.is_null()) {
                // SAFETY: a box of `insert`, whose references have ended with the borrow of the
                // table.
                drop(unsafe { Box::from_raw(block) });
            }
        }
        // SAFETY: allocated by `new` with this layout, and freed once.
        unsafe { dealloc(self.blocks.as_ptr().cast(), Self::layout(self.n_pes)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn an_entry_is_made_when_it_is_changed() {
        let mut map: PeMap<u8> = PeMap::new(5);
        assert_eq!((map[Pe(4)], map.iter().count(), map.n_pes()), (0, 0, 5));
        map[Pe(3)] = 7;
        *map.get_or_insert_with(Pe(1), || 8) += 1;
        assert_eq!(*map.get_or_insert_with(Pe(3), || 6), 7);
        assert_eq!([0, 1, 2, 3].map(|pe| map[Pe(pe)]), [0, 9, 0, 7]);
        assert_eq!(
            [0, 1, 7].map(|pe| map.get(Pe(pe)).copied()),
            [None, Some(9), None]
        );
        map.iter_mut().for_each(|entry| *entry += 1);
        assert!(map.iter().eq([(Pe(3), &8), (Pe(1), &10)]));
        assert_eq!(map[Pe(0)], 0, "the default value stays");
    }

    #[test]
    fn entries_are_made_once_and_by_blocks() {
        let map: SharedPeMap<Arc<u8>, 2> = SharedPeMap::new(5);
        let blocks = [3, 4].map(|value| [Arc::new(value), Arc::new(value + 10)]);
        let counted = blocks[0][0].clone();
        for block in blocks {
            assert_eq!(
                map.insert(Pe(3), block).map(|entry| **entry),
                Some(13),
                "the first one"
            );
        }
        assert_eq!(map.get(Pe(2)).map(|entry| **entry), Some(3), "a neighbor");
        assert_eq!(map.get_or_default(Pe(4)).map(|entry| **entry), Some(0));
        assert!(map.get(Pe(0)).is_none() && map.get(Pe(5)).is_none());
        assert!(
            map.get_or_default(Pe(5)).is_none(),
            "no such PE, although its block has room"
        );
        assert!(map.iter().map(|(pe, _)| pe.0).eq([2, 3, 4]));
        assert_eq!(Arc::strong_count(&counted), 2);
        drop(map);
        assert_eq!(Arc::strong_count(&counted), 1);
    }
}
