//! Maps shared memory in place of the program's static data and keeps their values.
//!
//! If the launcher provides the node's memfd before the program runs, each PE has a slot of its own
//! in it, far behind the heaps, whose size is not yet known when the program is loaded. Otherwise
//! the PE makes a memfd for its static data alone, which the node's other PEs receive when they
//! meet.
//!
//! Writes to the static data between the copy and the mapping would be lost. Therefore this code
//! runs while the process has one thread, with signals blocked and on a stack that is not remapped,
//! and makes only system calls in between: in a static program, the C library's own variables are
//! moved, too.
#![allow(unsafe_code)]

use super::fork;
use super::program::{ProgramPart, Statics, page};
use super::slots::StaticSlots;
use crate::huge_pages::HUGE;
use crate::kept_file::KeptFile;
use crate::layout::STATICS_OFFSET;
use rushmem_system::limits::getrlimit;
use rushmem_system::maps;
use rushmem_system::signals::without_signals;
use rustix::fs::{
    FallocateFlags, MemfdFlags, Mode, OFlags, SealFlags, fcntl_add_seals, memfd_create,
};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use rustix::process::Resource;
use std::fmt;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// The lowest number of descriptors that the library keeps. Programs hardly use such numbers.
const DESCRIPTORS_FROM: i32 = 100;

/// Static data that are shared memory now.
#[derive(Debug)]
pub struct Remapped {
    /// The offset in this PE's slot of the node's memfd, or in the memfd of this PE alone.
    pub in_slot: u64,
    /// The offset in the node's memfd, if the static data are there.
    pub in_node_memory: Option<u64>,
    /// The memfd of this PE alone, if the static data are in one that is sealed.
    file: Option<KeptFile>,
}

impl Remapped {
    /// Returns the memfd of this PE alone, if the static data are in one that peers may map. `None`
    /// if the program has closed the descriptor.
    pub fn file(&self) -> Option<BorrowedFd<'_>> {
        self.file.as_ref()?.descriptor()
    }
}

/// The reason why static data were not remapped.
#[derive(Debug)]
#[non_exhaustive]
pub enum NotRemapped {
    /// The process has other threads, which could write to the static data meanwhile.
    Threads,
    /// The stack in use is a variable of the program.
    Stack,
    /// This PE's slot is in use: by a process that started this one, by one that this one started,
    /// or by another copy of the library in this process.
    Taken,
    /// Another copy of the library in this process has already moved them to shared memory.
    Shared,
    /// They do not fit into a slot.
    TooLarge,
    /// The limit of file sizes (`ulimit -f`) does not allow it.
    FileLimit,
    /// The kernel refused; with the operation that it refused.
    Refused(&'static str, Errno),
}

impl fmt::Display for NotRemapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotRemapped::Threads => f.write_str("other threads ran already"),
            NotRemapped::Stack => f.write_str("the library was loaded on a stack among them"),
            NotRemapped::Taken => f.write_str(
                "another process of this PE, or another copy of the library, has its place",
            ),
            NotRemapped::Shared => f.write_str("another copy of the library has moved them"),
            NotRemapped::TooLarge => f.write_str("they are too large"),
            NotRemapped::FileLimit => f.write_str("the limit of file sizes (ulimit -f) is too low"),
            NotRemapped::Refused(what, errno) => write!(f, "{what} was refused: {errno}"),
        }
    }
}

/// The place of the static data in a file.
#[derive(Clone, Copy)]
pub(super) struct FilePlace<'a> {
    pub(super) memory: BorrowedFd<'a>,
    /// The offset of their first byte.
    pub(super) offset: u64,
}

