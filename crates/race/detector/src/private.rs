//! The shadow of the private memory of this process: local buffers of operations, and what its
//! threads access beside them.
//!
//! A page gets a shadow when the library accesses it, or, once the program has several threads,
//! when any thread does.

use crate::shadow::{HEAD_WORDS, PAGE, PART_WORDS, Page};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Bits of an address within the memory that a table of pages covers, within the memory of a table
/// of tables, and in all: the kernel gives a program addresses of 47 bits on x86-64 and 48 bits on
/// aarch64, unless it asks for more. Memory above them is not checked.
const TABLE_BITS: u32 = 28;
const TABLES_BITS: u32 = 38;
const ADDRESS_BITS: u32 = 48;

/// A table that is made when it is first used.
type Lazy<T> = OnceLock<Box<[T]>>;
/// A table of pages: the words of the shadow of each page.
type Table = Lazy<Lazy<AtomicU64>>;

static SHADOW: [Lazy<Table>; 1 << (ADDRESS_BITS - TABLES_BITS)] =
    [const { OnceLock::new() }; 1 << (ADDRESS_BITS - TABLES_BITS)];

/// True once the program has had several threads. Relaxed: it is stored before a thread is created,
/// which the new thread sees.
static THREADS: AtomicBool = AtomicBool::new(false);
/// True once the program has several threads, or a page has a shadow. Relaxed for the same reason,
/// and since an access that is concurrent to the first one of the library may be missed.
static IS_WATCHED: AtomicBool = AtomicBool::new(false);

/// Records that the program has several threads from now on.
pub fn mark_multithreaded() {
    THREADS.store(true, Relaxed);
    IS_WATCHED.store(true, Relaxed);
}

/// Returns true if accesses of the program to private memory must be checked.
#[inline]
pub fn is_watched() -> bool {
    IS_WATCHED.load(Relaxed)
}

/// Returns true if the program has had several threads.
#[inline]
pub fn has_threads() -> bool {
    THREADS.load(Relaxed)
}

/// Returns the shadow of the page of an address. Makes it for an access `of_library`, or once the
/// program has several threads; otherwise returns `None` if the page has none.
#[inline]
pub fn page(addr: usize, of_library: bool) -> Option<Page<'static>> {
    let known = known_page(addr);
    if known.is_some() || !of_library && !has_threads() {
        return known;
    }
    new_page(addr)
}

#[cold]
fn new_page(addr: usize) -> Option<Page<'static>> {
    IS_WATCHED.store(true, Relaxed);
    let tables = SHADOW.get(addr >> TABLES_BITS)?;
    let table = &get_or_make(tables, 1 << (TABLES_BITS - TABLE_BITS))[table_index(addr)];
    let page = &get_or_make(table, (1 << TABLE_BITS) / PAGE)[page_index(addr)];
    Some(Page::private(get_or_make(page, HEAD_WORDS + PART_WORDS)))
}

/// Returns the shadow of the page of an address, if it has one.
#[inline]
pub fn known_page(addr: usize) -> Option<Page<'static>> {
    let tables = SHADOW.get(addr >> TABLES_BITS)?.get()?;
    let table = tables[table_index(addr)].get()?;
    let page = table[page_index(addr)].get()?;
    Some(Page::private(page))
}

/// Returns the index of an address's table in its table of tables.
#[inline]
fn table_index(addr: usize) -> usize {
    (addr >> TABLE_BITS) % (1 << (TABLES_BITS - TABLE_BITS))
}

/// Returns the index of an address's page in its table.
#[inline]
fn page_index(addr: usize) -> usize {
    addr % (1 << TABLE_BITS) / PAGE
}

fn get_or_make<T: Default>(table: &'static Lazy<T>, n: usize) -> &'static [T] {
    table.get_or_init(|| (0..n).map(|_| T::default()).collect())
}
