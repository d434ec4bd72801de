//! Certificates from an ACME authority (RFC 8555): the request, the answer to a challenge, and the
//! time for which a certificate is valid.

use crate::authority::{AuthorityError, MadeCertificate, signing};
use foxy_base::WallTime;
use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair};
use x509_parser::pem::parse_x509_pem;

/// A request for a certificate, with a new key.
pub struct CertificateRequest {
    /// The certificate request in DER (PKCS #10).
    pub request: Vec<u8>,
    /// Private key of the certificate in PEM (PKCS #8). It must stay secret.
    pub key: String,
}

/// Makes an ECDSA key on P-256, and a request for a certificate with the host name `name`.
///
/// # Errors
/// [`AuthorityError::Signing`] if `name` is not a host name, or the system provides no random
/// bytes.
pub fn request(name: &str) -> Result<CertificateRequest, AuthorityError> {
    let mut parameters = CertificateParams::new([name.to_owned()]).map_err(signing)?;
    parameters.distinguished_name = DistinguishedName::new();
    let key = KeyPair::generate().map_err(signing)?;
    let request = parameters.serialize_request(&key).map_err(signing)?;
    Ok(CertificateRequest { request: request.der().to_vec(), key: key.serialize_pem() })
}

/// Makes the certificate that answers a TLS-ALPN-01 challenge for `name` (RFC 8737 §3). `digest` is
/// the SHA-256 hash of the key authorization.
///
/// # Errors
/// [`AuthorityError::Signing`] if `name` is not a host name, or the system provides no random
/// bytes.
pub fn challenge(name: &str, digest: &[u8; 32]) -> Result<MadeCertificate, AuthorityError> {
    let mut parameters = CertificateParams::new([name.to_owned()]).map_err(signing)?;
    parameters.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    let key = KeyPair::generate().map_err(signing)?;
    let certificate = parameters.self_signed(&key).map_err(signing)?;
    Ok(MadeCertificate { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// The time for which a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The certificate is valid from this time.
    pub start: WallTime,
    /// The certificate expires at this time.
    pub end: WallTime,
}

/// Returns the validity of the first certificate in a PEM file. Returns `None` if the file contains
/// no readable certificate.
pub fn validity(pem: &[u8]) -> Option<Validity> {
    let (_, block) = parse_x509_pem(pem).ok().filter(|(_, block)| block.label == "CERTIFICATE")?;
    let validity = block.parse_x509().ok()?.validity().clone();
    let time = |timestamp: i64| WallTime::from_seconds(u64::try_from(timestamp).unwrap_or(0));
    let start = time(validity.not_before.timestamp());
    Some(Validity { start, end: time(validity.not_after.timestamp()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_host_names_get_requests_and_challenges() {
        assert!(request("a.test").is_ok_and(|made| made.key.contains("PRIVATE KEY")));
        let answer = challenge("a.test", &[7; 32]).expect("made");
        assert!(validity(answer.certificate.as_bytes()).is_some());
        assert!(request("ä.test").is_err() && challenge("ä.test", &[7; 32]).is_err());
    }

    #[test]
    fn the_validity_is_that_of_the_first_certificate() {
        let mut parameters = CertificateParams::default();
        parameters.not_before = rcgen::date_time_ymd(2026, 1, 1);
        parameters.not_after = rcgen::date_time_ymd(2026, 4, 1);
        let key = KeyPair::generate().expect("a key");
        let pem = parameters.self_signed(&key).expect("made").pem() + &key.serialize_pem();
        let expected = Validity {
            start: WallTime::from_seconds(1_767_225_600),
            end: WallTime::from_seconds(1_775_001_600),
        };
        assert_eq!(validity(pem.as_bytes()), Some(expected));
        assert_eq!(validity(key.serialize_pem().as_bytes()), None);
    }
}
