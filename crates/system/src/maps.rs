//! The mappings of this process, as /proc/self/maps lists them.

use rustix::io::Errno;
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A range of addresses that is mapped.
#[derive(Debug, PartialEq, Eq)]
pub struct Mapping<'a> {
    /// The addresses.
    pub addresses: Range<usize>,
    /// True if this process may read the memory.
    pub is_readable: bool,
    /// True if this process may write to the memory.
    pub is_writable: bool,
    /// True if this process may execute code there.
    pub is_executable: bool,
    /// True if stores are visible to other processes that map the same memory.
    pub is_shared: bool,
    /// True for the stack of the first thread.
    pub is_first_stack: bool,
    /// The offset of the first byte in the mapped file.
    pub offset: u64,
    /// The path of the mapped file, if it has one. The kernel adds ` (deleted)` to that of a file
    /// that was deleted or replaced.
    pub path: Option<&'a Path>,
}

/// Returns the text of /proc/self/maps; an empty one if it cannot be read.
pub fn text() -> Vec<u8> {
    read().unwrap_or_default()
}

/// Returns the text of /proc/self/maps.
///
/// # Errors
/// When it cannot be read: /proc is not mounted, or a limit of this process is reached.
pub fn read() -> Result<Vec<u8>, Errno> {
    std::fs::read("/proc/self/maps")
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// Returns the mappings in such a text, by ascending addresses.
pub fn parse(text: &[u8]) -> impl Iterator<Item = Mapping<'_>> {
    text.split(|byte| *byte == b'\n').filter_map(mapping)
}

/// Parses a line, which is "start-end rwxs offset device inode path", with p in place of s if the
/// mapping is private.
fn mapping(line: &[u8]) -> Option<Mapping<'_>> {
    // Only a path has a slash, and only a path may contain spaces and what is not UTF-8.
    let path_start = line.iter().position(|byte| *byte == b'/');
    let (fields, path) = line.split_at(path_start.unwrap_or(line.len()));
    let mut fields = str::from_utf8(fields).ok()?.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let permissions = fields.next()?;
    let offset = fields.next()?;

    Some(Mapping {
        addresses: usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?,
        is_readable: permissions.contains('r'),
        is_writable: permissions.contains('w'),
        is_executable: permissions.contains('x'),
        is_shared: permissions.ends_with('s'),
        is_first_stack: fields.last() == Some("[stack]"),
        offset: u64::from_str_radix(offset, 16).ok()?,
        path: path_start.map(|_| Path::new(OsStr::from_bytes(path))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_has_a_file_or_none() {
        let text = b"\
1000-3000 rw-s 00002000 00:01 77 /a file (deleted)
7f0000000000-7f0000001000 r-xp 00000000 00:00 0 [vdso]
";
        let mappings = parse(text).collect::<Vec<_>>();
        let of_file = Mapping {
            addresses: 0x1000..0x3000,
            is_readable: true,
            is_writable: true,
            is_executable: false,
            is_shared: true,
            is_first_stack: false,
            offset: 0x2000,
            path: Some(Path::new("/a file (deleted)")),
        };
        let of_kernel = Mapping {
            addresses: 0x7f00_0000_0000..0x7f00_0000_1000,
            is_readable: true,
            is_writable: false,
            is_executable: true,
            is_shared: false,
            is_first_stack: false,
            offset: 0,
            path: None,
        };
        assert_eq!(mappings, [of_file, of_kernel]);
    }

    #[test]
    fn this_process_has_mappings() {
        let variable = 0u8;
        let address = (&raw const variable).addr();
        let text = text();
        let stack = parse(&text).find(|mapping| mapping.addresses.contains(&address));
        assert!(stack.is_some_and(|stack| stack.is_writable && !stack.is_shared));

        let first = parse(&text).filter(|mapping| mapping.is_first_stack);
        assert_eq!(first.count(), 1);
    }
}
