//! The system calls that fail, and with which errors: only those that the kernel can return for the
//! call as it is made. A call that does not block is never interrupted, for example.
//!
//! Calls are left out that only the runtimes of C and Rust make, before `main` and when a thread
//! starts, such as `mmap` in `oshrun`, by which Rust allocates a stack for signals.

use libc::c_long;
use rustix::io::Errno;

/// A system call that fails.
#[derive(Clone, Copy)]
pub struct FailingCall {
    pub name: &'static str,
    pub number: c_long,
    /// The errors with which it fails, each in jobs of its own.
    pub errors: &'static [Errno],
}

macro_rules! failing_calls {
    ($($(#[$condition:meta])* $call:ident ($number:ident): $($error:ident)+,)+) => {
        &[$($(#[$condition])* FailingCall {
            name: stringify!($call),
            number: libc::$number,
            errors: &[$(Errno::$error),+],
        },)+]
    };
}

/// The calls that fail in a PE; the test is ignored if the PE does not make the call. Calls by
/// which only the program itself reads and writes are left out.
pub const OF_PES: &[FailingCall] = failing_calls! {
    accept4 (SYS_accept4): MFILE CONNABORTED NOBUFS,
    bind (SYS_bind): ADDRINUSE,
    clone3 (SYS_clone3): AGAIN NOSYS,
    connect (SYS_connect): CONNREFUSED TIMEDOUT ADDRNOTAVAIL INTR,
    epoll_create1 (SYS_epoll_create1): MFILE NOMEM,
    epoll_ctl (SYS_epoll_ctl): NOMEM NOSPC,
    epoll_pwait (SYS_epoll_pwait): INTR,
    #[cfg(target_arch = "x86_64")]
    epoll_wait (SYS_epoll_wait): INTR,
    eventfd2 (SYS_eventfd2): MFILE NOMEM,
    fallocate (SYS_fallocate): NOSPC INTR OPNOTSUPP,
    fcntl (SYS_fcntl): MFILE,
    getdents64 (SYS_getdents64): NOMEM,
    getrandom (SYS_getrandom): INTR,
    getsockname (SYS_getsockname): NOBUFS,
    listen (SYS_listen): ADDRINUSE,
    madvise (SYS_madvise): INVAL NOMEM,
    memfd_create (SYS_memfd_create): MFILE NOMEM,
    mmap (SYS_mmap): NOMEM,
    mprotect (SYS_mprotect): NOMEM,
    munmap (SYS_munmap): NOMEM,
    newfstatat (SYS_newfstatat): NOMEM,
    openat (SYS_openat): MFILE NFILE INTR,
    #[cfg(target_arch = "x86_64")]
    poll (SYS_poll): INTR NOMEM,
    ppoll (SYS_ppoll): INTR NOMEM,
    pread64 (SYS_pread64): INTR,
    prlimit64 (SYS_prlimit64): PERM,
    pwrite64 (SYS_pwrite64): NOSPC,
    read (SYS_read): INTR,
    readlinkat (SYS_readlinkat): NOMEM,
    recvfrom (SYS_recvfrom): CONNRESET NOMEM INTR,
    recvmsg (SYS_recvmsg): CONNRESET NOMEM,
    sched_getaffinity (SYS_sched_getaffinity): INVAL,
    sendmsg (SYS_sendmsg): CONNRESET NOBUFS,
    sendto (SYS_sendto): CONNRESET NOBUFS INTR,
    setsockopt (SYS_setsockopt): NOBUFS,
    socket (SYS_socket): MFILE NOBUFS,
    statx (SYS_statx): NOSYS NOMEM,
    timerfd_create (SYS_timerfd_create): MFILE,
};

/// The calls that fail in `oshrun`, its guard, its daemons, and their children until these execute
/// the program.
pub const OF_OSHRUN: &[FailingCall] = failing_calls! {
    accept4 (SYS_accept4): MFILE CONNABORTED,
    clone (SYS_clone): AGAIN,
    clone3 (SYS_clone3): AGAIN NOSYS,
    #[cfg(target_arch = "x86_64")]
    dup2 (SYS_dup2): MFILE,
    dup3 (SYS_dup3): MFILE,
    epoll_create1 (SYS_epoll_create1): MFILE,
    epoll_ctl (SYS_epoll_ctl): NOMEM NOSPC,
    epoll_pwait (SYS_epoll_pwait): INTR,
    #[cfg(target_arch = "x86_64")]
    epoll_wait (SYS_epoll_wait): INTR,
    eventfd2 (SYS_eventfd2): MFILE,
    execve (SYS_execve): NOMEM TOOBIG,
    fcntl (SYS_fcntl): MFILE,
    ftruncate (SYS_ftruncate): NOSPC,
    getrandom (SYS_getrandom): INTR,
    kill (SYS_kill): PERM,
    madvise (SYS_madvise): INVAL,
    memfd_create (SYS_memfd_create): MFILE NOMEM,
    munmap (SYS_munmap): NOMEM,
    newfstatat (SYS_newfstatat): NOMEM,
    openat (SYS_openat): MFILE NFILE INTR,
    pipe2 (SYS_pipe2): MFILE,
    #[cfg(target_arch = "x86_64")]
    poll (SYS_poll): INTR NOMEM,
    prctl (SYS_prctl): INVAL,
    prlimit64 (SYS_prlimit64): PERM,
    read (SYS_read): INTR,
    sched_setaffinity (SYS_sched_setaffinity): INVAL PERM,
    sendto (SYS_sendto): NOBUFS INTR,
    setsid (SYS_setsid): PERM,
    socketpair (SYS_socketpair): MFILE,
    statx (SYS_statx): NOSYS NOMEM,
    unlinkat (SYS_unlinkat): ACCESS,
    wait4 (SYS_wait4): INTR,
    waitid (SYS_waitid): INTR,
    write (SYS_write): NOSPC,
};
