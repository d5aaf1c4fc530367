//! Sites: the places in the program's code that make accesses, each with the routine that is called
//! there and the stack of the call.
//!
//! All processes number them in one shared table, so that a record of an access has its site in
//! half a word, and any PE can report it. A site is kept as addresses within the files from which
//! the program is loaded, since these are the same in all processes.
#![allow(unsafe_code)]

use crate::areas::{Counter, MAX_MODULES, MAX_SITES, MODULE_WORDS, SITE_WORDS, SharedAreas};
use crate::known;
use crate::shared::lock;
use crate::symbols;
use core::ffi::{CStr, c_int, c_void};
use rushmem_locate::VisitedFrame;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// Maximum number of frames of a site.
const FRAMES: usize = 6;
/// Words of the name of a routine.
const NAME_WORDS: usize = 8;

/// A loaded segment of the executable or of a shared library.
#[derive(Clone, Debug)]
struct Module {
    addresses: Range<usize>,
    base: usize,
    path: String,
}

static MODULES: Mutex<Vec<Module>> = Mutex::new(Vec::new());

/// A frame: the path of the file, and the address in it.
pub type Frame = (String, u64);

/// A place in the program's code that makes accesses.
#[derive(Clone, Debug)]
pub struct Site {
    /// The name of the routine that is called; empty for a load, a store or an atomic operation of
    /// the program.
    pub call: String,
    /// The frames of the stack, from the innermost one.
    pub frames: Vec<Frame>,
}

thread_local! {
    static KNOWN: RefCell<HashMap<(usize, u64), u32>> = RefCell::default();
}

/// Returns the number of the site where the program calls `call`; 0 if the table is full.
#[inline(never)]
pub fn of_call(areas: &SharedAreas, call: &'static str) -> u32 {
    let local = 0u8;
    let routine = call.as_ptr().addr();
    let variable = (&raw const local).addr();
    if let Some(site) = known_site(routine, variable) {
        return site;
    }

    let stack = Stack::unwind();
    let calls = stack.calls();
    let mut hasher = DefaultHasher::new();
    calls.hash(&mut hasher);
    let site = number(areas, call, hasher.finish(), || program_frames(&calls));
    stack.remember(routine, variable, site);
    site
}

/// Returns the number of the site of an instruction; 0 if the table is full.
pub fn of_address(areas: &SharedAreas, address: usize) -> u32 {
    let recent = known::recent_site(address);
    if let Some((known, site)) = recent.map(Cell::get)
        && known == address
    {
        return site;
    }

    let site = number(areas, "", address as u64, || vec![address]);
    if let Some(recent) = recent {
        recent.set((address, site));
    }
    site
}

fn number(
    areas: &SharedAreas,
    call: &'static str,
    stack: u64,
    frames: impl FnOnce() -> Vec<usize>,
) -> u32 {
    let key = (call.as_ptr().addr(), stack);
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
    Stack::unwind().calls().iter().any(|address| {
        let Some((module, _)) = find(*address) else {
            return false;
        };
        let name = module.rsplit('/').next().unwrap_or("");
        ["librushmem.so", "libuc", "libfabric"]
            .iter()
            .any(|start| name.starts_with(start))
    })
}

/// Returns the innermost frames that are of the program, at most [`FRAMES`]: from the function that
/// calls the library to `main` or a thread's function, which the C library calls. The run time of
/// the compiler is not of the program, and templates of the C++ library are left out.
fn program_frames(addresses: &[usize]) -> Vec<usize> {
    let is_ours = |address: &usize| {
        find(*address)
            .is_some_and(|(module, base)| symbols::is_ours(&module, (address - base) as u64))
    };
    let is_of_system = |address: &usize| {
        find(*address).is_none_or(|(module, _)| {
            let name = module.rsplit('/').next().unwrap_or("");
            name.starts_with("libc.so") || name.starts_with("ld-linux")
        })
    };
    let is_run_time = |address: &usize| {
        find(*address).is_some_and(|(module, _)| {
            ["/libgomp", "/libstdc++", "/libc++"]
                .iter()
                .any(|name| module.contains(name))
        })
    };
    let is_of_language = |address: &usize| {
        find(*address)
            .is_some_and(|(module, base)| symbols::is_of_language(&module, (address - base) as u64))
    };

    let mut frames: Vec<usize> = addresses
        .iter()
        .skip_while(|address| is_ours(address))
        .take_while(|address| !is_of_system(address))
        .filter(|address| !is_ours(address) && !is_run_time(address))
        .copied()
        .collect();

    // A call from a template alone is named by the template.
    if !frames.iter().all(is_of_language) {
        frames.retain(|address| !is_of_language(address));
    }

    frames.truncate(FRAMES);
    frames
}

