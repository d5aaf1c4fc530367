//! Registered pages keep their contents, in this process and in a child, and lose no store.
#![allow(unsafe_code)]

use super::waiting_stores::write_protect;
use super::*;
use crate::huge_pages::PageSize;
use crate::layout::Layout;
use crate::node::NodeMapping;
use crate::statics::Statics;
use rustix::mm::munmap;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU8};
use std::sync::{Mutex, OnceLock};
use std::thread;

/// Private pages of the program, which are unmapped at the end.
struct Program {
    start: *mut u8,
    nbytes: usize,
}

impl Program {
    fn new(n_pages: usize) -> Program {
        let nbytes = n_pages * PAGE;
        let start = private_pages(nbytes).expect("pages").cast();
        Program { start, nbytes }
    }

    fn pages(&self) -> Range<usize> {
        self.start.expose_provenance()..self.start.addr() + self.nbytes
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < self.nbytes / 8, "word {index}");
        // SAFETY: a word of the pages, which stay mapped as long as this value.
        unsafe { AtomicU64::from_ptr(self.start.cast::<u64>().wrapping_add(index)) }
    }
}

// SAFETY: the pages are used by atomic accesses alone.
unsafe impl Send for Program {}
// SAFETY: as above.
unsafe impl Sync for Program {}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: the test uses the pages no more.
        unsafe { munmap(self.start.cast(), self.nbytes) }.expect("mapped");
    }
}

fn node() -> NodeMemory {
    NodeMemory::map(NodeMapping {
        memory: None,
        layout: Layout::new(1 << 20, 1 << 16, PageSize::Mib2).expect("fits"),
        n_local: 1,
        local: 0,
        reserved: None,
        pages: None,
        published_bytes: 0,
        statics: &Statics::of_program(),
        peers: &[],
    })
    .expect("mapped")
}

fn in_heap(memory: &NodeMemory, offset: usize) -> &AtomicU64 {
    // SAFETY: a word of the heap, which stays mapped as long as the memory.
    unsafe { AtomicU64::from_ptr(memory.heap().wrapping_add(offset).cast()) }
}

#[test]
fn shared_pages_are_those_of_the_block_and_keep_their_contents() {
    let memory = node();
    let program = Program::new(4);
    let pages = program.pages();
    for word in [0, 700, 2047] {
        program.word(word).store(word as u64 + 1, Relaxed);
    }

    let unused = pages.start + 100 * 8..pages.end - 100 * 8;
    let block = memory.heap().wrapping_add(8 * PAGE);
    // SAFETY: pages and a part of the heap that only this test uses.
    unsafe { share(&memory, &pages, &unused, block) }.expect("shared");
    for word in [0, 700, 2047] {
        assert_eq!(program.word(word).load(Relaxed), word as u64 + 1);
        assert_eq!(
            in_heap(&memory, 8 * PAGE + word * 8).load(Relaxed),
            word as u64 + 1
        );
    }
    program.word(700).store(77, Relaxed);
    assert_eq!(in_heap(&memory, 8 * PAGE + 5600).load(Relaxed), 77);

    assert_cannot_grow(&program);

    // SAFETY: as above.
    unsafe { make_private(&pages, &unused) }.expect("private");
    assert_eq!(program.word(700).load(Relaxed), 77);
    program.word(700).store(78, Relaxed);
    assert_eq!(in_heap(&memory, 8 * PAGE + 5600).load(Relaxed), 77);
}

#[test]
fn pages_that_the_program_has_protected_become_accessible() {
    let memory = node();
    let program = Program::new(6);
    let pages = program.pages();
    for (buffer, protected) in [(100..6 * PAGE - 100, 0), (0..6 * PAGE, 3)] {
        let buffer = pages.start + buffer.start..pages.start + buffer.end;
        let word = protected * PAGE / 8 + 20;
        let protect = || {
            let place = program.start.wrapping_add(protected * PAGE).cast();
            // SAFETY: a page that only this test uses.
            unsafe { mprotect(place, PAGE, MprotectFlags::empty()) }.expect("protected");
        };

        program.word(word).store(7, Relaxed);
        // SAFETY: pages and a part of the heap that only this test uses.
        unsafe { share(&memory, &pages, &buffer, memory.heap()) }.expect("shared");
        protect();
        let moved = memory.heap().wrapping_add(8 * PAGE);
        // SAFETY: as above.
        unsafe { share(&memory, &pages, &buffer, moved) }.expect("shared");
        assert_eq!(program.word(word).load(Relaxed), 7);

        protect();
        // SAFETY: as above.
        unsafe { make_private(&pages, &buffer) }.expect("private");
        assert_eq!(program.word(word).load(Relaxed), 7);
    }
}

