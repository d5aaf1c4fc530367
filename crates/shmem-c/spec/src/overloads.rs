//! The type-generic interface of C++: a set of overloads for each macro of C11.
//!
//! All generic names with the same type table have overloads for the same types. So one macro has
//! the definitions of these overloads, and is expanded for each type of the table. The overloads
//! are within `extern "C++"`, since a program may include the header within its own `extern "C"`,
//! which allows no overloads.

use std::fmt::Write;

use anyhow::{Context, Result};

use crate::generics::{named, selected};
use crate::table::{CFunction, SpecTable};

/// The overloads of generic names with the same types.
struct OverloadSet<'a> {
    /// The macro of C11 that selects by their type table; the name of the macro for C++ begins with
    /// it.
    selector: &'static str,
    /// The types, and their names in the names of functions.
    types: Vec<(&'a str, &'a str)>,
    /// The lines of the macro, one definition each.
    definitions: Vec<String>,
}

/// Element types for which functions serve as examples. Each type table has one of them, and
/// functions use them only for elements.
const EXAMPLES: [&str; 3] = ["long long", "unsigned long long", "double"];

/// Returns the overloads of the standard.
pub fn define(table: &SpecTable) -> Result<String> {
    overloads(&table.functions, &table.generics.iter().collect::<Vec<_>>())
}

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
        let example = EXAMPLES
            .into_iter()
            .find(|c_type| of_name.iter().any(|f| f.c_type == *c_type));
        let examples = of_name
            .iter()
            .filter(|function| Some(&*function.c_type) == example);
        let definitions = examples
            .map(|example| of_any_type(name, example))
            .collect::<Result<Vec<_>>>()?;
        let selector = named(&of_name.first().context("a name of nothing")?.type_rule)?;
        // A deprecated function with this name may already serve as the overload for a type.
        let namesake = functions.iter().find(|function| function.symbol == *name);
        let types = types(&of_name, namesake);
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
    for OverloadSet {
        selector,
        types,
        definitions,
    } in sets
    {
        let lines = definitions.join(" \\\n    ");
        writeln!(text, "\n#define {selector}_OVERLOADS(T, N) \\\n    {lines}")?;
        for (c_type, name) in types {
            writeln!(text, "{selector}_OVERLOADS({c_type}, {name})")?;
        }
        writeln!(text, "#undef {selector}_OVERLOADS")?;
    }
    Ok(text)
}

/// Returns the types for which a generic name needs an overload: those of its functions, without
/// that of its `namesake`, a function with the same name, and without complex types. C++ has
/// several complex types, and the functions for them take `void` pointers.
fn types<'a>(functions: &[&'a CFunction], namesake: Option<&CFunction>) -> Vec<(&'a str, &'a str)> {
    let form = functions[0].takes_context();
    let is_overload = |function: &&&CFunction| {
        function.takes_context() == form
            && !function.type_name.starts_with("complex")
            && namesake.is_none_or(|namesake| namesake.parameters != function.parameters)
    };
    let functions = functions.iter().filter(is_overload);
    functions
        .map(|function| (&*function.c_type, &*function.type_name))
        .collect()
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
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let last = |parameter: &String| {
        let start = parameter.rfind(|c| !is_of_name(c)).map_or(0, |at| at + 1);
        parameter[start..].to_owned()
    };
    let arguments: Vec<String> = function.parameters.iter().map(last).collect();
    let (head, symbol) = (function.prototype(name), &function.symbol);
    format!(
        "inline {head}{between}{{ return {symbol}({}); }}",
        arguments.join(", ")
    )
}