/// Returns the path of the file from which the code at an address was loaded, and the difference
/// between addresses in the process and in the file.
fn find(address: usize) -> Option<(String, usize)> {
    let look = |modules: &[Module]| {
        let module = modules
            .iter()
            .find(|module| module.addresses.contains(&address))?;
        Some((module.path.clone(), module.base))
    };

    // A library may have been opened since the list was made.
    let mut modules = MODULES.lock().ok()?;
    look(&modules).or_else(|| {
        modules.clear();
        // The result is that of `note_module`, which has none.
        // SAFETY: `note_module` gets a pointer to a list that this function alone uses until the
        // call returns.
        unsafe { libc::dl_iterate_phdr(Some(note_module), (&raw mut *modules).cast()) };
        look(&modules)
    })
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
    // SAFETY: the array of program headers of a file that stays loaded during the call.
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
            base,
            path: path.clone(),
        });
    }

    // 0 continues with the next file.
    0
}

/// Returns the path of the executable, and the difference between addresses in the process and in
/// the file.
pub fn executable() -> Option<(String, usize)> {
    let path = std::env::current_exe().ok()?.display().to_string();
    find(0);
    let modules = MODULES.lock().ok()?;
    let module = modules.iter().find(|module| module.path == path)?;
    Some((module.path.clone(), module.base))
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

/// Returns the number of a site in the shared table, to which it adds the site if needed; 0 if the
/// table is full.
fn intern(areas: &SharedAreas, call: &str, addresses: &[usize]) -> u32 {
    let _held = lock(areas.counter(Counter::Sites));

    // A frame is the number of its file, above the address in the file.
    let frames: Vec<u64> = addresses
        .iter()
        .filter_map(|&address| {
            let (path, base) = find(address)?;
            Some(intern_module(areas, &path)? << 48 | (address - base) as u64)
        })
        .collect();

    // 0 is no key. Two sites with one key, of 63 bits, are taken for one.
    let mut hasher = DefaultHasher::new();
    (call, &frames).hash(&mut hasher);
    let key = hasher.finish() | 1;
    for i in 0..MAX_SITES {
        let index = (key as usize >> 1).wrapping_add(i) % MAX_SITES;
        let words = &areas.sites[index * SITE_WORDS..][..SITE_WORDS];
        match words[0].load(Acquire) {
            0 => {
                put_text(&words[1..1 + NAME_WORDS], call);
                words[1 + NAME_WORDS].store(frames.len() as u64, Relaxed);
                for (word, frame) in words[2 + NAME_WORDS..].iter().zip(&frames) {
                    word.store(*frame, Relaxed);
                }
                // Last: `get` reads without the lock.
                words[0].store(key, Release);
                return index as u32 + 1;
            }
            other if other == key => return index as u32 + 1,
            _ => {}
        }
    }
    0
}

/// Returns the site with this number; `None` for 0.
pub fn get(areas: &SharedAreas, site: u32) -> Option<Site> {
    let words = areas
        .sites
        .chunks_exact(SITE_WORDS)
        .nth((site as usize).checked_sub(1)?)?;

    // Pairs with the release store of `intern`.
    words[0].load(Acquire);

    let n = words[1 + NAME_WORDS].load(Relaxed) as usize;
    let frames = words[2 + NAME_WORDS..].iter().take(n).map(|word| {
        let word = word.load(Relaxed);
        let module = &areas.modules[(word >> 48) as usize * MODULE_WORDS..][1..MODULE_WORDS];
        (text(module), word & ((1 << 48) - 1))
    });
    Some(Site {
        call: text(&words[1..1 + NAME_WORDS]),
        frames: frames.collect(),
    })
}

/// Maximum number of frames that are unwound.
const DEPTH: usize = 24;
/// Maximum number of stacks that are remembered for a routine that is called at one depth of the
/// stack.
const RECENT: usize = 16;
/// Maximum number of pairs of a routine and a depth for which stacks are remembered.
const PAIRS: usize = 1024;

/// The addresses to which the functions of the calling thread return, from the innermost function
/// on.
///
/// Unwinding the stack takes microseconds. A loop has the same stack each time, which is recognized
/// by the locations in memory of these addresses.
struct Stack {
    addresses: [usize; DEPTH],
    /// The address in memory of each return address: the word below the caller's frame, where
    /// x86-64 calls push it. 0 if the return address is not there.
    places: [usize; DEPTH],
    n: usize,
}

/// A stack that was seen: its return addresses, each after its address in memory, and the number of
/// its site.
struct KnownStack {
    returns: Box<[(usize, usize)]>,
    site: u32,
}

thread_local! {
    /// The stacks that were seen, by the address of the routine's name and that of a local variable
    /// of [`of_call`], which stands for the depth of the stack.
    static STACKS: RefCell<HashMap<(usize, usize), Vec<KnownStack>>> = RefCell::default();
}

impl Stack {
    /// Unwinds the stack of the function that calls this.
    #[inline(always)]
    fn unwind() -> Stack {
        let mut stack = Stack {
            addresses: [0; DEPTH],
            places: [0; DEPTH],
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

        let place = frame.start.wrapping_sub(size_of::<usize>());
        let is_there = cfg!(target_arch = "x86_64") && {
            let place = std::ptr::with_exposed_provenance::<usize>(place);
            // SAFETY: the word before the frame of a caller is on the stack: there its call has
            // pushed the return address.
            unsafe { place.read_volatile() == frame.address }
        };
        self.addresses[self.n] = frame.address;
        self.places[self.n] = if is_there { place } else { 0 };
        self.n += 1;
        true
    }

    /// Returns an address within each call instruction: the one before the return address.
    fn calls(&self) -> Vec<usize> {
        self.addresses[..self.n]
            .iter()
            .map(|address| address - 1)
            .collect()
    }

    /// Remembers the site of this stack, which is that of [`of_call`]: `routine` is the address of
    /// the routine's name, and `variable` that of a local variable.
    fn remember(&self, routine: usize, variable: usize, site: u32) {
        // The first addresses are in `of_call` itself and in what unwinds the stack for it.
        let is_inner = |&(place, _): &(usize, usize)| (1..=variable).contains(&place);
        let returns = (0..self.n)
            .map(|i| (self.places[i], self.addresses[i]))
            .skip_while(is_inner)
            .collect::<Box<[_]>>();
        // A return address that was not found in memory cannot be compared.
        if returns.is_empty() || returns.iter().any(|(place, _)| *place <= variable) {
            return;
        }

        // When a thread ends, its destructors may run after this variable was dropped.
        let _ = STACKS.try_with(|known| {
            let mut known = known.borrow_mut();
            if known.len() >= PAIRS {
                known.clear();
            }
            let all = known.entry((routine, variable)).or_default();
            if all.len() >= RECENT {
                all.clear();
            }
            all.push(KnownStack { returns, site });
        });
    }
}

/// Returns the site of the stack of [`of_call`], if it is remembered.
fn known_site(routine: usize, variable: usize) -> Option<u32> {
    let is_here = |&(place, address): &(usize, usize)| {
        let place = std::ptr::with_exposed_provenance::<usize>(place);
        // SAFETY: the first place is in the frame of the caller, as it was when the variable had
        // this address. Where a frame has the address that it had, the next place is above it, in
        // the frames around it, as before; and none is read after one that differs.
        unsafe { place.read_volatile() == address }
    };
    let of = |all: &Vec<KnownStack>| {
        all.iter()
            .find(|stack| stack.returns.iter().all(is_here))
            .map(|stack| stack.site)
    };
    let found = STACKS.try_with(|known| known.borrow().get(&(routine, variable)).and_then(of));
    found.ok().flatten()
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
