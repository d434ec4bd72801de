//! Checks the certificates of clients. It uses the authorities that sign them and lists of revoked
//! certificates, and finds the user that a certificate names. It also collects the refused clients.
//! This module reads no files.

use crate::core::tls::{CertificateError, provider};
use crate::core::users::is_name;
use foxy_base::WallTime;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::{CertificateError as Invalid, Error, RootCertStore};
use std::cmp::Reverse;
use std::collections::HashSet;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;
use x509_parser::revocation_list::CertificateRevocationList;

/// Number of messages about refused clients that may wait for a reader. Further messages are
/// dropped.
const MAX_WAITING: usize = 4;
/// Number of reported pairs of a client and a reason that foxy remembers. Beyond this number, foxy
/// forgets all pairs and may report them again.
const MAX_REMEMBERED: usize = 256;

/// Whether clients must present a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateNeed {
    /// Each client must present a certificate.
    Required,
    /// A client may present a certificate. A client without a certificate has no user.
    Optional,
}

/// The authorities that sign certificates of clients, and their lists of revoked certificates.
#[derive(Clone)]
pub struct ClientAuthorities {
    certificates: Vec<CertificateDer<'static>>,
    lists: Vec<CertificateRevocationListDer<'static>>,
    need: CertificateNeed,
    pub(super) verifier: Arc<dyn ClientCertVerifier>,
}

impl fmt::Debug for ClientAuthorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClientAuthorities({}, {:?})", self.certificates.len(), self.need)
    }
}

impl PartialEq for ClientAuthorities {
    fn eq(&self, other: &Self) -> bool {
        (&self.certificates, &self.lists, self.need)
            == (&other.certificates, &other.lists, other.need)
    }
}

impl ClientAuthorities {
    /// Reads the certificates of the authorities. `files` are the contents of files in PEM format.
    /// Each file must contain a certificate.
    ///
    /// # Errors
    /// The position in `files` of the first unusable file, and the reason.
    pub fn read<'a>(
        files: impl IntoIterator<Item = &'a [u8]>,
        need: CertificateNeed,
    ) -> Result<Self, (usize, CertificateError)> {
        let unusable = |error: &dyn fmt::Display| CertificateError::Unusable(error.to_string());
        let (mut roots, mut certificates) = (RootCertStore::empty(), Vec::new());
        for (number, file) in files.into_iter().enumerate() {
            let before = certificates.len();
            for certificate in CertificateDer::pem_slice_iter(file) {
                let certificate = certificate.map_err(|error| {
                    (number, CertificateError::NoCertificate(error.to_string()))
                })?;
                roots.add(certificate.clone()).map_err(|error| (number, unusable(&error)))?;
                certificates.push(certificate);
            }
            if certificates.len() == before {
                let none =
                    CertificateError::NoCertificate("the file contains no certificate".into());
                return Err((number, none));
            }
        }
        let verifier = verifier(&roots.into(), need, &[]);
        let verifier = verifier.map_err(|error| (0, unusable(&error)))?;
        Ok(Self { certificates, lists: Vec::new(), need, verifier })
    }

    /// Refuses the certificates that these lists revoke. Also refuses certificates of authorities
    /// that have no current list. `files` are the contents of files in PEM format. Each file
    /// contains a list.
    ///
    /// # Errors
    /// The position in `files` of the first unusable file, and the reason.
    pub fn without_revoked<'a>(
        mut self,
        files: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Self, (usize, CertificateError)> {
        let unusable = |error: &dyn fmt::Display| CertificateError::NoList(error.to_string());
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(self.certificates.iter().cloned());
        let roots = roots.into();
        for (number, file) in files.into_iter().enumerate() {
            let lists: Result<Vec<_>, _> =
                CertificateRevocationListDer::pem_slice_iter(file).collect();
            let lists = lists.map_err(|error| (number, unusable(&error)))?;
            if lists.is_empty() {
                return Err((number, unusable(&"the file contains no list")));
            }
            verifier(&roots, self.need, &lists).map_err(|error| (number, unusable(&error)))?;
            self.lists.extend(lists);
        }
        // The verifier uses only the first list of an authority, so the newest list must come
        // first.
        self.lists.sort_by_cached_key(|list| Reverse(issued(list)));
        let verifier = verifier(&roots, self.need, &self.lists);
        self.verifier = verifier.map_err(|error| (0, unusable(&error)))?;
        Ok(self)
    }

    /// Returns the user of a client that presented the certificates `chain` at the handshake of its
    /// session. A resumed session has no new handshake, so this function verifies the chain again.
    pub(super) fn user(
        &self,
        chain: &[CertificateDer<'_>],
        is_resumed: bool,
        now: WallTime,
    ) -> Result<Option<Arc<str>>, CertificateRefusal> {
        let Some((own, others)) = chain.split_first() else {
            return match self.need {
                CertificateNeed::Required => Err(CertificateRefusal::Missing),
                CertificateNeed::Optional => Ok(None),
            };
        };
        if is_resumed {
            let now = UnixTime::since_unix_epoch(Duration::from_secs(now.seconds()));
            let verified = self.verifier.verify_client_cert(own, others, now);
            verified.map_err(|error| {
                CertificateRefusal::of(&error).unwrap_or(CertificateRefusal::Unusable)
            })?;
        }
        named_user(own).map(Some).ok_or(CertificateRefusal::NoName)
    }
}

