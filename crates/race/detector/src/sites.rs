//! Sites: the places in the program's code that make accesses, each with the routine that is called
//! there and the stack of the call.
//!
//! All processes number them in one shared table, so that a record of an access has its site in
//! half a word, and any PE can report it. A site is kept as addresses within the files from which
//! the program is loaded, since these are the same in all processes.
#![allow(unsafe_code)]

use crate::areas::{Counter, MAX_MODULES, MAX_SITES, MODULE_WORDS, SITE_WORDS, SharedAreas};
use crate::known::{self, RecentSite};
use crate::shared::lock;
use crate::symbols::{self, SiteFrame};
use core::ffi::{CStr, c_int, c_void};
use rushmem_locate::{Owner, VisitedFrame};
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// Maximum number of frames of a site. Two calls whose innermost frames are the same count as one
/// site.
const FRAMES: usize = SITE_WORDS - 2 - NAME_WORDS;
/// Words of the name of a routine. A longer name is cut off in reports.
const NAME_WORDS: usize = 8;

/// A loaded segment of the executable or of a shared library.
#[derive(Clone, Debug)]
struct Module {
    addresses: Range<usize>,
    file: LoadedFile,
}

/// A file from which code was loaded.
#[derive(Clone, Debug)]
pub struct LoadedFile {
    /// The path.
    pub path: String,
    /// The difference between addresses in the process and in the file.
    pub base: usize,
}

impl LoadedFile {
    /// Returns true if the file's name begins with one of these.
    fn is_named(&self, starts: &[&str]) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or("");
        starts.iter().any(|start| name.starts_with(start))
    }
}

static MODULES: Mutex<Vec<Module>> = Mutex::new(Vec::new());

/// A place in the program's code that makes accesses.
#[derive(Clone, Debug)]
pub struct Site {
    /// The name of the routine that is called; empty for a load, a store or an atomic operation of
    /// the program.
    pub call: String,
    /// The frames of the stack, from the innermost one.
    pub frames: Vec<SiteFrame>,
}

/// A site, as the threads of this process recognize it.
#[derive(PartialEq, Eq, Hash)]
struct SiteKey {
    /// The address of the routine's name.
    call: usize,
    /// The address of an instruction, or a hash of the return addresses of a stack.
    stack: u64,
}

thread_local! {
    /// The numbers of the sites that the thread has used.
    static KNOWN: RefCell<HashMap<SiteKey, u32>> = RefCell::default();
}

/// Returns the number of the site where the program calls `call`; 0 if the table is full.
#[inline(never)]
pub fn of_call(areas: &SharedAreas, call: &'static str) -> u32 {
    let local = 0u8;
    let called = CalledRoutine {
        name: call.as_ptr().addr(),
        variable: (&raw const local).addr(),
    };
    if let Some(site) = called.known_site() {
        return site;
    }

    let stack = Stack::unwind();
    let calls = stack.calls();
    let mut hasher = DefaultHasher::new();
    calls.hash(&mut hasher);
    let site = number(areas, call, hasher.finish(), || program_frames(&calls));
    called.remember(&stack, site);
    site
}

/// Returns the number of the site of an instruction; 0 if the table is full.
pub fn of_address(areas: &SharedAreas, address: usize) -> u32 {
    let recent = known::recent_site(address);
    if let Some(recent) = recent
        && recent.get().address == address
    {
        return recent.get().site;
    }

    let site = number(areas, "", address as u64, || vec![address]);
    if let Some(recent) = recent {
        recent.set(RecentSite { address, site });
    }
    site
}

/// Returns the number of the site with this routine and stack. Calls `frames` if the thread has not
/// used the site before.
fn number(
    areas: &SharedAreas,
    call: &'static str,
    stack: u64,
    frames: impl FnOnce() -> Vec<usize>,
) -> u32 {
    let key = SiteKey {
        call: call.as_ptr().addr(),
        stack,
    };
    // When a thread ends, its destructors may run after this variable was dropped.
    let known = KNOWN.try_with(|known| known.borrow().get(&key).copied());
    if let Some(known) = known.ok().flatten() {
        return known;
    }

    let site = intern(areas, call, &frames());
    // As above: without the variable the site is looked up again.
    let _ = KNOWN.try_with(|known| known.borrow_mut().insert(key, site));
    site
}

/// Returns true if a function of librushmem.so, UCX or libfabric is on the stack.
pub fn is_called_by_library() -> bool {
    // Not `librushmem`: functions of this library, librushmem-race.so, are always on the stack.
    Stack::unwind().calls().iter().any(|address| {
        find(*address).is_some_and(|file| file.is_named(&["librushmem.so", "libuc", "libfabric"]))
    })
}

