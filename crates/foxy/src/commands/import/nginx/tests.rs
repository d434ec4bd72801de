//! Tests of single nginx blocks: each gives the expected parts of the new file and of the report.

use super::super::make_valid;
use super::super::report::grouped;
use super::*;
use crate::settings;
use foxy_base::WallTime;
use foxy_cli::machine::Machine;
use foxy_rules::operator::{Access, RequestFacts};
use std::path::Path;

const PERMITS_MORE: &str = "The original denies or limits more";

/// Imports an nginx configuration, and returns the new file and the report.
fn converted(content: &str) -> (String, String) {
    let mut draft = import(content, &OriginalFiles::beside(Path::new("")), false);
    make_valid(&mut draft).expect("valid");
    (draft.text(), grouped(&draft.leftovers))
}

/// Returns a server block with a location `/` that nginx caches.
fn server(lines: &str) -> String {
    format!(
        "proxy_cache_path /c keys_zone=z:1m; limit_req_zone $binary_remote_addr zone=q:1m \
         rate=2r/s;\nserver {{ listen 80; server_name a.test; proxy_cache z; proxy_cache_valid \
         200 10m;\nlocation / {{ proxy_pass http://10.0.0.1; }}\n{lines} }}"
    )
}

/// The answer of the rules to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Denied,
    Redirected(&'static str),
    Bypassed,
    Cached,
}

use Answer::{Bypassed, Cached, Denied, Redirected};

/// Returns how the rules of the converted file answer `METHOD SCHEME://HOST/PATH [FIELD]` of the
/// client 192.0.2.1.
fn answer(toml: &str, request: &str) -> Answer {
    let machine = Machine { cores: 1, cache_folder: "/c".into(), ..Machine::default() };
    let loaded = settings::load_text(Path::new("foxy.toml"), toml, &machine);
    let loaded = loaded.unwrap_or_else(|complaints| panic!("{complaints}\n{toml}"));
    let rules = loaded.settings.rules.compiled().expect("sound").clone();
    let mut words = request.splitn(3, ' ');
    let (method, url) = (words.next().expect("a method"), words.next().expect("a URL"));
    let field = words.next().and_then(|field| field.split_once(": "));
    let fields: Vec<(&str, &str)> = field.into_iter().collect();
    let (scheme, rest) = url.split_once("://").expect("a scheme");
    let (host, path) = rest.split_at(rest.find('/').expect("a path"));
    let url = (scheme, host, if scheme == "https" { 443 } else { 80 });
    let now = WallTime::from_seconds(0);
    let facts = RequestFacts::new(url, path.as_bytes(), method, fields.as_slice(), now)
        .from_client("192.0.2.1".parse().expect("an address"));
    let decision = rules.decide(&facts);
    match decision.access() {
        Some(Access::Deny { .. }) => Denied,
        _ if decision.redirect().is_some() => {
            let to = decision.redirect().and_then(|to| to.location(host, path.as_bytes()));
            Redirected(String::from_utf8(to.expect("a URL")).expect("ASCII").leak())
        }
        _ if decision.bypasses() => Bypassed,
        _ => Cached,
    }
}

#[track_caller]
fn check(content: &str, cases: &[(&str, Answer)]) {
    let (toml, report) = converted(content);
    for (request, expected) in cases {
        assert_eq!(answer(&toml, request), *expected, "{request}\n{content}\n{toml}\n{report}");
    }
}

