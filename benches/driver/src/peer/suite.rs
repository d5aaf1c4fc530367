//! The parts of a comparison: the programs, the environment in which they run, the rows and their
//! aims.

/// A comparison: the table that it prints and what fills it.
pub struct Suite {
    /// The name for `--suite`.
    pub name: &'static str,
    /// Programs of benches/ that it needs.
    pub sources: &'static [&'static str],
    /// The programs that print the values of rows, and their numbers of PEs.
    pub programs: &'static [(&'static str, usize)],
    pub kernels: &'static [Kernel],
    /// Jobs of shmem-perf.
    pub measured: &'static [Measured],
    pub launches: &'static [Launch],
    /// By how many percent a second PE prolongs the one time that a source prints: the row, the
    /// source.
    pub costs: &'static [(&'static str, &'static str)],
    /// The interface that must carry what shmem-perf moves.
    pub carrier: Option<&'static str>,
    /// Set for both contenders; each ignores what is meant for the other.
    pub environment: &'static [(&'static str, &'static str)],
    /// The rows of the table, as [`SuiteRow::all`](super::table::Row::all) reads them.
    pub rows: &'static str,
    /// The heading of the bare rows in the table.
    pub bare: &'static str,
}

impl Suite {
    /// One that compares nothing.
    pub const EMPTY: Self = Self {
        name: "",
        sources: &[],
        programs: &[],
        kernels: &[],
        measured: &[],
        launches: &[],
        costs: &[],
        carrier: None,
        environment: &[],
        rows: "",
        bare: "",
    };
}

/// A whole program of benches/kernels, which prints the time of its main loop and verifies its
/// result. Its row is called `NAME_PES`.
pub struct Kernel {
    pub name: &'static str,
    /// The numbers of PEs with which it runs.
    pub pes: &'static [usize],
    /// By what its work is divided; only with 1 can it be a kernel that takes no argument.
    pub divisor: usize,
}

impl Kernel {
    /// Returns the row of the run with `pes` PEs.
    pub fn row(&self, pes: usize) -> String {
        format!("{}_{pes}", self.name)
    }
}

/// A job of shmem-perf, each of whose figures is a value of a row; `figures` says how they are
/// called.
pub struct Measured {
    /// The title of its record, in the page, too.
    pub title: &'static str,
    pub pes: usize,
    pub operations: &'static str,
    pub words: &'static str,
}

/// A launch that is timed from outside.
pub struct Launch {
    pub row: &'static str,
    /// A source or any program's path.
    pub program: &'static str,
    pub pes: usize,
    /// The maximum number of times it is run, however many runs there are.
    pub most: usize,
}

/// Returns a launch that is part of each run.
pub const fn launch(row: &'static str, program: &'static str, pes: usize) -> Launch {
    Launch { row, program, pes, most: usize::MAX }
}
