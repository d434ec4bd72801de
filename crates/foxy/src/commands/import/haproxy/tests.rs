//! Tests of single HAProxy sections: each gives the expected parts of the new file and of the
//! report.

use super::super::make_valid;
use super::super::report::grouped;
use super::super::tests::rules;
use super::*;
use foxy_base::WallTime;
use foxy_rules::operator::{Access, RequestFacts};
use std::path::Path;

#[test]
fn certificates_that_all_listeners_with_tls_want_are_asked_for() {
    let required = "bind :443 ssl crt a.pem ca-file ca.pem verify required";
    let optional = "bind :444 ssl crt a.pem ca-file ca.pem verify optional";
    let listed = "bind :446 ssl crt a.pem ca-file ca.pem crl-file a.crl verify required";
    let plain = "bind :80";
    let none = "bind :445 ssl crt a.pem";
    for (lines, expected, opens) in [
        (&[required, plain][..], Some("required"), 0),
        (&[listed][..], Some("required"), 0),
        (&[required, listed][..], None, 2),
        (&[optional][..], Some("optional"), 0),
        (&[required, optional][..], None, 2),
        (&[required, none][..], None, 1),
        (&[none][..], None, 0),
    ] {
        let content = format!("frontend a\n  {}\n", lines.join("\n  "));
        let draft = import(&content, &OriginalFiles::beside(Path::new("a")), true);
        let word = draft.value("client-certificates").and_then(toml::Value::as_str);
        let of = draft.leftovers.iter().filter(|it| it.reason.name() == "permits-more");
        assert_eq!((word, of.count()), (expected, opens), "{lines:?}");
        let has_list = draft.value("client-crl").is_some();
        assert_eq!(has_list, lines == [listed], "{lines:?}");
    }
}

#[test]
fn a_condition_on_the_cache_leaves_the_route_without_a_cache() {
    let used = "http-request cache-use small";
    let stored = "http-response cache-store small";
    for (lines, expected) in [
        ([used, stored].map(str::to_owned), "bypass = false"),
        ([format!("{used} if {{ path_beg /static }}"), stored.into()], "bypass = true"),
        ([used.into(), format!("{stored} unless {{ res.hdr(X-C) a }}")], "bypass = true"),
    ] {
        let content = format!(
            "cache small\n  max-age 60\nfrontend a\n  bind :80\n  default_backend b\n\
             backend b\n  {}\n  server s 10.0.0.1:80\n",
            lines.join("\n  ")
        );
        let draft = import(&content, &OriginalFiles::beside(Path::new("a")), true);
        assert!(draft.text().contains(expected), "{lines:?}: {}", draft.text());
        let is_told = draft.leftovers.iter().any(|it| it.reason.name() == "no-equivalent");
        assert_eq!(is_told, expected == "bypass = true", "{lines:?}");
    }
}

const PERMITS_MORE: &str = "The original denies or limits more";

/// Imports a HAProxy configuration, and returns the new file and the report.
fn converted(content: &str) -> (String, String) {
    let mut draft = import(content, &OriginalFiles::beside(Path::new("")), false);
    make_valid(&mut draft).expect("valid");
    (draft.text(), grouped(&draft.leftovers))
}

/// The answer of a rule that keeps a request from the origins.
#[derive(Debug, PartialEq, Eq)]
enum RuleAnswer {
    Denied,
    Redirected(String),
}

/// Returns how the rules of the converted file answer `GET SCHEME://HOST/PATH` of a client.
fn answer(toml: &str, client: &str, url: &str) -> Option<RuleAnswer> {
    let (scheme, rest) = url.split_once("://").expect("a scheme");
    let (host, path) = rest.split_at(rest.find('/').expect("a path"));
    let url = (scheme, host, if scheme == "https" { 443 } else { 80 });
    let (fields, now): (&[(&str, &str)], _) = (&[], WallTime::from_seconds(0));
    let facts = RequestFacts::new(url, path.as_bytes(), "GET", fields, now)
        .from_client(client.parse().expect("an address"));
    let rules = rules(toml);
    let decision = rules.decide(&facts);
    if matches!(decision.access(), Some(Access::Deny { .. })) {
        return Some(RuleAnswer::Denied);
    }
    let location = decision.redirect()?.location(host, path.as_bytes())?;
    Some(RuleAnswer::Redirected(String::from_utf8(location).expect("ASCII")))
}

fn denies(toml: &str, client: &str, url: &str) -> bool {
    answer(toml, client, url) == Some(RuleAnswer::Denied)
}

const BACKENDS: &str = "backend app\n  server a 10.0.0.1:80\nbackend no\n  http-request deny\n\
                        backend gone\n  errorfile 503 /e\nbackend drop\n  http-request \
                        silent-drop\nbackend secure\n  redirect scheme https\nbackend elsewhere\n  redirect \
                        prefix http://b drop-query\nbackend picky\n  \
                        http-request deny if { path_beg /x }\n  server b 10.0.0.2:80\n\
                        backend spare\n  server c 10.0.0.3:80 backup\n";

