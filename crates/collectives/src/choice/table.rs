//! The table of a job: rows that the user forces, rows of the user's file, and built-in rows, in
//! this order.

use super::algorithms::{
    Algorithm, AllGatherAlgorithm, AllReduceAlgorithm, AllToAllAlgorithm, BroadcastAlgorithm,
    GatherAlgorithm, ReduceScatterAlgorithm, ReduceToAlgorithm, ScanAlgorithm, ScatterAlgorithm,
    SyncAlgorithm,
};
use super::facts::ChoiceFacts;
use super::row::{Conditions, Row, RowError, RowOrigin};

/// The built-in rows. For every operation, number of bytes and facts, at least one of them holds.
//
// Measurements decided the rows, on virtual machines with two cores. Times are multiples of those
// of the other algorithm:
//
// - broadcast: with four PEs over TCP and a barrier, `scatter_all_gather` takes 2.8 times as long
//   as `binomial` for 512 bytes, 0.9 for 256 KiB and 0.6 for 2 MiB, so the setting offers it.
// - reduce, reduce_to, reduce_scatter and scan on one node, with two PEs on two cores that read the
//   result after each call: `recursive_doubling` reduces in 0.5 to 0.9 of the time of `ring` for
//   256 bytes to 1 KiB, and in 1.1 for 2 KiB; `direct` takes 1.0 to 1.2 of `ring` for 2 KiB to 1
//   MiB, and 0.85 for 4 MiB. In a reduce_to, `gather` takes 0.4 to 0.75 of `direct` for 256 bytes
//   to 8 KiB. In a reduce_scatter, `alltoall` takes 0.5 to 1.0 of `direct` up to 1 KiB of all
//   sources, and 1.1 to 1.5 for 2 KiB. In a scan, `recursive_doubling` takes 0.4 to 0.75 of
//   `direct` up to 16 KiB. Where no PE reads the result, its cache lines need not come from the
//   peer: then `gather` takes 1.7 of `direct` for 8 KiB, and `recursive_doubling` takes 1.3 of it
//   for a scan of 8 KiB. Each limit is below the sizes at which that weighs more.
// - the same with three and more members that have a CPU each: not measured. A reduction by
//   `recursive_doubling` takes a further round of the whole vector each time the members double,
//   and one by `direct` two further rounds without data, so its limit is lower than for two.
// - reduce, reduce_to, reduce_scatter and scan if PEs share CPUs: with three, four and eight PEs on
//   two cores, `central` takes 0.5 to 0.6 of `direct` for up to 1 KiB, 0.5 to 0.8 for 4 KiB, and as
//   long for 16 to 32 KiB; with 32 and 64 PEs 0.5 to 0.7 for up to 1 KiB, and in a reduce_scatter
//   with 64 PEs 0.6 for 4 KiB of all sources. One member does the work of all, so with more
//   members, which may have more cores, it has short vectors alone. In a reduce_to, whose root
//   alone gets the result, it takes 0.3 to 0.9 of `direct` for 4 to 32 KiB with 32 and 64 PEs on
//   two cores; where there are more cores, `direct` divides longer vectors among them.
// - reduce over a network: `recursive_doubling` takes 0.31 to 0.46 of `rabenseifner` for 32 KiB,
//   0.57 to 0.76 for 64 KiB, and over TCP 0.87 to 1.2 for 128 KiB, with two to eight members. With
//   more members the bytes of each round weigh more.
// - reduce over TCP without receive buffers: `direct` takes 1 to 2.7 of `rabenseifner` for 32 KiB
//   to 1 MiB with two to eight PEs.
// - `two_level`, on two virtual nodes of two and of four PEs, takes of the best algorithm of one
//   level: in a sync 0.8 and 0.9, in a reduction of 8 bytes 0.7 and 0.6, of 8 KiB 0.65 and 0.55, of
//   256 KiB 0.9; from 512 KiB on `rabenseifner` is as fast or faster.
// - collect over a network, if PEs share CPUs: `recursive_doubling` takes 0.8 to 0.95 of `bruck`,
//   and over TCP `ring` takes 1.3 to 1.7 of either. With 2 MiB of eight PEs `neighbor_exchange`
//   takes 0.86 of `recursive_doubling`.
// - collect over a network, if each PE has a CPU: `bruck` sends twice where a run of blocks wraps
//   around, and each member receives from another PE than it sends to. With 4 and 16 PEs over TCP,
//   a reduction of 8 bytes by `recursive_doubling` takes 0.67 of a collect of 8 bytes by `bruck`. A
//   collect by `recursive_doubling`, which has as many messages to the same partners as that
//   reduction, was not measured there.
// - collect and alltoall on one node, if PEs share CPUs: with three, four and eight PEs, `central`
//   takes 1 to 1.1 times as long as the puts and the barrier in it, for blocks of 8 bytes to 256
//   KiB; `bruck` 1.2 to 2.8 times, `ring` 1.2 to 4 times, and `pairwise` 1 to 1.8 times. With 16 to
//   64 PEs it takes 1 to 1.3 times as long, `bruck` 0.9 to 2.5 and `pairwise` 1.3 to 3.2 times.
// - collect on one node, with two PEs on two cores: `pairwise` takes 0.7 to 0.8 of `bruck` for
//   blocks of 64 bytes to 4 KiB, and 0.96 for 64 KiB. Its plan has no runs of blocks that wrap
//   around. With one PE, it takes 518 instructions instead of 643.
// - collect from 512 KiB on: `ring` and `neighbor_exchange` are faster than `bruck`, since
//   neighbors share caches and links.
// - alltoall of blocks of 8 bytes to 1 KiB: with eight PEs `bruck` takes 0.53 of `pairwise` on
//   separate nodes and 0.6 on two virtual nodes, with four PEs 0.75 and 0.95. On one node, and on
//   several with four PEs each, it takes 1.5.
const BUILT_IN: &str = include_str!("built_in.txt");

