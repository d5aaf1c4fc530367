//! Prints the report of a race: the memory, the two accesses with their places in the source, and
//! advice on how to order them.

use crate::access::{AtomicityDomain, ShadowKind, ShadowRecord};
use crate::actors::{ActorInfo, ActorRole};
use crate::areas::{Counter, MAX_PAIRS, ShadowPlace, ShadowSegment, SharedAreas};
use crate::private;
use crate::shared::lock;
use crate::sites::{self, Site};
use crate::symbols::{self, SourceLine};
use crate::variables::{self, StaticVariable};
use rushmem_race_interface::DetectorOpening;
use rushmem_system::stderr::print_line;
use serde_json::json;
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Maximum number of reports that a job writes. Further ones are only counted: a program with so
/// many races has a few causes, and each report reads debug information.
const LIMIT: u64 = 100;

/// The first byte of the memory on which a race is.
#[derive(Clone, Copy, Debug)]
pub enum Memory {
    /// Symmetric memory of a PE.
    Symmetric(ShadowPlace),
    /// Private memory of this process, at this address.
    Private(usize),
}

/// Writes the reports of this process.
pub struct Reporter {
    areas: SharedAreas,
    me: u32,
    /// The file for reports in JSON, or an empty name.
    json: &'static str,
    /// The lines of the file of SHMEM_RACES_SUPPRESSIONS.
    suppressions: &'static str,
    /// The address of this process at which its static data begin.
    statics: usize,
    /// Blocks of the heap by their offsets.
    blocks: Mutex<BTreeMap<usize, HeapBlock>>,
    /// Races that a suppression has matched.
    suppressed: Mutex<HashSet<SuppressedRace>>,
}

/// A block of the symmetric heap.
#[derive(Clone, Copy)]
struct HeapBlock {
    /// The offset in the heap.
    start: usize,
    nbytes: usize,
    /// The site that has allocated it.
    site: u32,
}

/// The memory that a race is on, as a suppression sees it: the variable or block, or one byte if
/// neither is known.
#[derive(PartialEq, Eq, Hash)]
struct SymmetricObject {
    pe: u32,
    segment: ShadowSegment,
    bytes: Range<usize>,
}

/// A race that a suppression has matched.
#[derive(PartialEq, Eq, Hash)]
struct SuppressedRace {
    /// The key of the two sites.
    pair: u64,
    /// `None` for private memory.
    object: Option<SymmetricObject>,
}

/// A static variable, and the offset in it of an address.
struct FoundVariable {
    variable: StaticVariable,
    offset: u64,
}

impl Reporter {
    /// Returns the reporter of a process whose static data begin at address `statics`.
    pub fn new(areas: SharedAreas, opening: &DetectorOpening, statics: usize) -> Reporter {
        Reporter {
            areas,
            me: opening.pe,
            json: opening.json.get(),
            suppressions: opening.suppressions.get(),
            statics,
            blocks: Mutex::default(),
            suppressed: Mutex::default(),
        }
    }

    /// Returns true once a table has been full. The clocks may lack entries then, so no more races
    /// are reported.
    #[inline]
    pub fn has_full_table(&self) -> bool {
        self.areas.counter(Counter::Full).load(Relaxed) != 0
    }

    /// Records the site that has allocated a block of the heap.
    pub fn allocated(&self, offset: usize, nbytes: usize, site: u32) {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        let block = HeapBlock {
            start: offset,
            nbytes,
            site,
        };
        blocks.insert(offset, block);
    }

