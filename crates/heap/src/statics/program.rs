//! Finds the program's static data in its program headers.
//!
//! Static data in this sense are all bytes that may be written after start-up: the writable
//! segments of the executable, without the pages that the dynamic linker makes read-only (RELRO).
//! There is one such segment or, from some linkers, several; together they are one symmetric
//! segment with holes.
//!
//! Constants are in the other pages of the executable. Each PE has a copy of its own, which no PE
//! can change. The copies are equal, except for those that contain addresses: the dynamic linker
//! relocates them in the pages that it then makes read-only.
#![allow(unsafe_code)]

use std::ops::Range;

/// The type (`NT_GNU_BUILD_ID`, on machines of little-endian order) and the owner of the note by
/// which a linker identifies a build.
const BUILD_ID: &[u8] = b"\x03\0\0\0GNU\0";

/// The static data of the program in this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statics {
    load_address: usize,
    pub(super) start: usize,
    pub(super) parts: Vec<ProgramPart>,
    /// The addresses of the segments that are never written.
    constants: Vec<Range<usize>>,
    /// The addresses of the pages that the dynamic linker makes read-only after it has relocated
    /// them.
    relocated: Range<usize>,
    /// The addresses of the notes of the linker.
    notes: Vec<Range<usize>>,
    fingerprint: Vec<u64>,
    has_linker: bool,
}

/// The memory of a constant of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConstantMemory {
    /// Bytes that are the same in all processes of the executable.
    Equal,
    /// Bytes that may contain addresses, which differ from process to process.
    Relocated,
}

/// A run of pages with variables, without holes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProgramPart {
    /// The pages, as offsets from the start of the static data.
    pub(super) pages: Range<usize>,
    /// The number of its first bytes that have their initial values in the executable; the rest are
    /// zeros at first.
    pub(super) file_bytes: usize,
    /// True if the part also contains code.
    pub(super) executable: bool,
}

/// A program header: what the linker requires at a range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    kind: u32,
    flags: u32,
    address: usize,
    file_bytes: usize,
    nbytes: usize,
}

impl Header {
    /// Returns the addresses that it describes in a program that is loaded `load_address` bytes
    /// from the addresses for which it was linked.
    fn loaded(&self, load_address: usize) -> Range<usize> {
        let start = load_address.wrapping_add(self.address);
        start..start.wrapping_add(self.nbytes)
    }

    /// Returns the pages of a segment that the program may write, at the addresses for which it was
    /// linked; `None` if there are none. The dynamic linker makes the pages of `protected`
    /// read-only.
    fn writable_part(&self, protected: &Range<usize>, page: usize) -> Option<ProgramPart> {
        if self.kind != libc::PT_LOAD || self.flags & libc::PF_W == 0 || self.nbytes == 0 {
            return None;
        }

        let end = (self.address + self.nbytes).next_multiple_of(page);
        let mut first = down(self.address, page);
        // Linkers put what becomes read-only at the start of a segment.
        if protected.contains(&first) {
            first = protected.end;
        }
        if first >= end {
            return None;
        }

        Some(ProgramPart {
            pages: first..end,
            file_bytes: (self.address + self.file_bytes).saturating_sub(first),
            executable: self.flags & libc::PF_X != 0,
        })
    }
}

/// An object that the dynamic linker has loaded.
#[derive(Default)]
struct LoadedObject {
    load_address: usize,
    headers: Vec<Header>,
}

/// Stores the first object, which is the program, in the [`LoadedObject`] at `found`: a callback of
/// `dl_iterate_phdr`.
unsafe extern "C" fn first_object(
    info: *mut libc::dl_phdr_info,
    _: usize,
    found: *mut libc::c_void,
) -> libc::c_int {
    // SAFETY: the dynamic linker passes a valid object.
    let info = unsafe { &*info };
    let count = usize::from(info.dlpi_phnum);
    // SAFETY: the object is loaded with an array of that many headers.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, count) };

    let headers = headers.iter().map(|header| Header {
        kind: header.p_type,
        flags: header.p_flags,
        address: header.p_vaddr as usize,
        file_bytes: header.p_filesz as usize,
        nbytes: header.p_memsz as usize,
    });
    let program = LoadedObject {
        load_address: info.dlpi_addr as usize,
        headers: headers.collect(),
    };
    // SAFETY: `Statics::of_program` passes a pointer to such an object, which it does not use
    // during the call.
    unsafe { *found.cast::<LoadedObject>() = program };

    // Any number but 0 ends the iteration.
    1
}

impl Statics {
    /// Returns the static data of the program that this process runs.
    pub fn of_program() -> Statics {
        let mut program = LoadedObject::default();
        // The result is that of the callback, which has none.
        // SAFETY: the callback uses the pointer as that to `program`, which outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(first_object), (&raw mut program).cast()) };
        Statics::of_headers(program.load_address, &program.headers, page())
    }