/// Returns the time when an authority issued the list, in seconds since the Unix epoch.
fn issued(list: &[u8]) -> i64 {
    let read = CertificateRevocationList::from_der(list);
    read.map_or(i64::MIN, |(_, list)| list.last_update().timestamp())
}

fn verifier(
    roots: &Arc<RootCertStore>,
    need: CertificateNeed,
    lists: &[CertificateRevocationListDer<'static>],
) -> Result<Arc<dyn ClientCertVerifier>, VerifierBuilderError> {
    let roots = Arc::clone(roots);
    let builder = WebPkiClientVerifier::builder_with_provider(roots, provider())
        .with_crls(lists.iter().cloned())
        .enforce_revocation_expiration();
    match need {
        CertificateNeed::Required => builder.build(),
        CertificateNeed::Optional => builder.allow_unauthenticated().build(),
    }
}

/// Returns the user that a certificate names: the common name of its subject. Without a common
/// name, returns the first DNS name or e-mail address of the subject's alternative names.
fn named_user(certificate: &[u8]) -> Option<Arc<str>> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let mut common = certificate.subject().iter_common_name();
    let name = match (common.next(), common.next()) {
        (Some(name), None) => name.as_str().ok()?,
        (Some(_), Some(_)) => return None,
        (None, _) => {
            let names = &certificate.subject_alternative_name().ok()??.value.general_names;
            names.iter().find_map(|name| match name {
                GeneralName::DNSName(name) | GeneralName::RFC822Name(name) => Some(*name),
                _ => None,
            })?
        }
    };
    is_name(name).then(|| name.into())
}

/// The reason why a client was refused in the TLS handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CertificateRefusal {
    /// The client presented no certificate.
    Missing,
    /// No authority in `client-ca` signed the certificate.
    UnknownAuthority,
    /// The certificate has expired.
    Expired,
    /// The certificate is not valid yet.
    NotYetValid,
    /// A list of `client-crl` revokes the certificate.
    Revoked,
    /// `client-crl` has no current list of an authority of the certificate.
    NoCurrentList,
    /// The certificate names no user.
    NoName,
    /// The certificate cannot be used for another reason.
    Unusable,
}

impl fmt::Display for CertificateRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "the client presented no certificate",
            Self::UnknownAuthority => "no authority in client-ca signed the client's certificate",
            Self::Expired => "the client's certificate has expired",
            Self::NotYetValid => "the client's certificate is not valid yet",
            Self::Revoked => "client-crl revokes the client's certificate",
            Self::NoCurrentList => {
                "client-crl has no current list of the authority of the client's certificate"
            }
            Self::NoName => "the client's certificate names no user",
            Self::Unusable => "the client's certificate is not for TLS clients, or is damaged",
        })
    }
}

impl CertificateRefusal {
    /// Returns the reason behind a failed handshake, if the client's certificate caused it.
    pub(super) fn of(error: &Error) -> Option<Self> {
        match error {
            Error::NoCertificatesPresented => Some(Self::Missing),
            Error::InvalidCertificate(invalid) => Some(match invalid {
                Invalid::UnknownIssuer | Invalid::BadSignature => Self::UnknownAuthority,
                Invalid::Expired | Invalid::ExpiredContext { .. } => Self::Expired,
                Invalid::NotValidYet | Invalid::NotValidYetContext { .. } => Self::NotYetValid,
                Invalid::Revoked => Self::Revoked,
                Invalid::UnknownRevocationStatus
                | Invalid::ExpiredRevocationList
                | Invalid::ExpiredRevocationListContext { .. } => Self::NoCurrentList,
                _ => Self::Unusable,
            }),
            Error::InvalidCertRevocationList(_) => Some(Self::NoCurrentList),
            _ => None,
        }
    }
}