    /// Returns the block that contains an offset.
    fn block_of(&self, offset: usize) -> Option<HeapBlock> {
        let blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, block) = blocks.range(..=offset).next_back()?;
        if offset - block.start >= block.nbytes {
            return None;
        }
        Some(*block)
    }

    /// Returns the variable or block that contains a byte of symmetric memory.
    fn object(&self, memory: Memory) -> Option<SymmetricObject> {
        let Memory::Symmetric(place) = memory else {
            return None;
        };

        let bytes = match place.segment {
            ShadowSegment::Heap => self
                .block_of(place.offset)
                .map(|block| block.start..block.start + block.nbytes),
            ShadowSegment::Static => self.variable_of(place.offset).map(|found| {
                let start = place.offset - found.offset as usize;
                start..start + found.variable.nbytes as usize
            }),
        };
        Some(SymmetricObject {
            pe: place.pe,
            segment: place.segment,
            bytes: bytes.unwrap_or(place.offset..place.offset + 1),
        })
    }

    /// Returns the static variable that contains an offset of the static data.
    fn variable_of(&self, offset: usize) -> Option<FoundVariable> {
        let (module, base) = sites::executable()?;
        let address = (self.statics + offset - base) as u64;
        let variable = variables::find(&module, address)?;
        let offset = address - variable.address;
        Some(FoundVariable { variable, offset })
    }

    /// Reports a race between `new`, an access to `memory`, and `old`, unless one between their two
    /// sites was reported before, or a suppression matches it. After `LIMIT` reports of the job,
    /// races are only counted.
    pub fn race(&self, memory: Memory, new: &ShadowRecord, old: &ShadowRecord) {
        let areas = &self.areas;
        if self.has_full_table() {
            return;
        }

        // A race on many bytes is found once for each eight of them.
        let pair = pair(new.site, old.site);
        if is_reported(areas, pair) {
            return;
        }

        // To look up names and lines takes milliseconds, so what is suppressed is remembered.
        let has_suppressions = !self.suppressions.is_empty();
        let race = has_suppressions.then(|| SuppressedRace {
            pair,
            object: self.object(memory),
        });
        let mut suppressed = self
            .suppressed
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if race.as_ref().is_some_and(|race| suppressed.contains(race)) {
            return;
        }

        let sides = [Side::new(areas, old), Side::new(areas, new)];
        let (object, place) = match memory {
            Memory::Symmetric(place) => {
                let name = object(self, place, new.nbytes.min(old.nbytes));
                (name, Some(place))
            }
            Memory::Private(addr) => {
                let name = format!("private memory of PE {} at {addr:#x}", self.me);
                (name, None)
            }
        };
        if let Some(race) = race
            && is_suppressed(self.suppressions, &object, &sides)
        {
            suppressed.insert(race);
            return;
        }
        drop(suppressed);

        // Another PE may have reported it meanwhile.
        if !mark_reported(areas, pair) {
            return;
        }
        if areas.counter(Counter::Reported).fetch_add(1, Relaxed) >= LIMIT {
            return;
        }

        let first = sides[0].line();
        let second = sides[1].line();
        let advice = advice(&sides, place);
        print_line(format_args!(
            "race on {object}:\n{first}\n{second}\n  {advice}"
        ));
        if !self.json.is_empty() {
            self.append_json(&object, &sides);
        }
    }

    /// Appends a report to the file of SHMEM_RACES_JSON, as a line of its own.
    fn append_json(&self, object: &str, sides: &[Side; 2]) {
        let path = self.json;
        let line = json!({"object": object, "accesses": [sides[0].json(), sides[1].json()]});
        let written = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
        if let Err(error) = written {
            print_line(format_args!(
                "SHMEM_RACES_JSON: {path} cannot be written: {error}"
            ));
        }
    }
}

/// Returns the key of a pair of sites, in any order.
fn pair(a: u32, b: u32) -> u64 {
    u64::from(a.min(b)) << 32 | u64::from(a.max(b)) | 1 << 63
}

/// Returns the word of a pair of sites, or a free one if the pair has none; `None` if there is no
/// room.
fn place_of(areas: &SharedAreas, pair: u64) -> Option<&'static AtomicU64> {
    let first = (pair.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize;
    (0..MAX_PAIRS)
        .map(|i| &areas.pairs[(first + i) % MAX_PAIRS])
        .find(|place| [0, pair].contains(&place.load(Relaxed)))
}

/// Returns true if a race between the two sites was reported, or if the table of pairs is full.
fn is_reported(areas: &SharedAreas, pair: u64) -> bool {
    // Relaxed, and without the lock: `mark_reported` decides.
    place_of(areas, pair).is_none_or(|place| place.load(Relaxed) == pair)
}

