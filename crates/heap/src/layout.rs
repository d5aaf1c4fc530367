//! The locations of the parts of a PE's slice, which are the same on every PE, so that offsets are
//! symmetric.

use crate::huge_pages::PageSize;

/// Bytes of the largest normal page of the supported platforms.
const PAGE: usize = 64 << 10;

/// The bytes of a heap beyond `SHMEM_SYMMETRIC_SIZE`, for the data of the allocator: more than it
/// needs, so that one `shmem_malloc` of the whole size succeeds.
const ALLOCATOR_OVERHEAD: usize = 4 << 10;

/// The offset of the PEs' static data in a node's memory: behind all slices, since it must be known
/// before the size of the slices is. So the slices are at most this large: half of the addresses
/// that a process of `x86_64` usually has. The gap takes no memory.
pub(crate) const STATICS_OFFSET: u64 = 1 << 46;

/// The parts of one PE's slice: the heap, a gap that is never used, the library's internal area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    page: PageSize,
    heap_bytes: usize,
    internal_offset: usize,
    internal_bytes: usize,
    stride: usize,
}

impl Layout {
    /// Returns the layout for a heap of `symmetric_size` bytes (OpenSHMEM 1.6,
    /// `SHMEM_SYMMETRIC_SIZE`) and an internal area of `internal_bytes`; the heap may consist of
    /// pages of size `page`. `None` when no address space can hold it.
    pub fn new(symmetric_size: u64, internal_bytes: usize, page: PageSize) -> Option<Layout> {
        let size = usize::try_from(symmetric_size).ok()?;
        let heap_bytes = match size {
            0 => 0,
            _ => size
                .checked_add(ALLOCATOR_OVERHEAD)?
                .checked_next_multiple_of(PAGE)?,
        };

        // An unused page separates the parts. The internal area begins at a page of the heap's
        // size, so that all of the heap's last page can be mapped from another file.
        let internal_offset = heap_bytes
            .checked_add(PAGE)?
            .checked_next_multiple_of(page.nbytes())?;
        let internal_bytes = internal_bytes.checked_next_multiple_of(PAGE)?;

        let stride = internal_offset
            .checked_add(internal_bytes)?
            .checked_next_power_of_two()?;

        Some(Layout {
            page,
            heap_bytes,
            internal_offset,
            internal_bytes,
            stride,
        })
    }

    /// Returns the bytes of the heap, allocator's overhead included; 0 if the user wants no heap.
    pub fn heap_bytes(&self) -> usize {
        self.heap_bytes
    }

    /// Returns the size of the pages of which the heap may consist.
    pub fn page(&self) -> PageSize {
        self.page
    }

    /// Returns the bytes from the start of a slice to its internal area.
    pub(crate) fn internal_offset(&self) -> usize {
        self.internal_offset
    }

    /// Returns the bytes of the internal area.
    pub fn internal_bytes(&self) -> usize {
        self.internal_bytes
    }

    /// Returns the bytes from one PE's slice to the next: a power of two. Slices start at multiples
    /// of it in every process, so that any alignment up to it gives the same offsets on all PEs.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Returns the largest `SHMEM_SYMMETRIC_SIZE`, in whole MiB, with which the slices of a node
    /// with `n_local` PEs can be mapped in `nbytes` bytes of addresses, wherever these begin.
    /// `None` if there is none.
    pub(crate) fn largest_symmetric_size(&self, n_local: u32, nbytes: u64) -> Option<u64> {
        // The part before the first multiple of the stride is as large as a slice at most.
        let slice = nbytes / (u64::from(n_local) + 1);
        let stride = 1usize << slice.checked_ilog2()?;
        let internal_offset = stride.checked_sub(self.internal_bytes)?;
        let internal_offset = internal_offset - internal_offset % self.page.nbytes();
        let size = internal_offset.checked_sub(PAGE + ALLOCATOR_OVERHEAD)?;
        Some(size as u64 >> 20 << 20).filter(|&size| size > 0)
    }

    /// Returns the bytes of the slices of a node with `n_local` PEs; `None` when no process can map
    /// them.
    pub fn node_bytes(&self, n_local: u32) -> Option<usize> {
        let nbytes = self.stride.checked_mul(n_local as usize)?;
        if nbytes as u64 > STATICS_OFFSET {
            return None;
        }
        Some(nbytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_size_fits_and_no_larger_one_does() {
        let layout = Layout::new(512 << 20, 3 << 20, PageSize::Mib2).expect("fits");
        for (n_local, nbytes) in [(1, 300 << 20), (2, 2 << 30), (3, 2 << 30), (64, 65 << 30)] {
            let fits = |size| {
                let layout = Layout::new(size, 3 << 20, PageSize::Mib2).expect("fits");
                layout.stride() as u64 * (u64::from(n_local) + 1) <= nbytes
            };
            let largest = layout
                .largest_symmetric_size(n_local, nbytes)
                .expect("a size");
            assert!(
                fits(largest) && !fits(largest + (4 << 20)),
                "{n_local} {nbytes} {largest}"
            );
        }
        assert_eq!(layout.largest_symmetric_size(2, 10 << 20), None);
    }

    #[test]
    fn parts_do_not_overlap_and_fit_the_stride() {
        for size in [1, 4096, 1 << 20, 512 << 20, 200 << 30, 3 << 39] {
            let l = Layout::new(size, 123_456, PageSize::Mib2).expect("fits");
            assert!(l.heap_bytes as u64 >= size + ALLOCATOR_OVERHEAD as u64);
            assert!(l.internal_offset >= l.heap_bytes + PAGE);
            assert!(l.internal_offset + l.internal_bytes <= l.stride);
            assert!(l.internal_bytes >= 123_456);
            assert!(l.stride.is_power_of_two());
        }
    }

    #[test]
    fn no_heap_is_a_heap_of_nothing() {
        assert_eq!(
            Layout::new(0, 1, PageSize::Mib2).expect("fits").heap_bytes,
            0
        );
    }

    #[test]
    fn what_fits_nowhere_is_refused() {
        assert_eq!(Layout::new(u64::MAX, 1, PageSize::Mib2), None);
        assert_eq!(Layout::new(1 << 63, 1, PageSize::Mib2), None);
        let l = Layout::new(1 << 60, 1, PageSize::Mib2).expect("fits an address");
        assert_eq!(l.node_bytes(1 << 20), None);
    }
}
