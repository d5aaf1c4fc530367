//! Reads what a C library prints to a stream. No safe crate has `open_memstream`.
#![allow(unsafe_code)]

use std::ffi::c_char;
use std::ptr::null_mut;

/// Returns the text that `print` writes to a stream of the C library. Returns an empty text if there
/// is no memory for a stream.
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
