//! Maps the memory that the PEs of a node share into this PE: the slices with the heaps and
//! internal areas, the static data of peers, and the published bytes.
#![allow(unsafe_code)]

use crate::error::{Error, Operation};
use crate::hugetlb::ReservedPages;
use crate::kept_file::KeptFile;
use crate::layout::{Layout, STATICS_OFFSET};
use crate::mapping::{Mapping, omit_from_core_files};
use crate::numa;
use crate::published::PublishedBytes;
use crate::reservation::Reservation;
use crate::statics::{NodeFile, PeerStatics, Statics, Views};
use rushmem_system::limits::getrlimit;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fstat, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap};
use rustix::process::Resource;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;

/// The node's symmetric memory: a slice per PE of the node, in the order of their local numbers.
///
/// Beside the slices the static data of the peers are mapped. None of this memory is written to a
/// core file: peers' memory belongs to their own core files, and to write this PE's slice the
/// kernel would allocate every page that was never touched. (This PE's own static data are written,
/// since they are mapped elsewhere.)
#[derive(Debug)]
pub struct NodeMemory {
    mapped: Arc<Mapped>,
    base: NonNull<u8>,
    layout: Layout,
    n_local: u32,
    local: u32,
    has_reserved_pages: bool,
}

/// What is mapped of the memory of a node.
#[derive(Debug)]
struct Mapped {
    _slices: Mapping,
    statics: Views,
    published: PublishedBytes,
    file: KeptFile,
}

// SAFETY: it owns its mappings, which any thread may use and unmap.
unsafe impl Send for Mapped {}
// SAFETY: methods with `&self` compute addresses, which callers dereference at their own risk, or
// access the published bytes, which an atomic word and the contract of `publish` synchronize.
unsafe impl Sync for Mapped {}
// SAFETY: the base is an address in what is mapped, of which the same holds.
unsafe impl Send for NodeMemory {}
// SAFETY: as above.
unsafe impl Sync for NodeMemory {}

/// What the memory of a node is mapped from.
pub struct NodeMapping<'a> {
    /// The memfd that all PEs of the node inherited. Without one this process makes its own.
    pub memory: Option<OwnedFd>,
    /// The layout of each slice.
    pub layout: Layout,
    /// The number of PEs of the node.
    pub n_local: u32,
    /// The number of this PE among them.
    pub local: u32,
    /// Addresses for the slices; `None` for addresses of the kernel's choice.
    pub reserved: Option<Reservation>,
    /// The pages of which the heaps consist, if they are in a file of their own.
    pub pages: Option<&'a ReservedPages>,
    /// The number of bytes that the first PE can publish.
    pub published_bytes: usize,
    /// The static data of the program.
    pub statics: &'a Statics,
    /// The location of the static data of each PE, as that PE reports it; `None` if they are not in
    /// shared memory.
    pub peers: &'a [Option<PeerStatics>],
}

