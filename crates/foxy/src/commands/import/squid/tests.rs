//! Tests of single Squid lines: each gives the expected parts of the new file and of the report.

use super::super::make_valid;
use super::super::report::grouped;
use super::*;
use std::path::Path;

const PERMITS_MORE: &str = "The original denies or limits more";

/// Imports a Squid configuration, and returns the new file and the report.
fn converted(lines: &str, utc: bool) -> String {
    let mut draft = import(lines, &OriginalFiles::beside(Path::new("")), utc);
    make_valid(&mut draft).expect("valid");
    format!("{}\n{}", draft.text(), grouped(&draft.leftovers))
}

#[track_caller]
fn check(lines: &str, expected: &[&str], absent: &[&str]) {
    let found = converted(lines, false);
    for part in expected {
        assert!(found.contains(part), "no {part}\n{lines}\n{found}");
    }
    for part in absent {
        assert!(!found.contains(part), "{part}\n{lines}\n{found}");
    }
}

#[test]
fn what_squid_denies_is_denied_or_reported() {
    let office = "acl office src 10.0.0.0/8\n";
    let allow = "http_access allow office\n";
    for (lines, expected, absent) in [
        ("acl n dst 10.1.0.0/16\nhttp_access deny n\n", &[PERMITS_MORE][..], &[][..]),
        ("http_access deny to_localhost\n", &["but no network that a"], &[PERMITS_MORE]),
        ("acl n dst 10.1.1.80\nhttp_access allow office n\n", &["Not converted:"], &[PERMITS_MORE]),
        ("if 1 = 2\nhttp_access allow all\nendif\n", &["access = \"allow\""], &["allow all"]),
        ("if ${process_number} = 1\nhttp_access deny office\nendif\n", &[PERMITS_MORE], &[]),
        ("acl g src 10.9.0.0/16\nhttp_reply_access allow !g\n", &[PERMITS_MORE], &[]),
        ("http_reply_access allow all\n", &["foxy refuses no response"], &[PERMITS_MORE]),
        ("acl x url_regex /za{,3}b\nhttp_access deny x\n", &[PERMITS_MORE], &[]),
        ("acl x url_regex /xa{2}?y\nhttp_access deny x\n", &[PERMITS_MORE], &[]),
        ("http_port 3131 require-proxy-header\n", &[PERMITS_MORE], &[]),
        ("acl d dstdomain .a.test\nhttp_access deny d\n", &[PERMITS_MORE, "addresses: "], &[]),
        ("acl d dstdomain -n .a.test\nhttp_access deny d\n", &["a.test"], &[PERMITS_MORE]),
        ("acl d dstdomain .a.test\nhttp_access deny !d\n", &["a.test"], &[PERMITS_MORE]),
        ("acl d dstdomain .a.test\nhttp_access allow !d\n", &[PERMITS_MORE, "addresses: "], &[]),
        ("acl d dstdom_regex -n ^ads\\.\nhttp_access deny d\n", &["?ads\\."], &[PERMITS_MORE]),
        ("acl u urlpath_regex \\.(a|b)$\nhttp_access deny u\n", &["(a|b)$)'"], &[PERMITS_MORE]),
        ("acl p method PURGE\nhttp_access allow office p\n", &["`purge-from`"], &[]),
    ] {
        check(&format!("{office}{lines}{allow}"), expected, absent);
    }
    check(
        "http_port 3128\nacl office src 10.0.0.0/8\n",
        &["name = \"no http_access\"\nthen = { access = \"deny\" }", "denies every request"],
        &["serves clients of all networks"],
    );
}

