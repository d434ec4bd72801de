//! Chooses a server of an origin for each request. Draws two working servers at random, and takes
//! the server with the lower cost. The cost grows with the requests in progress and with the
//! latency.

use crate::upstream::fail_over::Tried;
use crate::upstream::origins::server::{ServerRank, ServerState};
use foxy_base::{Instant, Random};

/// Initial budget: the number of requests that may go to a second server before any request has
/// added to the budget.
const FIRST_REPETITIONS: f64 = 100.0;
/// Each request adds this number to the budget of requests that may go to a second server.
const REPETITIONS_PER_REQUEST: f64 = 0.2;
const MOST_REPETITIONS: f64 = 1000.0;
/// Factor by which a failure in the last seconds raises the cost of a server, for a request that
/// may not be sent twice.
const COST_OF_DOUBT: f64 = 8.0;

/// Whether a second server may receive a request that a first server has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeatable {
    Yes,
    No,
}

/// Limits the share of requests that are sent twice. If all servers of an origin fail, they would
/// otherwise receive twice the load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RepetitionBudget(f64);

impl Default for RepetitionBudget {
    fn default() -> Self {
        Self(FIRST_REPETITIONS)
    }
}

impl RepetitionBudget {
    pub(crate) fn earn(&mut self) {
        self.0 = (self.0 + REPETITIONS_PER_REQUEST).min(MOST_REPETITIONS);
    }

    /// Takes one repetition from the budget. Returns false if the budget is used up.
    pub(crate) fn spend(&mut self) -> bool {
        let is_enough = self.0 >= 1.0;
        if is_enough {
            self.0 -= 1.0;
        }
        is_enough
    }
}

/// Chooses a server for a request, except the servers `tried`, which have failed for this request.
/// A server that has failed rests: it receives no requests for some time. The first request after
/// the rest finds out whether the server works again (a trial). Only a request that may be sent
/// twice is used as a trial. A request that may not be sent twice rarely goes to a server in doubt,
/// on which a request has failed lately: a failure would reach the client. If every server rests
/// and `tried` is empty, the request goes to the server whose rest ends first.
pub(crate) fn choose(
    servers: &[ServerState],
    tried: Tried,
    repeatable: Repeatable,
    now: Instant,
    random: &mut Random,
) -> Option<usize> {
    let cost = |number: usize| {
        let is_risky = repeatable == Repeatable::No && servers[number].is_in_doubt(now);
        servers[number].cost(now) * if is_risky { COST_OF_DOUBT } else { 1.0 }
    };
    let mut usable: Vec<usize> = usable(servers, tried, repeatable, now).collect();
    let is_on_trial = |number: &usize| servers[*number].rank(now) == ServerRank::OnTrial;
    let trial = usable.iter().copied().find(is_on_trial);
    match &mut usable[..] {
        [] if tried.is_empty() => {
            (0..servers.len()).min_by_key(|number| servers[*number].rests_until())
        }
        [] => None,
        [only] => Some(*only),
        _ if trial.is_some() => trial,
        several => {
            let first = below(random, several.len());
            several.swap(0, first);
            let second = 1 + below(random, several.len() - 1);
            let (first, second) = (several[0], several[second]);
            Some(if cost(second) < cost(first) { second } else { first })
        }
    }
}

/// Returns the servers that may receive the request, except the servers `tried`.
pub(crate) fn usable(
    servers: &[ServerState],
    tried: Tried,
    repeatable: Repeatable,
    now: Instant,
) -> impl Iterator<Item = usize> {
    (0..servers.len()).filter(move |number| match servers[*number].rank(now) {
        _ if tried.contains(*number) => false,
        ServerRank::Works => true,
        ServerRank::OnTrial => repeatable == Repeatable::Yes,
        ServerRank::Rests => false,
    })
}

