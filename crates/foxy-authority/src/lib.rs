//! A certificate authority: creates it, reads it from PEM, checks it, and signs certificates for
//! hosts. The crate reads and writes no files.

mod authority;
mod certificates;
mod cidr;
mod constraints;
mod hosts;

pub use authority::{
    Authority, AuthorityError, AuthorityFacts, MadeAuthority, MadeCertificate, NewAuthority, make,
};
pub use certificates::Certificates;
pub use cidr::{Cidr, CidrError};
pub use constraints::Constraints;
pub use hosts::{HostName, HostPattern, HostPatternError};

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use std::sync::Arc;

/// Returns the cryptography library that all TLS code of foxy uses.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}
