//! The procedural macros of Rushmem: the derive macro of `shmem::Element`, which `shmem` exports
//! and documents, and the digest of a crate's sources.
#![allow(unsafe_code)]

mod sources;

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, LitStr, Path, parse_macro_input, parse_quote};

/// Makes a structure of plain data an element of symmetric memory; see `shmem::Element`.
#[proc_macro_derive(Element, attributes(shmem))]
pub fn element(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input)
        .unwrap_or_else(Error::into_compile_error)
        .into()
}

/// Expands to a `u64`, the digest of the sources of the crate that calls it. PEs whose builds have
/// other digests may disagree about what they do together, so no job runs with both.
#[proc_macro]
pub fn digest_of_sources(_: proc_macro::TokenStream) -> proc_macro::TokenStream {
    sources::expression()
        .unwrap_or_else(|error| {
            let why = format!("the sources of this crate cannot be read: {error}");
            quote! { compile_error!(#why) }
        })
        .into()
}

fn expand(input: &DeriveInput) -> Result<TokenStream, Error> {
    let name = &input.ident;
    let shmem = path_of_crate(input)?;
    let sizes = fields_with_fixed_layout(input)?.iter().map(|field| {
        let kind = &field.ty;
        // The error for a field that is no plain data is shown at its type.
        quote_spanned! { kind.span() => + nbytes::<#kind>() }
    });
    let padding = format!(
        "`{name}` has padding between its fields or at its end: order them by their sizes, or add fields of bytes that fill it"
    );
    Ok(quote! {
        const _: () = {
            const fn nbytes<T: #shmem::PlainField>() -> usize {
                ::core::mem::size_of::<T>()
            }
            assert!(0 #(#sizes)* == ::core::mem::size_of::<#name>(), #padding);
        };

        // SAFETY: zero is a value of each field, which is plain data, as was checked above.
        unsafe impl #shmem::bytemuck::Zeroable for #name {}
        // SAFETY: all fields are plain data, and there is no padding, as was checked above; the
        // layout is fixed.
        unsafe impl #shmem::bytemuck::Pod for #name {}
    })
}

/// Returns the path of the crate `shmem`: that of `#[shmem(crate = "path")]`, or `::shmem`.
fn path_of_crate(input: &DeriveInput) -> Result<Path, Error> {
    let mut path = parse_quote!(::shmem);
    for attribute in &input.attrs {
        if !attribute.path().is_ident("shmem") {
            continue;
        }
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("crate") {
                return Err(meta.error("`shmem` has one argument: #[shmem(crate = \"path\")]"));
            }
            let text: LitStr = meta.value()?.parse()?;
            path = text.parse_with(Path::parse_mod_style)?;
            Ok(())
        })?;
    }
    Ok(path)
}

/// Returns the fields of a structure whose layout is fixed. Whether they are plain data without
/// padding is checked by the code of [`expand`], since only the compiler knows their types.
fn fields_with_fixed_layout(input: &DeriveInput) -> Result<&Fields, Error> {
    let Data::Struct(structure) = &input.data else {
        return Err(Error::new_spanned(
            &input.ident,
            "only a structure can derive `shmem::Element`: other PEs may store bits that are no value of an enum; store its number instead",
        ));
    };
    if !input.generics.params.is_empty() {
        return Err(Error::new_spanned(
            &input.ident,
            "a structure with parameters cannot derive `shmem::Element`: whether it has padding depends on them; write one for each type that is used",
        ));
    }
    if !has_fixed_layout(input)? {
        return Err(Error::new_spanned(
            &input.ident,
            "a structure that derives `shmem::Element` needs a layout that is the same in all programs: add #[repr(C)]",
        ));
    }
    Ok(&structure.fields)
}

/// Returns true if the structure is `repr(C)` or `repr(transparent)`.
fn has_fixed_layout(input: &DeriveInput) -> Result<bool, Error> {
    let mut is_fixed = false;
    for attribute in &input.attrs {
        if !attribute.path().is_ident("repr") {
            continue;
        }
        attribute.parse_nested_meta(|meta| {
            is_fixed |= meta.path.is_ident("C") || meta.path.is_ident("transparent");
            // The argument of `align(N)` and `packed(N)` is not used, but must be consumed.
            if meta.input.peek(syn::token::Paren) {
                let argument;
                syn::parenthesized!(argument in meta.input);
                argument.parse::<syn::LitInt>()?;
            }
            Ok(())
        })?;
    }
    Ok(is_fixed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(input: DeriveInput) -> String {
        let code = expand(&input).expect("it can be an element");
        code.to_string().replace(' ', "")
    }

    #[test]
    fn the_crate_has_the_path_that_is_named() {
        let code = expanded(parse_quote! {
            #[repr(C)]
            struct One(u64);
        });
        assert!(code.contains("T:::shmem::PlainField"), "{code}");

        let code = expanded(parse_quote! {
            #[repr(C)]
            #[shmem(crate = "crate::memory::other")]
            struct One(u64);
        });
        assert_eq!(code.matches("crate::memory::other::").count(), 3, "{code}");
        assert!(!code.contains("shmem"), "{code}");
    }

    #[test]
    fn other_arguments_are_refused() {
        let input = parse_quote! {
            #[repr(C)]
            #[shmem(path = "crate::memory")]
            struct One(u64);
        };
        let error = expand(&input).expect_err("there is no such argument");
        assert!(error.to_string().contains("#[shmem(crate = \"path\")]"));
    }
}