/// An algorithm, and the size from which on a table chooses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name of the operation.
    pub operation: &'static str,
    /// The minimum number of bytes.
    pub from: usize,
    /// The name of the algorithm.
    pub algorithm: &'static str,
    /// The origin of the row that applies.
    pub origin: RowOrigin,
}

/// An algorithm of an operation that tables have rows for.
pub trait Tabled: Algorithm {
    /// Returns the rows of its operation.
    fn rows(table: &Table) -> &Vec<Row<Self>>;

    /// Returns the rows, for changes.
    fn rows_mut(table: &mut Table) -> &mut Vec<Row<Self>>;
}

/// Makes [`Table`] with the rows of each `$operation`, whose algorithms are `$algorithm`.
macro_rules! table {
    ($($(#[doc = $doc:literal])+ $operation:ident: $algorithm:ident,)+) => {
        /// The rows of each operation. A table without [built-in rows](Table::complete) may have no
        /// row that holds.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Table {
            $($(#[doc = $doc])+ $operation: Vec<Row<$algorithm>>,)+
        }

        impl Table {
            /// The operations, in the order of this table.
            pub const OPERATIONS: &'static [&'static str] = &[$(stringify!($operation)),+];

            /// Appends a row, given its columns.
            fn push(
                &mut self,
                operation: &str,
                conditions: Conditions<'_>,
                algorithm: &str,
                origin: RowOrigin,
            ) -> Result<(), String> {
                match operation {
                    $(stringify!($operation) => {
                        self.$operation.push(Row::parse(conditions, algorithm, origin)?);
                    })+
                    _ => {
                        let known = Self::OPERATIONS.join(", ");
                        return Err(format!("there is no operation {operation:?}; write one of {known}"));
                    }
                }
                Ok(())
            }

            /// Removes the rows that hold on no team of the job whose world team has these facts,
            /// so that the others are found sooner.
            pub fn retain_for(&mut self, world: &ChoiceFacts) {
                $(self.$operation.retain_mut(|row| row.prepare_for(world));)+
            }

            /// Returns the rows as lines of text, with the origin of each.
            pub fn rows(&self) -> impl Iterator<Item = (String, RowOrigin)> + '_ {
                std::iter::empty()
                    $(.chain(self.$operation.iter().map(|row| (row.to_string(), row.origin))))+
            }

            /// Returns the names of the algorithms of an operation; none if there is no such
            /// operation.
            pub fn algorithms(operation: &str) -> Vec<&'static str> {
                match operation {
                    $(stringify!($operation) => {
                        $algorithm::ALL.iter().map(|&(name, _)| name).collect()
                    })+
                    _ => Vec::new(),
                }
            }

            /// Returns the name of the algorithm that is chosen for `nbytes` bytes; `None` if there
            /// is no such operation.
            pub fn chosen(&self, operation: &str, nbytes: usize, facts: &ChoiceFacts) -> Option<&'static str> {
                match operation {
                    $(stringify!($operation) => {
                        Some(self.choose::<$algorithm>(nbytes, || *facts).name())
                    })+
                    _ => None,
                }
            }

            /// Returns the algorithms that are chosen with these facts: for each operation, those
            /// for ascending numbers of bytes.
            pub fn listed(&self, facts: &ChoiceFacts) -> Vec<Listed> {
                let mut listed = Vec::new();
                $(listed.extend(listed_of::<$algorithm>(self, facts));)+
                listed
            }
        }

        $(impl Tabled for $algorithm {
            #[inline]
            fn rows(table: &Table) -> &Vec<Row<Self>> {
                &table.$operation
            }

            fn rows_mut(table: &mut Table) -> &mut Vec<Row<Self>> {
                &mut table.$operation
            }
        })+
    };
}

table! {
    /// Rows of syncs.
    sync: SyncAlgorithm,
    /// Rows of broadcasts.
    broadcast: BroadcastAlgorithm,
    /// Rows of all-reduces.
    reduce: AllReduceAlgorithm,
    /// Rows of reductions to a root.
    reduce_to: ReduceToAlgorithm,
    /// Rows of reduce-scatters.
    reduce_scatter: ReduceScatterAlgorithm,
    /// Rows of all-gathers.
    collect: AllGatherAlgorithm,
    /// Rows of all-to-alls.
    alltoall: AllToAllAlgorithm,
    /// Rows of gathers.
    gather: GatherAlgorithm,
    /// Rows of scatters.
    scatter: ScatterAlgorithm,
    /// Rows of scans.
    scan: ScanAlgorithm,
}

