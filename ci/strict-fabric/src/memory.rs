//! Access to memory of this process and of other processes of the machine: by process_vm_readv and
//! process_vm_writev, or through a mapping of shared pages.
#![allow(unsafe_code)]

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{null_mut, with_exposed_provenance, with_exposed_provenance_mut};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Copies bytes within this process; an aligned word is copied atomically.
///
/// # Safety
/// Both ranges are valid for `nbytes` bytes. Other threads and processes may access them.
#[inline]
pub(crate) unsafe fn copy(to: *mut u8, from: *const u8, nbytes: usize) {
    let is_aligned = |nbytes: usize| (to.addr() | from.addr()).is_multiple_of(nbytes);
    if nbytes == 8 && is_aligned(8) {
        // SAFETY: valid by contract, and aligned.
        let from = unsafe { AtomicU64::from_ptr(from.cast_mut().cast()) };
        // SAFETY: valid by contract, and aligned.
        let to = unsafe { AtomicU64::from_ptr(to.cast()) };
        to.store(from.load(Ordering::Acquire), Ordering::Release);
    } else if nbytes == 4 && is_aligned(4) {
        // SAFETY: valid by contract, and aligned.
        let from = unsafe { AtomicU32::from_ptr(from.cast_mut().cast()) };
        // SAFETY: valid by contract, and aligned.
        let to = unsafe { AtomicU32::from_ptr(to.cast()) };
        to.store(from.load(Ordering::Acquire), Ordering::Release);
    } else {
        // SAFETY: valid by contract; the ranges may overlap.
        unsafe { std::ptr::copy(from, to, nbytes) };
        std::sync::atomic::fence(Ordering::Release);
    }
}

/// process_vm_readv or process_vm_writev.
type VmCall = unsafe extern "C" fn(
    libc::pid_t,
    *const libc::iovec,
    libc::c_ulong,
    *const libc::iovec,
    libc::c_ulong,
    libc::c_ulong,
) -> isize;

/// Copies between this process and another one. Fails if that one has ended or has not mapped the
/// range.
///
/// # Safety
/// `local` is valid for `nbytes` bytes: for writes if `call` reads, for reads if it writes.
unsafe fn vm_copy(
    call: VmCall,
    pid: u32,
    remote: u64,
    local: *mut u8,
    nbytes: usize,
) -> io::Result<()> {
    let mut done = 0;
    while done < nbytes {
        let iovec = |base| libc::iovec {
            iov_base: base,
            iov_len: nbytes - done,
        };
        let local = iovec(local.wrapping_add(done).cast());
        let remote = iovec(with_exposed_provenance_mut(remote as usize + done));
        // SAFETY: the local range is valid by contract; the kernel checks the remote range.
        let n = unsafe { call(pid as i32, &local, 1, &remote, 1, 0) };
        if n <= 0 {
            return Err(io::Error::last_os_error());
        }
        done += n as usize;
    }
    Ok(())
}

/// Copies from another process.
///
/// # Safety
/// `to` is valid for writes of `nbytes` bytes.
pub(crate) unsafe fn fetch(pid: u32, from: u64, to: *mut u8, nbytes: usize) -> io::Result<()> {
    // SAFETY: valid for writes, by contract.
    unsafe { vm_copy(libc::process_vm_readv, pid, from, to, nbytes) }
}

/// Copies to another process.
///
/// # Safety
/// `from` is valid for reads of `nbytes` bytes.
pub(crate) unsafe fn store(pid: u32, to: u64, from: *const u8, nbytes: usize) -> io::Result<()> {
    // SAFETY: valid for reads, by contract.
    unsafe { vm_copy(libc::process_vm_writev, pid, to, from.cast_mut(), nbytes) }
}

/// Converts an address of this process to a pointer.
pub(crate) fn pointer(address: u64) -> *mut u8 {
    with_exposed_provenance_mut(address as usize)
}

