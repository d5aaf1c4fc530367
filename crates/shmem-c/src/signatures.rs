//! Tests: every function here has the signature that a C compiler reads from our headers.
//!
//! The two have different sources, the macros of this crate and the standard's tables. `export!`
//! places the type of each function in a section of the test program, which the test reads; gcc
//! prints the signatures that it reads from the headers (`-aux-info`).
#![allow(unsafe_code)]

use std::any::type_name;
use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use rushmem_runtime::combine::Complex;
use rushmem_runtime::{ContextHandle, RequestHandle, TeamHandle, team, thread};

/// An exported function.
pub struct Signature {
    /// The name in the standard.
    pub name: &'static str,
    /// Returns the name of the function's type in Rust.
    pub rust_type: fn() -> &'static str,
}

/// Places the signature of a function in the section that the test reads.
macro_rules! signature {
    ($name:expr, $type:ty) => {
        #[used]
        #[unsafe(link_section = "rushmem_signatures")]
        static SIGNATURE: crate::signatures::Signature = crate::signatures::Signature {
            name: $name,
            rust_type: std::any::type_name::<$type>,
        };
    };
}

// Names that the linker gives to the ends of the section.
unsafe extern "C" {
    #[link_name = "__start_rushmem_signatures"]
    static START: u8;
    #[link_name = "__stop_rushmem_signatures"]
    static STOP: u8;
}

/// The functions with a `long double` by value, which have no Rust signature: see `longdouble`.
const BY_VALUE: [&str; 4] = [
    "shmem_ctx_longdouble_g",
    "shmem_ctx_longdouble_p",
    "shmem_longdouble_g",
    "shmem_longdouble_p",
];

/// The types of the arguments and of the result of a function pointer.
#[derive(Debug, PartialEq)]
struct FunctionType {
    parameters: Vec<String>,
    result: String,
}

fn in_rust() -> BTreeMap<String, FunctionType> {
    let start = (&raw const START).cast::<Signature>();
    let stop = (&raw const STOP).cast::<Signature>();
    // SAFETY: `start` and `stop` are the ends of one section, and the first is not behind the last.
    let count = unsafe { stop.offset_from_unsigned(start) };
    // SAFETY: the section contains only signatures, `count` of them, which are never written.
    let signatures = unsafe { std::slice::from_raw_parts(start, count) };

    let mut functions = BTreeMap::new();
    for Signature { name, rust_type } in signatures {
        functions.insert((*name).to_owned(), parse_rust_type(rust_type()));
    }
    functions
}

fn parse_rust_type(type_name: &str) -> FunctionType {
    let rest = type_name
        .strip_prefix("unsafe extern \"C\" fn(")
        .expect(type_name);
    let (parameters, result) = rest.split_once(')').expect(type_name);
    let result = result.strip_prefix(" -> ").unwrap_or("()");
    FunctionType {
        parameters: parameters
            .split(", ")
            .filter(|p| !p.is_empty())
            .map(of_fixed_size)
            .collect(),
        result: of_fixed_size(result),
    }
}

/// Returns a type of Rust as `rust_of` writes it: with the types that have the same ABI on 64-bit
/// Linux.
fn of_fixed_size(rust_type: &str) -> String {
    rust_type
        .replace("usize", "u64")
        .replace("isize", "i64")
        .replace("core::ffi::c_void", "void")
}

