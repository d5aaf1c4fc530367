//! A symmetric variable is no part of another one, which may hold something else on other PEs.

use shmem::SymStatic;
use std::sync::OnceLock;
static ONE: OnceLock<SymStatic<u64>> = OnceLock::new();

fn main() {
    ONE.get_or_init(|| SymStatic::new(0)); //~ E0133
}
