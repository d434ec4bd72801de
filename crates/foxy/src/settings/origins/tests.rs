//! Tests that origins are read from a file, and that each mistake is reported with its place.

use super::*;
use crate::settings::load;
use foxy_cli::machine::Machine;

fn loaded(content: &str) -> Result<Vec<OriginTable>, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("foxy.toml");
    std::fs::write(&path, content).expect("written");
    let mut loaded = load(Some(&path), None, &machine()).map_err(|all| all.to_string())?;
    assert!(!loaded.show().contains("foxy is a forward proxy"), "{content}");
    std::fs::write(&path, loaded.show()).expect("written");
    let again = load(Some(&path), None, &machine()).map_err(|all| all.to_string())?;
    assert_eq!(again.settings, loaded.settings, "the shown settings give the same");
    Ok(loaded.settings.origins)
}

fn machine() -> Machine {
    Machine { cores: 2, cache_folder: "/c".into(), ..Machine::default() }
}

const SERVER: &str = "servers = \"http://10.0.0.1:8080\"\n";

#[test]
fn each_key_of_the_documentation_is_read() {
    let lines: Vec<_> =
        KEYS.iter().map(|OriginKey(key, example, _)| format!("{key} = {example}")).collect();
    let content = format!("[[origin]]\n{}\n\n[[origin]]\n{SERVER}", lines.join("\n"));
    let origins = loaded(&content).unwrap_or_else(|all| panic!("{all}"));
    let [shop, usual] = &origins[..] else { panic!("{origins:?}") };
    assert_eq!((shop.name.as_str(), usual.name.as_str()), ("shop", "origin-2"));
    assert_eq!((shop.hosts.len(), shop.servers.len(), shop.path.as_str()), (2, 2, "/api/"));
    assert_eq!(shop.probe, Some(("/health".into(), Duration::from_secs(2))));
    assert_eq!(shop.http2, Some(OriginHttp2::Auto));
    assert_eq!(shop.proxy_protocol, Some(HeaderVersion::V2));
    assert_eq!(shop.connect_timeout, Some(Duration::from_secs(5)));
    assert_eq!(shop.head_timeout, Some(Duration::from_secs(30)));
    assert_eq!(shop.server_name.as_deref(), Some("inside.example"));
    assert_eq!(shop.ca, [PathBuf::from("/etc/foxy/inside.pem")]);
    assert!(shop.client_certificate.is_some());
    assert_eq!((usual.http2, &usual.send_host), (None, &SentHost::Kept));
}

#[test]
fn a_mistake_is_reported_with_its_place_and_remedy() {
    let server = |more: &str| format!("[[origin]]\n{SERVER}{more}\n");
    let cases = [
        ("[[origin]]\nname = \"a\"".into(), "foxy.toml:1:1: origin 1: missing field `servers`"),
        (server("host = \"a\""), "foxy.toml:3:1: origin 1: there is no key `host`; did you mean"),
        (
            server("hosts = \"a:80\""),
            "foxy.toml:3:9: origin 1: \"a:80\" is not a host; write a name",
        ),
        (server("path = \"api\""), "\"api\" is not a beginning of a path"),
        (server("path = \"/a?b\""), "\"/a?b\" is not a beginning of a path"),
        (server("probe = \"/a b\""), "\"/a b\" is not a path"),
        (server("probe-interval = \"2s\""), "does nothing without `probe`"),
        (server("probe = \"/\"\nprobe-interval = \"1ms\""), "\"1ms\" is not from 100ms to 1d"),
        (
            server("client-key = \"k\""),
            "`client-certificate` and `client-key` need each other; give both, or remove both",
        ),
        (server("send-host = \"a b\""), "\"a b\" is not a host"),
        (server("server-name = \"*.a\""), "\"*.a\" is not a name of a server"),
        (server("http2 = \"on\""), "unknown variant `on`"),
        ("[[origin]]\nservers = []".into(), "`servers` takes 1 to 64 URLs"),
        ("[[origin]]\nservers = [\"http://a\", \"http://a:80\"]".into(), "names http://a:80 twice"),
        ("[[origin]]\nservers = \"a\"".into(), "does not start with http:// or https://"),
        (
            format!("{0}name = \"a\"\n{0}name = \"a\"\n", server("")),
            "foxy.toml:5:1: origin `a`: another origin has this name; change one",
        ),
    ];
    for (content, expected) in cases {
        let error = loaded(&content).expect_err(&content);
        assert!(error.contains(expected), "{content}: {error}");
    }
}
