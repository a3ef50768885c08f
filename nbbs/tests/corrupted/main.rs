//! Metadata that somebody else has written to: what `audit` and `attach` say of it.
//!
//! ```text
//! tree      the words of an arena, and everything that breaks a rule in them
//! audits    what the audit names, against that
//! strays    what attaching refuses
//! ```

mod audits;
mod strays;
mod tree;
