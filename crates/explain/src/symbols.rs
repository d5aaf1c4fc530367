//! The names of static variables, from the symbol table of the program.

use crate::snapshot::PeSnapshot;
use crate::status::{Subject, SymmetricLocation};
use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSymbol, ReadCache, SymbolKind};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::os::unix::fs::MetadataExt;

/// The size of a lock.
const LOCK_BYTES: u64 = 8;

/// The size of most elements that PEs write.
const WORD_BYTES: u64 = 8;

/// Maximum length of a name in an explanation; those of C++ templates are longer.
const MAX_NAME: usize = 100;

/// The variables of a program: the size and the name of each, by its address.
struct Variables(BTreeMap<u64, (u64, String)>);

/// Returns the name in the source code of a name that the compiler has mangled.
type Demangle = fn(&str) -> Option<String>;

/// Adds the names of the static variables that the statuses and writes of the PEs mention. A
/// program that many PEs execute is read once.
pub fn add<'a>(
    snapshots: impl Iterator<Item = (&'a mut PeSnapshot, Option<u32>)>,
    demangle: Demangle,
) {
    let mut programs: HashMap<(u64, u64), Variables> = HashMap::new();
    for (snapshot, pid) in snapshots {
        let addresses = static_addresses(snapshot);
        let Some(pid) = pid.filter(|_| !addresses.is_empty()) else { continue };
        let Ok(file) = File::open(format!("/proc/{pid}/exe")) else { continue };
        let Ok(id) = file.metadata().map(|file| (file.dev(), file.ino())) else { continue };
        let variables = programs.entry(id).or_insert_with(|| Variables::of(file));
        let name = |(address, nbytes)| Some((address, variables.name(address, nbytes, demangle)?));
        snapshot.symbols = addresses.into_iter().filter_map(name).collect();
    }
}

/// Returns the addresses in static variables that a snapshot mentions, and the number of bytes that
/// are accessed at each.
fn static_addresses(snapshot: &PeSnapshot) -> BTreeMap<u64, u64> {
    let mut addresses = BTreeMap::new();
    let mut add = |location: &SymmetricLocation, nbytes: u64| {
        if let SymmetricLocation::Static { address } = location {
            addresses.entry(*address).or_insert(nbytes);
        }
    };
    if let Some(status) = &snapshot.status {
        status.held_locks.iter().for_each(|lock| add(lock, LOCK_BYTES));
        status.waits.iter().for_each(|wait| match &wait.subject {
            Subject::Words(words) => {
                words.words.iter().for_each(|word| add(&word.location, word.nbytes.into()));
            }
            Subject::Lock { lock, .. } => add(lock, LOCK_BYTES),
            _ => {}
        });
    }
    for write in snapshot.writes.iter().flatten() {
        add(&write.location, write.nbytes.min(WORD_BYTES));
    }
    addresses
}

impl Variables {
    fn of(program: File) -> Variables {
        let mut variables = BTreeMap::new();
        let cache = ReadCache::new(program);
        if let Ok(program) = ElfFile64::<Endianness, _>::parse(&cache) {
            for symbol in program.symbols().chain(program.dynamic_symbols()) {
                if symbol.kind() == SymbolKind::Data
                    && let Ok(name) = symbol.name()
                {
                    let variable = || (symbol.size(), name.to_owned());
                    variables.entry(symbol.address()).or_insert_with(variable);
                }
            }
        }
        Variables(variables)
    }

    /// Returns the name of the variable at an address, of its element, or of a byte in it. `word`
    /// is the number of bytes that are accessed at the address.
    fn name(&self, address: u64, word: u64, demangle: Demangle) -> Option<String> {
        let (start, (nbytes, mangled)) = self.0.range(..=address).next_back()?;
        let offset = address - start;
        if offset >= *nbytes {
            return None;
        }
        let name = demangle(mangled).unwrap_or_else(|| mangled.clone());
        let name: String = name.chars().take(MAX_NAME).collect();
        Some(match word {
            _ if offset == 0 && *nbytes == word => name,
            1.. if nbytes.is_multiple_of(word) && offset.is_multiple_of(word) => {
                format!("{name}[{}]", offset / word)
            }
            _ if offset == 0 => name,
            _ => format!("{name} + {offset} bytes"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_an_element_where_the_size_allows_it() {
        let part = |offset: u64, nbytes, word| {
            let variables = Variables(BTreeMap::from([(64, (nbytes, "flag".to_owned()))]));
            variables.name(64 + offset, word, |_| None)
        };
        assert_eq!(part(0, 8, 8).as_deref(), Some("flag"));
        assert_eq!(part(16, 32, 8).as_deref(), Some("flag[2]"));
        assert_eq!(part(0, 32, 8).as_deref(), Some("flag[0]"));
        assert_eq!(part(0, 20, 8).as_deref(), Some("flag"));
        assert_eq!(part(8, 20, 8).as_deref(), Some("flag + 8 bytes"));
        assert_eq!(part(3, 32, 8).as_deref(), Some("flag + 3 bytes"));
        assert_eq!(part(32, 32, 8), None);
    }

    #[test]
    fn variables_are_found_by_an_address_within() {
        #[used]
        static ZEROS: [u64; 4] = [0; 4];
        assert_ne!(&raw const ZEROS as u64, 0);
        let variables = Variables::of(File::open("/proc/self/exe").expect("this program"));
        let (start, _) =
            variables.0.iter().find(|(_, (_, name))| name.contains("ZEROS")).expect("in the table");
        let name = variables.name(start + 16, 8, |_| None).expect("a name");
        assert!(name.ends_with("[2]"), "{name}");
        assert_eq!(variables.name(1, 8, |_| None), None);
    }
}