/// Whose code is at an address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CodeOwner {
    /// The program, or a library that it uses.
    Program,
    /// Rushmem, which may be linked into the program.
    Library,
    /// The run time of the compiler.
    RunTime,
    /// The standard library of C++ or Rust, whose templates are in the program.
    Language,
    /// The C library or its dynamic linker, or no loaded file.
    System,
}

impl CodeOwner {
    fn of(address: usize) -> CodeOwner {
        let Some(file) = find(address) else {
            return CodeOwner::System;
        };
        if file.is_named(&["libc.so", "ld-linux"]) {
            return CodeOwner::System;
        }
        if file.is_named(&["libgomp", "libstdc++", "libc++"]) {
            return CodeOwner::RunTime;
        }
        match symbols::owner(&file.path, (address - file.base) as u64) {
            Some(Owner::Library) => CodeOwner::Library,
            Some(Owner::Language) => CodeOwner::Language,
            _ => CodeOwner::Program,
        }
    }
}

/// Returns the innermost frames that are of the program, at most [`FRAMES`]: from the function that
/// calls the library to `main` or a thread's function, which the C library calls.
fn program_frames(addresses: &[usize]) -> Vec<usize> {
    let mut frames = Vec::new();
    let mut of_language = Vec::new();
    for &address in addresses {
        match CodeOwner::of(address) {
            CodeOwner::Program => frames.push(address),
            CodeOwner::Language => of_language.push(address),
            CodeOwner::Library | CodeOwner::RunTime => {}
            CodeOwner::System => break,
        }
    }

    // A call from templates alone is named by the templates.
    if frames.is_empty() {
        frames = of_language;
    }
    frames.truncate(FRAMES);
    frames
}

/// Returns the file from which the code at an address was loaded.
fn find(address: usize) -> Option<LoadedFile> {
    let mut modules = MODULES.lock().ok()?;
    if !modules
        .iter()
        .any(|module| module.addresses.contains(&address))
    {
        // A library may have been opened since the list was made.
        modules.clear();
        // The result is that of `note_module`, which has none.
        // SAFETY: `note_module` gets a pointer to a list that this function alone uses until the
        // call returns.
        unsafe { libc::dl_iterate_phdr(Some(note_module), (&raw mut *modules).cast()) };
    }

    let module = modules
        .iter()
        .find(|module| module.addresses.contains(&address))?;
    Some(module.file.clone())
}

unsafe extern "C" fn note_module(
    info: *mut libc::dl_phdr_info,
    _: usize,
    modules: *mut c_void,
) -> c_int {
    // SAFETY: a pointer to the list that `find` has locked and does not use during the call.
    let modules = unsafe { &mut *modules.cast::<Vec<Module>>() };
    // SAFETY: the loader passes a pointer that is valid during the call.
    let info = unsafe { &*info };
    // SAFETY: `dlpi_phdr` points to the `dlpi_phnum` program headers of a file that stays loaded
    // during the call.
    let headers =
        unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    // SAFETY: a string of the loader that ends with a null byte and lives during the call.
    let name = unsafe { CStr::from_ptr(info.dlpi_name) }
        .to_string_lossy()
        .into_owned();
    // The loader has no name for the executable.
    let path = if name.is_empty() {
        std::env::current_exe().map_or(name, |path| path.display().to_string())
    } else {
        name
    };

    let base = info.dlpi_addr as usize;
    for header in headers {
        if header.p_type != libc::PT_LOAD {
            continue;
        }
        let start = base + header.p_vaddr as usize;
        modules.push(Module {
            addresses: start..start + header.p_memsz as usize,
            file: LoadedFile {
                path: path.clone(),
                base,
            },
        });
    }

    // 0 continues with the next file.
    0
}

/// Returns the executable.
pub fn executable() -> Option<LoadedFile> {
    let path = std::env::current_exe().ok()?.display().to_string();
    // No file is loaded at address 0, so this makes the list anew.
    find(0);
    let modules = MODULES.lock().ok()?;
    let module = modules.iter().find(|module| module.file.path == path)?;
    Some(module.file.clone())
}

fn put_text(words: &[AtomicU64], text: &str) {
    for (word, bytes) in words.iter().zip(text.as_bytes().chunks(8)) {
        let mut eight = [0; 8];
        eight[..bytes.len()].copy_from_slice(bytes);
        word.store(u64::from_le_bytes(eight), Relaxed);
    }
}

