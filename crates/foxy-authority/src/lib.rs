//! A certificate authority: creates it, reads it from PEM, checks it, and signs certificates for
//! hosts. Also makes keys and requests for another authority (`acme`). The crate reads and writes
//! no files.

pub mod acme;
mod authority;
mod certificates;
mod constraints;

pub use authority::{
    Authority, AuthorityError, AuthorityFacts, MadeAuthority, MadeCertificate, NewAuthority, make,
};
pub use certificates::Certificates;
pub use constraints::Constraints;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use std::sync::Arc;

/// Returns the cryptography library that all TLS code of foxy uses.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}