/// Records that a race between the two sites is reported. Returns false if one was reported before,
/// or if the table of pairs is full.
fn mark_reported(areas: &SharedAreas, pair: u64) -> bool {
    let _held = lock(areas.counter(Counter::Reports));
    place_of(areas, pair).is_some_and(|place| place.swap(pair, Relaxed) == 0)
}

/// Returns the name that a report has for symmetric memory: the element of a block or variable, the
/// PE, and where the block was allocated or the variable declared.
fn object(reporter: &Reporter, place: ShadowPlace, nbytes_accessed: u32) -> String {
    let pe = place.pe;
    match place.segment {
        ShadowSegment::Heap => {
            let Some(block) = reporter.block_of(place.offset) else {
                return format!("byte {} of the heap of PE {pe}", place.offset);
            };

            let sources = match sites::get(&reporter.areas, block.site) {
                Some(site) => symbols::of_program(&site.frames),
                None => Vec::new(),
            };
            let allocated = match sources.first() {
                Some(source) => format!(", allocated at {source}"),
                None => String::new(),
            };
            let offset = (place.offset - block.start) as u64;
            let name = variables::element("the block", offset, nbytes_accessed);
            format!("{name} of PE {pe} ({} bytes{allocated})", block.nbytes)
        }
        ShadowSegment::Static => {
            let Some(found) = reporter.variable_of(place.offset) else {
                return format!(
                    "byte {} of the static data of PE {pe} (static)",
                    place.offset
                );
            };

            let name = found.variable.element(found.offset, nbytes_accessed);
            let declared = match found.variable.declared {
                Some(declaration) => format!(", {}", declaration.line),
                None => String::new(),
            };
            format!("{name} of PE {pe} (static{declared})")
        }
    }
}

/// Returns true if a line of `lines` names a function of one of the sites, or the object:
/// `function:NAME` or `object:NAME`.
fn is_suppressed(lines: &str, object: &str, sides: &[Side; 2]) -> bool {
    let has_function = |name: &str| {
        sides
            .iter()
            .flat_map(|side| &side.sources)
            .any(|source| source.function.as_deref() == Some(name))
    };
    lines.lines().any(|line| match line.trim().split_once(':') {
        Some(("function", name)) => has_function(name),
        // The name of the object, without an index.
        Some(("object", name)) => object.split(['[', ' ']).next() == Some(name),
        _ => false,
    })
}

/// One of the two accesses, with its place in the source.
pub struct Side {
    /// The actor that makes it.
    pub actor: ActorInfo,
    /// The kind of the access.
    pub kind: ShadowKind,
    /// The name of the routine, or a load, a store or an atomic operation of the program.
    pub what: String,
    /// The number of bytes of the whole access; 0 for a call that frees memory.
    pub nbytes: u32,
    /// The source lines of its stack, from the innermost function.
    pub sources: Vec<SourceLine>,
    /// True if the operation may be carried out after its call has returned.
    pub in_flight: bool,
}

impl Side {
    /// Looks up the actor, the routine and the source lines of a recorded access.
    pub fn new(areas: &SharedAreas, record: &ShadowRecord) -> Side {
        let site = sites::get(areas, record.site).unwrap_or_else(|| Site {
            call: String::new(),
            frames: Vec::new(),
        });
        let what = if site.call.is_empty() {
            access_of_program(record.kind)
        } else {
            site.call
        };

        let actor = ActorInfo::find(areas, record.actor);
        Side {
            actor,
            kind: record.kind,
            what,
            nbytes: record.nbytes,
            sources: symbols::of_program(&site.frames),
            in_flight: !matches!(actor.role, ActorRole::Thread(_)),
        }
    }

    /// Returns the lines of a report that describe the access: itself, and the calls around it.
    pub fn line(&self) -> String {
        let mut line = format!("  PE {}", self.actor.pe);
        if let ActorRole::Thread(number @ 1..) = self.actor.role {
            let _ = write!(line, ", thread {number}");
        }
        let _ = write!(line, ": {}", self.what);
        if self.nbytes > 0 {
            let _ = write!(line, " of {} bytes", self.nbytes);
        }
        line.push_str(" at ");
        match self.sources.first() {
            Some(source) => {
                let _ = write!(line, "{source}");
            }
            None => line.push_str("an unknown place"),
        }
        if self.in_flight {
            line.push_str(", in flight since then");
        }

        let callers = self.sources.iter().skip(1);
        for source in callers.filter(|source| source.file.is_some()) {
            let _ = write!(line, "\n      called at {source}");
        }
        line
    }

