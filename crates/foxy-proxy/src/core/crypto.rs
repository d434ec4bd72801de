//! The provider of cryptography, for TLS with clients and origins alike.

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use std::sync::Arc;

/// The one provider of cryptography.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}
