//! Tests that each origin of a reverse proxy has its own TLS settings.

use super::bench::{group, serving};
use foxy_proxy::upstream::{Authorities, GroupSettings, OriginTls, OwnCertificate, Scheme};
use foxy_testkit::certificates::{TestAuthority, TestCertificate};
use foxy_testkit::http::ok;
use foxy_testkit::origin::TestOrigin;
use rustls::crypto::aws_lc_rs;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::sync::Arc;

fn trusting(authority: &TestAuthority) -> Authorities {
    let mut trusted = Authorities::none();
    trusted.add_pem(authority.pem().as_bytes()).expect("a certificate");
    trusted
}

/// TLS settings of a server that accepts only clients with a certificate that `clients` signed.
fn demanding(own: &TestCertificate, clients: &TestAuthority) -> Arc<ServerConfig> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(clients.certificate()).expect("an authority");
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the usual versions")
        .with_client_cert_verifier(verifier.build().expect("a verifier"))
        .with_single_cert(vec![own.certificate.clone()], own.private_key());
    Arc::new(config.expect("the key fits"))
}

#[test]
fn an_origin_gets_its_own_certificate_and_no_other_origin_uses_its_connections() {
    let (authority, clients) = (TestAuthority::new(), TestAuthority::new());
    let config = demanding(&authority.sign(&["inside.test"]), &clients);
    let origin = TestOrigin::start_tls(config, |_, _| ok("Cache-Control: no-store\r\n", b"secret"));
    let own = clients.sign(&["foxy.test"]);
    let key = own.key.serialize_pem();
    let own = OwnCertificate::read(own.pem().as_bytes(), key.as_bytes()).expect("a certificate");
    let with = OriginTls::presenting(own, trusting(&authority)).expect("usable");
    let at = |path: &str, tls| {
        let mut settings = GroupSettings {
            path: path.into(),
            tls: Some(tls),
            server_name: Some("inside.test".into()),
            ..group(path, &[origin.address])
        };
        settings.servers[0].scheme = Scheme::Https;
        settings
    };
    let proxy =
        serving(vec![at("/own", with), at("/none", OriginTls::trusting(trusting(&authority)))]);
    let get =
        |path: &str| proxy.connect().ask(&format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n"));
    assert_eq!(get("/own").body, b"secret");
    assert_ne!(get("/none").status, 200, "it presents no certificate");
    assert_eq!(get("/own").body, b"secret");
    assert_eq!(origin.requests(), 2);
}