/// Returns true if a process runs.
pub(crate) fn is_running(pid: u32) -> bool {
    // SAFETY: the call takes numbers only; signal 0 is not sent.
    let code = unsafe { libc::kill(pid as i32, 0) };
    code == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

/// Permits other processes of this user to access this one's memory, under Yama.
pub(crate) fn permit_access() {
    // SAFETY: the call takes numbers only. It fails on kernels that do not need it.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
}

/// Returns true if all pages of a range of this process are mapped.
pub(crate) fn is_mapped(base: u64, nbytes: usize) -> bool {
    let page = page();
    let first = base / page * page;
    let (mut at, end) = (first, base + nbytes as u64);
    let mut seen = [0u8; 1024];
    while at < end {
        let n = (end - at).min(page * seen.len() as u64);
        let range = with_exposed_provenance::<u8>(at as usize);
        // SAFETY: `seen` has a byte for each page of the range; the kernel checks the range.
        let code = unsafe { libc::mincore(range.cast_mut().cast(), n as usize, seen.as_mut_ptr()) };
        if code != 0 {
            return false;
        }
        at += n;
    }
    true
}

fn page() -> u64 {
    // SAFETY: the call takes a number only.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(page).unwrap_or(4096)
}

/// A mapping of shared pages; unmapped when dropped.
pub(crate) struct PageMapping {
    base: *mut u8,
    nbytes: usize,
    /// The offset of the requested range from the start of the mapping.
    skip: usize,
}

// SAFETY: it only owns a range of addresses, which are valid on all threads.
unsafe impl Send for PageMapping {}
// SAFETY: shared references only return the address.
unsafe impl Sync for PageMapping {}

impl PageMapping {
    /// Maps a part of a file.
    pub(crate) fn new(file: &File, offset: u64, nbytes: usize) -> io::Result<PageMapping> {
        let first = offset / page() * page();
        let skip = (offset - first) as usize;
        let (nbytes, rights) = (nbytes + skip, libc::PROT_READ | libc::PROT_WRITE);
        let (fd, flags) = (file.as_raw_fd(), libc::MAP_SHARED);
        // SAFETY: a new mapping at an address that the kernel selects.
        let base =
            unsafe { libc::mmap(null_mut(), nbytes, rights, flags, fd, first.cast_signed()) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(PageMapping {
            base: base.cast(),
            nbytes,
            skip,
        })
    }

    /// Maps memory of another process, if it is shared and the kernel permits it.
    pub(crate) fn of_process(pid: u32, base: u64, nbytes: usize) -> Option<PageMapping> {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
        let range = shared_range(&maps, base, base + nbytes as u64)?;
        let path = format!("/proc/{pid}/map_files/{}", range.name);
        let file = File::options().read(true).write(true).open(path).ok()?;
        PageMapping::new(&file, range.offset, nbytes).ok()
    }

    pub(crate) fn base(&self) -> *mut u8 {
        self.base.wrapping_add(self.skip)
    }
}

impl Drop for PageMapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and not used any more.
        unsafe { libc::munmap(self.base.cast(), self.nbytes) };
    }
}

/// The location of a memory range in a file.
#[derive(Debug, PartialEq, Eq)]
struct FileRange {
    /// The name of the mapping in /proc/PID/map_files.
    name: String,
    offset: u64,
}

/// Finds a range in the text of /proc/PID/maps. It must be shared, writable and contiguous in one
/// file.
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
        let file = line
            .get(line.find(words.next()?)?..)?
            .split_ascii_whitespace()
            .nth(1)?;
        if !rights.starts_with("rw") || !rights.ends_with('s') {
            return None;
        }
        found = match found {
            None if from <= base => {
                // Unlike addresses in maps, names in map_files have no leading zeros.
                let name = format!("{from:x}-{to:x}");
                Some((
                    FileRange {
                        name,
                        offset: offset + base - from,
                    },
                    to,
                    file,
                ))
            }
            Some((first, reached, first_file))
                if reached == from
                    && first_file == file
                    && first.offset + from - base == offset =>
            {
                Some((first, to, file))
            }
            _ => return None,
        };
    }
    found
        .filter(|(_, reached, _)| *reached >= end)
        .map(|(range, ..)| range)
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
        let at = |offset| {
            Some(FileRange {
                name: "1000-3000".to_owned(),
                offset,
            })
        };
        assert_eq!(shared_range(MAPS, 0x1000, 0x2000), at(0));
        assert_eq!(shared_range(MAPS, 0x2000, 0x5000), at(0x1000));
        assert_eq!(shared_range(MAPS, 0x4000, 0x5800), None);
        assert_eq!(shared_range(MAPS, 0x7000, 0x8000), None);
        assert_eq!(shared_range(MAPS, 0x5800, 0x6800), None);
    }

    #[test]
    fn own_memory_is_accessible_like_that_of_others() {
        let (me, from) = (std::process::id(), [7u8; 100]);
        let mut to = [0u8; 100];
        // SAFETY: an array of 100 bytes.
        unsafe {
            fetch(
                me,
                from.as_ptr().expose_provenance() as u64,
                to.as_mut_ptr(),
                100,
            )
        }
        .expect("own memory");
        assert_eq!(to, from);
        // SAFETY: an array of 100 bytes.
        let nowhere = unsafe { store(me, 16, from.as_ptr(), 100) };
        assert!(nowhere.is_err());
        assert!(is_mapped(from.as_ptr().expose_provenance() as u64, 100));
        assert!(!is_mapped(16, 100));
    }
}
