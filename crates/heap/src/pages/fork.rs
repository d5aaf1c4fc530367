//! Gives a child process registered pages of its own.
//!
//! They are shared memory, so a child of `fork` would write to the memory of its parent: to the
//! buffers, and to what lies beside them in the pages at their edges. The C library writes there
//! before it calls a handler in the child: it resets the locks of `malloc` and of streams.
//! Therefore the edges are private in the parent while it forks, so that the kernel gives the child
//! edges of its own, in one consistent state. When the fork is over, they are shared again, and get
//! what threads of the parent have stored there meanwhile. What peers have put into them stays. So
//! peers and other threads of the parent, which use the program's address, see each other's stores
//! to the edges when the fork is over.
//!
//! The pages inside buffers, which may be many, stay shared: only the program writes there. The
//! child maps them privately from the file, without a copy, before it runs code of the program.
#![allow(unsafe_code)]

use super::{
    PAGE, announce, copy_words, divide, map_file, move_pages, private_pages,
    replace_while_stores_wait,
};
use rushmem_system::lock::lock;
use rushmem_system::signals::SignalMask;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::cell::Cell;
use std::ffi::c_void;
use std::mem::{ManuallyDrop, forget};
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::ptr::{null_mut, with_exposed_provenance_mut};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock};

/// Pages that are registered: what a child gets copies of.
#[derive(Clone, Debug)]
pub struct OwnPages {
    /// The pages.
    pub pages: Range<usize>,
    /// The parts of them that hold nothing but a buffer: whole pages.
    pub inside: Vec<Range<usize>>,
    /// The offset of the pages in the node's memory.
    pub offset: u64,
}

impl OwnPages {
    /// Describes registered pages, which hold these buffers, by ascending addresses.
    pub fn new(pages: Range<usize>, offset: u64, buffers: &[Range<usize>]) -> OwnPages {
        let whole = |bytes: &Range<usize>| {
            let start = bytes.start.next_multiple_of(PAGE);
            start..(bytes.end / PAGE * PAGE).max(start)
        };
        OwnPages {
            inside: buffers
                .iter()
                .map(whole)
                .filter(|pages| !pages.is_empty())
                .collect(),
            pages,
            offset,
        }
    }

    /// Returns the pages that may hold other bytes than those of one buffer.
    fn edges(&self) -> Vec<Range<usize>> {
        let mut edges = Vec::new();
        let mut next = self.pages.start;
        for inside in &self.inside {
            edges.push(next..inside.start);
            next = inside.end;
        }
        edges.push(next..self.pages.end);
        edges.retain(|edge| !edge.is_empty());
        edges
    }

    fn offset_of(&self, place: usize) -> u64 {
        self.offset + (place - self.pages.start) as u64
    }
}

/// The registered pages of this process, and the file that has them.
pub trait Registered: Sync {
    /// Returns the pages, as they are mapped now; `None` if that cannot be known.
    fn pages(&self) -> Option<Vec<OwnPages>>;
    /// Returns the file, if it is open.
    fn file(&self) -> Option<BorrowedFd<'_>>;
}

static REGISTERED: OnceLock<&'static dyn Registered> = OnceLock::new();

/// Held by a thread that forks, and by one that changes registered pages.
static ALONE: Mutex<()> = Mutex::new(());

/// A fork, or a change of registered pages. Forks of other threads wait for its end.
pub struct NoFork {
    _alone: MutexGuard<'static, ()>,
}

/// Lets forks of other threads wait for a change of registered pages; waits for a fork. During a
/// fork, pages at edges are not shared.
pub fn wait_for_changes() -> NoFork {
    NoFork {
        _alone: lock(&ALONE),
    }
}

/// The preparations of a thread for the fork that it is in.
struct Forking {
    pages: Vec<OwnPages>,
    edges: Vec<PrivateEdge>,
    /// True if all edges are private.
    are_all_private: bool,
    /// The signals to restore. A handler that runs in the child before that would write to the
    /// memory of the parent.
    signals: SignalMask,
    /// Lets changes of registered pages wait.
    alone: NoFork,
}

