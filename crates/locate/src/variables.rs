//! Finds the names of static variables of a program in its symbol table.

use crate::names;
use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSymbol, ReadCache, SymbolKind};
use std::collections::BTreeMap;
use std::fs::File;

/// Maximum length of a name; those of C++ templates are longer.
const MAX_NAME: usize = 100;

/// The static variables of a program.
pub struct Variables {
    /// The variables by their addresses in the file.
    by_address: BTreeMap<u64, Symbol>,
    are_complete: bool,
    entry: u64,
}

/// A variable in the symbol table.
#[derive(Default)]
struct Symbol {
    nbytes: u64,
    /// The name, as the compiler has mangled it.
    name: String,
}

/// A static variable of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable<'a> {
    /// The address in the file, before relocation.
    pub address: u64,
    /// The size in bytes.
    pub nbytes: u64,
    /// The name, as the compiler has mangled it.
    pub name: &'a str,
}

impl Variables {
    /// Reads the variables of an executable; none if it has no symbol table.
    pub fn of(program: File) -> Variables {
        let mut variables = Variables {
            by_address: BTreeMap::new(),
            are_complete: false,
            entry: 0,
        };
        let cache = ReadCache::new(program);
        let Ok(program) = ElfFile64::<Endianness, _>::parse(&cache) else {
            return variables;
        };

        variables.entry = program.entry();
        variables.are_complete = program.symbols().next().is_some();
        for symbol in program.symbols().chain(program.dynamic_symbols()) {
            if symbol.kind() != SymbolKind::Data {
                continue;
            }
            let Ok(name) = symbol.name() else { continue };

            // An address may have several names, such as that of an array and an alias for its
            // first element. The name of the largest variable counts.
            let known = variables.by_address.entry(symbol.address()).or_default();
            if symbol.size() > known.nbytes || known.name.is_empty() {
                known.nbytes = symbol.size();
                known.name = name.to_owned();
            }
        }
        variables
    }

    /// Returns the address in the file at which the program begins.
    pub fn entry(&self) -> u64 {
        self.entry
    }

    /// Returns true if all variables are known: the program has a symbol table, not only the
    /// symbols for the dynamic linker.
    pub fn are_complete(&self) -> bool {
        self.are_complete
    }

    /// Returns the variable that contains all of the `nbytes` bytes from an address on. If none
    /// does, returns the one that contains the first byte, such as an array beyond whose end the
    /// bytes reach. `None` if there is none.
    pub fn holding(&self, address: u64, nbytes: u64) -> Option<Variable<'_>> {
        let first = self.up_to(address).next()?;
        if !first.contains(address, 1) {
            return None;
        }
        // This symbol may be for a part of a variable, as in a common block of Fortran.
        let whole = self
            .up_to(address)
            .find(|variable| variable.contains(address, nbytes));
        whole.or(Some(first))
    }

    /// Returns the variables that begin at an address or before it, the last one first.
    fn up_to(&self, address: u64) -> impl Iterator<Item = Variable<'_>> {
        let before = self.by_address.range(..=address).rev();
        before.map(|(&address, symbol)| Variable {
            address,
            nbytes: symbol.nbytes,
            name: &symbol.name,
        })
    }

    /// Returns the name of the variable at an address, of its element, or of a byte in it. `word`
    /// is the number of bytes that are accessed at the address.
    pub fn part(&self, address: u64, word: u64) -> Option<String> {
        let variable = self.up_to(address).next()?;
        if !variable.contains(address, 1) {
            return None;
        }

        let name = names::in_source(variable.name);
        let name: String = name.chars().take(MAX_NAME).collect();

        let nbytes = variable.nbytes;
        let offset = address - variable.address;
        let is_of_elements =
            word > 0 && nbytes > word && nbytes.is_multiple_of(word) && offset.is_multiple_of(word);
        Some(if is_of_elements {
            format!("{name}[{}]", offset / word)
        } else if offset == 0 {
            name
        } else {
            format!("{name} + {offset} bytes")
        })
    }
}

impl Variable<'_> {
    /// Returns true if the variable contains all of the `nbytes` bytes from an address on, at which
    /// it begins or before which it begins.
    fn contains(&self, address: u64, nbytes: u64) -> bool {
        let offset = address - self.address;
        offset < self.nbytes && nbytes <= self.nbytes - offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_in_the_variable_that_has_all_of_them() {
        let variable = |address, nbytes, name: &str| {
            let name = name.to_owned();
            (address, Symbol { nbytes, name })
        };

        let by_address = [
            variable(64, 32, "block"),
            variable(72, 8, "part"),
            variable(96, 8, "next"),
        ];
        let variables = Variables {
            by_address: by_address.into(),
            are_complete: true,
            entry: 0,
        };

        let name = |address, nbytes| variables.holding(address, nbytes).map(|found| found.name);
        assert_eq!(name(64, 32), Some("block"));
        assert_eq!(name(72, 8), Some("part"));
        assert_eq!(name(72, 24), Some("block"));
        assert_eq!(name(72, 25), Some("part"));
        assert_eq!(name(96, 9), Some("next"));
        assert_eq!((name(63, 1), name(104, 1)), (None, None));
    }

    #[test]
    fn a_part_is_an_element_where_the_size_allows_it() {
        let part = |offset: u64, nbytes, word| {
            let name = "flag".to_owned();
            let variables = Variables {
                by_address: BTreeMap::from([(64, Symbol { nbytes, name })]),
                are_complete: true,
                entry: 0,
            };
            variables.part(64 + offset, word)
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
        let (start, _) = variables
            .by_address
            .iter()
            .find(|(_, symbol)| symbol.name.contains("ZEROS"))
            .expect("in the table");
        let name = variables.part(start + 16, 8).expect("a name");
        assert!(name.ends_with("[2]"), "{name}");
        assert_eq!(variables.part(1, 8), None);
    }
}
