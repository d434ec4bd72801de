//! How hosts are read, and how lookups are shared and bounded.

use super::*;
use std::cell::Cell;
use std::net::Ipv4Addr;
use tokio::sync::Notify;

#[test]
fn hosts_are_addresses_names_or_neither() {
    let v4 = |a, b, c, d| Host::Address(Ipv4Addr::new(a, b, c, d).into());
    let cases = [
        ("127.0.0.1", v4(127, 0, 0, 1)),
        ("[::1]", Host::Address(Ipv6Addr::LOCALHOST.into())),
        ("::1", Host::Address(Ipv6Addr::LOCALHOST.into())),
        ("[::ffff:10.0.0.1]", Host::Address("::ffff:10.0.0.1".parse().expect("address"))),
        ("example.com", Host::Name("example.com")),
        ("example.com.", Host::Name("example.com.")),
        ("localhost", Host::Name("localhost")),
        ("1.2.3.4.example", Host::Name("1.2.3.4.example")),
        ("2130706433", Host::Impossible),
        ("0x7f000001", Host::Impossible),
        ("0x7f.1", Host::Impossible),
        ("127.1", Host::Impossible),
        ("127.0.0.01", Host::Impossible),
        ("127.0.0.0x1", Host::Impossible),
        ("127.0.0.1.", Host::Impossible),
        ("example.0X", Host::Impossible),
        ("[::1", Host::Impossible),
        ("", Host::Impossible),
        (".", Host::Impossible),
    ];
    for (host, expected) in cases {
        assert_eq!(read_host(host), expected, "{host}");
    }
}

/// Answers when told to, and counts the questions.
#[derive(Default)]
struct Held {
    asked: Cell<usize>,
    release: Rc<Notify>,
}

impl Resolve for Held {
    fn resolve(&self, _: &str) -> LocalBoxFuture<'static, Addresses> {
        self.asked.set(self.asked.get() + 1);
        let release = Rc::clone(&self.release);
        async move {
            release.notified().await;
            Ok(Rc::from([IpAddr::V4(Ipv4Addr::new(1, 1, 1, 1))]))
        }
        .boxed_local()
    }
}

fn lookups(most: usize) -> (Rc<Held>, Lookups) {
    let held = Rc::new(Held::default());
    let lookups = Lookups::new(Rc::clone(&held) as Rc<dyn Resolve>, Duration::from_secs(5), most);
    (held, lookups)
}

#[tokio::test(start_paused = true)]
async fn one_name_is_looked_up_once_for_all_who_ask() {
    let (held, lookups) = lookups(8);
    let release = async { held.release.notify_one() };
    let (one, two, ()) = tokio::join!(lookups.find("a.example"), lookups.find("a.example"), release);
    assert_eq!((one.expect("found").len(), two.expect("found").len()), (1, 1));
    assert_eq!(held.asked.get(), 1);
    held.release.notify_one();
    assert!(lookups.find("a.example").await.is_ok());
    assert_eq!(held.asked.get(), 2, "an answered lookup is not reused: caching is the resolver's");
}

#[tokio::test(start_paused = true)]
async fn a_lookup_that_nobody_waits_for_any_more_is_begun_anew() {
    let (held, lookups) = lookups(8);
    let left = tokio::time::timeout(Duration::from_secs(1), lookups.find("a.example")).await;
    assert!(left.is_err());
    held.release.notify_one();
    assert!(lookups.find("a.example").await.is_ok());
    assert_eq!(held.asked.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_name_server_that_never_answers_times_out() {
    let (_held, lookups) = lookups(8);
    assert_eq!(lookups.find("a.example").await, Err(ResolveError::TimedOut));
}

#[tokio::test(start_paused = true)]
async fn lookups_at_a_time_are_bounded() {
    let (_held, lookups) = lookups(1);
    let (one, two) = tokio::join!(lookups.find("a.example"), lookups.find("b.example"));
    assert_eq!(one, Err(ResolveError::TimedOut));
    assert_eq!(two, Err(ResolveError::TooManyLookups));
}

#[tokio::test(start_paused = true)]
async fn addresses_are_not_looked_up() {
    let (held, lookups) = lookups(1);
    assert_eq!(
        lookups.find("10.0.0.1").await.expect("literal").as_ref(),
        ["10.0.0.1".parse::<IpAddr>().expect("literal")]
    );
    assert_eq!(lookups.find("0x7f.1").await, Err(ResolveError::NoSuchHost));
    assert_eq!(held.asked.get(), 0);
}