/// Lines of a frontend, the texts that the report contains, the URLs that rules deny or redirect,
/// and the URLs that foxy serves.
type RouteCase = (&'static str, Texts, Texts, Texts);
type Texts = &'static [&'static str];

const ROUTES: [RouteCase; 13] = [
    (
        "use_backend spare if { path_beg /a }",
        &["with a difference", "foxy uses no server of spare"],
        &["http://h/a"],
        &["http://h/b"],
    ),
    ("use_backend no if { path_beg /a }", &[], &["http://h/a/x"], &["http://h/b"]),
    (
        "use_backend app if { path_beg /a/b }\nuse_backend no if { path_beg /a }",
        &[],
        &["http://h/a/x"],
        &["http://h/a/b"],
    ),
    (
        "use_backend app unless { path_beg /a }\nuse_backend no if { hdr(host) h }",
        &[],
        &["http://h/a"],
        &["http://h/b", "http://i/a"],
    ),
    (
        "use_backend gone if { hdr(host) old }",
        &["with a difference", "gone has no server"],
        &["http://old/"],
        &["http://h/"],
    ),
    (
        "use_backend drop if !{ src 10.0.0.0/8 } { path_beg /in }",
        &["with a difference", "closes the connection"],
        &["http://h/in"],
        &["http://h/"],
    ),
    ("use_backend secure if !{ ssl_fc }", &[], &["http://h/"], &["https://h/"]),
    (
        "use_backend elsewhere if { path_beg /a }",
        &[PERMITS_MORE, "foxy has no such redirect; these requests go to the next origin"],
        &[],
        &["http://h/a"],
    ),
    ("use_backend no if { rand(2) 1 }", &[PERMITS_MORE, "next origin"], &[], &["http://h/"]),
    ("use_backend picky if { rand(2) 1 }", &[PERMITS_MORE, "next origin"], &[], &["http://h/x"]),
    (
        "http-request redirect scheme https unless { ssl_fc } or { path_beg /acme }",
        &[],
        &["http://h/", "http://h/acmd"],
        &["http://h/acme/", "https://h/"],
    ),
    (
        "http-request redirect location %[path]",
        &[PERMITS_MORE, "foxy has no such redirect; it serves these requests"],
        &[],
        &["http://h/"],
    ),
    (
        "http-request allow if { path_beg /p }\nhttp-request return status 200 if { path_end x }\n\
         redirect prefix http://b if { path_end y }",
        &["no answers of its own"],
        &["http://h/x", "http://h/y"],
        &["http://h/p/x"],
    ),
];

#[test]
fn routes_and_lines_that_refuse_become_rules_or_are_reported() {
    for (lines, told, denied, served) in ROUTES {
        let content = format!("frontend f\n  bind :80\n{lines}\ndefault_backend app\n{BACKENDS}");
        let (toml, report) = converted(&content);
        for text in told {
            assert!(report.contains(text), "no {text}\n{lines}\n{toml}\n{report}");
        }
        let opens = told.contains(&PERMITS_MORE);
        assert_eq!(report.contains(PERMITS_MORE), opens, "{lines}\n{report}");
        for (urls, expected) in [(denied, true), (served, false)] {
            for url in urls {
                let is_answered = answer(&toml, "192.0.2.1", url).is_some();
                assert_eq!(is_answered, expected, "{url}\n{lines}\n{toml}\n{report}");
            }
        }
    }
}

#[test]
fn without_an_origin_every_request_is_denied() {
    let content = format!("frontend f\n  bind :80\n  default_backend no\n{BACKENDS}");
    let (toml, report) = converted(&content);
    assert!(denies(&toml, "192.0.2.1", "http://h/"), "{toml}");
    assert!(report.contains("foxy refuses requests that no origin matches"), "{report}");
    let (toml, _) = converted(&format!("defaults\n  default_backend app\n{content}"));
    assert!(denies(&toml, "192.0.2.1", "http://h/"), "{toml}");
    let other = content.replace("  default_backend no\n", "");
    let (toml, report) = converted(&format!("defaults\n  default_backend app\n{other}"));
    assert!(!denies(&toml, "192.0.2.1", "http://h/"), "{toml}");
    assert!(!report.contains(PERMITS_MORE), "{report}");
    let (_, report) = converted(&format!("defaults d\n  http-request deny\n{content}"));
    assert!(report.contains(PERMITS_MORE), "{report}");
}

#[test]
fn a_lost_site_is_not_called_unneeded() {
    for server in ["server a 10.0.0.1:80 backup", "server-template a 1-3 a.test:80"] {
        let content =
            format!("frontend f\n  bind :80\n  default_backend b\nbackend b\n  {server}\n");
        let (_, report) = converted(&content);
        let (_, missing) = report.split_once("Not converted:").unwrap_or_default();
        let (missing, _) = missing.split_once("Not needed:").unwrap_or((missing, ""));
        assert!(missing.contains("foxy uses no server of b"), "{server}\n{report}");
    }
}

