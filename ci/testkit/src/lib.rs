//! The parts that tests of real processes share: the installed prefix, compiled test programs, and
//! jobs under a hard time limit that are checked for what they leave behind.
//!
//! It uses only the command lines of `oshcc` and `oshrun`, and nothing of the library. A failed
//! check is a panic whose text has the command, the status and the output.
#![forbid(unsafe_code)]

mod compile;
mod harness;
mod inputs;
mod job;
mod libraries;
mod limits;
mod mark;
mod outcome;
pub mod pages;
mod permits;
mod prefix;
mod seed;
mod started;
mod traces;

pub use compile::{compile, compile_text, needs_fortran};
pub use harness::{Test, absent, run};
pub use job::{Job, Running};
pub use libraries::{has_library, needs_library};
pub use limits::{LIMIT, eventually, every_size, patient};
pub use mark::{Process, TestMark, kill};
pub use outcome::Outcome;
pub use prefix::prefix;
pub use seed::seed;
pub use started::{Overdue, Started};
pub use traces::Traces;

/// Defines the `main` of a file of tests that is compiled with `harness = false`, which runs the
/// functions of these names. Those behind `; ignored "WHY" =>` run only on request.
///
/// A test function that is missing in the list is unused, so the compiler warns of it.
#[macro_export]
macro_rules! tests {
    ($($list:tt)*) => {
        $crate::module_tests! { $($list)* }

        fn main() -> std::process::ExitCode {
            $crate::run(tests())
        }
    };
}

/// Defines the function `tests` of a module of such a program, which returns the module's tests.
/// Their names begin with the path of the module, as in cargo's own harness.
#[macro_export]
macro_rules! module_tests {
    ($($name:path,)* $(; ignored $why:literal => $($ignored:path,)*)*) => {
        /// Returns the tests of this file.
        pub fn tests() -> Vec<$crate::Test> {
            let named = |name| $crate::in_module(module_path!(), name);
            vec![
                $($crate::Test::new(named(stringify!($name)), $name),)*
                $($($crate::Test::new(named(stringify!($ignored)), $ignored).ignored($why),)*)*
            ]
        }
    };
}

/// Returns the name of a test of a module, without the name of the crate.
#[doc(hidden)]
pub fn in_module(path: &str, name: &str) -> String {
    match path.split_once("::") {
        Some((_, module)) => format!("{module}::{name}"),
        None => name.to_owned(),
    }
}

/// Declares the modules of a file of tests that is compiled with `harness = false`, and defines its
/// `main`, which runs the tests of all of them.
#[macro_export]
macro_rules! test_modules {
    ($($module:ident),* $(,)?) => {
        $(mod $module;)*

        fn main() -> std::process::ExitCode {
            $crate::run([$($module::tests()),*].into_iter().flatten().collect())
        }
    };
}

/// Compiles a program of the calling package's directory `tests/programs`, and returns its path;
/// further arguments are flags of the compiler.
///
/// This is a macro since only the calling test knows its package and cargo's directory for its
/// files.
#[macro_export]
macro_rules! program {
    ($name:expr $(, $flag:expr)* $(,)?) => {
        $crate::compile(
            &std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join($name),
            std::path::Path::new(env!("CARGO_TARGET_TMPDIR")),
            &[$($flag),*],
        )
    };
}

/// As [`program`], from the directory `tests/scenarios`. Its programs are for the tests of one
/// subject each, with arguments that those choose.
#[macro_export]
macro_rules! scenario {
    ($name:expr $(, $flag:expr)* $(,)?) => {
        $crate::compile(
            &std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios").join($name),
            std::path::Path::new(env!("CARGO_TARGET_TMPDIR")),
            &[$($flag),*],
        )
    };
}
