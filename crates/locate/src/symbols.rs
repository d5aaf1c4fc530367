//! Reads the symbol tables and the debug information of the files of this process.

#[cfg(test)]
mod tests;

use crate::called::Memory;
use crate::files::{FilePosition, Headers, Maps};
use crate::frame::{Frame, Line, Owner};
use crate::owner;
use crate::stack::Stack;
use addr2line::Loader;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Finds functions and lines. Keeps what it has read of each file: the next search in it takes
/// microseconds.
#[derive(Default)]
pub struct Symbols(HashMap<PathBuf, Option<CodeFile>>);

/// A file of code, with its symbol table and its debug information.
struct CodeFile {
    headers: Headers,
    loader: Loader,
}

impl Symbols {
    /// Returns the frames of a stack of this process, innermost first. Reading the debug
    /// information of a large program may take seconds.
    ///
    /// Functions of the C library that have called all functions whose line is known have no names.
    /// They have called `main` or the function of a thread, and no message needs them. So the debug
    /// information of the C library, which is large, is mostly not read.
    pub fn frames(&mut self, stack: &Stack) -> Vec<Frame> {
        let maps = Maps::read();
        let positions: Vec<_> = stack
            .addresses()
            .iter()
            .map(|&address| maps.find(address))
            .collect();

        let mut frames = Vec::new();
        for position in &positions {
            frames.push(match position {
                Some(position) => FileFrames {
                    is_shared: is_shared_library(position.path),
                    frames: if owner::is_c_library(position.path) {
                        vec![nameless(position.path)]
                    } else {
                        self.frames_at_offset(position)
                    },
                },
                // Code that is in no file, such as that of the kernel or of a compiler at run time.
                None => FileFrames {
                    is_shared: false,
                    frames: vec![nameless(Path::new(""))],
                },
            });
        }

        let n_inside = frames.iter().rposition(FileFrames::has_line).unwrap_or(0);
        for (of_address, position) in frames.iter_mut().zip(&positions).take(n_inside) {
            if let Some(position) = position
                && owner::is_c_library(position.path)
            {
                of_address.frames = self.frames_at_offset(position);
            }
        }

        give_to_system(&mut frames);
        self.add_routines(stack, &mut frames);
        frames
            .into_iter()
            .flat_map(|of_address| of_address.frames)
            .collect()
    }

    /// Adds the frames of routines of the library that have jumped to another function of it, since
    /// messages name the routine that the program has called.
    fn add_routines(&mut self, stack: &Stack, frames: &mut [FileFrames]) {
        let Some(memory) = Memory::open() else {
            return;
        };
        for outer in 1..frames.len() {
            let [.., inner, caller] = &mut frames[..=outer] else {
                continue;
            };
            let is_entry =
                inner.owner() == Some(Owner::Library) && caller.owner() != Some(Owner::Library);
            if !is_entry {
                continue;
            }

            // The address is the last byte of the call.
            let return_address = stack.addresses()[outer] + 1;
            let Some(called) = memory.called_before(return_address) else {
                continue;
            };
            if let Some(routine) = self.name_at(called)
                && owner::is_routine(&routine)
            {
                inner.frames.push(Frame {
                    name: Some(routine.clone()),
                    symbol: Some(routine),
                    line: None,
                    owner: Owner::Library,
                });
            }
        }
    }

    /// Returns the name that the symbol table has for the function at an address of this process.
    pub fn name_at(&mut self, address: usize) -> Option<String> {
        let maps = Maps::read();
        let position = maps.find(address)?;
        let file = self.file(position.path)?;
        let address = file.headers.address(position.offset)?;
        Some(file.loader.find_symbol(address)?.to_owned())
    }

    /// Returns the frames at an address of a file, as its symbol table has addresses.
    pub fn frames_at(&mut self, path: &Path, address: u64) -> Vec<Frame> {
        match self.file(path) {
            Some(file) => file.frames(path, address),
            None => vec![nameless(path)],
        }
    }

    fn frames_at_offset(&mut self, position: &FilePosition<'_>) -> Vec<Frame> {
        let path = position.path;
        if let Some(file) = self.file(path)
            && let Some(address) = file.headers.address(position.offset)
        {
            return file.frames(path, address);
        }
        vec![nameless(path)]
    }

    fn file(&mut self, path: &Path) -> Option<&CodeFile> {
        let known = self.0.entry(path.to_owned());
        known.or_insert_with(|| CodeFile::open(path)).as_ref()
    }
}

impl CodeFile {
    fn open(path: &Path) -> Option<CodeFile> {
        let headers = Headers::read(path).ok()?;
        let shared = headers.shared_debug_file.as_ref();
        // The debug information of the library is not read: messages name its exported functions.
        let debug_file = if owner::is_library(path) {
            path
        } else {
            &headers.debug_file
        };
        let loader = Loader::new_with_sup(debug_file, shared).ok()?;
        Some(CodeFile { headers, loader })
    }

    /// Returns the functions that are inlined at an address, innermost first, and last the function
    /// that contains them.
    fn frames(&self, path: &Path, address: u64) -> Vec<Frame> {
        let mut found = self
            .frames_of_debug_information(address)
            .unwrap_or_default();
        if found.is_empty() {
            found.push(nameless(path));
        }
        if let Some(outer) = found.last_mut() {
            outer.symbol = self.loader.find_symbol(address).map(str::to_owned);
            outer.name = outer.name.take().or_else(|| outer.symbol.clone());
        }
        for frame in &mut found {
            frame.owner = owner::of_frame(path, frame);
        }
        found
    }

    fn frames_of_debug_information(&self, address: u64) -> Option<Vec<Frame>> {
        let mut frames = self.loader.find_frames(address).ok()?;
        let mut found = Vec::new();
        while let Some(frame) = frames.next().ok()? {
            let name = frame
                .function
                .and_then(|name| Some(name.raw_name().ok()?.into_owned()));
            let line = frame.location.and_then(|location| {
                Some(Line {
                    file: location.file?.to_owned(),
                    number: location.line?,
                })
            });

            found.push(Frame {
                name,
                symbol: None,
                line,
                owner: Owner::Unknown,
            });
        }
        Some(found)
    }
}

/// The frames at one address.
struct FileFrames {
    /// True if the address is in a shared library.
    is_shared: bool,
    frames: Vec<Frame>,
}

impl FileFrames {
    /// Returns true if the line of a frame is known.
    fn has_line(&self) -> bool {
        self.frames.iter().any(|frame| frame.line.is_some())
    }

    /// Returns the owner of the outermost frame.
    fn owner(&self) -> Option<Owner> {
        self.frames.last().map(|frame| frame.owner)
    }
}

/// Gives the frames of shared libraries that Rushmem has called, such as those of a network, to the
/// system.
fn give_to_system(stack: &mut [FileFrames]) {
    // From the outermost frame on.
    let mut is_called_by_library = false;
    for of_address in stack.iter_mut().rev() {
        for frame in &mut of_address.frames {
            if is_called_by_library && of_address.is_shared && frame.owner == Owner::Program {
                frame.owner = Owner::System;
            }
            is_called_by_library |= frame.owner == Owner::Library;
        }
    }
}

fn is_shared_library(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().contains(".so")
}

/// Returns the frame of code of which only the file is known.
fn nameless(path: &Path) -> Frame {
    let mut frame = Frame {
        name: None,
        symbol: None,
        line: None,
        owner: Owner::Unknown,
    };
    frame.owner = owner::of_frame(path, &frame);
    frame
}
