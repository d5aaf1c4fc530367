//! Explains a job that hangs: what each PE does, and who waits for whom.
//!
//! Works without the fabric and without the help of the PEs: each daemon makes snapshots of its PEs
//! from the memory of the node and from what the kernel shows (`survey`). They travel up the tree
//! of daemons; the root collects them and prints the explanation (`collection`), which
//! `rushmem_explain` derives from them.

pub mod collection;
pub mod overdue;
mod stacks;
pub mod survey;
