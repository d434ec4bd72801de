//! Gets a certificate from an ACME authority: account, order, challenge and request.

use crate::serve::acme::folder::AcmeFolder;
use crate::serve::acme::http::AcmeHttp;
use crate::settings::Settings;
use foxy_authority::{AuthorityError, acme};
use foxy_base::{WallTime, clock};
use foxy_proxy::core::tls::{CertificateError, ClientCertificates, ClientTls};
use foxy_proxy::upstream::OriginTls;
use instant_acme::{
    Account, AuthorizationStatus, ChallengeHandle, ChallengeType, Error, Identifier, NewAccount,
    NewOrder, Order, OrderStatus, RetryPolicy,
};
use std::fmt;
use std::time::Duration;

/// Longest time for which foxy waits for the result of a challenge, or for a certificate.
const RESULT_TIMEOUT: Duration = Duration::from_secs(120);

/// How foxy proves to an authority that it serves a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProofWay {
    /// A certificate in a TLS handshake (RFC 8737).
    TlsAlpn01,
    /// A text under a path (RFC 8555 §8.3).
    Http01,
}

impl ProofWay {
    pub fn of(settings: &Settings) -> Self {
        if settings.proves_names_over_http() { Self::Http01 } else { Self::TlsAlpn01 }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::TlsAlpn01 => "TLS-ALPN-01",
            Self::Http01 => "HTTP-01",
        }
    }

    const fn port(self) -> u16 {
        match self {
            Self::TlsAlpn01 => 443,
            Self::Http01 => 80,
        }
    }
}

/// The reason why foxy got no certificate.
#[derive(Debug)]
pub enum NoCertificate {
    /// The authority does not answer, or answers with an error.
    Authority(Error),
    /// The authority offers no challenge of this type.
    NoChallenge(ProofWay),
    /// The authority did not find foxy's answer to a challenge of this type. The text is the
    /// authority's.
    Challenge(ProofWay, String),
    /// The private key or the certificate signing request could not be made.
    Request(AuthorityError),
    /// The certificate from the authority does not belong to the key.
    Certificate(CertificateError),
    /// The certificate from the authority is for another name.
    OtherName,
    /// The certificate has expired, or this machine's clock is wrong.
    Expired,
    /// The folder of the ACME account cannot be read or written.
    Folder(String),
}

impl fmt::Display for NoCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Authority(error) => write!(f, "{error}"),
            Self::NoChallenge(way) => {
                write!(f, "the authority offers no {} challenge", way.name())
            }
            Self::Challenge(way, text) => write!(
                f,
                "the authority connected to port {} of the name, and did not get the expected \
                 answer: {text}",
                way.port()
            ),
            Self::Request(error) => write!(f, "{error}"),
            Self::Certificate(error) => write!(f, "the authority's answer is unusable: {error}"),
            Self::OtherName => f.write_str("the authority's certificate is for another name"),
            Self::Expired => f.write_str(
                "the authority's certificate has already expired; check the clock of this machine",
            ),
            Self::Folder(text) => f.write_str(text),
        }
    }
}

impl NoCertificate {
    /// Returns whether the authority does not know the account, so that foxy needs another account.
    pub fn is_unknown_account(&self) -> bool {
        const TYPE: &str = "urn:ietf:params:acme:error:accountDoesNotExist";
        let Self::Authority(Error::Api(problem)) = self else { return false };
        problem.r#type.as_deref() == Some(TYPE)
    }
}

impl From<Error> for NoCertificate {
    fn from(error: Error) -> Self {
        Self::Authority(error)
    }
}

/// Opens the stored account, or creates an account and stores it.
pub async fn account(
    folder: &AcmeFolder,
    (directory, contact): (&str, &[String]),
    tls: &OriginTls,
) -> Result<Account, NoCertificate> {
    let builder = Account::builder_with_http(Box::new(AcmeHttp { tls: tls.clone() }));
    folder.create().map_err(NoCertificate::Folder)?;
    if let Some(credentials) = folder.credentials().map_err(NoCertificate::Folder)? {
        return Ok(builder.from_credentials(credentials).await?);
    }
    let contact: Vec<String> = contact.iter().map(|mail| format!("mailto:{mail}")).collect();
    let contact: Vec<&str> = contact.iter().map(String::as_str).collect();
    let new = NewAccount {
        contact: &contact,
        terms_of_service_agreed: true,
        only_return_existing: false,
    };
    let (account, credentials) = builder.create(&new, directory.to_owned(), None).await?;
    folder.keep_credentials(&credentials).map_err(NoCertificate::Folder)?;
    Ok(account)
}

/// Answers the challenge for a name as long as this value exists.
struct AnsweredChallenge<'a> {
    tls: &'a ClientTls,
    name: &'a str,
}

impl Drop for AnsweredChallenge<'_> {
    fn drop(&mut self) {
        self.tls.end_challenge(self.name);
    }
}

