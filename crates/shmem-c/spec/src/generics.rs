//! The C11 type-generic macros.
//!
//! `_Generic` selects by the type of one argument, the first pointer to elements. This is the first
//! argument, or the second one after a context or a team. If a context is optional, the type of the
//! first argument shows whether there is one. The number of arguments would be simpler to examine,
//! but a call with a missing argument would then select a wrong function.
//!
//! A compound literal as the second argument needs parentheses, since the preprocessor splits it at
//! its commas. If they are missing, compilers print the comment in the macro as a part of their
//! error.
//!
//! An association list may name a type only once, and `int32_t` is `int`. So of several names of a
//! type on 64-bit Linux, the list has the first one for which there is a function.

use std::collections::HashSet;
use std::fmt::Write;

use anyhow::{Context, Result, ensure};

use crate::table::{CFunction, SpecTable};

/// The macros that pick the arguments by whose types a function is selected.
const PICKERS: &str = "\
#define RUSHMEM_FIRST_(a, ...) a
#define RUSHMEM_FIRST(...) RUSHMEM_FIRST_(__VA_ARGS__, 0)
#define RUSHMEM_SECOND_(a, b, ...) b
#define RUSHMEM_SECOND(...) RUSHMEM_SECOND_(__VA_ARGS__, 0, 0)

/* The first argument that is not a context. */
#define RUSHMEM_BEHIND_CTX(...) \\
    _Generic((RUSHMEM_FIRST(__VA_ARGS__)), \\
        /* put parentheses around a compound literal */ shmem_ctx_t: (RUSHMEM_SECOND(__VA_ARGS__)), \\
        default: (RUSHMEM_FIRST(__VA_ARGS__)))

/* One of two functions: the one with a context, if there is one. */
#define RUSHMEM_ON_CTX(with, without, ...) \\
    _Generic((RUSHMEM_FIRST(__VA_ARGS__)), shmem_ctx_t: with, default: without)

#define RUSHMEM_TYPE_ON_CTX(type, prefix, suffix, ...) \\
    RUSHMEM_ON_CTX(type(prefix##ctx_, suffix, RUSHMEM_BEHIND_CTX(__VA_ARGS__)), \\
                   type(prefix, suffix, RUSHMEM_BEHIND_CTX(__VA_ARGS__)), __VA_ARGS__)
";

/// Returns all type-generic macros of the standard, and the macros that these use.
pub fn define(table: &SpecTable) -> Result<String> {
    let mut text = PICKERS.to_owned();
    text.push_str("\n/* The function of a type table for the type that a pointer points to. */\n");
    text.push_str(&selectors(&table.functions, &mut HashSet::new())?);
    text.push('\n');
    for name in &table.generics {
        text.push_str(&generic(&table.functions, name)?);
    }
    Ok(text)
}

/// Returns the type-generic macros of the extensions, which use those of the standard.
pub fn define_extensions(table: &SpecTable) -> Result<String> {
    let mut done = HashSet::new();
    selectors(&table.functions, &mut done)?;
    let mut text = selectors(&table.extensions, &mut done)?;
    for name in table.extension_generics() {
        text.push_str(&generic(&table.extensions, name)?);
    }
    Ok(text)
}

/// Returns the macros that select from the type tables of functions, except those in `done`. Adds
/// the names of the returned ones to `done`.
fn selectors(functions: &[CFunction], done: &mut HashSet<&'static str>) -> Result<String> {
    let mut text = String::new();
    for example in functions {
        if example.generic.is_empty() || example.type_name.is_empty() {
            continue;
        }
        let name = selector_name(&example.type_rule)?;
        if done.insert(name) {
            text.push_str(&selector(functions, name, example)?);
        }
    }
    Ok(text)
}

/// Returns the functions among which a macro selects, each type once.
pub(crate) fn selected<'a>(functions: &'a [CFunction], name: &str) -> Vec<&'a CFunction> {
    let mut seen = HashSet::new();
    let mut functions: Vec<_> = functions
        .iter()
        .filter(|function| function.generic == name)
        .collect();
    // Names of C precede names of stdint.h and stddef.h.
    functions.sort_by_key(|function| function.c_type.ends_with("_t"));
    functions.retain(|function| {
        function.type_name.is_empty()
            || seen.insert((function.takes_context(), function.base_type()))
    });
    functions
}

