//! Tests clients that prove their user with a TLS certificate.

use crate::bench::{TestProxy, proxy_with};
use crate::tls::clients::{certificates, connect_with, get, get_path, proxy};
use foxy_proxy::core::client_certificates::{
    CertificateNeed, CertificateRefusal, ClientAuthorities,
};
use foxy_proxy::core::counters::Counter;
use foxy_proxy::core::rules::RulesInForce;
use foxy_proxy::core::tls::ClientTls;
use foxy_proxy::core::users::{UserBook, token_line};
use foxy_proxy::settings::ProxySettings;
use foxy_rules::operator::{Access, Conditions, Effects, OperatorRule, OperatorRules};
use foxy_testkit::certificates::{TestAuthority, TestCertificate};
use foxy_testkit::http::ok;
use foxy_testkit::origin::TestOrigin;
use foxy_testkit::wait;
use rcgen::DnType;
use rustls::{ClientConfig, HandshakeKind};
use std::io::{Read, Write};
use std::net::IpAddr;
use std::sync::Arc;
use tokio_rustls::TlsConnector;

/// The authority of the proxy's certificate and of the clients' certificates.
struct World {
    authority: TestAuthority,
    tls: ClientTls,
}

impl World {
    fn new(need: CertificateNeed) -> Self {
        let authority = TestAuthority::new();
        let tls = ClientTls::new(certificates(&[&authority.sign(&["a.test"])]));
        tls.ask_clients(Some(trust(&authority, need)));
        Self { authority, tls }
    }

    /// Starts a reverse proxy that refuses the user `ben`.
    fn proxy(&self, origin: &TestOrigin) -> TestProxy {
        proxy(origin, &[], |settings| self.set(settings))
    }

    fn set(&self, settings: &mut ProxySettings) {
        settings.client_tls = Some(self.tls.clone());
        settings.listen_tls = vec![([127, 0, 0, 1], 0).into()];
        settings.rules = RulesInForce::new(without_ben());
    }

    /// Waits until the proxy has noted a refused client.
    fn refused(&self) -> Vec<(IpAddr, CertificateRefusal)> {
        wait::until("a refusal", || {
            let refused = self.tls.take_refused();
            (!refused.is_empty()).then_some(refused)
        })
    }

    fn client(&self, shown: Option<&TestCertificate>) -> Arc<ClientConfig> {
        Arc::new(self.authority.client(shown))
    }
}

fn trust(authority: &TestAuthority, need: CertificateNeed) -> ClientAuthorities {
    ClientAuthorities::read([authority.pem().as_bytes()], need).expect("an authority")
}

fn without_ben() -> OperatorRules {
    let deny = Effects { access: Some(Access::Deny { message: None }), ..Effects::default() };
    let users = vec!["ben".parse().expect("a pattern")];
    let rule = OperatorRule {
        name: "without-ben".into(),
        when: Conditions { users, ..Conditions::default() },
        unless: Vec::new(),
        then: deny,
    };
    OperatorRules::new(vec![rule]).expect("a sound rule")
}

/// Signs a certificate of the user `name` that is valid in the years `from` to `to`.
fn certificate(authority: &TestAuthority, name: &str, (from, to): (i32, i32)) -> TestCertificate {
    authority.sign_with(&[], |parameters| {
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.not_before = rcgen::date_time_ymd(from, 1, 1);
        parameters.not_after = rcgen::date_time_ymd(to, 1, 1);
    })
}

const VALID: (i32, i32) = (2000, 2100);

/// Returns the status of the answer to a request, or the error of the connection.
fn status(proxy: &TestProxy, config: &Arc<ClientConfig>) -> Result<u16, String> {
    let answer = get(&mut connect_with(proxy, config), "a.test").map_err(|it| it.to_string())?;
    Ok(answer[9..12].parse().expect("a status"))
}

