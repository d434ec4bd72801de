//! Tests in which order the dialer tries addresses, and which errors it reports.

use super::*;
use crate::upstream::address::destination::DestinationRefusal;
use crate::upstream::address::resolve::{Addresses, LookupLimits, Resolve};
use futures_util::future::{FutureExt, LocalBoxFuture};
use std::cell::RefCell;
use tokio::net::TcpListener;

/// A resolver with prepared answers. It returns its answers in order, and then repeats the last
/// answer.
struct Scripted(RefCell<Vec<Vec<IpAddr>>>);

impl Resolve for Scripted {
    fn resolve(&self, _: &str) -> LocalBoxFuture<'static, Addresses> {
        let mut answers = self.0.borrow_mut();
        let answer = if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() };
        std::future::ready(Ok(Rc::from(answer))).boxed_local()
    }
}

const LIMITS: LookupLimits =
    LookupLimits { timeout: Duration::from_secs(5), most: 8, of_client: 8 };

fn dialer(answers: &[&[&str]], allowed: &[&str]) -> Dialer {
    let answers = answers
        .iter()
        .map(|answer| answer.iter().map(|ip| ip.parse().expect("address")).collect())
        .collect();
    let lookups = Lookups::new(Rc::new(Scripted(RefCell::new(answers))), LIMITS);
    let allowed = allowed.iter().map(|block| block.parse().expect("block")).collect();
    let policy = DestinationPolicy { allowed, ..DestinationPolicy::default() };
    Dialer::new(
        lookups,
        Rc::new(policy),
        OriginTls::default(),
        (Duration::from_secs(5), OriginSource::default()),
    )
}

async fn listening() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback listener");
    let port = listener.local_addr().expect("its address").port();
    (listener, port)
}

fn named(port: u16) -> Origin {
    Origin::new(Scheme::Http, "Rebinding.Example", port, ChosenBy::Client)
}

#[test]
fn families_take_turns_and_six_is_first() {
    let ips =
        |list: &[&str]| list.iter().map(|ip| ip.parse().expect("address")).collect::<Vec<IpAddr>>();
    let order = interleaved(&ips(&["1.1.1.1", "1.1.1.2", "1.1.1.3", "::1", "::2"]));
    assert_eq!(order, ips(&["::1", "1.1.1.1", "::2", "1.1.1.2", "1.1.1.3"]));
}

#[tokio::test]
async fn a_name_that_turns_to_loopback_is_refused_by_the_address_dialled() {
    let (_listener, port) = listening().await;
    let dialer = dialer(&[&["127.0.0.1"], &["10.0.0.1"]], &[]);
    let refused = |reason| Err(ConnectError::Forbidden(reason));
    assert_eq!(
        dialer.dial(&named(port), DialedProtocol::Http1, None, None).await.map(drop),
        refused(DestinationRefusal::Loopback)
    );
    assert_eq!(
        dialer.dial(&named(port), DialedProtocol::Http1, None, None).await.map(drop),
        refused(DestinationRefusal::Private)
    );
}

#[tokio::test]
async fn an_address_of_the_machine_is_left_out_and_where_nobody_can_tell_none_is_dialled() {
    let mut dialer = dialer(&[&["8.8.4.4", "8.8.8.8"]], &[]);
    dialer.is_own = |ip| Ok(ip == IpAddr::from([8, 8, 4, 4]));
    let public = vec![SocketAddr::from(([8, 8, 8, 8], 80))];
    assert_eq!(dialer.addresses(&named(80), None).await, Ok(public));
    dialer.is_own = |_| Ok(true);
    let refused = Err(ConnectError::Forbidden(DestinationRefusal::OwnMachine));
    assert_eq!(dialer.addresses(&named(80), None).await, refused);
    dialer.is_own = |_| Err(io::Error::from_raw_os_error(24));
    assert_eq!(dialer.addresses(&named(80), None).await, Err(ConnectError::OutOfResources));
}

#[tokio::test]
async fn literals_pass_the_same_policy() {
    let (_listener, port) = listening().await;
    let dialer = dialer(&[&["1.1.1.1"]], &[]);
    for host in ["127.0.0.1", "[::ffff:127.0.0.1]", "[::1]", "::1"] {
        let origin = Origin::new(Scheme::Http, host, port, ChosenBy::Client);
        let expected = Err(ConnectError::Forbidden(DestinationRefusal::Loopback));
        assert_eq!(
            dialer.dial(&origin, DialedProtocol::Http1, None, None).await.map(drop),
            expected,
            "{host}"
        );
    }
}

#[tokio::test]
async fn forbidden_addresses_of_a_name_are_left_out_and_others_dialled() {
    let (_listener, port) = listening().await;
    let dialer = dialer(&[&["::1", "10.0.0.1", "127.0.0.1"]], &["127.0.0.0/8"]);
    let dialled = dialer
        .dial(&named(port), DialedProtocol::Http1, None, None)
        .await
        .expect("the allowed address answers");
    assert_eq!(
        dialled.stream.with_socket(TcpStream::peer_addr).expect("its peer").ip(),
        "127.0.0.1".parse::<IpAddr>().expect("address")
    );
    assert!(dialled.stream.with_socket(TcpStream::nodelay).expect("its option"));
}

#[tokio::test]
async fn an_address_that_refuses_gives_way_to_the_next() {
    let (_listener, port) = listening().await;
    let dialer = dialer(&[&["127.0.0.2", "127.0.0.3", "127.0.0.1"]], &["127.0.0.0/8"]);
    let dialled = dialer
        .dial(&named(port), DialedProtocol::Http1, None, None)
        .await
        .expect("the last address answers");
    assert_eq!(
        dialled.stream.with_socket(TcpStream::peer_addr).expect("its peer").ip(),
        "127.0.0.1".parse::<IpAddr>().expect("address")
    );
}

#[tokio::test]
async fn a_port_where_nothing_listens_is_named_refused() {
    let (listener, port) = listening().await;
    drop(listener);
    let dialer = dialer(&[&["127.0.0.1"]], &["127.0.0.0/8"]);
    assert_eq!(
        dialer.dial(&named(port), DialedProtocol::Http1, None, None).await.map(drop),
        Err(ConnectError::ConnectionRefused)
    );
}

#[tokio::test]
async fn a_proxy_that_listens_everywhere_does_not_dial_itself() {
    let (_listener, port) = listening().await;
    let own = vec![SocketAddr::new("0.0.0.0".parse().expect("address"), port)];
    let allowed = vec!["0.0.0.0/0".parse().expect("block")];
    let policy = DestinationPolicy { own, allowed, ..DestinationPolicy::default() };
    let lookups = Lookups::new(Rc::new(Scripted(RefCell::default())), LIMITS);
    let dialer = Dialer::new(
        lookups,
        Rc::new(policy),
        OriginTls::default(),
        (Duration::from_secs(5), OriginSource::default()),
    );
    let origin = Origin::new(Scheme::Http, "127.0.0.1", port, ChosenBy::Client);
    let expected = Err(ConnectError::Forbidden(DestinationRefusal::OwnAddress));
    assert_eq!(dialer.dial(&origin, DialedProtocol::Http1, None, None).await.map(drop), expected);
}

#[test]
fn the_loopback_is_the_machines_own_and_a_documentation_address_is_not() {
    for (address, own) in [("127.0.0.1", true), ("192.0.2.1", false), ("2001:db8::1", false)] {
        assert_eq!(is_own(address.parse().expect(address)).expect("a socket"), own, "{address}");
    }
}
