//! Tests a proxy with users: it serves only users, passes no credentials on, and gives no user the
//! private response of another user.

use crate::bench::{TestProxy, proxy_with};
use crate::intercept_bench::{Bench, HOST, session};
use foxy_base::Random;
use foxy_proxy::core::counters::Counter;
use foxy_proxy::core::rules::RulesInForce;
use foxy_proxy::core::token::Token;
use foxy_proxy::core::users::{UserBook, password_line, token_line};
use foxy_proxy::server::handle::NewSettings;
use foxy_proxy::settings::ProxySettings;
use foxy_rules::operator::{Access, Conditions, Effects, OperatorRule, OperatorRules};
use foxy_testkit::client::Client;
use foxy_testkit::http::{header, ok};
use foxy_testkit::origin::TestOrigin;
use rustls::StreamOwned;

/// The users `ann` and `ben`, with tokens.
struct Users {
    book: UserBook,
    ann: String,
    ben: String,
}

impl Users {
    fn new() -> Self {
        let (ann, first) = token_line("ann").expect("a line");
        let (ben, second) = token_line("ben").expect("a line");
        let book = UserBook::read(&format!("{first}\n{second}")).expect("sound");
        let field = |token| format!("Proxy-Authorization: Bearer {token}\r\n");
        Self { book, ann: field(ann), ben: field(ben) }
    }

    fn proxy(&self, change: impl FnOnce(&mut ProxySettings)) -> TestProxy {
        proxy_with(|settings| {
            settings.users = Some(self.book.clone()).into();
            change(settings);
        })
    }
}

fn user(name: &str) -> Conditions {
    Conditions { users: vec![name.parse().expect("a pattern")], ..Conditions::default() }
}

fn rules(list: Vec<(&str, Conditions, Effects)>) -> OperatorRules {
    let rule = |(name, when, then): (&str, _, _)| OperatorRule {
        name: name.to_owned(),
        when,
        unless: Vec::new(),
        then,
    };
    OperatorRules::new(list.into_iter().map(rule).collect()).expect("sound rules")
}

#[test]
fn a_request_without_credentials_of_a_user_is_challenged() {
    let origin = TestOrigin::start(|_, _| ok("", b"x"));
    let proxy = Users::new().proxy(|_| {});
    let (url, host) = (origin.url("/x"), origin.address);
    for (method, target, lines) in [
        ("GET", &*url, ""),
        ("GET", &*url, "Proxy-Authorization: Bearer wrong\r\n"),
        ("GET", &*url, "Authorization: Basic YW5uOng=\r\n"),
        ("POST", &*url, "Content-Length: 0\r\n"),
        ("CONNECT", "127.0.0.1:443", "Proxy-Authorization: Basic YW5uOg==\r\n"),
        ("OPTIONS", "*", ""),
    ] {
        let request = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{lines}\r\n");
        let answer = proxy.connect().ask(&request);
        let expected = (407, "foxy; detail=credentials-needed");
        assert_eq!((answer.status, answer.cache_status()), expected, "{method} {lines}");
        let challenge = "Basic realm=\"foxy\", charset=\"UTF-8\"";
        assert_eq!(answer.header("proxy-authenticate"), challenge, "{method}");
    }
    assert_eq!((origin.requests(), proxy.count(Counter::CredentialsRefused)), (0, 6));
}

#[test]
fn credentials_of_a_user_are_taken_and_do_not_reach_the_origin() {
    let origin = TestOrigin::start(|_, _| ok("", b"x"));
    let users = Users::new();
    let line = password_line("cat", b"secret").expect("a line");
    let book = UserBook::read(&line).expect("sound");
    let proxy = proxy_with(|settings| settings.users = Some(book).into());
    let basic = "Proxy-Authorization: Basic Y2F0OnNlY3JldA==\r\n";
    for lines in [basic.to_owned(), format!("{basic}Cache-Control: no-store\r\n")] {
        assert_eq!(proxy.get(&origin.url("/x"), &lines).status, 200);
    }
    assert_eq!(proxy.get(&origin.url("/x"), &users.ann).status, 407);
    let requests = origin.heads.lock().expect("not poisoned").clone();
    assert!(requests.iter().all(|head| header(head, "proxy-authorization").is_none()));
}