impl Table {
    /// Returns each operation, and the list of its algorithms as text.
    pub fn described(&self, facts: &ChoiceFacts) -> Vec<(&'static str, String)> {
        let listed = self.listed(facts);
        let mut described = Vec::new();
        for &operation in Self::OPERATIONS {
            let rows: Vec<String> = listed
                .iter()
                .filter(|row| row.operation == operation)
                .map(|row| format!("{} from {} B ({})", row.algorithm, row.from, row.origin))
                .collect();
            described.push((operation, rows.join(", ")));
        }
        described
    }

    /// Appends a row that holds wherever `algorithm` can be used. Does nothing for `None`.
    pub fn force<A: Tabled>(&mut self, algorithm: Option<A>) {
        let row = algorithm.map(|algorithm| Row::always(algorithm, RowOrigin::Forced));
        A::rows_mut(self).extend(row);
    }

    /// Appends the rows of a file: one row per line, with the columns of `built_in.txt`.
    ///
    /// # Errors
    /// The first line that is no valid row.
    pub fn read(&mut self, text: &str) -> Result<(), RowError> {
        self.append(text, RowOrigin::File)
    }

    /// Appends the built-in rows.
    pub fn complete(&mut self) {
        self.append(BUILT_IN, |_| RowOrigin::BuiltIn)
            .expect("what is built in has no mistake");
    }

    fn append(&mut self, text: &str, origin: impl Fn(u32) -> RowOrigin) -> Result<(), RowError> {
        for (line, text) in (1..).zip(text.lines()) {
            let row = text.split('#').next().unwrap_or_default();
            let columns: Vec<&str> = row.split_whitespace().collect();

            let pushed = match columns[..] {
                [] => Ok(()),
                [
                    operation,
                    bytes,
                    members,
                    nodes,
                    per_node,
                    oversubscribed,
                    algorithm,
                ] => {
                    let conditions = [bytes, members, nodes, per_node, oversubscribed];
                    self.push(operation, conditions, algorithm, origin(line))
                }
                _ => Err(format!(
                    "{} columns; write operation, bytes, members, nodes, per-node, oversubscribed \
                     and algorithm, such as: reduce 256+ any one any no direct",
                    columns.len()
                )),
            };

            pushed.map_err(|what| RowError { line, what })?;
        }
        Ok(())
    }

    /// Returns the algorithm of the first row that holds for `nbytes` bytes. Calls `facts` only if
    /// a row depends on them.
    ///
    /// # Panics
    /// When no row holds, which cannot happen after [`complete`](Table::complete).
    #[inline]
    pub fn choose<A: Tabled>(&self, nbytes: usize, facts: impl Fn() -> ChoiceFacts) -> A {
        self.row(nbytes, &facts).algorithm
    }

    #[inline]
    fn row<A: Tabled>(&self, nbytes: usize, facts: &impl Fn() -> ChoiceFacts) -> &Row<A> {
        let row = A::rows(self).iter().find(|row| row.holds(nbytes, facts));
        row.expect("one of the built-in rows of an operation always holds")
    }
}

/// Returns the algorithms that a table chooses for an operation, each with the size from which on
/// it is chosen.
fn listed_of<A: Tabled>(table: &Table, facts: &ChoiceFacts) -> Vec<Listed> {
    let listed_from = |from| {
        let row = table.row::<A>(from, &|| *facts);
        Listed {
            operation: A::OPERATION,
            from,
            algorithm: row.algorithm.name(),
            origin: row.origin,
        }
    };

    let mut sizes: Vec<usize> = A::rows(table)
        .iter()
        .flat_map(|row| row.changes(facts.members))
        .collect();
    sizes.extend([0, usize::MAX]);
    sizes.sort_unstable();
    sizes.dedup();

    let mut listed: Vec<Listed> = Vec::new();
    for ends in sizes.windows(2) {
        let mut from = ends[0];
        let end = ends[1];
        while from < end {
            let chosen = listed_from(from);

            // Between two sizes at which rows change, only the limits of algorithms change the
            // choice, and an algorithm beyond its limit is not chosen again. So a binary search
            // finds the size at which the choice changes, or the end.
            let mut next = end;
            while next - from > 1 {
                let middle = from + (next - from) / 2;
                if listed_from(middle).is_same_choice(&chosen) {
                    from = middle;
                } else {
                    next = middle;
                }
            }
            from = next;

            if listed
                .last()
                .is_none_or(|last| !last.is_same_choice(&chosen))
            {
                listed.push(chosen);
            }
        }
    }
    listed
}

impl Listed {
    fn is_same_choice(&self, other: &Listed) -> bool {
        self.algorithm == other.algorithm && self.origin == other.origin
    }
}

#[cfg(test)]
mod tests;