#[test]
fn lists_about_the_cache_are_converted_or_reported() {
    let bypass = "then = { bypass = true }";
    let store = "then = { store = false }";
    for (lines, expected, absent) in [
        ("cache deny d\n", &["(addresses)", bypass, "a.test"][..], &[PERMITS_MORE][..]),
        ("cache deny e\n", &["\"b.test\" }\nthen = { bypass = true }"], &["(addresses)"]),
        ("cache allow !d\ncache deny all\n", &["(addresses)"], &[PERMITS_MORE]),
        ("store_miss deny e\n", &["b.test\" }\nthen = { store = false }"], &[PERMITS_MORE, bypass]),
        ("store_miss deny d\n", &["(addresses)", store], &[PERMITS_MORE]),
        ("store_miss deny office\n", &[bypass, "also answers these"], &[PERMITS_MORE, store]),
        (
            "store_miss allow e\nstore_miss deny all\n",
            &["unless = { host = \"b.test\" }\nthen = { store = false }"],
            &[PERMITS_MORE],
        ),
        ("store_miss allow e\n", &["unless = { host = \"b.test\" }\nthen"], &[PERMITS_MORE]),
        (
            "store_miss deny type\n",
            &["when = { content-type = \"image/*\" }\nthen = { store = false }"],
            &[PERMITS_MORE],
        ),
        (
            "store_miss allow type\n",
            &["unless = { content-type = \"image/*\" }\nthen = { store = false }"],
            &[PERMITS_MORE],
        ),
        (
            "acl s http_status 404 502-504\nstore_miss deny s\n",
            &["when = { status = [404, 502, 503, 504] }\nthen = { store = false }"],
            &[PERMITS_MORE],
        ),
        (
            "acl s http_status 4xx\nstore_miss deny s\n",
            &[PERMITS_MORE, "is not a status"],
            &[store],
        ),
        ("cache deny type\n", &[PERMITS_MORE], &[bypass]),
        ("store_miss allow all\n", &[], &[PERMITS_MORE, store]),
        ("send_hit deny e\n", &[bypass, "stores none of these"], &[PERMITS_MORE]),
        ("send_hit deny type\n", &[PERMITS_MORE], &[bypass]),
        ("store_miss maybe\n", &[PERMITS_MORE], &[]),
    ] {
        let acls = "acl office src 10.0.0.0/8\nacl d dstdomain .a.test\n\
                    acl e dstdomain -n .b.test\nacl type rep_mime_type ^image/\n\
                    http_access allow office\n";
        check(&format!("{acls}{lines}"), expected, absent);
    }
    let both = "acl e dstdomain -n .b.test\nhttp_access allow localhost\ncache allow all\n\
                send_hit deny e\n";
    let text = converted(both, false);
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part} in {text}"));
    assert!(at("bypass = true") < at("bypass = false"), "{text}");
}

#[test]
fn sizes_of_zero_switch_parts_of_the_cache_off() {
    let disk = "cache_dir ufs /c 100 16 256\n";
    let limited = "cache_dir rock /r 100 max-size=32768\n";
    let no_cache = "name = \"no cache\"\nthen = { bypass = true }";
    let null = "scheme = \"null\"";
    for (lines, expected, absent) in [
        (
            format!("{disk}maximum_object_size 0 KB\n"),
            &[null, "KB: like the"][..],
            &["store = ", no_cache, "no cache_dir"][..],
        ),
        (
            format!("maximum_object_size 0\n{disk}{limited}"),
            &["store = [\"/r-foxy,size=100M,max-object=32768\"]"],
            &[null, no_cache],
        ),
        ("maximum_object_size_in_memory 0 KB\n".into(), &[null, no_cache], &[]),
        ("cache_mem 0 MB\n".into(), &[null, no_cache], &[]),
        ("cache_mem 0\ncache_mem 64 MB\n".into(), &[null], &[no_cache]),
        ("cache_mem 0\nmaximum_object_size_in_memory 8 KB\n".into(), &[null, no_cache], &[]),
        (
            "maximum_object_size_in_memory 0\nmaximum_object_size_in_memory 8 KB\n".into(),
            &[null],
            &[no_cache],
        ),
        (
            format!("{disk}cache_mem 0 MB\n"),
            &["copies of stored responses in memory"],
            &[null, no_cache],
        ),
        (format!("{disk}maximum_object_size 500 bytes\n"), &[null, "no size below 1 KiB"], &[]),
        (format!("{disk}maximum_object_size 4 MB\n"), &["object-limit = \"4M\""], &[null]),
    ] {
        check(&format!("http_access allow localhost\n{lines}"), expected, absent);
    }
}

