//! A table with an entry for each PE that one thread uses. It takes memory only for PEs that were
//! used.

use crate::Pe;
use std::ops::{Index, IndexMut};

/// A table that holds the default value for each PE until that entry is first changed.
#[derive(Debug)]
pub struct PeMap<T> {
    /// For each PE the place of its entry. Zeros, which take no memory before they are written,
    /// stand for the default value in the first place.
    places: Vec<u32>,
    made: Vec<(Pe, T)>,
}

impl<T: Default> PeMap<T> {
    /// Returns the table of a job of `n_pes` PEs.
    pub fn new(n_pes: usize) -> PeMap<T> {
        PeMap { places: vec![0; n_pes], made: vec![(Pe(u32::MAX), T::default())] }
    }

    /// Returns how many PEs the job has.
    pub fn n_pes(&self) -> usize {
        self.places.len()
    }

    /// Returns the entry of a PE, if it was made.
    #[inline]
    pub fn get(&self, pe: Pe) -> Option<&T> {
        let place = *self.places.get(pe.index())?;
        (place != 0).then(|| &self.made[place as usize].1)
    }

    /// Returns the entry of a PE, if it was made, to be changed.
    #[inline]
    pub fn get_mut(&mut self, pe: Pe) -> Option<&mut T> {
        let place = *self.places.get(pe.index())?;
        (place != 0).then(|| &mut self.made[place as usize].1)
    }

    /// Returns the entry of a PE of the job, made by `make` if this is its first use.
    #[inline]
    pub fn get_or_insert_with(&mut self, pe: Pe, make: impl FnOnce() -> T) -> &mut T {
        let place = &mut self.places[pe.index()];
        if *place == 0 {
            *place = self.made.len() as u32;
            self.made.push((pe, make()));
        }
        &mut self.made[*place as usize].1
    }

    /// Returns the entries that were made.
    pub fn iter(&self) -> impl Iterator<Item = (Pe, &T)> {
        self.made[1..].iter().map(|(pe, entry)| (*pe, entry))
    }

    /// Returns the entries that were made, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.made[1..].iter_mut().map(|(_, entry)| entry)
    }
}

impl<T: Default> Index<Pe> for PeMap<T> {
    type Output = T;

    #[inline]
    fn index(&self, pe: Pe) -> &T {
        &self.made[self.places[pe.index()] as usize].1
    }
}

impl<T: Default> IndexMut<Pe> for PeMap<T> {
    #[inline]
    fn index_mut(&mut self, pe: Pe) -> &mut T {
        self.get_or_insert_with(pe, T::default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_made_when_it_is_changed() {
        let mut map: PeMap<u8> = PeMap::new(5);
        assert_eq!((map[Pe(4)], map.iter().count(), map.n_pes()), (0, 0, 5));
        map[Pe(3)] = 7;
        *map.get_or_insert_with(Pe(1), || 8) += 1;
        assert_eq!(*map.get_or_insert_with(Pe(3), || 6), 7);
        assert_eq!([0, 1, 2, 3].map(|pe| map[Pe(pe)]), [0, 9, 0, 7]);
        assert_eq!([0, 1, 7].map(|pe| map.get(Pe(pe)).copied()), [None, Some(9), None]);
        map.iter_mut().for_each(|entry| *entry += 1);
        assert!(map.iter().eq([(Pe(3), &8), (Pe(1), &10)]));
        assert_eq!(map[Pe(0)], 0, "the default value stays");
    }
}