    /// Returns the static data of a program with these headers that is loaded `load_address` bytes
    /// from the addresses for which it was linked.
    fn of_headers(load_address: usize, headers: &[Header], page: usize) -> Statics {
        // Rounded down at both ends, as the dynamic linker does: the page in which RELRO ends stays
        // writable.
        let protected = headers
            .iter()
            .find(|header| header.kind == libc::PT_GNU_RELRO)
            .map(|header| down(header.address, page)..down(header.address + header.nbytes, page))
            .unwrap_or_default();

        // As the program was linked; the offsets follow when the first part is known.
        let mut parts: Vec<ProgramPart> = headers
            .iter()
            .filter_map(|header| header.writable_part(&protected, page))
            .collect();
        parts.sort_by_key(|part| part.pages.start);
        let first = parts.first().map_or(0, |part| part.pages.start);
        for part in &mut parts {
            part.pages = part.pages.start - first..part.pages.end - first;
        }

        let constants: Vec<Range<usize>> = headers
            .iter()
            .filter(|header| header.kind == libc::PT_LOAD && header.flags & libc::PF_W == 0)
            .map(|header| header.loaded(load_address))
            .collect();
        // Notes that are in no segment are in the file alone.
        let notes = headers
            .iter()
            .filter(|header| header.kind == libc::PT_NOTE)
            .map(|header| header.loaded(load_address))
            .filter(|note| {
                constants
                    .iter()
                    .any(|segment| segment.start <= note.start && note.end <= segment.end)
            })
            .collect();

        // No contents of the file: two builds with the same layout can exchange static data.
        let fingerprint = headers
            .iter()
            .filter(|header| header.kind == libc::PT_LOAD)
            .flat_map(|h| [h.flags as usize, h.address, h.file_bytes, h.nbytes])
            .map(|word| word as u64)
            .collect();

        Statics {
            load_address,
            start: load_address.wrapping_add(first),
            parts,
            constants,
            relocated: load_address.wrapping_add(protected.start)
                ..load_address.wrapping_add(protected.end),
            notes,
            fingerprint,
            has_linker: headers.iter().any(|header| header.kind == libc::PT_INTERP),
        }
    }

    /// Returns the difference between addresses in this process and in the executable file.
    pub fn load_address(&self) -> usize {
        self.load_address
    }

    /// Returns the address of the first byte.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Returns the number of bytes from the start of the first page to the end of the last one,
    /// holes included.
    pub fn nbytes(&self) -> usize {
        self.parts.last().map_or(0, |part| part.pages.end)
    }

    /// Returns the addresses of the variables: a range for each part of the program that has some.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        self.parts
            .iter()
            .map(|part| self.start + part.pages.start..self.start + part.pages.end)
    }

    /// Returns true if the `nbytes` bytes at `offset` from the start are in one part, without a
    /// hole.
    pub fn contains(&self, offset: usize, nbytes: usize) -> bool {
        self.parts
            .iter()
            .any(|part| part.pages.contains(&offset) && nbytes <= part.pages.end - offset)
    }

    /// Returns true if the program was linked statically, so that it cannot open shared libraries.
    pub fn of_static_program(&self) -> bool {
        !self.has_linker
    }

    /// Returns the kind of the constant memory that contains the `nbytes` bytes at `addr`; `None`
    /// if they are not within constant memory of the program.
    pub fn constant_at(&self, addr: usize, nbytes: usize) -> Option<ConstantMemory> {
        let holds = |range: &Range<usize>| range.contains(&addr) && nbytes <= range.end - addr;
        if self.constants.iter().any(holds) {
            Some(ConstantMemory::Equal)
        } else if holds(&self.relocated) {
            Some(ConstantMemory::Relocated)
        } else {
            None
        }
    }

    /// Returns bytes that differ if the constants of the program differ: the notes of the linker if
    /// they identify the build, otherwise the constants.
    pub fn identity_of_constants(&self) -> impl Iterator<Item = u8> {
        let notes: Vec<u8> = constant_bytes(&self.notes).collect();
        let is_identified = notes
            .windows(BUILD_ID.len())
            .any(|window| window == BUILD_ID);

        let identity = if is_identified {
            &self.notes
        } else {
            &self.constants
        };
        constant_bytes(identity)
    }

    /// Returns numbers that differ if the layout of the program differs.
    pub fn fingerprint(&self) -> &[u64] {
        &self.fingerprint
    }
}

/// Returns the bytes in these ranges of addresses, which are in read-only segments of the program.
fn constant_bytes(ranges: &[Range<usize>]) -> impl Iterator<Item = u8> {
    let addresses = ranges.iter().cloned().flatten();
    // SAFETY: the address is in a read-only segment of the program, as the caller passes them:
    // mapped as long as the program runs, readable, and never written.
    addresses.map(|address| unsafe { std::ptr::with_exposed_provenance::<u8>(address).read() })
}

/// Returns the bytes of a page.
pub(super) fn page() -> usize {
    // SAFETY: `sysconf` has no preconditions.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

/// Rounds an address down to a multiple of `page`.
fn down(address: usize, page: usize) -> usize {
    address / page * page
}

#[cfg(test)]
mod tests;