/// Returns the macro `name`, which selects by the type table of `example`. All functions with this
/// table use the macro.
fn selector(functions: &[CFunction], name: &str, example: &CFunction) -> Result<String> {
    let mut text = format!("#define {name}(prefix, suffix, pointer) \\\n    _Generic(*(pointer)");
    for function in selected(functions, &example.generic) {
        if function.takes_context() == example.takes_context() {
            let name = &function.type_name;
            let c_type = &function.c_type;
            write!(text, ", \\\n        {c_type}: prefix##{name}##suffix")?;
        }
    }
    text.push_str(")\n");
    Ok(text)
}

/// Returns the type-generic macro `name`.
fn generic(functions: &[CFunction], name: &str) -> Result<String> {
    // shmem_sync is also a function, which this macro calls unless the argument is a team.
    if name == "shmem_sync" {
        return Ok(format!(
            "#define {name}(...) \\\n    _Generic((RUSHMEM_FIRST(__VA_ARGS__)), \\\n        \
             shmem_team_t: shmem_team_sync, default: {name})(__VA_ARGS__)\n"
        ));
    }

    let functions = selected(functions, name);
    let example = functions
        .first()
        .with_context(|| format!("{name} selects from nothing"))?;
    let (prefix, suffix) = name
        .split_once('_')
        .context("a macro is called shmem_* or shmemx_*")?;
    let takes_context = functions.iter().any(|function| function.takes_context());

    // A name without types selects by the context alone.
    if example.type_name.is_empty() {
        ensure!(takes_context, "{name} has nothing to select by");
        return Ok(format!(
            "#define {name}(...) \\\n    \
             RUSHMEM_ON_CTX({prefix}_ctx_{suffix}, {name}, __VA_ARGS__)(__VA_ARGS__)\n"
        ));
    }

    let selector = selector_name(&example.type_rule)?;
    if takes_context {
        return Ok(format!(
            "#define {name}(...) \\\n    \
             RUSHMEM_TYPE_ON_CTX({selector}, {prefix}_, _{suffix}, __VA_ARGS__)(__VA_ARGS__)\n"
        ));
    }

    let pointer = format!("{} *", example.c_type);
    let position = example
        .parameters
        .iter()
        .position(|parameter| parameter.contains(&pointer));
    let picker = match position {
        Some(0) => "RUSHMEM_FIRST",
        Some(1) => "RUSHMEM_SECOND",
        _ => anyhow::bail!("{name}: no pointer to elements where one is expected"),
    };
    Ok(format!(
        "#define {name}(...) \\\n    \
         {selector}({prefix}_, _{suffix}, {picker}(__VA_ARGS__))(__VA_ARGS__)\n"
    ))
}

/// Returns the name of the macro that selects by a type table of the standard.
pub(crate) fn selector_name(rule: &str) -> Result<&'static str> {
    Ok(match rule {
        "stdrmatypes" => "RUSHMEM_RMA",
        "stdamotypes" => "RUSHMEM_STANDARD_AMO",
        "extamotypes" => "RUSHMEM_EXTENDED_AMO",
        "bitamotypes" => "RUSHMEM_BITWISE_AMO",
        "{float,double}" => "RUSHMEM_FLOAT_AMO",
        "{int,long,long long}" => "RUSHMEM_OLD_AMO",
        "{float,double,int,long,long long}" => "RUSHMEM_OLD_EXTENDED_AMO",
        "stdamotypes+{short,unsigned short}" => "RUSHMEM_WAIT",
        "teamreducetypes[AND]" | "teamreducetypes[OR]" | "teamreducetypes[XOR]" => {
            "RUSHMEM_BITWISE_REDUCE"
        }
        "teamreducetypes[MAX]" | "teamreducetypes[MIN]" => "RUSHMEM_ORDERED_REDUCE",
        "teamreducetypes[SUM]" | "teamreducetypes[PROD]" => "RUSHMEM_ARITHMETIC_REDUCE",
        rule => anyhow::bail!("a macro is needed for the type table {rule}"),
    })
}
