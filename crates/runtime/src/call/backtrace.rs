//! Parses the text of a backtrace of Rust's standard library. A crate for backtraces would add code
//! to each program, although the standard library already contains it.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_char, c_int};
use std::ffi::CString;
use std::path::Path;
use std::ptr::null_mut;

/// The prefixes of the names of functions that do not belong to the program: the profiling names of
/// exported routines, the crates of the library (`shmem` is the Rust interface), and the standard
/// libraries of Rust and C++. A library without symbols has only the exported names.
const OUR_PREFIXES: [&str; 19] = [
    "psh",
    "pstart_pes",
    "p_my_pe",
    "p_num_pes",
    "pmy_pe_",
    "pnum_pes_",
    "rushmem",
    "shmem::",
    "std::",
    "core::",
    "alloc::",
    "unknown>",
    "_ZSt",
    "_ZNSt",
    "_ZNKSt",
    "_ZN9__gnu_cxx",
    "_ZNK9__gnu_cxx",
    "_ZNKRSt",
    "_ZNOSt",
];
/// The headers whose inline C++ functions call the C routines.
const HEADERS: [&str; 2] = ["shmem.h", "shmemx.h"];
/// The functions in which the C library calls `main` or the function of a thread.
const OUTERMOST: [&str; 2] = ["start_thread", "__libc_start_call_main"];
/// The directory of the sources of Rust's own libraries.
const RUST_SOURCES: &str = "/rustc/";
/// The directory of this module from the root of our sources.
const THIS_MODULE: &str = "/crates/runtime/src/call/";
/// The directories of the library's crates from that root.
const OUR_CRATES: [&str; 2] = ["/crates/", "/sys/"];

/// A function on the stack. An inlined function is a frame of its own.
#[derive(Clone, Copy)]
pub(super) struct Frame<'a> {
    /// The name, mangled if it is of C++.
    pub(super) name: &'a str,
    /// `FILE:LINE:COLUMN`, or `FILE:LINE` from compilers that write no columns; `None` if unknown.
    pub(super) place: Option<&'a str>,
}

/// Returns the frames of a backtrace, innermost first.
pub(super) fn frames(stack: &str) -> Vec<Frame<'_>> {
    let mut frames: Vec<Frame<'_>> = Vec::new();
    for line in stack.lines().map(str::trim_start) {
        match (line.strip_prefix("at "), frames.last_mut()) {
            (Some(place), Some(frame)) => frame.place = Some(place),
            _ => {
                let name = line.split_once(" - ").map_or(line, |(_, name)| name);
                frames.push(Frame { name, place: None });
            }
        }
    }
    frames
}

/// Returns a test whether a frame belongs to the library or to the runtime of a language. Debug
/// information may have short names of functions, so the sources of our crates are recognized, too:
/// the frame in `frames` that has captured the backtrace shows where they are.
pub(super) fn library_test<'a>(frames: &[Frame<'a>]) -> impl Fn(&Frame<'_>) -> bool + use<'a> {
    let root = frames
        .iter()
        .find_map(|frame| Some(frame.place?.split_once(THIS_MODULE)?.0));
    move |frame| {
        let is_of_crate = |path: &str| {
            path.contains("/src/") && OUR_CRATES.iter().any(|dir| path.starts_with(dir))
        };
        let is_source = |place: &str| {
            place.starts_with(RUST_SOURCES)
                || root
                    .and_then(|root| place.strip_prefix(root))
                    .is_some_and(is_of_crate)
        };
        frame.has_our_name() || frame.place.is_some_and(is_source)
    }
}

impl Frame<'_> {
    fn has_our_name(&self) -> bool {
        let name = self.name.trim_start_matches(['<', '&', '[']);
        OUR_PREFIXES.iter().any(|start| name.starts_with(start)) || self.is_overload()
    }

    /// Returns true for an inline function of our headers, which C++ programs call by the name of a
    /// generic routine.
    pub(super) fn is_overload(&self) -> bool {
        let file = |place| file_of(place).rsplit('/').next().unwrap_or_default();
        self.place
            .is_some_and(|place| HEADERS.contains(&file(place)))
    }

    /// Returns true if the C library calls `main` or the function of a thread in this frame.
    pub(super) fn is_outermost(&self) -> bool {
        OUTERMOST.contains(&self.name)
    }

    /// Returns `FILE:LINE`, relative to the current directory if the file is in it.
    pub(super) fn line(&self) -> Option<String> {
        Some(relative_path(without_column(self.place?)))
    }

    /// Returns the name as it is in the source of the program.
    pub(super) fn function(&self) -> String {
        demangled(self.name).unwrap_or_else(|| self.name.to_owned())
    }
}

/// Returns a path relative to the current directory if it is inside it, or else the whole path.
pub(super) fn relative_path(place: &str) -> String {
    let current = std::env::current_dir().ok();
    let inside =
        current.and_then(|current| Some(Path::new(place).strip_prefix(current).ok()?.to_owned()));
    inside.map_or_else(|| place.to_owned(), |inside| inside.display().to_string())
}

/// Returns the file of `FILE:LINE:COLUMN`.
pub(super) fn file_of(place: &str) -> &str {
    place.split(':').next().unwrap_or_default()
}

/// Returns `FILE:LINE` from `FILE:LINE:COLUMN` or `FILE:LINE`: not all compilers write columns.
fn without_column(place: &str) -> &str {
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    match place.rsplit_once(':') {
        Some((rest, _))
            if rest
                .rsplit_once(':')
                .is_some_and(|(_, line)| is_number(line)) =>
        {
            rest
        }
        _ => place,
    }
}

/// Returns the demangled name of a function or variable of C++. Returns `None` for other names, and
/// in programs without the C++ library, which has the function that demangles.
pub(crate) fn demangled(name: &str) -> Option<String> {
    type Demangle =
        unsafe extern "C" fn(*const c_char, *mut c_char, *mut usize, *mut c_int) -> *mut c_char;
    let mangled = CString::new(name).ok().filter(|_| name.starts_with("_Z"))?;
    // SAFETY: `dlsym` accepts any string.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__cxa_demangle".as_ptr()) };
    if found.is_null() {
        return None;
    }
    // SAFETY: the C++ ABI defines this type for the function of this name.
    let demangle: Demangle = unsafe { std::mem::transmute(found) };
    let mut status = 0;
    // SAFETY: a string, and no buffer, so that the function allocates one.
    let text = unsafe { demangle(mangled.as_ptr(), null_mut(), null_mut(), &raw mut status) };
    if text.is_null() {
        return None;
    }
    // SAFETY: the result is a string if it is not null.
    let name = unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned();
    // SAFETY: the function has allocated the string by `malloc`, and it is not used any more.
    unsafe { libc::free(text.cast()) };
    Some(name)
}
