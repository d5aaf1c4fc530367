//! Registered pages: pages of the program in whose place pages of a block of the heap are mapped.
//!
//! The contents move to the block, so the memory has two addresses in this process from then on:
//! the program's, and that in the heap, by which peers have had it since init. [`share`] does this,
//! [`make_private`] ends it, [`fork`] gives a child process pages of its own.
//!
//! Pages at the edge of a buffer hold other data, too, to which other threads may store at any
//! time. Such a store waits while its page is copied and replaced (`waiting_stores`).
#![allow(unsafe_code)]

mod faults;
pub mod fork;
mod waiting_stores;

use crate::node::NodeMemory;
use rushmem_system::maps::{self, Mapping};
use rushmem_system::signals::SignalMask;
use rushmem_system::thread::{first_control_block, own_stack};
use rustix::io::Errno;
use rustix::mm::{
    MapFlags, MprotectFlags, MremapFlags, ProtFlags, mmap, mmap_anonymous, mprotect, mremap_fixed,
};
use std::ffi::c_void;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::ptr::{null_mut, with_exposed_provenance_mut};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use waiting_stores::WaitingStores;

/// The bytes of a page, as the slices are mapped.
pub const PAGE: usize = 4096;

/// Maximum number of bytes that are copied before their pages are replaced, so that no more memory
/// is taken twice at any time.
const AT_ONCE: usize = 16 << 20;

/// The reason why pages cannot be registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Unsuitable {
    /// A page is not mapped for reads and writes.
    Inaccessible = 1,
    /// A page is shared with other processes already.
    Shared = 2,
    /// A page is a part of the calling thread's stack, or of that of the first thread.
    Stack = 3,
    /// A page may be executed.
    Executable = 4,
    /// A page is a huge one of `MAP_HUGETLB`, no part of which can be replaced.
    HugePage = 5,
    /// The mappings of this process cannot be read.
    Unknown = 6,
    /// A page at the edge has the control block of the first thread, to which the kernel writes.
    ControlBlock = 7,
}

/// Checks that the pages of a buffer can be registered. Those in the ranges `registered` are
/// already.
///
/// # Errors
/// If they cannot.
pub fn check(buffer: &Range<usize>, registered: &[Range<usize>]) -> Result<(), Unsuitable> {
    let text = maps::read().map_err(|_| Unsuitable::Unknown)?;
    let (pages, stack) = (around(buffer), stack_in_mapping());
    check_mapped(&pages, registered, &stack, maps::parse(&text))?;

    // A store of the kernel does not wait, and the kernel ends a process in which one fails. Stores
    // to the pages at the edges wait whenever they are replaced, also by a later call or a fork.
    if share_page_at_edge(buffer, &first_control_block()) {
        return Err(Unsuitable::ControlBlock);
    }
    Ok(())
}

/// Returns true if a page that holds bytes of a buffer and others holds some of `others`.
fn share_page_at_edge(buffer: &Range<usize>, others: &Range<usize>) -> bool {
    let pages = around(buffer);
    [pages.start, pages.end - PAGE].into_iter().any(|page| {
        let has_others = page < buffer.start || buffer.end < page + PAGE;
        has_others && page < others.end && others.start < page + PAGE
    })
}

