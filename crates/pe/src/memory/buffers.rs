//! Registered buffers: memory of the program whose pages are those of blocks of the heap.
//!
//! An access that finds its address neither in the heap nor in the static data searches the
//! buffers, and goes on with the address of the same bytes in the heap. A PE may have a buffer at
//! another offset of its heap than the other PEs: its [`Images`] tell where.
//!
//! Readers take no lock, and memory that they may read is never freed: a change is written to the
//! one of two tables that is not in use, and a reader that overlaps a change repeats its search.
#![allow(unsafe_code)]

use crate::memory::images::Images;
use rushmem_system::lock::lock;
use std::ptr::{from_ref, null_mut};
use std::sync::Mutex;
use std::sync::atomic::{
    AtomicPtr, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

/// A registered buffer of this PE.
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    /// The address of its first byte, by which the program knows it.
    pub start: usize,
    /// Its size in bytes.
    pub nbytes: usize,
    /// The address of its first byte in the heap.
    pub in_heap: usize,
    /// Its number, the same on all PEs.
    pub number: usize,
    /// Its images: those of the heap if it is at the same offset on all PEs.
    pub images: &'static Images,
}

/// The lowest bit of the number of a buffer in [`Buffer::place_on_all_pes`], where it begins at 1.
/// No segment has as many bytes.
pub(super) const NUMBER: u32 = 48;

impl Buffer {
    /// Returns true if the buffer is at the same offset of the heap on all PEs.
    pub(super) fn is_same_on_all(&self) -> bool {
        self.images.are_equal()
    }

    /// Returns a number of a byte of the buffer that no other place has, the same on all PEs.
    pub(super) fn place_on_all_pes(&self, addr: usize) -> usize {
        (self.number + 1) << NUMBER | (addr - self.start)
    }
}

fn contains(start: usize, length: usize, addr: usize, nbytes: usize) -> bool {
    let distance = addr.wrapping_sub(start);
    distance < length && nbytes <= length - distance
}

/// The registered buffers of a PE.
#[derive(Debug)]
pub struct RegisteredBuffers {
    /// The number of buffers. If there is none, an access searches no table.
    n: AtomicUsize,
    /// The number of changes. Its lowest bit says which table is in use.
    version: AtomicUsize,
    tables: [AtomicPtr<Table>; 2],
    /// The row that was found last, or null. It may be one of an earlier table.
    last: AtomicPtr<Row>,
    changing: Mutex<()>,
}

/// Buffers by ascending addresses. Relaxed, all of it: the version orders readers and changes.
#[derive(Debug)]
struct Table {
    n: AtomicUsize,
    rows: Box<[Row]>,
}

#[derive(Debug)]
struct Row {
    /// The version of the table that has the row.
    version: AtomicUsize,
    start: AtomicUsize,
    nbytes: AtomicUsize,
    in_heap: AtomicUsize,
    number: AtomicUsize,
    images: AtomicPtr<Images>,
}

impl RegisteredBuffers {
    /// Returns no buffers.
    pub const fn new() -> RegisteredBuffers {
        RegisteredBuffers {
            n: AtomicUsize::new(0),
            version: AtomicUsize::new(0),
            tables: [const { AtomicPtr::new(null_mut()) }; 2],
            last: AtomicPtr::new(null_mut()),
            changing: Mutex::new(()),
        }
    }

    /// Returns true if there is a buffer.
    #[inline(always)]
    pub fn are_any(&self) -> bool {
        self.n.load(Relaxed) != 0
    }

    /// Returns the address in the heap of `nbytes` bytes at `addr`, and the images of their buffer,
    /// if it is the one that was found last.
    #[inline(always)]
    pub fn find_last(&self, addr: usize, nbytes: usize) -> Option<(usize, &'static Images)> {
        let version = self.version.load(Acquire);
        // SAFETY: null, or a row of a table; tables are never freed.
        let row = unsafe { self.last.load(Relaxed).as_ref() }?;
        let distance = addr.wrapping_sub(row.start.load(Relaxed));
        let length = row.nbytes.load(Relaxed);
        if row.version.load(Relaxed) != version || distance >= length || nbytes > length - distance
        {
            return None;
        }
        let in_heap = row.in_heap.load(Relaxed) + distance;
        let images = row.images.load(Relaxed);

        // As in `find`.
        fence(Acquire);
        if self.version.load(Relaxed) != version {
            return None;
        }
        // SAFETY: `replace` has stored a reference that is valid forever.
        Some((in_heap, unsafe { &*images }))
    }

