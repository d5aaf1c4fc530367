//! `shmem.f90`: a Fortran module with an explicit interface of each C function of the standard, and
//! the generic names of C11 over kinds and ranks.
//!
//! The interfaces bind to the C functions, so the module has no code. A routine with the name of a
//! C function takes arrays of any type and rank, as C does by pointers. Two directives in the
//! interface, one for gfortran and one for flang, allow this. Generic names are for the types that
//! Fortran has, and for ranks 0 to 3.
//!
//! An argument of any type also takes a `type(c_ptr)`, and passes the address of this variable, not
//! the address that the variable contains. So a routine with an argument that is an address, or
//! that may be null, is a generic name with one form for `type(c_ptr)` and others for variables.

use std::fmt::Write;

use anyhow::Result;

use crate::constants::{self, Constant};
use crate::table::{CFunction, SpecTable, TypedName};

const HEAD: &str = "\
! Rushmem, an OpenSHMEM 1.6 library: the module of Fortran.
!
! Made from the tables of the standard. Free form.
module shmem
  use, intrinsic :: iso_c_binding
  implicit none
  public

  ! Handles, and what they are created with.
  type, bind(C) :: shmem_team_t
    integer(c_intptr_t) :: handle
  end type
  type, bind(C) :: shmem_ctx_t
    integer(c_intptr_t) :: handle
  end type
  type, bind(C) :: shmem_team_config_t
    integer(c_int) :: num_contexts
  end type
  type, bind(C) :: shmem_ctx_session_config_t
    integer(c_size_t) :: total_ops
  end type
";

/// The types for which generic names have forms: one for each kind of Fortran.
const GENERIC_TYPES: [&str; 6] = ["schar", "short", "int", "long", "float", "double"];
/// Maximum rank of arrays that are arguments of generic names.
const MAX_RANK: usize = 3;
/// Maximum rank of arrays whose address is an argument.
const MAX_ADDRESS_RANK: usize = 7;
/// The routines and their parameters that are addresses, and not the data at the address.
const ADDRESSES: [(&str, &str); 5] = [
    ("shmem_addr_accessible", "addr"),
    ("shmem_free", "ptr"),
    ("shmem_ptr", "dest"),
    ("shmem_realloc", "ptr"),
    ("shmem_team_ptr", "dest"),
];
/// The types of scalars whose address may be an argument. A form for scalars of any type would also
/// match a `type(c_ptr)`. match a `type(c_ptr)`. A default LOGICAL has no form, since Fortran lets
/// no routine of C take one: gfortran with `-std=f2018` would refuse the whole module.
const ADDRESS_SCALARS: [&str; 11] = [
    "integer(c_int8_t)",
    "integer(c_int16_t)",
    "integer(c_int32_t)",
    "integer(c_int64_t)",
    "real(c_float)",
    "real(c_double)",
    "real(c_long_double)",
    "complex(c_float_complex)",
    "complex(c_double_complex)",
    "logical(c_bool)",
    "character(kind=c_char)",
];
/// The column after which lines are continued. Fortran allows 132.
const LAST_COLUMN: usize = 110;

/// Returns the text of the module.
pub fn text() -> Result<String> {
    let table = SpecTable::read();
    let functions: Vec<&CFunction> = table.functions.iter().filter(|f| has_name(f)).collect();

    let mut text = HEAD.to_owned();
    writeln!(text)?;
    for constant in constants::all()? {
        if let Some(line) = parameter(&constant, &table) {
            writeln!(text, "  {line}")?;
        }
    }

    writeln!(text, "\n  interface")?;
    for function in &functions {
        if address(function).is_none()
            && let Some(interface) = interface(function, &function.symbol, None, "")
        {
            text += &interface;
        }
    }
    writeln!(text, "  end interface")?;

    for function in &functions {
        if address(function).is_some() {
            let interfaces = over_addresses(function, &function.symbol, None);
            text += &block(&function.symbol, &interfaces);
        }
    }

    let mut generics: Vec<&str> = functions.iter().map(|f| f.generic.as_str()).collect();
    generics.sort_unstable();
    generics.dedup();
    for generic in generics.into_iter().filter(|generic| !generic.is_empty()) {
        let interfaces: String = functions
            .iter()
            .filter(|f| f.generic == generic && GENERIC_TYPES.contains(&f.type_name.as_str()))
            .map(|f| over_ranks(f))
            .collect();
        if !interfaces.is_empty() {
            text += &block(generic, &interfaces);
        }
    }
    Ok(text + "\nend module\n")
}

