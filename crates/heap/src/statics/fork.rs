//! A child process has static data of its own.
//!
//! Memory that is shared with peers is shared with children, too, so what a child of `fork` writes to
//! its variables would be written to this PE's. So whoever forks makes a copy first, of the pages that
//! hold something, and the child puts it in the place of the shared ones before it runs the program's
//! code. Programs that are executed, and children of `vfork` and `posix_spawn`, need nothing of it.

use super::remap::{HUGE, block_signals, restore_signals};
use super::{Part, Statics};
use rustix::fs::{SeekFrom, fstat, seek};
use rustix::io::{Errno, pread};
use rustix::mm::{Advice, MapFlags, MremapFlags, ProtFlags};
use std::cell::Cell;
use std::ffi::c_void;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// What the handlers know.
struct Shared {
    statics: Statics,
    /// The node's memory, to ask which pages hold something. The program may have closed it.
    memory: OwnedFd,
    identity: (u64, u64),
    /// Where in it the static data begin.
    at: u64,
}

unsafe extern "C" {
    /// Of `fork.c`: as `pthread_atfork`, but at the right moment in a static program that was linked with it.
    fn rushmem_at_fork(
        before: extern "C" fn(),
        in_parent: extern "C" fn(),
        in_child: extern "C" fn(),
    ) -> libc::c_int;
}

static SHARED: OnceLock<Shared> = OnceLock::new();
/// The static data are shared memory: not before they were remapped, and not in a child.
static ARMED: AtomicBool = AtomicBool::new(false);

/// What this thread prepared for the fork that it is in.
struct Forking {
    /// The copy for the child, if there is memory for one.
    copy: Option<*mut c_void>,
    /// What to restore. A signal's handler that ran in the child before that has its copy would write to the
    /// parent's variables.
    signals: libc::sigset_t,
}

thread_local! {
    static FORKING: Cell<Option<Forking>> = const { Cell::new(None) };
}

/// Whether the static data of this process are shared memory: not in a child of the one that remapped them.
pub fn are_shared() -> bool {
    ARMED.load(Ordering::Acquire)
}

/// Handlers that are registered and do nothing yet.
pub(super) struct Prepared;

impl Prepared {
    /// The static data are shared memory from now on.
    pub(super) fn arm(self) {
        ARMED.store(true, Ordering::Release);
    }
}

/// Register the handlers, before the static data are shared: it takes memory. `memory` is kept open.
pub(super) fn prepare(statics: &Statics, memory: OwnedFd, at: u64) -> Result<Prepared, Errno> {
    let stat = fstat(&memory)?;
    let identity = (stat.st_dev, stat.st_ino);
    let shared = Shared { statics: statics.clone(), memory, identity, at };
    if SHARED.set(shared).is_err() {
        return Err(Errno::ALREADY);
    }
    // SAFETY: functions that live as long as the process, since the library is never unloaded.
    match unsafe { rushmem_at_fork(before, in_parent, in_child) } {
        0 => Ok(Prepared),
        errno => Err(Errno::from_raw_os_error(errno)),
    }
}

extern "C" fn before() {
    if let Some(shared) = SHARED.get()
        && are_shared()
    {
        let signals = block_signals();
        FORKING.set(Some(Forking { copy: shared.copy().ok(), signals }));
    }
}

extern "C" fn in_parent() {
    let (Some(shared), Some(forking)) = (SHARED.get(), FORKING.take()) else { return };
    if let Some(copy) = forking.copy {
        // SAFETY: the copy, which this thread made in `before` and nobody else knows.
        let _ = unsafe { rustix::mm::munmap(copy, shared.statics.nbytes()) };
    }
    restore_signals(&forking.signals);
}

extern "C" fn in_child() {
    let Some(shared) = SHARED.get() else { return };
    if !are_shared() {
        return;
    }
    let forking = FORKING.take();
    let copy = forking.as_ref().and_then(|forking| forking.copy);
    if copy.is_none_or(|copy| shared.take(copy).is_err()) {
        const WORDS: &str = "rushmem: no memory for a child process's copy of the static data\n";
        // It ends either way.
        let _ = rustix::io::write(rustix::stdio::stderr(), WORDS.as_bytes());
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(127) }
    }
    ARMED.store(false, Ordering::Release);
    if let Some(forking) = forking {
        restore_signals(&forking.signals);
    }
}

