//! A seccomp filter that reports every call of one system call to this process, which decides
//! whether the kernel performs the call or it fails. The filter also catches raw system calls of a
//! library, which a preloaded library would miss, and slows no other call down.
//!
//! Neither rustix nor a crate that needs no C library can do this.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, retry_on_intr};

/// The descriptor from which the calls of all processes with the filter are read.
pub struct SeccompListener(OwnedFd);

/// A system call that waits for the decision of this process.
pub struct NotifiedCall {
    id: u64,
    /// The thread that makes the call.
    pub thread: u32,
    /// The address of the instruction after the call.
    pub instruction: u64,
    /// The arguments. Those of `write` are a descriptor, an address, and a number of bytes.
    pub arguments: [u64; 6],
}

/// Installs the filter for the system call number `call` in this thread and in all that it starts,
/// and stores the descriptor in `listener`. Makes no system call between the two: it might wait for
/// an answer, which nobody could give yet.
pub fn filter_this_thread(call: u32, listener: &OnceLock<RawFd>) -> io::Result<()> {
    // The kernel requires this of a process that is not root, before it accepts a filter.
    // SAFETY: the call takes numbers only.
    let status = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    assert_eq!(status, 0, "every kernel has it");

    // The number of the call is the first word of the data that a filter is given. A comparison
    // that fails skips one instruction.
    let mut filter = [
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, call),
        instruction(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_USER_NOTIF),
        instruction(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).expect("it is short"),
        filter: filter.as_mut_ptr(),
    };

    // With `WAIT_KILLABLE_RECV`, only a signal that kills interrupts a call that waits for its
    // answer. Any other signal of the program would make it call anew, and the call would count
    // twice.
    // SAFETY: the program and its instructions outlive the call, which copies them.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
            &raw const program,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }

    let fd = RawFd::try_from(fd).expect("a small number");
    listener.set(fd).expect("it is published once");
    Ok(())
}

/// Returns an instruction of a filter, which skips `skipped` further ones if it is a comparison
/// that fails.
fn instruction(code: u32, skipped: u8, operand: u32) -> libc::sock_filter {
    libc::sock_filter {
        code: u16::try_from(code).expect("codes are short"),
        jt: 0,
        jf: skipped,
        k: operand,
    }
}

impl SeccompListener {
    /// Owns the descriptor that [`filter_this_thread`] has stored, from now on.
    pub fn new(fd: RawFd) -> Self {
        // SAFETY: the kernel made the descriptor for this process, and nothing else owns it.
        Self(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// Waits for the next call. Returns `None` if no process with the filter is left.
    pub fn next(&self) -> Option<NotifiedCall> {
        loop {
            let mut ready = [PollFd::new(&self.0, PollFlags::IN)];
            retry_on_intr(|| poll(&mut ready, None)).expect("it can be waited for");
            if !ready[0].revents().contains(PollFlags::IN) {
                return None;
            }

            // SAFETY: the fields of the struct are integers, of which zero is a value. The kernel
            // requires them to be zero.
            let mut seen: libc::seccomp_notif = unsafe { std::mem::zeroed() };
            // SAFETY: the descriptor is a listener, and the request writes one value of this type
            // to `seen`.
            let status = unsafe {
                libc::ioctl(
                    self.0.as_raw_fd(),
                    libc::SECCOMP_IOCTL_NOTIF_RECV,
                    &raw mut seen,
                )
            };
            // If the request fails, the caller was killed meanwhile.
            if status == 0 {
                return Some(NotifiedCall {
                    id: seen.id,
                    thread: seen.pid,
                    instruction: seen.data.instruction_pointer,
                    arguments: seen.data.args,
                });
            }
        }
    }

    /// Makes the call fail with `error`, or lets the kernel perform it if `error` is `None`. Does
    /// nothing if the caller is dead.
    pub fn answer(&self, call: NotifiedCall, error: Option<Errno>) {
        let continued = u32::try_from(libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE).expect("a flag");
        let mut answer = libc::seccomp_notif_resp {
            id: call.id,
            val: 0,
            error: error.map_or(0, |error| -error.raw_os_error()),
            flags: if error.is_none() { continued } else { 0 },
        };
        loop {
            // SAFETY: the descriptor is a listener, and the request reads one value of this type
            // from `answer`.
            let status = unsafe {
                libc::ioctl(
                    self.0.as_raw_fd(),
                    libc::SECCOMP_IOCTL_NOTIF_SEND,
                    &raw mut answer,
                )
            };
            // A signal may have interrupted the request; after another failure the caller is dead.
            if status == 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                return;
            }
        }
    }
}