fn check_mapped<'a>(
    pages: &Range<usize>,
    registered: &[Range<usize>],
    stack: &Range<usize>,
    mappings: impl Iterator<Item = Mapping<'a>>,
) -> Result<(), Unsuitable> {
    if pages.start < stack.end && stack.start < pages.end {
        return Err(Unsuitable::Stack);
    }
    // A coroutine has a stack of its own, which is known by its mapping alone.
    let on_stack = 0u8;
    let of_coroutine = Some((&raw const on_stack).addr()).filter(|place| !stack.contains(place));

    let mut next = pages.start;
    for mapping in mappings.skip_while(|mapping| mapping.addresses.end <= pages.start) {
        let addresses = &mapping.addresses;
        if next >= pages.end || addresses.start > next {
            break;
        }

        let part = next..addresses.end.min(pages.end);
        let is_registered = registered
            .iter()
            .any(|own| own.start <= part.start && part.end <= own.end);
        if !mapping.is_readable || !mapping.is_writable {
            return Err(Unsuitable::Inaccessible);
        }
        if mapping.is_executable {
            return Err(Unsuitable::Executable);
        }
        if mapping.is_shared && !is_registered {
            return Err(Unsuitable::Shared);
        }
        if mapping.is_first_stack || of_coroutine.is_some_and(|place| addresses.contains(&place)) {
            return Err(Unsuitable::Stack);
        }
        if mapping.path.is_some_and(is_of_huge_pages) {
            return Err(Unsuitable::HugePage);
        }
        next = addresses.end;
    }

    if next < pages.end {
        return Err(Unsuitable::Inaccessible);
    }
    Ok(())
}

/// Returns the stack of the calling thread, whose mapping may have other memory, too: the kernel
/// makes neighbors one mapping. No bytes for the first thread, which has a mapping that is named,
/// and if the stack cannot be found.
fn stack_in_mapping() -> Range<usize> {
    if rustix::thread::gettid() == rustix::process::getpid() {
        return 0..0;
    }
    own_stack()
}

/// Returns true for the name that the kernel gives the anonymous mappings of `MAP_HUGETLB`.
fn is_of_huge_pages(path: &Path) -> bool {
    path.as_os_str()
        .as_encoded_bytes()
        .starts_with(b"/anon_hugepage")
}

