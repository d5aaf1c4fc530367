//! Explains a job that hangs: what each PE does, and who waits for whom.
//!
//! Works without the fabric and without the help of the PEs: each daemon reads the statuses of its
//! PEs from the memory of the node, and asks the kernel about their processes (`survey`). The
//! reports travel up the tree of daemons; the root collects them and prints the explanation
//! (`collection`), which `rushmem_explain` derives from them.

pub mod collection;
pub mod memory;
pub mod overdue;
mod stacks;
pub mod survey;
mod symbols;
