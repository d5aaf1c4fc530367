//! Memory of this process and of others on the same machine: copied by the kernel (process_vm_readv and
//! process_vm_writev), or reached through a mapping of the same pages where these are shared.
//!
//! It must never know what is copied, nor whether it may be.
#![allow(unsafe_code)]

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{null_mut, with_exposed_provenance, with_exposed_provenance_mut};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Copies bytes of this process, whole words where both are aligned.
///
/// # Safety
/// Both are valid for so many bytes. Others may access them meanwhile, as a device's memory.
#[inline]
pub(crate) unsafe fn copy(to: *mut u8, from: *const u8, nbytes: usize) {
    let aligned = |to_what: usize| (to.addr() | from.addr()).is_multiple_of(to_what);
    if nbytes == 8 && aligned(8) {
        // SAFETY: aligned, and valid by contract.
        let from = unsafe { AtomicU64::from_ptr(from.cast_mut().cast()) };
        // SAFETY: as above.
        let to = unsafe { AtomicU64::from_ptr(to.cast()) };
        to.store(from.load(Ordering::Acquire), Ordering::Release);
    } else if nbytes == 4 && aligned(4) {
        // SAFETY: aligned, and valid by contract.
        let from = unsafe { AtomicU32::from_ptr(from.cast_mut().cast()) };
        // SAFETY: as above.
        let to = unsafe { AtomicU32::from_ptr(to.cast()) };
        to.store(from.load(Ordering::Acquire), Ordering::Release);
    } else {
        // SAFETY: by contract; a source may overlap its target.
        unsafe { std::ptr::copy(from, to, nbytes) };
        std::sync::atomic::fence(Ordering::Release);
    }
}

/// The number of the last call's error.
fn failed() -> io::Error {
    io::Error::last_os_error()
}

/// Copies from another process.
///
/// # Safety
/// `to` is valid for writes of so many bytes.
///
/// # Errors
/// When the process is gone, or has no such memory.
pub(crate) unsafe fn fetch(pid: u32, from: u64, to: *mut u8, nbytes: usize) -> io::Result<()> {
    let mut done = 0;
    while done < nbytes {
        let local = libc::iovec { iov_base: to.wrapping_add(done).cast(), iov_len: nbytes - done };
        let there = with_exposed_provenance_mut(from as usize + done);
        let remote = libc::iovec { iov_base: there, iov_len: nbytes - done };
        // SAFETY: the local range is valid by contract; the kernel checks the other.
        let n = unsafe { libc::process_vm_readv(pid as i32, &local, 1, &remote, 1, 0) };
        if n <= 0 {
            return Err(failed());
        }
        done += n as usize;
    }
    Ok(())
}

/// Copies to another process.
///
/// # Safety
/// `from` is valid for reads of so many bytes.
///
/// # Errors
/// When the process is gone, or has no such memory.
pub(crate) unsafe fn store(pid: u32, to: u64, from: *const u8, nbytes: usize) -> io::Result<()> {
    let mut done = 0;
    while done < nbytes {
        let from = from.wrapping_add(done).cast_mut().cast();
        let local = libc::iovec { iov_base: from, iov_len: nbytes - done };
        let there = with_exposed_provenance_mut(to as usize + done);
        let remote = libc::iovec { iov_base: there, iov_len: nbytes - done };
        // SAFETY: the local range is valid by contract; the kernel checks the other.
        let n = unsafe { libc::process_vm_writev(pid as i32, &local, 1, &remote, 1, 0) };
        if n <= 0 {
            return Err(failed());
        }
        done += n as usize;
    }
    Ok(())
}

/// An address of this process's, as a number, as a pointer.
pub(crate) fn pointer(address: u64) -> *mut u8 {
    with_exposed_provenance_mut(address as usize)
}

/// Whether a process runs.
pub(crate) fn is_there(pid: u32) -> bool {
    // SAFETY: it takes numbers, and sends nothing.
    let code = unsafe { libc::kill(pid as i32, 0) };
    code == 0 || failed().raw_os_error() != Some(libc::ESRCH)
}

/// Lets other processes of this user reach this one's memory where the kernel asks for that.
pub(crate) fn open_to_others() {
    // SAFETY: it takes numbers alone. A kernel that does not know it needs it not.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
}

/// Whether all pages of a range of this process's are there to be used.
pub(crate) fn is_mapped(base: u64, nbytes: usize) -> bool {
    let page = page();
    let first = base / page * page;
    let (mut at, end) = (first, base + nbytes as u64);
    let mut seen = [0u8; 1024];
    while at < end {
        let n = (end - at).min(page * seen.len() as u64);
        let range = with_exposed_provenance::<u8>(at as usize);
        // SAFETY: as many bytes as the range has pages; the kernel checks the range.
        let code = unsafe { libc::mincore(range.cast_mut().cast(), n as usize, seen.as_mut_ptr()) };
        if code != 0 {
            return false;
        }
        at += n;
    }
    true
}

