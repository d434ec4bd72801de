//! Makes a certificate authority for one test, and certificates that the authority signs. Keys stay
//! in memory.

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType,
    IsCa, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, SerialNumber,
};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of authorities so far. Each authority gets its own name, because TLS clients look up an
/// authority by its name.
static AUTHORITIES: AtomicUsize = AtomicUsize::new(0);

/// A certificate authority for tests.
pub struct TestAuthority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate with its private key.
pub struct TestCertificate {
    /// The certificate in DER form.
    pub certificate: CertificateDer<'static>,
    text: String,
    /// The private key of the certificate.
    pub key: KeyPair,
}

impl TestAuthority {
    /// Makes an authority with a unique name.
    #[expect(clippy::new_without_default, reason = "every authority is another")]
    pub fn new() -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).expect("no names");
        let name = format!("Authority {}", AUTHORITIES.fetch_add(1, Ordering::Relaxed));
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("a key");
        Self { issuer: CertifiedIssuer::self_signed(parameters, key).expect("a certificate") }
    }

    /// Returns the authority's certificate in PEM form.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// Returns the authority's certificate in DER form.
    pub fn certificate(&self) -> CertificateDer<'static> {
        self.issuer.der().clone()
    }

    /// Returns the settings of a TLS client that trusts the authority, and presents `own`.
    pub fn client(&self, own: Option<&TestCertificate>) -> ClientConfig {
        client_trusting([self.certificate()], own)
    }

    /// Signs a certificate for `names`: host names and IP addresses.
    pub fn sign(&self, names: &[&str]) -> TestCertificate {
        self.sign_with(names, |_| {})
    }

    /// Signs a certificate for `names`, after `change` has edited its parameters.
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

    /// Returns a certificate revocation list in PEM form with these serial numbers. The list is
    /// current until the year `until`.
    pub fn revoke(&self, serial_numbers: &[u64], until: i32) -> String {
        self.revoke_in(2000, serial_numbers, until)
    }

    /// Returns the same list as [`Self::revoke`], but with an issue date in the year `year`.
    pub fn revoke_in(&self, year: i32, serial_numbers: &[u64], until: i32) -> String {
        let revoked = serial_numbers.iter().map(|&number| RevokedCertParams {
            serial_number: SerialNumber::from(number),
            revocation_time: rcgen::date_time_ymd(2000, 1, 1),
            reason_code: None,
            invalidity_date: None,
        });
        let list = CertificateRevocationListParams {
            this_update: rcgen::date_time_ymd(year, 1, 1),
            next_update: rcgen::date_time_ymd(until, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.issuer).expect("a list").pem().expect("a text")
    }
}

impl TestCertificate {
    /// Returns the certificate in PEM form.
    pub fn pem(&self) -> &str {
        &self.text
    }

    /// Returns the settings of a TLS server that presents this certificate.
    pub fn server(&self) -> Arc<ServerConfig> {
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the usual versions")
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], self.private_key())
            .expect("the key fits");
        Arc::new(config)
    }

    /// Returns the private key in the form that rustls takes.
    pub fn private_key(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.key.serialize_der()).into()
    }
}

/// Returns the settings of a TLS client that trusts the authorities `roots`, and presents `own`.
pub fn client_trusting(
    roots: impl IntoIterator<Item = CertificateDer<'static>>,
    own: Option<&TestCertificate>,
) -> ClientConfig {
    let mut store = RootCertStore::empty();
    let (added, _) = store.add_parsable_certificates(roots);
    assert!(added > 0, "no authority");
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the usual versions")
        .with_root_certificates(store);
    match own {
        None => builder.with_no_client_auth(),
        Some(own) => builder
            .with_client_auth_cert(vec![own.certificate.clone()], own.private_key())
            .expect("the key fits"),
    }
}