fn in_c(header: &str) -> BTreeMap<String, FunctionType> {
    let dir = tempfile::tempdir().expect("a directory");
    spec::write_headers(dir.path()).expect("the headers");

    let mut gcc = Command::new("gcc")
        .args(["-x", "c", "-fsyntax-only", "-aux-info", "/dev/stdout", "-"])
        .arg("-I")
        .arg(dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this test needs gcc: install the package gcc");
    // The pipe is closed at the end of the statement, so that gcc finds the end of its input.
    writeln!(gcc.stdin.take().expect("piped"), "#include <{header}>").expect("gcc reads");
    let output = gcc.wait_with_output().expect("gcc ends");
    assert!(output.status.success());
    let listing = String::from_utf8(output.stdout).expect("names are ASCII");
    listing
        .lines()
        .filter(|line| line.contains("shmem.h:") || line.contains("shmemx.h:"))
        .map(parse_c_declaration)
        .collect()
}

/// Reads a line like `/* include/shmem.h:9:NC */ extern void *shmem_ptr (const void *, int);`.
fn parse_c_declaration(line: &str) -> (String, FunctionType) {
    let (_, declaration) = line.split_once(" */ extern ").expect(line);
    let (head, parameters) = declaration.split_once(" (").expect(line);
    let parameters = parameters.strip_suffix(");").expect(line);
    let (result, name) = head.split_at(head.rfind([' ', '*']).expect(line) + 1);

    let parameters = parameters
        .split(", ")
        .filter(|p| *p != "void")
        .map(rust_of)
        .collect();
    let result = match result.trim() {
        "void" => "()".to_owned(),
        // gcc prints this for a function that does not return.
        "volatile void" => "!".to_owned(),
        result => rust_of(result),
    };
    (name.to_owned(), FunctionType { parameters, result })
}

/// Returns the Rust type that has the ABI of a C type.
fn rust_of(c_type: &str) -> String {
    if let Some(pointee) = c_type.strip_suffix('*') {
        return match pointee.trim().strip_prefix("const ") {
            Some(pointee) => format!("*const {}", rust_of(pointee)),
            None => format!("*mut {}", rust_of(pointee.trim())),
        };
    }

    match c_type {
        "char" => type_name::<std::ffi::c_char>(),
        "signed char" | "int8_t" => "i8",
        "short int" | "int16_t" => "i16",
        "int" | "int32_t" => "i32",
        "long int" | "long long int" | "int64_t" | "ptrdiff_t" => "i64",
        "unsigned char" | "uint8_t" => "u8",
        "short unsigned int" | "uint16_t" => "u16",
        "unsigned int" | "uint32_t" => "u32",
        "long unsigned int" | "long long unsigned int" | "uint64_t" | "size_t" => "u64",
        "float" => "f32",
        "double" => "f64",
        "long double" => type_name::<crate::types::LongDouble>(),
        "rushmem_complexf" => type_name::<Complex<f32>>(),
        "rushmem_complexd" => type_name::<Complex<f64>>(),
        "void" => "void",
        "shmem_team_t" => type_name::<TeamHandle>(),
        "shmem_team_config_t" => type_name::<team::TeamConfig>(),
        "shmem_ctx_t" => type_name::<ContextHandle>(),
        "shmemx_req_t" => type_name::<RequestHandle>(),
        "shmemx_pcntr_t" => type_name::<crate::shmemx::counters::PerformanceCounters>(),
        "shmemx_heap_info_t" => type_name::<crate::shmemx::heap::HeapInfo>(),
        "shmemx_uniqueid_t" => type_name::<crate::shmemx::unique_id::UniqueId>(),
        "shmemx_init_attr_t" => type_name::<crate::shmemx::unique_id::InitAttributes>(),
        "shmem_ctx_session_config_t" => type_name::<crate::ctx::SessionConfig>(),
        "uint64_t (*) (void)" => type_name::<thread::GetThread>(),
        "..." => "...",
        other => panic!("{other} is no type of the standard"),
    }
    .to_owned()
}

/// Returns true if the function can be called by the C declaration: the types are equal, except
/// that `void *` in C matches any pointer.
fn agree(rust: &FunctionType, c: &FunctionType) -> bool {
    if rust.result != c.result || rust.parameters.len() != c.parameters.len() {
        return false;
    }
    rust.parameters
        .iter()
        .zip(&c.parameters)
        .all(|(rust, c)| match c.as_str() {
            "*mut void" => rust.starts_with("*mut "),
            "*const void" => rust.starts_with("*const "),
            _ => rust == c,
        })
}

fn compare(header: &str, prefix: &str) {
    let rust = in_rust();
    let mut c = in_c(header);
    for name in BY_VALUE {
        let name = format!("{prefix}{name}");
        assert!(c.remove(&name).is_some(), "{header} lacks {name}");
    }

    for (name, rust) in &rust {
        let name = format!("{prefix}{name}");
        let Some(mut c) = c.remove(&name) else {
            panic!("{header} lacks {name}");
        };
        if name.ends_with("shmem_pcontrol") {
            assert_eq!(
                c.parameters.pop().as_deref(),
                Some("..."),
                "{name} is variadic"
            );
        }
        assert!(agree(rust, &c), "{name}\nin Rust: {rust:?}\nin C:    {c:?}");
    }
    assert!(
        c.is_empty(),
        "{header} declares what is not defined: {:?}",
        c.keys()
    );
}

#[test]
fn the_headers_declare_what_is_defined() {
    compare("shmemx.h", "");
}

#[test]
fn the_headers_of_twins_declare_what_is_defined() {
    compare("pshmemx.h", "p");
}

#[test]
fn every_function_is_looked_at() {
    let standard = 1794;
    let extensions = 1669;
    assert_eq!(in_rust().len() + BY_VALUE.len(), standard + extensions);
}

#[test]
fn a_difference_is_seen() {
    let line = "/* shmem.h:1:NC */ extern void shmem_long_p (long int *, long int, int);";
    let (_, c) = parse_c_declaration(line);
    let agrees = |rust: &str| agree(&parse_rust_type(rust), &c);
    assert!(agrees("unsafe extern \"C\" fn(*mut i64, i64, i32)"));
    assert!(!agrees("unsafe extern \"C\" fn(*const i64, i64, i32)"));
    assert!(!agrees("unsafe extern \"C\" fn(*mut i64, u64, i32)"));
    assert!(!agrees("unsafe extern \"C\" fn(*mut i64, i64)"));
    assert!(!agrees("unsafe extern \"C\" fn(*mut i64, i64, i32) -> i32"));
}
