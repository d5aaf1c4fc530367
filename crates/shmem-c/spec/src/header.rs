//! The texts of the C headers, made from templates and the tables.

use std::fmt::Write;

use anyhow::Result;

use crate::table::{CFunction, SpecTable};
use crate::{constants, generics, overloads};

const WIDTH: usize = 100;

const NOTICE: &str = "\
/*
 * Rushmem, an OpenSHMEM 1.6 library: @ABOUT@
 *
 * Made from the tables of the standard.
 */
";

const TYPES: &str = "\
#ifndef RUSHMEM_TYPES
#define RUSHMEM_TYPES

#include <stddef.h>
#include <stdint.h>

/*
 * Functions take only pointers to complex numbers. C++ has two kinds of these, its own and the
 * compiler's; a pointer to either can be passed.
 */
#if defined(__cplusplus)
typedef void rushmem_complexf;
typedef void rushmem_complexd;
#elif defined(__STDC_NO_COMPLEX__)
typedef struct { float re, im; } rushmem_complexf;
typedef struct { double re, im; } rushmem_complexd;
#else
typedef float _Complex rushmem_complexf;
typedef double _Complex rushmem_complexd;
#endif

#if defined(__cplusplus) && __cplusplus >= 201103L
#define RUSHMEM_NORETURN [[noreturn]]
#elif !defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define RUSHMEM_NORETURN _Noreturn
#elif defined(__GNUC__)
#define RUSHMEM_NORETURN __attribute__((noreturn))
#else
#define RUSHMEM_NORETURN
#endif

typedef struct rushmem_team *shmem_team_t;
typedef struct { int num_contexts; } shmem_team_config_t;
typedef struct rushmem_ctx *shmem_ctx_t;
typedef struct { size_t total_ops; } shmem_ctx_session_config_t;

@CONSTANTS@
#endif /* RUSHMEM_TYPES */
";

const EXTERN_C: &str = "\
#if defined(__cplusplus)
extern \"C\" {
#endif
@PROTOTYPES@
#if defined(__cplusplus)
}
#endif
";

const GENERIC: &str = "\n\
/* The type-generic interface of C11. */
#if !defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L

@GENERICS@
#endif /* C11 */

/* The same in C++, by overloads; complex numbers have none. */
#if defined(__cplusplus)
extern \"C++\" {

@OVERLOADS@
}
#endif
";

const SHMEM: &str = "\
#ifndef RUSHMEM_SHMEM_H
#define RUSHMEM_SHMEM_H

/*
 * shmem4py replaces functions that a library lacks, depending on the vendor that the header shows. It
 * does not know this library; for Sandia's it replaces nothing.
 */
#define PySHMEM_VENDOR_Sandia 1

@TYPES@
@EXTERN_C@
@GENERIC@

#endif /* RUSHMEM_SHMEM_H */
";

const PSHMEM: &str = "\
#ifndef RUSHMEM_PSHMEM_H
#define RUSHMEM_PSHMEM_H

@TYPES@
@EXTERN_C@

#endif /* RUSHMEM_PSHMEM_H */
";

/// The types that both headers of extensions need; a program may include both.
const EXTENSION_TYPES: &str = "\
#ifndef RUSHMEM_EXTENSION_TYPES
#define RUSHMEM_EXTENSION_TYPES
/* Sandia: the numbers of operations that were issued (pending) and completed on a context. */
typedef struct {
    uint64_t pending_put;
    uint64_t pending_get;
    uint64_t completed_put;
    uint64_t completed_get;
    uint64_t target;
} shmemx_pcntr_t;

/* A non-blocking collective for which the program has not waited yet. */
typedef struct rushmem_req *shmemx_req_t;

/* The sizes of the symmetric heap of this PE, in bytes. */
typedef struct {
    size_t total;
    size_t used;
    size_t largest_free;
    size_t reserved[5];
} shmemx_heap_info_t;

/* NVSHMEM and rocSHMEM: the unique id of a job, here a printable text that ends with a null byte. */
typedef struct { char text[128]; } shmemx_uniqueid_t;

/* The attributes of shmemx_init_attr. By default, the thread level is SHMEM_THREAD_SINGLE. */
typedef struct {
    int rank;
    int nranks;
    int requested;
    int provided;
    shmemx_uniqueid_t uniqueid;
    uint64_t reserved[8];
} shmemx_init_attr_t;

#define SHMEMX_UNIQUEID_INITIALIZER { \"\" }
#define SHMEMX_INIT_ATTR_INITIALIZER { -1, 0, 0, 0, { \"\" }, { 0 } }
#endif

";

const SHMEMX: &str = "\
#ifndef RUSHMEM_SHMEMX_H
#define RUSHMEM_SHMEMX_H

#include \"shmem.h\"