/// Collects the refused clients for messages to the operator. Reports each pair of a client and a
/// reason only once.
#[derive(Debug, Default)]
pub(super) struct RefusedClients(Mutex<NotedClients>);

#[derive(Debug, Default)]
struct NotedClients {
    reported: HashSet<(IpAddr, CertificateRefusal)>,
    waiting: Vec<(IpAddr, CertificateRefusal)>,
}

impl RefusedClients {
    pub(super) fn note(&self, client: IpAddr, reason: CertificateRefusal) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let pair = (client, reason);
        if noted.waiting.len() >= MAX_WAITING || noted.reported.contains(&pair) {
            return;
        }
        if noted.reported.len() >= MAX_REMEMBERED {
            noted.reported.clear();
        }
        noted.reported.insert(pair);
        noted.waiting.push(pair);
    }

    pub(super) fn take(&self) -> Vec<(IpAddr, CertificateRefusal)> {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut noted.waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_testkit::certificates::TestAuthority;
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};
    use rustls::CertRevocationListError;

    fn certificate(common: &[&str], names: Vec<SanType>) -> Vec<u8> {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name = DistinguishedName::new();
        for name in common {
            parameters.distinguished_name.push(DnType::CommonName, *name);
        }
        parameters.subject_alt_names = names;
        let key = KeyPair::generate().expect("a key");
        parameters.self_signed(&key).expect("made").der().to_vec()
    }

    #[test]
    fn the_common_name_or_the_first_other_name_is_the_user() {
        let dns = |name: &str| SanType::DnsName(name.try_into().expect("a name"));
        let mail = |name: &str| SanType::Rfc822Name(name.try_into().expect("a name"));
        let address = || SanType::IpAddress([192, 0, 2, 1].into());
        for (common, names, expected) in [
            (&["ann"][..], vec![dns("other.test")], Some("ann")),
            (&[], vec![address(), mail("ben@a.test"), dns("a.test")], Some("ben@a.test")),
            (&[], vec![dns("a.test"), mail("ben@a.test")], Some("a.test")),
            (&["a:b"], vec![dns("a.test")], None),
            (&[""], vec![dns("a.test")], None),
            (&[], vec![address()], None),
            (&[], vec![], None),
        ] {
            let user = named_user(&certificate(common, names.clone()));
            assert_eq!(user.as_deref(), expected, "{common:?} {names:?}");
        }
        assert_eq!(named_user(b"no certificate"), None);
    }

    #[test]
    fn the_newest_list_of_an_authority_counts_and_must_have_its_signature() {
        let authority = TestAuthority::new();
        let serial = |parameters: &mut CertificateParams| parameters.serial_number = Some(7.into());
        let chain = [authority.sign_with(&[], serial).certificate];
        let now = WallTime(1_700_000_000_000);
        let [old, new] = [(2000, &[][..]), (2001, &[7])]
            .map(|(year, numbers)| authority.revoke_in(year, numbers, 2100));
        for lists in [[&old, &new], [&new, &old]] {
            let trusted =
                ClientAuthorities::read([authority.pem().as_bytes()], CertificateNeed::Required);
            let trusted = trusted.expect("an authority");
            let trusted = trusted.without_revoked(lists.map(|list| list.as_bytes()));
            let user = trusted.expect("lists").user(&chain, true, now);
            assert_eq!(user, Err(CertificateRefusal::Revoked));
        }
        let unsigned = Error::InvalidCertRevocationList(CertRevocationListError::BadSignature);
        assert_eq!(CertificateRefusal::of(&unsigned), Some(CertificateRefusal::NoCurrentList));
    }

    #[test]
    fn each_client_and_reason_is_noted_once_and_a_flood_stays_within_bounds() {
        let refused = RefusedClients::default();
        let client = |number: u8| IpAddr::from([192, 0, 2, number]);
        for _ in 0..2 {
            refused.note(client(1), CertificateRefusal::Missing);
        }
        refused.note(client(1), CertificateRefusal::Expired);
        let pair = |reason| (client(1), reason);
        let expected = [pair(CertificateRefusal::Missing), pair(CertificateRefusal::Expired)];
        assert_eq!(refused.take(), expected);
        (0..200).for_each(|number| refused.note(client(number), CertificateRefusal::NoName));
        assert_eq!(refused.take().len(), MAX_WAITING);
    }
}
