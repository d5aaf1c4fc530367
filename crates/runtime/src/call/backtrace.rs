//! Reads the text of a backtrace, which Rust's standard library makes: every program has that code
//! already.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_char, c_int};
use std::ffi::CString;
use std::path::Path;
use std::ptr::null_mut;

/// The prefixes of the names of the library's functions: the profiling names of what it exports,
/// those of its crates, of which `shmem` is the Rust interface, and those of Rust and C++ that
/// programs and it use. A library without symbols has only the names that it exports.
const OURS: [&str; 19] = [
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
/// The headers that have functions of C++, which call those of C.
const HEADERS: [&str; 2] = ["shmem.h", "shmemx.h"];
/// The functions in which the C library calls threads and `main`, which end a stack.
const OUTERMOST: [&str; 2] = ["start_thread", "__libc_start_call_main"];
/// The directory of the sources of Rust's own libraries.
pub(super) const OF_RUST: &str = "/rustc/";

/// A function on the stack. One that was inlined is a frame, too.
#[derive(Clone, Copy)]
pub(super) struct Frame<'a> {
    /// Its name, mangled if it is of C++.
    pub(super) name: &'a str,
    /// `FILE:LINE:COLUMN`, where that is known.
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

impl Frame<'_> {
    /// Returns true if the function is the library's, or a language's own.
    pub(super) fn is_ours(&self) -> bool {
        let name = self.name.trim_start_matches(['<', '&', '[']);
        OURS.iter().any(|start| name.starts_with(start)) || self.is_overload()
    }

    /// Returns true if it is a function of our headers, which C++ programs call by the name of the
    /// generic one.
    pub(super) fn is_overload(&self) -> bool {
        let file = |place| file_of(place).rsplit('/').next().unwrap_or_default();
        self.place.is_some_and(|place| HEADERS.contains(&file(place)))
    }

    /// Returns true if the C library calls threads or `main` there.
    pub(super) fn is_outermost(&self) -> bool {
        OUTERMOST.contains(&self.name)
    }

    /// Returns `FILE:LINE`, from the directory of this process if the file is in there.
    pub(super) fn line(&self) -> Option<String> {
        Some(from_here(without_column(self.place?)))
    }

    /// Returns the name as the program has it.
    pub(super) fn function(&self) -> String {
        demangled(self.name).unwrap_or_else(|| self.name.to_owned())
    }
}

/// Returns a path from the directory of this process, if it is in there.
pub(super) fn from_here(place: &str) -> String {
    let here = std::env::current_dir().ok();
    let inside = here.and_then(|here| Some(Path::new(place).strip_prefix(here).ok()?.to_owned()));
    inside.map_or_else(|| place.to_owned(), |inside| inside.display().to_string())
}

/// Returns the file of `FILE:LINE:COLUMN`.
pub(super) fn file_of(place: &str) -> &str {
    place.split(':').next().unwrap_or_default()
}

/// Returns `FILE:LINE` of `FILE:LINE:COLUMN`; not all compilers write columns.
fn without_column(place: &str) -> &str {
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    match place.rsplit_once(':') {
        Some((rest, _)) if rest.rsplit_once(':').is_some_and(|(_, line)| is_number(line)) => rest,
        _ => place,
    }
}

/// Returns the name of a function or variable of C++, by the library of that language, which a program in it
/// has.
pub(crate) fn demangled(name: &str) -> Option<String> {
    type Demangle =
        unsafe extern "C" fn(*const c_char, *mut c_char, *mut usize, *mut c_int) -> *mut c_char;
    let mangled = CString::new(name).ok().filter(|_| name.starts_with("_Z"))?;
    // SAFETY: looks a name up.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__cxa_demangle".as_ptr()) };
    if found.is_null() {
        return None;
    }
    // SAFETY: the function of this name has this type.
    let demangle: Demangle = unsafe { std::mem::transmute(found) };
    let mut status = 0;
    // SAFETY: a string; no buffer, so that it allocates one.
    let text = unsafe { demangle(mangled.as_ptr(), null_mut(), null_mut(), &raw mut status) };
    if text.is_null() {
        return None;
    }
    // SAFETY: a string, since it is not null.
    let name = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    // SAFETY: allocated by `malloc`, and used no more.
    unsafe { libc::free(text.cast()) };
    Some(name)
}