#[test]
fn a_rule_may_name_users() {
    let origin = TestOrigin::start(|_, _| ok("", b"x"));
    let users = Users::new();
    let allow = Effects { access: Some(Access::Allow), ..Effects::default() };
    let proxy = users.proxy(|settings| {
        settings.rules = RulesInForce::new(rules(vec![("staff", user("a*"), allow)]));
    });
    assert_eq!(proxy.get(&origin.url("/x"), &users.ann).status, 200);
    let refused = proxy.get(&origin.url("/x"), &users.ben);
    assert_eq!(refused.cache_status(), "foxy; detail=not-allowed-by-rule");
}

#[test]
fn a_rule_may_free_requests_from_the_login() {
    let origin = TestOrigin::start(|_, _| ok("", b"x"));
    let users = Users::new();
    let free = Effects { login: Some(false), ..Effects::default() };
    let paths = vec!["/pub/*".parse().expect("a pattern")];
    let public = Conditions { paths, ..Conditions::default() };
    let proxy = users.proxy(|settings| {
        settings.rules = RulesInForce::new(rules(vec![("public", public, free)]));
    });
    let status = |path: &str, lines: &str| proxy.get(&origin.url(path), lines).status;
    assert_eq!((status("/pub/x", ""), status("/x", "")), (200, 407));
    let wrong = "Proxy-Authorization: Bearer wrong\r\n";
    assert_eq!((status("/pub/x", wrong), status("/pub/x", &users.ann)), (407, 200));
}

#[test]
fn the_user_of_an_intercepted_connect_sends_the_requests_inside_until_removed() {
    let users = Users::new();
    let book = users.book.clone();
    let change = |settings: &mut ProxySettings| settings.users = Some(book).into();
    let bench = Bench::with(HOST, &[HOST], HOST, change);
    let authority = bench.authority(HOST);
    let connect =
        |lines: &str| format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{lines}\r\n");
    assert_eq!(bench.proxy.connect().ask(&connect("")).status, 407);
    let mut client = bench.proxy.connect();
    client.send(connect(&users.ann).as_bytes());
    assert_eq!(client.answer(true).status, 200);
    let mut inside = StreamOwned::new(session(bench.ours(), HOST), client.stream);
    let mut status = |path: &str| {
        use std::io::{Read, Write};
        write!(inside, "GET {path} HTTP/1.1\r\nHost: {authority}\r\n\r\n").expect("sent");
        let mut answer = Vec::new();
        while !answer.ends_with(b"\n") && !answer.windows(7).any(|part| part == b"answer ") {
            let mut bytes = [0; 4096];
            let count = inside.read(&mut bytes).expect("an answer");
            answer.extend_from_slice(&bytes[..count]);
        }
        String::from_utf8_lossy(&answer)[9..12].to_owned()
    };
    assert_eq!(status("/x"), "200");
    let nobody = NewSettings { users: Some(UserBook::default()), ..NewSettings::default() };
    bench.proxy.proxy.handle().reload(nobody);
    assert_eq!(status("/y"), "407");
}

#[test]
fn a_purge_needs_its_own_permission_and_no_user() {
    const TOKEN: &str = "0123456789abcdef";
    let origin = TestOrigin::start(|_, _| ok("", b"x"));
    let users = Users::new();
    let proxy = users.proxy(|settings| settings.purge_token = Token::new(TOKEN));
    let purge = |lines: &str| {
        let request = format!("PURGE {} HTTP/1.1\r\nHost: a\r\n{lines}\r\n", origin.url("/x"));
        proxy.connect().ask(&request).status
    };
    assert_eq!(purge(&users.ann), 403);
    assert_eq!(purge(&format!("Proxy-Authorization: Bearer {TOKEN}\r\n")), 200);
}

/// A request of the randomized test: its user, and the header fields on which caching depends.
#[derive(Clone, Debug)]
struct Sent {
    is_ann: bool,
    authorization: &'static str,
    language: &'static str,
    cookie: &'static str,
}

impl Sent {
    fn any(random: &mut Random) -> Self {
        Self {
            is_ann: random.chance(0.5),
            authorization: pick(random, &["", "", "Authorization: Bearer a\r\n", AS_BEN]),
            language: pick(random, &["", "Accept-Language: de\r\n", "Accept-Language: en\r\n"]),
            cookie: pick(random, &["", "Cookie: s=1\r\n", "Cookie: s=2\r\n"]),
        }
    }

    fn field(&self, name: &str) -> &'static str {
        match name {
            "Authorization" => self.authorization,
            "Accept-Language" => self.language,
            "Cookie" => self.cookie,
            _ => "",
        }
    }
}

