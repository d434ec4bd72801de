//! The certificate authority: creates it, reads it from PEM, checks it, and signs host certificates
//! with it. The caller reads and writes the files.

use super::constraints::Constraints;
use crate::provider;
use foxy_base::{HostName, HostPattern, WallTime};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, SanType,
    SerialNumber,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::fmt;
use std::time::Duration;
use time::OffsetDateTime;
use x509_parser::certificate::X509Certificate;
use x509_parser::parse_x509_certificate;

/// Every certificate becomes valid this long before the current time, because a client's clock may
/// be slow.
const BACKDATED: Duration = Duration::from_secs(3600);

/// Lifetime of a host's certificate. Certificates in memory are replaced before they expire.
pub(super) const LEAF_VALIDITY: Duration = Duration::from_secs(7 * 86_400);

/// Longest common name in bytes (RFC 5280, ub-common-name).
const COMMON_NAME: usize = 64;

/// Parameters of a new certificate authority.
#[derive(Clone, Debug)]
pub struct NewAuthority<'a> {
    /// Common name of the authority. Only the first 64 bytes are used.
    pub name: &'a str,
    /// Hosts for which the authority may sign certificates.
    pub hosts: &'a [HostPattern],
    /// The current time. The authority becomes valid one hour earlier.
    pub now: WallTime,
    /// Lifetime of the authority, counted from `now`.
    pub validity: Duration,
}

/// A new certificate authority: the contents of its certificate file and its key file.
pub struct MadeAuthority {
    /// The authority's certificate in PEM.
    pub certificate: String,
    /// The authority's private key in PEM (PKCS #8). It must stay secret.
    pub key: String,
}

/// A host's certificate: the contents of its certificate file and its key file.
#[derive(Clone)]
pub struct MadeCertificate {
    /// The host's certificate in PEM.
    pub certificate: String,
    /// The host's private key in PEM (PKCS #8). It must stay secret.
    pub key: String,
}

/// Reason why a certificate authority cannot be created or used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthorityError {
    /// The certificate is not valid PEM.
    NoCertificate,
    /// The key is not valid PEM, or its algorithm cannot sign.
    NoKey,
    /// The private key and the certificate do not match.
    WrongKey,
    /// The certificate may not sign other certificates (basicConstraints, keyUsage).
    NoAuthority,
    /// The name constraints of the authority cannot be read.
    Constraints,
    /// The authority is not valid yet.
    NotYetValid,
    /// The authority has expired.
    Expired,
    /// The authority may not sign for the host (name constraints), or the authority has expired.
    NotPermitted,
    /// Signing failed. Contains the error text of the library.
    Signing(String),
}

impl fmt::Display for AuthorityError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NoCertificate => "the file contains no readable certificate",
            Self::NoKey => "the file contains no readable private key",
            Self::WrongKey => "the key does not belong to the certificate",
            Self::NoAuthority => {
                "the certificate may not sign other certificates: it lacks CA:TRUE, or its key \
                 usage lacks keyCertSign"
            }
            Self::Constraints => "the name constraints of the certificate cannot be read",
            Self::NotYetValid => "the certificate is not valid yet",
            Self::Expired => "the certificate has expired",
            Self::NotPermitted => "the authority has expired or may not sign for that host",
            Self::Signing(text) => return write!(formatter, "the authority cannot sign ({text})"),
        })
    }
}

impl std::error::Error for AuthorityError {}

