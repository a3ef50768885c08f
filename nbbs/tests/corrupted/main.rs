//! Tests what `audit` and `attach` say about metadata that something else has written to.
//!
//! ```text
//! tree      the words of an arena, and everything that breaks a rule in them
//! audits    what the audit names, against that
//! strays    what attaching refuses
//! ```

mod audits;
mod strays;
mod tree;