/// Returns the block that gives interfaces a generic name.
fn block(name: &str, interfaces: &str) -> String {
    format!("\n  interface {name}\n{interfaces}  end interface\n")
}

/// Returns true if the standard still has a function, and Fortran allows its name.
fn has_name(function: &CFunction) -> bool {
    function.removed_in.is_empty() && !function.symbol.starts_with('_')
}

/// Returns the declaration of a constant as a parameter, or `None` if Fortran has no type for it,
/// or does not allow its name.
fn parameter(constant: &Constant<'_>, table: &SpecTable) -> Option<String> {
    let mut name = constant.name.to_owned();
    if name.starts_with('_') {
        return None;
    }
    if let Some(handle) = handle(&name) {
        return Some(handle);
    }

    // Fortran does not distinguish the case of letters, so some routines have this name.
    let is_routine = |f: &CFunction| f.symbol.eq_ignore_ascii_case(&name);
    if table.functions.iter().any(is_routine) {
        name += "_OP";
    }

    let (kind, suffix) = match constant.kind {
        "c_int" => ("integer(c_int)", ""),
        "c_long" => ("integer(c_long)", "_c_long"),
        "usize" => ("integer(c_size_t)", "_c_size_t"),
        _ => return None,
    };
    Some(format!(
        "{kind}, parameter :: {name} = {}{suffix}",
        constant.value
    ))
}

/// Returns the declaration of a predefined handle, or `None` if the name is not that of one.
fn handle(name: &str) -> Option<String> {
    let (kind, number) = match name {
        "SHMEM_TEAM_INVALID" => ("shmem_team_t", 0),
        "SHMEM_TEAM_WORLD" => ("shmem_team_t", 1),
        "SHMEM_TEAM_SHARED" => ("shmem_team_t", 2),
        "SHMEM_CTX_INVALID" => ("shmem_ctx_t", 0),
        "SHMEM_CTX_DEFAULT" => ("shmem_ctx_t", 1),
        _ => return None,
    };
    Some(format!(
        "type({kind}), parameter :: {name} = {kind}({number}_c_intptr_t)"
    ))
}

/// Returns the interfaces of a function for a generic name, for each rank of its arrays.
fn over_ranks(function: &CFunction) -> String {
    let mut has_count = false;
    let mut is_set = false;
    for parameter in &function.parameters {
        let name = TypedName::split(parameter).name;
        has_count |= ["nelems", "nreduce", "nblocks"].contains(&name);
        is_set |= name == "ivars";
    }

    // The elements of a set are in one array. Without a number of elements, there is one.
    let ranks = if is_set {
        1..=1
    } else if has_count {
        0..=MAX_RANK
    } else {
        0..=0
    };
    ranks
        .map(|rank| {
            let name = format!("r{rank}_{}", function.symbol);
            over_addresses(function, &name, Some(rank))
        })
        .collect()
}

/// Returns the parameter of a function that is an address or may be null.
fn address(function: &CFunction) -> Option<&str> {
    function
        .parameters
        .iter()
        .filter(|parameter| parameter.contains('*'))
        .map(|parameter| TypedName::split(parameter).name)
        .find(|&name| name == "status" || ADDRESSES.contains(&(&function.symbol, name)))
}