#[test]
fn a_location_keeps_its_refusals_and_exceptions_from_the_cache() {
    let app = "proxy_pass http://10.0.0.1;";
    for (location, cases) in [
        ("/adm/ { deny all; }", &[("/adm/x", Denied), ("/adm", Denied), ("/x", Cached)][..]),
        ("/f/ { root /tmp; allow 10.0.0.0/8; deny all; }", &[("/f/x", Denied)]),
        ("/f/ { root /tmp; }", &[("/f/x", Denied), ("/", Cached)]),
        ("/int/ { internal; APP }", &[("/int/x", Denied)]),
        ("/m/ { return 302 /q; }", &[("/m/x", Redirected("/q"))]),
        ("/m/ { return https://$server_name/; }", &[("/m/x", Redirected("https://a.test/"))]),
        ("/m/ { return 301 https://b.test$uri; }", &[("/m/x", Denied)]),
        ("/m/ { return 200 x; }", &[("/m/x", Denied)]),
        ("/m/ { rewrite ^ /q permanent; }", &[("/m/x?y", Redirected("/q?y"))]),
        ("/m/ { rewrite ^ /q? permanent; }", &[("/m/x?y", Redirected("/q"))]),
        (
            "/m/ { rewrite ^/(.*)$ https://b.test/$1 redirect; }",
            &[("/m/x?y", Redirected("https://b.test/m/x?y"))],
        ),
        ("~ [0-9]x$ { return 301 https://b.test/; }", &[("/1x", Denied), ("/x", Cached)]),
        ("/p/ { allow 10.0.0.0/8; deny all; APP }", &[("/p/", Denied), ("/p", Denied)]),
        ("~ ^/(account|cart) { proxy_cache off; APP }", &[("/cart/x", Bypassed), ("/x", Cached)]),
        ("= /me { proxy_cache off; APP }", &[("/me", Bypassed), ("/me2", Cached)]),
        ("=/me { proxy_cache off; APP }", &[("/me", Bypassed)]),
        ("~ ^/priv { proxy_no_cache 1; APP }", &[("/priv", Bypassed)]),
        ("/s { set $skip 1; proxy_no_cache $skip; APP }", &[("/s", Bypassed)]),
        (r"~ \.(bak|sql)$ { deny all; }", &[("/x.sql", Denied), ("/x.sql?y", Denied)]),
        (r"~* \.BAK$ { deny all; }", &[("/x.bak", Denied), ("/x.bakx", Cached)]),
        ("= /z { return 403; }", &[("/z", Denied), ("/z/", Cached)]),
        ("~ ^/l { limit_except GET { deny all; } APP }", &[("/l", Cached)]),
        (
            "/o { proxy_pass http://10.0.0.2; } location ~ x$ { APP }",
            &[("/ox", Cached), ("/x", Cached)],
        ),
        (
            "/o { proxy_pass http://10.0.0.2; } location ~ [0-9]x$ { APP }",
            &[("/o1x", Denied), ("/1x", Cached)],
        ),
        ("/d/ { deny all; APP } location ~ x$ { APP }", &[("/d/x", Cached), ("/d/", Denied)]),
        ("^~ /d/ { deny all; APP } location ~ x$ { APP }", &[("/d/x", Denied)]),
        ("= /e { proxy_pass http://10.0.0.2; }", &[("/e", Cached)]),
        ("~ /e[0-9] { proxy_pass http://10.0.0.2; }", &[("/e1", Denied), ("/e", Cached)]),
    ] {
        let content = server(&format!("location {}", location.replace("APP", app)));
        let urls: Vec<_> =
            cases.iter().map(|(path, to)| (format!("GET http://a.test{path}"), *to)).collect();
        let cases: Vec<_> = urls.iter().map(|(request, to)| (request.as_str(), *to)).collect();
        check(&content, &cases);
    }
    let rewritten = "rewrite ^/old/(.*)$ /new/$1 last; rewrite ^/m/ http://b.test/ permanent; \
                     rewrite /\\d+$ /n break; location /new/ { deny all; } location /k/ { rewrite \
                     ^/k/a /b break; proxy_pass http://10.0.0.1; }";
    check(
        &server(rewritten),
        &[
            ("GET http://a.test/old/x", Denied),
            ("GET http://a.test/m/", Denied),
            ("GET http://a.test/y/12", Denied),
            ("GET http://a.test/k/ab", Denied),
            ("GET http://a.test/k/", Cached),
            ("GET http://a.test/b/old/x", Cached),
        ],
    );
    let limited =
        server("location ~ ^/l { limit_except GET { deny all; } proxy_pass http://10.0.0.1; }");
    check(&limited, &[("DELETE http://a.test/l", Denied), ("DELETE http://a.test/", Cached)]);
    let cookie = server("proxy_no_cache $cookie_session;");
    check(&cookie, &[("GET http://a.test/ Cookie: SESSION=1", Bypassed)]);
    check(&cookie, &[("GET http://a.test/ Upgrade: WebSocket", Denied)]);
    let socket = server(
        "location /ws { proxy_set_header Upgrade $http_upgrade; proxy_pass http://10.0.0.1; }",
    );
    check(&socket, &[("GET http://a.test/ws Upgrade: websocket", Cached)]);
}