/// Returns a new certificate chain for `name` and its key, in PEM. Meanwhile `tls` answers the
/// authority's challenge.
pub async fn certificate(
    account: &Account,
    name: &str,
    tls: &ClientTls,
    way: ProofWay,
) -> Result<String, NoCertificate> {
    let identifiers = [Identifier::Dns(name.to_owned())];
    let mut order = account.new_order(&NewOrder::new(&identifiers)).await?;
    let policy = RetryPolicy::new().timeout(RESULT_TIMEOUT);
    let answered = AnsweredChallenge { tls, name };
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        if authorization.status == AuthorizationStatus::Valid {
            continue;
        }
        let challenge = authorization.challenge(match way {
            ProofWay::TlsAlpn01 => ChallengeType::TlsAlpn01,
            ProofWay::Http01 => ChallengeType::Http01,
        });
        let mut challenge = challenge.ok_or(NoCertificate::NoChallenge(way))?;
        answer_challenge(name, &challenge, tls, way)?;
        challenge.set_ready().await?;
    }
    let status = order.poll_ready(&policy).await;
    drop(answered);
    if !matches!(status, Ok(OrderStatus::Ready)) {
        return Err(failed_challenge(&mut order, way).await.unwrap_or(match status {
            Ok(status) => NoCertificate::Challenge(way, format!("order {status:?}")),
            Err(error) => NoCertificate::Authority(error),
        }));
    }
    let made = acme::request(name).map_err(NoCertificate::Request)?;
    order.finalize_csr(&made.request).await?;
    let chain = order.poll_certificate(&policy).await?;
    checked(name, chain + "\n" + &made.key, clock::wall())
}

/// Makes `tls` answer a challenge for `name`.
fn answer_challenge(
    name: &str,
    challenge: &ChallengeHandle<'_>,
    tls: &ClientTls,
    way: ProofWay,
) -> Result<(), NoCertificate> {
    let proof = challenge.key_authorization();
    if way == ProofWay::Http01 {
        tls.answer_http_challenge(name, &challenge.token, proof.as_str());
        return Ok(());
    }
    let digest = proof.digest();
    let digest = digest.as_ref().try_into().expect("a SHA-256 hash has 32 bytes");
    let answer = acme::challenge(name, digest).map_err(NoCertificate::Request)?;
    tls.answer_challenge(name, answer.certificate.as_bytes(), answer.key.as_bytes())
        .map_err(NoCertificate::Certificate)
}

/// Returns the certificate chain with its key, if clients of `name` can use it now. Without this
/// check, foxy could replace a good certificate by a useless one, and would ask for another at
/// once.
fn checked(name: &str, chain_and_key: String, now: WallTime) -> Result<String, NoCertificate> {
    let (content, mut trial) = (chain_and_key.as_bytes(), ClientCertificates::default());
    trial.add(content, content).map_err(NoCertificate::Certificate)?;
    if !trial.has(name) {
        return Err(NoCertificate::OtherName);
    }
    let is_valid = acme::validity(content).is_some_and(|validity| now < validity.end);
    if is_valid { Ok(chain_and_key) } else { Err(NoCertificate::Expired) }
}

/// Asks the authority for the reason why a challenge failed.
async fn failed_challenge(order: &mut Order, way: ProofWay) -> Option<NoCertificate> {
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        let state = authorization.refresh().await.ok()?;
        let error = state.challenges.iter().find_map(|challenge| challenge.error.as_ref());
        if let Some(error) = error {
            let detail = error.detail.clone().unwrap_or_else(|| error.to_string());
            return Some(NoCertificate::Challenge(way, detail));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    /// 10 January 2026.
    const NOW: WallTime = WallTime::from_seconds(1_768_003_200);

    /// Returns a certificate for `name` that ends on a day of January 2026, and its key.
    fn made(name: &str, last_day: u8) -> (String, String) {
        let mut parameters = CertificateParams::new([name.to_owned()]).expect("a name");
        parameters.not_before = date_time_ymd(2025, 1, 1);
        parameters.not_after = date_time_ymd(2026, 1, last_day);
        let key = KeyPair::generate().expect("a key");
        (parameters.self_signed(&key).expect("made").pem(), key.serialize_pem())
    }

    #[test]
    fn an_unusable_certificate_replaces_no_other() {
        let check = |(chain, key): (String, String)| checked("a.test", chain + &key, NOW);
        assert!(check(made("a.test", 11)).is_ok());
        assert!(matches!(check(made("a.test", 9)), Err(NoCertificate::Expired)));
        assert!(matches!(check(made("b.test", 11)), Err(NoCertificate::OtherName)));
        let ((chain, key), (_, foreign)) = (made("a.test", 11), made("a.test", 11));
        let with_foreign_key = check((chain + &foreign, key));
        assert!(matches!(with_foreign_key, Err(NoCertificate::Certificate(_))));
    }
}
