//! Finds the function and the source line of an address of the program, from its debug information.

use rushmem_locate::{Frame, Owner, Symbols, from_here};
use std::cell::RefCell;
use std::path::Path;

/// A frame of a stack.
#[derive(Clone, Debug)]
pub struct SiteFrame {
    /// The path of the file that has the code.
    pub module: String,
    /// The address in the file.
    pub address: u64,
}

/// A function and a source line, as far as they are known. It is written as `FILE:LINE (FUNCTION)`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceLine {
    /// The demangled name of the function.
    pub function: Option<String>,
    /// The path of the source file, relative to the current directory if the file is in it.
    pub file: Option<String>,
    /// The number of the line, from 1.
    pub line: Option<u32>,
}

impl std::fmt::Display for SourceLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{file}:{line}")?,
            (Some(file), None) => write!(f, "{file}")?,
            _ => f.write_str("a place without debug information")?,
        }
        match &self.function {
            Some(function) => write!(f, " ({function})"),
            None => Ok(()),
        }
    }
}

impl SourceLine {
    fn of(frame: &Frame) -> SourceLine {
        SourceLine {
            function: frame.function(),
            file: frame.line.as_ref().map(|line| from_here(&line.file)),
            line: frame.line.as_ref().map(|line| line.number),
        }
    }
}

thread_local! {
    // Each thread reads the files itself, so that none waits for another one.
    static SYMBOLS: RefCell<Symbols> = RefCell::default();
}

/// Returns the functions and source lines of frames, without those of libraries. If all are of
/// libraries, returns all.
pub fn of_program(frames: &[SiteFrame]) -> Vec<SourceLine> {
    let all: Vec<Frame> = frames
        .iter()
        .filter_map(|frame| innermost(&frame.module, frame.address))
        .collect();
    let has_any = all.iter().any(is_of_program);
    all.iter()
        .filter(|frame| !has_any || is_of_program(frame))
        .map(SourceLine::of)
        .collect()
}

/// Returns whose function is at an address of the file `module`, without those that are inlined
/// into it.
pub fn owner(module: &str, address: u64) -> Option<Owner> {
    frames(module, address).last().map(|frame| frame.owner)
}

/// Returns the frame of an address. If the compiler has inlined functions into one another, takes
/// the innermost one that is of the program.
fn innermost(module: &str, address: u64) -> Option<Frame> {
    let mut frames = frames(module, address);
    if frames.is_empty() {
        return None;
    }
    let index = frames.iter().position(is_of_program).unwrap_or(0);
    Some(frames.swap_remove(index))
}

fn is_of_program(frame: &Frame) -> bool {
    matches!(frame.owner, Owner::Program | Owner::Unknown)
}

fn frames(module: &str, address: u64) -> Vec<Frame> {
    // When a thread ends, its destructors may run after this variable was dropped.
    let found =
        SYMBOLS.try_with(|symbols| symbols.borrow_mut().frames_at(Path::new(module), address));
    found.unwrap_or_default()
}