/// The pages cannot become more by those of the heap that follow their block.
fn assert_cannot_grow(program: &Program) {
    let nbytes = program.nbytes;
    // SAFETY: nobody uses the pages, and they stay where they are, as the call fails.
    let grown = unsafe {
        rustix::mm::mremap(
            program.start.cast(),
            nbytes,
            nbytes + PAGE,
            MremapFlags::MAYMOVE,
        )
    };
    assert_eq!(grown, Err(Errno::FAULT));
}

#[test]
fn pages_that_the_program_has_unmapped_are_not_shared_any_more() {
    let memory = node();
    let program = Program::new(6);
    let pages = program.pages();
    // SAFETY: pages and a part of the heap that only this test uses.
    unsafe { share(&memory, &pages, &pages, memory.heap()) }.expect("shared");
    let offset = memory.offset(memory.heap()).expect("in the slice");
    let still = || {
        let text = maps::text();
        let mappings = maps::parse(&text).collect::<Vec<_>>();
        still_shared(&mappings, &pages, offset)
    };
    assert_eq!(still(), std::slice::from_ref(&pages));

    let hole = pages.start + 2 * PAGE..pages.start + 3 * PAGE;
    // SAFETY: pages that only this test uses.
    unsafe { make_private(&hole, &hole) }.expect("private");
    assert_eq!(still(), [pages.start..hole.start, hole.end..pages.end]);
}

#[test]
fn unsuitable_pages_are_refused() {
    let at = 1usize << 40;
    let map = |start: usize, end: usize, how: &str| {
        format!("{:x}-{:x} {how}\n", at + start * PAGE, at + end * PAGE)
    };
    let refused = |text: &str, n: usize| {
        let registered = at + 8 * PAGE..at + 10 * PAGE;
        check_mapped(
            &(at..at + n * PAGE),
            std::slice::from_ref(&registered),
            &(0..0),
            maps::parse(text.as_bytes()),
        )
    };

    let private = map(0, 4, "rw-p 0 00:00 0");
    assert_eq!(refused(&private, 4), Ok(()));
    assert_eq!(refused(&private, 5), Err(Unsuitable::Inaccessible));
    assert_eq!(
        refused(&map(1, 4, "rw-p 0 00:00 0"), 4),
        Err(Unsuitable::Inaccessible)
    );
    for (how, why) in [
        ("r--p 0 00:00 0", Unsuitable::Inaccessible),
        ("-w-p 0 00:00 0", Unsuitable::Inaccessible),
        ("---p 0 00:00 0", Unsuitable::Inaccessible),
        ("rwxp 0 00:00 0", Unsuitable::Executable),
        ("rw-s 0 00:01 9 /dev/shm/x", Unsuitable::Shared),
        ("rw-p 0 00:00 0 [stack]", Unsuitable::Stack),
        (
            "rw-p 0 00:0f 7 /anon_hugepage (deleted)",
            Unsuitable::HugePage,
        ),
    ] {
        let text = private.clone() + &map(4, 8, how);
        assert_eq!(refused(&text, 4), Ok(()), "{how}");
        assert_eq!(refused(&text, 5), Err(why), "{how}");
    }

    // Two mappings, the second of which is registered.
    let text = map(0, 8, "rw-p 0 00:00 0") + &map(8, 12, "rw-s 0 00:01 9 /memfd:x (deleted)");
    assert_eq!(refused(&text, 10), Ok(()));
    assert_eq!(refused(&text, 11), Err(Unsuitable::Shared));

    // The stack of a thread may have a neighbor in its mapping.
    let text = map(0, 8, "rw-p 0 00:00 0");
    let beside = |pages: Range<usize>| {
        let stack = at + 2 * PAGE..at + 4 * PAGE;
        check_mapped(&pages, &[], &stack, maps::parse(text.as_bytes()))
    };
    assert_eq!(beside(at + 4 * PAGE..at + 8 * PAGE), Ok(()));
    assert_eq!(beside(at..at + 2 * PAGE), Ok(()));
    assert_eq!(beside(at..at + 3 * PAGE), Err(Unsuitable::Stack));

    let local = [0u64; 4];
    let bytes = (&raw const local).addr()..(&raw const local).addr() + 32;
    assert_eq!(check(&bytes, &[]), Err(Unsuitable::Stack));
}