impl NodeMemory {
    /// Maps the memory of a node into one of its PEs.
    ///
    /// # Errors
    /// When the sizes are too large, the kernel refuses, or a PE's static data cannot be at the
    /// location that it reports.
    ///
    /// # Panics
    /// When `local` is not below `n_local`, or the reservation is one for other slices.
    pub fn map(mapping: NodeMapping<'_>) -> Result<NodeMemory, Error> {
        let NodeMapping {
            layout,
            n_local,
            local,
            pages,
            published_bytes,
            ..
        } = mapping;
        assert!(local < n_local, "PE {local} of {n_local} on a node");

        let slices_bytes = layout.node_bytes(n_local).ok_or(Error::TooLarge)?;
        let nbytes = PublishedBytes::range_bytes(published_bytes)
            .and_then(|range| slices_bytes.checked_add(range))
            .filter(|&nbytes| nbytes as u64 <= STATICS_OFFSET)
            .ok_or(Error::TooLarge)?;

        let memory = match mapping.memory {
            Some(inherited) => inherited,
            None => memfd_create("rushmem", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
                .map_err(|e| Error::Refused(Operation::Making, e))?,
        };
        let file_bytes = grow(&memory, nbytes as u64)?;
        // From here on no PE can make the file shorter, so no access ends a PE by SIGBUS.
        fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::GROW)
            .map_err(|e| Error::Refused(Operation::Sealing, e))?;

        let range = match mapping.reserved {
            Some(reservation) => reservation.into_range(),
            None => anywhere(&layout, n_local, slices_bytes)?,
        };
        let base = map_aligned(&memory, slices_bytes, layout.stride(), &range)?;
        if let Some(pages) = pages {
            // SAFETY: `base` is the start of the slices that were just mapped, and no address in
            // them was passed on yet. `pages` are those of `layout`.
            unsafe { map_heaps(pages, base, layout.stride(), n_local) }?;
        }
        omit_from_core_files(base.as_ptr().cast(), slices_bytes);

        let node_file = NodeFile {
            memory: memory.as_fd(),
            nbytes: file_bytes,
        };
        let statics = Views::map(node_file, mapping.statics, mapping.peers, local)?;

        let behind_slices = slices_bytes as u64;
        let published =
            PublishedBytes::map(memory.as_fd(), behind_slices, published_bytes, local == 0)?;
        Ok(NodeMemory {
            mapped: Arc::new(Mapped {
                _slices: range,
                statics,
                published,
                file: KeptFile::new(memory).map_err(|e| Error::Refused(Operation::Looking, e))?,
            }),
            base,
            layout,
            n_local,
            local,
            has_reserved_pages: pages.is_some(),
        })
    }

    /// Returns the same memory, at the same addresses, as the node's PE number `local` sees it: for
    /// several PEs in one process, which have no static data in it.
    ///
    /// # Panics
    /// When there is no such PE.
    pub fn of_peer(&self, local: u32) -> NodeMemory {
        assert!(local < self.n_local, "PE {local} of {}", self.n_local);
        NodeMemory {
            mapped: Arc::clone(&self.mapped),
            local,
            ..*self
        }
    }

    /// Returns the layout of a slice.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the start of this PE's heap, `layout().heap_bytes()` long.
    pub fn heap(&self) -> *mut u8 {
        self.slice()
    }

    /// Returns the start of this PE's internal area, `layout().internal_bytes()` long.
    pub fn internal(&self) -> *mut u8 {
        self.slice().wrapping_add(self.layout.internal_offset())
    }

    /// Returns the number that, added to an address in this PE's slice, gives the corresponding
    /// address in the slice of the node's PE number `local`.
    pub fn delta(&self, local: u32) -> isize {
        (local as isize - self.local as isize) * self.layout.stride() as isize
    }

    /// Returns the number that, added to the address of a static variable of this PE, gives the
    /// address of the same variable of the node's PE number `local`; `None` if that is not mapped.
    pub fn statics_delta(&self, local: u32) -> Option<isize> {
        if local == self.local {
            Some(0)
        } else {
            self.mapped.statics.delta(local)
        }
    }

    /// Publishes bytes for all PEs of the node.
    ///
    /// # Panics
    /// When this is not the first PE of the node, or there is no room for them.
    ///
    /// # Safety
    /// No PE of the node still uses the bytes of an earlier call.
    pub unsafe fn publish(&self, bytes: &[u8]) {
        assert_eq!(self.local, 0, "the first PE of a node publishes");
        // SAFETY: this is the first PE, as just checked; the rest is this function's contract.
        unsafe { self.mapped.published.publish(bytes) };
    }

    /// Waits until the first PE of the node publishes again after the last call. Returns the
    /// published bytes. Each PE of the node calls this as often as the first one publishes.
    pub fn await_published(&self) -> &[u8] {
        self.mapped.published.wait()
    }

    /// Makes the kernel take the pages of this PE's slice from the memory of NUMA node `node`, also
    /// those that a peer touches first. Pages that exist already do not move.
    ///
    /// # Errors
    /// When the kernel refuses, as in many containers. The memory can still be used, but may be
    /// farther away.
    pub fn prefer_numa_node(&self, node: u32) -> Result<(), Errno> {
        let start = NonNull::new(self.slice()).ok_or(Errno::FAULT)?;
        numa::prefer(start, self.layout.stride(), node)
    }