#[test]
fn a_certificate_names_the_user_for_rules() {
    let (origin, world) =
        (TestOrigin::start(|_, _| ok("", b"x")), World::new(CertificateNeed::Required));
    let proxy = world.proxy(&origin);
    for (name, expected) in [("ann", 200), ("ben", 403)] {
        let shown = certificate(&world.authority, name, VALID);
        let config = world.client(Some(&shown));
        assert_eq!(status(&proxy, &config), Ok(expected), "{name}");
        let mut client = connect_with(&proxy, &config);
        let answer = get_path(&mut client, "/proxy.pac", "a.test").expect("an answer");
        assert_eq!(answer[9..12].parse(), Ok(expected), "{name} asks the origin, not the proxy");
    }
    assert_eq!(proxy.count(Counter::CertificatesRefused), 0);
}

#[test]
fn other_clients_are_refused_in_the_handshake_with_a_reason() {
    let origin = TestOrigin::start(|_, _| ok("", b"x"));
    let stranger = TestAuthority::new();
    for need in [CertificateNeed::Required, CertificateNeed::Optional] {
        let world = World::new(need);
        let proxy = world.proxy(&origin);
        let shown = |authority, years| Some(certificate(authority, "ann", years));
        let unnamed = world.authority.sign_with(&[], |parameters| {
            parameters.distinguished_name = rcgen::DistinguishedName::new();
        });
        for (shown, alert, reason) in [
            (None, "CertificateRequired", CertificateRefusal::Missing),
            (shown(&stranger, VALID), "UnknownCA", CertificateRefusal::UnknownAuthority),
            (
                shown(&world.authority, (2000, 2001)),
                "CertificateExpired",
                CertificateRefusal::Expired,
            ),
            (shown(&world.authority, (2099, 2100)), "", CertificateRefusal::NotYetValid),
            (Some(unnamed), "", CertificateRefusal::NoName),
        ] {
            let result = status(&proxy, &world.client(shown.as_ref()));
            if reason == CertificateRefusal::Missing && need == CertificateNeed::Optional {
                assert_eq!((result, world.tls.take_refused()), (Ok(200), Vec::new()));
                continue;
            }
            let error = result.expect_err("refused");
            assert!(error.contains(alert), "{need:?}, {reason:?}: {error}");
            assert_eq!(world.refused(), [([127, 0, 0, 1].into(), reason)], "{need:?}");
        }
    }
}

#[test]
fn revoked_certificates_are_refused_also_on_open_connections() {
    let (origin, world) =
        (TestOrigin::start(|_, _| ok("", b"x")), World::new(CertificateNeed::Required));
    let proxy = world.proxy(&origin);
    let [ann, cat] = [7_u64, 8].map(|number| {
        let shown = world.authority.sign_with(&[], |parameters| {
            parameters.distinguished_name.push(DnType::CommonName, "ann");
            parameters.serial_number = Some(number.into());
        });
        world.client(Some(&shown))
    });
    let set = |list: String| {
        let trusted = trust(&world.authority, CertificateNeed::Required);
        let trusted = trusted.without_revoked([list.as_bytes()]).expect("a list");
        world.tls.ask_clients(Some(trusted));
    };
    set(world.authority.revoke(&[], 2100));
    let mut open = connect_with(&proxy, &ann);
    open.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").expect("taken");
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\nx") {
        let mut byte = [0];
        open.read_exact(&mut byte).expect("an answer");
        answer.push(byte[0]);
    }
    set(world.authority.revoke(&[7], 2100));
    let answer = get(&mut open, "a.test").expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 421 "), "{answer}");
    let refused = |config, reason| {
        status(&proxy, config).expect_err("refused");
        assert_eq!(world.refused(), [([127, 0, 0, 1].into(), reason)]);
    };
    refused(&ann, CertificateRefusal::Revoked);
    assert_eq!(status(&proxy, &cat), Ok(200));
    set(world.authority.revoke(&[7], 2001));
    refused(&cat, CertificateRefusal::NoCurrentList);
    set(TestAuthority::new().revoke(&[], 2100));
    status(&proxy, &cat).expect_err("no list of the authority");
}

