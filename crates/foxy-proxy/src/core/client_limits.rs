//! Limits each client to the rates of requests and of bytes that the operator's rules set. All
//! workers share the counts of each client.

use crate::core::places::ClientBlock;
use foxy_base::clock;
use foxy_rules::operator::{Bandwidth, Effects, RequestRate};
use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A client whose requests and bytes a limit counts. A user counts as one client at all addresses.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LimitedClient {
    User(Arc<str>),
    Address(ClientBlock),
    /// Stands for all clients that have no account of their own in the limit.
    Others,
}

impl LimitedClient {
    /// Returns the user name if the client has proved it, otherwise the client's address.
    pub(crate) fn new(user: Option<&Arc<str>>, address: ClientBlock) -> Self {
        user.map_or(Self::Address(address), |user| Self::User(Arc::clone(user)))
    }
}

/// Number of clients that one rate limit remembers. At this number, the limit forgets the clients
/// that could now send at their full rate. If the table is still full, all further clients share
/// one account.
const MAX_CLIENTS: usize = 1 << 16;

/// Number of KiB of a response body that a rate limit permits a connection to send at a time. Then
/// other connections of the same client may send.
const MAX_PIECE_KIBIBYTES: u32 = 16;

/// A rate limit divides the bytes of one second into at least this many pieces, so that slow rates
/// stay smooth.
const PIECES_PER_SECOND: u32 = 8;

/// The monotonic clock, in the form that the crate `governor` reads.
#[derive(Clone, Debug, Default)]
struct MonotonicClock;

impl Clock for MonotonicClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        clock::monotonic().0.into()
    }
}

type Limiter = RateLimiter<
    LimitedClient,
    DashMapStateStore<LimitedClient>,
    MonotonicClock,
    NoOpMiddleware<Nanos>,
>;

/// A rate limit with a separate account for each client. The rate counts requests or KiB.
#[derive(Debug)]
struct ClientRate {
    limiter: Limiter,
    /// Time of the last removal of idle clients from the accounts, in seconds on the monotonic
    /// clock.
    swept: AtomicU64,
}

impl ClientRate {
    fn new(quota: Quota) -> Self {
        let limiter = RateLimiter::dashmap_with_clock(quota, MonotonicClock);
        Self { limiter, swept: AtomicU64::new(0) }
    }

    /// Takes `units` from the client's account. If the account has too few units now, the error is
    /// the time to wait. `units` is at most the number that a client may take at once.
    fn take(&self, client: &LimitedClient, units: NonZeroU32) -> Result<(), Duration> {
        let client = if self.has_room() { client } else { &LimitedClient::Others };
        match self.limiter.check_key_n(client, units) {
            Ok(Err(early)) => Err(early.wait_time_from(MonotonicClock.now())),
            Ok(Ok(())) | Err(_) => Ok(()),
        }
    }

    /// Returns whether the limit can remember another client. If the table is full, first forgets
    /// idle clients. This happens at most once a second, because it costs as much as a thousand
    /// requests.
    fn has_room(&self) -> bool {
        if self.limiter.len() < MAX_CLIENTS {
            return true;
        }
        let second = clock::monotonic().0 / 1_000_000_000;
        if self.swept.swap(second, Ordering::Relaxed) != second {
            self.limiter.retain_recent();
        }
        self.limiter.len() < MAX_CLIENTS
    }
}

/// The rate limits that one rule of the operator sets for each client.
#[derive(Debug, Default)]
pub(crate) struct RuleLimits {
    requests: Option<ClientRate>,
    bytes: Option<Arc<BandwidthLimit>>,
}

#[derive(Debug)]
struct BandwidthLimit {
    kibibytes: ClientRate,
    piece: NonZeroU32,
}

impl RuleLimits {
    pub(crate) fn new(then: &Effects) -> Self {
        let requests = then.rate_limit.and_then(|RequestRate { requests, period }| {
            let quota = Quota::with_period(period / requests.get())?;
            Some(ClientRate::new(quota.allow_burst(requests)))
        });
        let bytes = then.bandwidth_limit.map(|Bandwidth { kibibytes }| {
            let piece = (kibibytes.get() / PIECES_PER_SECOND).min(MAX_PIECE_KIBIBYTES);
            let piece = NonZeroU32::new(piece).unwrap_or(NonZeroU32::MIN);
            let quota = Quota::per_second(kibibytes).allow_burst(piece);
            Arc::new(BandwidthLimit { kibibytes: ClientRate::new(quota), piece })
        });
        Self { requests, bytes }
    }