thread_local! {
    static FORKING: Cell<Option<ManuallyDrop<Forking>>> = const { Cell::new(None) };
}

/// Gives all children that this process forks from now on pages of their own. Has no effect after
/// the first call.
///
/// # Errors
/// When there is no memory.
pub fn prepare(registered: &'static dyn Registered) -> Result<(), Errno> {
    if REGISTERED.set(registered).is_err() {
        return Ok(());
    }
    // SAFETY: the functions exist as long as the process, since the library is never unloaded.
    let errno = unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    if errno == 0 {
        Ok(())
    } else {
        Err(Errno::from_raw_os_error(errno))
    }
}

extern "C" fn before() {
    let Some(registered) = REGISTERED.get() else {
        return;
    };
    // First, since a handler may fork, which would wait for this thread.
    let signals = SignalMask::block();
    let alone = wait_for_changes();

    let known = registered.pages();
    let are_known = known.is_some();
    let pages = known.unwrap_or_default();
    let file = registered.file();
    let edges = pages.iter().flat_map(|own| {
        let edges = own.edges().into_iter();
        edges.map(|edge| PrivateEdge::make(&edge, file?, own.offset_of(edge.start)).ok())
    });
    let edges = edges.collect::<Vec<_>>();
    FORKING.set(Some(ManuallyDrop::new(Forking {
        pages,
        are_all_private: are_known && edges.iter().all(Option::is_some),
        edges: edges.into_iter().flatten().collect(),
        signals,
        alone,
    })));
}

extern "C" fn in_parent() {
    let Some(forking) = FORKING.take() else {
        return;
    };
    let Forking {
        pages,
        edges,
        signals,
        alone,
        ..
    } = ManuallyDrop::into_inner(forking);

    for edge in edges {
        let shared = edge.share();
        shared.expect("the kernel maps pages as they were before a fork");
    }
    for own in &pages {
        announce(&own.pages);
        divide(&own.pages);
    }
    drop(alone);
    // Last, since a handler may run at once, and may fork.
    signals.restore();
}

extern "C" fn in_child() {
    let Some(forking) = FORKING.take() else {
        return;
    };
    let Forking {
        pages,
        edges,
        are_all_private,
        signals,
        alone,
    } = ManuallyDrop::into_inner(forking);

    let file = REGISTERED.get().and_then(|registered| registered.file());
    let is_inside_own = pages
        .iter()
        .all(|own| own.make_inside_private(file).is_ok());
    if !are_all_private || !is_inside_own {
        const WORDS: &str =
            "rushmem: a child process gets no pages of its own for registered buffers, and ends\n";
        // The child ends even if this fails, and nobody can be told.
        let _ = rustix::io::write(rustix::stdio::stderr(), WORDS.as_bytes());
        // SAFETY: `_exit` has no preconditions; it ends the child at once.
        unsafe { libc::_exit(127) }
    }

    drop(edges);
    drop(alone);
    signals.restore();
}

impl OwnPages {
    /// Maps the pages inside buffers privately from the file.
    fn make_inside_private(&self, file: Option<BorrowedFd<'_>>) -> Result<(), Errno> {
        for inside in &self.inside {
            let file = file.ok_or(Errno::BADF)?;
            let place = with_exposed_provenance_mut(inside.start);
            let offset = self.offset_of(inside.start);
            map_file(place, inside.len(), file, offset, MapFlags::PRIVATE)?;
        }
        Ok(())
    }
}

/// Pages at an edge that are private while a process forks.
struct PrivateEdge {
    pages: Range<usize>,
    /// The contents before they became private.
    before: Mapped,
    /// The pages of the node's memory, which they were, at another address. Others use them.
    shared: Mapped,
}

