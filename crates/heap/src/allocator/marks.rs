//! Marks memory for AddressSanitizer and for valgrind's memcheck, which then report the program's
//! own accesses to heap memory outside blocks.
//!
//! AddressSanitizer has functions for this if the program is linked with it. A request to valgrind
//! is a sequence of instructions that has no effect on a CPU.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Maximum number of bytes that a call poisons. AddressSanitizer uses a byte of memory for each 8
/// of them, so 32 MiB for this many, in each PE. Accesses to the rest are not reported.
const MAX_POISONED: usize = 256 << 20;

type PoisonCall = unsafe extern "C" fn(*const c_void, usize);

/// The tools under which this process runs, and which report accesses to marked memory.
pub(super) struct Marks {
    asan: Option<Asan>,
    valgrind: bool,
}

struct Asan {
    poison: PoisonCall,
    unpoison: PoisonCall,
    /// The end of the poisoned memory. Memory behind it need not be unpoisoned. Relaxed: one thread
    /// at a time uses the allocator, under its lock.
    poisoned: AtomicUsize,
}

impl Asan {
    /// Returns the functions of AddressSanitizer; `None` if the program is not linked with it.
    fn find() -> Option<Asan> {
        let poison = function(c"__asan_poison_memory_region")?;
        let unpoison = function(c"__asan_unpoison_memory_region")?;
        Some(Asan {
            poison,
            unpoison,
            poisoned: AtomicUsize::new(0),
        })
    }
}

impl Marks {
    pub(super) fn find() -> Marks {
        Marks {
            asan: Asan::find(),
            valgrind: valgrind::request(valgrind::RUNNING, [0; 2]) != 0,
        }
    }

    /// Makes the tools report accesses to these bytes.
    pub(super) fn forbid(&self, start: *const u8, nbytes: usize) {
        self.poison(start, nbytes);
        self.ask(valgrind::NO_ACCESS, start, nbytes);
    }

    /// Makes the tools permit accesses to these bytes. Memcheck takes their contents for
    /// initialized, since it does not see the stores of peers.
    pub(super) fn permit(&self, start: *const u8, nbytes: usize) {
        self.unpoison(start, nbytes);
        self.ask(valgrind::DEFINED, start, nbytes);
    }

    /// Returns true if AddressSanitizer checks the accesses of functions that copy memory.
    pub(super) fn copies_are_seen(&self) -> bool {
        self.asan.is_some()
    }

    pub(super) fn poison(&self, start: *const u8, nbytes: usize) {
        if let Some(asan) = &self.asan {
            let nbytes = nbytes.min(MAX_POISONED);
            asan.poisoned.fetch_max(start.addr() + nbytes, Relaxed);
            // SAFETY: the call is one of AddressSanitizer on memory of the heap, which it marks and
            // does not access.
            unsafe { (asan.poison)(start.cast(), nbytes) };
        }
    }

    pub(super) fn unpoison(&self, start: *const u8, nbytes: usize) {
        if let Some(asan) = &self.asan {
            let nbytes = nbytes.min(asan.poisoned.load(Relaxed).saturating_sub(start.addr()));
            // SAFETY: the call is one of AddressSanitizer on memory of the heap, which it marks and
            // does not access.
            unsafe { (asan.unpoison)(start.cast(), nbytes) };
        }
    }

    fn ask(&self, request: usize, start: *const u8, nbytes: usize) {
        if self.valgrind {
            valgrind::request(request, [start.addr(), nbytes]);
        }
    }

    /// Calls `act`, which accesses forbidden bytes. Valgrind reports no errors of this thread
    /// meanwhile.
    pub(super) fn unreported<R>(&self, act: impl FnOnce() -> R) -> R {
        if self.valgrind {
            valgrind::request(valgrind::DISABLE_ERRORS, [1, 0]);
        }
        let done = act();
        if self.valgrind {
            valgrind::request(valgrind::DISABLE_ERRORS, [usize::MAX, 0]);
        }
        done
    }
}

/// Returns a function of AddressSanitizer that marks memory, if the program has it.
fn function(name: &CStr) -> Option<PoisonCall> {
    // SAFETY: the name ends with a null byte.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if found.is_null() {
        return None;
    }

    // SAFETY: both functions of these names have this type.
    Some(unsafe { std::mem::transmute::<*mut c_void, PoisonCall>(found) })
}

/// Requests to valgrind, whose numbers and instructions are part of its interface.
mod valgrind {
    /// Asks whether valgrind runs this process.
    pub(super) const RUNNING: usize = 0x1001;
    /// Adds to the number of times that this thread has disabled reports of errors. Valgrind
    /// reports no errors of the thread while it is positive.
    pub(super) const DISABLE_ERRORS: usize = 0x1801;
    const MEMCHECK: usize = (b'M' as usize) << 24 | (b'C' as usize) << 16;
    pub(super) const NO_ACCESS: usize = MEMCHECK;
    pub(super) const DEFINED: usize = MEMCHECK + 2;

    /// Returns the answer to a request; 0 where valgrind does not run this process.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn request(request: usize, [first, second]: [usize; 2]) -> usize {
        let message = [request, first, second, 0, 0, 0];
        let mut answer = 0usize;

        // The instructions before the last one have no effect either: valgrind recognizes the
        // whole sequence and then reads the message.
        // SAFETY: the rotations add up to two full turns, and the exchange is one of a register
        // with itself.
        unsafe {
            std::arch::asm!(
                "rol rdi, 3",
                "rol rdi, 13",
                "rol rdi, 61",
                "rol rdi, 51",
                "xchg rbx, rbx",
                in("rax") message.as_ptr(),
                inout("rdx") answer,
                inout("rdi") 0usize => _,
                options(nostack),
            );
        }

        answer
    }

    /// Returns the answer to a request; 0 where valgrind does not run this process.
    #[cfg(target_arch = "aarch64")]
    pub(super) fn request(request: usize, [first, second]: [usize; 2]) -> usize {
        let message = [request, first, second, 0, 0, 0];
        let mut answer = 0usize;

        // SAFETY: the rotations add up to two full turns, and the last instruction copies a
        // register to itself.
        unsafe {
            std::arch::asm!(
                "ror x12, x12, #3",
                "ror x12, x12, #13",
                "ror x12, x12, #51",
                "ror x12, x12, #61",
                "orr x10, x10, x10",
                in("x4") message.as_ptr(),
                inout("x3") answer,
                inout("x12") 0usize => _,
                options(nostack),
            );
        }

        answer
    }

    /// Returns 0: there are no instructions of a request for this processor.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub(super) fn request(_: usize, _: [usize; 2]) -> usize {
        0
    }
}
