//! Tests of whole configurations: importing each sample in `tests/import/` gives the configuration
//! in its `.toml` file and the report in its `.report` file.

use super::*;
use foxy_base::WallTime;
use foxy_rules::operator::{Access, OperatorRules, RequestFacts};

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import")
}

/// Imports a sample, and makes the result valid.
fn imported(name: &str) -> ImportDraft {
    let path = samples().join(name);
    let content = read(&path).expect("a sample");
    let kind = kind_of(&content, None).expect("a known kind");
    assert!(name.starts_with(kind.name), "{name} looks like {}", kind.name);
    let mut draft = (kind.import)(&content, &OriginalFiles::beside(&path), false);
    make_valid(&mut draft).expect("valid");
    draft
}

/// Returns the rules that the configuration `text` contains. `foxy check` must accept this
/// configuration.
pub fn rules(text: &str) -> OperatorRules {
    let machine = Machine { cores: 1, cache_folder: "/c".into(), ..Machine::default() };
    let loaded = settings::load_text(Path::new("foxy.toml"), text, &machine);
    let loaded = loaded.unwrap_or_else(|complaints| panic!("{complaints}\n{text}"));
    loaded.settings.rules.compiled().expect("sound").clone()
}

#[test]
fn every_sample_gives_the_expected_file_and_report() {
    let entries = std::fs::read_dir(samples()).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let names: Vec<String> = names.map(|name| name.into_string().expect("UTF-8")).collect();
    let mut count = 0;
    for name in names.iter().filter(|name| name.ends_with(".conf") || name.ends_with(".cfg")) {
        let draft = imported(name);
        rules(&whole_text(&draft, Path::new(name)));
        for (end, found) in [("toml", draft.text()), ("report", grouped(&draft.leftovers))] {
            let path = samples().join(name).with_extension(end);
            if std::env::var_os("FOXY_WRITE_SAMPLES").is_some() {
                std::fs::write(&path, &found).expect("written");
            }
            let expected = std::fs::read_to_string(&path).expect("an expected file");
            assert_eq!(found, expected, "{}", path.display());
        }
        count += 1;
    }
    assert!(count >= 6, "{names:?}");
}

#[test]
fn the_rules_of_an_office_decide_as_squid_does() {
    let rules = rules(&imported("squid-office.conf").text());
    let fields: &[(&str, &str)] = &[];
    let allows =
        |client: &str, method: &str, (scheme, host, port): (&str, &str, u16), path: &str| {
            let now = WallTime::from_seconds(12 * 3600);
            let facts =
                RequestFacts::new((scheme, host, port), path.as_bytes(), method, fields, now)
                    .from_client(client.parse().expect("an address"));
            rules.decide(&facts).access() == Some(&Access::Allow)
        };
    let office = "10.20.1.1";
    let server = "10.20.9.15";
    let site = ("http", "a.example", 80);
    let cases = [
        (office, "GET", site, "/", true),
        ("10.21.0.1", "GET", site, "/", false),
        ("2001:db8:20::7", "GET", site, "/", true),
        (office, "GET", ("http", "a.example", 22), "/", false),
        (office, "GET", ("http", "a.example", 1025), "/", true),
        (office, "CONNECT", ("https", "a.example", 8443), "", true),
        (office, "CONNECT", ("https", "a.example", 8080), "", false),
        (office, "GET", ("http", "x.ads.example", 80), "/", false),
        (office, "GET", ("http", "ads.example", 80), "/", false),
        (office, "GET", ("http", "tracker.example", 80), "/", false),
        (office, "GET", ("http", "x.tracker.example", 80), "/", true),
        (office, "GET", ("http", "10.1.2.3", 80), "/", false),
        (office, "GET", ("http", "203.0.113.9", 80), "/", false),
        (office, "GET", site, "/x.ISO?y", false),
        (office, "GET", site, "/x.iso/y", true),
        (office, "GET", ("http", "mirror.example", 80), "/private/x", false),
        (office, "GET", ("http", "a.updates.example", 80), "/x.exe", true),
        (server, "GET", site, "/x.exe", true),
    ];
    for (client, method, url, path, expected) in cases {
        assert_eq!(allows(client, method, url, path), expected, "{client} {method} {url:?} {path}");
    }
}

