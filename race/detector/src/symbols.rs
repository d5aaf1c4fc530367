//! Finds the function and the source line of an address of the program, from its debug information.

use addr2line::Loader;
use std::collections::HashMap;
use std::path::Path;

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
        self.function
            .as_ref()
            .map_or(Ok(()), |function| write!(f, " ({function})"))
    }
}

thread_local! {
    // Each thread has its own loaders, since a `Loader` cannot be shared.
    static LOADERS: std::cell::RefCell<HashMap<String, Option<Loader>>> = Default::default();
}

fn with_loader<R>(module: &str, f: impl FnOnce(&Loader) -> Option<R>) -> Option<R> {
    // When a thread ends, its destructors may run after this variable was dropped.
    let found = LOADERS.try_with(|loaders| {
        let mut loaders = loaders.borrow_mut();
        let loader = loaders
            .entry(module.to_owned())
            .or_insert_with(|| Loader::new(module).ok());
        loader.as_ref().and_then(f)
    });
    found.ok().flatten()
}

/// Returns the function and the source line of an address in the file `module`.
pub fn source(module: &str, address: u64) -> SourceLine {
    let found = with_loader(module, |loader| {
        let symbol = loader.find_symbol(address).map(str::to_owned);
        let mut frames = loader.find_frames(address).ok()?;
        let mut first = None;
        // If the compiler has inlined functions into one another, takes the innermost one that is
        // not of a library.
        while let Some(frame) = frames.next().ok()? {
            let name = frame
                .function
                .and_then(|name| Some(name.demangle().ok()?.into_owned()));
            let file = frame.location.as_ref().and_then(|at| at.file);
            let is_of_program = name.as_ref().is_none_or(|name| !is_of_a_library(name))
                && file.is_none_or(|file| !is_our_header(file));
            let found = (name, frame.location);
            if is_of_program {
                first = Some(found);
                break;
            }
            first = first.or(Some(found));
        }
        let Some((name, location)) = first else {
            return Some(SourceLine {
                function: symbol,
                ..SourceLine::default()
            });
        };
        let (file, line) = location.map_or((None, None), |at| (at.file.map(from_here), at.line));
        Some(SourceLine {
            function: name.or(symbol),
            file,
            line,
        })
    });
    found.unwrap_or_default()
}

/// Returns the functions and source lines of frames, without those of libraries. If all are of
/// libraries, returns all.
pub fn of_program(frames: &[(String, u64)]) -> Vec<SourceLine> {
    let all: Vec<_> = frames
        .iter()
        .map(|(module, at)| source(module, *at))
        .collect();
    let is_of_program = |line: &SourceLine| {
        line.function
            .as_ref()
            .is_none_or(|name| !is_of_a_library(name))
            && line
                .file
                .as_ref()
                .is_none_or(|file| !file.contains("/library/core/") && !is_our_header(file))
    };
    let kept: Vec<_> = all
        .iter()
        .filter(|line| is_of_program(line))
        .cloned()
        .collect();
    if kept.is_empty() { all } else { kept }
}

/// Returns true if the name of a function is that of a library of C++ or Rust, or of Rushmem.
fn is_of_a_library(name: &str) -> bool {
    let starts = [
        "std::",
        "core::",
        "alloc::",
        "shmem::",
        "rushmem_runtime::",
        "rushmem_transport::",
    ];
    starts.iter().any(|start| {
        name.trim_start_matches(['<', '&'])
            .trim_start_matches("dyn ")
            .starts_with(start)
    })
}

/// Returns true if a file is one of Rushmem's headers, whose inline functions of C++ call those of
/// C.
fn is_our_header(file: &str) -> bool {
    matches!(Path::new(file).file_name(), Some(name) if name == "shmem.h" || name == "shmemx.h")
}

/// Returns a path relative to the current directory if the file is in it, otherwise the path
/// itself.
pub fn from_here(path: &str) -> String {
    let here = std::env::current_dir().ok();
    let inside = here.and_then(|here| {
        Some(
            Path::new(path)
                .strip_prefix(here)
                .ok()?
                .display()
                .to_string(),
        )
    });
    inside.unwrap_or_else(|| path.to_owned())
}

/// Returns true if the function at an address is of Rushmem, by its name: Rushmem may be linked
/// into the program.
pub fn is_ours(module: &str, address: u64) -> bool {
    symbol(module, address).is_some_and(|name| {
        let starts = [
            "pshmem",
            "shmem_",
            "_ZN7rushmem",
            "_ZN15rushmem",
            "rushmem_",
            "_ZN5shmem",
        ];
        starts.iter().any(|start| name.starts_with(start)) || name.contains("rushmem_runtime")
    })
}

/// Returns true if the function at an address is of the C++ library, by its name: its templates are
/// in the program.
pub fn is_of_cxx(module: &str, address: u64) -> bool {
    symbol(module, address).is_some_and(|name| {
        let starts = ["_ZNSt", "_ZNKSt", "_ZSt", "_ZN9__gnu_cxx", "_ZNK9__gnu_cxx"];
        starts.iter().any(|start| name.starts_with(start))
    })
}

/// Returns the name of the function at an address, as the linker has it.
fn symbol(module: &str, address: u64) -> Option<String> {
    with_loader(module, |loader| {
        loader.find_symbol(address).map(str::to_owned)
    })
}