@CONSTANTS@
@EXTENSION_TYPES@
@EXTERN_C@
@GENERIC@

#endif /* RUSHMEM_SHMEMX_H */
";

const PSHMEMX: &str = "\
#ifndef RUSHMEM_PSHMEMX_H
#define RUSHMEM_PSHMEMX_H

#include \"pshmem.h\"

@EXTENSION_TYPES@
@EXTERN_C@

#endif /* RUSHMEM_PSHMEMX_H */
";

/// Returns the text of `shmem.h`: all definitions of the standard for C.
pub fn shmem(table: &SpecTable) -> Result<String> {
    let body = expanded(SHMEM)
        .replace("@TYPES@", &types(table)?)
        .replace(
            "@PROTOTYPES@",
            &prototypes(&table.functions, |function| function.symbol.clone())?,
        )
        .replace("@GENERICS@", &generics::define(table)?)
        .replace("@OVERLOADS@", &overloads::define(table)?);
    Ok(notice("the functions, constants and types of the standard.") + &body)
}

/// Returns the text of `pshmem.h`: all functions by their profiling names, with the types that
/// these need.
pub fn pshmem(table: &SpecTable) -> Result<String> {
    let body = expanded(PSHMEM).replace("@TYPES@", &types(table)?).replace(
        "@PROTOTYPES@",
        &prototypes(&table.functions, CFunction::twin)?,
    );
    Ok(notice("the entry points that profiling tools call.") + &body)
}

/// Returns the text of `shmemx.h`: the extensions, for which the standard requires a separate
/// header.
pub fn shmemx(table: &SpecTable) -> Result<String> {
    let body = expanded(SHMEMX)
        .replace("@CONSTANTS@", &constants::extensions()?)
        .replace(
            "@PROTOTYPES@",
            &prototypes(&table.extensions, |f| f.symbol.clone())?,
        )
        .replace("@GENERICS@", &generics::define_extensions(table)?)
        .replace("@OVERLOADS@", &overloads::define_extensions(table)?);
    Ok(notice("what vendors add to the standard.") + &body)
}

/// Returns the text of `pshmemx.h`: the extensions by their profiling names.
pub fn pshmemx(table: &SpecTable) -> Result<String> {
    let body = expanded(PSHMEMX).replace(
        "@PROTOTYPES@",
        &prototypes(&table.extensions, CFunction::twin)?,
    );
    Ok(notice("the entry points of the extensions that profiling tools call.") + &body)
}

/// Returns the text of `mpp/NAME`, the deprecated place of the header `NAME`.
pub fn deprecated(name: &str) -> String {
    notice(&format!("the deprecated place of {name}.")) + &format!("#include \"../{name}\"\n")
}

/// Returns a template in which the parts that templates share are inserted.
fn expanded(template: &str) -> String {
    template
        .replace("@EXTENSION_TYPES@\n", EXTENSION_TYPES)
        .replace("@EXTERN_C@\n", EXTERN_C)
        .replace("@GENERIC@\n", GENERIC)
}

fn notice(about: &str) -> String {
    NOTICE.replace("@ABOUT@", about)
}

fn types(table: &SpecTable) -> Result<String> {
    Ok(TYPES.replace("@CONSTANTS@", &constants::defines(table)?))
}

/// Returns the declarations of functions, with a comment before each group. `name` returns the name
/// to declare.
fn prototypes(functions: &[CFunction], name: fn(&CFunction) -> String) -> Result<String> {
    let mut text = String::new();
    let mut heading = String::new();
    for function in functions {
        let of_function = heading_of(function);
        if heading != of_function {
            heading = of_function;
            writeln!(text, "\n/* {heading} */")?;
        }

        text.push_str(&declaration(function, &name(function)));
    }
    Ok(text)
}

fn heading_of(function: &CFunction) -> String {
    let CFunction {
        section,
        group,
        deprecated_since,
        removed_in,
        ..
    } = function;

    let mut heading = format!("{section} {group}");
    if !deprecated_since.is_empty() {
        heading += &format!(", deprecated since {deprecated_since}");
    }
    if !removed_in.is_empty() {
        heading += &format!(", removed in {removed_in}");
    }
    heading
}

/// Returns a declaration, wrapped between parameters.
fn declaration(function: &CFunction, name: &str) -> String {
    let noreturn = if function.symbol == "shmem_global_exit" {
        "RUSHMEM_NORETURN "
    } else {
        ""
    };
    let whole = format!("{noreturn}{};", function.prototype(name));

    let mut text = String::new();
    let mut width = 0;
    for part in whole.split_inclusive(", ") {
        if width + part.trim_end().len() > WIDTH {
            text.truncate(text.trim_end().len());
            text.push_str("\n    ");
            width = 4;
        }
        text.push_str(part);
        width += part.len();
    }
    text.push('\n');
    text
}