#[test]
fn an_uncommon_location_of_nginx_is_refused_and_others_keep_their_refusals() {
    let rules = rules(&imported("nginx-shop.conf").text());
    let fields: &[(&str, &str)] = &[];
    let denies = |client: &str, host: &str, path: &str| {
        let url = ("http", host, 80);
        let now = WallTime::from_seconds(0);
        let facts = RequestFacts::new(url, path.as_bytes(), "GET", fields, now)
            .from_client(client.parse().expect("an address"));
        matches!(rules.decide(&facts).access(), Some(Access::Deny { .. }))
    };
    let (inside, outside) = ("10.1.2.3", "192.0.2.1");
    let cases = [
        (inside, "shop.example", "/admin/x", false),
        (outside, "shop.example", "/admin/x", true),
        (outside, "www.shop.example", "/x/../admin/", true),
        (outside, "other.example", "/admin/x", false),
        (inside, "shop.example", "/private/x", true),
        (inside, "shop.example", "/old/x", true),
        (outside, "shop.example", "/", false),
        (outside, "media.example", "/private/x", false),
    ];
    for (client, host, path, expected) in cases {
        assert_eq!(denies(client, host, path), expected, "{client} {host} {path}");
    }
}

#[test]
fn a_condition_that_foxy_lacks_opens_nothing_without_a_warning() {
    let convert = |lines: &str| {
        let content = format!("acl office src 10.0.0.0/8\nacl odd maxconn 9\n{lines}");
        let mut draft = squid::import(&content, &OriginalFiles::beside(Path::new("")), false);
        make_valid(&mut draft).expect("valid");
        let opens = draft.leftovers.iter().filter(|leftover| leftover.opens()).count();
        let rules = rules(&draft.text());
        let names = rules.rules().iter().map(|rule| rule.name.as_str());
        let names: Vec<&str> = names.filter(|name| *name != "cookies").collect();
        (opens, names.join("; "))
    };
    let (opens, rules) = convert("http_access deny odd\nhttp_access allow office\n");
    assert_eq!(opens, 1);
    assert!(rules.contains("line 4: http_access allow office"), "{rules}");
    let (opens, rules) = convert("http_access allow office odd\n");
    assert_eq!(opens, 0);
    assert_eq!(rules, "line 3: http_access allow office odd, if no line matches");
    let (opens, rules) = convert("http_access allow office !odd\nhttp_access deny office\n");
    assert_eq!(opens, 0);
    let last = "line 4: http_access deny office, if no line matches";
    assert_eq!(rules, format!("line 4: http_access deny office; {last}"));
}

#[test]
fn hours_are_converted_if_the_original_uses_utc() {
    let content =
        "acl day time MTWHF 08:00-17:59\nhttp_access deny !day\nhttp_access allow localhost\n";
    let files = OriginalFiles::beside(Path::new(""));
    let text = squid::import(content, &files, true).text();
    assert!(
        text.contains(
            "days = [\"mon\", \"tue\", \"wed\", \"thu\", \"fri\"], hours = \"08:00-18:00\""
        ),
        "{text}"
    );
    let draft = squid::import(content, &files, false);
    assert_eq!(draft.leftovers.iter().filter(|leftover| leftover.opens()).count(), 1);
}

#[test]
fn a_program_in_vcl_is_refused_with_a_pointer_to_the_manual() {
    for content in ["vcl 4.1;\nbackend default { .host = \"a\"; }\n", "sub vcl_recv {\n}\n"] {
        let refused = kind_of(content, None).err().map(|failure| failure.to_string());
        assert!(refused.is_some_and(|text| text.contains("moving.md#from-varnish")), "{content}");
    }
}

#[test]
fn sections_make_a_file_one_of_haproxy() {
    let acls = "  acl a path_beg /a\n".repeat(8);
    let servers = "  server s 10.0.0.1:80\n".repeat(9);
    for (content, name) in [
        (format!("frontend web\n  bind :80\n{acls}  default_backend b\n"), "haproxy"),
        (format!("global\n  daemon\nbackend b\n{servers}"), "haproxy"),
        (format!("{acls}http_access deny a\ncache deny a\n"), "squid"),
        ("server {\n  listen 80;\n  location / {\n  }\n}\n".to_owned(), "nginx"),
    ] {
        assert_eq!(kind_of(&content, None).map(|kind| kind.name).ok(), Some(name), "{content}");
    }
}

#[test]
fn an_unknown_file_needs_the_name_of_its_program() {
    let refused = kind_of("hello world\n", None).err().map(|failure| failure.to_string());
    assert!(refused.is_some_and(|text| text.contains("--from")));
    assert_eq!(kind_of("hello\n", Some("squid")).map(|kind| kind.name).ok(), Some("squid"));
}
