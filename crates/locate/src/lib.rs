//! Finds where in a program something is: the functions and lines of a stack, what of it belongs to
//! the program and what to the library, the line of a Python program, and the names of functions
//! and static variables in the source code.
//!
//! Messages, crash reports, hang reports, traces and the race detector all ask this crate, so that
//! they agree. Nothing is recorded in advance: the stack is a list of addresses ([`Stack`]), and
//! [`Symbols`] reads the symbol tables and the debug information of the files when a report needs
//! them. Without debug information there are no lines.

mod called;
mod declarations;
mod files;
mod frame;
pub mod names;
mod owner;
mod python;
mod stack;
mod symbols;
mod variables;

pub use declarations::{Declaration, declarations};
pub use frame::{Frame, Line, Owner, from_here};
pub use python::{PythonLine, PythonThread};
pub use stack::{Stack, VisitedFrame, visit};
pub use symbols::Symbols;
pub use variables::{Variable, Variables};