fn text(words: &[AtomicU64]) -> String {
    let bytes: Vec<u8> = words
        .iter()
        .flat_map(|word| word.load(Relaxed).to_le_bytes())
        .take_while(|b| *b != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the start of a path that fits into the words of a file.
fn shortened(path: &str) -> &str {
    let room = (MODULE_WORDS - 1) * 8 - 1;
    let end = (0..=path.len().min(room))
        .rev()
        .find(|end| path.is_char_boundary(*end));
    &path[..end.unwrap_or(0)]
}

/// Returns the number of a file in the shared table, to which it adds the file if needed. `None` if
/// the table is full. The caller holds the lock of the table of sites.
fn intern_module(areas: &SharedAreas, path: &str) -> Option<u64> {
    let path = shortened(path);
    let entries = areas.modules.chunks_exact(MODULE_WORDS);
    for (i, words) in entries.take(MAX_MODULES).enumerate() {
        // The first free entry: all entries with files are before it.
        if words[0].load(Relaxed) == 0 {
            put_text(&words[1..], path);
            words[0].store(1, Relaxed);
        }
        if text(&words[1..]) == path {
            return Some(i as u64);
        }
    }
    None
}

/// The words of a site in the shared table.
struct SiteWords {
    /// The key by which the table is searched; 0 if the words have no site yet.
    key: &'static AtomicU64,
    call: &'static [AtomicU64],
    n_frames: &'static AtomicU64,
    /// Each frame is the number of its file in the upper 16 bits, and the address in the file.
    frames: &'static [AtomicU64],
}

/// Bits of a frame for the address.
const ADDRESS_BITS: u32 = 48;

impl SiteWords {
    fn of(areas: &SharedAreas, index: usize) -> SiteWords {
        let words = &areas.sites[index * SITE_WORDS..][..SITE_WORDS];
        let (call, frames) = words[2..].split_at(NAME_WORDS);
        SiteWords {
            key: &words[0],
            call,
            n_frames: &words[1],
            frames,
        }
    }
}

/// Returns the number of a site in the shared table, to which it adds the site if needed; 0 if the
/// table is full.
fn intern(areas: &SharedAreas, call: &str, addresses: &[usize]) -> u32 {
    let _held = lock(areas.counter(Counter::Sites));

    let frames: Vec<u64> = addresses
        .iter()
        .filter_map(|&address| {
            let file = find(address)?;
            let number = intern_module(areas, &file.path)?;
            Some(number << ADDRESS_BITS | (address - file.base) as u64)
        })
        .collect();

    // 0 is no key. Two sites with one key, of 63 bits, are taken for one.
    let mut hasher = DefaultHasher::new();
    (call, &frames).hash(&mut hasher);
    let key = hasher.finish() | 1;
    for i in 0..MAX_SITES {
        let index = (key as usize >> 1).wrapping_add(i) % MAX_SITES;
        let words = SiteWords::of(areas, index);
        let mut other = words.key.load(Acquire);
        if other == 0 {
            put_text(words.call, call);
            words.n_frames.store(frames.len() as u64, Relaxed);
            for (word, frame) in words.frames.iter().zip(&frames) {
                word.store(*frame, Relaxed);
            }
            // Last: `get` reads without the lock.
            words.key.store(key, Release);
            other = key;
        }
        if other == key {
            return index as u32 + 1;
        }
    }
    0
}

/// Returns the site with this number; `None` for 0, and for a number beyond the table, which a
/// program that damages shared memory may leave in a record.
pub fn get(areas: &SharedAreas, site: u32) -> Option<Site> {
    let index = (site as usize)
        .checked_sub(1)
        .filter(|index| *index < MAX_SITES)?;
    let words = SiteWords::of(areas, index);

    // Pairs with the release store of `intern`.
    words.key.load(Acquire);

    let n_frames = words.n_frames.load(Relaxed) as usize;
    let mut frames = Vec::new();
    for word in words.frames.iter().take(n_frames) {
        let frame = word.load(Relaxed);
        let module = (frame >> ADDRESS_BITS) as usize;
        let path = &areas.modules[module * MODULE_WORDS..][1..MODULE_WORDS];
        frames.push(SiteFrame {
            module: text(path),
            address: frame & ((1 << ADDRESS_BITS) - 1),
        });
    }
    Some(Site {
        call: text(words.call),
        frames,
    })
}

/// Maximum number of frames that are unwound. If the library and templates of C++ have more, the
/// program's frames are missed.
const DEPTH: usize = 24;
/// Maximum number of stacks that are remembered for a routine that is called at one depth of the
/// stack. Each call compares them in turn.
const RECENT: usize = 16;
/// Maximum number of called routines for which stacks are remembered. It bounds the memory: a
/// recursive program calls a routine at many depths.
const ROUTINES: usize = 1024;

/// The return addresses of the calling thread's functions, from the innermost function on.
///
/// Unwinding the stack takes microseconds. A loop has the same stack each time, which is recognized
/// by the locations in memory of these addresses.
struct Stack {
    returns: [ReturnAddress; DEPTH],
    n: usize,
}

/// The address to which a function returns.
#[derive(Clone, Copy)]
struct ReturnAddress {
    address: usize,
    /// The address in memory of the return address: the word below the caller's frame, where x86-64
    /// calls push it. 0 if it is not there.
    location: usize,
}

/// A stack that was seen: its return addresses and the number of its site.
struct KnownStack {
    returns: Box<[ReturnAddress]>,
    site: u32,
}

/// A routine that is called at one depth of the stack.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct CalledRoutine {
    /// The address of the routine's name.
    name: usize,
    /// The address of a local variable of [`of_call`], which stands for the depth.
    variable: usize,
}

thread_local! {
    /// The stacks that were seen.
    static STACKS: RefCell<HashMap<CalledRoutine, Vec<KnownStack>>> = RefCell::default();
}

impl Stack {
    /// Unwinds the stack of the function that calls this.
    #[inline(always)]
    fn unwind() -> Stack {
        let none = ReturnAddress {
            address: 0,
            location: 0,
        };
        let mut stack = Stack {
            returns: [none; DEPTH],
            n: 0,
        };
        rushmem_locate::visit(|frame| stack.add(frame));
        stack
    }

    /// Adds the next outer frame. Returns false if there is no more room.
    fn add(&mut self, frame: VisitedFrame) -> bool {
        if self.n == DEPTH || frame.address == 0 {
            return false;
        }

        let location = frame.start.wrapping_sub(size_of::<usize>());
        let is_there = cfg!(target_arch = "x86_64") && {
            let location = std::ptr::with_exposed_provenance::<usize>(location);
            // SAFETY: the word before the frame of a caller is on the stack: there its call has
            // pushed the return address.
            unsafe { location.read_volatile() == frame.address }
        };
        self.returns[self.n] = ReturnAddress {
            address: frame.address,
            location: if is_there { location } else { 0 },
        };
        self.n += 1;
        true
    }

    /// Returns an address within each call instruction: the one before the return address.
    fn calls(&self) -> Vec<usize> {
        self.returns[..self.n]
            .iter()
            .map(|to| to.address - 1)
            .collect()
    }
}

impl CalledRoutine {
    /// Remembers the site of a stack, which is that of [`of_call`].
    fn remember(self, stack: &Stack, site: u32) {
        // The first addresses are in `of_call` itself and in what unwinds the stack for it. One
        // that was not found in memory cannot be compared.
        let mut returns = &stack.returns[..stack.n];
        while let [first, rest @ ..] = returns
            && (1..=self.variable).contains(&first.location)
        {
            returns = rest;
        }
        if returns.is_empty() || returns.iter().any(|to| to.location <= self.variable) {
            return;
        }

        // When a thread ends, its destructors may run after this variable was dropped.
        let _ = STACKS.try_with(|known| {
            let mut known = known.borrow_mut();
            if known.len() >= ROUTINES {
                known.clear();
            }
            let stacks = known.entry(self).or_default();
            if stacks.len() >= RECENT {
                stacks.clear();
            }
            stacks.push(KnownStack {
                returns: returns.into(),
                site,
            });
        });
    }

    /// Returns the site of the stack of [`of_call`], if it is remembered.
    fn known_site(self) -> Option<u32> {
        let found = STACKS.try_with(|known| {
            let known = known.borrow();
            let stack = known.get(&self)?.iter().find(|stack| stack.is_current())?;
            Some(stack.site)
        });
        found.ok().flatten()
    }
}

impl KnownStack {
    /// Returns true if the return addresses are where they were. The caller is [`of_call`], with
    /// its variable where it was.
    fn is_current(&self) -> bool {
        self.returns.iter().all(|to| {
            let location = std::ptr::with_exposed_provenance::<usize>(to.location);
            // SAFETY: the first location is in the frame of the caller of `of_call`, as it was when
            // the variable had this address. If a frame has the return address that it had, the
            // next location is above it, in the frames around it, as before; and none is read after
            // one that differs.
            unsafe { location.read_volatile() == to.address }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_ends_with_a_whole_character() {
        let room = (MODULE_WORDS - 1) * 8 - 1;
        assert_eq!(shortened("/usr/lib/libc.so.6"), "/usr/lib/libc.so.6");
        assert_eq!(shortened(&"a".repeat(room + 1)).len(), room);
        let path = format!("{}é", "a".repeat(room - 1));
        assert_eq!(shortened(&path), "a".repeat(room - 1));
    }
}