    /// Returns the buffer that holds `nbytes` bytes at `addr`; `None` if none holds them all.
    pub fn find(&self, addr: usize, nbytes: usize) -> Option<Buffer> {
        loop {
            let version = self.version.load(Acquire);
            // SAFETY: null, or a table that `replace` has stored; tables are never freed.
            let table = unsafe { self.tables[version % 2].load(Acquire).as_ref() }?;
            let row = table.search(addr, nbytes);
            let values = row.map(Row::load);

            // The loads of the search come first: a value that a change has stored shows the
            // version of that change.
            fence(Acquire);
            if self.version.load(Relaxed) != version {
                continue;
            }
            let ([start, nbytes, in_heap, number], images) = values?;
            self.last.store(
                row.map_or(null_mut(), |row| from_ref(row).cast_mut()),
                Relaxed,
            );
            return Some(Buffer {
                start,
                nbytes,
                in_heap,
                number,
                // SAFETY: `replace` has stored a reference that is valid forever.
                images: unsafe { &*images },
            });
        }
    }

    /// Returns the buffer that holds the byte at an address in the heap; `None` if there is none.
    pub fn find_in_heap(&self, addr: usize) -> Option<Buffer> {
        let slot = self.version.load(Acquire) % 2;
        // SAFETY: as in `find`.
        let table = unsafe { self.tables[slot].load(Acquire).as_ref() }?;
        let holds =
            |row: &&Row| contains(row.in_heap.load(Relaxed), row.nbytes.load(Relaxed), addr, 1);
        let row = table.rows.iter().take(table.n.load(Relaxed)).find(holds)?;
        self.find(row.start.load(Relaxed), 1)
    }

    /// Replaces all buffers. No thread uses one that is left out or moved.
    pub fn replace(&self, buffers: &[Buffer]) {
        let _changing = lock(&self.changing);
        let mut sorted = buffers.to_vec();
        sorted.sort_unstable_by_key(|buffer| buffer.start);

        let version = self.version.load(Relaxed) + 1;
        let place = &self.tables[version % 2];
        // SAFETY: null, or a table that an earlier call has stored; tables are never freed.
        let mut table = unsafe { place.load(Relaxed).as_ref() };
        if table.is_none_or(|table| table.rows.len() < sorted.len()) {
            // Readers may still search the smaller table, so it stays. All such tables together
            // are no larger than this one.
            let n_rows = sorted.len().next_power_of_two().max(16);
            let larger: &Table = Box::leak(Box::new(Table::new(n_rows)));
            place.store(from_ref(larger).cast_mut(), Release);
            table = Some(larger);
        }

        // A reader that sees one of the stores below, behind its fence sees that the version is
        // not the one before the last any more.
        fence(Release);
        if let Some(table) = table {
            table.n.store(sorted.len(), Relaxed);
            for (row, buffer) in table.rows.iter().zip(&sorted) {
                row.store(version, buffer);
            }
        }
        self.version.store(version, Release);
        self.n.store(sorted.len(), Relaxed);
    }
}

impl Default for RegisteredBuffers {
    fn default() -> Self {
        RegisteredBuffers::new()
    }
}

impl Table {
    fn new(n_rows: usize) -> Table {
        Table {
            n: AtomicUsize::new(0),
            rows: (0..n_rows).map(|_| Row::none()).collect(),
        }
    }

    /// Returns the row that holds the bytes. It has a meaning if no change has overlapped the
    /// search.
    fn search(&self, addr: usize, nbytes: usize) -> Option<&Row> {
        let n = self.n.load(Relaxed).min(self.rows.len());
        let rows = &self.rows[..n];
        let after = rows.partition_point(|row| row.start.load(Relaxed) <= addr);
        let row = &rows[after.checked_sub(1)?];
        row.holds(addr, nbytes).then_some(row)
    }
}

impl Row {
    fn none() -> Row {
        Row {
            version: AtomicUsize::new(0),
            start: AtomicUsize::new(0),
            nbytes: AtomicUsize::new(0),
            in_heap: AtomicUsize::new(0),
            number: AtomicUsize::new(0),
            images: AtomicPtr::new(null_mut()),
        }
    }

    fn holds(&self, addr: usize, nbytes: usize) -> bool {
        contains(
            self.start.load(Relaxed),
            self.nbytes.load(Relaxed),
            addr,
            nbytes,
        )
    }

