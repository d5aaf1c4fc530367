//! The type-generic interface of C++: what is a macro in C11 is a set of overloads there.
//!
//! All functions of a type table have the same overloads, so these are one macro, which the types
//! of the table expand. A program may include the header within its own `extern "C"`, where there
//! are no overloads, so they end that.

use std::fmt::Write;

use anyhow::{Context, Result};

use crate::generics::{named, selected};
use crate::table::{CFunction, SpecTable};

/// Overloads for the same types.
struct OverloadSet<'a> {
    /// The macro of C that selects from their type table.
    selector: &'static str,
    /// The types, with their names in functions.
    types: Vec<(&'a str, &'a str)>,
    /// The expansion of the macro, one definition a line.
    definitions: Vec<String>,
}

/// Types one of which every type table has, and that no function has for anything but elements.
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
        let example =
            EXAMPLES.into_iter().find(|c_type| of_name.iter().any(|f| f.c_type == *c_type));
        let examples = of_name.iter().filter(|function| Some(&*function.c_type) == example);
        let definitions =
            examples.map(|example| of_any_type(name, example)).collect::<Result<Vec<_>>>()?;
        let selector = named(&of_name.first().context("a name of nothing")?.type_rule)?;
        // A deprecated function of C may be the overload for a type already.
        let namesake = functions.iter().find(|function| function.symbol == *name);
        let types = types(&of_name, namesake);
        match sets.iter_mut().find(|set| set.selector == selector && set.types == types) {
            Some(set) => set.definitions.extend(definitions),
            None => sets.push(OverloadSet { selector, types, definitions }),
        }
    }
    for OverloadSet { selector, types, definitions } in sets {
        let lines = definitions.join(" \\\n    ");
        writeln!(text, "\n#define {selector}_OVERLOADS(T, N) \\\n    {lines}")?;
        for (c_type, name) in types {
            writeln!(text, "{selector}_OVERLOADS({c_type}, {name})")?;
        }
        writeln!(text, "#undef {selector}_OVERLOADS")?;
    }
    Ok(text)
}

/// Returns the types of the functions that a name stands for, without that of its `namesake`. C++
/// has several complex numbers, of which the library's functions take pointers to anything.
fn types<'a>(functions: &[&'a CFunction], namesake: Option<&CFunction>) -> Vec<(&'a str, &'a str)> {
    let form = functions[0].takes_context();
    let is_overload = |function: &&&CFunction| {
        function.takes_context() == form
            && !function.type_name.starts_with("complex")
            && namesake.is_none_or(|namesake| namesake.parameters != function.parameters)
    };
    let functions = functions.iter().filter(is_overload);
    functions.map(|function| (&*function.c_type, &*function.type_name)).collect()
}

/// Returns the overload `name` that calls a function, for the type `T` called `N`.
fn of_any_type(name: &str, example: &CFunction) -> Result<String> {
    let (before, after) =
        example.symbol.split_once(&example.type_name).context("a type in the name")?;
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
    format!("inline {head}{between}{{ return {symbol}({}); }}", arguments.join(", "))
}
