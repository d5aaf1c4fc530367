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
    // Has each bit that is set in one of the addresses, so it is aligned if both are.
    let addresses = to.addr() | from.addr();
    if nbytes == 8 && addresses.is_multiple_of(8) {
        // SAFETY: `from` is valid by contract, and aligned.
        let from = unsafe { AtomicU64::from_ptr(from.cast_mut().cast()) };
        // SAFETY: `to` is valid by contract, and aligned.
        let to = unsafe { AtomicU64::from_ptr(to.cast()) };
        to.store(from.load(Ordering::Acquire), Ordering::Release);
    } else if nbytes == 4 && addresses.is_multiple_of(4) {
        // SAFETY: `from` is valid by contract, and aligned.
        let from = unsafe { AtomicU32::from_ptr(from.cast_mut().cast()) };
        // SAFETY: `to` is valid by contract, and aligned.
        let to = unsafe { AtomicU32::from_ptr(to.cast()) };
        to.store(from.load(Ordering::Acquire), Ordering::Release);
    } else {
        // SAFETY: both are valid by contract; the ranges may overlap.
        unsafe { std::ptr::copy(from, to, nbytes) };
        // A flag that is stored next is visible after these bytes.
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
    // The kernel may copy less than it was asked for.
    while done < nbytes {
        let local = libc::iovec {
            iov_base: local.wrapping_add(done).cast(),
            iov_len: nbytes - done,
        };
        let remote = libc::iovec {
            iov_base: with_exposed_provenance_mut(remote as usize + done),
            iov_len: nbytes - done,
        };
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
    // SAFETY: `to` is valid for writes, by contract, and the call only writes to it.
    unsafe { vm_copy(libc::process_vm_readv, pid, from, to, nbytes) }
}

/// Copies to another process.
///
/// # Safety
/// `from` is valid for reads of `nbytes` bytes.
pub(crate) unsafe fn store(pid: u32, to: u64, from: *const u8, nbytes: usize) -> io::Result<()> {
    // SAFETY: `from` is valid for reads, by contract, and the call only reads it.
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
    // A process of another user runs, too, though it may not be signaled.
    code == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

/// Permits other processes of this user to access this one's memory, under Yama.
pub(crate) fn permit_access() {
    // The call fails on kernels without Yama, which do not need it.
    // SAFETY: the call takes numbers only.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
}

/// Returns true if all pages of a range of this process are mapped.
pub(crate) fn is_mapped(base: u64, nbytes: usize) -> bool {
    let page = page_nbytes();
    let end = base + nbytes as u64;
    let mut start = base / page * page;
    // What mincore stores is not used: it fails if a page is not mapped.
    let mut resident = [0u8; 1024];
    while start < end {
        let n = (end - start).min(page * resident.len() as u64);
        let range = with_exposed_provenance::<u8>(start as usize).cast_mut();
        // SAFETY: `resident` has a byte for each page of the range; the kernel checks the range.
        let code = unsafe { libc::mincore(range.cast(), n as usize, resident.as_mut_ptr()) };
        if code != 0 {
            return false;
        }
        start += n;
    }
    true
}

fn page_nbytes() -> u64 {
    // SAFETY: the call takes a number only.
    let nbytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(nbytes).unwrap_or(4096)
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
        let page = page_nbytes();
        let first = offset / page * page;
        let skip = (offset - first) as usize;
        let nbytes = nbytes + skip;

        // SAFETY: a new mapping at an address that the kernel selects.
        let base = unsafe {
            libc::mmap(
                null_mut(),
                nbytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                first.cast_signed(),
            )
        };
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
        // SAFETY: `new` mapped the range, which is not used any more.
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

/// A line of /proc/PID/maps.
struct MapsLine<'a> {
    from: u64,
    to: u64,
    rights: &'a str,
    offset: u64,
    device: &'a str,
    inode: &'a str,
}

impl<'a> MapsLine<'a> {
    fn parse(line: &'a str) -> Option<MapsLine<'a>> {
        let mut words = line.split_ascii_whitespace();
        let (from, to) = words.next()?.split_once('-')?;
        Some(MapsLine {
            from: u64::from_str_radix(from, 16).ok()?,
            to: u64::from_str_radix(to, 16).ok()?,
            rights: words.next()?,
            offset: u64::from_str_radix(words.next()?, 16).ok()?,
            device: words.next()?,
            inode: words.next()?,
        })
    }

    /// Returns true if the mapping is shared and writable.
    fn is_shared(&self) -> bool {
        self.rights.starts_with("rw") && self.rights.ends_with('s')
    }

    /// Returns true if it begins where another one ends, in memory and in the same file.
    fn continues(&self, previous: &MapsLine<'_>) -> bool {
        self.from == previous.to
            && self.device == previous.device
            && self.inode == previous.inode
            && self.offset == previous.offset + (previous.to - previous.from)
    }
}

/// Finds a range in the text of /proc/PID/maps. It must be shared, writable and contiguous in one
/// file.
fn shared_range(maps: &str, base: u64, end: u64) -> Option<FileRange> {
    let lines: Vec<MapsLine<'_>> = maps.lines().map(MapsLine::parse).collect::<Option<_>>()?;
    let mut overlapping = lines
        .iter()
        .filter(|line| line.to > base && line.from < end);

    let first = overlapping.next()?;
    if first.from > base || !first.is_shared() {
        return None;
    }

    let mut last = first;
    for line in overlapping {
        if !line.is_shared() || !line.continues(last) {
            return None;
        }
        last = line;
    }
    if last.to < end {
        return None;
    }

    Some(FileRange {
        // Unlike addresses in maps, names in map_files have no leading zeros.
        name: format!("{:x}-{:x}", first.from, first.to),
        offset: first.offset + (base - first.from),
    })
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
        let range_at = |offset| {
            Some(FileRange {
                name: "1000-3000".to_owned(),
                offset,
            })
        };
        assert_eq!(shared_range(MAPS, 0x1000, 0x2000), range_at(0));
        assert_eq!(shared_range(MAPS, 0x2000, 0x5000), range_at(0x1000));
        assert_eq!(shared_range(MAPS, 0x4000, 0x5800), None);
        assert_eq!(shared_range(MAPS, 0x7000, 0x8000), None);
        assert_eq!(shared_range(MAPS, 0x5800, 0x6800), None);
    }

    /// An address in the first page, which Linux maps for no program.
    const UNMAPPED: u64 = 16;

    #[test]
    fn own_memory_is_accessible_like_that_of_others() {
        let me = std::process::id();
        let from = [7u8; 100];
        let mut to = [0u8; 100];
        let from_address = from.as_ptr().expose_provenance() as u64;

        // SAFETY: `to` has 100 bytes.
        let fetched = unsafe { fetch(me, from_address, to.as_mut_ptr(), 100) };
        fetched.expect("own memory");
        assert_eq!(to, from);

        // SAFETY: `from` has 100 bytes.
        let refused = unsafe { store(me, UNMAPPED, from.as_ptr(), 100) };
        assert!(refused.is_err());

        assert!(is_mapped(from_address, 100));
        assert!(!is_mapped(UNMAPPED, 100));
    }
}