#[test]
fn a_resumed_session_keeps_its_user_until_the_authorities_change() {
    let (origin, world) =
        (TestOrigin::start(|_, _| ok("", b"x")), World::new(CertificateNeed::Optional));
    let proxy = world.proxy(&origin);
    let config = world.client(Some(&certificate(&world.authority, "ben", VALID)));
    let ask = || {
        let mut client = connect_with(&proxy, &config);
        let answer = get(&mut client, "a.test").expect("an answer");
        (client.conn.handshake_kind(), answer[9..12].to_owned())
    };
    assert_eq!(ask(), (Some(HandshakeKind::Full), "403".to_owned()));
    assert_eq!(ask(), (Some(HandshakeKind::Resumed), "403".to_owned()));
    world.tls.ask_clients(Some(trust(&world.authority, CertificateNeed::Optional)));
    assert_eq!(ask().0, Some(HandshakeKind::Resumed), "the authorities are the same");
    world.tls.ask_clients(Some(trust(&TestAuthority::new(), CertificateNeed::Optional)));
    assert!(get(&mut connect_with(&proxy, &config), "a.test").is_err());
    let expected = [([127, 0, 0, 1].into(), CertificateRefusal::UnknownAuthority)];
    assert_eq!(world.refused(), expected);
}

#[test]
fn new_authorities_hold_for_new_and_open_connections() {
    let (origin, world) =
        (TestOrigin::start(|_, _| ok("", b"x")), World::new(CertificateNeed::Required));
    let proxy = world.proxy(&origin);
    let config = world.client(Some(&certificate(&world.authority, "ann", VALID)));
    let mut open = connect_with(&proxy, &config);
    let mut ask = || {
        open.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").expect("taken");
        let mut answer = Vec::new();
        let mut byte = [0];
        while !answer.ends_with(b"\r\n\r\nx") && open.read(&mut byte).is_ok_and(|read| read > 0) {
            answer.push(byte[0]);
        }
        String::from_utf8(answer).expect("text")
    };
    assert!(ask().starts_with("HTTP/1.1 200 "));
    let new = TestAuthority::new();
    let both = [world.authority.pem(), new.pem()];
    let both =
        ClientAuthorities::read(both.iter().map(String::as_bytes), CertificateNeed::Required);
    world.tls.ask_clients(Some(both.expect("two authorities")));
    assert!(ask().starts_with("HTTP/1.1 200 "), "its authority is still trusted");
    world.tls.ask_clients(Some(trust(&new, CertificateNeed::Required)));
    let refused = ask();
    assert!(refused.starts_with("HTTP/1.1 421 "), "{refused}");
    assert!(refused.contains("\r\nConnection: close\r\n"), "{refused}");
    assert!(status(&proxy, &config).is_err());
    let config = world.client(Some(&certificate(&new, "ann", VALID)));
    assert_eq!(status(&proxy, &config), Ok(200));
}

#[test]
fn an_acme_authority_gets_its_answer_although_clients_must_have_certificates() {
    let (origin, world) =
        (TestOrigin::start(|_, _| ok("", b"x")), World::new(CertificateNeed::Required));
    let proxy = world.proxy(&origin);
    let answer = world.authority.sign(&["a.test"]);
    let key = answer.key.serialize_pem();
    world.tls.answer_challenge("a.test", answer.pem().as_bytes(), key.as_bytes()).expect("usable");
    let mut authority = world.authority.client(None);
    authority.alpn_protocols = vec![b"acme-tls/1".to_vec()];
    let authority = Arc::new(authority);
    let seen = || {
        let mut session = connect_with(&proxy, &authority);
        let closed = session.read(&mut [0]).is_ok_and(|count| count == 0);
        let certificate = session.conn.peer_certificates().map(|chain| chain[0].to_vec());
        (closed, certificate)
    };
    assert_eq!(seen(), (true, Some(answer.certificate.to_vec())));
    let shown = certificate(&world.authority, "ann", VALID);
    assert_eq!(status(&proxy, &world.client(Some(&shown))), Ok(200), "others are served");
    world.tls.end_challenge("a.test");
    assert!(!seen().0);
    assert_eq!(proxy.count(Counter::CertificatesRefused), 0);
}

