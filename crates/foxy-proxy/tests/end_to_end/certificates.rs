//! A certificate authority for one test, and the certificates it signs. Nothing of it is ever
//! written to a file.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Authorities made so far; two of one name would be taken for each other.
static AUTHORITIES: AtomicUsize = AtomicUsize::new(0);

/// Signs certificates.
pub struct TestAuthority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate with its key.
pub struct TestCertificate {
    /// The certificate.
    pub certificate: CertificateDer<'static>,
    text: String,
    /// Its key.
    pub key: KeyPair,
}

impl TestAuthority {
    pub fn new() -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).expect("no names");
        let name = format!("Authority {}", AUTHORITIES.fetch_add(1, Ordering::Relaxed));
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().expect("a key");
        Self { issuer: CertifiedIssuer::self_signed(parameters, key).expect("a certificate") }
    }

    /// Its certificate, as a file holds it.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// The same, for programs.
    pub fn certificate(&self) -> CertificateDer<'static> {
        self.issuer.der().clone()
    }

    /// A certificate for these names and addresses.
    pub fn sign(&self, names: &[&str]) -> TestCertificate {
        self.sign_with(names, |_| {})
    }

    /// The same, changed before it is signed.
    pub fn sign_with(
        &self,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> TestCertificate {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut parameters = CertificateParams::new(names).expect("names");
        change(&mut parameters);
        let key = KeyPair::generate().expect("a key");
        let certificate = parameters.signed_by(&key, &self.issuer).expect("a certificate");
        TestCertificate { text: certificate.pem(), certificate: certificate.der().clone(), key }
    }
}

impl TestCertificate {
    /// The certificate, as a file holds it.
    pub fn pem(&self) -> &str {
        &self.text
    }

    /// A server with this certificate.
    pub fn server(&self) -> Arc<ServerConfig> {
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the usual versions")
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], key)
            .expect("the key fits");
        Arc::new(config)
    }
}
