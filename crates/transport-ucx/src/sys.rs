//! The system calls that take raw memory or that safe crates do not have.

use std::ffi::c_char;
use std::io;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::thread::JoinHandle;

/// Do something with all signals blocked; threads that it starts take none.
pub(crate) fn without_signals<T>(act: impl FnOnce() -> T) -> T {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: it writes a set.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    let mut old = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the first set was written above, the second has room for one.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), old.as_mut_ptr()) };
    let done = act();
    // SAFETY: the set was written by the call that blocked all.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, old.as_ptr(), null_mut()) };
    done
}

/// Start a thread to which no signal is delivered and whose sleeps end on time.
pub(crate) fn spawn_quietly(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let builder = std::thread::Builder::new().name(name.to_owned());
    without_signals(|| {
        builder.spawn(move || {
            // SAFETY: takes numbers; where it fails sleeps end 50 us later.
            unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
            body();
        })
    })
}

/// What `print` writes to a stream of the C library; nothing where there is no memory for one.
pub(crate) fn printed(print: impl FnOnce(*mut libc::FILE)) -> String {
    let (mut text, mut nbytes): (*mut c_char, usize) = (null_mut(), 0);
    // SAFETY: both live until the stream is closed.
    let stream = unsafe { libc::open_memstream(&raw mut text, &raw mut nbytes) };
    if stream.is_null() {
        return String::new();
    }
    print(stream);
    // SAFETY: opened above and closed once.
    unsafe { libc::fclose(stream) };
    // SAFETY: the closed stream left that many bytes there.
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), nbytes) };
    let printed = String::from_utf8_lossy(bytes).into_owned();
    // SAFETY: allocated by the stream and freed once.
    unsafe { libc::free(text.cast()) };
    printed
}