#[test]
fn a_page_at_the_edge_must_not_have_the_control_block_of_a_thread() {
    let block = 4 * PAGE + 100..5 * PAGE + 100;
    let refused = |start: usize, end: usize| share_page_at_edge(&(start..end), &block);
    assert!(refused(4 * PAGE + 8, 4 * PAGE + 16), "in one page");
    assert!(refused(2 * PAGE, 4 * PAGE + 16), "the last page");
    assert!(refused(5 * PAGE + 200, 8 * PAGE), "the first page");
    assert!(!refused(2 * PAGE + 8, 4 * PAGE), "behind the last page");
    assert!(!refused(6 * PAGE, 8 * PAGE + 8), "before the first page");
    // Pages without other bytes cannot have the block, whose end is not known exactly.
    assert!(!refused(5 * PAGE, 8 * PAGE), "no other bytes");
    assert!(!refused(3 * PAGE + 8, 7 * PAGE - 8), "between the edges");

    #[cfg(target_env = "gnu")]
    {
        let block = first_control_block();
        let beside = block.start..block.start + 8;
        assert_eq!(check(&beside, &[]), Err(Unsuitable::ControlBlock));
    }
}

#[test]
fn pages_inside_a_buffer_have_no_other_bytes() {
    let part = |start: usize, end: usize, has_others| Part {
        pages: start * PAGE..end * PAGE,
        has_others,
    };
    assert_eq!(
        parts(&(0..4 * PAGE), &(100..4 * PAGE - 8)),
        [part(0, 1, true), part(1, 3, false), part(3, 4, true)]
    );
    assert_eq!(parts(&(0..2 * PAGE), &(0..2 * PAGE)), [part(0, 2, false)]);
    assert_eq!(parts(&(0..2 * PAGE), &(100..5000)), [part(0, 2, true)]);

    let n = 2 * AT_ONCE / PAGE + 1;
    let large = parts(&(0..n * PAGE), &(0..n * PAGE));
    assert_eq!(large.len(), 3);
    assert_eq!(large[2].pages.end, n * PAGE);
}

/// Makes the tests in which other threads store take turns: they change the process's handlers.
static ALONE: Mutex<()> = Mutex::new(());

/// Another thread counts in a word of a page, which this one replaces `rounds` times as `waiting`
/// says. Returns the number of stores that were lost.
fn lost(rounds: usize, waiting: impl Fn(&Range<usize>) -> WaitingStores) -> u64 {
    let program = Program::new(1);
    let word = program.word(9);
    let end = AtomicBool::new(false);
    thread::scope(|scope| {
        let counting = scope.spawn(|| {
            let mut lost = 0;
            let mut next = 0;
            while !end.load(Relaxed) {
                if word.load(Relaxed) != next {
                    lost += 1;
                    next = word.load(Relaxed);
                }
                next += 1;
                word.store(next, Relaxed);
            }
            lost
        });

        for _ in 0..rounds {
            let other = private_pages(PAGE).expect("a page");
            let stores = waiting(&program.pages());
            // SAFETY: a page of this test, and a new one.
            unsafe { copy_words(other.cast(), program.start.cast(), PAGE / 8) };
            // What can be lost is lost in between.
            for _ in 0..2000 {
                spin_loop();
            }
            move_pages(other, PAGE, program.start).expect("moved");
            stores.end(true);
        }
        end.store(true, Relaxed);
        counting.join().expect("no panic")
    })
}

#[test]
fn a_store_waits_for_the_kernel() {
    let _alone = ALONE.lock().expect("no panic");
    let waiting = |pages: &Range<usize>| {
        match write_protect(pages) {
            Ok(_uffd) => WaitingStores::ByKernel { _uffd },
            // A container may refuse the system call.
            Err(Errno::PERM | Errno::NOSYS) => WaitingStores::of(pages).expect("protected"),
            Err(why) => panic!("{why}"),
        }
    };
    assert_eq!(lost(500, waiting), 0);
}

#[test]
fn a_store_waits_for_the_handler_of_faults() {
    let _alone = ALONE.lock().expect("no panic");
    let waiting = |pages: &Range<usize>| {
        WaitingStores::ByFaults(faults::ReadOnly::make(pages).expect("read-only"))
    };
    assert_eq!(lost(500, waiting), 0);
}

/// The registered pages of the tests of forks, and the memory that has them.
struct Own {
    pages: Mutex<Vec<fork::OwnPages>>,
    memory: NodeMemory,
    program: Program,
}

