//! The type-generic interface of C++: a set of overloads for each macro of C11.
//!
//! All generic names with the same type table have overloads for the same types. So one macro has
//! the definitions of these overloads, and is expanded for each type of the table. The overloads
//! are within `extern "C++"`, since a program may include the header within its own `extern "C"`,
//! which allows no overloads.

use std::fmt::Write;

use anyhow::{Context, Result};

use crate::generics::{selected, selector_name};
use crate::table::{CFunction, SpecTable, TypedName};

/// The overloads of generic names with the same types.
struct OverloadSet<'a> {
    /// The macro of C11 that selects by their type table; the name of the macro for C++ begins with
    /// it.
    selector: &'static str,
    types: Vec<ElementType<'a>>,
    /// The lines of the macro, one definition each.
    definitions: Vec<String>,
}

#[derive(PartialEq)]
struct ElementType<'a> {
    c_type: &'a str,
    /// The name in the names of functions.
    name: &'a str,
}

/// Element types for which functions serve as examples. Each type table has one of them, and
/// functions use them only for elements.
const EXAMPLES: [&str; 3] = ["long long", "unsigned long long", "double"];

/// Returns the overloads of the standard.
pub fn define(table: &SpecTable) -> Result<String> {
    overloads(&table.functions, &table.generics.iter().collect::<Vec<_>>())
}

/// Returns the overloads of the extensions.
pub fn define_extensions(table: &SpecTable) -> Result<String> {
    overloads(&table.extensions, &table.extension_generics())
}

fn overloads(functions: &[CFunction], names: &[&String]) -> Result<String> {
    let mut text = String::new();
    let mut sets: Vec<OverloadSet> = Vec::new();
    for &name in names {
        let of_name = selected(functions, name);
        if of_name.iter().all(|function| function.type_name.is_empty()) {
            for function in of_name.iter().filter(|function| function.symbol != *name) {
                writeln!(text, "{}", definition(name, function, "\n    "))?;
            }
            continue;
        }

        // A deprecated function with this name may already serve as the overload for a type.
        let namesake = functions.iter().find(|function| function.symbol == *name);
        let selector = selector_name(&of_name.first().context("a name of nothing")?.type_rule)?;
        let types = types(&of_name, namesake);
        let definitions = definitions(name, &of_name)?;
        match sets
            .iter_mut()
            .find(|set| set.selector == selector && set.types == types)
        {
            Some(set) => set.definitions.extend(definitions),
            None => sets.push(OverloadSet {
                selector,
                types,
                definitions,
            }),
        }
    }

    for set in &sets {
        set.write(&mut text)?;
    }
    Ok(text)
}

impl OverloadSet<'_> {
    /// Appends the macro with the definitions, and its expansions for all types.
    fn write(&self, text: &mut String) -> Result<()> {
        let selector = self.selector;
        let lines = self.definitions.join(" \\\n    ");
        writeln!(text, "\n#define {selector}_OVERLOADS(T, N) \\\n    {lines}")?;
        for ElementType { c_type, name } in &self.types {
            writeln!(text, "{selector}_OVERLOADS({c_type}, {name})")?;
        }
        writeln!(text, "#undef {selector}_OVERLOADS")?;
        Ok(())
    }
}

/// Returns the types for which a generic name needs an overload: those of its functions, without
/// that of its `namesake`, a function with the same name, and without complex types. C++ has
/// several complex types, and the functions for them take `void` pointers.
fn types<'a>(functions: &[&'a CFunction], namesake: Option<&CFunction>) -> Vec<ElementType<'a>> {
    let takes_context = functions[0].takes_context();
    let mut types = Vec::new();
    for function in functions {
        let is_of_namesake =
            namesake.is_some_and(|namesake| namesake.parameters == function.parameters);
        // A type may have a function with a context and one without, and is listed once.
        if function.takes_context() == takes_context
            && !function.type_name.starts_with("complex")
            && !is_of_namesake
        {
            types.push(ElementType {
                c_type: &function.c_type,
                name: &function.type_name,
            });
        }
    }
    types
}

/// Returns the definitions of the overloads of a generic name for any type: one, or one with a
/// context and one without.
///
/// # Errors
/// If no function has one of the types of [`EXAMPLES`].
fn definitions(name: &str, functions: &[&CFunction]) -> Result<Vec<String>> {
    let c_type = example_type(functions)
        .with_context(|| format!("no function of {name} has a type of the examples"))?;
    functions
        .iter()
        .filter(|function| function.c_type == c_type)
        .map(|function| of_any_type(name, function))
        .collect()
}

fn example_type(functions: &[&CFunction]) -> Option<&'static str> {
    EXAMPLES
        .into_iter()
        .find(|c_type| functions.iter().any(|function| function.c_type == *c_type))
}

/// Returns the overload `name` that calls a function, with the parameter `T` of the macro for the
/// type and `N` for its name.
fn of_any_type(name: &str, example: &CFunction) -> Result<String> {
    let (before, after) = example
        .symbol
        .split_once(&example.type_name)
        .context("a type in the name")?;
    let of_any = |text: &String| text.replace(&example.c_type, "T");

    let function = CFunction {
        symbol: format!("{before}##N##{after}"),
        returns: of_any(&example.returns),
        parameters: example.parameters.iter().map(of_any).collect(),
        ..example.clone()
    };
    Ok(definition(name, &function, " \\\n        "))
}

/// Returns the overload `name` that calls a function, with `between` before its body.
fn definition(name: &str, function: &CFunction, between: &str) -> String {
    let mut arguments = Vec::new();
    for parameter in &function.parameters {
        arguments.push(TypedName::split(parameter).name);
    }
    let head = function.prototype(name);
    let symbol = &function.symbol;
    format!(
        "inline {head}{between}{{ return {symbol}({}); }}",
        arguments.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_an_example_is_an_error() {
        let table = SpecTable::read();
        let puts = selected(&table.functions, "shmem_put");
        let found = definitions("shmem_put", &puts).expect("an example");
        assert_eq!(found.len(), 2, "with a context and without");

        let without_example: Vec<&CFunction> = puts
            .into_iter()
            .filter(|function| !EXAMPLES.contains(&function.c_type.as_str()))
            .collect();
        let error = definitions("shmem_put", &without_example).expect_err("no example");
        assert!(error.to_string().contains("shmem_put"), "{error}");
    }
}
