//! Prints the bindings of a C library, which bindgen makes from the library's headers, for
//! `cargo xtask bindings`. Arguments: the name of the library, then arguments for clang.
//!
//! Bindings carry what code uses: what `src/names.txt` of the library's crate lists, and the types
//! that this needs. The list has functions, types, constants, and as `table::entry` the entries
//! that are called of tables of functions. The compiler checks the layout of each type that has
//! fields. The bindings do not depend on the machine.

use std::collections::HashSet;
use std::env;
use std::error::Error;
use std::fs;

use bindgen::callbacks::{EnumVariantCustomBehavior, EnumVariantValue, IntKind, ParseCallbacks};
use bindgen::{Builder, EnumVariation, Formatter};
use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Fields, Ident, Item, Type, UseTree};

/// What the bindings of a library need besides the list of names.
#[derive(Default)]
struct Library {
    /// A file of C that includes the headers, and defines constants that C has as macros with casts
    /// or in enumerations without a name.
    header: &'static str,
    /// The structure of functions that is looked up in the library; `None` if its crate does that.
    functions: Option<&'static str>,
    /// Enumerations of such constants in the list that no function has as the type of an argument.
    enumerations: &'static str,
    /// Types that are pointed to and whose fields no code uses: the bindings have none, either.
    fieldless: &'static [&'static str],
    /// Structures that no code fills in from `Default`.
    without_default: &'static str,
}

fn library(name: &str) -> Library {
    match name {
        "hwloc" => Library {
            header: "#include <hwloc.h>",
            functions: Some("Hwloc"),
            enumerations: "hwloc_get_type_depth_e|hwloc_topology_components_flag_e",
            fieldless: &["hwloc_obj_attr_u", "hwloc_memory_page_type_s"],
            without_default: ".*",
        },
        "libfabric" => Library {
            header: "
                #include <rdma/fabric.h>
                #include <rdma/fi_domain.h>
                #include <rdma/fi_endpoint.h>
                #include <rdma/fi_cm.h>
                #include <rdma/fi_atomic.h>
                #include <rdma/fi_rma.h>
                #include <rdma/fi_errno.h>
                #include <rdma/providers/fi_prov.h>
                static const fi_addr_t ADDR_UNSPEC = FI_ADDR_UNSPEC;
                static const fi_addr_t ADDR_NOTAVAIL = FI_ADDR_NOTAVAIL;
                static const uint64_t KEY_NOTAVAIL = FI_KEY_NOTAVAIL;
                static const int ENABLE = FI_ENABLE;
                static const int GETWAIT = FI_GETWAIT;
                static const int GET_RAW_MR = FI_GET_RAW_MR;
                static const int MAP_RAW_MR = FI_MAP_RAW_MR;
                static const int UNMAP_KEY = FI_UNMAP_KEY;
            ",
            fieldless: &[
                "fi_link_attr",
                "fi_ops_collective",
                "fi_ops_tagged",
                "fid_eq",
                "fid_wait",
            ],
            without_default: ".*",
            ..Library::default()
        },
        "pmix" => Library {
            header: "
                #include <pmix.h>
                static const pmix_rank_t RANK_WILDCARD = PMIX_RANK_WILDCARD;
            ",
            functions: Some("Pmix"),
            fieldless: &[
                "pmix_coord_t",
                "pmix_cpuset_t",
                "pmix_data_array_t",
                "pmix_data_buffer_t",
                "pmix_device_distance_t",
                "pmix_disk_stats_t",
                "pmix_endpoint_t",
                "pmix_geometry_t",
                "pmix_net_stats_t",
                "pmix_node_stats_t",
                "pmix_proc_info_t",
                "pmix_proc_stats_t",
                "pmix_topology_t",
            ],
            without_default: ".*",
            ..Library::default()
        },
        "ucx" => Library {
            header: "#include <ucp/api/ucp.h>",
            functions: Some("Ucp"),
            enumerations: "ucp_(params|worker_params|ep_params|mem_map_params)_field\
                |ucp_(context_attr|am_handler_param)_field\
                |ucp_(feature|dt_type|op_attr_t|send_am_flags|am_recv_attr_t|ep_close_flags_t)",
            fieldless: &["FILE", "sockaddr", "ucp_tag_recv_info_t"],
            without_default: "ucs_.*|ucp_(err_handler|am_recv_param|request_param_t__.*)",
        },
        _ => panic!("no library has the name {name}"),
    }
}

/// The type of a function that no code calls.
const UNCALLED: &str = "unsafe extern \"C\" fn()";

/// Chooses the constants.
#[derive(Debug)]
struct Constants {
    named: HashSet<String>,
}