    /// Returns the access as an object of a report in JSON.
    pub fn json(&self) -> serde_json::Value {
        let thread = match self.actor.role {
            ActorRole::Thread(number) => Some(number),
            _ => None,
        };
        let frames: Vec<serde_json::Value> = self
            .sources
            .iter()
            .map(|source| {
                json!({
                    "function": source.function,
                    "file": source.file,
                    "line": source.line,
                })
            })
            .collect();
        json!({
            "pe": self.actor.pe,
            "thread": thread,
            "access": self.what,
            "nbytes": self.nbytes,
            "in_flight": self.in_flight,
            "frames": frames,
        })
    }
}

/// Returns the name of an access that the program makes itself.
fn access_of_program(kind: ShadowKind) -> String {
    let access = if kind.is_atomic() {
        "atomic operation of the language"
    } else if kind.writes() {
        "store"
    } else {
        "load"
    };
    let way = if kind.is_to_peer() {
        " through shmem_ptr"
    } else {
        ""
    };
    format!("{access}{way}")
}

/// Returns the sentences of a report that say what would order two accesses, or which operations to
/// use instead. The accesses are to symmetric memory at `place`, or to private memory if it is
/// `None`.
fn advice(sides: &[Side; 2], place: Option<ShadowPlace>) -> String {
    let [first, second] = sides;
    if first.kind.is_atomic() && second.kind.is_atomic() {
        return advice_on_atomics(sides);
    }
    if first.actor.pe == second.actor.pe {
        return advice_on_one_pe(sides, place);
    }
    if let Some(advice) = advice_on_word(sides, place) {
        return advice;
    }

    let (operation, other) = if first.in_flight {
        (first, second)
    } else {
        (second, first)
    };
    if !operation.in_flight {
        return "Nothing orders the two. shmem_barrier_all between them would.".to_owned();
    }
    if operation.actor.on_context {
        return format!(
            "Nothing orders the two. {} on PE {} and shmem_barrier_all after it, between them, \
             would: shmem_barrier_all completes the default context alone.",
            quiet(operation),
            operation.actor.pe
        );
    }
    advice_on_flight(operation, other, place)
}

fn quiet(side: &Side) -> &'static str {
    if side.actor.on_context {
        "shmem_ctx_quiet of its context"
    } else {
        "shmem_quiet"
    }
}

fn is_of_signal(kind: ShadowKind) -> bool {
    kind == ShadowKind::atomic(AtomicityDomain::Signal, 8, false, kind.writes())
}

fn advice_on_atomics([first, second]: &[Side; 2]) -> String {
    let why = if is_of_signal(first.kind) != is_of_signal(second.kind) {
        "signal operations and atomic operations do not exclude each other"
    } else {
        "they have other types, or contexts of other atomicity domains"
    };
    format!(
        "Both are atomic, but {why} (OpenSHMEM 1.6, \"Atomicity Guarantees\"). Use one kind, or order \
         them by a barrier."
    )
}

/// Returns the advice for an atomic operation and another PE's get or put of its word, which could
/// be atomic, too. `None` for other accesses.
fn advice_on_word([first, second]: &[Side; 2], place: Option<ShadowPlace>) -> Option<String> {
    let (atomic, plain) = if first.kind.is_atomic() {
        (first, second)
    } else {
        (second, first)
    };

    let is_of_library = atomic.kind.is_of_library() && plain.kind.is_of_library();
    let is_remote = place.is_some_and(|place| place.pe != plain.actor.pe);
    let is_word = atomic.kind.is_atomic() && !is_of_signal(atomic.kind);
    if !is_of_library || !is_remote || !is_word || plain.nbytes != atomic.nbytes {
        return None;
    }

    let routine = if plain.kind.writes() {
        "shmem_atomic_set"
    } else {
        "shmem_atomic_fetch"
    };
    Some(format!(
        "Nothing orders the two. {routine} in place of {} would make both atomic; else \
         shmem_barrier_all between the two would order them.",
        plain.what
    ))
}

