//! Tests defaults, including defaults that depend on the machine. Also tests settings that
//! contradict each other.

use super::*;
use std::path::Path;

fn machine() -> Machine {
    Machine {
        memory: Some(ByteSize(4 << 30)),
        cores: 3,
        cache_folder: "/home/u/.cache/foxy".into(),
        data_folder: "/data".into(),
        ..Machine::default()
    }
}

fn resolved(file: &str) -> Result<Settings, String> {
    let mut written = Written::default();
    crate::settings::file::read(Path::new("f"), file, &mut written)
        .map_err(|all| all.to_string())?;
    complete(&mut written, &machine());
    let settings = Settings::of(&written);
    judge(&settings, &written).map(|()| settings).map_err(|all| all.to_string())
}

#[test]
fn nothing_written_gives_safe_defaults() {
    let settings = resolved("").expect("sound");
    let shown = |list: &[ListenAddress]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(shown(&settings.network.listen), ["127.0.0.1:3128"]);
    assert_eq!(shown(&settings.network.listen_tls), [""; 0]);
    assert_eq!(shown(&settings.network.admin), ["127.0.0.1:3129"]);
    assert_eq!(settings.network.workers, 3);
    assert_eq!(settings.memory.size, ByteSize(512 << 20));
    assert_eq!(settings.disk.store, [StoreChoice::plain("/home/u/.cache/foxy".into())]);
    assert!(settings.access.allow_destination.is_empty());
    assert_eq!(settings.access.connect_ports, [443]);
    assert_eq!((settings.network.origin, settings.disk.size), (None, None));
}

#[test]
fn a_client_may_take_three_quarters_of_the_connections() {
    for (file, share) in [
        ("", 6144),
        ("[limits]\nconnections = 16", 12),
        ("[limits]\nconnections = 1", 1),
        ("[limits]\nconnections = 16\nconnections-per-client = 3", 3),
    ] {
        assert_eq!(resolved(file).expect("sound").limits.connections_per_client, share, "{file}");
    }
}

#[test]
fn memory_stays_within_its_range() {
    for (available, expected) in
        [(Some(1 << 40), 1 << 30), (Some(1 << 20), 16 << 20), (None, 128 << 20)]
    {
        assert_eq!(memory(available.map(ByteSize)), ByteSize(expected));
    }
}

#[test]
fn a_new_store_takes_a_tenth_of_the_free_disk_up_to_ten_gibibytes() {
    assert_eq!(new_store_size(ByteSize(100 << 30)), ByteSize(10 << 30));
    assert_eq!(new_store_size(ByteSize(1 << 40)), ByteSize(10 << 30));
    assert_eq!(new_store_size(ByteSize(105 << 20)), ByteSize(10 << 20));
}

#[test]
fn a_policy_is_accepted_where_a_store_uses_it() {
    for file in [
        "policy = \"gdsf\"\nscheme = \"stream-packetizer\"",
        "policy = \"gdsf\"\nscheme = \"squidl\"",
        "policy = \"gdsf\"\nstore = [\"/a,scheme=coss\", \"/b,scheme=ufs\"]",
        "scheme = \"coss\"",
    ] {
        assert!(resolved(file).is_ok(), "{file}");
    }
}

#[test]
fn a_forward_proxy_beyond_loopback_must_say_who_may_use_it() {
    let refused = resolved("listen = \"[::]:3128\"").expect_err("an open proxy");
    let expected = "f:1:1: other machines can reach [::]:3128, and no setting says which clients \
                    may use foxy; give users-file, or add the flag or the line of the file \
                    with your clients' network:\n  --allow-client 192.168.0.0/16\n  \
                    allow-client = [\"192.168.0.0/16\"]\n";
    assert!(refused.starts_with(expected), "{refused}");
    let tls = "tls-certificate = \"a\"\ntls-key = \"b\"\nlisten-tls = \"192.0.2.1:443\"\n";
    let refused = resolved(tls).expect_err("an open proxy");
    assert!(refused.starts_with("f:3:1: other machines can reach 192.0.2.1:443"), "{refused}");
    let free = "listen = \"[::]:3128\"\nusers-file = \"/u\"\n[[rule]]\nthen = { login = false }\n";
    let refused = resolved(free).expect_err("an open proxy");
    assert!(refused.contains("a rule with `login = false` serves all of them"), "{refused}");
    let named = format!("{free}when = {{ client = \"10.0.0.0/8\" }}");
    for file in [
        &*named,
        "listen = \"127.9.9.9:3128\"",
        "listen = \"[::ffff:127.0.0.1]:3128\"",
        "listen = \"[::]:3128\"\nallow-client = \"192.168.0.0/16\"",
        "listen = \"[::]:3128\"\nusers-file = \"/u\"",
        "listen = \"[::]:3128\"\norigin = \"http://a.test\"",
    ] {
        assert!(resolved(file).is_ok(), "{file}");
    }
}

