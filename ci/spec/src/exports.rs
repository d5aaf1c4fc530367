//! Every symbol that the library exports, for C and for Fortran.

use crate::fortran::Fortran;
use crate::table::SpecTable;

/// The functions that programs call, sorted.
pub struct Exports {
    /// The names; a profiling tool may define each of them.
    pub names: Vec<String>,
}

impl Exports {
    /// Reads the tables, which are part of this program.
    pub fn read() -> Self {
        let table = SpecTable::read();
        let c = table.all().map(|function| function.symbol.clone());
        let mut names: Vec<String> = c.chain(Fortran::read().symbols()).collect();
        names.sort();
        Self { names }
    }

    /// Returns the names that profiling tools call instead.
    pub fn twins(&self) -> impl Iterator<Item = String> + '_ {
        self.names.iter().map(|name| format!("p{name}"))
    }

    /// Returns the names and their twins.
    pub fn all(&self) -> Vec<String> {
        self.names.iter().cloned().chain(self.twins()).collect()
    }
}