    /// Returns true if the heaps consist of huge pages that the administrator has reserved.
    pub fn has_reserved_pages(&self) -> bool {
        self.has_reserved_pages
    }

    /// Returns the offset in the node's memory of an address in this PE's slice; `None` for another
    /// address, and for a heap of reserved pages, which is in a file of its own.
    pub fn offset(&self, address: *const u8) -> Option<u64> {
        let from_slice = address.addr().checked_sub(self.slice().addr())?;
        if self.has_reserved_pages && from_slice < self.layout.heap_bytes() {
            return None;
        }
        if from_slice >= self.layout.stride() {
            return None;
        }

        let before = self.local as usize * self.layout.stride();
        Some((before + from_slice) as u64)
    }

    /// Returns the file that contains the slices; `None` if the program has closed its descriptor.
    pub fn file(&self) -> Option<BorrowedFd<'_>> {
        self.mapped.file.descriptor()
    }

    /// Returns the number of PEs of the node.
    pub fn n_local(&self) -> u32 {
        self.n_local
    }

    /// Returns the addresses of all slices.
    pub fn slices(&self) -> Range<usize> {
        let start = self.base.addr().get();
        start..start + self.n_local as usize * self.layout.stride()
    }

    /// Returns the address of the `nbytes` bytes at an offset in the node's memory; `None` if they
    /// do not lie within the slices.
    pub fn at(&self, offset: u64, nbytes: usize) -> Option<*mut u8> {
        let slices_bytes = self.layout.node_bytes(self.n_local)?;
        let offset = usize::try_from(offset).ok()?;
        if offset.checked_add(nbytes)? > slices_bytes {
            return None;
        }
        Some(self.base.as_ptr().wrapping_add(offset))
    }

    fn slice(&self) -> *mut u8 {
        self.base
            .as_ptr()
            .wrapping_add(self.local as usize * self.layout.stride())
    }
}

/// Makes the node's file at least `nbytes` long. Returns its size in bytes.
///
/// All PEs of the node request the same size, so the first one sets it. If static data are stored
/// behind the slices already, the file is larger, and stays so.
fn grow(memory: &OwnedFd, nbytes: u64) -> Result<u64, Error> {
    let size = fstat(memory)
        .map_err(|e| Error::Refused(Operation::Looking, e))?
        .st_size as u64;
    if size >= nbytes {
        return Ok(size);
    }

    // Above this limit the kernel would end the process by SIGXFSZ, without a message.
    if let Some(limit) = getrlimit(Resource::Fsize).current
        && limit < nbytes
    {
        return Err(Error::FileSize {
            needed: nbytes,
            limit,
        });
    }

    ftruncate(memory, nbytes).map_err(|e| Error::Refused(Operation::Sizing, e))?;
    Ok(nbytes)
}

/// Reserves a range, at an address of the kernel's choice, that has room for the `nbytes` bytes of
/// all slices from a multiple of their distance on.
fn anywhere(layout: &Layout, n_local: u32, nbytes: usize) -> Result<Mapping, Error> {
    let nbytes = nbytes.checked_add(layout.stride()).ok_or(Error::TooLarge)?;
    Mapping::new(nbytes, ProtFlags::empty()).map_err(|error| {
        let limit = getrlimit(Resource::As).current;
        match limit.filter(|_| error == Errno::NOMEM) {
            Some(limit) => {
                let left = limit.saturating_sub(mapped_bytes());
                Error::Addresses {
                    needed: nbytes as u64,
                    left,
                    largest: layout.largest_symmetric_size(n_local, left),
                }
            }
            None => Error::Refused(Operation::MappingSlices, error),
        }
    })
}

/// Returns how many bytes of addresses this process has mapped; 0 if /proc does not tell.
fn mapped_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').next().and_then(|n| n.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

