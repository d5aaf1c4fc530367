//! The memory that the detectors of all PEs share: 64-bit words of one file without a name.
//!
//! Everything in it is made of atomic words, so that a process can change what another one reads.
//! The file is sparse: what is never touched takes no memory. The kernel frees it after the end of
//! the last process that has mapped it.
#![allow(unsafe_code)]

use rustix::fs::{MemfdFlags, Mode, OFlags, ftruncate, memfd_create, open};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap};
use std::os::fd::OwnedFd;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// Words that several processes or threads change.
pub type Words = &'static [AtomicU64];

/// Returns a new file of `n` zero words.
///
/// # Errors
/// When the kernel refuses.
pub fn create(n: usize) -> Result<OwnedFd, Errno> {
    let file = memfd_create("rushmem-race", MemfdFlags::CLOEXEC)?;
    ftruncate(&file, (n * 8) as u64)?;
    Ok(file)
}

/// Maps the file of `n` words that process `pid` has as descriptor `fd`.
///
/// # Errors
/// When it cannot be opened or mapped.
pub fn attach(n: usize, pid: u32, fd: i32) -> Result<Words, Errno> {
    let path = format!("/proc/{pid}/fd/{fd}");
    let file = open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // Most of the file is never touched, so no memory is reserved for it.
    let flags = MapFlags::SHARED | MapFlags::NORESERVE;
    // SAFETY: the call makes a new range at an address of the kernel's choice.
    let start = unsafe { mmap(std::ptr::null_mut(), n * 8, protection, flags, &file, 0) }?;
    // SAFETY: mapped with this length, aligned to a page and zero at first; never unmapped, and all
    // processes access it as atomic words alone.
    Ok(unsafe { std::slice::from_raw_parts(start.cast(), n) })
}

/// A lock in bit 0 of a word. While it is held, for some hundred instructions, the other bits of
/// the word are zero: the holder has their values, may change them, and stores them at the end.
pub struct Held<'a> {
    word: &'a AtomicU64,
    bits: u64,
}

/// Takes the lock of a word, which the result releases when it is dropped. The swap acquires what
/// the store of the drop has released, so data that the lock protects are accessed in relaxed
/// order.
#[inline]
pub fn lock(word: &AtomicU64) -> Held<'_> {
    // A load may begin while earlier ones still wait for memory, an exchange may not. Relaxed,
    // since only the exchange takes the lock.
    if word.load(Relaxed) & 1 != 0 {
        return wait(word);
    }
    let bits = word.swap(1, Acquire);
    if bits & 1 == 0 {
        Held { word, bits }
    } else {
        wait(word)
    }
}

#[cold]
fn wait(word: &AtomicU64) -> Held<'_> {
    for tries in 1u32.. {
        // Locks are held for a microsecond at most, unless their thread has lost its CPU: a few
        // microseconds of attempts show that.
        if tries.is_multiple_of(64) {
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
        let bits = word.swap(1, Acquire);
        if bits & 1 == 0 {
            return Held { word, bits };
        }
    }
    unreachable!("the loop ends when the lock is taken")
}

impl Held<'_> {
    /// Returns true if a bit beside the lock is set.
    #[inline]
    pub fn has(&self, bit: u64) -> bool {
        self.bits & bit != 0
    }

    /// Returns the value that the word will have after the lock is released.
    pub fn bits(&self) -> u64 {
        self.bits & !1
    }

    /// Adds to the word. A counter in its upper bits may overflow.
    pub fn add(&mut self, n: u64) {
        self.bits = self.bits.wrapping_add(n);
    }

    /// Sets or clears a bit beside the lock.
    #[inline]
    pub fn set(&mut self, bit: u64, is_set: bool) {
        self.bits = if is_set {
            self.bits | bit
        } else {
            self.bits & !bit
        };
    }
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        self.word.store(self.bits & !1, Release);
    }
}

/// Allocates blocks of words, of sizes that are powers of two, in a part of the shared memory. The
/// number of its first word identifies a block; 0 is none. The lock of the arena orders its own
/// words, and the user of a block orders those of the block.
#[derive(Clone, Copy)]
pub struct Arena {
    words: Words,
}

/// Words of the head of an arena: its lock, the first word that was never allocated, and a list of
/// free blocks for each size.
const HEAD: usize = 64;
const LOCK: usize = 0;
const UNUSED: usize = 1;
const FREE: usize = 2;

impl Arena {
    /// Returns an arena over words that are zero at first.
    pub fn new(words: Words) -> Arena {
        Arena { words }
    }

    /// Allocates a block of at least `n` words, which are not cleared. Returns `None` if there is
    /// no more room.
    pub fn allocate(self, n: usize) -> Option<u64> {
        let class = size_class(n);
        let _held = lock(&self.words[LOCK]);

        // The first word of a free block has the number of the next one.
        let list = &self.words[FREE + class];
        let free = list.load(Relaxed);
        if free != 0 {
            list.store(self.words[free as usize].load(Relaxed), Relaxed);
            return Some(free);
        }

        // The word is 0 before the first block.
        let unused = self.words[UNUSED].load(Relaxed).max(HEAD as u64);
        let end = unused + (1 << class);
        if end > self.words.len() as u64 {
            return None;
        }
        self.words[UNUSED].store(end, Relaxed);
        Some(unused)
    }

    /// Frees a block that was allocated with `n` words.
    pub fn free(self, block: u64, n: usize) {
        let _held = lock(&self.words[LOCK]);
        let list = &self.words[FREE + size_class(n)];
        self.words[block as usize].store(list.load(Relaxed), Relaxed);
        list.store(block, Relaxed);
    }

    /// Returns the first `n` words of a block.
    pub fn block(self, block: u64, n: usize) -> &'static [AtomicU64] {
        &self.words[block as usize..][..n]
    }
}

/// Returns the exponent of the smallest power of two that is at least `n`.
fn size_class(n: usize) -> usize {
    n.next_power_of_two().trailing_zeros() as usize
}
