//! The program's static data: where the executable's global and static variables are.
//!
//! They are symmetric objects too (OpenSHMEM 1.6, §6), so they must be reachable like the heap although
//! the linker placed them and the kernel mapped them privately. [`Statics`] finds them in the program
//! headers; `remap` puts shared memory in their place; `fork` gives child processes a `copy` of their
//! own; `views` maps those of the node's other PEs. Variables of shared libraries are not symmetric.
//!
//! What is a static variable here is what may be written after start-up: the writable segments without
//! the pages that the dynamic linker makes read-only (RELRO). Executables have one or, from some
//! linkers, several; they are one symmetric segment with holes.
#![allow(unsafe_code)]

mod copy;
mod fork;
mod remap;
mod views;

pub use fork::are_shared;
pub use remap::{Refusal, Remapped};
pub(crate) use views::Views;

use std::ops::Range;

/// Where the static data of the program are in this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statics {
    start: usize,
    parts: Vec<Part>,
    fingerprint: Vec<u64>,
    has_linker: bool,
}

/// Pages of variables without a hole.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    /// As offsets from the start of the static data.
    pages: Range<usize>,
    /// How many of its bytes have their initial values in the executable.
    file_bytes: usize,
    /// It holds code, too.
    executable: bool,
}

/// A program header: what the linker asked for at a range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    kind: u32,
    flags: u32,
    address: usize,
    file_bytes: usize,
    nbytes: usize,
}

impl Statics {
    /// Those of the program that this process runs.
    pub fn of_program() -> Statics {
        /// What the callback fills in: of the first object, which is the program.
        type Found = Option<(usize, Vec<Header>)>;
        unsafe extern "C" fn first(
            info: *mut libc::dl_phdr_info,
            _: usize,
            found: *mut libc::c_void,
        ) -> libc::c_int {
            // SAFETY: the dynamic linker passes a valid object.
            let info = unsafe { &*info };
            let count = usize::from(info.dlpi_phnum);
            // SAFETY: an object has that many headers, in memory.
            let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, count) };
            let headers = headers.iter().map(|header| Header {
                kind: header.p_type,
                flags: header.p_flags,
                address: header.p_vaddr as usize,
                file_bytes: header.p_filesz as usize,
                nbytes: header.p_memsz as usize,
            });
            // SAFETY: the pointer that is passed below.
            unsafe { *found.cast::<Found>() = Some((info.dlpi_addr as usize, headers.collect())) };
            1
        }
        let mut found: Found = None;
        // SAFETY: the callback takes the pointer for what it is; `found` outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut found).cast()) };
        let (load_address, headers) = found.unwrap_or_default();
        Statics::of_headers(load_address, &headers, page())
    }

    /// Those of a program with these headers that is loaded `load_address` bytes from where it was linked to.
    fn of_headers(load_address: usize, headers: &[Header], page: usize) -> Statics {
        let protected = headers
            .iter()
            .find(|header| header.kind == libc::PT_GNU_RELRO)
            .map(|header| down(header.address, page)..down(header.address + header.nbytes, page))
            .unwrap_or_default();
        let writable = |header: &&Header| {
            header.kind == libc::PT_LOAD && header.flags & libc::PF_W != 0 && header.nbytes > 0
        };
        let parts = headers.iter().filter(writable).filter_map(|header| {
            let end = (header.address + header.nbytes).next_multiple_of(page);
            let mut first = down(header.address, page);
            if protected.contains(&first) {
                first = protected.end;
            }
            (first < end).then(|| Part {
                pages: first..end,
                file_bytes: (header.address + header.file_bytes).saturating_sub(first),
                executable: header.flags & libc::PF_X != 0,
            })
        });
        let mut parts: Vec<Part> = parts.collect();
        parts.sort_by_key(|part| part.pages.start);
        let first = parts.first().map_or(0, |part| part.pages.start);
        for part in &mut parts {
            part.pages = part.pages.start - first..part.pages.end - first;
        }
        let loads = headers.iter().filter(|header| header.kind == libc::PT_LOAD);
        let fingerprint = loads
            .flat_map(|h| [h.flags as usize, h.address, h.file_bytes, h.nbytes])
            .map(|word| word as u64)
            .collect();
        let has_linker = headers.iter().any(|header| header.kind == libc::PT_INTERP);
        Statics { start: load_address.wrapping_add(first), parts, fingerprint, has_linker }
    }

    /// Address of the first byte.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Bytes from the first to the end of the last page, holes included.
    pub fn nbytes(&self) -> usize {
        self.parts.last().map_or(0, |part| part.pages.end)
    }

    /// Whether the `nbytes` bytes at `offset` from the start are variables, all in one run.
    pub fn hold(&self, offset: usize, nbytes: usize) -> bool {
        let within =
            |part: &Part| part.pages.contains(&offset) && nbytes <= part.pages.end - offset;
        self.parts.iter().any(within)
    }

    /// Whether the program was linked statically, so that it cannot open shared libraries.
    pub fn of_static_program(&self) -> bool {
        !self.has_linker
    }

    /// Numbers that differ where the layout of the program differs.
    pub fn fingerprint(&self) -> &[u64] {
        &self.fingerprint
    }
}