#[test]
fn lists_of_acls_that_contain_each_other_are_reported() {
    let acls = "acl a any-of b\nacl b any-of a\nhttp_access allow localhost\n";
    for line in ["http_access deny a\n", "cache deny a\n"] {
        check(&format!("{acls}{line}"), &[PERMITS_MORE], &[]);
    }
}

#[test]
fn a_denial_that_foxy_refuses_is_reported_once() {
    for directive in ["http_access", "cache", "send_hit", "store_miss"] {
        let lines = format!("acl p port 99999\nhttp_access allow all\n{directive} deny p\n");
        let mut draft = import(&lines, &OriginalFiles::beside(Path::new("")), false);
        make_valid(&mut draft).expect("valid");
        let of_line = draft.leftovers.iter().filter(|it| it.opens() && it.place.line == 3);
        assert_eq!(of_line.count(), 1, "{directive}\n{:#?}", draft.leftovers);
    }
}

#[test]
fn options_of_listeners_are_converted() {
    check(
        "https_port 3130 cert=/c.pem clientca=/ca.pem crlfile=/ca.crl\nhttps_port 3131 cert=/c.pem\n\
         http_port 3128 require-proxy-header\nacl lb src 10.1.9.250\n\
         proxy_protocol_access allow lb\nhttp_port 3129 odd=1\n",
        &[
            "client-ca = [\"/ca.pem\"]",
            "client-crl = [\"/ca.crl\"]",
            "client-certificates = \"required\"",
            "proxy-protocol-from = [\"10.1.9.250\"]",
            "line 2: https_port 3131 cert=/c.pem: foxy asks for a certificate of /ca.pem",
            "foxy has no option odd",
        ],
        &[],
    );
}

#[test]
fn rules_choose_peers_as_squid_does() {
    let peers = "acl office src 10.0.0.0/8\nacl p dstdomain .partner.test\n\
                 acl l dstdomain .l.test\nacl post method POST\n\
                 cache_peer 10.1.0.3 parent 8080 0 no-query login=a:b name=hq\n\
                 http_access allow office\n";
    let partner = "cache_peer_access hq allow p\ncache_peer_access hq deny all\n";
    let other = "cache_peer 10.1.0.4 parent 8080 0 no-query\n\
                 cache_peer_access 10.1.0.4 deny p\ncache_peer_access 10.1.0.4 allow all\n";
    let deny = "then = { access = \"deny\", message = \"A parent";
    for (lines, expected, absent) in [
        (
            format!("{partner}never_direct allow p\n"),
            vec![
                "parent = [\"http://a:b@10.1.0.3:8080\"]",
                "when = { host = \"partner.test\" }\nthen = { upstream = \"parents\" }",
                "\"\nthen = { upstream = \"direct\" }",
            ],
            vec![deny, "parent-fallback"],
        ),
        (
            format!("{partner}{other}never_direct allow all\n"),
            vec![
                "when = { host = \"partner.test\" }\n\
                 then = { upstream = \"http://10.1.0.3:8080\" }",
                "then = { upstream = \"http://10.1.0.4:8080\" }",
            ],
            vec![deny, "direct\""],
        ),
        (
            format!(
                "{partner}always_direct allow l\nnever_direct deny p\nnever_direct allow all\n"
            ),
            vec![
                "when = { host = \"l.test\" }\nthen = { upstream = \"direct\" }",
                "when = { host = \"partner.test\" }\n\
                 then = { upstream = [\"parents\", \"direct\"] }",
                "unless = { host = [\"l.test\", \"partner.test\"] }\nthen = { access = \"deny\"",
            ],
            vec![],
        ),
        (
            "never_direct allow p\n".into(),
            vec!["parent-fallback = \"direct\"", "then = { upstream = \"parents\" }"],
            vec![deny],
        ),
        (
            "always_direct allow post office\nnever_direct allow all\n".into(),
            vec!["then = { bypass = true, upstream = \"direct\" }"],
            vec!["foxy caches nothing"],
        ),
        (
            "always_direct allow office\n".into(),
            vec!["then = { bypass = true, upstream = \"direct\" }", "foxy caches nothing"],
            vec![],
        ),
        (
            "acl odd maxconn 9\ncache_peer_access hq allow odd\nnever_direct allow all\n".into(),
            vec![deny, "foxy does not use the peers"],
            vec!["parent = ", "parent-credentials-file"],
        ),
    ] {
        check(&format!("{peers}{lines}"), &expected, &absent);
    }
}

