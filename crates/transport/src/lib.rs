//! The boundary between Rushmem and whatever moves bytes between PEs that do not share memory.