impl ParseCallbacks for Constants {
    /// Gives every flag of libfabric 64 bits, whatever its value, and error codes the type of C's
    /// `int`.
    fn int_macro(&self, name: &str, value: i64) -> Option<IntKind> {
        let error = (0..512).contains(&value) && name.starts_with("FI_E");
        name.starts_with("FI_")
            .then_some(if error { IntKind::Int } else { IntKind::U64 })
    }

    /// Leaves out the constants of an enumeration that the list lacks.
    fn enum_variant_behavior(
        &self,
        _: Option<&str>,
        name: &str,
        _: EnumVariantValue,
    ) -> Option<EnumVariantCustomBehavior> {
        (!self.named.contains(name)).then_some(EnumVariantCustomBehavior::Hide)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let name = arguments.next().ok_or("the name of a library is missing")?;
    let library = library(&name);
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let list = fs::read_to_string(format!("{root}/sys/{name}-sys/src/names.txt"))?;
    let mut named: HashSet<String> = list.lines().map(str::to_owned).collect();

    let mut builder = Builder::default()
        .header_contents("headers.h", library.header)
        .clang_args(arguments)
        .formatter(Formatter::None)
        .disable_header_comment()
        .disable_nested_struct_naming()
        .generate_comments(false)
        .default_enum_style(EnumVariation::Consts)
        .prepend_enum_name(false)
        .generate_cstr(true)
        .derive_default(true)
        .no_default(library.without_default)
        .allowlist_type(library.enumerations)
        .parse_callbacks(Box::new(Constants {
            named: named.clone(),
        }));
    for name in &named {
        builder = builder.allowlist_item(name);
    }
    for name in library.fieldless {
        builder = builder
            .blocklist_type(name)
            .raw_line(format!("pub enum {name} {{}}"));
    }
    if let Some(structure) = library.functions {
        named.insert(structure.to_owned());
        builder = builder
            .dynamic_library_name(structure)
            .dynamic_link_require_all(true);
    }

    let mut bindings = syn::parse_file(&builder.generate()?.to_string())?;
    drop_signatures(&mut bindings, &named);
    drop_unneeded(&mut bindings, named);
    println!("{}", bindings.to_token_stream());
    Ok(())
}

/// Gives entries of tables of functions that `named` lacks the type [`UNCALLED`], so that the
/// bindings need no types of their arguments.
fn drop_signatures(bindings: &mut syn::File, named: &HashSet<String>) {
    let uncalled: Type = syn::parse_str(UNCALLED).expect("a type");
    for item in &mut bindings.items {
        let Item::Struct(table) = item else { continue };
        let Fields::Named(fields) = &mut table.fields else {
            continue;
        };

        for field in &mut fields.named {
            let path = field
                .ident
                .as_ref()
                .map(|entry| format!("{}::{entry}", table.ident));
            let is_named = path.is_some_and(|path| named.contains(&path));
            // A pointer that may be null is an `Option`.
            if !is_named && words(&field.ty).contains("Option") {
                field.ty = syn::parse_quote!(Option<#uncalled>);
            }
        }
    }
}

/// Leaves out the types that nothing in `named` needs.
fn drop_unneeded(bindings: &mut syn::File, named: HashSet<String>) {
    let mut needed = named;
    let mut count = 0;
    while count < needed.len() {
        count = needed.len();
        for item in &bindings.items {
            if defined(item).is_some_and(|name| needed.contains(&name)) {
                needed.extend(words(item));
            }
        }
    }

    let all: HashSet<String> = bindings.items.iter().filter_map(defined).collect();
    bindings.items.retain(|item| match defined(item) {
        Some(name) => needed.contains(&name),
        // A check of a layout, or an implementation.
        None => words(item)
            .intersection(&all)
            .all(|name| needed.contains(name)),
    });
}

/// Returns the name that an item defines.
fn defined(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) if item.ident != "_" => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        Item::Use(item) => renamed(&item.tree)?,
        _ => return None,
    };
    Some(name.to_string())
}

/// Returns the new name of `self::old as new`.
fn renamed(tree: &UseTree) -> Option<&Ident> {
    match tree {
        UseTree::Path(path) => renamed(&path.tree),
        UseTree::Rename(rename) => Some(&rename.rename),
        _ => None,
    }
}

/// Returns all identifiers in a piece of code.
fn words(code: &impl ToTokens) -> HashSet<String> {
    let mut words = HashSet::new();
    collect_words(code.to_token_stream(), &mut words);
    words
}

fn collect_words(tokens: TokenStream, words: &mut HashSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => collect_words(group.stream(), words),
            TokenTree::Ident(word) => {
                words.insert(word.to_string());
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}