#[test]
fn origins_of_several_sites_become_origins_that_rules_choose() {
    let lines = "http_port 80 accel vhost\nacl a dstdomain a.test\nacl b dstdomain b.test\n\
                 cache_peer 10.0.0.1 parent 81 0 originserver name=one\n\
                 cache_peer 10.0.0.2 parent 81 0 originserver name=two\n\
                 cache_peer_access one allow a\ncache_peer_access two allow b\n\
                 http_access allow a\nhttp_access allow b\n";
    check(
        lines,
        &[
            "name = \"one\"\nservers = [\"http://10.0.0.1:81\"]",
            "when = { host = \"=a.test\" }\nthen = { upstream = \"origin:one\" }",
            "when = { host = \"=b.test\" }\nthen = { upstream = \"origin:two\" }",
            "unless = { host = [\"=a.test\", \"=b.test\"] }\nthen = { access = \"deny\"",
        ],
        &[PERMITS_MORE],
    );
}

#[test]
fn users_of_squid_become_users_of_rules() {
    let lines = "auth_param basic program /ncsa /passwd\nauth_param basic casesensitive off\n\
                 acl users proxy_auth REQUIRED\nacl bosses proxy_auth alice car*l\n\
                 acl temps proxy_auth_regex -i ^temp\nacl guests src 10.9.0.0/16\n\
                 http_access allow guests\nhttp_access deny !users\nhttp_access deny temps\n\
                 http_access deny !bosses\nhttp_access allow bosses\n\
                 acl printers src 10.8.0.0/16\nhttp_access allow printers\n";
    check(
        lines,
        &[
            "users-file = \"/etc/foxy/users\"",
            "when = { user = \"(?i)temp*\" }\nthen = { access = \"deny\" }",
            "unless = { user = [\"alice\", 'car\\*l'] }\nthen = { access = \"deny\" }",
            "`foxy user add /etc/foxy/users NAME`",
            "when = { client = \"10.9.0.0/16\" }\nthen = { access = \"allow\", login = false }",
            "line 13: http_access allow printers: foxy asks these clients for credentials",
            "foxy distinguishes upper and lower case",
        ],
        &[PERMITS_MORE],
    );
    let reverse = "cache_peer 10.0.0.1 parent 80 0 originserver\n";
    check(&format!("{lines}{reverse}"), &[PERMITS_MORE], &["users-file = "]);
}

#[test]
fn a_delay_pool_becomes_a_limit_of_each_client() {
    let pool = |class: &str, parameters: &str| {
        format!(
            "acl office src 10.0.0.0/8\nhttp_access allow office\ndelay_pools 1\n\
             delay_class 1 {class}\ndelay_access 1 allow office\ndelay_access 1 deny all\n\
             delay_parameters 1 {parameters}\n"
        )
    };
    let limit = "when = { client = \"10.0.0.0/8\" }\nthen = { bandwidth-limit = \"500000/s\" }";
    check(&pool("2", "-1/-1 500000/1000000"), &[limit], &[PERMITS_MORE]);
    check(&pool("2", "9/9 500000/1000000"), &[limit, PERMITS_MORE], &[]);
    check(&pool("1", "-1/-1"), &[PERMITS_MORE, "`bandwidth-limit`"], &["then = { bandwidth"]);
}

#[test]
fn files_of_squid_stay_its_own() {
    check(
        "cache_dir ufs /data/squid 100 16 256\naccess_log stdio:/data/log/a.log odd !office\n",
        &[
            "store = [\"/data/squid-foxy,size=100M\"]",
            "access-log = \"/data/log/foxy-a.log\"",
            "foxy has no log format odd; foxy logs every request",
        ],
        &[],
    );
}

#[test]
fn hours_that_count_in_utc_are_reported() {
    let lines = "acl t time 08:00-12:00\nhttp_access allow localhost t\n";
    assert!(converted(lines, true).contains("in another time zone they are wrong"));
}