    /// Counts a request. If the client has sent too many requests, the error is the time until the
    /// limit permits the next request.
    pub(crate) fn admit(&self, client: &LimitedClient) -> Result<(), Duration> {
        self.requests.as_ref().map_or(Ok(()), |rate| rate.take(client, NonZeroU32::MIN))
    }

    /// Returns the limit on the client's bytes per second, if the rule has such a limit.
    pub(crate) fn pace(&self, client: LimitedClient) -> Option<Pace> {
        self.bytes.clone().map(|limit| Pace { limit, client })
    }
}

/// The limit on the bytes per second that a client receives. All connections of the client share
/// this limit.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    limit: Arc<BandwidthLimit>,
    client: LimitedClient,
}

impl Pace {
    /// Returns the largest number of bytes that one call of [`Self::take`] accepts.
    pub(crate) fn piece(&self) -> usize {
        (self.limit.piece.get() as usize) << 10
    }

    /// Takes `bytes` bytes, at most [`Self::piece`], from the client's allowance. Rounds up to
    /// whole KiB. If the allowance has too few bytes now, the error is the time to wait before the
    /// next try.
    pub(crate) fn take(&self, bytes: usize) -> Result<(), Duration> {
        let kibibytes = u32::try_from(bytes.div_ceil(1 << 10)).unwrap_or(u32::MAX);
        let units = NonZeroU32::new(kibibytes).map_or(Ok(()), |units| {
            self.limit.kibibytes.take(&self.client, units.min(self.limit.piece))
        });
        // The runtime's timer has steps of a millisecond. A shorter wait would end at once, and
        // poll in a busy loop.
        units.map_err(|wait| wait.max(Duration::from_millis(1)))
    }

    /// Waits until the client may receive `bytes` bytes, at most [`Self::piece`].
    pub(crate) async fn wait(&self, bytes: usize) {
        while let Err(wait) = self.take(bytes) {
            tokio::time::sleep(wait).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

    fn limits(then: Effects) -> RuleLimits {
        RuleLimits::new(&then)
    }

    fn client(last: u8) -> LimitedClient {
        LimitedClient::new(None, IpAddr::from(Ipv4Addr::new(192, 0, 2, last)).into())
    }

    #[test]
    fn each_client_has_its_own_rate_of_requests() {
        let rate_limit = Some("2/h".parse().expect("a rate"));
        let limits = limits(Effects { rate_limit, ..Effects::default() });
        let admitted = [1, 1, 1, 2, 1].map(|last| limits.admit(&client(last)).is_ok());
        assert_eq!(admitted, [true, true, false, true, false]);
        assert!(limits.pace(client(1)).is_none());
    }

    #[test]
    fn a_user_has_one_rate_at_all_addresses() {
        let rate_limit = Some("1/h".parse().expect("a rate"));
        let limits = limits(Effects { rate_limit, ..Effects::default() });
        let from = |user: &str, last| {
            let address = IpAddr::from(Ipv4Addr::new(192, 0, 2, last)).into();
            LimitedClient::new(Some(&user.into()), address)
        };
        let clients = [from("ann", 1), from("ann", 2), from("bob", 1), client(1)];
        let admitted = clients.map(|client| limits.admit(&client).is_ok());
        assert_eq!(admitted, [true, false, true, true]);
    }

    #[test]
    fn all_connections_of_a_client_share_its_bytes() {
        let bandwidth_limit = Some("1K/s".parse().expect("a bandwidth"));
        let limits = limits(Effects { bandwidth_limit, ..Effects::default() });
        let (first, second) = (limits.pace(client(1)), limits.pace(client(1)));
        let (first, second) = (first.expect("limited"), second.expect("limited"));
        assert_eq!(first.piece(), 1024);
        assert_eq!(first.take(0), Ok(()));
        assert_eq!(first.take(1), Ok(()));
        assert!(second.take(1).is_err());
        assert_eq!(limits.pace(client(2)).expect("limited").take(1024), Ok(()));
    }

    #[test]
    fn a_crowd_of_clients_takes_no_unlimited_memory() {
        let rate = ClientRate::new(Quota::per_hour(NonZeroU32::MIN));
        for number in 0..(2 * MAX_CLIENTS as u32) {
            let address = IpAddr::from(Ipv4Addr::from(number)).into();
            let _either = rate.take(&LimitedClient::Address(address), NonZeroU32::MIN);
        }
        assert!(rate.limiter.len() <= MAX_CLIENTS + 1);
    }
}
