//! The copy of a process that has crashed. The copy describes the crash, by code that a handler may
//! not run in the process itself.
//!
//! The handler may have only a few kilobytes of stack, since the program may have set the stack for
//! handlers itself. So the copy sends itself the same signal at the same instruction, with another
//! handler, which has a large stack.
#![allow(unsafe_code)]

use super::signal::{Crash, Handler, Registers, handle};
use super::touched;
use core::arch::asm;
use core::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// Bytes of the stack on which the copy reads the debug information.
const STACK: usize = 1 << 20;

/// A handler that runs in a copy of this process.
pub(super) struct CopyTask<'a> {
    pub(super) crash: &'a Crash,
    /// The context that the kernel has passed to the handler in this process.
    pub(super) context: *mut libc::ucontext_t,
    pub(super) handler: Handler,
    /// Seconds that the handler may take: a lock that it needs may have been held at the crash.
    pub(super) limit: u32,
}

impl CopyTask<'_> {
    /// Runs the handler in a copy, and waits for its end. Returns true if it has ended with status
    /// 0.
    ///
    /// # Safety
    /// The handler to which the kernel has passed the context calls this.
    pub(super) unsafe fn run(&self) -> bool {
        let Some(stack) = new_stack(STACK) else { return false };
        let top = stack.ss_sp.wrapping_byte_add(STACK);
        let task = std::ptr::from_ref(self).cast_mut();
        // No handlers of `fork` run, and the end of the copy sends no signal.
        // SAFETY: a function and its stack; without flags the copy has memory of its own.
        let copy = unsafe { libc::clone(repeat, top, 0, task.cast()) };
        let mut status = 0;
        // SAFETY: the status is a local.
        let ended =
            copy > 0 && unsafe { libc::waitpid(copy, &raw mut status, libc::__WALL) } == copy;
        ended && status == 0
    }
}

/// Runs in the copy: installs the handler for the signal of the crash, and sends that signal.
extern "C" fn repeat(task: *mut c_void) -> c_int {
    // SAFETY: that of `run`, whose stack the copy has, too.
    let task = unsafe { &*task.cast::<CopyTask>() };
    // SAFETY: the action that ends the copy.
    unsafe { libc::signal(libc::SIGALRM, libc::SIG_DFL) };
    // SAFETY: sets the limit.
    unsafe { libc::alarm(task.limit) };
    if touched::is_call(task.crash) {
        // SAFETY: a context of the kernel, and nothing goes on there.
        unsafe { leave_call(task.context) };
    }
    let Some(stack) = new_stack(STACK) else { return 1 };
    // SAFETY: memory that nothing else uses, while this function runs on another stack.
    unsafe { libc::sigaltstack(&raw const stack, null_mut()) };
    // SAFETY: as above. The kernel takes the stack from the context again.
    unsafe { (*task.context).uc_stack = stack };
    // SAFETY: as above.
    let blocked = unsafe { &raw mut (*task.context).uc_sigmask };
    // SAFETY: a set of signals.
    unsafe { libc::sigdelset(blocked, task.crash.signal) };
    handle(task.crash.signal, task.handler);
    // SAFETY: names this thread. The C library has the number of the one that it is a copy of.
    let thread = unsafe { libc::gettid() };
    // It is blocked until the context is restored.
    // SAFETY: sends a signal to this thread, the only one of its process.
    unsafe { libc::syscall(libc::SYS_tgkill, thread, thread, task.crash.signal) };
    // SAFETY: the kernel has made the context where it is.
    unsafe { restore(task.context) }
}

/// Resumes this thread where the signal has interrupted it.
///
/// # Safety
/// A context that the kernel has passed to a handler and that is still at its place, where the
/// kernel finds what else belongs to it.
unsafe fn restore(context: *mut libc::ucontext_t) -> ! {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the context is the one of the kernel's frame behind the address of the return, which
    // a handler has taken from the stack when it returns.
    unsafe {
        asm!(
            "mov rsp, {context}",
            "syscall",
            context = in(reg) context,
            in("rax") libc::SYS_rt_sigreturn,
            options(noreturn)
        )
    };
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the kernel's frame begins with the information on the signal, then comes the context.
    unsafe {
        asm!(
            "mov sp, {frame}",
            "svc 0",
            frame = in(reg) context.wrapping_byte_sub(size_of::<libc::siginfo_t>()),
            in("x8") libc::SYS_rt_sigreturn,
            options(noreturn)
        )
    };
}

/// Returns new memory that can be a stack for handlers.
pub(super) fn new_stack(nbytes: usize) -> Option<libc::stack_t> {
    let (access, kind) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: new memory of the system's choice, which stays mapped.
    let memory = unsafe { libc::mmap(null_mut(), nbytes, access, kind, -1, 0) };
    let is_mapped = memory != libc::MAP_FAILED;
    is_mapped.then_some(libc::stack_t { ss_sp: memory, ss_flags: 0, ss_size: nbytes })
}

/// Adds 1 to the instruction address of the context, and returns the result, by which a backtrace
/// names the interrupted frame. A backtrace takes the address for one to which a call returns, and
/// looks up the byte before it.
///
/// # Safety
/// As [`Registers::set`].
pub(super) unsafe fn name_of_frame(context: *mut libc::ucontext_t) -> usize {
    // SAFETY: by contract.
    let registers = unsafe { Registers::of(context) };
    let registers = Registers { instruction: registers.instruction + 1, ..registers };
    // SAFETY: by contract.
    unsafe { registers.set(context) };
    registers.instruction
}

/// Makes the interrupted frame that of the caller, since the function that was called is no code
/// and has no frame.
///
/// # Safety
/// As [`Registers::set`], and a call has led to the interrupted instruction.
pub(super) unsafe fn leave_call(context: *mut libc::ucontext_t) {
    // SAFETY: by contract.
    let registers = unsafe { Registers::of(context) };
    #[cfg(target_arch = "x86_64")]
    let (stack, next) = (
        registers.stack + size_of::<usize>(),
        // SAFETY: a call has written there where it returns to.
        unsafe { std::ptr::with_exposed_provenance::<usize>(registers.stack).read() },
    );
    #[cfg(target_arch = "aarch64")]
    // SAFETY: by contract.
    let (stack, next) = (registers.stack, unsafe { (*context).uc_mcontext.regs[30] as usize });
    // An address within the call instruction, not after it.
    let caller = Registers { instruction: next - 1, stack };
    // SAFETY: by contract.
    unsafe { caller.set(context) };
}