/// Maps `memory` at the first multiple of `alignment`, a power of two, in a range that is reserved
/// for it.
///
/// # Panics
/// When the range has no room for that.
fn map_aligned(
    memory: &impl AsFd,
    nbytes: usize,
    alignment: usize,
    reserved: &Mapping,
) -> Result<NonNull<u8>, Error> {
    let start = reserved.start();
    let padding = start.addr().next_multiple_of(alignment) - start.addr();
    assert!(
        padding + nbytes <= reserved.nbytes(),
        "{nbytes} bytes in {reserved:?}"
    );

    let base = start.wrapping_byte_add(padding);

    // SAFETY: `base` to `base + nbytes` lies in `reserved`, as just checked, a range without
    // access, which is replaced.
    let mapped = unsafe {
        mmap(
            base,
            nbytes,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED | MapFlags::FIXED | MapFlags::NORESERVE,
            memory,
            0,
        )
    }
    .map_err(|e| Error::Refused(Operation::MappingSlices, e))?;
    NonNull::new(mapped.cast()).ok_or(Error::Refused(Operation::MappingSlices, Errno::NOMEM))
}

/// Maps reserved pages as the heaps at the starts of the `n_local` slices from `base` on, which
/// start `stride` bytes apart.
///
/// # Safety
/// The slices are mapped there, nobody uses them, and the caller may replace their pages. `pages`
/// were reserved for the layout of the slices, so that a heap ends before its internal area.
unsafe fn map_heaps(
    pages: &ReservedPages,
    base: NonNull<u8>,
    stride: usize,
    n_local: u32,
) -> Result<(), Error> {
    for local in 0..n_local {
        let heap = base.as_ptr().wrapping_add(local as usize * stride);
        // SAFETY: `pages` are of this layout, so the range is within a slice, which the caller may
        // replace, as it promises.
        unsafe { pages.map(heap.cast(), local) }
            .map_err(|e| Error::Refused(Operation::MappingSlices, e))?;
    }
    Ok(())
}

#[cfg(test)]
#[expect(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof serves them all"
)]
mod tests {
    use super::*;
    use crate::huge_pages::{self, HUGE, PageSize};
    use crate::reservation;
    use crate::statics::StaticSlots;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::time::Duration;

    fn map(
        memory: Option<OwnedFd>,
        layout: Layout,
        n_local: u32,
        local: u32,
    ) -> Result<NodeMemory, Error> {
        NodeMemory::map(NodeMapping {
            memory,
            layout,
            n_local,
            local,
            reserved: None,
            pages: None,
            published_bytes: 100,
            statics: &Statics::of_program(),
            peers: &[],
        })
    }

    #[test]
    fn slices_are_shared_and_aligned() {
        let layout = Layout::new(1 << 20, 1 << 16, PageSize::Mib2).expect("fits");
        let fd = memfd_create("test", MemfdFlags::ALLOW_SEALING).expect("a memfd");
        let again = fd.try_clone().expect("a descriptor");
        let one = map(Some(fd), layout, 3, 1).expect("mapped");
        let two = map(Some(again), layout, 3, 2).expect("mapped");

        assert_eq!(one.heap().addr() % layout.stride(), 0);
        assert_ne!(one.heap(), two.heap());

        // SAFETY: PE 2's slice as PE 1 has it mapped, 4 bytes at offset 8 of a heap of 1 MiB.
        unsafe {
            one.heap()
                .wrapping_offset(one.delta(2) + 8)
                .cast::<u32>()
                .write(77)
        };
        // SAFETY: PE 2's own slice, the same offset.
        assert_eq!(unsafe { two.heap().add(8).cast::<u32>().read() }, 77);
        // SAFETY: PE 1's own slice was not written.
        assert_eq!(unsafe { one.heap().add(8).cast::<u32>().read() }, 0);
        assert_eq!(one.delta(1), 0);

        let offset = two
            .offset(two.heap().wrapping_add(8))
            .expect("in its slice");
        let found = one.at(offset, 4).expect("within the slices");
        // SAFETY: the same 4 bytes of PE 2.
        assert_eq!(unsafe { found.cast::<u32>().read() }, 77);
        assert_eq!(two.offset(two.heap().wrapping_offset(two.delta(1))), None);
        assert_eq!(one.at(3 * layout.stride() as u64 - 3, 4), None);
    }

