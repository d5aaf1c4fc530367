//! Names on a stack in which the program has called the C library, which has called the program.
#![allow(unsafe_code)]

use super::*;
use core::ffi::{c_int, c_void};
use std::sync::Mutex;

static STACK: Mutex<Option<Stack>> = Mutex::new(None);

extern "C" fn compare(_: *const c_void, _: *const c_void) -> c_int {
    *STACK.lock().expect("no other thread") = Some(Stack::capture());
    0
}

/// The C library has called the function of this thread, which calls it.
#[test]
fn the_c_library_has_names_inside_the_program() {
    let mut numbers = [2_u8, 1];
    // SAFETY: these are two numbers of one byte, which `compare` does not read.
    unsafe { libc::qsort(numbers.as_mut_ptr().cast(), 2, 1, Some(compare)) };

    let stack = STACK.lock().expect("no other thread").take();
    let frames = Symbols::default().frames(&stack.expect("it compares"));
    let of_system: Vec<bool> = frames
        .iter()
        .filter(|frame| frame.owner == Owner::System)
        .map(|frame| frame.name.is_some())
        .collect();
    assert_eq!(of_system.first(), Some(&true), "{frames:?}");
    assert_eq!(of_system.last(), Some(&false), "{frames:?}");
}
