//! A certificate authority: creation, reading from PEM, checks, and certificates for hosts. It
//! reads and writes no file.

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

/// The cryptography that all TLS code uses.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}