#[test]
fn a_server_that_refuses_does_not_fall_through_to_the_default() {
    let content = "server { listen 80 default_server; server_name www.test; \
                   location / { proxy_pass http://10.0.0.1; } }\n\
                   server { listen 80; server_name old.test; return 403; }\n\
                   server { listen 80; server_name .c.test; location / { deny all; } }\n\
                   server { listen 80; server_name d.test; return 301 https://www.test/; }\n\
                   server { listen 80; server_name ~^admin\\.; deny all; }\n\
                   server { listen 80; server_name h.*; deny all; }\n\
                   server { listen 80; server_name g.test; root /tmp; location /s/ { deny all; } \
                   location /p/ { proxy_pass http://10.0.0.1; } }\n";
    let hosts = [
        ("www.test/", Bypassed),
        ("unknown.test/", Bypassed),
        ("old.test/", Denied),
        ("x.c.test/", Denied),
        ("d.test/x", Redirected("https://www.test/")),
        ("admin.test/", Denied),
        ("h.org/", Denied),
        ("g.test/s/", Denied),
        ("g.test/x", Denied),
        ("g.test/p/", Bypassed),
    ];
    let urls: Vec<_> = hosts.iter().map(|(url, to)| (format!("GET http://{url}"), *to)).collect();
    let cases: Vec<_> = urls.iter().map(|(request, to)| (request.as_str(), *to)).collect();
    check(content, &cases);
    assert!(!converted(content).1.contains(PERMITS_MORE));
    let alone =
        "server { listen 80; server_name ~^a\\.; location / { proxy_pass http://10.0.0.1; } }";
    check(alone, &[("GET http://a.test/", Bypassed)]);
}

#[test]
fn a_host_is_served_only_over_its_schemes() {
    let site = "ssl_certificate /c; ssl_certificate_key /k; \
                location / { proxy_pass http://10.0.0.1; }";
    let redirect =
        "server { listen 80; server_name a.test; return 301 https://$host$request_uri; }";
    let secure = format!("server {{ listen 443 ssl; server_name a.test; {site} }}");
    check(
        &format!("{redirect}\n{secure}"),
        &[
            ("GET http://a.test/x?y", Redirected("https://a.test/x?y")),
            ("GET https://a.test/", Bypassed),
        ],
    );
    let plain =
        "server { listen 80; server_name b.test; location / { proxy_pass http://10.0.0.2; } }";
    check(
        &format!("{plain}\n{secure}"),
        &[
            ("GET http://b.test/", Bypassed),
            ("GET http://a.test/", Denied),
            ("GET https://a.test/", Bypassed),
        ],
    );
    let other = plain.replace("b.test", "a.test");
    let (toml, _) = converted(&format!("{secure}\n{other}"));
    assert_eq!(answer(&toml, "GET http://a.test/"), Denied, "{toml}");
    let both = |name: &str| {
        format!(
            "server {{ listen 127.0.0.1:81; listen 127.0.0.1:444 ssl; server_name {name}; {site} }}"
        )
    };
    let (_, report) = converted(&format!("{}\n{}", both("a.test"), both("b.test")));
    assert!(!report.contains(PERMITS_MORE), "{report}");
    let (_, report) = converted(&format!("{}\n{plain}", both("a.test")));
    assert!(report.contains("also at 0.0.0.0:80"), "{report}");
}