    fn load(&self) -> ([usize; 4], *mut Images) {
        let numbers = [&self.start, &self.nbytes, &self.in_heap, &self.number];
        (
            numbers.map(|number| number.load(Relaxed)),
            self.images.load(Relaxed),
        )
    }

    fn store(&self, version: usize, buffer: &Buffer) {
        self.version.store(version, Relaxed);
        self.start.store(buffer.start, Relaxed);
        self.nbytes.store(buffer.nbytes, Relaxed);
        self.in_heap.store(buffer.in_heap, Relaxed);
        self.number.store(buffer.number, Relaxed);
        self.images
            .store(from_ref(buffer.images).cast_mut(), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    static IMAGES: Images = Images::of_constants();

    fn buffer(start: usize, nbytes: usize, in_heap: usize) -> Buffer {
        Buffer {
            start,
            nbytes,
            in_heap,
            number: start,
            images: &IMAGES,
        }
    }

    #[test]
    fn bytes_are_found_in_the_buffer_that_holds_them_all() {
        let buffers = RegisteredBuffers::new();
        assert!(!buffers.are_any() && buffers.find(100, 1).is_none());

        buffers.replace(&[buffer(1000, 50, 7), buffer(100, 20, 8), buffer(1050, 10, 9)]);
        let found = |addr, nbytes| {
            let found = buffers.find(addr, nbytes)?;
            let last = buffers.find_last(addr, nbytes).map(|(in_heap, _)| in_heap);
            assert_eq!(last, Some(found.in_heap + (addr - found.start)));
            assert!(buffers.find_last(found.start + found.nbytes, 1).is_none());
            assert!(buffers.find_last(addr, found.nbytes + 1).is_none());
            Some(found.in_heap)
        };
        assert!(buffers.are_any());
        for _ in 0..2 {
            assert_eq!(found(100, 20), Some(8));
            assert_eq!(found(119, 1), Some(8));
            assert_eq!(found(1049, 1), Some(7));
            assert_eq!(found(1050, 10), Some(9));
            for (addr, nbytes) in [
                (99, 1),
                (120, 1),
                (119, 2),
                (1049, 2),
                (1060, 1),
                (100, usize::MAX),
            ] {
                assert_eq!(found(addr, nbytes), None, "{nbytes} bytes at {addr}");
            }
        }

        // The row that was found last is one of the table before, and of the one before that.
        for in_heap in [5000, 6000] {
            buffers.replace(&[buffer(1000, 50, in_heap)]);
            assert!(buffers.find_last(1000, 1).is_none());
        }
        assert_eq!(found(1000, 1), Some(6000));
        buffers.replace(&[]);
        assert!(!buffers.are_any() && buffers.find(1000, 1).is_none());
        assert!(buffers.find_last(1000, 1).is_none());
    }

    /// A reader never sees a mixture of two tables, also while they grow and shrink.
    #[test]
    fn a_search_that_overlaps_a_change_finds_a_whole_row() {
        let buffers = RegisteredBuffers::new();
        let is_done = AtomicBool::new(false);
        let table = |round: usize| {
            let n = 1 + round * 7 % 100;
            (0..n)
                .map(|i| buffer(1000 * (i + 1), 100 + round % 50, round))
                .collect::<Vec<_>>()
        };
        buffers.replace(&table(0));

        thread::scope(|scope| {
            let readers = [3, 77].map(|start| {
                let (buffers, is_done) = (&buffers, &is_done);
                scope.spawn(move || {
                    let mut n_found = 0;
                    let mut next = start;
                    while !is_done.load(Relaxed) || n_found == 0 {
                        next = next * 31 % 100;
                        let addr = 1000 * (next % 3 + 1);
                        if let Some(found) = buffers.find(addr, 1) {
                            assert_eq!((found.start, found.number), (addr, addr));
                            assert_eq!(found.nbytes, 100 + found.in_heap % 50);
                            n_found += 1;
                        }
                        if let Some((in_heap, _)) = buffers.find_last(addr + 99, 1) {
                            assert!((99..20_099).contains(&in_heap), "{in_heap}");
                        }
                    }
                })
            });
            for round in 0..20_000 {
                buffers.replace(&table(round));
            }
            is_done.store(true, Relaxed);
            for reader in readers {
                reader.join().expect("whole rows");
            }
        });
    }
}