fn advice_on_one_pe([first, second]: &[Side; 2], place: Option<ShadowPlace>) -> String {
    // A fence orders what goes to the PE whose memory the race is on.
    let is_fenced = |side: &Side| {
        place.is_some_and(|place| side.actor.role == ActorRole::InFlight(place.pe))
            && (side.kind.writes() || side.kind.is_atomic())
    };
    match (first.in_flight, second.in_flight) {
        (true, true) if is_fenced(first) && is_fenced(second) => {
            match (first.actor.on_context, second.actor.on_context) {
                (false, false) => {
                    "Nothing orders the two. shmem_fence between them would.".to_owned()
                }
                (true, true) => {
                    "Nothing orders the two. If they are of one context, shmem_ctx_fence of it \
                     between them would, else shmem_ctx_quiet of the first one's."
                        .to_owned()
                }
                _ => format!(
                    "Nothing orders the two, which are of two contexts. {} between them would.",
                    quiet(first)
                ),
            }
        }
        (true, true) => format!(
            "Nothing orders the two. {} between them would; shmem_fence orders puts and atomic \
             operations alone, to the same PE.",
            quiet(first)
        ),
        (true, false) => {
            let of_thread = if private::has_threads() {
                " If another thread has completed it, order the two threads: by a lock, a \
                 barrier, or atomic operations with release and acquire order."
            } else {
                ""
            };
            format!(
                "Nothing completes {}. {} before the second access would.{of_thread}",
                first.what,
                quiet(first)
            )
        }
        _ => "Nothing orders the two. A barrier or a lock between the threads would.".to_owned(),
    }
}

/// Returns the advice for an operation in flight on the default context and an access by another
/// PE.
fn advice_on_flight(operation: &Side, other: &Side, place: Option<ShadowPlace>) -> String {
    let is_word_of_library =
        |side: &Side| side.kind.is_of_library() && !side.kind.is_atomic() && side.nbytes <= 8;
    if operation.kind.writes() && is_word_of_library(operation) && is_word_of_library(other) {
        return "Nothing orders the two. If both PEs change the value, let them do it by an atomic \
                operation such as shmem_atomic_add, or between shmem_set_lock and \
                shmem_clear_lock; else shmem_barrier_all between the two would order them."
            .to_owned();
    }

    if other.kind == ShadowKind::STORE && operation.kind.writes() {
        return format!(
            "Nothing orders the two. shmem_barrier_all between them would: after the store, if it \
             prepares the memory for {0}; after {0}, if the store is to change what has arrived.",
            operation.what
        );
    }

    // What follows is about data for a PE that reads it.
    let is_for_target = place.is_some_and(|place| place.pe == other.actor.pe);
    if !is_for_target || !operation.kind.writes() || other.kind.writes() {
        return "Nothing orders the two. shmem_barrier_all between them would.".to_owned();
    }

    let pe = other.actor.pe;
    let has_signal = operation.what.contains("_signal");
    match (operation.kind.is_atomic(), has_signal) {
        (true, true) => format!(
            "Nothing orders the two. shmem_signal_wait_until or shmem_signal_fetch on PE {pe} \
             reads a signal."
        ),
        (true, false) => format!(
            "Nothing orders the two. shmem_barrier_all between them would, or a wait such as \
             shmem_wait_until on PE {pe}; shmem_atomic_fetch reads a word that others change."
        ),
        (false, true) => format!(
            "Nothing orders the two. shmem_signal_wait_until for its signal before the access of \
             PE {pe} would, or shmem_barrier_all between them."
        ),
        (false, false) => {
            let put = match operation.sources.first() {
                Some(source) => source.to_string(),
                None => "the first".to_owned(),
            };
            format!(
                "Nothing orders the two. shmem_barrier_all between them would, or a put with a \
                 signal at {put} and shmem_signal_wait_until on PE {pe}; a flag that follows the \
                 put needs shmem_fence before it."
            )
        }
    }
}