impl fork::Registered for Own {
    fn pages(&self) -> Option<Vec<fork::OwnPages>> {
        Some(self.pages.lock().expect("no panic").clone())
    }

    fn file(&self) -> Option<BorrowedFd<'_>> {
        self.memory.file()
    }
}

/// Words of the first page: one beside the buffer, which begins at word 2, and three in it.
const BESIDE: usize = 0;
const OF_PEER: usize = 2;
const OF_THREAD: usize = 3;
const OF_BOTH: usize = 4;

/// Stores a byte of a word, as a program or a peer does.
fn store_byte(word: &AtomicU64, index: usize, byte: u8) {
    // SAFETY: a byte of a word that is valid as long as the reference.
    unsafe { AtomicU8::from_ptr(word.as_ptr().cast::<u8>().wrapping_add(index)) }
        .store(byte, Relaxed);
}

static OWN: OnceLock<Own> = OnceLock::new();

/// Runs in the parent after the pages at edges have become private, and before the fork.
extern "C" fn store_before() {
    let own = OWN.get().expect("set");
    in_heap(&own.memory, OF_PEER * 8).store(21, Relaxed);
    store_byte(in_heap(&own.memory, OF_BOTH * 8), 0, 41);

    own.program.word(BESIDE).store(1, Relaxed);
    own.program.word(OF_THREAD).store(31, Relaxed);
    store_byte(own.program.word(OF_BOTH), 1, 42);
}

/// Runs in the child before the handler of registered pages, as the C library resets its locks.
extern "C" fn store_in_child() {
    let own = OWN.get().expect("set");
    for word in [BESIDE, OF_PEER, OF_THREAD, OF_BOTH] {
        own.program.word(word).store(99, Relaxed);
    }
}

#[test]
fn a_child_has_pages_of_its_own() {
    let _alone = ALONE.lock().expect("no panic");
    let own = OWN.get_or_init(|| Own {
        pages: Mutex::default(),
        memory: node(),
        program: Program::new(5),
    });
    let (memory, program) = (&own.memory, &own.program);
    let pages = program.pages();
    // SAFETY: pages and a part of the heap that only this test uses.
    unsafe { share(memory, &pages, &pages, memory.heap()) }.expect("shared");
    for page in 1..5 {
        program.word(page * PAGE / 8).store(page as u64, Relaxed);
    }

    let buffer = pages.start + 16..pages.end - 8;
    let offset = memory.offset(memory.heap()).expect("in the slice");
    let described = fork::OwnPages::new(pages, offset, std::slice::from_ref(&buffer));
    let inside = buffer.start - 16 + PAGE..buffer.end + 8 - PAGE;
    assert_eq!(described.inside, std::slice::from_ref(&inside));
    own.pages.lock().expect("no panic").push(described);

    // SAFETY: functions that live as long as the process.
    unsafe { libc::pthread_atfork(Some(store_before), None, Some(store_in_child)) };
    fork::prepare(own).expect("handlers");

    // SAFETY: the child makes only system calls and stores to memory of its own.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let right = (1..5).all(|page| program.word(page * PAGE / 8).load(Relaxed) == page as u64)
            && program.word(BESIDE).load(Relaxed) == 99;
        for page in 0..5 {
            program.word(page * PAGE / 8).store(99, Relaxed);
        }
        // SAFETY: it ends the child at once.
        unsafe { libc::_exit(if right { 0 } else { 1 }) };
    }
    let mut status = -1;
    // SAFETY: the child of this test.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0, "the child had the contents");

    own.pages.lock().expect("no panic").clear();
    for page in 1..5 {
        let word = page * PAGE / 8;
        assert_eq!(program.word(word).load(Relaxed), page as u64);
        assert_eq!(in_heap(memory, word * 8).load(Relaxed), page as u64);
    }
    for (word, value) in [
        (BESIDE, 1),
        (OF_PEER, 21),
        (OF_THREAD, 31),
        (OF_BOTH, u64::from_ne_bytes([41, 42, 0, 0, 0, 0, 0, 0])),
    ] {
        assert_eq!(program.word(word).load(Relaxed), value, "word {word}");
        assert_eq!(
            in_heap(memory, word * 8).load(Relaxed),
            value,
            "word {word}"
        );
    }
    program.word(OF_PEER).store(7, Relaxed);
    assert_eq!(
        in_heap(memory, OF_PEER * 8).load(Relaxed),
        7,
        "shared again"
    );
    assert_cannot_grow(program);
}