impl Statics {
    /// Copies the static data to the slot of the node's PE number `local` in the node's `memory`,
    /// and maps the slot in their place.
    ///
    /// # Errors
    /// The reason why the static data were not moved. They keep their values.
    pub fn remap(&self, memory: BorrowedFd<'_>, local: u32) -> Result<Remapped, NotRemapped> {
        let slots = StaticSlots::of(self).ok_or(NotRemapped::TooLarge)?;
        let slot = slots.start(local).ok_or(NotRemapped::TooLarge)?;
        let in_slot = StaticSlots::shift(self);
        self.check(slot + in_slot + self.nbytes() as u64)?;
        let kept = claim(memory, local)?;

        // The slot may have the data of a program that has run before in this process, and has
        // executed this one. Pages of zeros are not copied, so they must be zeros in the slot.
        rustix::fs::fallocate(
            memory,
            FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
            slot,
            slots.nbytes(),
        )
        .map_err(|e| NotRemapped::Refused("clearing its place in shared memory", e))?;

        let offset = slot + in_slot;
        self.move_to(FilePlace { memory, offset }, kept)?;
        Ok(Remapped {
            in_slot,
            in_node_memory: Some(offset),
            file: None,
        })
    }

    /// Copies the static data to a new memfd of this PE alone, and maps the memfd in their place.
    ///
    /// # Errors
    /// The reason why the static data were not moved. They keep their values.
    pub fn remap_alone(&self) -> Result<Remapped, NotRemapped> {
        let in_slot = StaticSlots::shift(self);
        self.check(in_slot + self.nbytes() as u64)?;
        if self.are_shared_already() {
            return Err(NotRemapped::Shared);
        }

        let refused = |e| NotRemapped::Refused("making shared memory", e);
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("rushmem-statics", flags)
            .and_then(|file| rustix::io::fcntl_dupfd_cloexec(file, DESCRIPTORS_FROM))
            .map_err(refused)?;
        let kept = rustix::io::fcntl_dupfd_cloexec(&file, DESCRIPTORS_FROM).map_err(refused)?;
        let place = FilePlace {
            memory: file.as_fd(),
            offset: in_slot,
        };
        self.move_to(place, kept)?;

        // A peer accepts no file that could become shorter than what it maps. Without the seal this
        // PE works, and its peers do not map its static data.
        let sealed = fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW);
        let file = sealed.and_then(|()| KeptFile::new(file)).ok();
        Ok(Remapped {
            in_slot,
            in_node_memory: None,
            file,
        })
    }

    /// Returns true if the first byte is in a shared mapping.
    fn are_shared_already(&self) -> bool {
        let text = maps::text();
        maps::parse(&text)
            .find(|mapping| mapping.addresses.contains(&self.start))
            .is_some_and(|mapping| mapping.is_shared)
    }

    /// Copies the static data to a file and maps it in their place. `kept` is another descriptor of
    /// the file, which stays open for the handlers of `fork`.
    fn move_to(&self, place: FilePlace<'_>, kept: OwnedFd) -> Result<(), NotRemapped> {
        let prepared = fork::prepare(self, kept, place.offset)
            .map_err(|e| NotRemapped::Refused("fork handlers", e))?;
        // Where this cannot be opened, the contents show which pages are in use.
        let pagemap = rustix::fs::open(
            "/proc/self/pagemap",
            OFlags::RDONLY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .ok();

        without_signals(|| self.copy_and_map(place, page(), pagemap.as_ref()))?;
        prepared.arm();
        Ok(())
    }

    /// Returns an error if the static data cannot be moved to a file of at least `end` bytes.
    fn check(&self, end: u64) -> Result<(), NotRemapped> {
        let threads = rustix::fs::stat("/proc/self/task")
            .map_err(|e| NotRemapped::Refused("counting threads", e))?;
        // The directory has two links, and another one for each thread.
        if threads.st_nlink > 3 {
            return Err(NotRemapped::Threads);
        }

        let on_stack = 0u8;
        let offset = (&raw const on_stack).addr().wrapping_sub(self.start);
        if offset < self.nbytes() {
            return Err(NotRemapped::Stack);
        }

        // Above this limit the kernel would end the process by a signal.
        if let Some(limit) = getrlimit(Resource::Fsize).current
            && limit < end
        {
            return Err(NotRemapped::FileLimit);
        }
        Ok(())
    }

    /// Copies the static data to a file and maps it in their place. `page` is the size of a page.
    ///
    /// # Errors
    /// When the kernel refuses. Then no part is shared memory.
    pub(super) fn copy_and_map(
        &self,
        place: FilePlace<'_>,
        page: usize,
        pagemap: Option<&OwnedFd>,
    ) -> Result<(), NotRemapped> {
        // Extends the file by a write, not by setting its size: other PEs may extend it further at
        // the same time.
        self.write(place, self.nbytes() - 1..self.nbytes())?;

        for part in &self.parts {
            self.copy(place, page, pagemap, part)?;
        }

        for (i, part) in self.parts.iter().enumerate() {
            if let Err(refused) = self.map(place, part, MapFlags::SHARED) {
                // Without the handlers of `fork`, no part may stay shared. The file has the
                // contents of those that are, and no other process uses this place in it.
                for part in &self.parts[..i] {
                    self.map(place, part, MapFlags::PRIVATE)?;
                }
                return Err(refused);
            }
        }
        Ok(())
    }

    /// Maps the file in place of a part.
    fn map(
        &self,
        place: FilePlace<'_>,
        part: &ProgramPart,
        sharing: MapFlags,
    ) -> Result<(), NotRemapped> {
        let ProgramPart {
            pages, executable, ..
        } = part;
        let mut protection = ProtFlags::READ | ProtFlags::WRITE;
        protection.set(ProtFlags::EXEC, *executable);

        let start = std::ptr::with_exposed_provenance_mut(self.start + pages.start);
        // SAFETY: the range is whole pages of the program's variables, which the mapping replaces.
        // Their contents are in the file, and no thread has written to them since.
        unsafe {
            rustix::mm::mmap(
                start,
                pages.len(),
                protection,
                sharing | MapFlags::FIXED | MapFlags::NORESERVE,
                place.memory,
                place.offset + pages.start as u64,
            )
        }
        .map_err(|e| NotRemapped::Refused("mapping shared memory", e))?;

        if pages.len() >= HUGE {
            // A kernel without huge pages refuses this, and needs no advice.
            // SAFETY: the advice changes no contents of the range, which was just mapped.
            let _ = unsafe { rustix::mm::madvise(start, pages.len(), Advice::LinuxHugepage) };
        }
        Ok(())
    }

    /// Writes the pages of a part that are in use to the file, and those that the executable fills.
    fn copy(
        &self,
        place: FilePlace<'_>,
        page: usize,
        pagemap: Option<&OwnedFd>,
        part: &ProgramPart,
    ) -> Result<(), NotRemapped> {
        let ProgramPart {
            pages, file_bytes, ..
        } = part;
        let mut in_use = InUse {
            pagemap,
            page,
            entries: [0; WINDOW],
            first: 0,
            known: 0,
        };

        // Few large writes: a page that is not in use ends a run of pages that are.
        let mut run = pages.start;
        for offset in pages.clone().step_by(page) {
            let is_filled = offset < pages.start + file_bytes;
            if !is_filled && !in_use.includes(self.start + offset) {
                self.write(place, run..offset)?;
                run = offset + page;
            }
        }

        self.write(place, run..pages.end)
    }

    /// Writes static data, given by their offsets, to their place in the file. Makes only system
    /// calls.
    fn write(&self, place: FilePlace<'_>, mut bytes: Range<usize>) -> Result<(), NotRemapped> {
        while !bytes.is_empty() {
            let from = std::ptr::with_exposed_provenance(self.start + bytes.start);
            // SAFETY: the bytes from `from` on are variables of the program or the rest of their
            // last page, so they are mapped and initialized; no thread writes to them meanwhile.
            let rest: &[u8] = unsafe { std::slice::from_raw_parts(from, bytes.len()) };
            let written = rustix::io::pwrite(place.memory, rest, place.offset + bytes.start as u64)
                .map_err(|e| NotRemapped::Refused("copying to shared memory", e))?;
            bytes.start += written;
        }
        Ok(())
    }
}

