//! Tests the parsing of the version texts that proxies print. Also tests the folders and files in
//! the plans for starting proxies.

use super::*;
use foxy_authority::MadeCertificate;

#[test]
fn versions_are_found_in_what_each_program_says() {
    for (text, version) in [
        ("foxy 0.1.0\n", "0.1.0"),
        ("Squid Cache: Version 5.7\nService Name: squid\n", "5.7"),
        ("nginx version: nginx/1.22.1\n", "1.22.1"),
        ("varnishd (varnish-7.1.1 revision 7cee1c5)\n", "7.1.1"),
        ("Traffic Server 9.2.5+ds Mar  5 2025 12:14:31 reproducible.build\n", "9.2.5"),
        ("Server version: Apache/2.4.71 (Debian)\n", "2.4.71"),
        ("who knows", ""),
    ] {
        assert_eq!(version_in(text), version, "{text}");
    }
}

#[test]
fn a_proxy_that_is_not_installed_says_how_to_get_it() {
    let peer = Peer { program: Some("no-such-proxy"), ..PEERS[1] };
    let text = peer.installed().expect_err("not there");
    assert_eq!(text, "not installed; `apt-get install squid` installs no-such-proxy");
}

fn described(folder: &str, beside: &[&str]) -> Description {
    Description {
        folder: folder.into(),
        beside: beside.iter().map(PathBuf::from).collect(),
        listen: "127.0.0.1:20001".parse().expect("an address"),
        origin: "127.0.0.1:20002".parse().expect("an address"),
        papers: None,
        disk: ByteSize(256 << 20),
        memory: ByteSize(64 << 20),
        holding: Holding::Disk,
        store: None,
        cores: 2,
    }
}

#[test]
fn every_plan_names_its_listener_its_origin_and_its_own_folder() {
    let description = described("/somewhere/of-its-own", &[]);
    for peer in PEERS {
        let plan = (peer.plan)(&description);
        let files = plan.files.iter().map(|(_, text)| text.as_str());
        let text: String = files.chain(plan.serve.iter().map(String::as_str)).collect();
        for wanted in ["20001", "20002", "/somewhere/of-its-own"] {
            assert!(text.contains(wanted), "{}: no {wanted} in {text}", peer.name);
        }
    }
}

#[test]
fn who_can_have_several_disks_names_the_cache_on_each_and_gives_it_its_part() {
    let description = described("/one/proxy", &["/two/proxy"]);
    for peer in PEERS.into_iter().filter(|peer| peer.disks == Disks::Several) {
        let plan = (peer.plan)(&description);
        let files = plan.files.iter().map(|(_, text)| text.as_str());
        let text: Vec<&str> = files.chain(plan.serve.iter().map(String::as_str)).collect();
        let text = text.join(" ");
        for wanted in ["/one/proxy/cache", "/two/proxy/cache"] {
            assert!(text.contains(wanted), "{}: no {wanted} in {text}", peer.name);
        }
        let whole = [description.disk.0.to_string(), "256m".into(), " 256 ".into()];
        assert!(!whole.iter().any(|size| text.contains(size.as_str())), "{}: {text}", peer.name);
        assert!(
            text.contains("134217728") || text.contains("128m") || text.contains(" 128 "),
            "{text}"
        );
    }
}

fn text_of(plan: &Plan) -> String {
    let files = plan.files.iter().map(|(_, text)| text.as_str());
    files.chain(plan.serve.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
}

fn secured() -> Description {
    let own = MadeCertificate { certificate: "a certificate".into(), key: "a secret".into() };
    let papers = Some(Papers { own, authority: "an authority".into() });
    Description { papers, ..described("/somewhere/of-its-own", &[]) }
}

#[test]
fn who_ends_tls_names_certificate_key_and_authority_and_speaks_tls_with_its_origin() {
    for peer in PEERS.into_iter().filter(|peer| peer.ends != Ends::Nothing) {
        let text = text_of(&(peer.plan)(&secured()));
        for name in ["certificate.pem", "key.pem", "authority.pem"] {
            let wanted = format!("/somewhere/of-its-own/{name}");
            assert!(text.contains(&wanted), "{}: no {wanted} in {text}", peer.name);
        }
        let origin = [
            "https://127.0.0.1:20002",
            "https://localhost:20002",
            "https://origin;",
            "originserver tls ",
        ];
        assert!(origin.iter().any(|origin| text.contains(origin)), "{}: {text}", peer.name);
        assert!(!text.contains("http://"), "{}: {text}", peer.name);
    }
}

#[test]
fn who_ends_tls_verifies_its_origin_or_says_that_it_does_not() {
    let verifying = [
        "--origin-ca",
        "proxy_ssl_verify on",
        "verify.server.policy STRING ENFORCED",
        "SSLProxyVerify require",
    ];
    for peer in PEERS.into_iter().filter(|peer| peer.ends != Ends::Nothing) {
        let plan = (peer.plan)(&secured());
        let (text, notes) = (text_of(&plan), plan.notes.join("; "));
        let verifies = verifying.iter().any(|verifies| text.contains(verifies));
        assert_ne!(
            verifies,
            notes.contains("does not verify its origin"),
            "{}: {text} {notes}",
            peer.name
        );
    }
}

#[test]
fn no_plan_has_a_secret_in_it_as_plans_go_into_records() {
    for peer in PEERS {
        let text = text_of(&(peer.plan)(&secured()));
        assert!(!text.contains("a secret"), "{}: {text}", peer.name);
    }
}

#[test]
fn a_proxy_can_be_named_with_the_kind_of_its_disk_cache() {
    let found = |text| Peer::with_store(text).map(|(peer, store)| (peer.name, store));
    assert_eq!(found("squid"), Ok(("squid", None)));
    assert_eq!(found("squid:diskd"), Ok(("squid", Some("diskd"))));
    assert_eq!(found("foxy:coss"), Ok(("foxy", Some("coss"))));
    for text in ["squid:coss", "nginx:ufs", "no-such-proxy", "squid:"] {
        assert!(found(text).is_err(), "{text}");
    }
}

#[test]
fn a_named_kind_of_disk_cache_is_in_the_plan_and_a_small_cache_has_few_folders() {
    let text = |disk, store| {
        let store = Some(store);
        text_of(&squid::plan(&Description { disk: ByteSize(disk), store, ..described("/a", &[]) }))
    };
    assert!(text(256 << 20, "ufs").contains("cache_dir ufs /a/cache 256 16 256"));
    assert!(text(30 << 20, "diskd").contains("cache_dir diskd /a/cache 30 16 16"));
    assert!(text(30 << 20, "rock").contains("cache_dir rock /a/cache 30\n"));
    assert!(!text(30 << 20, "none").contains("cache_dir"));
}

#[test]
fn each_squid_of_a_machine_has_a_service_name_of_its_own() {
    let arguments = |listen: &str| {
        let listen = listen.parse().expect("an address");
        let plan = squid::plan(&Description { listen, ..described("/a", &[]) });
        (plan.prepare.unwrap_or_default().join(" "), plan.serve.join(" "))
    };
    let (prepare, serve) = arguments("127.0.0.1:20001");
    assert!(prepare.contains("-n foxy20001 ") && serve.contains("-n foxy20001 "), "{serve}");
    assert!(arguments("127.0.0.1:20003").1.contains("-n foxy20003 "));
}
