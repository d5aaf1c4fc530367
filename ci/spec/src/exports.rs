//! The symbols that the library exports, for C and for Fortran.

use crate::fortran::Fortran;
use crate::table::SpecTable;

/// The exported symbols.
pub struct Exports {
    /// The names of the functions that programs call, sorted. A profiling tool may define each of
    /// them.
    pub names: Vec<String>,
}

impl Exports {
    /// Returns the symbols of the tables, which are compiled into the calling program.
    pub fn read() -> Self {
        let table = SpecTable::read();
        let c = table.all().map(|function| function.symbol.clone());
        let mut names: Vec<String> = c.chain(Fortran::read().symbols()).collect();
        names.sort();
        Self { names }
    }

    /// Returns the names of the twins of the functions, which profiling tools call.
    pub fn twins(&self) -> impl Iterator<Item = String> + '_ {
        self.names.iter().map(|name| format!("p{name}"))
    }

    /// Returns the names and their twins.
    pub fn all(&self) -> Vec<String> {
        self.names.iter().cloned().chain(self.twins()).collect()
    }
}
