//! The functions that refuse something, by number: so a refusal of a pointer can name the function that it was given to.

use crate::error::Error;

/// Where a function writes a refusal to, and which function it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    /// Null, misaligned, or memory for an error.
    pub place: *mut Error,
    /// As [`name`] takes it.
    pub function: u32,
}

impl Told {
    /// Nobody asks, or whoever prints it names the function.
    pub(crate) const NOTHING: Self = Self { place: core::ptr::null_mut(), function: 0 };
}

/// What a function tells of a refusal: `told!(nbbs_free, error)`, or without `error` if it only tells a hook.
macro_rules! told {
    ($name:ident) => {
        told!($name, core::ptr::null_mut())
    };
    ($name:ident, $error:expr) => {
        $crate::function::Told {
            place: $error,
            function: const { $crate::function::number(stringify!($name)) },
        }
    };
}
pub(crate) use told;

macro_rules! names {
    ($($name:ident)*) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

names! {
    nbbs_alloc nbbs_alloc_units nbbs_alloc_at nbbs_alloc_request nbbs_alloc_batch nbbs_alloc_bytes
    nbbs_free_bytes nbbs_resize_bytes nbbs_address_of nbbs_index_of nbbs_free nbbs_free_sized nbbs_free_units
    nbbs_free_batch nbbs_free_part nbbs_reserve nbbs_release nbbs_set_lanes nbbs_mend nbbs_create
    nbbs_create_reserved nbbs_attach nbbs_set_memory nbbs_set_hook nbbs_on nbbs_shrink nbbs_grow nbbs_split_off
    nbbs_split nbbs_order_of nbbs_len_of nbbs_stats nbbs_occupancy_map nbbs_walk nbbs_audit
    nbbs_cache_alloc nbbs_cache_free nbbs_cache_free_sized nbbs_cache_drain nbbs_cache_ask nbbs_cache_drain_all
    nbbs_cache_recover nbbs_cache_audit nbbs_cache_create nbbs_cache_attach
    nbbs_pool_local_create nbbs_pool_local_alloc nbbs_pool_local_free nbbs_pool_local_flush nbbs_pool_create_in
    nbbs_pool_create nbbs_pool_set_hook nbbs_pool_alloc nbbs_pool_free nbbs_pool_reserve nbbs_pool_each
    nbbs_pool_clear nbbs_pool_stats
    nbbs_heap_alloc nbbs_heap_free nbbs_heap_resize nbbs_heap_size_of nbbs_heap_create nbbs_heap_add
    nbbs_heap_set_cpu nbbs_heap_set_nested_cpu nbbs_heap_set_hook nbbs_heap_stats nbbs_heap_walk nbbs_heap_audit
    nbbs_heap_malloc nbbs_heap_calloc nbbs_heap_realloc nbbs_heap_aligned_alloc nbbs_heap_usable_size
    nbbs_small_alloc nbbs_small_free nbbs_small_resize nbbs_small_size_of nbbs_small_create nbbs_small_set_hook
    nbbs_small_stats nbbs_small_walk nbbs_small_malloc nbbs_small_calloc nbbs_small_realloc
    nbbs_small_aligned_alloc nbbs_small_usable_size
    nbbs_shared_heap_alloc nbbs_shared_heap_free nbbs_shared_heap_take nbbs_shared_heap_take_from
    nbbs_shared_heap_block nbbs_shared_join nbbs_shared_alloc nbbs_shared_free nbbs_shared_take
    nbbs_shared_take_from nbbs_shared_block nbbs_shared_recover nbbs_shared_create nbbs_shared_create_memfd
    nbbs_shared_attach nbbs_shared_attach_fd nbbs_shared_set_hook nbbs_shared_geometry_of nbbs_shared_at
    nbbs_shared_owner nbbs_shared_set_root nbbs_shared_check_geometry
}

/// Returns the number of a function, from 1. It is found when the library is compiled, which ends with a panic if there
/// is no such function.
pub(crate) const fn number(name: &str) -> u32 {
    let mut at = 0;
    while !is_same(NAMES[at].as_bytes(), name.as_bytes()) {
        at += 1;
    }
    at as u32 + 1
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

/// Returns the name of the function with a number.
pub(crate) fn name(number: u64) -> Option<&'static str> {
    NAMES.get(usize::try_from(number).ok()?.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::fs;
    use std::path::Path;
    use std::string::String;

    use super::{NAMES, name, number};

    /// The source below a directory.
    fn source(of: &Path) -> String {
        let entries = fs::read_dir(of).unwrap().map(|entry| entry.unwrap().path());
        let text = |path: std::path::PathBuf| {
            if path.is_dir() { source(&path) } else { fs::read_to_string(path).unwrap() }
        };
        entries.map(text).collect()
    }

    #[test]
    fn each_function_that_refuses_tells_its_own_name() {
        let source = source(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
        let mut told = 0;
        for function in source.split("extern \"C\" fn ").skip(1) {
            let (own, rest) = function.split_once('(').unwrap();
            let body = rest.split("\n}\n").next().unwrap();
            for each in body.split("told!(").skip(1) {
                assert_eq!(each.split([',', ')']).next(), Some(own));
                told += 1;
            }
            let refuses = body.contains("error: *mut Error") && body.contains("-> Code {");
            assert!(!refuses || body.contains("told!("), "{own}");
        }
        assert_eq!(told, NAMES.len());
    }

    #[test]
    fn numbers_are_those_of_names() {
        assert_eq!(name(number("nbbs_free").into()), Some("nbbs_free"));
        assert_eq!((name(0), name(NAMES.len() as u64 + 1), name(u64::MAX)), (None, None, None));
        assert_eq!(name(NAMES.len() as u64), NAMES.last().copied());
    }
}
