//! So do static variables.

use shmem::SymStatic;
static NAMES: SymStatic<String> = SymStatic::new(String::new()); //~ E0277

fn main() {}
