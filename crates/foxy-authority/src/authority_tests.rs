//! Tests that TLS verifiers accept the created certificates, and that the crate refuses unusable
//! input.

use super::*;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{ServerName, UnixTime};
use std::sync::Arc;

const NOW: WallTime = WallTime::from_seconds(1_800_000_000);
const YEAR: Duration = Duration::from_secs(365 * 86_400);

fn made(hosts: &[&str]) -> MadeAuthority {
    let hosts: Vec<_> = hosts.iter().map(|host| host.parse().expect("a host")).collect();
    let name = "foxy on a machine";
    make(&NewAuthority { name, hosts: &hosts, now: NOW, validity: YEAR }).expect("made")
}

fn read(made: &MadeAuthority) -> Result<Authority, AuthorityError> {
    Authority::read(made.certificate.as_bytes(), &made.key, NOW)
}

/// Whether a client that trusts `authority` accepts its certificate for `host`.
fn is_taken(authority: &Authority, host: &str) -> bool {
    let key = KeyPair::generate().expect("a key");
    let name = HostName::parse(host).expect("a host");
    let (certificate, _) = authority.sign(name, &key, NOW).expect("signed");
    let mut roots = RootCertStore::empty();
    roots.add(authority.facts().certificate.clone()).expect("an authority");
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider()).build();
    let name = ServerName::try_from(host.to_owned()).expect("a name");
    let now = UnixTime::since_unix_epoch(Duration::from_secs(NOW.seconds()));
    verifier
        .expect("a verifier")
        .verify_server_cert(certificate.der(), &[], &name, &[], now)
        .is_ok()
}

#[test]
fn verifiers_take_permitted_names_and_no_others() {
    let named = read(&made(&["a.test"])).expect("usable");
    for (host, expected) in
        [("a.test", true), ("b.a.test", true), ("xa.test", false), ("192.0.2.1", false)]
    {
        assert_eq!(is_taken(&named, host), expected, "{host}");
        assert_eq!(
            named.vouches_for(HostName::parse(host).expect("a host"), NOW),
            expected,
            "{host}"
        );
    }
    let numbered = read(&made(&["192.0.2.0/24"])).expect("usable");
    for (host, expected) in
        [("192.0.2.1", true), ("192.0.3.1", false), ("2001:db8::1", false), ("a.test", false)]
    {
        assert_eq!(is_taken(&numbered, host), expected, "{host}");
    }
}

#[test]
fn an_authority_can_sign_for_servers_and_nothing_else() {
    let made = made(&["a.test"]);
    let facts = AuthorityFacts::read(made.certificate.as_bytes()).expect("a certificate");
    let (_, parsed) = parse_x509_certificate(&facts.certificate).expect("a certificate");
    let basic = parsed.basic_constraints().expect("readable").expect("there");
    assert!(basic.critical && basic.value.ca && basic.value.path_len_constraint == Some(0));
    let usage = parsed.key_usage().expect("readable").expect("there");
    assert!(usage.critical && usage.value.key_cert_sign() && !usage.value.digital_signature());
    assert!(parsed.name_constraints().expect("readable").expect("there").critical);
    let extended = parsed.extended_key_usage().expect("readable").expect("there").value;
    assert!(extended.server_auth && !extended.client_auth && !extended.any);
    assert_eq!(facts.not_after.since(NOW), YEAR);
    assert_eq!(NOW.since(facts.not_before), BACKDATED);
    assert_eq!(facts.constraints.permitted(), ["a.test".parse().expect("a host")]);
    assert!(facts.subject.contains("foxy on a machine"), "{}", facts.subject);
}

#[test]
fn a_leaf_is_for_one_host_a_week_and_servers() {
    let authority = read(&made(&["a.test", "192.0.2.0/24"])).expect("usable");
    let key = KeyPair::generate().expect("a key");
    let mut serials = Vec::new();
    for host in ["a.test", "b.a.test", "192.0.2.7"] {
        let name = HostName::parse(host).expect("a host");
        let (certificate, until) = authority.sign(name, &key, NOW).expect("signed");
        let (_, leaf) = parse_x509_certificate(certificate.der()).expect("a certificate");
        assert_eq!(until.since(NOW), LEAF_VALIDITY);
        assert_eq!(seconds(leaf.validity().not_after.timestamp()), until);
        assert_eq!(NOW.since(seconds(leaf.validity().not_before.timestamp())), BACKDATED);
        assert!(!leaf.is_ca());
        let extended = leaf.extended_key_usage().expect("readable").expect("there").value;
        assert!(extended.server_auth && !extended.client_auth && !extended.any);
        let names = leaf.subject_alternative_name().expect("readable").expect("there").value;
        assert_eq!(names.general_names.len(), 1, "{host}");
        serials.push(leaf.raw_serial().to_vec());
    }
    serials.sort();
    serials.dedup();
    assert_eq!(serials.len(), 3, "one key signs for all, so numbers must differ");
}

#[test]
fn nothing_outlives_its_authority() {
    let authority = read(&made(&["a.test"])).expect("usable");
    let end = authority.facts().not_after;
    let late = WallTime::from_seconds(end.seconds() - 60);
    let key = KeyPair::generate().expect("a key");
    let (_, until) = authority.sign(HostName::Name("a.test"), &key, late).expect("signed");
    assert_eq!(until, end);
    assert!(authority.vouches_for(HostName::Name("a.test"), late));
    assert!(!authority.vouches_for(HostName::Name("a.test"), end));
}

#[test]
fn what_cannot_be_used_is_named() {
    let (one, two) = (made(&["a.test"]), made(&["a.test"]));
    let check = |certificate: &str, key: &str, now: WallTime, expected: AuthorityError| {
        let error = Authority::read(certificate.as_bytes(), key, now).expect_err("unusable");
        assert_eq!(error, expected);
    };
    check(&one.certificate, &two.key, NOW, AuthorityError::WrongKey);
    check(&one.key, &one.key, NOW, AuthorityError::NoCertificate);
    check(&one.certificate, &one.certificate, NOW, AuthorityError::NoKey);
    let (early, late) = (NOW.seconds() - 7200, NOW.seconds() + YEAR.as_secs());
    check(&one.certificate, &one.key, WallTime::from_seconds(early), AuthorityError::NotYetValid);
    check(&one.certificate, &one.key, WallTime::from_seconds(late), AuthorityError::Expired);
    let server = rcgen::generate_simple_self_signed(["a.test".to_owned()]).expect("made");
    let key = server.signing_key.serialize_pem();
    check(&server.cert.pem(), &key, NOW, AuthorityError::NoAuthority);
}

#[test]
fn a_long_name_is_cut() {
    let name = "ä".repeat(40);
    let hosts = ["a.test".parse().expect("a host")];
    let made =
        make(&NewAuthority { name: &name, hosts: &hosts, now: NOW, validity: YEAR }).expect("made");
    let facts = AuthorityFacts::read(made.certificate.as_bytes()).expect("a certificate");
    assert!(
        facts.subject.contains(&"ä".repeat(32)) && !facts.subject.contains(&name),
        "{}",
        facts.subject
    );
}