/// Bytes of a page.
fn page() -> usize {
    // SAFETY: asks for a constant of the system.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

fn down(address: usize, page: usize) -> usize {
    address / page * page
}

#[cfg(test)]
mod tests {
    use super::*;

    const RW: u32 = libc::PF_R | libc::PF_W;

    fn load(flags: u32, address: usize, file_bytes: usize, nbytes: usize) -> Header {
        Header { kind: libc::PT_LOAD, flags, address, file_bytes, nbytes }
    }

    fn relro(address: usize, nbytes: usize) -> Header {
        Header { kind: libc::PT_GNU_RELRO, flags: libc::PF_R, address, file_bytes: 0, nbytes }
    }

    #[test]
    fn relro_is_cut_off() {
        let headers = [
            load(libc::PF_R, 0, 0x600, 0x600),
            load(RW, 0x3dd0, 0x250, 0x9000),
            relro(0x3dd0, 0x230),
        ];
        let statics = Statics::of_headers(0x10000, &headers, 4096);
        assert_eq!(statics.start(), 0x14000);
        assert_eq!(statics.nbytes(), 0x9000);
        assert_eq!(statics.parts[0].file_bytes, 0x20);
        assert!(statics.hold(0, statics.nbytes()) && !statics.hold(1, statics.nbytes()));
    }

    #[test]
    fn the_linker_keeps_the_page_in_which_relro_ends_writable() {
        let headers = [load(RW, 0x3000, 0x1800, 0x1800), relro(0x3000, 0x1400)];
        assert_eq!(Statics::of_headers(0, &headers, 4096).start(), 0x4000);
        let headers = [load(RW, 0x3100, 0x1800, 0x1800)];
        assert_eq!(Statics::of_headers(0, &headers, 4096).start(), 0x3000);
    }

    #[test]
    fn several_segments_are_one_with_holes() {
        let headers = [
            load(RW, 0x3000, 0x1000, 0x1000),
            relro(0x3000, 0x1000),
            load(RW, 0x5000, 0x10, 0x20),
            load(RW, 0x8000, 0, 0x1001),
        ];
        let statics = Statics::of_headers(0, &headers, 4096);
        assert_eq!((statics.start(), statics.nbytes()), (0x5000, 0x5000));
        assert!(statics.hold(0xfff, 1) && statics.hold(0x3000, 0x2000));
        assert!(!statics.hold(0xfff, 2) && !statics.hold(0x2fff, 1) && !statics.hold(0, 0x5000));
    }

    #[test]
    fn a_program_without_variables_has_none() {
        let statics = Statics::of_headers(0, &[load(libc::PF_R, 0, 8, 8)], 4096);
        assert_eq!(statics.nbytes(), 0);
        assert!(!statics.hold(0, 1));
    }

    static HERE: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(7);

    #[test]
    fn a_static_of_this_program_is_among_them() {
        let statics = Statics::of_program();
        let offset = HERE.as_ptr().addr() - statics.start();
        assert!(statics.hold(offset, 8) && !statics.of_static_program(), "{statics:?}");
        let local = 5u64;
        assert!(!statics.hold((&raw const local).addr().wrapping_sub(statics.start()), 8));
    }
}