/// Lines of a server, texts that the result contains, and texts that it does not contain.
const LINES: [(&str, &[&str], &[&str]); 19] = [
    (
        "rewrite ^/a /b last; rewrite ^/c /d redirect;",
        &["Not converted", "write `rewrite` of a rule", "write `redirect` of a rule"],
        &[PERMITS_MORE],
    ),
    ("rewrite ^/(?!a) /b last;", &[PERMITS_MORE, "gets the old path"], &[]),
    (
        "location /b { limit_rate 50k; proxy_pass http://10.0.0.1; }",
        &["then = { bandwidth-limit = \"50K/s\" }"],
        &[PERMITS_MORE],
    ),
    (
        "location ~ ^/b { limit_req zone=q burst=3; proxy_pass http://10.0.0.1; }",
        &["then = { rate-limit = \"2/s\" }", "no `burst`"],
        &[PERMITS_MORE],
    ),
    (
        "limit_req zone=q; location /b { proxy_pass http://10.0.0.1; }",
        &[PERMITS_MORE, "foxy counts the requests of 2 rules separately"],
        &[],
    ),
    (
        "location ~ \\.png$ { proxy_pass http://10.0.0.2; }",
        &[
            "servers = \"http://10.0.0.2\"",
            "when = { path = \"*.png\" }\nthen = { upstream = 'origin:line 4:  ~ \\.png$' }",
        ],
        &["is not converted"],
    ),
    (
        "proxy_pass_header Server;",
        &["response-header-remove = [\"X-Accel-Buffering\", "],
        &["\"Server\""],
    ),
    (
        "proxy_set_header X-Remote-User $remote_user; proxy_set_header X-Real-IP $remote_addr;",
        &["request-header-remove = [\"X-Remote-User\", \"X-Real-IP\"]"],
        &[],
    ),
    ("proxy_set_header X-A $http_x_a;", &[], &["request-header-remove"]),
    ("proxy_hide_header Set-Cookie;", &[PERMITS_MORE], &[]),
    (
        "proxy_cache off; proxy_hide_header Set-Cookie;",
        &["response-header-remove = [\"Set-Cookie\"]"],
        &[PERMITS_MORE],
    ),
    (
        "set_real_ip_from 10.0.0.0/8; real_ip_header X-Forwarded-For; deny 6.6.6.6; allow all;",
        &["forwarded-from = [\"10.0.0.0/8\"]", PERMITS_MORE],
        &[],
    ),
    (
        "set_real_ip_from 10.0.0.0/8; real_ip_header X-Forwarded-For;",
        &["forwarded-from = [\"10.0.0.0/8\"]"],
        &[PERMITS_MORE],
    ),
    (
        "set_real_ip_from 10.0.0.0/8; real_ip_header CF-Connecting-IP; deny 6.6.6.6; allow all;",
        &[PERMITS_MORE],
        &["forwarded-from = "],
    ),
    (
        "set_real_ip_from 10.0.0.0/8; real_ip_header proxy_protocol;",
        &["proxy-protocol-from = [\"10.0.0.0/8\"]"],
        &[PERMITS_MORE],
    ),
    (
        "proxy_cache_use_stale updating error; proxy_cache_background_update on;",
        &["`stale-while-revalidate` to the rule"],
        &["stale-while-revalidate =", "stale-if-error = \"10m\","],
    ),
    (
        "gzip on; gzip_min_length 512; gzip_types text/css;",
        &["compress = [\"gzip\"]", "compress-types = [\"text/html\", \"text/css\"]", "\"512\""],
        &[],
    ),
    ("", &["X-Accel-Expires", "store = [\"/c-foxy\"]", "field Location"], &[]),
    (
        r"location ~ /\.(?!well-known) { deny all; }",
        &[PERMITS_MORE, "foxy does not have this expression"],
        &[],
    ),
];

#[test]
fn lines_become_settings_or_are_reported() {
    for (lines, expected, absent) in LINES {
        let (toml, report) = converted(&server(lines));
        let found = format!("{toml}\n{report}");
        for part in expected {
            assert!(found.contains(part), "no {part}\n{lines}\n{found}");
        }
        for part in absent {
            assert!(!found.contains(part), "{part}\n{lines}\n{found}");
        }
    }
}

#[test]
fn lines_outside_of_a_server_convert_or_are_reported() {
    let backup = "upstream u { server 10.0.0.1; server 10.0.0.2 backup; }\nserver { listen 80; \
                  location / { proxy_pass http://u; } }";
    assert!(converted(backup).1.starts_with("To do:\n"), "{}", converted(backup).1);
    let quiet = |log: &str| converted(&format!("access_log off;\n{}", server(log))).0;
    assert!(quiet("").contains("access-log = \"off\""), "{}", quiet(""));
    let one = quiet("access_log /l combined;");
    assert!(one.contains("access-log = \"/"), "{one}");
    let list = "set_real_ip_from 10.0.0.0/8; real_ip_header X-Forwarded-For;";
    let outer = format!("{list}\n{}", server(""));
    assert!(converted(&outer).0.contains("forwarded-from"));
}

#[test]
fn times_add_their_parts() {
    for (text, expected) in [
        ("1h30m", Some("90m")),
        ("1h 30m", Some("90m")),
        ("30", Some("30s")),
        ("1d12", Some("86412s")),
        ("2w", Some("14d")),
        ("1M", Some("30d")),
        ("500ms", Some("500ms")),
        ("1x", None),
        ("", None),
        ("99999999999999999999", None),
    ] {
        assert_eq!(nginx_time(text).as_deref(), expected, "{text}");
    }
}