fn page() -> u64 {
    // SAFETY: it takes a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(page).unwrap_or(4096)
}

/// Pages that several processes have, until it is dropped.
pub(crate) struct Mapped {
    base: *mut u8,
    nbytes: usize,
    /// Where what was asked for begins.
    skip: usize,
}

// SAFETY: a range of addresses; who uses them says how.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// A file's part.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn new(file: &File, offset: u64, nbytes: usize) -> io::Result<Mapped> {
        let first = offset / page() * page();
        let skip = (offset - first) as usize;
        let (nbytes, rights) = (nbytes + skip, libc::PROT_READ | libc::PROT_WRITE);
        let (fd, flags) = (file.as_raw_fd(), libc::MAP_SHARED);
        // SAFETY: a new mapping, of an open file.
        let base =
            unsafe { libc::mmap(null_mut(), nbytes, rights, flags, fd, first.cast_signed()) };
        if base == libc::MAP_FAILED {
            return Err(failed());
        }
        Ok(Mapped { base: base.cast(), nbytes, skip })
    }

    /// Memory of another process, where it is shared and the kernel lets this one map it too.
    pub(crate) fn of_process(pid: u32, base: u64, nbytes: usize) -> Option<Mapped> {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
        let range = shared_range(&maps, base, base + nbytes as u64)?;
        let path = format!("/proc/{pid}/map_files/{}", range.name);
        let file = File::options().read(true).write(true).open(path).ok()?;
        Mapped::new(&file, range.offset, nbytes).ok()
    }

    pub(crate) fn base(&self) -> *mut u8 {
        self.base.wrapping_add(self.skip)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: mapped here, and nobody uses it any more.
        unsafe { libc::munmap(self.base.cast(), self.nbytes) };
    }
}

/// Where a range of a process's memory is in a file.
#[derive(Debug, PartialEq, Eq)]
struct FileRange {
    /// Of the mapping, as the kernel names it.
    name: String,
    offset: u64,
}

/// The file that a range is of, by the text of /proc/PID/maps: all of it shared, writable and in one piece of one file.
fn shared_range(maps: &str, base: u64, end: u64) -> Option<FileRange> {
    let mut found: Option<(FileRange, u64, &str)> = None;
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        let (range, rights) = (words.next()?, words.next()?);
        let (from, to) = range.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let (from, to) = (number(from)?, number(to)?);
        if to <= base || from >= end {
            continue;
        }
        let offset = number(words.next()?)?;
        let file = line.get(line.find(words.next()?)?..)?.split_ascii_whitespace().nth(1)?;
        if !rights.starts_with("rw") || !rights.ends_with('s') {
            return None;
        }
        found = match found {
            None if from <= base => {
                // The kernel's names have no leading zeros, as those of maps on large addresses.
                let name = format!("{from:x}-{to:x}");
                Some((FileRange { name, offset: offset + base - from }, to, file))
            }
            Some((first, reached, of))
                if reached == from && of == file && first.offset + from - base == offset =>
            {
                Some((first, to, of))
            }
            _ => return None,
        };
    }
    found.filter(|(_, reached, _)| *reached >= end).map(|(range, ..)| range)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
1000-3000 rw-s 00000000 00:01 77 /memfd:x (deleted)
3000-5000 rw-s 00002000 00:01 77 /memfd:x (deleted)
5000-6000 rw-s 00000000 00:01 78 /memfd:y (deleted)
7000-9000 rw-p 00000000 00:00 0 [heap]
";

    #[test]
    fn shared_ranges_are_found_over_several_mappings_of_a_file() {
        let at = |offset| Some(FileRange { name: "1000-3000".to_owned(), offset });
        assert_eq!(shared_range(MAPS, 0x1000, 0x2000), at(0));
        assert_eq!(shared_range(MAPS, 0x2000, 0x5000), at(0x1000));
        assert_eq!(shared_range(MAPS, 0x4000, 0x5800), None);
        assert_eq!(shared_range(MAPS, 0x7000, 0x8000), None);
        assert_eq!(shared_range(MAPS, 0x5800, 0x6800), None);
    }

    #[test]
    fn a_process_reaches_its_own_memory_as_another() {
        let (me, from) = (std::process::id(), [7u8; 100]);
        let mut to = [0u8; 100];
        // SAFETY: an array of this length.
        unsafe { fetch(me, from.as_ptr().expose_provenance() as u64, to.as_mut_ptr(), 100) }
            .expect("own memory");
        assert_eq!(to, from);
        // SAFETY: an array of this length.
        let nowhere = unsafe { store(me, 16, from.as_ptr(), 100) };
        assert!(nowhere.is_err());
        assert!(is_mapped(from.as_ptr().expose_provenance() as u64, 100));
        assert!(!is_mapped(16, 100));
    }
}
