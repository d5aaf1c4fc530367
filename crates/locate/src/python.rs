//! Finds the line of a Python program that calls the library, by the stable interface of the
//! interpreter in this process. Programs in other languages have no interpreter.
//!
//! A binding that calls the library has usually released the lock of the interpreter. Another
//! thread then takes the lock. The caller waits for that thread for a limited time, since a thread
//! of the program may hold the lock for long.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_char, c_int, c_long, c_ulong, c_void};
use std::ptr::null_mut;

/// Parts of the paths of the files of Python bindings, whose frames do not belong to the program.
/// Those of `rushmem` tell an installed package, and its sources, from a directory of that name
/// which holds the program.
const BINDING_PATHS: [&str; 3] = ["/shmem4py/", "-packages/rushmem/", "/shmem-python/rushmem/"];

/// Maximum number of frames that are examined. The program waits for the lock meanwhile.
const MAX_DEPTH: usize = 100;

/// A line of a Python program.
pub struct PythonLine {
    /// `FILE:LINE`.
    pub line: String,
    /// The function that contains it.
    pub function: String,
}

/// An object of the interpreter.
type Object = *mut c_void;

/// Defines [`Interpreter`], the table of the functions of the interpreter that are used, from their
/// names and types.
macro_rules! interface {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        #[allow(non_snake_case)]
        #[derive(Clone, Copy)]
        struct Interpreter {
            $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Interpreter {
            /// Returns the functions of the interpreter of this process, if it has one.
            fn of_process() -> Option<Interpreter> {
                Some(Interpreter { $($name: {
                    let name = concat!(stringify!($name), "\0");
                    // SAFETY: `dlsym` accepts any string.
                    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr().cast()) };
                    if found.is_null() {
                        return None;
                    }
                    // SAFETY: the stable interface defines this type for the function.
                    unsafe {
                        std::mem::transmute::<
                            *mut c_void,
                            unsafe extern "C" fn($($argument),*) $(-> $result)?,
                        >(found)
                    }
                },)* })
            }
        }
    };
}

interface! {
    Py_IsInitialized: fn() -> c_int;
    PyGILState_Check: fn() -> c_int;
    PyGILState_Ensure: fn() -> c_int;
    PyGILState_Release: fn(c_int);
    PyErr_Clear: fn();
    Py_DecRef: fn(Object);
    PyImport_ImportModule: fn(*const c_char) -> Object;
    PyObject_GetAttrString: fn(Object, *const c_char) -> Object;
    PyObject_CallObject: fn(Object, Object) -> Object;
    PyObject_GetItem: fn(Object, Object) -> Object;
    PyLong_FromUnsignedLong: fn(c_ulong) -> Object;
    PyLong_AsLong: fn(Object) -> c_long;
    PyUnicode_AsUTF8String: fn(Object) -> Object;
    PyBytes_AsString: fn(Object) -> *mut c_char;
}

/// A thread in a process with an initialized interpreter.
pub struct PythonThread(ThreadLine);

enum ThreadLine {
    Found(Option<PythonLine>),
    /// The thread did not hold the lock of the interpreter, so its line is still to be found.
    Unknown {
        interpreter: Interpreter,
        /// The number by which another thread can find the line, too.
        thread: c_ulong,
    },
}

impl PythonThread {
    /// Returns the calling thread; `None` in a process without an initialized interpreter. Finds
    /// its line if it holds the lock of the interpreter.
    pub fn current() -> Option<PythonThread> {
        let interpreter = Interpreter::of_process()?;
        // SAFETY: the function may be called at any time.
        if unsafe { (interpreter.Py_IsInitialized)() } == 0 {
            return None;
        }

        // SAFETY: `pthread_self` has no preconditions.
        let thread = unsafe { libc::pthread_self() };
        // SAFETY: the interpreter is initialized.
        let holds_lock = unsafe { (interpreter.PyGILState_Check)() } != 0;
        Some(PythonThread(if holds_lock {
            ThreadLine::Found(interpreter.line_of(thread))
        } else {
            ThreadLine::Unknown {
                interpreter,
                thread,
            }
        }))
    }

    /// Returns the innermost line of the program on the thread. May wait for the lock of the
    /// interpreter.
    pub fn line(self) -> Option<PythonLine> {
        match self.0 {
            ThreadLine::Found(found) => found,
            ThreadLine::Unknown {
                interpreter,
                thread,
            } => interpreter.line_of(thread),
        }
    }
}

