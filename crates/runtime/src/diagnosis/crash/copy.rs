//! The copy of a process that has crashed. It describes the crash by code that is not allowed in a
//! signal handler.
//!
//! The handler may have only a few kilobytes of stack, if the program has set the stack of
//! handlers. So the copy sends itself the same signal at the same instruction, with another handler
//! that has a large stack.
#![allow(unsafe_code)]

use super::signal::{Crash, Handler, Registers, handle};
use super::touched;
use core::arch::asm;
use core::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The size of the stack on which the copy reads the debug information.
const STACK: usize = 1 << 20;

/// The interval at which this process checks whether the copy has ended. A handler of a signal
/// cannot rely on another signal to learn that.
const INTERVAL: Duration = Duration::from_millis(5);

/// A call of `handler` in a copy of this process, and the limits after which the copy is ended.
pub(super) struct CopyTask<'a> {
    pub(super) crash: &'a Crash,
    /// The context that the kernel has passed to the handler of this process.
    pub(super) context: *mut libc::ucontext_t,
    pub(super) handler: Handler,
    /// The copy is ended when it has used this much CPU time. On a busy machine that takes longer.
    pub(super) cpu_limit: Duration,
    /// The copy is ended when it has used no CPU time for so long: it waits for a lock that was
    /// held at the crash.
    pub(super) idle_limit: Duration,
    /// The copy is ended after this time, also if this process has ended before.
    pub(super) limit: Duration,
}

impl CopyTask<'_> {
    /// Runs the handler in a copy of this process, and waits for the end of the copy. Returns true
    /// if its status is 0.
    ///
    /// # Safety
    /// The caller is the handler to which the kernel has passed the context.
    pub(super) unsafe fn run(&self) -> bool {
        let Some(stack) = new_stack(STACK) else {
            return false;
        };
        let top = stack.ss_sp.wrapping_byte_add(STACK);
        let task = std::ptr::from_ref(self).cast_mut();
        // `clone` runs no handlers of `fork`, and the end of the copy sends no signal.
        // SAFETY: the function runs on the new stack; without flags the copy has memory of its own.
        let copy = unsafe { libc::clone(repeat, top, 0, task.cast()) };
        copy > 0 && self.succeeds(copy)
    }

    /// Waits until the copy ends, and returns true if its status is 0. Ends it if it is idle.
    fn succeeds(&self, copy: libc::pid_t) -> bool {
        let mut used = cpu_time(copy);
        let mut used_until = Instant::now();

        loop {
            let mut status = 0;
            // SAFETY: the status is a local variable.
            match unsafe { libc::waitpid(copy, &raw mut status, libc::__WALL | libc::WNOHANG) } {
                0 => {}
                ended => return ended == copy && status == 0,
            }

            let now = cpu_time(copy);
            if now != used {
                used = now;
                used_until = Instant::now();
            } else if used_until.elapsed() > self.idle_limit {
                // Nobody waits for its end: a system call of a file system may last for ever.
                // This fails only if the copy has ended, as is wanted.
                // SAFETY: a child that has not been waited for keeps its number.
                unsafe { libc::kill(copy, libc::SIGKILL) };
                return false;
            }
            sleep(INTERVAL);
        }
    }
}

/// Returns the CPU time that a process has used, or `None` if it has ended.
fn cpu_time(process: libc::pid_t) -> Option<(libc::time_t, libc::c_long)> {
    let mut clock = 0;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes the local variable `clock`.
    if unsafe { libc::clock_getcpuclockid(process, &raw mut clock) } != 0 {
        return None;
    }
    // SAFETY: the call writes the local variable `time`.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return None;
    }
    Some((time.tv_sec, time.tv_nsec))
}

/// Runs in the copy: installs the handler for the signal of the crash, and sends that signal.
extern "C" fn repeat(task: *mut c_void) -> c_int {
    // SAFETY: the task is on the stack of `run`, which the copy has, too.
    let task = unsafe { &*task.cast::<CopyTask>() };

    end_after(libc::ITIMER_PROF, task.cpu_limit);
    end_after(libc::ITIMER_REAL, task.limit);
    if touched::is_call(task.crash) {
        // SAFETY: the context is from the kernel, and the copy does not resume the function.
        unsafe { leave_call(task.context) };
    }

    let Some(stack) = new_stack(STACK) else {
        return 1;
    };
    // If this fails, the handler runs on the stack of this function, and the description may end
    // early.
    // SAFETY: nothing else uses the memory of `stack`, and this function runs on another stack.
    unsafe { libc::sigaltstack(&raw const stack, null_mut()) };
    // The kernel restores the stack of handlers from the context.
    // SAFETY: `task.context` is from the kernel, as the caller of `run` promises. It is on the
    // stack that the copy has as its own, and only this thread uses it.
    unsafe { (*task.context).uc_stack = stack };

    // SAFETY: as for the stack: the context is valid, and this thread's alone.
    let blocked = unsafe { &raw mut (*task.context).uc_sigmask };
    for signal in [task.crash.signal, libc::SIGPROF, libc::SIGALRM] {
        // SAFETY: `blocked` points to the set of signals of the context, which only this thread
        // uses.
        unsafe { libc::sigdelset(blocked, signal) };
    }
    handle(task.crash.signal, task.handler);

    // Asks the kernel, since the C library has cached the thread number of the original process.
    let thread = rustix::thread::gettid().as_raw_nonzero().get();
    // The signal is blocked until the context is restored. The call cannot fail: a thread may send
    // itself any signal.
    // SAFETY: the call sends a signal to this thread, the only one of its process.
    unsafe { libc::syscall(libc::SYS_tgkill, thread, thread, task.crash.signal) };
    // SAFETY: the context is at the address at which the kernel has created it.
    unsafe { restore(task.context) }
}

