//! The shadow of the private memory of this process: local buffers of operations, and what its
//! threads access beside them.
//!
//! Pages get a shadow when the library accesses them, or, once the program has several threads,
//! when anybody does.

use crate::shadow::{HEAD_WORDS, PAGE, PART_WORDS, Page, Shadow};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Bits of an address that a table of pages covers, and those of all tables.
const TABLE_BITS: u32 = 28;
const ADDRESS_BITS: u32 = 47;
const PAGES: usize = (1 << TABLE_BITS) / PAGE;
const TABLES: usize = 1 << (ADDRESS_BITS - TABLE_BITS);

type Table = Box<[OnceLock<Box<[AtomicU64]>>]>;

static SHADOW: [OnceLock<Table>; TABLES] = [const { OnceLock::new() }; TABLES];
static THREADS: AtomicBool = AtomicBool::new(false);
/// There are threads, or pages that have a shadow.
static IS_WATCHED: AtomicBool = AtomicBool::new(false);

/// The program has several threads from now on.
pub fn have_threads() {
    THREADS.store(true, Relaxed);
    IS_WATCHED.store(true, Relaxed);
}

/// Whether accesses of the program to private memory are to be looked at.
#[inline]
pub fn is_watched() -> bool {
    IS_WATCHED.load(Relaxed)
}

/// The shadow of the page of an address, if it has one, or is to get one.
#[inline]
pub fn page(addr: usize, of_library: bool) -> Option<Page<'static>> {
    let table = SHADOW.get(addr >> TABLE_BITS)?;
    let index = addr % (1 << TABLE_BITS) / PAGE;
    let known = table.get().and_then(|table| table[index].get());
    match known {
        Some(words) => Some(of_words(words).page(0)),
        None if of_library || THREADS.load(Relaxed) => Some(make(table, index)),
        None => None,
    }
}

fn of_words(words: &'static [AtomicU64]) -> Shadow<'static> {
    let (heads, parts) = words.split_at(HEAD_WORDS);
    Shadow::new(heads, parts)
}

#[cold]
fn make(table: &'static OnceLock<Table>, index: usize) -> Page<'static> {
    IS_WATCHED.store(true, Relaxed);
    let table = table.get_or_init(|| (0..PAGES).map(|_| OnceLock::new()).collect());
    let zero = || (0..HEAD_WORDS + PART_WORDS).map(|_| AtomicU64::new(0)).collect();
    of_words(table[index].get_or_init(zero)).page(0)
}
