//! Names the static variable at an address of the executable, and the element that an access is to.

use rushmem_locate::{Declaration, Variables, declarations, names};
use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::Mutex;

/// A static variable of a program.
#[derive(Clone)]
pub struct StaticVariable {
    /// The name in the source, without a suffix of the compiler.
    pub name: String,
    /// The address, as the executable has it before it is relocated.
    pub address: u64,
    /// The size in bytes.
    pub nbytes: u64,
    /// The declaration, if there is debug information.
    pub declared: Option<Declaration>,
}

impl StaticVariable {
    /// Returns the name of the part of the variable that an access of `nbytes` bytes at an offset
    /// accesses, such as `a[2][3]`.
    pub fn element(&self, offset: u64, nbytes: u32) -> String {
        let dimensions = self
            .declared
            .as_ref()
            .map_or(&[][..], |declared| &declared.dimensions);
        let elements: u64 = dimensions.iter().product();
        let is_of_elements = elements * u64::from(nbytes) == self.nbytes && offset > 0;
        if dimensions.len() < 2 || !is_of_elements || !offset.is_multiple_of(nbytes.into()) {
            return element(&self.name, offset, nbytes);
        }

        // The last index changes from one element to the next.
        let mut rest = offset / u64::from(nbytes);
        let mut indices = String::new();
        for dimension in dimensions.iter().rev() {
            indices.insert_str(0, &format!("[{}]", rest % dimension));
            rest /= dimension;
        }
        format!("{}{indices}", self.name)
    }
}

/// Returns the name of the part of an object that an access of `nbytes` bytes at an offset
/// accesses: `name`, `name[2]`, or `byte 5 of name`.
pub fn element(name: &str, offset: u64, nbytes: u32) -> String {
    match (offset, nbytes) {
        (0, _) => name.to_owned(),
        (_, 1 | 2 | 4 | 8 | 16) if offset.is_multiple_of(nbytes.into()) => {
            format!("{name}[{}]", offset / u64::from(nbytes))
        }
        _ => format!("byte {offset} of {name}"),
    }
}

/// The static variables of the executable, with their declarations by address.
struct OfProgram {
    variables: Variables,
    declared: HashMap<u64, Declaration>,
}

/// Returns the variable that contains an address of the executable, the file `module`. The address
/// is that before relocation.
pub fn find(module: &str, address: u64) -> Option<StaticVariable> {
    static PROGRAM: Mutex<Option<OfProgram>> = Mutex::new(None);

    // Read at the first race: the debug information of a program may be large.
    let mut program = PROGRAM.lock().ok()?;
    if program.is_none() {
        *program = Some(OfProgram {
            variables: Variables::of(File::open(module).ok()?),
            declared: declarations(Path::new(module)),
        });
    }
    let OfProgram {
        variables,
        declared,
    } = program.as_ref()?;

    let found = variables.holding(address, 1)?;
    Some(StaticVariable {
        name: names::in_source(found.name),
        address: found.address,
        nbytes: found.nbytes,
        declared: declared.get(&found.address).cloned(),
    })
}
