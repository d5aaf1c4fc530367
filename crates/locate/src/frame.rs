//! A function on a stack, with its place in the source code.

use crate::names;
use std::fmt;
use std::path::Path;

/// A function on a stack. An inlined function is a frame of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The name in the debug information, or else in the symbol table, mangled if it is of C++ or
    /// Rust; `None` if the function is in neither.
    pub name: Option<String>,
    /// The name in the symbol table; `None` for an inlined function.
    pub symbol: Option<String>,
    /// The line that the function has reached, or in which it calls the next frame; `None` if the
    /// debug information lacks it.
    pub line: Option<Line>,
    /// Whose function it is.
    pub owner: Owner,
}

/// Whose function a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The program, or a library that it uses.
    Program,
    /// Rushmem.
    Library,
    /// The run time of a language, and the headers of Rushmem: code that is between a function and
    /// what that function calls.
    Language,
    /// The C library, a library of a network that Rushmem has called, or a package of Rust that
    /// cargo has downloaded.
    System,
    /// Not known: the function has neither a name nor a line.
    Unknown,
}

/// A line of the source code, written as `FILE:LINE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The path of the file, as the compiler was given it.
    pub file: String,
    /// The number of the line, from 1.
    pub number: u32,
}

impl Frame {
    /// Returns the name in the source code.
    pub fn function(&self) -> Option<String> {
        Some(names::in_source(self.name.as_ref()?))
    }

    /// Returns true for a function of the program whose line is known.
    pub fn is_located(&self) -> bool {
        self.owner == Owner::Program && self.line.is_some()
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", from_here(&self.file), self.number)
    }
}

/// Returns a path relative to the current directory if it is inside it, or else the path itself.
pub fn from_here(path: &str) -> String {
    let Ok(here) = std::env::current_dir() else {
        return path.to_owned();
    };
    match Path::new(path).strip_prefix(here) {
        Ok(inside) => inside.display().to_string(),
        Err(_) => path.to_owned(),
    }
}