const AS_BEN: &str = "Authorization: Bearer b\r\n";

fn pick(random: &mut Random, from: &[&'static str]) -> &'static str {
    let count = u64::try_from(from.len()).expect("few");
    from[usize::try_from(random.below(count)).expect("few")]
}

/// Returns true if HTTP permits a cache to answer `second` with the response to `first` (RFC 9111
/// §3, §3.5 and §4.1).
fn may_answer(control: &str, vary: &str, first: &Sent, second: &Sent) -> bool {
    let is_public = ["public", "s-maxage", "must-revalidate"].iter().any(|it| control.contains(it));
    !control.contains("private")
        && !control.contains("no-store")
        && vary != "*"
        && first.field(vary) == second.field(vary)
        && (first.authorization.is_empty() || is_public)
}

#[test]
fn no_user_gets_a_response_that_http_keeps_for_another_request() {
    const CONTROLS: [&str; 8] = [
        "",
        "max-age=60",
        "private, max-age=60",
        "no-store",
        "public, max-age=60",
        "s-maxage=60",
        "max-age=60, must-revalidate",
        "private=\"x\", public",
    ];
    const VARIES: [&str; 5] = ["", "Authorization", "Accept-Language", "Cookie", "*"];
    let origin = TestOrigin::start(|request, _| {
        let lines = header(request, "x-lines").unwrap_or("").replace('|', "\r\n");
        ok(&lines, header(request, "x-number").unwrap_or("").as_bytes())
    });
    let users = Users::new();
    let fresh = Effects { fresh_at_least: Some(3600), ..Effects::default() };
    let deny = Effects { access: Some(Access::Deny { message: None }), ..Effects::default() };
    let denied = Conditions { paths: vec!["/deny*".parse().expect("a pattern")], ..user("ben") };
    let list = vec![("fresh", Conditions::default(), fresh), ("denied", denied, deny)];
    let proxy = users.proxy(|settings| settings.rules = RulesInForce::new(rules(list)));
    let (random, mut shared) = (&mut Random::new(27), 0);
    for case in 0..250 {
        let (control, vary) = (pick(random, &CONTROLS), pick(random, &VARIES));
        let path = pick(random, &["open", "deny"]);
        let mut lines = String::new();
        for (name, value) in [("Cache-Control", control), ("Vary", vary)] {
            if !value.is_empty() {
                lines.push_str(&format!("{name}: {value}|"));
            }
        }
        let all: Vec<Sent> = (0..6).map(|_| Sent::any(random)).collect();
        // Two requests are in progress at a time, so that they may share a fetch.
        let mut clients = [proxy.connect(), proxy.connect()];
        let url = origin.url(&format!("/{path}/{case}"));
        for pair in [0, 2, 4] {
            for (client, number) in clients.iter_mut().zip(pair..) {
                let Sent { is_ann, authorization, language, cookie } = &all[number];
                let proof = if *is_ann { &users.ann } else { &users.ben };
                let fields = [proof, *authorization, *language, *cookie].concat();
                client.send(
                    format!(
                        "GET {url} HTTP/1.1\r\nHost: a\r\n{fields}X-Number: {number}\r\n\
                         X-Lines: {lines}\r\n\r\n"
                    )
                    .as_bytes(),
                );
            }
            for (client, number) in clients.iter_mut().zip(pair..) {
                shared += u32::from(judge(client, number, &all, (path, control, vary)));
            }
        }
    }
    assert!(shared > 100, "only {shared} responses were shared");
}

/// Checks the answer to a request. Returns true if the origin created this answer for another
/// request.
fn judge(
    client: &mut Client,
    number: usize,
    all: &[Sent],
    (path, control, vary): (&str, &str, &str),
) -> bool {
    let answer = client.answer(false);
    let sent = &all[number];
    if path == "deny" && !sent.is_ann {
        assert_eq!(answer.status, 403, "{sent:?}");
        return false;
    }
    assert_eq!(answer.status, 200, "{}", answer.head);
    let made_for: usize = String::from_utf8_lossy(&answer.body).parse().expect("a number");
    if made_for == number {
        return false;
    }
    let first = &all[made_for];
    assert!(
        may_answer(control, vary, first, sent),
        "{control:?}, Vary: {vary:?}: the response to {first:?} answered {sent:?}"
    );
    true
}
