//! Tests how host names and addresses are parsed, and how look-ups are shared and limited.

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

/// A resolver that gives its answers only when the test permits it. It counts the look-ups.
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

impl Held {
    fn give(&self, times: usize) {
        (0..times).for_each(|_| self.release.notify_one());
    }
}

/// Creates `Lookups` with at most `most` look-ups at the same time, and at most two per client.
fn lookups(most: usize) -> (Rc<Held>, Lookups) {
    let held = Rc::new(Held::default());
    let limits = LookupLimits { timeout: Duration::from_secs(5), most, of_client: 2 };
    let lookups = Lookups::new(Rc::clone(&held) as Rc<dyn Resolve>, limits);
    (held, lookups)
}

fn client(number: u8) -> Option<ClientBlock> {
    Some(IpAddr::from([192, 0, 2, number]).into())
}

#[tokio::test(start_paused = true)]
async fn one_name_is_looked_up_once_for_all_who_ask() {
    let (held, lookups) = lookups(8);
    let release = async { held.release.notify_one() };
    let (one, two, ()) =
        tokio::join!(lookups.find("a.example", None), lookups.find("a.example", None), release);
    assert_eq!((one.expect("found").len(), two.expect("found").len()), (1, 1));
    assert_eq!(held.asked.get(), 1);
    held.release.notify_one();
    assert!(lookups.find("a.example", None).await.is_ok());
    assert_eq!(held.asked.get(), 2, "an answered lookup is not reused: caching is the resolver's");
}

#[tokio::test(start_paused = true)]
async fn a_lookup_that_nobody_waits_for_any_more_is_begun_anew() {
    let (held, lookups) = lookups(8);
    let left = tokio::time::timeout(Duration::from_secs(1), lookups.find("a.example", None)).await;
    assert!(left.is_err());
    held.release.notify_one();
    assert!(lookups.find("a.example", None).await.is_ok());
    assert_eq!(held.asked.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_name_server_that_never_answers_times_out() {
    let (_held, lookups) = lookups(8);
    assert_eq!(lookups.find("a.example", None).await, Err(ResolveError::TimedOut));
}

#[tokio::test(start_paused = true)]
async fn a_name_that_no_server_answered_for_is_not_asked_again_for_a_while() {
    let (held, lookups) = lookups(8);
    for asked in [1, 1] {
        assert_eq!(lookups.find("a.example", None).await, Err(ResolveError::TimedOut));
        assert_eq!(held.asked.get(), asked);
    }
    tokio::time::sleep(SILENCE_TIME).await;
    held.release.notify_one();
    assert!(lookups.find("a.example", None).await.is_ok());
    assert_eq!(
        lookups.find("b.example", None).await,
        Err(ResolveError::TimedOut),
        "another name is asked for"
    );
}

#[tokio::test(start_paused = true)]
async fn beyond_the_bound_the_look_up_that_began_first_is_given_up() {
    let (_held, lookups) = lookups(2);
    let find = |name| lookups.find(name, None);
    let found =
        tokio::join!(find("a.example"), find("b.example"), find("c.example"), find("b.example"));
    assert_eq!(found.0, Err(ResolveError::TooManyLookups));
    assert_eq!((&found.1, &found.2, &found.3), (&found.2, &found.3, &Err(ResolveError::TimedOut)));
}

#[tokio::test(start_paused = true)]
async fn one_client_has_its_share_of_look_ups_and_others_have_theirs() {
    let (held, lookups) = lookups(8);
    let find = |name, number| lookups.find(name, client(number));
    let flood =
        async { tokio::join!(find("a.example", 1), find("b.example", 1), find("c.example", 1)) };
    let others = async {
        let (joined, own) = tokio::join!(find("a.example", 2), find("d.example", 2));
        (joined.is_ok(), own.is_ok())
    };
    let release = async { held.give(3) };
    let ((one, two, three), others, ()) = tokio::join!(flood, others, release);
    assert_eq!((one.is_ok(), two.is_ok(), three), (true, true, Err(ResolveError::TooManyOfClient)));
    assert_eq!(others, (true, true));
    assert_eq!(held.asked.get(), 3);
    held.release.notify_one();
    assert!(find("c.example", 1).await.is_ok(), "the share is free again");
}

/// A resolver that knows one name without a look-up.
struct Knowing;

impl Resolve for Knowing {
    fn resolve(&self, _: &str) -> LocalBoxFuture<'static, Addresses> {
        std::future::pending().boxed_local()
    }

    fn known(&self, name: &str) -> Option<Rc<[IpAddr]>> {
        (name == "known.example").then(|| Rc::from([IpAddr::V4(Ipv4Addr::LOCALHOST)]))
    }
}

#[tokio::test(start_paused = true)]
async fn a_known_name_waits_for_no_look_up() {
    let limits = LookupLimits { timeout: Duration::from_secs(5), most: 1, of_client: 1 };
    let lookups = Lookups::new(Rc::new(Knowing), limits);
    let known = async { lookups.find("known.example", client(1)).await.is_ok() };
    let (silent, known) = tokio::join!(lookups.find("silent.example", client(1)), known);
    assert_eq!((silent, known), (Err(ResolveError::TimedOut), true));
}

#[tokio::test(start_paused = true)]
async fn addresses_are_not_looked_up() {
    let (held, lookups) = lookups(1);
    assert_eq!(
        lookups.find("10.0.0.1", None).await.expect("literal").as_ref(),
        ["10.0.0.1".parse::<IpAddr>().expect("literal")]
    );
    assert_eq!(lookups.find("0x7f.1", None).await, Err(ResolveError::NoSuchHost));
    assert_eq!(held.asked.get(), 0);
}
