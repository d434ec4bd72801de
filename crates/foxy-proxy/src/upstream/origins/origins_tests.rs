//! Tests which origin receives a request, and the effects of a reload.

use super::*;
use crate::upstream::Scheme;
use crate::upstream::fail_over::Tried;
use crate::upstream::origins::choice::Repeatable;
use crate::upstream::origins::server::{OriginServer, ServerFault};

fn server(port: u16) -> OriginServer {
    OriginServer { scheme: Scheme::Http, host: "127.0.0.1".into(), port }
}

fn group(name: &str, hosts: &[&str], path: &str, ports: &[u16]) -> GroupSettings {
    GroupSettings {
        name: name.into(),
        hosts: hosts.iter().map(|host| host.parse().expect("a host")).collect(),
        path: path.into(),
        servers: ports.iter().map(|port| server(*port)).collect(),
        ..GroupSettings::of_one(server(1))
    }
}

fn origins(all: Vec<GroupSettings>, earlier: &Origins) -> Origins {
    Origins::new(all, earlier, Instant(5), 7)
}

#[test]
fn the_first_origin_with_host_and_path_receives_a_request() {
    let all = vec![
        group("api", &["shop.test"], "/api/", &[1]),
        group("shop", &["shop.test", "*.shop.test"], "", &[2]),
        group("docs", &["docs.test"], "/docs/", &[3]),
    ];
    let origins = origins(all, &Origins::default());
    let name = |key: &str| origins.find(key.as_bytes()).map(|group| group.settings.name.clone());
    for (key, expected) in [
        ("http://shop.test/api/x", Ok("api")),
        ("https://shop.test:8443/api", Ok("shop")),
        ("http://a.shop.test/api/x", Ok("shop")),
        ("http://docs.test/docs/", Ok("docs")),
        ("http://docs.test/", Err(NoOrigin::Path)),
        ("http://other.test/docs/", Err(NoOrigin::Host)),
    ] {
        assert_eq!(name(key), expected.map(str::to_owned), "{key}");
    }
    assert_eq!(origins.usual_authority(), "shop.test");
}

#[test]
fn a_reload_keeps_equal_origins_and_the_state_of_known_servers() {
    let first = origins(
        vec![group("a", &[], "/a", &[1, 2]), group("b", &[], "", &[3])],
        &Origins::default(),
    );
    let begin = |group: &OriginGroup| {
        group.begin(Tried::default(), Repeatable::No, false, Instant(6)).expect("a server")
    };
    let failing = begin(&first.groups[0]);
    first.groups[0].fails(failing, ServerFault::Unreachable, Instant(6));
    begin(&first.groups[1]);
    let second =
        origins(vec![group("b", &[], "", &[3]), group("a", &[], "/a", &[2, 1, 4])], &first);
    assert!(Arc::ptr_eq(&second.groups[0], &first.groups[1]), "b is the same");
    let status = second.groups[1].status(Instant(7));
    let resting: Vec<_> = status.iter().filter(|server| server.rests).collect();
    assert_eq!(resting.len(), 1, "{status:?}");
    assert_eq!(resting[0].server, server(failing as u16 + 1).to_string());
    assert_eq!((resting[0].requests, resting[0].in_flight), (1, 0));
}
