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
        let nbytes_of_element = u64::from(nbytes);
        let dimensions = match &self.declared {
            Some(declared) => &declared.dimensions[..],
            None => &[],
        };
        let n_elements: u64 = dimensions.iter().product();
        let is_of_element = n_elements * nbytes_of_element == self.nbytes
            && offset > 0
            && offset.is_multiple_of(nbytes_of_element);
        if dimensions.len() < 2 || !is_of_element {
            return element(&self.name, offset, nbytes);
        }

        // The last index changes from one element to the next.
        let mut rest = offset / nbytes_of_element;
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
struct ProgramVariables {
    variables: Variables,
    declared: HashMap<u64, Declaration>,
}

/// Returns the variable that contains an address of the executable, the file `module`. The address
/// is that before relocation.
pub fn find(module: &str, address: u64) -> Option<StaticVariable> {
    static PROGRAM: Mutex<Option<ProgramVariables>> = Mutex::new(None);

    // Read at the first race: the debug information of a program may be large.
    let mut program = PROGRAM.lock().ok()?;
    if program.is_none() {
        *program = Some(ProgramVariables {
            variables: Variables::of(File::open(module).ok()?),
            declared: declarations(Path::new(module)),
        });
    }
    let program = program.as_ref()?;

    let found = program.variables.holding(address, 1)?;
    Some(StaticVariable {
        name: names::in_source(found.name),
        address: found.address,
        nbytes: found.nbytes,
        declared: program.declared.get(&found.address).cloned(),
    })
}