/// Locks the slot of the node's PE number `local`. Only one process may use the slot, and only
/// once: a process that the PE starts has the same environment and would use it, too, and so would
/// a second copy of the library. The lock belongs to the descriptor that this function opens and
/// returns, so it lasts as long as that is open in this process or its forked children. The locked
/// byte depends only on `local`, not on the program.
fn claim(memory: BorrowedFd<'_>, local: u32) -> Result<OwnedFd, NotRemapped> {
    let refused = |e| NotRemapped::Refused("opening shared memory", e);
    let path = format!("/proc/self/fd/{}", memory.as_raw_fd());
    let own =
        rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(refused)?;
    let own = rustix::io::fcntl_dupfd_cloexec(own, DESCRIPTORS_FROM).map_err(refused)?;

    // SAFETY: a structure of numbers, for which zeros are valid.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = (STATICS_OFFSET + u64::from(local)) as libc::off_t;
    lock.l_len = 1;

    // SAFETY: `own` is an open descriptor, and `lock` a valid request, which lives during the call.
    let done = unsafe { libc::fcntl(own.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) };
    if done == 0 {
        return Ok(own);
    }

    match Errno::from_io_error(&std::io::Error::last_os_error()) {
        Some(Errno::AGAIN | Errno::ACCESS) | None => Err(NotRemapped::Taken),
        Some(errno) => Err(NotRemapped::Refused("locking its place", errno)),
    }
}