/// Returns the interfaces of a function for each form of its parameter that is an address or may be
/// null, or one interface if it has no such parameter. The first interface gets the name `name`,
/// and the others names derived from it.
fn over_addresses(function: &CFunction, name: &str, rank: Option<usize>) -> String {
    let forms = match address(function) {
        Some(address) => forms_of_address(address),
        None => vec![String::new()],
    };

    let mut interfaces = String::new();
    for (number, form) in forms.iter().enumerate() {
        let name = if number == 0 {
            name.to_owned()
        } else {
            format!("a{number}_{name}")
        };
        if let Some(interface) = interface(function, &name, rank, form) {
            interfaces += &interface;
        }
    }
    interfaces
}

/// Returns the declarations of a parameter that is an address or may be null: as arrays, as
/// scalars, and as the address itself.
fn forms_of_address(name: &str) -> Vec<String> {
    let (scalars, array, max_rank) = match name {
        "status" => (&["integer(c_int)"][..], "integer(c_int)", MAX_RANK),
        _ => (&ADDRESS_SCALARS[..], "type(*)", MAX_ADDRESS_RANK),
    };

    let mut forms = Vec::new();
    for rank in 1..=max_rank {
        forms.push(format!("{array} :: {name}{}", shape(rank)));
    }
    for scalar in scalars {
        forms.push(format!("{scalar} :: {name}"));
    }
    forms.push(format!("type(c_ptr), value :: {name}"));
    forms
}

/// Returns the shape of an assumed-size array of this rank.
fn shape(rank: usize) -> String {
    match rank {
        0 => String::new(),
        _ => format!("({}*)", "1,".repeat(rank - 1)),
    }
}

/// Returns the type of Fortran for a type of C, or `None` if there is none.
fn by_value(c_type: &str) -> Option<&'static str> {
    Some(match c_type.trim_start_matches("const ").trim() {
        "int" | "unsigned int" => "integer(c_int)",
        "long" | "unsigned long" => "integer(c_long)",
        "long long" | "unsigned long long" => "integer(c_long_long)",
        "short" | "unsigned short" => "integer(c_short)",
        "char" | "signed char" | "unsigned char" => "integer(c_signed_char)",
        "size_t" => "integer(c_size_t)",
        "ptrdiff_t" => "integer(c_intptr_t)",
        "int8_t" | "uint8_t" => "integer(c_int8_t)",
        "int16_t" | "uint16_t" => "integer(c_int16_t)",
        "int32_t" | "uint32_t" => "integer(c_int32_t)",
        "int64_t" | "uint64_t" => "integer(c_int64_t)",
        "float" => "real(c_float)",
        "double" => "real(c_double)",
        "long double" => "real(c_long_double)",
        "shmem_team_t" => "type(shmem_team_t)",
        "shmem_ctx_t" => "type(shmem_ctx_t)",
        _ => return None,
    })
}

/// The parameters that are scalars in which a routine stores a result.
const RESULTS: [&str; 8] = [
    "provided",
    "major",
    "minor",
    "new_team",
    "xaxis_team",
    "yaxis_team",
    "ctx",
    "team",
];

/// A declaration of a parameter.
struct Declaration {
    text: String,
    /// The parameter takes arguments of any type and rank.
    takes_any: bool,
}

impl Declaration {
    fn of_one_type(text: String) -> Declaration {
        Declaration {
            text,
            takes_any: false,
        }
    }
}

