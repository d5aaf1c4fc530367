//! The files from which the code of this process is loaded, and the files that have their debug
//! information.

use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSegment, ReadCache};
use rushmem_system::maps;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The directory in which distributions install debug information.
const SYSTEM: &str = "/usr/lib/debug";

/// The mark of the kernel on the path of a file that was deleted or replaced.
const DELETED: &str = " (deleted)";

/// The mapped files of this process.
pub(crate) struct Maps(Vec<Mapping>);

struct Mapping {
    addresses: Range<usize>,
    /// The offset of the first byte in the file.
    offset: u64,
    path: PathBuf,
}

/// A byte of a file.
pub(crate) struct FilePosition<'a> {
    pub(crate) path: &'a Path,
    pub(crate) offset: u64,
}

impl Maps {
    /// Reads the mappings. There are none if /proc is not mounted.
    pub(crate) fn read() -> Maps {
        let text = maps::text();
        Maps(maps::parse(&text).filter_map(Mapping::of_file).collect())
    }

    /// Returns the byte of a file that is mapped at an address.
    pub(crate) fn find(&self, address: usize) -> Option<FilePosition<'_>> {
        let mapping = self
            .0
            .iter()
            .find(|mapping| mapping.addresses.contains(&address))?;
        Some(FilePosition {
            path: &mapping.path,
            offset: mapping.offset + (address - mapping.addresses.start) as u64,
        })
    }
}

impl Mapping {
    /// Returns what is needed of a mapping, if it maps a file.
    fn of_file(mapping: maps::Mapping<'_>) -> Option<Mapping> {
        Some(Mapping {
            path: readable(mapping.path?),
            addresses: mapping.addresses,
            offset: mapping.offset,
        })
    }
}

/// Returns the path by which a mapped file can be read. The program that runs can be read although
/// it was replaced, as by a compiler.
fn readable(path: &Path) -> PathBuf {
    let program = Path::new("/proc/self/exe");
    let is_replaced = path.as_os_str().as_bytes().ends_with(DELETED.as_bytes());
    if is_replaced && std::fs::read_link(program).is_ok_and(|target| target == path) {
        program.to_owned()
    } else {
        path.to_owned()
    }
}

/// A part of a file that is loaded.
struct Segment {
    /// The bytes of the file.
    bytes: Range<u64>,
    /// The address of the first one in the symbol table.
    address: u64,
}

/// What the headers of a file of code say.
pub(crate) struct Headers {
    segments: Vec<Segment>,
    /// The file that has the debug information; the file itself if no other is found.
    pub(crate) debug_file: PathBuf,
    /// The file with the debug information that several programs share, as the tool `dwz` makes it.
    pub(crate) shared_debug_file: Option<PathBuf>,
}

impl Headers {
    /// Reads the headers of a file.
    pub(crate) fn read(path: &Path) -> io::Result<Headers> {
        let data = ReadCache::new(File::open(path)?);
        let file = ElfFile64::<Endianness, _>::parse(&data).map_err(io::Error::other)?;
        let segments = file.segments().map(|segment| {
            let (start, nbytes) = segment.file_range();
            Segment {
                bytes: start..start + nbytes,
                address: segment.address(),
            }
        });

        let separate = if has_debug_information(&file) {
            None
        } else {
            separate_file(path, &file)
        };
        let debug_file = separate.unwrap_or_else(|| path.to_owned());
        Ok(Headers {
            segments: segments.collect(),
            shared_debug_file: shared_file(&debug_file),
            debug_file,
        })
    }

    /// Returns the address in the symbol table of a byte of the file, if it is loaded.
    pub(crate) fn address(&self, offset: u64) -> Option<u64> {
        let segment = self
            .segments
            .iter()
            .find(|segment| segment.bytes.contains(&offset))?;
        Some(segment.address + (offset - segment.bytes.start))
    }
}

pub(crate) type Elf<'a> = ElfFile64<'a, Endianness, &'a ReadCache<File>>;

fn has_debug_information(file: &Elf<'_>) -> bool {
    file.section_by_name(".debug_info").is_some()
}

/// Returns the file with the debug information of a stripped file: where distributions install it,
/// or where the link in the stripped file leads, as gdb searches it.
fn separate_file(path: &Path, file: &Elf<'_>) -> Option<PathBuf> {
    let id = file.build_id().ok().flatten();
    if let Some(path) = id.and_then(path_of_build)
        && path.exists()
    {
        return Some(path);
    }

    let (name, _) = file.gnu_debuglink().ok().flatten()?;
    let name = Path::new(OsStr::from_bytes(name));
    let dir = std::fs::canonicalize(path).ok()?.parent()?.to_owned();
    let of_system = Path::new(SYSTEM).join(dir.strip_prefix("/").ok()?);
    [dir.clone(), dir.join(".debug"), of_system]
        .map(|dir| dir.join(name))
        .into_iter()
        .find(|path| is_of_build(path, id))
}

/// Returns the path at which distributions install the debug information of the build with this ID.
fn path_of_build(id: &[u8]) -> Option<PathBuf> {
    let digits: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let (dir, name) = digits.split_at_checked(2)?;
    Some(PathBuf::from(format!(
        "{SYSTEM}/.build-id/{dir}/{name}.debug"
    )))
}

/// Returns true if a file is of the build with this ID; of any, if there is no ID.
fn is_of_build(path: &Path, id: Option<&[u8]>) -> bool {
    let Ok(file) = File::open(path) else {
        return false;
    };
    let data = ReadCache::new(file);
    let Ok(file) = ElfFile64::<Endianness, _>::parse(&data) else {
        return false;
    };
    has_debug_information(&file) && (id.is_none() || file.build_id().ok().flatten() == id)
}

/// Returns the file to which debug information refers for what several programs share.
fn shared_file(debug_file: &Path) -> Option<PathBuf> {
    let data = ReadCache::new(File::open(debug_file).ok()?);
    let file = ElfFile64::<Endianness, _>::parse(&data).ok()?;
    let (name, _) = file.gnu_debugaltlink().ok().flatten()?;
    // A relative path is relative to the file with the link.
    let path = debug_file.parent()?.join(OsStr::from_bytes(name));
    if !path.exists() {
        return None;
    }
    Some(path)
}