#[test]
fn a_denial_that_foxy_refuses_is_reported_once() {
    let content = format!(
        "frontend f\n  bind :80\n  http-request deny if {{ src odd/99 }}\n  \
         default_backend app\n{BACKENDS}"
    );
    let (toml, report) = converted(&content);
    assert!(report.contains(PERMITS_MORE), "{toml}\n{report}");
    assert_eq!(report.matches("odd/99 }: ").count(), 1, "{toml}\n{report}");
}

#[test]
fn rules_and_origins_with_one_line_get_different_names() {
    let content = "cache c\n  max-age 60\nfrontend f\n  bind :80\n  http-request cache-use c\n  \
                   http-response cache-store c\n  \
                   http-request deny if { path /a } or { path /b }\n  \
                   use_backend one if { hdr(host) a } or { hdr(host) b }\n  default_backend two\n\
                   backend one\n  server s 10.0.0.1:80\nbackend two\n  server t 10.0.0.2:80\n";
    let (toml, report) = converted(content);
    let count = |text: &str| toml.matches(text).count();
    assert_eq!(count("heuristic = "), 3, "{toml}\n{report}");
    assert_eq!((count("[[origin]]"), count("access = \"deny\"")), (3, 2), "{toml}\n{report}");
    assert!(!report.contains("another"), "{report}");
}

#[test]
fn the_rules_of_a_frontend_keep_to_its_scheme() {
    let content = format!(
        "frontend plain\n  bind :80\n  http-request redirect scheme https\n  \
         http-request deny if {{ path /plain }}\nfrontend secure\n  bind :443 ssl crt /c/\n  \
         http-request deny if {{ path /secure }}\n  default_backend app\nlisten stats\n  \
         bind :8404\n  stats enable\n{BACKENDS}"
    );
    let (toml, report) = converted(&content);
    let redirected = |url: &str| Some(RuleAnswer::Redirected(url.to_owned()));
    for (url, expected) in [
        ("http://h/", redirected("https://h/")),
        ("http://h/plain", Some(RuleAnswer::Denied)),
        ("https://h/plain", None),
        ("https://h/secure", Some(RuleAnswer::Denied)),
        ("http://h/secure", redirected("https://h/secure")),
    ] {
        assert_eq!(answer(&toml, "192.0.2.1", url), expected, "{url}\n{toml}\n{report}");
    }
    assert!(!toml.contains("8404"), "{toml}");
    assert!(report.contains("list each certificate of /c/"), "{report}");
}

#[test]
fn a_route_by_the_end_of_the_path_becomes_a_rule_that_chooses_the_origin() {
    let (toml, report) = converted(&format!(
        "frontend f\n  bind :80\n  use_backend app if {{ hdr(host) api }}\n  \
         use_backend picky if {{ path_end .css .js }}\n  \
         use_backend picky if {{ hdr_sub(User-Agent) -i bot }}\n  default_backend app\n{BACKENDS}"
    ));
    let expected = "when = { path = [\"*.css\", \"*.js\"] }\nunless = { host = \"=api\" }\n\
                    then = { upstream = \"origin:line 4: picky\" }";
    assert!(toml.contains(expected), "{toml}\n{report}");
    let expected = "when = { header = \"user-agent: (?i)*bot*\" }";
    assert!(toml.contains(expected), "{toml}\n{report}");
    let expected = "then = { bypass = true, upstream = \"origin:line 5: picky\" }";
    assert!(toml.contains(expected), "{toml}\n{report}");
    assert!(!report.contains("next origin"), "{report}");
}

#[test]
fn lists_in_files_and_methods_of_comparison_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let list = folder.path().join("office.lst");
    std::fs::write(&list, "# office\n192.0.2.0/24\n\n198.51.100.7\n").expect("written");
    let content = format!(
        "frontend f\n  bind :80\n  acl office src -f {} -i\n  acl www hdr_beg(host) -i WWW.\n  \
         http-request deny if !office {{ path -m beg /admin }}\n  http-request deny if www\n  \
         http-request deny if {{ src -f absent.lst }}\n  default_backend app\n{BACKENDS}",
        list.display()
    );
    let (toml, report) = converted(&content);
    for (client, url, expected) in [
        ("192.0.2.1", "http://h/admin/x", false),
        ("198.51.100.7", "http://h/admin/x", false),
        ("203.0.113.1", "http://h/admin/x", true),
        ("192.0.2.1", "http://www.h/", true),
        ("192.0.2.1", "http://h/www.", false),
    ] {
        assert_eq!(denies(&toml, client, url), expected, "{url}\n{toml}\n{report}");
    }
    assert!(report.contains("cannot read the values in absent.lst"), "{report}");
}