/// Ends this process when its timer has counted this time.
fn end_after(timer: c_int, time: Duration) {
    let signal = match timer {
        libc::ITIMER_PROF => libc::SIGPROF,
        _ => libc::SIGALRM,
    };
    // SAFETY: the default action is valid for every signal; of these it ends the process.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    let no_time = libc::timeval {
        tv_sec: 0,
        tv_usec: 0,
    };
    let once = libc::itimerval {
        it_interval: no_time,
        it_value: libc::timeval {
            tv_sec: time.as_secs() as libc::time_t,
            ..no_time
        },
    };
    // This cannot fail: the times are valid.
    // SAFETY: the call reads the local `once`, and accepts null where the former value is not
    // wanted.
    unsafe { libc::setitimer(timer, &raw const once, null_mut()) };
}

/// Resumes this thread where the signal has interrupted it.
///
/// # Safety
/// The kernel has passed the context to a handler, and it is still at its address: the kernel
/// expects further data beside it.
unsafe fn restore(context: *mut libc::ucontext_t) -> ! {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the kernel's frame is the return address, then the context. A handler that returns
    // has removed the return address, so the stack pointer is that of the context.
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
    // SAFETY: the kernel's frame is the information on the signal, then the context. So the stack
    // pointer of a handler that returns is that of the information, which lies before the context.
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

/// Maps memory for a stack of handlers. Returns `None` if the kernel refuses.
pub(super) fn new_stack(nbytes: usize) -> Option<libc::stack_t> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: the call creates a mapping at an address that the kernel chooses.
    let memory = unsafe { libc::mmap(null_mut(), nbytes, access, kind, -1, 0) };
    if memory == libc::MAP_FAILED {
        return None;
    }
    Some(libc::stack_t {
        ss_sp: memory,
        ss_flags: 0,
        ss_size: nbytes,
    })
}

/// Changes the interrupted frame to that of the caller: the address that was called is no code and
/// has no frame.
///
/// # Safety
/// As [`Registers::set`], and the interrupted instruction is the target of a call.
pub(super) unsafe fn leave_call(context: *mut libc::ucontext_t) {
    // SAFETY: the caller promises that the context is from the kernel.
    let registers = unsafe { Registers::of(context) };

    // On x86-64 the call has pushed its return address, which a return would remove.
    #[cfg(target_arch = "x86_64")]
    let stack = registers.stack + size_of::<usize>();
    // SAFETY: the call has stored its return address there.
    #[cfg(target_arch = "x86_64")]
    let next = unsafe { std::ptr::with_exposed_provenance::<usize>(registers.stack).read() };

    // On AArch64 the call has stored the address in the link register.
    #[cfg(target_arch = "aarch64")]
    let stack = registers.stack;
    // SAFETY: the caller promises that the context is from the kernel.
    #[cfg(target_arch = "aarch64")]
    let next = unsafe { (*context).uc_mcontext.regs[30] as usize };

    // An address within the call instruction, not after it.
    let caller = Registers {
        instruction: next - 1,
        stack,
    };
    // SAFETY: the caller promises that the context is from the kernel.
    unsafe { caller.set(context) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    const CPU_LIMIT: Duration = Duration::from_secs(1);
    const IDLE_LIMIT: Duration = Duration::from_secs(10);

    const WAITS: u8 = 0;
    const COMPUTES: u8 = 1;
    const HANGS: u8 = 2;

    static HAS_SUCCEEDED: AtomicBool = AtomicBool::new(false);

    /// Runs a handler in a copy of the process that one of its signals interrupts.
    extern "C" fn copied<const WHAT: u8>(
        signal: c_int,
        info: *mut libc::siginfo_t,
        context: *mut c_void,
    ) {
        let context = context.cast();
        // SAFETY: the kernel has passed these pointers.
        let crash = unsafe { Crash::of(signal, info, context) };
        let task = CopyTask {
            crash: &crash,
            context,
            handler: match WHAT {
                WAITS => wait,
                COMPUTES => compute,
                _ => hang,
            },
            cpu_limit: CPU_LIMIT,
            idle_limit: IDLE_LIMIT,
            limit: Duration::from_secs(600),
        };
        // SAFETY: the context is from the kernel.
        HAS_SUCCEEDED.store(unsafe { task.run() }, Relaxed);
    }

    extern "C" fn wait(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
        sleep(2 * CPU_LIMIT);
        // SAFETY: `_exit` has no preconditions.
        unsafe { libc::_exit(0) }
    }

    extern "C" fn compute(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
        loop {
            std::hint::spin_loop();
        }
    }

    extern "C" fn hang(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
        loop {
            sleep(Duration::from_secs(3600));
        }
    }

    fn succeeds(handler: Handler) -> bool {
        handle(libc::SIGUSR1, handler);
        // SAFETY: the handler is in place, and the copy ends in it.
        unsafe { libc::raise(libc::SIGUSR1) };
        HAS_SUCCEEDED.load(Relaxed)
    }

    /// On a busy machine a process waits for a CPU most of the time.
    #[test]
    fn the_time_in_which_a_copy_has_no_cpu_does_not_count() {
        assert!(succeeds(copied::<WAITS>), "it has waited");
        assert!(
            !succeeds(copied::<COMPUTES>),
            "it has computed for too long"
        );

        let start = Instant::now();
        assert!(!succeeds(copied::<HANGS>), "it waits for ever");
        assert!(
            start.elapsed() < 30 * IDLE_LIMIT,
            "only the last limit has ended it"
        );
    }
}