impl PrivateEdge {
    /// Makes shared pages private, which are in the file at an offset.
    fn make(pages: &Range<usize>, file: BorrowedFd<'_>, offset: u64) -> Result<PrivateEdge, Errno> {
        let nbytes = pages.len();
        let edge = PrivateEdge {
            pages: pages.clone(),
            shared: Mapped::of_file(nbytes, file, offset)?,
            before: Mapped::private(nbytes)?,
        };

        let private = Mapped::private(nbytes)?;
        let n = nbytes / size_of::<u64>();
        replace_while_stores_wait(pages, |place| {
            // SAFETY: whole pages that are mapped, and as many new ones.
            unsafe { copy_words(private.start.cast(), place.cast(), n) };
            // SAFETY: as above.
            unsafe { copy_words(edge.before.start.cast(), private.start.cast(), n) };
            private.take_the_place_of(place)
        })?;
        Ok(edge)
    }

    /// Makes the pages those of the node's memory again, in the parent, which get what was stored
    /// to the private ones.
    fn share(self) -> Result<(), Errno> {
        let PrivateEdge {
            pages,
            before,
            shared,
        } = self;
        replace_while_stores_wait(&pages, |place| {
            for i in 0..pages.len() / size_of::<u64>() {
                let places = [before.start, place.cast(), shared.start];
                // SAFETY: whole pages at all three addresses.
                unsafe { merge_word(places.map(|at| word(at, i))) };
            }
            shared.take_the_place_of(place)
        })
    }
}

/// Pages that are mapped at an address of the kernel's choice, and unmapped when this is dropped.
struct Mapped {
    start: *mut c_void,
    nbytes: usize,
}

impl Mapped {
    fn private(nbytes: usize) -> Result<Mapped, Errno> {
        let start = private_pages(nbytes)?;
        Ok(Mapped { start, nbytes })
    }

    fn of_file(nbytes: usize, file: BorrowedFd<'_>, offset: u64) -> Result<Mapped, Errno> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::NORESERVE;
        // SAFETY: the call maps a new range at an address of the kernel's choice, so no mapping is
        // replaced.
        let start = unsafe { mmap(null_mut(), nbytes, protection, flags, file, offset) }?;
        Ok(Mapped { start, nbytes })
    }

    /// Moves the pages in place of others.
    fn take_the_place_of(self, place: *mut u8) -> Result<(), Errno> {
        move_pages(self.start, self.nbytes, place)?;
        forget(self);
        Ok(())
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: pages of this value, which no reference outlives.
        let _ = unsafe { munmap(self.start, self.nbytes) };
    }
}

/// Returns the address of a word of pages.
fn word(pages: *mut c_void, index: usize) -> *mut u64 {
    pages.cast::<u64>().wrapping_add(index)
}

/// Stores the bytes of a word that differ from what they were to the shared word, and no others: a
/// peer may store to these.
///
/// # Safety
/// The words are valid: that at the start, the private one, and the shared one.
unsafe fn merge_word([start, private, shared]: [*mut u64; 3]) {
    let bytes = |at| {
        // SAFETY: valid and aligned by contract. Other threads may store to the private word.
        let word = unsafe { AtomicU64::from_ptr(at) }.load(Relaxed);
        word.to_ne_bytes()
    };
    let (before, now) = (bytes(start), bytes(private));
    for (i, byte) in now.into_iter().enumerate() {
        if byte != before[i] {
            // SAFETY: a byte of the shared word, valid by contract.
            unsafe { AtomicU8::from_ptr(shared.cast::<u8>().wrapping_add(i)) }.store(byte, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    use std::os::fd::AsFd;

    #[test]
    fn an_edge_that_cannot_become_private_leaves_no_mapping() {
        let file = memfd_create("rushmem-edge", MemfdFlags::CLOEXEC).expect("a file");
        ftruncate(&file, PAGE as u64).expect("a page");

        // Half of the addresses of a process: there is room for one mapping, and not for two.
        let half = if cfg!(target_arch = "x86_64") {
            1 << 46
        } else {
            1 << 47
        };
        let made = PrivateEdge::make(&(0..half), file.as_fd(), 0);
        assert!(made.is_err());
        let mappings = std::fs::read_to_string("/proc/self/maps").expect("mappings");
        assert!(!mappings.contains("rushmem-edge"), "{mappings}");
    }
}
