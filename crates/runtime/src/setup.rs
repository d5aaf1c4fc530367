//! Library setup, exit and query routines (OpenSHMEM 1.6, §9.1 and §9.2), and what tools query
//! about this machine.

pub use crate::api::queries::{
    addr_accessible, my_pe, n_pes, pe_accessible, ptr, query_initialized, query_thread, team_ptr,
};
pub use crate::end::finalize::{finalize, global_exit, inits_in_force};
pub use crate::memory::huge_pages::make_huge_page;
pub use crate::start::by_id::{UNIQUE_ID_BYTES, unique_id};
pub use crate::start::connect::path::transport;
pub use crate::start::connect::{OnThisMachine, on_this_machine};
pub use crate::start::diagnose::{Diagnosed, diagnose};
pub use crate::start::init::{init, init_by_id, init_thread, start_pes};
