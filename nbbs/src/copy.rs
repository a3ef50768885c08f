//! Copies of handles.

/// Implements `Clone` and `Copy` for a type whose parameter is `W`, whatever that is: a derive asks that `W` is `Copy`,
/// and no atomic is.
macro_rules! copy {
    ($handle:ty) => {
        impl<W> Clone for $handle {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<W> Copy for $handle {}
    };
}