#[test]
fn an_acme_authority_gets_its_answer_over_http_past_all_refusals() {
    let (origin, world) =
        (TestOrigin::start(|_, _| ok("", b"x")), World::new(CertificateNeed::Required));
    let proxy = proxy(&origin, &[], |settings| {
        world.set(settings);
        settings.allow_client = vec!["10.0.0.0/8".parse().expect("a network")].into();
    });
    let ask = |method: &str, host: &str, token: &str| {
        let path = format!("/.well-known/acme-challenge/{token}");
        let mut client = proxy.connect();
        client.ask(&format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"))
    };
    world.tls.answer_http_challenge("a.test", "tok", "tok.print");
    let answer = ask("GET", "A.test:80", "tok");
    assert_eq!((answer.status, &answer.body[..]), (200, &b"tok.print"[..]), "{answer:?}");
    assert_eq!(answer.cache_status(), "foxy; detail=acme-challenge");
    for (method, host, token) in
        [("GET", "b.test", "tok"), ("GET", "a.test", "toc"), ("POST", "a.test", "tok")]
    {
        assert_eq!(ask(method, host, token).status, 403, "{method} {host} {token}");
    }
    world.tls.end_challenge("a.test");
    assert_eq!(ask("GET", "a.test", "tok").status, 403);
    assert_eq!(origin.requests(), 0);
}

#[tokio::test]
async fn each_request_of_http_2_has_the_user() {
    let (origin, world) =
        (TestOrigin::start(|_, _| ok("", b"x")), World::new(CertificateNeed::Required));
    let proxy = world.proxy(&origin);
    let shown = certificate(&world.authority, "ben", VALID);
    let mut config = world.authority.client(Some(&shown));
    config.alpn_protocols = vec![b"h2".to_vec()];
    let tcp = tokio::net::TcpStream::connect(proxy.proxy.addresses()[1]).await.expect("accepted");
    let name = "a.test".try_into().expect("a name");
    let stream = TlsConnector::from(Arc::new(config)).connect(name, tcp).await;
    let (mut requests, connection) =
        h2::client::handshake(stream.expect("a handshake")).await.expect("HTTP/2");
    let asking = async {
        for _ in 0..2 {
            requests = requests.ready().await.expect("a connection");
            let request = http::Request::get("https://a.test/").body(()).expect("a request");
            let (answer, _) = requests.send_request(request, true).expect("sent");
            assert_eq!(answer.await.expect("an answer").status().as_u16(), 403);
        }
    };
    tokio::select! {
        () = asking => {}
        end = connection => panic!("closed: {end:?}"),
    }
}

#[test]
fn a_forward_proxy_asks_a_client_with_a_certificate_for_no_password() {
    let origin = TestOrigin::start(|_, number| {
        ok("Cache-Control: private, max-age=60\r\n", number.to_string().as_bytes())
    });
    let world = World::new(CertificateNeed::Optional);
    let (_, line) = token_line("cat").expect("a line");
    let book = UserBook::read(&line).expect("sound");
    let proxy = proxy_with(|settings| {
        world.set(settings);
        settings.users = Some(book).into();
    });
    let ask = |name: Option<&str>| {
        let shown = name.map(|name| certificate(&world.authority, name, VALID));
        let mut client = connect_with(&proxy, &world.client(shown.as_ref()));
        let (url, host) = (origin.url("/x"), origin.address);
        write!(client, "GET {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
            .expect("taken");
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("an answer");
        (answer[9..12].to_owned(), answer.chars().last().expect("a body"))
    };
    assert_eq!(ask(None).0, "407");
    assert_eq!(ask(Some("ben")).0, "403");
    assert_eq!(ask(Some("ann")), ("200".to_owned(), '0'));
    assert_eq!(ask(Some("dan")), ("200".to_owned(), '1'), "ann's response is private");
}