fn below(random: &mut Random, bound: usize) -> usize {
    usize::try_from(random.below(bound as u64)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::origins::server::ServerFault;
    use std::time::Duration;

    const NOW: Instant = Instant(10_000_000_000);

    fn shares(servers: &[ServerState], repeatable: Repeatable) -> Vec<usize> {
        let mut random = Random::new(7);
        let mut shares = vec![0; servers.len()];
        for _ in 0..900 {
            let chosen = choose(servers, Tried::default(), repeatable, NOW, &mut random);
            shares[chosen.expect("a server")] += 1;
        }
        shares
    }

    fn failed(fault: ServerFault, before: u64) -> ServerState {
        let mut server = ServerState::default();
        for _ in 0..3 {
            server.fails(fault, NOW - Duration::from_millis(before), &mut Random::new(1));
        }
        server
    }

    #[test]
    fn equal_servers_get_equal_shares_and_a_slow_server_few_requests() {
        let mut servers = [ServerState::default(); 3];
        assert!(shares(&servers, Repeatable::No).iter().all(|share| (250..350).contains(share)));
        servers[1].load.observe(Duration::from_secs(1), NOW);
        assert_eq!(shares(&servers, Repeatable::No)[1], 0);
    }

    #[test]
    fn the_server_with_fewer_requests_in_flight_comes_first() {
        let mut servers = [ServerState::default(); 2];
        servers[0].load.begin();
        assert_eq!(shares(&servers, Repeatable::No), [0, 900]);
    }

    #[test]
    fn a_resting_server_gets_no_request_unless_all_rest() {
        let (dead, later) =
            (failed(ServerFault::Unreachable, 0), failed(ServerFault::Failing, 100));
        assert_eq!(shares(&[dead, ServerState::default()], Repeatable::Yes), [0, 900]);
        assert_eq!(shares(&[dead, later], Repeatable::Yes), [0, 900], "its rest ends first");
        let (mut tried, mut random) = (Tried::default(), Random::new(7));
        tried.add(1);
        let again = choose(&[dead, later], tried, Repeatable::Yes, NOW, &mut random);
        assert_eq!(again, None, "a request tries one resting server at most");
    }

    #[test]
    fn a_request_that_may_not_be_sent_twice_avoids_a_server_in_doubt() {
        let doubted = |age: u64| {
            let mut server = ServerState::default();
            let time = NOW - Duration::from_millis(age);
            server.fails(ServerFault::Failing, time, &mut Random::new(1));
            server
        };
        let one = [doubted(0), ServerState::default(), ServerState::default()];
        assert_eq!(shares(&one, Repeatable::No)[0], 0);
        assert!(shares(&one, Repeatable::Yes)[0] > 200, "these requests show whether it works");
        let all = [doubted(0); 3];
        assert!(shares(&all, Repeatable::No).iter().all(|share| *share > 200));
        let earlier = [doubted(999), doubted(2000), ServerState::default()];
        assert!(shares(&earlier, Repeatable::No)[1] > 300, "doubt ends without a request");
    }

    #[test]
    fn only_a_repeatable_request_tries_a_server_after_its_rest() {
        let servers = [failed(ServerFault::Failing, 700), ServerState::default()];
        assert_eq!(shares(&servers, Repeatable::No), [0, 900]);
        let chosen = choose(&servers, Tried::default(), Repeatable::Yes, NOW, &mut Random::new(7));
        assert_eq!(chosen, Some(0), "the trial");
    }

    #[test]
    fn a_request_changes_to_each_server_that_works() {
        let (servers, mut random) = ([ServerState::default(); 3], Random::new(7));
        let mut tried = Tried::default();
        for _ in 0..3 {
            let number = choose(&servers, tried, Repeatable::No, NOW, &mut random);
            let number = number.expect("a server");
            assert!(!tried.contains(number));
            tried.add(number);
        }
        assert_eq!(choose(&servers, tried, Repeatable::No, NOW, &mut random), None);
    }

    #[test]
    fn a_fifth_of_the_requests_may_be_repeated() {
        let mut budget = RepetitionBudget::default();
        assert_eq!((0..200).filter(|_| budget.spend()).count(), 100);
        (0..100).for_each(|_| budget.earn());
        let again = (0..200).filter(|_| budget.spend()).count();
        assert!((19..=20).contains(&again), "{again}");
    }
}
