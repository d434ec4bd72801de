//! Tests of the load generator over TLS. The clients connect through a test proxy that opens or
//! refuses tunnels, or directly to an origin.

use foxy_lab::load::options::{LoadOptions, Mode, Protocol, Stop};
use foxy_lab::load::run;
use foxy_lab::wire::tls::Trust;
use foxy_lab::{ErrorCause, LoadReport, Origin, OriginOptions};
use foxy_testkit::tunnel::{OPEN, TunnelProxy};
use foxy_workload::{Model, Workload};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

fn origin(servers: u32) -> Origin {
    let listen = (Ipv4Addr::LOCALHOST, 0).into();
    Origin::start_tls(OriginOptions { listen, threads: 1 }, servers).expect("origin")
}

fn trust(origin: &Origin) -> Option<Trust> {
    let mut trust = Trust::default();
    trust.add_pem(origin.authority().expect("TLS").as_bytes()).expect("an authority");
    Some(trust)
}

fn options(target: SocketAddr, origin: &Origin, requests: u64) -> LoadOptions {
    let mode = Mode::Forward { origin: origin.address().to_string() };
    let workload = Workload::find("zipf").expect("known");
    let (stop, time_limit) = (Stop::Requests(requests), Duration::from_secs(10));
    let tls = trust(origin);
    LoadOptions { tls, clients: 3, stop, time_limit, ..LoadOptions::new(target, mode, workload) }
}

fn counts(report: &LoadReport) -> (u64, u64, u64) {
    (report.answers, report.failed(), report.wrong_bytes)
}

#[test]
fn each_connection_is_a_tunnel_and_every_byte_within_is_right() {
    let (origin, proxy) = (origin(1), TunnelProxy::start(OPEN));
    let (kept, closed) =
        (Protocol::Http11 { persistent: true }, Protocol::Http11 { persistent: false });
    for (protocol, tunnels) in
        [(kept, 3), (closed, 60), (Protocol::Http10 { persistent: false }, 60)]
    {
        let report =
            run(&LoadOptions { protocol, ..options(proxy.address, &origin, 60) }, &mut |_| {})
                .expect("load runs");
        assert_eq!((counts(&report), report.hits), ((60, 0, 0), 0), "{protocol:?}");
        let asked = proxy.take_asked();
        assert_eq!(
            asked,
            vec![format!("CONNECT {} HTTP/1.1", origin.address()); tunnels],
            "{protocol:?}"
        );
    }
}

#[test]
fn a_client_that_asks_another_server_has_another_tunnel() {
    let (origin, proxy) = (origin(2), TunnelProxy::start(OPEN));
    let mut workload = Workload::find("table3").expect("known");
    let Model::Table3(knobs) = &mut workload.model else { panic!("another model") };
    (knobs.servers, knobs.think_time) = (2, Duration::ZERO);
    let options = LoadOptions { workload, clients: 1, ..options(proxy.address, &origin, 40) };
    assert_eq!(counts(&run(&options, &mut |_| {}).expect("load runs")), (40, 0, 0));
    let asked = proxy.take_asked();
    for server in origin.servers() {
        assert!(asked.contains(&format!("CONNECT {server} HTTP/1.1")), "{asked:?}");
    }
}

#[test]
fn without_a_forward_proxy_tls_begins_at_once() {
    let origin = origin(1);
    let mode = Mode::Reverse { host: "localhost".into() };
    let options = LoadOptions { mode, ..options(origin.address(), &origin, 50) };
    assert_eq!(counts(&run(&options, &mut |_| {}).expect("load runs")), (50, 0, 0));
}

#[test]
fn each_obstacle_to_a_tunnel_has_its_own_cause() {
    let secure = origin(1);
    let check = |options: LoadOptions, cause: ErrorCause| {
        let report = run(&LoadOptions { clients: 1, ..options }, &mut |_| {}).expect("load runs");
        assert_eq!((report.answers, report.errors[cause as usize]), (0, 2), "{}", cause.name());
        assert_eq!(report.main_cause(), Some(cause));
    };
    let through = |answer| options(TunnelProxy::start(answer).address, &secure, 2);
    check(through("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"), ErrorCause::Tunnel);
    check(through(""), ErrorCause::Tunnel);
    check(through("SSH-2.0-nobody\r\n\r\n"), ErrorCause::Protocol);
    check(LoadOptions { tls: Some(Trust::default()), ..through(OPEN) }, ErrorCause::Certificate);
    let named = Mode::Reverse { host: "elsewhere.test".into() };
    check(
        LoadOptions { mode: named, ..options(secure.address(), &secure, 2) },
        ErrorCause::Certificate,
    );
    check(LoadOptions { protocol: Protocol::Http2, ..through(OPEN) }, ErrorCause::Handshake);
    let plain =
        Origin::start(OriginOptions { listen: (Ipv4Addr::LOCALHOST, 0).into(), threads: 1 })
            .expect("origin");
    let mode = Mode::Forward { origin: plain.address().to_string() };
    check(LoadOptions { mode, ..through(OPEN) }, ErrorCause::Handshake);
}