/// Returns the parts of pages in whose place the node's memory is still mapped, from this offset
/// on. The program may have unmapped others, and have mapped something else there. `mappings` are
/// those of this process, by ascending addresses.
pub fn still_shared(
    mappings: &[Mapping<'_>],
    pages: &Range<usize>,
    offset: u64,
) -> Vec<Range<usize>> {
    let first = mappings.partition_point(|mapping| mapping.addresses.end <= pages.start);
    let mut parts: Vec<Range<usize>> = Vec::new();
    for mapping in &mappings[first..] {
        let addresses = &mapping.addresses;
        if addresses.start >= pages.end {
            break;
        }

        let is_memfd = mapping
            .path
            .is_some_and(|path| path.as_os_str().as_encoded_bytes().starts_with(b"/memfd:"));
        let part = addresses.start.max(pages.start)..addresses.end.min(pages.end);
        let in_file = mapping.offset + (part.start - addresses.start) as u64;
        let expected = offset + (part.start - pages.start) as u64;
        if !mapping.is_shared || !is_memfd || in_file != expected {
            continue;
        }

        match parts.last_mut() {
            Some(last) if last.end == part.start => last.end = part.end,
            _ => parts.push(part),
        }
    }
    parts
}

/// Returns the pages that hold these bytes.
pub fn around(bytes: &Range<usize>) -> Range<usize> {
    bytes.start / PAGE * PAGE..bytes.end.next_multiple_of(PAGE)
}

/// Moves the contents of pages to the block at `block`, and maps the pages of the block in their
/// place.
///
/// # Safety
/// The pages are mapped for reads and writes. During the call no thread writes `unused`, which is a
/// part of them. `block` has as many bytes, begins at a page and is in the slice of this PE, and
/// nobody uses it, unless it is what is mapped in place of the pages now.
///
/// # Errors
/// When the kernel refuses, or the program has closed the file of the slices.
pub unsafe fn share(
    memory: &NodeMemory,
    pages: &Range<usize>,
    unused: &Range<usize>,
    block: *mut u8,
) -> Result<(), NotShared> {
    let refused = |why, end| NotShared {
        why,
        replaced: pages.start..end,
    };
    let file = memory
        .file()
        .ok_or_else(|| refused(Errno::BADF, pages.start))?;
    let offset = memory
        .offset(block)
        .ok_or_else(|| refused(Errno::NOTSUP, pages.start))?;

    for part in parts(pages, unused) {
        let distance = part.pages.start - pages.start;
        let copy = block.wrapping_add(distance);
        // SAFETY: `copy` has as many bytes; the rest is this function's contract.
        unsafe {
            part.replace(copy, |place| {
                map_file(
                    place,
                    part.pages.len(),
                    file,
                    offset + distance as u64,
                    MapFlags::SHARED,
                )
            })
        }
        .map_err(|why| refused(why, part.pages.start))?;
    }
    announce(pages);
    divide(pages);
    Ok(())
}

/// The error of [`share`].
#[derive(Debug)]
pub struct NotShared {
    /// What the kernel says.
    pub why: Errno,
    /// The pages that were replaced before. The others are as they were; all have their contents.
    pub replaced: Range<usize>,
}

/// Makes the last one of shared pages a mapping of its own, by an advice that has no effect on
/// memory without a disk. Where the program has the allocator of the C library enlarge a buffer,
/// the kernel would otherwise enlarge the mapping, by pages of the heap that are in other blocks.
/// It refuses this for a part of two mappings, and the allocator copies the buffer.
fn divide(pages: &Range<usize>) {
    if pages.len() > PAGE {
        let last = with_exposed_provenance_mut(pages.end - PAGE);
        // SAFETY: a page of shared memory, which the advice does not change.
        unsafe { libc::madvise(last, PAGE, libc::MADV_RANDOM) };
    }
}

/// Gives the program private pages with the same contents again. After an error, some pages were
/// replaced and others not; all have their contents.
///
/// # Safety
/// The pages are shared memory, and no thread writes `unused`, which is a part of them, meanwhile.
///
/// # Errors
/// When the kernel refuses.
pub unsafe fn make_private(pages: &Range<usize>, unused: &Range<usize>) -> Result<(), Errno> {
    announce(pages);
    for part in parts(pages, unused) {
        let nbytes = part.pages.len();
        let private = private_pages(nbytes)?;
        // SAFETY: the new pages have as many bytes; the rest is this function's contract.
        unsafe { part.replace(private.cast(), |place| move_pages(private, nbytes, place)) }?;
    }
    Ok(())
}

/// Pages that are replaced together.
#[derive(Debug, PartialEq, Eq)]
struct Part {
    pages: Range<usize>,
    /// True if they hold bytes to which other threads may store.
    has_others: bool,
}

/// Returns the parts of pages, of which no thread writes `unused`.
fn parts(pages: &Range<usize>, unused: &Range<usize>) -> Vec<Part> {
    let start = unused.start.next_multiple_of(PAGE);
    let end = unused.end / PAGE * PAGE;
    let inner = if start < end {
        start..end
    } else {
        pages.end..pages.end
    };

    let mut parts = Vec::new();
    for (range, has_others) in [
        (pages.start..inner.start, true),
        (inner.clone(), false),
        (inner.end..pages.end, true),
    ] {
        for start in range.clone().step_by(AT_ONCE) {
            let pages = start..range.end.min(start + AT_ONCE);
            parts.push(Part { pages, has_others });
        }
    }
    parts
}

impl Part {
    /// Copies the pages to `copy`, and has `map` map the copy in their place, while stores of other
    /// threads wait.
    ///
    /// # Safety
    /// The pages are mapped, and `copy` has as many bytes, which no other thread uses. If the pages
    /// have no other data, no thread writes them.
    unsafe fn replace(
        &self,
        copy: *mut u8,
        map: impl FnOnce(*mut u8) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let nbytes = self.pages.len();
        if !self.has_others {
            make_accessible(&self.pages)?;
            let place = with_exposed_provenance_mut::<u8>(self.pages.start);
            // SAFETY: both have that many bytes, and nobody writes them, by contract.
            unsafe { std::ptr::copy(place, copy, nbytes) };
            return map(place);
        }
        replace_while_stores_wait(&self.pages, |place| {
            // SAFETY: whole pages, and as many bytes at `copy`, by contract.
            unsafe { copy_words(copy.cast(), place.cast(), nbytes / size_of::<u64>()) };
            map(place)
        })
    }
}

/// Has `replace` copy mapped pages and map the copy in their place, while stores of other threads
/// wait. In between, this thread must not store to the pages either, where the data of the
/// allocator of the program may be: it makes only system calls, and handles no signal.
fn replace_while_stores_wait(
    pages: &Range<usize>,
    replace: impl FnOnce(*mut u8) -> Result<(), Errno>,
) -> Result<(), Errno> {
    make_accessible(pages)?;
    let signals = SignalMask::block();
    let replaced = WaitingStores::of(pages).and_then(|waiting| {
        let replaced = replace(with_exposed_provenance_mut(pages.start));
        waiting.end(replaced.is_ok());
        replaced
    });
    signals.restore();
    replaced
}

/// Makes pages readable and writable. The program may have protected pages of its buffer since they
/// were registered.
fn make_accessible(pages: &Range<usize>) -> Result<(), Errno> {
    let start = with_exposed_provenance_mut(pages.start);
    // SAFETY: mapped pages, whose contents stay. Nobody relies on faults of accesses to them.
    unsafe {
        mprotect(
            start,
            pages.len(),
            MprotectFlags::READ | MprotectFlags::WRITE,
        )
    }
}

/// Copies words by loads that are not reported: AddressSanitizer would report those of `memcpy`
/// between the blocks of the program.
///
/// # Safety
/// Both are valid for `n` words and aligned.
unsafe fn copy_words(to: *mut u64, from: *mut u64, n: usize) {
    for i in 0..n {
        // SAFETY: one of the words at `from`, valid and aligned by contract. Relaxed: the kernel
        // orders the copy after the stores of other threads, which wait from then on.
        let word = unsafe { AtomicU64::from_ptr(from.wrapping_add(i)) }.load(Relaxed);
        // SAFETY: one of the words at `to`, valid and aligned by contract.
        unsafe { AtomicU64::from_ptr(to.wrapping_add(i)) }.store(word, Relaxed);
    }
}

/// Shows the libraries of networks that pages of shared memory are others than before, so that they
/// forget what they have registered: they watch this function of the C library. It changes nothing,
/// since the file keeps the contents.
///
/// The pages themselves are replaced by system calls that nobody watches: what a library does then
/// may change the data of `malloc`, perhaps in these pages.
fn announce(pages: &Range<usize>) {
    let start = with_exposed_provenance_mut(pages.start);
    // SAFETY: on shared memory, the advice drops no contents.
    unsafe { libc::madvise(start, pages.len(), libc::MADV_DONTNEED) };
}

/// Maps a part of a file in place of `nbytes` bytes of pages.
fn map_file(
    place: *mut u8,
    nbytes: usize,
    file: BorrowedFd<'_>,
    offset: u64,
    sharing: MapFlags,
) -> Result<(), Errno> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let flags = sharing | MapFlags::FIXED | MapFlags::NORESERVE;
    // SAFETY: the call replaces pages whose contents the file has, as the callers ensure.
    unsafe { mmap(place.cast(), nbytes, protection, flags, file, offset) }?;
    Ok(())
}

/// Returns new private pages.
fn private_pages(nbytes: usize) -> Result<*mut c_void, Errno> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the call maps a new range at an address of the kernel's choice, so no mapping is
    // replaced.
    unsafe { mmap_anonymous(null_mut(), nbytes, protection, MapFlags::PRIVATE) }
}

/// Moves private pages to `place`, in place of others.
fn move_pages(pages: *mut c_void, nbytes: usize, place: *mut u8) -> Result<(), Errno> {
    // SAFETY: the call replaces pages by those that have their contents, as the callers ensure.
    unsafe { mremap_fixed(pages, nbytes, nbytes, MremapFlags::MAYMOVE, place.cast()) }?;
    Ok(())
}

#[cfg(test)]
mod tests;
