//! The signals of a crash, and the data that the kernel passes to their handlers.
#![allow(unsafe_code)]

use core::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::os::unix::process::parent_id;
use std::ptr::null_mut;

/// The signals of a crash, with their names.
pub(super) const SIGNALS: [(c_int, &str); 5] = [
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGABRT, "SIGABRT"),
];

pub(super) type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// Sets the handler of a signal. It runs on the thread's stack for handlers, if that has one.
pub(super) fn handle(signal: c_int, handler: Handler) {
    // SAFETY: zeros are a valid value: no flags, and an empty set of signals.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // This cannot fail: the signal exists, and may have a handler.
    // SAFETY: the handler has the type that the flags require, and only makes calls that are
    // allowed in handlers.
    unsafe { libc::sigaction(signal, &raw const action, null_mut()) };
}

/// Returns the action of a signal; `None` if there is no such signal.
pub(super) fn action(signal: c_int) -> Option<libc::sigaction> {
    let mut now = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action, the call only writes the present one.
    if unsafe { libc::sigaction(signal, std::ptr::null(), now.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: the call has succeeded, so it has written `now`.
    Some(unsafe { now.assume_init() })
}

/// A crash, as the kernel describes it to the handler.
pub(super) struct Crash {
    pub(super) signal: c_int,
    /// The reason of the signal (`si_code`): above 0 if the kernel has raised it; otherwise a
    /// process has sent it.
    pub(super) code: c_int,
    /// The address that was accessed, if the signal reports an access to memory.
    pub(super) address: usize,
    pub(super) registers: Registers,
    /// True on the first thread of the process.
    pub(super) is_first_thread: bool,
    /// The process ID of the parent. Recorded here, since a copy of this process has another one.
    pub(super) launcher: u32,
}

impl Crash {
    /// # Safety
    /// The kernel has passed these values to a handler.
    pub(super) unsafe fn of(
        signal: c_int,
        info: *const libc::siginfo_t,
        context: *const libc::ucontext_t,
    ) -> Crash {
        // SAFETY: the caller promises that the kernel has passed it.
        let info = unsafe { &*info };
        // SAFETY: every value of these bytes is a valid address; only faults make use of it.
        let address = unsafe { info.si_addr() }.addr();
        // SAFETY: the caller promises that the kernel has passed it.
        let registers = unsafe { Registers::of(context) };
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        let is_first_thread = thread.cast_unsigned() == std::process::id();
        Crash {
            signal,
            code: info.si_code,
            address,
            registers,
            is_first_thread,
            launcher: parent_id(),
        }
    }

    pub(super) fn name(&self) -> &'static str {
        let named = SIGNALS.iter().find(|(signal, _)| *signal == self.signal);
        named.map_or("a signal", |(_, name)| name)
    }
}

/// Registers of the interrupted function.
#[derive(Clone, Copy)]
pub(super) struct Registers {
    /// The address of the instruction.
    pub(super) instruction: usize,
    /// The address of the top of the stack.
    pub(super) stack: usize,
}

impl Registers {
    /// Reads the registers from a context.
    ///
    /// # Safety
    /// The kernel has passed the context to a handler.
    pub(super) unsafe fn of(context: *const libc::ucontext_t) -> Registers {
        // SAFETY: the caller promises that the kernel has passed it.
        let machine = unsafe { &(*context).uc_mcontext };
        #[cfg(target_arch = "x86_64")]
        let registers = Registers {
            instruction: machine.gregs[libc::REG_RIP as usize] as usize,
            stack: machine.gregs[libc::REG_RSP as usize] as usize,
        };
        #[cfg(target_arch = "aarch64")]
        let registers = Registers {
            instruction: machine.pc as usize,
            stack: machine.sp as usize,
        };
        registers
    }

    /// Writes the registers to a context.
    ///
    /// # Safety
    /// The kernel has passed the context to a handler, and the interrupted function is not resumed
    /// in this process.
    pub(super) unsafe fn set(self, context: *mut libc::ucontext_t) {
        // SAFETY: the caller promises that the kernel has passed it.
        let machine = unsafe { &mut (*context).uc_mcontext };
        #[cfg(target_arch = "x86_64")]
        {
            machine.gregs[libc::REG_RIP as usize] = self.instruction as i64;
            machine.gregs[libc::REG_RSP as usize] = self.stack as i64;
        }
        #[cfg(target_arch = "aarch64")]
        {
            machine.pc = self.instruction as u64;
            machine.sp = self.stack as u64;
        }
    }
}
