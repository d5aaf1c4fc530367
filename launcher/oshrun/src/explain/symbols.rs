//! The names of static variables, from the symbol table of the program.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;

use object::{Object, ObjectSymbol, ReadCache, SymbolKind};

/// Maximum length of a name in an explanation; those of C++ templates are longer.
const MAX_NAME: usize = 100;

/// The variable around an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    name: String,
    /// The offset of the address.
    offset: u64,
    /// The size of the variable.
    nbytes: u64,
}

impl Variable {
    /// What is at the address: the variable, its element, or a byte in it. `word`: the size of what
    /// is there.
    pub fn part(&self, word: u64) -> String {
        let Variable { name, offset, nbytes } = self;
        match word {
            _ if *offset == 0 && *nbytes == word => name.clone(),
            1.. if nbytes % word == 0 && offset % word == 0 => format!("{name}[{}]", offset / word),
            _ if *offset == 0 => name.clone(),
            _ => format!("{name} + {offset} bytes"),
        }
    }
}

/// The variables around these addresses of an executable file.
pub fn find(file: File, addresses: &BTreeSet<u64>) -> HashMap<u64, Variable> {
    let mut found = HashMap::new();
    let cache = ReadCache::new(file);
    let Ok(program) = object::File::parse(&cache) else { return found };
    for symbol in program.symbols().chain(program.dynamic_symbols()) {
        let (start, nbytes) = (symbol.address(), symbol.size());
        if symbol.kind() != SymbolKind::Data {
            continue;
        }
        for &address in addresses.range(start..start.saturating_add(nbytes)) {
            let Ok(name) = symbol.name() else { continue };
            let name = name.chars().take(MAX_NAME).collect();
            let variable = Variable { name, offset: address - start, nbytes };
            found.entry(address).or_insert(variable);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_an_element_where_the_size_allows_it() {
        let part =
            |offset, nbytes, word| Variable { name: "flag".to_string(), offset, nbytes }.part(word);
        assert_eq!(part(0, 8, 8), "flag");
        assert_eq!(part(16, 32, 8), "flag[2]");
        assert_eq!(part(0, 32, 8), "flag[0]");
        assert_eq!(part(0, 20, 8), "flag");
        assert_eq!(part(8, 20, 8), "flag + 8 bytes");
        assert_eq!(part(3, 32, 8), "flag + 3 bytes");
    }

    #[test]
    fn variables_are_found_by_an_address_within() {
        #[used]
        static ZEROS: [u64; 4] = [0; 4];
        let start = &raw const ZEROS as u64;
        assert_ne!(start, 0);
        let file = || File::open("/proc/self/exe").expect("this program");
        let cache = ReadCache::new(file());
        let program = object::File::parse(&cache).expect("ELF");
        let symbol = program.symbols().find(|symbol| symbol.name().unwrap_or("").contains("ZEROS"));
        let at = symbol.expect("it is in the table").address();
        let found = find(file(), &BTreeSet::from([at + 16, 1]));
        assert_eq!(found.len(), 1);
        assert!(found[&(at + 16)].part(8).ends_with("[2]"), "{found:?}");
    }
}
