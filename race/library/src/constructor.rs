//! A program that is linked with this library asks for the detector.
#![allow(unsafe_code)]

/// The variable that asks for it, and the value.
const VARIABLE: &str = "SHMEM_CHECK";
const VALUE: &str = "races";

extern "C" fn ask() {
    // The runtime opens the library for programs that run with another value.
    if std::env::var_os(VARIABLE).is_none() {
        // SAFETY: the loader runs this before `main`, on the only thread.
        unsafe { std::env::set_var(VARIABLE, VALUE) };
    }
    // The function that is registered first runs last.
    crate::at_exit::register();
}

#[used]
#[unsafe(link_section = ".init_array")]
static ASK: extern "C" fn() = ask;