impl Shared {
    /// A copy of the static data, laid out alike; empty pages take no memory.
    fn copy(&self) -> Result<*mut c_void, Errno> {
        let span = self.statics.nbytes();
        let (protection, flags) =
            (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
        // SAFETY: new memory at an address of the kernel's choice.
        let copy = unsafe { rustix::mm::mmap_anonymous(null_mut(), span, protection, flags) }?;
        for Part { pages, .. } in &self.statics.parts {
            let copied = match self.is_open() {
                true => self.copy_held(copy, pages),
                false => self.copy_all(copy, pages),
            };
            if let Err(errno) = copied {
                // SAFETY: the memory just mapped.
                let _ = unsafe { rustix::mm::munmap(copy, span) };
                return Err(errno);
            }
        }
        Ok(copy)
    }

    fn is_open(&self) -> bool {
        fstat(&self.memory).is_ok_and(|stat| (stat.st_dev, stat.st_ino) == self.identity)
    }

    /// Copy the runs of pages that the file holds.
    fn copy_held(&self, copy: *mut c_void, pages: &Range<usize>) -> Result<(), Errno> {
        let end = self.at + pages.end as u64;
        let mut at = self.at + pages.start as u64;
        loop {
            let held = match seek(&self.memory, SeekFrom::Data(at)) {
                Ok(held) if held < end => held,
                // Nothing any more.
                Ok(_) | Err(Errno::NXIO) => return Ok(()),
                Err(errno) => return Err(errno),
            };
            let hole = seek(&self.memory, SeekFrom::Hole(held))?.min(end);
            let run = copy.wrapping_byte_add((held - self.at) as usize);
            let nbytes = (hole - held) as usize;
            if nbytes >= HUGE {
                // SAFETY: that part of the copy. Refused where the kernel has no huge pages.
                let _ = unsafe { rustix::mm::madvise(run, nbytes, Advice::LinuxHugepage) };
            }
            at = held;
            while at < hole {
                let to = copy.wrapping_byte_add((at - self.at) as usize).cast();
                // SAFETY: that part of the copy, which nobody else knows.
                let to: &mut [u8] =
                    unsafe { std::slice::from_raw_parts_mut(to, (hole - at) as usize) };
                match pread(&self.memory, to, at)? {
                    0 => return Err(Errno::IO),
                    read => at += read as u64,
                }
            }
        }
    }

    /// Copy everything, where nobody can say what is held.
    fn copy_all(&self, copy: *mut c_void, pages: &Range<usize>) -> Result<(), Errno> {
        let from: *const u8 = std::ptr::with_exposed_provenance(self.statics.start + pages.start);
        let to: *mut u8 = copy.wrapping_byte_add(pages.start).cast();
        // SAFETY: whole pages of static data and as many of the copy. Peers may write meanwhile, as
        // they may during any fork.
        unsafe { to.copy_from_nonoverlapping(from, pages.len()) };
        Ok(())
    }

    /// Put the copy in the place of the static data: system calls alone, since variables of the C
    /// library may be among them.
    fn take(&self, copy: *mut c_void) -> Result<(), Errno> {
        for Part { pages, executable, .. } in &self.statics.parts {
            let from = copy.wrapping_byte_add(pages.start);
            let start = std::ptr::with_exposed_provenance_mut(self.statics.start + pages.start);
            if *executable {
                let protection = rustix::mm::MprotectFlags::READ
                    | rustix::mm::MprotectFlags::WRITE
                    | rustix::mm::MprotectFlags::EXEC;
                // SAFETY: pages of the copy.
                unsafe { rustix::mm::mprotect(from, pages.len(), protection) }?;
            }
            // SAFETY: pages of the copy replace those that they are a copy of.
            unsafe {
                rustix::mm::mremap_fixed(
                    from,
                    pages.len(),
                    pages.len(),
                    MremapFlags::MAYMOVE,
                    start,
                )
            }?;
        }
        Ok(())
    }
}