    #[test]
    fn the_own_slice_is_where_it_was_reserved() {
        let _alone = reservation::tests::alone();
        let layout = Layout::new(1 << 24, 1 << 16, PageSize::Mib2).expect("fits");
        let mut reserved = Reservation::all(&layout, 3, 2);
        let reservation = reserved.pop().expect("a free range");
        let slice = reservation.slice();

        let mapped = NodeMemory::map(NodeMapping {
            memory: None,
            layout,
            n_local: 3,
            local: 2,
            reserved: Some(reservation),
            pages: None,
            published_bytes: 0,
            statics: &Statics::of_program(),
            peers: &[],
        });
        let mapped = mapped.expect("mapped");
        assert_eq!(mapped.heap().addr(), slice);
        // SAFETY: the first 4 bytes of PE 0's slice.
        unsafe {
            mapped
                .heap()
                .wrapping_offset(mapped.delta(0))
                .cast::<u32>()
                .write(77)
        };
    }

    #[test]
    fn what_is_published_is_read_in_place() {
        let layout = Layout::new(1 << 20, 1 << 16, PageSize::Mib2).expect("fits");
        let fd = memfd_create("test", MemfdFlags::ALLOW_SEALING).expect("a memfd");
        let again = fd.try_clone().expect("a descriptor");
        let first = map(Some(fd), layout, 3, 0).expect("mapped");
        let other = map(Some(again), layout, 3, 2).expect("mapped");

        let reader = std::thread::spawn(move || {
            let seen = other.await_published().to_vec();
            (other, seen)
        });

        // SAFETY: nothing was published before.
        unsafe { first.publish(b"once") };
        assert_eq!(first.await_published(), b"once");
        let (other, seen) = reader.join().expect("no panic");
        assert_eq!(seen, b"once");

        // SAFETY: nobody reads what was published before.
        unsafe { first.publish(&[7; 100]) };
        assert_eq!(other.await_published(), [7; 100]);
    }

    #[test]
    fn a_slice_prefers_its_numa_node() {
        let layout = Layout::new(1 << 20, 1 << 16, PageSize::Mib2).expect("fits");
        let mapped = map(None, layout, 2, 1).expect("mapped");
        if let Err(refused) = mapped.prefer_numa_node(0) {
            eprintln!("skipped: this kernel or container refuses mbind: {refused}");
            return;
        }

        let policy = |address: *mut u8| {
            let mut policy = -1;
            const OF_ADDRESS: libc::c_ulong = 2;
            let no_mask = std::ptr::null_mut::<libc::c_ulong>();
            // SAFETY: it writes a number and looks the address up, which is mapped.
            let status = unsafe {
                libc::syscall(
                    libc::SYS_get_mempolicy,
                    &raw mut policy,
                    no_mask,
                    0,
                    address,
                    OF_ADDRESS,
                )
            };
            assert_eq!(status, 0, "{}", std::io::Error::last_os_error());
            policy
        };

        assert_eq!(policy(mapped.heap()), libc::MPOL_PREFERRED);
        let first = mapped.heap().wrapping_offset(mapped.delta(0));
        assert_eq!(policy(first), libc::MPOL_DEFAULT, "that of another PE");
        assert!(mapped.prefer_numa_node(900).is_err(), "no such node");
    }