/// Returns the declaration of a parameter. Returns `None` if Fortran cannot declare it. `rank` is
/// that of the arrays of a generic name.
fn declaration(function: &CFunction, parameter: &str, rank: Option<usize>) -> Option<Declaration> {
    let TypedName { c_type, name } = TypedName::split(parameter);
    let name = fortran_name(name);

    let Some(pointee) = c_type.strip_suffix('*').map(str::trim) else {
        let text = format!("{}, value :: {name}", by_value(c_type)?);
        return Some(Declaration::of_one_type(text));
    };
    let target = pointee.trim_start_matches("const ").trim();
    if target.ends_with('*') || target.contains('(') {
        return None;
    }

    let is_element = !function.c_type.is_empty() && target == function.c_type;
    let text = if target.ends_with("config_t") {
        format!("type(c_ptr), value :: {name}")
    } else if target == "char" && function.type_name.is_empty() {
        format!("character(kind=c_char) :: {name}(*)")
    } else if RESULTS.contains(&name.as_str()) {
        format!("{}, intent(out) :: {name}", by_value(target)?)
    } else if let Some(rank) = rank.filter(|_| is_element) {
        format!("{} :: {name}{}", by_value(target)?, shape(rank))
    } else if rank.is_some() && target == "uint64_t" {
        format!("integer(c_int64_t) :: {name}")
    } else {
        return Some(Declaration {
            text: format!("type(*), dimension(*) :: {name}"),
            takes_any: true,
        });
    };
    Some(Declaration::of_one_type(text))
}

/// Returns the name of a parameter in lower case, since Fortran does not distinguish case.
fn fortran_name(name: &str) -> String {
    name.to_lowercase()
}

/// Returns the interface of a function under a name of Fortran. `address_declaration` declares the
/// parameter that is an address or may be null, if there is one. Returns `None` if Fortran has no
/// type for a parameter or the result.
fn interface(
    function: &CFunction,
    name: &str,
    rank: Option<usize>,
    address_declaration: &str,
) -> Option<String> {
    let result = match function.returns.as_str() {
        "void" => None,
        returns if returns.ends_with('*') => Some("type(c_ptr)"),
        returns => Some(by_value(returns)?),
    };

    let mut names = Vec::new();
    let mut of_any_type = Vec::new();
    let mut declarations = String::new();
    for parameter in &function.parameters {
        let own_name = fortran_name(TypedName::split(parameter).name);
        let declaration = if address(function).is_some_and(|address| address == own_name) {
            Declaration::of_one_type(address_declaration.to_owned())
        } else {
            declaration(function, parameter, rank)?
        };
        if declaration.takes_any {
            of_any_type.push(own_name.clone());
        }
        declarations += &format!("      {}\n", declaration.text);
        names.push(own_name);
    }

    let (kind, result_clause) = if result.is_some() {
        ("function", " result(res)")
    } else {
        ("subroutine", "")
    };
    let mut text = wrapped(&format!(
        "    {kind} {name}({}){result_clause} bind(C, name=\"{}\")",
        names.join(", "),
        function.symbol
    ));
    text += "      import\n";

    if !of_any_type.is_empty() {
        // gfortran, and compilers that know the directives of Intel, then compare neither the
        // type nor the rank of an argument with a declaration.
        let names = of_any_type.join(", ");
        text += &format!("      !GCC$ ATTRIBUTES NO_ARG_CHECK :: {names}\n");
        text += &format!("      !DIR$ IGNORE_TKR {names}\n");
    }

    text += &declarations;
    if let Some(result) = result {
        text += &format!("      {result} :: res\n");
    }
    text += &format!("    end {kind}\n");
    Some(text)
}

/// Returns a statement, continued on further lines if it is long.
fn wrapped(statement: &str) -> String {
    let mut text = String::new();
    let mut line = String::new();
    for word in statement.split_inclusive(' ') {
        if line.len() + word.len() > LAST_COLUMN {
            text += &line;
            text += "&\n";
            line = "        ".to_owned();
        }
        line += word;
    }
    text + &line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_variadic_function_has_no_interface() {
        let table = SpecTable::read();
        let left_out: Vec<&str> = table
            .functions
            .iter()
            .filter(|f| has_name(f) && interface(f, &f.symbol, None, "").is_none())
            .map(|f| f.symbol.as_str())
            .collect();
        // It takes a variable number of arguments, which it ignores.
        assert_eq!(left_out, ["shmem_pcontrol"]);
    }
}