#[test]
fn contradictions_are_refused_with_their_place() {
    let cases = [
        (
            "admin = \"127.0.0.1:3128\"",
            "f:1:1: `listen` is 127.0.0.1:3128 and `admin` is 127.0.0.1:3128, which overlap",
        ),
        (
            "listen = [\"unix:/a\", \"localhost:3129\"]",
            "f:1:1: `listen` is localhost:3129 and `admin` is 127.0.0.1:3129, which overlap",
        ),
        ("store = [\"/a\", \"/b\", \"/a\"]", "f:1:1: /a is named twice"),
        ("cache-dir = [\"coss /a 100\", \"rock /a 100\"]", "f:1:1: /a is named twice"),
        (
            "size = \"3T\"\nscheme = \"stream-packetizer\"",
            "f:1:1: /home/u/.cache/foxy: a store of stream-packetizer can use at most 2 TiB, not \
             3 TiB",
        ),
        (
            "cache-dir = [\"coss /a 3000000\"]",
            "f:1:1: /a: a store of coss can use at most 2 TiB, not 2.9 TiB",
        ),
        (
            "policy = \"gdsf\"\nscheme = \"coss\"",
            "f:1:1: the scheme coss has its own eviction order; leave `policy` out, or use one of \
             the schemes aufs, ",
        ),
        (
            "high-watermark = 80",
            "f:1:1: `low-watermark` is 90, above `high-watermark`, which is 80",
        ),
        ("listen = \"off\"", "f:1:1: foxy would listen nowhere; give an address in `listen`"),
        ("listen-tls = \"127.0.0.1:443\"", "f:1:1: `listen-tls` needs a certificate"),
        ("client-crl = \"a\"", "f:1:1: `client-crl` lists certificates of `client-ca`; give"),
        ("client-ca = \"a\"", "f:1:1: `client-ca` is for clients of `listen-tls`; give `tls-"),
        (
            "acme.directory = \"https://ca.test/dir\"",
            "f:1:6: `acme.directory` needs a folder for keys and certificates; give `acme.folder`",
        ),
        (
            "acme.folder = \"a\"\nacme.directory = \"https://ca.test/dir\"",
            "f:2:6: `acme.directory` needs host names; list them in `acme.names`",
        ),
        ("acme.ca = \"a\"", "f:1:6: `acme.ca` does nothing without `acme.directory`"),
        ("fleet.node = \"a\"", "f:1:7: `fleet.node` needs `fleet.members`; give it"),
        ("fleet.ca = \"a\"", "f:1:7: `fleet.ca` does nothing without `fleet.node`"),
        ("tls-certificate = \"a\"", "f:1:1: 1 × `tls-certificate` but 0 × `tls-key`; give one"),
        (
            "listen-tls = \"127.0.0.1:3128\"\ntls-certificate = \"a\"\ntls-key = \"b\"",
            "f:1:1: `listen` is 127.0.0.1:3128 and `listen-tls` is 127.0.0.1:3128, which overlap",
        ),
        (
            "size = \"16M\"\nobject-limit = \"17M\"",
            "f:2:1: 17 MiB is more than the store's size of 16 MiB",
        ),
    ];
    for (file, expected) in cases {
        let refused = resolved(file).expect_err(file);
        assert!(refused.starts_with(expected), "{refused}");
    }
}

#[test]
fn users_belong_to_a_forward_proxy_and_rules_that_name_users_need_them() {
    let both = "origin = \"http://a.test\"\nusers-file = \"/u\"";
    let refused = resolved(both).expect_err("a reverse proxy");
    assert!(refused.starts_with("f:2:1: `users-file` is for a forward proxy"), "{refused}");
    let rule = "[[rule]]\nwhen = { user = \"ann\" }\nthen = { access = \"allow\" }\n";
    let refused = resolved(rule).expect_err("no users");
    assert!(refused.starts_with("f:1:1: rule `rule-1`: `user` needs the setting"), "{refused}");
    assert!(resolved(&format!("users-file = \"/u\"\n{rule}")).is_ok());
}

#[test]
fn rules_name_parents_and_origins_that_the_settings_list() {
    let rule = |upstream: &str| format!("[[rule]]\nthen = {{ upstream = \"{upstream}\" }}\n");
    let parents = "parent = [\"http://u:word@a.test:1\", \"http://b.test:1\"]";
    let origins = "[[origin]]\nname = \"app\"\nservers = [\"http://c.test\"]";
    for (settings, upstream, expected) in [
        (parents, "parents", ""),
        (parents, "http://a.test:1", ""),
        (parents, "direct", ""),
        ("", "direct", ""),
        (origins, "origin:app", ""),
        (parents, "http://a.test:2", "`parent` does not list the parent a.test:2"),
        ("", "parents", "`upstream = \"parents\"` needs the setting `parent`"),
        (origins, "origin:ap", "no `[[origin]]` has the name `ap`"),
        (parents, "origin:app", "no `[[origin]]` has the name `app`"),
    ] {
        let result = resolved(&format!("{settings}\n{}", rule(upstream)));
        let message = result.err().unwrap_or_default();
        let message = message.lines().next().unwrap_or_default();
        let found = message.split_once("rule `rule-1`: ").map_or(message, |(_, found)| found);
        assert_eq!(found, expected, "{settings} {upstream}");
    }
}

#[cfg(feature = "fleet")]
#[test]
fn a_fleet_has_this_node_as_a_member() {
    let rest = "fleet.listen = \"127.0.0.1:3130\"\nfleet.certificate = \"c\"\nfleet.key = \"k\"\n\
                fleet.ca = \"ca\"\nfleet.members = [\"a https://10.0.0.1:3130\"]\n";
    assert!(resolved(&format!("{rest}fleet.node = \"a\"")).is_ok());
    let refused = resolved(&format!("{rest}fleet.node = \"b\"")).expect_err("another node");
    let expected = "f:5:7: `fleet.members`: the members do not include this node, `b`";
    assert!(refused.starts_with(expected), "{refused}");
    let refused = resolved("fleet.members = [\"a 10.0.0.1:3130\"]").expect_err("no URL");
    assert!(refused.contains("a node's URL is https://HOST:PORT"), "{refused}");
}
