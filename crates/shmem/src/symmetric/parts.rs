//! Parts of symmetric elements, one after the other: the iterators that slices have, too.

use crate::element::Element;
use crate::symmetric::view::{Sym, SymSlice};
use std::fmt;
use std::iter::FusedIterator;
use std::slice;

impl<T: Element> SymSlice<T> {
    /// Returns the elements in parts of `len` elements, the last of which may be shorter.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let numbers = shmem.array::<u64>(8);
    /// let lengths: Vec<usize> = numbers.chunks(3).map(|part| part.len()).collect();
    /// assert_eq!(lengths, [3, 3, 2]);
    /// ```
    ///
    /// # Panics
    /// If `len` is 0.
    #[inline]
    #[track_caller]
    pub fn chunks(&self, len: usize) -> Chunks<'_, T> {
        Chunks(self.cells().chunks(len))
    }

    /// Returns the elements in parts of `len` elements. Those at the end that are too few for a
    /// part are the [`remainder`](ChunksExact::remainder).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let rooms = shmem.array::<u64>(2 * shmem.n_pes());
    /// for (room, peer) in rooms.chunks_exact(2).zip(shmem.peers()) {
    ///     room.fill(peer.pe() as u64);
    /// }
    /// assert_eq!(rooms[..2].to_vec(), [0, 0]);
    /// ```
    ///
    /// # Panics
    /// If `len` is 0.
    #[inline]
    #[track_caller]
    pub fn chunks_exact(&self, len: usize) -> ChunksExact<'_, T> {
        ChunksExact(self.cells().chunks_exact(len))
    }

    /// Returns each part of `len` consecutive elements, from the first one on. These overlap.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let numbers = shmem.array_from(&[1, 4, 9, 16]);
    /// let steps: Vec<i32> = numbers.windows(2).map(|two| two[1].load() - two[0].load()).collect();
    /// assert_eq!(steps, [3, 5, 7]);
    /// ```
    ///
    /// # Panics
    /// If `len` is 0.
    #[inline]
    #[track_caller]
    pub fn windows(&self, len: usize) -> Windows<'_, T> {
        Windows(self.cells().windows(len))
    }
}

/// Defines the iterator `$name` by that of slices with the same name.
macro_rules! iterators {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone)]
        #[must_use = "an iterator does nothing unless it is used"]
        pub struct $name<'a, T: Element>(slice::$name<'a, Sym<T>>);

        impl<'a, T: Element> Iterator for $name<'a, T> {
            type Item = &'a SymSlice<T>;

            #[inline]
            fn next(&mut self) -> Option<&'a SymSlice<T>> {
                self.0.next().map(SymSlice::of)
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                self.0.size_hint()
            }

            fn nth(&mut self, n: usize) -> Option<&'a SymSlice<T>> {
                self.0.nth(n).map(SymSlice::of)
            }
        }

        impl<'a, T: Element> DoubleEndedIterator for $name<'a, T> {
            #[inline]
            fn next_back(&mut self) -> Option<&'a SymSlice<T>> {
                self.0.next_back().map(SymSlice::of)
            }
        }

        impl<T: Element> ExactSizeIterator for $name<'_, T> {}
        impl<T: Element> FusedIterator for $name<'_, T> {}

        impl<T: Element> fmt::Debug for $name<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0.len())
            }
        }
    )*};
}

iterators! {
    /// Parts of symmetric elements: the iterator of [`SymSlice::chunks`].
    Chunks;
    /// Parts of symmetric elements of the same length: the iterator of [`SymSlice::chunks_exact`].
    ChunksExact;
    /// Overlapping parts of symmetric elements: the iterator of [`SymSlice::windows`].
    Windows;
}

impl<'a, T: Element> ChunksExact<'a, T> {
    /// Returns the elements at the end that are too few for a part.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let numbers = shmem.array::<u64>(8);
    /// assert_eq!(numbers.chunks_exact(3).remainder().len(), 2);
    /// ```
    pub fn remainder(&self) -> &'a SymSlice<T> {
        SymSlice::of(self.0.remainder())
    }
}