/// Bytes of a page's entry in the kernel's page map.
const ENTRY: usize = 8;
/// Bytes of the page map that are read at a time: the entries of 16 MiB. The buffer is on the
/// stack.
const WINDOW: usize = 32 << 10;
/// Bits of an entry: the page is in memory, the page is in swap.
const PRESENT: u64 = 0b11 << 62;

/// Finds out which pages are in use: by the kernel's page map or, without one, by their contents.
/// Other pages are full of zeros and need no copy.
struct InUse<'a> {
    pagemap: Option<&'a OwnedFd>,
    page: usize,
    entries: [u8; WINDOW],
    /// The number of the first page whose entry was read.
    first: usize,
    /// The number of entries that were read; 0 if there is no page map.
    known: usize,
}

impl InUse<'_> {
    /// Returns true if the page at `address` is in use.
    fn includes(&mut self, address: usize) -> bool {
        let number = address / self.page;
        if !(self.first..self.first + self.known).contains(&number) {
            self.read_entries(number);
        }
        if self.known == 0 {
            return self.has_data(address);
        }

        let (entries, _) = self.entries.as_chunks::<ENTRY>();
        u64::from_ne_bytes(entries[number - self.first]) & PRESENT != 0
    }

    /// Reads entries of the page map, beginning with that of the page `number`.
    fn read_entries(&mut self, number: usize) {
        self.first = number;
        self.known = 0;

        if let Some(map) = self.pagemap {
            let offset = (number * ENTRY) as u64;
            // An error counts as if there were no page map.
            let nbytes = rustix::io::pread(map, &mut self.entries, offset).unwrap_or(0);
            self.known = nbytes / ENTRY;
        }
    }

    /// Returns true unless the page at `address` is full of zeros.
    fn has_data(&self, address: usize) -> bool {
        let start = std::ptr::with_exposed_provenance(address);
        // SAFETY: `start` is a page of the program's variables, mapped, initialized and aligned, to
        // which no thread writes meanwhile.
        let words: &[u64] = unsafe { std::slice::from_raw_parts(start, self.page / 8) };
        words.iter().any(|&word| word != 0)
    }
}
