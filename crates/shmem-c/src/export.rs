//! Gives a function its two C names.
//!
//! The body has the profiling name `pshmem_x`; `shmem_x` is a jump to it, so that a tool can define
//! a `shmem_x` of its own and call `pshmem_x`. It is a jump and not an alias, because rustc exports
//! no aliases, and because a jump needs no signature. All other profiling names also begin with `p`
//! (`pstart_pes`, `p_my_pe`, `pshmemx_wtime`).
#![allow(unsafe_code)]

/// Exports functions: `[parts of the C name](arguments) -> result = |call| body;`
///
/// The parts are joined without anything between them. `call` names the function to the runtime.
///
/// The unit tests look only at signatures. Their program has no bodies, whose compilation would
/// take most of its time.
macro_rules! export {
    ($(
        [$($part:tt)+] ($($arg:ident: $type:ty),* $(,)?) $(-> $result:ty)?
            = |$call:ident| $body:expr;
    )+) => {$(
        #[allow(unsafe_code, reason = "C functions; the call of the runtime is proved below")]
        const _: () = {
            const NAME: &str = concat!($(stringify!($part)),+);

            #[cfg(not(test))]
            #[unsafe(export_name = concat!("p", $(stringify!($part)),+))]
            unsafe extern "C" fn body($($arg: $type),*) $(-> $result)? {
                let $call = rushmem_runtime::call!(NAME);
                // SAFETY: the caller keeps the standard's contract of this function, which is the
                // contract of the runtime's function.
                #[allow(unused_unsafe, reason = "some functions of the runtime are safe")]
                unsafe { $body }
            }

            #[cfg(not(test))]
            jump!([$($part)+] => body);

            #[cfg(test)]
            signature!(NAME, unsafe extern "C" fn($($type),*) $(-> $result)?);
        };
    )+};
}

/// Exports functions that pass their arguments unchanged to a function of the runtime:
/// `[parts of the C name](arguments) -> result => function;`
macro_rules! forward {
    ($(
        [$($part:tt)+] ($($arg:ident: $type:ty),* $(,)?) $(-> $result:ty)? => $function:path;
    )+) => {
        export! {$(
            [$($part)+] ($($arg: $type),*) $(-> $result)? = |call| $function(call, $($arg),*);
        )+}
    };
}

/// Exports functions on the default context:
/// `[parts of the C name](arguments) -> result => function;`
macro_rules! on_default_context {
    ($(
        [$($part:tt)+] ($($arg:ident: $type:ty),* $(,)?) $(-> $result:ty)? => $function:path;
    )+) => {
        export! {$(
            [$($part)+] ($($arg: $type),*) $(-> $result)?
                = |call| $function(call, rushmem_runtime::DefaultContext, $($arg),*);
        )+}
    };
}

/// Exports functions on the default context and on a given one, as `shmem_x` and `shmem_ctx_x`:
/// `[parts of x](arguments without the context) -> result => function;`
macro_rules! on_contexts {
    ($(
        [$($part:tt)+] ($($arg:ident: $type:ty),* $(,)?) $(-> $result:ty)? => $function:path;
    )+) => {
        on_contexts_as! { shmem_ shmem_ctx_: $(
            [$($part)+] ($($arg: $type),*) $(-> $result)? => $function;
        )+}
    };
}

/// Exports functions on the default context and on a given one, under two given prefixes:
/// `without_context_ with_context_: [parts of x](arguments without the context) => function;`
macro_rules! on_contexts_as {
    ($without:ident $with:ident: $(
        [$($part:tt)+] ($($arg:ident: $type:ty),* $(,)?) $(-> $result:ty)? => $function:path;
    )+) => {
        on_default_context! {$(
            [$without $($part)+] ($($arg: $type),*) $(-> $result)? => $function;
        )+}
        forward! {$(
            [$with $($part)+]
                (ctx: rushmem_runtime::ContextHandle, $($arg: $type),*) $(-> $result)? => $function;
        )+}
    };
}

/// Exports a name of the standard as a jump to the body, which has the profiling name.
macro_rules! jump {
    ([$($part:tt)+] => $body:path) => {
        #[unsafe(naked)]
        #[unsafe(export_name = concat!($(stringify!($part)),+))]
        unsafe extern "C" fn entry() {
            #[cfg(target_arch = "x86_64")]
            core::arch::naked_asm!("jmp {}", sym $body);
            #[cfg(target_arch = "aarch64")]
            core::arch::naked_asm!("b {}", sym $body);
        }
    };
}
