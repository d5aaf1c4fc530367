//! Names of functions and variables in the source code.

/// Returns the name that a function or variable has in the source code, from its name in a symbol
/// table or in debug information. Names of C are returned as they are, without a number that the
/// compiler has appended.
pub fn in_source(name: &str) -> String {
    let name = without_number(name);
    demangled(name).unwrap_or_else(|| name.to_owned())
}

/// Returns the name in the source code of a name that a compiler of C++ or Rust has mangled;
/// `None` for any other name. Only the prefix distinguishes them: `i` is a mangled type, too.
fn demangled(name: &str) -> Option<String> {
    if let Some(name) = of_rust(name) {
        return Some(name);
    }
    if !name.starts_with("_Z") {
        return None;
    }
    cpp_demangle::Symbol::new(name).ok()?.demangle().ok()
}

/// Returns the name in the source code of a name that the compiler of Rust has mangled, without its
/// hash; `None` for any other name.
pub(crate) fn of_rust(name: &str) -> Option<String> {
    if !name.starts_with("_Z") && !name.starts_with("_R") {
        return None;
    }
    let name = rustc_demangle::try_demangle(name).ok()?;
    Some(format!("{name:#}"))
}

/// Removes the number that compilers append to the name of a static variable of a function, as in
/// `count.2`.
fn without_number(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((name, number))
            if !name.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            name
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::in_source;

    #[test]
    fn names_of_c_are_not_mangled_types() {
        for name in [
            "a", "b", "i", "d", "x", "s", "St", "counter", "_", "_R", "_Z",
        ] {
            assert_eq!(in_source(name), name);
        }
    }

    #[test]
    fn numbers_of_the_compiler_are_removed() {
        assert_eq!(in_source("sig.2"), "sig");
        assert_eq!(in_source("flag.0.lto_priv"), "flag.0.lto_priv");
        assert_eq!(in_source("_ZZ4mainE5count_0.1"), "main::count");
    }

    #[test]
    fn mangled_names_are_those_of_the_source() {
        assert_eq!(in_source("_ZN4grid4haloE"), "grid::halo");
        assert_eq!(in_source("_Z6smoothPd"), "smooth(double*)");
        assert_eq!(in_source("_ZN4ring4FLAG17h0123456789abcdefE"), "ring::FLAG");
        assert_eq!(in_source("_RNvCs1234_7mycrate3foo"), "mycrate::foo");
    }
}
