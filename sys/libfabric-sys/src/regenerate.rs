//! Writes `bindings.rs` from the installed headers of libfabric.
//!
//! It takes types and constants alone: functions are few, and found at run time. Use the headers of the
//! oldest library that Rushmem supports, so that no newer field slips in.
#![forbid(unsafe_code)]

use bindgen::callbacks::{IntKind, ParseCallbacks};

/// Headers, and what C has as casts or in enumerations without a name.
const HEADER: &str = "
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_errno.h>
static const fi_addr_t ADDR_UNSPEC = FI_ADDR_UNSPEC;
static const fi_addr_t ADDR_NOTAVAIL = FI_ADDR_NOTAVAIL;
static const uint64_t KEY_NOTAVAIL = FI_KEY_NOTAVAIL;
static const int ENABLE = FI_ENABLE;
static const int GETWAIT = FI_GETWAIT;
";

/// Every flag is 64 bits wide, whatever its value.
#[derive(Debug)]
struct Flags;

impl ParseCallbacks for Flags {
    fn int_macro(&self, name: &str, value: i64) -> Option<IntKind> {
        let error = (0..512).contains(&value) && name.starts_with("FI_E");
        name.starts_with("FI_").then_some(if error { IntKind::Int } else { IntKind::U64 })
    }
}

fn main() -> std::io::Result<()> {
    let target =
        bindgen::RustTarget::stable(85, 0).map_err(|e| std::io::Error::other(e.to_string()))?;
    let bindings = bindgen::Builder::default()
        .header_contents("libfabric.h", HEADER)
        .raw_line(
            "//! Types and constants of libfabric 1.17; made by `regenerate.rs`, not by hand.",
        )
        .parse_callbacks(Box::new(Flags))
        .rust_target(target)
        .rust_edition(bindgen::RustEdition::Edition2024)
        .allowlist_type("fi_info|fi_(cq|av)_attr|fi_cq_(err_)?entry|fi_msg_rma|fi_context2")
        .allowlist_type("fi_(ep_type|threading|progress|resource_mgmt|wait_obj|cq_format|av_type)")
        .allowlist_type("fi_status|fid_(fabric|domain|av|cq|ep|mr)")
        .allowlist_var("FI_.*|ADDR_.*|KEY_NOTAVAIL|ENABLE|GETWAIT")
        .ignore_functions()
        .prepend_enum_name(false)
        .derive_default(false)
        .layout_tests(true)
        .generate_comments(false)
        .merge_extern_blocks(true)
        .generate()
        .map_err(std::io::Error::other)?;
    bindings.write_to_file(concat!(env!("CARGO_MANIFEST_DIR"), "/src/bindings.rs"))
}
