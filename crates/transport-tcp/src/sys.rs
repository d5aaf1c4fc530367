//! System calls that take raw memory, or that no safe crate has.
//!
//! Sends, and receives into buffers, call the kernel directly: the functions of the C library are
//! cancellation points, which cost two atomic operations each. Only `receive`, for long bodies,
//! uses the C library's function. User buffers and symmetric memory are passed as pointers; no
//! slice of them is formed.
#![allow(unsafe_code)]

use rushmem_transport::LocalBuf;
use rustix::net::{RecvFlags, SendFlags};
use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The number of sends of this process. It expresses in the memory model what the kernel and the
/// peers ensure: the accesses of a thread before a send happen before those of any thread of this
/// process that has received data which a peer sent because of it. A thread that reads a later
/// count also synchronizes with earlier senders.
static SENDS: AtomicU32 = AtomicU32::new(0);

const NONE: libc::iovec = libc::iovec {
    iov_base: std::ptr::null_mut(),
    iov_len: 0,
};

/// Returns the argument of a send or receive of the first `N` ranges, whose list is in `vectors`.
fn message<const N: usize>(
    ranges: impl Iterator<Item = LocalBuf>,
    vectors: &mut [libc::iovec; N],
) -> libc::msghdr {
    let mut n = 0;
    for (vector, range) in vectors.iter_mut().zip(ranges) {
        *vector = libc::iovec {
            iov_base: range.base.cast(),
            iov_len: range.nbytes,
        };
        n += 1;
    }

    // SAFETY: a `msghdr` consists of numbers and pointers, for which zeros are valid and mean none.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = vectors.as_mut_ptr();
    message.msg_iovlen = n;
    message
}

/// Returns the number of bytes that a send or receive has returned, or its error.
fn count(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Maximum number of ranges of one send. Their list is on the stack; the kernel takes up to 1024.
pub(crate) const VECTORS: usize = 32;

/// Sends the first [`VECTORS`] ranges as far as the kernel has room. Does not block, and raises no
/// signal. Returns the number of bytes sent.
///
/// Calls the kernel directly: a race detector would assume of the C library's function that the
/// memory is read after a peer may have received it.
///
/// # Safety
/// Every range is valid for reads.
pub(crate) unsafe fn send(
    socket: impl AsFd,
    ranges: impl Iterator<Item = LocalBuf>,
) -> io::Result<usize> {
    let mut vectors = [NONE; VECTORS];
    let message = message(ranges, &mut vectors);
    let fd = socket.as_fd().as_raw_fd();
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;

    // Release, with the acquire of a receive: see `SENDS`.
    SENDS.fetch_add(1, Ordering::Release);

    // SAFETY: `fd` is open, since it is borrowed. `message` points to `vectors`, which live during
    // the call, and these to the ranges, which are valid for reads by contract.
    let nbytes = unsafe { libc::syscall(libc::SYS_sendmsg, fd, &raw const message, flags) };
    count(nbytes as isize)
}

/// Receives into memory and, once that is full, into a buffer of the caller. Does not block.
/// Returns the number of bytes, 0 at the end of the stream.
///
/// # Safety
/// The memory is valid for writes.
pub(crate) unsafe fn receive(
    socket: impl AsFd,
    memory: LocalBuf,
    buffer: &mut [MaybeUninit<u8>],
) -> io::Result<usize> {
    let buffer = LocalBuf {
        base: buffer.as_mut_ptr().cast(),
        nbytes: buffer.len(),
    };

    let mut vectors = [NONE; 2];
    let mut message = message([memory, buffer].into_iter(), &mut vectors);
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: `fd` is open, since it is borrowed. `message` points to `vectors`, which live during
    // the call, and these to the memory, which is valid for writes by contract, and to a slice that
    // is borrowed for writes.
    let nbytes = count(unsafe { libc::recvmsg(fd, &raw mut message, libc::MSG_DONTWAIT) })?;

    // Acquire, with the release of a send: see `SENDS`.
    SENDS.load(Ordering::Acquire);
    Ok(nbytes)
}

/// Receives into a buffer of the caller. Does not block. Returns the number of bytes, 0 at the end
/// of the stream.
pub(crate) fn receive_own(socket: impl AsFd, buffer: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
    let nbytes = rustix::net::recv(socket, buffer, RecvFlags::DONTWAIT)?.1;

    // Acquire, with the release of a send: see `SENDS`.
    SENDS.load(Ordering::Acquire);
    Ok(nbytes)
}

/// Returns true if data can be received, false at the end of the stream, and `None` if no data have
/// arrived. Receives nothing.
pub(crate) fn peek(socket: impl AsFd) -> io::Result<Option<bool>> {
    let peeked = rustix::io::retry_on_intr(|| {
        rustix::net::recv(&socket, &mut [0], RecvFlags::DONTWAIT | RecvFlags::PEEK)
    });
    match peeked {
        Ok((_, nbytes)) => Ok(Some(nbytes > 0)),
        Err(rustix::io::Errno::AGAIN) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Sends bytes of the caller as far as the kernel has room. Does not block, and raises no signal.
pub(crate) fn send_own(socket: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    // Release, with the acquire of a receive: see `SENDS`.
    SENDS.fetch_add(1, Ordering::Release);
    Ok(rustix::net::send(
        socket,
        bytes,
        SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
    )?)
}

/// Has the kernel report data only once this number of bytes has arrived. It reports fewer if its
/// buffer has no room for that many, and at the end of the stream.
pub(crate) fn set_low_water(socket: impl AsFd, nbytes: usize) -> io::Result<()> {
    let nbytes = nbytes as libc::c_int;
    // SAFETY: the descriptor is open, since it is borrowed, and `nbytes` has the size that is
    // passed.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVLOWAT,
            (&raw const nbytes).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };

    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Returns the time since the kernel last received data or an acknowledgment from the other host,
/// if it awaits an answer; `None` if it awaits none or does not tell. The host of a stopped process
/// is not silent, since its kernel answers.
pub(crate) fn silence(socket: impl AsFd) -> Option<Duration> {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut nbytes = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the descriptor is open, since it is borrowed. The kernel writes at most `nbytes`
    // bytes, the size of `info`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut nbytes,
        )
    };

    if result != 0 {
        return None;
    }

    // SAFETY: each byte of `info` was zeroed or written by the kernel, and every field is a number.
    let info = unsafe { info.assume_init() };
    let is_awaited = info.tcpi_unacked > 0 || info.tcpi_probes > 0;
    if !is_awaited {
        return None;
    }
    let last = info.tcpi_last_ack_recv.min(info.tcpi_last_data_recv);
    Some(Duration::from_millis(u64::from(last)))
}