/// Creates an authority with an ECDSA key on P-256. The authority signs certificates for servers
/// only, and only for its hosts. It cannot sign intermediate authorities.
///
/// # Errors
///
/// [`AuthorityError::Signing`] if the system provides no random bytes, or a name cannot be encoded.
pub fn make(new: &NewAuthority<'_>) -> Result<MadeAuthority, AuthorityError> {
    let key = KeyPair::generate().map_err(signing)?;
    let mut parameters =
        parameters(new.now, new.now.seconds().saturating_add(new.validity.as_secs()))?;
    let end =
        (0..=new.name.len().min(COMMON_NAME)).rev().find(|&end| new.name.is_char_boundary(end));
    parameters.distinguished_name.push(DnType::OrganizationName, "foxy, a caching proxy");
    parameters.distinguished_name.push(DnType::CommonName, &new.name[..end.unwrap_or(0)]);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    parameters.name_constraints = Some(Constraints::only(new.hosts).to_write());
    let certificate = parameters.self_signed(&key).map_err(signing)?;
    Ok(MadeAuthority { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// The checked contents of an authority's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorityFacts {
    /// The authority's certificate in DER.
    pub certificate: CertificateDer<'static>,
    /// The subject name in the authority's certificate.
    pub subject: String,
    /// The hosts for which the authority may sign.
    pub constraints: Constraints,
    /// Time at which the certificate becomes valid.
    pub not_before: WallTime,
    /// Time at which the certificate expires.
    pub not_after: WallTime,
    /// SHA-256 digest of the authority's certificate.
    pub fingerprint: [u8; 32],
}

impl AuthorityFacts {
    /// Reads an authority's certificate in PEM. The caller must check whether the certificate has
    /// expired.
    pub fn read(pem: &[u8]) -> Result<Self, AuthorityError> {
        let certificate =
            CertificateDer::from_pem_slice(pem).map_err(|_| AuthorityError::NoCertificate)?;
        let (_, parsed) =
            parse_x509_certificate(&certificate).map_err(|_| AuthorityError::NoCertificate)?;
        let usage = parsed.key_usage().map_err(|_| AuthorityError::NoAuthority)?;
        if !parsed.is_ca() || usage.is_some_and(|usage| !usage.value.key_cert_sign()) {
            return Err(AuthorityError::NoAuthority);
        }
        Ok(Self {
            subject: parsed.subject().to_string(),
            constraints: constraints(&parsed)?,
            not_before: seconds(parsed.validity().not_before.timestamp()),
            not_after: seconds(parsed.validity().not_after.timestamp()),
            fingerprint: sha256(&certificate),
            certificate: certificate.clone(),
        })
    }
}

fn constraints(certificate: &X509Certificate<'_>) -> Result<Constraints, AuthorityError> {
    match certificate.name_constraints() {
        Ok(None) => Ok(Constraints::default()),
        Ok(Some(found)) => Constraints::read(found.value).ok_or(AuthorityError::Constraints),
        Err(_) => Err(AuthorityError::Constraints),
    }
}

fn seconds(timestamp: i64) -> WallTime {
    WallTime::from_seconds(u64::try_from(timestamp).unwrap_or(0))
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    let suite = rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
    let hash = suite.tls13().expect("a suite of TLS 1.3").common.hash_provider.hash(bytes);
    hash.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// A certificate authority with its private key.
pub struct Authority {
    facts: AuthorityFacts,
    issuer: Issuer<'static, KeyPair>,
}

impl fmt::Debug for Authority {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Authority").field("facts", &self.facts).finish_non_exhaustive()
    }
}

impl Authority {
    /// Reads the certificate and the key in PEM. Fails if the authority is not valid at the time
    /// `now`.
    pub fn read(certificate: &[u8], key: &str, now: WallTime) -> Result<Self, AuthorityError> {
        let facts = AuthorityFacts::read(certificate)?;
        let key = KeyPair::from_pem(key).map_err(|_| AuthorityError::NoKey)?;
        let (_, parsed) = parse_x509_certificate(&facts.certificate)
            .map_err(|_| AuthorityError::NoCertificate)?;
        if parsed.public_key().subject_public_key.data != key.der_bytes() {
            return Err(AuthorityError::WrongKey);
        }
        if now < facts.not_before {
            return Err(AuthorityError::NotYetValid);
        }
        if now >= facts.not_after {
            return Err(AuthorityError::Expired);
        }
        let issuer = Issuer::from_ca_cert_der(&facts.certificate, key).map_err(signing)?;
        Ok(Self { facts, issuer })
    }

    /// Returns the contents of the authority's certificate.
    pub const fn facts(&self) -> &AuthorityFacts {
        &self.facts
    }

    pub(super) fn vouches_for(&self, host: HostName<'_>, now: WallTime) -> bool {
        now < self.facts.not_after && self.facts.constraints.permit(host)
    }

    /// Signs a certificate for `host` and `key`. Returns the certificate and the time at which it
    /// expires.
    pub(super) fn sign(
        &self,
        host: HostName<'_>,
        key: &KeyPair,
        now: WallTime,
    ) -> Result<(Certificate, WallTime), AuthorityError> {
        let end = (now.seconds() + LEAF_VALIDITY.as_secs()).min(self.facts.not_after.seconds());
        let mut parameters = parameters(now, end)?;
        let (name, text) = match host {
            HostName::Name(name) => {
                (SanType::DnsName(name.try_into().map_err(signing)?), name.to_owned())
            }
            HostName::Address(address) => (SanType::IpAddress(address), address.to_string()),
        };
        parameters.subject_alt_names.push(name);
        // If a common name looks like a host, OpenSSL checks it against the authority's name
        // constraints. The substitute text must not look like a host, so it contains spaces.
        let is_name = matches!(host, HostName::Name(_));
        let common =
            if is_name && text.len() <= COMMON_NAME { text } else { "a host behind foxy".into() };
        parameters.distinguished_name.push(DnType::CommonName, common);
        parameters.use_authority_key_identifier_extension = true;
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let certificate = parameters.signed_by(key, &self.issuer).map_err(signing)?;
        Ok((certificate, WallTime::from_seconds(end)))
    }
}

/// Returns the settings that all certificates share: a random serial number, use by servers, and
/// validity until `end` (seconds since the Unix epoch).
fn parameters(now: WallTime, end: u64) -> Result<CertificateParams, AuthorityError> {
    let mut serial = [0; 16];
    let random = provider().secure_random.fill(&mut serial);
    random.map_err(|_| AuthorityError::Signing("no randomness".into()))?;
    // RFC 5280 §4.1.2.2 requires a positive serial number. This line clears the sign bit, and sets
    // the next bit so that the first byte is not zero.
    serial[0] = serial[0] & 0x7f | 0x40;
    let moment = |seconds: u64| {
        let timestamp = i64::try_from(seconds).unwrap_or(i64::MAX);
        OffsetDateTime::from_unix_timestamp(timestamp).map_err(signing)
    };
    let mut parameters = CertificateParams::default();
    parameters.serial_number = Some(SerialNumber::from_slice(&serial));
    parameters.not_before = moment(now.seconds().saturating_sub(BACKDATED.as_secs()))?;
    parameters.not_after = moment(end)?;
    parameters.distinguished_name = DistinguishedName::new();
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Ok(parameters)
}

pub(super) fn signing(error: impl fmt::Display) -> AuthorityError {
    AuthorityError::Signing(error.to_string())
}

#[cfg(test)]
#[path = "authority_tests.rs"]
mod tests;