    /// Adds to words all over a heap as a peer maps it, while the heap gets huge pages.
    #[test]
    fn peers_use_memory_while_it_gets_huge_pages() {
        const N: usize = 16 * HUGE / 8;
        let layout = Layout::new(18 * HUGE as u64, 1, PageSize::Mib2).expect("fits");
        let fd = memfd_create("test", MemfdFlags::ALLOW_SEALING).expect("a memfd");
        let again = fd.try_clone().expect("a descriptor");
        let own = map(Some(fd), layout, 2, 0).expect("mapped");
        let peer = map(Some(again), layout, 2, 1).expect("mapped");

        let word = |of: &NodeMemory, i: usize| {
            let heap = of.heap().wrapping_offset(of.delta(0)).cast::<u64>();
            // SAFETY: one of the words of PE 0's heap, which are accessed atomically alone.
            unsafe { AtomicU64::from_ptr(heap.wrapping_add(i)) }
        };

        let all = || (0..N).step_by(61);
        let heap = own.heap().addr();

        let collapsed = std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    all().for_each(|i| {
                        word(&peer, i).fetch_add(1, Relaxed);
                    })
                });
            }
            huge_pages::collapse(heap..heap + 16 * HUGE, Duration::from_secs(1))
        });

        assert!(all().all(|i| word(&own, i).load(Relaxed) == 2));
        assert_eq!((1..61).map(|i| word(&own, i).load(Relaxed)).sum::<u64>(), 0);
        if let Some(why) = collapsed.why {
            eprintln!("skipped: this kernel makes no huge pages on request: {why}");
        }
    }

    #[test]
    fn nobody_can_shrink_it() {
        let layout = Layout::new(0, 1, PageSize::Mib2).expect("fits");
        let fd = memfd_create("test", MemfdFlags::ALLOW_SEALING).expect("a memfd");
        let again = fd.try_clone().expect("a descriptor");
        let _mapped = map(Some(fd), layout, 1, 0).expect("mapped");
        assert_eq!(ftruncate(&again, 0), Err(Errno::PERM));
    }

    #[test]
    fn static_data_that_cannot_be_where_a_pe_says_are_refused() {
        let layout = Layout::new(1 << 20, 1, PageSize::Mib2).expect("fits");
        let statics = Statics::of_program();
        let slots = StaticSlots::of(&statics).expect("a small program");
        let second = slots.start(1).expect("two slots");

        let map = |in_slot, file| {
            let fd = memfd_create("test", MemfdFlags::ALLOW_SEALING).expect("a memfd");
            ftruncate(&fd, second + (1 << 30)).expect("room");
            let peers = [None, Some(PeerStatics { in_slot, file })];
            let mapped = NodeMemory::map(NodeMapping {
                memory: Some(fd),
                layout,
                n_local: 2,
                local: 0,
                reserved: None,
                pages: None,
                published_bytes: 0,
                statics: &statics,
                peers: &peers,
            });
            mapped.map(drop)
        };

        let refused = |mapped: Result<(), Error>| {
            let error = mapped.expect_err("not in its place").to_string();
            assert!(error.contains("PE 1 of this node"), "{error}");
        };

        map(0, None).expect("the start of its place");
        for in_slot in [1, slots.nbytes(), !4095, 0_u64.wrapping_sub(slots.nbytes())] {
            refused(map(in_slot, None));
        }

        let nbytes = statics.nbytes() as u64;
        let file = |nbytes, seals| {
            let fd = memfd_create("test", MemfdFlags::ALLOW_SEALING).expect("a memfd");
            ftruncate(&fd, nbytes).expect("room");
            fcntl_add_seals(&fd, seals).expect("sealed");
            Some(fd)
        };

        map(4096, file(4096 + nbytes, SealFlags::SHRINK)).expect("as long as it needs");
        refused(map(4096, file(4096 + nbytes, SealFlags::empty())));
        refused(map(4096, file(nbytes, SealFlags::SHRINK)));
        refused(map(1, file(4096 + nbytes, SealFlags::SHRINK)));
        refused(map(!4095, file(nbytes, SealFlags::SHRINK)));
    }

    #[test]
    fn an_impossible_size_is_an_error() {
        let layout = Layout::new(1 << 60, 1, PageSize::Mib2).expect("fits an address");
        let error = map(None, layout, 2, 0).expect_err("no such memory");
        assert!(error.to_string().contains("address space"), "{error}");
    }
}