/// A reference to a live object, released when it is dropped. It exists only while the thread holds
/// the lock of the interpreter.
struct Reference<'a> {
    interpreter: &'a Interpreter,
    object: Object,
}

impl Drop for Reference<'_> {
    fn drop(&mut self) {
        // SAFETY: this is a reference to an object, and the thread holds the lock.
        unsafe { (self.interpreter.Py_DecRef)(self.object) };
    }
}

impl Interpreter {
    /// Returns the innermost line of the program on a thread.
    fn line_of(&self, thread: c_ulong) -> Option<PythonLine> {
        // SAFETY: the interpreter is initialized.
        let state = unsafe { (self.PyGILState_Ensure)() };
        let line = self.line_with_lock(thread);

        // Clears an error of the search, which the program must not see.
        // SAFETY: the thread holds the lock.
        unsafe { (self.PyErr_Clear)() };
        // SAFETY: `state` is the result of `PyGILState_Ensure`.
        unsafe { (self.PyGILState_Release)(state) };
        line
    }

    /// Returns the line, as [`line_of`](Self::line_of); the calling thread holds the lock.
    fn line_with_lock(&self, thread: c_ulong) -> Option<PythonLine> {
        let mut frame = self.frame_of(thread)?;
        for _ in 0..MAX_DEPTH {
            let code = frame.attribute(c"f_code")?;
            let file = code.attribute(c"co_filename")?.text()?;
            if BINDING_PATHS.iter().any(|path| file.contains(path)) {
                frame = frame.attribute(c"f_back")?;
                continue;
            }

            let number = frame.attribute(c"f_lineno")?;
            // SAFETY: `number` is a live object, and the thread holds the lock.
            let number = unsafe { (self.PyLong_AsLong)(number.object) };
            return Some(PythonLine {
                line: format!("{file}:{number}"),
                function: code.attribute(c"co_name")?.text()?,
            });
        }
        None
    }

    /// Returns the innermost frame of a thread: `sys._current_frames()[thread]`.
    fn frame_of(&self, thread: c_ulong) -> Option<Reference<'_>> {
        // SAFETY: the name ends with a zero, and the thread holds the lock.
        let sys = self.take_reference(unsafe { (self.PyImport_ImportModule)(c"sys".as_ptr()) })?;
        let function = sys.attribute(c"_current_frames")?;
        // SAFETY: `function` is a live object, which is called without arguments; the thread holds
        // the lock.
        let frames = self
            .take_reference(unsafe { (self.PyObject_CallObject)(function.object, null_mut()) })?;

        // SAFETY: the thread holds the lock.
        let key = self.take_reference(unsafe { (self.PyLong_FromUnsignedLong)(thread) })?;
        // SAFETY: `frames` and `key` are live objects, and the thread holds the lock.
        self.take_reference(unsafe { (self.PyObject_GetItem)(frames.object, key.object) })
    }

    /// Takes a new reference that a function of the interpreter has returned; `None` if it failed.
    fn take_reference(&self, object: Object) -> Option<Reference<'_>> {
        if object.is_null() {
            return None;
        }
        Some(Reference {
            interpreter: self,
            object,
        })
    }
}

impl<'a> Reference<'a> {
    fn attribute(&self, name: &CStr) -> Option<Reference<'a>> {
        let get = self.interpreter.PyObject_GetAttrString;
        // SAFETY: the object is live, and the name ends with a zero; the thread holds the lock.
        self.interpreter
            .take_reference(unsafe { get(self.object, name.as_ptr()) })
    }

    fn text(&self) -> Option<String> {
        let encode = self.interpreter.PyUnicode_AsUTF8String;
        // SAFETY: the object is live, and the thread holds the lock.
        let bytes = self
            .interpreter
            .take_reference(unsafe { encode(self.object) })?;
        // SAFETY: `bytes` is a live object, and the thread holds the lock.
        let text = unsafe { (self.interpreter.PyBytes_AsString)(bytes.object) };
        if text.is_null() {
            return None;
        }
        // SAFETY: the string ends with a zero and lives as long as `bytes`.
        let text = unsafe { CStr::from_ptr(text) };
        Some(text.to_string_lossy().into_owned())
    }
}
